"""Rows of groups: whole groups are drawn and counted, and every engine and any parts give the
identical fit.
"""

import itertools

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from calibrant import BinningCalibrator, Partition, PlattCalibrator, scored
from calibrant.errors import CalibrantError, InvalidValueError
from calibrant.params.random import Draw
from calibrant.sample import group_rows
from calibrant.sample.reader import read_rows, rows_of
from calibrant.sample.row_keys import id_keys

N_ROWS = 3_000
RNG = np.random.default_rng(0)
NUMBER = RNG.integers(0, 300, N_ROWS)  # groups straddle every cut of the rows
SCORES = np.round(RNG.uniform(size=N_ROWS), 4)
LABELS = (RNG.uniform(size=N_ROWS) < 0.5 * SCORES + 0.5 * RNG.uniform(size=300)[NUMBER]).astype(
    np.int64
)
TEXTS = np.array([f"customer {number:,}" for number in NUMBER], dtype=object)
TABLE = pa.table({"p": SCORES, "y": LABELS, "number": NUMBER, "text": TEXTS.tolist()})
COLUMNS = {"number": NUMBER, "text": TEXTS}
REGIONS = Partition.fixed_width(7)


def written(folder, write, ending) -> list[str]:
    """The rows in files, cut in the middle of groups."""
    cuts = (0, 7, 900, 901, 2_500, N_ROWS)
    paths = [str(folder / f"{number}.{ending}") for number in range(len(cuts) - 1)]
    for path, (low, high) in zip(paths, itertools.pairwise(cuts), strict=True):
        write(TABLE.slice(low, high - low), path)
    return paths


def write_parquet(table, path) -> None:
    pq.write_table(table, path, row_group_size=100)


def write_json(table, path) -> None:
    table.to_pandas().to_json(path, orient="records", lines=True)


def as_torch(folder) -> dict:
    torch = pytest.importorskip("torch")
    return {"p": torch.tensor(SCORES), "y": torch.tensor(LABELS), "number": NUMBER, "text": TEXTS}


def as_dask(folder):
    import dask.dataframe as dd  # takes a second, which other tests need not wait for

    return dd.from_pandas(TABLE.to_pandas(), npartitions=5)


SOURCES = {
    "mapping": lambda folder: {
        name: TABLE[name].to_numpy(zero_copy_only=False) for name in TABLE.column_names
    },
    "table, shuffled": lambda folder: TABLE.take(
        pa.array(np.random.default_rng(1).permutation(N_ROWS))
    ),
    "pandas": lambda folder: TABLE.to_pandas(),
    "categories": lambda folder: TABLE.to_pandas().astype({"text": "category"}),
    "lazy polars": lambda folder: pl.from_arrow(TABLE).lazy(),
    "duckdb": lambda folder: duckdb.from_arrow(TABLE),
    "parquet": lambda folder: written(folder, write_parquet, "parquet"),
    "parquet, backwards": lambda folder: written(folder, write_parquet, "parquet")[::-1],
    "csv": lambda folder: written(folder, pa_csv.write_csv, "csv"),
    "json": lambda folder: written(folder, write_json, "jsonl"),
    "dask": as_dask,
    "tensors": as_torch,
}


def named(source, column, **options):
    named = {"score": "p", "label": "y", "group": column}
    return rows_of(scored(source, **named, progress=False, **options))


@pytest.mark.broad
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_fit_of_the_rows_in_memory(name, column, tmp_path) -> None:
    data = named(SOURCES[name](tmp_path), column)
    memory = read_rows(SCORES, LABELS, groups=COLUMNS[column])
    assert data.tally(REGIONS)[0] == memory.tally(REGIONS)[0]
    fitted = BinningCalibrator(5).fit(data)
    wanted = BinningCalibrator(5).fit(SCORES, LABELS, groups=COLUMNS[column])
    assert fitted.partition_ == wanted.partition_
    assert fitted.tally_ == wanted.tally_
    assert fitted.guarantee_.to_dict() == wanted.guarantee_.to_dict()
    expected = memory.split(0.3, 7)
    found = data.split(0.3, 7)
    assert sorted(found.drawn[None]) == sorted(expected.drawn[None])
    tally = found.others.tally(REGIONS)[0]
    assert tally == expected.others.tally(REGIONS)[0]
    assert 100 < tally.groups.n_groups < 300


@pytest.mark.parametrize("name", ["parquet", "duckdb", "table, shuffled"])
def test_more_groups_than_can_be_held_take_more_passes(name, tmp_path, monkeypatch) -> None:
    data = named(SOURCES[name](tmp_path), "text")
    expected = data.tally(REGIONS)[0]
    monkeypatch.setattr(group_rows, "MOST_PAIRS", 200)
    passes = []
    fold = type(data).fold

    def counted(self, work):
        passes.append(type(work).__name__)
        return fold(self, work)

    monkeypatch.setattr(type(data), "fold", counted)
    assert data.tally(REGIONS)[0] == expected
    assert passes.count("CountGroups") > 16
    monkeypatch.setattr(group_rows, "MOST_PAIRS", 1)
    monkeypatch.setattr("calibrant.sample.rows.MOST_PASSES", 4)
    with pytest.raises(InvalidValueError, match=r"group must have rows in at most .* pairs"):
        data.tally(REGIONS)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_draw_takes_whole_groups_by_their_value(column) -> None:
    draw = Draw.of_share(5, 0.4)
    memory = read_rows(SCORES, LABELS, groups=COLUMNS[column])
    drawn = memory.chosen(draw)
    assert {*NUMBER[drawn]}.isdisjoint(NUMBER[~drawn])
    assert 0 < drawn.sum() < N_ROWS
    keys = id_keys(TABLE[column].combine_chunks(), column, "group")
    np.testing.assert_array_equal(draw.chosen(keys), drawn)
    data = named(TABLE, column)
    assert sorted(data.split_by(draw).drawn[None]) == sorted(SCORES[drawn])
    assert data.hash_limit(5, 40) == memory.hash_limit(5, 40)
    exact = Draw(5, data.hash_limit(5, 40))
    assert len({*NUMBER[memory.chosen(exact)]}) == 40


def test_collected_rows_keep_their_groups(tmp_path) -> None:
    rows = named(SOURCES["parquet"](tmp_path), "text").collect()
    assert rows.tally(REGIONS)[0] == read_rows(SCORES, LABELS, groups=TEXTS).tally(REGIONS)[0]


def test_groups_of_each_kind_of_entry() -> None:
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(NUMBER, unit="D")
    expected = named(TABLE, "number").tally(REGIONS)[0]
    for column in (NUMBER.astype(float), NUMBER.astype(np.uint16), days, days.date, NUMBER == 0):
        frame = TABLE.to_pandas().assign(number=column)
        found = named(frame, "number").tally(REGIONS)[0]
        assert found == read_rows(SCORES, LABELS, groups=column).tally(REGIONS)[0]
        # the same groups, whatever their labels
        assert (found.groups == expected.groups) == (column.dtype != bool)


def test_dates_finer_than_nanoseconds_are_not_cut() -> None:
    moments = np.datetime64("1970-01-02T00:00:00", "ps") + np.arange(2).astype("timedelta64[ps]")
    with pytest.raises(CalibrantError, match="groups must contain dates no finer than nanoseconds"):
        read_rows([0.1, 0.2], [0, 1], groups=moments)
    later = moments[0] + 1000 * np.arange(2).astype("timedelta64[ps]")
    assert read_rows([0.1, 0.2], [0, 1], groups=later).n_groups() == 2


def changed(column, row, value) -> pd.DataFrame:
    frame = TABLE.to_pandas().astype({column: object} if value is None else {})
    frame.loc[row, column] = value
    return frame


FAULTS = {
    "missing": (
        changed("text", 70, None),
        {"group": "text"},
        "group column 'text' must have no missing values",
    ),
    "NaN": (
        TABLE.to_pandas().assign(f=np.where(NUMBER == 3, np.nan, NUMBER)),
        {"group": "f"},
        "'f' must",
    ),
    "fractions": (
        TABLE.to_pandas().assign(f=NUMBER + 0.5),
        {"group": "f"},
        "'f' must contain whole numbers",
    ),
    "no such column": (TABLE, {"group": "numbers"}, "group column 'numbers' must be in the data"),
    "the label": (
        TABLE,
        {"group": "y"},
        "group column 'y' must be a different column from the label",
    ),
    "the score": (
        TABLE,
        {"group": "p"},
        "group column 'p' must be a different column from the score",
    ),
    "id beside": (TABLE, {"group": "text", "id": "number"}, "id must be None with a group"),
    "lists": (
        TABLE.append_column("l", pa.array([[1]] * N_ROWS)),
        {"group": "l"},
        "'l' must contain whole numbers",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_groups_are_refused_by_name(name) -> None:
    source, columns, said = FAULTS[name]
    with pytest.raises(CalibrantError) as caught:
        rows_of(scored(source, score="p", label="y", progress=False, **columns)).tally(REGIONS)
    assert said in str(caught.value)
    if name in ("missing", "NaN"):
        assert "faulty row" in str(caught.value)


def test_a_curve_that_guarantees_nothing_takes_any_rows() -> None:
    curve = PlattCalibrator().fit(named(TABLE, "number"))
    assert curve.predict([0.5]) == PlattCalibrator().fit(SCORES, LABELS).predict([0.5])


@pytest.mark.broad
def test_one_huge_group_and_a_million_small_ones() -> None:
    n_rows = 1_000_000
    rng = np.random.default_rng(2)
    scores = rng.uniform(size=n_rows)
    labels = rng.integers(0, 2, n_rows)
    for groups, n_groups in ((np.zeros(n_rows, dtype=int), 1), (np.arange(n_rows) * 977, n_rows)):
        data = named({"p": scores, "y": labels, "g": groups}, "g")
        table = data.tally(REGIONS)[0].groups
        assert table.n_groups == n_groups
        assert int((table.rows * table.number).sum()) == n_rows
