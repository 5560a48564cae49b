"""Files and Arrow data: Parquet, CSV, JSON lines, Arrow IPC, and anything that speaks the Arrow C stream."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from threading import Event, Lock
from typing import Any, Protocol

from calibrant._optional import pa
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.rows.added_columns import AddColumns
from calibrant.rows.base import ScoredData
from calibrant.rows.batch import Columns
from calibrant.rows.faults import Place
from calibrant.rows.progress import Progress, watched
from calibrant.rows.work import Result, Work

BATCH_ROWS = 1 << 19
"""Rows of a batch at most, so that memory is bounded whatever the data: some megabytes for each thread."""


class Part(Protocol):
    """A run of rows that one thread reads in order."""

    def batches(self, columns: Sequence[str] | None) -> Iterator[tuple[Any, Place]]:
        """Record batches of these columns (None is all), each with its place."""


class ArrowData(ScoredData):
    """Rows that come as Arrow record batches, in parts that threads of this process read side by side."""

    def __init__(
        self,
        parts: Sequence[Part],
        schema: Any,
        columns: Columns,
        *,
        part_rows: Sequence[int] | None = None,
        threads: int = 1,
        progress: Progress = None,
    ) -> None:
        columns.check(schema.names)
        self.columns = columns
        self.schema = schema
        self._parts = parts
        self._part_rows = part_rows
        self._threads = threads
        self._progress = progress

    def known_rows(self) -> int | None:
        """The rows that the files' own notes, or the table, tell."""
        return None if self._part_rows is None else sum(self._part_rows)

    def _many_rows(self) -> int:
        return self.known_rows() or 0

    def _rows_before(self, work: Work[Result]) -> list[int]:
        """Rows before each part, by its number; where these are not needed they may be wrong."""
        if self._part_rows is None and work.drawn is not None and self.columns.id is None and len(self._parts) > 1:
            counts = self.fold(CountParts(self.columns))
            self._part_rows = [counts[number] for number in range(len(self._parts))]
        return [0, *accumulate(self._part_rows or [0] * len(self._parts))]

    def fold(self, work: Work[Result]) -> Result:
        """Do `work` on every batch, in threads that each take the next part."""
        names = work.columns.to_read
        before = self._rows_before(work)
        waiting, lock, stop = iter(self._parts), Lock(), Event()

        def take() -> Part | None:
            with lock:
                return None if stop.is_set() else next(waiting, None)

        with watched(self._progress, self.known_rows(), "reading") as advance:

            def worker() -> Result:
                total = work.nothing()
                try:
                    while (part := take()) is not None:
                        for batch, place in part.batches(names):
                            if stop.is_set():
                                return total
                            total = total + work(batch, replace(place, before=before[place.part]))
                            advance(batch.num_rows)
                except BaseException:
                    stop.set()  # one failure, or Ctrl-C, ends all
                    raise
                return total

            if self._threads == 1 or len(self._parts) == 1:
                return worker()
            with ThreadPoolExecutor(self._threads) as pool:
                futures = [pool.submit(worker) for _ in range(min(self._threads, len(self._parts)))]
                try:
                    results = [future.result() for future in futures]
                finally:
                    stop.set()
        total = work.nothing()
        for result in results:
            total = total + result
        return total

    def apply(self, added: AddColumns) -> Any:
        """A `pyarrow.RecordBatchReader` over the rows in their order, with the columns added as they are read."""
        schema = added.schema(self.schema)
        return pa.RecordBatchReader.from_batches(schema, self._applied(added, schema))

    def _applied(self, added: AddColumns, schema: Any) -> Iterator[Any]:
        with watched(self._progress, self.known_rows(), "applying") as advance:
            for part in self._parts:
                for batch, _ in part.batches(None):
                    yield as_in(added(batch), schema)
                    advance(batch.num_rows)


@dataclass(frozen=True, slots=True)
class CountParts(Work[Counter[int]]):
    """Count the rows of each part."""

    def __call__(self, batch: Any, place: Place) -> Counter[int]:
        """Count one batch."""
        return Counter({place.part: batch.num_rows})

    def nothing(self) -> Counter[int]:
        """No rows."""
        return Counter()


def placed(
    batches: Iterable[Any], columns: Sequence[str] | None, number: int, first_row: int = 0, name: str = ""
) -> Iterator[tuple[Any, Place]]:
    """Batches that follow each other with these columns (None is all), each with its place."""
    for batch in batches:
        yield (batch if columns is None else batch.select(list(columns))), Place(number, first_row, name)
        first_row += batch.num_rows


@dataclass(frozen=True, slots=True)
class FilePart(ABC):
    """A part of a file, or all of it.

    Attributes
    ----------
    path, number : Path, int
        The file, and its number among all files.
    first_row : int
        The part's first row in the file.
    order : tuple of str, optional
        All columns in the order of the first file, where this file has another order.
    stamp : tuple of int, optional
        What `stamp_of` told of the file when it was first opened.
    """

    path: Path
    number: int
    first_row: int = 0
    order: tuple[str, ...] | None = None
    stamp: tuple[int, ...] | None = None

    @abstractmethod
    def read(self, columns: list[str] | None) -> Iterator[Any]:
        """Record batches that hold these columns (None is all), none longer than the limit."""

    def batches(self, columns: Sequence[str] | None) -> Iterator[tuple[Any, Place]]:
        """The part's batches; an error where the file is another than when it was first opened."""
        names = self.order if columns is None else columns
        batches = self.read(None if names is None else list(names))
        self._check_unchanged()
        try:
            yield from placed(batches, names, self.number, self.first_row, self.path.name)
        except Exception:
            self._check_unchanged()  # which explains the error better
            raise
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if self.stamp is not None and stamp_of(self.path) != self.stamp:
            name = self.path.name
            raise InvalidValueError(None, f"the file {name!r} changed while it was read: run again when it is complete")


def stamp_of(path: Path) -> tuple[int, ...]:
    """What tells one content of a file from another without reading it: inode, size, and time of the last change."""
    try:
        found = path.stat()
    except OSError:  # removed, or no longer allowed
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


@dataclass(frozen=True, slots=True)
class TablePart:
    """Some batches of a table in memory."""

    chunks: Sequence[Any]
    first_row: int

    def batches(self, columns: Sequence[str] | None) -> Iterator[tuple[Any, Place]]:
        """The batches, none longer than the limit."""
        short = (
            chunk.slice(start, BATCH_ROWS) for chunk in self.chunks for start in range(0, chunk.num_rows, BATCH_ROWS)
        )
        return placed(short, columns, 0, self.first_row)


class StreamPart:
    """A stream that can be read once."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._lock = Lock()
        self._read = False

    def batches(self, columns: Sequence[str] | None) -> Iterator[tuple[Any, Place]]:
        """The batches, once."""
        with self._lock:
            if self._read:
                raise InvalidValueError(
                    "the data",
                    "be readable more than once here, to cut bins and then to count",
                    got="a stream that has been read",
                    advice="give a table or files, or a partition, which takes one pass",
                )
            self._read = True
        yield from placed(self._reader, columns, 0)


def as_in(batch: Any, schema: Any) -> Any:
    """The batch with the types of the schema, where files differ in them."""
    if batch.schema.equals(schema):
        return batch
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def table_parts(table: Any) -> list[TablePart]:
    """A table in memory as parts that threads can share."""
    parts, row = [], 0
    for chunk in table.to_batches(max_chunksize=4 * BATCH_ROWS):
        parts.append(TablePart([chunk], row))
        row += chunk.num_rows
    return parts


def from_arrow(source: Any, columns: Columns, *, threads: int, progress: Progress) -> ArrowData:
    """Arrow's own tables, batches and readers, and anything with `__arrow_c_stream__`."""
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        return ArrowData([StreamPart(source)], source.schema, columns, progress=progress)
    if not isinstance(source, pa.Table):
        source = pa.table(source)
    parts = table_parts(source.select(_distinct(columns, source.schema)) if _repeats(source) else source)
    return ArrowData(parts, source.schema, columns, part_rows=[source.num_rows], threads=threads, progress=progress)


def _repeats(table: Any) -> bool:
    return len(set(table.schema.names)) < len(table.schema.names)


def _distinct(columns: Columns, schema: Any) -> list[str]:
    columns.check(schema.names)
    return list(dict.fromkeys(columns.named.values()))


def from_dataset(dataset: Any, columns: Columns, *, threads: int, progress: Progress) -> ArrowData:
    """A `pyarrow.dataset.Dataset`, one part for each of its fragments."""
    fragments = list(dataset.get_fragments())
    parts = [FragmentPart(fragment, number, dataset.schema) for number, fragment in enumerate(fragments)]
    rows = [fragment.count_rows() for fragment in fragments]
    return ArrowData(parts, dataset.schema, columns, part_rows=rows, threads=threads, progress=progress)


@dataclass(frozen=True, slots=True)
class FragmentPart:
    """A fragment of a dataset, such as one of its files."""

    fragment: Any
    number: int
    schema: Any

    def batches(self, columns: Sequence[str] | None) -> Iterator[tuple[Any, Place]]:
        """The fragment's batches in their order."""
        chosen = None if columns is None else list(columns)
        batches = self.fragment.to_batches(schema=self.schema, columns=chosen, batch_size=BATCH_ROWS, use_threads=False)
        return placed(batches, None, self.number, name=str(getattr(self.fragment, "path", "")))


def as_table(columns: Iterable[tuple[str, Any]]) -> Any:
    """Arrays in memory as an Arrow table."""
    import numpy as np

    arrays = {}
    for name, values in columns:
        texts = isinstance(values, list | tuple) and all(isinstance(entry, str) for entry in values)
        array = np.asarray(values, dtype=object if texts else None)  # text of a fixed width loses NULs at the end
        if array.ndim != 1:
            raise InvalidTypeError(name, "have shape (n,)", got=f"shape {array.shape}")
        arrays[name] = pa.array(array)
    return pa.table(arrays)
