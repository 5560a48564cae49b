"""What no rows can beat: how narrow limits in a file can be, given the counts alone."""

from collections.abc import Mapping

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval

_ROUNDING = 1e-9  # how much limits may differ on another machine
_SHARE = 0.5  # of the narrowest theoretically possible limits: accepted in a file


def check_widths(limits: Mapping[str, Interval], counts: IntArray, alpha: float, of: str) -> None:
    """Raise an error for limits that are narrower than any rows could make them.

    Notes
    -----
    With outcomes z_i in [a, b] of mean z, a bet against m < z that cannot lose more than it has
    multiplies the capital by 1 + lam (z_i - m), lam <= 1 / (m - a). Its mean factor is at most (z -
    a) / (m - a), and so the capital reaches 1 / d in n rows only if z - m >= (z - a) (1 - d^(1 /
    n)). Both sides together leave at least (b - a) (1 - d^(1 / n)), and labels minus a prediction
    have b - a >= 1. Exact limits on a rate leave as much. Fewer bets, on whole groups or with
    weights up to 1, leave more. Half of that is required.
    """
    least = _SHARE * unseen_share(counts, alpha / 2.0)
    for name, found in limits.items():
        width = found.upper - found.lower
        short = np.flatnonzero(width < least * (1.0 - _ROUNDING) - _ROUNDING)
        if short.size:
            region = int(short[0])
            rule = (
                f"leave at least {least[region]:.3g} in region {region}: its counts prove no more"
            )
            raise InvalidValueError(f"{name} of {of}", rule, got=f"{width[region]:.3g}")


def unseen_share(counts: IntArray, tail: float | FloatArray) -> FloatArray:
    """The largest share of a population of which n rows have nothing, with probability `tail`: no
    upper limit at that tail is below it, and no lower limit above 1 minus it.
    """
    return np.asarray(-np.expm1(np.log(tail) / np.maximum(counts, 1)))
