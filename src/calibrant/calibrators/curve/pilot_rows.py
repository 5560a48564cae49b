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
from calibrant.calibrators.curve.curve_kinds import Curve, first_curves, within_0_and_1
from calibrant.cells.bins import Bins
from calibrant.cells.entries import Entries
from calibrant.cells.knots import Knots
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import ScorePartition
from calibrant.limits.error_budget import even_widths
from calibrant.params.random import RandomSource
from calibrant.sample.sources.memory import MemoryRows

FEWEST_PILOT_ROWS = 12
"""With fewer, there is no first curve."""
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
_FEW_SCORES = 12  # if pilot rows have fewer different scores, in [0, 1], there are also knots here:
_TENTHS = np.arange(1, 10) / 10.0
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


def has_pilot(drawn: Mapping[Hashable, Any]) -> bool:
    """Whether enough rows were drawn for a first curve."""
    return sum(map(len, drawn.values())) >= FEWEST_PILOT_ROWS


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
    def of(cls, errors: Entries, scores: Entries, low: FloatArray, high: FloatArray) -> Self:
        """The guess from label minus probability, and the probability, of each pilot unit.

        The probabilities of a region are between `low` and `high`; their middle counts as some more
        units.
        """
        region = errors.region
        weights = errors.weights / errors.bound
        n_seen = errors.n_units
        n = n_seen + _TRUSTED
        weight = np.where(n_seen > 0, errors.sums(weights) / np.maximum(n_seen, 1), 1.0)
        total = n * weight
        middle = (low + high) / 2.0
        score = (errors.sums(weights * scores.value) + _TRUSTED * weight * middle) / total
        rate = score + errors.sums(weights * errors.value) / total
        prior = score * (1.0 - score) * weight**2
        of_errors = (errors.sums((weights * errors.value) ** 2) + _TRUSTED * prior) / n
        away = scores.value - score[region]
        width = (high - low) ** 2 / 12.0
        spread = (errors.sums(weights * away**2) / weight + _TRUSTED * width) / n
        of_scores = (errors.sums((weights * away) ** 2) + _TRUSTED * width * weight**2) / n
        return cls(np.clip(rate, 1e-6, 1.0 - 1e-6), spread, of_errors, of_scores, weight)

    def shares(self, n_units: IntArray | FloatArray, alpha: float) -> FloatArray:
        """Shares of the error budget with which limits are about equally wide; they add up to 1."""
        n = np.maximum(n_units, 1)
        return even_widths(np.sqrt(self.of_errors / (n * self.weight**2) + 1.0 / n**2), alpha)


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
        """The labelled pilot rows, drawn before any row was counted."""
        segment = np.zeros(len(rows), dtype=np.intp)
        if rows.segment is not None:
            segment = regions.numbers(rows.segment_names)[rows.segment]
        return cls(rows, regions, segment)

    @property
    def is_enough(self) -> bool:
        """Whether there are enough rows for a first curve."""
        return len(self.rows) >= FEWEST_PILOT_ROWS

    def own(self, number: int) -> BoolArray:
        """The rows that determine a segment's curve and knots: its own or, if these are few, all."""
        own = self.segment == number
        return own if own.sum() >= _OWN_PILOT else np.ones(own.size, dtype=bool)

    def first_curves(self) -> list[Curve]:
        """The first curve of each segment."""
        return first_curves([rows for rows, _ in self._distinct])

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
        of_segments = np.bincount(self.segment, minlength=len(self.regions.parts))
        expected = n_rows * of_segments / max(of_segments.sum(), 1)
        parts = zip(self.regions.parts, curves, self._distinct, expected.tolist(), strict=True)
        for part, curve, (rows, is_tied), of_segment in parts:
            values = curve(rows.scores)
            n_cells = cells_of_region(of_segment, part.n_regions)
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
        counts = knots.count(prepared, self.rows.codes, source)
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
        """The curve, moved less where there are no pilot scores, if that costs little log loss.

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


def ends(knots: Knots, curve: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest value of a curve in each region."""
    starts = knots.starts[:-1]
    return np.minimum.reduceat(curve, starts), np.maximum.reduceat(curve, starts)


def _losses(values: FloatArray, counts: FloatArray | IntArray) -> FloatArray:
    """The log loss of rows at knots, by label."""
    return np.asarray(-(xlogy(counts[:, 0], 1.0 - values) + xlogy(counts[:, 1], values)))


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
    pilot scores are tied, knots are at these scores. Scores in [0, 1] have knots at both ends, and
    at the tenths if pilot rows have few different scores: those of a good model are often 0, and
    most of the curve is elsewhere. Other scores have some knots beyond those of pilot rows.
    """
    distinct = rows.scores
    rise = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(values)))])
    share = (np.cumsum(rows.counts) - rows.counts / 2.0) / rows.n_rows + rise
    ends = np.concatenate([[-np.inf], part.cuts, [np.inf]])
    found = [_outer(distinct)]
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


def _outer(distinct: FloatArray) -> FloatArray:
    """Knots beyond the scores of pilot rows, or between a few."""
    low, high = distinct[[0, -1]].tolist()
    if within_0_and_1(distinct):
        few = _TENTHS if distinct.size < _FEW_SCORES else _TENTHS[:0]
        return np.concatenate([[_NEXT_TO_ZERO, low, high, 1.0], few])
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
