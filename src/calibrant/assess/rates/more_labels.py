"""The approximate number of labels that would decide whether a rate is high enough, from
inconclusive limits.
"""

import math

from calibrant.assess.rates.hypergeometric import fewest_positives

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
    low = n_labels
    high = n_labels
    while scale * _alone(estimate, high, n_items, tail) > distance:
        if high >= n_items:
            return n_items
        low = high
        high = min(2 * high, n_items)
    while high - low > 1:
        middle = (low + high) // 2
        if scale * _alone(estimate, middle, n_items, tail) > distance:
            low = middle
        else:
            high = middle
    return high


def _alone(rate: float, n_labels: int, n_items: int, tail: float) -> float:
    """How far exact limits from labels alone reach below their rate."""
    if n_labels >= n_items:
        return 0.0
    if n_labels > _MOST_EXACT:
        left = (1.0 / n_labels - 1.0 / n_items) / (1.0 / _MOST_EXACT - 1.0 / n_items)
        return math.sqrt(left) * _alone(rate, _MOST_EXACT, n_items, tail)
    positives = math.floor(n_labels * rate + 1e-9)
    return rate - fewest_positives(n_items, n_labels, positives, tail) / n_items
