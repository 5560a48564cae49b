"""How an error budget alpha is shared: among kinds of limits, and among regions.

Whatever guesses shares depend on must be fixed before rows are counted: bad guesses make limits
wider but never invalid.
"""

import numpy as np
from scipy.special import ndtr

from calibrant._typing import FloatArray
from calibrant.cells.partition import Partition

MASS_SHARE = 0.05
"""Share of alpha for the limits on mass."""
ABSORBED_SHARE = 0.01
"""Share of alpha for the limits on absorbed shares; see `calibrant.limits.region_limits`."""
_EVEN_SHARE = 0.1  # parts of alpha that are split evenly, whatever the guesses are
_EVEN_PART = 0.25
_BISECTIONS = 60
_WIDEST = 60.0  # in standard deviations


def budgets(alpha: float) -> tuple[float, float]:
    """Return the probabilities with which the limits on rates and the limits on mass may miss; they
    add up to alpha.

    >>> [round(share, 6) for share in budgets(0.1)]
    [0.095, 0.005]
    """
    mass = MASS_SHARE * alpha
    return alpha - mass, mass


def absorbed_budget(partition: Partition, alpha: float) -> float:
    """The share of alpha for all limits on absorbed shares together."""
    return ABSORBED_SHARE * alpha if n_fixed_ranks(partition) else 0.0


def n_fixed_ranks(partition: Partition) -> int:
    """Number of ranks, fixed beforehand, whose values are absorbed by a bin if they are tied."""
    return sum(part.absorbing or 0 for part in partition.bins_by_segment.values())


def sidak_level(alpha: float, n_regions: int) -> float:
    """Return 1 - (1 - alpha)^(1/B), the level at which B independent intervals hold together.

    >>> round(sidak_level(0.05, 10), 6)
    0.005116
    """
    return float(sidak_levels(alpha, np.array(1.0 / n_regions)))


def sidak_levels(alpha: float, shares: FloatArray) -> FloatArray:
    """Return 1 - (1 - alpha)^w for each share w, the levels at which independent intervals hold
    together.

    >>> sidak_levels(0.05, np.array([0.1, 0.9])).round(6)
    array([0.005116, 0.045115])
    """
    return np.asarray(-np.expm1(np.log1p(-alpha) * shares))


def even_width_tails(deviations: FloatArray, alpha: float) -> FloatArray:
    """The tail of each two-sided limit, for means whose estimates have about these standard
    deviations; alpha in total, of which a tenth is split evenly.

    >>> tails = even_width_tails(np.array([0.01, 0.02]), 0.05)
    >>> tails.round(5), round(float(2 * tails.sum()), 6)
    (array([0.00128, 0.02372]), 0.05)
    """
    uneven = 1.0 - _EVEN_SHARE
    shares = uneven * _even_widths(deviations, uneven * alpha) + _EVEN_SHARE / deviations.size
    return np.asarray(shares * alpha / 2.0)


def even_widths(errors: FloatArray, alpha: float) -> FloatArray:
    """Shares of a budget that give intervals with these standard errors equal widths; a quarter of
    the budget is split evenly.
    """
    uneven = 1.0 - _EVEN_PART
    return np.asarray(uneven * _even_widths(errors, alpha) + _EVEN_PART / errors.size)


def _even_widths(deviations: FloatArray, alpha: float) -> FloatArray:
    """Shares of alpha with which limits, x / e standard deviations away where e is the deviation of
    one estimate, are all x wide. The deviations must be fixed beforehand: bad ones make limits wider
    but never invalid.
    """
    low = 0.0
    high = _WIDEST * float(deviations.max())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if 2.0 * ndtr(-middle / deviations).sum() > alpha:
            low = middle
        else:
            high = middle
    # at a width of 0 all tails vanish, and shares would be 0 / 0
    tails = ndtr(-high / deviations) + 1e-300
    return np.asarray(tails / tails.sum())
