"""Late labels: each row counts once, at a fixed age, with the label known by then.

If labels were counted as they arrive, the class that is known sooner would be overrepresented at
first. With `maturity`, a row counts when it reaches that age. Y^W is 1 if the row is known to be
positive by then, and 0 otherwise; later corrections are ignored. The calibration labels must be Y^W
too: the labels known when a row had that age, with unknown ones counted as negative.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray, CodeArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_array, is_missing
from calibrant.params.labels import Classes, classes_of, encode_labels
from calibrant.params.rules import Number
from calibrant.sample.time_order import read_times

Age: TypeAlias = float | timedelta | None
"""A number of days, or a timedelta."""
Time: TypeAlias = date | str | float | None
"""A moment: a date, its text, or a number of days."""

SECONDS_A_DAY = 86_400.0
_DAYS = Number("a number of days >= 0, or a timedelta", 0.0)


def maturity_days(maturity: Age) -> float | None:
    """The age, in days, at which a row counts; None if labels are known immediately.

    >>> maturity_days(timedelta(hours=36)), maturity_days(7), maturity_days(None)
    (1.5, 7.0, None)
    """
    if maturity is None:
        return None
    if isinstance(maturity, timedelta):
        maturity = maturity.total_seconds() / SECONDS_A_DAY
    return _DAYS.check("maturity", maturity)


@dataclass(frozen=True, slots=True, eq=False)
class KnownLabels:
    """Labels as 0 and 1, with 0 for unknown ones, and which of them are unknown."""

    codes: CodeArray
    unknown: BoolArray


def known_labels(
    y: ArrayLike,
    classes: Classes,
    maturity: float | None,
    at: ArrayLike | None,
    labelled_at: ArrayLike | None,
    now: Time,
) -> KnownLabels:
    """Labels at the age of maturity; without a maturity, all of them must be known."""
    labels = as_array(y, "y").ravel()
    if maturity is None:
        if labelled_at is not None or now is not None:
            rule = "be None for a monitor without maturity"
            raise InvalidTypeError("labelled_at and now", rule, advice="set maturity, in days")
        codes, _ = encode_labels(
            y, classes=classes_of(y, classes), pos_label=classes.positive, score_columns=1
        )
        return KnownLabels(codes, np.zeros(codes.size, dtype=bool))
    missing = missing_labels(labels)
    missing |= _too_late(labels.size, maturity, at, labelled_at, now)
    known = _filled(labels, missing, classes.negative)
    codes, _ = encode_labels(
        known,
        classes=classes_of(known, classes),
        pos_label=classes.positive,
        score_columns=1,
    )
    codes = np.where(missing, 0, codes).astype(np.uint8)
    return KnownLabels(codes, missing)


def _filled(labels: NDArray[Any], missing: BoolArray, negative: Any) -> Any:
    """Labels, with missing ones replaced by the negative label."""
    if labels.dtype.kind in "bif" and isinstance(negative, int | float | np.number):
        return np.where(missing, negative, labels)
    filled = labels.astype(object)
    filled[missing] = negative
    return filled.tolist()


def missing_labels(labels: NDArray[Any]) -> BoolArray:
    """Which labels are None or NaN."""
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind in "OT":
        return np.array([is_missing(entry) for entry in labels.tolist()], dtype=bool)
    return np.zeros(labels.size, dtype=bool)


def _too_late(
    n_rows: int,
    maturity: float,
    at: ArrayLike | None,
    labelled_at: ArrayLike | None,
    now: Time,
) -> BoolArray:
    """Which labels arrived after the age of maturity; raise an error for rows that are not that
    old.
    """
    late = np.zeros(n_rows, dtype=bool)
    if at is None:
        if labelled_at is not None or now is not None:
            raise InvalidTypeError("at", "be given with labelled_at or now", got="None")
        return late
    predicted = days_of(at, n_rows, "at")
    if now is not None:
        age = days_of([now], 1, "now")[0] - predicted
        if (age < maturity).any():
            got = f"{int((age < maturity).sum()):,} younger rows"
            advice = "hold them back until they are; calibrant.monitor.Monitor does this for you"
            raise InvalidValueError(
                "rows", f"be at least {maturity:g} days old", got=got, advice=advice
            )
    if labelled_at is not None:
        times = as_array(labelled_at, "labelled_at").ravel()
        known = ~missing_labels(times) if times.dtype.kind != "M" else ~np.isnat(times)
        if times.size != n_rows:
            raise InvalidValueError(
                "labelled_at", f"have one entry per score, {n_rows}", got=str(times.size)
            )
        taken = np.flatnonzero(known)
        waited = days_of(times[taken], taken.size, "labelled_at") - predicted[taken]
        late[taken[waited > maturity]] = True
    return late


def _in_utc(entry: Any) -> Any:
    """A datetime with a time zone, converted to UTC without one; anything else unchanged."""
    if isinstance(entry, datetime) and entry.tzinfo is not None:
        return entry.astimezone(UTC).replace(tzinfo=None)
    return entry


def days_of(times: Any, n_rows: int, name: str) -> NDArray[np.float64]:
    """Times as numbers of days: numbers unchanged, dates as days since 1970.

    >>> days_of(["1970-01-02", "1970-01-03T12:00"], 2, "at")
    array([1. , 2.5])
    """
    if n_rows == 0:
        return np.zeros(0)
    if isinstance(times, list | tuple):
        times = [_in_utc(entry) for entry in times]
    found = read_times(times, n_rows)
    if found.dtype.kind == "M":
        return np.asarray(
            (found - np.datetime64(0, "s")) / np.timedelta64(1, "D"), dtype=np.float64
        )
    return found.astype(np.float64)
