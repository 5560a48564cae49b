"""Predictions and labels, each counted once, in whatever order and however often they arrive."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from calibrant.errors import InvalidValueError
from calibrant.monitor.model_rows import ModelRows
from calibrant.monitor.tables import PREDICTIONS, WAITING
from calibrant.monitor.times import SECONDS_A_DAY
from calibrant.sample.facts import Limits

_MANY = 1000  # predictions, of which the database should know
TOO_LATE = 2
"""Added to a label that arrived too late to count."""


@dataclass
class Live:
    """The clock of a model in a store, and its counts so far.

    Attributes
    ----------
    latest : float
        The latest time seen, in seconds since 1970, and at most the time by the clock of the store;
        it never goes back.
    counted_until, scored_until : int
        The first day not yet counted, and the first day whose scores are not yet compared.
    recorded, resolved : int
        Predictions received, and labels that will count.
    mature : int
        Predictions counted.
    labelled : int
        Counted predictions whose label was known in time.
    duplicate, conflicting : int
        Predictions or labels received again: identical, or different for the same id.
    expired : int
        Labels that arrived too late to count.
    late : int
        Predictions for a day that was already counted.
    unknown : int
        Labels whose prediction never arrived.
    unfamiliar : int
        Predictions whose score is far outside those that the calibrator was fitted to.
    quarantined : int
        Predictions of days that could not be counted.
    unreadable : int
        Lines that could not be read and are kept elsewhere.
    """

    latest: float = 0.0
    counted_until: int | None = None
    scored_until: int | None = None
    recorded: int = 0
    resolved: int = 0
    mature: int = 0
    labelled: int = 0
    duplicate: int = 0
    conflicting: int = 0
    expired: int = 0
    late: int = 0
    unknown: int = 0
    unfamiliar: int = 0
    quarantined: int = 0
    unreadable: int = 0

    @property
    def pending(self) -> int:
        """Predictions that are not counted yet."""
        return self.recorded - self.mature - self.quarantined

    @classmethod
    def of(cls, text: str | None) -> Self:
        """Read it from its text; raise any error if that is not what `write` wrote."""
        state = json.loads(text or "")
        live = cls(**state)
        latest = state.pop("latest")
        until = [state.pop("counted_until"), state.pop("scored_until")]
        numbers = [latest, *state.values(), *(day for day in until if day is not None)]
        plain = all(type(number) is int for number in numbers[1:]) and type(latest) is float
        if not plain or not 0.0 <= latest < math.inf or min(state.values()) < 0:
            raise ValueError("counts that are not whole numbers")
        return live

    def write(self, rows: ModelRows) -> None:
        """Write it, within the transaction it belongs to."""
        rows.write_text("live", json.dumps(vars(self)))


@dataclass(frozen=True, slots=True)
class Checked:
    """Predictions or labels that will be taken: their values are scores, or labels as 0 and 1.

    Times are seconds since 1970; None means now.
    """

    ids: list[str]
    values: list[Any]
    times: list[float] | None
    segments: Sequence[str | None] = ()

    @property
    def rows(self) -> Iterator[tuple[str, Any, float]]:
        """The id, the value and the time of each."""
        return zip(self.ids, self.values, self.times or (), strict=True)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What happened to submitted predictions or labels.

    Attributes
    ----------
    new : int
        Seen for the first time.
    duplicate, conflicting : int
        Received before: identical, or different for the same id. The first one is kept.
    waiting : int
        Labels that arrived before their prediction and wait for it.
    expired : int
        Labels that arrived too late to count.
    late : int
        Predictions for a day that is already counted; they do not count.
    """

    new: int = 0
    duplicate: int = 0
    conflicting: int = 0
    waiting: int = 0
    expired: int = 0
    late: int = 0

    @property
    def outcome(self) -> str:
        """What happened to the only one, if a single one was submitted."""
        return next(one.name for one in fields(self) if getattr(self, one.name))


def take_predictions(
    rows: ModelRows, live: Live, given: Checked, *, maturity: float, familiar: Limits
) -> Receipt:
    """Store predictions; attach labels that waited for them; count scores that are not familiar."""
    known = rows.by_id(PREDICTIONS, given.ids, "score", "segment")
    waiting = rows.by_id(WAITING, [one for one in given.ids if one not in known], "label", "at")
    outcomes = Counter[str]()
    new: list[tuple[Any, ...]] = []
    attached = []
    first_open = live.counted_until
    for (one, score, at), segment in zip(given.rows, given.segments, strict=True):
        day = int(at // SECONDS_A_DAY)
        earlier = known.get(one)
        if earlier is not None:
            same = earlier[1] == score and earlier[2] == segment
            outcomes["duplicate" if same else "conflicting"] += 1
            continue
        if first_open is not None and day < first_open:
            outcomes["late"] += 1
            continue
        label = None
        if one in waiting:
            label = waiting[one][1]
            attached.append(one)
            if _came_too_late(at, waiting[one][2], maturity):
                label += TOO_LATE
                live.expired += 1
            else:
                live.resolved += 1
        new.append((one, score, at, day, segment, label))
        known[one] = (one, score, segment)
        outcomes["new"] += 1
    rows.insert(PREDICTIONS, ("id", "score", "at", "day", "segment", "label"), new)
    rows.delete(WAITING, attached)
    known_size = (live.recorded // _MANY).bit_length()
    live.recorded += len(new)
    if (live.recorded // _MANY).bit_length() > known_size:  # it has doubled
        rows.count_again(PREDICTIONS)
    low, high = familiar
    live.unfamiliar += sum(not low <= score <= high for _, score, *_ in new)
    live.duplicate += outcomes["duplicate"]
    live.conflicting += outcomes["conflicting"]
    live.late += outcomes["late"]
    return Receipt(**outcomes)


def take_labels(rows: ModelRows, live: Live, given: Checked, *, maturity: float) -> Receipt:
    """Store labels. The first label of an id is kept, whatever arrives later."""
    known = rows.by_id(PREDICTIONS, given.ids, "at", "label", "day")
    strange = [one for one in given.ids if one not in known]
    waiting = {one: row[1] for one, row in rows.by_id(WAITING, strange, "label").items()}
    labels = {one: row[2] for one, row in known.items()}
    outcomes = Counter[str]()
    changed: dict[int, list[str]] = {}
    new_waiting = []
    first_open = -math.inf if live.counted_until is None else live.counted_until
    for one, code, at in given.rows:
        row = known.get(one)
        if row is None:
            if one not in waiting:
                waiting[one] = code
                new_waiting.append((one, code, at))
                outcomes["waiting"] += 1
            else:
                outcomes["duplicate" if waiting[one] == code else "conflicting"] += 1
            continue
        earlier = labels[one]
        if earlier is not None:
            outcomes["duplicate" if earlier % TOO_LATE == code else "conflicting"] += 1
            continue
        expired = row[3] < first_open or _came_too_late(row[1], at, maturity)
        labels[one] = code + TOO_LATE if expired else code
        changed.setdefault(labels[one], []).append(one)
        outcomes["expired" if expired else "new"] += 1
    for label, which in changed.items():
        rows.update(PREDICTIONS, "label", label, which)
    rows.insert(WAITING, ("id", "label", "at"), new_waiting)
    live.resolved += outcomes["new"]
    live.duplicate += outcomes["duplicate"]
    live.conflicting += outcomes["conflicting"]
    live.expired += outcomes["expired"]
    return Receipt(**outcomes)


def _came_too_late(predicted: float, labelled: float, maturity: float) -> bool:
    """Whether a label came after the age of maturity.

    With a maturity of 0, a label of the same day is in time, as a day is counted when it is over.
    """
    if maturity == 0.0:
        return labelled // SECONDS_A_DAY > predicted // SECONDS_A_DAY
    return labelled - predicted > maturity * SECONDS_A_DAY


def erase(rows: ModelRows, live: Live, name: str) -> bool:
    """Delete a prediction that is not counted yet, and what is known of its label."""
    waiting = rows.by_id(WAITING, [name], "label")
    found = rows.by_id(PREDICTIONS, [name], "day", "label")
    rows.delete(WAITING, list(waiting))
    if name not in found:
        return name in waiting
    _, day, label = found[name]
    if live.counted_until is not None and day < live.counted_until:
        rule = "be of a prediction that is not counted yet"
        raise InvalidValueError("id", rule, got="one that is mature")
    rows.delete(PREDICTIONS, [name])
    live.recorded -= 1
    live.resolved -= label in (0, 1)
    live.expired -= label is not None and label >= TOO_LATE
    return True


def forget(rows: ModelRows, live: Live, remember: float, held: Sequence[int]) -> None:
    """Delete counted predictions and waiting labels that are older than `remember` days.

    The predictions of days in quarantine are kept.
    """
    if live.counted_until is None:
        return
    oldest = live.latest / SECONDS_A_DAY - remember
    forgotten = min(int(oldest // 1), live.counted_until)
    old = rows.of(PREDICTIONS) & (PREDICTIONS.c.day < forgotten)
    rows.connection.execute(PREDICTIONS.delete().where(old & PREDICTIONS.c.day.not_in(list(held))))
    waited = rows.of(WAITING) & (WAITING.c.at < oldest * SECONDS_A_DAY)
    live.unknown += rows.connection.execute(WAITING.delete().where(waited)).rowcount
