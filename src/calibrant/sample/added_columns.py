"""The columns that a fitted calibrator adds to a batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import pa
from calibrant._typing import FloatArray, IndexArray
from calibrant.cells.bins import Bins
from calibrant.errors import InvalidValueError
from calibrant.sample.batch import Coded, Columns, read_batch
from calibrant.sample.counts import segment_numbers
from calibrant.sample.faults import Place
from calibrant.text.sentences import Setting


def empty_batch(schema: Any) -> Any:
    """A record batch of no rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class AddColumns(ABC):
    """A function that adds columns to a batch, with null for scores that the calibrator does not accept.

    It does not accept missing, NaN or infinite scores, scores outside the score range, and segments not seen in fit.
    """

    columns: Columns

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the columns to add."""

    @abstractmethod
    def usable(self, scores: NDArray[Any], segments: Coded | None) -> NDArray[np.bool_]:
        """Which rows the calibrator takes, among those with a finite score."""

    @abstractmethod
    def values(self, scores: NDArray[Any], segments: Coded | None) -> Sequence[Any]:
        """What the columns hold, as arrays (of numbers, or Arrow's of text), for rows that it takes."""

    def fields(self) -> list[Any]:
        """The Arrow fields of the columns to add."""
        no_segments = None if self.columns.segment is None else Coded((), np.empty(0, dtype=np.intp))
        empty = self.values(np.empty(0), no_segments)
        return [pa.field(name, pa.array(value).type) for name, value in zip(self.names, empty, strict=True)]

    def check_free(self, names: Iterable[str], *, ignore_case: bool = False) -> None:
        """Raise an error for a column that the data have already; some engines ignore the case of names."""
        held = {name.lower() if ignore_case else name for name in names}
        taken = [name for name in self.names if (name.lower() if ignore_case else name) in held]
        if taken:
            rule = "not be in the data already, because it is added"
            advice = ("rename it, or give another ", Setting("prefix"))
            raise InvalidValueError(f"column {taken[0]!r}", rule, advice=advice)

    def schema(self, schema: Any) -> Any:
        """The schema of a batch with the columns added."""
        self.check_free(schema.names)
        return pa.schema([*schema, *self.fields()], metadata=schema.metadata)

    def __call__(self, batch: Any) -> Any:
        """The batch with the columns added."""
        schema = self.schema(batch.schema)
        rows, _ = read_batch(batch, Columns(self.columns.score, segment=self.columns.segment), Place(0))
        usable = self.usable(rows.scores, rows.segments)
        if not usable.all():
            rows = rows.take(np.flatnonzero(usable))
        added = [pa.array(value) for value in self.values(rows.scores, rows.segments)]
        if rows.origin is not None:
            where = np.full(len(batch), -1)
            where[rows.origin] = np.arange(len(rows))
            index = pa.array(where, mask=where < 0)
            added = [value.take(index) for value in added]
        return pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)


@dataclass(frozen=True, slots=True, eq=False)
class AddFromCells(AddColumns):
    """Columns that depend on the region of a row.

    Attributes
    ----------
    columns : Columns
        Where the score is found, and the segment if there are any.
    partition : Bins
        The regions.
    """

    columns: Columns
    partition: Bins

    def usable(self, scores: NDArray[Any], segments: Coded | None) -> NDArray[np.bool_]:
        """Rows within the score range, of a known segment."""
        return self.partition.inside(scores, segment_numbers(segments, self.partition))

    def values(self, scores: NDArray[Any], segments: Coded | None) -> Sequence[Any]:
        """What the columns hold in each row's region."""
        prepared = self.partition.prepared(scores, segment_numbers(segments, self.partition))
        return self.of_cells(scores, self.partition.regions_of(prepared))

    @abstractmethod
    def of_cells(self, scores: NDArray[Any], cells: IndexArray) -> Sequence[Any]:
        """What the columns hold, for rows with these scores in these regions."""


@dataclass(frozen=True, slots=True, eq=False)
class LookUp(AddFromCells):
    """Columns of a table with one row per region: from a name to a sequence with one entry per region."""

    table: dict[str, FloatArray | tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns to add."""
        return tuple(self.table)

    def of_cells(self, scores: NDArray[Any], cells: IndexArray) -> Sequence[Any]:
        """The entries of each row's region."""
        return [
            pa.array(column, pa.string()).take(pa.array(cells)) if isinstance(column, tuple) else column[cells]
            for column in self.table.values()
        ]
