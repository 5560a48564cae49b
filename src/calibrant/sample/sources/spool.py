"""What is slow to read, or can be read only once, is kept for the next pass: in memory as far as it
fits, else in a temporary file of Arrow data.
"""

import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from calibrant._optional import pa
from calibrant.sample.sources.hive import Read


@dataclass(slots=True)
class Room:
    """The bytes that the batches of one data set may still take in memory: 4 million scores and
    labels.
    """

    left: int = 1 << 26


class Spool:
    """Batches that are kept, in order."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._kept: list[Any] = []  # batches in memory, and where others begin in the file
        self._file: Any = None

    def add(self, batch: Any) -> None:
        """Keep one more batch."""
        size = batch.nbytes
        if self._file is None and size <= self._room.left:
            self._room.left -= size
            self._kept.append(batch)
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="calibrant-")  # noqa: SIM115 - kept open
            weakref.finalize(self, self._file.close)  # which also removes it
        self._kept.append(self._file.seek(0, 2))
        # a stream for each batch, because the types of later ones may differ
        with pa.ipc.new_stream(self._file, batch.schema) as writer:
            writer.write_batch(batch)

    def __iter__(self) -> Iterator[Any]:
        for one in self._kept:
            if not isinstance(one, int):
                yield one
                continue
            self._file.seek(one)
            with pa.ipc.open_stream(self._file) as reader:
                batch = reader.read_next_batch()
            yield batch

    def clear(self) -> None:
        """Give back what the batches take."""
        self._room.left += sum(one.nbytes for one in self._kept if not isinstance(one, int))
        self._kept = []
        if self._file is not None:
            self._file.close()
            self._file = None


def parsed_once(read: Read, room: Room) -> Read:
    """Read a text file, and keep its batches.

    Passes that need further columns parse the file again, with those that were kept.
    """
    held = Spool(room)
    known: tuple[str, ...] = ()

    def batches(names: list[str] | None) -> Iterator[Any]:
        nonlocal held, known
        if names is None:  # the whole rows, which are read once
            yield from read(None)
            return
        if known and set(names) <= set(known):
            yield from (batch.select(names) for batch in held)
            return
        wanted = list(dict.fromkeys((*names, *known)))
        fresh = Spool(room)
        is_whole = False
        try:
            for batch in read(wanted):
                fresh.add(batch.select(wanted))
                yield batch.select(names)
            is_whole = True
        finally:
            (held if is_whole else fresh).clear()
        held = fresh
        known = tuple(wanted)

    return batches


def read_once(source: Iterator[Any], room: Room) -> Read:
    """Batches that can be taken from their source only once; later passes read what was kept."""
    kept = Spool(room)

    def batches(names: list[str] | None) -> Iterator[Any]:
        yield from kept
        for batch in source:
            kept.add(batch)
            yield batch

    return batches
