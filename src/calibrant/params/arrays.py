"""Convert inputs of any kind to plain arrays, checked once and read by position.

Nothing is dropped, clipped or guessed.
"""

import sys
from collections.abc import Hashable, Sized
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._typing import ArrayLike, BoolArray, FeatureRows, FloatArray, IndexArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.tensors import to_host
from calibrant.text.sentences import Setting, Text, shown, words

EXACT_INTEGERS = 2**53
LARGEST_WEIGHT = 1e140  # 10^15 squares of it still sum to a finite double
FIX_ROWS = "fix or remove these rows; calibrant never drops rows silently"
SKIP_ROWS: Text = (
    "fix or remove these rows, or skip those without a label with ",
    Setting("skip_missing", True, python="scored(..., skip_missing=True)"),
    "; calibrant never drops rows silently",
)
_ROW_SUM_TOLERANCE = 1e-3  # half-precision softmax output is off by about this much


def as_array(values: ArrayLike | FeatureRows | None, name: str) -> NDArray[Any]:
    """Return `values` as a numpy array, by position; reject missing entries of nullable types."""
    if isinstance(values, np.ma.MaskedArray):
        masked = np.nonzero(np.atleast_1d(np.ma.getmaskarray(values)))[0]
        if masked.size:
            raise missing_entry(name, int(masked[0]), np.unique(masked).size, "a masked entry")
        return np.asarray(values.data)
    if isinstance(values, np.ndarray):
        return np.asarray(values)
    if values is None or isinstance(values, str | bytes | dict | set | frozenset):
        raise InvalidTypeError(
            name, "be an array", got=f"{shown(values)} ({type(values).__name__})"
        )
    if hasattr(values, "tocsr"):
        got = f"a sparse {type(values).__name__}"
        raise InvalidTypeError(name, "be a dense array", got=got, advice="call .toarray()")
    package = type(values).__module__.partition(".")[0]
    if package in {"pandas", "polars", "pyarrow"} and package in sys.modules:
        return _from_frame(values, name, package)
    if not hasattr(values, "__array__") and not hasattr(values, "__len__"):
        raise InvalidTypeError(
            name, "be an array", got=f"{shown(values)} ({type(values).__name__})"
        )
    if isinstance(values, list | tuple):
        _check_sequence(values, name)
    try:
        return to_host(values)
    except ValueError:
        raise InvalidValueError(name, "be a regular array", got="rows of uneven lengths") from None
    except (
        Exception
    ) as error:  # any error from another library's __array__, such as torch for a tensor on a GPU
        raise InvalidTypeError(
            name, "be an array", got=f"{type(values).__name__}, which says: {error}"
        ) from error


def _check_sequence(values: list[Any] | tuple[Any, ...], name: str) -> None:
    """Raise an error for entries that numpy would silently convert."""
    kinds = {
        str if isinstance(value, str) else bytes if isinstance(value, bytes) else object
        for value in values
    }
    if len(kinds) > 1:  # numpy would convert every entry to text
        raise InvalidTypeError(name, "contain one kind of entry", got="text and other kinds mixed")
    row = next((row for row, value in enumerate(values) if value is np.ma.masked), -1)
    if row >= 0:  # numpy would convert it to NaN
        raise missing_entry(
            name, row, sum(value is np.ma.masked for value in values), "a masked entry"
        )


def _from_frame(values: Any, name: str, package: str) -> NDArray[Any]:
    import narwhals.stable.v2 as nw

    if package == "pyarrow" and hasattr(values, "null_count"):
        if values.null_count:
            first = values.is_null().to_numpy(zero_copy_only=False).argmax()
            raise missing_entry(name, int(first), values.null_count, "null")
        return np.asarray(values.to_numpy(zero_copy_only=False))
    if package == "pandas" and getattr(values, "ndim", 0) == 1 and not hasattr(values, "iloc"):
        values = sys.modules["pandas"].Series(
            values
        )  # an Index, a Categorical or another pandas array
    if (
        package == "pandas" and getattr(values, "ndim", 0) == 2
    ):  # by position: two columns may share a name
        columns = [(label, values.iloc[:, place]) for place, label in enumerate(values.columns)]
        series = [(label, nw.from_native(column, series_only=True)) for label, column in columns]
        return _side_by_side(series, name, len(values))
    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise InvalidTypeError(
            name, "be held in memory", got="a lazy frame", advice="call .collect()"
        )
    if isinstance(native, nw.Series):
        return _from_series(native, name)
    if not isinstance(native, nw.DataFrame):
        raise InvalidTypeError(name, "be an array or a series", got=type(values).__name__)
    return _side_by_side(
        list(zip(native.columns, native.iter_columns(), strict=True)), name, len(native)
    )


def _side_by_side(columns: list[tuple[Any, Any]], name: str, n_rows: int) -> NDArray[Any]:
    arrays = [_from_series(series, f"{name} column {label!r}") for label, series in columns]
    kinds = {array.dtype.kind for array in arrays}
    if len(kinds) > 1 and not kinds <= set("biuf"):
        dtypes = ", ".join(str(array.dtype) for array in arrays)
        raise InvalidTypeError(name, "have columns of one kind", got=dtypes)
    return np.column_stack(arrays) if arrays else np.empty((n_rows, 0))


def _from_series(series: Any, name: str) -> NDArray[Any]:
    array = np.asarray(series.to_numpy())
    if array.dtype.kind == "U":  # fixed-width text loses trailing NULs
        array = np.array(series.to_list(), dtype=object)
    missing = series.is_null()
    count = int(missing.sum())
    # pandas counts NaN as null: leave NaN in floats to the check for finite scores, which gives a
    # better message
    if count and not (series.dtype.is_float() and np.issubdtype(array.dtype, np.floating)):
        raise missing_entry(name, int(missing.to_numpy().argmax()), count, "null")
    return array


def column_count(values: ArrayLike) -> int:
    """Return the number of columns of `values`, from any library; 1 for a flat array."""
    if isinstance(values, list | tuple):
        return len(values[0]) if values and isinstance(values[0], list | tuple) else 1
    shape: Any = getattr(values, "shape", ())
    return int(shape[1]) if isinstance(shape, tuple) and len(shape) == 2 else 1


def as_scores(
    scores: ArrayLike | None,
    *,
    positive_column: Literal[0, 1] = 1,
    name: str = "scores",
    finite: bool = True,
) -> NDArray[Any]:
    """Return `scores` as a finite one-dimensional float64 (or float32) array.

    Shapes (n,) and (n, 1) are used as they are; from the (n, 2) output of `predict_proba`, the
    positive class's column is used. With `finite` False, the caller calls `check_finite` itself
    where needed.
    """
    array = as_array(scores, name)
    if array.ndim == 2 and array.shape[1] == 2:
        array = _as_real(array, name)
        for column in (0, 1):
            check_finite(array[:, column], name)
        _check_probabilities(array, name)
        return array[:, positive_column]
    array = _as_real(_flat(array, name, "(n,), (n, 1) or, from predict_proba, (n, 2)"), name)
    if finite:
        check_finite(array, name)
    return array


def as_numbers(values: ArrayLike, name: str) -> FloatArray:
    """Return `values` as a finite one-dimensional float64 array.

    Two columns are rejected here.
    """
    array = _as_real(as_column(values, name), name)
    check_finite(array, name)
    return array.astype(np.float64)


def as_whole(values: ArrayLike, name: str, rule: str, most: int = EXACT_INTEGERS) -> IntArray:
    """Return `values` as a one-dimensional array of integers from 0 to `most`; `rule` is the
    wording of the requirement.
    """
    array = as_array(values, name)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidTypeError(name, rule, got=f"{array.dtype}, {array.shape}")
    if array.size and (int(array.min()) < 0 or int(array.max()) > most):
        rule = f"lie between 0 and {most:,}"
        raise InvalidValueError(name, rule, got=f"{array.min()} to {array.max()}")
    return np.array(array, dtype=np.int64)


def as_column(values: ArrayLike | None, name: str) -> NDArray[Any]:
    """Return `values` of shape (n,) or (n, 1), of any kind, as a one-dimensional array."""
    return _flat(as_array(values, name), name, "(n,)")


def _flat(array: NDArray[Any], name: str, shapes: str) -> NDArray[Any]:
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        advice = (
            "use .ravel() for a single row" if array.ndim == 2 and array.shape[0] == 1 else None
        )
        raise InvalidValueError(
            name, f"have shape {shapes}", got=f"shape {array.shape}", advice=advice
        )
    return array


def check_finite(array: NDArray[Any], name: str) -> None:
    """Raise for the first number that is NaN or infinite."""
    if kernels.first_nonfinite(array) >= 0:
        check_rows(~np.isfinite(array), array, name, "be finite", FIX_ROWS)


def _as_real(array: NDArray[Any], name: str) -> NDArray[Any]:
    kind = array.dtype.kind
    if kind == "f":
        if array.dtype in (np.float64, np.float32):
            return array
        with np.errstate(
            over="ignore"
        ):  # a long double beyond the range of doubles becomes infinite and is rejected
            return array.astype(np.float64)
    if (
        kind in "iu"
        and array.size
        and max(abs(int(array.min())), abs(int(array.max()))) > EXACT_INTEGERS
    ):
        raise _beyond_doubles(name)
    if kind in "iub":
        return array.astype(np.float64)
    if kind == "O":
        return _from_objects(array, name)
    example = f", such as {shown(array.ravel()[:1].tolist()[0])}" if array.size else ""
    raise InvalidTypeError(name, "be real numbers", got=f"dtype {array.dtype}{example}")


def _from_objects(array: NDArray[Any], name: str) -> FloatArray:
    """Convert numbers given as Python objects; None and the like are rejected as missing, text as
    text.
    """
    for position, entry in enumerate(array.flat):
        if isinstance(entry, Real | Decimal | np.bool_):
            if isinstance(entry, Integral) and abs(int(entry)) > EXACT_INTEGERS:
                raise _beyond_doubles(name)
            continue
        row = int(np.unravel_index(position, array.shape)[0]) if array.ndim else 0
        if is_missing(entry):
            raise missing_entry(name, row, sum(map(is_missing, array.flat)), repr(entry))
        got = at_row(f"{shown(entry)} ({type(entry).__name__})", row)
        raise InvalidTypeError(name, "be real numbers", got=got)
    try:
        return array.astype(np.float64)
    except (OverflowError, ValueError):  # a huge fraction, or a signalling NaN
        raise _beyond_doubles(name) from None


def _beyond_doubles(name: str) -> InvalidValueError:
    return InvalidValueError(
        name, "be numbers that float64 can tell apart", got="numbers beyond 2**53"
    )


def _check_probabilities(columns: NDArray[Any], name: str) -> None:
    off = np.abs(columns.sum(axis=1, dtype=np.float64) - 1.0) > _ROW_SUM_TOLERANCE
    rule = (
        "be the output of predict_proba if they have shape (n, 2): two probabilities that add up"
        " to 1"
    )
    check_rows(
        off | (columns < 0).any(axis=1),
        columns,
        name,
        rule,
        "pass one column of scores instead",
    )


def check_in_range(
    scores: NDArray[Any],
    low: float,
    high: float,
    name: str = "scores",
    advice: Text | None = None,
) -> None:
    """Raise an error for scores that are not finite or outside [low, high].

    Unless `advice` is given, the advice is for bins of equal width.
    """
    if scores.size and not kernels.inside(scores, low, high):
        check_finite(scores, name)
        # compare as doubles: numpy would round the limits to float32 for float32 scores
        doubles = scores.astype(np.float64)
        for_bins = (
            "set ",
            Setting("score_range"),
            ", or use quantile bins, which take any score",
        )
        check_rows(
            (doubles < low) | (doubles > high),
            scores,
            name,
            f"lie between {low:g} and {high:g}",
            for_bins if advice is None else advice,
        )


def as_frequencies(weights: ArrayLike, n_rows: int, name: str = "sample_weight") -> IntArray:
    """Return frequency weights: the whole number of identical rows that each row stands for."""
    frequencies = _one_per_score(weights, name, n_rows)
    rule = "be whole numbers >= 0, the number of identical rows that each row stands for"
    whole = np.isfinite(frequencies) & (frequencies >= 0) & (frequencies == np.floor(frequencies))
    check_rows(
        ~whole, frequencies, name, rule, "pass weights that are not counts as importance_weight"
    )
    total = frequencies.sum(dtype=np.float64)
    if not 0 < total <= EXACT_INTEGERS:
        raise InvalidValueError(name, "add up to between 1 and 2**53 rows", got=f"{total:g}")
    return frequencies.astype(np.int64)


def as_weights(importance_weight: ArrayLike | None, n_rows: int) -> FloatArray:
    """Return `importance_weight` as finite numbers >= 0."""
    weights = _one_per_score(importance_weight, "importance_weight", n_rows).astype(np.float64)
    rule = f"be finite, >= 0 and at most {LARGEST_WEIGHT:g}, so that its square can be summed"
    check_rows(
        ~((weights >= 0) & (weights <= LARGEST_WEIGHT)),
        weights,
        "importance_weight",
        rule,
    )
    return weights


def _one_per_score(values: ArrayLike | None, name: str, n_rows: int) -> NDArray[Any]:
    array = as_array(values, name)
    if array.shape not in ((n_rows,), (n_rows, 1)):
        raise InvalidValueError(
            name, f"have one entry per score, {n_rows}", got=f"shape {array.shape}"
        )
    return _as_real(array.ravel(), name)


def check_rows(
    bad: BoolArray,
    values: NDArray[Any],
    name: str,
    rule: Text,
    advice: Text | None = None,
) -> None:
    """Raise an error for the first bad row, with its value and the number of bad rows."""
    rows = np.flatnonzero(bad)
    if rows.size:
        got = at_row(repr(values[rows[0]].tolist()), int(rows[0]), rows.size)
        raise InvalidValueError(name, rule, got=got, advice=advice)


def check_same_length(scores: Sized, y: Sized) -> None:
    """Raise an error for scores and labels of different lengths."""
    if len(scores) != len(y):
        raise InvalidValueError(
            "scores and y",
            "have the same number of rows",
            got=f"{len(scores)} and {len(y)}",
        )


def is_number(text: str) -> bool:
    """Whether a text can be read as a number.

    >>> is_number("0.5"), is_number("high")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_missing(entry: Any) -> bool:
    """Whether a Python object is a missing value: None, NaN, pandas' NA or NaT."""
    if entry is None or type(entry).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(entry, float | np.floating) and bool(entry != entry)


class MissingValuesError(InvalidValueError):
    """Entries are missing."""


def missing_entry(name: str, row: int, count: int, kind: str) -> MissingValuesError:
    """The error for missing entries."""
    advice = SKIP_ROWS if name == "y" else FIX_ROWS
    return MissingValuesError(
        name, "have no missing values", got=at_row(kind, row, count), advice=advice
    )


def check_present(missing: BoolArray, values: NDArray[Any], name: str) -> None:
    """Raise an error for the first missing entry, with the number of missing ones."""
    rows = np.flatnonzero(missing)
    if rows.size:
        entry = values[rows[0]]
        text = repr(entry) if values.dtype.kind == "O" else str(entry)
        raise missing_entry(name, int(rows[0]), rows.size, text)


def distinct_entries(entries: list[Any]) -> tuple[list[Any], IndexArray]:
    """The distinct entries in the order of their first occurrence, and the index of each entry
    among them: for text and other objects, which a dict distinguishes better than a sort of numpy.

    >>> distinct_entries(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    met: dict[Hashable, int] = {}
    codes = (met.setdefault(entry, len(met)) for entry in entries)
    place = np.fromiter(codes, np.intp, len(entries))
    return list(met), place


def at_row(what: str, row: int, count: int | None = None) -> str:
    """What was found, the first row where it was found, and in how many rows if those were counted."""
    others = "" if count is None else f", and {in_all(count)}"
    return words((f"{what} at ", Setting("row", row, python=f"row index {row:,}"), others))


def in_all(count: int) -> str:
    """How many other rows have the problem that an error names."""
    return "in no other row" if count == 1 else f"{count} such rows in all"


def entries_at(column: Any, index: Any) -> Any:
    """Some entries of a column; None without a column."""
    return None if column is None else column[index]


def repeated(keys: NDArray[Any]) -> NDArray[Any]:
    """Return the keys that occur more than once, without their first occurrence."""
    ordered = np.sort(keys)
    return np.asarray(ordered[1:][ordered[1:] == ordered[:-1]])


def select_rows(values: Any, rows: IndexArray) -> Any:
    """Select rows by position from an array, a sparse matrix, a frame, a table or a list."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "take") and not isinstance(values, np.ndarray):  # pyarrow
        return values.take(rows)
    return values[rows] if hasattr(values, "shape") else [values[row] for row in rows.tolist()]
