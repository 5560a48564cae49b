"""Scored data as arrays in memory, for what needs all rows at once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.rows.base import ScoredData
from calibrant.rows.batch import BatchRows, Columns, read_batch
from calibrant.rows.draw import Draw
from calibrant.rows.faults import Faults, Place
from calibrant.rows.work import Work


@dataclass(frozen=True, slots=True, eq=False)
class InMemory:
    """Columns of all rows, in the order of the files."""

    scores: NDArray[Any]
    labels: NDArray[Any]
    segments: NDArray[Any] | None
    weights: NDArray[np.float64] | None


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Rows of some batches, with their places."""

    rows: tuple[tuple[Place, BatchRows], ...] = ()
    faults: Faults = field(default_factory=Faults)

    def __add__(self, other: "Pieces") -> "Pieces":
        return Pieces(self.rows + other.rows, self.faults + other.faults)


@dataclass(frozen=True, slots=True)
class Gather(Work[Pieces]):
    """Keep the rows; with a draw, a random part of them."""

    data_columns: Columns
    draw: Draw | None = None

    @property
    def columns(self) -> Columns:
        """All that is named."""
        return self.data_columns

    def __call__(self, batch: Any, place: Place) -> Pieces:
        """The rows of one batch."""
        rows, faults = read_batch(batch, self.columns, place, keys=self.draw is not None)
        if self.draw is not None and rows.keys is not None:
            rows = rows.take(np.flatnonzero(self.draw.chosen(rows.keys)))
        return Pieces(((place, rows),), faults)

    def nothing(self) -> Pieces:
        """No rows."""
        return Pieces()


def in_memory(data: ScoredData, draw: Draw | None = None) -> InMemory:
    """Read everything, or the drawn part; refuse rows that can not be used."""
    pieces = data.fold(Gather(data.columns, draw))
    pieces.faults.check()
    rows = [found for _, found in sorted(pieces.rows, key=lambda piece: piece[0])]
    return InMemory(
        np.concatenate([np.empty(0), *(part.scores for part in rows)]),
        _joined(rows, lambda part: (part.labels.kinds, part.labels.number) if part.labels is not None else None),
        None
        if data.columns.segment is None
        else _joined(rows, lambda part: (part.segments.names, part.segments.number) if part.segments else None),
        None
        if data.columns.weight is None
        else np.concatenate([np.empty(0), *(part.weights for part in rows if part.weights is not None)]),
    )


def _joined(rows: list[BatchRows], coded: Callable[[BatchRows], Any]) -> NDArray[Any]:
    """Entries of all batches, each of which numbers its own kinds."""
    codes = [pair for pair in map(coded, rows) if pair is not None]
    kinds: dict[Any, int] = {}
    numbers = [np.array([kinds.setdefault(kind, len(kinds)) for kind in names], dtype=np.intp)[n] for names, n in codes]
    table = np.array(list(kinds))
    return table[np.concatenate([np.empty(0, dtype=np.intp), *numbers])] if len(table) else np.empty(0)
