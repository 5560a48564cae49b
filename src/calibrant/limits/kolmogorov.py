"""Limits on the distance between the distribution of a region's rows and the true distribution."""

import numpy as np
from scipy.special import smirnovi

from calibrant._typing import FloatArray, IntArray
from calibrant.limits.error_budget import sidak_level

# rows beyond which the closed form is within 0.3% of the exact limit, which is slow to compute
_MOST_EXACT = 2_000


def kolmogorov_distance(counts: IntArray, alpha: float) -> FloatArray:
    """Return an upper limit on the Kolmogorov distance of each region.

    All limits hold simultaneously with probability 1 - alpha.

    Given the counts, the rows of different regions are independent. Each region therefore gets the
    level 1 - (1 - alpha)^(1 / R). The limit is Smirnov's exact one-sided limit at half of that level
    on each side; with many rows it is Massart's (1990), sqrt(ln(2 / alpha) / (2 N)). Without rows it
    is 1.

    >>> kolmogorov_distance(np.array([0, 50, 5000]), 0.01).round(4)
    array([1.    , 0.2483, 0.0253])
    """
    level = sidak_level(alpha, counts.size)
    rows = np.maximum(counts, 1)
    limit = np.sqrt(np.log(2.0 / level) / (2.0 * rows))
    few = (counts > 0) & (counts <= _MOST_EXACT)
    limit[few] = np.minimum(limit[few], smirnovi(counts[few], level / 2.0))
    return np.where(counts > 0, np.minimum(limit, 1.0), 1.0)
