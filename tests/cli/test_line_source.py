"""Lines of files that grow, are truncated and are rotated: each is read once, and none is missed."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant.cli import _line_source
from calibrant.cli._line_source import Batch, FileLines


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_line_source, "_PAUSE", 0.0)
    monkeypatch.setattr(_line_source, "_SETTLED", 0.0)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def text(first: int, end: int) -> str:
    return "".join(f'{{"id": {number}}}\n' for number in range(first, end))


def add(path: Path, content: str) -> None:
    with path.open("a") as file:
        file.write(content)


def aged(path: Path, seconds: int) -> None:
    """Set when a file was last written."""
    os.utime(path, (1_000_000 + seconds, 1_000_000 + seconds))


def ids(batch: Batch) -> list[Any]:
    return [None if line.content is None else line.content["id"] for line in batch.lines]


class Follower:
    """A file that is followed."""

    def __init__(self, path: Path, place: dict[str, Any] | None = None) -> None:
        self.lines = FileLines(str(path))
        self.lines.resume(place or {})
        self.place = place
        self.batches = self.lines.batches(follow=True, stops=lambda: False)

    def new(self) -> list[Any]:
        """The ids that are read until nothing is new."""
        found: list[Any] = []
        while True:
            batch = next(self.batches)
            if not batch.lines:
                return found
            found += ids(batch)
            self.place = batch.place


def at_once(path: Path, place: dict[str, Any] | None = None) -> tuple[list[Any], Any]:
    lines = FileLines(str(path))
    lines.resume(place or {})
    found: list[Any] = []
    for batch in lines.batches(follow=False, stops=lambda: False):
        found += ids(batch)
        place = batch.place
    lines.close()
    return found, place


def test_a_half_written_line_waits_for_its_end(log: Path) -> None:
    log.write_text(text(0, 2) + '{"id"')
    follower = Follower(log)
    assert follower.new() == [0, 1]
    add(log, ": 2")
    assert follower.new() == []
    add(log, "}\n" + text(3, 4))
    assert follower.new() == [2, 3]
    assert follower.lines.rest() == []
    follower.lines.close()


def test_without_following_a_half_written_line_waits_for_the_next_run(log: Path) -> None:
    log.write_text(text(0, 2) + '{"id"')
    found, place = at_once(log)
    assert found == [0, 1]
    add(log, ": 2}")  # whole, though its end is missing
    found, place = at_once(log, place)
    assert found == [2]
    add(log, "\n\n" + text(3, 4))
    assert at_once(log, place)[0] == [3]


@pytest.mark.parametrize("n_lines", [1, 5, 50])
@pytest.mark.parametrize("shared", [0, 3])
def test_a_log_that_was_truncated_and_filled_again_is_read_again(
    log: Path, n_lines: int, shared: int
) -> None:
    log.write_text(text(0, 5))
    follower = Follower(log)
    assert follower.new() == [0, 1, 2, 3, 4]
    before = follower.place
    again = text(0, shared) + text(100, 100 + n_lines)  # shorter, as long, or longer
    with log.open("r+") as file:
        file.truncate(0)
        file.write(again)
    expected = [*range(shared), *range(100, 100 + n_lines)]
    assert follower.new() == expected
    follower.lines.close()
    assert at_once(log, before)[0] == expected


def test_a_log_that_was_copied_and_truncated_is_read_to_the_end_of_its_copy(log: Path) -> None:
    log.write_text(text(0, 5))
    follower = Follower(log)
    assert follower.new() == [0, 1, 2, 3, 4]
    before = follower.place
    copy = log.with_name("log.jsonl-20260101")
    copy.write_text(text(0, 7))  # two lines came in between
    with log.open("r+") as file:
        file.truncate(0)
        file.write(text(7, 30))
    assert follower.new() == [*range(5, 30)]
    follower.lines.close()
    assert at_once(log, before)[0] == [*range(5, 30)]


def test_a_log_that_was_renamed_is_read_to_its_end_before_the_new_one(log: Path) -> None:
    log.write_text(text(0, 2))
    follower = Follower(log)
    assert follower.new() == [0, 1]
    before = follower.place
    log.rename(log.with_name("log.jsonl.1"))
    assert follower.new() == []
    add(log.with_name("log.jsonl.1"), text(2, 4))  # the writer still has the old file open
    assert follower.new() == [2, 3]
    log.touch()
    add(log.with_name("log.jsonl.1"), text(4, 5) + '{"id": 5}')
    assert follower.new() == [4]
    add(log, text(6, 8))  # now the writer has moved on, and the last line is whole
    assert follower.new() == [5, 6, 7]
    follower.lines.close()
    aged(log.with_name("log.jsonl.1"), 1)
    assert at_once(log, before)[0] == [2, 3, 4, 5, 6, 7]


def test_logs_that_were_renamed_several_times_are_read_in_order(log: Path) -> None:
    log.write_text(text(0, 3))
    follower = Follower(log)
    assert follower.new() == [0, 1, 2]
    before = follower.place
    names = ["log.jsonl.2", "log.jsonl.1", "log.jsonl"]
    log.with_name("log.jsonl.3").write_text(text(50, 60))  # older, and read long ago
    for number, name in enumerate(names):
        log.with_name(name).write_text(text(0, 3) + text(3, 5) if number == 0 else "")
    log.with_name("log.jsonl.1").write_text(text(5, 9))
    log.with_name("log.jsonl").write_text(text(9, 12))
    for number, name in enumerate(["log.jsonl.3", *names]):
        aged(log.with_name(name), number)
    for other in ("log.jsonl.quarantine.jsonl", "log.jsonl.bak", "log.jsonl2"):
        log.with_name(other).write_text(text(70, 80))
    follower.lines.close()
    assert at_once(log, before)[0] == [*range(3, 12)]


def test_a_writer_that_still_writes_to_the_renamed_log_is_waited_for(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_line_source, "_SETTLED", 3600.0)
    log.write_text(text(0, 2))
    follower = Follower(log)
    assert follower.new() == [0, 1]
    log.rename(log.with_name("log.jsonl.1"))
    log.write_text(text(3, 4))
    assert follower.new() == []
    add(log.with_name("log.jsonl.1"), text(2, 3))
    assert follower.new() == [2]
    aged(log.with_name("log.jsonl.1"), 1)
    assert follower.new() == [3]
    follower.lines.close()


def test_a_log_that_is_gone_is_followed_until_it_is_there_again(log: Path) -> None:
    log.write_text(text(0, 2))
    follower = Follower(log)
    assert follower.new() == [0, 1]
    log.unlink()
    assert follower.new() == []
    log.write_text(text(2, 4))
    assert follower.new() == [2, 3]
    follower.lines.close()


def test_a_line_without_end_does_not_fill_the_memory(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_line_source, "_CHUNK", 64)
    monkeypatch.setattr(_line_source, "_LONGEST", 1000)
    log.write_text(text(0, 1) + "x" * 3000 + "\n" + text(1, 3))
    found, _ = at_once(log)
    assert found[0] == 0
    assert found[-2:] == [1, 2]
    assert set(found[1:-2]) == {None}


def test_many_lines_come_in_batches_that_can_be_continued_anywhere(log: Path) -> None:
    log.write_text(text(0, 2500))
    lines = FileLines(str(log))
    batches = list(lines.batches(follow=False, stops=lambda: False))
    lines.close()
    assert [len(batch.lines) for batch in batches] == [1000, 1000, 500]
    assert [batch.lines[-1].number for batch in batches] == [1000, 2000, 2500]
    for number, batch in enumerate(batches):
        assert at_once(log, batch.place)[0] == [*range(1000 * (number + 1), 2500)]


class Rotation:
    """A log, what happens to it, and a reader that is stopped and started again."""

    def __init__(self, log: Path, seed: int) -> None:
        self.log = log
        self.rng = np.random.default_rng(seed)
        self.n_lines = 0
        self.n_rotated = 0
        self.now = 0
        self.found: list[Any] = []
        log.touch()
        self.follower = Follower(log)
        self.write()

    def write(self) -> None:
        """Write some lines, the first of them in two parts."""
        n_lines = int(self.rng.integers(1, 30))
        lines = text(self.n_lines, self.n_lines + n_lines)
        self.n_lines += n_lines
        add(self.log, lines[:4])
        if self.rng.uniform() < 0.3:
            self.read()
        add(self.log, lines[4:])
        self.touch(self.log)

    def touch(self, path: Path) -> None:
        """Give a file the next time, because those of the file system may be equal."""
        self.now += 1
        aged(path, self.now)

    def rename(self) -> None:
        self.n_rotated += 1
        self.log.rename(self.log.with_name(f"log.jsonl.{self.n_rotated}"))
        if self.rng.uniform() < 0.5:
            self.log.touch()
            self.touch(self.log)
            self.read()
        self.write()

    def copy_and_truncate(self) -> None:
        self.n_rotated += 1
        copy = self.log.with_name(f"log.jsonl.{self.n_rotated}")
        copy.write_bytes(self.log.read_bytes())
        self.touch(copy)
        os.truncate(self.log, 0)
        self.touch(self.log)
        if self.rng.uniform() < 0.5:
            self.read()
        self.write()

    def read(self) -> None:
        """Read some batches, or stop and start again; what was not handed in is read again."""
        for _ in range(int(self.rng.integers(0, 4))):
            batch = next(self.follower.batches)
            self.found += ids(batch)
            if batch.lines:
                self.follower.place = batch.place
        if self.rng.uniform() < 0.3:
            self.follower.lines.close()
            self.follower = Follower(self.log, self.follower.place)


@pytest.mark.parametrize("seed", range(60))
def test_each_line_of_logs_that_are_rotated_in_any_way_is_read_once(log: Path, seed: int) -> None:
    rotation = Rotation(log, seed)
    while not rotation.found:  # a log is followed from its first line on
        rotation.read()
    for _ in range(25):
        chance = rotation.rng.uniform()
        if chance < 0.4:
            rotation.write()
        elif chance < 0.6:
            rotation.rename()
        elif chance < 0.8:
            rotation.copy_and_truncate()
        else:
            rotation.read()
    rotation.found += rotation.follower.new()
    rotation.follower.lines.close()
    assert rotation.found == [*range(rotation.n_lines)]
