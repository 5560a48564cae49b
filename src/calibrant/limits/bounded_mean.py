"""Limits for the mean of outcomes in [0, 1], by betting or by Chernoff's bound."""

import math

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IndexArray, IntArray
from calibrant.limits.bets import Bets
from calibrant.limits.interval import Interval
from calibrant.params.rules import OPEN_UNIT

_BISECTIONS = 30
_MOST_STAKED = 0.5  # largest share of the capital that one bet can lose
_MOST_LOST = 0.9  # largest share that a bet whose stake is fixed beforehand can lose
_BET_ON_SINGLY = 2**13  # outcomes that are bet on one by one; later ones are bet on in blocks
_LARGEST_BLOCK = 64


def lower_mean(mean: float, n: int, tail: float) -> float:
    """Lower limit for the expectation of `n` independent outcomes in [0, 1] with the average
    `mean`.

    Claimed: the expectation of the average lies below the limit with probability at most `tail`
    (Hoeffding 1963, Theorem 1: n kl(mean, q) <= ln(1 / tail)). The limit increases with `mean`, so
    a lower bound on the average may be passed.

    >>> round(lower_mean(0.05, 1000, 0.05), 4)
    0.0349
    """
    if mean <= 0.0:
        return 0.0
    bound = -math.log(tail) / n
    if mean >= 1.0:
        return math.exp(-bound)
    # kl(mean, q) is convex in q and both starting points lie below the limit, so Newton's steps
    # approach it from below
    pinsker = mean - math.sqrt(2.0 * min(mean, 0.25) * bound)
    limit = max(pinsker, mean * math.exp(((1.0 - mean) * math.log1p(-mean) - bound) / mean))
    ruled_out = limit
    while 0.0 < limit < mean and (excess := _relative_entropy(mean, limit) - bound) > 0.0:
        ruled_out = limit
        limit += excess * limit * (1.0 - limit) / (mean - limit)
        if limit == ruled_out:
            break
    return ruled_out


def _relative_entropy(p: float, q: float) -> float:
    """kl(p, q) for 0 < q <= p < 1."""
    return p * math.log(p / q) + (1.0 - p) * (math.log1p(-p) - math.log1p(-q))


def largest_distance(rate: float, bound: float, rows: int) -> float:
    """The largest q - p, and the largest p - q + (1 - 2 p) / (2 (rows + 1)), subject to kl(p, q) <=
    bound and p <= rate.

    The term added to p - q is the distance between p and Jeffreys' estimate for the rate p. The
    pairs (p, q) with kl(p, q) <= bound form a convex set, so both maxima are concave in p. By
    symmetry, kl(1 - p, 1 - q) = kl(p, q).
    """
    from scipy.optimize import brentq

    rate = min(rate, 1.0)
    tail = math.exp(-bound)

    def largest(low: float, high: float, shift: float) -> float:
        """The largest p - q + (1 - 2 p) shift for p from low to high: at an endpoint, or where the
        slope is 0.
        """

        def slope(p: float) -> float:
            q = lower_mean(p, 1, tail)
            if q <= 0.0 or p >= 1.0:
                return 1.0 if q <= 0.0 else -1.0
            return (
                1.0
                - 2.0 * shift
                - q * (1.0 - q) * math.log(p * (1.0 - q) / (q * (1.0 - p))) / (p - q)
            )

        def distance(p: float) -> float:
            return p - lower_mean(p, 1, tail) + (1.0 - 2.0 * p) * shift

        places = [low, high]
        if slope(low) > 0.0 > slope(high):
            places.append(float(brentq(slope, low, high, xtol=1e-15)))
        return max(distance(p) for p in places)

    return min(
        1.0,
        max(largest(1.0 - rate, 1.0, 0.0), largest(0.0, rate, 0.5 / (rows + 1))) * (1.0 + 1e-10),
    )


def betting_mean(
    outcomes: FloatArray, alpha: float, *, most_staked: float = _MOST_STAKED
) -> tuple[float, float]:
    """Return betting limits for the mean of independent outcomes in [0, 1]: the range of means not
    ruled out.

    They hold with probability at least 1 - alpha.

    Parameters
    ----------
    outcomes : float array of shape (n,)
        Independent draws between 0 and 1, in an order that does not depend on them.
    alpha : float in (0, 1)
        Probability with which the interval may miss.
    most_staked : float in (0, 1), default=0.5
        Share of the capital that a bet can lose at most. Larger bets give narrower limits where
        outcomes hardly vary.

    Returns
    -------
    lower, upper : float

    Notes
    -----
    If m is the mean, the capital prod(1 + min(lam_i, c / m) (y_i - m)) is a nonnegative martingale
    for any bets lam_i that depend on earlier outcomes only, with c = `most_staked`. By Ville's
    inequality it ever reaches 2 / alpha with probability at most alpha / 2; so does the capital
    that bets on smaller outcomes. The means for which both stay below are kept. Each factor is
    monotone in m, so these means form an interval; its ends are means that were themselves ruled
    out. The bets are lam_i = sqrt(2 ln(2 / alpha) / (n v)), with v a running variance of the
    outcomes before i.

    With more than 2^14 outcomes, all but the first 2^13 are bet on in blocks of up to 64. Block
    means are independent and also have expectation m. The first outcomes determine the block size.
    The limits are nearly the same as with bets on single outcomes.

    References
    ----------
    Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS
    B 86, 1-27.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = betting_mean(np.tile([0.2, 0.3], 500), 0.05)
    >>> round(low, 3), round(high, 3)
    (0.246, 0.256)
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    if not outcomes.size:
        return 0.0, 1.0
    one_region = np.zeros(1, dtype=np.intp)
    lower, upper = _means(np.ones(outcomes.size), outcomes, one_region, alpha, most_staked)
    return float(lower[0]), float(upper[0])


def weighted_means(
    regions: IndexArray,
    weights: FloatArray,
    outcomes: FloatArray | CodeArray,
    n_regions: int,
    delta: float,
    most_staked: float = _MOST_STAKED,
) -> Interval:
    """Limits for E[w y] / E[w] of each region; each interval misses with probability at most
    `delta`.

    Weights and outcomes lie in [0, 1], in an order that does not depend on them. A region without
    weight gets [0, 1]. The bets are those of `betting_mean`, placed on w (y - m); see
    `calibrant.limits.shift.betting`.
    """
    lower = np.zeros(n_regions)
    upper = np.ones(n_regions)
    used = np.bincount(regions, weights, n_regions)[regions] > 0.0
    if not used.any():
        return Interval(lower, upper)
    numbers = regions[used].astype(
        np.min_scalar_type(n_regions)
    )  # small integers sort in linear time
    order = np.flatnonzero(used)[np.argsort(numbers, kind="stable")]
    starts = np.flatnonzero(np.diff(regions[order], prepend=-1))
    places = regions[order[starts]]
    lower[places], upper[places] = _means(
        weights[order], outcomes[order], starts, delta, most_staked
    )
    return Interval(lower, upper)


def _means(
    w: FloatArray, y: FloatArray | CodeArray, starts: IndexArray, delta: float, most_staked: float
) -> tuple[FloatArray, FloatArray]:
    """Limits of regions whose rows are contiguous; `starts` is where each region begins."""
    goal = math.log(2.0 / delta)
    rows = np.diff(starts, append=w.size)
    y = np.asarray(y, dtype=np.float64)
    w, y, sizes, starts = _in_blocks(w, y, starts, rows, 0.8 * most_staked / math.sqrt(2.0 * goal))
    counts = np.diff(starts, append=w.size)
    stakes = _stakes(w, y, sizes, starts, counts) * np.repeat(np.sqrt(2.0 * goal / rows), counts)
    total = np.add.reduceat(sizes * w, starts)
    mean = np.add.reduceat(sizes * w * y, starts) / total
    squares = np.add.reduceat(np.square(sizes * w * (y - np.repeat(mean, counts))), starts)
    width = (np.sqrt(2.0 * goal * squares) + goal) / total
    low, high = Bets(w, y, stakes, starts, most_staked).limits(mean, width, width / 8.0, goal)
    return np.minimum(low, mean), np.maximum(high, mean)


def _in_blocks(
    w: FloatArray, y: FloatArray, starts: IndexArray, rows: IntArray, scale: float
) -> tuple[FloatArray, FloatArray, FloatArray, IndexArray]:
    """Weights, outcomes and sizes of the blocks, and where the blocks of each region start.

    The first rows of a region are single-row blocks. They determine the size of the later blocks,
    small enough that a bet on a block stays below the largest allowed stake.
    """
    is_start = np.ones(w.size, dtype=bool)
    for start, n in zip(starts.tolist(), rows.tolist(), strict=True):
        if n > 2 * _BET_ON_SINGLY:
            first = slice(start, start + _BET_ON_SINGLY)
            mean = np.average(y[first], weights=w[first]) if w[first].any() else 0.5
            block = int(
                min(
                    max(scale * float((w[first] * (y[first] - mean)).std()) * math.sqrt(n), 1.0),
                    _LARGEST_BLOCK,
                )
            )
            is_start[first.stop : start + n] = False
            is_start[first.stop : start + n : block] = True
    if is_start.all():
        return w, y, np.ones(w.size), starts
    begins = np.flatnonzero(is_start)
    sizes = np.diff(begins, append=w.size).astype(np.float64)
    sums = np.add.reduceat(w, begins)
    hits = np.add.reduceat(w * y, begins)
    means = np.divide(hits, sums, out=np.full(sums.size, 0.5), where=sums > 0.0)
    return sums / sizes, np.clip(means, 0.0, 1.0), sizes, np.searchsorted(begins, starts)


def _stakes(
    w: FloatArray, y: FloatArray, sizes: FloatArray, starts: IndexArray, counts: IntArray
) -> FloatArray:
    """Stakes on blocks, divided by sqrt(2 ln(2 / delta) / N): block size over a standard deviation
    of what came before.
    """

    def running(values: FloatArray) -> FloatArray:
        """Cumulative sums that restart in each region."""
        sums = np.cumsum(values)
        return np.asarray(sums - np.repeat(np.where(starts > 0, sums[starts - 1], 0.0), counts))

    largest = np.concatenate(
        [np.maximum.accumulate(w[a : a + n]) for a, n in zip(starts, counts, strict=True)]
    )
    # start from a rate of 1/2 and its variance, as if one row of the largest weight had been seen
    total = largest + running(sizes * w)
    mean = (0.5 * largest + running(sizes * w * y)) / np.where(largest > 0.0, total, 1.0)
    squares = sizes * np.square(w * (y - mean))
    before = np.maximum(running(squares) - squares, 0.0)
    largest_before = np.concatenate([[1.0], largest[:-1]])
    largest_before[starts] = 1.0
    seen = np.arange(1, w.size + 1) - np.repeat(starts, counts)
    variance = (0.25 * np.square(largest_before) + before) / seen
    stakes = np.full(w.size, np.inf)  # only zero weights seen so far: only the cap limits the bet
    np.divide(sizes, np.sqrt(variance), out=stakes, where=variance > 0.0)
    return stakes
