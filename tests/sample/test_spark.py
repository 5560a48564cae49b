"""Spark, classic on a standalone cluster and Connect: the same counts as in memory, whoever counts
and whoever dies.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from calibrant import BinningCalibrator, Partition, scored
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.batch import Columns
from calibrant.sample.cross_counts import CountCross
from calibrant.sample.reader import rows_of
from calibrant.sample.sources.spark import SparkData
from calibrant.sample.sql.dialects import DIALECTS
from calibrant.sample.sql.search import nested
from sample.cluster_tests import ClusterTests
from sample.clusters import SparkCluster, end, java, stop_spark, without_our_package
from sample.cross_tests import check_cross, key_of, mixed_rows
from sample.same_counts import (
    EDGES,
    PLAIN,
    check_applied,
    check_counts,
    check_curve,
    check_given_edges,
    made_rows,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings(
        "ignore:unclosed:ResourceWarning"
    ),  # sockets to the virtual machine, which it closes
]

LACKING = java()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    if LACKING is not None:
        assert "CI" not in os.environ, LACKING
        pytest.skip(LACKING)
    cluster = SparkCluster(tmp_path_factory.mktemp("spark"))
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def spark(cluster: SparkCluster) -> Iterator[Any]:
    session = cluster.session()
    yield session
    stop_spark(session)


def frame_of(spark: Any, rows: pd.DataFrame, partitions: int) -> Any:
    """The rows as a frame, dealt out to partitions, in another order than they had."""
    return spark.createDataFrame(pa.Table.from_pandas(rows, preserve_index=False)).repartition(
        partitions
    )


@pytest.fixture
def split_into(spark) -> Any:
    def split_into(partitions: int) -> Any:
        def make(rows: pd.DataFrame, columns: Columns) -> SparkData:
            return SparkData(frame_of(spark, rows, partitions), columns, progress=False)

        return make

    return split_into


@pytest.fixture
def slow(spark) -> Any:
    def slow(rows: pd.DataFrame, seconds: float) -> SparkData:
        def slowly(
            batches: Iterator[Any],
        ) -> Iterator[Any]:  # within a function: workers need not import this file
            import time

            time.sleep(seconds)
            yield from batches

        frame = frame_of(spark, rows, 40)
        return SparkData(frame.mapInArrow(slowly, frame.schema), PLAIN, progress=False)

    return slow


@pytest.fixture
def whole(cluster, spark) -> Any:
    return lambda: cluster.wait_for_executors(spark)


@pytest.fixture
def at_work(spark) -> Any:
    return spark.sparkContext.statusTracker().getActiveJobsIds


class TestOnTheCluster(ClusterTests):
    def test_ctrl_c_ends_the_work_on_the_cluster(self, slow, at_work, spark) -> None:
        super().test_ctrl_c_ends_the_work_on_the_cluster(slow, at_work)
        assert spark.range(3).count() == 3  # and the session is as good as before


def test_workers_count_as_in_memory(split_into) -> None:
    check_counts(split_into(2), made_rows(2000, 2, single=True))
    check_given_edges(split_into(40), made_rows(3000, 200))
    check_curve(split_into(3), made_rows(2000, 3))


def test_labels_without_end_are_told_and_not_fetched(split_into) -> None:
    rows = made_rows(3000)
    with pytest.raises(InvalidValueError, match="two classes"):
        split_into(2)(rows.assign(y=rows["w"]), PLAIN).tally(EDGES)


def test_text_for_scores_is_refused_with_the_words_of_the_kernel(split_into) -> None:
    with pytest.raises(
        InvalidTypeError,
        match="score column 'key' must contain real numbers; got string, such as 'row",
    ):
        split_into(2)(made_rows(100), Columns("key", "y")).tally(EDGES)


@pytest.mark.parametrize(
    "edges",
    [
        [-1e308, -5e-324, 0.0, 5e-324, 0.1, 1 / 3, 1e308],
        [-0.7, 0.0, 0.1, 0.1 + 2**-40, 1 / 3, 0.3 + 0.6],
    ],
)
def test_scores_at_edges_and_next_to_them_fall_on_the_right_side(split_into, edges) -> None:
    edges = np.array(edges)
    near = np.concatenate(
        [np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf), [-0.0]]
    )
    rows = pd.DataFrame({"p": near, "y": np.arange(near.size) % 2})
    partition = Partition.from_edges(edges)
    expected = BinningCalibrator(partition=partition).fit(
        rows["p"].to_numpy(), rows["y"].to_numpy()
    )
    data = split_into(2)(rows, PLAIN)
    assert BinningCalibrator(partition=partition).fit(data).tally_ == expected.tally_


@pytest.mark.parametrize("single", [False, True])
def test_columns_are_added_when_they_are_asked_for(split_into, single) -> None:
    check_applied(
        split_into(3), lambda frame: frame.toArrow().to_pandas(), made_rows(300, single=single)
    )


def test_progress_tells_rows(spark) -> None:
    told: list[int] = []
    data = SparkData(
        frame_of(spark, made_rows(1000), 4), PLAIN, progress=lambda done, _: told.append(done)
    )
    data.tally(EDGES)
    assert told[-1] == 1000


CONNECT = Path(__file__).with_name("spark_connect.py")


def test_spark_connect_does_the_same(tmp_path) -> None:
    if LACKING is not None:
        assert "CI" not in os.environ, LACKING
        pytest.skip(LACKING)
    environment = without_our_package(tmp_path)  # of the server and its workers
    home = {"CALIBRANT_HOME": str(Path(sys.modules["calibrant"].__file__).parents[1])}
    command = [sys.executable, str(CONNECT), str(Path(__file__).parents[1])]
    log = tmp_path / "log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            env=environment | home,
            cwd=tmp_path,
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    try:
        assert process.wait(600) == 0, log.read_text(encoding="utf-8")[-4000:]
    finally:
        end(process)
    assert "\nsame\n" in log.read_text(encoding="utf-8")


def test_a_tree_of_comparisons_is_as_deep_as_the_logarithm_of_the_bins() -> None:
    lines = nested(
        DIALECTS["spark"], "s", np.arange(1023.0).tolist(), [str(place) for place in range(1024)]
    )
    assert max(len(line) - len(line.lstrip()) for line in lines) == 10 * len("  ")


@pytest.mark.parametrize("labels", ["bool", "number", "text"])
def test_workers_count_attributes_as_elsewhere(spark: Any, labels: str) -> None:
    rows = mixed_rows(3_000, labels)
    data = scored(frame_of(spark, rows, 3), score="p", label="y", progress=False)
    check_cross(data, rows)


def test_faulty_rows_are_told_by_the_workers(spark: Any) -> None:
    rows = mixed_rows(500)
    work = key_of(rows)
    data = scored(frame_of(spark, rows.assign(p=2.0), 2), score="p", label="y", progress=False)
    with pytest.raises(InvalidValueError) as error:
        rows_of(data).fold(CountCross(rows_of(data).columns, work)).faults.check()
    assert error.value.parameter == "score"
