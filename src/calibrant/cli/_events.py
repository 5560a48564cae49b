"""Pass lines of predictions and labels to a monitor; put invalid lines into quarantine."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from calibrant.cli._errors import RefusedError, message_of
from calibrant.cli._line_source import Batch, Line
from calibrant.errors import CalibrantError, StoreError

_EXAMPLE = (
    'write one object per line, such as {"id": "case 1", "score": 0.3, "at": "2026-01-31"};'
    " calibrant watch does not read CSV"
)
_ADVICE = "--id, --score and --label name the fields; without them they are named as in fit"


Record = Mapping[str, Any]
"""The content of a line."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The field names of a line, and what lines have in them.

    A line with a score is a prediction, and a line with a label is a label. A line with both is
    complete, such as a row of an archive.
    """

    id: str
    score: str
    label: str
    at: str
    labelled_at: str
    segment: str

    def check(self, record: Record) -> None:
        """Raise an error for a line without an id, or without both a score and a label."""
        score = record.get(self.score)
        if record.get(self.id) is None or (score is None and record.get(self.label) is None):
            rule = f"have the field {self.id!r}, and {self.score!r} or {self.label!r}"
            raise RefusedError("each line", rule, got=str(record)[:80], advice=_ADVICE)
        is_number = isinstance(score, int | float | None) and not isinstance(score, bool)
        wrong = [] if is_number else [(self.score, "be a number")]
        for name in (self.label, self.at, self.labelled_at):
            value = record.get(name)
            if isinstance(value, list | dict):
                wrong.append((name, "be one value"))
            elif isinstance(value, bool) and name != self.label:
                wrong.append((name, "be a date or a number of days"))
        for name, rule in wrong:
            raise RefusedError(f"the field {name!r}", rule, got=str(record[name])[:80])

    def by_day(self, records: Sequence[Record], maturity: float) -> Iterator[Sequence[Record]]:
        """Lines in order, split where the store's clock may end a day or a row may mature."""
        import numpy as np

        from calibrant.monitor.times import days_of

        # a prediction counts at its own time, and a label that comes alone when it comes
        times = [
            record.get(self.at)
            if record.get(self.score) is not None or record.get(self.labelled_at) is None
            else record[self.labelled_at]
            for record in records
        ]
        if any(time is None for time in times):
            yield records
            return
        clock = np.maximum.accumulate(days_of(times, len(times), "at"))
        ends_day = np.diff(np.floor(clock)) > 0
        matures = np.diff(np.floor(clock - maturity)) > 0
        cuts = np.flatnonzero(ends_day | matures) + 1
        for first, end in pairwise([0, *cuts.tolist(), len(records)]):
            yield records[first:end]

    def predictions(self, records: Sequence[Record], *, segmented: bool) -> tuple[Any, ...]:
        """Ids, scores, times and segments of lines that have a score."""
        return (
            [record[self.id] for record in records],
            [record[self.score] for record in records],
            _times(records, self.at),
            [record.get(self.segment) for record in records] if segmented else None,
        )

    def labels(self, records: Sequence[Record]) -> tuple[Any, ...]:
        """Ids, labels and times of lines that have a label."""
        return (
            [record[self.id] for record in records],
            [record[self.label] for record in records],
            _times(records, self.labelled_at, self.at),
        )


def _having(name: str, records: Sequence[Record]) -> list[Record]:
    """The lines that have a field."""
    return [record for record in records if record.get(name) is not None]


def _times(records: Sequence[Record], *names: str) -> list[Any] | None:
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


class Quarantine:
    """Rejected lines with the reason, one JSON object per line.

    The field "text" is the line itself, so that it can be corrected and sent again.
    """

    def __init__(self, path: str, model: str, source: str) -> None:
        self.path = path
        self.n_lines = 0
        """The number of lines that were put into the file since it was opened here."""
        self.first = ""
        """The first of them, and its reason."""
        self._model = model
        self._source = source

    def keep(self, entries: Iterable[tuple[Line, str]]) -> None:
        """Add lines to the file; they are on disk when this returns."""
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        with Path(self.path).open("ab+") as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":  # a process was killed while it wrote
                    file.write(b"\n")
            for line, reason in entries:
                record = {
                    "at": now,
                    "model": self._model,
                    "source": self._source,
                    "line": line.number,
                    "reason": reason,
                    "text": line.text.decode("utf-8", "backslashreplace").rstrip("\r\n"),
                }
                file.write(json.dumps(record).encode() + b"\n")
                self.first = self.first or f"line {line.number:,} of {self._source!r}: {reason}"
                self.n_lines += 1
            file.flush()
            os.fsync(file.fileno())


@dataclass(slots=True)
class Intake:
    """Where lines go: a monitor, and a quarantine for those that it rejects."""

    monitor: Any
    fields: Fields
    quarantine: Quarantine
    key: str | None
    """The name under which the store records how far the lines were read."""
    has_times: bool | None = None
    """Whether lines have times, as determined by the first one."""

    def take(self, batch: Batch) -> None:
        """Submit lines, and record how far the input was read, in one transaction.

        A line that cannot be taken is put into the quarantine and counted, and the others are
        taken.
        """
        good = [line for line in batch.lines if line.content is not None]
        rule = "be a JSON object"
        bad = [
            (line, message_of(RefusedError("a line", rule, _start(line), _EXAMPLE)))
            for line in batch.lines
            if line.content is None
        ]
        had_times = self.has_times
        try:
            with self.monitor.transaction():
                for line in good:
                    self._check_times(line)
                self._hand_in([line.content or {} for line in good])
                self._finish(batch, bad)
        except (StoreError, OSError, MemoryError):
            raise
        except Exception:  # whatever is wrong with a line: it is found among the others
            self.has_times = had_times
            self._take_one_by_one(batch, good, bad)

    def _take_one_by_one(
        self, batch: Batch, lines: Sequence[Line], bad: Sequence[tuple[Line, str]]
    ) -> None:
        refused = list(bad)
        with self.monitor.transaction():
            for line in lines:
                try:
                    self._check(line)
                except (StoreError, MemoryError):
                    raise
                except CalibrantError as error:
                    refused.append((line, message_of(error)))
                except Exception as error:
                    refused.append((line, f"{type(error).__name__}: {error}"[:300]))
                else:
                    self._hand_in([line.content or {}])
            self._finish(batch, sorted(refused, key=lambda entry: entry[0].number))

    def _hand_in(self, records: Sequence[Record]) -> None:
        """Submit lines: the predictions and labels of each day together, day by day.

        The time of the label of a complete line is ahead of the next line and does not move the
        clock.
        """
        fields = self.fields
        for record in records:
            fields.check(record)
        for day in fields.by_day(records, self.monitor.maturity):
            predictions = _having(fields.score, day)
            labels = _having(fields.label, day)
            complete = _having(fields.score, labels)
            alone = [record for record in labels if record.get(fields.score) is None]
            if predictions:
                self.monitor.record_many(*self._predictions(predictions))
            if complete:
                self.monitor.resolve_many(*fields.labels(complete), moves_clock=False)
            if alone:
                self.monitor.resolve_many(*fields.labels(alone))

    def _predictions(self, records: Sequence[Record]) -> tuple[Any, ...]:
        segmented = self.monitor.watched.partition.has_segments
        return self.fields.predictions(records, segmented=segmented)

    def _finish(self, batch: Batch, bad: Sequence[tuple[Line, str]]) -> None:
        """Put lines into the quarantine, which is on disk before the store says that they were
        read.
        """
        if bad:
            self.quarantine.keep(bad)
            self.monitor.count_unreadable(len(bad))
        if self.key is not None and batch.place is not None:
            self.monitor.write_note(self.key, {**batch.place, "has_times": self.has_times})

    def _check(self, line: Line) -> None:
        """Raise an error for a line that the monitor would reject; store nothing."""
        from calibrant.monitor.event_columns import check_ahead

        self._check_times(line)
        content = line.content or {}
        self.fields.check(content)
        checked = []
        if content.get(self.fields.score) is not None:
            checked.append(self.monitor.check_predictions(*self._predictions([content])))
        if content.get(self.fields.label) is not None:
            checked.append(self.monitor.check_labels(*self.fields.labels([content])))
        for found in checked:
            check_ahead(found.times or (), self.monitor.clock())

    def _check_times(self, line: Line) -> None:
        """Require that all lines have times, or none: a line without a time counts as now, and
        among last year's lines it would end all days up to now.
        """
        content = line.content or {}
        names = (self.fields.at, self.fields.labelled_at)
        has_time = any(content.get(name) is not None for name in names)
        if self.has_times is None:
            self.has_times = has_time
        if has_time == self.has_times:
            return
        rule = f"have the field {self.fields.at!r}, or none" if self.has_times else "have no time"
        advice = None if self.has_times else "the first line decides"
        raise RefusedError("each line", rule, got=_start(line), advice=advice)


def _start(line: Line) -> str:
    return repr(line.text[:80].decode("utf-8", "replace").strip())
