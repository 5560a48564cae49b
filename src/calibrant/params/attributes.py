"""Attributes of rows, such as sex and age: columns of a frame or mapping, as plain values."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import pa
from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import distinct_entries, is_missing
from calibrant.text.sentences import shown

_FRAME = 'be a frame, or a mapping from names to columns, such as {"sex": sex, "age": age}'
_KINDS = "contain numbers, text or truth values"


@dataclass(frozen=True, slots=True, eq=False)
class AttributeColumn:
    """One attribute of all rows.

    Attributes
    ----------
    name : str
        Its name.
    numbers : float array of shape (n,) or None
        The values of a numeric attribute; NaN if missing.
    values : tuple
        The distinct values of a non-numeric attribute, in order of first occurrence.
    place : int array of shape (n,) or None
        The index of each row's value among them; -1 if missing.
    """

    name: str
    numbers: FloatArray | None = None
    values: tuple[Hashable, ...] = ()
    place: IndexArray | None = None

    def __len__(self) -> int:
        return len(self.numbers) if self.numbers is not None else len(self._places)

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers and so have an order."""
        return self.numbers is not None

    @property
    def missing(self) -> BoolArray:
        """Which rows have no value."""
        return np.isnan(self.numbers) if self.numbers is not None else self._places < 0

    @property
    def _places(self) -> IndexArray:
        return np.empty(0, dtype=np.intp) if self.place is None else self.place

    def take(self, rows: IndexArray | BoolArray) -> "AttributeColumn":
        """The attribute for some of the rows."""
        if self.numbers is not None:
            return AttributeColumn(self.name, self.numbers[rows])
        return AttributeColumn(self.name, None, self.values, self._places[rows])


def read_attributes(
    attributes: Any, n_rows: int | None = None, names: Sequence[str] | None = None
) -> list[AttributeColumn]:
    """Read all columns of a frame or mapping, or the named ones.

    Parameters
    ----------
    attributes : frame of pandas, Polars or pyarrow, or mapping from names to columns
        One entry per row. Numbers are read as numbers; text, truth values and categories by value.
        None, NaN and the like are missing values.
    n_rows : int, optional
        The required number of rows.
    names : sequence of str, optional
        The columns that are needed.

    Examples
    --------
    >>> sex, age = read_attributes({"sex": ["f", None, "m"], "age": [30, 41, None]}, 3)
    >>> sex.values, sex.place.tolist(), age.numbers.tolist()
    (('f', 'm'), [0, -1, 1], [30.0, 41.0, nan])
    """
    columns = _columns(attributes)
    wanted = list(columns) if names is None else [str(name) for name in names]
    if not wanted:
        raise InvalidValueError("attributes", "have at least one column", got="none")
    for name in wanted:
        if name not in columns:
            got = ", ".join(map(repr, list(columns)[:20])) or "no column"
            raise InvalidValueError("attributes", f"have the column {name!r}", got=got)
    read = [_read_column(name, columns[name]) for name in wanted]
    for column in read:
        if n_rows is not None and len(column) != n_rows:
            rule = f"have one entry per score, {n_rows:,}, in every column"
            raise InvalidValueError("attributes", rule, got=f"{len(column):,} in {column.name!r}")
    return read


def _columns(attributes: Any) -> dict[str, Any]:
    """The columns by name; names that are not text, such as 0, are converted to text."""
    if isinstance(attributes, Mapping):
        return _by_name(list(attributes), list(attributes.values()))
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(attributes, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise _not_unique(list(attributes.columns)) from None
    if isinstance(frame, nw.LazyFrame):
        raise InvalidTypeError(
            "attributes", "be held in memory", got="a lazy frame", advice="call .collect()"
        )
    if not isinstance(frame, nw.DataFrame):
        raise InvalidTypeError("attributes", _FRAME, got=shown(attributes))
    return _by_name(frame.columns, [frame.get_column(name) for name in frame.columns])


def _by_name(names: Sequence[Any], columns: Sequence[Any]) -> dict[str, Any]:
    """Columns by name, with names as text."""
    by_name = {str(name): column for name, column in zip(names, columns, strict=True)}
    if len(by_name) < len(names):
        raise _not_unique(names)
    return by_name


def _not_unique(names: Sequence[Any]) -> InvalidValueError:
    written = [str(name) for name in names]
    twice = next(name for name in written if written.count(name) > 1)
    return InvalidValueError(
        "attributes", "have columns with different names", got=f"two named {twice!r}"
    )


def _read_column(name: str, column: Any) -> AttributeColumn:
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return _of_arrow(name, column)
    import narwhals.stable.v2 as nw

    series = nw.from_native(column, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        if series.dtype.is_numeric():
            return AttributeColumn(name, _finite(name, _numbers_of(series)))
        if series.dtype.is_temporal():
            raise _wrong_kind(name, str(series.dtype))
        return _by_value(name, series.to_list())
    array = np.asarray(column)
    if array.ndim != 1:
        raise InvalidValueError(
            "attributes", "have flat columns", got=f"{name!r} of shape {array.shape}"
        )
    if array.dtype.kind in "iuf":
        return AttributeColumn(name, _finite(name, array.astype(np.float64)))
    if array.dtype.kind == "M":
        raise _wrong_kind(name, str(array.dtype))
    values = (
        list(column) if isinstance(column, list | tuple) else array.tolist()
    )  # numpy would turn mixed types into text
    return _read_objects(name, values)


def _of_arrow(name: str, column: Any) -> AttributeColumn:
    """Read a pyarrow column without other libraries, which workers of a cluster may lack."""
    types = pa.types
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    kind = array.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return AttributeColumn(name, _finite(name, np.asarray(numbers, dtype=np.float64)))
    if types.is_null(kind):
        return AttributeColumn(name, None, (), np.full(len(array), -1, dtype=np.intp))
    known = types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind)
    if not known and not types.is_dictionary(kind):
        if types.is_string_view(kind):
            return _read_objects(name, array.to_pylist())
        raise _wrong_kind(name, str(kind))
    encoded = array if types.is_dictionary(kind) else array.dictionary_encode()
    signed = encoded.indices.cast(pa.int64())  # Polars writes unsigned indices
    place = signed.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    # a dictionary may have duplicate and missing entries
    by_value = _by_value(name, encoded.dictionary.to_pylist())
    number = np.append(by_value._places, -1)
    return AttributeColumn(name, None, by_value.values, number[place])


def _numbers_of(series: Any) -> FloatArray:
    array = np.asarray(series.to_numpy())
    if array.dtype.kind in "iuf":  # missing values are NaN in an array of floats
        return array.astype(np.float64)
    return _with_nan(series.to_list())


def _with_nan(values: list[Any]) -> FloatArray:
    """Numbers given as Python objects, with NaN for missing values."""
    return np.array([np.nan if is_missing(value) else float(value) for value in values])


def _read_objects(name: str, values: list[Any]) -> AttributeColumn:
    """Read as numbers if all values that are not missing are numbers, otherwise by value."""
    present = [value for value in values if not is_missing(value)]
    if present and all(
        isinstance(value, Real | Decimal) and not isinstance(value, bool) for value in present
    ):
        return AttributeColumn(name, _finite(name, _with_nan(values)))
    return _by_value(name, values)


def _by_value(name: str, values: list[Any]) -> AttributeColumn:
    try:
        distinct, place = distinct_entries(values)
    except TypeError:
        strange = next(value for value in values if getattr(value, "__hash__", None) is None)
        raise _wrong_kind(name, type(strange).__name__) from None
    absent = np.array([is_missing(value) for value in distinct], dtype=bool)
    kept = tuple(_plain(name, value) for value in distinct if not is_missing(value))
    number = np.where(absent, -1, np.cumsum(~absent) - 1)
    return AttributeColumn(name, None, kept, number[place].astype(np.intp))


def _plain(name: str, value: Any) -> Hashable:
    """A value that JSON can represent, so that it can be saved and read back."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | bool | int | float):
        return value
    raise _wrong_kind(name, type(value).__name__)


def _finite(name: str, numbers: NDArray[np.float64]) -> FloatArray:
    if np.isinf(numbers).any():
        raise InvalidValueError(
            "attributes", "be finite or missing", got=f"an infinite number in {name!r}"
        )
    return numbers


def _wrong_kind(name: str, got: str) -> InvalidTypeError:
    advice = "turn dates into numbers, such as years, and other objects into text, with astype(str)"
    return InvalidTypeError("attributes", _KINDS, got=f"{got} in {name!r}", advice=advice)
