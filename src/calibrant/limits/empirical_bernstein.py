"""Empirical Bernstein: the paper's own interval."""

from __future__ import annotations

import math

import numpy as np

from calibrant.cells.tally import Tally
from calibrant.limits.interval import Interval, around
from calibrant.params.rules import OPEN_UNIT


def empirical_bernstein(tally: Tally, alpha: float) -> Interval:
    """The paper's simultaneous limits for all regions, exactly as stated in its Theorem 4.

    Provided for comparison with the paper: at alpha = 0.1 and B = 10, it is 2.6 times as wide as
    the exact limits for 50 positives in 100, and still 1.31 times as wide as N grows without bound.

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
    k/N +- (sqrt(2 V ln(3B/alpha) / N) + 3 ln(3B/alpha) / N), within [0, 1], where V = (k/N) (1 -
    k/N) is the empirical variance of the labels.

    References
    ----------
    Audibert, Munos & Szepesvari (2007), "Tuning bandit algorithms in stochastic environments", ALT.
    Gupta, Podkopaev & Ramdas (2020), "Distribution-free binary classification: prediction sets,
    confidence intervals and calibration", NeurIPS, Theorem 4.

    Examples
    --------
    >>> from calibrant import Tally
    >>> empirical_bernstein(Tally.from_counts([100] * 10, [50] * 10), alpha=0.1).radius[0].round(4)
    np.float64(0.34)
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    n = np.maximum(tally.counts, 1).astype(np.float64)
    k = tally.positives.astype(np.float64)
    variance = (k / n) * ((n - k) / n)
    log_term = np.log(3.0 * tally.n_regions) - np.log(alpha)
    return around(tally.rates, np.sqrt(2.0 * variance * log_term / n) + 3.0 * log_term / n)


def largest_bernstein(rows: int, most: int, alpha: float, n_regions: int) -> float:
    """A bound on the radius of regions with at least `rows` rows; see `calibrant.intervals.Method`.

    It is the largest min(1 - p, radius at p) over rates p up to most / rows; the radius increases
    with p up to 1/2.
    """
    from scipy.optimize import brentq

    log_term = math.log(3.0 * n_regions / alpha) / rows
    rate = min(most / rows, 0.5)

    def radius(p: float) -> float:
        return math.sqrt(2.0 * p * (1.0 - p) * log_term) + 3.0 * log_term

    if radius(0.0) >= 1.0:
        return 1.0
    if radius(rate) > 1.0 - rate:
        rate = float(brentq(lambda p: radius(p) - (1.0 - p), 0.0, rate))
    return radius(rate) * (1.0 + 1e-10) + 0.5 / (rows + 1)
