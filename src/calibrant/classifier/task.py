"""The checked input of the classifier's `fit`, and functions that select rows of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from calibrant._typing import IndexArray, IntArray, Keys
from calibrant.errors import InvalidValueError
from calibrant.params import tensors
from calibrant.params.arrays import (
    MissingValuesError,
    as_numbers,
    at_row,
    check_rows,
    is_missing,
    select_rows,
)
from calibrant.params.random import RandomSource, RowSums, text_keys
from calibrant.sample.label_runs import long_run


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The checked arguments of `fit`."""

    X: Any
    labels: NDArray[Any]
    classes: NDArray[Any]
    to_model: dict[str, Any]
    to_calibrator: dict[str, Any]
    groups: Keys | None  # one key per row
    moments: IndexArray | None  # the rank of each row's time, if the last rows are held out
    source: RandomSource  # for the draws on these rows
    over_seed: bool  # whether a probability over these draws is also over the seed
    positive: Any  # the class that probabilities and intervals are about; None for more than two

    @property
    def ordered_classes(self) -> NDArray[Any]:
        """The two classes, the positive one last; with more classes, all of them unchanged."""
        reverses = self.classes.size == 2 and self.positive == self.classes[0]
        return np.asarray(self.classes[::-1] if reverses else self.classes)

    @property
    def column_classes(self) -> NDArray[Any]:
        """The class of each column of scores: the positive one, or all of several."""
        return self.ordered_classes if self.classes.size > 2 else self.ordered_classes[1:]

    def class_counts(self, rows: IndexArray) -> IntArray:
        """The number of rows of each class among `rows`, in the order of `classes`."""
        labels = self.labels[rows]
        return np.array([np.count_nonzero(labels == label) for label in self.classes])

    @property
    def everything(self) -> IndexArray:
        """All rows."""
        return np.arange(len(self.labels))

    def part(self, params: Mapping[str, Any], rows: IndexArray) -> dict[str, Any]:
        """Arguments of `fit` for some of the rows."""
        return some(params, len(self.labels), rows)


def sums_of_features(X: Any, codes: NDArray[Any]) -> RowSums:
    """The sums from which an order-independent fingerprint of features and labels is computed.

    Every digit of a feature counts, as features are not the result of a solver: see
    `calibrant.params.random`.
    """
    labels = codes.astype(
        np.uint8
    )  # with more than 256 classes some share a number, which does no harm
    if hasattr(X, "tocsr"):  # sparse: use the entries in place of rows
        entries = X.tocsr()
        owner = np.repeat(labels, np.diff(entries.indptr))
        columns = [entries.indices, _as_numbers(entries.data)]
        return _sums([np.zeros(len(labels))], labels) + _sums(columns, owner)
    return _sums(_feature_columns(X, len(labels)), labels)


def _sums(columns: list[NDArray[Any]], labels: NDArray[np.uint8]) -> RowSums:
    if labels.max(initial=0) < 2:
        return RowSums.of(columns, (0, 1), labels, exact=True)
    return RowSums.of([*columns, labels], exact=True)  # their order is that of the classes


def _feature_columns(X: Any, n_rows: int) -> list[NDArray[Any]]:
    """The columns of an array, a frame, a table or a list, as numbers or keys; at least one."""
    if hasattr(X, "iloc"):
        columns = [X.iloc[:, place] for place in range(X.shape[1])] if X.ndim == 2 else [X]
    elif hasattr(X, "columns"):  # polars or pyarrow
        columns = X.get_columns() if hasattr(X, "get_columns") else X.columns
    else:
        values = np.asarray(tensors.to_host(X) if tensors.is_device_array(X) else X)
        columns = [values.reshape(n_rows, -1)]
    numbers = [_as_numbers(np.asarray(column)) for column in columns]
    return [column for column in numbers if column.size] or [np.zeros(n_rows)]


def _as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Values as real numbers, or as keys if they are not numbers."""
    if values.dtype.kind in "biuf":
        return values
    if values.dtype.kind in "mM":
        return values.astype(np.int64)
    flat = text_keys(values.ravel().tolist())
    return flat.reshape(values.shape)


def is_sorted_by_label(codes: NDArray[np.bool_]) -> bool:
    """Whether a run of equal labels is too long to be due to chance, at the overall rate.

    >>> is_sorted_by_label(np.arange(100) < 50), is_sorted_by_label(np.arange(100) % 7 < 3)
    (True, False)
    """
    rates = np.full(codes.size, codes.mean())
    neither = np.resize([0.0, 1.0], codes.size)  # scores without any order
    return long_run(codes.astype(np.uint8), neither, rates) > 0


def class_labels(given: Any, *, several: bool) -> NDArray[Any]:
    """Labels as scikit-learn takes them; at most two classes, unless `several` are allowed."""
    _check_labelled(np.asarray(given))
    check_classification_targets(given)
    kind = type_of_target(given, input_name="y", raise_unknown=True)
    if kind != "binary" and not (several and kind == "multiclass"):
        reason = f"Only binary classification is supported. The type of the target is {kind}"
        advice = (
            "leave out the calibrator for more than two classes, or calibrate one class against the"
            " rest"
        )
        raise InvalidValueError(None, reason, advice=advice)
    return np.asarray(column_or_1d(given, warn=True))


def _check_labelled(labels: NDArray[Any]) -> None:
    """Raise an error for rows without a label."""
    if labels.dtype.kind in "Of" and labels.ndim == 1:
        missing = [row for row, label in enumerate(labels.tolist()) if is_missing(label)]
        if missing:
            got = at_row(f"{labels[missing[0]]}", missing[0], len(missing))
            advice = "leave out rows without a label: they cannot train the model"
            raise MissingValuesError("y", "have no missing values (None or NaN)", got, advice)
    assert_all_finite(labels, input_name="y")


def check_weights(weights: Any, n_rows: int) -> None:
    """Raise an error for a `sample_weight` of the wrong length, or with a missing, non-finite or
    negative entry: many models would silently train on it.
    """
    if weights is None:
        return
    if hasattr(weights, "__len__") and len(weights) != n_rows:
        rule = f"have one entry per row, {n_rows:,}"
        raise InvalidValueError("sample_weight", rule, got=f"{len(weights):,}")
    entries: Any = [weights] if np.isscalar(weights) else weights
    found = as_numbers(entries, "sample_weight")
    advice = "give rows that should not count a weight of 0"
    check_rows(found < 0.0, found, "sample_weight", "be >= 0", advice)


def without_weightless(X: Any, y: Any, params: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Leave out the rows whose `sample_weight` is 0: they are used for nothing."""
    weightless = np.asarray(params.get("sample_weight", [])) == 0
    if weightless.shape != (len(y),) or not weightless.any():
        return X, y, params
    rows = np.flatnonzero(~weightless)
    kept = select_rows(y, rows)
    if np.unique(kept).size < 2:
        rule = "have two classes among the rows with a positive sample_weight"
        raise InvalidValueError("y", rule, got="one class only")
    return select_rows(X, rows), kept, some(params, len(y), rows)


def some(params: Mapping[str, Any], n_rows: int, rows: IndexArray) -> dict[str, Any]:
    """Arguments of `fit` for some of the rows: arguments with one entry per row are subset, the
    rest are passed on.
    """

    def has_rows(value: Any) -> bool:
        if isinstance(value, str | bytes | Mapping):
            return False
        if hasattr(value, "shape"):
            return len(value.shape) > 0 and bool(value.shape[0] == n_rows)
        return hasattr(value, "__len__") and len(value) == n_rows

    return {
        name: select_rows(value, rows) if has_rows(value) else value
        for name, value in params.items()
    }
