"""The scores of a model of any kind, and rows for which it gives none: an error, or an answer that
says that nothing is known.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import BoolArray, FloatArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import as_scores, at_row
from calibrant.params.frames import FrameOutput
from calibrant.params.rules import Choice

RESPONSE_METHODS = ("auto", "predict_proba", "decision_function")
_MISSING_SCORES = Choice(("raise", "nan"))


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


class ScoredOutput(FrameOutput):
    """A classifier whose `set_output` also determines the answer for rows without a score."""

    _missing_scores = "raise"

    def set_output(
        self,
        *,
        transform: str | None = None,
        predict: str | None = None,
        missing_scores: str | None = None,
    ) -> Self:
        """Set how predictions are returned.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            As in scikit-learn: numpy arrays, or pandas or Polars for rows of any kind. None changes
            nothing.
        predict : {"default", "input"}, optional
            "default": always numpy arrays. "input": pandas in, pandas out, with the same index;
            Polars in, Polars out; arrays for all other rows. None changes nothing.
        missing_scores : {"raise", "nan"}, optional
            The answer for a row whose score from the model is NaN: an error, which is the default,
            or NaN for its probabilities, [0, 1] for an interval and all labels for a set. `predict`
            and `fit` always raise an error. None changes nothing.

        Returns
        -------
        self
            A clone starts with the defaults: arrays, and an error.
        """
        if missing_scores is not None:
            self._missing_scores = _MISSING_SCORES.check("missing_scores", missing_scores)
        return super().set_output(transform=transform, predict=predict)


def check_scores(scores: FloatArray) -> None:
    """Raise an error for scores that are not finite, in one or several columns."""
    for column in scores.reshape(len(scores), -1).T:
        as_scores(column)


def without_score(scores: FloatArray) -> BoolArray:
    """Which rows have a NaN score, in one or several columns."""
    return np.asarray(np.isnan(scores.reshape(len(scores), -1)).any(axis=1))


def no_score(missing: BoolArray) -> InvalidValueError:
    """The error for rows without a score from the model."""
    first = int(missing.argmax())
    got = at_row("NaN", first, int(missing.sum()))
    advice = 'use set_output(missing_scores="nan") to get NaN and the interval [0, 1] for them'
    return InvalidValueError("X", "have a score for each row", got=got, advice=advice)


def answered(
    scores: FloatArray,
    missing: BoolArray,
    method: str,
    answer: Callable[[FloatArray], NDArray[Any]],
) -> NDArray[Any]:
    """The answers for all rows; rows without a score get NaN for a probability, [0, 1] for an
    interval, and all labels for a set.
    """
    known = answer(scores[~missing])
    found = np.empty((len(scores), *known.shape[1:]), dtype=known.dtype)
    found[~missing] = known
    if method == "predict_set":
        found[missing] = True
    elif method == "predict_proba":
        found[missing] = np.nan
    else:
        found[missing] = (0.0, 1.0)
    return found


def check_all_scored(probabilities: FloatArray) -> None:
    """Raise an error if a class must be predicted for a row without a score."""
    missing = without_score(probabilities)
    if missing.any():
        got = f"{int(missing.sum()):,} of {missing.size:,} rows without one"
        advice = "use predict_proba, which returns NaN for them"
        raise InvalidValueError(
            "X", "have a score for each row, to predict its class", got=got, advice=advice
        )
