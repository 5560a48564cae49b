"""What `fit` of the classifier was given, checked, and some of its rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from calibrant._typing import IndexArray, Keys
from calibrant.errors import InvalidValueError


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The checked arguments of `fit`."""

    X: Any
    labels: NDArray[Any]
    classes: NDArray[Any]
    to_model: dict[str, Any]
    to_calibrator: dict[str, Any]
    groups: Keys | None  # a key for each row
    moments: IndexArray | None  # the rank of each row's time, where the last rows are held out
    generator: np.random.Generator

    @property
    def everything(self) -> IndexArray:
        """All rows."""
        return np.arange(len(self.labels))

    def part(self, params: Mapping[str, Any], rows: IndexArray) -> dict[str, Any]:
        """Arguments of `fit` for some of the rows."""
        return some(params, len(self.labels), rows)


def binary_labels(given: Any) -> NDArray[Any]:
    """Labels as scikit-learn takes them, of two classes at most."""
    assert_all_finite(np.asarray(given), input_name="y")
    check_classification_targets(given)
    kind = type_of_target(given, input_name="y", raise_unknown=True)
    if kind != "binary":
        reason = f"Only binary classification is supported. The type of the target is {kind}"
        raise InvalidValueError(None, reason, advice="calibrate one class against the rest")
    return np.asarray(column_or_1d(given, warn=True))


def without_weightless(X: Any, y: Any, params: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Leave out the rows whose `sample_weight` is 0: they take part in nothing."""
    weightless = np.asarray(params.get("sample_weight", [])) == 0
    if weightless.shape != (len(y),) or not weightless.any():
        return X, y, params
    rows = np.flatnonzero(~weightless)
    kept = taken(y, rows)
    if np.unique(kept).size < 2:
        rule = "have two classes among the rows with a positive sample_weight"
        raise InvalidValueError("y", rule, got="one class only")
    return taken(X, rows), kept, some(params, len(y), rows)


def taken(values: Any, rows: IndexArray) -> Any:
    """Some rows, by position, of an array, a sparse matrix, a frame, a table or a list."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "take") and not isinstance(values, np.ndarray):  # pyarrow
        return values.take(rows)
    return values[rows] if hasattr(values, "shape") else [values[row] for row in rows.tolist()]


def some(params: Mapping[str, Any], n_rows: int, rows: IndexArray) -> dict[str, Any]:
    """Arguments of `fit` for some of the rows: what has one entry per row is split, the rest is passed on."""

    def has_rows(value: Any) -> bool:
        if isinstance(value, str | bytes | Mapping):
            return False
        if hasattr(value, "shape"):
            return len(value.shape) > 0 and bool(value.shape[0] == n_rows)
        return hasattr(value, "__len__") and len(value) == n_rows

    return {name: taken(value, rows) if has_rows(value) else value for name, value in params.items()}
