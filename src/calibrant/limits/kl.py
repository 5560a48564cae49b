"""Chernoff's bound: limits for the mean of outcomes in [0, 1] from their average alone."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import xlog1py

from calibrant._typing import BoolArray, FloatArray
from calibrant.cells.tally import Tally
from calibrant.limits.binomial import SMALLEST, bisected, moved_out
from calibrant.limits.interval import Interval
from calibrant.params.rules import OPEN_UNIT


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


def kl(tally: Tally, alpha: float) -> Interval:
    """Chernoff's limits in their relative-entropy form, for every region simultaneously, by
    Bonferroni.

    Never wider than Hoeffding's, and much narrower for rates near 0 or 1.

    Parameters
    ----------
    tally : Tally
        Counts and positives of B regions; the rows are i.i.d. and the regions were not chosen by
        looking at the labels.
    alpha : float in (0, 1)
        The largest probability that some region's interval misses its mean.

    Returns
    -------
    Interval
        [0, 1] for an empty region; lower is 0 if no row is positive, and upper is 1 if all rows
        are.

    Notes
    -----
    {q : N kl(k/N, q) <= ln(2B/alpha)} with kl(p, q) = p ln(p/q) + (1 - p) ln((1 - p)/(1 - q)). At k
    = 0 this is [0, 1 - (alpha/2B)^(1/N)].

    References
    ----------
    Chernoff (1952), "A measure of asymptotic efficiency for tests of a hypothesis based on the sum
    of observations", Annals of Mathematical Statistics 23, 493-507. Hoeffding (1963), JASA 58,
    Theorem 1.

    Examples
    --------
    >>> from calibrant import Tally
    >>> interval = kl(Tally.from_counts([100], [5]), alpha=0.1)
    >>> print(interval.lower.round(4), interval.upper.round(4))
    [0.0134] [0.1215]
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    bound = np.log(2.0 * tally.n_regions) - np.log(alpha)
    n = np.maximum(tally.counts, 1).astype(np.float64)
    p = tally.positives / n

    def is_allowed(q: FloatArray) -> BoolArray:
        off = p - q  # which keeps digits that log(p / q) loses where q is close to p
        entropy = xlog1py(p, off / q) + xlog1py((n - tally.positives) / n, -off / (1.0 - q))
        return np.asarray(n * entropy < bound)

    with np.errstate(all="ignore"):
        lower, _ = bisected(
            lambda q: ~is_allowed(q), np.full(n.size, SMALLEST), np.maximum(p, SMALLEST)
        )
        _, upper = bisected(is_allowed, np.maximum(p, SMALLEST), np.ones(n.size))
    lower = np.where(tally.positives > 0, moved_out(lower, -1.0), 0.0)
    upper = np.where(tally.positives < tally.counts, moved_out(upper, 1.0), 1.0)
    return Interval(lower, upper)


def largest_kl(rows: int, most: int, alpha: float, n_regions: int) -> float:
    """A bound on the radius of regions with at least `rows` rows; see `calibrant.intervals.Method`."""
    return largest_distance(most / rows, math.log(2.0 * n_regions / alpha) / rows, rows)
