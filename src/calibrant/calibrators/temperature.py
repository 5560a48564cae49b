"""Temperature scaling: one number that makes probabilities more or less extreme."""

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
    inner,
)
from calibrant.calibrators.score_calibrator import FACTS
from calibrant.calibrators.table import Table, steps_of_probabilities
from calibrant.cells.lines import Lines
from calibrant.cells.score_counts import ScoreCounts
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import Choice, Number, RuleTable
from calibrant.text.sentences import Setting

SCALES = ("probability", "logit")
_LOWEST = np.exp(-10.0)
_HIGHEST = np.exp(10.0)


@dataclass(eq=False, repr=False, kw_only=True)
class TemperatureCalibrator(CurveCalibrator):
    """Divide the logit of each probability by one learned temperature.

    Guarantee: none; `guarantee_` says why (Theorem 3 of Gupta, Podkopaev and Ramdas 2020). A score
    of 1/2 stays 1/2, so a wrong base rate stays wrong: this only corrects over- and
    underconfidence.

    Parameters
    ----------
    scale : {"probability", "logit"}, default="probability"
        The scale of the scores. Probabilities of exactly 0 and 1 count as 2.2e-16 and 1 - 2.2e-16,
        because their logits are infinite; those outside [0, 1] raise an error. Logits may be any
        real numbers.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.

    Attributes
    ----------
    temperature_ : float
        Above 1, the scores were overconfident; below 1, underconfident. It lies between exp(-10)
        and exp(10). The ends are reached if no finite temperature is best: for labels that the
        score 1/2 separates, or scores that rank rows in the wrong order.
    guarantee_ : NoGuarantee
        Why nothing is guaranteed.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    The log loss is convex in b = 1 / temperature, and its derivative, the mean of (1 / (1 + exp(-b
    z)) - y) z over the logits z, is increasing: the temperature is its one root, found by
    bracketing. If every z is 0, it is 1.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural networks".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import TemperatureCalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(size=20_000)
    >>> y = rng.uniform(size=20_000) < truth
    >>> overconfident = truth**2 / (truth**2 + (1 - truth) ** 2)
    >>> round(TemperatureCalibrator().fit(overconfident, y).temperature_, 2)  # logits doubled
    1.96
    """

    _learned: ClassVar[EntryTable] = {
        "temperature": Entry(Number("a number > 0", 0.0, open_low=True), of="temperature_"),
        "facts": FACTS,
    }

    _rules: ClassVar[RuleTable] = {"scale": Choice(SCALES)}

    scale: str = "probability"

    def _check_scores(self, scores: NDArray[Any]) -> None:
        if self.scale == "probability":
            check_probabilities(scores, ("for logits use ", Setting("scale", "logit")))

    def _logits(self, scores: FloatArray) -> FloatArray:
        return np.asarray(logit(inner(scores)) if self.scale == "probability" else scores)

    def _learn(self, rows: ScoreCounts) -> dict[str, Any]:
        from scipy.optimize import brentq

        z = self._logits(rows.scores)
        unit = float(np.abs(z).max())
        if unit == 0.0:
            return {"temperature": 1.0}

        def slope_at(log_b: float) -> float:
            errors = rows.counts * expit(np.exp(log_b) * z) - rows.positives
            return float((errors * (z / unit)).sum())

        low = np.log(_LOWEST)
        high = np.log(_HIGHEST)
        if slope_at(low) >= 0.0:
            best = low
        elif slope_at(high) <= 0.0:
            best = high
        else:
            best = brentq(slope_at, low, high, xtol=1e-15, rtol=1e-14)
        return {"temperature": float(np.exp(-best))}

    def _curve(self, scores: FloatArray) -> FloatArray:
        return np.asarray(expit(self._logits(scores) / self.temperature_))

    def _own_table(self, coverage: float) -> Table:
        zero = np.zeros(1)
        factor = 1.0 / self.temperature_
        if self.scale == "logit":
            return self._curve_table(zero, Lines(zero, np.array([factor]), logit=True), coverage)
        line = Lines(zero, zero, logit=True, beta=(factor, factor))
        return self._curve_table(zero, line, coverage, steps_of_probabilities())
