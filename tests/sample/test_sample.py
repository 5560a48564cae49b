"""What users see of scored data: few names, and what is in the data."""

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import BinningCalibrator, PlattCalibrator, Sample, scored
from calibrant.errors import InvalidTypeError
from calibrant.sample.reader import rows_of

NAMES = {
    "collect",
    "columns",
    "describe",
    "group_target",
    "in_memory",
    "max_group_size",
    "n_groups",
    "n_rows",
    "names",
    "sizes",
    "skipped_rows",
    "to_frame",
    "weight_bound",
}
"""Names that users see; `rows_of` reaches the rest."""

TABLE = pa.table(
    {
        "p": [0.1, 0.4, 0.6, 0.9, 0.3],
        "y": ["no", "no", "yes", "yes", None],
        "site": ["b", "a", "b", "b", "a"],
        "customer": [1, 1, 2, 3, 3],
        "age": [30, 40, 50, 60, 70],
    }
)
ROLES = {"score": "p", "label": "y", "segment": "site", "group": "customer", "skip_missing": True}


def public(data: object) -> set[str]:
    return {name for name in dir(data) if not name.startswith("_")}


@pytest.fixture(params=["table", "file", "memory"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    if request.param == "file":
        pq.write_table(TABLE, tmp_path / "rows.parquet")
        return scored(tmp_path / "rows.parquet", **ROLES, progress=False)
    found = scored(TABLE, **ROLES, progress=False)
    return found.collect(pos_label="yes") if request.param == "memory" else found


def test_users_see_few_names(data: Sample) -> None:
    assert public(data) == NAMES


def test_each_name_says_what_it_is() -> None:
    for name in NAMES:
        assert inspect.getdoc(getattr(Sample, name)), name


def test_what_is_in_the_data(data: Sample) -> None:
    assert data.describe() == {
        "rows": 4,
        "skipped_rows": 1,
        "labels": {"no": 2, "yes": 2},
        "scores": (0.1, 0.9),
        "segments": {"a": 1, "b": 3},
        "groups": 3,
    }
    assert data.n_rows() == sum(data.sizes().values()) == 4
    assert data.n_groups() == 3
    assert data.skipped_rows() == 1


def test_entries_follow_the_columns_that_are_named() -> None:
    unlabelled = scored(TABLE, score="p")
    assert unlabelled.describe() == {"rows": 5, "skipped_rows": 0, "scores": (0.1, 0.9)}
    assert unlabelled.n_groups() == 0


def test_columns_and_names() -> None:
    found = scored(TABLE, **ROLES)
    roles = {"score": "p", "label": "y", "segment": "site", "group": "customer"}
    assert found.columns == roles
    assert found.names == TABLE.column_names
    assert repr(found) == (
        "Sample(score='p', label='y', segment='site', group='customer', skip_missing=True)"
    )


def test_the_columns_are_not_those_of_the_rows() -> None:
    found = scored(TABLE, score="p", label="y")
    found.columns["score"] = "age"
    found.names.clear()
    assert found.columns["score"] == "p"
    assert found.names == TABLE.column_names


def test_a_frame_has_the_columns_that_are_used_without_skipped_rows() -> None:
    frame = scored(TABLE, score="p", label="y", skip_missing=True).to_frame()
    expected = TABLE.select(["p", "y"]).slice(0, 4).to_pandas()
    pd.testing.assert_frame_equal(frame, expected)


def test_rows_in_memory_take_the_place_of_the_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=600)
    table = pa.table({"p": p, "y": rng.uniform(size=600) < p})
    pq.write_table(table, tmp_path / "rows.parquet")
    data = scored(tmp_path / "rows.parquet", score="p", label="y", progress=False)
    here = data.collect()
    assert not data.in_memory
    assert here.in_memory
    fits = [PlattCalibrator().fit(rows).predict([0.2, 0.7]) for rows in (data, here)]
    np.testing.assert_array_equal(*fits)


def test_a_fit_takes_what_a_sample_holds() -> None:
    table = pa.table({"p": [0.1, 0.2, 0.8, 0.9] * 50, "y": [0, 0, 1, 1] * 50})
    data = scored(table, score="p", label="y")
    fits = [BinningCalibrator(n_bins=2).fit(rows).tally_ for rows in (data, rows_of(data))]
    assert fits[0] == fits[1]


def test_apply_takes_scored_data_alone() -> None:
    fitted = PlattCalibrator().fit([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1])
    with pytest.raises(InvalidTypeError) as refused:
        fitted.apply([0.1, 0.2])
    assert refused.value.parameter == "data"
    assert refused.value.got == "list"
