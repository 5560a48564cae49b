"""Binning under label shift: the classes are as they were, but more or less frequent."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._input import as_scores
from calibrant._labels import Classes, encode_labels
from calibrant._params import OPEN_UNIT, Optional, Rule, check_real, check_state, error_budget
from calibrant._typing import ArrayLike, CodeArray, FloatArray
from calibrant.calibrators.binning import BINNING_RULES, BinningCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import Guarantee, Population
from calibrant.intervals import clopper_pearson
from calibrant.partition import Partition
from calibrant.tally import Tally

_PRIOR_SHARE = 0.25  # of alpha, spent on how frequent the classes are


@dataclass(frozen=True, slots=True)
class Prior:
    """How frequent the positive class is: the value used, and limits; equal ones where it is known."""

    value: float
    lower: float
    upper: float


class LabelShiftCalibrator(BinningCalibrator):
    """Calibrate for a population in which the classes are more or less frequent, but look the same. Not in the paper.

    Claimed, for every distribution: with probability at least `confidence_level` over all data, in every bin at once,
    the rate of the positive label *in the target population* lies in the bin's interval. Assumed: scores given the
    label are distributed alike in both populations (label shift, the mirror image of covariate shift), as when a
    disease becomes more common but not different.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        As for `BinningCalibrator`; so are all parameters not named here.
    target_prior : float or None, default=None
        Share of the positive label in the target population, if it is known. None estimates it, with limits, from
        unlabelled `target_scores`.
    source_prior : float or None, default=None
        Share of the positive label among calibration rows, if it is known, say because it was fixed when rows were
        chosen. None takes limits for it from the labels.

    Attributes
    ----------
    guarantee_ : Guarantee
        The promise, in numbers and in words.
    target_prior_, source_prior_ : Prior
        Value and limits of how frequent the positive label is in each population.
    partition_, tally_, classes_, n_features_in_
        As for `BinningCalibrator`.

    Notes
    -----
    By Bayes, the odds of the positive label in a bin are multiplied by k = (target prior odds) / (source prior odds),
    the same for all bins. So the limits of each bin, taken at 3/4 of the error budget, are moved by limits for k, which
    get 1/4 of it: exact binomial limits for the source prior, and for the target prior every p for which the
    distribution function F of target scores may equal p F1 + (1 - p) F0, where each of the three functions may be off,
    everywhere at once, by sqrt(ln(2/delta) / (2n)) (Massart 1990). Both conditions are linear in p, so what is kept is
    an interval. The value used is the p whose mixture is nearest to F in the squares' mean over the bins. A score that
    does not tell the classes apart gives wide limits, as it must.

    References
    ----------
    Saerens, Latinne and Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori probabilities".
    Lipton, Wang and Smola (2018), "Detecting and correcting for label shift with black box predictors", ICML. Massart
    (1990), "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import LabelShiftCalibrator
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(size=20_000) < 0.2
    >>> scores, target_scores = rng.normal(2.0 * y), rng.normal(2.0 * (rng.uniform(size=20_000) < 0.5))
    >>> calibrator = LabelShiftCalibrator(n_bins=5).fit(scores, y, target_scores=target_scores)
    >>> calibrator.target_prior_.lower < 0.5 < calibrator.target_prior_.upper
    True
    >>> LabelShiftCalibrator(n_bins=5, target_prior=0.5).fit(scores, y).predict([-1.0, 3.0]).round(2)
    array([0.02, 0.91])
    """

    _parameter_rules: ClassVar[Mapping[str, Rule[Any]]] = {
        **BINNING_RULES,
        "target_prior": Optional(OPEN_UNIT),
        "source_prior": Optional(OPEN_UNIT),
    }

    def __init__(
        self,
        n_bins: int | str = "auto",
        *,
        target_prior: float | None = None,
        source_prior: float | None = None,
        strategy: str = "quantile",
        confidence_level: float = 0.9,
        interval: str = "clopper-pearson",
        value: str = "mean",
        split: float | None = None,
        score_range: tuple[float, float] | None = None,
        partition: Partition | None = None,
        pos_label: Any = None,
        classes: ArrayLike | None = None,
        random_state: Any = None,
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
        self.target_prior = target_prior
        self.source_prior = source_prior

    def fit(  # type: ignore[override]
        self,
        scores: ArrayLike,
        y: ArrayLike,
        *,
        target_scores: ArrayLike | None = None,
        segments: ArrayLike | None = None,
    ) -> Self:
        """Cut the bins, count the labels, and move the odds to the target population.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
            Scores of labelled rows the model was not trained on.
        y : array-like of shape (n,)
            Their labels, of two kinds.
        target_scores : array-like, optional
            Scores of unlabelled rows of the target population; needed unless `target_prior` is given.
        segments : array-like of shape (n,), optional
            A group per row: every group gets bins of its own. The priors are those of all groups together.

        Returns
        -------
        self
        """
        self._check_parameters()
        if self.target_prior is None and target_scores is None:
            raise InvalidTypeError("target_scores must be given, or target_prior set; got neither")
        if self.target_prior is not None and target_scores is not None:
            raise InvalidTypeError("target_scores must be None where target_prior is set; got both")
        given = [self.target_prior, self.source_prior]
        alpha = error_budget(self.confidence_level)
        share = alpha * _PRIOR_SHARE if None in given else 0.0
        plain = self._plain_binning(1.0 - (alpha - share)).fit(scores, y, segments=segments)
        codes, classes = encode_labels(
            y, classes=plain.classes_, pos_label=plain.guarantee_.positive_label, score_columns=1
        )
        n_unknown = given.count(None)
        checked = as_scores(scores, positive_column=classes.positive_index)
        target, source = given
        source_prior = _counted_prior(codes, share / n_unknown) if source is None else Prior(source, source, source)
        if target is None:
            moved = as_scores(target_scores, positive_column=classes.positive_index, name="target_scores")
            target_prior = mixture_prior(checked, codes, moved, share / n_unknown)
        else:
            target_prior = Prior(target, target, target)
        self._set_shift(plain.partition_, plain.tally_, plain.guarantee_, source_prior, target_prior, classes)
        return self

    def _plain_binning(self, confidence_level: float) -> BinningCalibrator:
        own = self.get_params(deep=False)
        names = BinningCalibrator().get_params(deep=False)
        return BinningCalibrator(**{**{name: own[name] for name in names}, "confidence_level": confidence_level})

    @classmethod
    def from_tally(cls, partition: Partition, tally: Tally, *, classes: ArrayLike = (0, 1), **parameters: Any) -> Self:
        """Refuse: scores are needed to learn how frequent the classes are."""
        raise InvalidTypeError("LabelShiftCalibrator must be fitted on scores; got a tally: move the odds by hand")

    def _set_shift(
        self, partition: Partition, tally: Tally, plain: Guarantee, source: Prior, target: Prior, classes: Classes
    ) -> None:
        low, high = _odds_ratio(target.lower, source.upper), _odds_ratio(target.upper, source.lower)
        used = _odds_ratio(target.value, source.value)
        guarantee = replace(
            plain,
            confidence_level=float(self.confidence_level),
            value=_moved(plain.value, used),
            lower=_moved(plain.lower, low),
            upper=_moved(plain.upper, high),
            spare=None,
        ).with_facts(
            theorem=f"{plain.theorem}; odds moved by Bayes' rule, outside the paper",
            population=Population.LABEL_SHIFT,
        )
        self._plain, self.source_prior_, self.target_prior_ = plain, source, target
        self._set_fitted(partition, tally, guarantee, classes)

    def _state(self) -> dict[str, Any]:
        priors = {
            name: [p.value, p.lower, p.upper] for name, p in (("s", self.source_prior_), ("t", self.target_prior_))
        }
        return {**super()._state(), "priors": priors, "plain_level": self._plain.confidence_level}

    def _restore(self, state: Mapping[str, Any], classes: Classes) -> None:
        self._check_parameters()
        check_state(state, ("partition", "tally", "priors", "plain_level"))
        check_state(state["priors"], ("s", "t"))
        given = [self.target_prior, self.source_prior]
        target, source = (_read_prior(state["priors"][name], p) for name, p in zip("ts", given, strict=True))
        alpha = error_budget(self.confidence_level)
        level = 1.0 - (alpha - (alpha * _PRIOR_SHARE if None in given else 0.0))
        if state["plain_level"] != level:
            raise InvalidValueError(f"plain_level must be {level!r}, what the priors leave; got another")
        partition, tally = Partition.from_dict(state["partition"]), Tally.from_dict(state["tally"])
        plain = self._plain_binning(level)._guarantee(partition, tally, classes)
        self._set_shift(partition, tally, plain, source, target, classes)


def _read_prior(state: Any, given: float | None) -> Prior:
    rule = "a prior must be three numbers in [0, 1]: the value used, and limits around it"
    if not isinstance(state, list | tuple) or len(state) != 3:
        raise InvalidValueError(f"{rule}; got something else")
    value, lower, upper = (check_real("prior", number, rule="a number in [0, 1]") for number in state)
    if not 0.0 <= lower <= value <= upper <= 1.0 or (given is not None and not lower == upper == given):
        raise InvalidValueError(f"{rule}, all equal to the parameter where it is given; got {[value, lower, upper]}")
    return Prior(value, lower, upper)


def mixture_prior(scores: FloatArray, codes: CodeArray, target_scores: FloatArray, alpha: float) -> Prior:
    """Return value and limits of the share p for which target scores may be a mixture p F1 + (1 - p) F0.

    With probability at least 1 - alpha the limits hold the true share. [0, 1] where a class was not seen.
    """
    ones, zeros = np.sort(scores[codes == 1]), np.sort(scores[codes == 0])
    moved = np.sort(target_scores)
    if not moved.size:
        raise InvalidValueError("target_scores must have at least one row; got none")
    if not ones.size or not zeros.size:
        return Prior(0.5, 0.0, 1.0)
    at = np.unique(np.concatenate([ones, zeros, moved]))
    f1, f0, f = (np.searchsorted(part, at, side="right") / part.size for part in (ones, zeros, moved))
    e1, e0, e = (np.sqrt(np.log(6.0 / alpha) / (2.0 * part.size)) for part in (ones, zeros, moved))
    # |f - f0 - p (f1 - f0)| <= e + e0 + p (e1 - e0), twice linear in p
    lower, upper = 0.0, 1.0
    for sign in (1.0, -1.0):
        slope, rest = sign * (f1 - f0) + (e1 - e0), sign * (f - f0) - (e + e0)  # p slope >= rest
        rising, falling = slope > 0.0, slope < 0.0
        lower = max(lower, float(np.max(rest[rising] / slope[rising], initial=0.0)))
        upper = min(upper, float(np.min(rest[falling] / slope[falling], initial=1.0)))
        if (rest[slope == 0.0] > 0.0).any():
            lower, upper = 1.0, 0.0
    if lower > upper:
        raise InvalidValueError(
            "target_scores must be distributed like a mixture of the scores of both labels; got scores that are not, "
            "whatever the share: this is no label shift. Use ShiftCalibrator, or label rows of the target population"
        )
    gap = f1 - f0
    nearest = float(gap @ (f - f0)) / max(float(gap @ gap), np.finfo(np.float64).tiny)
    return Prior(min(max(nearest, lower), upper), lower, upper)


def _counted_prior(codes: CodeArray, alpha: float) -> Prior:
    limits = clopper_pearson(Tally.from_counts([codes.size], [int(codes.sum())]), alpha)
    return Prior(float(codes.mean()), float(limits.lower[0]), float(limits.upper[0]))


def _odds_ratio(target: float, source: float) -> float:
    """Odds of one share over those of another; infinite where nothing bounds them."""
    above, below = target * (1.0 - source), source * (1.0 - target)
    return above / below if below > 0.0 else np.inf


def _moved(rates: FloatArray, factor: float) -> FloatArray:
    """Rates whose odds are multiplied by `factor`; 0 and 1 stay as they are."""
    if factor == np.inf:
        return np.where(rates > 0.0, 1.0, 0.0)
    moved = np.where(rates < 1.0, 0.0, 1.0)
    np.divide(factor * rates, factor * rates + (1.0 - rates), out=moved, where=(rates < 1.0) & (rates > 0.0))
    return moved
