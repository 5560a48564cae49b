"""Dask frames: count partitions on the workers, and add results there; retried tasks count once."""

import pickle
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

from calibrant._optional import needed, pa, pandas
from calibrant.errors import InvalidTypeError
from calibrant.sample.added_columns import AddColumns
from calibrant.sample.batch import Result, Work
from calibrant.sample.faults import Place
from calibrant.sample.progress import watched
from calibrant.sample.rows import Rows
from calibrant.sample.sources.arrow import BATCH_ROWS
from calibrant.sample.sources.worker_code import by_value, package_zip, tell_missing

_MOST_GROUPS = (
    64  # groups of partitions whose results come here: little traffic, yet a bar that moves
)

_equipped: WeakSet[Any] = WeakSet()  # clients whose workers have our code


class DaskData(Rows):
    """A Dask frame, on a distributed cluster or on the threads of this process.

    A result is the output of a task, and a task's output is used once, from any worker and any
    number of attempts. If a worker dies, its tasks run again; no row is lost or counted twice.
    """

    has_order = False

    def fold(self, work: Work[Result]) -> Result:
        """Apply `work` to every partition; add results within groups on the workers, and add the
        groups here.
        """
        return work.total(self._results(work))

    def _results(self, work: Work[Any]) -> Iterator[Any]:
        client = _client(self._source)
        wanted = _sums(self._source[work.columns.to_read], pickle.dumps(work))
        with watched(self._progress, None, "reading") as advance:
            try:
                yield from (
                    _here(wanted, advance) if client is None else _there(wanted, client, advance)
                )
            except Exception as error:
                tell_missing(error, "the Dask cluster")
                raise

    def apply(self, added: AddColumns) -> Any:
        """The frame with the columns added to each partition when it is computed."""
        needed("pyarrow", "arrow", "columns are added")
        added.check_free(map(str, self._source.columns))
        client = _client(self._source)
        if client is not None:
            _equip(client)
        function = by_value(__name__, "_with_columns")
        job = pickle.dumps(added)
        meta = _needed("dask.dataframe.dispatch").make_meta(self._source)
        return self._source.map_partitions(function, job, meta=function(meta, job))


def _needed(module: str) -> Any:
    return needed(module, "dask", "Dask frames are read")


def _client(frame: Any) -> Any:
    """Return the distributed client that would compute the frame; None if this machine would."""
    owner = getattr(_needed("dask.base").get_scheduler(collections=[frame]), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def _sums(frame: Any, job: bytes) -> list[Any]:
    """Delayed sums over groups of partitions, each with its number of rows."""
    fold = _task("_folded")
    add = _task("_added")
    shared = _needed("dask").delayed(job)
    leaves = [fold(shared, part, number) for number, part in enumerate(frame.to_delayed())]
    width = -(-len(leaves) // _MOST_GROUPS)
    return [add(leaves[start : start + width]) for start in range(0, len(leaves), width)]


def _here(sums: list[Any], advance: Callable[[int], None]) -> Iterator[Any]:
    """The sums, from the threads or processes of this machine."""
    wanted = {part.key for part in sums}

    def finished(key: Any, value: Any, *_: Any) -> None:
        if key in wanted:
            advance(value[0])

    with _needed("dask.callbacks").Callback(posttask=finished):
        yield from (result for _, result in _needed("dask").compute(*sums))


def _there(sums: list[Any], client: Any, advance: Callable[[int], None]) -> Iterator[Any]:
    """The sums from the cluster, each once."""
    _equip(client)
    futures = client.compute(sums)
    try:
        for future in _needed("distributed").as_completed(futures, loop=client.loop):
            rows, result = (
                future.result()
            )  # waits for a second run if the worker that held it is gone
            advance(rows)
            yield result
    except BaseException:  # Ctrl-C or a fault here also stops the work there
        client.cancel(futures)
        raise


def _equip(client: Any) -> None:
    """Send our code to the cluster's workers, including those that join later."""
    if client in _equipped:
        return
    path = package_zip()

    # A class defined in a function is pickled by value, so it can be loaded where our package is
    # not installed.
    class Equip(_needed("distributed").WorkerPlugin):  # type: ignore[misc]
        idempotent = True

        def __init__(self, name: str, content: bytes) -> None:
            self.name = name
            self.content = content

        def setup(self, worker: Any) -> None:
            import sys
            from pathlib import Path

            if "calibrant" in sys.modules:
                return  # threads of this process, or a worker that already uses it
            file = Path(worker.local_directory) / self.name
            file.write_bytes(self.content)
            sys.path.insert(0, str(file))

    client.register_plugin(Equip(path.name, path.read_bytes()))
    _equipped.add(client)


# What runs on the workers.


def _task(name: str) -> Any:
    """A task that calls a function of this module.

    The scheduler, which deserialises it, need not have our package.
    """
    return _needed("dask").delayed(by_value(__name__, name))


def _folded(job: bytes, frame: Any, number: int) -> tuple[int, Any]:
    """The number of rows of a partition, and the result of the work for them."""
    work = pickle.loads(job)
    total = work.nothing
    batch = _batch(frame, number)
    for start in range(0, len(frame), BATCH_ROWS):
        total = total + work(batch.slice(start, BATCH_ROWS), Place(number, start, before=None))
    return len(frame), total


def _added(parts: list[tuple[int, Any]]) -> tuple[int, Any]:
    rows, total = parts[0]
    for more_rows, more in parts[1:]:
        rows = rows + more_rows
        total = total + more
    return rows, total


def _with_columns(frame: Any, job: bytes) -> Any:
    """A partition with the columns added."""
    pd = pandas()
    added = pickle.loads(job)
    batch = added(_batch(frame[list(dict.fromkeys(added.columns.named.values()))], None))
    kinds = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    columns = (
        pa.Table.from_batches([batch]).select(list(added.names)).to_pandas(types_mapper=kinds.get)
    )
    return frame.assign(**{name: columns[name].array for name in added.names})


def _batch(frame: Any, number: int | None) -> Any:
    """A pandas frame as a record batch.

    Columns with mixed types raise an error that names the column.
    """
    try:
        return pa.RecordBatch.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        where = "" if number is None else f" in partition {number}"
        raise InvalidTypeError(
            "columns", f"contain one kind of entry each{where}", got=str(error)
        ) from None
