"""Files and Arrow data: Parquet, CSV, JSON lines, Arrow IPC, and anything with
`__arrow_c_stream__`.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from threading import Event
from typing import Any, ClassVar

import numpy as np

from calibrant._optional import pa
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.added_columns import AddColumns
from calibrant.sample.batch import Columns, Result, Work
from calibrant.sample.faults import Place
from calibrant.sample.progress import Progress, watched
from calibrant.sample.rows import Rows

BATCH_ROWS = 1 << 19
"""The largest number of rows in a batch, which limits memory to some megabytes per thread."""


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive rows that one thread reads in order.

    Attributes
    ----------
    read : callable
        A function from column names (None for all) to record batches with these columns.
    number, first_row : int
        The index of the file, or other source, that the part belongs to, and the part's first row
        in it.
    name : str
        Name of the file; empty for other data.
    """

    read: Callable[[list[str] | None], Iterable[Any]]
    number: int = 0
    first_row: int = 0
    name: str = ""

    def batches(self, columns: list[str] | None) -> Iterator[tuple[Any, Place]]:
        """Record batches of these columns, each with its place and none longer than the limit."""
        row = self.first_row
        for whole in self.read(columns):
            for start in range(0, whole.num_rows, BATCH_ROWS):
                batch = whole.slice(start, BATCH_ROWS)
                yield (
                    (batch if columns is None else batch.select(columns)),
                    Place(self.number, row, self.name),
                )
                row += batch.num_rows


@dataclass(frozen=True, slots=True)
class Engine:
    """What the engine of a query does itself.

    Attributes
    ----------
    count : callable
        Counts the rows.
    apply : callable
        Adds columns, and returns a query of the same engine.
    has_order : bool
        Whether the rows have the same order each time the query is run.
    """

    count: Callable[[], int]
    apply: Callable[[AddColumns], Any]
    has_order: bool = True


class ArrowData(Rows):
    """Rows that come as Arrow record batches: of files, tables, queries and cursors.

    Parts of them are read in parallel by threads of this process.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        schema: Any,
        columns: Columns,
        *,
        names: Sequence[str] | None = None,
        part_rows: Sequence[int] | None = None,
        threads: int = 1,
        progress: Progress = None,
        engine: Engine | None = None,
        file: Any = None,
    ) -> None:
        """Parts of the rows. If all columns are text, `file` is the CSV file that converts them."""
        names = schema.names if names is None else names
        super().__init__(None, columns, names=names, progress=progress)
        self.schema = schema
        self.parts = parts
        self._part_rows = part_rows
        self._threads = threads
        self._engine = engine
        self.file = file
        self.has_order = engine is None or engine.has_order

    def batches(self, names: list[str]) -> Generator[tuple[Any, Place]]:
        """Record batches of these columns, one part after the other."""
        for part in self.parts:
            yield from part.batches(names)

    def known_rows(self) -> int | None:
        """Return the number of rows from the metadata of files and tables, or as counted by the
        engine; None if only reading them would tell.
        """
        if self._engine is not None:
            return self._engine.count()
        return None if self._part_rows is None else sum(self._part_rows)

    def _rows_before(self, work: Work[Result]) -> list[int]:
        """The number of rows before each part, by its index; zeros if the work needs no positions."""
        if (
            self._part_rows is None
            and work.needs_keys
            and not self.columns.keyed
            and len(self.parts) > 1
        ):
            counts = self.fold(CountParts(self.columns))
            self._part_rows = [counts[number] for number in range(len(self.parts))]
        return [0, *accumulate(self._part_rows or [0] * len(self.parts))]

    def fold(self, work: Work[Result]) -> Result:
        """Apply `work` to every batch, in threads that each take the next part."""
        names = work.columns.to_read
        before = self._rows_before(work)
        stop = Event()
        with (
            watched(self._progress, self._total(), "reading") as advance,
            ThreadPoolExecutor(self._threads) as pool,
        ):

            def result_of(part: Part) -> Any:
                total = work.nothing
                try:
                    for batch, place in part.batches(names):
                        if stop.is_set():
                            break
                        used = self._used(batch, work.columns, place)
                        total = total + work(used, replace(place, before=before[place.part]))
                        advance(batch.num_rows)
                except BaseException:
                    stop.set()  # a failure stops all threads
                    raise
                return total

            alone = self._threads == 1 or len(self.parts) == 1
            try:
                return work.total((map if alone else pool.map)(result_of, self.parts))
            finally:
                stop.set()  # and so does Ctrl-C

    def _total(self) -> int | None:
        """The number of rows, if no query is needed to know it."""
        return None if self._part_rows is None else sum(self._part_rows)

    def apply(self, added: AddColumns) -> Any:
        """A `pyarrow.RecordBatchReader` over the rows in order, with the columns added as they are
        read; a query of the same engine for queries.
        """
        if self._engine is not None:
            return self._engine.apply(added)
        if self.schema is None:
            with closing(self.batches(self.names())) as batches:
                self.schema = next((batch.schema for batch, _ in batches), pa.schema([]))
        schema = added.schema(self.schema)
        return pa.RecordBatchReader.from_batches(schema, self._applied(added, schema))

    def _applied(self, added: AddColumns, schema: Any) -> Iterator[Any]:
        names = self.schema.names
        with watched(self._progress, self._total(), "applying") as advance:
            for part in self.parts:
                for batch, place in part.batches(None):
                    ordered = batch if batch.schema.names == names else batch.select(names)
                    used = self._used(ordered, added.columns, place)
                    columns = [*ordered.columns, *added(used).columns[used.num_columns :]]
                    pairs = zip(columns, schema, strict=True)
                    # files differ in the types of columns
                    columns = [column.cast(field.type) for column, field in pairs]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
                    advance(batch.num_rows)

    def _used(self, batch: Any, columns: Columns, place: Place) -> Any:
        """The batch, with the columns that are used in their types."""
        return batch if self.file is None else self.file.parsed(batch, columns, place)


@dataclass(frozen=True, slots=True)
class CountParts(Work[Counter[int]]):
    """Count the rows of each part."""

    on_rows = False
    nothing: ClassVar[Any] = Counter()

    def __call__(self, batch: Any, place: Place) -> Counter[int]:
        """Count one batch."""
        return Counter({place.part: batch.num_rows})


def stream_part(reader: Any) -> Part:
    """A stream, which can be read only once."""
    left = [reader]

    def read(names: list[str] | None) -> Any:
        try:
            return left.pop()
        except IndexError:
            rule = "be readable more than once here, to cut bins and then to count"
            got = "a stream that has been read"
            advice = "give a table or files, or a partition, which takes one pass"
            raise InvalidValueError("the data", rule, got=got, advice=advice) from None

    return Part(read)


def from_arrow(source: Any, columns: Columns, *, threads: int, progress: Progress) -> ArrowData:
    """Arrow tables, batches and readers, and anything with `__arrow_c_stream__`."""
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.RecordBatchReader):
        data = ArrowData([stream_part(source)], source.schema, columns, progress=progress)
        data.reads_once = True
        return data
    if not isinstance(source, pa.Table):
        source = pa.table(source)
    names = source.schema.names
    if len(set(names)) < len(names):
        columns.check(names)
        source = source.select(list(dict.fromkeys(columns.named.values())))

    def read(chunk: Any, names: list[str] | None) -> list[Any]:
        return [chunk]

    parts = []
    row = 0
    for chunk in source.to_batches(max_chunksize=4 * BATCH_ROWS):  # which threads can share
        parts.append(Part(partial(read, chunk), first_row=row))
        row += chunk.num_rows
    rows = [source.num_rows]
    return ArrowData(
        parts, source.schema, columns, part_rows=rows, threads=threads, progress=progress
    )


def from_dataset(dataset: Any, columns: Columns, *, threads: int, progress: Progress) -> ArrowData:
    """A `pyarrow.dataset.Dataset`, one part per fragment."""
    settings = {"schema": dataset.schema, "batch_size": BATCH_ROWS, "use_threads": False}

    def read(fragment: Any, names: list[str] | None) -> Any:
        return fragment.to_batches(columns=names, **settings)

    fragments = list(dataset.get_fragments())
    rows = [fragment.count_rows() for fragment in fragments]
    parts = [
        Part(partial(read, fragment), number, name=str(getattr(fragment, "path", "")))
        for number, fragment in enumerate(fragments)
    ]
    return ArrowData(
        parts, dataset.schema, columns, part_rows=rows, threads=threads, progress=progress
    )


def as_table(columns: Iterable[tuple[str, Any]]) -> Any:
    """Arrays in memory as an Arrow table."""
    arrays = {}
    for name, values in columns:
        texts = isinstance(values, list | tuple) and all(isinstance(entry, str) for entry in values)
        array = np.asarray(
            values, dtype=object if texts else None
        )  # fixed-width text loses trailing NULs
        if array.ndim != 1:
            raise InvalidTypeError(name, "have shape (n,)", got=f"shape {array.shape}")
        arrays[name] = pa.array(array)
    return pa.table(arrays)
