"""Polars lazy frames: run in batches by its streaming engine, and extended with columns as a query
step.
"""

from collections.abc import Iterator
from typing import Any

from calibrant._optional import Lazy, pa
from calibrant.sample.added_columns import AddColumns, empty_batch
from calibrant.sample.batch import Columns
from calibrant.sample.progress import Progress
from calibrant.sample.sources.arrow import BATCH_ROWS, ArrowData, Engine, Part

pl: Any = Lazy("polars")


def from_polars(frame: Any, columns: Columns, *, progress: Progress) -> ArrowData:
    """Rows of a lazy frame, which is run again in every pass, with the columns that the pass needs.

    Memory is that of the streaming engine and some batches; in versions of Polars without
    `LazyFrame.collect_batches`, that of those columns.
    """

    def read(names: list[str] | None) -> Iterator[Any]:
        query = frame if names is None else frame.select(names)
        if hasattr(query, "collect_batches"):
            frames = query.collect_batches(
                chunk_size=BATCH_ROWS, maintain_order=True, lazy=True, engine="streaming"
            )
        else:  # slices of a query that is run once per slice need not be consistent
            frames = query.collect().iter_slices(BATCH_ROWS)
        for part in frames:
            yield from part.to_arrow().to_batches(max_chunksize=BATCH_ROWS)

    engine = Engine(
        # for files, mostly without reading the rows
        lambda: int(frame.select(pl.len()).collect().item()),
        lambda added: _with_columns(frame, added),
    )
    names = list(frame.collect_schema())
    return ArrowData([Part(read)], None, columns, names=names, progress=progress, engine=engine)


def _with_columns(whole: Any, added: AddColumns) -> Any:
    """A lazy frame with the columns added, batch by batch if the streaming engine runs it."""
    schema = whole.collect_schema()
    added.check_free(schema)
    read = added.to_read

    def add(frame: Any) -> Any:
        # only the columns that are read go through Arrow: all others stay unchanged, whatever
        # their type
        table = frame.select(read).to_arrow()
        batches = table.to_batches(max_chunksize=BATCH_ROWS) or [empty_batch(table.schema)]
        values = pa.Table.from_batches([added(batch) for batch in batches]).select(
            list(added.names)
        )
        return frame.hstack(pl.from_arrow(values, rechunk=True))

    # rejects columns of other types before anything runs
    fresh = add(pl.DataFrame(schema=schema))
    return whole.map_batches(add, schema=fresh.schema, streamable=True)
