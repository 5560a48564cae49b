"""Simultaneous limits on the rates of regions: exact for plain rows, by bets on whole units otherwise.

*Plain rows.* Given how many rows are in each region, their labels are independent draws, so binomial
limits are exact (`region_limits`), also for bins that absorb a tied edge: a score value that was
selected because of its fixed rank.

*Groups and weights.* Units are independent draws from one distribution; rows of a unit may depend on
each other in any way. `mean_limits` bets on whole units. In a region a group has S rows, T of them
positive. It counts there with weight w, and the limits are for E[w T / S] / E[w] over the groups with
rows in the region (`GroupDesign`):

- "rows": w = min(S, M), the rate among rows, where a group counts as at most M rows in a region;
- "groups": w = S over the total number of rows of the group, the rate of a random row from a
  random group.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.cells.entries import Entries
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.limits.bet_limits import bet_limits, exceeds
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.binomial import upper_limit
from calibrant.limits.error_budget import absorbed_budget, n_fixed_ranks
from calibrant.limits.interval import Interval, Method
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.random import RandomSource, fingerprint_of
from calibrant.params.rules import GROUP_TARGET, OPEN_UNIT, Flag, Integer
from calibrant.params.state_kinds import Lists, OneCount


@dataclass(frozen=True, slots=True)
class GroupDesign(Saved):
    """How groups count.

    Attributes
    ----------
    max_size : int
        M: the largest number of rows that a group counts as in a region. Fixed before the counted
        groups are seen.
    target : {"rows", "groups"}
        Whether every row or every group counts equally.
    aside : int
        Number of pilot groups, which are not counted.
    unproved : tuple of int
        Regions for which nothing is guaranteed, because no pilot group has rows in their segment.
    max_weight : float or None
        If rows have importance weights: the largest weight of a group in a region. Not saved,
        because the limits are saved.
    fixed : bool
        Whether the regions were given, and so not cut by pilot groups.
    order : int
        The seed of the random order of bets, which also depends on the counted groups.
    """

    _entries: ClassVar[EntryTable] = {
        "max_size": Integer(1),
        "target": GROUP_TARGET,
        "aside": OneCount(),
        "unproved": Entry(Lists(OneCount()), absent=()),
        "fixed": Entry(Flag(), absent=False),
        "order": Entry(OneCount(), absent=0),
    }

    max_size: int
    target: str = "rows"
    aside: int = 0
    unproved: tuple[int, ...] = ()
    max_weight: float | None = None
    fixed: bool = False
    order: int = 0

    @property
    def cap(self) -> float | None:
        """The most that a group counts in a region; None if all groups count equally, in a region
        by the share of their rows that is there.
        """
        if self.target == "groups":
            return None
        return float(self.max_size) if self.max_weight is None else self.max_weight


_ENOUGH = 20  # rows at an edge from which on their labels justify one more interval


def region_limits(
    partition: Partition,
    tally: Tally,
    method: Method,
    alpha: float,
) -> Interval:
    """Return simultaneous limits on the rate of every region, which hold with probability at least
    1 - alpha.

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
    # spent even if no edge is tied: which edges are, the rows decide
    share = absorbed_budget(partition, alpha)
    if not partition.has_absorbed:
        return method(tally, alpha - share)
    bins = partition.as_bins()
    if tally.absorbed is None or tally.absorbed.n_regions != bins.absorbed_cells.size:
        raise InvalidValueError(
            "tally", "contain the counts at the edges that the bins absorb", got="other values"
        )
    region = bins.count_regions[bins.absorbed_cells]
    between = rows_between(partition, tally)
    # few rows at an edge would get wide limits, and cost every other region a part of alpha
    at_edge = tally.absorbed
    own = _at_edges(partition)[0] >= _ENOUGH
    cells = Tally(
        np.concatenate([between.counts, at_edge.counts[own]]),
        np.concatenate([between.positives, at_edge.positives[own]]),
        tally.uncounted,
    )
    limits = method(cells, alpha - share)
    lower, upper = (side[: tally.n_regions].copy() for side in (limits.lower, limits.upper))
    low = np.zeros(region.size)
    high = np.ones(region.size)
    low[own] = limits.lower[tally.n_regions :]
    high[own] = limits.upper[tally.n_regions :]
    most = absorbed_shares(partition, alpha)[region]
    # rounded outwards, because a mixture of limits is rounded once more
    lower[region] = np.minimum(lower[region], np.nextafter(_mixed(lower[region], low, most), -1.0))
    upper[region] = np.maximum(upper[region], np.nextafter(_mixed(upper[region], high, most), 2.0))
    return Interval(np.maximum(lower, 0.0), np.minimum(upper, 1.0))


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


def mean_limits(
    entries: Entries, alpha: float, *, order: int = 0, unproved: tuple[int, ...] = ()
) -> Interval:
    """Simultaneous limits for the mean of every region: the range of means that no bet rules out.

    Parameters
    ----------
    entries : Entries
        Values from 0 to 1 of units, which are independent draws from one distribution.
    alpha : float in (0, 1)
        Largest probability that any region's interval misses.
    order : int
        The seed of the random order of bets, which also depends on the entries.
    unproved : tuple of int
        Regions that were not fixed before the units were seen.

    Returns
    -------
    Interval
        Within [0, 1]; [0, 1] for a region without rows.

    Notes
    -----
    With w the weight of a unit and y the mean of its rows in the region, w (y - q) has mean zero if
    q is the mean; how rows of a unit depend on each other does not matter, and sizes may depend on
    labels. The units with rows in a region are independent draws, and `calibrant.limits.bet_limits`
    bets on them in a random order. Given the entries, all orders are equally likely, so one is drawn
    for these entries.

    Units with rows in several regions make the regions dependent: alpha is divided by the number of
    regions (Bonferroni). Regions must be fixed before the counted units are seen. `unproved` regions
    are not, and get the limits 0 and 1, which cost nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.cells.units import RowUnits
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(np.arange(1000), 10)
    >>> codes = (rng.uniform(size=10_000) < rng.beta(2, 2, size=1000)[groups]).astype(int)
    >>> units = RowUnits(groups, 1000, np.ones(10_000))
    >>> entries = Entries.of_rows(codes, np.zeros(10_000, int), 1, units, bound=10.0)
    >>> mean_limits(entries, 0.1).radius.round(3)
    array([0.014])
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    # regions without a claim need no part of alpha
    n_shown = max(entries.n_regions - len(unproved), 1)
    units = bet_units(entries, order)
    limits = bet_limits(units, np.full(entries.n_regions, alpha / (2.0 * n_shown)))
    limits.lower[[*unproved]] = 0.0
    limits.upper[[*unproved]] = 1.0
    return limits


def bet_units(entries: Entries, order: int) -> BetUnits:
    """The units of each region in an order that is drawn for these entries, and for a seed.

    Neither the order of entries nor, unless a rate is 1/2, which label is positive changes it.
    """
    rates = np.nan_to_num(entries.rates)
    seen = fingerprint_of(entries.n_units, rates * (1.0 - rates))
    source = RandomSource.of(order, "order of bets", rows=seen)
    weight = entries.weights / entries.bound
    # so that exchanging the labels mirrors the limits, to the last bit
    is_turned = rates[entries.region] > 0.5 + 1e-9  # beyond rounding
    rarer = np.where(is_turned, 1.0 - entries.value, entries.value)
    entries = entries.take(np.lexsort((rarer, weight.round(9), entries.region)))
    zero = np.zeros(entries.n_regions)
    return BetUnits.of(entries, zero, zero + 1.0, source.generator())


def shown_above(entries: Entries, rate: float, alpha: float, order: int) -> BoolArray:
    """Whether the mean of each region is shown to be above `rate`, by its own one-sided bet at
    level `alpha`.

    A region whose mean is `rate` or lower passes with probability at most alpha. Regions may
    overlap: nothing is claimed about several together.
    """
    return exceeds(bet_units(entries, order), rate, alpha)
