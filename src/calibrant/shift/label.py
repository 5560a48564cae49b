"""Binning under label shift: the classes look as they did, but are more or less frequent."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from calibrant._input import as_scores
from calibrant._labels import Classes
from calibrant._params import OPEN_UNIT, Optional, Rules, check_state, error_budget
from calibrant._text import Setting
from calibrant._typing import ArrayLike
from calibrant.calibrators._bins import RegionParameters, cut_and_count
from calibrant.calibrators.regions import RegionCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import Guarantee, Population, Statement
from calibrant.guarantee.absorbed import region_limits
from calibrant.intervals import get_method
from calibrant.partition import Partition
from calibrant.rows import ScoredData
from calibrant.rows.facts import RowFacts
from calibrant.shift.prior import Prior, mixture_prior, moved_odds, odds_ratio
from calibrant.tally import Tally

_PRIOR_SHARE = 0.25  # of alpha, spent on how frequent the classes are


@dataclass(eq=False, repr=False, kw_only=True)
class LabelShiftCalibrator(RegionParameters, RegionCalibrator):
    """Calibrate for a population in which the classes are more or less frequent, but look the same. Not in the paper.

    Claimed, for every distribution: with probability at least `confidence_level` over all data, in every bin at once,
    the rate of the positive class *in the target population* lies in the bin's interval. Assumed: scores given the
    label are distributed alike in both populations (label shift, the mirror image of covariate shift), as when a
    disease becomes more common but not different. With segments, this must hold for score and segment together: the mix
    of segments within each class must be the same, too.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        As for `BinningCalibrator`; so are all parameters that are not described here.
    target_prior : float or None, default=None
        Share of the positive class in the target population, if it is known. None estimates it, with limits, from
        unlabelled `target_scores`.
    source_prior : float or None, default=None
        Share of the positive class among calibration rows, if it is known, for example because it was fixed when the
        rows were chosen. None derives limits for it from the labels.

    Attributes
    ----------
    guarantee_ : Guarantee
        What is guaranteed, in numbers and in words.
    target_prior_, source_prior_ : Prior
        Value and limits of how frequent the positive class is in each population.
    partition_, tally_, classes_, n_features_in_
        As for `BinningCalibrator`.

    Notes
    -----
    By Bayes, the odds of the positive class in a bin are multiplied by k = (target prior odds) / (source prior odds),
    the same for all bins. So the limits of each bin, taken at 3/4 of the error budget, are moved by limits for k, which
    get 1/4 of it: exact binomial limits for the source prior, and for the target prior every p for which the
    distribution function F of target scores may equal p F1 + (1 - p) F0, where each of the three functions may be off,
    everywhere at once, by sqrt(ln(2/delta) / (2n)) (Massart 1990). Both conditions are linear in p, so what is kept is
    an interval. The value used is the p whose mixture is nearest to F in the squares' mean over the bins. A score that
    does not separate the classes gives wide limits.

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

    _parameter_rules: ClassVar[Rules] = {
        **RegionParameters._parameter_rules,
        "target_prior": Optional(OPEN_UNIT),
        "source_prior": Optional(OPEN_UNIT),
    }

    target_prior: float | None = None
    source_prior: float | None = None

    def fit(
        self,
        scores: ArrayLike | ScoredData,
        y: ArrayLike | None = None,
        *,
        target_scores: ArrayLike | None = None,
        segments: ArrayLike | None = None,
    ) -> Self:
        """Cut the bins, count the labels, and move the odds to the target population.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or ScoredData
            Scores of labelled rows that the model was not trained on; or data with scores and labels, see
            `calibrant.scored`, whose rows are brought into memory.
        y : array-like of shape (n,)
            Labels of two classes.
        target_scores : array-like, optional
            Scores of unlabelled rows of the target population; needed unless `target_prior` is given.
        segments : array-like of shape (n,), optional
            The segment of each row. Every segment gets bins of its own. The priors are those of all segments together,
            so score and segment together must be distributed alike given the label. Where only the scores within each
            segment are, fit each segment on its own.

        Returns
        -------
        self
        """
        self._check_parameters()
        if self.target_prior is None and target_scores is None:
            advice = ("or set ", Setting("target_prior"))
            raise InvalidTypeError("target_scores", "be given", got="None", advice=advice)
        if self.target_prior is not None and target_scores is not None:
            rule = ("be None where ", Setting("target_prior"), " is set")
            raise InvalidTypeError("target_scores", rule, got="both")
        rows = self._read(scores, y, segments).collect()
        partition, tally, classes, reach, _, facts = cut_and_count(rows, self)
        column = classes.positive_index
        unknown = [self.source_prior, self.target_prior].count(None)
        share = error_budget(self.confidence_level) * _PRIOR_SHARE / max(unknown, 1)
        source = Prior.from_labels(rows.codes, share) if self.source_prior is None else Prior.known(self.source_prior)
        if self.target_prior is None:
            own = rows.scores if isinstance(scores, ScoredData) else as_scores(scores, positive_column=column)
            moved = as_scores(target_scores, positive_column=column, name="target_scores")
            target = mixture_prior(own, rows.codes, moved, share)
        else:
            target = Prior.known(self.target_prior)
        self._set(partition, tally, source, target, classes, facts)
        self.score_range_seen_ = reach.seen
        self._warn_if_weak()
        return self

    def _plain_level(self) -> float:
        """The confidence level of the bins: what the priors leave of the error budget."""
        alpha = error_budget(self.confidence_level)
        known = self.source_prior is not None and self.target_prior is not None
        return 1.0 - (alpha if known else alpha * (1.0 - _PRIOR_SHARE))

    def _set(
        self, partition: Partition, tally: Tally, source: Prior, target: Prior, classes: Classes, facts: RowFacts
    ) -> None:
        """Move values and limits of the bins, and set everything that was learned at once."""
        method = get_method(self.interval)
        plain = Guarantee.from_limits(
            partition,
            tally,
            region_limits(partition, tally, method, error_budget(self._plain_level())),
            confidence_level=self.confidence_level,
            method=method.name,
            value=self.value,
            positive_label=classes.positive,
            statement=Statement.about(partition, split=self.split not in (None, "auto"), theorem=method.theorem),
        )
        guarantee = replace(
            plain,
            value=moved_odds(plain.value, odds_ratio(target.value, source.value)),
            lower=moved_odds(plain.lower, odds_ratio(target.lower, source.upper)),
            upper=moved_odds(plain.upper, odds_ratio(target.upper, source.lower)),
        ).with_facts(
            theorem=f"{plain.theorem}; odds moved by Bayes' rule, outside the paper", population=Population.LABEL_SHIFT
        )
        self.source_prior_, self.target_prior_ = source, target
        self._set_fitted(partition, tally, guarantee, classes, facts)

    def _state(self) -> dict[str, Any]:
        priors = {"s": self.source_prior_.to_list(), "t": self.target_prior_.to_list()}
        return {**super()._state(), "priors": priors, "plain_level": self._plain_level()}

    def _restore(self, state: Mapping[str, Any], classes: Classes) -> None:
        self._check_parameters()
        check_state(state, ("partition", "tally", "priors", "plain_level"))
        check_state(state["priors"], ("s", "t"))
        source = Prior.from_state(state["priors"]["s"], self.source_prior)
        target = Prior.from_state(state["priors"]["t"], self.target_prior)
        if state["plain_level"] != self._plain_level():
            rule = f"be {self._plain_level()!r}, what the priors leave"
            raise InvalidValueError("plain_level", rule, got=repr(state["plain_level"]))
        partition, tally = Partition.from_dict(state["partition"]), Tally.from_dict(state["tally"])
        self._set(partition, tally, source, target, classes, RowFacts.from_dict(state))
