"""A curve of the score that is straight between knots, and its averages over counts of rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import isotonic_regression

from calibrant._state import read_numbers
from calibrant._text import shown
from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators.distinct import DistinctScores
from calibrant.calibrators.isotonic import interpolate
from calibrant.errors import InvalidValueError
from calibrant.intervals import Interval
from calibrant.partition import ScorePartition
from calibrant.partition.bins import Bins
from calibrant.partition.layout import next_double
from calibrant.rows import ScoredData
from calibrant.tally import Tally

_MOST_VALUES = 1024  # rows of a segment up to which every score has a cell of its own
_VALUES = 256  # scores that have one where rows are more, besides those in the tails
_TAIL_VALUES = 8  # for each doubling of the rows beyond a value in the tails
_SUBDIVISIONS = 16  # of the gap between two such scores
_ACCURACY = 0.002  # of the curve between the knots that are kept, on the logit scale
_ROUNDING = 1e-12  # added to what is computed from sums over rows
_BISECTIONS = 40
_NEAR = 0.1  # of the half-width of a rate: how far the average of a curve may be from the rate before it is bent
_FAR = 0.4  # the same, in regions that do not decide about the largest error
_DISTANCE = 1.0  # about how far averages of a curve that rises by 1 can be off, times the root of the rows
_JUMP = 0.01  # a rise between neighbouring knots from which on the curve jumps where regions meet
_KEPT = 0.05  # of the curve as it was, where it is cut off
_LARGEST_SHIFT = 64.0


@dataclass(frozen=True, eq=False)
class Grid:
    """Rows and positives of fine cells of the score: the values of some ranks, and parts of the gaps between them.

    Attributes
    ----------
    cells : Bins
        The cells. Neighbouring values are one cell each, and so is each sixteenth of the gap between them.
    rows, positives : int arrays
        What was counted in each cell.
    """

    cells: Bins
    rows: IntArray
    positives: IntArray

    @classmethod
    def count(cls, data: ScoredData, regions: Bins, sizes: Mapping[Any, int], more: Sequence[FloatArray] = ()) -> Self:
        """Count the rows; every edge of a region is one of the values. Cells are cut at `more` scores, too."""
        found = data.order_statistics({name: grid_ranks(size) for name, size in sizes.items()})
        all_cuts = []
        others = more or [np.empty(0)] * len(regions.parts)
        for (name, part), knots in zip(regions.bins_by_segment.items(), others, strict=True):
            values = np.unique(np.concatenate([part.edges, found.get(name, np.empty(0))]) + 0.0)
            cuts = np.concatenate([values, next_double(values, np.inf)])
            if sizes[name] > _MOST_VALUES:
                shares = np.arange(1, _SUBDIVISIONS)[:, None] / _SUBDIVISIONS
                cuts = np.concatenate([cuts, (values[:-1] * (1.0 - shares) + values[1:] * shares).ravel()])
            all_cuts.append(np.concatenate([cuts, knots]))
        return cls.over(data, _cells(regions, all_cuts))

    @classmethod
    def over(cls, data: ScoredData, cells: Bins) -> Self:
        """Count the rows over given cells."""
        cells.fingerprint = "grid"  # of thousands of cells it takes time, and no tally of them is kept
        tally, _ = data.tally(cells)
        return cls(cells, tally.counts, tally.positives)

    def merged(self, regions: Bins, knots: Sequence[FloatArray]) -> Self:
        """The same rows in cells that only edges of regions and `knots` cut; every cell lies in one of them."""
        edges = [np.concatenate([part.edges, next_double(part.edges, np.inf)]) for part in regions.parts]
        cells = _cells(regions, [np.concatenate(cuts) for cuts in zip(edges, knots, strict=True)])
        place = cells.layout.cells.find(np.where(np.isfinite(self.begin), self.begin, self.middle), self.segment)
        counts = (np.bincount(place, values, cells.n_regions) for values in (self.rows, self.positives))
        return type(self)(cells, *(found.astype(np.int64) for found in counts))

    def without(self, other: Self) -> Self:
        """The rows of this grid that another one, of the same cells, does not have."""
        return type(self)(self.cells, self.rows - other.rows, self.positives - other.positives)

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
    def _is_value(self) -> BoolArray:
        """Whether each cell is a single value."""
        return np.asarray(next_double(self.begin, np.inf) >= self.end)

    @cached_property
    def middle(self) -> FloatArray:
        """A score in the middle of each cell."""
        begin, end = self._bounds
        closed = np.isfinite(begin) & np.isfinite(end)
        outer = first_inside(begin, end)
        single = self._is_value
        with np.errstate(all="ignore"):
            return np.where(closed & ~single, begin / 2 + end / 2, outer)

    def regions(self, partition: Bins) -> IndexArray:
        """The region in which each cell counts, -1 where it counts in none."""
        within = self.segment if partition.has_segments else None
        return np.asarray(partition.membership(partition.prepared(self.middle, within)))

    def knots(self, number: int) -> FloatArray:
        """Where cells of a segment begin, from its smallest score to its largest; any score without a row."""
        seen = np.flatnonzero((self.segment == number) & (self.rows > 0))
        if not seen.size:
            return np.zeros(1)
        here = slice(seen[0], seen[-1] + 1)
        begin = self.begin[here] if np.isfinite(self.begin[seen[0]]) else self.middle[here]
        after_value = np.append(False, begin[1:] == next_double(begin[:-1], np.inf)) & ~self._is_value[here]
        return np.asarray(begin[~after_value])

    def distinct(self, chosen: BoolArray) -> DistinctScores:
        """The chosen cells with rows as distinct scores, each in the middle of its cell.

        Where gaps are divided, a value and the gap after it are one, at the mean of their rows.
        """
        chosen = chosen & (self.rows > 0)
        order = np.argsort(self.middle[chosen], kind="stable")
        scores, rows, positives = (values[chosen][order] for values in (self.middle, self.rows, self.positives))
        new = np.diff(scores, prepend=-np.inf) > 0
        if scores.size > _MOST_VALUES:
            new = np.diff(np.cumsum(self._is_value)[chosen][order], prepend=-1) != 0
        starts = np.flatnonzero(new)
        counts, hits = (np.add.reduceat(values, starts) for values in (rows, positives))
        mean = np.add.reduceat(scores * (rows / counts[np.cumsum(new) - 1]), starts)
        single = np.diff(starts, append=scores.size) == 1
        distinct, place = np.unique(np.where(single, scores[starts], mean), return_inverse=True)
        return DistinctScores(distinct, *(np.bincount(place, values).astype(np.int64) for values in (counts, hits)))


def _cells(regions: Bins, cuts: Sequence[FloatArray]) -> Bins:
    """Cells that are cut at scores of each segment, in the range of its regions."""
    parts = []
    for part, values in zip(regions.parts, cuts, strict=True):
        inside = values[(values > part.low) & (values <= part.high) & np.isfinite(values)]
        parts.append(ScorePartition(np.unique(inside + 0.0), (part.low, part.high)))
    return regions._joined(parts)


def first_inside(begin: FloatArray, end: FloatArray) -> FloatArray:
    """A double in each run of doubles: the first, or the last of a run without a beginning."""
    return np.where(np.isfinite(begin), begin, np.where(np.isfinite(end), next_double(end, -np.inf), 0.0))


def grid_ranks(n_rows: int) -> IntArray:
    """Ranks of the values of a grid: all of few rows; of many, evenly spread, and closer together in both tails."""
    if n_rows <= _MOST_VALUES:
        return np.arange(1, n_rows + 1)
    evenly = np.linspace(1, n_rows, _VALUES).round().astype(np.int64)
    doublings = np.log2(n_rows / _VALUES)
    tail = np.unique(2.0 ** (np.arange(doublings * _TAIL_VALUES) / _TAIL_VALUES)).astype(np.int64)
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

    def __post_init__(self) -> None:
        """A cell so narrow or so wide that its slope is no finite number is constant."""
        object.__setattr__(self, "right", np.where(self._is_straight, self.right, self.left))

    @classmethod
    def through(cls, regions: Bins, knots: list[FloatArray], values: list[FloatArray]) -> Self:
        """The curve through the knots of each segment, cut where regions begin, and constant beyond the knots."""
        parts, left, right = [], [], []
        for part, x, y in zip(regions.parts, knots, values, strict=True):
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
    def _is_straight(self) -> BoolArray:
        begin, end = self._bounds
        with np.errstate(all="ignore"):
            finite = np.isfinite(begin) & np.isfinite(end - begin) & np.isfinite(1.0 / (end - begin))
            return finite & (next_double(begin, np.inf) < end)

    @cached_property
    def table(self) -> FloatArray:
        """Of each cell, where it begins, the value there, and the slope.

        The slope is a trifle too small, so that rounding never carries the value beyond the limit at the end.
        """
        begin, end = self._bounds
        with np.errstate(all="ignore"):
            slope = (self.right - self.left) / (end - begin) * (1.0 - 2.0**-50)
        straight = self._is_straight
        return np.column_stack([np.where(straight, begin, 0.0), self.left, np.where(straight, slope, 0.0)])

    def regions(self, partition: Bins) -> IndexArray:
        """The region of each cell, for prediction."""
        begin, end = self._bounds
        inside = first_inside(begin, end)
        within = self.cells.layout.cells.segment if partition.has_segments else None
        return np.asarray(partition.regions_of(partition.prepared(inside, within)))

    def variation(self, partition: Bins) -> FloatArray:
        """The total variation of the curve over each region, from its beginning to its end."""
        region = self.regions(partition)
        total = np.bincount(region, np.abs(self.right - self.left), minlength=partition.n_regions)
        same = region[1:] == region[:-1]
        jumps = np.abs(self.left[1:] - self.right[:-1])
        total += np.bincount(region[1:], np.where(same, jumps, 0.0), minlength=partition.n_regions)
        return np.where(total > 0.0, total + _ROUNDING, 0.0)

    def averages(self, grid: Grid) -> "Averages":
        """Return what the counts of a grid say about the averages of the curve."""
        begin, end = self._bounds
        inside = np.where(np.isfinite(grid.begin), grid.begin, grid.middle)
        piece = self.cells.layout.cells.find(inside, grid.segment)
        with np.errstate(all="ignore"):
            width = end - begin
            shares = [(at - begin[piece]) / width[piece] for at in (inside, grid.end)]
        first, last = (np.clip(np.where(np.isfinite(share), share, 0.0), 0.0, 1.0) for share in shares)
        return Averages(grid.rows, piece, (first + last) / 2, (last - first) / 2)

    def range(self, partition: Bins) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest value in each region."""
        region = self.regions(partition)
        low, high = np.ones(partition.n_regions), np.zeros(partition.n_regions)
        np.minimum.at(low, region, np.minimum(self.left, self.right))
        np.maximum.at(high, region, np.maximum(self.left, self.right))
        return low, high

    def state(self) -> dict[str, Any]:
        """As plain JSON values."""
        knots = [part.edges.tolist() for part in self.cells.parts]
        return {"knots": knots, "left": self.left.tolist(), "right": self.right.tolist()}

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

    def ends(self, curve: Pieces) -> tuple[FloatArray, FloatArray]:
        """The values of the curve at the beginning and at the end of each fine cell."""
        low, rise = curve.left[self.piece], (curve.right - curve.left)[self.piece]
        return low + rise * (self.middle - self.half), low + rise * (self.middle + self.half)

    def of(self, curve: Pieces, region: IndexArray, n_regions: int) -> tuple[FloatArray, FloatArray]:
        """The average over the rows of each region, and how far off it can be, as rows are known up to their cell.

        A region without rows has the middle of the curve's range in it.
        """
        cells, where, share, has_rows = self._shares(region, n_regions)
        piece = self.piece[cells]
        low, rise = curve.left[piece], (curve.right - curve.left)[piece]
        found = np.bincount(where, share * (low + rise * self.middle[cells]), minlength=n_regions)
        off = np.bincount(where, share * np.abs(rise) * self.half[cells], minlength=n_regions)
        return found, np.where(has_rows, off + _ROUNDING, 0.0)

    def mean(self, region: IndexArray, n_regions: int) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """The average over the rows of each region as a function of the values at the ends of each piece."""
        cells, where, share, _ = self._shares(region, n_regions)
        n_pieces = int(self.piece.max(initial=0)) + 1
        pairs, number = np.unique(where * n_pieces + self.piece[cells], return_inverse=True)
        region, piece = pairs // n_pieces, pairs % n_pieces
        end = np.bincount(number, share * self.middle[cells])
        begin = np.bincount(number, share) - end
        return lambda left, right: np.bincount(region, begin * left[piece] + end * right[piece], minlength=n_regions)

    def _shares(self, region: IndexArray, n_regions: int) -> tuple[IndexArray, IndexArray, FloatArray, BoolArray]:
        """The fine cells that count, their region and their share of it, and which regions have rows.

        In a region without rows all cells count alike.
        """
        cells = np.flatnonzero(region >= 0)
        where, rows = region[cells], self.rows[cells].astype(np.float64)
        total, size = np.bincount(where, rows, minlength=n_regions), np.bincount(where, minlength=n_regions)
        has_rows = total > 0
        return cells, where, np.where(has_rows[where], rows, 1.0) / np.where(has_rows, total, size)[where], has_rows


def steps(ends: tuple[FloatArray, FloatArray], region: IndexArray) -> FloatArray:
    """How much a curve moves in each fine cell, and from the cell before it in the same region."""
    begin, end = ends
    jumps = np.where(region[1:] == region[:-1], np.abs(begin[1:] - end[:-1]), 0.0)
    return np.asarray(np.abs(end - begin) + np.append(0.0, jumps))


def anchored(curve: Pieces, averages: Averages, where: IndexArray, regions: Bins, limits: Interval) -> Pieces:
    """Shift the curve, in each region where its average leaves the limits, on the logit scale until it does not."""
    found, _ = averages.of(curve, where, regions.n_regions)
    target = np.clip(found, limits.lower, limits.upper)
    return curve if (target == found).all() else _moved(curve, averages, where, regions, found, target)


def bent(curve: Pieces, averages: Averages, where: IndexArray, regions: Bins, tally: Tally, limits: Interval) -> Pieces:
    """Shift a curve that never falls, in each region, towards the rate, and keep the order of scores.

    On the logit scale, until its average is within a tenth of the half-width of the rate. Where the shifts of two
    regions would cross, both are cut off at a level between their averages, and a small part of the curve as it was is
    mixed in, so that scores are not tied. Rates that fall are joined first, as by isotonic regression.
    """
    found, _ = averages.of(curve, where, regions.n_regions)
    rate = np.where(tally.counts > 0, tally.rates, found)
    # about what the promise needs in each region; only the largest counts, and others may stay as they are
    needed = limits.radius + curve.variation(regions) * (_DISTANCE / np.sqrt(np.maximum(tally.counts, 1)))
    near = np.clip((needed.max(where=tally.counts > 0, initial=0.0) - needed) / limits.radius, _NEAR, _FAR)
    near = np.clip(found, rate - near * (rate - limits.lower), rate + near * (limits.upper - rate))
    target, weights = np.empty_like(near), np.maximum(tally.counts, 1e-3)
    segment = regions.layout.cells.segment
    for number in range(len(regions.parts)):
        here = segment == number
        target[here] = isotonic_regression(near[here], sample_weight=weights[here])
    low, high = _moved(curve, averages, where, regions, found, target).range(regions)
    level = np.clip((high[:-1] + low[1:]) / 2, target[:-1], target[1:])
    same = segment[1:] == segment[:-1]
    cuts = np.append(0.0, np.where(same, level, 0.0)), np.append(np.where(same, level, 1.0), 1.0)
    return _moved(curve, averages, where, regions, found, target, cuts)


def _moved(
    curve: Pieces,
    averages: Averages,
    where: IndexArray,
    regions: Bins,
    found: FloatArray,
    target: FloatArray,
    cuts: tuple[FloatArray, FloatArray] | None = None,
) -> Pieces:
    """Shift the curve of each region on the logit scale until its average is the target, cut off outside `cuts`."""
    piece, straight = curve.regions(regions), curve._is_straight
    ends = [(values, logit(values)) for values in (curve.left, curve.right)]
    least, most = (0.0, 1.0) if cuts is None else (cut[piece] for cut in cuts)
    kept = 0.0 if cuts is None else _KEPT
    mean = averages.mean(where, regions.n_regions)

    def shifted(shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        by = shift[piece]
        left, right = (
            (1.0 - kept) * np.clip(np.where(by != 0.0, expit(at + by), before), least, most) + kept * before
            for before, at in ends
        )
        return left, np.where(straight, right, left)

    rising = found < target
    low, high = np.where(rising, 0.0, -_LARGEST_SHIFT), np.where(rising, _LARGEST_SHIFT, 0.0)
    low, high = np.where(found == target, 0.0, low), np.where(found == target, 0.0, high)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        above = mean(*shifted(middle)) >= target
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return Pieces(curve.cells, *shifted(np.where(rising, high, low)))


def with_jumps(x: FloatArray, y: FloatArray, cuts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """More knots, so that the curve jumps where a region begins, if it rises much from the knot before it."""
    place = np.searchsorted(x, cuts)
    place = place[(place > 0) & (place < x.size)]
    place = place[np.isin(x[place], cuts) & (y[place] - y[place - 1] > _JUMP)]
    before = next_double(x[place], -np.inf)
    place, before = place[before > x[place - 1]], before[before > x[place - 1]]
    return np.insert(x, place, before), np.insert(y, place, y[place - 1])


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
