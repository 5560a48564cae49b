"""What every cluster must do: the same counts as in memory, whoever dies, and faults that are told.

A module of one engine has these fixtures: `cluster`; `split_into(partitions)`, which makes scored
data of rows on the cluster; `slow(rows, seconds)`, scored data in forty partitions that take so
long each; `whole`, which waits until all workers are there; and `at_work`, which tells whether the
cluster works.
"""

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from calibrant import BinningCalibrator
from sample.clusters import kill_at_random, wait_for
from sample.same_counts import (
    EDGES,
    FAULTS,
    check_counts,
    check_draws_and_weights,
    check_fault,
    check_given_edges,
    check_groups,
    check_third_label,
    made_rows,
)

KILLS = int(
    os.environ.get("CALIBRANT_TEST_KILLS", "2")
)  # a new worker takes seconds; try hundreds by hand


class ClusterTests:
    kills = KILLS

    @pytest.mark.slow
    @pytest.mark.parametrize(("partitions", "kinds"), [(1, ["single"]), (7, ["texts", "ties"])])
    def test_counts_are_those_in_memory(self, split_into, partitions, kinds) -> None:
        check_counts(
            split_into(partitions), made_rows(2000, partitions, **dict.fromkeys(kinds, True))
        )

    @pytest.mark.slow
    def test_two_hundred_partitions_are_as_good_as_one(self, split_into) -> None:
        check_given_edges(split_into(200), made_rows(3000, 200))

    @pytest.mark.slow
    def test_draws_weights_and_order_statistics_are_exact(self, split_into) -> None:
        check_draws_and_weights(split_into(5), made_rows(2000, 1, ties=True))

    @pytest.mark.slow
    def test_groups_are_counted_whole(self, split_into) -> None:
        check_groups(split_into(5), made_rows(1000, 2))

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_fault_is_told_with_its_partition(self, split_into, fault) -> None:
        check_fault(split_into(2), made_rows(400), fault)

    def test_a_third_label_is_told(self, split_into) -> None:
        check_third_label(split_into(2), made_rows(400))

    @pytest.mark.slow
    def test_workers_killed_at_random_moments_never_change_a_count(
        self, cluster, slow, whole
    ) -> None:
        check_killed(cluster, slow, whole, self.kills)

    @pytest.mark.slow
    def test_ctrl_c_ends_the_work_on_the_cluster(self, slow, at_work) -> None:
        data = slow(made_rows(400), 5.0)  # minutes, left to itself

        def interrupt() -> None:
            wait_for(at_work, "beginning")
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        # an engine's own handler might end every job, which would hide whether we end ours
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        thread = threading.Thread(target=interrupt)
        try:
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                data.tally(EDGES)
        finally:
            thread.join()
            signal.signal(signal.SIGINT, handler)
        wait_for(lambda: not at_work(), "ending", seconds=60)  # less than the work would take


def check_killed(
    cluster: Any, slow: Callable[..., Any], whole: Callable[[], Any], kills: int
) -> None:
    """Workers that die at random moments change no count."""
    rows = made_rows(20_000, 8)
    expected = (
        BinningCalibrator(partition=EDGES).fit(rows["p"].to_numpy(), rows["y"].to_numpy()).tally_
    )
    data = slow(rows, 0.08)

    def fit() -> Any:
        return BinningCalibrator(partition=EDGES).fit(data).tally_

    assert kill_at_random(cluster, fit, expected, whole, kills, seed=3) > 0
