"""Rows of DuckDB and Polars are counted by attributes and kinds of scores as rows of arrays are."""

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from calibrant import scored
from calibrant.cells.keyed_sums import KeyedSums
from calibrant.cells.score_kinds import N_KINDS, kinds_of
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.random import Draw
from calibrant.sample.columns import table_of
from calibrant.sample.cross_counts import (
    CountCross,
    CrossCounts,
    CrossKey,
    joined_sums,
    score_sums,
    whole_scores,
)
from calibrant.sample.reader import rows_of
from calibrant.sample.row_keys import position_keys
from sample.cross_tests import NAMES, check_cross, key_of, mixed_rows

ENGINES = ["duckdb", "polars"]


def engine(kind: str, rows: pd.DataFrame | pa.Table) -> Any:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows, preserve_index=False)
    return duckdb.from_arrow(table) if kind == "duckdb" else pl.from_arrow(table).lazy()


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("labels", ["bool", "number", "text"])
def test_engines_count_what_the_kernel_counts(kind: str, labels: str):
    rows = mixed_rows(4_000, labels)
    check_cross(scored(engine(kind, rows), score="p", label="y", progress=False), rows)


@pytest.mark.parametrize("kind", ENGINES)
def test_rows_are_drawn_by_position(kind: str):
    rows = mixed_rows(2_000)
    data = rows_of(scored(engine(kind, rows), score="p", label="y", progress=False))
    draw = Draw.of_share(5, 0.1)
    drawn = table_of(data, {"p": "score", "sex": "attribute"}, draw).to_pandas()
    pd.testing.assert_frame_equal(
        drawn[["p", "sex"]],
        rows.loc[draw.chosen(position_keys(0, 2_000)), ["p", "sex"]].reset_index(drop=True),
        check_dtype=False,
    )


@pytest.mark.parametrize("kind", ENGINES)
def test_rows_without_a_label_are_skipped(kind: str):
    rows = mixed_rows(2_000, "number").astype({"y": np.float64})
    rows.loc[::7, "y"] = np.nan
    table = pa.Table.from_pandas(rows, preserve_index=False)
    nan = pa.array(rows["y"].to_numpy(), from_pandas=False)
    for labels in (table, table.set_column(1, "y", nan)):
        data = scored(engine(kind, labels), score="p", label="y", skip_missing=True, progress=False)
        check_cross(data, rows)


@pytest.mark.parametrize("kind", ENGINES)
def test_categories_count_as_text(kind: str):
    rows = mixed_rows(2_000).astype({"sex": "category"})
    check_cross(scored(engine(kind, rows), score="p", label="y", progress=False), rows)


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    ("column", "value", "parameter"),
    [("p", 1.5, "score"), ("p", np.nan, "score"), ("y", None, "label")],
)
def test_faulty_rows_are_told_as_elsewhere(kind: str, column: str, value: object, parameter: str):
    rows = mixed_rows(500, "text")
    key = key_of(rows)
    rows.loc[17, column] = value
    data = scored(engine(kind, rows), score="p", label="y", progress=False)
    with pytest.raises(InvalidValueError) as error:
        rows_of(data).fold(CountCross(rows_of(data).columns, key)).faults.check()
    assert error.value.parameter == parameter
    assert "row index 17" in str(error.value)


@pytest.mark.parametrize("kind", ENGINES)
def test_infinite_attributes_and_other_kinds_are_refused(kind: str):
    rows = mixed_rows(500)
    key = key_of(rows)
    infinite = scored(engine(kind, rows.assign(gain=np.inf)), score="p", label="y", progress=False)
    with pytest.raises(InvalidValueError, match="finite"):
        rows_of(infinite).fold(CountCross(rows_of(infinite).columns, key))
    texts = scored(engine(kind, rows.assign(age="old")), score="p", label="y", progress=False)
    with pytest.raises(InvalidTypeError):
        rows_of(texts).fold(CountCross(rows_of(texts).columns, key))


def test_steps_of_scores_add_up_to_their_sum():
    scores = mixed_rows(3_000)["p"].to_numpy()
    high, low, _ = whole_scores(scores)
    total = float(score_sums(high.sum(keepdims=True), low.sum(keepdims=True))[0])
    assert scores.sum() - 3_000 * 2.0**-52 <= total + 1e-12
    assert total <= scores.sum() + 1e-12


def test_kinds_of_scores_keep_their_order_and_reach_both_ends():
    scores = np.sort(mixed_rows(3_000)["p"].to_numpy())
    kinds = kinds_of(scores)
    assert (np.diff(kinds) >= 0).all()
    assert kinds[0] == 0
    assert kinds[-1] == N_KINDS - 1


def test_too_many_combinations_are_refused_with_their_number():
    levels = key_of(mixed_rows(500)).levels * 8
    with pytest.raises(InvalidValueError) as error:
        CrossKey(levels)
    assert error.value.parameter == "attributes"
    assert NAMES[0] not in str(error.value)


def test_more_groups_than_fit_are_refused_while_batches_are_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def one(first: int) -> CrossCounts:
        keys = np.arange(first, first + 40)
        return CrossCounts({1: (KeyedSums.of(keys, np.ones((40, 4), dtype=np.int64)),)})

    monkeypatch.setattr("calibrant.sample.cross_counts._MOST_GROUPS", 100)
    total = one(0) + one(0) + one(40)
    assert joined_sums(total.parts[1]).key.size == 80
    total += one(80)
    with pytest.raises(
        InvalidValueError, match="at most 100 combinations with the distinct scores"
    ):
        joined_sums(total.parts[1])
    with pytest.raises(
        InvalidValueError, match="at most 100 combinations with the distinct scores"
    ):
        total += one(120)
