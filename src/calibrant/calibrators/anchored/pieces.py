"""A piecewise linear curve of the score, and its averages over counts of rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logit

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators.anchored.fine_cells import Grid
from calibrant.cells.bins import Bins
from calibrant.cells.knots import first_inside, straight_cells
from calibrant.cells.layout import next_double
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidValueError
from calibrant.params.declared_state import Saved, stored
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.state_kinds import Lists, Numbers
from calibrant.text.sentences import shown

_ACCURACY = 0.002  # of the curve between the kept knots, on the logit scale
_ROUNDING = 1e-12  # added to results computed from sums over rows
_JUMP = 0.01  # a rise between neighbouring knots from which on the curve jumps where regions meet


@dataclass(frozen=True, eq=False)
class Pieces(Saved):
    """A curve that is linear in each of finitely many cells of the score, and may jump between
    them.

    Attributes
    ----------
    cells : Bins
        Half-open cells. In the first and the last of each segment the curve is constant.
    left, right : float arrays
        The value at the start of each cell, and the limit at its end.
    """

    _entries: ClassVar[EntryTable] = {
        "knots": Entry(Lists(Numbers(increasing=True)), of="_knots"),
        "left": Numbers(low=0.0, high=1.0),
        "right": Numbers(low=0.0, high=1.0),
    }

    cells: Bins
    left: FloatArray
    right: FloatArray

    def __getstate__(self) -> Any:
        """What is pickled."""
        return stored(self)

    def __post_init__(self) -> None:
        """Make the curve constant in cells so narrow or so wide that their slope is not finite."""
        object.__setattr__(self, "right", np.where(self.is_straight, self.right, self.left))

    @classmethod
    def through(cls, regions: Bins, knots: list[FloatArray], values: list[FloatArray]) -> Self:
        """The curve through the knots of each segment, cut where regions begin, and constant beyond
        the knots.
        """
        parts = []
        left = []
        right = []
        for part, x, y in zip(regions.parts, knots, values, strict=True):
            edges = np.unique(np.concatenate([part.cuts, x]))
            edges = edges[(edges > part.low) & (edges <= part.high)]
            at = interpolate(edges, x, y) if edges.size else y[:1]
            parts.append(ScorePartition(edges, (part.low, part.high)))
            left.append(np.concatenate([at[:1], at]) if edges.size else at)
            right.append(np.concatenate([at, at[-1:]]) if edges.size else at)
        return cls(regions.with_parts(parts), np.concatenate(left), np.concatenate(right))

    @cached_property
    def is_straight(self) -> BoolArray:
        """Whether the curve may vary within each cell.

        It is constant in a cell that is unbounded or has one value.
        """
        return straight_cells(*self.cells.layout.ends)

    @cached_property
    def table(self) -> FloatArray:
        """For each cell, where it begins, the value there, and the slope.

        The slope is slightly too small, so that rounding never carries the value beyond the limit
        at the end.
        """
        begin, end = self.cells.layout.ends
        with np.errstate(all="ignore"):
            slope = (self.right - self.left) / (end - begin) * (1.0 - 2.0**-50)
        straight = self.is_straight
        return np.column_stack(
            [np.where(straight, begin, 0.0), self.left, np.where(straight, slope, 0.0)]
        )

    @property
    def falling_segments(self) -> BoolArray:
        """For each segment, whether the curve ends lower than it begins."""
        change = np.bincount(
            self.cells.layout.cells.segment, self.right - self.left, len(self.cells.parts)
        )
        return np.asarray(change < 0.0)

    @property
    def falls(self) -> bool:
        """Whether the curve decreases in every segment."""
        return bool(self.falling_segments.all())

    def mirrored(self, segments: BoolArray) -> "Pieces":
        """One minus the curve, in some of the segments."""
        here = segments[self.cells.layout.cells.segment]
        left = np.where(here, 1.0 - self.left, self.left)
        return replace(self, left=left, right=np.where(here, 1.0 - self.right, self.right))

    def regions(self, partition: Bins) -> IndexArray:
        """The region of each cell, for prediction."""
        begin, end = self.cells.layout.ends
        inside = first_inside(begin, end)
        within = self.cells.layout.cells.segment if partition.has_segments else None
        return np.asarray(partition.regions_of(partition.prepared(inside, within)))

    def variation(self, partition: Bins) -> FloatArray:
        """The total variation of the curve over each region, from its start to its end."""
        region = self.regions(partition)
        total = np.bincount(region, np.abs(self.right - self.left), minlength=partition.n_regions)
        same = region[1:] == region[:-1]
        jumps = np.abs(self.left[1:] - self.right[:-1])
        total += np.bincount(region[1:], np.where(same, jumps, 0.0), minlength=partition.n_regions)
        return np.where(total > 0.0, total + _ROUNDING, 0.0)

    def averages(self, grid: Grid, regions: Bins) -> "Averages":
        """Return what the counts of a grid say about the averages of the curve in each region."""
        begin, end = self.cells.layout.ends
        inside = np.where(np.isfinite(grid.begin), grid.begin, grid.middle)
        piece = self.cells.layout.cells.find(inside, grid.segment)
        with np.errstate(all="ignore"):
            width = end - begin
            shares = [(at - begin[piece]) / width[piece] for at in (inside, grid.end)]
        first, last = (
            np.clip(np.where(np.isfinite(share), share, 0.0), 0.0, 1.0) for share in shares
        )
        place = (first + last) / 2, (last - first) / 2
        return Averages(piece, *place, grid.regions(regions), regions.n_regions, grid.rows)

    def range(self, partition: Bins) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest value in each region."""
        region = self.regions(partition)
        low = np.ones(partition.n_regions)
        high = np.zeros(partition.n_regions)
        np.minimum.at(low, region, np.minimum(self.left, self.right))
        np.maximum.at(high, region, np.maximum(self.left, self.right))
        return low, high

    @property
    def _knots(self) -> tuple[FloatArray, ...]:
        """Where pieces begin, in each segment."""
        return tuple(part.edges for part in self.cells.parts)

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        """The pieces, cut for the regions of a proof that was read before."""
        regions: Bins = known["proof"].partition.as_bins()
        knots = values["_knots"]
        if len(knots) != len(regions.parts):
            rule = f"be one list per segment, {len(regions.parts)}"
            raise InvalidValueError("knots", rule, got=f"{len(knots)}")
        parts = []
        for part, edges in zip(regions.parts, knots, strict=True):
            inside = (edges > part.low).all() and (edges <= part.high).all()
            if not inside or not np.isin(part.cuts, edges).all():
                rule = "increase and hold the cuts of all regions"
                raise InvalidValueError("knots", rule, got=shown(edges.tolist()))
            parts.append(ScorePartition(edges, (part.low, part.high)))
        cells = regions.with_parts(parts)
        size = cells.n_regions
        left = values["left"]
        right = values["right"]
        if not left.size == right.size == size:
            got = f"{left.size:,} and {right.size:,}"
            raise InvalidValueError("left and right", f"have {size:,} entries", got=got)
        return cls(cells, left, right)


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
            has_rows, off + _ROUNDING, 0.0
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


def interpolate(scores: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Interpolate linearly, never outside the two nearest values, and finite even for knots as far
    apart as doubles can be.
    """
    right = np.clip(np.searchsorted(x, scores, side="left"), 0, x.size - 1)
    left = np.maximum(right - 1, 0)
    width = x[right] / 2 - x[left] / 2
    share = np.where(
        width > 0.0, (scores / 2 - x[left] / 2) / np.where(width > 0.0, width, 1.0), 1.0
    )
    share = np.clip(share, 0.0, 1.0)
    between = y[left] + share * (y[right] - y[left])
    low = np.minimum(y[left], y[right])
    high = np.maximum(y[left], y[right])
    return np.where(share == 1.0, y[right], np.clip(between, low, high))


def with_jumps(x: FloatArray, y: FloatArray, cuts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """More knots, so that the curve jumps where a region begins, if it rises much from the knot
    before it.
    """
    place = np.searchsorted(x, cuts)
    place = place[(place > 0) & (place < x.size)]
    place = place[np.isin(x[place], cuts) & (y[place] - y[place - 1] > _JUMP)]
    before = next_double(x[place], -np.inf)
    place, before = place[before > x[place - 1]], before[before > x[place - 1]]
    return np.insert(x, place, before), np.insert(y, place, y[place - 1])


def simplified(
    x: FloatArray, y: FloatArray, accuracy: float = _ACCURACY
) -> tuple[FloatArray, FloatArray]:
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
        new = (error >= short) & (error > accuracy) & ~kept
        if not new.any():
            return x[at], y[at]
        kept |= new
