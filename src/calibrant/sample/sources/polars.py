"""Polars lazy frames: run in batches by its streaming engine, and extended with columns as a query
step.
"""

from collections.abc import Generator, Iterator
from typing import Any

from calibrant._optional import Lazy, pa
from calibrant.sample.added_columns import AddColumns, empty_batch
from calibrant.sample.faults import Place
from calibrant.sample.rows import Rows
from calibrant.sample.sources.arrow import BATCH_ROWS

pl: Any = Lazy("polars")


class PolarsData(Rows):
    """Rows of a lazy frame, which is run again in every pass, with the columns that the pass needs.

    Memory is that of the streaming engine and some batches; in versions of Polars without
    `LazyFrame.collect_batches`, that of those columns.
    """

    def names_in(self, source: Any) -> list[str]:
        """The names of the columns."""
        return list(source.collect_schema())

    def known_rows(self) -> int:
        """The number of rows counted by Polars: for files, mostly without reading the rows."""
        return int(self._source.select(pl.len()).collect().item())

    def batches(self, names: list[str]) -> Generator[tuple[Any, Place]]:
        """Batches, as produced by Polars' own threads."""
        row = 0
        for frame in _frames(self._source.select(names)):
            for batch in frame.to_arrow().to_batches(max_chunksize=BATCH_ROWS):
                yield batch, Place(0, row)
                row += batch.num_rows

    def apply(self, added: AddColumns) -> Any:
        """A lazy frame with the columns added, batch by batch if the streaming engine runs it."""
        schema = self._source.collect_schema()
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

        fresh = add(
            pl.DataFrame(schema=schema)
        )  # rejects columns of other types before anything runs
        return self._source.map_batches(add, schema=fresh.schema, streamable=True)


def _frames(frame: Any) -> Iterator[Any]:
    if hasattr(frame, "collect_batches"):
        yield from frame.collect_batches(
            chunk_size=BATCH_ROWS, maintain_order=True, lazy=True, engine="streaming"
        )
    else:  # slices of a query that is run once per slice need not be consistent
        yield from frame.collect().iter_slices(BATCH_ROWS)
