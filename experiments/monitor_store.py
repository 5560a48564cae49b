"""Attack the store of a Monitor: kill its writers, let many write at once, and measure how fast it
is.

python experiments/monitor_store.py kill --times 1000              # a new SQLite file
python experiments/monitor_store.py kill --times 1000 --postgres   # a server of its own
python experiments/monitor_store.py many                   # 8 processes and 16 threads
python experiments/monitor_store.py speed --seconds 60     # in batches of 1 to 10,000 rows
python experiments/monitor_store.py memory --labels 10000000
"""

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from monitor_kills import kill

from calibrant import BinningCalibrator, Partition
from calibrant.monitor import Monitor

DAY = 100.0


def fitted() -> BinningCalibrator:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=2000)
    return BinningCalibrator(partition=Partition.fixed_width(4)).fit(
        scores, rng.uniform(size=2000) < scores
    )


def opened(store: Path | str) -> Monitor:
    return Monitor(store, fitted(), maturity=7, timeout=120, random_state=0)


def row_of(name: str) -> tuple[float, int]:
    """The score and the label of an id, so that a log of ids is enough for a recount."""
    number = int(name.split()[-1])
    return (number % 97) / 97.0, int(number * 7919 % 10 < 4)


def attack(times: int, seed: int, *, postgres: bool) -> None:
    """Kill writers of a new SQLite file, or of a PostgreSQL server that is started for it."""
    if not postgres:
        kill(times, None, seed)
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from worlds.postgres_server import postgres_server

    with postgres_server() as host:
        kill(times, f"postgresql+psycopg://tester@/postgres?host={host}", seed)


def _process(store: str, worker: int, n_labels: int) -> None:
    with opened(store) as monitor:
        write_rows(monitor, worker, n_labels)


def write_rows(monitor: Monitor, worker: int, n_labels: int) -> None:
    for start in range(0, n_labels, 500):
        ids = [f"{worker} {number}" for number in range(start, min(start + 500, n_labels))]
        rows = [row_of(name) for name in ids]
        monitor.record_many(ids, [score for score, _ in rows], np.full(len(ids), DAY))
        monitor.resolve_many(ids, [label for _, label in rows], np.full(len(ids), DAY + 1))


def many(n_processes: int, n_threads: int, n_labels: int) -> None:
    """Exact sums with many writers."""
    for kind, count in (("processes", n_processes), ("threads", n_threads)):
        store = Path(tempfile.mkdtemp(prefix="calibrant-many-")) / "watch.db"
        opened(store).close()
        begin = time.perf_counter()
        if kind == "processes":
            context = multiprocessing.get_context("spawn")
            workers = [
                context.Process(target=_process, args=(str(store), one, n_labels))
                for one in range(count)
            ]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        else:
            with opened(store) as monitor, ThreadPoolExecutor(count) as pool:
                list(pool.map(lambda one, to=monitor: write_rows(to, one, n_labels), range(count)))
        taken = time.perf_counter() - begin
        with opened(store) as monitor:
            found = monitor.advance(DAY + 10)
        hits = count * sum(row_of(f"0 {number}")[1] for number in range(n_labels))
        exact = (found.n_mature, found.n_labels, int(found.positives.sum())) == (
            count * n_labels,
            count * n_labels,
            hits,
        )
        print(
            f"{count} {kind} x {n_labels:,} labels: {'exact' if exact else 'WRONG'}, {taken:.1f} s",
            flush=True,
        )
        if not exact:
            sys.exit(1)


def speed(seconds: float) -> None:
    """Labels per second of wall time and of processor time, and how long a call takes."""
    for size in (1, 100, 1000, 10_000):
        folder = tempfile.mkdtemp(prefix="calibrant-speed-")
        monitor = opened(Path(folder) / "watch.db")
        taken = []
        busy = 0.0
        number = 0
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            ids = [f"row {number + step}" for step in range(size)]
            rows = [row_of(name) for name in ids]
            scores = np.array([score for score, _ in rows])
            labels = np.array([label for _, label in rows])
            at = np.full(size, DAY + number / 5e6)
            monitor.record_many(ids, scores, at)
            begin = time.perf_counter()
            begin_busy = time.process_time()
            monitor.resolve_many(ids, labels, at + 0.5)
            busy += time.process_time() - begin_busy
            taken.append(time.perf_counter() - begin)
            number += size
        calls = np.array(taken)
        n_labels = size * calls.size
        p50, p99 = 1000 * np.quantile(calls, [0.5, 0.99])
        print(
            f"batches of {size:>6,}: {n_labels / calls.sum():>9,.0f} labels/s,"
            f" {n_labels / busy:>9,.0f} per second of processor time,"
            f" p50 {p50:.2f} ms, p99 {p99:.2f} ms, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        monitor.close()


def memory(n_labels: int) -> None:
    """Memory of the process and size of the store over a long stream, a million labels a day."""
    folder = tempfile.mkdtemp(prefix="calibrant-memory-")
    store = Path(folder) / "watch.db"
    log = Path(f"{store}-wal")
    monitor = Monitor(store, fitted(), maturity=0, remember=1, random_state=0)
    rng = np.random.default_rng(0)
    for start in range(0, n_labels, 10_000):
        ids = [f"row {number}" for number in range(start, start + 10_000)]
        scores = rng.uniform(size=10_000)
        at = np.full(10_000, DAY + start / 1e6)
        monitor.record_many(ids, scores, at)
        monitor.resolve_many(ids, rng.uniform(size=10_000) < scores, at)
        if (start + 10_000) % max(10_000, n_labels // 20) == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            size = store.stat().st_size / 2**20
            log_size = log.stat().st_size / 2**20 if log.exists() else 0.0
            print(
                f"{start + 10_000:>12,} labels: memory {resident():.0f} MB, peak {peak:.0f} MB,"
                f" store {size:.0f} MB, its log {log_size:.0f} MB",
                flush=True,
            )
    print(json.dumps({"mature": monitor.snapshot().n_mature}))


def resident() -> float:
    """Memory of this process now, in MB, where the system tells."""
    status = Path("/proc/self/statm")
    pages = int(status.read_text().split()[1]) if status.exists() else 0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("kill", "many", "speed", "memory"))
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--labels", type=int, default=10_000_000)
    parser.add_argument("--each", type=int, default=10_000)
    given = parser.parse_args()
    if given.what == "kill":
        attack(given.times, given.seed, postgres=given.postgres)
    elif given.what == "many":
        many(8, 16, given.each)
    elif given.what == "speed":
        speed(given.seconds)
    else:
        memory(given.labels)


if __name__ == "__main__":
    main()
