"""A process may fork while its threads update an object: the child has a whole object, and its lock
is free.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from calibrant import OnlineCalibrator, Partition

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
ROWS = 500
HANGS_AFTER = 300  # seconds, many more than a busy machine needs


def batch() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    scores = generator.uniform(size=ROWS)
    return scores, (generator.uniform(size=ROWS) < scores).astype(np.int64)


@contextmanager
def in_threads(work: Callable[[], object], n_threads: int = 2) -> Iterator[None]:
    """Do the work again and again, in threads, as long as the block runs."""
    done = threading.Event()

    def repeat() -> None:
        while not done.is_set():
            work()

    threads = [threading.Thread(target=repeat) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


def holds_in_a_child(check: Callable[[], bool]) -> bool:
    """Whether the check is true in a forked child, which is ended if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(HANGS_AFTER)
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_children_of_a_process_whose_threads_update_a_stream() -> None:
    scores, y = batch()
    calibrator = OnlineCalibrator(Partition.from_edges([0.3, 0.6])).partial_fit(scores, y)

    def is_whole() -> bool:
        before = int(calibrator.tally_.counts.sum())
        calibrator.partial_fit(scores, y)
        after = int(calibrator.tally_.counts.sum())
        return (
            before % ROWS == 0 and after == before + ROWS and calibrator.guarantee_.n_rows == after
        )

    with in_threads(lambda: calibrator.partial_fit(scores, y).guarantee_):
        for _ in range(12):
            assert holds_in_a_child(is_whole)
    assert is_whole()


def test_a_fork_waits_for_an_update_and_leaves_every_lock_free() -> None:
    """Whatever the machine does: a thread holds the lock of one object when the process forks."""
    scores, y = batch()
    calibrator = OnlineCalibrator(Partition.from_edges([0.5])).partial_fit(scores, y)
    inside = threading.Event()
    may_end = threading.Timer(0.2, lambda: None)

    def update() -> None:
        with calibrator._lock:
            inside.set()
            may_end.join()

    thread = threading.Thread(target=update)
    may_end.start()
    thread.start()
    inside.wait()
    assert holds_in_a_child(lambda: calibrator.partial_fit(scores, y).guarantee_.n_rows == 2 * ROWS)
    thread.join()
    assert calibrator.partial_fit(scores, y).guarantee_.n_rows == 2 * ROWS


def test_two_threads_that_fork_at_once() -> None:
    scores, y = batch()
    calibrator = OnlineCalibrator(Partition.from_edges([0.5])).partial_fit(scores, y)
    answers: list[bool] = []

    def fork() -> None:
        answers.append(holds_in_a_child(lambda: calibrator.guarantee_.n_rows == ROWS))

    threads = [threading.Thread(target=fork) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 4
