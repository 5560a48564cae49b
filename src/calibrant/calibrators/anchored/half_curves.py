"""From pilot rows and counts at knots to the curves of a fit: a first one, one for each half, and
their mean, moved.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray, Seed
from calibrant.calibrators._held_out import Guess
from calibrant.calibrators._recentre import RisingRegions
from calibrant.calibrators.anchored.curve_bounds import CurveBounds
from calibrant.calibrators.anchored.curve_choice import Curve, first_curve, fit_curve, is_falling
from calibrant.calibrators.anchored.curve_evidence import CurveEvidence
from calibrant.calibrators.anchored.half_rows import HalfRows, PlainHalves, UnitHalves
from calibrant.calibrators.anchored.knot_scores import cells_of_regions, knot_scores
from calibrant.calibrators.anchored.unit_rows import UnitWeights
from calibrant.calibrators.curves.distinct_scores import DistinctScores
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.cells.bins import Bins
from calibrant.cells.knots import Knots, RowHashes
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource
from calibrant.sample.sources.memory import MemoryRows

FEWEST_PILOT_ROWS = 12
"""With fewer pilot rows there is no first curve."""
_OWN_PILOT = 50  # pilot rows from which on a segment has a first curve and knots of its own
_OWN_ROWS = 250  # rows of a half from which on a segment has a curve of its own
_SLACK = (
    0.01  # by how much more than the smallest epsilon is taken, so that probabilities move less
)
_MORE_SLACK = 0.6  # the same, with few rows of a class, over the square root of these
_FEW_OF_A_CLASS = 400
_NEAREST = 0.01  # to 0 and 1: the score itself as a first curve
_MOST_BEYOND = (
    0.015  # of the standard error of a rate times the rows: how far curves move beyond pilot rows
)
_BEYOND = 0.5  # of the distance to 0 or 1: how far the curve moves at its ends


@dataclass(frozen=True, eq=False)
class LabelledPilot:
    """Pilot rows in segments, and the first curve that is fitted to them.

    Attributes
    ----------
    rows : MemoryRows
        The rows, with labels.
    regions : Bins
        The regions.
    segment : int array of shape (n,)
        The number of each row's segment among those of the regions.
    """

    rows: MemoryRows
    regions: Bins
    segment: IndexArray

    @classmethod
    def of(cls, binned: Binned) -> Self:
        """The labelled rows that were drawn before any was counted."""
        if any(map(len, binned.drawn.values())):
            rows = binned.rows.drawn_rows(binned.whole, binned.classes)
        else:
            rows = binned.whole.collect().take(np.empty(0, dtype=np.intp))
        regions = binned.partition.as_bins()
        segment = np.zeros(len(rows), dtype=np.intp)
        if rows.segment is not None:
            segment = regions.numbers(rows.segment_names)[rows.segment]
        return cls(rows, regions, segment)

    def own(self, number: int) -> BoolArray:
        """The rows that decide for a segment: its own, or if these are few all."""
        own = self.segment == number
        return own if own.sum() >= _OWN_PILOT else np.ones(own.size, dtype=bool)

    def first_curves(self) -> list[Curve]:
        """The first curve of each segment."""
        found = []
        for number in range(len(self.regions.parts)):
            own = self.own(number)
            found.append(
                _first_curve(DistinctScores.of(self.rows.scores[own], self.rows.codes[own]))
            )
        return found

    def knots(self, curves: list[Curve], n_rows: int) -> Knots:
        """Knots at the edges of regions, and between them as these rows say."""
        inner = []
        for number, part in enumerate(self.regions.parts):
            scores = np.sort(self.rows.scores[self.own(number)].astype(np.float64) + 0.0)
            values = curves[number](scores) if scores.size else scores
            inner.append(knot_scores(part, scores, values, cells_of_regions(n_rows)))
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
            steps = np.arange(cells_of_regions(n_rows)) / cells_of_regions(n_rows)
            inner.append((ends[:-1] + np.diff(ends) * steps[:, None]).ravel())
        return Knots.between(self.regions, inner)

    def beyond(self, knots: Knots, guess: Guess, rows: FloatArray) -> "Beyond":
        """The knots beyond the scores of these rows, and how much curves may move there.

        Nothing but a limit on the share of rows is known there. A movement d costs about d ln(1 /
        tail) / n of epsilon: it is kept to a small part of the half-width of the rate.
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
        return np.asarray(knots.count(prepared, self.rows.codes, RowHashes(source)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Beyond:
    """Where no pilot row was seen: before the knot `first` and after `last` of each segment.

    Curves move by at most `most`, one number for each region, in all of it.
    """

    knots: Knots
    first: IndexArray
    last: IndexArray
    most: FloatArray

    def of(self, curve: FloatArray) -> FloatArray:
        """The curve, with smaller movements there."""
        found = curve.copy()
        for number, (first, last) in enumerate(
            zip(self.first.tolist(), self.last.tolist(), strict=True)
        ):
            here = np.flatnonzero(self.knots.segment == number)
            for place, anchor in ((here[here < first], first), (here[here > last], last)):
                moved = curve[place] - curve[anchor]
                most = float(self.most[self.knots.region[anchor]])
                largest = float(np.abs(moved).max(initial=0.0))
                if largest > most:
                    found[place] = curve[anchor] + moved * (most / largest)
        return found


def _clipped(scores: FloatArray) -> FloatArray:
    """The score itself, but neither 0 nor 1."""
    return np.clip(scores, _NEAREST, 1.0 - _NEAREST)


def _one_half(scores: FloatArray) -> FloatArray:
    return np.full(scores.shape, 0.5)


def _n_units(binned: Binned) -> int:
    """How many rows are counted or, of groups, how many there are with those of pilot rows."""
    return int(binned.tally.counts.sum()) if binned.design is None else binned.whole.n_groups()


def _first_curve(rows: DistinctScores) -> Curve:
    """A curve for few rows; one that falls if the rate clearly does."""
    if not is_falling(rows):
        return first_curve(rows)
    rising = first_curve(DistinctScores(rows.scores, rows.counts, rows.counts - rows.positives))
    return lambda scores: 1.0 - rising(scores)


@dataclass(frozen=True, eq=False)
class HalfCurves:
    """The curves of a fit at knots, and what limits follow from.

    Attributes
    ----------
    name : str
        Which curve was fitted.
    evidence : CurveEvidence
        Rows at knots, and the curves.
    guess : Guess
        What pilot rows say of each region.
    expected : float array of shape (n_regions,)
        How many independent units each region has, about; fixed before its rows are seen.
    """

    name: str
    evidence: CurveEvidence
    guess: Guess
    expected: FloatArray

    @classmethod
    def fit(
        cls,
        binned: Binned,
        curve: str | ScoreCalibrator,
        random_state: Seed,
        counting: UnitWeights | None = None,
    ) -> Self | None:
        """Fit them to pilot rows and to counted rows; None of plain rows with few pilot rows.

        `counting` says how units count, if rows are units.
        """
        pilot = LabelledPilot.of(binned)
        has_pilot = len(pilot.rows) >= FEWEST_PILOT_ROWS
        if counting is None and not has_pilot:
            return None
        source = binned.whole.random_source(random_state, "knots and halves")
        n_units = int(binned.tally.counts.sum()) if counting is None else _n_units(binned)
        firsts = pilot.first_curves() if has_pilot else pilot.blind_curves()
        knots = pilot.knots(firsts, n_units) if has_pilot else pilot.blind_knots(n_units)
        rows: HalfRows
        if counting is None:
            rows = PlainHalves.of(binned, pilot, knots, source)
        else:
            rows = UnitHalves.of(binned, pilot.rows if has_pilot else None, knots, source, counting)
        first = _at_knots(knots, firsts)
        tame = pilot.beyond(knots, rows.guess(first), rows.expected) if has_pilot else None
        first = first if tame is None else tame.of(first)
        names = []
        halves = []
        for number in range(2):
            name, values = _fitted(curve, knots, rows.to_fit(number))
            names.append(name)
            halves.append(values if tame is None else tame.of(values))
        unseen = ~np.isin(knots.segment, knots.segment[knots.starts[:-1]][rows.is_seen])
        first = np.where(unseen, 0.5, first)  # nothing is known of a segment without rows
        fitted = np.where(unseen, 0.5, np.array(halves))
        guess = rows.guess(first)
        evidence = rows.evidence(first, fitted, guess)
        name = names[0] if names[0] == names[1] else f"{names[0]} and {names[1]}"
        return cls(name, evidence, guess, rows.expected)

    def bounds(self, alpha: float) -> CurveBounds:
        """What is proved, with probability at least 1 - alpha."""
        return CurveBounds.of(self.evidence, alpha, self.guess.shares(self.expected, alpha))

    def moved(self, bounds: CurveBounds) -> FloatArray:
        """A curve that keeps the ranking, with about the smallest epsilon that is possible, and
        near to the mean.

        Regions in which no such curve escapes refutation do not decide about the others.
        """
        falls = _falling(self.evidence.knots, self.evidence.mean_curve)
        start = np.where(falls, 1.0 - self.evidence.mean_curve, self.evidence.mean_curve)
        start = _rising(self.evidence.knots, start)
        refuted = np.zeros(self.evidence.rows.size, dtype=bool)
        found = self._least_moved(bounds, start, falls, refuted)
        refuted = bounds.refuted(np.where(falls, 1.0 - found, found))
        if refuted.any():
            found = self._least_moved(bounds, start, falls, refuted)
        return np.where(falls, 1.0 - found, found)

    def _least_moved(
        self, bounds: CurveBounds, rising: FloatArray, falls: BoolArray, ignored: BoolArray
    ) -> FloatArray:
        """A curve that never falls, moved.

        `falls` says at which knots it stands for one minus itself.
        """
        knots = self.evidence.knots
        of_region = falls[knots.starts[:-1]]
        actual = np.where(falls, 1.0 - rising, rising)
        errors = _mirrored(bounds.errors(actual), of_region, 0.0)
        errors = Interval(
            np.where(ignored, 0.0, errors.lower), np.where(ignored, 0.0, errors.upper)
        )
        average = self.evidence.averages(actual)
        off = bounds.off(actual)
        averages = _mirrored(Interval(average - off, average + off), of_region, 1.0)
        segment = knots.segment[knots.starts[:-1]]
        regions = RisingRegions(
            rising[knots.starts[:-1]],
            rising[knots.starts[1:] - 1],
            errors,
            averages,
            np.diff(segment, prepend=-1) == 0,
        )
        return _moved(regions, knots, rising, self._slack(), self.expected)

    def _slack(self) -> float:
        rows = float(self.expected.sum())
        labelled = max(float(self.evidence.labelled.sum()), 1e-300)
        positives = rows * float(self.evidence.positives.sum()) / labelled
        rarer = min(positives, rows - positives)
        return _SLACK if rarer >= _FEW_OF_A_CLASS else _MORE_SLACK / (rarer + 1.0) ** 0.5


def _at_knots(knots: Knots, curves: list[Curve]) -> FloatArray:
    """The curves of segments at their knots."""
    found = np.empty(knots.n_knots)
    for number, curve in enumerate(curves):
        here = knots.segment == number
        found[here] = curve(knots.score[here])
    return found


def _fitted(curve: str | ScoreCalibrator, knots: Knots, counts: IntArray) -> tuple[str, FloatArray]:
    """A curve fitted to counts by knot and label, at the knots.

    Of a segment with few rows that of all rows.
    """
    name, pooled = fit_curve(curve, _distinct(knots.score, counts))
    n_segments = len(knots.cells.parts)
    curves = []
    for number in range(n_segments):
        here = knots.segment == number
        own = n_segments > 1 and counts[here].sum() >= _OWN_ROWS
        curves.append(
            fit_curve(curve, _distinct(knots.score[here], counts[here]))[1] if own else pooled
        )
    return name, _at_knots(knots, curves)


def _distinct(scores: FloatArray, counts: IntArray) -> DistinctScores:
    """Counts by knot and label as distinct scores."""
    found, place = np.unique(scores, return_inverse=True)
    rows = np.bincount(place, counts.sum(axis=1)).astype(np.int64)
    positives = np.bincount(place, counts[:, 1]).astype(np.int64)
    seen = rows > 0
    return DistinctScores(found[seen], rows[seen], positives[seen])


def _falling(knots: Knots, curve: FloatArray) -> BoolArray:
    """For each knot, whether the curve of its segment ends lower than it begins."""
    first = np.flatnonzero(np.diff(knots.segment, prepend=-1))
    last = np.append(first[1:], knots.n_knots) - 1
    return np.asarray(curve[last] < curve[first])[knots.segment]


def _rising(knots: Knots, curve: FloatArray) -> FloatArray:
    """The curve without steps down within segments."""
    found = curve.copy()
    for number in range(len(knots.cells.parts)):
        here = knots.segment == number
        found[here] = np.maximum.accumulate(curve[here])
    return found


def _mirrored(limits: Interval, here: BoolArray, total: float) -> Interval:
    """Limits of `total` less a number, in some of the regions."""
    lower = np.where(here, total - limits.upper, limits.lower)
    upper = np.where(here, total - limits.lower, limits.upper)
    return Interval(lower, upper)


def _moved(
    regions: RisingRegions, knots: Knots, curve: FloatArray, slack: float, rows: FloatArray
) -> FloatArray:
    """The curve, moved in each region as a straight function of its values."""
    n_regions = rows.size
    ends = np.clip(regions.ends, 1e-6, 1.0 - 1e-6)
    cost = np.tile(rows + 1.0, 2) / (ends * (1.0 - ends))
    begins = np.flatnonzero(~regions.follows)
    bounds: list[tuple[float | None, float | None]] = [(None, None)] * (2 * n_regions)
    for number in begins.tolist():
        bounds[number] = (-_BEYOND * float(regions.low[number]), None)
    for number in np.append(begins[1:] - 1, n_regions - 1).tolist():
        bounds[n_regions + number] = (None, _BEYOND * float(1.0 - regions.high[number]))
    moved = regions.moved_least(cost, bounds, slack)
    if moved is None:
        return curve
    left, right = moved
    low = regions.low[knots.region]
    width = regions.high[knots.region] - low
    share = np.where(width > 0.0, (curve - low) / np.where(width > 0.0, width, 1.0), 0.0)
    return np.asarray(left[knots.region] + (right - left)[knots.region] * np.clip(share, 0.0, 1.0))
