"""Rows of a query give what the same rows give in memory, though they can be fetched only once."""

import sqlite3

import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy

from calibrant import BinningCalibrator, Calibrator, audit, scored, threshold
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.columns import first_rows_of
from calibrant.sample.reader import rows_of
from calibrant.sample.sources import cursors, spool

RNG = np.random.default_rng(5)
SCORES = RNG.uniform(size=6_000)
LABELS = (RNG.uniform(size=6_000) < SCORES**2).astype(int)
NAMES = ["a", "b"]
TABLE = pa.table({"p": SCORES, "y": LABELS, "g": np.array(NAMES)[np.arange(6_000) % 2]})
QUERY = "SELECT p, y, g FROM held ORDER BY n"


@pytest.fixture
def connection():
    with sqlite3.connect(":memory:") as opened:
        opened.execute("CREATE TABLE held (n INTEGER, p REAL, y INTEGER, g TEXT)")
        columns = (column.to_pylist() for column in TABLE.columns)
        rows = zip(range(6_000), *columns, strict=True)
        opened.executemany("INSERT INTO held VALUES (?, ?, ?, ?)", rows)
        opened.commit()
        yield opened


@pytest.fixture(params=["memory", "file"])
def room(request, monkeypatch):
    """Batches that are kept in memory, or in a temporary file."""
    monkeypatch.setattr(cursors, "_FETCHED_ROWS", 700)
    monkeypatch.setattr(
        cursors, "Room", lambda: spool.Room(0 if request.param == "file" else 1 << 26)
    )


def answers(source) -> list:
    def data(**roles):
        return scored(source(), score="p", label="y", progress=False, **roles)

    return [
        BinningCalibrator(7, random_state=0).fit(data()).tally_,
        BinningCalibrator(5, random_state=0).fit(data(segment="g")).tally_,
        Calibrator(random_state=0).fit(data()).predict([0.1, 0.5, 0.9]).tolist(),
        audit(data()).sentence,
        threshold(data(), precision=0.6, method="look").threshold,
        data(segment="g").describe(),
    ]


def test_a_cursor_gives_what_a_table_gives(connection, room) -> None:
    assert answers(lambda: connection.execute(QUERY)) == answers(lambda: TABLE)


def test_a_result_of_sqlalchemy_gives_what_a_table_gives(connection, room) -> None:
    engine = sqlalchemy.create_engine(
        "sqlite://", creator=lambda: connection, poolclass=sqlalchemy.pool.StaticPool
    )
    with engine.connect() as opened:
        assert answers(lambda: opened.execute(sqlalchemy.text(QUERY))) == answers(lambda: TABLE)


def test_rows_that_were_looked_at_are_not_lost(connection, room) -> None:
    data = rows_of(scored(connection.execute(QUERY), score="p", label="y"))
    assert first_rows_of(data, 10).num_rows == 10
    assert data.survey().rows == {None: 6_000}
    assert data.collect().scores.tolist() == SCORES.tolist()


def test_columns_are_added_to_the_rows_of_a_cursor(connection, room) -> None:
    fitted = BinningCalibrator(7, random_state=0).fit(SCORES, LABELS)
    added = fitted.apply(scored(connection.execute(QUERY), score="p")).read_all()
    assert added["calibrated"].to_pylist() == fitted.predict(SCORES).tolist()
    assert added["g"].to_pylist() == TABLE["g"].to_pylist()


def test_a_cursor_without_a_query_is_refused(connection) -> None:
    with pytest.raises(InvalidValueError, match="execute a SELECT first"):
        scored(connection.cursor(), score="p")
    with pytest.raises(InvalidValueError, match="'q'"):
        scored(connection.execute(QUERY), score="q")


def test_entries_of_several_kinds_are_refused(connection) -> None:
    mixed = connection.execute("SELECT p, CASE n WHEN 5 THEN 'x' ELSE y END AS y FROM held")
    with pytest.raises(InvalidTypeError, match="column 'y' must contain one kind of entry"):
        BinningCalibrator(4).fit(scored(mixed, score="p", label="y"))


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_lazy_frames_of_narwhals_are_those_of_their_engine(engine) -> None:
    if engine == "polars":
        frame = pytest.importorskip("polars").from_arrow(TABLE).lazy()
    else:
        frame = pytest.importorskip("duckdb").from_arrow(TABLE)
    assert answers(lambda: nw.from_native(frame))[0] == answers(lambda: TABLE)[0]
