"""A curve whose average in every region is guaranteed: the default.

What `fit_binned` does after the regions are cut, with groups, weights, or pilot rows (`HalfCurves`):

1. pilot rows fit a first curve, fix the knots, and share the error budget among regions;
2. the other rows are counted at knots, or summed over groups, in two halves;
3. a curve is fitted to pilot rows and each half, and their mean is moved as little as a small
   epsilon needs (`moved`);
4. bets on labels minus the first curve, and on what the curves of both halves add to it, give limits
   (`CurveBounds`).

With plain rows and another interval, or no pilot rows, one curve is fitted to all rows
(`calibrant.calibrators.curve.one_curve`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.curve.curve_bounds import ROUNDING
from calibrant.calibrators.curve.curve_kinds import CURVES
from calibrant.calibrators.curve.fitted_curve import (
    THEOREM,
    THEOREM_OF_UNITS,
    USUAL_LEVEL,
    CurveProof,
    FittedCurve,
)
from calibrant.calibrators.curve.half_curves import HalfCurves, RowsAtKnots
from calibrant.calibrators.curve.least_epsilon import SMOOTHNESS
from calibrant.calibrators.curve.one_curve import fit_to_all_rows
from calibrant.calibrators.curve.pieces import PiecewiseCalibrator
from calibrant.calibrators.curve.pilot_rows import FEWEST_PILOT_ROWS
from calibrant.calibrators.curve.unlabelled import (
    check_unlabelled,
    other_population,
    read_unlabelled,
)
from calibrant.calibrators.regions.binned_rows import Binned, CutBins, cut_bins
from calibrant.calibrators.regions.grouped_rows import cut_units
from calibrant.calibrators.regions.parameters import EXACT, DataAssumptions, automatic_bins
from calibrant.calibrators.regions.region_calibrator import BinnedCalibrator, is_plain
from calibrant.calibrators.score_calibrator import ScoreCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError, warn_caller
from calibrant.limits.interval import Interval
from calibrant.params.declared_state import Inline
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import Classes
from calibrant.params.rules import ALPHA, Choice, Instance, Number, RuleTable, replaces
from calibrant.params.state_kinds import Nested
from calibrant.sample.facts import RowFacts
from calibrant.sample.reader import read_rows, refuse, refuse_segments
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.text.numbers import nearest

_NAMED_JUMPS = 8


@dataclass(eq=False, repr=False)
class _CurveParameter:
    _rules: ClassVar[RuleTable] = {
        "curve": (
            Choice(CURVES)
            | Instance(ScoreCalibrator, "a calibrator of scores, such as BetaCalibrator()")
        ),
        "smoothness": Number("a finite number >= 0", 0.0),
    }

    curve: str | ScoreCalibrator = "auto"
    smoothness: float = field(default=SMOOTHNESS, kw_only=True)


@replaces(alpha=ALPHA)
@dataclass(eq=False, repr=False)
class Calibrator(PiecewiseCalibrator, BinnedCalibrator, _CurveParameter):
    """A curve that keeps the ranking, with a guaranteed average in every region of the score.

    Guarantee, for every distribution of scores and labels: with probability at least
    `confidence_level` over the calibration data, in every region simultaneously, the average
    predicted probability differs from the true rate of the positive class by at most the region's
    epsilon. There is no guarantee for a single score, a single predicted value, or part of a
    region. Assumptions: calibration and future rows are independent draws from one distribution,
    and the model behind the scores was not trained on the calibration rows. If the rate clearly
    falls as the score rises, as with credit points and defaults, the curve falls, and the guarantee
    says so.

    Parameters
    ----------
    curve : str or calibrator, default="auto"
        "auto" is the curve of `BlendCalibrator`. Others are "beta", "platt", "venn-abers",
        "isotonic", and an unfitted calibrator of scores.
    smoothness : float, default=0.01
        What waves of the curve around the edges of regions cost, in epsilon: the larger, the fewer
        waves, and the larger epsilon. The curve has no jumps, even if it is 0.
    n_bins : int or "auto", default="auto"
        Number of regions; with segments, the number in each segment. "auto" is half the cube root
        of the number of rows: the curve varies within a region, so regions can be larger than bins.
    confidence_level : float, default=0.9
        Confidence that everything claimed holds simultaneously.
    interval : str, default="auto"
        Method for the intervals of the rates; as in `BinningCalibrator`.
    partition : {"quantile", "uniform"} or Partition, default="quantile"
        As in `BinningCalibrator`. A Partition must have bins of the score, without segments.
    pilot : "auto", None, float or int, default="auto"
        As in `BinningCalibrator`: the pilot rows, which cut the regions and choose a first curve,
        and are not counted.
    segment_rule : "auto", None, int or list, default="auto"
        As in `BinningCalibrator`: which segments have regions of their own.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the pilot rows, and for the random steps with weights.
    n_jobs : int or None, default=None
        Threads for very large inputs; results never depend on it.

    Attributes
    ----------
    curve_ : str
        The name of the fitted curve; with segments, the curve of all rows.
    n_shifted_ : int
        The number of regions where the data refute the curve, so that it was shifted.
    guarantee_ : Guarantee
        The guarantee, in numbers and in words. Its `value` is the average prediction in each
        region, over rows as counted at knots.
    partition_, tally_
        The regions, and the counts of rows and labels in them.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    Pilot rows are drawn at random and not counted. They fit a first curve g0. The other rows are split
    at random into two halves. For half k, a curve g_k is fitted to the pilot rows and the other
    half. The mean of g_1 and g_2 is h. The curve used for prediction is h' = a + b g0 + c h, with
    a, b and c for each region such that epsilon is small and the log loss hardly grows; around the
    edges, the curves of neighbouring regions are blended, so that h' has no jumps. In every
    region E[Y - h'] = E[Y - g0] - c (E[g_1 - g0] + E[g_2 - g0]) / 2 + (1 - b - c) E[g0] - a, less
    what the blend adds. Given the rows they were fitted to, g0 and g_k are fixed, so bets bound all
    terms, for all a, b and c at once (`calibrant.calibrators.curve.curve_bounds`). Limits on the
    shares of rows at knots bound the blend. So epsilon is about that of bins with the same regions.
    Where the data refute an increasing h', it is shifted until they no longer do; it jumps, and the
    ranking changes, only there, and the guarantee's notes say where. The curve also jumps at a
    score that is a region of its own, because many rows share it. Curves are stored as a table of
    knots, linear in between, and rows are counted at knots in a way that preserves averages exactly
    (`calibrant.cells.knots`).

    With `groups` or `importance_weight`, the bets are on whole groups, or on rows by their weight
    (`calibrant.calibrators.curve.units`). All statements are then about rows of new groups, or
    about the weighted population, and there is no statement about masses. Rows from files are read
    into memory.

    For plain rows without pilot rows (none drawn, bins fixed beforehand, a `sample_weight`, fewer
    than 60 rows), or with another `interval`, the proof is different. Let h be the curve, h_b its
    average over the N_b rows counted in region b, and [L_b, U_b] the interval of the region's rate.
    The averages of h over the rows and over the population differ by at most V_b D_b, where V_b is
    the total variation of h over the whole region and D_b is a limit on the Kolmogorov distance
    (Koksma's inequality). The bound is smaller where limits on F at each rank are tighter. This
    holds for every h simultaneously, even one fitted to the same rows. Write M_b for the bound.
    Then E[Y - h(X) | b] lies in [L_b - h_b - M_b, U_b - h_b + M_b]. Where h_b lies outside [L_b,
    U_b], the data refute the curve, and it is shifted there on the logit scale until h_b lies
    inside.

    The error budget: 5% is for limits on mass. Of the rest, 1% is for the shares of rows at knots and
    1% for E[g0]; of what remains, 95% is for E[Y - g0] and 5% for E[g_k - g0]. Without bets, a
    tenth is for the distances and the remainder for the rates.

    This calibrator cannot be updated from a stream, because the curve is fitted to all rows at
    once. See `OnlineCalibrator`.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Calibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> y = rng.uniform(size=10_000) < scores**2
    >>> calibrator = Calibrator(n_bins=10).fit(scores, y)
    >>> calibrator.predict([0.3, 0.5, 0.7]).round(2)
    array([0.09, 0.24, 0.49])
    >>> calibrator.curve_, round(calibrator.guarantee_.epsilon, 2)
    ('blend', 0.04)
    """

    _fewest_pilot_rows: ClassVar[int] = FEWEST_PILOT_ROWS
    _learned: ClassVar[EntryTable] = {
        "proof": Entry(Inline(CurveProof), of="proof_"),
        "curve": Entry(Nested(FittedCurve), of="_fitted_curve"),
    }

    def _read(
        self, scores: ArrayLike | Sample, y: ArrayLike | None, **columns: ArrayLike | None
    ) -> Rows:
        given = self._given_partition
        if given is not None and given.has_segments:
            raise InvalidValueError(
                "partition", "be bins of one score, without segments", got=repr(given)
            )
        if given is not None and columns.get("segments") is not None:
            rule = "be None for a partition without segments"
            raise InvalidTypeError("segments", rule, got="segments")
        refuse_segments(scores, given)
        # rows are counted over other regions too, so none is fixed beforehand
        named: dict[str, Any] = {"pos_label": self.pos_label, **columns}
        return read_rows(scores, y, threads=self._threads, **named)

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        segments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        importance_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        weight_bound: float | None = None,
        max_group_size: int | None = None,
        group_target: str | None = None,
        score_range: tuple[float, float] | None = None,
        unlabelled_scores: ArrayLike | None = None,
    ) -> Self:
        """Cut the regions, count the labels, fit the curve, and derive the guarantee.

        Parameters
        ----------
        scores, y, segments, sample_weight, importance_weight, groups, classes, weight_bound
            As in `BinningCalibrator.fit`.
        max_group_size, group_target, score_range
            As in `BinningCalibrator.fit`.
        unlabelled_scores : array-like of shape (m,), optional
            Scores of further rows from the same population, without labels. They narrow the limits
            on averages of the curve, and so reduce epsilon: with many, only the noise of the labels
            is left. It is assumed that they come from the same population, and this is tested; if
            the test rejects, a warning is issued and the guarantee says so first. Not available
            with segments, weights or groups.

        Returns
        -------
        self
        """
        columns: dict[str, Any] = {
            "segments": segments,
            "sample_weight": sample_weight,
            "importance_weight": importance_weight,
            "groups": groups,
        }
        assumed: dict[str, Any] = {
            "weight_bound": weight_bound,
            "max_group_size": max_group_size,
            "group_target": group_target,
            "score_range": score_range,
        }
        if unlabelled_scores is None:
            return super().fit(scores, y, classes=classes, **columns, **assumed)
        self._check_parameters()
        reason = "this is not implemented with unlabelled scores"
        advice = "leave unlabelled_scores out"
        refuse(scores, reason, "segment", "weight", "group", advice=advice)
        unlabelled = read_unlabelled(unlabelled_scores, **columns)
        data = self._read(scores, y, classes=classes, **columns)
        return self._fit_rows(data, DataAssumptions.about(scores, **assumed), unlabelled)

    def _fit_rows(
        self, data: Rows, assumptions: DataAssumptions, unlabelled: FloatArray | None = None
    ) -> Self:
        """Cut regions and count; plain rows once, by region, knot and label."""
        self._check_assumptions(assumptions)
        counted = None
        if is_plain(data):
            binned, counted = cut_bins(
                data,
                self,
                assumptions,
                lambda cut: self._counted(replace(cut, unlabelled=unlabelled)),
            )
        else:
            binned = cut_units(data, self, assumptions)
        self._fit_counted(binned, counted)
        self._warn_if_weak()
        return self

    def _counted(self, cut: CutBins) -> tuple[Binned, RowsAtKnots | None]:
        """Count plain rows in regions and at knots; None if there are no knots."""
        if self._exact_interval != EXACT:
            return cut.counted(), None
        with np.errstate(all="ignore"):
            return RowsAtKnots.of_cut(cut, self.random_state)

    def fit_binned(self, binned: Binned) -> None:
        """Fit the curve to rows that are already counted in regions."""
        self._fit_counted(binned, None)

    def _fit_counted(self, binned: Binned, counted: RowsAtKnots | None) -> None:
        proof = CurveProof.of(binned, self)
        if counted is None:
            counted = self._counted_again(binned, proof)
        if counted is None:
            check_unlabelled(binned)
            fitted, limits = fit_to_all_rows(binned, proof, self.curve)
        else:
            with np.errstate(all="ignore"):
                halves = HalfCurves.fit(counted, self.curve)
            fitted, limits = self._moved(halves, proof)
        if proof.weighted is not None:
            proof = replace(proof, weighted=replace(proof.weighted, limits=limits))
        self._set_curve(fitted, proof, limits, binned.classes, binned.facts)
        self.score_range_seen_ = binned.reach.seen
        self._state_unlabelled(binned)

    def _counted_again(self, binned: Binned, proof: CurveProof) -> RowsAtKnots | None:
        """Count rows at knots whose regions are already counted; None if plain rows have no pilot
        rows, or limits other than exact ones.
        """
        with np.errstate(all="ignore"):
            if not proof.is_plain:
                bound = 1.0 if proof.weighted is None else proof.weighted.bound
                cap = bound if binned.design is None else binned.design.cap
                return RowsAtKnots.of_units(binned, self.random_state, cap)
            if self._exact_interval != EXACT:
                return None
            return RowsAtKnots.of_binned(binned, self.random_state)

    def _moved(self, halves: HalfCurves, proof: CurveProof) -> tuple[FittedCurve, Interval]:
        """The mean of the curves, moved to a small epsilon, its limits by bets, and limits on the
        rates.
        """
        evidence = halves.evidence
        with np.errstate(all="ignore"):
            bounds = halves.bounds(proof.for_bets)
            usual = bounds
            if proof.confidence_level != USUAL_LEVEL:
                usual = halves.bounds(replace(proof, confidence_level=USUAL_LEVEL).for_bets)
            values = evidence.mean_curve
            mix = None
            if self._is_increasing():
                values, mix = halves.moved(usual, self.smoothness)
            n_refuted = int(bounds.refuted(values, mix).sum())
            values = bounds.shifted(values, mix)
            proved = bounds.proved_for(values, mix, proof.partition, proof.for_limits)
        average = np.clip(evidence.averages(values), 0.0, 1.0)
        unknown = np.full(average.size, ROUNDING)
        pieces = evidence.pieces(values)
        fitted = FittedCurve(halves.name, pieces, average, unknown, n_refuted, None, proved)
        return fitted, proved.rates

    def _state_unlabelled(self, binned: Binned) -> None:
        """State what is assumed about unlabelled scores, and whether a test rejects it."""
        if binned.unlabelled is None:
            return
        found = self.guarantee_
        assumed = "the unlabelled scores are independent draws from the same population"
        found = found.with_facts(assumed=(*found.statement.assumed, assumed))
        difference = other_population(binned)
        if difference is not None:
            found = found.with_caveat(difference, supposition="they come from the same population")
            warn_caller(f"{difference}; so the guarantee may not hold")
        self.guarantee_ = found

    def _automatic_bins(self, n_rows: int) -> int:
        return automatic_regions(n_rows)

    def _is_increasing(self) -> bool:
        """Whether the curve never decreases, except by rounding.

        Or never increases, if the rate clearly decreases.
        """
        return isinstance(self.curve, str)

    def _set_curve(
        self,
        fitted: FittedCurve,
        proof: CurveProof,
        limits: Interval,
        classes: Classes,
        facts: RowFacts,
    ) -> None:
        """Derive the guarantee from a fitted or loaded curve."""
        proved = fitted.proved
        if proved is None:
            margin, errors = proof.errors(fitted, limits)
            theorem = None
        else:
            margin = proved.margin
            errors = proved.errors
            theorem = THEOREM if proof.is_plain else THEOREM_OF_UNITS
        falls = self._is_increasing() and fitted.curve.falls
        guarantee = proof.guarantee(
            self,
            limits,
            fitted.average,
            classes.positive,
            margin=margin,
            errors=errors,
            falls=falls,
            theorem=theorem,
        )
        jumps = fitted.curve.jumps
        if self._is_increasing() and jumps.size:
            notes = (*guarantee.statement.notes, _note_on_jumps(jumps))
            guarantee = guarantee.with_facts(notes=notes)
        self.assumptions_ = proof.assumptions
        self._set_fitted(proof.partition, proof.tally, guarantee, classes, facts)
        self.proof_ = proof
        self._fitted_curve = fitted
        self.curve_ = fitted.name
        self.n_shifted_ = fitted.n_shifted
        self._set_pieces(fitted.curve, errors)

    def _needs_rows(self) -> tuple[str, ...]:
        if self._fitted_curve.proved is not None:
            return (*super()._needs_rows(), "limits", "averages", "margins")
        return (*super()._needs_rows(), "averages", "margins")

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        proof: CurveProof = learned["proof"]
        fitted: FittedCurve = learned["curve"]
        if fitted.proved is None and not proof.is_plain:
            rule = "have limits by bets where rows have groups or weights"
            raise InvalidValueError("curve", rule, got="none")
        if fitted.proved is None:
            limits = proof.rates()
            proof.check_parts(fitted)
        else:
            fitted.proved.check(proof.tally.counts, proof.for_limits)
            limits = fitted.proved.rates
        self._set_curve(fitted, proof, limits, classes, learned["facts"])


def _note_on_jumps(jumps: FloatArray) -> str:
    """Where the curve jumps, and why."""
    named = ", ".join(nearest(score) for score in jumps[:_NAMED_JUMPS].tolist())
    more = f" and {jumps.size - _NAMED_JUMPS} more scores" if jumps.size > _NAMED_JUMPS else ""
    return (
        f"the curve jumps at {named}{more}: many rows share a score there, or the data refute"
        " every curve in order and without jumps"
    )


def automatic_regions(n_rows: int) -> int:
    """Return half of the cube root of `n_rows`, and at least 1.

    >>> [automatic_regions(n) for n in (1, 300, 1000, 10_000, 1_000_000)]
    [1, 3, 5, 10, 50]
    """
    return max(1, round(automatic_bins(n_rows) / 2))
