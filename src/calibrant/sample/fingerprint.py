"""A fingerprint of scored rows that does not depend on their order, format or engine.

Also the range of scores.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import Keys
from calibrant.params.random import RowSums, mixed
from calibrant.sample.batch import BatchRows, Coded, Work, read_batch
from calibrant.sample.facts import Reach
from calibrant.sample.faults import Faults, Place
from calibrant.sample.rows import Rows
from calibrant.sample.taken_rows import row_sums

_WORD = 2**64
_STARTS = (
    0x243F6A8885A308D3,
    0x13198A2E03707344,
)  # digits of pi: two chains that share nothing but the rows


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The number of rows, and two sums over row hashes.

    Fingerprints of two parts of the data can be added.

    It detects rows that were changed, lost or duplicated by accident. It does not detect deliberate
    tampering.
    """

    rows: int = 0
    first: int = 0
    second: int = 0
    ordered: int | None = field(default=0, compare=False)
    reach: Reach = field(default_factory=Reach, compare=False)
    faults: Faults = field(default_factory=Faults, compare=False)
    sums: RowSums = field(default_factory=RowSums, compare=False)

    def __add__(self, other: "Fingerprint") -> "Fingerprint":
        first = (self.first + other.first) % _WORD
        second = (self.second + other.second) % _WORD
        ordered = None
        if self.ordered is not None and other.ordered is not None:
            ordered = (self.ordered + other.ordered) % _WORD
        reach = self.reach + other.reach
        faults = self.faults + other.faults
        rows = self.rows + other.rows
        return Fingerprint(rows, first, second, ordered, reach, faults, self.sums + other.sums)

    def __str__(self) -> str:
        return f"{self.first:016x}{self.second:016x}"

    @property
    def in_order(self) -> str | None:
        """A fingerprint that also depends on the order of the rows.

        None if rows are drawn in any order.
        """
        return None if self.ordered is None else f"{self.ordered:016x}"


@dataclass(frozen=True, slots=True)
class TakeFingerprint(Work[Fingerprint]):
    """Sum a number for each row, computed from its score, label, segment, weight and group.

    Its id is not used.
    """

    roles = ("label", "segment", "weight", "group")
    nothing = Fingerprint()
    in_order: bool = False

    @property
    def needs_positions(self) -> bool:
        """Whether the order matters."""
        return self.in_order

    def __call__(self, batch: Any, place: Place) -> Fingerprint:
        """The fingerprint of one batch."""
        grouped = self.columns.group is not None
        rows, faults = read_batch(batch, self.columns, place, keys=grouped or self.in_order)
        chains = [_chain(rows, start, grouped=grouped) for start in _STARTS]
        first, second = (int(chain.sum(dtype=np.uint64)) for chain in chains)
        ordered = None
        if self.in_order:
            ordered = int(mixed(chains[0] ^ mixed(rows.keys)).sum(dtype=np.uint64))
        reach = Reach.of(rows.scores)
        return Fingerprint(len(rows), first, second, ordered, reach, faults, row_sums(rows))


def fingerprint(data: Rows, *, ordered: bool = False) -> Fingerprint:
    """Read the data once; raise an error for rows that cannot be used.

    If `ordered`, it includes a fingerprint of the rows in order, unless rows are drawn by a column.

    Scores and weights are converted to doubles; labels and segments to text, with whole numbers and
    bools alike, so that a label 1 read from CSV equals true in a Parquet file.

    >>> import pyarrow as pa
    >>> from calibrant import scored
    >>> from calibrant.sample.reader import rows_of
    >>> one = scored(pa.table({"p": [0.1, 0.9], "y": [0, 1]}), score="p", label="y")
    >>> other = scored(pa.table({"q": [0.9, 0.1], "z": [True, False]}), score="q", label="z")
    >>> found = fingerprint(rows_of(one))
    >>> str(found), found == fingerprint(rows_of(other))
    ('1265d033e4b21b6f01f069c795dcef9d', True)
    """
    in_order = ordered and data.has_order and not data.columns.keyed
    found = data.fold(TakeFingerprint(data.columns, in_order))
    found.faults.check()
    data.note_sums(found.sums)  # a fit of the same data need not read them for it
    return found


def reach_of(data: Rows) -> Reach:
    """The smallest and the largest score of the usable rows."""
    return data.fold(TakeFingerprint(data.columns.only())).reach


def _chain(rows: BatchRows, start: int, *, grouped: bool) -> Keys:
    state = mixed(_bits(rows.scores) ^ np.uint64(start))
    for role, coded in (("label", rows.labels), ("segment", rows.segments)):
        if coded is not None:
            state = mixed(state ^ _numbers(coded, role)[coded.number])
    if grouped and rows.keys.size:
        state = mixed(state ^ rows.keys)
    return state if rows.weights is None else mixed(state ^ _bits(rows.weights))


def _bits(values: NDArray[Any]) -> Keys:
    doubles: NDArray[np.float64] = values.astype(np.float64) + 0.0  # turns -0.0 into 0.0
    return doubles.view(np.uint64)


def _numbers(coded: Coded, role: str) -> Keys:
    """A number for each distinct label or segment."""
    digests = [
        hashlib.blake2b(f"{role}:{_text(name)}".encode(), digest_size=8).digest()
        for name in coded.names
    ]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _text(name: Any) -> str:
    if isinstance(name, bool) or (isinstance(name, float) and name.is_integer()):
        name = int(name)
    return repr(name) if isinstance(name, float | bytes) else str(name)
