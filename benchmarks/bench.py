"""One table of what users wait for: python benchmarks/bench.py [NAME ...] [--write | --most N].

Each row is a job: the processor time of the least of several runs at its largest size, a peer or a
floor that takes turns with it in the same process, their ratio (below 1 is faster), the exponent of
the time over the last factor of ten in rows, and the peak of memory over the input. A job runs in a
process of its own. Names select the jobs that contain one of them; `--write` stores the table in
benchmarks/results.md.

To add a row, add a function to `JOBS` (`benchmarks/bench_jobs.py`): from a number of rows to a `Job`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench_jobs import JOBS, Job
from timing import machine, render

RESULTS = Path(__file__).with_name("results.md")
ROUNDS = 5
LONG = 0.4  # seconds from which on fewer rounds are enough
LIMIT = 4.0  # seconds of one run from which on no larger size is tried
FAILED = "failed"
HEADER = ["job", "rows", "ms", "peer or floor", "its ms", "ratio", "exponent", "peak over input"]


def processor_seconds() -> float:
    """The processor time of this process and of those that it has started."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def least(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of processor time of each way: the least of several rounds, in which they take turns."""
    best = dict.fromkeys(ways, math.inf)
    for name, way in ways.items():  # compiling, imports and first touches of memory do not count
        start = processor_seconds()
        way()
        best[name] = processor_seconds() - start
    rounds = ROUNDS if max(best.values()) < LONG else 2
    best = dict.fromkeys(ways, math.inf)
    for _ in range(rounds):
        for name, way in ways.items():
            # short runs are repeated, because the clock has steps
            start = processor_seconds()
            runs = 0
            while runs == 0 or processor_seconds() - start < 0.01:
                way()
                runs += 1
            best[name] = min(best[name], (processor_seconds() - start) / runs)
    return best


def peak_over_input(job: Job) -> float | None:
    """The growth of the peak of memory while the job runs, over the bytes of its input."""
    status = Path("/proc/self/status")
    if not status.exists() or not job.input_bytes:
        return None
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is in use
    before = _kilobytes(status, "VmRSS")
    job.ours()
    return max(_kilobytes(status, "VmHWM") - before, 0) * 1024 / job.input_bytes


def _kilobytes(status: Path, name: str) -> int:
    return int(status.read_text().split(f"{name}:")[1].split()[0])


def measure(name: str, most: int | None) -> list[str]:
    """The line of a job, from sizes that grow by factors of ten, or of at most `most` rows."""
    sizes, make = JOBS[name]
    if most is not None:
        sizes = (min(sizes[0], most),)
    seconds: list[tuple[int, float]] = []
    for size in sizes:
        job = make(size)
        if size == sizes[-1]:
            job.ours()  # so that imports are no part of the peak
        peak = peak_over_input(job)
        ways = {"ours": job.ours} | ({} if job.peer is None else {"peer": job.peer})
        found = least(ways)
        seconds.append((size, found["ours"]))
        if found["ours"] > LIMIT:
            break
    exponent = ""
    if len(seconds) > 1:
        (few, short), (many, long) = seconds[-2:]
        exponent = f"{math.log(long / short) / math.log(many / few):.2f}"
    peer = found.get("peer")
    return [
        name,
        f"{seconds[-1][0]:,}",
        _milliseconds(found["ours"]),
        job.peer_name,
        "" if peer is None else _milliseconds(peer),
        "" if peer is None else f"{found['ours'] / peer:.2f}",
        exponent,
        "" if peak is None else f"{peak:.1f}",
    ]


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.3g}" if seconds < 1.0 else f"{1e3 * seconds:,.0f}"


def in_process(name: str, most: int | None) -> list[str]:
    """The line of a job, measured in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--job", name]
    if most is not None:
        command.append(f"--most={most}")
    # threads of linear algebra that wait for each other count as processor time
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        return [name, FAILED, *[""] * (len(HEADER) - 2)]
    line: list[str] = json.loads(done.stdout.splitlines()[-1])
    return line


def written(lines: list[list[str]], seconds: float) -> str:
    """The table as a page."""
    on = ", ".join(f"{key} {value}" for key, value in machine().items())
    rows = [HEADER, ["---"] * len(HEADER), *lines]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return (
        "# What users wait for\n\nWritten by `make bench`: processor time, the least of several runs;"
        f" {on}. The table took {seconds / 60:.0f} minutes. A ratio above 1 is slower than the peer or"
        " the floor beside it; the exponent is that of the time over the last factor of ten in"
        f" rows.\n\n{table}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only jobs whose name contains one of these")
    parser.add_argument("--write", action="store_true", help="store the table in results.md")
    parser.add_argument("--most", type=int, help="the most rows, to try whether jobs run")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(measure(options.job, options.most)))
        return
    start = time.monotonic()
    lines = []
    for name in JOBS:
        if not options.names or any(part in name for part in options.names):
            lines.append(in_process(name, options.most))
            print("  ".join(lines[-1]), flush=True)
    print("\n" + render(HEADER, lines))
    if options.write:
        RESULTS.write_text(written(lines, time.monotonic() - start), encoding="utf-8")
    if any(line[1] == FAILED for line in lines):
        sys.exit(1)


if __name__ == "__main__":
    main()
