"""The rate at one score, under one assumption: that it is nondecreasing in the score."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import ArrayLike, FloatArray, Seed
from calibrant.assess.monotone.run_limits import ScoredUnits
from calibrant.assess.monotone.runs import BandGuarantee, BandSteps, Refutation
from calibrant.calibrators.regions.weighted_rows import (
    checked_bound,
    has_weights,
    weights_of,
)
from calibrant.calibrators.table import Table, steps_everywhere, written_by
from calibrant.cells.lines import LARGEST
from calibrant.cells.score_counts import ScoreCounts
from calibrant.errors import InvalidTypeError, warn_caller
from calibrant.params.arrays import as_scores
from calibrant.params.declared_state import Inline, LabelEntries, Saved
from calibrant.params.estimator import Estimator, check_is_fitted
from calibrant.params.frames import FrameOutput, predicts
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.labels import Classes
from calibrant.params.random import RandomSource
from calibrant.params.rules import (
    OPEN_UNIT,
    WEIGHT_BOUND,
    CheckedParameters,
    Integer,
    Only,
    RuleTable,
)
from calibrant.params.state_kinds import Listed, Lists, Maybe, Numbers, OneCount
from calibrant.sample.facts import RowFacts
from calibrant.sample.reader import ONE_EACH, check_group_target, read_rows, refuse
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text import numbers

_N_CELLS = Integer(1) | Only("auto")
_INDEPENDENT = {
    # with groups, with weights
    (False, False): "labels are independent given the scores",
    (False, True): "labels and weights of different rows are independent given the scores",
    (True, False): "the groups are independent draws from one distribution",
    (True, True): "the groups are independent draws from one distribution",
}


@dataclass(frozen=True, slots=True)
class ScoreFinding:
    """One score whose rate is shown to differ from it.

    Attributes
    ----------
    score : float
        The score.
    limit : float
        A lower or an upper bound on the rate there.
    is_too_low : bool
        Whether the score is too low; then the limit is a lower bound.
    """

    score: float
    limit: float
    is_too_low: bool

    @property
    def error(self) -> float:
        """Guaranteed distance between score and rate."""
        return abs(self.limit - self.score)

    def __str__(self) -> str:
        limit = (
            f"least {numbers.lower(self.limit)}"
            if self.is_too_low
            else f"most {numbers.upper(self.limit)}"
        )
        return f"at scores near {numbers.nearest(self.score)} the rate is at {limit}"


@dataclass(eq=False)
class MonotoneBand(Saved, FrameOutput, CheckedParameters, Estimator):
    """Intervals for the rate at every single score, if the rate does not fall as the score rises.

    Guarantee: with probability at least `confidence_level`, E[Y | score = s] lies in its interval
    for all s simultaneously. Assumptions: the rate does not fall as the score rises, and labels are
    independent given the scores. Nothing is assumed about how scores are drawn, so the band still
    holds if the mix of scores changes but the rates do not. The data can refute the first
    assumption; then `is_refuted_` is True, `refutation_` says where, and the intervals are [0, 1].

    With groups, E[Y | score = s] is the rate for a row drawn at random from a new group. Assumed:
    that rate does not fall as the score rises, and groups are independent draws from one
    distribution. Rows of a group may depend on each other in any way, and on its size.

    Parameters
    ----------
    confidence_level : float, default=0.9
        Confidence that all intervals hold simultaneously.
    n_cells : int or "auto", default="auto"
        Number of cells of about equal mass, which make up the runs. "auto" is about ten times the
        cube root of the number of rows; seven times with weights, and 3.5 times with groups.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.
    random_state : int, Generator, RandomState or None, default=0
        Seed for the random draws with weights or groups: the order of bets, and pilot groups.

    Attributes
    ----------
    is_refuted_ : bool
        Whether the data refute that the rate does not fall, at `confidence_level`.
    refutation_ : Refutation or None
        Where they refute it.
    n_rows_, n_runs_ : int
        The number of rows, without those of pilot groups; and of runs of neighbouring rows, whose
        limits hold simultaneously.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    Rows are sorted by score and cut into cells; equal scores share a cell. A run is a series of
    neighbouring cells: the lengths grow by a factor of sqrt(2), and a run starts at every quarter
    of its length. The mean rate of a run that ends at or before s is at most the rate at s; that of
    a run that begins at or after s is at least the rate at s. The mean rate of each run lies within
    limits for sums of labels with different rates (`calibrant.limits.non_identical`), each at the
    tail alpha / (2 runs). The run with the tightest limit is used. If the limits cross, the rate
    must fall somewhere. The computation takes O(n log n).

    With importance weights, the rate is E[w Y | s] / E[w | s], and the limits of a run come from
    bets on w (Y - m) over its rows (`calibrant.assess.monotone.run_limits`).

    With groups, a tenth of them or more are pilot groups, which only cut the runs. The limits of a
    run come from bets on W (Z - m) over the other groups, where W is the share of a group's rows
    that lie in the run and Z is the mean of their labels
    (`calibrant.assess.monotone.run_limits`).

    References
    ----------
    Dimitriadis, Dümbgen, Henzi, Puke and Ziegel (2023), "Honest calibration assessment for binary
    outcome predictions", Biometrika 110.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.intervals import MonotoneBand
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> band = MonotoneBand().fit(scores, rng.uniform(size=10_000) < scores**2)
    >>> band.predict_interval([0.5, 0.9]).round(3)
    array([[0.184, 0.341],
           [0.668, 0.884]])
    >>> band.is_refuted_
    False
    """

    _schema: ClassVar[str] = "calibrant.monotone/1"
    _entries: ClassVar[EntryTable] = {
        "confidence_level": OPEN_UNIT,
        "labels": Entry(LabelEntries(), of="_known"),
        "rows": Entry(OneCount(), of="n_rows_"),
        "runs": Entry(OneCount(), of="n_runs_"),
        "lower_knots": Entry(Numbers(increasing=True), of="steps_.lower_knots"),
        "lower": Entry(Numbers("lower_knots", 0.0, 1.0, increasing=True), of="steps_.lower"),
        "upper_knots": Entry(Numbers(increasing=True), of="steps_.upper_knots"),
        "upper": Entry(Numbers("upper_knots", 0.0, 1.0, increasing=True), of="steps_.upper"),
        "refutation": Entry(Maybe(Listed(Refutation)), of="refutation_"),
        "facts": Entry(Inline(RowFacts), of="_facts"),
        "weight_bound": Entry(WEIGHT_BOUND, of="_bound", absent=0.0),
        "groups": Entry(Lists(OneCount(), size=2), of="_groups", absent=(0, 0)),
        "n_cells": Entry(_N_CELLS, absent="auto"),
    }
    _rules: ClassVar[RuleTable] = {
        "n_cells": _N_CELLS,
    }

    _: KW_ONLY
    confidence_level: float = 0.9
    n_cells: int | str = "auto"
    pos_label: Hashable = None
    random_state: Seed = 0

    _bound = 0.0  # of the weights
    _groups = (0, 0)  # counted groups, and pilot groups
    _read = tuple[str, ...]()  # what was read from a file

    def fit(
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        importance_weight: ArrayLike | None = None,
        weight_bound: float | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Find the band.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or Sample
            Scores of rows that the model was not trained on; or scores and labels together, see
            `calibrant.scored`.
        y : array-like of shape (n,)
            Labels of two classes.
        groups : array-like of shape (n,), optional
            The group of each row, such as its customer: at least two groups. The guarantee is then
            about a row drawn at random from a new group, so every group counts equally. All rows of
            a group count; a tenth of the groups or more are only used to cut the runs. The fit
            takes about 1.5 s for 30,000 rows in groups of 6, and 4 s for 120,000.
        importance_weight : array-like of shape (n,), optional
            Numbers >= 0, at most `weight_bound`: the guarantee is then about the population in
            which each row counts by its weight. A weight may depend on the label of its row. The
            fit takes about 2 s for 20,000 rows, and 5 s for 100,000.
        weight_bound : float, optional
            An upper bound on the weights. Required with weights.
        classes : pair of labels, optional
            Both labels. Required if the data may contain only one of them.

        Returns
        -------
        self
        """
        self._check_parameters()
        refuse(scores, "one band is fitted to all rows", "segment", advice=ONE_EACH)
        data = read_rows(
            scores,
            y,
            classes=classes,
            pos_label=self.pos_label,
            groups=groups,
            importance_weight=importance_weight,
            weight_bound=weight_bound,
        )
        check_group_target(data, "groups", "every group counts the same")
        self._bound = 0.0
        self._groups = (0, 0)
        weighted = has_weights(data)
        bound = data.bounds.weight_bound
        if weighted and bound is None:
            raise InvalidTypeError(
                "weight_bound", "be given with importance weights: no limit holds without it"
            )
        rows = data.collect()
        if weighted:
            self._bound = checked_bound(weights_of(rows), bound)  # of rows that are not drawn too
        self._set(self._steps(rows), rows.known, rows.facts(drawn=False))
        if self.is_refuted_:
            warn_caller(
                "the rate falls somewhere as the score rises, so there is no band:"
                f" {self.refutation_}"
            )
        return self

    def _steps(self, rows: MemoryRows) -> BandSteps:
        """The band for plain rows, for groups, or for rows whose weights have a bound."""
        alpha = 1.0 - self.confidence_level
        if rows.groups is None and not self._bound:
            return BandSteps.of(ScoreCounts.of(rows.scores, rows.codes), self.n_cells, alpha)
        pilot = None
        most = self._bound or 1.0
        if rows.groups is None:
            counted = ScoredUnits.of_rows(rows, most)
        else:
            pilot, counted = ScoredUnits.pilot_and_counted(rows, most, self.random_state)
            self._groups = (counted.n_units, pilot.n_units)
        source = RandomSource.of(self.random_state, "order of bets", rows=rows.fingerprint())
        return BandSteps.of_units(counted, pilot, self.n_cells, alpha, source.generator())

    @classmethod
    def from_cells(cls, cells: ScoreCounts, classes: Classes, confidence_level: float) -> Self:
        """The band for rows of which only the counts between scores are known, in increasing order."""
        band = cls(confidence_level=confidence_level)
        band._set(BandSteps.of(cells, band.n_cells, 1.0 - confidence_level), classes)
        return band

    def _set(self, steps: BandSteps, classes: Classes, facts: RowFacts = RowFacts()) -> None:  # noqa: B008 - frozen
        self.steps_ = steps
        self._facts = facts
        self._read = tuple[str, ...]()
        self.n_rows_ = steps.n_rows
        self.n_runs_ = steps.n_runs
        self.refutation_ = steps.refutation
        self.is_refuted_ = steps.refutation is not None
        self.classes_ = classes.labels
        self.positive_index_ = classes.positive_index
        self.n_features_in_ = 1

    @predicts
    def predict_interval(self, scores: ArrayLike) -> FloatArray:
        """Return limits on the rate at each score, shape (n, 2).

        They are [0, 1] if the assumption is refuted.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
            Any scores.
        """
        check_is_fitted(self)
        checked = np.asarray(
            as_scores(scores, positive_column=self.positive_index_), dtype=np.float64
        )
        if self.is_refuted_:
            return np.column_stack([np.zeros(checked.size), np.ones(checked.size)])
        return np.column_stack(self.steps_.at(checked))

    @property
    def knots_(self) -> FloatArray:
        """Scores at which a limit changes, in increasing order."""
        check_is_fitted(self)
        return np.union1d(self.steps_.lower_knots, self.steps_.upper_knots)

    def largest_error(self) -> ScoreFinding | None:
        """Return the score with the largest error shown, for scores that are probabilities.

        None if no error is shown.
        """
        knots = self.knots_
        if self.is_refuted_ or not knots.size:
            return None
        # between two knots a limit is constant, so the distance is largest at one of them
        lower, upper = self.steps_.at(knots)
        gap = np.maximum(lower - knots, knots - upper)
        place = int(gap.argmax())
        if gap[place] <= 0.0:
            return None
        too_low = bool(lower[place] > knots[place])
        return ScoreFinding(
            float(knots[place]), float((lower if too_low else upper)[place]), too_low
        )

    @property
    def guarantee_(self) -> BandGuarantee:
        """What is claimed."""
        check_is_fitted(self)
        counted, pilot = self._groups
        weighted = self._bound > 0.0
        rate = "the rate of a row drawn at random from a new group" if counted else "the rate"
        where = " in the weighted population" if weighted else ""
        assumed = [
            f"{rate}{where} does not fall as the score rises",
            _INDEPENDENT[counted > 0, weighted],
            "the scores come from a model that was not trained on these rows",
        ]
        of_groups = of_weights = ""
        if counted:
            of_groups = (
                f"All rows of {numbers.counted(counted, 'group')} are counted;"
                f" {numbers.counted(pilot, 'pilot group')} only decide where the runs begin and end."
                " This is about a row drawn at random from a new group, and every group counts the"
                " same."
            )
        if weighted:
            of_weights = "Each row counts by its weight: this is about the weighted population."
            assumed.append(f"no importance weight exceeds {self._bound:g}")
        level = float(self.confidence_level)
        return BandGuarantee(level, self.steps_, tuple(assumed), of_groups, of_weights, self._read)

    def _table(self, coverage: float) -> Table:
        """A table with a cut wherever a limit changes: a lower limit applies from its knot on, an
        upper one after its knot.
        """
        check_is_fitted(self)
        cuts = np.union1d(self.steps_.lower_knots, np.nextafter(self.steps_.upper_knots, np.inf))
        lower, upper = self.predict_interval(np.append(-LARGEST, cuts)).T
        return Table(
            (steps_everywhere(cuts),),
            (lower + upper) / 2.0,
            coverage,
            (written_by("MonotoneBand"), self.guarantee_.sentence),
            lower=lower,
            upper=upper,
            named={"lower": "lower", "upper": "upper"},
        )

    @property
    def _known(self) -> Classes:
        return Classes(self.classes_, self.positive_index_)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted band as plain JSON values; `from_dict` reads it back."""
        check_is_fitted(self)
        return Saved.to_dict(self)

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        band = cls(confidence_level=values["confidence_level"], n_cells=values["n_cells"])
        band._bound = values["_bound"]
        band._groups = values["_groups"]
        steps = BandSteps(
            values["steps_.lower_knots"],
            values["steps_.lower"],
            values["steps_.upper_knots"],
            values["steps_.upper"],
            values["n_rows_"],
            values["n_runs_"],
            values["refutation_"],
        )
        n_units = band._groups[0] or steps.n_rows
        steps.check(n_units, 1.0 - band.confidence_level)
        band._set(steps, values["_known"], values["_facts"])
        band._read = ("rows", "limits")
        return band
