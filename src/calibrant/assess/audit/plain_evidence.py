"""What is shown about independent rows without weights.

Given all scores their labels are independent. So regions may be cut after seeing all scores, limits
are binomial, and those of different regions are independent. Counts of cells of scores are enough,
wherever the rows are.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from calibrant._typing import IntArray
from calibrant.assess.audit.resolutions import (
    REGIONS_SHARE,
    SPREAD_SHARE,
    Resolutions,
    finest_bins,
    nested_regions,
)
from calibrant.assess.audit.spread import CELL_EDGES, spread_of
from calibrant.assess.metrics.bin_sums import MOST_VALUES, few_values
from calibrant.assess.metrics.independent_units import ROWS, Units
from calibrant.assess.monotone.monotone_band import MonotoneBand
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import ScorePartition, equal_mass
from calibrant.cells.segmented_partition import SegmentedPartition
from calibrant.errors import InvalidValueError
from calibrant.guarantee.relative import relative_limits
from calibrant.limits.error_budget import sidak_level
from calibrant.limits.interval import Interval
from calibrant.limits.kl import lower_mean
from calibrant.limits.non_identical import non_identical
from calibrant.params.labels import CODED
from calibrant.sample.reader import in_memory
from calibrant.sample.rows import Rows

_ROUNDING = 1e-12  # for rounding in a mean score, subtracted from the error shown


@dataclass(frozen=True, slots=True, eq=False)
class PlainEvidence:
    """Cells of scores: of all rows, and then of each segment.

    Attributes
    ----------
    rows : Rows
        The rows.
    segments : list of pairs
        The name of each segment, None for all rows, and its cells.
    n_bins : int or "auto"
        Number of bins at the finest resolution.
    """

    units: ClassVar[Units] = ROWS
    assumptions: ClassVar[tuple[str, ...]] = (ROWS.assumption,)
    n_set_aside: ClassVar[int] = 0

    rows: Rows
    segments: list[tuple[Hashable, ScoreCounts]]
    n_bins: int | str

    @classmethod
    def of(cls, data: Rows, n_bins: int | str) -> Self:
        """Count rows of any number where they are, in memory or elsewhere.

        A region ends where the middle rank of a value passes j n / n_bins. That value is the order
        statistic of rank ceil(j n / n_bins). Each of these values is a cell, and so is each range
        between two of them. So every region consists of whole cells, and no scores are sorted.
        Ranges are also cut at `CELL_EDGES`, for the spread.
        """
        values = data.values(MOST_VALUES)
        if not values:
            raise InvalidValueError("the data", "have at least one row", got="none")
        sizes = data.sizes()
        sizes[None] = sum(sizes.values())
        edges = {name: distinct for name, distinct in values.items() if distinct is not None}
        many_valued = values.keys() - edges.keys()
        ranks = {}
        for name in many_valued:
            finest = finest_bins(sizes[name], n_bins)
            ranks[name] = -(-np.arange(1, finest, dtype=np.int64) * sizes[name] // finest)
        edges |= data.order_statistics(ranks)
        edges |= {name: np.union1d(edges[name], CELL_EDGES) for name in many_valued}
        atoms = {name: ScorePartition.atoms(edges[name]) for name in values}
        counted = [data.without_segments().tally_and_scores(atoms.pop(None))]
        if atoms:
            bins = SegmentedPartition(atoms)
            tally, sums = data.tally_and_scores(bins)
            places = [slice(*ends) for ends in pairwise(bins.offsets.tolist())]
            counted += [(tally.part(place), sums.part(place)) for place in places]
        cells = [
            (name, ScoreCounts.of_tally(tally, sums, are_values=name not in many_valued))
            for name, (tally, sums) in zip((None, *atoms), counted, strict=True)
        ]
        return cls(data, cells, n_bins)

    def band(self, confidence_level: float) -> MonotoneBand:
        """The band of all rows: of every score in memory, else of the cells; its texts name no
        class.
        """
        cells = self.segments[0][1]
        if in_memory(self.rows):
            cells = ScoreCounts.of(self.rows.scores, self.rows.codes)
        return MonotoneBand.from_cells(cells, CODED, confidence_level)

    def resolutions(self, segment: int, alpha: float) -> Resolutions:
        """The regions of a segment, limits that hold for all of them, and whether its scores are too
        extreme, or not extreme enough.

        Every resolution gets the same share of the level. Within a resolution the share is divided by
        Sidak's rule: given the scores, labels of different regions are independent. The cuts depend
        on the scores alone, and equal scores stay together, so choosing the cuts costs no part of
        alpha.
        """
        name, cells = self.segments[segment]
        finite = is_finite(cells)
        rows, positives = cells.whole
        levels = _nested_cells(rows, finest_bins(int(cells.n_rows), self.n_bins), finite)
        regions = nested_regions(replace(cells, counts=rows, positives=positives), rows, levels)
        resolution = regions["resolution"]
        sizes = np.bincount(resolution).tolist()
        share = REGIONS_SHARE * alpha / len(levels)
        tails = np.array([sidak_level(share, size) / 2 for size in sizes])[resolution]
        is_value = regions["low"] == regions["high"]
        rates = non_identical(regions["counts"], regions["positives"], tails, is_value)
        mean = regions["mean_score"]
        errors = Interval(rates.lower - mean, rates.upper - mean)
        relative = relative_limits(rates, Interval(mean, mean))
        return Resolutions.of(
            name,
            regions,
            rates,
            errors,
            relative,
            _ROUNDING,
            finite=finite,
            n_values=cells.n_values,
            spread=spread_of(cells, SPREAD_SHARE * alpha, name),
        )

    def average_error(
        self, parts: Sequence[Resolutions], alpha: float, *, within_segments: bool
    ) -> float:
        """A lower bound on the average error: that of the scores seen, an average of independent
        draws from [0, 1], by Chernoff's bound.
        """
        some = parts[1:] if within_segments else parts[:1]
        sizes = [part.n_rows for part in some]
        error = np.average([part.average_error() for part in some], weights=sizes)
        return lower_mean(float(error), sum(sizes), alpha)

    def unseen_mass(self, alpha: float, *, within_segments: bool) -> float:
        """An upper bound on the mass of unseen scores, by the number of scores seen once (McAllester
        and Ortiz 2003) and McDiarmid's inequality.
        """
        some = [cells for _, cells in (self.segments[1:] if within_segments else self.segments[:1])]
        n_rows = sum(int(cells.n_rows) for cells in some)
        once = sum(int(np.count_nonzero(cells.counts == 1)) for cells in some)
        deviation = (1.0 + math.sqrt(2.0)) * math.sqrt(math.log(2.0 / alpha) / n_rows)
        return min(1.0, once / n_rows + deviation)


def is_finite(cells: ScoreCounts) -> bool:
    """Whether every score is seen often enough to be a region of its own."""
    return cells.n_values is not None and few_values(cells.n_values, int(cells.n_rows))


def _nested_cells(counts: IntArray, n_bins: int, finite: bool) -> list[IntArray]:
    """For every resolution, coarse to fine, the region of each cell.

    Each region lies within one coarser region.
    """
    nested = [equal_mass(counts, n_bins)]
    while nested[0][-1] > nested[0][0]:
        nested.insert(0, nested[0] // 2)
    if finite:
        nested.append(np.arange(counts.size))
    sizes = [int(np.count_nonzero(np.diff(cell))) for cell in nested]
    # a resolution with the same regions as the next finer one would waste a share of alpha
    return [
        cell
        for cell, size, finer in zip(nested, sizes, [*sizes[1:], -1], strict=True)
        if size != finer
    ]
