"""Shifts of a curve on the logit scale: towards the rates of regions, or only into their limits."""

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import isotonic_regression

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.anchored.fine_cells import Averages
from calibrant.calibrators.anchored.pieces import Pieces
from calibrant.cells.bins import Bins
from calibrant.limits.interval import Interval

_BISECTIONS = 40
# share of the half-width of a rate: how far a curve's average may be from the rate before it is
# bent
_NEAR = 0.1
_FAR = 0.4  # the same, in regions that do not determine the largest error
_DISTANCE = (
    1.0  # approximate error in averages of a curve that rises by 1, times the root of the rows
)
_KEPT = 0.05  # of the original curve, where it is clipped
_LARGEST_SHIFT = 64.0


def anchored(curve: Pieces, averages: Averages, regions: Bins, limits: Interval) -> Pieces:
    """Shift the curve on the logit scale, in each region where its average leaves the limits, until
    it does not.
    """
    found, _ = averages.of(curve)
    target = np.clip(found, limits.lower, limits.upper)
    return curve if (target == found).all() else _moved(curve, averages, regions, found, target)


def bent(
    curve: Pieces,
    averages: Averages,
    regions: Bins,
    counts: IntArray,
    rates: FloatArray,
    limits: Interval,
) -> Pieces:
    """Shift a nondecreasing curve towards the rate in each region, and keep the order of scores.

    It is shifted on the logit scale, until its average is within a tenth of the half-width of the
    rate. If the shifts of two regions would cross, both are clipped at a level between their
    averages, and a small part of the original curve is mixed in, so that scores are not tied.
    Decreasing rates are pooled first, as in isotonic regression.
    """
    found, _ = averages.of(curve)
    rate = np.where(counts > 0, rates, found)
    # roughly what the guarantee needs in each region; only the largest matters, and others may stay
    # as they are
    needed = limits.radius + curve.variation(regions) * (_DISTANCE / np.sqrt(np.maximum(counts, 1)))
    near = np.clip(
        (needed.max(where=counts > 0, initial=0.0) - needed) / limits.radius, _NEAR, _FAR
    )
    near = np.clip(found, rate - near * (rate - limits.lower), rate + near * (limits.upper - rate))
    target = np.empty_like(near)
    weights = np.maximum(counts, 1e-3)
    segment = regions.layout.cells.segment
    for number in range(len(regions.parts)):
        here = segment == number
        target[here] = isotonic_regression(near[here], sample_weight=weights[here])
    low, high = _moved(curve, averages, regions, found, target).range(regions)
    level = np.clip((high[:-1] + low[1:]) / 2, target[:-1], target[1:])
    same = segment[1:] == segment[:-1]
    cuts = np.append(0.0, np.where(same, level, 0.0)), np.append(np.where(same, level, 1.0), 1.0)
    return _moved(curve, averages, regions, found, target, cuts)


def _moved(
    curve: Pieces,
    averages: Averages,
    regions: Bins,
    found: FloatArray,
    target: FloatArray,
    cuts: tuple[FloatArray, FloatArray] | None = None,
) -> Pieces:
    """Shift the curve of each region on the logit scale until its average is the target, clipped
    outside `cuts`.
    """
    piece = curve.regions(regions)
    straight = curve.is_straight
    ends = [(values, logit(values)) for values in (curve.left, curve.right)]
    least, most = (0.0, 1.0) if cuts is None else (cut[piece] for cut in cuts)
    kept = 0.0 if cuts is None else _KEPT
    mean = averages.mean()

    def shifted(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        by = shift[piece]
        left, right = (
            (1.0 - kept) * np.clip(np.where(by != 0.0, expit(at + by), before), least, most)
            + kept * before
            for before, at in ends
        )
        return left, np.where(straight, right, left)

    rising = found < target
    low = np.where(rising, 0.0, -_LARGEST_SHIFT)
    high = np.where(rising, _LARGEST_SHIFT, 0.0)
    low = np.where(found == target, 0.0, low)
    high = np.where(found == target, 0.0, high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        above = mean(*shifted(middle)) >= target
        low = np.where(above, low, middle)
        high = np.where(above, middle, high)
    return Pieces(curve.cells, *shifted(np.where(rising, high, low)))
