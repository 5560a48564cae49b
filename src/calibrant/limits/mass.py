"""Upper limits on how much of the population lies in each region, and in no region, which hold
simultaneously.
"""

from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.cells.bins import OTHER, Bins
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition, edge_ranks
from calibrant.cells.tally import Tally
from calibrant.limits.binomial import upper_limit

_MOST_TRIES = 256  # numbers of bins tried when searching for the ranks of the edges
# shares of rows set aside, and bases of the bets on how many of them are new; `missing_mass_limit`
# averages over both
_SHARES = np.array([0.5, 0.9])[:, None, None]
_BASES = np.array([0.0, 0.5, 0.9])[:, None]
_LARGEST_KIND = 1000
_BISECTIONS = 50


@dataclass(frozen=True, slots=True, eq=False)
class MassLimits:
    """Upper limits on shares of the population, which hold simultaneously.

    Attributes
    ----------
    regions : float array of shape (n_regions,)
        Upper limit on the share in each region.
    outside : float
        Upper limit on the share in no region: rows of unseen segments, and scores equal to an edge
        value that was seen once. 1 if nothing can be bounded.
    """

    regions: FloatArray
    outside: float


def mass_limits(partition: Partition, tally: Tally, alpha: float) -> MassLimits:
    """Return limits that hold simultaneously with probability at least 1 - alpha.

    Because the limits hold simultaneously, regions may be left out of a statement after looking at
    the data: the sum of their limits and the limit on what lies outside bounds what was left out.

    Notes
    -----
    Regions fixed before the tallied rows were seen: exact binomial limits on the counts. With
    segments, unseen ones lie outside (see `missing_mass_limit`); each region and the unseen
    segments get an equal share of alpha.

    Edges that are order statistics of the tallied rows: write the scores as quantiles of uniform
    variables U. A region that holds N of the n rows, an open gap or a single value, lies within N +
    1 neighbouring spacings of the order statistics of U, whose sum follows Beta(N + 1, n - N), the
    law of the exact binomial limit for N of n. Which spacings they are depends on the data, so the
    limit is taken over all (n + 1)(n + 2) / 2 runs of neighbouring spacings simultaneously, with
    half of alpha. An edge value of rank r that was seen once lies within the spacings on both sides
    of U_(r). For B bins the ranks are fixed, so all edge values seen once lie within 2(B - 1) fixed
    spacings, whose sum follows Beta(2B - 2, n + 3 - 2B); the other half of alpha pays for all B
    from 1 to n simultaneously. Ties change nothing.

    With segments of the latter kind, or where each segment had a draw of its own, a region's mass
    is its segment's mass times its mass within the segment. The masses of segments, the regions
    within them, the edges within them, and the unseen segments get a quarter of alpha each. Rows
    that were drawn count for the masses of segments, except those that chose which segments have
    regions of their own. With regions for all other segments, no segment is unseen.
    """
    parts = partition.bins_by_segment.values()
    if partition.cuts_own_sample or (partition.has_segments and any(part.aside for part in parts)):
        return _limits_within_segments(partition.as_bins(), tally, alpha)
    n_regions = tally.n_regions
    n_rows = tally.n_rows
    if not partition.has_segments or OTHER in partition.as_bins().segments:
        return MassLimits(
            upper_limit(tally.counts, np.full(n_regions, n_rows), alpha / n_regions), 0.0
        )
    share = alpha / (n_regions + 1)
    seen = np.bincount(partition.as_bins().layout.cells.segment, weights=tally.counts).astype(
        np.int64
    )
    regions = upper_limit(tally.counts, np.full(n_regions, n_rows), share)
    return MassLimits(regions, missing_mass_limit(seen, share))


def _limits_within_segments(bins: Bins, tally: Tally, alpha: float) -> MassLimits:
    parts = bins.parts
    share = alpha / (4 * len(parts)) if bins.has_segments else alpha / 2
    # some segments may have fixed edges, and others edges that are order statistics of their rows
    own = np.array([part.cuts_own_sample for part in parts])
    segment = bins.layout.cells.segment
    counted = np.bincount(segment, weights=tally.counts, minlength=len(parts)).astype(np.int64)
    n_rows = np.array([part.n_rows or 0 for part in parts])
    # if rows were counted later, two samples of different size would be added up, and nothing is
    # known about the masses of segments
    one_sample = own.all() or int(n_rows.sum() + counted[~own].sum()) == tally.n_rows
    n_rows[~own] = counted[~own]
    n_runs = np.where(own, (n_rows + 1.0) * (n_rows + 2.0) / 2.0, np.bincount(segment))
    rows = np.where(own[segment], bins.cut_counts(), tally.counts)
    spacings = np.array([_spacings_at_edges(part) for part in parts])
    drawn_too = n_rows + [part.aside for part in parts]
    positives = rows, np.clip(spacings - 1, 0, n_rows), drawn_too
    trials = n_rows[segment], n_rows, np.full(len(parts), drawn_too.sum())
    tails = (share / n_runs)[segment], share / np.maximum(n_rows, 1), np.full(len(parts), share)
    limits = upper_limit(*(np.concatenate(column) for column in (positives, trials, tails)))
    within, edges, segment_mass = np.split(limits, [rows.size, rows.size + len(parts)])
    edges[spacings == 0] = 0.0
    if not bins.has_segments:
        return MassLimits(within, float(edges[0]))
    segment_mass = segment_mass if one_sample else np.ones(len(parts))
    unseen = missing_mass_limit(drawn_too, alpha / 4) if one_sample else 1.0
    unseen = 0.0 if OTHER in bins.segments else unseen
    return MassLimits(
        segment_mass[segment] * within, min(1.0, unseen + float(segment_mass @ edges))
    )


def _spacings_at_edges(part: ScorePartition) -> int:
    """The number of spacings, fixed beforehand, that contain every edge value seen once."""
    if part.first_rank is None or part.n_rows is None:
        return 0
    ranks = set(part.first_rank[~part.is_tied].tolist())
    if not ranks:
        return 0
    fewest = part.edges.size + 1
    for n_bins in range(fewest, min(fewest + _MOST_TRIES, part.n_rows + 1)):
        if ranks.issubset(edge_ranks(part.n_rows, n_bins).tolist()):
            return 2 * (n_bins - 1)
    return part.n_rows + 1


def missing_mass_limit(counts: IntArray, alpha: float) -> float:
    """Return an upper limit on the probability that a new row is of an unseen kind, at confidence 1
    - alpha.

    Parameters
    ----------
    counts : int array
        Rows of each kind; the rows are independent draws from one distribution over any number of
        kinds.
    alpha : float
        Largest probability that the limit is too small.

    Notes
    -----
    Set each row aside with probability s. Given the other rows, those set aside are of a kind not
    among the others with probability M' >= M, the missing mass of all rows. Let K of the b rows set
    aside be of such a kind. For 0 <= c < 1 the mean of e(m) = c^K / (1 - m (1 - c))^b is 1 at m =
    M', and e rises with m, so the mean of e(M) is at most 1. That stays true for the average over
    all ways to set rows aside, which is a product over kinds, and for the average over several s
    and c. By Markov's inequality it exceeds 1 / alpha with probability at most alpha.

    Examples
    --------
    >>> import numpy as np
    >>> round(missing_mass_limit(np.array([600, 400]), 0.005), 4)  # two kinds, each seen often
    0.0078
    >>> round(missing_mass_limit(np.ones(1000, dtype=int), 0.005), 4)  # every row of another kind
    1.0
    """
    n_rows = float(counts.sum())
    needed = np.log(len(_SHARES) * len(_BASES) / alpha)
    # the factor of a kind grows with its size, so truncating sizes can only raise the limit
    sizes, kinds = np.unique(np.minimum(counts[counts > 0], _LARGEST_KIND), return_counts=True)

    def refuted(mass: float) -> bool:
        gain = mass * (1.0 - _BASES) / (1.0 - mass * (1.0 - _BASES))
        aside = _SHARES * (1.0 + gain) / (1.0 + _SHARES * gain)
        with np.errstate(divide="ignore"):
            kept = np.log1p(-(aside**sizes) * (1.0 - _BASES**sizes))
        evidence = n_rows * np.log1p(_SHARES * gain)[..., 0] + kept @ kinds
        return bool(np.logaddexp.reduce(evidence, axis=None) > needed)

    low = 0.0
    high = 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high
