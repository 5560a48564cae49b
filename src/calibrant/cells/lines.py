"""A curve of the score with a line in each region: as numbers, which every rendering of it shares."""

from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray

MOST_LOGIT = 700.0
"""Logits are cut off here, where exp does not overflow in any engine."""

SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)
"""Probabilities are kept this far from 0 and 1 before a logarithm is taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """A curve that is straight in each region of a table, perhaps on the logit scale.

    In a region it is z = value + slope * (score - start), or with `beta`, numbers a and b, the same
    for all regions, z = value + a ln p - b ln(1 - p), where p is the score kept within
    `SMALLEST_PROBABILITY` of 0 and 1. The prediction is z, or 1 / (1 + exp(-z)) where it is on the
    logit scale. Then z is cut off at +-700.

    Attributes
    ----------
    start, slope : float arrays of shape (n_regions,)
        Where each region begins, and the slope in it. The value there is the table's.
    logit : bool
        Whether the curve is straight on the logit scale.
    beta : (float, float) or None
        Factors of the logarithms, in place of start and slope.
    """

    start: FloatArray
    slope: FloatArray
    logit: bool = False
    beta: tuple[float, float] | None = None
