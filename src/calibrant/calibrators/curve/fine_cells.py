"""Rows counted in fine cells of the score, and averages of a curve over them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators.curve.pieces import ROUNDING, Pieces
from calibrant.cells.bins import Bins, next_double
from calibrant.cells.knots import first_inside
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.tally import Tally
from calibrant.sample.rows import Rows

_MOST_VALUES = 1024  # rows of a segment up to which every score has its own cell
_VALUES = 256  # scores with their own cells if there are more rows, besides those in the tails
_TAIL_VALUES = 8  # for each doubling of the rows beyond a value in the tails
_SUBDIVISIONS = 16  # of the gap between two such scores


@dataclass(frozen=True, eq=False)
class Grid:
    """Rows and positives of fine cells of the score: the values at some ranks, and parts of the
    gaps between them.

    Attributes
    ----------
    cells : Bins
        The cells. Neighbouring values are one cell each, and so is each sixteenth of the gap
        between them.
    tally : Tally
        The counts of each cell.
    """

    cells: Bins
    tally: Tally

    @classmethod
    def count(
        cls,
        data: Rows,
        regions: Bins,
        sizes: Mapping[Hashable, int],
        more: Sequence[FloatArray] = (),
    ) -> Self:
        """Count the rows; every edge of a region is one of the values.

        Cells are also cut at `more` scores.
        """
        found = data.order_statistics({name: grid_ranks(size) for name, size in sizes.items()})
        all_cuts = []
        for name, part in regions.bins_by_segment.items():
            values = np.unique(np.concatenate([part.edges, found.get(name, np.empty(0))]) + 0.0)
            cuts = np.concatenate([values, next_double(values, np.inf)])
            if sizes[name] > _MOST_VALUES:
                shares = np.arange(1, _SUBDIVISIONS)[:, None] / _SUBDIVISIONS
                cuts = np.concatenate(
                    [cuts, (values[:-1] * (1.0 - shares) + values[1:] * shares).ravel()]
                )
            all_cuts.append(cuts)
        return cls.over(data, _cells(regions, all_cuts))

    @classmethod
    def over(cls, data: Rows, cells: Bins) -> Self:
        """Count the rows over given cells."""
        tally, _ = data.tally(cells)
        return cls(cells, tally)

    @property
    def rows(self) -> IntArray:
        """The number of rows in each cell."""
        return self.tally.counts

    @property
    def begin(self) -> FloatArray:
        """The first double of each cell."""
        return self.cells.layout.ends[0]

    @property
    def end(self) -> FloatArray:
        """The first double after each cell."""
        return self.cells.layout.ends[1]

    @property
    def segment(self) -> IndexArray:
        """The index of each cell's segment."""
        return self.cells.layout.cells.segment

    @cached_property
    def _is_value(self) -> BoolArray:
        """Whether each cell is a single value."""
        return np.asarray(next_double(self.begin, np.inf) >= self.end)

    @cached_property
    def middle(self) -> FloatArray:
        """A score in the middle of each cell."""
        begin, end = self.cells.layout.ends
        closed = np.isfinite(begin) & np.isfinite(end)
        outer = first_inside(begin, end)
        single = self._is_value
        with np.errstate(all="ignore"):
            return np.where(closed & ~single, begin / 2 + end / 2, outer)

    def regions(self, partition: Bins) -> IndexArray:
        """The region in which each cell counts; -1 if none."""
        within = self.segment if partition.has_segments else None
        return np.asarray(partition.membership(partition.prepared(self.middle, within)))

    def knots(self, number: int) -> FloatArray:
        """Where the cells of a segment begin, from its smallest score to its largest.

        Any score if there are no rows.
        """
        seen = np.flatnonzero((self.segment == number) & (self.rows > 0))
        if not seen.size:
            return np.zeros(1)
        here = slice(seen[0], seen[-1] + 1)
        begin = self.begin[here] if np.isfinite(self.begin[seen[0]]) else self.middle[here]
        after_value = (
            np.append(False, begin[1:] == next_double(begin[:-1], np.inf)) & ~self._is_value[here]
        )
        return np.asarray(begin[~after_value])

    def distinct(self, chosen: BoolArray) -> ScoreCounts:
        """The chosen cells with rows as distinct scores, each in the middle of its cell.

        If gaps are divided, a value and the gap after it are merged, at the mean of their rows.
        """
        chosen = chosen & (self.rows > 0)
        order = np.argsort(self.middle[chosen], kind="stable")
        scores, rows, positives = (
            values[chosen][order] for values in (self.middle, self.rows, self.tally.positives)
        )
        new = np.diff(scores, prepend=-np.inf) > 0
        if scores.size > _MOST_VALUES:
            new = np.diff(np.cumsum(self._is_value)[chosen][order], prepend=-1) != 0
        starts = np.flatnonzero(new)
        counts, hits = (np.add.reduceat(values, starts) for values in (rows, positives))
        mean = np.add.reduceat(scores * (rows / counts[np.cumsum(new) - 1]), starts)
        single = np.diff(starts, append=scores.size) == 1
        distinct, place = np.unique(np.where(single, scores[starts], mean), return_inverse=True)
        counts, hits = (np.bincount(place, values).astype(np.int64) for values in (counts, hits))
        return ScoreCounts(distinct, counts, hits)


@dataclass(frozen=True, eq=False)
class Averages:
    """Where counted rows lie on a curve, up to their fine cell, which gives its average over each
    region.

    Attributes
    ----------
    piece : int array
        The piece of the curve that each fine cell lies in.
    middle, half : float arrays
        The position of its middle in the piece, and half of its width, as shares of the piece.
    region : int array
        The region that each fine cell counts in; -1 for none.
    n_regions : int
        The number of regions.
    rows : int array
        Rows of each fine cell.
    """

    piece: IndexArray
    middle: FloatArray
    half: FloatArray
    region: IndexArray
    n_regions: int
    rows: IntArray

    @classmethod
    def over(cls, curve: Pieces, grid: Grid, regions: Bins) -> Self:
        """The pieces of a curve that the cells of a grid lie in, to average it in each region."""
        begin, end = curve.cells.layout.ends
        inside = np.where(np.isfinite(grid.begin), grid.begin, grid.middle)
        piece = curve.cells.layout.cells.find(inside, grid.segment)
        with np.errstate(all="ignore"):
            width = end - begin
            shares = [(at - begin[piece]) / width[piece] for at in (inside, grid.end)]
        first, last = (
            np.clip(np.where(np.isfinite(share), share, 0.0), 0.0, 1.0) for share in shares
        )
        place = (first + last) / 2, (last - first) / 2
        return cls(piece, *place, grid.regions(regions), regions.n_regions, grid.rows)

    def ends(self, curve: Pieces) -> tuple[FloatArray, FloatArray]:
        """The values of the curve at the start and at the end of each fine cell."""
        low = curve.left[self.piece]
        rise = (curve.right - curve.left)[self.piece]
        return low + rise * (self.middle - self.half), low + rise * (self.middle + self.half)

    def steps(self, begin: FloatArray, end: FloatArray) -> FloatArray:
        """How much a function with these end values changes in each fine cell, and from the one
        before it.
        """
        jumps = np.where(self.region[1:] == self.region[:-1], np.abs(begin[1:] - end[:-1]), 0.0)
        return np.asarray(np.abs(end - begin) + np.append(0.0, jumps))

    def sums(self, values: FloatArray | IntArray) -> FloatArray:
        """Sums over regions of a value per fine cell."""
        counted = self.region >= 0
        return _sums(self.region[counted], values[counted], self.n_regions)

    def of(self, curve: Pieces) -> tuple[FloatArray, FloatArray]:
        """The average over the rows of each region, and its possible error, because rows are known
        only up to their cell.

        A region without rows gets the middle of the curve's range in it.
        """
        cells, where, share, has_rows = self._shares
        piece = self.piece[cells]
        low = curve.left[piece]
        rise = (curve.right - curve.left)[piece]
        found = _sums(where, share * (low + rise * self.middle[cells]), self.n_regions)
        off = _sums(where, share * np.abs(rise) * self.half[cells], self.n_regions)
        return np.clip(found, 0.0, 1.0), np.where(
            has_rows, off + ROUNDING, 0.0
        )  # after rounding, a sum may exceed 1

    def mean(self) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """The average over the rows of each region as a function of the values at the ends of each
        piece.
        """
        cells, where, share, _ = self._shares
        n_pieces = int(self.piece.max(initial=0)) + 1
        pairs, number = np.unique(where * n_pieces + self.piece[cells], return_inverse=True)
        region = pairs // n_pieces
        piece = pairs % n_pieces
        end = np.bincount(number, share * self.middle[cells])
        begin = np.bincount(number, share) - end
        return lambda left, right: _sums(
            region, begin * left[piece] + end * right[piece], self.n_regions
        )

    @cached_property
    def _shares(self) -> tuple[IndexArray, IndexArray, FloatArray, BoolArray]:
        """The fine cells that count, their region and their share of it, and which regions have
        rows.

        In a region without rows all cells count equally.
        """
        cells = np.flatnonzero(self.region >= 0)
        where = self.region[cells]
        rows = self.rows[cells].astype(np.float64)
        total, size = (np.bincount(where, of, self.n_regions) for of in (rows, None))
        has_rows = total > 0
        return (
            cells,
            where,
            np.where(has_rows[where], rows, 1.0) / np.where(has_rows, total, size)[where],
            has_rows,
        )


def _sums(where: IndexArray, values: FloatArray | IntArray, size: int) -> FloatArray:
    return np.asarray(np.bincount(where, values, size), dtype=np.float64)


def _cells(regions: Bins, cuts: Sequence[FloatArray]) -> Bins:
    """Cells cut at scores of each segment, in the range of its regions."""
    parts = []
    for part, values in zip(regions.parts, cuts, strict=True):
        inside = values[(values > part.low) & (values <= part.high) & np.isfinite(values)]
        parts.append(ScorePartition(np.unique(inside + 0.0), (part.low, part.high)))
    return regions.with_parts(parts)


def grid_ranks(n_rows: int) -> IntArray:
    """Ranks of the values of a grid: all ranks for few rows.

    For many rows, evenly spread, and closer together in both tails.
    """
    if n_rows <= _MOST_VALUES:
        return np.arange(1, n_rows + 1)
    evenly = np.linspace(1, n_rows, _VALUES).round().astype(np.int64)
    doublings = np.log2(n_rows / _VALUES)
    tail = np.unique(2.0 ** (np.arange(doublings * _TAIL_VALUES) / _TAIL_VALUES)).astype(np.int64)
    return np.unique(np.concatenate([evenly, tail, n_rows + 1 - tail]))
