"""Polars lazy frames: run in batches by its streaming engine, and given columns as a step of the
query.
"""

from collections.abc import Generator, Iterator
from typing import Any

from calibrant._optional import Lazy, pa
from calibrant.sample.added_columns import AddColumns, empty_batch
from calibrant.sample.faults import Place
from calibrant.sample.sample import Sample
from calibrant.sample.sources.arrow import BATCH_ROWS

pl: Any = Lazy("polars")


class PolarsData(Sample):
    """Rows of a lazy frame, which is run anew at every pass, with the columns that the pass needs.

    Memory is that of the streaming engine and some batches; before Polars had
    `LazyFrame.collect_batches`, that of those columns.
    """

    def names_in(self, source: Any) -> list[str]:
        """The names of the columns."""
        return list(source.collect_schema())

    def known_rows(self) -> int:
        """What Polars counts: of files, mostly, without a look at the rows."""
        return int(self._source.select(pl.len()).collect().item())

    def batches(self, names: list[str]) -> Generator[tuple[Any, Place]]:
        """Batches, as Polars' own threads make them."""
        row = 0
        for frame in _frames(self._source.select(names)):
            for batch in frame.to_arrow().to_batches(max_chunksize=BATCH_ROWS):
                yield batch, Place(0, row)
                row += batch.num_rows

    def apply(self, added: AddColumns) -> Any:
        """A lazy frame with the columns added, batch by batch where the streaming engine runs it."""
        schema = self._source.collect_schema()
        added.check_free(schema)
        read = list(dict.fromkeys(added.columns.named.values()))

        def add(frame: Any) -> Any:
            # only what is read goes through Arrow: all other columns stay as they are, whatever
            # their type
            table = frame.select(read).to_arrow()
            batches = table.to_batches(max_chunksize=BATCH_ROWS) or [empty_batch(table.schema)]
            values = pa.Table.from_batches([added(batch) for batch in batches]).select(
                list(added.names)
            )
            return frame.hstack(pl.from_arrow(values, rechunk=True))

        fresh = add(
            pl.DataFrame(schema=schema)
        )  # refuses columns of other types, before anything runs
        return self._source.map_batches(add, schema=fresh.schema, streamable=True)


def _frames(frame: Any) -> Iterator[Any]:
    if hasattr(frame, "collect_batches"):
        yield from frame.collect_batches(
            chunk_size=BATCH_ROWS, maintain_order=True, lazy=True, engine="streaming"
        )
    else:  # slices of a query that is run for each of them need not fit together
        yield from frame.collect().iter_slices(BATCH_ROWS)
