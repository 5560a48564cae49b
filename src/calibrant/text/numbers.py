"""Numbers as text: limits are rounded outwards, with enough digits to be informative.

Also results as JSON values.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

_DECIMALS = 3  # for a limit that is neither tiny nor close to 1
_DIGITS = 2  # significant digits of a small limit, and of a large limit's distance from 1
_SMALL_P = 0.001
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


def short_edges(lows: Sequence[float], highs: Sequence[float]) -> tuple[list[str], list[str]]:
    """Where ranges begin and end, in the fewest digits that distinguish the ends of each range; at
    least two.

    >>> short_edges([-math.inf, 0.016895], [0.016895, 0.0346435])
    (['-inf', '0.017'], ['0.017', '0.035'])
    >>> short_edges([0.12341, 654.0], [0.12344, 688.0])
    (['0.12341', '654'], ['0.12344', '688'])
    """
    for digits in range(2, 18):
        starts, ends = ([_significant(value, digits) for value in end] for end in (lows, highs))
        ranges = zip(lows, highs, starts, ends, strict=True)
        if all(low == high or start != end for low, high, start, end in ranges):
            break
    return starts, ends


def _significant(value: float, digits: int) -> str:
    """A number with so many significant digits, and all digits before the decimal point."""
    if not math.isfinite(value) or abs(value) >= _WHOLE:
        return edge(value)
    before = len(str(int(abs(value)))) if abs(value) >= 1.0 else 0
    return _plain(Decimal(f"{value:.{max(digits, before) - 1}e}"))


def percent(share: float) -> str:
    """A share as a percentage, with at most ten digits.

    With all of its digits if it would otherwise read 100%.

    >>> percent(0.9), percent(0.999), percent(0.07), percent(1 - 0.05 / 3), percent(1 - 1e-12)
    ('90%', '99.9%', '7%', '98.33333333%', '99.9999999999%')
    """
    short = Decimal(f"{float(share):.10g}")
    return f"{_plain((short if short < 1 or share >= 1 else Decimal(repr(float(share)))) * 100)}%"


def per_cent(rounded: str) -> str:
    """A share that is already rounded, in per cent.

    >>> per_cent(nearest(0.798)), per_cent(upper(0.8356)), per_cent("0.5")
    ('79.8%', '83.6%', '50%')
    """
    return f"{hundredths(rounded)}%"


def per_cent_limits(low: float, high: float) -> str:
    """Limits on a share in per cent, rounded outwards; a trivial limit is left out.

    >>> per_cent_limits(0.7612, 0.8351), per_cent_limits(0.0, 0.2), per_cent_limits(0.9, 1.0)
    ('76.1 to 83.6%', 'at most 20%', 'at least 90%')
    """
    if low <= 0.0 < high < 1.0:
        return f"at most {per_cent(upper(high))}"
    if 0.0 < low < 1.0 <= high:
        return f"at least {per_cent(lower(low))}"
    return f"{' to '.join(map(hundredths, limits(low, high).split(' to ')))}%"


def points(rounded: str) -> str:
    """A difference of shares that is already rounded, in percentage points.

    >>> points("0.047"), points("0.01"), points(upper(0.0236))
    ('4.7 points', '1 point', '2.4 points')
    """
    number = hundredths(rounded)
    return f"{number} point{'' if number == '1' else 's'}"


def points_limits(low: float, high: float) -> str:
    """Limits on a difference of shares, in percentage points, rounded outwards.

    >>> points_limits(-0.0441, 0.3372)
    '-4.5 to 33.8 points'
    """
    return f"{' to '.join(map(hundredths, limits(low, high).split(' to ')))} points"


def hundredths(rounded: str) -> str:
    """A number that is already rounded, times 100.

    >>> hundredths("0.047"), hundredths("1")
    ('4.7', '100')
    """
    return rounded if rounded[-1:] in "yN" else _plain(Decimal(rounded) * 100)


def p_value(value: float) -> str:
    """A p-value, rounded up.

    >>> p_value(0.0112), p_value(0.0000012), p_value(1.0)
    ('p = 0.012', 'p < 0.001', 'p = 1')
    """
    return f"p < {_SMALL_P:g}" if value < _SMALL_P else f"p = {upper(value, decimals=3)}"


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
