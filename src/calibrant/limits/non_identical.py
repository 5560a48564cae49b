"""Limits for the mean of independent labels with different rates, as needed once the scores are
given.
"""

import numpy as np
from numpy.typing import ArrayLike

from calibrant._typing import FloatArray
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.interval import Interval


def non_identical(
    counts: ArrayLike, positives: ArrayLike, tail: ArrayLike, identical: ArrayLike = False
) -> Interval:
    """Binomial limits for the mean of independent labels whose rates may all differ.

    Claimed: let N labels be independent, with any rates p_1, ..., p_N, and let k of them be
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
