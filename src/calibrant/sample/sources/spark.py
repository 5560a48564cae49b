"""Spark frames, classic and Connect: rows stay on the cluster, and counts come back.

Rows go to the kernel as Arrow batches (`mapInArrow`). A task's output is used once, from the attempt
that Spark commits, so retries and speculative copies never count rows twice. Spark itself counts all
rows, and looks up columns with one value for each region, which takes it half the time.
"""

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain
from typing import Any
from uuid import uuid4

from calibrant._optional import needed, pa
from calibrant.cells.bins import OTHER, Bins
from calibrant.cells.group_counts import GroupCounts
from calibrant.errors import CalibrantError
from calibrant.sample.added_columns import AddColumns
from calibrant.sample.batch import Result, Work
from calibrant.sample.faults import Place
from calibrant.sample.group_rows import CountGroups
from calibrant.sample.progress import watched
from calibrant.sample.rows import Rows
from calibrant.sample.sources.arrow import BATCH_ROWS
from calibrant.sample.sources.worker_code import by_value, package_zip, tell_missing
from calibrant.sample.sql.dialects import DIALECTS
from calibrant.sample.sql.search import by_segment, literals, one_line, regions_by_segment

_EXACT_SCORES = {
    "double",
    "float",
    "int",
    "smallint",
    "tinyint",
}  # types that a cast to double does not change
_TYPES = {"boolean": bool, "string": str} | dict.fromkeys(
    ("tinyint", "smallint", "int", "bigint"), int
)
_MOST_PARTS = 8

SPARK = DIALECTS["spark"]
quoted = SPARK.quoted_name

_equipped: set[str] = set()  # sessions whose workers have our code


class SparkData(Rows):
    """A Spark frame of a classic session or of Spark Connect."""

    has_order = False

    _native = True  # tests turn it off, to compare Spark's own lookups with the kernel's

    @cached_property
    def _types(self) -> dict[str, str]:
        return dict(self._source.dtypes)

    def fold(self, work: Work[Result]) -> Result:
        """Apply `work` to the Arrow batches of every partition on the workers; add up the results
        here.
        """
        parts = self._outcomes(work)
        if work.is_large:  # megabytes from each partition, which would not all fit in this process
            parts = parts.repartition(8).mapInArrow(_there("_added", b""), _OUTCOME)
        return work.total(self._results(parts))

    def exchange(self, work: CountGroups) -> GroupCounts:
        """Bring the rows of each group together by Spark's own shuffle: all rows of a group go to
        one task.
        """
        buckets = int(self._source.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        parts = self._outcomes(work, buckets).repartition(buckets, "bucket")
        parts = parts.mapInArrow(_there("_table", b""), _OUTCOME)
        tables = list(self._results(parts))
        return sum(tables[1:], tables[0]) if tables else work.nothing.table()

    def _outcomes(self, work: Work[Any], buckets: int = 0) -> Any:
        """The frame of results of `work` for each partition; with buckets, one row per bucket."""
        _equip(
            self._source.sparkSession
        )  # before the function is created, which records what it can import
        job = _there("_folded", pickle.dumps(work), buckets)
        return self._source.select(*map(quoted, work.columns.to_read)).mapInArrow(job, _OUTCOME)

    def _results(self, parts: Any) -> Iterator[Any]:
        with watched(self._progress, None, "reading") as advance:
            for _, rows, failed, outcome in _collected(parts):
                result = pickle.loads(outcome)
                if failed:
                    raise result
                advance(rows)
                yield result

    def known_rows(self) -> int:
        """Return the number of rows counted by Spark itself: for Parquet files, without reading the
        rows.
        """
        return int(_collected(self._source.selectExpr("count(*)"))[0][0])

    def _region(self, partition: Bins) -> str | None:
        """Return SQL for the region of a row, or null.

        None if SQL would be slow or might be inexact.
        """
        if self._types[self.columns.score] not in _EXACT_SCORES:
            return None
        bins = regions_by_segment(SPARK, quoted(self.columns.score), partition)
        if not partition.has_segments:
            return one_line(bins[None])
        segment = self.columns.segment
        if segment is None or len(bins) > _MOST_PARTS:
            return None
        other = bins.pop(OTHER, None)
        if {type(name) for name in bins} - {_TYPES.get(self._types[segment])}:
            return None
        bodies = [(SPARK.literal(name), body) for name, body in bins.items()]
        return one_line(by_segment(quoted(segment), bodies, other))

    def apply(self, added: AddColumns) -> Any:
        """The frame with the columns added when it is computed: lookups by Spark itself, everything
        else by the kernel.
        """
        needed("pyarrow", "arrow", "columns are added")
        added.check_free(self._source.columns)
        look_up = added.values_alone
        if self._native and look_up is not None and look_up.columns.score == self.columns.score:
            region = self._region(look_up.partition)
            if region is not None:  # not element_at, which Spark assumes is never null
                columns = (
                    f"get(array({literals(SPARK, table)}), {region}) AS {quoted(name)}"
                    for name, table in look_up.table.items()
                )
                return self._source.selectExpr("*", *columns)
        kinds = needed(
            "pyspark.sql.pandas.types", "spark", "Spark frames are read"
        ).from_arrow_schema(pa.schema(added.fields()))
        _equip(self._source.sparkSession)
        schema = type(kinds)([*self._source.schema.fields, *kinds.fields])
        return self._source.mapInArrow(_there("_applied", pickle.dumps(added)), schema)


def _collected(frame: Any) -> list[Any]:
    """The rows of the frame. An interrupt, such as Ctrl-C, also stops the work on the cluster."""
    session = frame.sparkSession
    tag = f"calibrant-{uuid4().hex}"
    context = None if _is_connect(session) else session.sparkContext

    def collect() -> list[Any]:
        if context is None:
            session.addTag(tag)
        else:
            context.addJobTag(tag)  # a classic session sees only the tags of the calling thread
        return list(frame.collect())

    # In another thread: the connection on which a thread waits for rows cannot carry a stop
    # request.
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(collect)
        try:
            return waiting.result()
        except Exception as error:
            tell_missing(error, "the Spark cluster")
            raise
        except BaseException:
            if context is None:
                session.interruptTag(tag)
            else:
                context.cancelJobsWithTag(tag)
            raise


def _is_connect(session: Any) -> bool:
    return "connect" in type(session).__module__


def _equip(session: Any) -> None:
    """Send our code to the session's workers, including those that join later."""
    connect = _is_connect(session)
    name = str(session.session_id if connect else session.sparkContext.applicationId)
    if name in _equipped:
        return
    path = str(package_zip())
    if connect:
        session.addArtifacts(path, pyfile=True)
    else:
        session.sparkContext.addPyFile(path)
    _equipped.add(name)


# What runs on the workers.

_OUTCOME = "bucket int, rows bigint, failed boolean, outcome binary"


def _there(name: str, *settings: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    return by_value(__name__, name, *settings)


def _folded(batches: Iterator[Any], job: bytes, buckets: int) -> Iterator[Any]:
    """The result of the work for a partition; with buckets, one row per bucket."""
    number = needed("pyspark", "spark", "Spark frames are read").TaskContext.get().partitionId()
    work = pickle.loads(job)
    total = work.nothing
    rows = 0
    try:
        for batch in _large(batches):
            total = total + work(batch, Place(number, rows, before=None))
            rows += batch.num_rows
    except CalibrantError as error:  # the same in every attempt: it is reported, not retried
        yield _outcome(rows, error)
        return
    for bucket, part in enumerate(total.split(buckets) if buckets else [total]):
        if rows:
            yield _outcome(0 if bucket else rows, part, bucket)


def _large(batches: Iterator[Any]) -> Iterator[Any]:
    """Join batches, because Spark's are short."""
    held = []
    rows = 0
    for batch in chain(batches, [None]):  # None after the last
        if batch is not None:
            held.append(batch)
            rows += batch.num_rows
        if rows >= BATCH_ROWS or (rows and batch is None):
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held = []
            rows = 0


def _added(batches: Iterator[Any], job: bytes, *, as_table: bool = False) -> Iterator[Any]:
    """The sum of outcomes, or their table of groups."""
    total = None
    rows = 0
    for part in (part for batch in batches for part in batch.to_pylist()):
        result = pickle.loads(part["outcome"])
        if part["failed"]:
            yield _outcome(rows, result)
            return
        total = result if total is None else total + result
        rows = rows + part["rows"]
    if total is not None:
        yield _outcome(rows, total.table() if as_table else total)


def _table(batches: Iterator[Any], job: bytes) -> Iterator[Any]:
    """The table of groups from the sum of outcomes."""
    return _added(batches, job, as_table=True)


def _applied(batches: Iterator[Any], job: bytes) -> Iterator[Any]:
    return map(pickle.loads(job), batches)


def _outcome(rows: int, result: Any, bucket: int = 0) -> Any:
    named = {
        "bucket": bucket,
        "rows": rows,
        "failed": isinstance(result, Exception),
        "outcome": pickle.dumps(result),
    }
    columns = {name: pa.array([value]) for name, value in named.items()}
    columns["bucket"] = columns["bucket"].cast(pa.int32())
    return pa.RecordBatch.from_pydict(columns)
