"""DuckDB relations: read as Arrow batches while the query runs, and extended with columns by
DuckDB's own SQL.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from calibrant._optional import pa
from calibrant._typing import FloatArray
from calibrant.cells.bins import OTHER
from calibrant.sample.added_columns import AddColumns, LookUp, empty_batch
from calibrant.sample.batch import Columns
from calibrant.sample.progress import Progress
from calibrant.sample.sources.arrow import BATCH_ROWS, ArrowData, Engine, Part
from calibrant.sample.sql.dialects import DIALECTS
from calibrant.sample.sql.search import (
    as_double,
    by_segment,
    literals,
    on_curve,
    one_line,
    regions_by_segment,
)

DUCKDB = DIALECTS["duckdb"]


def from_duckdb(relation: Any, columns: Columns, *, progress: Progress) -> ArrowData:
    """Rows of a relation, which is run again in every pass.

    DuckDB keeps the order of the rows of tables and files unless ``preserve_insertion_order`` is
    off; after a join or a group-by the order may change from run to run. A split then needs an id
    column, and says so.
    """

    def read(names: list[str] | None) -> Iterator[Any]:
        # a connection has one open result at a time, so it is always closed
        with _reader(relation if names is None else relation.project(_names(names))) as reader:
            yield from reader

    engine = Engine(
        # for tables and Parquet files without reading the rows
        lambda: int(relation.aggregate("count(*)").fetchall()[0][0]),
        lambda added: _with_columns(relation, added),
        has_order=False,
    )
    names = relation.columns
    return ArrowData([Part(read)], None, columns, names=names, progress=progress, engine=engine)


def _with_columns(relation: Any, added: AddColumns) -> Any:
    """A relation with the columns added: not run yet, with the same row order, and without Python
    when it runs.
    """
    look_up = added.as_look_up()
    added.check_free(relation.columns, ignore_case=True)
    with _reader(relation.project(_names(added.to_read)).limit(0)) as reader:
        schema = reader.schema
    added(empty_batch(schema))  # rejects columns of other types
    taken = {name.lower() for name in (*relation.columns, *added.names)}
    region = next(name for n in range(len(taken) + 1) if (name := f"region_{n}") not in taken)
    located = relation.project(f"*, {_region(look_up, schema)} AS {region}")
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
    return f"[{literals(DUCKDB, column)}]"


def _region(added: LookUp, schema: Any) -> str:
    """SQL for the region of a row; null if the calibrator does not accept its score or segment."""
    score = _names([added.columns.score])
    bins = regions_by_segment(DUCKDB, score, added.partition, added.taken)
    if not added.partition.has_segments:
        return one_line(bins[None])
    return _of_segment(str(added.columns.segment), schema, bins)


def _of_segment(column: str, schema: Any, bins: dict[Any, list[str]]) -> str:
    """SQL for the body of a row's segment: text is compared with text, and numbers and bools with
    each other.
    """
    kind = schema.field(column).type
    is_text = pa.types.is_string(kind) or pa.types.is_dictionary(kind)
    held = _names([column])
    if is_text or pa.types.is_boolean(kind):
        held = f"CAST({held} AS {'VARCHAR' if is_text else 'INTEGER'})"
    other = bins.pop(OTHER, None)
    known = [
        (DUCKDB.literal(int(segment) if isinstance(segment, bool) else segment), body)
        for segment, body in bins.items()
        if isinstance(segment, str) == is_text
    ]
    if not known and (other is None or bins):
        return "NULL"
    return one_line(by_segment(held, known, other))
