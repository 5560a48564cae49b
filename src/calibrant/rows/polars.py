"""Polars lazy frames: run in batches by its streaming engine, and given columns as a step of the query."""

from collections.abc import Iterator
from typing import Any

from calibrant._optional import pa
from calibrant.rows.added_columns import AddColumns, empty_batch
from calibrant.rows.arrow import BATCH_ROWS
from calibrant.rows.base import ScoredData
from calibrant.rows.batch import Columns
from calibrant.rows.faults import Place
from calibrant.rows.progress import Progress, watched
from calibrant.rows.work import Result, Work


class PolarsData(ScoredData):
    """Rows of a lazy frame, which is run anew at every pass, with the columns that the pass needs.

    Memory is that of the streaming engine and some batches; before Polars had `LazyFrame.collect_batches`, that of
    those columns.
    """

    def __init__(self, frame: Any, columns: Columns, *, progress: Progress = None) -> None:
        self._schema = frame.collect_schema()
        columns.check(self._schema.names())
        self.columns = columns
        self._frame = frame
        self._progress = progress

    def known_rows(self) -> int:
        """What Polars counts: of files, mostly, without a look at the rows."""
        import polars as pl

        return int(self._frame.select(pl.len()).collect().item())

    def fold(self, work: Work[Result]) -> Result:
        """Do `work` on every batch, as Polars' own threads make them."""
        total, row = work.nothing(), 0
        with watched(self._progress, None, "reading") as advance:
            for frame in _frames(self._frame.select(work.columns.to_read)):
                for batch in frame.to_arrow().to_batches(max_chunksize=BATCH_ROWS):
                    total = total + work(batch, Place(0, row))
                    row += batch.num_rows
                    advance(batch.num_rows)
        return total

    def apply(self, added: AddColumns) -> Any:
        """A lazy frame with the columns added, batch by batch where the streaming engine runs it."""
        import polars as pl

        added.check_free(self._schema.names())
        read = list(dict.fromkeys(added.columns.named.values()))

        def add(frame: Any) -> Any:
            # only what is read goes through Arrow: all other columns stay as they are, whatever their type
            table = frame.select(read).to_arrow()
            batches = table.to_batches(max_chunksize=BATCH_ROWS) or [empty_batch(table.schema)]
            values = pa.Table.from_batches([added(batch) for batch in batches]).select(list(added.names))
            return frame.hstack(pl.from_arrow(values, rechunk=True))

        fresh = add(pl.DataFrame(schema=self._schema))  # refuses columns of other types, before anything runs
        return self._frame.map_batches(add, schema=fresh.schema, streamable=True)


def from_polars(frame: Any, columns: Columns, *, progress: Progress) -> PolarsData:
    """A `polars.LazyFrame`."""
    return PolarsData(frame, columns, progress=progress)


def _frames(frame: Any) -> Iterator[Any]:
    if hasattr(frame, "collect_batches"):
        yield from frame.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True, lazy=True, engine="streaming")
    else:  # slices of a query that is run for each of them need not fit together
        yield from frame.collect().iter_slices(BATCH_ROWS)
