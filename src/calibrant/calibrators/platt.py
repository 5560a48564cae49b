"""Platt scaling: a logistic curve over any real score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from calibrant._typing import FloatArray
from calibrant.calibrators.curve_calibrator import CurveCalibrator, fit_logistic
from calibrant.calibrators.score_calibrator import FACTS
from calibrant.calibrators.table import Table
from calibrant.cells.lines import Lines
from calibrant.cells.score_counts import ScoreCounts
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import Flag, Number, RuleTable


@dataclass(eq=False, repr=False, kw_only=True)
class PlattCalibrator(CurveCalibrator):
    """Platt scaling: turn scores into probabilities by a logistic curve, fitted by maximum
    likelihood.

    Guarantee: none; `guarantee_` says why. The curve gives different scores different values, and
    no such map is calibrated for every distribution, however large the sample (Theorem 3 of Gupta,
    Podkopaev and Ramdas 2020). It is a good first choice if you have few rows;
    `ScalingBinningCalibrator` puts bins with a guarantee on top of it.

    Parameters
    ----------
    smoothing : bool, default=True
        Fit to Platt's targets, (n1 + 1) / (n1 + 2) for positives and 1 / (n0 + 2) for negatives,
        rather than 1 and 0. This is what scikit-learn's "sigmoid" does.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.

    Attributes
    ----------
    slope_, intercept_ : float
        The curve is 1 / (1 + exp(-(intercept_ + slope_ * score))).
    guarantee_ : NoGuarantee
        Why nothing is guaranteed.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    The curve minimises the mean of log(1 + exp(z)) - t z, z = intercept + slope * score, over
    targets t. A penalty of 1e-12 on the squared coefficients of the standardised score gives a
    finite curve in cases where there would be none: with `smoothing=False`, for labels that a
    threshold separates, or of one class only. A score that never varies gets slope 0.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import PlattCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=10_000)
    >>> y = rng.uniform(size=10_000) < 1 / (1 + np.exp(1 - 2 * scores))
    >>> calibrator = PlattCalibrator().fit(scores, y)
    >>> round(calibrator.slope_, 2), round(calibrator.intercept_, 2)
    (1.97, -1.01)
    >>> calibrator.guarantee_.epsilon is None
    True
    """

    _learned: ClassVar[EntryTable] = {
        "slope": Entry(Number(), of="slope_"),
        "intercept": Entry(Number(), of="intercept_"),
        "facts": FACTS,
    }

    _rules: ClassVar[RuleTable] = {"smoothing": Flag()}

    smoothing: bool = True

    def _learn(self, rows: ScoreCounts) -> dict[str, Any]:
        n_positive = rows.n_positive
        n_negative = rows.n_rows - n_positive
        high = (n_positive + 1) / (n_positive + 2) if self.smoothing else 1.0
        low = 1 / (n_negative + 2) if self.smoothing else 0.0
        targets = (rows.positives * high + (rows.counts - rows.positives) * low) / rows.counts
        slopes, intercept, _ = fit_logistic(
            rows.scores[:, None], targets, rows.counts.astype(np.float64)
        )
        return {"slope": float(slopes[0]), "intercept": intercept}

    def _curve(self, scores: FloatArray) -> FloatArray:
        return np.asarray(expit(self.slope_ * scores + self.intercept_))

    def _own_table(self, coverage: float) -> Table:
        line = Lines(np.zeros(1), np.array([self.slope_]), logit=True)
        return self._curve_table(np.array([self.intercept_]), line, coverage)
