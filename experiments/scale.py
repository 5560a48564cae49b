"""A trillion rows on a thousand workers: how long a fit would take, from measured costs and a
simulated cluster.

The script measures three things on one core: the time to decode and count a batch of Parquet, the
time to add two partial results, and the size of a result. Then it simulates a cluster that reads
from object storage, event by event. The scheduler starts one task at a time, workers differ in
speed, some tasks are slow, workers can die, late tasks are started again, and results are added at
one place or in a tree.

    python experiments/scale.py                            # half a minute
"""

import argparse
import heapq
import pickle
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from calibrant import Partition, scored
from calibrant.sample.counts import Count
from calibrant.sample.reader import rows_of

ROWS = 10**12
BYTES_A_ROW = 5.0  # a float32 score and a uint8 label


@dataclass(frozen=True)
class Costs:
    """What was measured: seconds a row to decode and count, seconds to add two results, bytes of a
    result.
    """

    row: float
    merge: float
    size: int


@dataclass(frozen=True)
class Cluster:
    """What is assumed of a cluster."""

    workers: int = 1_000
    task_rows: int = 10**8
    dispatch: float = 1e-3  # seconds of the scheduler for a task
    latency: float = 5e-3  # seconds for a message
    bandwidth: float = 250e6  # bytes a second that one worker reads from storage
    straggling: float = 0.01  # share of tasks that are slow
    slowness: float = 8.0  # how much longer they take
    deaths: float = 0.0  # of a worker, each hour
    copies: bool = True  # whether late tasks are started a second time
    fan_in: int = 16  # of the reduction; 0 adds everything up at the driver


def measured(n_bins: int) -> Costs:
    """Time the real thing on one core."""
    rng = np.random.default_rng(0)
    rows = 4_000_000
    table = pa.table(
        {
            "p": rng.uniform(size=rows).astype(np.float32),
            "y": rng.integers(0, 2, rows).astype(np.uint8),
        }
    )
    partition = Partition.from_edges(np.linspace(0, 1, n_bins + 1)[1:-1])
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, Path(folder) / "scores.parquet", row_group_size=1 << 20)
        data = scored(folder, score="p", label="y", n_jobs=1, progress=False)
        work = Count(rows_of(data).columns, partition)
        result = rows_of(data).fold(work)
        seconds = median(_timed(lambda: rows_of(data).fold(work)) for _ in range(5))
    merge = median(_timed(lambda: result + result) for _ in range(50))
    return Costs(seconds / rows, merge, len(pickle.dumps(result)))


def _timed(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def play(rows: float, cluster: Cluster, costs: Costs, seed: int = 0) -> dict[str, float]:
    """When the last task is done, and when the result is known."""
    rng = np.random.default_rng(seed)
    n_tasks = int(np.ceil(rows / cluster.task_rows))
    base = cluster.latency + cluster.task_rows * max(costs.row, BYTES_A_ROW / cluster.bandwidth)
    own = base * rng.lognormal(0.0, 0.15, n_tasks)
    own[rng.random(n_tasks) < cluster.straggling] *= cluster.slowness
    free = [(0.0, worker) for worker in range(cluster.workers)]  # when each worker is free
    scheduler = 0.0
    waiting = list(range(n_tasks))[::-1]
    running = {}
    done_at = np.zeros(n_tasks)
    heapq.heapify(free)
    lost = 0
    while waiting:
        moment, worker = heapq.heappop(free)
        scheduler = max(scheduler, moment) + cluster.dispatch
        task = waiting.pop()
        end = scheduler + own[task]
        if cluster.deaths and rng.random() < cluster.deaths * own[task] / 3600.0:
            lost += 1
            own[task] = base * rng.lognormal(0.0, 0.15)
            waiting.append(
                task
            )  # only the running task is lost: earlier results have left the worker
            heapq.heappush(free, (end + 30.0, worker))
            continue
        done_at[task] = end
        running[task] = end
        heapq.heappush(free, (end, worker))
    if cluster.copies:  # near the end, idle workers start late tasks again; the first result counts
        late = 1.5 * base
        for task, end in sorted(running.items(), key=lambda pair: -pair[1]):
            begun = end - own[task]
            moment, worker = free[0]
            if own[task] <= late or moment >= end:
                continue
            copy = max(moment, begun + late) + cluster.dispatch + base * rng.lognormal(0.0, 0.15)
            if copy < end:
                done_at[task] = copy
                heapq.heapreplace(free, (copy, worker))
    last = float(done_at.max())
    return {
        "tasks": n_tasks,
        "work": float(own.sum()) / cluster.workers,
        "dispatch": n_tasks * cluster.dispatch,
        "last": last,
        "total": last + _reduction(n_tasks, last, cluster, costs),
        "lost": lost,
    }


def _reduction(n_tasks: int, last: float, cluster: Cluster, costs: Costs) -> float:
    """Seconds from the last task to the result; adding goes on while tasks still run."""
    if cluster.fan_in:
        depth = int(np.ceil(np.log(max(cluster.workers, 2)) / np.log(cluster.fan_in)))
        return depth * (cluster.latency + cluster.fan_in * costs.merge)
    return max(cluster.latency + costs.merge, n_tasks * costs.merge - last)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bins", type=int, default=100)
    arguments = parser.parse_args()
    console = Console()
    costs = measured(arguments.bins)
    console.print(
        f"Measured: {1e9 * costs.row:.1f} ns a row to decode and count on one core,"
        f" {1e6 * costs.merge:.0f} us to add two results of {costs.size:,} bytes."
    )
    base = Cluster()
    table = Table(title=f"{ROWS:.0e} rows, tasks of {base.task_rows:.0e} rows")
    for heading in (
        "workers",
        "work / workers",
        "scheduler alone",
        "with stragglers",
        "bottleneck",
    ):
        table.add_column(heading, justify="right")
    for workers in (10, 100, 1_000, 10_000):
        got = play(ROWS, replace(base, workers=workers), costs)
        names = {"reading": got["work"], "the scheduler": got["dispatch"]}
        table.add_row(
            f"{workers:,}",
            _span(got["work"]),
            _span(got["dispatch"]),
            _span(got["total"]),
            max(names, key=names.get),
        )
    console.print(table)
    table = Table(title="The same on 1,000 workers, otherwise")
    for heading in ("case", "time", "tasks run again"):
        table.add_column(heading, justify="right")
    cases = {
        "no stragglers": replace(base, straggling=0.0),
        "1 % of tasks 8 times slower, late ones begun again": base,
        "the same, none begun again": replace(base, copies=False),
        "1 % of tasks 100 times slower, late ones begun again": replace(base, slowness=100.0),
        "the same, none begun again (100 times)": replace(base, slowness=100.0, copies=False),
        "a worker dies every hour of its work": replace(base, deaths=1.0),
        "all results added by the driver": replace(base, fan_in=0),
        "tasks of a tenth of the rows": replace(base, task_rows=10**7),
        "tasks of a hundredth": replace(base, task_rows=10**6),
        "tasks of ten times the rows": replace(base, task_rows=10**9),
    }
    for name, cluster in cases.items():
        got = play(ROWS, cluster, costs)
        table.add_row(name, _span(got["total"]), f"{got['lost']:,}")
    console.print(table)
    tasks = ROWS // base.task_rows
    console.print(
        f"Read: {ROWS * BYTES_A_ROW / 1e12:.0f} TB. Sent: {tasks:,} results of {costs.size:,}"
        f" bytes, {tasks * costs.size / 1e6:,.0f} MB, once up the tree."
    )


def _span(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 600
        else f"{seconds / 60:.0f} min"
        if seconds < 36_000
        else f"{seconds / 3600:.0f} h"
    )


if __name__ == "__main__":
    main()
