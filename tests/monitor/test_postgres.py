"""The same store in PostgreSQL: another URL, and the same answers."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from calibrant import BinningCalibrator, Partition
from calibrant.errors import InvalidValueError, StoreError
from calibrant.monitor import Monitor

psycopg = pytest.importorskip("psycopg")

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=2000)
CALIBRATOR = BinningCalibrator(partition=Partition.fixed_width(4)).fit(
    SCORES, RNG.uniform(size=2000) < SCORES
)


@pytest.fixture
def url(postgres: str, request: pytest.FixtureRequest) -> str:
    """A database of its own."""
    name = request.node.name[:50]  # of letters and underscores
    connect = psycopg.connect(host=postgres, user="tester", dbname="postgres", autocommit=True)
    with connect as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql+psycopg://tester@/{name}?host={postgres}"


def opened(store: Path | str, **options: object) -> Monitor:
    settings = {"maturity": 3, "remember": 6, "random_state": 0, **options}
    return Monitor(store, CALIBRATOR, **settings)


def month(monitor: Monitor) -> None:
    """A month in which everything happens that may happen to a label."""
    rng = np.random.default_rng(1)
    for day in range(100, 130):
        ids = [f"{day} {number}" for number in range(80)]
        scores = rng.uniform(size=80)
        labels = rng.uniform(size=80) < scores ** (1 + 2 * (day > 112))
        monitor.resolve_many(ids[:5], labels[:5], np.full(5, float(day)))  # before the prediction
        monitor.record_many(ids, scores, np.full(80, day + 0.1))
        monitor.resolve_many(ids[:60], labels[:60], np.full(60, day + 0.5))
        monitor.resolve_many(ids[:3], ~labels[:3], np.full(3, day + 0.6))  # conflicting
        if day > 110:
            old = [f"{day - 9} {number}" for number in range(60, 65)]
            monitor.resolve_many(old, [1] * 5, np.full(5, day + 0.7))  # late, or forgotten
    monitor.advance(140.0)


@pytest.mark.slow
def test_postgres_gives_the_answers_of_sqlite(url: str, tmp_path: Path) -> None:
    answers = []
    for store in (tmp_path / "watch.db", url):
        with opened(store) as monitor:
            month(monitor)
        with opened(store) as monitor:  # read by another
            answers.append(monitor.snapshot().to_dict())
    assert answers[0] == answers[1]
    assert answers[1]["alarm"]
    assert min(answers[1][f"n_{name}"] for name in ("conflicting", "duplicate", "unknown")) > 0


@pytest.mark.slow
def test_writers_that_open_a_new_store_at_once_lose_nothing(url: str) -> None:
    def work(worker: int) -> None:
        with opened(url) as monitor:
            for start in range(0, 100, 20):
                ids = [f"{worker} {number}" for number in range(start, start + 20)]
                monitor.record_many(ids, np.linspace(0.1, 0.9, 20), np.full(20, 100.0))
                monitor.resolve_many(ids, [1] * 20, np.full(20, 100.5))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    with opened(url) as monitor:
        found = monitor.advance(110.0)
    assert (found.n_mature, found.n_labels, int(found.positives.sum())) == (600, 600, 600)


@pytest.mark.slow
def test_a_writer_that_holds_the_store_is_not_waited_for_beyond_the_timeout(url: str) -> None:
    with opened(url, timeout=0.05) as monitor, opened(url) as other:

        def blocked(record: Callable[..., str]) -> None:
            with other.transaction():
                other.record("a", 0.2, at=100.0)
                record("b", 0.2, at=100.0)

        with pytest.raises(StoreError) as caught:
            blocked(monitor.record)
        assert "timeout" in caught.value.advice
        assert monitor.snapshot().n_recorded == 0
        assert monitor.record("b", 0.2, at=100.0) == "new"


def test_the_clock_of_the_server_decides(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose clock is ahead neither ends a day nor dates its rows tomorrow."""
    real = time.time
    with opened(url, maturity=0, remember=2) as monitor:
        monkeypatch.setattr("calibrant.monitor.durable.time.time", lambda: real() + 23 * 3600.0)
        assert monitor.record("a", 0.2) == "new"
        now = np.datetime64(monitor.snapshot().now, "s").astype(float)
        assert abs(now - real()) < 600.0
        with pytest.raises(InvalidValueError) as caught:
            monitor.record("b", 0.2, at=(real() + 23 * 3600.0) / 86_400.0)
        assert caught.value.parameter == "at"
        assert monitor.advance().n_recorded == 1


def test_writers_of_different_models_do_not_wait_for_each_other(url: str) -> None:
    with opened(url, name="a") as a, opened(url, name="b", timeout=0.2) as b:
        with a.transaction():
            a.record("x", 0.2, at=100.0)
            assert b.record("x", 0.2, at=100.0) == "new"
        assert (a.snapshot().n_recorded, b.snapshot().n_recorded) == (1, 1)


def test_what_was_changed_behind_its_back_is_noticed(url: str, postgres: str) -> None:
    with opened(url, maturity=0, remember=2) as monitor:
        monitor.record("a", 0.2, at=100.0)
        monitor.advance(102.0)
        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(host=postgres, user="tester", dbname=name) as connection:
            connection.execute("DELETE FROM calibrant_days")
        with pytest.raises(StoreError) as caught:
            monitor.snapshot()
        assert "agree with the rows" in str(caught.value)
    with pytest.raises(StoreError):
        opened(url, maturity=0, remember=2)
