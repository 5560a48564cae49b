"""Histogram binning: the calibrator of the paper, with exact intervals and no need to split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.parameters import DataAssumptions, RegionParameters
from calibrant.calibrators.regions.proof import Proof
from calibrant.calibrators.regions.region_calibrator import BinnedCalibrator
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally, check_tally
from calibrant.errors import InvalidValueError
from calibrant.guarantee.values import region_values
from calibrant.limits.region_limits import GroupDesign, rows_between
from calibrant.params.estimator import check_is_fitted
from calibrant.params.frames import framed
from calibrant.params.labels import Classes, name_classes
from calibrant.params.rules import ALPHA, replaces
from calibrant.sample.facts import RowFacts


@replaces(alpha=ALPHA)
@dataclass(eq=False, repr=False)
class BinningCalibrator(BinnedCalibrator, RegionParameters):
    """Histogram binning: turn scores into probabilities, intervals and sets with a guarantee.

    Guarantee, for every distribution of scores and labels: with probability at least
    `confidence_level` over the calibration data, in every bin simultaneously, the true rate of the
    positive label lies in the bin's interval. Assumptions: calibration and future rows are
    independent draws from one distribution, and the model behind the scores was not trained on the
    calibration rows.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        Number of bins; with segments, the number in each segment. "auto" is the cube root of the
        number of rows, rounded down: the spread of the score within a bin shrinks like 1 / n_bins,
        and the interval widens like sqrt(n_bins / n); the cube root balances the two.
    confidence_level : float, default=0.9
        Confidence that all intervals hold simultaneously.
    interval : str, default="auto"
        The name of a method in `calibrant.intervals`, such as "blaker", "kl" or
        "empirical-bernstein" (the paper's). "auto" is "clopper-pearson", and "betting" for rows
        with `importance_weight` or `groups`; `guarantee_.method` names the method that was used.
    value : {"jeffreys", "mean", "midpoint", "monotone"}, default="jeffreys"
        The prediction in a bin of N rows, k of them positive. "jeffreys": (k + 1/2) / (N + 1),
        never exactly 0 or 1. "mean": the rate of positives, k / N (the paper's h_n, unbiased).
        "midpoint": the middle of the interval, which gives the smallest epsilon. "monotone":
        "jeffreys", but within each segment, neighbouring bins whose values would decrease share one
        value. That keeps the order of the scores. Its price: epsilon is measured from the shared
        value, so it grows by the distance between that and the bin's own value.
    partition : {"quantile", "uniform"} or Partition, default="quantile"
        "quantile" cuts bins of equal mass, accepts any finite scores, and is open-ended. "uniform"
        cuts bins of equal width over (0, 1), or over the `score_range` passed to `fit`, and raises
        an error for scores outside it. Or pass a partition fixed beforehand, in place of `n_bins`.
    pilot : "auto", None, float or int, default="auto"
        For quantile bins: how pilot rows, which are not counted, are drawn, and where the edges
        come from. "auto" looks at a few rows, drawn at random. If no two of them have the same
        score, the edges are order statistics of the other rows, and those rows are counted too.
        Otherwise these rows and some more are used only to cut the edges. With segments, each
        segment has its own pilot rows. With `sample_weight` there are none, and the edges are order
        statistics of all rows. None always takes order statistics of all rows; a tied one becomes a
        region of its own, so use None only for scores without ties (see `Partition.uniform_mass`).
        With a fraction or a number, that many rows are drawn at random and used only to cut the
        edges. With `groups`, "auto", a fraction or a number draws whole groups, which are used only
        to cut the edges.
    segment_rule : "auto", None, int or list, default="auto"
        With segments: which segments have regions of their own. All others, and those not seen in
        `fit`, share the regions of one segment, "other". A number of rows: segments with at least
        about this many rows. They are chosen by pilot rows, which are drawn at random and not
        counted. "auto" is 300, or 100 for each bin requested, and at least a thousandth of all
        rows; it works like None if `pilot` is not "auto", bins have equal width, or rows have a
        `sample_weight` or `groups`. None: every segment. A list: the segments in it.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the pilot rows and the order of weighted rows. The same rows in the same
        order give the same draw, wherever they are stored; None draws afresh each time.
    n_jobs : int or None, default=None
        Threads for very large inputs; results never depend on it.

    Attributes
    ----------
    guarantee_ : Guarantee
        The guarantee, in numbers and in words.
    partition_ : Partition
        The regions.
    tally_ : Tally
        The counts of rows and labels in the regions; tallies over one partition can be added.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    With `groups`, the interval is found by bets on the sums of whole groups
    (`calibrant.limits.region_limits`). It uses the whole error budget, so there is no statement
    about masses. For "jeffreys", the number of rows in a bin is divided by its design effect.

    With `importance_weight`, the rate of a bin is E[w Y] / E[w], the rate in the population in
    which each row counts by its weight. Its interval is found by bets on the rows
    (`calibrant.limits.shift`). It uses the whole error budget, so there is no statement about
    masses. For "jeffreys", the rows of a bin count as (sum of w)^2 / (sum of w^2) rows.

    The setting is that of Theorem 4 of Gupta, Podkopaev and Ramdas (2020), with exact binomial
    limits in place of empirical Bernstein limits; epsilon is the largest half-width over bins.
    Edges cut from all rows follow Gupta and Ramdas (2021).

    References
    ----------
    Gupta, Podkopaev and Ramdas (2020), "Distribution-free binary classification: prediction sets,
    confidence intervals and calibration". Gupta and Ramdas (2021), "Distribution-free calibration
    guarantees for histogram binning without sample splitting". Zadrozny and Elkan (2001),
    "Obtaining calibrated probability estimates from decision trees and naive Bayesian classifiers".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BinningCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> y = rng.uniform(size=10_000) < scores**2
    >>> calibrator = BinningCalibrator(n_bins=10).fit(scores, y)
    >>> calibrator.predict([0.05, 0.95]).round(3)
    array([0.004, 0.878])
    >>> round(calibrator.guarantee_.epsilon, 3)
    0.042
    """

    def fit_binned(self, binned: Binned) -> None:
        """Derive the guarantee from rows that are already counted in regions."""
        self._conclude(Proof.of(binned, self), binned.classes, binned.facts)
        self.score_range_seen_ = binned.reach.seen

    @classmethod
    def from_tally(
        cls,
        partition: Partition,
        tally: Tally,
        *,
        classes: ArrayLike = (0, 1),
        max_group_size: int | None = None,
        group_target: str = "rows",
        **parameters: Any,
    ) -> Self:
        """Make a fitted calibrator from a partition and a tally, such as merged tallies or counts
        from elsewhere.

        >>> from calibrant import BinningCalibrator, Partition, Tally
        >>> bins = Partition.fixed_width(2)
        >>> tally = Tally.from_counts([1000, 1000], [100, 800], partition=bins)
        >>> BinningCalibrator.from_tally(bins, tally, confidence_level=0.95).predict([0.2, 0.7])
        array([0.1003996, 0.7997003])
        """
        calibrator = cls(partition=partition, **parameters)
        calibrator._check_parameters()
        assumptions = DataAssumptions(max_group_size=max_group_size, group_target=group_target)
        check_tally(partition, tally)
        if tally.weights is not None:
            advice = "use ShiftCalibrator.from_tally, whose interval needs sums of weights only"
            raise InvalidValueError(
                "tally", "have no importance weights", got="weights", advice=advice
            )
        design = None
        if tally.groups is not None:
            if max_group_size is None and group_target == "rows":
                rule = (
                    "be given with a tally of groups, because the counted groups do not bound the"
                    " size of new ones"
                )
                raise InvalidValueError("max_group_size", rule, got="None")
            design = GroupDesign(max_group_size or 1, group_target)
        proof = Proof(
            partition,
            tally,
            calibrator._exact_interval,
            calibrator.confidence_level,
            design,
            assumptions=assumptions,
        )
        calibrator._conclude(proof, name_classes(classes, calibrator.pos_label))
        return calibrator

    @framed
    def predict_multiprobability(
        self, scores: ArrayLike, *, segments: ArrayLike | None = None
    ) -> FloatArray:
        """Return p_0 and p_1, shape (n, 2), by Venn prediction: the rate of positives in the
        score's bin after adding one row with label 0, or with label 1.

        Guarantee, for every distribution: of the two, the one that belongs to the true label is
        perfectly calibrated, E[Y | p_Y] = p_Y. You cannot know beforehand which one that is, and
        [p_0, p_1] is **not** a confidence interval; `predict_interval` gives one. Assumed:
        calibration and future rows are independent draws from one distribution, and the model was
        not trained on the calibration rows. Nothing is claimed about a score that equals an edge
        which is a counted row's score; such edges come from order statistics, see `pilot`.

        Parameters
        ----------
        scores, segments
            As in `predict`.

        Raises
        ------
        InvalidValueError
            If the calibrator was fitted with groups or importance weights: rows are then not
            exchangeable.

        Notes
        -----
        p_y = (k + y) / (N + 1) in a bin of N rows, k of them positive. Given the edges, and how
        many scores lie below, at and above each of them, the N labels in a bin and the label Y of a
        future row there are exchangeable. Given their sum k + Y, the future label is 1 with
        probability (k + Y) / (N + 1) = p_Y. A bin that absorbs its tied edge is counted without the
        rows at the edge, which was selected by its score.

        References
        ----------
        Vovk, Shafer and Nouretdinov (2004), "Self-calibrating probability forecasting". Gupta,
        Podkopaev and Ramdas (2020), appendix "Venn prediction".

        Examples
        --------
        >>> from calibrant import BinningCalibrator
        >>> scores = [0.1] * 8 + [0.9] * 8
        >>> y = [0] * 7 + [1] + [1] * 6 + [0] * 2
        >>> calibrator = BinningCalibrator(2, partition="uniform").fit(scores, y)
        >>> calibrator.predict_multiprobability([0.1, 0.9]).round(3)
        array([[0.111, 0.222],
               [0.667, 0.778]])
        """
        check_is_fitted(self)
        if self.tally_.groups is not None or self.tally_.weights is not None:
            rule = "be rows without groups and importance weights for predict_multiprobability"
            raise InvalidValueError("the calibration data", rule, got="rows with them")
        inside = rows_between(self.partition_, self.tally_)
        pairs = np.add.outer(inside.positives, [0, 1]) / (inside.counts[:, None] + 1)
        return self._look_up(scores, pairs, segments)

    def _take(self, learned: dict[str, Any], classes: Classes) -> None:
        self._conclude(learned["proof"], classes, learned["facts"])

    def _conclude(self, proof: Proof, classes: Classes, facts: RowFacts | None = None) -> None:
        """Derive the guarantee, and set all learned attributes together."""
        partition = proof.partition
        tally = proof.tally
        limits = proof.rates()
        value = region_values(self.value, partition, tally, limits, proof.effective_rows)
        self.proof_ = proof
        self.assumptions_ = proof.assumptions
        self._set_fitted(
            partition, tally, proof.guarantee(self, limits, value, classes.positive), classes, facts
        )
