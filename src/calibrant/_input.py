"""From whatever a caller brings to plain arrays: checked once, by position, nothing dropped, clipped or guessed."""

import sys
from collections.abc import Sized
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._typing import ArrayLike, FloatArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError

_EXACT_INTEGERS = 2**53
_ROW_SUM_TOLERANCE = 1e-3  # half-precision softmax output is off by about this much


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return `values` as a numpy array, by position; missing entries of nullable types are refused."""
    if isinstance(values, np.ma.MaskedArray):
        masked = np.flatnonzero(np.ma.getmaskarray(values).ravel())
        if masked.size:
            raise _missing(name, int(masked[0]), masked.size, "masked")
        return np.asarray(values.data)
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    if values is None or isinstance(values, str | bytes | dict | set | frozenset):
        raise InvalidTypeError(f"{name} must be an array; got {_shown(values)} ({type(values).__name__})")
    if hasattr(values, "tocsr"):
        raise InvalidTypeError(f"{name} must be a dense array; got a sparse {type(values).__name__}: call .toarray()")
    package = type(values).__module__.partition(".")[0]
    if package in {"pandas", "polars", "pyarrow"} and package in sys.modules:
        return _from_frame(values, name)
    if isinstance(values, list | tuple):
        return _from_sequence(values, name)
    if not hasattr(values, "__array__") and not hasattr(values, "__len__"):
        raise InvalidTypeError(f"{name} must be an array; got {_shown(values)} ({type(values).__name__})")
    return np.asarray(values)


def _from_sequence(values: list[Any] | tuple[Any, ...], name: str) -> NDArray[Any]:
    texts = sum(isinstance(value, str) for value in values)
    if 0 < texts < len(values):  # numpy would turn every entry into text
        raise InvalidTypeError(f"{name} must hold one kind of entry; got text and other kinds mixed")
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidValueError(f"{name} must be a regular array; got a sequence of uneven lengths") from None


def _from_frame(values: Any, name: str) -> NDArray[Any]:
    import narwhals.stable.v2 as nw

    if type(values).__module__.partition(".")[0] == "pyarrow" and hasattr(values, "null_count"):
        if values.null_count:
            first = values.is_null().to_numpy(zero_copy_only=False).argmax() if hasattr(values, "is_null") else 0
            raise _missing(name, int(first), values.null_count, "null")
        return np.asarray(values.to_numpy(zero_copy_only=False) if not hasattr(values, "chunks") else values.to_numpy())
    if hasattr(values, "to_series") and not hasattr(values, "columns"):  # a pandas Index
        values = values.to_series()
    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise InvalidTypeError(f"{name} must be held in memory; got a lazy frame: call .collect()")
    if isinstance(native, nw.Series):
        return _from_series(native, name)
    if not isinstance(native, nw.DataFrame):
        raise InvalidTypeError(f"{name} must be an array or a series; got {type(values).__name__}")
    columns = [_from_series(native[column], f"{name} column {column!r}") for column in native.columns]
    return np.column_stack(columns) if columns else np.empty((len(native), 0))


def _from_series(series: Any, name: str) -> NDArray[Any]:
    missing = series.is_null()
    count = int(missing.sum())
    # pandas counts NaN as null: leave those in floats to the check for finite scores, which names them better
    if count and not series.dtype.is_float():
        raise _missing(name, int(missing.to_numpy().argmax()), count, "null")
    if count and not np.issubdtype(np.asarray(series.to_numpy()).dtype, np.floating):
        raise _missing(name, int(missing.to_numpy().argmax()), count, "null")
    return np.asarray(series.to_numpy())


def as_scores(scores: ArrayLike, *, positive_column: Literal[0, 1] = 1, name: str = "scores") -> NDArray[Any]:
    """Return `scores` as a finite one-dimensional float64 (or float32) array.

    (n,) and (n, 1) are taken as they are; of the (n, 2) output of `predict_proba` the positive class's column is taken.
    """
    array = as_array(scores, name)
    if array.ndim == 2 and array.shape[1] in (1, 2):
        array = _as_real(array, name)
        if array.shape[1] == 2:
            _check_probabilities(array, name)
        array = array[:, positive_column if array.shape[1] == 2 else 0]
    elif array.ndim != 1:
        hint = "; use .ravel() for a single row of scores" if array.ndim == 2 and array.shape[0] == 1 else ""
        raise InvalidValueError(
            f"{name} must have shape (n,), (n, 1) or, from predict_proba, (n, 2); got shape {array.shape}{hint}"
        )
    else:
        array = _as_real(array, name)
    bad = kernels.first_nonfinite(array)
    if bad >= 0:
        count = int(np.count_nonzero(~np.isfinite(array)))
        raise InvalidValueError(
            f"{name} must be finite; got {float(array[bad])} in row {bad}, and {count} such rows in all: "
            "remove or impute them before calibrating"
        )
    return array


def _as_real(array: NDArray[Any], name: str) -> NDArray[Any]:
    kind = array.dtype.kind
    if kind == "f":
        return array if array.dtype in (np.float64, np.float32) else array.astype(np.float64)
    if kind in "iu":
        if array.size and max(abs(int(array.min())), abs(int(array.max()))) > _EXACT_INTEGERS:
            raise InvalidValueError(f"{name} must be numbers a double can tell apart; got integers beyond 2**53")
        return array.astype(np.float64)
    if kind == "b":
        return array.astype(np.float64)
    if array.size == 0:
        return array.astype(np.float64)
    if kind == "O" and not any(isinstance(entry, str | bytes | complex) for entry in array.flat):
        try:
            return array.astype(np.float64)  # None becomes NaN, and is refused as such
        except (TypeError, ValueError):
            pass
    first = array.flat[0]
    raise InvalidTypeError(f"{name} must be real numbers; got dtype {array.dtype}, such as {_shown(first)}")


def _check_probabilities(columns: NDArray[Any], name: str) -> None:
    finite = np.isfinite(columns).all(axis=1)  # what is not finite is refused, and named, by the caller
    off = np.abs(columns.sum(axis=1) - 1.0) > _ROW_SUM_TOLERANCE
    bad = np.flatnonzero(finite & (off | (columns < 0).any(axis=1)))
    if bad.size:
        row = int(bad[0])
        raise InvalidValueError(
            f"{name} of shape (n, 2) must be the output of predict_proba, two probabilities that add up to 1; "
            f"got {columns[row].tolist()} in row {row}: pass one column of scores instead"
        )


def check_in_range(scores: NDArray[Any], low: float, high: float, name: str = "scores") -> None:
    """Refuse scores outside [low, high]."""
    if scores.size and (scores.min() < low or scores.max() > high):
        bad = np.flatnonzero((scores < low) | (scores > high))
        raise InvalidValueError(
            f"{name} must lie in score_range=({low:g}, {high:g}); got {float(scores[bad[0]])!r} in row {int(bad[0])}, and "
            f'{bad.size} such rows in all: set score_range, or use strategy="quantile", which takes any real score'
        )


def as_frequencies(sample_weight: ArrayLike, n_rows: int) -> IntArray:
    """Return `sample_weight` as whole numbers of identical rows."""
    weights = as_array(sample_weight, "sample_weight")
    if weights.shape not in ((n_rows,), (n_rows, 1)):
        raise InvalidValueError(f"sample_weight must have one entry per score, {n_rows}; got shape {weights.shape}")
    weights = _as_real(weights.ravel(), "sample_weight")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0) & (weights == np.floor(weights))))
    if bad.size:
        row = int(bad[0])
        raise InvalidValueError(
            "sample_weight must be whole numbers >= 0: how many identical rows each row stands for; "
            f"got {float(weights[row])!r} in row {row}. Weights that are not counts have no exact interval"
        )
    if weights.sum() > _EXACT_INTEGERS:
        raise InvalidValueError(f"sample_weight must add up to at most 2**53 rows; got {weights.sum():g}")
    return weights.astype(np.int64)


def as_weights(importance_weight: ArrayLike, n_rows: int) -> FloatArray:
    """Return `importance_weight` as finite numbers >= 0."""
    weights = as_array(importance_weight, "importance_weight")
    if weights.shape not in ((n_rows,), (n_rows, 1)):
        raise InvalidValueError(f"importance_weight must have one entry per score, {n_rows}; got shape {weights.shape}")
    weights = _as_real(weights.ravel(), "importance_weight").astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        row = int(bad[0])
        raise InvalidValueError(f"importance_weight must be finite and >= 0; got {float(weights[row])!r} in row {row}")
    return weights


def check_same_length(scores: Sized, y: Sized) -> None:
    """Refuse scores and labels of different lengths."""
    if len(scores) != len(y):
        raise InvalidValueError(f"scores and y must have the same number of rows; got {len(scores)} and {len(y)}")


def _missing(name: str, row: int, count: int, kind: str) -> InvalidValueError:
    return InvalidValueError(
        f"{name} must have no missing entries; row {row} is {kind}, and {count} rows in all: "
        "remove or impute them before calibrating"
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
