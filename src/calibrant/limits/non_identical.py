"""Limits for independent labels with different rates, as needed once the scores are given."""

import math

import numpy as np
from numpy.typing import ArrayLike

from calibrant._typing import FloatArray
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.interval import Interval


def non_identical(
    counts: ArrayLike, positives: ArrayLike, tail: ArrayLike, identical: ArrayLike = False
) -> Interval:
    """Binomial limits for the mean of independent labels whose rates may all differ.

    Guarantee: let N labels be independent, with any rates p_1, ..., p_N, and let k of them be
    positive. Then the mean rate lies below `lower` with probability at most `tail`, and above
    `upper` with probability at most `tail`.

    Parameters
    ----------
    counts, positives : array-like of int
        Rows and positive rows of each region; broadcast against each other and the rest.
    tail : array-like of float in (0, 1)
        Probability with which each limit may miss.
    identical : array-like of bool, default=False
        Regions whose rows are known to share one rate, as rows with the same score do; they get the
        Clopper-Pearson limits.

    Returns
    -------
    Interval
        One per region, each limit at its own tail; [0, 1] for a region without rows.

    Notes
    -----
    Hoeffding (1956): of all sums of independent labels with mean N p, for a whole number c <= N p -
    1, the binomial has the largest P(sum <= c). The Clopper-Pearson limit u(k) misses when k <= c
    for the largest c with P(Bin(N, p) <= c) < tail, so it holds for labels with different rates too
    wherever c <= N p - 1. That fails only when k is next to N, where labels with different rates do
    miss more often than the tail. Hence

        upper = max(u(k), (k + 1) / N),    lower = min(l(k), (k - 1) / N),

    within [0, 1]: a miss then implies k < N p - 1. For tails up to 1/4 the upper limit differs from
    Clopper-Pearson's only at k = N - 1, and the lower only at k = 1.

    References
    ----------
    Hoeffding (1956), "On the distribution of the number of successes in independent trials", Annals
    of Mathematical Statistics 27, 713-721, Theorem 4 and its corollary.

    Examples
    --------
    >>> limits = non_identical([100, 100], [50, 99], 0.025)
    >>> print(limits.lower.round(4), limits.upper.round(4))
    [0.3983 0.9455] [0.6017 1.    ]
    """
    rows, hits, alike = np.broadcast_arrays(
        np.asarray(counts, dtype=np.float64),
        np.asarray(positives, dtype=np.float64),
        np.asarray(identical),
    )
    some = np.maximum(rows, 1.0)
    lower = lower_limit(hits, rows, tail)
    upper = upper_limit(hits, rows, tail)
    lower = np.where(alike, lower, np.minimum(lower, np.maximum(hits - 1.0, 0.0) / some))
    upper = np.where(
        alike | (rows == 0.0), upper, np.maximum(upper, np.minimum(hits + 1.0, rows) / some)
    )
    return Interval(lower, upper)


def gap_limits(limits: Interval, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest distance between a value and the rates in its interval."""
    nearest = np.maximum(np.maximum(limits.lower - value, value - limits.upper), 0.0)
    return nearest, np.maximum(limits.upper - value, value - limits.lower)


_TRIED = np.geomspace(0.3, 1.5, 40)  # multiples of the stake that is best for small deviations
_ALL_COUNTS = 4096  # up to this many rows, try every number of positives
_FINENESS = 16.0  # with more rows, try this many of them per standard error


def largest_variance(limits: Interval) -> FloatArray:
    """The largest r (1 - r) over the rates r in each interval."""
    nearest = np.clip(0.5, limits.lower, limits.upper)
    return np.asarray(nearest * (1.0 - nearest))


def noise_bound(n_rows: float, variance: float | None, tail: float) -> float:
    """A bound that the mean of a_i (r_i - y_i) exceeds with probability at most `tail`, for any
    fixed |a_i| <= 1.

    Parameters
    ----------
    n_rows : float
        Number of independent labels; for weighted units, (sum of w)^2 / (sum of w^2).
    variance : float or None
        An upper bound on the mean of r_i (1 - r_i); 1/4 always holds. None for weighted units.
    tail : float in (0, 1)
        Probability.

    Notes
    -----
    The smaller of two bounds. Hoeffding (1963): each term has a range of at most 1. Bennett (1962):
    for X <= 1 with mean 0 and variance v, E exp(lam X) <= 1 + v (exp(lam) - 1 - lam), and log(1 + v
    c) is concave in v. With weights, only Hoeffding's bound is used.

    Examples
    --------
    >>> round(noise_bound(1000, 0.25, 0.05), 4), round(noise_bound(1000, 0.01, 0.05), 4)
    (0.0387, 0.0087)
    """
    needed = -math.log(tail) / n_rows
    by_range = math.sqrt(needed / 2.0)
    if variance is None:
        return by_range
    stake = _TRIED * math.sqrt(2.0 * needed / variance)
    growth = np.log1p(variance * (np.expm1(stake) - stake))
    return min(by_range, float(((needed + growth) / stake).min()))


def signed_noise_bound(n_rows: int, variance: float, tail: float) -> float:
    """A `noise_bound` for the case that every a_i is 1 or -1.

    Notes
    -----
    Then the mean of a_i (r_i - y_i) is the mean rate minus the share of positives among the labels
    y_i, or 1 - y_i where a_i is -1. With k of these positive, the upper limit u(k) for labels with
    different rates (Hoeffding 1956) holds with probability at least 1 - `tail`. As k is not known,
    the largest u(k) - k / n is a third bound. With more than 4,096 labels, only every d-th k is
    tried, with u(k + d) - k / n, which is at least as large.

    Examples
    --------
    >>> round(signed_noise_bound(1000, 0.25, 0.05), 4)
    0.0265
    """
    step = 1 if n_rows <= _ALL_COUNTS else math.ceil(math.sqrt(n_rows) / _FINENESS)
    low = np.arange(0, n_rows + 1, step)
    high = np.minimum(low + step - 1, n_rows)
    excess = non_identical(n_rows, high, tail).upper - low / n_rows
    return min(noise_bound(n_rows, variance, tail), float(excess.max()))
