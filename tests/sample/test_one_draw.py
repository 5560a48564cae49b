"""One draw: the same rows in the same order give the same split, whatever holds them."""

import itertools
import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from calibrant import BinningCalibrator, scored
from calibrant.params.random import Draw, SmallestHashes, seed_number
from calibrant.sample.reader import read_rows, rows_of
from calibrant.sample.row_keys import position_keys
from calibrant.sample.taken_rows import FindSmallest, TakeSurvey
from read_marks import unmarked

ROWS = 2_000
RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=ROWS)
LABELS = (RNG.uniform(size=ROWS) < SCORES).astype(np.int64)
TABLE = pa.table({"p": SCORES, "y": LABELS, "key": [f"row {number}" for number in range(ROWS)]})
NAMES = {"score": "p", "label": "y", "progress": False}
CUTS = (0, 170, 171, 900, ROWS)


def pieces() -> list[pa.Table]:
    return [TABLE.slice(low, high - low) for low, high in itertools.pairwise(CUTS)]


def written(folder, ending, write) -> list[str]:
    paths = [str(folder / f"part-{number}.{ending}") for number in range(len(pieces()))]
    for path, piece in zip(paths, pieces(), strict=True):
        write(piece, path)
    return paths


def write_json(table, path) -> None:
    table.to_pandas().to_json(path, orient="records", lines=True, double_precision=15)


def write_ipc(table, path) -> None:
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


def write_parquet(table, path) -> None:
    pq.write_table(table, path, row_group_size=64)


SOURCES = {
    "mapping": lambda folder: {"p": SCORES, "y": LABELS},
    "table": lambda folder: TABLE,
    "many batches": lambda folder: pa.concat_tables(pieces()),
    "pandas": lambda folder: TABLE.to_pandas(),
    "polars": lambda folder: pl.from_arrow(TABLE),
    "lazy polars": lambda folder: pl.scan_parquet(written(folder, "parquet", write_parquet)),
    "parquet": lambda folder: written(folder, "parquet", write_parquet),
    "parquet, named backwards": lambda folder: written(folder, "parquet", write_parquet)[::-1],
    "csv": lambda folder: written(folder, "csv", pa_csv.write_csv),
    "csv, a folder": lambda folder: folder if written(folder, "csv", pa_csv.write_csv) else None,
    "json": lambda folder: written(folder, "jsonl", write_json),
    "ipc": lambda folder: written(folder, "arrow", write_ipc),
    "dataset": lambda folder: ds.dataset(written(folder, "parquet", write_parquet)),
}
SPLITS = (0.2, 400)


def split_fit(split, *data) -> BinningCalibrator:
    return BinningCalibrator(5, pilot=split).fit(*data)


@pytest.mark.parametrize("split", [SPLITS[0], pytest.param(SPLITS[1], marks=pytest.mark.broad)])
@pytest.mark.parametrize("name", SOURCES)
def test_rows_in_one_order_give_one_fit(name, split, tmp_path) -> None:
    expected = split_fit(split, SCORES, LABELS)
    found = split_fit(split, scored(SOURCES[name](tmp_path), **NAMES))
    if name == "json":  # whose text keeps 15 digits
        assert found.tally_.n_rows == expected.tally_.n_rows
        np.testing.assert_allclose(found.partition_.edges, expected.partition_.edges, rtol=1e-14)
        return
    assert found.partition_ == expected.partition_
    assert found.tally_ == expected.tally_


@pytest.mark.broad
@pytest.mark.parametrize("split", SPLITS)
def test_arrays_of_every_library_give_one_fit(split) -> None:
    torch = pytest.importorskip("torch")
    expected = split_fit(split, SCORES, LABELS)
    others = (
        (SCORES.tolist(), LABELS.tolist()),
        (pd.Series(SCORES), pd.Series(LABELS)),
        (pl.Series(SCORES), pl.Series(LABELS)),
        (pa.array(SCORES), pa.array(LABELS)),
        (torch.tensor(SCORES), torch.tensor(LABELS)),
    )
    device = scored({"p": torch.tensor(SCORES), "y": torch.tensor(LABELS)}, **NAMES)
    for found in (*(split_fit(split, *pair) for pair in others), split_fit(split, device)):
        assert found.partition_ == expected.partition_
        assert found.tally_ == expected.tally_


def dask_frame(table, partitions):
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(table.to_pandas(), npartitions=partitions)


@pytest.mark.broad
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("order", ["as it is", "shuffled"])
def test_with_ids_one_fit_in_any_order_and_partitioning(split, order, tmp_path) -> None:
    expected = split_fit(split, scored(TABLE, **NAMES, id="key"))
    rows = (
        TABLE
        if order == "as it is"
        else TABLE.take(pa.array(np.random.default_rng(3).permutation(ROWS)))
    )
    write_parquet(rows, tmp_path / "rows.parquet")
    for source in (
        rows,
        duckdb.from_arrow(rows),
        tmp_path / "rows.parquet",
        dask_frame(rows, 1),
        dask_frame(rows, 7),
    ):
        found = split_fit(split, scored(source, **NAMES, id="key"))
        assert found.partition_ == expected.partition_
        assert found.tally_ == expected.tally_


def test_a_number_draws_exactly_so_many_rows_and_a_fraction_each_with_that_probability() -> None:
    rows = read_rows(SCORES, LABELS)
    for number in (1, 7, 1_999):
        assert (
            split_fit(number, SCORES, LABELS).tally_.n_rows == ROWS - number
            if number >= 5
            else True
        )
        assert np.count_nonzero(rows.chosen(rows.draw(number, 3))) == number
    drawn = [np.count_nonzero(rows.chosen(rows.draw(0.2, seed))) for seed in range(200)]
    assert len(set(drawn)) > 20
    assert abs(np.mean(drawn) - 400) < 5 * np.sqrt(ROWS * 0.2 * 0.8 / 200)


def test_the_smallest_hashes_add() -> None:
    hashes = Draw(5, 0).hashes(position_keys(0, 1_000))
    parts = [SmallestHashes(30, hashes[low : low + 100]) for low in range(0, 1_000, 100)]
    total = sum(parts[1:], parts[0])
    assert sorted(total.found.tolist()) == sorted(hashes.tolist())[:30]
    assert np.count_nonzero(Draw(5, total.limit).chosen(position_keys(0, 1_000))) == 30


def test_the_default_seed_is_fixed_none_draws_afresh_and_a_generator_gives_the_seed() -> None:
    assert (
        split_fit(0.2, SCORES, LABELS).tally_
        == BinningCalibrator(5, pilot=0.2, random_state=0).fit(SCORES, LABELS).tally_
    )
    assert seed_number(None) != seed_number(None)
    assert seed_number(np.random.default_rng(4)) == seed_number(np.random.default_rng(4))
    assert seed_number(np.random.RandomState(4)) == seed_number(np.random.RandomState(4))


def test_bins_that_no_row_or_every_row_cuts_are_refused() -> None:
    for split in (ROWS, 10 * ROWS, 1e-9):
        for data in ((SCORES, LABELS), (scored(TABLE, **NAMES),)):
            with pytest.raises(
                ValueError, match="pilot must leave some rows to choose bins and some to count; got"
            ):
                split_fit(split, *data)


@pytest.mark.broad
def test_a_draw_by_partition_is_told_and_still_told_after_saving() -> None:
    for source in (duckdb.from_arrow(TABLE), dask_frame(TABLE, 3)):
        drawn = split_fit(0.2, scored(source, **NAMES))
        assert "drawn by partition" in " ".join(map(str, drawn.guarantee_.notes))
        again = BinningCalibrator.from_dict(json.loads(json.dumps(drawn.to_dict())))
        assert unmarked(again.guarantee_) == str(drawn.guarantee_)
        mark = "Read from a file, not recomputed from the rows: counts."
        assert again.guarantee_.notes == (*drawn.guarantee_.notes, mark)
        for silent in (
            split_fit(0.2, scored(source, **NAMES, id="key")),
            split_fit(None, scored(source, **NAMES)),
        ):
            assert "partition" not in " ".join(map(str, silent.guarantee_.notes))
    assert "partition" not in " ".join(
        map(str, split_fit(0.2, scored(TABLE, **NAMES)).guarantee_.notes)
    )


CUSTOMERS = np.random.default_rng(8).integers(200, size=ROWS)


@pytest.mark.broad
@pytest.mark.parametrize("split", [0.02, 400])
@pytest.mark.parametrize("kind", ["whole numbers", "text", "mostly unique"])
def test_ids_that_rows_share_are_refused_as_these_rows_are_drawn_together(
    split, kind, tmp_path
) -> None:
    """200 customers as ids missed in about half of all runs at a confidence level of 0.9."""
    ids = {
        "whole numbers": CUSTOMERS,
        "text": np.array([f"customer {number}" for number in CUSTOMERS]),
        "mostly unique": np.where(CUSTOMERS < 50, -1, np.arange(ROWS)),
    }
    rows = TABLE.append_column("customer", pa.array(ids[kind]))
    write_parquet(rows, tmp_path / "rows.parquet")
    torch = pytest.importorskip("torch")
    sources = [
        rows,
        duckdb.from_arrow(rows),
        tmp_path / "rows.parquet",
        pl.from_arrow(rows).lazy(),
        dask_frame(rows, 3),
    ]
    if kind != "text":
        sources.append(
            {name: torch.tensor(rows[name].to_numpy()) for name in ("p", "y", "customer")}
        )
    for source in sources:
        data = scored(source, **NAMES, id="customer")
        with pytest.raises(
            ValueError,
            match=r"'customer' must be different in every row.*name a column that is unique",
        ):
            split_fit(split, data)
    with pytest.raises(ValueError, match="must be different in every row"):
        rows_of(scored(rows, **NAMES, id="customer")).collect(draw=Draw(1, 2**64))


def test_a_draw_by_ids_assumes_that_they_are_unique_and_says_so_after_saving() -> None:
    drawn = split_fit(0.2, scored(TABLE, **NAMES, id="key"))
    assert "rows were drawn by an id that is unique per row" in drawn.guarantee_.details
    assert unmarked(
        BinningCalibrator.from_dict(json.loads(json.dumps(drawn.to_dict()))).guarantee_
    ) == str(drawn.guarantee_)
    assert "unique" not in str(split_fit(None, scored(TABLE, **NAMES, id="key")).guarantee_)


@pytest.mark.parametrize("most", [1, 7, 40])
def test_rows_in_memory_are_one_batch(most: int) -> None:
    """Work on checked rows finds the same without Arrow as with it."""
    rng = np.random.default_rng(5)
    p, y = rng.random(300).round(2), rng.integers(0, 2, 300)
    s, g = rng.choice(["a", "b"], 300), rng.integers(0, 60, 300)
    held = read_rows(p, y, segments=s, groups=g)
    table = {"p": p, "y": y, "s": s, "g": g}
    stored = rows_of(scored(table, score="p", label="y", segment="s", group="g"))
    survey, other = (rows.fold(TakeSurvey(rows.columns, True, 200)) for rows in (held, stored))
    assert survey.rows == other.rows
    assert survey.sums.fingerprint == other.sums.fingerprint
    assert survey.cells.counts("a").sums.tolist() == other.cells.counts("a").sums.tolist()
    first, same = (rows.fold(FindSmallest(rows.columns, 3, most)) for rows in (held, stored))
    assert first.found.tolist() == same.found.tolist()
    drawn = held.chosen(Draw(3, first.limit))
    assert np.unique(g[drawn]).size == most
    assert not np.isin(g[~drawn], g[drawn]).any()
