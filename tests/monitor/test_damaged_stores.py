"""Damaged stores and URLs that name none: one kind of error, which says what to do."""

import gzip
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from calibrant import BinningCalibrator, Partition
from calibrant.errors import StoreError
from calibrant.monitor import Monitor

CALIBRATOR = BinningCalibrator(partition=Partition.fixed_width(4)).fit(
    np.linspace(0, 1, 400), np.arange(400) % 2
)
TABLES = ("store", "models", "state", "predictions", "waiting", "days", "quarantine")
DEEP = "[" * 100_000


def opened(place: object, **options: object) -> Monitor:
    return Monitor(place, CALIBRATOR, **{"maturity": 2, "random_state": 0, **options})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an alarm: counted days, pending predictions, and labels that wait."""
    store = tmp_path_factory.mktemp("stores") / "whole.db"
    with opened(store) as monitor:
        for day in range(100, 112):
            ids = [f"{day} {number}" for number in range(300)]
            monitor.record_many(ids, np.linspace(0.01, 0.99, 300), np.full(300, float(day)))
            monitor.resolve_many(ids[:290], np.ones(290, dtype=int), np.full(290, day + 0.5))
        monitor.resolve("too early", 1, at=111.6)
        assert monitor.snapshot().alarm
    return store


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole, tmp_path / "watch.db"))


def state(key: str, value: str) -> str:
    return f"update calibrant_state set value = '{value}' where key = '{key}'"


def of_live(change: str) -> str:
    return f"update calibrant_state set value = {change} where key = 'live'"


SQL = [
    *(
        state(key, value)
        for key in ("live", "tests", "seal", "settings")
        for value in ("", "null", "{}", "[]", "7", '"x"', '{"a":', "NaN", DEEP)
    ),
    *(f"delete from calibrant_state where key = '{key}'" for key in ("live", "tests", "seal")),
    *(
        of_live(f"json_set(value, '$.{name}', {value})")
        for name in ("latest", "recorded", "mature", "counted_until", "labelled")
        for value in ("'x'", "1.5", "-1", "null", "json('[]')")
        if (name, value) not in {("latest", "1.5")}  # another moment
    ),
    of_live("json_remove(value, '$.recorded')"),
    of_live("json_remove(value, '$.latest')"),
    of_live("json_set(value, '$.another', 1)"),
    *(f"drop table calibrant_{name}" for name in TABLES),
    *(f"alter table calibrant_{name} rename to other_{name}" for name in TABLES),
    "alter table calibrant_predictions rename column score to points",
    "alter table calibrant_waiting rename column label to class",
    "alter table calibrant_days rename column counts to numbers",
    "alter table calibrant_quarantine rename column problem to reason",
    "alter table calibrant_models rename column checksum to fingerprint",
    "alter table calibrant_state rename column value to text",
    *(f"delete from calibrant_{name}" for name in ("store", "models", "state", "days")),
    "delete from calibrant_predictions",
    "delete from calibrant_predictions where id = '111 5'",
    "insert into calibrant_predictions select model, 'another', score, at, day, segment, label"
    " from calibrant_predictions where id = '111 5'",
    "delete from calibrant_days where day = 103",
    "update calibrant_days set day = 99 where day = 103",
    "update calibrant_days set counts = '[[1,1,1,1],[0,0,0,0],[0,0,0,0]]' where day = 103",
    "update calibrant_days set counts = '' where day = 103",
    "update calibrant_days set counts = x'ff' where day = 103",
    "insert into calibrant_quarantine values (1, 99, 5, 'a reason')",
    "update calibrant_store set value = '2'",
    "update calibrant_store set value = 'x'",
    "update calibrant_store set value = ''",
    "update calibrant_state set key = 'seal 2' where key = 'seal'",
    "update calibrant_state set model = 2",
]


@pytest.mark.parametrize("statement", SQL, ids=lambda text: text[:80])
def test_a_store_whose_content_was_changed(store: Path, statement: str) -> None:
    connection = sqlite3.connect(store)
    with connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(StoreError) as caught:
        opened(store)
    assert caught.value.advice
    assert str(store) in str(caught.value)


def cut(size: int) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(path.read_bytes()[:size])


def zeroed(start: int, end: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[start:end] = bytes(end - start)
        path.write_bytes(bytes(data))

    return damage


FILES: dict[str, Callable[[Path], None]] = {
    "a text": lambda path: path.write_text("not a database" * 500),
    "compressed": lambda path: path.write_bytes(gzip.compress(path.read_bytes())),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "half a header": cut(50),
    "a header": cut(100),
    "a page": cut(4096),
    "two pages": cut(8192),
    "no magic": zeroed(0, 16),
    "no header": zeroed(0, 100),
    "no first page": zeroed(0, 4096),
    "no schema": zeroed(100, 4096),
    "no second page": zeroed(4096, 8192),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_damaged(store: Path, name: str) -> None:
    FILES[name](store)
    with pytest.raises(StoreError) as caught:
        opened(store).close()
    assert caught.value.advice


URLS = [
    "",
    ".",
    "\x00",
    "a\x00b",
    "no/such/folder/watch.db",
    "x" * 5000,
    ":memory:",
    "file::memory:?cache=shared",
    "sqlite://",
    "sqlite:///",
    "sqlite:///:memory:",
    "sqlite:///file::memory:?uri=true",
    "sqlite:///file:x?mode=memory&uri=true",
    "sqlite:///file:x?mode=memory&cache=shared&uri=true",
    "sqlite:///file:/x?vfs=memdb&uri=true",
    "sqlite:///file:?uri=true",
    "sqlite:///file:watch.db?vfs=none&uri=true",
    "sqlite:///no/such/folder/watch.db",
    "sqlite:///.",
    "sqlite:///a\x00b",
    "sqlite:///watch.db?timeout=abc",
    "sqlite:///watch.db?nosuch=1",
    "sqlite+nosuch:///watch.db",
    "sqlite+aiosqlite:///watch.db",
    "://",
    "://watch.db",
    "nosuch://host/name",
    "http://example.org/watch.db",
    "mysql://host/name",
    "mysql+pymysql://user:secret@host/name",
    "oracle://host/name",
    "mssql+pyodbc://host/name",
    "duckdb:///watch.db",
    "postgresql+psycopg://user:secret@host:port/name",
    "postgresql+psycopg://user:secret@[::1/name",
    "postgresql+asyncpg://user:secret@127.0.0.1:1/name",
    "postgresql+nosuch://user:secret@127.0.0.1:1/name",
    "postgresql+psycopg://user:secret@127.0.0.1:1/name?connect_timeout=1",
    "postgresql+psycopg://user:secret@127.0.0.1:1/name?nosuch=1",
    "postgresql+psycopg://user:secret@/name?host=/no/such/folder",
    "postgresql+psycopg2://user:secret@/name?host=/no/such/folder",
]


@pytest.mark.parametrize("url", URLS, ids=lambda text: repr(text[:60]))
def test_a_url_that_names_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError) as caught:
        opened(url)
    assert caught.value.parameter == "store"
    assert caught.value.advice
    assert "secret" not in str(caught.value)


def test_there_are_a_hundred_of_them() -> None:
    assert len(SQL) + len(FILES) + len(URLS) >= 100


@pytest.mark.slow
def test_bytes_that_changed_anywhere_raise_that_error_or_change_nothing_that_is_checked(
    whole: Path, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    data = whole.read_bytes()
    n_refused = 0
    for number in range(150):
        damaged = bytearray(data)
        place = int(rng.integers(len(data) - 64))
        damaged[place : place + 64] = rng.bytes(64)
        path = tmp_path / f"{number}.db"
        path.write_bytes(bytes(damaged))
        try:
            with opened(path) as monitor:
                monitor.record_many(["a", "111 7"], [0.3, 0.4], [111.9, 111.9])
                monitor.resolve_many(["111 299", "too early", "110 3"], [1, 0, 1], [111.9] * 3)
                monitor.advance(130.0)
        except StoreError:
            n_refused += 1
    assert n_refused > 50


# Saved tests that were swapped


@pytest.mark.parametrize("whose", ["fresh", "earlier", "of another model"])
def test_tests_that_were_swapped_do_not_erase_an_alarm(
    store: Path, tmp_path: Path, whose: str
) -> None:
    other = tmp_path / "other.db"
    with opened(other) as monitor:
        if whose == "earlier":
            ids = [f"100 {number}" for number in range(300)]
            monitor.record_many(ids, np.linspace(0.01, 0.99, 300), np.full(300, 100.0))
            monitor.resolve_many(ids[:290], np.ones(290, dtype=int), np.full(290, 100.5))
            assert monitor.advance(105.0).n_mature == 300
    connection = sqlite3.connect(store)
    with connection:
        connection.execute(f"attach '{other}' as other")
    keys = "'tests', 'seal'" if whose == "of another model" else "'tests'"
    with connection:
        connection.execute(
            "insert or replace into calibrant_state"
            f" select * from other.calibrant_state where key in ({keys})"
        )
    connection.close()
    with pytest.raises(StoreError) as caught:
        opened(store)
    assert "tests that agree with the rows" in str(caught.value)


def test_tests_that_are_swapped_while_the_store_is_open_are_noticed(
    store: Path, tmp_path: Path
) -> None:
    opened(tmp_path / "fresh.db").close()
    fresh = sqlite3.connect(tmp_path / "fresh.db")
    query = "select value from calibrant_state where key = 'tests'"
    (text,) = fresh.execute(query).fetchone()
    fresh.close()
    with opened(store) as monitor:
        assert monitor.snapshot().alarm
        connection = sqlite3.connect(store)
        with connection:
            connection.execute("update calibrant_state set value = ? where key = 'tests'", (text,))
        connection.close()
        with pytest.raises(StoreError):
            monitor.snapshot()
        with pytest.raises(StoreError):
            monitor.advance(120.0)
        assert monitor.record("kept", 0.3, at=111.9) == "new"  # it closes no day


# Files that disappear


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced", "without its log"])
def test_nothing_is_acknowledged_in_a_file_that_is_gone(store: Path, whole: Path, how: str) -> None:
    with opened(store) as monitor:
        assert monitor.record("before", 0.3, at=111.9) == "new"
        away = store.with_name("away.db")
        if how == "without its log":
            Path(f"{store}-wal").unlink()
        elif how == "moved":
            store.rename(away)
        else:
            store.unlink()
        if how == "replaced":
            shutil.copy(whole, store)
        with pytest.raises(StoreError) as caught:
            monitor.record("after", 0.3, at=111.9)
        assert "deleted, moved or replaced" in str(caught.value)
        if how != "without its log":
            with pytest.raises(StoreError):
                monitor.snapshot()
        if how == "deleted":
            assert not store.exists()
        if how == "moved":
            away.rename(store)
            assert monitor.record("after", 0.3, at=111.9) == "new"
