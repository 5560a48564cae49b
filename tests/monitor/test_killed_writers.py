"""A writer that is killed at any moment loses nothing that it acknowledged, and doubles nothing."""

import multiprocessing
import os
import signal
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest

from calibrant import BinningCalibrator, Partition
from calibrant.monitor import Monitor

BATCH = 20
CALIBRATOR = BinningCalibrator(partition=Partition.fixed_width(4)).fit(
    np.linspace(0, 1, 400), np.arange(400) % 2
)


def row_of(number: int) -> tuple[float, int]:
    return (number % 97) / 97.0, int(number * 7919 % 10 < 4)


def write(store: str, log: str, first: int) -> None:
    monitor = Monitor(store, CALIBRATOR, maturity=7)
    with open(log, "a", buffering=1) as file:
        number = first
        while True:
            rows = [row_of(number + step) for step in range(BATCH)]
            ids = [number + step for step in range(BATCH)]
            file.write(f"begun {number}\n")
            monitor.record_many(ids, [score for score, _ in rows], np.full(BATCH, 100.0))
            monitor.resolve_many(ids, [label for _, label in rows], np.full(BATCH, 101.0))
            file.write(f"done {number}\n")
            number += BATCH


def numbers(log: Path, word: str) -> list[int]:
    return [
        int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith(f"{word} ")
    ]


@pytest.mark.slow
@pytest.mark.service
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_twenty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    store = tmp_path / "watch.db"
    log = tmp_path / "log.txt"
    log.touch()
    Monitor(store, CALIBRATOR, maturity=7).close()
    context = multiprocessing.get_context("fork")
    for attempt in range(20):
        first = max(numbers(log, "begun"), default=-BATCH) + BATCH
        writer = context.Process(target=write, args=(str(store), str(log), first))
        awaited = (
            "done" if attempt % 2 else "begun"
        )  # so that some batches are acknowledged, however slow the disk is
        before = len(numbers(log, awaited))
        writer.start()
        while len(numbers(log, awaited)) == before:
            time.sleep(0.005)
        time.sleep(float(rng.uniform(0.0, 0.08)))
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
    connection = sqlite3.connect(store)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    stored = {
        int(one)
        for (one,) in connection.execute(
            "select id from calibrant_predictions where label is not null"
        )
    }
    connection.close()
    acknowledged = {number + step for number in numbers(log, "done") for step in range(BATCH)}
    assert acknowledged <= stored
    assert len(acknowledged) >= 10 * BATCH
    begun = [number + step for number in numbers(log, "begun") for step in range(BATCH)]
    with Monitor(store, CALIBRATOR, maturity=7) as monitor:  # all of it, handed in again
        rows = [row_of(number) for number in begun]
        monitor.record_many(begun, [score for score, _ in rows], np.full(len(begun), 100.0))
        monitor.resolve_many(begun, [label for _, label in rows], np.full(len(begun), 101.0))
        found = monitor.advance(110.0)
    regions = np.minimum((np.array([score for score, _ in rows]) * 4).astype(int), 3)
    labels = np.array([label for _, label in rows])
    assert found.counts.tolist() == np.bincount(regions, minlength=4).tolist()
    assert found.positives.tolist() == np.bincount(regions[labels == 1], minlength=4).tolist()
    assert found.n_conflicting == 0
