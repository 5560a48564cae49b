"""Arrow columns as plain arrays with numpy types, and masks of missing entries."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._optional import pa
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import EXACT_INTEGERS

_VIEWS = {"string_view": "large_string", "binary_view": "large_binary"}


def kind_in_words(kind: Any) -> str:
    """The type of a column in plain words."""
    asked = {
        "numbers": pa.types.is_floating(kind) or pa.types.is_decimal(kind),
        "whole numbers": pa.types.is_integer(kind),
        "text": "string" in str(kind) and not pa.types.is_nested(kind),
        "true or false": pa.types.is_boolean(kind),
        "dates or times": pa.types.is_temporal(kind),
        "bytes": "binary" in str(kind) and not pa.types.is_nested(kind),
        "nothing": pa.types.is_null(kind),
        "records": pa.types.is_struct(kind),
        "lists": pa.types.is_nested(kind),
    }
    return next((words for words, holds in asked.items() if holds), str(kind))


def plain_column(column: Any) -> Any:
    """Return the column with a type that Arrow's `take` supports and whose `null_count` includes
    all nulls.
    """
    if isinstance(column, pa.ExtensionArray):
        return plain_column(column.storage)
    if str(column.type) in _VIEWS:
        plain = pa.type_for_alias(_VIEWS[str(column.type)])
        try:
            return column.cast(plain)
        except pa.ArrowNotImplementedError:  # pyarrow 17
            return pa.array(column.to_pylist(), plain)
    if pa.types.is_dictionary(column.type):
        entries = plain_column(column.dictionary)
        if entries is not column.dictionary:
            column = pa.DictionaryArray.from_arrays(column.indices, entries)
        return column.dictionary_decode() if entries.null_count else column
    return column


def nan_rows(column: Any) -> NDArray[np.bool_] | None:
    """Return a mask of NaN entries, or None without NaN."""
    if not pa.types.is_floating(column.type):
        return None
    values = np.asarray(column.fill_null(0.0).to_numpy(zero_copy_only=False))
    if values.dtype != np.float16 and kernels.first_nonfinite(values) < 0:
        return None
    nans = np.isnan(values)
    return nans if nans.any() else None


def numbers(column: Any, name: str, part: str) -> NDArray[Any]:
    """Return a numeric column as float64 or float32, with NaN for null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return numbers(column.dictionary_decode(), name, part)
    if kind in (pa.float64(), pa.float32()):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if pa.types.is_float16(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.float32)
    if pa.types.is_integer(kind):
        whole = np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False))
        if whole.size and max(abs(int(whole.min())), abs(int(whole.max()))) > EXACT_INTEGERS:
            got = "whole numbers beyond 2**53"
            raise InvalidValueError(
                part, "be numbers that float64 can tell apart", got=got, column=name
            )
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    text = next((value for value in column.to_pylist() if value is not None), None)
    raise InvalidTypeError(
        part, "contain real numbers", got=f"{kind}, such as {text!r}", column=name
    )


def null_rows(column: Any) -> NDArray[np.bool_]:
    """Return a mask of null entries."""
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def absent_rows(column: Any) -> NDArray[np.bool_] | None:
    """Return a mask of missing labels, null or NaN, or None if no label is missing."""
    nans = nan_rows(column)
    if column.null_count == 0:
        return nans
    return null_rows(column) if nans is None else null_rows(column) | nans
