"""Where rows are, and how they are read: the part of scored rows that a source implements.

A source passes batches to a function and adds the results. Drawing and counting are written once,
in `calibrant.sample.rows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Hashable
from contextlib import closing
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

from calibrant._typing import ArrayLike
from calibrant.params.labels import Classes, settle_classes
from calibrant.params.random import Draw, RowSums
from calibrant.sample.added_columns import AddColumns
from calibrant.sample.batch import Columns, Result, Work
from calibrant.sample.bounds import NO_BOUNDS, DataBounds
from calibrant.sample.facts import RowFacts
from calibrant.sample.faults import Place
from calibrant.sample.progress import Progress, watched
from calibrant.sample.taken_rows import CountSegments, Sizes, Taken, sorted_segments


class RowSource(ABC):
    """Where rows are, and how they are read: arrays, files, a database table, a frame, a cluster, a
    device.

    Data outside memory hold no rows; every method reads them again, where they are.
    """

    columns: Columns
    has_order = True
    """Whether the rows have positions. If not, a draw without ids goes by partition."""
    in_memory: ClassVar[bool] = False
    """Whether the rows are arrays in memory."""
    reads_once = False
    """Whether the rows are a stream, for which a second pass would find nothing."""

    bounds: DataBounds = NO_BOUNDS
    """What is known about the data beforehand."""

    _progress: Progress = None
    _classes: ArrayLike | None = None
    _pos_label: Hashable = None
    _counts_groups = True
    _left_out: tuple[Draw, Taken] | None = None  # rows that were drawn to cut bins
    _sums: dict[tuple[str | None, ...], RowSums] | None = (
        None  # those of passes over all rows, shared by copies
    )

    def __init__(self, source: Any, columns: Columns, *, progress: Progress = None) -> None:
        columns.check(self.names_in(source))
        self.columns = columns
        self._source = source
        self._progress = progress

    def __repr__(self) -> str:
        named = [f"{part}={name!r}" for part, name in self.columns.named.items()]
        skips = [] if self.columns.pending is None else ["skip_missing=True"]
        return f"{type(self).__name__}({', '.join([*named, *skips])})"

    def facts(self, *, drawn: bool) -> RowFacts:
        """Return what a guarantee says about how the rows were read.

        `drawn` says that some of them only cut bins.
        """
        without_id = "position" if self.has_order else "partition"
        drawn_by = "id" if self.columns.id is not None else without_id
        return RowFacts(
            drawn_by if drawn else None,
            self.skipped_rows(),
            over_seed=drawn and self.row_sums().has_few_values,
        )

    def skipped_rows(self) -> int:
        """Return the number of rows skipped because their label is missing.

        0 unless `skip_missing=True`.
        """
        return 0 if self.columns.pending is None else self._counted_segments().skipped

    def names_in(self, source: Any) -> list[str]:
        """The names of the columns."""
        return [name for name in source.columns if isinstance(name, str)]

    def names(self) -> list[str]:
        """The names of the columns of these data."""
        return self.names_in(self._source)

    def first_names(self) -> list[str]:
        """Return the columns to read when looking at the first rows."""
        return self.names()

    def first_batches(self, names: list[str], rows: int) -> list[Any]:
        """Return batches of these columns with at least `rows` rows in total, or all batches."""
        found = []
        left = rows
        with closing(self.batches(names)) as batches:
            for batch, _ in batches:
                found.append(batch)
                left -= batch.num_rows
                if left <= 0:
                    break
        return found

    def batches(self, names: list[str]) -> Generator[tuple[Any, Place]]:
        """Yield record batches of these columns, with their places.

        A source implements this method or its own `fold`.
        """
        raise NotImplementedError

    def fold(self, work: Work[Result]) -> Result:
        """Apply `work` to every batch, each row once, and add the results."""
        total = work.nothing()
        with (
            watched(self._progress, None, "reading") as advance,
            closing(self.batches(work.columns.to_read)) as batches,
        ):
            for batch, place in batches:
                total = total + work(batch, place)
                advance(batch.num_rows)
        return total

    @abstractmethod
    def apply(self, added: AddColumns) -> Any:
        """Return the data with columns added, as a frame or relation of the same engine.

        Lazy if the engine is.
        """

    def with_columns(self, columns: Columns) -> Self:
        """Return the same data with other columns."""
        return self._changed(columns=columns)

    def with_classes(self, classes: ArrayLike | None = None, pos_label: Hashable = None) -> Self:
        """Return the same data with these classes and this positive class."""
        return self._changed(_classes=classes, _pos_label=pos_label)

    def with_bounds(self, bounds: DataBounds) -> Self:
        """Return the same data with bounds that are known beforehand."""
        bounds.check_columns(self.columns)
        return self._changed(bounds=bounds)

    def without_groups(self) -> Self:
        """Return the same rows, drawn by group but counted without groups."""
        return self if self.columns.group is None else self._changed(_counts_groups=False)

    def _changed(self, **values: Any) -> Self:
        if self._sums is None:
            self._sums = {}
        other = copy(self)
        for name, value in values.items():
            setattr(other, name, value)
        return other

    def pooled(self, kept: frozenset[Hashable] | None) -> Self:
        """Return the same rows, with all segments not in `kept` merged into one, `OTHER`.

        None keeps all.
        """
        return self if kept is None else self.with_columns(replace(self.columns, kept=kept))

    def known_rows(self) -> int | None:
        """Return the number of rows, including skipped ones, if known without reading them, else
        None.
        """
        return None

    def _many_rows(self) -> int:
        """Return the number of rows of a pass if that costs nothing, else 0."""
        return 0

    def sizes(self) -> dict[Hashable, int]:
        """Return the number of rows of each segment, sorted by segment.

        Without segments, the only segment is None.
        """
        no_pass = self.columns.segment is None and self.columns.pending is None
        known = self.known_rows() if no_pass else None
        if known is not None:
            return {None: known}
        return self._checked_sizes(self._counted_segments())

    def _counted_segments(self) -> Sizes:
        """Count the rows, and compute their fingerprint in the same pass."""
        found = self.fold(CountSegments(self.columns))
        self.note_sums(found.sums)
        return found

    def note_sums(self, sums: RowSums) -> None:
        """Keep what a pass over all rows has found, so that no other is needed."""
        if self._sums is None:
            self._sums = {}
        self._sums[self._values()] = sums

    def row_sums(self) -> RowSums:
        """Return the rows of each kind of label and a sum over them, taken in the pass that counts
        the rows.
        """
        known = (self._sums or {}).get(self._values())
        return self._counted_segments().sums if known is None else known

    def _values(self) -> tuple[str | None, ...]:
        """The columns of the fingerprint, and the one that determines which rows are skipped."""
        return self.columns.score, self.columns.label, self.columns.pending

    def fingerprint(self) -> int:
        """Return an order-independent fingerprint of the rows.

        It is made of scores and labels alone, so that equal weights, groups of one row and the
        names of segments change no draw.
        """
        return self.row_sums().fingerprint

    def known_classes(self) -> Classes:
        """Return the two classes, from the labels of all rows; no row needs to be counted for it."""
        seen = {kind: rows for kind, (rows, _) in self.row_sums().kinds.items()}
        return settle_classes(seen, classes=self._classes, pos_label=self._pos_label)

    def _checked_sizes(self, found: Sizes) -> dict[Hashable, int]:
        found.faults.check()
        if self.columns.segment is None:
            return {None: found.rows.get(None, 0)}
        return {name: found.rows[name] for name in sorted_segments(found.rows, self.columns)}
