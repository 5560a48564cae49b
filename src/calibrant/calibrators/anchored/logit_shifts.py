"""Shifts of a curve on the logit scale, into the limits on the rates of regions."""

import numpy as np
from scipy.special import expit, logit

from calibrant._typing import FloatArray
from calibrant.calibrators.anchored.fine_cells import Averages
from calibrant.calibrators.anchored.pieces import Pieces
from calibrant.cells.bins import Bins
from calibrant.limits.interval import Interval

_BISECTIONS = 40
_LARGEST_SHIFT = 64.0


def anchored(curve: Pieces, averages: Averages, regions: Bins, limits: Interval) -> Pieces:
    """Shift the curve on the logit scale, in each region where its average leaves the limits, until
    it does not.
    """
    found, _ = averages.of(curve)
    target = np.clip(found, limits.lower, limits.upper)
    if (target == found).all():
        return curve
    piece = curve.regions(regions)
    straight = curve.is_straight
    ends = [(values, logit(values)) for values in (curve.left, curve.right)]
    mean = averages.mean()

    def shifted(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        by = shift[piece]
        left, right = (np.where(by != 0.0, expit(at + by), before) for before, at in ends)
        return left, np.where(straight, right, left)

    rising = found < target
    moves = found != target
    low = np.where(moves & ~rising, -_LARGEST_SHIFT, 0.0)
    high = np.where(moves & rising, _LARGEST_SHIFT, 0.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        above = mean(*shifted(middle)) >= target
        low = np.where(above, low, middle)
        high = np.where(above, middle, high)
    return Pieces(curve.cells, *shifted(np.where(rising, high, low)))
