"""Bernoulli-KL: the Chernoff bound, inverted."""

from __future__ import annotations

import math

import numpy as np

from calibrant.cells.tally import Tally
from calibrant.limits.binomial import both_limits, solve_deviance
from calibrant.limits.chernoff import largest_distance
from calibrant.limits.interval import Interval
from calibrant.params.rules import OPEN_UNIT


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
    return both_limits(tally.counts, tally.positives, lambda k, n: solve_deviance(k, n, bound))


def largest_kl(rows: int, most: int, alpha: float, n_regions: int) -> float:
    """A bound on the radius of regions with at least `rows` rows; see `calibrant.intervals.Method`."""
    return largest_distance(most / rows, math.log(2.0 * n_regions / alpha) / rows, rows)
