"""DuckDB relations: read as Arrow batches while the query runs, and given columns by SQL that DuckDB runs itself."""

from collections.abc import Iterable
from typing import Any

from calibrant._typing import FloatArray
from calibrant.errors import InvalidTypeError
from calibrant.partition import ScorePartition
from calibrant.rows.adding import AddColumns, LookUp, empty_batch
from calibrant.rows.arrow import BATCH_ROWS
from calibrant.rows.base import ScoredData
from calibrant.rows.batch import Columns
from calibrant.rows.faults import Place
from calibrant.rows.progress import Progress, watched
from calibrant.rows.work import Result, Work


class DuckDBData(ScoredData):
    """Rows of a relation, which is run anew at every pass.

    DuckDB keeps the order of the rows of tables and files unless ``preserve_insertion_order`` is off; after a join or
    a group-by the order may change from one run to the next. A split then needs an id column, and says so.
    """

    def __init__(self, relation: Any, columns: Columns, *, progress: Progress = None) -> None:
        columns.check(relation.columns)
        self.columns = columns
        self._relation = relation
        self._progress = progress

    def known_rows(self) -> int:
        """What DuckDB counts: of tables and Parquet files without a look at the rows."""
        return int(self._relation.aggregate("count(*)").fetchall()[0][0])

    def fold(self, work: Work[Result]) -> Result:
        """Do `work` on every batch, as DuckDB's own threads make them."""
        total, row = work.nothing(), 0
        with (
            watched(self._progress, None, "reading") as advance,
            # a connection has one open result at a time: it is closed whatever happens
            _reader(self._relation.project(_names(work.columns.named.values()))) as reader,
        ):
            for batch in reader:
                total = total + work(batch, Place(0, row))
                row += batch.num_rows
                advance(batch.num_rows)
        return total

    def apply(self, added: AddColumns) -> Any:
        """A relation with the columns added: not run yet, the rows in their order, and no Python when it runs."""
        if not isinstance(added, LookUp):
            raise InvalidTypeError(
                f"columns must come from a table of regions to be added by SQL; got {type(added).__name__}: "
                "read the relation as Arrow instead, scored(relation.to_arrow_reader(), ...)"
            )
        added.check_free(self._relation.columns, ignore_case=True)
        with _reader(self._relation.project(_names(added.columns.named.values())).limit(0)) as reader:
            schema = reader.schema
        added(empty_batch(schema))  # refuses columns of other types
        taken = {name.lower() for name in (*self._relation.columns, *added.names)}
        region = next(name for n in range(len(taken) + 1) if (name := f"region_{n}") not in taken)
        located = self._relation.project(f"*, {_region(added, schema)} AS {region}")
        values = [f"{_array(column)}[{region} + 1] AS {_names([name])}" for name, column in added.table.items()]
        return located.project(f"* EXCLUDE ({region}), {', '.join(values)}")


def from_duckdb(relation: Any, columns: Columns, *, progress: Progress) -> DuckDBData:
    """A `duckdb.DuckDBPyRelation`, such as ``duckdb.sql(...)`` and ``connection.table(...)`` give."""
    return DuckDBData(relation, columns, progress=progress)


def _reader(relation: Any) -> Any:
    """A `pyarrow.RecordBatchReader`; older versions of DuckDB know it by another name."""
    read = relation.to_arrow_reader if hasattr(type(relation), "to_arrow_reader") else relation.fetch_arrow_reader
    return read(BATCH_ROWS)


def _names(names: Iterable[str]) -> str:
    return ", ".join('"' + name.replace('"', '""') + '"' for name in dict.fromkeys(names))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _double(value: float) -> str:
    return f"CAST('{float(value)!r}' AS DOUBLE)"  # a bare 0.1 would be a decimal


def _array(column: FloatArray | tuple[str, ...]) -> str:
    entries = map(_text, column) if isinstance(column, tuple) else map(_double, column.tolist())
    return f"[{', '.join(entries)}]"


def _region(added: LookUp, schema: Any) -> str:
    """The number of each row's region; null where the calibrator takes no such score or segment."""
    partition = added.partition
    if isinstance(partition, ScorePartition):
        return _region_of_score(added.columns.score, partition, 0)
    segment = str(added.columns.segment)
    branches = [
        f"WHEN {_is_segment(segment, schema.field(segment).type, name)} THEN "
        f"{_region_of_score(added.columns.score, part, int(offset))}"
        for name, part, offset in zip(partition.segments, partition.parts, partition.offsets, strict=False)
    ]
    return f"CASE {' '.join(branches)} ELSE NULL END"


def _is_segment(column: str, kind: Any, name: Any) -> str:
    """Whether a row is of a segment: text is compared with text, and numbers and bools with each other."""
    import pyarrow as pa

    text = pa.types.is_string(kind) or pa.types.is_dictionary(kind)
    if isinstance(name, str) != text:
        return "FALSE"
    if text:
        return f"CAST({_names([column])} AS VARCHAR) = {_text(name)}"
    held = f"CAST({_names([column])} AS INTEGER)" if pa.types.is_boolean(kind) else _names([column])
    return f"{held} = {_double(name) if isinstance(name, float) else int(name)}"


def _region_of_score(column: str, part: ScorePartition, offset: int) -> str:
    score = f"CAST({_names([column])} AS DOUBLE)"
    limits = ((">=", part.low), ("<=", part.high))
    inside = [f"{score} {sign} {_double(limit)}" for sign, limit in limits if abs(limit) < float("inf")]
    found = _search(score, part.cuts.tolist(), offset)
    return f"CASE WHEN {' AND '.join([f'isfinite({score})', *inside])} THEN {found} ELSE NULL END"


def _search(score: str, cuts: list[float], first: int) -> str:
    """Binary search as nested cases: `first` and how many cuts are not above the score."""
    if not cuts:
        return str(first)
    middle = len(cuts) // 2
    below, above = _search(score, cuts[:middle], first), _search(score, cuts[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {score} < {_double(cuts[middle])} THEN {below} ELSE {above} END"
