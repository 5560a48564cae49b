"""How simultaneous limits share alpha so that the widest of them is as narrow as possible.

The guesses of standard errors must be fixed beforehand: bad ones make limits wider but never
invalid.
"""

import numpy as np
from scipy.special import log_ndtr, ndtr

from calibrant._typing import FloatArray

_EVEN_SHARE = 0.1  # share of alpha that is split evenly
_BISECTIONS = 60
_EVEN_PART = 0.25  # part of each share that is equal whatever the guesses are
_SHARE_BISECTIONS = 40
_WIDEST = 60.0  # in standard deviations


def even_width_tails(deviations: FloatArray, alpha: float) -> FloatArray:
    """The tail of each two-sided limit, for means whose estimates have about these standard
    deviations; alpha in total.

    Limits at x / e standard deviations, where e is the deviation of one estimate, are all x wide. x
    is chosen so that nine tenths of alpha are used; the rest is split evenly. The deviations must
    be fixed beforehand: bad ones make limits wider but never invalid.

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
    """Shares of a budget that give intervals with these standard errors equal widths.

    Part of the budget is split evenly.
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
