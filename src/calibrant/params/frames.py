"""Return predictions in the caller's library: numpy, torch or CuPy, or as pandas or Polars frames."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from typing import Any, Self, TypeVar, cast

from calibrant.params.rules import Choice
from calibrant.params.tensors import in_own_library

_COLUMNS = {"predict_multiprobability": ("p0", "p1")} | dict.fromkeys(
    ("predict_interval", "predict_rate_interval"), ("lower", "upper")
)
Method = TypeVar("Method", bound=Callable[..., Any])
_inside: ContextVar[bool] = ContextVar("inside a prediction", default=False)


class FrameOutput:
    """An estimator whose prediction methods can return frames; see `set_output`.

    Each of these methods is decorated: with `@predicts`, or with `@framed` if it handles torch and
    CuPy arrays itself.
    """

    _frames_out = "default"

    def set_output(self, *, transform: str | None = None, predict: str | None = None) -> Self:
        """Set the library in which predictions are returned.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            As in scikit-learn: numpy arrays, or pandas or Polars for rows of any kind. It applies
            to predictions, as there is no method `transform`. None changes nothing.
        predict : {"default", "input"}, optional
            "default": always numpy arrays. "input": pandas in, pandas out, with the same index;
            Polars in, Polars out; arrays for all other rows. Columns of probabilities and sets are
            named by the classes, those of intervals "lower" and "upper". None changes nothing. A
            clone starts with "default".

        Returns
        -------
        self
        """
        if transform is not None:
            self._frames_out = Choice(("default", "pandas", "polars")).check("transform", transform)
        if predict is not None:
            self._frames_out = Choice(("default", "input")).check("predict", predict)
        return self


def predicts(method: Method) -> Method:
    """Let a prediction method return what `set_output` requests, and accept and return torch and
    CuPy arrays.
    """
    return in_own_library(framed(method))


def framed(method: Method) -> Method:
    """Let a prediction method return what `set_output` requests."""

    @wraps(method)
    def wrapped(self: Any, rows: Any, *args: Any, **named: Any) -> Any:
        if self._frames_out == "default" or _inside.get():
            return method(self, rows, *args, **named)
        token = _inside.set(True)  # methods called from inside return arrays
        try:
            prediction = method(self, rows, *args, **named)
        finally:
            _inside.reset(token)
        return _frame(rows, prediction, method.__name__, self.classes_, self._frames_out)

    return cast(Method, wrapped)


def _frame(rows: Any, values: Any, method: str, classes: Any, wanted: str) -> Any:
    library_of_rows = type(rows).__module__.partition(".")[0]
    name = library_of_rows if wanted == "input" else wanted
    if name not in ("pandas", "polars") or values.ndim > 2:
        return values
    library = import_module(name)
    columns = _COLUMNS.get(method) or classes.tolist()
    if name == "polars":
        if values.ndim == 1:
            return library.Series(method, values)
        return library.DataFrame(values, schema=[str(column) for column in columns], orient="row")
    index = (
        getattr(rows, "index", None) if library_of_rows == "pandas" else None
    )  # a pandas Index has none
    if values.ndim == 1:
        return library.Series(values, index=index, name=method)
    return library.DataFrame(values, index=index, columns=list(columns))
