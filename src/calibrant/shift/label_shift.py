"""Binning under label shift: the classes look the same, but their frequencies have changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from calibrant._typing import ArrayLike
from calibrant.calibrators.regions.binned_rows import cut_and_count
from calibrant.calibrators.regions.parameters import RegionParameters, Stated
from calibrant.calibrators.regions.region_calibrator import RegionCalibrator
from calibrant.calibrators.score_calibrator import FACTS
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.absorbed import region_limits
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.statement import Population, Statement
from calibrant.limits.methods import get_method
from calibrant.params.arrays import as_scores
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.labels import Classes
from calibrant.params.random import seed_number
from calibrant.params.rules import Number, error_budget
from calibrant.params.state_kinds import Maybe, Nested
from calibrant.sample.facts import RowFacts
from calibrant.sample.reader import check_no_weights, is_scored, one_row_each
from calibrant.sample.sample import Sample
from calibrant.shift.prior import Prior, Priors, mixture_prior, moved_odds, odds_ratio
from calibrant.shift.whole_groups import one_of_each
from calibrant.text.sentences import Setting, shown

_PRIOR_SHARE = 0.25  # share of alpha spent on the class frequencies


@dataclass(eq=False, repr=False, kw_only=True)
class LabelShiftCalibrator(RegionParameters, RegionCalibrator):
    """Calibrate for a different share of positives, with the same score distribution in each class.

    Not in the paper.

    Claimed, for every distribution: with probability at least `confidence_level` over all data, in
    every bin simultaneously, the rate of the positive class *in the target population* lies in the
    bin's interval. Assumed: scores given the label have the same distribution in both populations
    (label shift, the mirror image of covariate shift), as when a disease becomes more common but
    not different. With segments, this must hold for score and segment jointly: the mix of segments
    within each class must also be the same.

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
    partition_, tally_, classes_, n_features_in_
        As for `BinningCalibrator`.

    Notes
    -----
    By Bayes, the odds of the positive class in a bin are multiplied by k = (target prior odds) /
    (source prior odds), the same for all bins. So the limits of each bin, taken at 3/4 of the error
    budget, are moved by limits on k, which get 1/4 of it: exact binomial limits on the source
    prior, and for the target prior every p for which the distribution function F of target scores
    may equal p F1 + (1 - p) F0, where each of the three functions may be off, everywhere
    simultaneously, by sqrt(ln(2/delta) / (2n)) (Massart 1990). Both conditions are linear in p, so
    the set of these p is an interval. The value used is the p whose mixture is nearest to F in mean
    square over the bins. A score that does not separate the classes gives wide limits.

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
        stated = Stated(
            score_range=score_range,
            target_prior=target_prior,
            source_prior=source_prior,
            sampling_rates=sampling_rates,
        )
        _check_sources(stated, target_scores)
        self._check_stated(stated)
        data = self._read(scores, y, segments=segments, groups=groups, classes=classes).collect()
        if data.groups is not None and sampling_rates is not None:
            rule = "be None with groups, because sampling by label changes which rows a group has"
            advice = (
                "use BinningCalibrator with groups, and one over the rate of each row's class as"
                " importance_weight"
            )
            raise InvalidTypeError("sampling_rates", rule, got=repr(sampling_rates), advice=advice)
        seed = self.random_state if data.groups is None else seed_number(self.random_state)
        rows = one_row_each(data, seed).collect()
        binned = cut_and_count(rows, self, stated)
        column = binned.classes.positive_index
        unknown = [stated.source_prior, stated.target_prior].count(None)
        share = error_budget(self.confidence_level) * _PRIOR_SHARE / max(unknown, 1)
        priors = None
        if stated.sampling_rates is None:
            if stated.source_prior is None:
                source = Prior.from_labels(rows.codes, share)
            else:
                source = Prior.known(stated.source_prior)
            if stated.target_prior is None:
                own = (
                    data.scores if is_scored(scores) else as_scores(scores, positive_column=column)
                )
                drawn = one_of_each(data, seed)
                own = own if drawn is None else own[drawn]
                moved = as_scores(target_scores, positive_column=column, name="target_scores")
                target = mixture_prior(own, rows.codes, moved, share)
            else:
                target = Prior.known(stated.target_prior)
            priors = Priors(source, target)
        self._set(binned.partition, binned.tally, priors, stated, binned.classes, binned.facts)
        self.score_range_seen_ = binned.reach.seen
        self._warn_if_weak()
        return self

    def _plain_level(self, stated: Stated) -> float:
        """The confidence level of the bins: what the priors leave of the error budget."""
        alpha = error_budget(self.confidence_level)
        both = stated.source_prior is not None and stated.target_prior is not None
        if both or stated.sampling_rates is not None:
            return 1.0 - alpha
        return 1.0 - alpha * (1.0 - _PRIOR_SHARE)

    def _set(
        self,
        partition: Partition,
        tally: Tally,
        priors: Priors | None,
        stated: Stated,
        classes: Classes,
        facts: RowFacts,
    ) -> None:
        """Move the values and limits of the bins, and set all learned attributes together."""
        method = get_method(self._exact_interval)
        limits = region_limits(partition, tally, method, error_budget(self._plain_level(stated)))
        said = Statement(method.theorem, **self._asked())
        level = self.confidence_level
        label = classes.positive
        plain = Guarantee.from_limits(
            partition, tally, limits, level, method.name, said, self.value, label
        )
        moved: dict[str, Any] = {
            name: moved_odds(getattr(plain, name), factor)
            for name, factor in _factors(stated, priors).items()
        }
        guarantee = replace(plain, **moved).with_facts(
            theorem=f"{plain.theorem}; odds moved by Bayes' rule, outside the paper",
            population=Population.LABEL_SHIFT,
            assumed=_assumed(stated),
        )
        self._priors = priors
        self.source_prior_ = None if priors is None else priors.source
        self.target_prior_ = None if priors is None else priors.target
        self.stated_ = stated
        self._set_fitted(partition, tally, guarantee, classes, facts)

    @property
    def _level_of_bins(self) -> float:
        """The confidence level that the priors leave for the bins."""
        return self._plain_level(self.stated_)

    def _needs_rows(self) -> tuple[str, ...]:
        return ("counts",) if self.source_prior_ is None else ("counts", "priors")

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        stated = self.stated_
        priors: Priors | None = learned["priors"]
        if (priors is None) != (stated.sampling_rates is not None):
            rule = "be null if, and only if, there are sampling_rates"
            raise InvalidValueError("priors", rule, got=shown(priors))
        if priors is not None:
            priors.source.check_given(stated.source_prior)
            priors.target.check_given(stated.target_prior)
        if learned["plain_level"] != self._level_of_bins:
            rule = f"be {self._level_of_bins!r}, what the priors leave"
            raise InvalidValueError("plain_level", rule, got=repr(learned["plain_level"]))
        self._set(learned["partition"], learned["tally"], priors, stated, classes, learned["facts"])


def _check_sources(stated: Stated, target_scores: ArrayLike | None) -> None:
    """Require exactly one source of the target prior."""
    sources = {"sampling_rates": stated.sampling_rates, "target_prior": stated.target_prior}
    given = [name for name, value in sources.items() if value is not None]
    if not given and target_scores is None:
        advice = ("or set ", Setting("target_prior"))
        raise InvalidTypeError("target_scores", "be given", got="None", advice=advice)
    if stated.sampling_rates is not None and (
        stated.source_prior is not None or stated.target_prior is not None
    ):
        raise InvalidTypeError("sampling_rates", "be None if a prior is set", got="both")
    if given and target_scores is not None:
        rule = ("be None if ", Setting(given[0]), " is set")
        raise InvalidTypeError("target_scores", rule, got="both")


def _assumed(stated: Stated) -> tuple[str, ...]:
    """The assumption about the frequency of the positive class."""
    if stated.sampling_rates is not None:
        negative, positive = (f"{rate:g}" for rate in stated.sampling_rates)
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
    if stated.target_prior is None:
        return ()
    prior = Prior.known(stated.target_prior)
    share = (
        f"{prior.value!r}"
        if prior.lower == prior.upper
        else f"between {prior.lower!r} and {prior.upper!r}"
    )
    return (f"the share of the positive class in the target population is {share}",)


def _factors(stated: Stated, priors: Priors | None) -> dict[str, float]:
    """The factors by which the odds of values and limits are multiplied."""
    if priors is None:
        negative, positive = stated.sampling_rates or (1.0, 1.0)
        return dict.fromkeys(("value", "lower", "upper"), negative / positive)
    source = priors.source
    target = priors.target
    return {
        "value": odds_ratio(target.value, source.value),
        "lower": odds_ratio(target.lower, source.upper),
        "upper": odds_ratio(target.upper, source.lower),
    }
