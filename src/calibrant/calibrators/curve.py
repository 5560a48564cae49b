"""Calibrators that are a curve: one number in, one number out, learned from rows gathered by score."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from calibrant._input import as_scores
from calibrant._labels import Classes
from calibrant._params import check_real, check_state
from calibrant._typing import ArrayLike, FloatArray
from calibrant.calibrators.base import ScoreCalibrator
from calibrant.calibrators.distinct import DistinctScores
from calibrant.errors import InvalidValueError
from calibrant.guarantee import NoGuarantee
from calibrant.rows import ScoredData, read_rows

SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)
"""Probabilities are kept this far from 0 and 1 before a logarithm is taken."""


class CurveCalibrator(ScoreCalibrator):
    """A calibrator whose state is a few numbers.

    A subclass says how they are learned (`_learn`), which they are (`_state`, `_take`), and what the curve is
    (`_curve`). `fit` restores what `_learn` gave, so a saved and a fitted calibrator go through the same door.
    """

    __metadata_request__fit = {"scores": UNUSED}  # noqa: RUF012 - scikit-learn reads it off the class
    __metadata_request__predict = {"scores": UNUSED}  # noqa: RUF012
    __metadata_request__predict_proba = {"scores": UNUSED}  # noqa: RUF012

    pos_label: Any
    classes: Any
    _keys: ClassVar[tuple[str, ...]]

    @abstractmethod
    def _learn(self, rows: DistinctScores) -> dict[str, Any]:
        """The state that fits the rows best, as plain JSON values."""

    @abstractmethod
    def _take(self, state: Mapping[str, Any]) -> None:
        """Set what was learned, from plain JSON values."""

    @abstractmethod
    def _curve(self, scores: FloatArray) -> FloatArray:
        """The calibrated probability of checked scores; numpy's floating point warnings are off."""

    @abstractmethod
    def _promise(self) -> NoGuarantee:
        """What is said in place of a guarantee."""

    def _check_scores(self, scores: NDArray[Any]) -> None:
        """Refuse scores the curve has no value for."""

    def fit(
        self,
        scores: ArrayLike | ScoredData,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the curve.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`; or ScoredData
            Scores of rows the model was not trained on; or data that hold scores and labels, see `calibrant.scored`,
            whose rows are brought into memory.
        y : array-like of shape (n,)
            Their labels, of two classes.
        sample_weight : array-like of shape (n,), optional
            Whole numbers: how many identical rows each row stands for.

        Returns
        -------
        self
        """
        self._check_parameters()
        rows = read_rows(
            scores, y, classes=self.classes, pos_label=self.pos_label, sample_weight=sample_weight
        ).collect()
        distinct = DistinctScores.of(rows.scores, rows.codes, rows.repeats)
        self._check_scores(distinct.scores)
        with np.errstate(all="ignore"):
            state = self._learn(distinct)
        self._restore(state, rows.known)
        return self

    def predict(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated probability of the positive label, shape (n,)."""
        with np.errstate(all="ignore"):
            return self._curve(self._checked(scores))

    def _checked(self, scores: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        checked = as_scores(scores, positive_column=self._positive_index)
        self._check_scores(checked)
        # contiguous doubles: numpy may round a logarithm differently for strided ones
        return np.ascontiguousarray(checked, dtype=np.float64)

    def _restore(self, state: Mapping[str, Any], classes: Classes) -> None:
        self._check_parameters()
        check_state(state, self._keys)
        self._take(state)
        self.guarantee_ = self._promise()
        self._set_classes(classes)


def check_probabilities(scores: NDArray[Any], advice: str) -> None:
    """Refuse scores outside [0, 1]."""
    if scores.size and (float(scores.min()) < 0.0 or float(scores.max()) > 1.0):
        bad = np.flatnonzero((scores < 0) | (scores > 1))
        got = f"{float(scores[bad[0]])!r}, and {bad.size} such scores in all"
        raise InvalidValueError(f"scores must be probabilities in [0, 1]; got {got}: {advice}")


def inside(probabilities: FloatArray) -> FloatArray:
    """Probabilities kept away from 0 and 1, so that their logarithms are finite."""
    return np.clip(probabilities, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)


def read_number(state: Mapping[str, Any], name: str) -> float:
    """A finite number of a saved state."""
    return check_real(name, state[name], rule="a finite number")
