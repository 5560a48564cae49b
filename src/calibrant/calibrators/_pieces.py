"""A curve of the score that is straight between knots, and what counts of rows tell of its averages."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit

from calibrant._state import read_numbers
from calibrant._text import shown
from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators.distinct import DistinctScores
from calibrant.errors import InvalidValueError
from calibrant.partition import ScorePartition
from calibrant.partition.bins import Bins
from calibrant.rows import ScoredData

_MOST_KNOTS = 1024  # of one segment, besides those in the tails
_TAIL_KNOTS = 8  # for each doubling of the rows beyond a knot in the tails
_ACCURACY = 0.002  # of the curve between the knots that are kept, on the logit scale
_ROUNDING = 1e-12  # added to what is computed from sums over rows
_BISECTIONS = 60
_LARGEST_SHIFT = 64.0


@dataclass(frozen=True, eq=False)
class Grid:
    """Rows and positives of fine cells of the score: the values of some ranks, and the gaps between them.

    Attributes
    ----------
    cells : Bins
        The cells. Those of one segment are single values, and the open gaps between neighbouring values.
    rows, positives : int arrays
        What was counted in each cell.
    """

    cells: Bins
    rows: IntArray
    positives: IntArray

    @classmethod
    def count(cls, data: ScoredData, regions: Bins, sizes: Mapping[Any, int]) -> Self:
        """Count the rows; every edge of a region is one of the values."""
        values = data.order_statistics({name: grid_ranks(size) for name, size in sizes.items()})
        parts = []
        for name, part in regions.bins_by_segment.items():
            edges = np.unique(np.concatenate([part.edges, values[name]]) + 0.0)
            inside = (edges > part.low) & (edges <= part.high)
            parts.append(ScorePartition(edges[inside], (part.low, part.high), atoms=True))
        cells = regions._joined(parts)
        tally, _ = data.tally(cells)
        return cls(cells, tally.counts, tally.positives)

    @cached_property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        layout = self.cells.layout
        return layout.cells.bounds(layout.low, layout.high)

    @property
    def begin(self) -> FloatArray:
        """The first double of each cell."""
        return self._bounds[0]

    @property
    def end(self) -> FloatArray:
        """The first double after each cell."""
        return self._bounds[1]

    @property
    def segment(self) -> IndexArray:
        """The number of the segment of each cell."""
        return self.cells.layout.cells.segment

    @cached_property
    def middle(self) -> FloatArray:
        """A score in the middle of each cell."""
        begin, end = self._bounds
        closed = np.isfinite(begin) & np.isfinite(end)
        outer = np.where(np.isfinite(begin), begin, np.where(np.isfinite(end), np.nextafter(end, -np.inf), 0.0))
        single = np.nextafter(begin, np.inf) >= end
        return np.where(closed & ~single, begin / 2 + end / 2, outer)

    def regions(self, partition: Bins) -> IndexArray:
        """The region in which each cell counts, -1 where it counts in none."""
        within = self.segment if partition.has_segments else None
        return np.asarray(partition.membership(partition.prepared(self.middle, within)))

    def distinct(self, chosen: BoolArray) -> DistinctScores:
        """The chosen cells with rows as distinct scores, each in the middle of its cell."""
        chosen = chosen & (self.rows > 0)
        scores, place = np.unique(self.middle[chosen], return_inverse=True)
        rows, positives = np.zeros((2, scores.size), dtype=np.int64)
        np.add.at(rows, place, self.rows[chosen])
        np.add.at(positives, place, self.positives[chosen])
        return DistinctScores(scores, rows, positives)


def grid_ranks(n_rows: int) -> IntArray:
    """Ranks of the values of a grid: all of few rows; of many, evenly spread, and closer together in both tails."""
    if n_rows <= _MOST_KNOTS:
        return np.arange(1, n_rows + 1)
    evenly = np.linspace(1, n_rows, _MOST_KNOTS).round().astype(np.int64)
    doublings = np.log2(n_rows / _MOST_KNOTS) + 1.0
    tail = np.unique(2.0 ** (np.arange(doublings * _TAIL_KNOTS) / _TAIL_KNOTS)).astype(np.int64)
    return np.unique(np.concatenate([evenly, tail, n_rows + 1 - tail]))


@dataclass(frozen=True, eq=False)
class Pieces:
    """A curve, straight in each of finitely many cells of the score, that may jump between them.

    Attributes
    ----------
    cells : Bins
        Half-open cells. In the first and the last of each segment the curve is constant.
    left, right : float arrays
        The value at the beginning of each cell, and the limit at its end.
    """

    cells: Bins
    left: FloatArray
    right: FloatArray

    @classmethod
    def through(cls, regions: Bins, knots: list[FloatArray], values: list[FloatArray]) -> Self:
        """The curve through the knots of each segment, cut where regions begin, and constant beyond the knots."""
        parts, left, right = [], [], []
        for part, x, y in zip(regions.parts, knots, values, strict=True):
            x, y = simplified(x, y)
            edges = np.unique(np.concatenate([part.cuts, x]))
            edges = edges[(edges > part.low) & (edges <= part.high)]
            at = interpolate(edges, x, y) if edges.size else y[:1]
            parts.append(ScorePartition(edges, (part.low, part.high)))
            left.append(np.concatenate([at[:1], at]) if edges.size else at)
            right.append(np.concatenate([at, at[-1:]]) if edges.size else at)
        return cls(regions._joined(parts), np.concatenate(left), np.concatenate(right))

    @cached_property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        layout = self.cells.layout
        return layout.cells.bounds(layout.low, layout.high)

    @cached_property
    def table(self) -> FloatArray:
        """Of each cell, where it begins, the value there, and the slope.

        The slope is a trifle too small, so that rounding never carries the value beyond the limit at the end.
        """
        begin, end = self._bounds
        with np.errstate(all="ignore"):
            slope = (self.right - self.left) / (end - begin) * (1.0 - 2.0**-50)
        straight = np.isfinite(begin) & np.isfinite(end - begin) & np.isfinite(slope)
        return np.column_stack([np.where(straight, begin, 0.0), self.left, np.where(straight, slope, 0.0)])

    def regions(self, partition: Bins) -> IndexArray:
        """The region of each cell, for prediction."""
        begin, end = self._bounds
        inside = np.where(np.isfinite(begin), begin, np.where(np.isfinite(end), np.nextafter(end, -np.inf), 0.0))
        within = self.cells.layout.cells.segment if partition.has_segments else None
        return np.asarray(partition.regions_of(partition.prepared(inside, within)))

    def variation(self, partition: Bins) -> FloatArray:
        """The total variation of the curve over each region, from its beginning to its end."""
        region = self.regions(partition)
        total = np.bincount(region, np.abs(self.right - self.left), minlength=partition.n_regions)
        same = region[1:] == region[:-1]
        jumps = np.abs(self.left[1:] - self.right[:-1])
        return total + np.bincount(region[1:], np.where(same, jumps, 0.0), minlength=partition.n_regions) + _ROUNDING

    def averages(self, grid: Grid) -> "Averages":
        """What the counts of a grid tell of the averages of the curve."""
        begin, end = self._bounds
        inside = np.where(np.isfinite(grid.begin), grid.begin, grid.middle)
        piece = self.cells.layout.cells.find(inside, grid.segment)
        with np.errstate(all="ignore"):
            width = end - begin
            shares = [(at - begin[piece]) / width[piece] for at in (inside, grid.end)]
        first, last = (np.clip(np.where(np.isfinite(share), share, 0.0), 0.0, 1.0) for share in shares)
        return Averages(grid.rows, piece, (first + last) / 2, (last - first) / 2)

    def shifted(self, shift: FloatArray) -> "Pieces":
        """The curve with each cell shifted on the logit scale."""
        moved = shift != 0.0
        left, right = (np.where(moved, expit(logit(values) + shift), values) for values in (self.left, self.right))
        return type(self)(self.cells, left, right)

    def state(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {name: getattr(self, name).tolist() for name in ("left", "right")} | {
            "knots": [part.edges.tolist() for part in self.cells.parts]
        }

    @classmethod
    def read(cls, state: Mapping[str, Any], regions: Bins) -> Self:
        """Read back what `state` gave, for the regions that it was cut for."""
        knots = state["knots"]
        if not isinstance(knots, list | tuple) or len(knots) != len(regions.parts):
            raise InvalidValueError("knots", f"be one list per segment, {len(regions.parts)}", got=shown(knots))
        parts = []
        for part, values in zip(regions.parts, knots, strict=True):
            edges = read_numbers(values, "knots")
            inside = (edges > part.low).all() and (edges <= part.high).all()
            if (np.diff(edges) <= 0.0).any() or not inside or not np.isin(part.cuts, edges).all():
                raise InvalidValueError("knots", "increase and hold the cuts of all regions", got=shown(values))
            parts.append(ScorePartition(edges, (part.low, part.high)))
        cells = regions._joined(parts)
        left, right = (
            read_numbers(state[name], name, size=cells.n_regions, low=0.0, high=1.0) for name in ("left", "right")
        )
        return cls(cells, left, right)


@dataclass(frozen=True, eq=False)
class Averages:
    """The average of a curve over counted rows, from how many rows each fine cell has.

    Attributes
    ----------
    rows : int array
        Rows of each fine cell.
    piece : int array
        The piece of the curve that each lies in.
    middle, half : float arrays
        Where in the piece its middle lies, and half of its width, as shares of the piece.
    """

    rows: IntArray
    piece: IndexArray
    middle: FloatArray
    half: FloatArray

    def of(self, curve: Pieces, region: IndexArray, n_regions: int) -> tuple[FloatArray, FloatArray]:
        """The average over the rows of each region, and how far off it can be, as rows are known up to their cell.

        A region without rows has the middle of the curve's range in it.
        """
        low, rise = curve.left[self.piece], (curve.right - curve.left)[self.piece]
        counted = region >= 0
        where, rows = region[counted], self.rows[counted].astype(np.float64)
        total = np.bincount(where, rows, minlength=n_regions)
        middle, half = low + rise * self.middle, np.abs(rise) * self.half
        sums = np.bincount(where, rows * middle[counted], minlength=n_regions)
        off = np.bincount(where, rows * half[counted], minlength=n_regions)
        seen = np.maximum(total, 1.0)
        empty = np.bincount(where, middle[counted], minlength=n_regions) / np.maximum(
            np.bincount(where, minlength=n_regions), 1
        )
        return np.where(total > 0, sums / seen, empty), off / seen + _ROUNDING


def anchored(
    curve: Pieces,
    averages: Averages,
    region: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    piece_region: IndexArray,
) -> Pieces:
    """Shift the curve, in each region where its average leaves the limits, on the logit scale until it does not."""
    n_regions = lower.size
    found, _ = averages.of(curve, region, n_regions)
    low, high = np.zeros((2, n_regions))
    high[found < lower] = _LARGEST_SHIFT
    low[found > upper] = -_LARGEST_SHIFT
    if not (low.any() or high.any()):
        return curve
    rising = high > 0.0
    target = np.where(rising, lower, upper)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        reached, _ = averages.of(curve.shifted(middle[piece_region]), region, n_regions)
        above = reached >= target
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return curve.shifted(np.where(rising, high, low)[piece_region])


def simplified(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fewer knots, between which the curve stays within a small distance on the logit scale."""
    if x.size <= 2:
        return x, y
    wanted = logit(y)
    kept = np.zeros(x.size, dtype=bool)
    kept[[0, -1]] = True
    while True:
        at = np.flatnonzero(kept)
        error = np.abs(logit(interpolate(x, x[at], y[at])) - wanted)
        worst = np.maximum.reduceat(error, at[:-1])
        short = np.repeat(worst, np.diff(at[:-1], append=x.size))
        new = (error >= short) & (error > _ACCURACY) & ~kept
        if not new.any():
            return x[at], y[at]
        kept |= new


def interpolate(scores: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Piecewise linear, never outside the two values at hand, and finite for knots as far apart as doubles are."""
    right = np.clip(np.searchsorted(x, scores, side="left"), 0, x.size - 1)
    left = np.maximum(right - 1, 0)
    width = x[right] / 2 - x[left] / 2
    share = np.where(width > 0.0, (scores / 2 - x[left] / 2) / np.where(width > 0.0, width, 1.0), 1.0)
    share = np.clip(share, 0.0, 1.0)
    between = y[left] + share * (y[right] - y[left])
    return np.where(
        share == 1.0, y[right], np.clip(between, np.minimum(y[left], y[right]), np.maximum(y[left], y[right]))
    )
