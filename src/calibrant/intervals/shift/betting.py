"""Hedged betting: the narrowest interval under covariate shift; it needs the rows themselves."""

import numpy as np

from calibrant._params import OPEN_UNIT
from calibrant._text import Setting
from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.errors import InvalidTypeError
from calibrant.intervals._binomial import sidak_level
from calibrant.intervals.base import Interval, last_rejected
from calibrant.intervals.shift.base import Evidence, WeightedRows

_MOST_STAKED = 0.5  # no bet can lose more than half of the capital
_ROUNDING = 1e-9  # logarithms of capital are sums of many terms; a rate is ruled out only beyond their rounding


def betting(evidence: Evidence, alpha: float) -> Interval:
    """Limits for the target rate of every region at once: the rates against which no bet has won enough.

    Parameters
    ----------
    evidence : Evidence
        The rows, i.i.d. within each region, in an order that does not depend on labels or weights; and the bound U of
        the weights.
    alpha : float in (0, 1)
        The probability with which some region's interval may miss its target rate.

    Returns
    -------
    Interval
        Within [0, 1]; [0, 1] for a region without weight.

    Notes
    -----
    A gambler who believes that the target rate exceeds q bets on Z_i(q) = w_i (y_i - q), which lies in
    [-Uq, U(1-q)] and has mean zero if q is the target rate. The capital K+(q) = prod(1 + min(lam_i, c/(Uq)) Z_i(q)) is
    then a nonnegative martingale, and by Ville's inequality ever reaches 2/delta with probability at most delta/2; in
    the same way K-(q) = prod(1 - min(lam_i, c/(U(1-q))) Z_i(q)). Kept are the rates for which both stay below 2/delta,
    delta the Sidak level, c = 1/2. Each factor of K+ falls in q and each of K- rises, for the bets lam_i do not depend
    on q: so what is kept is one interval, and halving finds its ends.

    lam_i = sqrt(2 ln(2/delta) / (N s_{i-1}^2)), s_{i-1}^2 a running variance of w (y - theta_hat) over the rows before
    i, started from the largest weight seen so far, so that nothing but c/U depends on the scale of U.

    Any bets that look at earlier rows only are valid; these are near the ones that grow capital fastest. The weights of
    later rows, or of row i itself, must not be used: given its weight, Z_i has not mean zero.

    References
    ----------
    Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86, 1-27.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Partition, Tally
    >>> from calibrant.intervals.shift import Evidence, WeightedRows
    >>> rng = np.random.default_rng(0)
    >>> codes, weights = (rng.uniform(size=1000) < 0.5).astype(np.uint8), rng.uniform(0, 2, size=1000)
    >>> rows = WeightedRows(np.zeros(1000, dtype=np.intp), weights, codes, 1)
    >>> tally = Tally.from_data(Partition.fixed_width(1), np.zeros(1000), codes, importance_weight=weights)
    >>> betting(Evidence(tally, weight_bound=2.0, rows=rows), 0.1).radius.round(3)
    array([0.034])
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    rows = evidence.rows
    if rows is None:
        rule = "be one that needs counts only, because the rows are not available"
        advice = ("use ", Setting("interval", "empirical-bernstein"))
        raise InvalidTypeError("interval", rule, got="'betting'", advice=advice)
    return weighted_means(rows, evidence.weight_bound, sidak_level(alpha, rows.n_regions))


def weighted_means(rows: WeightedRows, bound: float, delta: float) -> Interval:
    """Limits for E[w y] / E[w] of each region; each misses with probability at most `delta`.

    The outcomes y may be any numbers from 0 to 1.
    """
    weights, goal = np.asarray(rows.weights, dtype=np.float64) / bound, float(np.log(2.0 / delta))
    used = np.bincount(rows.regions, weights, rows.n_regions)[rows.regions] > 0.0  # in regions with weight
    order = np.flatnonzero(used)[np.argsort(rows.regions[used], kind="stable")]
    places, starts, counts = np.unique(rows.regions[order], return_index=True, return_counts=True)
    lower, upper = np.zeros(rows.n_regions), np.ones(rows.n_regions)
    if not order.size:
        return Interval(lower, upper)
    w, y = weights[order], rows.codes[order].astype(np.float64)
    bets = _stakes(w, y, starts, counts, goal)

    def lost(rates: FloatArray, side: float) -> BoolArray:
        """Whether bets that the rate of each region is above or below `rates` have ever won enough."""
        q = np.repeat(rates, counts)
        stakes = np.minimum(bets, _MOST_STAKED / (q if side > 0 else 1.0 - q))
        capital = _running_sums(np.log1p(side * stakes * w * (y - q)), starts, counts)
        return np.asarray(np.maximum.reduceat(capital, starts) >= goal + _ROUNDING)

    lower[places] = last_rejected(places.size, +1.0, lambda rates: lost(rates, +1.0))
    upper[places] = 1.0 - last_rejected(places.size, -1.0, lambda rates: lost(rates, -1.0))
    return Interval(lower, upper)


def _stakes(w: FloatArray, y: FloatArray, starts: IntArray, counts: IntArray, goal: float) -> FloatArray:
    """The bets lam_i, each from rows before i of the same region."""
    largest = np.concatenate([np.maximum.accumulate(w[a : a + n]) for a, n in zip(starts, counts, strict=True)])
    # a rate of 1/2 and its variance, as if one row of the largest weight had been seen
    mean = (0.5 * largest + _running_sums(w * y, starts, counts)) / np.where(
        largest > 0.0, largest + _running_sums(w, starts, counts), 1.0
    )
    squares = np.square(w * (y - mean))
    seen = np.arange(1, w.size + 1) - np.repeat(starts, counts)
    before = _running_sums(squares, starts, counts) - squares
    largest_before = np.concatenate([[1.0], largest[:-1]])
    largest_before[starts] = 1.0
    variance = (0.25 * np.square(largest_before) + np.maximum(before, 0.0)) / seen
    stakes = np.full(w.size, np.inf)  # nothing seen but weights of zero: only the cap limits the bet
    np.divide(2.0 * goal / np.repeat(counts, counts), variance, out=stakes, where=variance > 0.0)
    return np.asarray(np.sqrt(stakes))


def _running_sums(values: FloatArray, starts: IntArray, counts: IntArray) -> FloatArray:
    """Cumulative sums that start anew in each region."""
    sums = np.cumsum(values)
    before = np.concatenate([[0.0], sums])[starts]
    return np.asarray(sums - np.repeat(before, counts))
