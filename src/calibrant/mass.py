"""How much of the population a region can hold: upper limits, valid for all regions at once."""

import numpy as np

from calibrant._typing import FloatArray
from calibrant.intervals._binomial import upper_limit
from calibrant.partition import Partition
from calibrant.partition.bins import Bins
from calibrant.tally import Tally


def mass_limits(partition: Partition, tally: Tally, alpha: float) -> FloatArray:
    """Return, per region, a limit that its probability exceeds in no region, with probability at least 1 - alpha.

    Because the limits hold at once, regions may be left out of a statement after looking at the data: the sum of
    their limits bounds what was left out.

    Notes
    -----
    Regions fixed before the tallied rows were seen: exact binomial limits on the counts, each at alpha / B.

    Edges that are order statistics of the tallied rows: write the scores as quantiles of uniform variables U. A
    region that holds N of the n rows, an open gap or a single value, lies within N + 1 neighbouring spacings of the
    order statistics of U, whose sum follows Beta(N + 1, n - N), the law of the exact binomial limit for N of n. Which
    spacings they are depends on the data, so the limit is taken over all (n + 1)(n + 2) / 2 runs of neighbouring
    spacings at once. Ties change nothing.

    With segments of the latter kind, a region's mass is its segment's mass times its mass within the segment; half of
    alpha goes to each.
    """
    if partition.cuts_own_sample:
        return _own_sample_limits(partition.as_bins(), tally, alpha)
    if tally.n_rows == 0:
        return np.ones(tally.n_regions)
    return upper_limit(tally.counts, np.full(tally.n_regions, tally.n_rows), alpha / tally.n_regions)


def _own_sample_limits(bins: Bins, tally: Tally, alpha: float) -> FloatArray:
    parts = bins.parts
    share = alpha / (2 * len(parts)) if bins.has_segments else alpha
    own = np.array([part.cuts_own_sample for part in parts])
    n_rows = np.array([part.n_rows or 0 for part in parts])
    segment = bins.layout.cells.segment
    n_runs = (n_rows + 1.0) * (n_rows + 2.0) / 2.0
    within = upper_limit(bins.cut_counts(), n_rows[segment], (share / n_runs)[segment])
    within[~own[segment]] = 1.0
    if not bins.has_segments:
        return within
    segment_mass = upper_limit(n_rows, np.full(n_rows.size, n_rows.sum()), share)
    seen = np.bincount(segment, weights=tally.counts)
    segment_mass[~own & (seen > 0)] = 1.0  # how many of these rows are of the sample is not known
    return segment_mass[segment] * within
