"""Lines as they arrive: from a file that grows and is rotated, or from a pipe."""

import hashlib
import os
import queue
import re
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from calibrant._json import read_json
from calibrant.cli._errors import RefusedError
from calibrant.errors import InvalidValueError

_ENDS = 1024  # bytes at the beginning and before the offset that identify a file
_BATCH = 1000  # lines
_CHUNK = 2**18  # bytes
_LONGEST = 2**24  # bytes of a line
_KEY = 30  # in characters
_PAUSE = 0.5  # seconds between checks of a file, and at most between reading and handing in
_SETTLED = 1.0  # seconds after which nobody writes to a renamed log any more
_DRAIN = 2**22  # bytes that are still read from a pipe after a signal
_DATED = r"[.-][0-9][0-9._:T-]*"  # what is put into the name of an old log

Stops = Callable[[], bool]
"""Whether a signal has asked to stop."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the input: its number, its bytes, and its content; None if it is not a JSON
    object.
    """

    number: int
    text: bytes
    content: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines that were read together, and where reading continues after them, if that is known."""

    lines: list[Line]
    place: dict[str, Any] | None = None


class LineSource(ABC):
    """Where lines come from; by default they come once, and nothing has to be closed."""

    key: str | None = None
    """The name under which a store records how far the source was read; None for a pipe."""
    n_lost_after = 0
    """The number of lines read from a file that was then renamed or compressed, so that its last
    lines may be missing; 0 if none was."""

    def resume(self, place: Mapping[str, Any]) -> int:
        """Go to where an earlier run stopped, if that is known; return the number of bytes before
        it.
        """
        return 0

    @abstractmethod
    def batches(self, *, follow: bool, stops: Stops) -> Iterator[Batch]:
        """Yield lines as they arrive, none if there is nothing new, until a signal comes.

        With `follow`, wait for more.
        """

    def rest(self) -> list[Line]:
        """What was read and has not been yielded, and does not come again."""
        return []

    def close(self) -> None:  # noqa: B027
        """Close it."""


def line_source(path: str) -> LineSource:
    """A file, or standard input (-)."""
    return PipeLines() if path == "-" else FileLines(path)


def _line(number: int, text: bytes) -> Line:
    """A line with its content."""
    try:
        found = read_json(text, "the line")
    except InvalidValueError:
        found = None
    return Line(number, text, found if isinstance(found, Mapping) else None)


class PipeLines(LineSource):
    """Standard input, read by a thread of its own, so that lines are passed on while others are
    still awaited.
    """

    def __init__(self) -> None:
        self._chunks: queue.Queue[bytes] = queue.Queue(maxsize=16)
        self._lines: list[Line] = []
        self._waiting = b""  # an incomplete line
        self._number = 0
        self._stopping = threading.Event()
        if sys.stdin is None:
            raise RefusedError("standard input", "be open", got="a closed one")

    def batches(self, *, follow: bool, stops: Stops) -> Iterator[Batch]:
        """Yield lines at least every half second, and what is left at the end or after a signal."""
        threading.Thread(target=self._read, daemon=True).start()
        ends = False
        while not ends:
            ends = self._gather(stops)
            if stops():
                self._drain()
                ends = True
            if ends:
                self._add(b"\n")
            yield Batch(self._taken())

    def _read(self) -> None:
        """Put what arrives into the queue; an empty chunk is the end."""
        stream: Any = sys.stdin.buffer
        # not the buffer itself: this thread would hold its lock when Python closes it at the end
        read = stream.raw.read if hasattr(stream, "raw") else stream.read1
        chunk = b"."
        while chunk and not self._stopping.is_set():
            try:
                chunk = read(_CHUNK) or b""
            except (OSError, ValueError):  # it was closed
                chunk = b""
            self._chunks.put(chunk)

    def _gather(self, stops: Stops) -> bool:
        """Collect lines for a moment, or until they are many; return whether the input has ended."""
        deadline = time.monotonic() + _PAUSE
        while len(self._lines) < _BATCH and not stops():
            left = deadline - time.monotonic()
            if left <= 0.0:
                return False
            try:
                chunk = self._chunks.get(timeout=min(left, 0.1))  # signals are noticed in between
            except queue.Empty:
                continue
            if not chunk:
                return True
            self._add(chunk)
        return False

    def _drain(self) -> None:
        """Take what has been written to the pipe by now.

        If more keeps coming, read no more of it, and take all that was read.
        """
        n_bytes = 0
        while True:
            try:
                chunk = self._chunks.get(timeout=0.1)
            except queue.Empty:
                return
            if not chunk:
                return
            n_bytes += len(chunk)
            self._add(chunk)
            if n_bytes >= _DRAIN:
                self._stopping.set()

    def _add(self, chunk: bytes) -> None:
        """Add the lines that a chunk completes."""
        *whole, self._waiting = (self._waiting + chunk).split(b"\n")
        if len(self._waiting) > _LONGEST:
            whole.append(self._waiting)
            self._waiting = b""
        for text in whole:
            self._number += 1
            if text.strip():
                self._lines.append(_line(self._number, text))

    def _taken(self) -> list[Line]:
        lines = self._lines
        self._lines = []
        return lines

    def rest(self) -> list[Line]:
        """What was read and has not been yielded."""
        self._drain()
        self._add(b"\n")
        return self._taken()


class FileLines(LineSource):
    """A file of lines, read from where an earlier run stopped.

    A file is recognised by its content: its first bytes, and those before the place where reading
    stopped. So a log that was renamed, or copied and truncated, is read to its end, and then those
    that came after it.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        # a link keeps its name when it is moved to the next file
        self.key = hashlib.sha256(str(self._path.absolute()).encode()).hexdigest()[:_KEY]
        self._done: set[tuple[int, int, int]] = set()  # the files that were read to their end
        # closed by `close`, or when the next file is used; it may be followed for days
        self._stream: BinaryIO = self._path.open("rb", buffering=0)
        self._use(self._stream)

    def _use(self, stream: BinaryIO, offset: int = 0, number: int = 0) -> None:
        """Read from an open file, whose name may change meanwhile."""
        if stream is not self._stream:
            self._stream.close()
        self._stream = stream
        self._offset = offset
        self._number = number
        self._first, self._last = _ends(stream, offset)
        self._ahead = _bytes_at(stream, offset)  # what was seen there and is not read yet

    def _place(self) -> dict[str, Any]:
        """What a store records, so that the next run continues here."""
        first, last = _hashes((self._first, self._last))
        return {
            "offset": self._offset,
            "line": self._number,
            "first": first,
            "last": last,
            "file": str(self._path.resolve()),
        }

    def resume(self, place: Mapping[str, Any]) -> int:
        """Go to where an earlier run stopped, in this file or in one that it was renamed to."""
        if not place:
            return 0
        offset = int(place["offset"])
        known = [place["first"], place["last"]]
        paths = [self._path, *self._rotated(), Path(place["file"])]
        found = _first_of(paths, lambda stream: _hashes(_ends(stream, offset)) == known)
        if found is None:
            self.n_lost_after = int(place["line"])
            return 0
        self._use(found, offset, int(place["line"]))
        return offset

    def _is_known(self, stream: BinaryIO) -> bool:
        """Whether a file contains what has been read here."""
        if _ends(stream, self._offset) != (self._first, self._last):
            return False
        return _bytes_at(stream, self._offset).startswith(self._ahead)

    def _rotated(self) -> list[Path]:
        """Files that were once at this path, as their names say, the oldest first."""
        here = self._path
        name, stem, suffix = map(re.escape, (here.name, here.stem, here.suffix))
        is_old = re.compile(rf"{name}(\.old|{_DATED})|{stem}{_DATED}{suffix}").fullmatch
        try:
            old = [path for path in here.parent.iterdir() if is_old(path.name)]
        except OSError:
            return []
        known = [(found.st_mtime_ns, path) for path in old if (found := _stat(path)) is not None]
        return [path for _, path in sorted(known)]

    def batches(self, *, follow: bool, stops: Stops) -> Iterator[Batch]:
        """Yield complete lines; with `follow`, wait for more, also in a new file of that name.

        An incomplete last line waits for its end, unless it is a whole object and nothing is
        followed.
        """
        while not stops():
            lines = self._read_lines()
            following = None if lines else self._next_file(_SETTLED if follow else 0.0)
            if following is not None:
                lines = self._read_lines()  # what was written before the writer moved on
            if lines:
                if following is not None:
                    following.close()
                yield Batch(lines, self._place())
                continue
            if following is not None or not follow:
                last = self._last_line(is_over=following is not None)
                if last:
                    yield Batch(last, self._place())
            if following is not None:
                self._done.add(_version(self._stream))
                self._use(following)
            elif not follow:
                return
            else:
                yield Batch([])
                time.sleep(_PAUSE)

    def _read_lines(self) -> list[Line]:
        """The complete lines that are there now, some at a time."""
        data = b""
        while b"\n" not in data and len(data) < _LONGEST:
            self._stream.seek(self._offset + len(data))
            chunk = self._stream.read(_CHUNK)
            if not chunk:
                break
            data += chunk
        if not self._is_known(self._stream):  # asked after reading: it may change at any moment
            return self._read_lines() if self._begin_again() else []
        lines: list[Line] = []
        number = self._number
        end = 0
        while len(lines) < _BATCH:
            cut = data.find(b"\n", end) + 1 or (len(data) if len(data) - end >= _LONGEST else 0)
            if not cut:
                break
            number += 1
            if data[end:cut].strip():
                lines.append(_line(number, data[end:cut]))
            end = cut
        self._move(data, end, number)
        return lines

    def _last_line(self, *, is_over: bool) -> list[Line]:
        """The line without an end: if the file is over, or if it is whole nevertheless."""
        self._stream.seek(self._offset)
        text = self._stream.read(_LONGEST)
        line = _line(self._number + 1, text)
        if not text.strip() or b"\n" in text or not (is_over or line.content is not None):
            return []
        self._move(text, len(text), line.number)
        return [line]

    def _move(self, data: bytes, end: int, number: int) -> None:
        """Go on after some bytes, which were read here."""
        self._offset += end
        self._number = number
        self._first = (self._first + data[:end])[:_ENDS]
        self._last = (self._last + data[:end])[-_ENDS:]
        self._ahead = data[end : end + _ENDS]

    def _begin_again(self) -> bool:
        """The file was truncated: go on with its copy, if there is one, and else at the beginning
        of what has been written since; return whether there is anything of that.
        """
        copy = _first_of(self._rotated(), self._is_known)
        if copy is not None:
            self._use(copy, self._offset, self._number)
            return True
        self.n_lost_after = self._number
        found = _first_of([self._path], _has_line)
        if found is not None:
            self._use(found)
        return found is not None

    def _next_file(self, settled: float) -> BinaryIO | None:
        """The file that follows this one, open, once a line has been written to it and nothing more
        to this one for some seconds; None while this is the file at the path.
        """
        here = os.fstat(self._stream.fileno())
        for path in (*self._rotated(), self._path):
            stream = _opened(path)
            if stream is None:
                continue
            found = os.fstat(stream.fileno())
            is_last = path == self._path
            is_later = _has_line(stream) if is_last else found.st_mtime_ns >= here.st_mtime_ns
            newest = max(here.st_mtime, 0.0 if is_last else found.st_mtime)
            if os.path.samestat(found, here) or not is_later or _version(stream) in self._done:
                stream.close()
            elif time.time() - newest < settled:
                stream.close()
                return None
            else:
                return stream
        return None

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _opened(path: Path) -> BinaryIO | None:
    """A file, open; None if it is not there, or no longer."""
    try:
        return path.open("rb", buffering=0)
    except OSError:
        return None


def _first_of(paths: Sequence[Path], suits: Callable[[BinaryIO], bool]) -> BinaryIO | None:
    """The first file that suits, open; None if there is none."""
    for path in paths:
        stream = _opened(path)
        if stream is not None:
            if suits(stream):
                return stream
            stream.close()
    return None


def _ends(stream: BinaryIO, offset: int) -> tuple[bytes, bytes]:
    """The first bytes of a file, and those before an offset."""
    size = min(offset, _ENDS)
    stream.seek(0)
    first = stream.read(size)
    stream.seek(offset - size)
    return first, stream.read(size)


def _bytes_at(stream: BinaryIO, offset: int) -> bytes:
    stream.seek(offset)
    return stream.read(_ENDS)


def _has_line(stream: BinaryIO) -> bool:
    """Whether a file has a whole line, by which it can be recognised."""
    stream.seek(0)
    data = stream.read(_CHUNK)
    return b"\n" in data or len(data) == _CHUNK


def _version(stream: BinaryIO) -> tuple[int, int, int]:
    """What identifies a file, even if a later one has the same inode number."""
    found = os.fstat(stream.fileno())
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _hashes(ends: tuple[bytes, bytes]) -> list[str]:
    return [hashlib.sha256(end).hexdigest() for end in ends]


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
