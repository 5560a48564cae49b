"""What pilot rows determine before any row is counted: a first curve, the knots of curves, how far
curves may move beyond the pilot scores, and guesses at variances in each region.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.special import xlogy

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators.anchored.curve_kinds import Curve, first_curve
from calibrant.cells.bins import Bins
from calibrant.cells.knots import Knots, RowHashes
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import ScorePartition
from calibrant.limits.error_budget import even_widths
from calibrant.params.random import RandomSource
from calibrant.sample.sources.memory import MemoryRows

_FEWEST_ROWS = 12  # with fewer pilot rows there is no first curve
CELLS = 24
"""Cells of each region, unless there are few rows or many regions."""
_FEW_CELLS = 12  # used if there are fewer rows than this:
_FEW_ROWS = 1_000
# of a segment with more than 85 regions, which 5 million rows give it: more would not make a curve
# smoother, and a table of so many lines fits the cache of a processor or a GPU
_MOST_CELLS = 2048
_FEWEST_CELLS = 4  # of a region, however many regions there are
_NEXT_TO_ZERO = 2.0**-200  # in place of 0: some databases reject products that underflow
_NEXT_IN_SINGLE = 2.0**-126  # the same in single precision
AS_ZERO = (_NEXT_TO_ZERO, _NEXT_IN_SINGLE)
"""Knots that are there in place of 0."""
# distances beyond the ends of the pilot scores, in widths of their range, at which unbounded scores
# have knots
_OUTER = (0.1, 0.5, 2.0)
MOST_PILOT = 1 << 20
"""The largest number of plain pilot rows that first curves and knots are made from.

Up to 10^7 rows are drawn to cut regions of equal size among tied scores. So many would make neither
a first curve nor the knots any better.
"""
_MOST_SCORES = 1 << 14  # of pilot rows, for fitting first curves and choosing knots
_OWN_PILOT = 50  # pilot rows from which on a segment has its own first curve and knots
_NEAREST = 0.01  # distance to 0 and 1, if the score itself is the first curve
# share of the standard error of a rate times the rows: how far curves move beyond pilot rows
_MOST_BEYOND = 0.015
_MOST_COST = 0.002  # of the log loss: what that may cost
_TRUSTED = 20.0  # rows that the probabilities themselves count as in a guess from pilot rows
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def has_pilot(drawn: Mapping[Hashable, Any]) -> bool:
    """Whether enough rows were drawn for a first curve."""
    return sum(map(len, drawn.values())) >= _FEWEST_ROWS


@dataclass(frozen=True, slots=True, eq=False)
class RegionUnits:
    """The units of one region: label minus probability, and the probability.

    For a group, the means over its rows.
    """

    errors: FloatArray
    scores: FloatArray
    weights: FloatArray | None = None

    @property
    def average(self) -> float:
        """The average probability; NaN without units."""
        return float(np.average(self.scores, weights=self.weights)) if self.scores.size else np.nan

    @property
    def positives(self) -> int:
        """The number of positive single rows."""
        return int(np.rint((self.errors + self.scores).sum()))

    def typical(self, n_units: int) -> "RegionUnits":
        """`n_units` typical units: taken at even steps in the order of their errors.

        They are mixed evenly, as in a random order, by multiples of the golden ratio. Empty if
        there are none to choose from.
        """
        if not self.errors.size or not n_units:
            return RegionUnits(self.errors[:0], self.scores[:0])
        step = (np.arange(n_units) + 0.5) * (self.errors.size / n_units)
        mixed = np.argsort(np.arange(1, n_units + 1) * _GOLDEN % 1.0, kind="stable")
        rows = np.argsort(self.errors, kind="stable")[step.astype(np.intp)[mixed]]
        return RegionUnits(self.errors[rows], self.scores[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """The estimates from pilot rows for each region.

    Attributes
    ----------
    rate, spread : float arrays of shape (n_regions,)
        The rate, and the variance of p.
    of_errors, of_scores : float arrays of shape (n_regions,)
        The variance of label minus probability, and of the probability: of weighted units.
    weight : float array of shape (n_regions,)
        The mean weight of a unit.
    """

    rate: FloatArray
    spread: FloatArray
    of_errors: FloatArray
    of_scores: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, pilot: list[RegionUnits], bounds: FloatArray) -> Self:
        """The guess from the units of pilot rows."""
        rows = [_guessed(units, *ends) for units, ends in zip(pilot, bounds.tolist(), strict=True)]
        return cls(*np.array(rows).T)

    @classmethod
    def of_counts(cls, values: FloatArray, counts: IntArray, starts: IndexArray) -> Self:
        """The guess from pilot rows that are counted at values of p, by label.

        It is that of `of` for single rows, without listing them. `counts` has shape (n_values, 2);
        the values of a region are contiguous, from its entry of `starts`.
        """
        low = np.minimum.reduceat(values, starts)
        high = np.maximum.reduceat(values, starts)
        region = np.repeat(np.arange(starts.size), np.diff(starts, append=values.size))

        def sums(of_values: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(of_values, starts))

        negatives, positives = counts.T
        rows = counts.sum(axis=1)
        n = sums(rows) + _TRUSTED
        score = (sums(rows * values) + _TRUSTED * (low + high) / 2.0) / n
        rate = np.clip(score + sums(positives - rows * values) / n, 1e-6, 1.0 - 1e-6)
        squares = sums(negatives * values**2 + positives * (1.0 - values) ** 2)
        of_errors = (squares + _TRUSTED * score * (1.0 - score)) / n
        width = (high - low) ** 2 / 12.0
        spread = (sums(rows * (values - score[region]) ** 2) + _TRUSTED * width) / n
        return cls(rate, spread, of_errors, spread, np.ones(n.size))

    def shares(self, n_units: IntArray | FloatArray, alpha: float) -> FloatArray:
        """Shares of the error budget with which limits are about equally wide; they add up to 1."""
        n = np.maximum(n_units, 1)
        return even_widths(np.sqrt(self.of_errors / (n * self.weight**2) + 1.0 / n**2), alpha)


def _guessed(units: RegionUnits, low: float, high: float) -> tuple[float, ...]:
    """The guess for one region; the midpoint of its probabilities counts as some more rows."""
    weights = np.ones(units.errors.size) if units.weights is None else units.weights
    middle = (low + high) / 2.0
    n = units.errors.size + _TRUSTED
    weight = (
        (weights.sum() + _TRUSTED) / n
        if units.weights is None
        else weights.mean()
        if weights.size
        else 1.0
    )
    score = (float((weights * units.scores).sum()) + _TRUSTED * weight * middle) / (n * weight)
    rate = np.clip(score + float((weights * units.errors).sum()) / (n * weight), 1e-6, 1.0 - 1e-6)
    prior = score * (1.0 - score) * weight**2
    of_errors = (float(((weights * units.errors) ** 2).sum()) + _TRUSTED * prior) / n
    width = (high - low) ** 2 / 12.0
    spread = (float((weights * (units.scores - score) ** 2).sum()) / weight + _TRUSTED * width) / n
    of_scores = (
        float(((weights * (units.scores - score)) ** 2).sum()) + _TRUSTED * width * weight**2
    ) / n
    return float(rate), spread, of_errors, of_scores, weight


@dataclass(frozen=True, eq=False)
class LabelledPilot:
    """Pilot rows in segments, and the first curve fitted to them.

    Attributes
    ----------
    rows : MemoryRows
        The rows, with labels.
    regions : Bins
        The regions.
    segment : int array of shape (n,)
        The index of each row's segment among those of the regions.
    """

    rows: MemoryRows
    regions: Bins
    segment: IndexArray

    @classmethod
    def of(cls, rows: MemoryRows, regions: Bins) -> Self:
        """The labelled rows that were drawn before any was counted."""
        segment = np.zeros(len(rows), dtype=np.intp)
        if rows.segment is not None:
            segment = regions.numbers(rows.segment_names)[rows.segment]
        return cls(rows, regions, segment)

    @property
    def is_enough(self) -> bool:
        """Whether there are enough rows for a first curve."""
        return len(self.rows) >= _FEWEST_ROWS

    def own(self, number: int) -> BoolArray:
        """The rows that determine a segment's curve and knots: its own or, if these are few, all."""
        own = self.segment == number
        return own if own.sum() >= _OWN_PILOT else np.ones(own.size, dtype=bool)

    def first_curves(self) -> list[Curve]:
        """The first curve of each segment."""
        return [first_curve(rows) for rows, _ in self._distinct]

    @cached_property
    def _distinct(self) -> list[tuple[ScoreCounts, bool]]:
        """The distinct scores of the rows that decide for each segment, thinned if there are many,
        and whether rows share scores.
        """
        found = []
        for number in range(len(self.regions.parts)):
            own = self.own(number)
            rows = ScoreCounts.of(self.rows.scores[own], self.rows.codes[own])
            is_tied = rows.scores.size < rows.n_rows
            found.append((rows.thinned(_MOST_SCORES), is_tied))
        return found

    def knots(self, curves: list[Curve], n_rows: int) -> Knots:
        """Knots at the edges of regions, and between them as these rows suggest."""
        inner = []
        parts = zip(self.regions.parts, curves, self._distinct, strict=True)
        for part, curve, (rows, is_tied) in parts:
            values = curve(rows.scores)
            n_cells = cells_of_region(n_rows, part.n_regions)
            inner.append(knot_scores(part, rows, values, n_cells, is_tied=is_tied))
        return Knots.between(self.regions, inner)

    def blind_curves(self) -> list[Curve]:
        """First curves without pilot rows: the score itself, if its range is that of rates."""
        found: list[Curve] = []
        for part in self.regions.parts:
            is_rate = part.low >= 0.0 and part.high <= 1.0
            found.append(_clipped if is_rate else _one_half)
        return found

    def blind_knots(self, n_rows: int) -> Knots:
        """Knots at equal steps between the ends of regions."""
        inner = []
        for part in self.regions.parts:
            ends = np.concatenate([[part.low], part.cuts, [part.high]])
            ends = np.unique(ends[np.isfinite(ends)])
            n_cells = cells_of_region(n_rows, part.n_regions)
            steps = np.arange(n_cells) / n_cells
            inner.append((ends[:-1] + np.diff(ends) * steps[:, None]).ravel())
        return Knots.between(self.regions, inner)

    def beyond(self, knots: Knots, guess: Guess, rows: FloatArray | IntArray) -> "Beyond":
        """The knots beyond the scores of these rows, and how much curves may move there.

        Only a limit on the share of rows is known there. A movement d costs about d ln(1 / tail) /
        n of epsilon, so it is kept to a small part of the half-width of the rate.
        """
        last = np.empty(len(self.regions.parts), dtype=np.intp)
        first = np.empty(len(self.regions.parts), dtype=np.intp)
        for number in range(last.size):
            scores = self.rows.scores[self.own(number)]
            here = np.flatnonzero(knots.segment == number)
            inside = here[(knots.score[here] >= scores.min()) & (knots.score[here] <= scores.max())]
            first[number], last[number] = (
                (inside[0], inside[-1]) if inside.size else (here[0], here[-1])
            )
        error = np.sqrt(guess.rate * (1.0 - guess.rate) * np.maximum(rows, 1))
        return Beyond(knots, first, last, _MOST_BEYOND * error)

    def count(self, knots: Knots, source: RandomSource) -> IntArray:
        """Count these rows by knot and label."""
        prepared = self.regions.prepared(
            self.rows.scores, self.segment if self.regions.has_segments else None
        )
        counts = knots.count(prepared, self.rows.codes, RowHashes(source))
        return np.asarray(counts[: knots.n_knots].sum(axis=1))


@dataclass(frozen=True, eq=False)
class Beyond:
    """Where no pilot row was seen: before the knot `first` and after `last` of each segment.

    In total, curves move by at most `most` there, one number per region.
    """

    knots: Knots
    first: IndexArray
    last: IndexArray
    most: FloatArray

    def of(self, curve: FloatArray, counts: FloatArray | IntArray) -> FloatArray:
        """The curve, with smaller movements there, if that costs little log loss.

        `counts` are the rows that the curve was fitted to, by knot and label. No other rows may
        decide: the curve must be fixed given these.
        """
        found = curve.copy()
        whole = _losses(curve, counts).sum()
        for number, (first, last) in enumerate(
            zip(self.first.tolist(), self.last.tolist(), strict=True)
        ):
            here = np.flatnonzero(self.knots.segment == number)
            for place, anchor in ((here[here < first], first), (here[here > last], last)):
                moved = curve[place] - curve[anchor]
                most = float(self.most[self.knots.region[anchor]])
                largest = float(np.abs(moved).max(initial=0.0))
                if largest <= most:
                    continue
                tamed = curve[anchor] + moved * (most / largest)
                costs = _losses(tamed, counts[place]) - _losses(curve[place], counts[place])
                if costs.sum() <= _MOST_COST * whole:
                    found[place] = tamed
        return found


def _losses(values: FloatArray, counts: FloatArray | IntArray) -> FloatArray:
    """The log loss of rows at knots, by label."""
    losses = xlogy(counts[:, 0], 1.0 - values) + xlogy(counts[:, 1], values)
    return -np.asarray(losses)


def _clipped(scores: FloatArray) -> FloatArray:
    """The score itself, but neither 0 nor 1."""
    return np.clip(scores, _NEAREST, 1.0 - _NEAREST)


def _one_half(scores: FloatArray) -> FloatArray:
    return np.full(scores.shape, 0.5)


def cells_of_region(n_rows: int, n_regions: int) -> int:
    """The number of cells in each region of a segment, given all rows and the segment's regions.

    >>> [cells_of_region(n_rows, n_regions) for n_rows, n_regions in ((500, 4), (10**6, 50))]
    [12, 24]
    >>> cells_of_region(10**8, 232)
    8
    """
    if n_rows < _FEW_ROWS:
        return _FEW_CELLS
    return min(CELLS, max(_FEWEST_CELLS, _MOST_CELLS // n_regions))


def knot_scores(
    part: ScorePartition,
    rows: ScoreCounts,
    values: FloatArray,
    n_cells: int,
    *,
    is_tied: bool,
) -> FloatArray:
    """Scores between the edges of regions at which the slope of curves may change.

    Parameters
    ----------
    part : ScorePartition
        The regions of one segment.
    rows : ScoreCounts
        Distinct scores of pilot rows.
    values : float array of shape (n,)
        A first curve at them.
    n_cells : int
        Cells of each region.
    is_tied : bool
        Whether pilot rows share scores.

    Notes
    -----
    In each region, knots are at equal steps of the mean of two shares: of pilot rows below the
    score, and of the first curve's movement below it. So a cell has few rows, or a small rise. If
    pilot scores are tied, knots are at these scores. Scores in [0, 1] have knots at both ends;
    others have some beyond those of pilot rows.
    """
    distinct = rows.scores
    rise = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(values)))])
    share = (np.cumsum(rows.counts) - rows.counts / 2.0) / rows.n_rows + rise
    ends = np.concatenate([[-np.inf], part.cuts, [np.inf]])
    found = [_outer(distinct[0], distinct[-1])]
    for low, high in pairwise(ends.tolist()):
        first, last = np.searchsorted(distinct, [low, high])
        if is_tied:
            found.append(_values_between(distinct[first:last], share[first:last], n_cells))
        else:
            found.append(_scores_between(distinct, share, low, high, n_cells))
    return _as_precise(np.concatenate(found), distinct)


def _as_precise(knots: FloatArray, scores: FloatArray) -> FloatArray:
    """The knots, in single precision if all scores are: tables of curves are then smaller on a
    GPU.
    """
    with np.errstate(over="ignore"):
        if (scores.astype(np.float32) != scores).any():
            return knots
        rounded = knots.astype(np.float32).astype(np.float64)
    return np.where((knots > 0.0) & (rounded == 0.0), _NEXT_IN_SINGLE, rounded)


def _outer(low: float, high: float) -> FloatArray:
    """Knots beyond the scores of pilot rows."""
    if low >= 0.0 and high <= 1.0:
        return np.array([_NEXT_TO_ZERO, low, high, 1.0])
    width = high - low
    beyond = np.array(_OUTER) * (width if width > 0.0 else 1.0)
    return np.concatenate([low - beyond, [low, high], high + beyond])


def _values_between(values: FloatArray, share: FloatArray, n_cells: int) -> FloatArray:
    """Some of the scores of pilot rows in a region, at about equal steps."""
    if values.size <= n_cells + 1:
        return values
    wanted = np.linspace(share[0], share[-1], n_cells + 1)
    nearest = np.abs(share[:, None] - wanted).argmin(axis=0)
    return np.asarray(values[np.unique(nearest)])


def _scores_between(
    distinct: FloatArray, share: FloatArray, low: float, high: float, n_cells: int
) -> FloatArray:
    """Scores of a region at equal steps, including scores between those of pilot rows."""
    low = max(low, distinct[0])
    high = min(high, distinct[-1])
    if low >= high:
        return np.empty(0)
    begin, end = np.interp([low, high], distinct, share)
    wanted = np.linspace(begin, end, n_cells + 1)
    return np.interp(wanted[1:-1], share, distinct)
