"""ReadLines of predictions and labels, as they come: from a file that grows, or from a pipe."""

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from calibrant.cli._errors import RefusedError

_HEAD = 256  # bytes at the beginning that a file is known by
_BATCH = 1000
_PAUSE = 0.5  # seconds between looks at a file


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a line."""

    id: str
    score: str
    label: str
    at: str
    labelled_at: str
    segment: str


@dataclass(slots=True)
class ReadLines:
    """Complete lines, and how far the input was read when they ended."""

    records: list[Mapping[str, Any]]
    offset: int


class EventFile:
    """A file or standard input (-) of JSON lines, read from where an earlier run stopped."""

    def __init__(self, path: str) -> None:
        self.path = path
        # closed by `close`: a file may be followed for days
        self._stream: BinaryIO = sys.stdin.buffer if path == "-" else Path(path).open("rb")  # noqa: SIM115
        self._offset = 0
        self._number = 0

    @property
    def is_pipe(self) -> bool:
        """Whether it ends when the other side closes it."""
        return self.path == "-"

    def head(self) -> str:
        """What the file is known by: a hash of its first line."""
        if self.is_pipe:
            return ""
        with Path(self.path).open("rb") as file:
            first = file.readline(_HEAD)
        return (
            hashlib.sha256(first).hexdigest()
            if first.endswith(b"\n") or len(first) == _HEAD
            else ""
        )

    def resume(self, place: Mapping[str, Any] | None) -> int:
        """Go to where an earlier run stopped, if this is the same file; return the offset."""
        if place is None or self.is_pipe or not place["head"] or place["head"] != self.head():
            return 0
        size = Path(self.path).stat().st_size
        if place["offset"] <= size:
            self._offset = int(place["offset"])
            self._stream.seek(self._offset)
        return self._offset

    def batches(self, *, follow: bool) -> Iterator[ReadLines]:
        """Some lines at a time; with `follow`, wait for more at the end of a file.

        Half a line is left for later.
        """
        while True:
            records: list[Mapping[str, Any]] = []
            while len(records) < _BATCH:
                line = self._stream.readline()
                if not line.endswith(b"\n") and not (line and (self.is_pipe or not follow)):
                    if line:
                        self._stream.seek(self._offset)
                    break
                self._offset += len(line)
                self._number += 1
                if line.strip():
                    records.append(self._parsed(line))
            if records:
                yield ReadLines(records, self._offset)
            elif not follow or self.is_pipe:
                return
            else:
                time.sleep(_PAUSE)
                yield ReadLines([], self._offset)

    def _parsed(self, line: bytes) -> Mapping[str, Any]:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, Mapping):
            raise RefusedError(
                f"line {self._number:,} of {self.path!r}", "be a JSON object", got=repr(line[:40])
            )
        return found

    def close(self) -> None:
        """Close the file."""
        if not self.is_pipe:
            self._stream.close()


def hand_in(monitor: Any, records: list[Mapping[str, Any]], fields: Fields) -> None:
    """Hand lines to a monitor in their order: runs of predictions, and runs of labels.

    A line with a score is a prediction, one with a label is a label, one with both is first the one
    and then the other.
    """
    predictions: list[Mapping[str, Any]] = []
    labels: list[Mapping[str, Any]] = []
    for record in records:
        name = record.get(fields.id)
        has_score = record.get(fields.score) is not None
        has_label = record.get(fields.label) is not None
        if name is None or not (has_score or has_label):
            rule = f"have the field {fields.id!r}, and {fields.score!r} or {fields.label!r}"
            raise RefusedError("each line", rule, got=str(record)[:80])
        if has_score:
            _resolve(monitor, labels, fields)
            labels = []
            predictions.append(record)
        if has_label:
            _record(monitor, predictions, fields)
            predictions = []
            labels.append(record)
    _record(monitor, predictions, fields)
    _resolve(monitor, labels, fields)


def _times(records: list[Mapping[str, Any]], *names: str) -> list[Any] | None:
    """The first of these fields that a line has; None if no line has a time."""
    found = [
        next((record[name] for name in names if record.get(name) is not None), None)
        for record in records
    ]
    if all(at is None for at in found):
        return None
    if any(at is None for at in found):
        raise RefusedError(
            "each line", f"have the field {names[-1]!r}, or none", got="lines without a time"
        )
    return found


def _record(monitor: Any, records: list[Mapping[str, Any]], fields: Fields) -> None:
    if records:
        ids = [record[fields.id] for record in records]
        scores = [record[fields.score] for record in records]
        segments = None
        if monitor.watched.partition.has_segments:
            segments = [record.get(fields.segment) for record in records]
        monitor.record_many(ids, scores, _times(records, fields.at), segments)


def _resolve(monitor: Any, records: list[Mapping[str, Any]], fields: Fields) -> None:
    if records:
        ids = [record[fields.id] for record in records]
        labels = [record[fields.label] for record in records]
        monitor.resolve_many(ids, labels, _times(records, fields.labelled_at, fields.at))
