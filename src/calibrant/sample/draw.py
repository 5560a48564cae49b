"""One random draw for all sources: rows are drawn by position, id or group, never by score or
label.

Each row has a key, a 64-bit number: its position among all rows, counted from 0, or a number
computed from its id or its group; with groups, whole groups are drawn. The draw has a key, too: a
hash of the seed and of a fingerprint of all rows (see `calibrant.params.random`), so that the draw
is fresh for each data set. Both give the hash of a row, ``mixed(row + draw)``, modulo 2**64. A row
is drawn if its hash, as an unsigned number, is below a limit.

So the same seed draws the same rows of the same data in memory, in files and on a device; on a
cluster too, if rows have ids or groups. Dask and Spark frames have no positions: there, without an
id, the key of a row is computed from its partition and its position in it, so other partitions draw
other rows.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import pa
from calibrant._typing import Keys, Seed
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.random import RandomSource, mixed

DRAW_RULE = 3
"""Version of the rule by which rows are drawn. Files with a draw record it.

Under rule 1 each source had its own draw; under rule 2 the draw depended on the seed alone, not on
the rows. Draws under these rules are not repeated.
"""

_ALL = 2**64
_BASE = 0x100000001B3  # odd, so that its powers have inverses modulo 2**64
_INVERSE = pow(_BASE, -1, 2**64)
_DAY = 86_400
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TEXTS = (
    "string",
    "large_string",
    "binary",
    "large_binary",
    "fixed_size_binary",
)  # prefixes of the names of Arrow types
_CHUNK = 1 << 15  # rows whose hashes fit in the processor's cache
_TEXT_ROWS = 1 << 14  # rows at a time: their table of powers takes 8 bytes per byte of text


@dataclass(frozen=True, slots=True)
class Draw:
    """The rows whose hash is below a limit. A larger limit draws the same rows and more.

    Attributes
    ----------
    key : int
        64 bits, computed from the seed and the rows; see `RandomSource`.
    limit : int
        From 0, which draws nothing, to 2**64, which draws everything.
    limits : mapping from segment to int
        Limits for individual segments; `limit` is for all others.
    """

    key: int
    limit: int = 0
    limits: Mapping[Hashable, int] = field(default_factory=dict)

    @classmethod
    def of_share(cls, key: int, share: float) -> Self:
        """Keep each row with probability `share`.

        >>> Draw.of_share(7, 0.5).chosen(np.arange(8, dtype=np.uint64))
        array([ True, False, False,  True,  True, False, False,  True])
        """
        return cls(key, int(share * 2.0**64))

    def hashes(self, keys: Keys) -> Keys:
        """The hash of each row, which is compared with the limit."""
        return RandomSource(self.key).hashes(keys)

    def chosen(
        self, keys: Keys, parts: Iterable[tuple[Hashable, Any]] = ((None, slice(None)),)
    ) -> NDArray[np.bool_]:
        """Return whether each row is drawn; `parts` are pairs of a segment's name and its rows."""
        drawn = np.ones(len(keys), dtype=bool)
        for name, rows in parts:
            limit = self.limits.get(name, self.limit)
            if limit < _ALL:
                drawn[rows] = self._below(keys[rows], limit)
        return drawn

    def _below(self, keys: Keys, limit: int) -> NDArray[np.bool_]:
        below = np.empty(len(keys), dtype=bool)
        buffers = np.empty((2, min(len(keys), _CHUNK)), dtype=np.uint64)
        key = self.key
        for start in range(0, len(keys), _CHUNK):
            part = keys[start : start + _CHUNK]
            hashes = mixed(part, key, buffers[:, : len(part)])
            np.less(hashes, np.uint64(limit), out=below[start : start + _CHUNK])
        return below


@dataclass(frozen=True, slots=True, eq=False)
class SmallestHashes:
    """The `most` smallest distinct hashes of rows or groups; those of two parts of the data can be
    added.

    A draw of exactly `most` rows has a limit just above the largest of them.
    """

    most: int
    found: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))

    def __add__(self, other: "SmallestHashes") -> "SmallestHashes":
        # with counts numpy sorts, which is faster here than its hash table
        found, _ = np.unique(np.concatenate([self.found, other.found]), return_counts=True)
        return SmallestHashes(self.most, found[: self.most])

    @property
    def limit(self) -> int:
        """The limit that draws these rows."""
        return int(self.found.max()) + 1 if self.found.size else 0


def draw_key(random_state: Seed, rows: int) -> int:
    """Return the key of draws that set rows aside: the same for all of them, so that larger draws
    contain smaller ones.

    `rows` is the fingerprint of all rows.
    """
    return RandomSource.of(random_state, "set aside", rows=rows).key


def smallest(hashes: Keys, most: int) -> Keys:
    """Return the `most` smallest numbers, in any order."""
    return hashes if hashes.size <= most else np.partition(hashes, most - 1)[:most]


def enough(most: int, n_rows: int) -> int:
    """Return a limit that draws at least `most` of `n_rows` rows, except with probability 1e-20,
    and not many more.
    """
    if most in (0, n_rows) or most > n_rows:
        return _ALL if most else 0
    return min(_ALL, int((most + 10.0 * most**0.5 + 50.0) / n_rows * 2.0**64))


def random_places(keys: Keys, source: RandomSource) -> NDArray[np.intp]:
    """Return the position of each row's key in a random order of the distinct keys."""
    return np.unique(source.hashes(keys), return_inverse=True)[1]


def folds_of(
    keys: Keys, source: RandomSource, n_folds: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return training rows and test rows of each fold; rows with equal keys are in the same fold."""
    fold = random_places(keys, source) % n_folds
    return [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(n_folds)]


def repeated(keys: NDArray[Any]) -> NDArray[Any]:
    """Return the keys that occur more than once, without their first occurrence."""
    ordered = np.sort(keys)
    return np.asarray(ordered[1:][ordered[1:] == ordered[:-1]])


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
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return _time_keys(ids)
    if str(kind).startswith(_TEXTS):
        texts = ids.cast(pa.large_binary())
        parts = [
            _text_keys(texts.slice(start, _TEXT_ROWS)) for start in range(0, len(texts), _TEXT_ROWS)
        ]
        return np.concatenate([np.empty(0, np.uint64), *parts])
    raise InvalidTypeError(role, "hold whole numbers, dates or text", got=str(kind), column=name)


def _whole_keys(ids: Any, name: str, role: str) -> Keys:
    try:
        return np.asarray(ids.cast(pa.int64()).to_numpy()).view("u8")
    except pa.ArrowInvalid:
        rule = "hold whole numbers that fit 64 bits, dates or text"
        raise InvalidTypeError(role, rule, got=str(ids.type), column=name) from None


def _time_keys(ids: Any) -> Keys:
    """Keys of dates and times, the same for an instant in any unit, such as seconds or
    microseconds.
    """
    kind = ids.type
    counts = np.asarray(
        ids.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).to_numpy()
    ).astype(np.int64)
    if pa.types.is_date32(kind):
        return np.asarray(counts * _DAY).view("u8")
    return _instant_keys(counts, "ms" if pa.types.is_date64(kind) else kind.unit)


def _instant_keys(counts: NDArray[np.int64], unit_name: str) -> Keys:
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
