"""A curve of the score with a line in each region, as numbers that all of its renderings share."""

from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray

LARGEST = float(np.finfo(np.float64).max)
"""The largest finite double: as a score limit it accepts every finite score."""

MOST_LOGIT = 700.0
"""Logits are clipped to this, so that exp does not overflow in any engine."""

INNER_ENDS = (float(np.finfo(np.float64).eps), 1.0 - float(np.finfo(np.float64).eps))
"""Probabilities are clipped to these before a logarithm is taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """A curve that is linear in each region of a table, possibly on the logit scale.

    In a region it is z = value + slope * (score - start). With `beta`, numbers a and b that are the
    same for all regions, it is z = value + a ln p - b ln(1 - p), where p is the score, clipped to
    `ends`. The prediction is z, or 1 / (1 + exp(-z)) on the logit scale. In that case z is clipped
    to +-700.

    Attributes
    ----------
    start, slope : float arrays of shape (n_regions,)
        Where each region begins, and its slope. The value at the start is in the table.
    logit : bool
        Whether the curve is linear on the logit scale.
    beta : (float, float) or None
        Factors of the logarithms, which replace start and slope.
    ends : (float, float)
        The score is clipped to these before logarithms are taken.
    """

    start: FloatArray
    slope: FloatArray
    logit: bool = False
    beta: tuple[float, float] | None = None
    ends: tuple[float, float] = INNER_ENDS
