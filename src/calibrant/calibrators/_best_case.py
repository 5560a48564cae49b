"""What no rows can beat: how narrow the limits of a saved curve can be, given its counts alone.

A saved curve stores margins and limits that only the rows can reproduce. Its counts still bound how
good they can be.
"""

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.anchored.fitted_curve import CurveProof, FittedCurve
from calibrant.errors import InvalidValueError
from calibrant.limits.binomial import upper_limit
from calibrant.limits.error_budget import ABSORBED_SHARE
from calibrant.limits.interval import Interval
from calibrant.limits.least_width import unseen_share

_ROUNDING = 1e-9  # how much limits may differ on another machine


def check_parts(proof: CurveProof, fitted: FittedCurve, limits: Interval) -> None:
    """Raise an error for margins and limits that the counts of a curve cannot give, whatever the
    rows were.

    Notes
    -----
    Margins. The average of a curve is known up to its variation times the largest distance between
    the share of rows below any score and that share in the population. With k of N rows below,
    exact limits at level d are at least as far apart as the binomial limits of k in N at d / 2; the
    distance is smallest for k = 0 or k = N / 2.

    Limits by bets. With outcomes z_i >= a of mean z, a bet against m < z that cannot lose more than
    it has gains the factor 1 + lam (z_i - m), lam <= 1 / (m - a). The mean of these factors is at
    most (z - a) / (m - a), and so the capital is at most that to the power N. It reaches 2 / d only
    if z - m >= (z - a) (1 - (d / 2)^(1 / N)). Here z is the rate minus the average of the first
    curve, and a is minus its largest value, so z - a is at least the rate: bets leave at least
    (rate) (1 - (d / 2)^(1 / N)) below and (1 - rate) (1 - (d / 2)^(1 / N)) above. The stored limits
    mix bets and limits on the rate, so they cannot be narrower than both.
    """
    parts = fitted.parts
    if parts is None:
        return
    if parts.shares is None and ((parts.lower != -1.0).any() or (parts.upper != 1.0).any()):
        raise InvalidValueError(
            "lower and upper", "be -1 and 1 where no rows were left for bets", got="other values"
        )
    counts = np.maximum(proof.tally.counts, 1)
    variation = fitted.curve.variation(proof.partition.as_bins())
    least = variation * _least_distance(counts, proof.for_curve / 2.0) + fitted.unknown
    _check("margin", parts.margin, np.minimum(least, 1.0))
    if parts.shares is None:
        return
    rate = proof.tally.positives / counts
    level = -np.expm1(np.log1p(-proof.for_rates * (1.0 - ABSORBED_SHARE)) * parts.shares)
    unseen = unseen_share(counts, np.maximum(level, 1e-300) / 2.0)
    below = np.minimum(rate - limits.lower, rate * unseen)
    above = np.minimum(limits.upper - rate, (1.0 - rate) * unseen)
    seen = proof.tally.counts > 0
    centre = rate - fitted.average
    _check("lower", np.where(seen, centre - parts.lower, 1.0), np.where(seen, below, 0.0))
    _check("upper", np.where(seen, parts.upper - centre, 1.0), np.where(seen, above, 0.0))


def _least_distance(counts: IntArray, tail: float) -> FloatArray:
    """The smallest distance between a share and its limits, over all shares that `counts` rows can
    have.
    """
    middle = counts // 2
    limits = [
        upper_limit(below, counts, tail) - below / counts
        for below in (0 * counts, middle, counts - middle)
    ]
    return np.asarray(np.minimum(limits[0], np.maximum(limits[1], limits[2])))


def _check(name: str, found: FloatArray, least: FloatArray) -> None:
    """Raise an error if a width is less than the smallest possible one."""
    short = np.flatnonzero(found < least * (1.0 - _ROUNDING) - _ROUNDING)
    if short.size:
        region = int(short[0])
        rule = f"leave at least {least[region]:.3g} in region {region}: its counts prove no more"
        raise InvalidValueError(f"{name} of the curve", rule, got=f"{found[region]:.3g}")
