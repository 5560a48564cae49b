"""Simultaneous confidence intervals for the rates of a target population, from weighted rows of
another.

Examples
--------
>>> from calibrant import Partition, Tally
>>> from calibrant.shift import Evidence
>>> bins, y, w = Partition.fixed_width(1), [0, 1, 1] * 300, [2.0, 1.0, 1.0] * 300
>>> tally = Tally.from_data(bins, [0.5] * 900, y, importance_weight=w)
>>> method = get_shift_method("empirical-bernstein")
>>> method(Evidence(tally, weight_bound=2.0), alpha=0.1).lower.round(4)
array([0.4388])
"""

from __future__ import annotations

import numpy as np

from calibrant._typing import FloatArray
from calibrant.limits.interval import Interval
from calibrant.limits.shift.betting import THEOREM, betting
from calibrant.limits.shift.empirical_bernstein import empirical_bernstein
from calibrant.limits.shift.evidence import ShiftMethod
from calibrant.params.rules import OPEN_UNIT, Choice

_BERNSTEIN = (
    "the empirical Bernstein bound on w (y - q) inverted (Audibert et al. 2007), at the Sidak level"
)

SHIFT_METHODS: dict[str, ShiftMethod] = {
    method.name: method
    for method in (
        ShiftMethod("betting", betting, THEOREM, needs_rows=True),
        ShiftMethod("empirical-bernstein", empirical_bernstein, _BERNSTEIN),
    )
}
"""Every method, by the name that the parameter ``interval`` of `ShiftCalibrator` takes."""


def get_shift_method(name: str) -> ShiftMethod:
    """Return the method called `name`.

    >>> get_shift_method("betting").needs_rows
    True
    """
    return SHIFT_METHODS[Choice(SHIFT_METHODS).check("interval", name)]


def widened(interval: Interval, weight_error: float) -> Interval:
    """Widen limits for weights that are correct up to a relative error.

    Parameters
    ----------
    interval : Interval
        Limits that hold if the weights used, w_hat, were exact.
    weight_error : float in [0, 1)
        rho: the true weights w satisfy |w - w_hat| <= rho w_hat, everywhere.

    Returns
    -------
    Interval
        Limits that hold, with the same confidence, for the true weights.

    Notes
    -----
    For a fixed function w_hat, the given limits cover E[w_hat Y] / E[w_hat], whose odds are E[w_hat
    Y] / E[w_hat (1 - Y)]. Replacing w_hat by w changes numerator and denominator by a factor in [1
    - rho, 1 + rho] each, so the odds change by at most k = (1 + rho) / (1 - rho): lower becomes
    lower / (lower + k (1 - lower)), upper becomes k upper / (k upper + 1 - upper). No smaller
    widening is enough: a w that is w_hat (1 + rho) if Y = 1 and w_hat (1 - rho) if Y = 0 attains
    it, if labels are a function of inputs.

    Examples
    --------
    >>> widened(Interval(np.array([0.4]), np.array([0.6])), 0.1)
    Interval(lower=array([0.35294118]), upper=array([0.64705882]))
    """
    factor = (1.0 + weight_error) / (1.0 - weight_error)
    lower = interval.lower
    upper = interval.upper
    return Interval(
        lower / (lower + factor * (1.0 - lower)), factor * upper / (factor * upper + (1.0 - upper))
    )


def tolerated_error(interval: Interval, threshold: float) -> FloatArray:
    """Return the relative error of the weights at which an interval reaches `threshold`.

    It is 0 if the interval already contains the threshold.

    Parameters
    ----------
    interval : Interval
        Limits that hold if the weights used were exact.
    threshold : float in (0, 1)
        A rate that matters, such as the rate above which you act.

    Returns
    -------
    float array of shape (n_regions,)
        The largest rho for which `widened(interval, rho)` still lies on one side of the threshold.

    Examples
    --------
    >>> tolerated_error(Interval(np.array([0.4, 0.6]), np.array([0.5, 0.7])), 0.55).round(3)
    array([0.1  , 0.102])
    """
    threshold = OPEN_UNIT.check("threshold", threshold)
    odds = threshold / (1.0 - threshold)
    lower = interval.lower
    upper = interval.upper
    # k is the factor on the odds that moves the nearer limit to the threshold, and rho = (k - 1) /
    # (k + 1)
    above = (lower - odds * (1.0 - lower)) / (lower + odds * (1.0 - lower))
    below = (odds * (1.0 - upper) - upper) / (odds * (1.0 - upper) + upper)
    return np.asarray(np.maximum(np.maximum(above, below), 0.0))
