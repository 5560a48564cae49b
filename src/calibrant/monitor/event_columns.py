"""Ids, times and segments of predictions and labels, as they are stored."""

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.monitor.times import SECONDS_A_DAY, days_of
from calibrant.text.sentences import shown

_LONGEST = 200  # characters of an id, or of the name of a model
_AHEAD = 300.0  # seconds that a time may be ahead of the clock of the store, because clocks differ
_DATES = (-719_162.0, 2_932_896.0)  # the years 1 to 9999, in days


def ids_of(ids: Any) -> list[str]:
    """Ids as text: text and whole numbers, none missing."""
    names = _listed(ids, "ids")
    for name in names:
        if isinstance(name, bool) or not isinstance(name, str | int | np.integer):
            raise InvalidTypeError("id", "be text or a whole number", got=shown(name))
        if not isinstance(name, str) and abs(int(name)) >= 10**_LONGEST:
            raise InvalidValueError("id", f"have 1 to {_LONGEST} characters", got="more digits")
    found = [str(name) for name in names]
    if not all(map(_is_storable, found)):
        raise InvalidValueError("id", _STORABLE)
    return found


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InvalidTypeError(name, f"be a list of {name}", got=shown(values))
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


_STORABLE = f"have 1 to {_LONGEST} characters that can be stored: no nulls, no surrogates"


def _is_storable(text: str) -> bool:
    """Whether every database can store a name."""
    if text.isascii():
        return 0 < len(text) <= _LONGEST and "\x00" not in text
    is_unicode = not any("\ud800" <= letter <= "\udfff" for letter in text)
    return len(text) <= _LONGEST and "\x00" not in text and is_unicode


def stored_name(name: Any) -> str:
    """The name of a model."""
    if not isinstance(name, str):
        raise InvalidTypeError("name", "be text", got=shown(name))
    if not _is_storable(name):
        raise InvalidValueError("name", _STORABLE, got=shown(name))
    return name


def segments_of(segments: Any) -> list[Any]:
    """Segments as text, numbers or truth values, which a store can keep."""
    found = _listed(segments, "segments")
    plain = [entry.item() if isinstance(entry, np.generic) else entry for entry in found]
    for entry in plain:
        if not isinstance(entry, str | int | float) or (
            isinstance(entry, float) and not math.isfinite(entry)
        ):
            raise InvalidTypeError("segment", "be text, a number or a bool", got=shown(entry))
    return plain


def seconds_of(at: Any, n_rows: int) -> list[float]:
    """Times as seconds since 1970."""
    entries = [at] * n_rows if isinstance(at, str | date | int | float) else at
    days = days_of(entries if isinstance(entries, np.ndarray) else list(entries), n_rows, "at")
    first, last = _DATES
    strange = days[~((days >= first) & (days <= last))]
    if strange.size:
        rule = "be a date in the years 1 to 9999, or a number of days since 1970"
        raise InvalidValueError("at", rule, got=f"{float(strange[0]):g} days")
    seconds: list[float] = (days * SECONDS_A_DAY).tolist()
    return seconds


def check_ahead(times: Sequence[float], now: float) -> None:
    """Raise an error for times that are ahead of the clock of the store by more than clocks
    differ.
    """
    latest = max(times, default=0.0)
    if latest - now <= _AHEAD:
        return
    raise InvalidValueError(
        "at",
        f"be at most {_AHEAD / 60.0:g} minutes ahead of the clock of the store",
        got=f"{_moment(latest)}, where it is {_moment(now)} now",
        advice="check the clocks; times are in UTC",
    )


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def check_lengths(ids: list[str], **columns: Any) -> None:
    """Raise an error for a given column that does not have one entry per id."""
    for name, column in columns.items():
        if column is not None and len(column) != len(ids):
            rule = f"have one entry per id, {len(ids)}"
            raise InvalidValueError(name, rule, got=str(len(column)))


def day_of(seconds: float, maturity: float = 0.0) -> int:
    """The day of a time, or the day that is `maturity` days old at that time."""
    return math.floor(seconds / SECONDS_A_DAY - maturity)
