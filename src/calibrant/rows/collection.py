"""Scored rows brought into memory, for calibrators that need all of them at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._typing import CodeArray, IndexArray
from calibrant.errors import InvalidValueError
from calibrant.rows.batch import BatchRows, read_batch
from calibrant.rows.draw import Draw
from calibrant.rows.faults import Faults, Place
from calibrant.rows.work import Work

COLLECT_LIMIT = 100_000_000
"""Rows that are brought into memory at most: about 2 GB of scores and labels."""


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """Rows of some batches, with their places."""

    limit: int
    rows: tuple[tuple[Place, BatchRows], ...] = ()
    faults: Faults = field(default_factory=Faults)

    def __add__(self, other: "Collected") -> "Collected":
        both = Collected(self.limit, self.rows + other.rows, self.faults + other.faults)
        if sum(len(rows) for _, rows in both.rows) > self.limit:
            raise InvalidValueError(
                "the data",
                f"have at most {self.limit:,} rows where all of them must be in memory",
                got="more",
                advice="use BinningCalibrator, which counts rows where they are; or scored(...).collect(limit=...)",
            )
        return both

    def in_order(self) -> list[BatchRows]:
        """The rows of each batch, batches in the order of the data."""
        self.faults.check()
        return [rows for _, rows in sorted(self.rows, key=lambda piece: piece[0])]


@dataclass(frozen=True, slots=True)
class Collect(Work[Collected]):
    """Keep the rows; with a draw, a random part of them."""

    roles = ("label", "segment", "weight", "id")
    draw: Draw | None = None
    limit: int = COLLECT_LIMIT

    def __call__(self, batch: Any, place: Place) -> Collected:
        """Keep those of one batch."""
        rows, faults = read_batch(batch, self.columns, place, keys=self.draw is not None)
        if self.draw is not None:
            rows = rows.take(np.flatnonzero(self.draw.chosen(rows.keys)))
        return Collected(self.limit, ((place, rows),), faults)

    def nothing(self) -> Collected:
        """No rows."""
        return Collected(self.limit)


def joined_codes(
    batches: Sequence[tuple[Sequence[Any], IndexArray | CodeArray]], code_of: Callable[[Any], int]
) -> IndexArray:
    """One array of codes, from batches that each number their own entries."""
    parts = [np.array([code_of(name) for name in names], dtype=np.intp)[number] for names, number in batches]
    return np.concatenate([np.empty(0, dtype=np.intp), *parts])
