"""Rows that can not be used: counted wherever they are, and reported with the place of the first."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.errors import InvalidValueError


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a batch comes from: the number and name of a part of the data, and the batch's first row in it."""

    part: int
    first_row: int = 0
    name: str = ""

    def after(self, rows: int) -> "Place":
        """The place `rows` further on."""
        return Place(self.part, self.first_row + rows, self.name)

    def __str__(self) -> str:
        where = f"row {self.first_row + 1:,}"
        return f"{where} of {self.name}" if self.name else where


@dataclass(frozen=True, slots=True)
class Faults:
    """How many rows have which fault, and where the first of them is; faults of two batches add."""

    found: Mapping[tuple[str, str], tuple[int, Place]] = field(default_factory=dict)

    @classmethod
    def of(cls, column: str, rule: str, bad: Any, place: Place) -> "Faults":
        """The fault of breaking `rule` in the rows where `bad` is true."""
        rows = np.flatnonzero(bad)
        return cls({(column, rule): (rows.size, place.after(int(rows[0])))} if rows.size else {})

    def __bool__(self) -> bool:
        return bool(self.found)

    def __add__(self, other: "Faults") -> "Faults":
        if not other.found:
            return self
        total = dict(self.found)
        for kind, (count, place) in other.found.items():
            known, first = total.get(kind, (0, place))
            total[kind] = (known + count, min(first, place))
        return Faults(total)

    def check(self) -> None:
        """Raise one error that tells them all."""
        if not self.found:
            return
        told = [
            f"column {column!r} must {rule}: {count:,} {'row does' if count == 1 else 'rows do'} not, "
            f"{'' if count == 1 else 'the first '}{place}"
            for (column, rule), (count, place) in sorted(self.found.items(), key=lambda item: item[1][1])
        ]
        raise InvalidValueError("; ".join(told) + ". Mend or remove such rows: none is ever dropped in silence")
