"""Where rows are, and how they are read: the part of scored rows that a source implements.

A source passes batches to a function and adds the results. Drawing and counting are written once,
in `calibrant.sample.rows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Hashable, Mapping, Sequence
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
from calibrant.sample.progress import Progress
from calibrant.sample.taken_rows import Survey, Taken, TakeSurvey, sorted_segments


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

    known: Classes | None = None
    """The two classes, if they are known without reading rows."""
    schema: Any = None
    """The Arrow types of the columns, if they are known before rows are read."""
    skipped: int = 0
    """Rows left out before these were read, because their label is missing."""
    one_of_each: tuple[int, int] = (0, 0)
    """If these rows are one of each group: the number of groups, and the number of rows left out."""

    _names: Sequence[str] = ()
    _progress: Progress = None
    _classes: ArrayLike | None = None
    _pos_label: Hashable = None
    _counts_groups = True
    _left_out: tuple[Draw | None, Taken | None] = (None, None)  # rows that were drawn to cut bins

    def __init__(
        self,
        source: Any,
        columns: Columns,
        *,
        names: Sequence[str] | None = None,
        progress: Progress = None,
    ) -> None:
        held = source.columns if names is None else names
        self._names = [name for name in held if isinstance(name, str)]
        columns.check(self._names)
        self.columns = columns
        self._source = source
        self._progress = progress
        # what passes over all rows found, by the columns that they read; copies share it
        self._sums: dict[tuple[str | None, ...], RowSums] = {}
        self._surveys: dict[Hashable, Survey] = {}

    def facts(self, *, drawn: bool) -> RowFacts:
        """Return what a guarantee says about how the rows were read.

        `drawn` says that some of them only cut bins.
        """
        without_id = None if self.has_order else "partition"
        drawn_by = "id" if self.columns.id is not None else without_id
        return RowFacts(
            drawn_by if drawn else None,
            self.skipped_rows(),
            one_of_each=self.one_of_each,
            over_seed=(drawn or self.one_of_each[0] > 0) and self.row_sums().has_few_values,
        )

    def skipped_rows(self) -> int:
        """Return the number of rows skipped because their label is missing.

        0 unless `skip_missing=True`.
        """
        return self.skipped if self.columns.pending is None else self.survey().skipped

    def names(self) -> list[str]:
        """The names of the columns of these data."""
        return list(self._names or self.columns.named.values())

    def batches(self, names: list[str]) -> Generator[tuple[Any, Place]]:
        """Yield record batches of these columns, with their places, if they can be read here."""
        raise NotImplementedError

    @abstractmethod
    def fold(self, work: Work[Result]) -> Result:
        """Apply `work` to every batch, each row once, and add the results."""

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

    def without_segments(self) -> Self:
        """Return the same rows, without their segments."""
        return self.with_columns(replace(self.columns, segment=None, kept=None))

    def with_bounds(self, bounds: DataBounds) -> Self:
        """Return the same data with bounds that are known beforehand."""
        bounds.check_columns(self.columns)
        return self._changed(bounds=bounds)

    def with_told_bounds(self, told: Mapping[str, Any]) -> Self:
        """Return the same data with the given bounds too, which must agree with those known."""
        values = {
            name: self.bounds.merged(name, value, self.columns) for name, value in told.items()
        }
        return self._changed(bounds=replace(self.bounds, **values)) if values else self

    def without_groups(self) -> Self:
        """Return the same rows, drawn by group but counted without groups."""
        return self if self.columns.group is None else self._changed(_counts_groups=False)

    def _changed(self, **values: Any) -> Self:
        other = copy(self)
        for name, value in values.items():
            object.__setattr__(other, name, value)  # rows in memory are frozen
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

    def sizes(self) -> dict[Hashable, int]:
        """Return the number of rows of each segment, sorted by segment.

        Without segments, the only segment is None.
        """
        no_pass = self.columns.segment is None and self.columns.pending is None
        known = self.known_rows() if no_pass and not self._surveys else None
        if known is not None:
            return {None: known}
        return self._checked_sizes(self.survey())

    def survey(self, *, ranked: bool = False, most_values: int = 0) -> Survey:
        """Return what one pass over the rows finds; it is read once.

        With `ranked`, that includes fine counts of the scores; see `Survey`.
        """
        columns = (self.columns.score, self.columns.label, self.columns.pending)
        place = (*columns, self.columns.segment, self.columns.kept)
        found = self._surveys.get(place)
        known = found is not None and (found.cells.pieces or not ranked)
        if found is None or not known or found.most_values < most_values:
            found = self.fold(TakeSurvey(self.columns, ranked, most_values))
            self._surveys[place] = found
            self.note_sums(found.sums)
        return found

    def note_sums(self, sums: RowSums) -> None:
        """Keep what a pass over all rows has found, so that no other is needed."""
        self._sums[self._values()] = sums

    def row_sums(self) -> RowSums:
        """Return the rows of each kind of label and a sum over them, taken in the pass that counts
        the rows.
        """
        known = self._sums.get(self._values())
        if known is None:
            survey = self.survey()
            survey.faults.check()
            known = survey.sums
        return known

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
        if self.known is not None:
            return self.known
        return self.classes_among({kind: rows for kind, (rows, _) in self.row_sums().kinds.items()})

    def classes_among(self, seen: Mapping[Hashable, int]) -> Classes:
        """Return the two classes, given the number of rows with each label."""
        if self.known is not None:
            return self.known
        return settle_classes(seen, classes=self._classes, pos_label=self._pos_label)

    def _checked_sizes(self, found: Survey) -> dict[Hashable, int]:
        found.faults.check()
        if self.columns.segment is None:
            return {None: found.rows.get(None, 0)}
        return {name: found.rows[name] for name in sorted_segments(found.rows, self.columns)}
