"""The smallest number of labels that reaches a target."""

from collections.abc import Callable

from calibrant.errors import InvalidValueError
from calibrant.text.sentences import shown

LARGEST_PLAN = 10**12
"""The largest number of labels that can be planned."""


def fewest(enough: Callable[[int], bool], least: int, target: float) -> int:
    """A number of rows or groups that is enough while one fewer is not, by doubling and bisection.

    >>> fewest(lambda number: number >= 37, 1, 0.1)
    37
    """
    low = max(1, least)
    if enough(low):
        return low
    high = 2 * low
    while not enough(high):
        low = high
        high = 2 * high
        if high > LARGEST_PLAN:
            rule = f"be large enough for {LARGEST_PLAN:,} labels to reach it"
            raise InvalidValueError("epsilon", rule, got=shown(target))
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
