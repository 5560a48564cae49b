"""How far a sum of labels can be from the sum of their rates, with multipliers that are fixed but
unknown.

For n independent labels y_i with rates r_i, let W be the mean of a_i (r_i - y_i), with fixed |a_i|
<= 1. This is the noise of a calibration error. The error is a maximum of sums over such
multipliers, so the multipliers at which the true error is attained are fixed by the rates, whatever
the labels are. The bounds hold for all multipliers.
"""

import math

import numpy as np

from calibrant._typing import FloatArray
from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import non_identical

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
