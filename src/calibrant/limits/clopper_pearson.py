"""Clopper-Pearson: exact binomial limits, the default, with alpha shared evenly or unevenly."""

from __future__ import annotations

import numpy as np
from scipy.special import exprel, ndtr, ndtri

from calibrant._typing import FloatArray, IntArray
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally
from calibrant.limits.binomial import both_limits, lower_limit, solve_distinct, upper_limit
from calibrant.limits.error_budget import sidak_level, sidak_log_level
from calibrant.limits.interval import Interval
from calibrant.limits.kl import largest_distance
from calibrant.params.rules import OPEN_UNIT


def clopper_pearson(tally: Tally, alpha: float) -> Interval:
    """Exact binomial limits for every region simultaneously, at the Sidak level.

    Given the region of each row, the labels inside a region are independent Bernoulli draws with
    one mean (see the proof of Theorem 4 in Gupta, Podkopaev and Ramdas 2020), and the regions are
    independent of each other. So the binomial limits are exact where the paper's empirical
    Bernstein bound is a relaxation, and the joint confidence is a product.

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
    With delta = 1 - (1 - alpha)^(1/B), lower is the Beta(k, N - k + 1) quantile at delta/2 and
    upper is the Beta(k + 1, N - k) quantile at 1 - delta/2. They agree with 50-digit arithmetic to
    a relative 1e-9 for N up to 10^15 and alpha down to 1e-300, and are rounded outwards.

    References
    ----------
    Clopper & Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of
    the binomial", Biometrika 26, 404-413. Sidak (1967), "Rectangular confidence regions for the
    means of multivariate normal distributions", JASA 62, 626-633.

    Examples
    --------
    >>> from calibrant import Tally
    >>> interval = clopper_pearson(Tally.from_counts([10, 0], [5, 0]), alpha=0.05)
    >>> print(interval.lower.round(4), interval.upper.round(4))
    [0.159 0.   ] [0.841 1.   ]
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    log_level = sidak_log_level(alpha, tally.n_regions) - float(np.log(2.0))
    return both_limits(
        tally.counts, tally.positives, lambda k, n: solve_distinct(k, n, np.asarray(log_level))
    )


def largest_binomial(rows: int, most: int, alpha: float, n_regions: int) -> float:
    """A bound on the radius of regions with at least `rows` rows; see `calibrant.intervals.Method`.

    It also holds for Blaker's limits, which lie within these.
    """
    level = float(ndtri(sidak_level(alpha, n_regions) / 2.0))
    return largest_distance((most + 1) / rows, level**2 / (2.0 * rows), rows) + 1.0 / rows


_EVEN = 0.5  # the share of alpha that is split evenly between regions
_BISECTIONS = 60


def clopper_pearson_weighted(
    tally: Tally, alpha: float, partition: Partition | None = None
) -> Interval:
    """Exact binomial limits for every region simultaneously, with more of alpha where the scores
    suggest a large variance.

    They hold for any scores. If the scores are close to the rates, the largest half-width is 1 to
    7% smaller than that of `clopper_pearson`; if they say nothing about the rates, it is up to 10%
    larger (``experiments/sharper.py``). Without bins of probabilities, alpha is shared evenly.

    Parameters
    ----------
    tally : Tally
        As in `clopper_pearson`.
    alpha : float in (0, 1)
        The largest probability that some region's interval misses its mean.
    partition : Partition, optional
        The regions.

    Returns
    -------
    Interval

    Notes
    -----
    Region b may miss with probability alpha_b = 1 - (1 - alpha)^(w_b), where the weights w add up
    to 1. Given the region of each row, labels in different regions are independent, so all limits
    hold with probability prod (1 - alpha_b) = 1 - alpha. So the weights may depend on edges and
    counts, which are given too, but not on labels or on the scores between the edges. Half of the
    weight is shared evenly. The other half is shared so that normal limits would have one
    half-width h in all regions, if the rate of a region were the middle m of its edges: alpha_b = 2
    Phi(-h / sqrt(m (1 - m) / N_b)).

    Examples
    --------
    >>> from calibrant.partition import Partition
    >>> from calibrant import Tally
    >>> tally = Tally.from_counts([1000] * 5, [100, 300, 500, 700, 900])
    >>> clopper_pearson_weighted(tally, 0.1, Partition.fixed_width(5)).radius.round(4)
    array([0.0246, 0.033 , 0.0342, 0.033 , 0.0246])
    >>> clopper_pearson_weighted(tally, 0.1).radius.round(4)
    array([0.0224, 0.0339, 0.037 , 0.0339, 0.0224])
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    weights = np.full(tally.n_regions, 1.0 / tally.n_regions)
    middle = None if partition is None else _middles(partition)
    if middle is not None:
        weights = _EVEN * weights + (1.0 - _EVEN) * _shares(middle, tally.counts, alpha)
    logs = weights * np.log1p(-alpha)
    tails = -logs * exprel(logs) / 2.0  # (1 - (1 - alpha)^w) / 2
    lower = lower_limit(tally.positives, tally.counts, tails)
    return Interval(lower, upper_limit(tally.positives, tally.counts, tails))


def _middles(partition: Partition) -> FloatArray | None:
    """The midpoint of each region's edges, clipped to [0, 1]; None if scores are not probabilities."""
    if not partition.bins_by_segment:
        return None
    layout = partition.as_bins().layout
    begin, end = layout.cells.bounds(layout.low, layout.high)
    finite = np.concatenate([begin[np.isfinite(begin)], end[np.isfinite(end)]])
    if finite.size and (finite.min() < 0.0 or finite.max() > 1.0):
        return None
    return (np.clip(begin, 0.0, 1.0) + np.clip(end, 0.0, 1.0)) / 2.0


def _shares(middle: FloatArray, counts: IntArray, alpha: float) -> FloatArray:
    """Shares of alpha that give normal limits around the midpoints equal half-widths, as nearly as
    possible.
    """
    spread = np.sqrt(middle * (1.0 - middle) / np.maximum(counts, 1))
    spread[(counts == 0) | (spread == 0.0)] = np.finfo(np.float64).tiny
    low = 0.0
    high = 40.0 * float(spread.max())
    for _ in range(_BISECTIONS):
        half = (low + high) / 2.0
        with np.errstate(divide="ignore"):
            spent = -np.log1p(-2.0 * ndtr(-half / spread)).sum()
        low, high = (half, high) if spent > -np.log1p(-alpha) else (low, half)
    weights = -np.log1p(-2.0 * ndtr(-high / spread))
    return (
        np.asarray(weights / weights.sum())
        if weights.sum() > 0.0
        else np.full(middle.size, 1.0 / middle.size)
    )
