"""A fingerprint of scored rows that does not depend on their order, format or engine.

Also the range of scores.
"""

from dataclasses import dataclass, field
from typing import Any

from calibrant._typing import Keys
from calibrant.params.random import RowSums, text_keys
from calibrant.sample.batch import BatchRows, Coded, Work
from calibrant.sample.facts import Reach
from calibrant.sample.faults import Faults, Place
from calibrant.sample.rows import Rows
from calibrant.sample.taken_rows import row_sums


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Sums over all columns of rows, with every digit, and over these rows in order.

    Fingerprints of two parts of the data can be added.

    It detects rows that were changed, lost or duplicated by accident. It does not detect deliberate
    tampering.
    """

    every_digit: RowSums = field(default_factory=RowSums)
    ordered: RowSums = field(default_factory=RowSums, compare=False)
    reach: Reach = field(default_factory=Reach, compare=False)
    faults: Faults = field(default_factory=Faults, compare=False)
    sums: RowSums = field(default_factory=RowSums, compare=False)

    def __add__(self, other: "Fingerprint") -> "Fingerprint":
        return Fingerprint(
            self.every_digit + other.every_digit,
            self.ordered + other.ordered,
            self.reach + other.reach,
            self.faults + other.faults,
            self.sums + other.sums,
        )

    def __str__(self) -> str:
        return f"{self.every_digit.fingerprint:032x}"

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(rows for rows, _ in self.every_digit.kinds.values())

    @property
    def in_order(self) -> str | None:
        """A fingerprint that also depends on the order of the rows.

        None if rows are drawn in any order.
        """
        return f"{self.ordered.fingerprint:032x}" if self.ordered.kinds else None


@dataclass(frozen=True, slots=True)
class TakeFingerprint(Work[Fingerprint]):
    """Sum a number for each row, computed from its score, label, segment, weight and group.

    Its id is not used.
    """

    roles = ("label", "segment", "weight", "group")
    nothing = Fingerprint()
    in_order: bool = False

    @property
    def needs_keys(self) -> bool:
        """Whether rows have groups, or their order matters."""
        return self.in_order or self.columns.group is not None

    def of_rows(self, rows: BatchRows, place: Place) -> Fingerprint:
        """The fingerprint of one batch."""
        columns: list[Any] = [rows.scores]
        columns += [_keys(coded) for coded in (rows.labels, rows.segments) if coded is not None]
        columns += [] if rows.weights is None else [rows.weights]
        columns += [rows.keys] if rows.keys.size and not self.in_order else []
        every_digit = RowSums.of(columns, exact=True)
        ordered = RowSums.of([*columns, rows.keys], exact=True) if self.in_order else RowSums()
        return Fingerprint(every_digit, ordered, Reach.of(rows.scores), rows.faults, row_sums(rows))


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
    ('4aeb1aa989296519016bceb99d11d60f', True)
    """
    in_order = ordered and data.has_order and not data.columns.keyed
    found = data.fold(TakeFingerprint(data.columns, in_order))
    found.faults.check()
    data.note_sums(found.sums)  # a fit of the same data need not read them for it
    return found


def reach_of(data: Rows) -> Reach:
    """The smallest and the largest score of the usable rows."""
    return data.fold(TakeFingerprint(data.columns.only())).reach


def _keys(coded: Coded) -> Keys:
    """A number for the label or segment of each row."""
    return text_keys([_text(name) for name in coded.names])[coded.number]


def _text(name: Any) -> str:
    if isinstance(name, bool) or (isinstance(name, float) and name.is_integer()):
        name = int(name)
    return repr(name) if isinstance(name, float | bytes) else str(name)
