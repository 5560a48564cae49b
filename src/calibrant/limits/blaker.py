"""Blaker: exact binomial limits nested in Clopper-Pearson's."""

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.cells.tally import Tally
from calibrant.limits.binomial import bisected, lower_tail, moved_out, upper_tail
from calibrant.limits.clopper_pearson import clopper_pearson
from calibrant.limits.error_budget import sidak_level
from calibrant.limits.interval import Interval
from calibrant.params.rules import OPEN_UNIT

# relative slack of comparisons between tails, outwards: more than their error
_SLACK = 1e-12
_SLACK_PER_TRIAL = 2e-16


def blaker(tally: Tally, alpha: float) -> Interval:
    """Blaker's exact limits for every region simultaneously, at the Sidak level.

    Valid under the same assumptions as `clopper_pearson`, never wider, and usually shorter: the
    level is not split into two halves; instead, the two tails are weighted by what the discrete
    distribution can attain.

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
    The acceptability of q is the smaller tail of the binomial at k, plus the largest opposite tail
    that does not exceed it; the interval is the convex hull of {q : acceptability(q) > delta},
    delta = 1 - (1 - alpha)^(1/B).

    It is found without a search over q. Left of k/N the acceptability is P(X >= k) + P(X <= j),
    where j is the largest index with P(X <= j) <= P(X >= k); j steps up at the q_j where the two
    tails are equal. At a step the acceptability is 2 P(X >= k), so it exceeds delta at every step
    to the right of the Clopper-Pearson limit, where that is delta. At the limit itself it is at
    most delta, and between steps it decreases and then increases, like 1 - P(j < X < k). So the
    lower end is the next step to the right of the Clopper-Pearson limit, or the one point before it
    where the acceptability increases through delta. The upper end is the mirror image.

    References
    ----------
    Blaker (2000), "Confidence curves and improved exact confidence intervals for discrete
    distributions", Canadian Journal of Statistics 28, 783-798; corrigenda 29, 681. Klaschka (2010),
    "BlakerCI: an algorithm and R package for the Blaker's binomial confidence limits calculation",
    Technical report 1099, Institute of Computer Science, Prague.

    Examples
    --------
    >>> from calibrant import Tally
    >>> interval = blaker(Tally.from_counts([10], [3]), alpha=0.05)
    >>> print(interval.lower.round(4), interval.upper.round(4))
    [0.0873] [0.6194]
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    delta = sidak_level(alpha, tally.n_regions)
    counts = tally.counts.astype(np.float64)
    positives = tally.positives.astype(np.float64)
    outer = clopper_pearson(tally, alpha)
    lower = _lower_ends(positives, counts, outer.lower, delta)
    upper = 1.0 - _lower_ends(counts - positives, counts, 1.0 - outer.upper, delta)
    return Interval(lower, np.minimum(np.nextafter(upper, 2.0), outer.upper))


def _lower_ends(
    positives: FloatArray, counts: FloatArray, outer: FloatArray, delta: float
) -> FloatArray:
    """The lower end for each number of positives; the upper end is the mirror image."""
    lower = outer.copy()
    some = positives > 0.0
    k = positives[some]
    n = counts[some]
    start = outer[some]
    least = 1.0 - _SLACK - _SLACK_PER_TRIAL * n
    j = _opposite_index(k, n, start, delta / 2.0 * least)
    # for every index up to k - 1 the two tails are equal somewhere to the left of k / n; where
    # k = n, at 2^(-1 / n) or to the left of it
    rate = np.where(k < n, k / n, 0.5 ** (0.5 / n))
    step, _ = bisected(lambda p: upper_tail(k, n, p) <= lower_tail(j + 1.0, n, p), start, rate)

    def is_ruled_out(p: FloatArray) -> BoolArray:
        opposite = np.where(j >= 0.0, lower_tail(np.maximum(j, 0.0), n, p), 0.0)
        return np.asarray(upper_tail(k, n, p) + opposite <= delta * least)

    end = np.where(is_ruled_out(step), step, bisected(is_ruled_out, start, step)[0])
    lower[some] = np.maximum(moved_out(end, -1.0), start)
    return lower


def _opposite_index(k: FloatArray, n: FloatArray, p: FloatArray, level: FloatArray) -> FloatArray:
    """The largest j <= k - 2 with P(X <= j) <= level; -1 if there is none."""
    admitted = np.full(k.shape, -1.0)
    refused = k - 1.0
    while (refused - admitted > 1.0).any():
        middle = np.floor((admitted + refused) / 2.0)
        is_open = middle > admitted
        fits = is_open & (lower_tail(np.maximum(middle, 0.0), n, p) <= level)
        admitted = np.where(fits, middle, admitted)
        refused = np.where(is_open & ~fits, middle, refused)
    return admitted
