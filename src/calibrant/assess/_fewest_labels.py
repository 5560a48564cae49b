"""The smallest number of labels that reaches a target."""

from collections.abc import Callable

from calibrant.errors import InvalidValueError
from calibrant.text.sentences import shown

LARGEST_PLAN = 10**12
"""The largest number of labels that can be planned."""


def fewest(enough: Callable[[int], bool], least: int, target: float) -> int:
    """The smallest number of rows or groups, from `least` on, that is enough for a target.

    >>> fewest(lambda number: number >= 37, 1, 0.1)
    37
    """
    low = max(1, least)
    if enough(low):
        return low
    found = smallest_enough(enough, low, 2 * low, LARGEST_PLAN)
    if found is None:
        rule = f"be large enough for {LARGEST_PLAN:,} labels to reach it"
        raise InvalidValueError("epsilon", rule, got=shown(target))
    return found


def smallest_enough(enough: Callable[[int], bool], low: int, high: int, most: int) -> int | None:
    """A number above `low` that is enough while one fewer is not, by doubling `high` and bisection.

    None if `most` is not enough.
    """
    high = min(high, most)
    while not enough(high):
        if high >= most:
            return None
        low = high
        high = min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
