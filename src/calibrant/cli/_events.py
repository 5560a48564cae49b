"""Read lines of predictions and labels as they arrive, from a growing file or a pipe."""

import hashlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from calibrant._json import read_json
from calibrant.cli._errors import RefusedError, message_of
from calibrant.errors import CalibrantError, InvalidValueError, StoreError

_HEAD = 256  # leading bytes that identify a file
_BATCH = 1000
_KEY = 30  # in characters
_PAUSE = 0.5  # seconds between checks of a file
_EXAMPLE = (
    'write one object per line, such as {"id": "case 1", "score": 0.3, "at": "2026-01-31"};'
    " calibrant watch does not read CSV"
)
_ADVICE = "--id, --score and --label name the fields; without them they are named as in fit"


@dataclass(frozen=True, slots=True)
class Fields:
    """The field names of a line."""

    id: str
    score: str
    label: str
    at: str
    labelled_at: str
    segment: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the input: its number, where it ends, and its content."""

    number: int
    end: int
    content: Mapping[str, Any]


class EventFile:
    """A file or standard input (-) of JSON lines, read from where an earlier run stopped."""

    def __init__(self, path: str) -> None:
        self.path = path
        # closed by `close`: a file may be followed for days
        self._stream: BinaryIO = sys.stdin.buffer if self.is_pipe else self._opened()
        self._offset = 0
        self._number = 0
        self.has_times: bool | None = None
        """Whether lines have times, as determined by the first one."""

    def _opened(self) -> BinaryIO:
        return Path(self.path).open("rb")

    @property
    def is_pipe(self) -> bool:
        """Whether it ends when the other side closes it."""
        return self.path == "-"

    @property
    def key(self) -> str:
        """The name under which a store records how far this file was read."""
        name = "-" if self.is_pipe else str(Path(self.path).resolve())
        return hashlib.sha256(name.encode()).hexdigest()[:_KEY]

    def head(self) -> str:
        """A hash of the first line, which identifies the file."""
        if self.is_pipe:
            return ""
        with Path(self.path).open("rb") as file:
            first = file.readline(_HEAD)
        whole = first.endswith(b"\n") or len(first) == _HEAD
        return hashlib.sha256(first).hexdigest() if whole else ""

    def place_after(self, line: Line) -> dict[str, Any]:
        """What a store records, so that the next run continues after this line."""
        return {
            "offset": line.end,
            "line": line.number,
            "head": self.head(),
            "has_times": self.has_times,
        }

    def resume(self, place: Mapping[str, Any] | None) -> int:
        """Go to where an earlier run stopped, if this is the same file; return the offset."""
        if place is None or self.is_pipe or not place["head"] or place["head"] != self.head():
            return 0
        size = Path(self.path).stat().st_size
        if place["offset"] <= size:
            self._offset = int(place["offset"])
            self._number = int(place.get("line", 0))
            self.has_times = place.get("has_times")
            self._stream.seek(self._offset)
        return self._offset

    def batches(self, *, follow: bool) -> Iterator[list[Line]]:
        """Yield some lines at a time; none if there is nothing new.

        With `follow`, wait for more at the end of a file, and continue with a new file of that
        name. An incomplete line is left for later. Lines before an unreadable one are yielded
        first.
        """
        while True:
            lines, error = self._read_some(follow=follow)
            if lines:
                yield lines
            if error is not None:
                raise error
            if lines:
                continue
            if not follow or self.is_pipe:
                return
            if not self._reopened():
                time.sleep(_PAUSE)
                yield []

    def _read_some(self, *, follow: bool) -> tuple[list[Line], RefusedError | None]:
        """The lines available now, and what is wrong with the line after them."""
        lines: list[Line] = []
        while len(lines) < _BATCH:
            text = self._stream.readline()
            if not text.endswith(b"\n") and not (text and (self.is_pipe or not follow)):
                if text:
                    self._stream.seek(self._offset)
                break
            self._offset += len(text)
            self._number += 1
            if text.strip():
                content = _parsed(text)
                if content is None:
                    where = f"line {self._number:,} of {self.path!r}"
                    return lines, _not_json(where, text)
                lines.append(Line(self._number, self._offset, content))
        return lines, None

    def _reopened(self) -> bool:
        """Whether the file was replaced or truncated, as logs are each night; if so, open the new
        one.
        """
        try:
            now = Path(self.path).stat()
        except FileNotFoundError:
            return False
        if os.path.samestat(now, os.fstat(self._stream.fileno())) and now.st_size >= self._offset:
            return False
        self._stream.close()
        self._stream = self._opened()
        self._offset = 0
        self._number = 0
        return True

    def close(self) -> None:
        """Close the file."""
        if not self.is_pipe:
            self._stream.close()


def _not_json(where: str, text: bytes) -> RefusedError:
    """What is wrong with a line, and how a line should look."""
    start = text[:40].decode("utf-8", errors="replace").rstrip()
    return RefusedError(where, "be a JSON object", got=repr(start), advice=_EXAMPLE)


def _parsed(text: bytes) -> Mapping[str, Any] | None:
    """The JSON object of a line; None if it is not one."""
    try:
        found = read_json(text, "the line")
    except InvalidValueError:
        return None
    return found if isinstance(found, Mapping) else None


def take_lines(monitor: Any, events: EventFile, lines: Sequence[Line], fields: Fields) -> None:
    """Submit lines, and record how far the input was read, in one transaction.

    If one of them cannot be accepted, the lines before it are kept, and the error names it.
    """
    try:
        _take_together(monitor, events, lines, fields)
    except StoreError:
        raise
    except CalibrantError:
        for line in lines:
            _take_alone(monitor, events, line, fields)


def _take_together(monitor: Any, events: EventFile, lines: Sequence[Line], fields: Fields) -> None:
    with monitor.transaction():
        for line in lines:
            _check_times(events, line.content, fields)
        hand_in(monitor, [line.content for line in lines], fields)
        monitor.write_note(events.key, events.place_after(lines[-1]))


def _take_alone(monitor: Any, events: EventFile, line: Line, fields: Fields) -> None:
    try:
        _take_together(monitor, events, [line], fields)
    except StoreError:
        raise
    except CalibrantError as error:
        where = f"line {line.number:,} of {events.path!r}"
        raise RefusedError(None, f"{where}: {message_of(error)}") from error


def _check_times(events: EventFile, content: Mapping[str, Any], fields: Fields) -> None:
    """Require that all lines have times, or none: a line without a time counts as now, and among
    last year's lines it would end all days up to now.
    """
    has_time = any(content.get(name) is not None for name in (fields.at, fields.labelled_at))
    if events.has_times is None:
        events.has_times = has_time
    if has_time != events.has_times:
        rule = f"have the field {fields.at!r}, or none" if events.has_times else "have no time"
        advice = "the first line decides" if not events.has_times else None
        raise RefusedError("each line", rule, got=str(content)[:80], advice=advice)


def hand_in(monitor: Any, records: Sequence[Mapping[str, Any]], fields: Fields) -> None:
    """Submit lines to a monitor: the predictions and labels of each day together, day by day.

    A line with a score is a prediction, and a line with a label is a label. A line with both is
    complete, such as a row of an archive: the time of its label is ahead of the next line and does
    not move the clock.
    """
    for record in records:
        has_score = record.get(fields.score) is not None
        has_label = record.get(fields.label) is not None
        if record.get(fields.id) is None or not (has_score or has_label):
            rule = f"have the field {fields.id!r}, and {fields.score!r} or {fields.label!r}"
            raise RefusedError("each line", rule, got=str(record)[:80], advice=_ADVICE)
    for day in _by_day(records, fields, monitor.maturity):
        predictions = [record for record in day if record.get(fields.score) is not None]
        labels = [record for record in day if record.get(fields.label) is not None]
        complete = [record for record in labels if record.get(fields.score) is not None]
        alone = [record for record in labels if record.get(fields.score) is None]
        _record(monitor, predictions, fields)
        _resolve(monitor, complete, fields, moves_clock=False)
        _resolve(monitor, alone, fields, moves_clock=True)


def _by_day(
    records: Sequence[Mapping[str, Any]], fields: Fields, maturity: float
) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Lines in order, split where the store's clock may end a day or a row may mature."""
    import numpy as np

    from calibrant.monitor.late_labels import days_of

    times = [_clock_time(record, fields) for record in records]
    if any(time is None for time in times):
        yield records
        return
    clock = np.maximum.accumulate(days_of(times, len(times), "at"))
    ends_day = np.diff(np.floor(clock)) > 0
    matures = np.diff(np.floor(clock - maturity)) > 0
    cuts = np.flatnonzero(ends_day | matures) + 1
    for first, end in pairwise([0, *cuts.tolist(), len(records)]):
        yield records[first:end]


def _clock_time(record: Mapping[str, Any], fields: Fields) -> Any:
    """The time of a line: of its prediction, or of its label if it has no score."""
    at = record.get(fields.at)
    if record.get(fields.score) is not None:
        return at
    labelled = record.get(fields.labelled_at)
    return at if labelled is None else labelled


def _times(records: Sequence[Mapping[str, Any]], *names: str) -> list[Any] | None:
    """For each line, the first of these fields that it has; None if no line has a time."""
    found = [
        next((record[name] for name in names if record.get(name) is not None), None)
        for record in records
    ]
    if all(at is None for at in found):
        return None
    if any(at is None for at in found):
        rule = f"have the field {names[-1]!r}, or none"
        raise RefusedError("each line", rule, got="lines without a time")
    return found


def _record(monitor: Any, records: Sequence[Mapping[str, Any]], fields: Fields) -> None:
    if records:
        ids = [record[fields.id] for record in records]
        scores = [record[fields.score] for record in records]
        segments = None
        if monitor.watched.partition.has_segments:
            segments = [record.get(fields.segment) for record in records]
        monitor.record_many(ids, scores, _times(records, fields.at), segments)


def _resolve(
    monitor: Any,
    records: Sequence[Mapping[str, Any]],
    fields: Fields,
    *,
    moves_clock: bool,
) -> None:
    if records:
        ids = [record[fields.id] for record in records]
        labels = [record[fields.label] for record in records]
        times = _times(records, fields.labelled_at, fields.at)
        monitor.resolve_many(ids, labels, times, moves_clock=moves_clock)
