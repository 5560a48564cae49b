"""A fingerprint of scored rows, the same in whatever order, parts, format and engine they come."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.rows.base import ScoredData
from calibrant.rows.batch import BatchRows, Columns, read_batch
from calibrant.rows.draw import mixed
from calibrant.rows.faults import Faults, Place
from calibrant.rows.work import Work

_WORD = 2**64
_STARTS = (0x243F6A8885A308D3, 0x13198A2E03707344)  # digits of pi: two chains that share nothing but the rows


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """How many rows, and two sums over numbers that stand for them; those of two parts of the data add.

    It tells rows that were changed, lost or doubled by accident. It is no seal against someone who wants two data sets
    to look alike.
    """

    rows: int = 0
    first: int = 0
    second: int = 0
    faults: Faults = field(default_factory=Faults, compare=False)

    def __add__(self, other: "Fingerprint") -> "Fingerprint":
        first, second = (self.first + other.first) % _WORD, (self.second + other.second) % _WORD
        return Fingerprint(self.rows + other.rows, first, second, self.faults + other.faults)

    def __str__(self) -> str:
        return f"{self.first:016x}{self.second:016x}"


@dataclass(frozen=True, slots=True)
class TakeFingerprint(Work[Fingerprint]):
    """Sum up a number for each row, made of its score, label, segment and weight."""

    data_columns: Columns

    @property
    def columns(self) -> Columns:
        """All but the id, which says nothing of what is counted."""
        return self.data_columns.only("label", "segment", "weight")

    def __call__(self, batch: Any, place: Place) -> Fingerprint:
        """The fingerprint of one batch."""
        rows, faults = read_batch(batch, self.columns, place)
        first, second = (int(_chain(rows, start).sum(dtype=np.uint64)) for start in _STARTS)
        return Fingerprint(len(rows), first, second, faults)

    def nothing(self) -> Fingerprint:
        """No rows."""
        return Fingerprint()


def fingerprint(data: ScoredData) -> Fingerprint:
    """Read the data once; refuse rows that can not be used.

    Scores and weights are taken as doubles; labels and segments as text, whole numbers and bools alike, so that a
    label 1 read from CSV is the true of a Parquet file.

    >>> import pyarrow as pa
    >>> from calibrant import scored
    >>> one = scored(pa.table({"p": [0.1, 0.9], "y": [0, 1]}), score="p", label="y")
    >>> other = scored(pa.table({"q": [0.9, 0.1], "z": [True, False]}), score="q", label="z")
    >>> str(fingerprint(one)), fingerprint(one) == fingerprint(other)
    ('1265d033e4b21b6f01f069c795dcef9d', True)
    """
    found = data.fold(TakeFingerprint(data.columns))
    found.faults.check()
    return found


def _chain(rows: BatchRows, start: int) -> NDArray[np.uint64]:
    state = mixed(_bits(rows.scores) ^ np.uint64(start))
    if rows.labels is not None:
        state = mixed(state ^ _named(rows.labels.kinds, "label")[rows.labels.number])
    if rows.segments is not None:
        state = mixed(state ^ _named(rows.segments.names, "segment")[rows.segments.number])
    if rows.weights is not None:
        state = mixed(state ^ _bits(rows.weights))
    return state


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    doubles: NDArray[np.float64] = values.astype(np.float64) + 0.0  # minus zero is zero
    return doubles.view(np.uint64)


def _named(kinds: tuple[Any, ...], part: str) -> NDArray[np.uint64]:
    """A number for each kind of label or segment."""
    digests = [hashlib.blake2b(f"{part}:{_text(kind)}".encode(), digest_size=8).digest() for kind in kinds]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _text(kind: Any) -> str:
    if isinstance(kind, bool) or (isinstance(kind, float) and kind.is_integer()):
        kind = int(kind)
    return repr(kind) if isinstance(kind, float | bytes) else str(kind)
