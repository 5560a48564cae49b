"""How limits that hold at once share alpha, so that the widest of them is as narrow as it can be.

The guesses of standard errors must be fixed beforehand: bad ones make limits wider, never wrong.
"""

import numpy as np
from scipy.special import log_ndtr, ndtr

from calibrant._typing import FloatArray

_EVEN_SHARE = 0.1  # of alpha that all share alike
_BISECTIONS = 60
_EVEN_PART = 0.25  # of shares: what all have alike, for any guess
_SHARE_BISECTIONS = 40
_WIDEST = 60.0  # standard deviations


def even_width_tails(deviations: FloatArray, alpha: float) -> FloatArray:
    """The tail of each of two limits, for means whose estimates have about these standard
    deviations; alpha in all.

    Limits at x / e standard deviations are all x wide, where e is the deviation of one. x is chosen
    so that nine tenths of alpha are used; all share the rest alike. The deviations must be fixed
    beforehand: bad ones make limits wider, and never wrong.

    >>> tails = even_width_tails(np.array([0.01, 0.02]), 0.05)
    >>> tails.round(5), round(float(2 * tails.sum()), 6)
    (array([0.00128, 0.02372]), 0.05)
    """
    spread = (1.0 - _EVEN_SHARE) * alpha / 2.0
    low = 0.0
    high = _WIDEST * float(deviations.max())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if np.exp(log_ndtr(-middle / deviations)).sum() > spread:
            low = middle
        else:
            high = middle
    shares = np.exp(log_ndtr(-high / deviations))
    return np.asarray(shares + _EVEN_SHARE * alpha / (2.0 * deviations.size))


def even_widths(errors: FloatArray, alpha: float) -> FloatArray:
    """Parts of a budget with which intervals of these standard errors are equally wide.

    Some of it is shared evenly.
    """
    low = 0.0
    high = 40.0 * float(errors.max())
    for _ in range(_SHARE_BISECTIONS):
        middle = (low + high) / 2
        if 2.0 * ndtr(-middle / errors).sum() > alpha:
            low = middle
        else:
            high = middle
    wanted = ndtr(-high / errors) + 1e-300
    shares: FloatArray = (1.0 - _EVEN_PART) * wanted / wanted.sum() + _EVEN_PART / errors.size
    return shares
