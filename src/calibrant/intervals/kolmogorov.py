"""How far the distribution of the rows in a region can be from the true one."""

import numpy as np
from scipy.special import smirnovi

from calibrant._typing import FloatArray, IntArray
from calibrant.intervals._binomial import sidak_level

_MOST_EXACT = 2_000  # rows: beyond, the closed form is within 0.3 % of the exact limit, which takes time to find


def kolmogorov_distance(counts: IntArray, alpha: float) -> FloatArray:
    """Return limits on the Kolmogorov distance of each region, of which none is exceeded with probability 1 - alpha.

    Given the counts, the rows of different regions are independent, so each region gets 1 - (1 - alpha)^(1 / R). The
    limit is Smirnov's exact one-sided limit at half of that on each side; with many rows it is that of Massart (1990),
    sqrt(ln(2 / alpha) / (2 N)). Without any row it is 1.

    >>> kolmogorov_distance(np.array([0, 50, 5000]), 0.01).round(4)
    array([1.    , 0.2483, 0.0253])
    """
    level = sidak_level(alpha, counts.size)
    rows = np.maximum(counts, 1)
    limit = np.sqrt(np.log(2.0 / level) / (2.0 * rows))
    few = (counts > 0) & (counts <= _MOST_EXACT)
    limit[few] = np.minimum(limit[few], smirnovi(counts[few], level / 2.0))
    return np.where(counts > 0, np.minimum(limit, 1.0), 1.0)
