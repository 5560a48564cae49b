"""Binning under covariate shift: calibrated for the population you have now."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._input import as_scores, check_same_length, column_count
from calibrant._labels import Classes, encode_labels, name_classes
from calibrant._params import Choice, Having, Number, Optional, Rule, as_generator, error_budget, thread_count
from calibrant._typing import ArrayLike, BoolArray, CodeArray, FloatArray, IndexArray
from calibrant.calibrators._bins import cut_drawn
from calibrant.calibrators.binning import BINNING_RULES, BinningCalibrator
from calibrant.calibrators.weighted import WeightedFit
from calibrant.calibrators.weighting import Weighting, counted_mass, find_weights
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import Guarantee, check_tally
from calibrant.intervals import Interval
from calibrant.intervals.shift import SHIFT_METHODS, Evidence, WeightedRows, get_shift_method, tolerated_error
from calibrant.intervals.shift.base import check_weight_bound, weight_sums, weighted_rates
from calibrant.intervals.shift.oracle import as_relative_mass, known_mass_rates
from calibrant.intervals.shift.sensitivity import check_weight_error
from calibrant.partition import FunctionPartition, Partition
from calibrant.partition.segments import SegmentedScores, segment_kinds
from calibrant.rows import ScoredData
from calibrant.rows.draw import Draw, position_keys, seed_of
from calibrant.rows.memory import MemoryRows
from calibrant.rows.reader import check_nothing_beside
from calibrant.tally import Tally

VALUES = ("mean", "midpoint", "known-mass", "counted-mass")


class ShiftCalibrator(BinningCalibrator):
    """Calibrate for a target population from labelled rows of another, by weighted histogram binning.

    Claimed, with known weights (condition A), for every distribution: with probability at least `confidence_level` over
    the calibration data, in every bin at once, the rate of the positive label *in the target population* lies in the
    bin's interval. With estimated weights (condition B): the same in the limit of many rows, and nothing before;
    `guarantee_` says so. Assumed: labels given inputs are distributed alike in both populations, the weights are the
    density ratio of the target over the calibration population (or a multiple of it), and none exceeds `weight_bound`.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        As for `BinningCalibrator`; so are `strategy`, `confidence_level`, `split`, `score_range`, `partition`,
        `pos_label`, `classes` and `n_jobs`. Bins are cut from calibration rows without a look at weights or labels.
    interval : str, default="betting"
        "betting", the narrowest, needs the rows. "empirical-bernstein" and "hoeffding" need sums only, so they can be
        merged. "oracle" and "paper" are the paper's theorems, for comparison. See `calibrant.intervals.shift`.
    value : {"mean", "midpoint", "known-mass", "counted-mass"}, default="mean"
        What is predicted in a bin. "mean": pi-check, the weighted rate of positives. "midpoint": of the interval.
        "known-mass": pi-hat, for known `relative_mass`. "counted-mass": with the relative mass counted in unlabelled
        scores, which the paper advises against, for comparison.
    weight_bound : float or None, default=None
        U, a number no weight can exceed. None takes the largest weight seen, and then nothing is proved.
    weight_floor : float, default=0
        L, a number no weight falls below; only "paper" uses it.
    weight_error : float in [0, 1), default=0
        rho: intervals are widened so that they hold for any true weights w with |w - w_hat| <= rho w_hat.
    ratio : DensityRatio or None, default=None
        Estimates weights from unlabelled rows, as in ``ULSIF()``; see `calibrant.ratios`.
    random_state : int, Generator, RandomState or None, default=0
        Shuffles the rows that "betting" bets on, and draws the split. Any fixed number will do, chosen before looking.

    Attributes
    ----------
    guarantee_ : Guarantee
        The promise, in numbers and in words, and which condition it rests on.
    partition_, tally_, classes_, n_features_in_
        As for `BinningCalibrator`; the tally has sums of weights.
    ratio_ : DensityRatio or None
        The fitted ratio, with its `diagnostics_`.

    Notes
    -----
    pi-check = sum of w y / sum of w over the rows of a bin (`eq:cov_shift_estimator`). Given which bin each row fell
    into, weights and labels of a bin's rows are i.i.d. together, bins cut from the very rows included, so every
    interval of `calibrant.intervals.shift` holds exactly. The paper's own interval is vacuous unless weights stay away
    from zero.

    The statement is about rows with weight: where the target population has rows and the calibration population has
    none, no weight can help. `ratio_.diagnostics_` estimates that share.

    References
    ----------
    Gupta, Podkopaev and Ramdas (2020), "Distribution-free binary classification: prediction sets, confidence intervals
    and calibration", section 4.4 and its appendix. Waudby-Smith and Ramdas (2024), "Estimating means of bounded random
    variables by betting". Kanamori, Hido and Sugiyama (2009), "A least-squares approach to direct importance
    estimation".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import ShiftCalibrator
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(10_000, 2))  # future rows will have density 2 x in the first column
    >>> scores, y = x[:, 0], rng.uniform(size=10_000) < x.mean(axis=1)
    >>> calibrator = ShiftCalibrator(n_bins=5, weight_bound=2.0).fit(scores, y, importance_weight=2 * x[:, 0])
    >>> calibrator.predict([0.1, 0.9]).round(2), round(calibrator.guarantee_.epsilon, 3)
    (array([0.34, 0.69]), 0.037)
    """

    _parameter_rules: ClassVar[Mapping[str, Rule[Any]]] = {
        **BINNING_RULES,
        "interval": Choice(SHIFT_METHODS),
        "value": Choice(VALUES),
        "weight_bound": Optional(Number("a number > 0 that no importance weight can exceed", 0.0, open_low=True)),
        "weight_floor": Number("a number >= 0 that no importance weight falls below", 0.0),
        "weight_error": Number(
            "a number in [0, 1): how far, relatively, the weights may be from the truth", 0.0, 1.0, open_high=True
        ),
        "ratio": Optional(Having(("fit", "predict"), "a density ratio, such as ULSIF()")),
    }

    def __init__(
        self,
        n_bins: int | str = "auto",
        *,
        strategy: str = "quantile",
        confidence_level: float = 0.9,
        interval: str = "betting",
        value: str = "mean",
        weight_bound: float | None = None,
        weight_floor: float = 0.0,
        weight_error: float = 0.0,
        ratio: Any = None,
        split: float | None = None,
        score_range: tuple[float, float] | None = None,
        partition: Partition | None = None,
        pos_label: Any = None,
        classes: ArrayLike | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_bins,
            strategy=strategy,
            confidence_level=confidence_level,
            interval=interval,
            value=value,
            split=split,
            score_range=score_range,
            partition=partition,
            pos_label=pos_label,
            classes=classes,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.weight_bound = weight_bound
        self.weight_floor = weight_floor
        self.weight_error = weight_error
        self.ratio = ratio

    def fit(  # type: ignore[override]
        self,
        scores: ArrayLike | ScoredData,
        y: ArrayLike | None = None,
        *,
        importance_weight: ArrayLike | None = None,
        X: Any = None,
        X_target: Any = None,
        X_source: Any = None,
        relative_mass: ArrayLike | Callable[[Partition], ArrayLike] | None = None,
        target_scores: ArrayLike | None = None,
        source_scores: ArrayLike | None = None,
        segments: ArrayLike | None = None,
    ) -> Self:
        """Cut the bins, weigh and count the labels, and derive the guarantee.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or ScoredData
            Scores of labelled rows the model was not trained on; or data that hold scores, labels and exact weights,
            see `calibrant.scored`, for intervals that need no more than sums, such as "empirical-bernstein".
        y : array-like of shape (n,)
            Their labels, of two kinds.
        importance_weight : array-like of shape (n,), optional
            Exact weight of each row (condition A). Otherwise weights are estimated by `ratio` (condition B).
        X, X_target : array-like or frame of shape (n, n_features), (n_target, n_features), optional
            Features of the labelled rows, and of unlabelled rows of the target population, for `ratio`.
        X_source : array-like or frame, optional
            Further unlabelled rows like the labelled ones, on which `ratio` is fitted in place of X. Then the estimated
            weights do not depend on the calibration rows, and `weight_error` is all that stands between them and a
            proof.
        relative_mass : array-like of shape (n_regions,) or callable, optional
            m_b = P(b) / P~(b) of each region, or a function from the partition to it; for "oracle" and "known-mass".
        target_scores, source_scores : array-like, optional
            Scores of unlabelled rows of both populations, for "counted-mass"; source_scores are `scores` by default.
        segments : array-like of shape (n,), optional
            A group per row: every group gets bins of its own, within one error budget.

        Returns
        -------
        self
        """
        self._check_parameters()
        if isinstance(scores, ScoredData):
            check_nothing_beside(
                y=y, segments=segments, importance_weight=importance_weight, X=X, X_target=X_target, X_source=X_source
            )
            return self._fit_data(scores, relative_mass)
        columns = 1 if isinstance(self.partition, FunctionPartition) else column_count(scores)
        codes, classes = encode_labels(y, classes=self.classes, pos_label=self.pos_label, score_columns=columns)
        generator = as_generator(self.random_state)
        partition, prepared, counted = self._cut(scores, codes, segments, classes, generator)
        weighting = find_weights(
            len(codes),
            importance_weight=importance_weight,
            ratio=self.ratio,
            X=X,
            X_source=X_source,
            X_target=X_target,
            weight_bound=self.weight_bound,
            weight_floor=float(self.weight_floor),
        )
        weights = weighting.weights[counted]
        codes = codes[counted]
        tally = Tally._of(partition, prepared, codes, weights=weights, threads=thread_count(self.n_jobs))
        known = relative_mass(partition) if callable(relative_mass) else relative_mass
        masses = None if known is None else as_relative_mass(known, partition.n_regions)
        if self.value == "counted-mass":
            source = scores if source_scores is None else source_scores
            masses = counted_mass(partition, source, target_scores, classes.positive_index)
        rows = _shuffled(partition.membership(prepared), codes, weights, partition.n_regions, generator)
        evidence = Evidence(tally, weighting.bound, float(self.weight_floor), masses, rows)
        self._set_shift(partition, evidence, weighting, classes)
        return self

    def _fit_data(self, data: ScoredData, relative_mass: ArrayLike | Callable[[Partition], ArrayLike] | None) -> Self:
        """Fit to weighted rows wherever they are, from sums alone."""
        if get_shift_method(self.interval).needs_rows:
            raise InvalidValueError(
                f"interval must be one that needs sums only, where the rows are not in memory; got {self.interval!r}: "
                'use interval="empirical-bernstein"'
            )
        source = data.with_classes(self.classes, self.pos_label)
        if self.split is not None:
            parts = source.split(self.split, self.random_state)
            partition, source = cut_drawn(parts, self._bins_for), parts.others
        else:
            partition = self._cut_and_tally(source).partition
        tally, classes = source.tally(partition, weighted=True)
        self._set_sums(partition, tally, relative_mass, classes)
        return self

    def _set_sums(
        self,
        partition: Partition,
        tally: Tally,
        relative_mass: ArrayLike | Callable[[Partition], ArrayLike] | None,
        classes: Classes,
    ) -> None:
        """Derive everything from sums, whose largest weight is the bound where none is given."""
        given, largest = self.weight_bound, float(weight_sums(tally).largest.max())
        bound = largest if given is None else check_weight_bound(tally, given)
        known = relative_mass(partition) if callable(relative_mass) else relative_mass
        masses = None if known is None else as_relative_mass(known, tally.n_regions)
        evidence = Evidence(tally, bound, float(self.weight_floor), masses)
        self._set_shift(partition, evidence, Weighting(True, bound, given is not None), classes)

    @classmethod
    def from_tally(
        cls,
        partition: Partition,
        tally: Tally,
        *,
        classes: ArrayLike = (0, 1),
        relative_mass: ArrayLike | None = None,
        **parameters: Any,
    ) -> Self:
        """Make a fitted calibrator from a partition and a tally with weights: of merged tallies, say.

        >>> from calibrant import Partition, ShiftCalibrator, Tally
        >>> bins = Partition.fixed_width(1)
        >>> monday = Tally.from_data(bins, [0.5] * 2000, [0, 1] * 1000, importance_weight=[1.0, 3.0] * 1000)
        >>> tuesday = Tally.from_data(bins, [0.5] * 1600, [0, 1] * 800, importance_weight=[1.0, 3.0] * 800)
        >>> calibrator = ShiftCalibrator.from_tally(bins, monday + tuesday, weight_bound=3.0)
        >>> calibrator.predict_interval([0.5]).round(3)
        array([[0.729, 0.77 ]])
        """
        parameters = {"interval": "empirical-bernstein", **parameters}
        calibrator = cls(partition=partition, classes=classes, **parameters)
        calibrator._check_parameters()
        check_tally(partition, tally)
        calibrator._set_sums(partition, tally, relative_mass, name_classes(classes, calibrator.pos_label))
        return calibrator

    def guarantee_for(self, weight_error: float) -> Guarantee:
        """Return the guarantee for weights that are right up to the given relative error.

        >>> import numpy as np
        >>> scores, y = np.linspace(0, 1, 1000), np.arange(1000) % 2
        >>> calibrator = ShiftCalibrator(n_bins=2, weight_bound=1.0).fit(scores, y, importance_weight=np.ones(1000))
        >>> [round(calibrator.guarantee_for(rho).epsilon, 3) for rho in (0.0, 0.1, 0.3)]
        [0.061, 0.109, 0.203]
        """
        check_is_fitted(self)
        return self._derive(self._fit, check_weight_error(weight_error), self.guarantee_.positive_label)

    def tolerated_weight_error(self, threshold: float) -> FloatArray:
        """Return, for each region, how wrong weights may be, relatively, before its interval reaches `threshold`.

        0 where the interval holds the threshold already: there nothing can be concluded.
        """
        check_is_fitted(self)
        return tolerated_error(self._fit.limits, threshold)

    def _cut(
        self,
        scores: ArrayLike,
        codes: CodeArray,
        segments: ArrayLike | None,
        classes: Classes,
        generator: np.random.Generator,
    ) -> tuple[Partition, Any, BoolArray]:
        """The partition, the prepared inputs of the rows that are counted, and which rows those are."""
        everything = np.ones(len(codes), dtype=bool)
        if self.partition is not None:
            prepared = self.partition.prepare(scores, segments, positive_column=classes.positive_index)
            check_same_length(prepared, codes)
            return self.partition, prepared, everything
        checked = as_scores(scores, positive_column=classes.positive_index)
        check_same_length(checked, codes)
        rows = MemoryRows(checked, codes, classes, threads=thread_count(self.n_jobs))
        if segments is not None:
            rows = rows.in_segments(*segment_kinds(segments))
        if self.split is None:
            partition, counted = self._cut_and_tally(rows)[0], everything
        else:
            seed = seed_of(self.random_state)
            fraction = isinstance(self.split, float | np.floating)
            limit = 0 if fraction else rows.hash_limit(seed, int(self.split))
            draw = Draw.of_share(seed, float(self.split)) if fraction else Draw(seed, limit)
            partition = cut_drawn(rows.split_by(draw), self._bins_for)
            counted = ~draw.chosen(position_keys(0, len(rows)))
        rows = rows.take(counted)
        return partition, rows.scores if rows.segment is None else SegmentedScores(rows.scores, rows.segment), counted

    def _set_shift(self, partition: Partition, evidence: Evidence, weighting: Weighting, classes: Classes) -> None:
        """Derive limits, values and the guarantee, and store everything that was learned at once."""
        method, alpha = get_shift_method(self.interval), error_budget(self.confidence_level)
        limits = method(evidence, alpha)
        fit = WeightedFit(
            partition,
            evidence.tally,
            limits,
            _values(self.value, evidence, limits),
            weighting,
            _remarks(evidence, weighting, method.remark(evidence, alpha)),
        )
        self._set_weighted(fit, classes)

    def _set_weighted(self, fit: WeightedFit, classes: Classes) -> None:
        guarantee = self._derive(fit, float(self.weight_error), classes.positive)
        self._fit, self.ratio_ = fit, fit.weighting.ratio
        self._set_fitted(fit.partition, fit.tally, guarantee, classes)

    def _derive(self, fit: WeightedFit, weight_error: float, positive_label: Any) -> Guarantee:
        return fit.guarantee(
            method=get_shift_method(self.interval),
            confidence_level=self.confidence_level,
            weight_error=weight_error,
            positive_label=positive_label,
            split=self.split is not None,
        )

    def _state(self) -> dict[str, Any]:
        return self._fit.to_dict()

    def _restore(self, state: Mapping[str, Any], classes: Classes) -> None:
        self._check_parameters()
        fit = WeightedFit.from_dict(state)
        given = fit.weighting.bound if fit.weighting.bounded else None
        if given != self.weight_bound:
            raise InvalidValueError(f"weight_bound must be the bound of the saved state, {given}; got another")
        self._set_weighted(fit, classes)


def _shuffled(
    regions: IndexArray, codes: CodeArray, weights: FloatArray, n_regions: int, generator: np.random.Generator
) -> WeightedRows:
    """Counted rows in random order: data are often sorted, and bets need an order that says nothing of the labels."""
    order = generator.permutation(len(codes))
    order = order[regions[order] >= 0]
    return WeightedRows(regions[order], weights[order], codes[order], n_regions)


def _values(value: str, evidence: Evidence, limits: Interval) -> FloatArray:
    """The predicted value of each region; the middle of its interval where nothing is known."""
    if value == "midpoint":
        return limits.midpoint
    if value == "mean":
        rates = weighted_rates(evidence.tally)
    else:
        if evidence.relative_mass is None:
            raise InvalidTypeError(f"relative_mass must be given for value={value!r}; got None")
        rates = known_mass_rates(evidence.tally, evidence.relative_mass)
    unknown = np.isnan(rates) | (evidence.tally.counts == 0)
    return np.where(unknown, limits.midpoint, np.clip(rates, 0.0, 1.0))


def _remarks(evidence: Evidence, weighting: Weighting, remark: str | None) -> tuple[str, ...]:
    remarks = [] if remark is None else [f"the interval is {remark}"]
    if n_weightless := int(np.count_nonzero(weight_sums(evidence.tally).w.rounded() <= 0.0)):
        remarks.append(
            f"{n_weightless} of {evidence.tally.n_regions} regions have no weight: there the interval is [0, 1]"
        )
    if hasattr(weighting.ratio, "diagnostics_"):
        remarks.append(str(weighting.ratio.diagnostics_))
    return tuple(remarks)
