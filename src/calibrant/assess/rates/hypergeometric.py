"""The number of positives in a sample without replacement: its distribution, tails, and exact
limits.
"""

from functools import lru_cache

import numpy as np

from calibrant._typing import FloatArray, IntArray

ROUNDING = 1e-9
"""Largest relative error of a tail: a number of positives is ruled out only beyond it."""


def probabilities(n_items: int, positives: IntArray, n_drawn: int) -> FloatArray:
    """P(X = 0), ..., P(X = n_drawn), one row for each number of positives among the items.

    The ratio of neighbouring probabilities is a ratio of small integers, so their products are
    accurate for any number of items, where differences of log-factorials lose digits.

    >>> probabilities(4, np.array([2]), 2).round(4)
    array([[0.1667, 0.6667, 0.1667]])
    """
    good = np.asarray(positives, dtype=np.float64)[:, None]
    hits = np.arange(n_drawn, dtype=np.float64)
    up = (good - hits) * (n_drawn - hits)
    down = (hits + 1.0) * (n_items - good - n_drawn + hits + 1.0)
    possible = (up > 0.0) & (down > 0.0)
    steps = np.zeros(up.shape)
    np.log(up, out=steps, where=possible)
    steps -= np.log(down, out=np.zeros(up.shape), where=possible)
    logs = np.concatenate([np.zeros((len(good), 1)), np.cumsum(steps, axis=1)], axis=1)
    counts = np.arange(n_drawn + 1, dtype=np.float64)
    inside = (counts <= good) & (n_drawn - counts <= n_items - good)
    logs[~inside] = -np.inf
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def upper_tails(law: FloatArray) -> FloatArray:
    """P(X >= 0), ..., P(X >= n), and 0 at the end, summed from the small end."""
    sums = np.cumsum(law[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate([sums, np.zeros((len(law), 1))], axis=1)


@lru_cache(maxsize=4096)
def fewest_positives(n_items: int, n_drawn: int, seen: int, tail: float) -> int:
    """The smallest number of positives among the items that is not ruled out by `seen` positives
    among the drawn.

    That is the smallest K >= seen with P(X >= seen) > tail. The tail increases with K, so bisection
    finds it.

    >>> fewest_positives(100, 10, 10, 0.025), fewest_positives(100, 100, 7, 0.025)
    (71, 7)
    """
    low = seen
    high = n_items - (n_drawn - seen)
    while low < high:
        middle = (low + high) // 2
        tails = upper_tails(probabilities(n_items, np.array([middle]), n_drawn))
        if tails[0, seen] * (1.0 + ROUNDING) > tail:
            high = middle
        else:
            low = middle + 1
    return low


def positives_within(n_items: int, n_drawn: int, seen: int, tail: float) -> tuple[int, int]:
    """Exact limits on the number of positives among the items.

    Each fails with probability at most `tail`.

    >>> positives_within(100, 10, 10, 0.025)
    (71, 100)
    """
    fewest_negatives = fewest_positives(n_items, n_drawn, n_drawn - seen, tail)
    return fewest_positives(n_items, n_drawn, seen, tail), n_items - fewest_negatives
