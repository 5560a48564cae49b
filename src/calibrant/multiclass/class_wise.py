"""Class-wise calibration: every class against the rest, all within one error budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import ArrayLike, FloatArray, IndexArray
from calibrant.calibrators.regions.parameters import DataAssumptions
from calibrant.calibrators.regions.weakness import (
    reported_by_caller,
    warn_if_weak,
    warn_of_cap,
)
from calibrant.errors import InvalidValueError
from calibrant.guarantee.class_wise import ClassWiseGuarantee
from calibrant.multiclass.class_columns import ColumnsCalibrator, OneClass
from calibrant.params.frames import predicts
from calibrant.params.rules import error_budget
from calibrant.params.saved_state import check_state
from calibrant.text.sentences import shown


class ClassWiseCalibrator(ColumnsCalibrator):
    """Calibrate every class against the rest, all within one error budget.

    Guarantee, for every distribution: with probability at least `confidence_level` over the
    calibration data, for every class and every region of its score simultaneously, the average
    predicted probability is within the region's epsilon of the true rate of the class; with
    `method="binning"` the rate lies in the bin's interval. Assumptions: calibration and future rows
    are independent draws from one distribution, and the model was not trained on the calibration
    rows.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        Number of regions for each class. "auto" is as in the calibrator that `method` names.
    method : {"curve", "binning"}, default="curve"
        A curve, see `Calibrator`, or one value per bin.
    confidence_level, interval, value
        As in `BinningCalibrator`; `value` is for bins.

    Attributes
    ----------
    guarantee_ : ClassWiseGuarantee
        The guarantee, over all classes simultaneously.
    calibrators_ : tuple of Calibrator or BinningCalibrator
        One per class, in the order of `classes_`.
    classes_ : array of shape (L,)
        The labels, in the order of the columns.

    Notes
    -----
    Class l is calibrated against the rest at level 1 - alpha / L. The classes share their rows, so
    their intervals are dependent; Bonferroni over classes, unlike Sidak, holds under any
    dependence. The probabilities of the classes are calibrated one by one and need not add up to 1:
    dividing by their sum would invalidate the guarantee.

    References
    ----------
    Gupta and Ramdas (2022), "Top-label calibration and multiclass-to-binary reductions".

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import ClassWiseCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.dirichlet([1.0, 1.0, 1.0], size=9000)
    >>> y = (rng.uniform(size=(9000, 1)) > scores.cumsum(axis=1)).sum(axis=1)
    >>> calibrator = ClassWiseCalibrator(n_bins=5).fit(scores, y)
    >>> calibrator.predict_proba([[0.1, 0.1, 0.8]]).round(2), calibrator.predict([[0.1, 0.1, 0.8]])
    (array([[0.1, 0.1, 0.8]]), array([2]))
    >>> calibrator.predict_interval([[0.1, 0.1, 0.8]]).shape
    (1, 3, 2)
    """

    _key: ClassVar[str] = "calibrators"
    calibrators_: tuple[OneClass, ...]
    guarantee_: ClassWiseGuarantee

    def _fit(
        self,
        columns: FloatArray,
        label: IndexArray,
        classes: NDArray[Any],
        assumptions: DataAssumptions,
        **beside: ArrayLike | None,
    ) -> None:
        """Calibrate each column of scores against whether the label is that column's class."""
        level = self._level(classes.size)
        told: dict[str, Any] = {"classes": (0, 1), **assumptions.to_dict(), **beside}
        with reported_by_caller():
            fitted = [
                self._calibrator(level).fit(
                    np.ascontiguousarray(columns[:, k]),
                    (label == k).astype(np.uint8),
                    **told,
                )
                for k in range(classes.size)
            ]
        self.assumptions_ = assumptions
        self._set_calibrators(tuple(fitted), classes)
        name, weakest = max(
            self.guarantee_.guarantees.items(), key=lambda one: one[1].stated.epsilon
        )
        warn_if_weak(weakest, of=f" of class {name!r}")
        for own, guarantee in self.guarantee_.guarantees.items():
            warn_of_cap(self, guarantee, of=f" of class {own!r}")

    def _level(self, n_classes: int) -> float:
        return 1.0 - error_budget(self.confidence_level) / n_classes

    def _set_calibrators(self, calibrators: tuple[OneClass, ...], classes: NDArray[Any]) -> None:
        guarantees = {}
        for calibrator, label in zip(calibrators, classes.tolist(), strict=True):
            guarantees[label] = calibrator.guarantee_ = replace(
                calibrator.guarantee_, positive_label=label
            )
            calibrator.score_range_seen_ = None  # a single column does not show the scale
        self.calibrators_ = calibrators
        read = tuple(dict.fromkeys(part for one in guarantees.values() for part in one.read))
        self.guarantee_ = ClassWiseGuarantee(float(self.confidence_level), guarantees, read=read)
        self._set_classes(classes)

    @predicts
    def predict(self, scores: ArrayLike) -> NDArray[Any]:
        """Return the most probable class, shape (n,).

        Ties go to the class with the highest score.
        """
        columns = self._columns(scores)
        probabilities = self.predict_proba(scores)
        highest = probabilities == probabilities.max(axis=1, keepdims=True, initial=0.0)
        return np.asarray(self.classes_[np.where(highest, columns, -np.inf).argmax(axis=1)])

    @predicts
    def predict_proba(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated probability of every class, shape (n, L).

        A row need not add up to 1.
        """
        return self._of_classes(scores, "predict")

    @predicts
    def predict_interval(self, scores: ArrayLike) -> FloatArray:
        """Return confidence limits on the probability of every class, shape (n, L, 2), valid for
        all classes and bins simultaneously.
        """
        return self._of_classes(scores, "predict_interval")

    @predicts
    def predict_rate_interval(self, scores: ArrayLike) -> FloatArray:
        """Return confidence limits for the true rate of every class in the region of its score,
        shape (n, L, 2), valid for all classes and regions simultaneously.
        """
        return self._of_classes(scores, "predict_rate_interval")

    def _of_classes(self, scores: ArrayLike, method: str) -> FloatArray:
        """The answers of the calibrators of all classes, each for its column of scores."""
        columns = self._columns(scores)  # which refuses an estimator that is not fitted
        pairs = zip(self.calibrators_, columns.T, strict=True)
        return np.stack([getattr(one, method)(column) for one, column in pairs], axis=1)

    def _state(self) -> list[dict[str, Any]]:
        return [calibrator._state() for calibrator in self.calibrators_]

    def _restore(self, saved: Any) -> None:
        size = self.classes_.size
        if not isinstance(saved, list | tuple) or len(saved) != size:
            raise InvalidValueError(
                "calibrators",
                f"be a list with one entry per class, {size}",
                got=shown(saved),
            )
        restored = []
        for state in saved:
            check_state(state)
            binned = self._restored(self._level(size), state)
            restored.append(binned)
            if list(binned.partition_.bins_by_segment) != [None]:
                raise InvalidValueError(
                    "partition",
                    "be bins of one score",
                    got=type(binned.partition_).__name__,
                )
        self._set_calibrators(tuple(restored), self.classes_)
