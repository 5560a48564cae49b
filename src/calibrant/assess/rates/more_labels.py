"""The approximate number of labels that would decide whether a rate is high enough, from
inconclusive limits.
"""

import math

from calibrant.assess._fewest_labels import smallest_enough
from calibrant.assess.rates.exact import fewest_positives

ENDLESS = 10**7
"""Items that stand for a population: more make no difference."""
_MOST_EXACT = 20_000  # labels; beyond, limits shrink with the root of 1 / labels - 1 / items


def labels_that_reach(
    estimate: float,
    reach: float,
    distance: float,
    n_labels: int,
    n_items: int,
    tail: float,
) -> int:
    """The number of labels at which a lower limit is at most `distance` below the estimate, if the
    estimate does not change.

    It is now `reach` below the estimate. Exact limits from labels alone show how it shrinks with
    more labels: near a rate of 1 with the number of labels, elsewhere with its root.

    >>> labels_that_reach(1.0, 0.116, 0.05, 30, 10_000, 0.025)
    72
    """
    scale = reach / max(_alone(estimate, n_labels, n_items, tail), 1.0 / n_items)

    def enough(count: int) -> bool:
        return scale * _alone(estimate, count, n_items, tail) <= distance

    if enough(n_labels):
        return n_labels
    return smallest_enough(enough, n_labels, 2 * n_labels, n_items) or n_items


def _alone(rate: float, n_labels: int, n_items: int, tail: float) -> float:
    """How far exact limits from labels alone reach below their rate."""
    if n_labels >= n_items:
        return 0.0
    if n_labels > _MOST_EXACT:
        left = (1.0 / n_labels - 1.0 / n_items) / (1.0 / _MOST_EXACT - 1.0 / n_items)
        return math.sqrt(left) * _alone(rate, _MOST_EXACT, n_items, tail)
    positives = math.floor(n_labels * rate + 1e-9)
    return rate - fewest_positives(n_items, n_labels, positives, tail) / n_items
