"""The paper's tripod: calibration, confidence intervals and prediction sets, and how each leads to
the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant._typing import ArrayLike, BoolArray, FloatArray
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval
from calibrant.params.arrays import as_scores, check_in_range
from calibrant.params.rules import OPEN_UNIT, Number


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A predictor's values, and the largest distance of each from the true rate given that value."""

    value: FloatArray
    epsilon: float


def calibration_to_interval(prediction: ArrayLike, epsilon: float) -> Interval:
    """Turn an (epsilon, alpha)-calibrated predictor into a (1 - alpha) confidence interval (Theorem
    1 of Gupta, Podkopaev and Ramdas 2020).

    Guaranteed: if |E[Y | f(X)] - f(X)| <= epsilon with probability at least 1 - alpha, then E[Y |
    f(X)] lies in the returned interval with that probability. Not guaranteed: anything about E[Y |
    X], which is finer than E[Y | f(X)].

    >>> interval = calibration_to_interval([0.02, 0.5], 0.05)
    >>> interval.lower.round(6).tolist(), interval.upper.round(6).tolist()
    ([0.0, 0.45], [0.07, 0.55])
    """
    epsilon = Number("a number in [0, 1]", 0.0, 1.0).check("epsilon", epsilon)
    value = as_scores(prediction, name="prediction").astype(np.float64)
    check_in_range(value, 0.0, 1.0, "prediction")
    return Interval(np.maximum(value - epsilon, 0.0), np.minimum(value + epsilon, 1.0))


def interval_to_calibration(interval: Interval, *, simultaneous: bool) -> Calibration:
    """Turn confidence intervals, one per region, into a calibrated predictor, the midpoints
    (Theorem 1 of Gupta, Podkopaev and Ramdas 2020).

    Parameters
    ----------
    interval : Interval
        One interval per region.
    simultaneous : bool
        Whether the intervals hold for all regions simultaneously, as all of calibrant's do.

    Returns
    -------
    Calibration
        The midpoints and the largest half-width.

    Raises
    ------
    ValueError
        For intervals that hold only on average over regions, when two regions share a midpoint.

    Notes
    -----
    The paper states the converse for any interval. It fails for an interval that only covers on
    average: take two regions of probability .9 and .1 with rates .6 and 1, and [.4, .6] on both.
    The coverage is .9 and the half-width .1, yet the predictor is 1/2 on both, where the rate is
    .64, so it is always off by .14. With intervals that hold simultaneously, the average over
    regions that share a midpoint is an average of rates that are each within epsilon of it; with
    distinct midpoints, no average is taken.

    Examples
    --------
    >>> interval_to_calibration(Interval(np.array([0.1, 0.4]), np.array([0.2, 0.6])),
    ...     simultaneous=True).epsilon
    0.09999999999999998
    """
    middle = interval.midpoint
    if not simultaneous and np.unique(middle).size < middle.size:
        raise InvalidValueError(
            "interval",
            "hold for all regions simultaneously, or have distinct midpoints",
            got="simultaneous=False and two regions with one midpoint",
            advice="the predictor can then be off by more than the half-width",
        )
    return Calibration(middle, float(interval.radius.max()))


def interval_to_set(interval: Interval) -> BoolArray:
    """Intersect intervals with {0, 1}: an (n, 2) array that says whether 0 and 1 lie inside
    (Theorem 2 of Gupta, Podkopaev and Ramdas 2020).

    Guaranteed: if the intervals are distribution-free with respect to a score, and the score's
    distribution has no atoms, the label lies in the returned set with probability at least 1 -
    alpha. This is an impossibility result in disguise: these intervals must reach 0 or 1 nearly
    everywhere. Not guaranteed: anything for a binned score, whose values are all atoms; for it, the
    intersection is nearly always empty. For bins, use `region_sets`.

    >>> interval_to_set(Interval(np.array([0.0, 0.4]), np.array([0.3, 0.6])))
    array([[ True, False],
           [False, False]])
    """
    return np.column_stack([interval.lower <= 0.0, interval.upper >= 1.0])


def region_sets(interval: Interval, coverage: float) -> BoolArray:
    """Return the labels that are not ruled out in each region: an (n, 2) array, for 0 and for 1.

    Guaranteed, if the intervals hold for all regions simultaneously with probability 1 - alpha:
    with that probability, in every region, the label falls outside the set with probability at most
    1 - coverage. The set is {1} if 1 - lower <= 1 - coverage, {0} if upper <= 1 - coverage, and
    otherwise {0, 1}.

    >>> region_sets(Interval(np.array([0.0, 0.4, 0.96]), np.array([0.03, 0.6, 1.0])), coverage=0.95)
    array([[ True, False],
           [ True,  True],
           [False,  True]])
    """
    coverage = OPEN_UNIT.check("coverage", coverage)
    allowed = 1.0 - coverage
    surely_one = interval.lower >= coverage
    surely_zero = (interval.upper <= allowed) & ~surely_one
    return np.column_stack([~surely_one, ~surely_zero])


def minimum_expected_width(confidence_level: float) -> float:
    """Return 1/2 - alpha, the expected width that no distribution-free interval can beat (Corollary
    2 of Gupta, Podkopaev and Ramdas 2020).

    Take a score whose range contains an interval, such as that of a logistic regression, and any
    method whose confidence interval for E[Y | score] is valid for every distribution. Then there is
    a distribution for which its expected width is at least this, however large the sample. Bins
    escape because their range is finite. Guaranteed: a lower bound over all distributions. Not
    guaranteed: that the width is large for your distribution.

    >>> round(minimum_expected_width(0.9), 12)
    0.4
    """
    return max(0.0, 0.5 - (1.0 - OPEN_UNIT.check("confidence_level", confidence_level)))
