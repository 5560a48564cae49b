"""The columns that a fitted calibrator adds to a batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._optional import pa
from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.cells.bins import Bins
from calibrant.cells.lines import Lines
from calibrant.errors import InvalidValueError, no_table
from calibrant.sample.batch import BatchRows, Coded, Columns, read_batch
from calibrant.sample.counts import are_inside, located
from calibrant.sample.faults import Place
from calibrant.text.sentences import Setting


def empty_batch(schema: Any) -> Any:
    """A record batch of no rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class AddColumns(ABC):
    """A function that adds columns to a batch, with null for scores that the calibrator does not
    accept.

    It does not accept scores that are missing, NaN, infinite or outside the score range, nor
    segments not seen in fit.
    """

    columns: Columns

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the columns to add."""

    @abstractmethod
    def usable(self, rows: BatchRows) -> BoolArray:
        """Which rows the calibrator accepts, among those with a finite score."""

    @abstractmethod
    def values(self, rows: BatchRows, batch: Any) -> Sequence[Any]:
        """The values of the columns for accepted rows of a batch, as arrays of numbers or Arrow
        arrays of text.
        """

    @property
    def to_read(self) -> list[str]:
        """Names of the columns of the data that are needed."""
        return list(dict.fromkeys(self.columns.named.values()))

    def as_look_up(self) -> "LookUp":
        """The same columns as a table of regions, for engines that add columns by SQL."""
        raise no_table(type(self).__name__)

    def fields(self) -> list[Any]:
        """The Arrow fields of the columns to add."""
        no_segments = (
            None if self.columns.segment is None else Coded((), np.empty(0, dtype=np.intp))
        )
        empty = self.values(BatchRows(np.empty(0), segments=no_segments), None)
        return [
            pa.field(name, pa.array(value).type)
            for name, value in zip(self.names, empty, strict=True)
        ]

    def check_free(self, names: Iterable[str], *, ignore_case: bool = False) -> None:
        """Raise an error for a column that the data already have.

        Some engines ignore the case of names.
        """
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
        columns = Columns(self.columns.score, segment=self.columns.segment)
        rows = read_batch(batch, columns, Place(0))
        usable = self.usable(rows)
        if not usable.all():
            rows = rows.take(np.flatnonzero(usable))
        added = [pa.array(value) for value in self.values(rows, batch)]
        if rows.origin is not None:
            where = np.full(len(batch), -1)
            where[rows.origin] = np.arange(len(rows))
            index = pa.array(where, mask=where < 0)
            added = [value.take(index) for value in added]
        return pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)


@dataclass(frozen=True, slots=True, eq=False)
class CurveColumn:
    """Values of a curve, or a limit around them.

    Attributes
    ----------
    lines : Lines
        The line in each region.
    value : float array
        The value at the start of each region.
    offset : float array or None
        The offset of a limit, which is clipped to [0, 1].
    """

    lines: Lines
    value: FloatArray
    offset: FloatArray | None

    @property
    def numbers(self) -> tuple[FloatArray, ...]:
        """For each region the value, the slope, the start, and the offset."""
        line = (self.value, self.lines.slope, self.lines.start)
        return line if self.offset is None else (*line, self.offset)

    def at(self, scores: NDArray[Any], regions: IndexArray) -> FloatArray:
        """The values at scores with known regions, for a curve that is linear on its own scale."""
        value, slope, start, *offset = self.numbers
        found = kernels.values_along(
            scores, regions, np.column_stack([start, value, slope, *offset])
        )
        return found[:, 0] if offset else found


@dataclass(frozen=True, slots=True, eq=False)
class LookUp(AddColumns):
    """Columns of a table with one row per region.

    Attributes
    ----------
    columns : Columns
        The columns of the score and of the segment, if there is one.
    partition : Bins
        The regions.
    table : dict
        The columns by name, each a sequence with one entry per region.
    curves : dict
        The values of curves by name. These columns come first.
    taken : bool array or None
        The regions with an answer; None for all.
    """

    columns: Columns
    partition: Bins
    table: dict[str, FloatArray | tuple[str, ...]]
    curves: Mapping[str, CurveColumn] = field(default_factory=dict)
    taken: BoolArray | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns to add."""
        return (*self.curves, *self.table)

    def as_look_up(self) -> "LookUp":
        """Return these columns."""
        return self

    def usable(self, rows: BatchRows) -> BoolArray:
        """Rows in a region with an answer."""
        found = are_inside(rows, self.partition)
        if self.taken is None or not found.any():
            return found
        inside = np.flatnonzero(found)
        regions = self.partition.regions_of(located(rows.take(inside), self.partition))
        answered = np.zeros(len(rows), dtype=bool)
        answered[inside] = self.taken[regions]
        return answered

    def values(self, rows: BatchRows, batch: Any) -> Sequence[Any]:
        """The values of curves, and the entries of the table, in each row's region."""
        regions = self.partition.regions_of(located(rows, self.partition))
        found = [curve.at(rows.scores, regions) for curve in self.curves.values()]
        for column in self.table.values():
            if isinstance(column, tuple):
                found.append(pa.array(column, pa.string()).take(pa.array(regions)))
            else:
                found.append(column[regions])
        return found
