"""The order of rows by time; rows with the same time are in random order."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, IndexArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_array, check_present, is_missing
from calibrant.params.labels import plain_number
from calibrant.text.sentences import shown

_MOST_PERIODS = 60
_RULE = "contain numbers, dates, or text of ISO 8601 dates such as 2024-01-31"


def read_times(time: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Times as numbers or as numpy dates, none of them missing.

    >>> read_times(["2024-01-31", "2023-12-01"], 2)
    array(['2024-01-31', '2023-12-01'], dtype='datetime64[D]')
    """
    mixed = isinstance(time, list | tuple) and any(isinstance(entry, str) for entry in time)
    times = (
        np.array(time, dtype=object) if mixed else as_array(time, "time")
    )  # numpy would convert numbers to text
    if times.shape not in ((n_rows,), (n_rows, 1)):
        raise InvalidValueError(
            "time", f"have one entry per score, {n_rows}", got=f"shape {times.shape}"
        )
    times = times.ravel()
    if times.dtype.kind in "OUT":
        times = _of_objects(times.astype(object))
    if times.dtype.kind not in "biufM":
        raise InvalidTypeError("time", _RULE, got=f"dtype {times.dtype}")
    check_present(np.isnat(times) if times.dtype.kind == "M" else np.isnan(times), times, "time")
    return times


def _of_objects(times: NDArray[np.object_]) -> NDArray[Any]:
    """Times given as Python objects: dates, numbers, or text."""
    missing = [is_missing(entry) or entry == "" for entry in times]
    check_present(np.array(missing, dtype=bool), times, "time")
    kinds = {type(entry) for entry in times}
    if all(issubclass(kind, int | float | np.number | Decimal) for kind in kinds):
        return np.array([plain_number(entry) for entry in times.tolist()])
    are_text = kinds <= {str, np.str_}
    if not are_text and not all(issubclass(kind, date | np.datetime64) for kind in kinds):
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InvalidTypeError("time", _RULE, got=names, advice="give one kind of entry")
    are_moments = all(issubclass(kind, datetime) for kind in kinds)
    if are_moments and any(entry.tzinfo is not None for entry in times):
        try:  # seconds since 1970
            return np.array([moment.timestamp() for moment in times.tolist()])
        except (OverflowError, OSError):
            raise InvalidValueError("time", _RULE, got="dates out of range") from None
    return np.array([_numpy_date(entry) for entry in times.tolist()], "datetime64")


def _numpy_date(entry: Any) -> Any:
    """A date unchanged, or text as a numpy date; with a time zone, converted to UTC."""
    if not isinstance(entry, str):
        return entry
    text = entry.strip()
    try:
        if len(text) > 10 and (text.endswith("Z") or "+" in text[10:] or "-" in text[10:]):
            moment = datetime.fromisoformat(text)
            return np.datetime64(int(moment.timestamp() * 1e6), "us")
        if text[:4].isdigit():  # numpy would read "today" and "NaT"
            return np.datetime64(text)
    except ValueError:
        pass
    advice = "text in another order, such as 31/01/2024, does not sort by time"
    raise InvalidValueError("time", _RULE, got=shown(entry), advice=advice)


def periods(times: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """The period of each time, and the unit of the periods: months of dates, or days or years.

    Numbers are used as they are, if there are few.

    >>> names, period = periods(np.array(["2024-01-31", "2024-02-01"], dtype="datetime64[D]"))
    >>> names.tolist(), period
    (['2024-01', '2024-02'], 'month')
    """
    if times.dtype.kind != "M":
        found = np.unique(times)
        if found.size > _MOST_PERIODS or not (found == np.floor(found)).all():
            rule = f"be dates, or whole numbers with at most {_MOST_PERIODS} values such as months"
            raise InvalidValueError("time", rule, got=f"{found.size:,} values")
        return times.astype(np.int64), "period"
    months = times.astype("datetime64[M]")
    n_months = int((months.max() - months.min()).astype(np.int64)) + 1
    unit, name = (
        ("D", "day")
        if n_months == 1
        else ("M", "month")
        if n_months <= _MOST_PERIODS
        else ("Y", "year")
    )
    return times.astype(f"datetime64[{unit}]").astype(str), name


def in_order(n_rows: int, times: NDArray[Any] | None, rng: np.random.Generator) -> IndexArray:
    """The rows in time order; without times, in their given order."""
    return np.arange(n_rows) if times is None else np.lexsort((rng.random(n_rows), times))
