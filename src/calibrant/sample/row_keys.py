"""Keys of rows: the 64-bit numbers by which rows are drawn (`calibrant.params.random`).

The key of a row is its position among all rows, counted from 0, or a number computed from its id or
its group. Dask and Spark frames have no positions: there, without an id, the key of a row is
computed from its partition and its position in it, so other partitions draw other rows.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import pa
from calibrant._typing import Keys
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import repeated
from calibrant.params.random import mixed

_ALL = 2**64
_BASE = 0x100000001B3  # odd, so that its powers have inverses modulo 2**64
_INVERSE = pow(_BASE, -1, 2**64)
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TEXTS = (
    "string",
    "large_string",
    "binary",
    "large_binary",
    "fixed_size_binary",
)  # prefixes of the names of Arrow types
_TEXT_ROWS = 1 << 14  # rows at a time: their table of powers takes 8 bytes per byte of text


def check_ids(keys: Iterable[Keys], column: str) -> None:
    """Raise an error if several rows share an id.

    Rows with equal ids are drawn together. If each customer has many rows, the rows not drawn
    belong to other customers and are not a random part of the rows.
    """
    if repeated(np.concatenate([np.empty(0, dtype=np.uint64), *keys])).size:
        rule = "be different in every row, because rows with equal ids are drawn together"
        advice = (
            "name a column that is unique per row; if rows are grouped, such as by"
            " customer, use groups"
        )
        raise InvalidValueError(
            "id", rule, got="an id that several rows share", advice=advice, column=column
        )


def position_keys(first: int, n_rows: int) -> Keys:
    """Keys of consecutive rows, given the position of the first."""
    return np.arange(n_rows, dtype=np.uint64) + np.uint64(first % _ALL)


def partition_start(partition: int) -> int:
    """The first key of a partition whose position among the rows is unknown: far from the keys of
    all others.
    """
    return int(mixed(np.array([partition], dtype=np.uint64))[0])


def key_kind(kind: Any) -> str | None:
    """Return what keys of an Arrow type are computed from: "numbers", "dates" or "text"; None for a
    column of nulls.
    """
    if pa.types.is_dictionary(kind):
        return key_kind(kind.value_type)
    if pa.types.is_null(kind):
        return None
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if is_number or pa.types.is_boolean(kind):
        return "numbers"
    return "dates" if pa.types.is_temporal(kind) else "text"


def id_keys(ids: Any, name: str, role: str = "id") -> Keys:
    """A key for each entry of an Arrow array of whole numbers, dates or text; equal entries have
    equal keys.

    Different whole numbers have different keys. Among a million different texts, two share a key
    with probability 3e-8.
    """
    kind = ids.type
    if pa.types.is_dictionary(kind):
        return np.asarray(id_keys(ids.dictionary, name, role)[ids.indices.to_numpy()])
    can_be_whole = role == "group" and (pa.types.is_floating(kind) or pa.types.is_boolean(kind))
    if can_be_whole or pa.types.is_decimal(kind):  # DuckDB returns 128-bit integers as decimals
        return _whole_keys(ids, name, role)
    if pa.types.is_integer(kind):
        return value_keys(np.asarray(ids.to_numpy()))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return value_keys(np.asarray(ids.to_numpy(zero_copy_only=False)))
    if str(kind).startswith(_TEXTS):
        texts = ids.cast(pa.large_binary())
        parts = [
            _text_keys(texts.slice(start, _TEXT_ROWS)) for start in range(0, len(texts), _TEXT_ROWS)
        ]
        return np.concatenate([np.empty(0, np.uint64), *parts])
    raise InvalidTypeError(role, "contain whole numbers, dates or text", got=str(kind), column=name)


def _whole_keys(ids: Any, name: str, role: str) -> Keys:
    try:
        return np.asarray(ids.cast(pa.int64()).to_numpy()).view("u8")
    except pa.ArrowInvalid:
        rule = "contain whole numbers that fit 64 bits, dates or text"
        raise InvalidTypeError(role, rule, got=str(ids.type), column=name) from None


def _instant_keys(counts: NDArray[np.int64], unit_name: str) -> Keys:
    """Keys of dates and times, the same for an instant in any unit, such as seconds or
    microseconds.
    """
    unit = _UNITS[unit_name]
    seconds, rest = np.divmod(counts, unit)
    nanoseconds = (rest * (_UNITS["ns"] // unit)).view(np.uint64)
    # for a whole second, the second itself; otherwise scrambled, so that it differs from any
    # second's key
    return np.where(
        nanoseconds == 0,
        seconds.view(np.uint64),
        mixed(mixed(seconds.view(np.uint64)) + nanoseconds),
    )


def _text_keys(texts: Any) -> Keys:
    """Keys of an Arrow array of bytes."""
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    first = int(offsets[0])
    last = int(offsets[-1])
    data = (
        np.frombuffer(texts.buffers()[2], dtype=np.uint8)[first:last]
        if last > first
        else np.empty(0, np.uint8)
    )
    return _byte_keys(data, offsets - first)


def _byte_keys(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Keys:
    """Sum of byte[j] * base**j modulo 2**64, computed from running sums for all texts of a buffer
    at once.
    """
    running = np.zeros(data.size + 1, dtype=np.uint64)
    np.cumsum((data.astype(np.uint64) + np.uint64(1)) * _powers(_BASE, data.size), out=running[1:])
    starts = offsets[:-1]
    totals = running[offsets[1:]] - running[starts]
    return mixed(totals * _powers(_INVERSE, data.size + 1)[starts])


def value_keys(values: NDArray[Any]) -> Keys:
    """The same keys as `id_keys`, for a numpy array of whole numbers, dates or text, without
    pyarrow.

    >>> value_keys(np.array([3, 4])), value_keys(np.array(["a"], dtype=object))
    (array([3, 4], dtype=uint64), array([17360999193197444373], dtype=uint64))
    """
    if values.dtype.kind in "biu":
        return values.astype(np.uint64 if values.dtype.kind == "u" else np.int64).view(np.uint64)
    if values.dtype.kind == "M":
        unit = np.datetime_data(values.dtype)[0]
        known = unit if unit in _UNITS else "s"
        return _instant_keys(values.astype(f"datetime64[{known}]").astype(np.int64), known)
    keys = [np.empty(0, np.uint64)]
    for start in range(0, len(values), _TEXT_ROWS):
        parts = [
            text if isinstance(text, bytes) else str(text).encode()
            for text in values[start : start + _TEXT_ROWS]
        ]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        keys.append(_byte_keys(np.frombuffer(b"".join(parts), dtype=np.uint8), offsets))
    return np.concatenate(keys)


def _powers(base: int, count: int) -> Keys:
    factors = np.full(count, base, dtype=np.uint64)
    factors[:1] = 1
    return np.cumprod(factors, dtype=np.uint64)
