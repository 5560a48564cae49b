"""Ids and times of predictions and labels, as they are stored."""

import math
import time
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.monitor.late_labels import SECONDS_A_DAY, days_of
from calibrant.text.sentences import shown

_LONGEST_ID = 200
_AHEAD = 1.0  # days that a time may lie in the future, because clocks differ


def ids_of(ids: Any) -> list[str]:
    """Ids as text: text and whole numbers, none missing."""
    if isinstance(ids, str | bytes) or not hasattr(ids, "__len__"):
        raise InvalidTypeError("ids", "be a list of ids", got=shown(ids))
    names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    for name in names:
        if isinstance(name, bool) or not isinstance(name, str | int | np.integer):
            raise InvalidTypeError("id", "be text or a whole number", got=shown(name))
    found = [str(name) for name in names]
    if any(not name or len(name) > _LONGEST_ID or "\x00" in name for name in found):
        raise InvalidValueError("id", f"have 1 to {_LONGEST_ID} characters, none of them null")
    return found


def seconds_of(at: Any, n_rows: int) -> list[float]:
    """Times as seconds since 1970; none may lie more than a day in the future."""
    entries = [at] * n_rows if isinstance(at, str | date | int | float) else at
    days = days_of(entries if isinstance(entries, np.ndarray) else list(entries), n_rows, "at")
    ahead = float(days.max(initial=0.0)) - time.time() / SECONDS_A_DAY
    if ahead > _AHEAD:
        latest = (
            datetime.fromtimestamp(float(days.max()) * SECONDS_A_DAY, UTC)
            if ahead < 1e6
            else "a far future"
        )
        raise InvalidValueError(
            "at",
            "lie at most a day in the future",
            got=str(latest),
            advice="check the clocks",
        )
    seconds: list[float] = (days * SECONDS_A_DAY).tolist()
    return seconds


def check_lengths(ids: list[str], **columns: Any) -> None:
    """Raise an error for a given column that does not have one entry per id."""
    for name, column in columns.items():
        if column is not None and len(column) != len(ids):
            rule = f"have one entry per id, {len(ids)}"
            raise InvalidValueError(name, rule, got=str(len(column)))


def day_of(seconds: float, maturity: float = 0.0) -> int:
    """The day of a time, or the day that is `maturity` days old at that time."""
    return math.floor(seconds / SECONDS_A_DAY - maturity)
