"""Dask: the same counts as in memory, on a cluster whose workers lack our package and are killed in mid-work."""

import os
import signal
import threading
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

from calibrant import BinningCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.rows.batch import Columns
from calibrant.rows.dask import DaskData
from rows.clusters import DaskCluster, kill_at_random, wait_for
from rows.same_counts import (
    EDGES,
    FAULTS,
    PLAIN,
    check_applied,
    check_counts,
    check_draws_and_weights,
    check_fault,
    check_given_edges,
    check_third_label,
    rows_of,
)

KILLS = int(os.environ.get("CALIBRANT_TEST_KILLS", "2"))  # a new worker takes seconds; try hundreds by hand


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    cluster = DaskCluster(tmp_path_factory.mktemp("dask"))
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def joined(cluster: DaskCluster) -> Iterator[Any]:
    with distributed.Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=90)
        yield client


@pytest.fixture
def client(joined: Any) -> Iterator[Any]:
    """Frames are computed by the cluster."""
    with dask.config.set(scheduler=joined):
        yield joined


def frame_of(rows: pd.DataFrame, partitions: int) -> Any:
    return dd.from_pandas(rows, npartitions=partitions, sort=False)


def split_into(partitions: int) -> Any:
    """What makes scored data of rows."""
    return lambda rows, columns: DaskData(frame_of(rows, partitions), columns, progress=False)


def slow_frame(rows: pd.DataFrame, seconds: float) -> Any:
    """Forty partitions, each of which takes its time."""

    def part(number: int) -> pd.DataFrame:  # within a function, so that workers need not import this file

        time.sleep(seconds)
        return rows.iloc[number::40]

    return dd.from_map(part, range(40), meta=rows.iloc[:0], enforce_metadata=False)


def test_workers_have_our_package_only_once_it_is_sent(client) -> None:
    def homes() -> list[str]:
        import sys

        return [path for path in sys.path if "calibrant" in path]

    def found() -> bool:
        from importlib.util import find_spec

        return find_spec("calibrant") is not None

    if not any(client.run(homes).values()):  # unless another test has sent it
        assert not any(client.run(found).values())
    split_into(3)(rows_of(100), PLAIN).tally(EDGES)
    assert all(home[0].endswith(".zip") for home in client.run(homes).values())
    assert all(client.run(found).values())


@given(seed=st.integers(0, 2**32 - 1), partitions=st.integers(1, 30), kind=st.sampled_from(["single", "texts", "ties"]))
@settings(max_examples=12)
def test_counts_are_those_in_memory_however_rows_are_split_up(seed, partitions, kind) -> None:
    rows = rows_of(300, seed, **{kind: True}).sample(frac=1.0, random_state=seed % 1000)
    with dask.config.set(scheduler="synchronous"):
        check_counts(split_into(partitions), rows)


@pytest.mark.slow
@pytest.mark.parametrize(("partitions", "kind"), [(1, "single"), (7, "texts"), (23, "ties")])
def test_counts_on_the_cluster_are_those_in_memory(client, partitions, kind) -> None:
    check_counts(split_into(partitions), rows_of(3000, partitions, **{kind: True}))


@pytest.mark.slow
def test_two_hundred_partitions_are_as_good_as_one(client) -> None:
    check_given_edges(split_into(200), rows_of(3000, 200))


@pytest.mark.slow
def test_draws_weights_and_order_statistics_on_the_cluster_are_exact(client) -> None:
    check_draws_and_weights(split_into(11), rows_of(3000, 1, ties=True))
    check_draws_and_weights(split_into(3), rows_of(3000, 2))


def test_threads_do_without_a_cluster() -> None:
    check_draws_and_weights(split_into(5), rows_of(2000, 3))


def test_rows_drawn_by_position_are_the_same_each_time(client) -> None:
    rows = rows_of(3000, 5)
    fits = [BinningCalibrator(5, split=0.3, random_state=1).fit(split_into(6)(rows, PLAIN)) for _ in range(2)]
    assert fits[0].tally_ == fits[1].tally_
    assert 0 < fits[0].tally_.counts.sum() < 3000


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_with_its_partition(client, fault) -> None:
    check_fault(split_into(4), rows_of(400), fault)


def test_a_third_label_is_told(client) -> None:
    check_third_label(split_into(4), rows_of(400))


def test_entries_of_several_kinds_are_refused(client) -> None:
    rows = rows_of(100)
    with dask.config.set({"dataframe.convert-string": False}):
        frame = frame_of(rows.assign(y=[0, "no"] * 50).astype({"y": object}), 2)
        with pytest.raises(InvalidTypeError, match=r"one kind of entry each in partition \d"):
            DaskData(frame, PLAIN, progress=False).tally(EDGES)


def test_an_unknown_column_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidValueError, match=r"score column 'P' must be in the data.*did you mean 'p'"):
        split_into(2)(rows_of(10), Columns("P"))


@pytest.mark.parametrize("single", [False, True])
def test_columns_are_added_when_they_are_asked_for(client, single) -> None:
    def collect(frame: Any) -> pd.DataFrame:
        computed = frame.compute()
        assert list(frame.dtypes) == list(computed.dtypes)  # what was announced is what comes
        return computed

    check_applied(split_into(5), collect, rows_of(500, single=single))


@pytest.mark.parametrize("scheduler", ["cluster", "threads"])
def test_progress_tells_rows(joined, scheduler) -> None:
    told: list[int] = []
    with dask.config.set(scheduler=joined if scheduler == "cluster" else "threads"):
        DaskData(frame_of(rows_of(1000), 100), PLAIN, progress=lambda done, _: told.append(done)).tally(EDGES)
    assert told == sorted(told)
    assert told[-1] == 1000
    assert len(told) == 50  # two partitions at a time


@pytest.mark.slow
def test_workers_killed_at_random_moments_never_change_a_count(cluster, client) -> None:
    rows = rows_of(20_000, 8)
    expected = BinningCalibrator(partition=EDGES).fit(rows["p"].to_numpy(), rows["y"].to_numpy()).tally_
    data = DaskData(slow_frame(rows, 0.08), PLAIN, progress=False)

    def fit() -> Any:
        return BinningCalibrator(partition=EDGES).fit(data).tally_

    def whole() -> None:
        wait_for(lambda: len(client.scheduler_info()["workers"]) == 2, "starting a worker")

    assert fit() == expected
    assert kill_at_random(cluster, fit, whole, KILLS, seed=3) > 0


@pytest.mark.slow
def test_ctrl_c_ends_the_work_on_the_cluster(client) -> None:
    data = DaskData(slow_frame(rows_of(400), 5.0), PLAIN, progress=False)  # 100 seconds, left to itself

    def at_work() -> int:
        return sum(map(len, client.processing().values()))

    def interrupt() -> None:
        wait_for(at_work, "beginning")
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            data.tally(EDGES)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, handler)
    wait_for(lambda: not at_work(), "ending", seconds=30)


@pytest.mark.slow
def test_a_library_that_workers_lack_is_named(tmp_path) -> None:
    cluster = DaskCluster(tmp_path, "pyarrow", workers=1)
    try:
        with distributed.Client(cluster.address, set_as_default=False) as client, dask.config.set(scheduler=client):
            client.wait_for_workers(1, timeout=90)
            data = DaskData(frame_of(rows_of(100), 2), PLAIN, progress=False)
            with pytest.raises(ImportError, match="workers of the Dask cluster need pyarrow"):
                data.tally(EDGES)
    finally:
        cluster.close()
