"""Compare the counts of a batch with those of a pool, as independent standard normal numbers."""

import numpy as np
from scipy.special import ndtri

from calibrant._typing import BoolArray, FloatArray, IntArray

# standard deviations, and counts, beyond which a hypergeometric distribution has no mass that a
# double shows
_REACH = 40.0
_MOST_TERMS = 4_000_000  # over all cells
_TINY = 1e-300


def exact_scores(
    pool_rows: IntArray,
    pool_hits: IntArray,
    rows: IntArray,
    hits: IntArray,
    uniforms: FloatArray,
) -> FloatArray:
    """Return one number per cell, N(0, 1) if the batch has the same distribution as the pool.

    Given the total number of hits in pool and batch, the hits of the batch are hypergeometric. With
    F its distribution function and f its probabilities, u = F(s - 1) + V f(s) is uniform if V is
    uniform, and z = Phi^-1(u).

    Notes
    -----
    Let the pool of a cell grow by each batch, and let all labels be exchangeable. Then the z of all
    batches are independent. Backwards in time: u_t is uniform given the pool after batch t and all
    later pools, because which of the pooled labels came last is a random choice. The later u are
    functions of these pools and of their own V. So u_t is independent of all later u. Cells are
    independent given their totals.

    Probabilities are products of the ratios of neighbours, divided by their sum: nothing large
    cancels.

    >>> half = np.array([0.5])
    >>> exact_scores(np.array([4]), np.array([2]), np.array([2]), np.array([1]), half).round(12)
    array([0.])
    """
    totals = pool_rows + rows
    successes = pool_hits + hits
    first, last = _support(totals, successes, rows, hits)
    below = np.zeros(rows.size)
    above = np.zeros(rows.size)
    widest = int((last - first).max(initial=0)) + 1
    step = max(1, _MOST_TERMS // widest)
    for start in range(0, rows.size, step):
        part = slice(start, start + step)
        below[part], above[part] = _tails(
            totals[part],
            successes[part],
            rows[part],
            hits[part],
            first[part],
            last[part],
            uniforms[part],
        )
    low = ndtri(np.maximum(below, _TINY))
    high = -ndtri(np.maximum(above, _TINY))
    return np.asarray(np.where(below < above, low, high))


def _support(
    totals: IntArray, successes: IntArray, rows: IntArray, hits: IntArray
) -> tuple[IntArray, IntArray]:
    """The smallest and the largest count that the batch may have, without virtually impossible
    ones.
    """
    n = totals.astype(np.float64)
    share = successes / np.maximum(n, 1.0)
    mean = rows * share
    variance = mean * (1.0 - share) * (n - rows) / np.maximum(n - 1.0, 1.0)
    reach = _REACH * (np.sqrt(np.maximum(variance, 0.0)) + 1.0)
    least = np.maximum(0, rows - (totals - successes))
    most = np.minimum(rows, successes)
    first = np.maximum(least, np.floor(mean - reach).astype(np.int64))
    last = np.minimum(most, np.ceil(mean + reach).astype(np.int64))
    return np.minimum(first, hits), np.maximum(last, hits)


def _tails(
    totals: IntArray,
    successes: IntArray,
    rows: IntArray,
    hits: IntArray,
    first: IntArray,
    last: IntArray,
    uniforms: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The randomised probabilities of fewer hits and of more hits; they add up to 1."""
    counts = first[:, None] + np.arange(int((last - first).max(initial=0)) + 1)
    inside: BoolArray = counts <= last[:, None]
    before = counts[:, :-1].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        gained = (successes[:, None] - before) * (rows[:, None] - before)
        lost = (before + 1.0) * (
            totals[:, None] - successes[:, None] - rows[:, None] + before + 1.0
        )
        ratios = np.where(inside[:, 1:], np.log(gained) - np.log(lost), -np.inf)
    logs = np.concatenate([np.zeros((rows.size, 1)), np.cumsum(ratios, axis=1)], axis=1)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    mass = weights.sum(axis=1)
    at = weights[np.arange(rows.size), hits - first]
    fewer = np.where(counts < hits[:, None], weights, 0.0).sum(axis=1)
    more = np.where(counts > hits[:, None], weights, 0.0).sum(axis=1)
    return (fewer + uniforms * at) / mass, (more + (1.0 - uniforms) * at) / mass
