"""Fine cells inside regions, and the rows counted in them, so that a monitor finds drift inside a
region.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.cells.bins import scores_of
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.limits.region_limits import rows_between
from calibrant.params.declared_state import Saved
from calibrant.params.kind import EntryTable, Known
from calibrant.params.state_kinds import Counts, NumbersOrNull
from calibrant.sample.order_statistics import MovedRowsError
from calibrant.sample.reader import in_memory

_CELLS = 40  # of all regions together, at most
_ROWS = 100  # in a cell: with fewer, a monitor warns later
_FEWEST_PARTS = 2  # of a region, however few its rows: in one, a new order would not be seen
_PILOT_ROWS = 2  # in a cell, on average, that is cut by pilot rows
_READ_AGAIN = 200_000  # rows outside memory, at most, that are read once more


@dataclass(frozen=True, eq=False)
class InnerCells(Saved):
    """Cells that divide regions, and the counted rows strictly between the edges of regions.

    Attributes
    ----------
    region : int array of shape (n_cells,)
        The region of each cell; every region has one or more, in order.
    begin : float array of shape (n_cells,)
        The lowest score of each cell; -inf for the first cell of a region.
    rows, hits : int arrays of shape (n_cells,)
        Rows and positive rows.
    """

    _entries: ClassVar[EntryTable] = {
        "region": Counts(),
        "begin": NumbersOrNull(-np.inf, size="region.size"),
        "rows": Counts(size="region.size"),
        "hits": Counts(size="region.size"),
    }

    region: IndexArray
    begin: FloatArray
    rows: IntArray
    hits: IntArray

    @classmethod
    def undivided(cls, rows: IntArray, hits: IntArray) -> Self:
        """One cell for each region."""
        return cls(np.arange(rows.size), np.full(rows.size, -np.inf), rows, hits)

    @classmethod
    def of(cls, binned: Binned) -> Self | None:
        """Divide the regions by the scores of pilot rows or, where these are few, into equal parts,
        and count again.

        The cells do not depend on labels. None if regions are many or not bins of the score, if
        rows have weights or groups, and for many rows outside memory, where one more pass takes
        long.
        """
        partition = binned.partition
        n_rows = binned.tally.n_rows
        n_parts = round(min(_CELLS, n_rows / _ROWS) / partition.n_regions)
        if partition.n_regions * _FEWEST_PARTS <= _CELLS:
            n_parts = max(n_parts, _FEWEST_PARTS)
        is_plain = binned.tally.weights is None and binned.tally.groups is None
        is_cheap = in_memory(binned.rows) or n_rows <= _READ_AGAIN
        if n_parts < 2 or not (partition.bins_by_segment and is_plain and is_cheap):
            return None
        bins = partition.as_bins()
        fine = bins.with_parts(
            [
                _divided(part, np.asarray(binned.drawn.get(name, ())), n_parts)
                for name, part in bins.bins_by_segment.items()
            ]
        )
        try:
            tally = binned.rows.tally_and_reach(fine)[0]
        except MovedRowsError:  # pilot rows of an unordered source could be counted
            return None
        cells = fine.layout.cells
        n_segments = len(fine.parts)
        begin = cells.bounds(np.full(n_segments, -np.inf), np.full(n_segments, np.inf))[0]
        region = between_edges(bins)[bins.layout.count_cells.find(begin, cells.segment)]
        inside = region >= 0
        region = region[inside]
        is_first = np.diff(region, prepend=-1) > 0
        begin = np.where(is_first, -np.inf, begin[inside])
        return cls(region, begin, tally.counts[inside], tally.positives[inside])

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return self.region.size

    @property
    def first(self) -> IndexArray:
        """The first cell of each region."""
        return np.flatnonzero(np.diff(self.region, prepend=-1))

    def by_region(self, counts: IntArray) -> IntArray:
        """Add up counts of cells, the last axis."""
        return np.asarray(np.add.reduceat(counts, self.first, axis=-1))

    def cells_of(self, regions: IndexArray, prepared: Any) -> IndexArray:
        """The cell of each row, given its region; -1 for a row in no region."""
        first = self.first
        if first.size == self.n_cells:
            return regions
        place = np.arange(self.n_cells) - first[self.region]
        begins = np.full((first.size, int(place.max()) + 1), np.inf)
        begins[self.region, place] = self.begin
        passed = begins[regions] <= scores_of(prepared)[:, None]
        return np.where(regions < 0, -1, first[regions] + passed.sum(axis=1) - 1)

    def check(self, partition: Partition, tally: Tally) -> None:
        """Raise an error unless the cells divide the regions of a tally."""
        if (np.diff(self.region, prepend=-1) > 1).any() or (np.diff(self.region) < 0).any():
            raise InvalidValueError("region", "name every region, in order")
        between = rows_between(partition, tally)
        same = self.first.size == partition.n_regions and (
            np.array_equal(self.by_region(self.rows), between.counts)
            and np.array_equal(self.by_region(self.hits), between.positives)
        )
        if not same:
            raise InvalidValueError("rows and hits of cells", "add up to those of the regions")

    def _check_state(self, known: Known) -> None:
        if (self.hits > self.rows).any():
            raise InvalidValueError("hits", "be at most rows")


def between_edges(bins: Any) -> IndexArray:
    """For each cell in which bins are counted, its region; -1 for an edge value, which counts in no
    region or was absorbed by one.
    """
    region_of = bins.count_regions.copy()
    region_of[bins.absorbed_cells] = -1
    return np.asarray(region_of)


def _divided(part: ScorePartition, pilot: FloatArray, n_parts: int) -> ScorePartition:
    """The bins of one segment, divided."""
    begin, end = part.bounds.T
    shares = np.arange(1, n_parts) / n_parts
    region = np.searchsorted(part.cuts, pilot, side="right")
    inner = []
    for number in range(part.n_regions):
        own = np.unique(pilot[region == number])
        own = own[own > begin[number]]
        if own.size >= _PILOT_ROWS * n_parts:
            inner.append(own[np.arange(1, n_parts) * own.size // n_parts])
        elif np.isfinite([begin[number], end[number]]).all():
            between = begin[number] * (1.0 - shares) + end[number] * shares  # never overflows
            inner.append(np.clip(between, begin[number], end[number]))
    cuts = np.unique(np.concatenate([part.count_cuts, *inner]))
    return ScorePartition(cuts[(cuts > part.low) & (cuts <= part.high)], (part.low, part.high))
