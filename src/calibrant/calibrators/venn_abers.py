"""Venn-Abers: two isotonic fits for every score, one for each label it may have; exact and fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant import kernels
from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.claims import BINNED_INSTEAD, WeakerGuarantee
from calibrant.calibrators.curves.curve_calibrator import CurveCalibrator
from calibrant.calibrators.score_calibrator import FACTS
from calibrant.calibrators.tables.steps import steps_everywhere
from calibrant.calibrators.tables.table import StepFunction, Table
from calibrant.cells.tally import ScoreCounts
from calibrant.errors import InvalidValueError
from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.kernels.venn_abers import multiprobabilities
from calibrant.params.frames import predicts
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import Choice, RuleTable
from calibrant.params.state_kinds import Numbers
from calibrant.sample.reader import ONE_EACH, check_no_weights, one_row_each, refuse
from calibrant.sample.sample import Sample
from calibrant.text.sentences import shown

LOSS = Choice(("log", "brier"))
_MANY_SCORES = 100_000
"""With at least this many scores, a lookup table over the steps is faster."""

VENN_KNOWN = (
    "of the two probabilities, the one that belongs to the true label is perfectly calibrated, E[Y"
    " | p_Y] = p_Y, for every distribution, if the future row and the calibration rows are"
    " exchangeable (Vovk and Petej 2014); which one that is cannot be known beforehand"
)
_KNOWN = WeakerGuarantee(
    reason=(
        "none is known for the one merged probability, and [p0, p1] is not a confidence interval"
    ),
    because=(
        "Where m rows are pooled its width is about 1/m, but the error of any estimate is about"
        " 1/sqrt(m)"
    ),
    known=VENN_KNOWN,
    advice=BINNED_INSTEAD,
)


@dataclass(eq=False, repr=False, kw_only=True)
class VennAbersCalibrator(CurveCalibrator):
    """Inductive Venn-Abers: the isotonic fit at a score, once with the score added as a 0 and once
    as a 1.

    Claimed, for every distribution, if the future row and the calibration rows are exchangeable: of
    the two probabilities p0 and p1, the one for the true label is perfectly calibrated. You cannot
    know beforehand which one that is, so this does not bound the error of `predict`, and [p0, p1]
    is **not** a confidence interval for the true rate: with 100 rows it contained the true rate in
    8 of 100 draws. p1 - p0 shows how much a single row could still move the fit.

    Parameters
    ----------
    loss : {"log", "brier"}, default="log"
        The loss by which `predict` merges the two into one probability, which minimises the largest
        regret over both labels in log loss or Brier score.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.

    Attributes
    ----------
    cuts_ : array of shape (m,)
        Where p0 or p1 changes; these steps are stored, not the rows.
    p0_, p1_ : arrays of shape (m + 1,)
        The two probabilities between the cuts.
    guarantee_ : WeakerGuarantee
        What is known, and why there is no bound.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    The merged probability is p1 / (1 - p0 + p1) for log loss, and p1 + (p0^2 - p1^2) / 2 for the
    Brier score. Tied scores are merged before pooling. The fit is one sort and a linear pass, exact
    in whole numbers; a prediction is one binary search. See `calibrant.kernels.venn_abers`.

    References
    ----------
    Vovk and Petej (2014), "Venn-Abers predictors". Vovk, Petej and Fedorova (2015), "Large-scale
    probabilistic predictors with and without guarantees of validity".

    Examples
    --------
    >>> from calibrant import VennAbersCalibrator
    >>> calibrator = VennAbersCalibrator().fit([1, 3, 4, 6, 7, 9], [0, 1, 0, 1, 0, 1])
    >>> calibrator.predict_multiprobability([0, 6.5, 10]).round(4)
    array([[0.    , 0.5   ],
           [0.4   , 0.6667],
           [0.5   , 1.    ]])
    >>> calibrator.predict([0, 6.5, 10]).round(4)
    array([0.3333, 0.5263, 0.6667])
    """

    _learned: ClassVar[EntryTable] = {
        "cuts": Entry(Numbers(increasing=True), of="cuts_"),
        "p0": Entry(Numbers(low=0.0, high=1.0), of="p0_"),
        "p1": Entry(Numbers(low=0.0, high=1.0), of="p1_"),
        "facts": FACTS,
    }
    _claim: ClassVar[NoGuarantee] = _KNOWN
    reaches_ends: ClassVar[bool] = False
    merges_folds: ClassVar[bool] = True

    _rules: ClassVar[RuleTable] = {"loss": LOSS}

    loss: str = "log"

    def fit(  # type: ignore[override]  # without weights
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Fit p0 and p1; arguments as in `PlattCalibrator.fit`.

        Importance weights are not supported: rows with different weights are not exchangeable,
        which Venn prediction requires. With `groups`, one row from each group is drawn at random
        and the others are not used: the claim is then about a row drawn at random from a new group.
        """
        self._check_parameters()
        check_no_weights(scores, "rows with different weights are not exchangeable")
        refuse(scores, "one calibration curve is fitted to all rows", "segment", advice=ONE_EACH)
        beside = {"sample_weight": sample_weight, "groups": groups, "classes": classes}
        return self._fit_rows(one_row_each(self._read(scores, y, **beside)))

    def _learn(self, rows: ScoreCounts) -> dict[str, Any]:
        z = rows.scores
        at_p0, at_p1 = multiprobabilities(*rows.whole)
        # p0 is constant on [z_j, z_j+1) and 0 below all scores; p1 is constant on (z_j, z_j+1] and
        # 1 above all
        p0 = np.concatenate([[0.0], at_p0])
        p1 = np.append(at_p1, 1.0)
        cuts = np.unique(
            np.concatenate([z[p0[1:] != p0[:-1]], np.nextafter(z[p1[1:] != p1[:-1]], np.inf)])
        )
        cuts = cuts[np.isfinite(cuts)]
        starts = np.concatenate([[-np.inf], cuts])
        return {
            "cuts": cuts.tolist(),
            "p0": p0[np.searchsorted(z, starts, side="right")].tolist(),
            "p1": p1[np.searchsorted(z, starts, side="left")].tolist(),
        }

    def _check_curve(self) -> None:
        n_steps = self.cuts_.size + 1
        if not self.p0_.size == self.p1_.size == n_steps:
            got = f"{self.p0_.size:,} and {self.p1_.size:,}"
            raise InvalidValueError("p0 and p1", f"have {n_steps:,} entries", got=got)
        if not ((self.p0_ < 1.0) & (self.p0_ <= self.p1_) & (self.p1_ > 0.0)).all():
            rule = "be probabilities with p0 <= p1, p0 < 1 and p1 > 0"
            raise InvalidValueError("p0 and p1", rule, got=shown(self.p0_.tolist()))

    def _curve(self, scores: FloatArray) -> FloatArray:
        return self._step(scores, merged(self.p0_, self.p1_, self.loss))

    @predicts
    def predict_multiprobability(self, scores: ArrayLike) -> FloatArray:
        """Return p0 and p1, shape (n, 2): the probability of the positive class if the row's own
        label is 0, or 1.

        They are not limits of a confidence interval.
        """
        return self._step(self._checked(scores), np.column_stack([self.p0_, self.p1_]))

    def _step(self, scores: FloatArray, table: FloatArray) -> FloatArray:
        """Each score's entry or row in a table between the cuts."""
        if scores.size < _MANY_SCORES:
            return np.asarray(table[self.cuts_.searchsorted(scores, side="right")])
        return kernels.look_up(scores, self.cuts_, table)

    def _step_function(self) -> StepFunction:
        return StepFunction(self.cuts_, merged(self.p0_, self.p1_, self.loss))

    def _own_table(self, coverage: float) -> Table:
        found = self._step_function()
        return self._curve_table(found.values, None, coverage, steps_everywhere(found.cuts))


def merged(p0: FloatArray, p1: FloatArray, loss: str) -> FloatArray:
    """Merge two probabilities into one with the smallest worst-case regret."""
    return p1 / (1.0 - p0 + p1) if loss == "log" else p1 + (p0**2 - p1**2) / 2
