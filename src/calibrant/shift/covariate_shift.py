"""Binning under covariate shift: calibrated for another population, by importance weights."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import ArrayLike, FeatureRows, FloatArray
from calibrant.calibrators.regions.binned_rows import Binned, cut_and_count
from calibrant.calibrators.regions.grouped_rows import has_groups
from calibrant.calibrators.regions.parameters import WEIGHT_ERROR, DataAssumptions, RegionParameters
from calibrant.calibrators.regions.region_calibrator import RegionCalibrator
from calibrant.calibrators.regions.weighted_rows import (
    UNBOUNDED,
    WeightedLimits,
    about_groups,
    bets_on_groups,
    shuffled,
    weights_of,
)
from calibrant.calibrators.score_calibrator import FACTS
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally, check_tally
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.statement import ImportanceWeights, Population, Statement
from calibrant.limits.shift.evidence import Evidence, weight_sums, weighted_rates
from calibrant.limits.shift.shift_methods import (
    SHIFT_METHODS,
    get_shift_method,
    tolerated_error,
    widened,
)
from calibrant.params.declared_state import Inline
from calibrant.params.estimator import check_is_fitted
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import Classes, name_classes
from calibrant.params.rules import Choice, Having, Optional, RuleTable, error_budget
from calibrant.sample.facts import RowFacts
from calibrant.sample.reader import check_nothing_beside, in_memory, is_scored, one_row_each
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.shift.ratios.density_ratio import DensityRatio
from calibrant.shift.result import ShiftResult, remarks_on
from calibrant.shift.weights import (
    Features,
    bound_on,
    largest_weight,
    rows_with_weights,
)
from calibrant.shift.whole_groups import check_one_row_each, cut_whole_groups, one_of_each
from calibrant.text.sentences import Setting

_CAPPED_ONLY = (
    Setting("weight_bound"),
    " was not given; the rate with this cap on the weight of a group needs none, but nothing is"
    " guaranteed about the rate without the cap",
)
_RATIO = Optional(Having(("fit", "predict"), "a density ratio, such as ULSIF()"))
_ESTIMATED = (
    "the importance weights were estimated, so the guarantee is asymptotic: it holds in the limit"
    " of many {} of both populations, if the estimated weights tend to the true ones"
)


@dataclass(eq=False, repr=False, kw_only=True)
class ShiftCalibrator(RegionParameters, RegionCalibrator):
    """Calibrate for a target population, with labelled rows from another one, by weighted histogram
    binning.

    Guarantee, with known weights, for every distribution: with probability at least
    `confidence_level` over the calibration data, in every bin simultaneously, the rate of the
    positive class *in the target population* lies in the bin's interval. With estimated weights:
    the same, but only in the limit of many rows; `guarantee_` says so. Assumptions: labels given
    inputs have the same distribution in both populations, the weights are the density ratio of the
    target over the calibration population, or a multiple of it, and none exceeds `weight_bound`.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        As for `BinningCalibrator`; so are `confidence_level`, `partition`, `pilot`, `segment_rule`,
        `pos_label` and `n_jobs`. Bins are cut from calibration scores, without weights or labels.
    interval : str, default="betting"
        "betting", the narrowest, needs the rows. "empirical-bernstein" needs only sums, so tallies
        can be merged. The paper's own limits are functions in `calibrant.shift`, for comparison.
    value : {"mean", "midpoint"}, default="mean"
        The prediction in a bin. "mean": pi-check, the weighted rate of positives. "midpoint": the
        middle of the interval.
    random_state : int, Generator, RandomState or None, default=0
        Seed for the order of the rows that "betting" bets on, and for drawing the pilot rows.
        Choose it before you look at results. None draws afresh each time.

    Attributes
    ----------
    guarantee_ : Guarantee
        What is guaranteed, in numbers and in words.
    partition_, tally_, classes_, n_features_in_
        As for `BinningCalibrator`; the tally has sums of weights.
    ratio_ : DensityRatio or None
        The fitted ratio, with its `diagnostics_`.

    Notes
    -----
    pi-check = sum of w y / sum of w over the rows in a bin (the estimator in Theorem 7 of Gupta,
    Podkopaev and Ramdas 2020). Given the bin of each row, the pairs of weight and label in a bin
    are i.i.d., even if the bins were cut from the same rows, so both intervals hold exactly.

    With `groups`, whole groups are i.i.d., and the interval is found by bets on the weight of a
    group in a bin, with Bonferroni over bins: Z(q) = w (y - q) with w the sum of its rows' weights
    there, up to a cap, and y their weighted share of positives. The bins and the cap are given or
    come from pilot groups. The proof is in `calibrant.shift.whole_groups`.

    Weights cannot help in areas where the target population has rows and the calibration population
    has none. `ratio_.diagnostics_` estimates the share of such rows.

    References
    ----------
    Gupta, Podkopaev and Ramdas (2020), "Distribution-free binary classification: prediction sets,
    confidence intervals and calibration", section 4.4 and its appendix. Waudby-Smith and Ramdas
    (2024), "Estimating means of bounded random variables by betting". Kanamori, Hido and Sugiyama
    (2009), "A least-squares approach to direct importance estimation".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import ShiftCalibrator
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(10_000, 2))  # future rows will have density 2 x in the first column
    >>> scores, y = x[:, 0], rng.uniform(size=10_000) < x.mean(axis=1)
    >>> calibrator = ShiftCalibrator(n_bins=5).fit(
    ...     scores, y, importance_weight=2 * x[:, 0], weight_bound=2.0
    ... )
    >>> calibrator.predict([0.1, 0.9]).round(2), round(calibrator.guarantee_.epsilon, 3)
    (array([0.34, 0.69]), 0.034)
    """

    _learned: ClassVar[EntryTable] = {
        "result": Entry(Inline(ShiftResult), of="_result"),
        "facts": FACTS,
    }
    _rules: ClassVar[RuleTable] = {
        "interval": Choice(SHIFT_METHODS),
        "value": Choice(("mean", "midpoint")),
    }

    interval: str = "betting"
    value: str = "mean"

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        importance_weight: ArrayLike | None = None,
        X: FeatureRows | None = None,
        X_target: FeatureRows | None = None,
        X_source: FeatureRows | None = None,
        segments: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        max_group_size: int | None = None,
        group_target: str | None = None,
        classes: ArrayLike | None = None,
        ratio: DensityRatio | None = None,
        weight_bound: float | None = None,
        weight_error: float = 0.0,
        score_range: tuple[float, float] | None = None,
    ) -> Self:
        """Cut the bins, count and weigh the rows, and derive the guarantee.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
            Scores of labelled rows that the model was not trained on; or data with scores, labels
            and exact weights, see `calibrant.scored`. "betting" reads their rows into memory; the
            other intervals do not.
        y : array-like of shape (n,)
            Labels of two classes.
        importance_weight : array-like of shape (n,), optional
            The exact weight of each row. Without it, `ratio` estimates the weights.
        X, X_target : array-like or frame of shape (n, n_features), (n_target, n_features), optional
            Features of the labelled rows, and of unlabelled rows from the target population, for
            `ratio`. If `groups` count equally, `ratio` is fitted to one row from each group, and
            X_target must have one row from each group, too.
        X_source : array-like or frame, optional
            Further unlabelled rows from the same population as the labelled ones, on which `ratio`
            is fitted instead of X. Then the estimated weights do not depend on the calibration
            rows, and a proof needs only a valid `weight_error`. With `groups`, they must be rows of
            other groups than the labelled ones.
        segments : array-like of shape (n,), optional
            The segment of each row. Every segment gets its own bins, within one error budget.
        groups : array-like of shape (n,), optional
            The group of each row, such as its customer: whole numbers, dates or text. The guarantee
            is then about rows of new groups of the target population, and the rows of a group may
            depend on each other in any way. Groups are counted whole for "betting". For
            "empirical-bernstein", which needs independent rows, one row from each group is drawn at
            random and the others are not used.
        max_group_size : int, optional
            With `groups`: a group's total weight in a bin counts as at most this many times
            `weight_bound`, which is then required. By default it counts as at most the largest
            total weight that a pilot group has in a bin; at least a tenth of the groups are pilot
            groups. See `BinningCalibrator.fit`.
        group_target : {"rows", "groups"}, optional
            With `groups`: the rate among rows of the target population ("rows", the default), or
            that of a random row from a random group ("groups"). The importance weights are the
            density ratio of all rows for "rows", and of a random row from a random group for
            "groups". With "groups", nothing is capped, but `weight_bound` is needed. If one row
            from each group is drawn, only "groups" is possible.
        classes, score_range
            As in `BinningCalibrator.fit`.
        ratio : DensityRatio, optional
            An estimator of the weights from unlabelled rows, such as ``ULSIF()``; see
            `calibrant.ratios`.
        weight_bound : float, optional
            U, an upper bound on the weights. None takes the largest weight seen, and then nothing
            is guaranteed. With `groups`, and the rate among rows as target, no bound is needed: pilot
            groups set a cap on the weight of a group, and the guarantee is about the rate with
            this cap.
        weight_error : float in [0, 1), default=0
            rho: intervals are widened so that they hold for all true weights w with
            |w - w_hat| <= rho w_hat.

        Returns
        -------
        self
        """
        self._check_parameters()
        assumptions = DataAssumptions.about(
            scores,
            score_range=score_range,
            weight_bound=weight_bound,
            weight_error=weight_error,
            max_group_size=max_group_size,
            group_target=group_target,
        )
        self._check_assumptions(assumptions)
        _RATIO.check("ratio", ratio)
        if ratio is not None and (is_scored(scores) or importance_weight is not None):
            rule = "be None where the weights are given: it estimates them"
            raise InvalidTypeError("ratio", rule, got=type(ratio).__name__)
        data = self._read(scores, y, segments=segments, groups=groups, classes=classes)
        if data.columns.group is not None and not self._counts_whole:
            check_one_row_each(max_group_size, group_target)
        if is_scored(scores):
            check_nothing_beside(
                importance_weight=importance_weight, X=X, X_target=X_target, X_source=X_source
            )
            fitted = None
            if data.columns.weight is None:
                advice = "scored(..., weight=)"
                raise InvalidValueError(
                    "weight", "name the column of weights", got="None", advice=advice
                )
        else:
            rows = data.collect()
            by_group = not self._counts_whole or assumptions.group_target == "groups"
            drawn = one_of_each(rows, self.random_state) if by_group and ratio else None
            features = Features(X, X_source, X_target)
            data, fitted = rows_with_weights(
                rows, importance_weight, features, ratio, assumptions, drawn
            )
        return self._fit_rows(data, fitted, assumptions)

    @property
    def _counts_whole(self) -> bool:
        """Whether groups are counted whole; otherwise one row of each is drawn."""
        return get_shift_method(self.interval).needs_rows

    def _fit_rows(
        self, data: Rows, ratio: DensityRatio | None, assumptions: DataAssumptions
    ) -> Self:
        """Count rows, whose weights are a column of the data, or those of a fitted ratio."""
        if data.columns.group is not None and self._counts_whole:
            rows = data.collect()
            if has_groups(rows, assumptions):
                return self._fit_whole_groups(rows, ratio, assumptions)
            data = data.without_groups()
        # before one row of each group is drawn: the bound is about all of them
        largest = float(weights_of(data).max()) if in_memory(data) else None
        data = one_row_each(data, self.random_state)
        needs_rows = get_shift_method(self.interval).needs_rows
        binned = cut_and_count(data.collect() if needs_rows else data, self, assumptions)
        if largest is None:
            largest = largest_weight(data, binned)
        evidence = Evidence(
            binned.tally,
            bound_on(largest, assumptions),
            rows=shuffled(binned, self.random_state) if needs_rows else None,
        )
        result = self._result_of(binned.partition, evidence, ratio, assumptions)
        return self._conclude(result, binned, ratio, assumptions)

    def _fit_whole_groups(
        self, rows: MemoryRows, ratio: DensityRatio | None, assumptions: DataAssumptions
    ) -> Self:
        """Count groups whole; see `calibrant.shift.whole_groups`."""
        bound = bound_on(float(weights_of(rows).max()), assumptions)
        binned = cut_whole_groups(rows, self, assumptions, bound)
        entries, limits, facts = bets_on_groups(binned, error_budget(self.confidence_level))
        observed = limits.midpoint if self.value == "midpoint" else entries.rates
        facts = replace(facts, target=assumptions.group_target)
        bounded = assumptions.weight_bound is not None
        result = ShiftResult(
            binned.partition,
            binned.tally,
            WeightedLimits(limits, bound, bounded, facts, entries.effective_rows),
            np.where(np.isnan(observed), limits.midpoint, observed),
            ratio is None,
            remarks_on(binned.tally, ratio),
        )
        return self._conclude(result, binned, ratio, assumptions)

    def _conclude(
        self,
        result: ShiftResult,
        binned: Binned,
        ratio: DensityRatio | None,
        assumptions: DataAssumptions,
    ) -> Self:
        """Set all that was learned from rows."""
        self._set(result, assumptions, binned.classes, binned.facts)
        self.ratio_ = ratio
        self.score_range_seen_ = binned.reach.seen
        self._warn_if_weak()
        return self

    @classmethod
    def from_tally(
        cls,
        partition: Partition,
        tally: Tally,
        *,
        classes: ArrayLike = (0, 1),
        weight_bound: float | None = None,
        weight_error: float = 0.0,
        **parameters: Any,
    ) -> Self:
        """Make a fitted calibrator from a partition and a tally with weights, such as merged
        tallies.

        >>> from calibrant import Partition, ShiftCalibrator, Tally
        >>> bins = Partition.fixed_width(1)
        >>> monday = Tally.from_data(bins, [0.5] * 2000, [0, 1] * 1000, importance_weight=[1.0,
        ...     3.0] * 1000)
        >>> tuesday = Tally.from_data(bins, [0.5] * 1600, [0, 1] * 800, importance_weight=[1.0,
        ...     3.0] * 800)
        >>> calibrator = ShiftCalibrator.from_tally(bins, monday + tuesday, weight_bound=3.0)
        >>> calibrator.predict_interval([0.5]).round(3)
        array([[0.729, 0.77 ]])
        """
        parameters = {"interval": "empirical-bernstein", **parameters}
        calibrator = cls(partition=partition, **parameters)
        calibrator._check_parameters()
        assumptions = DataAssumptions(weight_bound=weight_bound, weight_error=weight_error)
        check_tally(partition, tally)
        bound = bound_on(float(weight_sums(tally).largest.max()), assumptions)
        result = calibrator._result_of(partition, Evidence(tally, bound), None, assumptions)
        calibrator._set(result, assumptions, name_classes(classes, calibrator.pos_label))
        calibrator.ratio_ = None
        return calibrator

    def guarantee_for(self, weight_error: float) -> Guarantee:
        """Return the guarantee for weights that are correct up to the given relative error.

        >>> import numpy as np
        >>> scores, y = np.linspace(0, 1, 1000), np.arange(1000) % 2
        >>> calibrator = ShiftCalibrator(n_bins=2).fit(
        ...     scores, y, importance_weight=np.ones(1000), weight_bound=1.0
        ... )
        >>> [round(calibrator.guarantee_for(rho).epsilon, 3) for rho in (0.0, 0.1, 0.3)]
        [0.047, 0.097, 0.193]
        """
        check_is_fitted(self)
        error = WEIGHT_ERROR.check("weight_error", weight_error)
        return self._derive(self._result, error, self.guarantee_.positive_label)

    def tolerated_weight_error(self, threshold: float) -> FloatArray:
        """Return, for each region, the relative error of weights at which its interval reaches
        `threshold`.

        It is 0 if the interval already contains the threshold: nothing can be concluded there.
        """
        check_is_fitted(self)
        return tolerated_error(self._result.weighted.limits, threshold)

    def _result_of(
        self,
        partition: Partition,
        evidence: Evidence,
        ratio: DensityRatio | None,
        assumptions: DataAssumptions,
    ) -> ShiftResult:
        """Limits and values of the regions: the midpoint of the limits if nothing else is known."""
        tally = evidence.tally
        limits = get_shift_method(self.interval)(evidence, error_budget(self.confidence_level))
        rates = np.full(tally.n_regions, np.nan)
        if self.value == "mean":
            rates = weighted_rates(tally)
        bounded = assumptions.weight_bound is not None
        return ShiftResult(
            partition,
            tally,
            WeightedLimits(limits, evidence.weight_bound, bounded),
            np.where(np.isnan(rates), limits.midpoint, np.clip(rates, 0.0, 1.0)),
            ratio is None,
            remarks_on(tally, ratio),
        )

    def _set(
        self,
        result: ShiftResult,
        assumptions: DataAssumptions,
        classes: Classes,
        facts: RowFacts | None = None,
    ) -> None:
        """Derive the guarantee, and set all learned attributes together."""
        guarantee = self._derive(result, float(assumptions.weight_error), classes.positive)
        self._result = result
        self.assumptions_ = assumptions
        self._set_fitted(result.partition, result.tally, guarantee, classes, facts)

    def _derive(
        self, result: ShiftResult, weight_error: float, positive_label: Hashable
    ) -> Guarantee:
        """The guarantee if the weights are right up to a relative error."""
        method = get_shift_method(self.interval)
        weighted = result.weighted
        said = Statement(
            method.theorem,
            **self._asked(),
            population=Population.COVARIATE_SHIFT,
            weights=ImportanceWeights(result.known, weighted.bound, weight_error),
            notes=(*result.remarks, *([_CAPPED_ONLY] if result.needs_no_bound else [])),
        )
        if weighted.groups is not None:
            said = about_groups(said, self, weighted.groups)
        partition = result.partition
        tally = result.tally
        level = self.confidence_level
        limits = weighted.limits if weight_error == 0.0 else widened(weighted.limits, weight_error)
        guarantee = Guarantee.from_limits(
            partition, tally, limits, level, method.name, said, result.value, positive_label
        )
        if not result.known:
            units = "rows" if weighted.groups is None else "groups"
            return guarantee.with_caveat(
                _ESTIMATED.format(units), supposition="the weights are exact"
            )
        if not weighted.bounded and not result.needs_no_bound:
            return guarantee.with_facts(caveats=(*guarantee.statement.caveats, UNBOUNDED))
        return guarantee

    def _needs_rows(self) -> tuple[str, ...]:
        return ("counts", "limits")

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        self._set(learned["result"], self.assumptions_, classes, learned["facts"])
        self.ratio_ = None
