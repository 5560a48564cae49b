"""Beta calibration: increasing curves on [0, 1], among them the identity, S-shapes and their
inverses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant._typing import FloatArray
from calibrant.calibrators.curve_calibrator import (
    CurveCalibrator,
    check_probabilities,
    fit_logistic,
)
from calibrant.calibrators.score_calibrator import FACTS
from calibrant.calibrators.table import Table, steps_of_probabilities
from calibrant.cells.lines import INNER_ENDS, Lines
from calibrant.cells.score_counts import ScoreCounts
from calibrant.errors import InvalidValueError
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import Choice, Number, RuleTable
from calibrant.text.sentences import Setting

PARAMETERS = ("abm", "ab", "am")
_INSIDE = Number("a number in (0, 1)", 0.0, 1.0, open_low=True, open_high=True)


@dataclass(eq=False, repr=False, kw_only=True)
class BetaCalibrator(CurveCalibrator):
    """Correct probabilities with a beta curve: logit p' = a ln p - b ln(1 - p) + c, with a, b >= 0.

    Guarantee: none; `guarantee_` says why (Theorem 3 of Gupta, Podkopaev and Ramdas 2020). Unlike
    Platt scaling, the family contains the identity, so calibrated scores stay as they are.

    Parameters
    ----------
    parameters : {"abm", "ab", "am"}, default="abm"
        "abm" learns all three; "ab" fixes the midpoint m at 1/2, so that a score of 1/2 stays 1/2;
        "am" fixes a = b, which is Platt scaling of the logit. The midpoint is tied to c by c = b
        ln(1 - m) - a ln m.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.

    Attributes
    ----------
    a_, b_, c_ : float
        The parameters of the curve.
    low_, high_ : float
        Scores are clipped to these before logarithms are taken.
    guarantee_ : NoGuarantee
        Why nothing is guaranteed.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    This is logistic regression on ln p and -ln(1 - p). If rows have scores of exactly 0 or 1, whose
    logarithms are infinite, these count as half-way to the nearest other score, in `fit` and in
    `predict`. Scores outside [0, 1] raise an error. If the best a or b is negative, the curve would
    decrease somewhere, so the best curve with a = 0 or b = 0 is used instead. Scores that rank rows
    in the wrong order give a = b = 0, the base rate for all. Separable labels get a finite curve,
    as in `PlattCalibrator`.

    References
    ----------
    Kull, Silva Filho and Flach (2017), "Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BetaCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=20_000)
    >>> y = rng.uniform(size=20_000) < scores  # calibrated already: a = b = 1, c = 0
    >>> calibrator = BetaCalibrator().fit(scores, y)
    >>> [round(number, 1) for number in (calibrator.a_, calibrator.b_, calibrator.c_)]
    [1.0, 1.0, 0.0]
    """

    _learned: ClassVar[EntryTable] = {
        "a": Entry(Number("a number >= 0", 0.0), of="a_"),
        "b": Entry(Number("a number >= 0", 0.0), of="b_"),
        "c": Entry(Number(), of="c_"),
        "low": Entry(_INSIDE, of="low_", absent=INNER_ENDS[0]),
        "high": Entry(_INSIDE, of="high_", absent=INNER_ENDS[1]),
        "facts": FACTS,
    }
    needs_probabilities: ClassVar[bool] = True

    _rules: ClassVar[RuleTable] = {"parameters": Choice(PARAMETERS)}

    parameters: str = "abm"

    def _check_scores(self, scores: NDArray[Any]) -> None:
        check_probabilities(
            scores,
            ("use ", Setting("method", "platt", python="PlattCalibrator()"), " for other scores"),
        )

    def _learn(self, rows: ScoreCounts) -> dict[str, Any]:
        low, high = _ends(rows.scores)
        p = np.clip(rows.scores, low, high)
        ends = {"low": low, "high": high}
        if self.parameters == "am":
            (slope,), c = _increasing(logit(p)[:, None], rows, intercept=True)
            return {"a": slope, "b": slope, "c": c, **ends}
        has_midpoint = self.parameters == "abm"
        shift = (
            0.0 if has_midpoint else np.log(2.0)
        )  # m = 1/2: the features are ln(2p) and -ln(2(1 - p))
        features = np.column_stack([np.log(p) + shift, -np.log1p(-p) - shift])
        (a, b), c = _increasing(features, rows, intercept=has_midpoint)
        return {"a": a, "b": b, "c": c if has_midpoint else float((a - b) * shift), **ends}

    def _check_curve(self) -> None:
        if self.low_ > self.high_:
            raise InvalidValueError("low", f"be at most high, {self.high_:g}", got=f"{self.low_:g}")

    def _curve(self, scores: FloatArray) -> FloatArray:
        p = np.clip(scores, self.low_, self.high_)
        return np.asarray(expit(self.a_ * np.log(p) - self.b_ * np.log1p(-p) + self.c_))

    def _own_table(self, coverage: float) -> Table:
        zero = np.zeros(1)
        line = Lines(zero, zero, logit=True, beta=(self.a_, self.b_), ends=(self.low_, self.high_))
        return self._curve_table(np.array([self.c_]), line, coverage, steps_of_probabilities())


def _ends(scores: FloatArray) -> tuple[float, float]:
    """What increasing scores are clipped to: an end that rows lie on is moved half-way to the
    nearest other score.
    """
    low, high = INNER_ENDS
    inside = scores[(scores > 0.0) & (scores < 1.0)]
    first, last = (float(inside[0]), float(inside[-1])) if inside.size else (0.5, 0.5)
    if scores[0] == 0.0:
        low = max(low, first / 2.0)
    if scores[-1] == 1.0:
        high = min(high, (1.0 + last) / 2.0)
    return low, high


def _increasing(
    features: FloatArray, rows: ScoreCounts, *, intercept: bool
) -> tuple[list[float], float]:
    """Nonnegative coefficients of the best curve: the free optimum, or else the best on the
    boundary.

    The loss is convex, so if the free optimum is outside, the best curve inside has a coefficient
    of 0.
    """
    targets = rows.positives / rows.counts
    weights = rows.counts.astype(np.float64)
    free, offset, _ = fit_logistic(features, targets, weights, intercept=intercept)
    if (free >= 0.0).all():
        return free.tolist(), offset
    k = features.shape[1]
    candidates: list[tuple[float, list[float], float]] = []
    for kept in range(k) if k > 1 else ():
        (slope,), offset, loss = fit_logistic(
            features[:, [kept]], targets, weights, intercept=intercept
        )
        if slope >= 0.0:
            coefficients = [0.0] * k
            coefficients[kept] = float(slope)
            candidates.append((loss, coefficients, offset))
    if not candidates:
        constant = np.zeros((len(targets), 1))
        return [0.0] * k, fit_logistic(constant, targets, weights, intercept=intercept)[1]
    _, best, offset = min(candidates)
    return best, offset
