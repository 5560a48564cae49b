"""Spark frames, classic and Connect: rows stay on the cluster, and counts come back.

Rows go to the kernel as Arrow batches (`mapInArrow`). A task's output is used once, from the attempt
that Spark commits, so retries and speculative copies never count rows twice.
"""

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any
from uuid import uuid4

from calibrant._optional import needed, pa
from calibrant.errors import CalibrantError
from calibrant.sample.added_columns import AddColumns
from calibrant.sample.batch import Result, Work
from calibrant.sample.faults import Place
from calibrant.sample.progress import watched
from calibrant.sample.rows import Rows
from calibrant.sample.sources.arrow import BATCH_ROWS
from calibrant.sample.sources.worker_code import by_value, package_zip, tell_missing
from calibrant.sample.sql.dialects import DIALECTS

quoted = DIALECTS["spark"].quoted_name

_equipped: set[str] = set()  # sessions whose workers have our code


class SparkData(Rows):
    """A Spark frame of a classic session or of Spark Connect."""

    has_order = False

    def fold(self, work: Work[Result]) -> Result:
        """Apply `work` to the Arrow batches of every partition on the workers; add up the results
        here.
        """
        # before the function is created, which records what it can import
        _equip(self._source.sparkSession)
        parts = self._source.select(*map(quoted, work.columns.to_read))
        parts = parts.mapInArrow(_there("_folded", pickle.dumps(work)), _OUTCOME)
        if work.is_large:  # megabytes from each partition, which would not all fit in this process
            parts = parts.repartition(8).mapInArrow(_there("_added"), _OUTCOME)
        return work.total(self._results(parts))

    def _results(self, parts: Any) -> Iterator[Any]:
        with watched(self._progress, None, "reading") as advance:
            for rows, failed, outcome in _collected(parts):
                result = pickle.loads(outcome)
                if failed:
                    raise result
                advance(rows)
                yield result

    def apply(self, added: AddColumns) -> Any:
        """The frame with the columns added when it is computed."""
        needed("pyarrow", "arrow", "columns are added")
        added.check_free(self._source.columns)
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

_OUTCOME = "rows bigint, failed boolean, outcome binary"


def _there(name: str, *settings: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    return by_value(__name__, name, *settings)


def _folded(batches: Iterator[Any], job: bytes) -> Iterator[Any]:
    """The result of the work for a partition."""
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
    if rows:
        yield _outcome(rows, total)


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


def _added(batches: Iterator[Any]) -> Iterator[Any]:
    """The sum of outcomes."""
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
        yield _outcome(rows, total)


def _applied(batches: Iterator[Any], job: bytes) -> Iterator[Any]:
    return map(pickle.loads(job), batches)


def _outcome(rows: int, result: Any) -> Any:
    named = {
        "rows": rows,
        "failed": isinstance(result, Exception),
        "outcome": pickle.dumps(result),
    }
    return pa.RecordBatch.from_pydict({name: [value] for name, value in named.items()})
