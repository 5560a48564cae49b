"""Blaker: exact binomial limits nested in Clopper-Pearson's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy import special

from calibrant._typing import FloatArray, IndexArray
from calibrant.cells.tally import Tally
from calibrant.limits.binomial import both_limits, log_tail, neg_log_ratio, solve_tail, split
from calibrant.limits.error_budget import sidak_log_level
from calibrant.limits.interval import Interval
from calibrant.params.rules import OPEN_UNIT

_LOG_TWO = float(np.log(2.0))
_MAX_ITERATIONS = 100
_HARDLY_A_DOUBLE = 700.0
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)

_Sloped: TypeAlias = Callable[[FloatArray, IndexArray], tuple[FloatArray, FloatArray]]


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
    log_delta = sidak_log_level(alpha, tally.n_regions)
    return both_limits(tally.counts, tally.positives, lambda k, n: _solve(k, n, log_delta))


def _solve(k: FloatArray, n: FloatArray, log_delta: float) -> FloatArray:
    """Return -log of the lower end for k positives in n, 1 <= k <= n."""
    start = solve_tail(k, n, np.full_like(k, log_delta - _LOG_TWO))
    # This close to 0 no opposite tail is admissible, so the acceptability is P(X >= k) alone; p
    # itself may underflow.
    end = start.copy()
    ordinary = start < _HARDLY_A_DOUBLE
    if ordinary.any():
        end[ordinary] = _search(k[ordinary], n[ordinary], start[ordinary], log_delta)
    if not ordinary.all():
        end[~ordinary] = solve_tail(
            k[~ordinary], n[~ordinary], np.full(int((~ordinary).sum()), log_delta)
        )
    return np.minimum(end, start)


def _search(k: FloatArray, n: FloatArray, start: FloatArray, log_delta: float) -> FloatArray:
    """Return -log of the lower end, from that of the Clopper-Pearson limit."""
    # Rounding may make an inadmissible index look admissible, or hide that the level was passed, so
    # both tests get a small outward slack.
    slack = 1e-13 + 1e-15 * abs(log_delta)
    j = _opposite_index(k, n, start, log_delta - _LOG_TWO - slack)

    def excess_at_step(x: FloatArray, rows: IndexArray) -> tuple[FloatArray, FloatArray]:
        above, below, above_slope, below_slope = _tails(k[rows], n[rows], j[rows] + 1.0, x)
        return above - below, above_slope - below_slope

    def excess_over_level(x: FloatArray, rows: IndexArray) -> tuple[FloatArray, FloatArray]:
        above, below, above_slope, below_slope = _tails(k[rows], n[rows], j[rows], x)
        share = special.expit(below - above)
        value = np.logaddexp(above, below) - log_delta + slack
        return value, (1.0 - share) * above_slope + share * below_slope

    # For every index up to k - 1 the two tails are equal somewhere to the left of k/n; where k = n,
    # at 2^(-1/n) or to the left of it.
    rate = np.where(k < n, neg_log_ratio(k, n), 0.5 * _LOG_TWO / n)
    end = _root(excess_at_step, rate, start, start)
    passed = np.flatnonzero(excess_over_level(end, np.arange(k.size))[0] > 0.0)
    if passed.size:
        end[passed] = _root(
            lambda x, rows: excess_over_level(x, passed[rows]),
            end[passed],
            start[passed],
            end[passed],
        )
    return end


def _tails(
    k: FloatArray, n: FloatArray, j: FloatArray, neg_log_p: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return log P(X >= k), log P(X <= j), and their derivatives with respect to -log p.

    The index j may be -1.
    """
    p, q = split(neg_log_p)
    above, above_ratio = log_tail(k, n, p, q)
    some = j >= 0.0
    below, below_ratio = log_tail(np.where(some, n - j, n), n, q, p)
    below_slope = (n - j) / below_ratio * (p / q)
    return above, np.where(some, below, -np.inf), -k / above_ratio, np.where(some, below_slope, 0.0)


def _opposite_index(
    k: FloatArray, n: FloatArray, neg_log_p: FloatArray, log_level: float
) -> FloatArray:
    """Return the largest j <= k - 2 with log P(X <= j) <= log_level, or -1 if no such j exists.

    The log of a binomial distribution function is concave in j, so Newton's iteration with the
    backward difference as its slope closes in from below after at most one overshoot; the bracket
    only guards against rounding.
    """
    p, q = split(neg_log_p)
    deviation = np.sqrt(n * p * q)
    normal = float(special.ndtri_exp(log_level))
    guess = np.floor(n * p + normal * deviation + (q - p) * (normal * normal - 1.0) / 6.0)
    admitted = np.full_like(k, -1.0)
    refused = k - 1.0
    j = np.clip(np.minimum(guess, np.floor(n * p)), 0.0, np.maximum(refused - 1.0, 0.0))
    open_ = np.flatnonzero(refused - admitted > 1.0)
    for _ in range(_MAX_ITERATIONS):
        if open_.size == 0:
            break
        at = j[open_]
        value, ratio = log_tail(n[open_] - at, n[open_], q[open_], p[open_])
        fits = value <= log_level
        admitted[open_] = np.where(fits, at, admitted[open_])
        refused[open_] = np.where(fits, refused[open_], at)
        slope = -np.log1p(-1.0 / np.maximum(ratio, 1.0 + 1e-15))
        stride = np.floor((log_level - value) / slope)
        j[open_] = np.clip(
            at + stride,
            admitted[open_] + 1.0,
            np.maximum(refused[open_] - 1.0, admitted[open_] + 1.0),
        )
        open_ = open_[refused[open_] - admitted[open_] > 1.0]
    return admitted


def _root(function: _Sloped, low: FloatArray, high: FloatArray, first: FloatArray) -> FloatArray:
    """Return where `function` changes sign from positive at `low` to negative at `high`, by
    bracketed Newton iteration.
    """
    low = low.copy()
    high = high.copy()
    result = first.copy()
    rows = np.arange(low.size)
    for _ in range(_MAX_ITERATIONS):
        x = result[rows]
        value, slope = function(x, rows)
        positive = value > 0.0
        low[rows] = np.where(positive, x, low[rows])
        high[rows] = np.where(positive, high[rows], x)
        left = low[rows]
        right = high[rows]
        falling = slope < 0.0
        newton = x - value / np.where(falling, slope, -1.0)
        inside = falling & (newton >= left) & (newton <= right)
        result[rows] = np.where(inside, newton, left + (right - left) / 2.0)
        settled = inside & ((np.abs(value) < 1e-8) | (np.abs(newton - x) <= _ROUNDING * x))
        rows = rows[~settled & (right - left > _ROUNDING * right)]
        if rows.size == 0:
            break
    return result
