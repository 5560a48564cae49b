"""Numbers as text: limits are rounded outwards, with enough digits to be informative.

Also results as JSON values.
"""

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

_DECIMALS = 3  # for a limit that is neither tiny nor close to 1
_DIGITS = 2  # significant digits of a small limit, and of a large limit's distance from 1
_LARGE_FACTOR = 10.0
_SMALLEST = 1e-12  # closer than this to 0 or 1, further digits would not be read
_WHOLE = 1e15  # from here on scores are whole numbers, or nearly, and too long to write out


def lower(value: float, decimals: int | None = None) -> str:
    """A lower limit, rounded down.

    >>> lower(0.29), lower(0.041234), lower(0.000012345), lower(0.99996)
    ('0.29', '0.041', '0.000012', '0.99996')
    """
    return _rounded(value, ROUND_FLOOR, decimals)


def upper(value: float, decimals: int | None = None) -> str:
    """An upper limit, rounded up.

    >>> upper(0.07), upper(0.041234), upper(0.000032345), upper(0.99991)
    ('0.07', '0.042', '0.000033', '0.99991')
    """
    return _rounded(value, ROUND_CEILING, decimals)


def limits(low: float, high: float) -> str:
    """A confidence interval: both limits rounded outwards, to the same number of digits.

    >>> limits(0.0000122, 0.0000309), limits(0.4949, 0.5761), limits(0.0, 1.0)
    ('0.000012 to 0.000031', '0.494 to 0.577', '0 to 1')
    """
    decimals = max(_decimals(low), _decimals(high))
    return f"{lower(low, decimals)} to {upper(high, decimals)}"


def factor_limits(low: float, high: float) -> str:
    """Limits on a factor, rounded outwards to hundredths; from 10 on to whole numbers.

    >>> factor_limits(0.8412, 1.2951), factor_limits(0.0, 14.2), factor_limits(0.0, math.inf)
    ('between 0.84 and 1.3', 'between 0 and 15', 'at least 0')
    """
    least = lower(low, decimals=0 if low >= _LARGE_FACTOR else 2)
    if math.isinf(high):
        return f"at least {least}"
    return f"between {least} and {upper(high, decimals=0 if high >= _LARGE_FACTOR else 2)}"


def nearest(value: float, decimals: int | None = None) -> str:
    """A score or an estimate, not a limit: rounded to the nearest number.

    >>> nearest(0.07), nearest(0.041234), nearest(0.000012345), nearest(0.5, decimals=2)
    ('0.07', '0.041', '0.000012', '0.5')
    """
    return _rounded(value, ROUND_HALF_EVEN, decimals)


def span(low: float, high: float) -> str:
    """A range of scores.

    >>> span(0.041234, 0.5)
    '0.041 to 0.5'
    """
    return f"{nearest(low)} to {nearest(high)}"


EDGE = ".6g"
"""The format of an edge of bins or a threshold: six digits, so that neighbours differ."""


def edge(value: float) -> str:
    """An edge of bins or a threshold.

    >>> edge(0.1234567), edge(1.0), edge(-math.inf)
    ('0.123457', '1', '-inf')
    """
    return format(value, EDGE)


def percent(share: float) -> str:
    """A share as a percentage, with at most ten digits.

    With all of its digits if it would otherwise read 100%.

    >>> percent(0.9), percent(0.999), percent(0.07), percent(1 - 0.05 / 3), percent(1 - 1e-12)
    ('90%', '99.9%', '7%', '98.33333333%', '99.9999999999%')
    """
    short = Decimal(f"{float(share):.10g}")
    return f"{_plain((short if short < 1 or share >= 1 else Decimal(repr(float(share)))) * 100)}%"


def above_cap(share: float, of_what: str = "the rows counted") -> str:
    """The end of a sentence about a cap on groups: the share of rows above the cap.

    >>> above_cap(0.0), above_cap(0.8649), above_cap(0.000432, "the weight")
    ('.', '; 86.5% of the rows counted are above that.', '; 0.043% of the weight is above that.')
    """
    if not share > 0.0:
        return "."
    verb = "is" if of_what == "the weight" else "are"
    return f"; {percent(float(nearest(share)))} of {of_what} {verb} above that."


def rows(count: int, groups: int = 0) -> str:
    """The number of rows, and of groups if there are any.

    >>> rows(1), rows(2500), rows(2500, groups=1)
    ('1 row', '2,500 rows', '2,500 rows in 1 group')
    """
    return counted(count, "row") + (f" in {counted(groups, 'group')}" if groups else "")


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "bin"), counted(3, "class", "classes")
    ('1 bin', '3 classes')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _decimals(value: float) -> int:
    """Decimals that leave two significant digits of the distance to 0 or 1, whichever is nearer."""
    distance = min(abs(value), abs(1.0 - value)) if abs(value) <= 1.0 else abs(value)
    if not math.isfinite(distance) or distance < _SMALLEST:
        return _DECIMALS
    return max(_DECIMALS, _DIGITS - 1 - math.floor(math.log10(distance)))


def _rounded(value: float, rounding: str, decimals: int | None) -> str:
    if not math.isfinite(value):
        return "infinity" if value > 0 else "-infinity" if value < 0 else "NaN"
    if abs(value) >= _WHOLE:
        return repr(float(value))
    exact = Decimal(
        repr(float(value))
    )  # the shortest repr of the double, so that 0.29 is not 0.28999...
    places = _decimals(value) if decimals is None else decimals
    return _plain(exact.quantize(Decimal(1).scaleb(-places), rounding=rounding))


def _plain(number: Decimal) -> str:
    """A number without an exponent or trailing zeros."""
    text = f"{number:f}"
    return "0" if number == 0 else text.rstrip("0").rstrip(".") if "." in text else text


_PLAIN = (str, int, bool, type(None))


def plain(value: Any) -> Any:
    """Return a copy as plain JSON values; numbers that JSON lacks become None.

    >>> plain({"limits": (0.5, math.inf), 1: None})
    {'limits': [0.5, None], '1': None}
    """
    kind = type(value)
    if kind in _PLAIN:  # nearly all values: tables have millions of them
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # numpy numbers and arrays, without importing numpy
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
