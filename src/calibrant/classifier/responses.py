"""The scores of a model of any kind."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import FIX_ROWS, as_scores, at_row

RESPONSE_METHODS = ("auto", "predict_proba", "decision_function")


def response_of(model: Any, X: Any, classes: NDArray[Any], response_method: str) -> FloatArray:
    """The model's score for the positive class, the second of `classes`."""
    response = _response(model, X, response_method)
    if not hasattr(model, "fit"):
        return response
    return _of_positive(response, np.asarray(model.classes_), classes)


def columns_of(model: Any, X: Any, classes: NDArray[Any], response_method: str) -> FloatArray:
    """The model's scores, one column each: for the second of two classes, or for all of several."""
    if classes.size == 2:
        return response_of(model, X, classes, response_method)[:, None]
    response = _response(model, X, response_method)
    if not hasattr(model, "fit"):
        return _one_column_each(response, classes)
    known = np.asarray(model.classes_)
    _one_column_each(response, known)
    columns = np.full(
        (len(response), classes.size), response.min(initial=0.0)
    )  # a class that it never saw
    place = np.searchsorted(classes, known)
    columns[:, place] = response
    return columns


def _response(model: Any, X: Any, response_method: str) -> NDArray[Any]:
    """What a classifier, a fitted model that only predicts, or a function says about rows."""
    if hasattr(model, "fit"):
        return np.asarray(getattr(model, _method_of(model, response_method))(X))
    # XGBoost's `predict` accepts only its own matrix type
    score = getattr(model, "inplace_predict", None) or getattr(model, "predict", model)
    return np.asarray(score(X))


def _one_column_each(response: NDArray[Any], classes: NDArray[Any]) -> FloatArray:
    if response.ndim != 2 or response.shape[1] != classes.size:
        rule = f"give one column of scores for each of {classes.size} classes"
        raise InvalidTypeError("estimator", rule, got=f"shape {response.shape}")
    return response


def _method_of(model: Any, response_method: str) -> str:
    wanted = RESPONSE_METHODS[1:] if response_method == "auto" else (response_method,)
    for name in wanted:
        if hasattr(model, name):
            return name
    raise InvalidTypeError("estimator", f"have {' or '.join(wanted)}", got=type(model).__name__)


def _of_positive(response: NDArray[Any], known: NDArray[Any], classes: NDArray[Any]) -> FloatArray:
    """The column of the positive class; a model that saw only one class gives 0 or 1 throughout."""
    if response.ndim == 1:
        return response if known[-1] == classes[1] else -response
    if classes[1] not in known:
        return np.zeros(len(response))
    return np.asarray(response[:, int(np.flatnonzero(known == classes[1])[0])])


def check_scores(scores: FloatArray) -> None:
    """Raise an error for scores that are not finite, in one or several columns."""
    for column in scores.reshape(len(scores), -1).T:
        as_scores(column)


def check_scored(scores: FloatArray) -> None:
    """Raise an error for rows without a score from the model, in one or several columns."""
    missing = np.isnan(scores.reshape(len(scores), -1)).any(axis=1)
    if missing.any():
        got = at_row("NaN", int(missing.argmax()), int(missing.sum()))
        raise InvalidValueError("X", "have a score for each row", got=got, advice=FIX_ROWS)
