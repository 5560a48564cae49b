"""DuckDB relations: read as Arrow batches while the query runs, and extended with columns by
DuckDB's own SQL.
"""

from collections.abc import Generator, Iterable
from typing import Any

from calibrant._optional import pa
from calibrant._typing import FloatArray
from calibrant.cells.bins import OTHER
from calibrant.sample.added_columns import AddColumns, LookUp, empty_batch
from calibrant.sample.faults import Place
from calibrant.sample.rows import Rows
from calibrant.sample.sources.arrow import BATCH_ROWS
from calibrant.sample.sql.curves import on_curve
from calibrant.sample.sql.dialects import DIALECTS
from calibrant.sample.sql.search import as_double, bin_of, by_segment, one_line

DUCKDB = DIALECTS["duckdb"]


class DuckDBData(Rows):
    """Rows of a relation, which is run again in every pass.

    DuckDB keeps the order of the rows of tables and files unless ``preserve_insertion_order`` is
    off; after a join or a group-by the order may change from run to run. A split then needs an id
    column, and says so.
    """

    has_order = False

    def known_rows(self) -> int:
        """The number of rows counted by DuckDB: for tables and Parquet files without reading the
        rows.
        """
        return int(self._source.aggregate("count(*)").fetchall()[0][0])

    def batches(self, names: list[str]) -> Generator[tuple[Any, Place]]:
        """Batches, as produced by DuckDB's own threads."""
        row = 0
        # a connection has one open result at a time, so it is always closed
        with _reader(self._source.project(_names(names))) as reader:
            for batch in reader:
                yield batch, Place(0, row)
                row += batch.num_rows

    def apply(self, added: AddColumns) -> Any:
        """Return a relation with the columns added: not run yet, with the same row order, and
        without Python when it runs.
        """
        look_up = added.as_look_up()
        added.check_free(self._source.columns, ignore_case=True)
        with _reader(self._source.project(_names(added.to_read)).limit(0)) as reader:
            schema = reader.schema
        added(empty_batch(schema))  # rejects columns of other types
        taken = {name.lower() for name in (*self._source.columns, *added.names)}
        region = next(name for n in range(len(taken) + 1) if (name := f"region_{n}") not in taken)
        located = self._source.project(f"*, {_region(look_up, schema)} AS {region}")
        values = [f"{text} AS {_names([name])}" for name, text in _columns(look_up, region).items()]
        return located.project(f"* EXCLUDE ({region}), {', '.join(values)}")


def _reader(relation: Any) -> Any:
    """A `pyarrow.RecordBatchReader`; older versions of DuckDB have another name for it."""
    read = (
        relation.to_arrow_reader
        if hasattr(type(relation), "to_arrow_reader")
        else relation.fetch_arrow_reader
    )
    return read(BATCH_ROWS)


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(DUCKDB.quoted_name, dict.fromkeys(names)))


def _columns(added: LookUp, region: str) -> dict[str, str]:
    """SQL for each column, given SQL for the region, which is null if there is no answer."""
    score = as_double(DUCKDB, _names([added.columns.score]))
    found = {}
    for name, curve in added.curves.items():
        numbers = [f"{_array(number)}[{region} + 1]" for number in curve.numbers]
        value = on_curve(curve.lines, DUCKDB, score, *numbers)
        found[name] = (
            f"CASE WHEN {region} IS NOT NULL THEN {value} END"  # LEAST and GREATEST ignore nulls
        )
    for name, column in added.table.items():
        found[name] = f"{_array(column)}[{region} + 1]"
    return found


def _array(column: FloatArray | tuple[str, ...]) -> str:
    return f"[{', '.join(map(DUCKDB.literal, column if isinstance(column, tuple) else column.tolist()))}]"  # noqa: E501


def _region(added: LookUp, schema: Any) -> str:
    """SQL for the region of a row; null if the calibrator does not accept its score or segment."""
    bins = []
    first = 0
    for segment, part in added.partition.bins_by_segment.items():
        regions = range(first, first + part.n_regions)
        leaves = [
            str(region) if added.taken is None or added.taken[region] else "NULL"
            for region in regions
        ]
        body = bin_of(
            DUCKDB, _names([added.columns.score]), part.low, part.high, part.cuts.tolist(), leaves
        )
        bins.append((segment, body))
        first += part.n_regions
    if not added.partition.has_segments:
        return one_line(bins[0][1])
    return _of_segment(str(added.columns.segment), schema, bins)


def _of_segment(column: str, schema: Any, bins: list[tuple[Any, list[str]]]) -> str:
    """SQL for the body of a row's segment: text is compared with text, and numbers and bools with
    each other.
    """
    kind = schema.field(column).type
    name = _names([column])
    other = next((body for segment, body in bins if segment is OTHER), None)
    bins = [(segment, body) for segment, body in bins if segment is not OTHER]
    if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
        held = f"CAST({name} AS VARCHAR)"
        known: list[tuple[str | float, list[str]]] = [
            (s, body) for s, body in bins if isinstance(s, str)
        ]
    else:
        held = f"CAST({name} AS INTEGER)" if pa.types.is_boolean(kind) else name
        numbers = [(segment, body) for segment, body in bins if not isinstance(segment, str)]
        known = [
            (int(segment) if isinstance(segment, bool) else segment, body)
            for segment, body in numbers
        ]
    if not known and (other is None or bins):
        return "NULL"
    return one_line(
        by_segment(held, [(DUCKDB.literal(segment), body) for segment, body in known], other)
    )
