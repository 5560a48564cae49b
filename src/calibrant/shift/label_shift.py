"""Binning under label shift: the classes look the same, but their frequencies have changed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import ArrayLike, CodeArray, FloatArray
from calibrant.calibrators.regions.binned_rows import cut_and_count
from calibrant.calibrators.regions.parameters import DataAssumptions, RegionParameters
from calibrant.calibrators.regions.region_calibrator import RegionCalibrator
from calibrant.calibrators.score_calibrator import FACTS
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.statement import Population, Statement
from calibrant.limits.methods import get_method
from calibrant.limits.region_limits import region_limits
from calibrant.params.arrays import as_scores
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import Classes
from calibrant.params.random import RandomSource, fingerprint_of, seed_number
from calibrant.params.rules import Number, error_budget
from calibrant.params.state_kinds import Maybe, Nested
from calibrant.sample.facts import RowFacts
from calibrant.sample.reader import check_no_weights, is_scored, one_row_each
from calibrant.sample.sample import Sample
from calibrant.shift.odds_factor import odds_factor_limits
from calibrant.shift.prior import Prior, Priors, mixture_prior, moved_odds, share_of
from calibrant.shift.whole_groups import one_of_each
from calibrant.text.sentences import Setting, shown

_PRIOR_SHARE = 0.25  # share of alpha spent on the class frequencies
_START_SHARE = 0.02  # share of that for the limits at which the bets start


@dataclass(eq=False, repr=False, kw_only=True)
class LabelShiftCalibrator(RegionParameters, RegionCalibrator):
    """Calibrate for a different share of positives, with the same score distribution in each class.

    Not in the paper.

    Guarantee, for every distribution: with probability at least `confidence_level` over all data,
    in every bin simultaneously, the rate of the positive class *in the target population* lies in
    the bin's interval. Assumptions: scores given the label have the same distribution in both
    populations (label shift, the mirror image of covariate shift), as when a disease becomes more
    common but not different. With segments, this must hold for score and segment jointly: the mix
    of segments within each class must also be the same.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        As in `BinningCalibrator`, like all other parameters.

    Attributes
    ----------
    guarantee_ : Guarantee
        What is guaranteed, in numbers and in words.
    target_prior_, source_prior_ : Prior or None
        The share of the positive class in each population, with limits; None with `sampling_rates`.
        Limits from target scores hold on their own, with probability at least `confidence_level`.
    partition_, tally_, classes_, n_features_in_
        As for `BinningCalibrator`.

    Notes
    -----
    By Bayes, the odds of the positive class in a bin are multiplied by k = (target prior odds) /
    (source prior odds), the same for all bins. So the limits of each bin, taken at 3/4 of the error
    budget, are moved by limits on k, which get 1/4 of it. They come from bets on small units of
    labelled and of target rows: E[(k Y + 1 - Y) (g(S) - g(T))] = 0 for the true k alone, for a
    function g of the score that is learned from earlier units (`shift.odds_factor`). The bets start
    at limits that get 2% of this share: exact binomial limits on the source prior, and for the
    target prior every p for which the distribution function F of target scores may equal p F1 +
    (1 - p) F0, where each of the three functions may be off, everywhere simultaneously, by
    sqrt(ln(2/delta) / (2n)) (Massart 1990). Both conditions are linear in p, so the set of these p
    is an interval. The value used is the p whose mixture is nearest to F in mean square over the
    scores. A score that does not separate the classes gives wide limits. If the bets contradict each
    other, or rule out every factor, the limits are those at which they start: either the assumption
    does not hold, or this is one of the cases in which limits may fail.

    A prior that is known, or known between limits, uses none of the budget. `sampling_rates` give k
    itself, the rate of the negative class divided by that of the positive, and the limits of the
    bins get the whole budget. This is exact if each row of a class was kept with the same
    probability. For a fixed number of rows of each class, as in a case-control study with a known
    `source_prior`, it is not a theorem: exact enumeration of both counts of a bin found limits that
    miss with probability .066 at most where .1 is stated.

    References
    ----------
    Saerens, Latinne and Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori
    probabilities". Lipton, Wang and Smola (2018), "Detecting and correcting for label shift with
    black box predictors", ICML. Massart (1990), "The tight constant in the
    Dvoretzky-Kiefer-Wolfowitz inequality".

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
    >>> known = LabelShiftCalibrator(n_bins=5).fit(scores, y, target_prior=0.5)
    >>> known.predict([-1.0, 3.0]).round(2)
    array([0.02, 0.91])
    >>> kept = y | (rng.uniform(size=20_000) < 0.1)  # one in ten negatives
    >>> undone = LabelShiftCalibrator(n_bins=5).fit(
    ...     scores[kept], y[kept], sampling_rates=(0.1, 1.0)
    ... )
    >>> undone.predict([-1.0, 3.0]).round(2)
    array([0.01, 0.9 ])
    """

    _learned: ClassVar[EntryTable] = {
        "partition": Entry(Nested(Partition), of="partition_"),
        "tally": Entry(Nested(Tally), of="tally_"),
        "facts": FACTS,
        "priors": Entry(Maybe(Nested(Priors)), of="_priors"),
        "plain_level": Entry(Number(), of="_level_of_bins"),
    }

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        target_scores: ArrayLike | None = None,
        target_prior: float | tuple[float, float] | None = None,
        source_prior: float | None = None,
        sampling_rates: tuple[float, float] | None = None,
        segments: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        score_range: tuple[float, float] | None = None,
    ) -> Self:
        """Cut the bins, count the labels, and move the odds to the target population.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
            Scores of labelled rows that the model was not trained on; or data with scores and
            labels, see `calibrant.scored`, whose rows are read into memory.
        y : array-like of shape (n,)
            Labels of two classes.
        target_scores : array-like, optional
            Scores of unlabelled rows from the target population. Required unless `target_prior` is
            given.
        target_prior : float or (float, float), optional
            Share of the positive class in the target population, if it is known; or two limits
            between which it lies. Then no rows from the target population are needed. None
            estimates it, with limits, from unlabelled `target_scores`.
        source_prior : float, optional
            Share of the positive class among calibration rows, if it is known, for example because
            it was fixed when the rows were chosen. None derives limits for it from the labels.
        sampling_rates : (float, float), optional
            For rows that were sampled by their label: the shares of the negative and of the
            positive class that were kept, such as (0.1, 1.0) if one in ten negatives was kept. The
            target is the population before sampling. Only the ratio matters, and no prior is
            needed.
        segments : array-like of shape (n,), optional
            The segment of each row. Every segment gets its own bins. The priors are those of all
            segments together, so score and segment must jointly have the same distribution given
            the label. If this holds only for the scores within each segment, fit each segment
            separately.
        groups : array-like of shape (n,), optional
            The group of each row, such as its customer. One row from each group is drawn at random
            and the others are not used: the guarantee is then about a row drawn at random from a
            new group of the target population. `target_scores` must come from rows of different
            groups.
        classes, score_range
            As in `BinningCalibrator.fit`.

        Returns
        -------
        self
        """
        self._check_parameters()
        check_no_weights(scores, "this method counts every row exactly once")
        assumptions = DataAssumptions(
            score_range=score_range,
            target_prior=target_prior,
            source_prior=source_prior,
            sampling_rates=sampling_rates,
        )
        _check_sources(assumptions, target_scores)
        self._check_assumptions(assumptions)
        data = self._read(scores, y, segments=segments, groups=groups, classes=classes).collect()
        if data.groups is not None and sampling_rates is not None:
            rule = "be None with groups, because sampling by label changes which rows a group has"
            advice = (
                "use BinningCalibrator with groups, and importance_weight = 1 / the sampling rate of"
                " each row's class"
            )
            raise InvalidTypeError("sampling_rates", rule, got=repr(sampling_rates), advice=advice)
        seed = self.random_state if data.groups is None else seed_number(self.random_state)
        rows = one_row_each(data, seed).collect()
        binned = cut_and_count(rows, self, assumptions)
        column = binned.classes.positive_index
        priors = None
        if assumptions.sampling_rates is None:
            if assumptions.target_prior is None:
                own = (
                    data.scores if is_scored(scores) else as_scores(scores, positive_column=column)
                )
                drawn = one_of_each(data, seed)
                own = own if drawn is None else own[drawn]
                moved = as_scores(target_scores, positive_column=column, name="target_scores")
                priors = self._priors_of(assumptions, own, rows.codes, moved)
            else:
                priors = Priors(
                    self._source_prior(assumptions, rows.codes),
                    Prior.known(assumptions.target_prior),
                )
        self._set(binned.partition, binned.tally, priors, assumptions, binned.classes, binned.facts)
        self.score_range_seen_ = binned.reach.seen
        self._warn_if_weak()
        return self

    def _source_prior(
        self, assumptions: DataAssumptions, codes: CodeArray, share: float = _PRIOR_SHARE
    ) -> Prior:
        """The prior of the rows, known or from their labels with a share of the error budget."""
        if assumptions.source_prior is not None:
            return Prior.known(assumptions.source_prior)
        return Prior.from_labels(codes, share * error_budget(self.confidence_level))

    def _priors_of(
        self, assumptions: DataAssumptions, own: FloatArray, codes: CodeArray, moved: FloatArray
    ) -> Priors:
        """The priors, and the factor between their odds, from labelled and from target scores."""
        alpha = _PRIOR_SHARE * error_budget(self.confidence_level)
        share = _START_SHARE * _PRIOR_SHARE / 2.0
        start = Priors(
            self._source_prior(assumptions, codes, share),
            mixture_prior(own, codes, moved, _START_SHARE / 2.0 * alpha),
        ).factors
        source = RandomSource.of(
            self.random_state,
            "label shift: bets",
            fingerprint_of(moved),
            rows=fingerprint_of(own, labels=codes),
        )
        tail = (1.0 - _START_SHARE) * alpha / 2.0
        low, high = odds_factor_limits(
            own, codes, moved, tail, (start["lower"], start["upper"]), source.generator()
        )
        # limits can fail: they cross, or they rule out every positive and finite factor
        if low > high or low == math.inf or high == 0.0:
            low = start["lower"]
            high = start["upper"]
        factors = min(max(start["value"], low), high), low, high
        here = self._source_prior(assumptions, codes, 1.0 - _PRIOR_SHARE)
        shares = (here.value, here.lower, here.upper)
        there = (
            moved_odds(np.array([share]), factor)[0]
            for share, factor in zip(shares, factors, strict=True)
        )
        return Priors(
            here, Prior(*map(float, there)), Prior(*(share_of(factor) for factor in factors))
        )

    def _plain_level(self, assumptions: DataAssumptions) -> float:
        """The confidence level of the bins: what the priors leave of the error budget."""
        alpha = error_budget(self.confidence_level)
        both = assumptions.source_prior is not None and assumptions.target_prior is not None
        if both or assumptions.sampling_rates is not None:
            return 1.0 - alpha
        return 1.0 - alpha * (1.0 - _PRIOR_SHARE)

    def _set(
        self,
        partition: Partition,
        tally: Tally,
        priors: Priors | None,
        assumptions: DataAssumptions,
        classes: Classes,
        facts: RowFacts,
    ) -> None:
        """Move the values and limits of the bins, and set all learned attributes together."""
        method = get_method(self._exact_interval)
        limits = region_limits(
            partition, tally, method, error_budget(self._plain_level(assumptions))
        )
        said = Statement(method.theorem, **self._asked())
        level = self.confidence_level
        label = classes.positive
        plain = Guarantee.from_limits(
            partition, tally, limits, level, method.name, said, self.value, label
        )
        negative, positive = assumptions.sampling_rates or (1.0, 1.0)
        factors = dict.fromkeys(("value", "lower", "upper"), negative / positive)
        if priors is not None:
            factors = priors.factors
        moved: dict[str, Any] = {
            name: moved_odds(getattr(plain, name), factor) for name, factor in factors.items()
        }
        guarantee = replace(plain, **moved).with_facts(
            theorem=f"{plain.theorem}; odds moved by Bayes' rule, outside the paper",
            population=Population.LABEL_SHIFT,
            assumed=_assumed(assumptions),
        )
        self._priors = priors
        self.source_prior_ = None if priors is None else priors.source
        self.target_prior_ = None if priors is None else priors.target
        self.assumptions_ = assumptions
        self._set_fitted(partition, tally, guarantee, classes, facts)

    @property
    def _level_of_bins(self) -> float:
        """The confidence level that the priors leave for the bins."""
        return self._plain_level(self.assumptions_)

    def _needs_rows(self) -> tuple[str, ...]:
        return ("counts",) if self.source_prior_ is None else ("counts", "priors")

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        assumptions = self.assumptions_
        priors: Priors | None = learned["priors"]
        if (priors is None) != (assumptions.sampling_rates is not None):
            rule = "be null if, and only if, there are sampling_rates"
            raise InvalidValueError("priors", rule, got=shown(priors))
        if priors is not None:
            priors.source.check_given(assumptions.source_prior)
            priors.target.check_given(assumptions.target_prior)
        if learned["plain_level"] != self._level_of_bins:
            rule = f"be {self._level_of_bins!r}, what the priors leave"
            raise InvalidValueError("plain_level", rule, got=repr(learned["plain_level"]))
        self._set(
            learned["partition"], learned["tally"], priors, assumptions, classes, learned["facts"]
        )


def _check_sources(assumptions: DataAssumptions, target_scores: ArrayLike | None) -> None:
    """Require exactly one source of the target prior."""
    sources = {
        "sampling_rates": assumptions.sampling_rates,
        "target_prior": assumptions.target_prior,
    }
    given = [name for name, value in sources.items() if value is not None]
    if not given and target_scores is None:
        advice = ("or set ", Setting("target_prior"))
        raise InvalidTypeError("target_scores", "be given", got="None", advice=advice)
    if assumptions.sampling_rates is not None and (
        assumptions.source_prior is not None or assumptions.target_prior is not None
    ):
        raise InvalidTypeError("sampling_rates", "be None if a prior is set", got="both")
    if given and target_scores is not None:
        rule = ("be None if ", Setting(given[0]), " is set")
        raise InvalidTypeError("target_scores", rule, got="both")


def _assumed(assumptions: DataAssumptions) -> tuple[str, ...]:
    """The assumption about the frequency of the positive class."""
    if assumptions.sampling_rates is not None:
        negative, positive = (f"{rate:g}" for rate in assumptions.sampling_rates)
        kept = (
            f"rows of the negative class were kept with probability {negative}, of the positive"
            f" with {positive}"
        )
        return (
            (
                f"{kept}, or with a multiple of both, for every score; the target is the"
                " population before"
            ),
        )
    if assumptions.target_prior is None:
        return ()
    prior = Prior.known(assumptions.target_prior)
    share = (
        f"{prior.value!r}"
        if prior.lower == prior.upper
        else f"between {prior.lower!r} and {prior.upper!r}"
    )
    return (f"the share of the positive class in the target population is {share}",)
