"""A process that is forked while its store is written to: neither side is harmed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

START = """
import os, sqlite3, sys, threading, time
import numpy as np
from calibrant import BinningCalibrator, Partition
from calibrant.errors import StoreError
from calibrant.monitor import Monitor

calibrator = BinningCalibrator(partition=Partition.fixed_width(4)).fit(
    np.linspace(0, 1, 400), np.arange(400) % 2
)
store = sys.argv[1]
monitor = Monitor(store, calibrator, maturity=7, timeout=2)
monitor.record("before", 0.3, at=100.0)


def ended(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def sound(n_recorded):
    assert monitor.snapshot().n_recorded == n_recorded, monitor.snapshot().n_recorded
    connection = sqlite3.connect(store)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
"""

ANOTHER_THREAD = """
inside = threading.Event()


def write():
    with monitor.transaction():
        monitor.record("by the thread", 0.3, at=100.0)
        inside.set()
        time.sleep(0.5)


thread = threading.Thread(target=write)
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    wrote = monitor.record("by the child", 0.3, at=100.0)
    with Monitor(store, calibrator, maturity=7, timeout=2) as own:
        own.record("by its own", 0.3, at=100.0)
    os._exit(0 if wrote == "new" else 1)
ended(child)
thread.join()
monitor.record("by the parent", 0.3, at=100.0)
sound(5)
"""

SAME_THREAD = """
def refused(call):
    try:
        call()
    except StoreError as error:
        assert "forked" in str(error) and "spawn" in error.advice, error
        return True
    return False


with monitor.transaction():
    monitor.record("by the parent", 0.3, at=100.0)
    child = os.fork()
    if child == 0:
        assert refused(lambda: Monitor(store, calibrator, maturity=7, timeout=2))
        with Monitor(f"{store}.2", calibrator, maturity=7) as other:  # another file is free
            other.record("by the child", 0.3, at=100.0)
        os._exit(0 if refused(lambda: monitor.record("by the child", 0.3)) else 1)
    ended(child)
sound(2)


def leave_the_block():
    global child
    with monitor.transaction():
        monitor.record("after", 0.3, at=100.0)
        child = os.fork()
        if child:
            ended(child)


if refused(leave_the_block):  # the child must not commit what is its parent's
    os._exit(0 if child == 0 else 1)
sound(3)
"""

PARENT_GOES_ON = """
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        for row in range(20):
            monitor.record(f"{number} {row}", 0.3, at=100.0)
        os._exit(0)
    children.append(child)
    monitor.record(f"parent {number}", 0.3, at=100.0)
for child in children:
    ended(child)
sound(169)
"""


@pytest.mark.service
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize(
    "script",
    [ANOTHER_THREAD, SAME_THREAD, PARENT_GOES_ON],
    ids=["another thread", "same thread", "parent goes on"],
)
def test_a_fork_during_a_write(tmp_path: Path, script: str) -> None:
    place = str(tmp_path / "watch.db")
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + script, place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
