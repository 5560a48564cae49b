"""Polars lazy frames: run in batches by its streaming engine, and extended with columns as a query
step.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from calibrant._optional import Lazy, pa
from calibrant.sample.added_columns import AddColumns, empty_batch
from calibrant.sample.cross_counts import (
    MOST_GROUPS,
    CountCross,
    CrossCounts,
    TakeDrawn,
    counted_by_engine,
)
from calibrant.sample.faults import Place
from calibrant.sample.rows import Rows
from calibrant.sample.sources.arrow import BATCH_ROWS
from calibrant.sample.sql.cross import CrossNames, arrow_kind, draw_steps, not_missing
from calibrant.sample.sql.dialects import DIALECTS

pl: Any = Lazy("polars")

DUCKDB = DIALECTS["duckdb"]  # Polars can read expressions written for DuckDB


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

    def count_cross(self, work: CountCross) -> CrossCounts:
        """Let Polars count; if it cannot, or rows are faulty, the kernel counts or reports why.

        Versions without `collect_batches` panic at the limit on groups, so the kernel counts there.
        """
        if not hasattr(self._source, "collect_batches"):
            return super().count_cross(work)
        columns = work.columns
        schema = _arrow_schema(self._source.select(columns.to_read))
        read = CrossNames.of(work, lambda name: arrow_kind(schema.field(name).type))
        steps = read.steps(work, DUCKDB)
        if steps is None:
            return super().count_cross(work)
        rows = self._source
        if columns.pending is not None:
            is_number = arrow_kind(schema.field(columns.pending).type) == "number"
            name = DUCKDB.quoted_name(columns.pending)
            rows = rows.filter(pl.sql_expr(not_missing(name, is_number, DUCKDB)))
        rows = rows.select(
            **{new: _as_kind(name, read.kinds[new]) for new, name in read.names.items()}
        )
        for step in steps:
            rows = _projected(rows, step)
        sums = [pl.len().alias("n"), pl.col("high", "low", "variance").sum()]
        counted = rows.group_by("key", "label").agg(sums).limit(2 * MOST_GROUPS + 2)
        found = counted_by_engine(_collected(counted).to_arrow())
        return super().count_cross(work) if found is None else found

    def take_drawn(self, work: TakeDrawn) -> tuple[tuple[Place, Any], ...]:
        """Let Polars take rows by position."""
        if work.place_draw is None:
            return super().take_drawn(work)
        names = work.columns.to_read
        kept = {f"k{number}": pl.col(name) for number, name in enumerate(names)}
        rows = self._source.select(**kept).with_row_index("place")
        steps, is_drawn = draw_steps(work.place_draw, list(kept))
        for step in steps:
            rows = _projected(rows, step)
        rows = rows.filter(pl.sql_expr(is_drawn)).select(list(kept))
        table = _collected(rows).to_arrow().rename_columns(names)
        batches = table.to_batches()
        return tuple((Place(0, number), batch) for number, batch in enumerate(batches))

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


def _arrow_schema(frame: Any) -> Any:
    return frame.limit(0).collect().to_arrow().schema


def _projected(frame: Any, step: Mapping[str, str]) -> Any:
    return frame.select(**{name: pl.sql_expr(text) for name, text in step.items()})


def _as_kind(name: str, kind: str) -> Any:
    """A column to count by; categories are compared as text."""
    return pl.col(name).cast(pl.String) if kind == "string" else pl.col(name)


def _collected(frame: Any) -> Any:
    """A small result of a large frame."""
    if hasattr(frame, "collect_batches"):  # older versions do not offer this engine
        return frame.collect(engine="streaming")
    return frame.collect()


def _frames(frame: Any) -> Iterator[Any]:
    if hasattr(frame, "collect_batches"):
        yield from frame.collect_batches(
            chunk_size=BATCH_ROWS, maintain_order=True, lazy=True, engine="streaming"
        )
    else:  # slices of a query that is run once per slice need not be consistent
        yield from frame.collect().iter_slices(BATCH_ROWS)
