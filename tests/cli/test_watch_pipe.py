"""`calibrant watch -`: what comes through a pipe is in the store after a moment, and after any
signal.
"""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import BinningCalibrator, save_model

DAY = 20_000
WATCH = (sys.executable, "-m", "calibrant", "watch", "-", "--model", "model.json")

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(os.name == "nt", reason="signals of Unix"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scores = np.linspace(0, 1, 400)
    calibrator = BinningCalibrator(n_bins=2).fit(scores, np.arange(400) % 2)
    save_model(calibrator, tmp_path / "model.json")
    return tmp_path


@contextmanager
def watching(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    command = [*WATCH, "--store", "watch.db", *options]
    process = subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):  # what nobody reads any more
                stream.close()


def line(number: int) -> bytes:
    return json.dumps({"id": number, "score": 0.3, "at": DAY}).encode() + b"\n"


def recorded(folder: Path) -> set[str]:
    """The ids in the store, as another process sees them."""
    if not (folder / "watch.db").exists():
        return set()
    connection = sqlite3.connect(folder / "watch.db")
    try:
        return {one for (one,) in connection.execute("select id from calibrant_predictions")}
    except sqlite3.OperationalError:  # the tables are not there yet
        return set()
    finally:
        connection.close()


def awaited(condition: Callable[[], Any]) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(condition())


def quarantined(folder: Path) -> list[dict[str, Any]]:
    path = folder / "watch.db.quarantine.jsonl"
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_lines_are_handed_in_while_the_pipe_is_open_and_after_any_signal(
    folder: Path, number: signal.Signals
) -> None:
    with watching(folder) as process:
        process.stdin.write(b"".join(map(line, range(3))) + line(3)[:9])
        process.stdin.flush()
        assert awaited(lambda: recorded(folder) == {"0", "1", "2"})
        assert process.poll() is None
        process.stdin.write(line(3)[9:] + b"".join(map(line, range(4, 40))) + b'{"id": 40, "sc')
        process.stdin.flush()
        process.send_signal(number)
        code = process.wait(timeout=60)
        error = process.stderr.read().decode()
    assert code == (0 if number == signal.SIGINT else 128 + number), error
    assert recorded(folder) == {str(one) for one in range(40)}
    assert [entry["text"] for entry in quarantined(folder)] == ['{"id": 40, "sc']
    assert "stopped; everything that was read is in the store or in watch.db" in error


def test_the_last_line_of_a_pipe_that_ends_need_not_be_complete(folder: Path) -> None:
    with watching(folder, "--json") as process:
        out, _ = process.communicate(line(0) + b"not json\n" + line(1).strip(), timeout=60)
    assert process.returncode == 0
    found = json.loads(out)
    assert (found["n_recorded"], found["n_unreadable"]) == (2, 1)


def test_what_a_damaged_store_could_not_take_from_a_pipe_is_kept(folder: Path) -> None:
    with watching(folder) as process:
        process.stdin.write(line(0))
        process.stdin.flush()
        assert awaited(lambda: recorded(folder) == {"0"})
        other = sqlite3.connect(folder / "watch.db", isolation_level=None)
        other.execute("drop table calibrant_waiting")
        other.close()
        process.stdin.write(b"".join(map(line, range(1, 5))))
        process.stdin.flush()
        assert process.wait(timeout=60) == 2
        assert b"store must be" in process.stderr.read()
    assert [json.loads(entry["text"])["id"] for entry in quarantined(folder)] == [1, 2, 3, 4]


def test_several_models_are_watched_in_one_store(folder: Path) -> None:
    for name in ("spring", "autumn"):
        with watching(folder, "--json", "--name", name) as process:
            out, error = process.communicate(line(0) + line(1), timeout=60)
            assert process.returncode == 0, error
        assert json.loads(out)["n_recorded"] == 2
        assert json.loads(out)["n_duplicate"] == 0


def test_everything_that_was_read_of_a_fast_pipe_is_in_the_store(folder: Path) -> None:
    """A producer that does not stop: what it could write is in the store, but for what the pipe
    itself still holds.
    """
    written = 0
    with watching(folder) as process:
        stop = threading.Event()

        def produce() -> None:
            nonlocal written
            with contextlib.suppress(BrokenPipeError, ValueError):
                while not stop.is_set():
                    process.stdin.write(b"".join(map(line, range(written, written + 500))))
                    process.stdin.flush()
                    written += 500

        producer = threading.Thread(target=produce, daemon=True)
        producer.start()
        assert awaited(lambda: recorded(folder))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        stop.set()
        producer.join(10)
        found = len(recorded(folder))
        of_pipe = 2 * 65_536 // len(line(100_000)) + 500  # its buffer, and a batch half written
        assert found >= written - of_pipe
        assert recorded(folder) == {str(number) for number in range(found)}
