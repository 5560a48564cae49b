"""Unusable rows: counted wherever they are, and reported with the place of the first."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from calibrant._typing import BoolArray
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import FIX_ROWS, SKIP_ROWS
from calibrant.sample.row_keys import partition_start
from calibrant.text.numbers import counted


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a batch comes from: a part of the data, such as a file, and the batch's first row in
    it.

    Attributes
    ----------
    part, first_row : int
        Index of the part, and of the row in it; both from 0.
    name : str
        Name of the file; empty for other data.
    before : int or None
        Rows in all parts before this one; None if the parts have no order, as on a cluster.
    """

    part: int
    first_row: int = 0
    name: str = ""
    before: int | None = field(default=0, compare=False)

    def after(self, rows: int) -> "Place":
        """The place `rows` further on."""
        return Place(self.part, self.first_row + rows, self.name, self.before)

    @property
    def key(self) -> int:
        """The draw key of the first row: its position among all rows, if the rows have an order."""
        return (partition_start(self.part) if self.before is None else self.before) + self.first_row

    def __str__(self) -> str:
        if self.name:  # people open files in editors, which count from 1
            return f"row {self.first_row + 1:,} of {self.name}"
        where = f"row index {self.first_row:,}"
        return where if self.before is not None else f"{where} of partition {self.part}"


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that a column breaks in some rows: the column's role, its name, and the words after
    "must".
    """

    role: str
    column: str
    rule: str


@dataclass(frozen=True, slots=True)
class Faults:
    """How many rows have which fault, and where the first one is; faults of two batches can be
    added.
    """

    found: Mapping[Fault, tuple[int, Place]] = field(default_factory=dict)

    @classmethod
    def of(cls, fault: Fault, bad: BoolArray, place: Place) -> "Faults":
        """The fault in the rows where `bad` is true."""
        rows = np.flatnonzero(bad)
        return cls({fault: (rows.size, place.after(int(rows[0])))} if rows.size else {})

    def __add__(self, other: "Faults") -> "Faults":
        if not other.found:
            return self
        total = dict(self.found)
        for fault, (count, place) in other.found.items():
            known, first = total.get(fault, (0, place))
            total[fault] = (known + count, min(first, place))
        return Faults(total)

    def check(self) -> None:
        """Raise one error that lists all faults, with the first in its fields."""
        if not self.found:
            return
        (fault, first), *others = sorted(self.found.items(), key=lambda item: item[1][1])
        more = (
            f"; {one.role} column {one.column!r} must {one.rule}; got {_rows(*where)}"
            for one, where in others
        )
        got = _rows(*first) + "".join(more)
        advice = SKIP_ROWS if any(fault.role == "label" for fault in self.found) else FIX_ROWS
        raise InvalidValueError(fault.role, fault.rule, got=got, advice=advice, column=fault.column)


def _rows(count: int, first: Place) -> str:
    return f"{counted(count, 'faulty row')}, {'' if count == 1 else 'the first '}{first}"
