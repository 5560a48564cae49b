"""Limits on the distance between the distribution of a region's rows and the true distribution."""

import numpy as np
from scipy.special import smirnovi

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.limits.binomial import upper_limit
from calibrant.limits.error_budget import sidak_level, sidak_levels

# rows beyond which the closed form is within 0.3% of the exact limit, which is slow to compute
_MOST_EXACT = 2_000


def kolmogorov_distance(
    counts: IntArray, alpha: float, shares: FloatArray | None = None
) -> FloatArray:
    """Return an upper limit on the Kolmogorov distance of each region.

    All limits hold simultaneously with probability 1 - alpha.

    Given the counts, the rows of different regions are independent. Each region therefore gets the
    level 1 - (1 - alpha)^(1 / R), or 1 - (1 - alpha)^w with `shares` w that were fixed before the
    rows were seen and add up to at most 1. The limit is Smirnov's exact one-sided limit at half of
    that level on each side; with many rows it is Massart's (1990), sqrt(ln(2 / alpha) / (2 N)).
    Without rows it is 1.

    >>> kolmogorov_distance(np.array([0, 50, 5000]), 0.01).round(4)
    array([1.    , 0.2483, 0.0253])
    """
    level = sidak_level(alpha, counts.size) if shares is None else sidak_levels(alpha, shares)
    level = np.broadcast_to(level, counts.shape)
    rows = np.maximum(counts, 1)
    limit = np.sqrt(np.log(2.0 / level) / (2.0 * rows))
    few = (counts > 0) & (counts <= _MOST_EXACT)
    limit[few] = np.minimum(limit[few], smirnovi(counts[few], level[few] / 2.0))
    return np.where(counts > 0, np.minimum(limit, 1.0), 1.0)


def rank_distance(
    rows: IntArray, region: IndexArray, distance: FloatArray, level: FloatArray
) -> FloatArray:
    """Return limits on the distance between the share of rows up to any score in a cell and that
    share in the population.

    Parameters
    ----------
    rows : int array
        Rows of each cell. The cells of a region are in the order of their scores.
    region : int array
        The region of each cell, -1 for none.
    distance : float array of shape (n_regions,)
        Limits on the Kolmogorov distance of each region, which hold at their own levels.
    level : float array of shape (n_regions,)
        Largest probability, for each region, that any of its rank limits misses.

    Notes
    -----
    With F the distribution of the scores of a region, F(X_(i)) is at least, and its limit from the
    left at most, a variable with the law Beta(i, N + 1 - i), tied or not. Each of the 2 N limits,
    from below and from above, gets an equal part of the level. Near the ends of a region these
    limits are much smaller than the Kolmogorov distance. Within a cell with i rows before it and k
    up to its end, the share lies between i / N and k / N, and F between the lower limit at rank i
    and the upper limit at rank k + 1. The smaller of the resulting limit and the distance is
    returned; in regions with more than 2,000 rows, where exact limits are slow, just the distance.

    Examples
    --------
    >>> rows, region = np.ones(100, dtype=int), np.zeros(100, dtype=int)
    >>> rank_distance(rows, region, np.array([0.2]), np.array([0.01])).round(2)[[0, 4, 20, 50]]
    array([0.12, 0.15, 0.2 , 0.2 ])
    """
    limits = np.where(region >= 0, distance[region], 0.0)
    inside = np.flatnonzero(region >= 0)
    where = region[inside]
    counts = rows[inside]
    n = np.bincount(where, counts, distance.size).astype(np.int64)[where]
    starts = np.flatnonzero(np.diff(where, prepend=-1))
    after = np.cumsum(counts)
    after -= np.repeat((after - counts)[starts], np.diff(starts, append=where.size))
    fine = (counts < n * limits[inside] / 4) & (n <= _MOST_EXACT)  # wide cells gain little
    if not fine.any():
        return limits
    after = after[fine]
    n = n[fine]
    where = where[fine]
    before = after - counts[fine]
    limit = upper_limit(
        np.append(n - before, after), np.tile(n, 2), np.tile(level[where] / (2.0 * n), 2)
    )
    below = limit[: n.size] - 1.0 + after / n
    above = limit[n.size :] - before / n
    limits[inside[fine]] = np.minimum(limits[inside[fine]], np.maximum(below, above))
    return limits
