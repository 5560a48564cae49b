"""Several calls in one transaction, archives of complete rows, and stores that cannot be opened."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from calibrant import BinningCalibrator, Partition
from calibrant.errors import InvalidValueError, StoreError
from calibrant.monitor import Monitor

CALIBRATOR = BinningCalibrator(partition=Partition.fixed_width(4)).fit(
    np.linspace(0, 1, 400), np.arange(400) % 2
)


def opened(place: Path | str, **options: object) -> Monitor:
    return Monitor(place, CALIBRATOR, **{"maturity": 7, "random_state": 0, **options})


def record_together(monitor: Monitor, **scores: float) -> None:
    with monitor.transaction():
        for name, score in scores.items():
            monitor.record(name, score, at=100.0)


def test_a_transaction_is_seen_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    with opened(tmp_path / "watch.db") as monitor:
        with monitor.transaction():
            assert monitor.record("a", 0.2, at=100.0) == "new"
            assert monitor.resolve("a", 1, at=101.0) == "new"
            monitor.write_note("place", {"offset": 7})
            assert monitor.snapshot().n_recorded == 0  # others do not see it yet
        assert monitor.snapshot().n_recorded == 1
        assert monitor.read_note("place") == {"offset": 7}
        with pytest.raises(InvalidValueError):
            record_together(monitor, b=0.2, c=1.2)
        assert monitor.snapshot().n_recorded == 1
        assert monitor.record("b", 0.2, at=100.0) == "new"


def test_a_transaction_whose_error_was_hidden_is_undone(tmp_path: Path) -> None:
    with opened(tmp_path / "watch.db") as monitor:

        def careless() -> None:
            with monitor.transaction():
                monitor.record("a", 0.2, at=100.0)
                with pytest.raises(InvalidValueError):
                    monitor.record("b", 0.2, at="2999-01-01")  # found within the transaction

        with pytest.raises(StoreError) as caught:
            careless()
        assert caught.value.parameter == "a transaction"
        assert monitor.snapshot().n_recorded == 0
        assert monitor.record("a", 0.2, at=100.0) == "new"


def test_an_archive_of_complete_rows_is_counted_with_labels_that_lie_ahead(tmp_path: Path) -> None:
    """Rows of a day come one by one, each with a label that was known after eight days: too late
    for a maturity of 7, and beyond the day's end, which must wait for the other rows.
    """
    with opened(tmp_path / "archive.db") as monitor:
        for number in range(4):
            monitor.record(f"row {number}", 0.1, at=100.0)
            late = number == 3
            at = [108.5 if late else 106.0]
            taken = monitor.resolve_many([f"row {number}"], [1], at, moves_clock=False)
            assert taken.outcome == ("expired" if late else "new")
        found = monitor.advance(120.0)
        assert (found.n_mature, found.n_labels, found.n_late) == (4, 3, 0)
    with opened(tmp_path / "live.db") as monitor:  # where labels move the clock
        monitor.record("first", 0.1, at=100.0)
        monitor.resolve("first", 1, at=108.5)
        assert monitor.record("second", 0.1, at=100.0) == "late"


def test_a_store_that_cannot_be_opened_says_so_and_leaves_nothing_open(tmp_path: Path) -> None:
    for place in ("nosuchdatabase://host/name", "sqlite+nosuchdriver:///x.db"):
        with pytest.raises(StoreError) as caught:
            opened(place)
        assert caught.value.parameter == "store"
    store = tmp_path / "a?b#c %41.db"  # a path, whatever its characters
    opened(store).close()
    assert store.exists()
    with pytest.raises(InvalidValueError):
        opened(store, maturity=8)  # ResourceWarning is an error: its connections are closed


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as caught:
        opened("postgresql+psycopg://someone:secret@127.0.0.1:1/none?connect_timeout=1")
    assert "secret" not in str(caught.value)
    assert "someone" in str(caught.value)


@pytest.mark.broad
def test_the_log_of_sqlite_is_cut_after_a_large_transaction(tmp_path: Path) -> None:
    store = tmp_path / "watch.db"
    with opened(store, maturity=0) as monitor:
        ids = [f"{number:0>199}" for number in range(50_000)]
        monitor.record_many(ids, np.full(len(ids), 0.2), np.full(len(ids), 100.0))
        log = Path(f"{store}-wal")
        grown = log.stat().st_size
        other = sqlite3.connect(store)
        other.execute("PRAGMA wal_checkpoint(RESTART)")
        other.close()
        monitor.record("one more", 0.2, at=100.0)
        assert log.stat().st_size <= 2**24 < grown
