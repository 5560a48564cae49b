"""A random part of the rows, chosen by who they are or where they stand, never by what they hold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InvalidTypeError

Keys = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BASE = 0x100000001B3  # odd, so that its powers have inverses modulo 2**64
_INVERSE = pow(_BASE, -1, 2**64)
_DAY = 86_400
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TEXT_ROWS = 1 << 14  # of which a table of powers, 8 bytes for every byte of text, is held at a time


@dataclass(frozen=True, slots=True)
class Draw:
    """Keep each row with probability `share`, independently, by a number derived from its key and the seed.

    The same seed draws the same keys on every engine, however the rows are split up.
    """

    seed: int
    share: float

    def chosen(self, keys: Keys) -> NDArray[np.bool_]:
        """Whether each row is in the drawn part."""
        limit = np.uint64(min(int(self.share * 2.0**64), 2**64 - 1))
        return np.asarray(mixed(keys + mixed(np.array([self.seed], dtype=np.uint64))) < limit)


def mixed(values: Keys) -> Keys:
    """Scramble 64-bit numbers: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), a one-to-one map."""
    z = values + _GOLDEN
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def position_keys(part: int, first_row: int, n_rows: int) -> Keys:
    """A key for each row of a part of the data, from the number of the part and of the row in it."""
    start = mixed(np.array([part], dtype=np.uint64))
    rows: Keys = np.arange(first_row, first_row + n_rows, dtype=np.uint64)
    return np.asarray(start + rows, dtype=np.uint64)


def id_keys(ids: Any, name: str) -> Keys:
    """A key for each entry of an Arrow array of whole numbers, dates or text: equal where the ids are equal."""
    import pyarrow as pa

    kind = ids.type
    if pa.types.is_dictionary(kind):
        return np.asarray(id_keys(ids.dictionary, name)[ids.indices.to_numpy()])
    if pa.types.is_decimal(kind):  # how DuckDB gives whole numbers of 128 bits
        return _whole_keys(ids, name)
    if pa.types.is_integer(kind):
        return np.asarray(ids.to_numpy()).astype(np.int64 if pa.types.is_signed_integer(kind) else np.uint64).view("u8")
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        return _time_keys(ids)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) or _is_bytes(kind):
        texts = ids.cast(pa.large_binary())
        parts = [_text_keys(texts.slice(start, _TEXT_ROWS)) for start in range(0, len(texts), _TEXT_ROWS)]
        return np.concatenate([np.empty(0, np.uint64), *parts])
    raise InvalidTypeError(f"id column {name!r} must hold whole numbers, dates or text; got {kind}")


def _whole_keys(ids: Any, name: str) -> Keys:
    import pyarrow as pa

    try:
        return np.asarray(ids.cast(pa.int64()).to_numpy()).view("u8")
    except pa.ArrowInvalid:
        raise InvalidTypeError(
            f"id column {name!r} must hold whole numbers that fit 64 bits, dates or text; got {ids.type}"
        ) from None


def _time_keys(ids: Any) -> Keys:
    """Keys of dates and times, the same for an instant in seconds, microseconds or any other unit."""
    import pyarrow as pa

    kind = ids.type
    counts = np.asarray(ids.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).to_numpy()).astype(np.int64)
    if pa.types.is_date32(kind):
        return np.asarray(counts * _DAY).view("u8")
    unit = _UNITS["ms" if pa.types.is_date64(kind) else kind.unit]
    seconds, rest = np.divmod(counts, unit)
    nanoseconds = (rest * (_UNITS["ns"] // unit)).view(np.uint64)
    # on a whole second, the second itself; else scrambled, so that it is no other second's key
    return np.where(nanoseconds == 0, seconds.view(np.uint64), mixed(mixed(seconds.view(np.uint64)) + nanoseconds))


def _is_bytes(kind: Any) -> bool:
    return str(kind) in {"string_view", "binary_view", "large_binary"} or str(kind).startswith("fixed_size_binary")


def _text_keys(texts: Any) -> Keys:
    """Sum of byte[j] * base**j modulo 2**64, found for all texts of a buffer at once from running sums."""
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(texts.buffers()[2], dtype=np.uint8)[first:last] if last > first else np.empty(0, np.uint8)
    running = np.zeros(last - first + 1, dtype=np.uint64)
    np.cumsum((data.astype(np.uint64) + np.uint64(1)) * _powers(_BASE, data.size), out=running[1:])
    starts = offsets[:-1] - first
    totals = running[offsets[1:] - first] - running[starts]
    return mixed(totals * _powers(_INVERSE, data.size + 1)[starts])


def _powers(base: int, count: int) -> Keys:
    factors = np.full(count, base, dtype=np.uint64)
    factors[:1] = 1
    return np.cumprod(factors, dtype=np.uint64)
