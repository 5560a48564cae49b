"""Hand lines of predictions and labels to a monitor; put those that cannot be taken aside."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from calibrant.cli._errors import RefusedError, message_of
from calibrant.cli._line_source import Batch, Line
from calibrant.cli._quarantine import Quarantine
from calibrant.errors import CalibrantError, StoreError

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


@dataclass(slots=True)
class Intake:
    """What takes lines: a monitor, and a quarantine for those that it does not take."""

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
        bad = [(line, _not_json(line)) for line in batch.lines if line.content is None]
        had_times = self.has_times
        try:
            with self.monitor.transaction():
                for line in good:
                    self._check_times(line)
                hand_in(self.monitor, [line.content or {} for line in good], self.fields)
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
                    hand_in(self.monitor, [line.content or {}], self.fields)
            self._finish(batch, sorted(refused, key=lambda entry: entry[0].number))

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
        """Raise an error for a line that would not be taken; store nothing."""
        from calibrant.monitor.event_columns import check_ahead

        self._check_times(line)
        content = line.content or {}
        check_fields(content, self.fields)
        checked = []
        if content.get(self.fields.score) is not None:
            columns = _predictions(self.monitor, [content], self.fields)
            checked.append(self.monitor.check_predictions(*columns))
        if content.get(self.fields.label) is not None:
            checked.append(self.monitor.check_labels(*_labels([content], self.fields)))
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
        if has_time != self.has_times:
            rule = f"have the field {self.fields.at!r}, or none"
            if not self.has_times:
                raise RefusedError(
                    "each line", "have no time", got=_start(line), advice="the first line decides"
                )
            raise RefusedError("each line", rule, got=_start(line))

    def keep_all(self, lines: Sequence[Line], error: CalibrantError) -> None:
        """Put lines that do not come again into the quarantine, because the store failed."""
        reason = f"not in the store: {message_of(error)}"
        if lines:
            self.quarantine.keep([(line, reason) for line in lines])


def _start(line: Line) -> str:
    return repr(line.text[:80].decode("utf-8", "replace").strip())


def _not_json(line: Line) -> str:
    """What is wrong with a line, and how a line should look."""
    return message_of(RefusedError("a line", "be a JSON object", got=_start(line), advice=_EXAMPLE))


def hand_in(monitor: Any, records: Sequence[Mapping[str, Any]], fields: Fields) -> None:
    """Submit lines to a monitor: the predictions and labels of each day together, day by day.

    A line with a score is a prediction, and a line with a label is a label. A line with both is
    complete, such as a row of an archive: the time of its label is ahead of the next line and does
    not move the clock.
    """
    for record in records:
        check_fields(record, fields)
    for day in _by_day(records, fields, monitor.maturity):
        predictions = [record for record in day if record.get(fields.score) is not None]
        labels = [record for record in day if record.get(fields.label) is not None]
        complete = [record for record in labels if record.get(fields.score) is not None]
        alone = [record for record in labels if record.get(fields.score) is None]
        if predictions:
            monitor.record_many(*_predictions(monitor, predictions, fields))
        if complete:
            monitor.resolve_many(*_labels(complete, fields), moves_clock=False)
        if alone:
            monitor.resolve_many(*_labels(alone, fields))


def check_fields(record: Mapping[str, Any], fields: Fields) -> None:
    """Raise an error for a line without an id, or without both a score and a label."""
    has_score = record.get(fields.score) is not None
    has_label = record.get(fields.label) is not None
    if record.get(fields.id) is None or not (has_score or has_label):
        rule = f"have the field {fields.id!r}, and {fields.score!r} or {fields.label!r}"
        raise RefusedError("each line", rule, got=str(record)[:80], advice=_ADVICE)
    for name in (fields.label, fields.at, fields.labelled_at):
        if isinstance(record.get(name), list | dict):
            raise RefusedError(f"the field {name!r}", "be one value", got=str(record[name])[:80])
    if has_score and not _is_number(record[fields.score]):
        got = str(record[fields.score])[:80]
        raise RefusedError(f"the field {fields.score!r}", "be a number", got=got)
    for name in (fields.at, fields.labelled_at):
        if isinstance(record.get(name), bool):
            rule = "be a date or a number of days"
            raise RefusedError(f"the field {name!r}", rule, got=str(record[name]))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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


def _predictions(
    monitor: Any, records: Sequence[Mapping[str, Any]], fields: Fields
) -> tuple[Any, ...]:
    """Ids, scores, times and segments of lines that have a score."""
    segments = None
    if monitor.watched.partition.has_segments:
        segments = [record.get(fields.segment) for record in records]
    return (
        [record[fields.id] for record in records],
        [record[fields.score] for record in records],
        _times(records, fields.at),
        segments,
    )


def _labels(records: Sequence[Mapping[str, Any]], fields: Fields) -> tuple[Any, ...]:
    """Ids, labels and times of lines that have a label."""
    return (
        [record[fields.id] for record in records],
        [record[fields.label] for record in records],
        _times(records, fields.labelled_at, fields.at),
    )
