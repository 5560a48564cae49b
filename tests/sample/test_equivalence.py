"""Any engine, any partitioning, any order: the same counts, the same edges, the same sums."""

import tempfile
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import BinningCalibrator, Partition, scored
from calibrant.params.random import Draw
from calibrant.sample.reader import rows_of
from calibrant.sample.sources import arrow

NAMES = {"score": "p", "label": "y", "segment": "g", "weight": "w", "id": "key"}
EDGES = np.array([-0.5, 0.1, 0.25, 0.2500000001, 0.5, 0.9, 3.0])


def table_of(n: int, seed: int) -> pa.Table:
    """Rows with ties, both signs, scores on the edges and weights of many magnitudes."""
    rng = np.random.default_rng(seed)
    scores = rng.choice(
        [rng.normal(size=n), np.round(rng.uniform(size=n), 1), rng.choice(EDGES, n)]
    )
    return pa.table(
        {
            "p": np.where(rng.uniform(size=n) < 0.1, -0.0, scores),
            "y": (rng.uniform(size=n) < 0.4).astype(np.int64),
            "g": rng.choice(["b", "a", "c d"], n),
            "w": rng.uniform(size=n) * 10.0 ** rng.integers(-12, 12, n),
            "key": rng.permutation(n) * 7 - 3,
        }
    )


def pieces_of(table: pa.Table, n_parts: int, seed: int) -> list[pa.RecordBatch]:
    """The rows in another order, cut anywhere into so many batches, some of them empty."""
    rng = np.random.default_rng(seed)
    shuffled = table.take(rng.permutation(len(table))).combine_chunks()
    bounds = np.concatenate(
        [[0], np.sort(rng.integers(0, len(table) + 1, n_parts - 1)), [len(table)]]
    ).tolist()
    whole = shuffled.to_batches()[0]
    batches = [whole.slice(low, high - low) for low, high in pairwise(bounds)]
    assert sum(batch.num_rows for batch in batches) == len(table)
    return batches


def as_files(batches: list[pa.RecordBatch], folder: Path) -> list[Path]:
    """Three Parquet files, with a row group for each batch."""
    paths = [folder / f"{number}.parquet" for number in range(3)]
    for number, path in enumerate(paths):
        with pq.ParquetWriter(path, batches[0].schema) as writer:
            for batch in batches[number::3]:
                writer.write_batch(batch)
    return paths


def relation(batches: list[pa.RecordBatch], folder: Path) -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.register("rows", pa.Table.from_batches(batches))
    connection.execute("CREATE TABLE held AS SELECT * FROM rows")
    return connection.table("held")


ENGINES = {
    "table": lambda batches, folder: pa.Table.from_batches(batches),
    "reader": lambda batches, folder: pa.RecordBatchReader.from_batches(batches[0].schema, batches),
    "files": as_files,
    "dataset": lambda batches, folder: ds.dataset(as_files(batches, folder)),
    "pandas": lambda batches, folder: pa.Table.from_batches(batches).to_pandas(),
    "arrays": lambda batches, folder: {
        name: column.to_numpy()
        for name, column in zip(NAMES.values(), pa.Table.from_batches(batches), strict=True)
    },
    "polars": lambda batches, folder: pl.from_arrow(pa.Table.from_batches(batches)),
    "lazy polars": (
        lambda batches, folder: pl.concat(
            [pl.from_arrow(pa.Table.from_batches([batch])) for batch in batches], rechunk=False
        ).lazy()
    ),
    "polars files": lambda batches, folder: pl.scan_parquet(as_files(batches, folder)),
    "duckdb": relation,
    "duckdb files": lambda batches, folder: duckdb.read_parquet(
        [str(path) for path in as_files(batches, folder)]
    ),
}
MANY_TIMES = [name for name in ENGINES if name != "reader"]


@pytest.fixture(autouse=True)
def short_batches(monkeypatch):
    """Batches short enough that some hundreds of rows are many of them."""
    from calibrant.sample.sources import duckdb as duckdb_engine
    from calibrant.sample.sources import files
    from calibrant.sample.sources import polars as polars_engine

    for module in (arrow, files, duckdb_engine, polars_engine):
        monkeypatch.setattr(module, "BATCH_ROWS", 64)


def counts_by_hand(table: pa.Table) -> tuple[list[int], list[int]]:
    cells = np.searchsorted(EDGES, table["p"].to_numpy(), side="right")
    labels = table["y"].to_numpy()
    return (
        np.bincount(cells, minlength=EDGES.size + 1).tolist(),
        np.bincount(cells[labels == 1], minlength=EDGES.size + 1).tolist(),
    )


# one row, a few, and more than a batch holds; one partition to two hundred
cases = given(
    st.sampled_from([1, 7, 300, 700]), st.integers(0, 999), st.sampled_from([1, 2, 9, 200])
)


@pytest.mark.broad
@pytest.mark.parametrize("engine", ENGINES)
@cases
@settings(max_examples=6)
def test_given_edges_are_counted_the_same_everywhere(engine, n, seed, n_parts) -> None:
    table = table_of(n, seed)
    with tempfile.TemporaryDirectory() as folder:
        source = ENGINES[engine](pieces_of(table, n_parts, seed + 1), Path(folder))
        data = rows_of(scored(source, score="p", label="y", progress=False)).with_classes((0, 1), 1)
        counted, _ = data.tally(Partition.from_edges(EDGES))
    assert (counted.counts.tolist(), counted.positives.tolist()) == counts_by_hand(table)


@pytest.mark.broad
@pytest.mark.parametrize("engine", MANY_TIMES)
@cases
@settings(max_examples=5)
def test_with_an_id_the_split_the_edges_and_the_sums_are_the_same_everywhere(
    engine, n, seed, n_parts
) -> None:
    table = table_of(n, seed)
    draw = Draw.of_share(seed, 0.4)
    partition = Partition.by_segment(dict.fromkeys(["a", "b", "c d"], Partition.from_edges(EDGES)))
    plain = rows_of(scored(table, **NAMES, progress=False)).with_classes((0, 1), 1)
    with tempfile.TemporaryDirectory() as folder:
        source = ENGINES[engine](pieces_of(table, n_parts, seed + 1), Path(folder))
        data = rows_of(scored(source, **NAMES, n_jobs=3, progress=False)).with_classes((0, 1), 1)
        first = plain.sample(draw)
        other = data.sample(draw)
        assert other.seal == first.seal
        assert {name: sorted(scores) for name, scores in other.scores().items()} == {
            name: sorted(scores) for name, scores in first.scores().items()
        }
        same = [one.tally(partition, weighted=True)[0] for one in (plain, data)]
        assert same[0] == same[1]
        assert same[0].weights.w == same[1].weights.w
        left = [
            one.split_by(draw).others.tally(partition)[0]
            for one in (plain, data)
            if first.seal.rows < n
        ]
        assert all(one == left[0] for one in left)
        assert data.sizes() == plain.sizes()


@pytest.mark.broad
@pytest.mark.parametrize("engine", MANY_TIMES)
@pytest.mark.parametrize(
    "parameters", [{"n_bins": 9}, {"n_bins": 6, "pilot": 0.3, "random_state": 1}], ids=str
)
def test_a_fit_by_segment_is_the_same_everywhere(engine, parameters, tmp_path) -> None:
    table = table_of(3_000, 4)
    plain = BinningCalibrator(**parameters).fit(scored(table, **NAMES))
    source = ENGINES[engine](pieces_of(table, 40, 5), tmp_path)
    fitted = BinningCalibrator(**parameters).fit(scored(source, **NAMES, progress=False))
    assert fitted.partition_ == plain.partition_
    assert fitted.tally_ == plain.tally_
    assert str(fitted.guarantee_) == str(plain.guarantee_)
    # one error budget for all segments: as many regions share it as there are in all of them
    assert len(fitted.guarantee_.lower) == fitted.partition_.n_regions > 10


@pytest.mark.broad
@pytest.mark.parametrize("engine", MANY_TIMES)
def test_without_an_id_two_passes_draw_the_same_rows(engine, tmp_path) -> None:
    table = table_of(2_000, 4)
    source = ENGINES[engine](pieces_of(table, 30, 5), tmp_path)
    data = scored(source, score="p", label="y", progress=False)
    fitted = BinningCalibrator(n_bins=5, pilot=0.25, random_state=3).fit(data)
    assert 1_400 < fitted.tally_.counts.sum() < 1_600


FAULTS = {
    "null score": (
        "p",
        pa.array([None], pa.float64()),
        "column 'p' must have no missing values; got 1 faulty row, row",
    ),
    "nan score": ("p", pa.array([np.nan]), "column 'p' must contain no NaN; got 1 faulty row, row"),
    "infinite score": (
        "p",
        pa.array([-np.inf]),
        "column 'p' must contain no infinity; got 1 faulty row",
    ),
    "null label": (
        "y",
        pa.array([None], pa.int64()),
        "column 'y' must have no missing values; got 1 faulty row, row",
    ),
    "third label": ("y", pa.array([2], pa.int64()), r"got 3: 0, 1, 2.*\(label 2: 1 row, row"),
    "null segment": (
        "g",
        pa.array([None], pa.string()),
        "column 'g' must have no missing values; got 1 faulty row",
    ),
    "unknown segment": (
        "g",
        pa.array(["z"]),
        "column 'g' must contain a segment that the bins were cut for, not 'z'; got 1",
    ),
    "negative weight": ("w", pa.array([-1.0]), "column 'w' must be finite, >= 0"),
}


@pytest.mark.parametrize(
    "engine",
    [
        name if name in ("files", "duckdb") else pytest.param(name, marks=pytest.mark.broad)
        for name in ENGINES
        if name not in ("pandas", "arrays")
    ],
)
@pytest.mark.parametrize("fault", FAULTS)
def test_one_faulty_row_is_told_with_its_place(engine, fault, tmp_path) -> None:
    column, value, message = FAULTS[fault]
    batches = pieces_of(table_of(900, 2), 20, 3)
    long = max(range(20), key=lambda number: batches[number].num_rows)
    values = pa.concat_arrays(
        [
            batches[long][column].slice(0, 5),
            value.cast(batches[0].schema.field(column).type),
            batches[long][column][6:],
        ]
    )
    batches[long] = batches[long].set_column(
        batches[0].schema.get_field_index(column), column, values
    )
    partition = Partition.by_segment(dict.fromkeys(["a", "b", "c d"], Partition.from_edges(EDGES)))
    data = scored(ENGINES[engine](batches, tmp_path), **NAMES, progress=False)
    with pytest.raises(ValueError, match=message) as told:
        rows_of(data).tally(partition, weighted=True)
    before = sum(batch.num_rows for batch in batches[:long]) + 6
    if "files" in engine or engine == "dataset":
        before = sum(batch.num_rows for batch in batches[long % 3 : long : 3]) + 6
        if engine in ("files", "dataset"):
            assert f"{long % 3}.parquet" in str(told.value)
            assert f"row {before:,} of" in str(told.value)
        return
    assert f"row index {before - 1:,}" in str(told.value)


@pytest.mark.broad
def test_pandas_columns_of_every_kind_count_the_same() -> None:
    table = table_of(500, 1)
    frame = table.to_pandas()
    expected = rows_of(scored(table, score="p", label="y")).tally(Partition.from_edges(EDGES))[0]
    same = {
        "nullable": frame.assign(p=frame["p"].astype("Float64"), y=frame["y"].astype("Int8")),
        "bool": frame.assign(y=frame["y"].astype(bool)),
        "nullable bool": frame.assign(y=frame["y"].astype("boolean")),
        "arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
        "float labels": frame.assign(y=frame["y"].astype(np.float32)),
    }
    for name, other in same.items():
        counted = rows_of(scored(other, score="p", label="y")).tally(Partition.from_edges(EDGES))[0]
        assert counted == expected, name
    texts = {
        "object": frame.assign(y=np.where(frame["y"], "yes", "no").astype(object)),
        "string": frame.assign(y=pd.array(np.where(frame["y"], "yes", "no"), dtype="string")),
        "categorical": frame.assign(
            y=pd.Categorical(np.where(frame["y"], "yes", "no"), categories=["?", "yes", "no"])
        ),
    }
    for name, other in texts.items():
        counted, classes = (
            rows_of(scored(other, score="p", label="y"))
            .with_classes(pos_label="yes")
            .tally(Partition.from_edges(EDGES))
        )
        assert counted == expected, name
        assert classes.labels.tolist() == ["no", "yes"]
    missing = frame.assign(p=frame["p"].astype("Float64").mask(frame.index == 41))
    with pytest.raises(
        ValueError, match="column 'p' must have no missing values; got 1 faulty row, row index 41"
    ):
        rows_of(scored(missing, score="p", label="y")).tally(Partition.from_edges(EDGES))
