"""Days, weeks and blocks: units that may be independent where rows are not."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, IndexArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.monitor.late_labels import days_of
from calibrant.params.arrays import as_array
from calibrant.sample.time_order import read_times

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


def named_blocks(blocks: ArrayLike | None, n_rows: int) -> tuple[IndexArray, list[str]]:
    """The index of each row's block, in order of first occurrence, and the name of each."""
    if blocks is None:
        raise InvalidTypeError(
            "blocks", "name the block of each row for a monitor of blocks", got="None"
        )
    names = as_array(blocks, "blocks").ravel()
    if names.size != n_rows:
        raise InvalidValueError(
            "blocks", f"have one entry per score, {n_rows}", got=str(names.size)
        )
    number: dict[Hashable, int] = {}
    numbers = [number.setdefault(name, len(number)) for name in names.tolist()]
    if any(name is None or name != name for name in number):  # NaN is not equal to itself
        raise InvalidValueError("blocks", "have no missing values", got="a missing one")
    return np.array(numbers, dtype=np.intp), [str(name) for name in number]


def named_units(
    unit: str, n_rows: int, at: ArrayLike | None, blocks: ArrayLike | None
) -> tuple[IndexArray, list[str]]:
    """The index of each row's day, week or block, and the name of each."""
    if unit == "block":
        return named_blocks(blocks, n_rows)
    if at is None:
        raise InvalidTypeError("at", f'be given for unit="{unit}"', got="None")
    numbers, days = numbered_units(days_of(at, n_rows, "at"), unit)
    return numbers, [unit_name(day, unit) for day in days]


def check_unit_order(names: Sequence[str], last: str | None, unit: str) -> None:
    """Raise an error for a unit seen before: all its rows must be in one batch, and units must come
    in time order.

    Blocks may come in any order.
    """
    if last is None or not names:
        return
    if last in names or (unit != "block" and names[0] < last):
        rule = f"have all rows of a {unit} in one batch, and later ones later"
        where = "blocks" if unit == "block" else "at"
        raise InvalidValueError(where, rule, got=f"{names[0]} after {last}")


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
