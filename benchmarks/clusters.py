"""Dask and Spark on two workers: a fit with given edges against the same engine merely summing the
two columns.

    python benchmarks/clusters.py --rows 10000000              # both engines, side by side
    python benchmarks/clusters.py --kills 20 --engine spark    # fits in which workers are killed at
    random moments

The clusters are real and small: a head and two workers of one core each, on loopback, which do not
have our package.
"""

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from timing import best_of, render

from calibrant import BinningCalibrator, Partition
from calibrant.sample.batch import Columns
from calibrant.sample.sources.dask import DaskData
from calibrant.sample.sources.spark import SparkData

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from sample.clusters import DaskCluster, SparkCluster, kill_at_random, stop_spark, wait_for

COLUMNS = Columns("p", "y")
EDGES = Partition.from_edges(np.arange(1, 100) / 100)
FILES = 16


def write_rows(folder: Path, rows: int) -> None:
    """Scores and labels, and a column that no fit should read, in files of equal size."""
    rng = np.random.default_rng(0)
    for number in range(FILES):
        scores = rng.uniform(size=rows // FILES)
        labels = (rng.uniform(size=scores.size) < scores).astype(np.int64)
        table = pa.table({"p": scores, "y": labels, "other": rng.normal(size=scores.size)})
        pq.write_table(table, folder / f"part-{number:03}.parquet")


def fit(data: Any) -> Any:
    return BinningCalibrator(partition=EDGES).fit(data).tally_


@contextmanager
def on_dask(folder: Path) -> Iterator[tuple[DaskCluster, Any]]:
    import dask
    import distributed

    cluster = DaskCluster(folder)
    try:
        with distributed.Client(cluster.address) as client, dask.config.set(scheduler=client):
            client.wait_for_workers(2, timeout=90)
            yield cluster, client
    finally:
        cluster.close()


@contextmanager
def on_spark(folder: Path) -> Iterator[tuple[SparkCluster, Any]]:
    cluster = SparkCluster(folder, memory="1g")
    try:
        session = cluster.session()
        yield cluster, session
        stop_spark(session)
    finally:
        cluster.close()


def dask_ways(files: Path, rows: int) -> dict[str, Callable[[], object]]:
    import dask.dataframe as dd

    def frame() -> Any:
        return dd.read_parquet(str(files), split_row_groups=False, aggregate_files=False)

    def sums() -> None:
        total = frame()[["p", "y"]].sum().compute()
        assert total["y"] > 0

    def counts() -> None:
        assert fit(DaskData(frame(), COLUMNS, progress=False)).counts.sum() == rows

    return {"sums": sums, "fit": counts}


def spark_ways(spark: Any, files: Path, rows: int) -> dict[str, Callable[[], object]]:
    frame = spark.read.parquet(str(files))

    def sums() -> None:
        assert frame.selectExpr("sum(p)", "sum(y)").collect()[0][1] > 0

    def counted(native: bool) -> Callable[[], None]:
        data = SparkData(frame, COLUMNS, progress=False)
        data._native = native

        def way() -> None:
            assert fit(data).counts.sum() == rows

        return way

    return {"sums": sums, "fit": counted(True), "fit by the kernel": counted(False)}


def speed(engines: list[str], rows: int, rounds: int) -> None:
    lines = []
    with tempfile.TemporaryDirectory() as name:
        files = Path(name) / "files"
        files.mkdir()
        write_rows(files, rows)
        for engine in engines:
            folder = Path(name) / engine
            folder.mkdir()
            with (on_dask if engine == "dask" else on_spark)(folder) as (_, session):
                ways = (
                    dask_ways(files, rows) if engine == "dask" else spark_ways(session, files, rows)
                )
                best = best_of(ways, rows, rounds)
            for way, nanoseconds in best.items():
                seconds = nanoseconds * rows / 1e9
                lines.append([engine, way, f"{seconds:.2f} s", f"{nanoseconds / best['sums']:.2f}"])
    print(f"{rows:,} rows of Parquet, two workers of one core, {EDGES.n_regions} bins")
    print(render(["engine", "way", "best", "against sums"], lines))


def deaths(engine: str, kills: int, seed: int) -> None:
    """Fits of some seconds, a worker killed in each.

    All must give the counts that the rows give in memory.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=100_000)
    rows = pd.DataFrame(
        {"p": scores, "y": (rng.uniform(size=scores.size) < scores).astype(np.int64)}
    )
    expected = BinningCalibrator(partition=EDGES).fit(scores, rows["y"].to_numpy()).tally_

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        import time

        time.sleep(0.1)
        yield from batches

    def part(number: int) -> Any:
        import time

        time.sleep(0.1)
        return rows.iloc[number::24]

    with tempfile.TemporaryDirectory() as name:
        if engine == "dask":
            import dask.dataframe as dd

            with on_dask(Path(name)) as (cluster, client):
                frame = dd.from_map(part, range(24), meta=rows.iloc[:0], enforce_metadata=False)
                data = [DaskData(frame, COLUMNS, progress=False)]
                whole = lambda: wait_for(  # noqa: E731  # noqa: E731
                    lambda: len(client.scheduler_info()["workers"]) == 2, "a new worker"
                )
                report(cluster, data, whole, kills, seed, expected, engine)
            return
        with on_spark(Path(name)) as (spark_cluster, spark):
            dealt = spark.createDataFrame(
                pa.Table.from_pandas(rows, preserve_index=False)
            ).repartition(24)
            frame = dealt.mapInArrow(slowly, dealt.schema)
            data = [SparkData(frame, COLUMNS, progress=False) for _ in range(2)]
            data[1]._native = False
            whole = lambda: spark_cluster.wait_for_executors(spark)  # noqa: E731
            report(spark_cluster, data, whole, kills, seed, expected, engine)


def report(
    cluster: Any,
    data: list[Any],
    whole: Callable[[], Any],
    kills: int,
    seed: int,
    expected: Any,
    engine: str,
) -> None:
    midway = 0
    for number, one in enumerate(data):
        share = kills // len(data) + (number < kills % len(data))
        midway += kill_at_random(
            cluster, lambda one=one: fit(one), expected, whole, share, seed + number
        )
    print(
        f"{engine}: {kills} exact results of {kills} fits; {midway} workers were killed while a fit"
        " was under way"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=["dask", "spark"], action="append")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--kills", type=int, default=0, help="kill so many workers instead of timing"
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    engines = given.engine or ["dask", "spark"]
    if given.kills:
        for engine in engines:
            deaths(engine, given.kills, given.seed)
    else:
        speed(engines, given.rows - given.rows % FILES, given.rounds)


if __name__ == "__main__":
    main()
