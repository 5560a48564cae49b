"""Times of rows: late labels, and the days and weeks that may be independent where rows are not.

Each row counts once, at a fixed age, with the label known by then.

If labels were counted as they arrive, the class that is known sooner would be overrepresented at
first. With `maturity`, a row counts when it reaches that age. Y^W is 1 if the row is known to be
positive by then, and 0 otherwise; later corrections are ignored. The calibration labels must be Y^W
too: the labels known when a row had that age, with unknown ones counted as negative.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, BoolArray, CodeArray, IndexArray
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


def codes_of(labels: Any, classes: Classes) -> CodeArray:
    """Labels as 0 and 1."""
    known = classes_of(labels, classes)
    return encode_labels(labels, classes=known, pos_label=classes.positive, score_columns=1)[0]


def known_labels(
    y: ArrayLike, classes: Classes, maturity: float | None
) -> tuple[CodeArray, BoolArray]:
    """Labels at the age of maturity as 0 and 1, with 0 for unknown ones, and which of them are
    unknown; without a maturity, all of them must be known.
    """
    if maturity is None:
        codes = codes_of(y, classes)
        return codes, np.zeros(codes.size, dtype=bool)
    labels = as_array(y, "y").ravel()
    missing = missing_labels(labels)
    codes = np.zeros(labels.size, dtype=np.uint8)
    known = labels[~missing]
    if known.size or not labels.size:
        codes[~missing] = codes_of(known, classes)
    return codes, missing


def missing_labels(labels: NDArray[Any]) -> BoolArray:
    """Which labels are None or NaN."""
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind in "OT":
        return np.array([is_missing(entry) for entry in labels.tolist()], dtype=bool)
    return np.zeros(labels.size, dtype=bool)


def days_of(times: Any, n_rows: int, name: str) -> NDArray[np.float64]:
    """Times as numbers of days: numbers unchanged, dates as days since 1970.

    >>> days_of(["1970-01-02", "1970-01-03T12:00"], 2, "at")
    array([1. , 2.5])
    """
    if n_rows == 0:
        return np.zeros(0)
    if isinstance(times, list | tuple):  # datetimes with a time zone become UTC without one
        times = [
            entry.astimezone(UTC).replace(tzinfo=None)
            if isinstance(entry, datetime) and entry.tzinfo is not None
            else entry
            for entry in times
        ]
    found = read_times(times, n_rows)
    if found.dtype.kind == "M":
        return np.asarray(
            (found - np.datetime64(0, "s")) / np.timedelta64(1, "D"), dtype=np.float64
        )
    return found.astype(np.float64)


_DAYS_A_WEEK = 7
_MONDAY = 3  # 1970-01-01 was a Thursday


def numbered_units(days: NDArray[np.float64], unit: str) -> tuple[IndexArray, list[int]]:
    """The index of each row's unit, in time order, and the first day of each unit, in days since
    1970.

    >>> numbered_units(np.array([4.5, 3.0, 11.0]), "week")
    (array([1, 0, 2]), [-3, 4, 11])
    """
    day = np.floor(days).astype(np.int64)
    if unit == "week":
        day = (day + _MONDAY) // _DAYS_A_WEEK * _DAYS_A_WEEK - _MONDAY
    kinds, numbers = np.unique(day, return_inverse=True)
    return np.asarray(numbers, dtype=np.intp), kinds.tolist()


def unit_name(day: int, unit: str) -> str:
    """The name of a day, or of a week by its first day; names sort by time.

    >>> unit_name(0, "day"), unit_name(-3, "week")
    ('1970-01-01', 'week of 1969-12-29')
    """
    date = str(np.datetime64(day, "D"))
    return date if unit == "day" else f"week of {date}"


def named_units(unit: str, n_rows: int, at: ArrayLike | None) -> tuple[IndexArray, list[str]]:
    """The index of each row's day or week, and the name of each."""
    if at is None:
        raise InvalidTypeError("at", f'be given for unit="{unit}"', got="None")
    numbers, days = numbered_units(days_of(at, n_rows, "at"), unit)
    return numbers, [unit_name(day, unit) for day in days]


def check_unit_order(names: Sequence[str], last: str | None, unit: str) -> None:
    """Raise an error for a unit seen before: all its rows must be in one batch, and units must come
    in time order.
    """
    if last is not None and names and names[0] <= last:
        rule = f"have all rows of a {unit} in one batch, and later ones later"
        raise InvalidValueError("at", rule, got=f"{names[0]} after {last}")


def weekday_of(name: str) -> int:
    """The weekday of a day named by its date: 0 for Monday.

    >>> weekday_of("2026-02-02")
    0
    """
    try:
        day = np.datetime64(name, "D")
    except ValueError as error:
        rule = "be a date, such as 2026-02-01, where days are ranked by weekday"
        raise InvalidValueError("at", rule, got=repr(name)) from error
    return int((day.astype(np.int64) + _MONDAY) % _DAYS_A_WEEK)


def shown_time(at: Any, n_rows: int) -> str | None:
    """The latest time of a batch as text: to the second for dates, unchanged for numbers."""
    if n_rows == 0:
        return None
    latest = read_times(at, n_rows).max()
    if isinstance(latest, np.datetime64):
        day = latest.astype("datetime64[D]")
        return str(day) if latest == day else str(latest.astype("datetime64[s]"))
    return f"{float(latest):g}"
