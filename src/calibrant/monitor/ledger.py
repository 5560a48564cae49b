"""Predictions and labels, each counted once, in whatever order and however often they arrive."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import sqlalchemy as sa

from calibrant.monitor.store import ModelRows
from calibrant.monitor.tables import PREDICTIONS, WAITING
from calibrant.sample.facts import Limits

SECONDS_A_DAY = 86_400.0
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
        rows.write_text("live", json.dumps(asdict(self)))


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
        return next(name for name, number in asdict(self).items() if number)


class _Outcomes(dict[str, int]):
    """How often each outcome occurred."""

    def add(self, name: str) -> None:
        self[name] = self.get(name, 0) + 1


def take_predictions(
    rows: ModelRows,
    live: Live,
    ids: Sequence[str],
    scores: Sequence[float],
    times: Sequence[float],
    segments: Sequence[str | None],
    maturity: float,
    familiar: Limits = (-math.inf, math.inf),
) -> Receipt:
    """Store predictions; attach labels that waited for them; count scores that are not familiar."""
    columns = (PREDICTIONS.c.score, PREDICTIONS.c.segment)
    known = rows.by_id(PREDICTIONS, ids, columns)
    waiting = rows.by_id(
        WAITING,
        [one for one in ids if one not in known],
        (WAITING.c.label, WAITING.c.at),
    )
    outcomes = _Outcomes()
    new: dict[str, dict[str, Any]] = {}
    attached = []
    first_open = live.counted_until
    for one, score, at, segment in zip(ids, scores, times, segments, strict=True):
        day = int(at // SECONDS_A_DAY)
        earlier = known.get(one)
        if earlier is not None:
            same = earlier[1] == score and earlier[2] == segment
            outcomes.add("duplicate" if same else "conflicting")
            continue
        if first_open is not None and day < first_open:
            outcomes.add("late")
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
        row = {
            "model": rows.model,
            "id": one,
            "score": score,
            "at": at,
            "day": day,
            "segment": segment,
            "label": label,
        }
        new[one] = row
        known[one] = (one, score, segment)
        outcomes.add("new")
    rows.execute(PREDICTIONS.insert(), list(new.values()))
    _delete_waiting(rows, attached)
    live.recorded += len(new)
    low, high = familiar
    live.unfamiliar += sum(not low <= row["score"] <= high for row in new.values())
    live.duplicate += outcomes.get("duplicate", 0)
    live.conflicting += outcomes.get("conflicting", 0)
    live.late += outcomes.get("late", 0)
    return Receipt(**outcomes)


def take_labels(
    rows: ModelRows,
    live: Live,
    ids: Sequence[str],
    codes: Sequence[int],
    times: Sequence[float],
    maturity: float,
) -> Receipt:
    """Store labels. The first label of an id is kept, whatever arrives later."""
    known = rows.by_id(
        PREDICTIONS,
        ids,
        (PREDICTIONS.c.at, PREDICTIONS.c.label, PREDICTIONS.c.day),
    )
    strange = [one for one in ids if one not in known]
    waiting = {one: row[1] for one, row in rows.by_id(WAITING, strange, (WAITING.c.label,)).items()}
    labels = {one: row[2] for one, row in known.items()}
    outcomes = _Outcomes()
    changed = []
    new_waiting = []
    first_open = -math.inf if live.counted_until is None else live.counted_until
    for one, code, at in zip(ids, codes, times, strict=True):
        row = known.get(one)
        if row is None:
            if one not in waiting:
                waiting[one] = code
                new_waiting.append({"model": rows.model, "id": one, "label": code, "at": at})
                outcomes.add("waiting")
            else:
                outcomes.add("duplicate" if waiting[one] == code else "conflicting")
            continue
        earlier = labels[one]
        if earlier is not None:
            outcomes.add("duplicate" if earlier % TOO_LATE == code else "conflicting")
            continue
        expired = row[3] < first_open or _came_too_late(row[1], at, maturity)
        labels[one] = code + TOO_LATE if expired else code
        changed.append({"of_model": rows.model, "row_id": one, "new_label": labels[one]})
        outcomes.add("expired" if expired else "new")
    update = PREDICTIONS.update().where(_is_row(PREDICTIONS))
    rows.execute(update.values(label=sa.bindparam("new_label")), changed)
    rows.execute(WAITING.insert(), new_waiting)
    live.resolved += outcomes.get("new", 0)
    live.duplicate += outcomes.get("duplicate", 0)
    live.conflicting += outcomes.get("conflicting", 0)
    live.expired += outcomes.get("expired", 0)
    return Receipt(**outcomes)


def _came_too_late(predicted: float, labelled: float, maturity: float) -> bool:
    """Whether a label came after the age of maturity.

    With a maturity of 0, a label of the same day is in time, as a day is counted when it is over.
    """
    if maturity == 0.0:
        return labelled // SECONDS_A_DAY > predicted // SECONDS_A_DAY
    return labelled - predicted > maturity * SECONDS_A_DAY


def _is_row(table: Any) -> Any:
    """The condition that a row has the model and the id that are parameters of a statement."""
    return (table.c.model == sa.bindparam("of_model")) & (table.c.id == sa.bindparam("row_id"))


def _delete_waiting(rows: ModelRows, ids: Sequence[str]) -> None:
    if ids:
        gone = [{"of_model": rows.model, "row_id": one} for one in ids]
        rows.execute(WAITING.delete().where(_is_row(WAITING)), gone)


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
