"""Isotonic regression, and curves that are linear between corners, of which it is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant._typing import FloatArray
from calibrant.calibrators.curve.pieces import Pieces
from calibrant.calibrators.curve_calibrator import CurveCalibrator
from calibrant.calibrators.score_calibrator import FACTS
from calibrant.calibrators.table import Table, steps_everywhere
from calibrant.cells.lines import Lines
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidValueError
from calibrant.guarantee.no_guarantee import BINNED_INSTEAD, NoGuarantee, WeakerGuarantee
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.state_kinds import Numbers
from calibrant.text.sentences import shown


@dataclass(eq=False, repr=False, kw_only=True)
class CornerCalibrator(CurveCalibrator):
    """A calibrator that learns `thresholds_` and `values_`, the corners of a monotone curve.

    A subclass that may decrease sets `may_fall`.
    """

    _learned: ClassVar[EntryTable] = {
        "thresholds": Entry(Numbers(increasing=True), of="thresholds_"),
        "values": Entry(Numbers(size="thresholds", low=0.0, high=1.0), of="values_"),
        "facts": FACTS,
    }
    may_fall: ClassVar[bool] = False

    def _check_curve(self) -> None:
        if not self.thresholds_.size:
            raise InvalidValueError("thresholds", "be at least one", got="none")
        rises = np.diff(self.values_)
        if (rises < 0.0).any() and not (self.may_fall and (rises <= 0.0).all()):
            rule = "not both rise and fall" if self.may_fall else "not fall"
            raise InvalidValueError("values", rule, got=shown(self.values_.tolist()))
        whole = ScorePartition(np.empty(0))
        self.pieces_ = Pieces.through(whole, [self.thresholds_], [self.values_])

    def _curve(self, scores: FloatArray) -> FloatArray:
        """Evaluate by start, value and slope of the piece, as exports do: the same sum, so the same
        bits.
        """
        start, value, slope = self.pieces_.table[
            np.searchsorted(self.thresholds_, scores, side="right")
        ].T
        return np.asarray(value + slope * (scores - start))

    def _own_table(self, coverage: float) -> Table:
        start, value, slope = self.pieces_.table.T
        steps = steps_everywhere(self.thresholds_)
        return self._curve_table(value, Lines(start, slope), coverage, steps)


_KNOWN = WeakerGuarantee(
    reason=(
        "isotonic regression chooses its steps from the labels, so the labels of a step are not"
        " independent draws and a binomial interval for them would not hold"
    ),
    known=(
        "on the rows it was fitted on, the rate of positives on each step equals the step's value;"
        " and if the true rate never decreases in the score, the curve converges to it as rows are"
        " added"
    ),
    advice=BINNED_INSTEAD,
)


@dataclass(eq=False, repr=False, kw_only=True)
class IsotonicCalibrator(CornerCalibrator):
    """Isotonic regression: turn scores into probabilities by the best-fitting non-decreasing curve.

    Guarantee: no bound; `guarantee_` says what is known instead. Assumed for that: calibration and
    future rows are independent draws from one distribution, whose rate of positives never decreases
    as the score increases.

    Parameters
    ----------
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.

    Attributes
    ----------
    thresholds_, values_ : arrays of shape (m,)
        The curve's corners; it is linear between them, and flat outside.
    pieces_ : Pieces
        The same curve in pieces, which `predict` and exports use.
    guarantee_ : WeakerGuarantee
        What is known, and why there is no bound.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    The curve minimises the sum of (y - g(score))^2 over non-decreasing g, by pooling adjacent
    violators, with tied scores merged before pooling. As in scikit-learn, the curve is interpolated
    between neighbouring distinct scores. Unlike in scikit-learn, scores closer than 1e-15 are kept
    apart, which matters for tiny probabilities.

    References
    ----------
    Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates". Barlow, Bartholomew, Bremner and Brunk (1972), "Statistical inference under order
    restrictions".

    Examples
    --------
    >>> from calibrant import IsotonicCalibrator
    >>> calibrator = IsotonicCalibrator().fit([1, 3, 4, 6, 7, 9], [0, 1, 0, 1, 0, 1])
    >>> calibrator.predict([0, 3, 5, 6.5, 10])
    array([0. , 0.5, 0.5, 0.5, 1. ])
    """

    _claim: ClassVar[NoGuarantee] = _KNOWN

    def _learn(self, rows: ScoreCounts) -> dict[str, Any]:
        from sklearn.isotonic import isotonic_regression

        weights = rows.counts.astype(np.float64)
        values = isotonic_regression(
            rows.positives / weights, sample_weight=weights, y_min=0.0, y_max=1.0
        )
        flat = values[1:] == values[:-1]
        corner = ~(
            np.append(flat, False) & np.append(False, flat)
        )  # nothing changes inside a flat stretch
        return {"thresholds": rows.scores[corner].tolist(), "values": values[corner].tolist()}
