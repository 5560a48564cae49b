"""Dask: the same counts as in memory, on a cluster whose workers lack our package and are killed in
mid-work.
"""

import time
from collections.abc import Iterator
from typing import Any

import dask
import dask.dataframe as dd
import distributed
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import BinningCalibrator, scored
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.sample.batch import Columns
from calibrant.sample.sources.dask import DaskData
from sample.cluster_tests import ClusterTests
from sample.clusters import DaskCluster, wait_for
from sample.cross_tests import check_cross, mixed_rows
from sample.same_counts import (
    EDGES,
    PLAIN,
    check_applied,
    check_counts,
    check_curve,
    check_draws_and_weights,
    made_rows,
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    cluster = DaskCluster(tmp_path_factory.mktemp("dask"))
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def joined(cluster: DaskCluster) -> Iterator[Any]:
    with distributed.Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=300)
        yield client


@pytest.fixture
def client(joined: Any) -> Iterator[Any]:
    """Frames are computed by the cluster."""
    with dask.config.set(scheduler=joined):
        yield joined


@pytest.fixture
def split_into(client: Any) -> Any:
    return locally_split_into


@pytest.fixture
def slow(client: Any) -> Any:
    return slow_data


@pytest.fixture
def whole(client: Any) -> Any:
    return lambda: wait_for(
        lambda: len(client.scheduler_info()["workers"]) == 2, "starting a worker"
    )


@pytest.fixture
def at_work(client: Any) -> Any:
    return lambda: sum(map(len, client.processing().values()))


def frame_of(rows: pd.DataFrame, partitions: int) -> Any:
    return dd.from_pandas(rows, npartitions=partitions, sort=False)


def locally_split_into(partitions: int) -> Any:
    """What makes scored data of rows."""
    return lambda rows, columns: DaskData(frame_of(rows, partitions), columns, progress=False)


def slow_data(rows: pd.DataFrame, seconds: float) -> Any:
    """Forty partitions, each of which takes its time."""

    def part(
        number: int,
    ) -> pd.DataFrame:  # within a function, so that workers need not import this file

        time.sleep(seconds)
        return rows.iloc[number::40]

    frame = dd.from_map(part, range(40), meta=rows.iloc[:0], enforce_metadata=False)
    return DaskData(frame, PLAIN, progress=False)


class TestOnTheCluster(ClusterTests):
    pass


def test_workers_have_our_package_only_once_it_is_sent(client, split_into) -> None:
    def homes() -> list[str]:
        import sys

        return [path for path in sys.path if "calibrant" in path]

    def found() -> bool:
        from importlib.util import find_spec

        return find_spec("calibrant") is not None

    if not any(client.run(homes).values()):  # unless another test has sent it
        assert not any(client.run(found).values())
    split_into(3)(made_rows(100), PLAIN).tally(EDGES)
    assert all(home[0].endswith(".zip") for home in client.run(homes).values())
    assert all(client.run(found).values())


@given(
    seed=st.integers(0, 2**32 - 1),
    partitions=st.integers(1, 30),
    kind=st.sampled_from(["single", "texts", "ties"]),
)
@settings(max_examples=5)
def test_counts_are_those_in_memory_however_rows_are_split_up(seed, partitions, kind) -> None:
    rows = made_rows(300, seed, **{kind: True}).sample(frac=1.0, random_state=seed % 1000)
    with dask.config.set(scheduler="synchronous"):
        check_counts(locally_split_into(partitions), rows)


def test_threads_do_without_a_cluster() -> None:
    check_draws_and_weights(locally_split_into(5), made_rows(2000, 3))
    check_curve(locally_split_into(5), made_rows(2000, 3))


def test_rows_drawn_by_position_are_the_same_each_time(split_into) -> None:
    rows = made_rows(3000, 5)
    fits = [
        BinningCalibrator(5, pilot=0.3, random_state=1).fit(split_into(6)(rows, PLAIN))
        for _ in range(2)
    ]
    assert fits[0].tally_ == fits[1].tally_
    assert 0 < fits[0].tally_.counts.sum() < 3000


def test_entries_of_several_kinds_are_refused(client) -> None:
    rows = made_rows(100)
    with dask.config.set({"dataframe.convert-string": False}):
        frame = frame_of(rows.assign(y=[0, "no"] * 50).astype({"y": object}), 2)
        with pytest.raises(InvalidTypeError, match=r"one kind of entry each in partition \d"):
            DaskData(frame, PLAIN, progress=False).tally(EDGES)


def test_an_unknown_column_is_refused_before_anything_is_read() -> None:
    with pytest.raises(
        InvalidValueError, match=r"score column 'P' must be in the data.*did you mean 'p'"
    ):
        locally_split_into(2)(made_rows(10), Columns("P"))


@pytest.mark.parametrize("single", [False, True])
def test_columns_are_added_when_they_are_asked_for(split_into, single) -> None:
    def collect(frame: Any) -> pd.DataFrame:
        computed = frame.compute()
        assert list(frame.dtypes) == list(computed.dtypes)  # what was announced is what comes
        return computed

    check_applied(split_into(5), collect, made_rows(500, single=single))


@pytest.mark.parametrize("scheduler", ["cluster", "threads"])
def test_progress_tells_rows(joined, scheduler) -> None:
    told: list[int] = []
    with dask.config.set(scheduler=joined if scheduler == "cluster" else "threads"):
        DaskData(
            frame_of(made_rows(1000), 100), PLAIN, progress=lambda done, _: told.append(done)
        ).tally(EDGES)
    assert told == sorted(told)
    assert told[-1] == 1000
    assert len(told) == 50  # two partitions at a time


@pytest.mark.slow
def test_a_library_that_workers_lack_is_named(tmp_path) -> None:
    cluster = DaskCluster(tmp_path, "pyarrow", workers=1)
    try:
        with (
            distributed.Client(cluster.address, set_as_default=False) as client,
            dask.config.set(scheduler=client),
        ):
            client.wait_for_workers(1, timeout=300)
            data = DaskData(frame_of(made_rows(100), 2), PLAIN, progress=False)
            with pytest.raises(ImportError, match="workers of the Dask cluster need pyarrow"):
                data.tally(EDGES)
    finally:
        cluster.close()


@pytest.mark.usefixtures("client")
def test_workers_count_attributes_as_this_process_does() -> None:
    rows = mixed_rows(2_000)
    data = scored(dd.from_pandas(rows, npartitions=3), score="p", label="y", progress=False)
    check_cross(data, rows)
