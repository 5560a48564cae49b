"""From pilot rows and counts at knots to the curves of a fit: a first one, one for each half, and
their mean, moved.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IntArray, Seed
from calibrant.calibrators.curve.curve_bounds import (
    PRIOR_ROWS,
    CurveBounds,
    CurveEvidence,
    CurveRows,
    Mix,
)
from calibrant.calibrators.curve.curve_kinds import Curve, fit_curves, within_0_and_1
from calibrant.calibrators.curve.least_epsilon import CurveMoves, Side
from calibrant.calibrators.curve.pilot_rows import (
    AS_ZERO,
    MOST_PILOT,
    Guess,
    LabelledPilot,
    ends,
    has_pilot,
)
from calibrant.calibrators.curve.plain_rows import PlainRows
from calibrant.calibrators.curve.programme import joined_edges
from calibrant.calibrators.curve.units import CurveUnits
from calibrant.calibrators.regions.binned_rows import Binned, CutBins
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.cells.knots import Knots
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource
from calibrant.sample.rows import Rows

_OWN_ROWS = 250  # rows of a half from which on a segment has its own curve
_SLACK = 0.01  # how much epsilon may exceed the smallest one, so that probabilities move less
_MORE_SLACK = 1.1  # the same, with few rows of a class: over their number to this power:
_SLACK_POWER = 0.72
_FEW_OF_A_CLASS = 400
_FIRST = "first curve"  # the name of a curve without rows to fit
# how much the log loss, as if the mean curve were right, may grow when the curve is moved: by this
# share, and in addition by what it costs to shift each region's average to where it is needed, up
# to this share
_MOVE_COST = 0.00055
_SHIFT_COST = 0.022
_NEAREST = 1e-9  # to 0 and 1, where log losses are computed


@dataclass(frozen=True, eq=False)
class RowsAtKnots:
    """Pilot rows, the first curves and the knots that they determine, and the other rows, counted
    there.

    Attributes
    ----------
    pilot : LabelledPilot
        The pilot rows.
    firsts : list of functions
        The first curve of each segment.
    rows : CurveRows
        The counted rows, at the knots.
    """

    pilot: LabelledPilot
    firsts: list[Curve]
    rows: CurveRows

    @classmethod
    def of_cut(cls, cut: CutBins, random_state: Seed) -> tuple[Binned, Self | None]:
        """Count plain rows once, by region, knot and label; None with few pilot rows.

        The regions are views of the same counts. Knots need regions, and counts show which edges of
        regions are tied, so the knots are those of untied edges. A tied edge that its bin absorbs
        has the same knots. One that is a region of its own does not: then rows are counted again.
        """
        if not has_pilot(cut.drawn):
            return cut.counted(), None
        try:
            classes = cut.rows.known_classes()
        except InvalidValueError:
            cut.counted()  # reports which rows have wrong labels
            raise
        source = _source(cut.whole, random_state)
        cells = cut.cells.as_bins()
        regions = cells.if_untied() if cut.by_own_ranks else cells
        pilot = LabelledPilot.of(cut.rows.drawn_rows(cut.whole, classes, MOST_PILOT), regions)
        firsts = pilot.first_curves()
        knots = pilot.knots(firsts, cut.n_rows - regions.layout.n_uncounted)
        counts, reach = cut.rows.count_knots(knots, classes, source)
        rows, positives = knots.of_cells(counts)
        binned = cut.settled(Tally(rows, positives, 0, cells), classes, reach)
        found = binned.partition.as_bins()
        if found.layout.n_atoms > regions.layout.n_atoms:
            return binned, cls._plain(binned, source)
        plain = _plain_rows(knots, counts, pilot, source, cut.unlabelled)
        return binned, cls(pilot, firsts, replace(plain, knots=replace(knots, regions=found)))

    @classmethod
    def of_binned(cls, binned: Binned, random_state: Seed) -> Self | None:
        """Count plain rows whose regions were counted before; None with few pilot rows."""
        if not has_pilot(binned.drawn):
            return None
        return cls._plain(binned, _source(binned.whole, random_state))

    @classmethod
    def _plain(cls, binned: Binned, source: RandomSource) -> Self:
        drawn = binned.rows.drawn_rows(binned.whole, binned.classes, MOST_PILOT)
        pilot = LabelledPilot.of(drawn, binned.partition.as_bins())
        firsts = pilot.first_curves()
        knots = pilot.knots(firsts, int(binned.tally.counts.sum()))
        counts, _ = binned.rows.count_knots(knots, binned.classes, source)
        plain = _plain_rows(knots, counts, pilot, source, binned.unlabelled)
        return cls(pilot, firsts, plain)

    @classmethod
    def of_units(cls, binned: Binned, random_state: Seed, cap: float | None) -> Self:
        """Sum rows over units; `cap` says how these count (`GroupDesign.cap`)."""
        if any(map(len, binned.drawn.values())):
            drawn = binned.rows.drawn_rows(binned.whole, binned.classes)
        else:
            drawn = binned.whole.collect().take(np.empty(0, dtype=np.intp))
        pilot = LabelledPilot.of(drawn, binned.partition.as_bins())
        source = _source(binned.whole, random_state)
        n_units = binned.whole.n_groups() if binned.design else int(binned.tally.counts.sum())
        if pilot.is_enough:
            firsts = pilot.first_curves()
            knots = pilot.knots(firsts, n_units)
            rows = CurveUnits.of(binned, pilot.rows, knots, source, cap)
        else:
            firsts = pilot.blind_curves()
            knots = pilot.blind_knots(n_units)
            rows = CurveUnits.of(binned, None, knots, source, cap)
        return cls(pilot, firsts, rows)


def _source(whole: Rows, random_state: Seed) -> RandomSource:
    return RandomSource.of(random_state, "knots and halves", rows=whole.fingerprint())


def _plain_rows(
    knots: Knots,
    counts: IntArray,
    pilot: LabelledPilot,
    source: RandomSource,
    unlabelled: FloatArray | None,
) -> PlainRows:
    """Plain rows at knots, from counts by place, half and label."""
    of_pilot = pilot.count(knots, source.for_purpose("pilot rows"))
    without_label = np.zeros(knots.n_knots, dtype=np.int64)
    if unlabelled is not None:
        of_scores = source.for_purpose("unlabelled scores")
        further = knots.count(unlabelled, np.zeros(unlabelled.size, dtype=np.uint8), of_scores)
        without_label = further[: knots.n_knots].sum(axis=(1, 2))
    return PlainRows(knots, counts[: knots.n_knots], of_pilot, without_label, source)


@dataclass(frozen=True, eq=False)
class HalfCurves:
    """The curves of a fit at knots, and the evidence for their limits.

    Attributes
    ----------
    name : str
        The name of the fitted curve.
    evidence : CurveEvidence
        Rows at knots, and the curves.
    """

    name: str
    evidence: CurveEvidence

    @classmethod
    def fit(cls, counted: RowsAtKnots, curve: str | ScoreCalibrator) -> Self:
        """Fit the curves to pilot rows and counted rows."""
        pilot = counted.pilot
        rows = counted.rows
        knots = rows.knots
        first = _at_knots(knots, counted.firsts)
        tame = None
        if pilot.is_enough:
            guess = Guess.of(*rows.pilot_units(first), *ends(knots, first))
            tame = pilot.beyond(knots, guess, rows.expected)
            first = tame.of(first, rows.of_pilot)
        fitted_to = (rows.to_fit(0), rows.to_fit(1))
        # with few units, all may be in one half
        found = iter(_fitted(curve, knots, [counts for counts in fitted_to if counts.any()]))
        names = []
        halves = []
        for counts in fitted_to:
            name, values = next(found) if counts.any() else (_FIRST, first)
            names.append(name)
            halves.append(values if tame is None else tame.of(values, counts))
        unseen = ~np.isin(knots.segment, knots.segment[knots.starts[:-1]][rows.labelled > 0])
        first = np.where(unseen, 0.5, first)  # nothing is known about a segment without rows
        fitted = np.array([np.where(unseen, 0.5, values) for values in halves])
        first = _joined(knots, first)
        fitted = np.array([_joined(knots, values) for values in fitted])
        name = names[0] if names[0] == names[1] else f"{names[0]} and {names[1]}"
        return cls(name, CurveEvidence(rows, first, fitted, fitted_to))

    def bounds(self, alpha: float) -> CurveBounds:
        """What is shown with probability at least 1 - alpha."""
        shares = self.evidence.guess.shares(self.evidence.rows.expected, alpha)
        return CurveBounds.of(self.evidence, alpha, shares)

    def moved(self, bounds: CurveBounds, smoothness: float) -> tuple[FloatArray, Mix]:
        """A curve without jumps that keeps the ranking and has about the smallest epsilon at little
        cost, and what it is made of.

        Regions without rows, and those in which no such curve escapes refutation, do not affect the
        others.
        """
        falls = _falling(self.evidence.knots, self.evidence.mean_curve)
        errors = bounds.errors(self.evidence.mean_curve)
        unknown = errors.upper - errors.lower >= 1.0
        curve, mix = self._moved(bounds, falls, unknown, smoothness)
        refuted = bounds.refuted(curve, mix)
        if refuted.any():
            curve, mix = self._moved(bounds, falls, unknown | refuted, smoothness)
        return curve, mix

    def _moved(
        self, bounds: CurveBounds, falls: BoolArray, ignored: BoolArray, smoothness: float
    ) -> tuple[FloatArray, Mix]:
        """The curve, moved.

        `falls` marks the knots of segments in which it decreases: there, one minus the curve is
        moved.
        """
        evidence = self.evidence
        knots = evidence.knots
        starts = knots.starts[:-1]
        of_region = falls[starts]
        below, above = bounds.sides
        apart, of_first = bounds.terms
        mean = _rising(knots, np.where(falls, 1.0 - evidence.mean_curve, evidence.mean_curve))
        moves = CurveMoves(
            knots,
            np.where(falls, 1.0 - evidence.first, evidence.first),
            np.clip(mean, _NEAREST, 1.0 - _NEAREST),
            evidence.rows.at_knots.astype(np.float64),
            bounds.proved.gaps,
            evidence.rows.at_knots + (PRIOR_ROWS / np.diff(knots.starts))[knots.region],
            _chosen(of_region, above.mirrored(), below),
            _chosen(of_region, below.mirrored(), above),
            _mirrored(apart, of_region, 0.0),
            _mirrored(of_first, of_region, 1.0),
            ignored,
        )
        found = moves.least(self._allowed(bounds, moves, of_region), smoothness)
        curve = _joined(knots, _rising(knots, np.clip(found.values, 0.0, 1.0)))
        curve = np.where(falls, 1.0 - curve, curve)
        has_rows = np.bincount(knots.segment, evidence.rows.at_knots) > 0.0
        curve = np.where(has_rows[knots.segment], curve, evidence.mean_curve)
        _, of_first_curve, of_mean = found.coefficients.reshape(3, -1)
        return curve, Mix(of_first_curve, of_mean)

    def _allowed(self, bounds: CurveBounds, moves: CurveMoves, falls: BoolArray) -> float:
        """How much the log loss may grow, in nats over all rows."""
        p = moves.mean
        loss = -float((moves.rows * (p * np.log(p) + (1.0 - p) * np.log1p(-p))).sum())
        errors = _mirrored(bounds.errors(self.evidence.mean_curve), falls, 0.0)
        widths = np.where(moves.ignored, 0.0, errors.upper - errors.lower) / 2.0
        most = (1.0 + self._slack()) * float(widths.max())
        shift = np.maximum(errors.upper - most, 0.0) - np.maximum(-errors.lower - most, 0.0)
        shift = np.where(moves.ignored, 0.0, shift)
        of_shift = moves.divergence(p + shift[moves.knots.region])
        return _MOVE_COST * loss + min(of_shift, _SHIFT_COST * loss)

    def _slack(self) -> float:
        rows = self.evidence.rows
        n_units = float(rows.expected.sum())
        labelled = max(float(rows.labelled.sum()), 1e-300)
        positives = n_units * float(rows.positives.sum()) / labelled
        rarer = min(positives, n_units - positives)
        return _SLACK if rarer >= _FEW_OF_A_CLASS else _MORE_SLACK / (rarer + 1.0) ** _SLACK_POWER


def _at_knots(knots: Knots, curves: list[Curve]) -> FloatArray:
    """The curves of segments at their knots."""
    found = np.empty(knots.n_knots)
    for number, curve in enumerate(curves):
        here = knots.segment == number
        found[here] = curve(knots.score[here])
    return found


def _fitted(
    curve: str | ScoreCalibrator, knots: Knots, fitted_to: list[FloatArray | IntArray]
) -> list[tuple[str, FloatArray]]:
    """Curves fitted to several counts by knot and label, at the knots, and their names.

    A segment with few rows gets the curve of all rows. Whether scores are probabilities is decided
    by the knots, and so by pilot rows.
    """
    score = np.where(np.isin(knots.score, AS_ZERO), 0.0, knots.score)
    ends = np.append(np.unique(knots.segment, return_index=True)[1], knots.n_knots)
    segments = [slice(*pair) for pair in pairwise(ends.tolist())]
    data = [_distinct(score, counts) for counts in fitted_to]
    used = np.repeat(np.arange(len(data)), len(segments)).reshape(len(data), -1)
    if len(segments) > 1:
        for number, counts in enumerate(fitted_to):
            for segment, here in enumerate(segments):
                if counts[here].sum() >= _OWN_ROWS:
                    used[number, segment] = len(data)
                    data.append(_distinct(score[here], counts[here]))
    are_probabilities = within_0_and_1(np.sort(score))
    found = fit_curves(curve, data, are_probabilities=are_probabilities)
    curves = [[found[fit][1] for fit in of_segments] for of_segments in used.tolist()]
    return [(name, _at_knots(knots, own)) for (name, _), own in zip(found, curves, strict=False)]


def _distinct(scores: FloatArray, counts: FloatArray | IntArray) -> ScoreCounts:
    """Counts by knot and label as distinct scores."""
    found, place = np.unique(scores, return_inverse=True)
    rows = np.bincount(place, counts.sum(axis=1))
    positives = np.bincount(place, counts[:, 1])
    seen = rows > 0
    return ScoreCounts(found[seen], rows[seen], positives[seen])


def _falling(knots: Knots, curve: FloatArray) -> BoolArray:
    """For each knot, whether the curve of its segment ends lower than it begins."""
    first = np.flatnonzero(np.diff(knots.segment, prepend=-1))
    last = np.append(first[1:], knots.n_knots) - 1
    return np.asarray(curve[last] < curve[first])[knots.segment]


def _rising(knots: Knots, curve: FloatArray) -> FloatArray:
    """The curve without downward steps within segments."""
    found = curve.copy()
    for number in range(len(knots.cells.parts)):
        here = knots.segment == number
        found[here] = np.maximum.accumulate(curve[here])
    return found


def _joined(knots: Knots, curve: FloatArray) -> FloatArray:
    """The curve with one value at both knots of an edge between regions: that at the edge."""
    found = curve.copy()
    edges = joined_edges(knots)
    found[edges - 1] = curve[edges]
    return found


def _mirrored(limits: Interval, here: BoolArray, total: float) -> Interval:
    """Limits on `total` minus a number, in some of the regions."""
    lower = np.where(here, total - limits.upper, limits.lower)
    upper = np.where(here, total - limits.lower, limits.upper)
    return Interval(lower, upper)


def _chosen(here: BoolArray, one: Side, other: Side) -> Side:
    """One of two, region by region."""
    limit = np.where(here, one.limit, other.limit)
    return Side(limit, np.where(here, one.known, other.known))
