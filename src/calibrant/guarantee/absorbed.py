"""Limits for bins that absorb a tied edge: a score value that was selected because of its fixed
rank.
"""

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.error_budget import absorbed_budget, n_fixed_ranks, sidak_levels
from calibrant.limits.interval import Interval, Method

_ENOUGH = 20  # rows at an edge from which on their labels justify one more interval


def region_limits(
    partition: Partition,
    tally: Tally,
    method: Method,
    alpha: float,
    shares: FloatArray | None = None,
) -> Interval:
    """Return simultaneous limits on the rate of every region, which hold with probability at least
    1 - alpha.

    With `shares`, which were fixed before any counted label was seen and sum to at most 1, each
    region gets its share of alpha, and the limits are exact binomial limits, whatever the method.

    Notes
    -----
    Let v be the order statistic of a fixed rank, seen t times, and w that of the next fixed rank
    (or infinity). N rows lie strictly between them, and the bin [v, w) absorbs v. The rate of the
    bin is a mixture of the rates at v and between. The share of v in it, p = P(v) / (P(v) +
    P(between)), exceeds the 1 - d quantile of Beta(t + 1, N), the exact binomial limit for t of t +
    N, with probability at most d.

    Why: take any value a. Given w, its ties, and the number of rows in [a, w), the number of rows
    at a is binomial with probability p. That a has the fixed rank means that this number is at
    least some s. So a selected value tends to have more rows than the binomial law says, and the
    limit is too small with probability at most d.

    The labels at v and between are independent given all these numbers, so their limits hold as if
    nothing had been selected. With limits [l1, u1] between and [l2, u2] at v, and q the bound on p,
    the rate of the bin is at least min(l1, (1 - q) l1 + q l2) and at most max(u1, (1 - q) u1 + q
    u2).

    Each rank that was fixed beforehand gets an equal part of 1% of alpha as its d, tied or not. At
    v the limits [0, 1] cost nothing; with 20 rows or more, which does not depend on labels, the
    labels at v get limits of their own.
    """
    share = absorbed_budget(partition, alpha)
    if not partition.has_absorbed:
        return _limits(partition, tally, method, alpha - share, shares)
    bins = partition.as_bins()
    if tally.absorbed is None or tally.absorbed.n_regions != bins.absorbed_cells.size:
        raise InvalidValueError(
            "tally", "contain the counts at the edges that the bins absorb", got="other values"
        )
    region = bins.count_regions[bins.absorbed_cells]
    between = rows_between(partition, tally)
    at_edge = tally.absorbed
    own = (_at_edges(partition)[0] >= _ENOUGH) & (
        not method.takes_partition
    )  # it needs the edges of each cell
    cells = Tally(
        np.concatenate([between.counts, at_edge.counts[own]]),
        np.concatenate([between.positives, at_edge.positives[own]]),
        tally.uncounted,
    )
    if shares is not None:  # an edge gets the same share as an average region
        n_cells = tally.n_regions + int(own.sum())
        shares = np.append(shares * tally.n_regions, np.ones(int(own.sum()))) / n_cells
    limits = _limits(partition, cells, method, alpha - share, shares)
    lower, upper = (side[: tally.n_regions].copy() for side in (limits.lower, limits.upper))
    low = np.zeros(region.size)
    high = np.ones(region.size)
    low[own] = limits.lower[tally.n_regions :]
    high[own] = limits.upper[tally.n_regions :]
    most = absorbed_shares(partition, alpha)[region]
    lower[region] = np.minimum(lower[region], np.nextafter(_mixed(lower[region], low, most), -1.0))
    upper[region] = np.maximum(upper[region], np.nextafter(_mixed(upper[region], high, most), 2.0))
    return Interval(np.maximum(lower, 0.0), np.minimum(upper, 1.0))


def _limits(
    partition: Partition, tally: Tally, method: Method, alpha: float, shares: FloatArray | None
) -> Interval:
    """The method's limits; with shares w, exact binomial limits, each at level 1 - (1 - alpha)^w.

    Given the counts, regions are independent, so the product of all confidences is 1 - alpha.
    """
    if shares is None:
        return method(tally, alpha, partition)
    tail = sidak_levels(alpha, shares) / 2.0
    return Interval(
        lower_limit(tally.positives, tally.counts, tail),
        upper_limit(tally.positives, tally.counts, tail),
    )


def rows_between(partition: Partition, tally: Tally) -> Tally:
    """The counts of each region without its absorbed edge."""
    if tally.absorbed is None:
        return tally
    bins = partition.as_bins()
    region = bins.count_regions[bins.absorbed_cells]
    counts = tally.counts.copy()
    positives = tally.positives.copy()
    counts[region] -= tally.absorbed.counts
    positives[region] -= tally.absorbed.positives
    return Tally(counts, positives, tally.uncounted)


def absorbed_shares(partition: Partition, alpha: float) -> FloatArray:
    """Upper limits on the share of the absorbed edge in each region; 0 for a region without one.

    They hold whenever the limits of `region_limits` with the same alpha hold.
    """
    shares = np.zeros(partition.n_regions)
    if partition.has_absorbed:
        bins = partition.as_bins()
        at_edge, between = _at_edges(partition)
        tail = absorbed_budget(partition, alpha) / n_fixed_ranks(partition)
        shares[bins.count_regions[bins.absorbed_cells]] = upper_limit(
            at_edge, at_edge + between, tail
        )
    return shares


def _mixed(one: FloatArray, other: FloatArray, share: FloatArray) -> FloatArray:
    return (1.0 - share) * one + share * other


def _at_edges(partition: Partition) -> tuple[IntArray, IntArray]:
    """Rows at each absorbed edge, and rows between it and the next edge, in the sample that set the
    edges.
    """
    at_edge = []
    between = []
    for part in partition.bins_by_segment.values():
        if part.first_rank is not None and part.last_rank is not None:
            at_edge.append((part.last_rank - part.first_rank + 1)[part.is_absorbed])
            between.append(part.rows_after[part.is_absorbed])
    return np.concatenate(at_edge), np.concatenate(between)
