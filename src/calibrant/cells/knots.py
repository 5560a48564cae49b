"""Knots of curves of the score, and counts of rows at knots that preserve every average of such a
curve.

A curve is linear between neighbouring knots. A row whose score s lies between the knots a and b is
counted at b with probability (s - a) / (b - a), else at a. For every curve g on these knots the
expected value at the row's knot is then g(s) itself: nothing is rounded, and independent rows stay
independent draws. So averages of curves need only counts by knot and label, and these add over
batches, files and threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray, IntArray, Keys
from calibrant.cells.bins import Bins, next_double, scores_of
from calibrant.cells.score_partition import ScorePartition
from calibrant.params.random import RandomSource, uniforms

_BLOCK = 1 << 15  # rows whose numbers fit in the processor's cache
_HALVES = 2


@dataclass(frozen=True, eq=False)
class Knots:
    """Where the slope of a curve of the score may change: at the ends of all regions, once per
    side, and at scores between them.

    Attributes
    ----------
    regions : Bins
        The regions.
    cells : Bins
        Cells between neighbouring knots. Curves are linear in them, and constant beyond the outer
        knots.
    region : int array of shape (n_knots,)
        The region of each knot. The knots of a region are contiguous, in the order of their scores.
    score : float array of shape (n_knots,)
        The scores of the knots.
    first, last : int arrays of shape (n_cells,)
        The knots at the start and at the end of each cell; the same knot if curves are constant
        there.
    """

    regions: Bins
    cells: Bins
    region: IndexArray
    score: FloatArray
    first: IndexArray
    last: IndexArray

    @classmethod
    def between(cls, regions: Bins, inner: Sequence[FloatArray]) -> Self:
        """Knots at the ends of regions and at `inner` scores of each segment, which must not depend
        on counted rows.
        """
        parts = []
        for part, values in zip(regions.parts, inner, strict=True):
            edges = np.unique(np.concatenate([part.cuts, values]) + 0.0)
            edges = edges[(edges > part.low) & (edges <= part.high) & np.isfinite(edges)]
            parts.append(ScorePartition(edges, (part.low, part.high)))
        cells = regions.with_parts(parts)
        begin, end = cells.layout.ends
        # each cell lies in one region, that of any score inside it
        within = cells.layout.cells.segment if regions.has_segments else None
        of_cell = np.asarray(regions.regions_of(regions.prepared(first_inside(begin, end), within)))
        is_straight = straight_cells(begin, end)
        straight = is_straight.astype(np.intp)
        new_region = (np.diff(of_cell, prepend=-1) != 0).astype(np.intp)
        # knots at both ends of a region belong to it alone: the curve may jump between regions
        # a region has one more knot than cells in which curves are linear
        first = np.cumsum(straight + new_region) - 1 - straight
        last = first + straight
        score = np.empty(int(last[-1]) + 1)
        score[first] = first_inside(begin, end)
        score[last[is_straight]] = end[is_straight]
        score[first[is_straight]] = begin[is_straight]
        region = np.empty(score.size, dtype=np.intp)
        region[first] = of_cell
        region[last] = of_cell
        # a curve may jump where a region ends, so its last knot is just before the end
        is_end = is_straight & (np.diff(of_cell, append=-1) != 0)
        score[last[is_end]] = next_double(end[is_end], -np.inf)
        return cls(regions, cells, region, score, first, last)

    @property
    def n_knots(self) -> int:
        """The number of knots."""
        return self.score.size

    @cached_property
    def starts(self) -> IndexArray:
        """The first knot of each region, and the total number of knots."""
        return np.searchsorted(self.region, np.arange(self.regions.n_regions + 1))

    @cached_property
    def segment(self) -> IndexArray:
        """The index of each knot's segment."""
        segment = np.empty(self.n_knots, dtype=np.intp)
        segment[self.first] = self.cells.layout.cells.segment
        segment[self.last] = self.cells.layout.cells.segment
        return segment

    @cached_property
    def single_cells(self) -> IndexArray:
        """Count cells that are single edge values: those that count in no region, and those
        absorbed by a bin. No curve is fitted there.
        """
        is_single = self.regions.count_regions < 0
        is_single[self.regions.absorbed_cells] = True
        return np.flatnonzero(is_single)

    @property
    def n_places(self) -> int:
        """The number of places where rows are counted: the knots, followed by the single edge
        values.
        """
        return self.n_knots + self.single_cells.size

    @cached_property
    def counting(self) -> tuple[Bins, IndexArray, FloatArray, FloatArray]:
        """The cells to count in, and for each its first place, where it begins, and one over its
        width.
        """
        parts = []
        for part, of_curve in zip(self.regions.parts, self.cells.parts, strict=True):
            edges = np.union1d(of_curve.edges, part.count_cuts)
            edges = edges[(edges > part.low) & (edges <= part.high)]
            parts.append(ScorePartition(edges, (part.low, part.high)))
        counting = self.regions.with_parts(parts)
        inside = first_inside(*counting.layout.ends)
        segment = counting.layout.cells.segment
        cell = self.cells.layout.cells.find(inside, segment)
        begin, end = self.cells.layout.ends
        straight = self.last > self.first
        with np.errstate(all="ignore"):
            inverse = np.where(straight, 1.0 / (end - begin), 0.0)[cell]
        first = self.first[cell]
        # a single edge value is a place of its own, which no row shares with a knot
        where = self.regions.layout.count_cells.find(inside, segment)
        is_single = np.isin(where, self.single_cells)
        first[is_single] = self.n_knots + np.searchsorted(self.single_cells, where[is_single])
        inverse[is_single] = 0.0
        return counting, first, np.where(straight, begin, 0.0)[cell], inverse

    def places(self, prepared: Any) -> tuple[IndexArray, FloatArray]:
        """The knot before each score, or -1 if it counts in no region, and the relative distance to
        the next knot.

        The share lies in [0, 1]: if a curve has the value l at the knot and r at the next, its
        value at the score is (1 - share) l + share r.
        """
        counting, first, begin, inverse = self.counting
        cell = counting.regions_of(prepared)
        scores = scores_of(prepared)
        share = np.clip((scores - begin[cell]) * inverse[cell], 0.0, 1.0)
        knot = np.where(first < self.n_knots, first, -1)
        return knot[cell].astype(np.intp), np.asarray(share, dtype=np.float64)

    def count(
        self,
        prepared: Any,
        codes: CodeArray,
        source: RandomSource,
        keys: Keys | None = None,
        *,
        n_labels: int = 2,
        threads: int = 1,
    ) -> IntArray:
        """Count rows by place, half and label: an array of shape (n_places, 2, n_labels) that adds
        over parts of the rows.

        Random numbers of the rows, made from their `keys` or else from their positions, determine
        which of the two nearest knots each counts at, and in which half. Rows at single edge values
        come after those at knots. So all counts of regions follow from these (`of_cells`).
        """
        counting, first, begin, inverse = self.counting
        cell = counting.regions_of(prepared, threads=threads)
        scores = scores_of(prepared)
        size = self.n_places * _HALVES * n_labels
        total = np.zeros(size, dtype=np.int64)
        for start in range(0, len(codes), _BLOCK):
            rows = slice(start, min(start + _BLOCK, len(codes)))
            here = cell[rows]
            own = np.arange(rows.start, rows.stop, dtype=np.uint64) if keys is None else keys[rows]
            bits = source.hashes(own)
            share = begin.take(here)
            np.subtract(scores[rows], share, out=share)
            share *= inverse.take(here)
            place = first.take(here)
            place += uniforms(bits) < share
            place *= _HALVES
            bits &= np.uint64(1)
            place += bits.view(np.int64)
            place *= n_labels
            place += codes[rows]
            total += np.bincount(place, minlength=size)
        return total.reshape(self.n_places, _HALVES, n_labels)

    def of_cells(self, counts: IntArray) -> tuple[IntArray, IntArray]:
        """Rows and positives of each cell in which the regions are counted, from counts by place.

        A knot on each side of every edge makes this exact: no row is counted outside its region.
        """
        of_region = np.flatnonzero(self.regions.count_regions >= 0)
        of_region = of_region[~np.isin(of_region, self.single_cells)]
        cell = np.concatenate([of_region[self.region], self.single_cells])
        counts_of_cells = np.zeros((2, self.regions.count_regions.size), dtype=np.int64)
        np.add.at(counts_of_cells[0], cell, counts.sum(axis=(1, 2)))
        np.add.at(counts_of_cells[1], cell, counts[..., 1].sum(axis=1))
        return counts_of_cells[0], counts_of_cells[1]


def straight_cells(begin: FloatArray, end: FloatArray) -> BoolArray:
    """Whether a curve may vary within each cell.

    It is constant in a cell that is unbounded or has one value.
    """
    with np.errstate(all="ignore"):
        finite = np.isfinite(begin) & np.isfinite(end - begin) & np.isfinite(1.0 / (end - begin))
        return np.asarray(finite & (next_double(begin, np.inf) < end))


def first_inside(begin: FloatArray, end: FloatArray) -> FloatArray:
    """A double in each run of doubles: the first, or the last if the run has no beginning."""
    return np.where(
        np.isfinite(begin), begin, np.where(np.isfinite(end), next_double(end, -np.inf), 0.0)
    )
