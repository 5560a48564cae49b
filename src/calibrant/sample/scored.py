"""Scored data, wherever they are: one protocol, and one file for each engine that can pass batches
to the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from calibrant._optional import needed, pa
from calibrant.errors import InvalidTypeError
from calibrant.params.rules import Choice, Flag, thread_count
from calibrant.params.tensors import is_device_array
from calibrant.sample.batch import Columns, missing_column
from calibrant.sample.bounds import DataBounds
from calibrant.sample.progress import Progress
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample

_ENGINES = {
    ("_duckdb", "DuckDBPyRelation"): ("duckdb", "from_duckdb"),
    ("duckdb", "DuckDBPyRelation"): ("duckdb", "from_duckdb"),
    ("polars", "LazyFrame"): ("polars", "from_polars"),
    ("dask", "DataFrame"): ("dask", "DaskData"),
    ("pyspark", "DataFrame"): ("spark", "SparkData"),
}
"""From the package and name of a type, which load no library, to the engine: its module or extra,
and what makes its rows.
"""


DECIMALS = (".", ",")
"""The decimal marks of CSV files."""


def scored(
    source: object,
    *,
    score: str = "score",
    label: str | None = None,
    segment: str | None = None,
    weight: str | None = None,
    id: str | None = None,
    group: str | None = None,
    format: str | None = None,
    decimal: str = ".",
    skip_missing: bool = False,
    weight_bound: float | None = None,
    max_group_size: int | None = None,
    group_target: str | None = None,
    n_jobs: int | None = -1,
    progress: Progress = None,
) -> Sample:
    """Name the data and their score and label columns; only the names are read at this point.

    Parameters
    ----------
    source : path, glob, folder, list of them, table, frame, relation or stream
        Files (Parquet, CSV, JSON lines, Arrow IPC; CSV and JSON may be compressed), pandas and
        Polars frames, lazy frames of Polars and narwhals, DuckDB relations, Dask and Spark frames,
        pyarrow tables, datasets and readers, anything with ``__arrow_c_stream__``; database
        cursors (DB-API) and SQLAlchemy results after a query, whose rows are fetched once and kept;
        or a mapping from names to arrays, from numpy, or from torch or CuPy on a device.
    score, label : str
        Columns of the scores and of the labels; no label is needed if a calibrator is only applied.
    segment, weight : str, optional
        Columns of segments, which get their own bins, and of importance weights.
    id : str, optional
        A column that is unique per row. A random split then depends on the seed, the rows and their
        ids, but not on the engine or the order of the rows.
    group : str, optional
        The column of groups, such as customers: whole numbers, dates or text. Groups are then drawn
        and counted whole, wherever their rows are stored. It replaces `id`.
    format : {"parquet", "csv", "json", "ipc"}, optional
        Format of the files, if their names do not show it.
    decimal : {".", ","}, default="."
        The decimal mark of numbers in CSV files. Scores and weights may have per cent signs.
    skip_missing : bool, default=False
        Skip rows whose label is missing (null or NaN), such as outcomes that are still pending.
        Their number is reported by `Sample.skipped_rows` and in a note of the guarantee, which then
        assumes that, in every region, whether a label is missing does not depend on the label.
        False raises an error for these rows.
    weight_bound : float, optional
        An upper bound on the weights. This parameter and the next two describe the data, so every
        function that takes the data uses them. They have the same meaning as in
        `BinningCalibrator.fit`, and may also be given there; two different values raise an error.
    max_group_size : int, optional
        The largest number of rows that a group counts as.
    group_target : {"rows", "groups"}, optional
        Whether the rate is that among rows, or that of a random row from a random group. A method
        that can guarantee only the other one raises an error.
    n_jobs : int or None, default=-1
        Number of threads that read files; -1 means one for each core. Results never depend on it.
    progress : bool or callable, optional
        True shows a progress bar, False does not; a callable gets the number of rows done and the
        total. None, the default, shows a bar if standard error is a terminal and the work takes
        longer than a second.

    Returns
    -------
    Sample
        Pass it instead of scores and labels to `BinningCalibrator.fit`, `audit` and other
        functions.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from calibrant import BinningCalibrator, scored
    >>> table = pa.table({"p": [0.1, 0.2, 0.8, 0.9] * 500, "y": [0, 0, 1, 1] * 500})
    >>> data = scored(table, score="p", label="y")
    >>> BinningCalibrator(n_bins=2, partition="uniform").fit(data).tally_
    Tally(counts=[1000, 1000], positives=[0, 1000])
    """
    if Flag().check("skip_missing", skip_missing) and label is None:
        raise missing_column("label")
    columns = Columns(
        score, label, segment, weight, id, group, pending=label if skip_missing else None
    )
    threads = thread_count(n_jobs)
    bounds = DataBounds(weight_bound, max_group_size, group_target)
    Choice(DECIMALS).check("decimal", decimal)
    rows = _rows_of(source, columns, threads, progress, format, decimal)
    return Sample(rows.with_bounds(bounds) if bounds.known else rows)


def _rows_of(
    source: object,
    columns: Columns,
    threads: int,
    progress: Progress,
    format: str | None,
    decimal: str,
) -> Rows:
    """The rows of a source, behind the protocol of its engine."""
    if isinstance(source, Mapping) and any(is_device_array(column) for column in source.values()):
        on_device: Rows = import_module("calibrant.gpu.rows").DeviceData(source, columns)
        return on_device
    if _package_and_name(source) == ("narwhals", "LazyFrame"):
        source = source.to_native()  # type: ignore[attr-defined]
    engine, data = _ENGINES.get(_package_and_name(source), (None, ""))
    needed("pyarrow", engine or "arrow", "data from files, tables and frames are read")
    if engine is not None:
        make: Callable[..., Rows] = getattr(
            import_module(f"calibrant.sample.sources.{engine}"), data
        )
        return make(source, columns, progress=progress)
    several = source if isinstance(source, list | tuple) else [source]
    paths = [path for path in several if isinstance(path, str | Path)]
    if paths and len(paths) == len(several):
        from calibrant.sample.sources.files import from_files

        reading: dict[str, Any] = {"threads": threads, "progress": progress}
        return from_files(paths, columns, format=format, decimal=decimal, **reading)
    return _from_arrow(source, columns, threads, progress)


def _package_and_name(source: object) -> tuple[str, str]:
    """The package and the name of the type, which load no library."""
    package = type(source).__module__.partition(".")[0]
    return package, type(source).__name__


def _from_arrow(source: object, columns: Columns, threads: int, progress: Progress) -> Rows:
    """Data in memory, and what pyarrow reads: tables, datasets and streams."""
    from calibrant.sample.sources.arrow import as_table, from_arrow, from_dataset

    package, name = _package_and_name(source)
    is_stream = hasattr(source, "__arrow_c_stream__")
    if isinstance(source, Mapping):
        return from_arrow(as_table(source.items()), columns, threads=threads, progress=progress)
    if package == "pandas" and name == "DataFrame" and not is_stream:  # before pandas 2.2
        table = pa.Table.from_pandas(source, preserve_index=False)
        return from_arrow(table, columns, threads=threads, progress=progress)
    if package == "pyarrow" and hasattr(source, "get_fragments"):
        return from_dataset(source, columns, threads=threads, progress=progress)
    if is_stream or isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return from_arrow(source, columns, threads=threads, progress=progress)
    from calibrant.sample.sources.cursors import from_cursor, is_cursor

    if is_cursor(source):
        return from_cursor(source, columns, progress=progress)
    got = name
    advice = None
    if isinstance(source, list | tuple) and source:
        got = f"{got} of {type(source[0]).__name__}"
        advice = "give a mapping from names to columns, or pyarrow.Table.from_pylist(rows)"
    rule = "be files, a table, a frame, a relation, a cursor or a stream"
    raise InvalidTypeError("source", rule, got=got, advice=advice)
