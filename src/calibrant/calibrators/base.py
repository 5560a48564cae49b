"""What calibrators of scores have in common: classes, probabilities of both labels, and state that is plain JSON."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibrant._input import shown
from calibrant._labels import Classes, name_classes
from calibrant._params import CheckedParameters, check_open_unit, check_state
from calibrant._typing import ArrayLike, FloatArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee import Guarantee, NoGuarantee
from calibrant.kernels.device import in_own_library, predicts_in_own_library
from calibrant.rows import ScoredData

_SCHEMA = "calibrant.calibrator/1"
_NOT_SAVED = ("classes", "n_jobs", "partition", "random_state", "ratio")


class ScoreCalibrator(CheckedParameters, BaseEstimator):  # type: ignore[misc]
    """A map from scores to probabilities of the positive label, learned from scores and labels.

    A subclass sets what it learned with `_set_classes` and attributes of its own, all at the end of `fit`, so that a
    refused fit leaves the estimator as it was; it implements `predict`, `_state` and `_restore`.
    """

    guarantee_: Guarantee | NoGuarantee
    classes_: NDArray[Any]
    _positive_index: Literal[0, 1]
    _saved_types: ClassVar[dict[str, type["ScoreCalibrator"]]] = {}

    def __init_subclass__(cls, *, takes_device_arrays: bool = False, **kwargs: Any) -> None:
        """Let the methods that predict take arrays of torch and CuPy, unless the class does so itself."""
        super().__init_subclass__(**kwargs)
        if not takes_device_arrays:
            predicts_in_own_library(cls)
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

    @in_own_library
    def predict_proba(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated probabilities of both labels, shape (n, 2); the columns follow `classes_`."""
        return self._both_columns(self.predict(scores))

    def _both_columns(self, positive: FloatArray) -> FloatArray:
        columns = np.empty((positive.size, 2))
        columns[:, self._positive_index] = positive
        columns[:, 1 - self._positive_index] = 1.0 - positive
        return columns

    def apply(self, data: ScoredData, *, coverage: float = 0.95, prefix: str = "") -> Any:
        """Add columns to scored data on the engine that has them: calibrated, and what else the calibrator predicts.

        Parameters
        ----------
        data : ScoredData
            See `calibrant.scored`; no label is needed.
        coverage : float, default=0.95
            Of the prediction sets, for a calibrator that has them; a set is text, such as "{0}" or "{0, 1}".
        prefix : str, default=""
            What the names of the columns begin with.

        Returns
        -------
        object
            A frame, relation or reader of the same engine, lazy where that is. A row whose score `predict` would refuse
            (missing, not finite, out of range, or of a segment not seen in fit) has nulls in these columns.
        """
        from calibrant.calibrators.applying import Predict

        check_is_fitted(self)
        return data.apply(Predict.of(self, data.columns, check_open_unit("coverage", coverage), prefix))

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
        kind = _saved_kind(state["type"])
        if kind is None or not issubclass(kind, cls):
            raise InvalidValueError(f"type of the calibrator must be a {cls.__name__}; got {state['type']!r}")
        calibrator = _made(kind, state["parameters"])
        classes = _read_classes(state["classes"], state["positive_index"])
        pos_label = calibrator.get_params(deep=False).get("pos_label")
        if pos_label is not None and pos_label != classes.positive:
            raise InvalidValueError(f"pos_label must be None or the positive class, {classes.positive!r}; got another")
        check_state(state["state"])
        calibrator._restore(state["state"], classes)
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
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(name, entry) for entry in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidTypeError(f"{name} can not be saved: JSON can not hold a {type(value).__name__}")


def _saved_kind(name: Any) -> type[ScoreCalibrator] | None:
    """The calibrator of that name; None for no name, an unknown one, and a class that only others build on."""
    kind = ScoreCalibrator._saved_types.get(name) if isinstance(name, str) else None
    unfinished = (getattr(getattr(kind, part, None), "__isabstractmethod__", False) for part in dir(kind))
    return None if kind is None or any(unfinished) else kind


def _made(kind: type[ScoreCalibrator], parameters: Any) -> ScoreCalibrator:
    """A calibrator with saved parameters; their values are for its own checks to judge."""
    check_state(parameters)
    known = [name for name in kind._get_param_names() if name not in _NOT_SAVED]
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise InvalidValueError(f"parameters of a {kind.__name__} must be among {known}; got {unknown[0]!r}")
    return kind(**{name: _revived(value) for name, value in parameters.items()})


def _revived(value: Any) -> Any:
    if isinstance(value, Mapping):
        check_state(value, ("type", "parameters"))
        kind = _saved_kind(value["type"])
        if kind is None:
            raise InvalidValueError(f"type of a calibrator must be a known one; got {value['type']!r}")
        return _made(kind, value["parameters"])
    return tuple(value) if isinstance(value, list) else value


def _read_classes(labels: Any, positive_index: Any) -> Classes:
    """Two different labels of one kind, sorted as `fit` leaves them."""
    if type(positive_index) is not int or positive_index not in (0, 1):
        raise InvalidValueError(f"positive_index must be 0 or 1; got {shown(positive_index)}")
    kinds = {type(label) for label in labels} if isinstance(labels, list | tuple) and len(labels) == 2 else set()
    if (
        len(kinds) != 1
        or not kinds <= {str, bytes, bool, int, float}
        or (kinds == {int} and not all(-(2**63) <= label < 2**63 for label in labels))
        or (kinds == {float} and not all(map(math.isfinite, labels)))
        or not labels[0] < labels[1]
    ):
        raise InvalidValueError(
            "classes must be two different labels of one kind, text, bools, 64-bit integers or finite floats, in "
            f"increasing order; got {shown(labels)}"
        )
    return name_classes(list(labels), labels[positive_index])
