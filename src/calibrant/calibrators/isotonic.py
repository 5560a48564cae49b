"""Isotonic regression: the best curve among those that never fall."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from calibrant._input import as_numbers
from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.claims import BINNED_INSTEAD, WeakerGuarantee
from calibrant.calibrators.curve import CurveCalibrator
from calibrant.calibrators.distinct import DistinctScores
from calibrant.errors import InvalidValueError
from calibrant.guarantee import NoGuarantee

_KNOWN = WeakerGuarantee(
    reason=(
        "isotonic regression is not injective, so a guarantee is not impossible, but it chooses its "
        "steps by looking at the labels, so the labels of a step are not independent draws and their interval would "
        "not hold"
    ),
    known=(
        "on the rows it was fitted on, the rate of positives on each step equals the step's value; and where the true "
        "rate never falls as the score rises, the curve converges to it as rows are added"
    ),
    advice=BINNED_INSTEAD,
)


class IsotonicCalibrator(CurveCalibrator):
    """Turn any real scores into probabilities by the non-decreasing curve that fits the labels best.

    Claimed: no epsilon; `guarantee_` says what is known instead. Assumed for the little that is known: calibration and
    future rows are independent draws from one distribution, whose rate of positives never falls as the score rises.

    Parameters
    ----------
    pos_label : object, default=None
        The label that a high score speaks for; needed unless the labels are 0 and 1, -1 and 1, or bools.
    classes : pair of labels, default=None
        Both labels, needed where the data may hold one of them only.

    Attributes
    ----------
    thresholds_, values_ : arrays of shape (m,)
        The curve's corners; straight in between, and flat outside.
    guarantee_ : WeakerGuarantee
        What is known, and why there is no epsilon.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    Minimised is the sum of (y - g(score))^2 over non-decreasing g, by pooling adjacent violators, with tied scores
    merged before pooling. As in scikit-learn the curve is interpolated between neighbouring distinct scores. Unlike
    there, scores nearer to each other than 1e-15 stay apart: for scores that are tiny probabilities this matters.

    References
    ----------
    Zadrozny and Elkan (2002), "Transforming classifier scores into accurate multiclass probability estimates". Barlow,
    Bartholomew, Bremner and Brunk (1972), "Statistical inference under order restrictions".

    Examples
    --------
    >>> from calibrant import IsotonicCalibrator
    >>> calibrator = IsotonicCalibrator().fit([1, 3, 4, 6, 7, 9], [0, 1, 0, 1, 0, 1])
    >>> calibrator.predict([0, 3, 5, 6.5, 10])
    array([0. , 0.5, 0.5, 0.5, 1. ])
    """

    _keys: ClassVar[tuple[str, ...]] = ("thresholds", "values")
    thresholds_: FloatArray
    values_: FloatArray

    def __init__(self, *, pos_label: Any = None, classes: ArrayLike | None = None) -> None:
        self.pos_label = pos_label
        self.classes = classes

    def _learn(self, rows: DistinctScores) -> dict[str, Any]:
        from sklearn.isotonic import isotonic_regression

        weights = rows.counts.astype(np.float64)
        values = isotonic_regression(rows.positives / weights, sample_weight=weights, y_min=0.0, y_max=1.0)
        flat = values[1:] == values[:-1]
        corner = ~(np.append(flat, False) & np.append(False, flat))  # inside a flat stretch nothing turns
        return {"thresholds": rows.scores[corner].tolist(), "values": values[corner].tolist()}

    def _state(self) -> dict[str, Any]:
        return {"thresholds": self.thresholds_.tolist(), "values": self.values_.tolist()}

    def _take(self, state: Mapping[str, Any]) -> None:
        thresholds, values = (as_numbers(state[name], name) for name in self._keys)
        if thresholds.shape != values.shape or not thresholds.size:
            raise InvalidValueError(f"values must have one entry per threshold, {thresholds.size}; got {values.size}")
        if (np.diff(thresholds) <= 0.0).any() or (np.diff(values, prepend=0.0, append=1.0) < 0.0).any():
            raise InvalidValueError("thresholds must increase, and values must not fall, from 0 to 1; got others")
        self.thresholds_, self.values_ = thresholds, values

    def _curve(self, scores: FloatArray) -> FloatArray:
        return _interpolate(scores, self.thresholds_, self.values_)

    def _promise(self) -> NoGuarantee:
        return _KNOWN


def _interpolate(scores: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Piecewise linear, never outside the two values at hand, and finite for thresholds as far apart as doubles are."""
    right = np.clip(np.searchsorted(x, scores, side="left"), 0, x.size - 1)
    left = np.maximum(right - 1, 0)
    width = x[right] / 2 - x[left] / 2
    share = np.where(width > 0.0, (scores / 2 - x[left] / 2) / np.where(width > 0.0, width, 1.0), 1.0)
    share = np.clip(share, 0.0, 1.0)
    between = y[left] + share * (y[right] - y[left])
    return np.where(share == 1.0, y[right], np.clip(between, y[left], y[right]))
