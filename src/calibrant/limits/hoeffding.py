"""Hoeffding: the same width for all rates."""

from __future__ import annotations

import math

import numpy as np

from calibrant.cells.tally import Tally
from calibrant.limits.interval import Interval, around
from calibrant.params.rules import OPEN_UNIT


def hoeffding(tally: Tally, alpha: float) -> Interval:
    """Hoeffding's limits for every region simultaneously, by Bonferroni.

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
    k/N +- sqrt(ln(2B/alpha) / (2N)), within [0, 1].

    References
    ----------
    Hoeffding (1963), "Probability inequalities for sums of bounded random variables", JASA 58,
    13-30.

    Examples
    --------
    >>> from calibrant import Tally
    >>> hoeffding(Tally.from_counts([100] * 10, [50] * 10), alpha=0.1).radius[0].round(4)
    np.float64(0.1628)
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    log_term = np.log(2.0 * tally.n_regions) - np.log(alpha)
    return around(tally.rates, np.sqrt(log_term / (2.0 * np.maximum(tally.counts, 1))))


def largest_hoeffding(rows: int, most: int, alpha: float, n_regions: int) -> float:
    """A bound on the radius of regions with at least `rows` rows; see `calibrant.intervals.Method`."""
    return math.sqrt(math.log(2.0 * n_regions / alpha) / (2.0 * rows)) * (1.0 + 1e-10) + 0.5 / (
        rows + 1
    )
