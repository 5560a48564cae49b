"""Limits on the ratio of true rate to prediction, for rare events, where a difference says little."""

import numpy as np

from calibrant._typing import FloatArray
from calibrant.limits.interval import Interval

RARE = 0.05
"""Average prediction below which relative limits are stated."""

TELLING = 5.0
"""Relative limits of a region are worth stating if both lie within this factor of 1."""


def relative_limits(
    rates: Interval, predictions: Interval, errors: Interval | None = None
) -> Interval:
    """Return limits on the true rate divided by the average prediction, for every region
    simultaneously.

    Parameters
    ----------
    rates : Interval
        Limits on the true rate.
    predictions : Interval
        Limits on the average prediction; both equal to the prediction where it is known.
    errors : Interval, optional
        Limits on the true rate minus the average prediction.

    Notes
    -----
    The limits hold whenever the limits they are computed from hold, so they use none of the error
    budget. Let r be the rate of a region and h > 0 its average prediction, with r in [l, u], h in
    [a, b] and r - h in [d, e]. Then

    - r / h is at least l / b and at most u / a;
    - r / h = 1 + (r - h) / h is at least 1 + d / a if d < 0, and at least 1 + d / b otherwise; it
      is at most 1 + e / a if e > 0, and at most 1 + e / b otherwise.

    The larger of the two lower limits holds, and so does the smaller of the two upper limits. If
    these contradict each other, one of the given limits has missed, and the first pair is kept.
    Where a = 0 there is no upper limit.

    Examples
    --------
    >>> rates = Interval(np.array([0.008]), np.array([0.013]))
    >>> found = relative_limits(rates, Interval(np.array([0.01]), np.array([0.01])))
    >>> found.lower.round(3), found.upper.round(3)
    (array([0.8]), array([1.3]))
    """
    low = predictions.lower
    high = predictions.upper
    lower = _ratio(rates.lower, high, 0.0)
    upper = _ratio(rates.upper, low, np.inf)
    if errors is None:
        return Interval(lower, upper)
    least = 1.0 + _ratio(errors.lower, np.where(errors.lower < 0.0, low, high), -np.inf)
    most = 1.0 + _ratio(errors.upper, np.where(errors.upper > 0.0, low, high), np.inf)
    least = np.maximum(lower, least)
    most = np.minimum(upper, most)
    # contradicting limits have missed, and nothing narrower may be claimed then
    agree = least <= most
    return Interval(np.where(agree, least, lower), np.where(agree, most, upper))


def _ratio(numerator: FloatArray, denominator: FloatArray, otherwise: float) -> FloatArray:
    """The ratio, or `otherwise` where the denominator is 0."""
    result = np.full(numerator.shape, otherwise)
    with np.errstate(over="ignore"):  # dividing by a number such as 1e-310
        np.divide(numerator, denominator, out=result, where=denominator > 0.0)
    return result
