"""What calibrators of scores have in common: classes, probabilities of both labels, and state that is plain JSON."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibrant._labels import Classes
from calibrant._params import check_state
from calibrant._typing import ArrayLike, FloatArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import Guarantee, NoGuarantee

_SCHEMA = "calibrant.calibrator/1"
_NOT_SAVED = ("classes", "n_jobs", "partition", "random_state", "ratio")


class ScoreCalibrator(BaseEstimator):  # type: ignore[misc]
    """A map from scores to probabilities of the positive label, learned from scores and labels.

    A subclass sets what it learned with `_set_classes` and attributes of its own, all at the end of `fit`, so that a
    refused fit leaves the estimator as it was; it implements `predict`, `_state` and `_restore`.
    """

    guarantee_: Guarantee | NoGuarantee
    classes_: NDArray[Any]
    _positive_index: Literal[0, 1]
    _saved_types: ClassVar[dict[str, type["ScoreCalibrator"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        ScoreCalibrator._saved_types[cls.__name__] = cls

    @abstractmethod
    def predict(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated probability of the positive label, shape (n,)."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What was learned, as plain JSON values."""

    @abstractmethod
    def _restore(self, state: Mapping[str, Any], classes: Classes) -> None:
        """Take over what `_state` gave."""

    def _set_classes(self, classes: Classes) -> None:
        self.classes_ = classes.labels
        self.n_features_in_ = 1
        self._positive_index = classes.positive_index

    def predict_proba(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated probabilities of both labels, shape (n, 2); the columns follow `classes_`."""
        return self._both_columns(self.predict(scores))

    def _both_columns(self, positive: FloatArray) -> FloatArray:
        columns = np.empty((positive.size, 2))
        columns[:, self._positive_index] = positive
        columns[:, 1 - self._positive_index] = 1.0 - positive
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted calibrator as plain JSON values; `from_dict` reads it back."""
        check_is_fitted(self)
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k not in _NOT_SAVED}
        return {
            "schema": _SCHEMA,
            "type": type(self).__name__,
            "parameters": {name: _plain(name, value) for name, value in parameters.items()},
            "classes": self.classes_.tolist(),
            "positive_index": self._positive_index,
            "state": self._state(),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Read back what `to_dict` wrote; of `ScoreCalibrator`, a calibrator of any type."""
        check_state(state, ("schema",))
        if state["schema"] != _SCHEMA:
            raise InvalidValueError(f"schema of a calibrator must be {_SCHEMA!r}; got {state['schema']!r}")
        check_state(state, ("type", "parameters", "classes", "positive_index", "state"))
        kind = ScoreCalibrator._saved_types.get(state["type"])
        if kind is None or not issubclass(kind, cls):
            raise InvalidValueError(f"type of the calibrator must be a {cls.__name__}; got {state['type']!r}")
        calibrator = kind(**{name: _revived(value) for name, value in state["parameters"].items()})
        calibrator._restore(state["state"], Classes(np.array(state["classes"]), state["positive_index"]))
        return calibrator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, ScoreCalibrator):
        parameters = {k: v for k, v in value.get_params(deep=False).items() if k not in _NOT_SAVED}
        return {"type": type(value).__name__, "parameters": {k: _plain(k, v) for k, v in parameters.items()}}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple):
        return [_plain(name, entry) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidTypeError(f"{name} can not be saved: JSON can not hold a {type(value).__name__}")


def _revived(value: Any) -> Any:
    if isinstance(value, Mapping):
        kind = ScoreCalibrator._saved_types[value["type"]]
        return kind(**{name: _revived(entry) for name, entry in value["parameters"].items()})
    return tuple(value) if isinstance(value, list) else value
