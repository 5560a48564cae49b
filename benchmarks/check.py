"""`check` beside a sort of the scores: python benchmarks/check.py [--rows N].

Processor time, in turns. A check of 10^6 rows took 3 s before ranks were counted one bit at a time,
and 1.45 s before they were counted in blocks; then it took 11 times as long as a sort.

With --files N M ..., `check` of Parquet files with so many rows instead, each in a process of its
own, and its peak memory, which should not grow with the number of rows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from files import _peak_megabytes, write
from timing import processor_medians, render

from calibrant import check, scored


def check_file(path: str) -> None:
    """Check a file, and print the seconds and the peak memory."""
    start = time.perf_counter()
    processor = time.process_time()
    check(scored(path, score="score", label="label"))
    seconds = time.perf_counter() - start
    print(f"{seconds:.1f} {time.process_time() - processor:.1f} {_peak_megabytes():.0f}")


def compare_files(sizes: list[int]) -> None:
    """Print what a check of files with so many rows takes."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            path = Path(folder) / "rows.parquet"
            write(path, rows, "float32")
            command = [sys.executable, __file__, "--one", str(path)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            lines.append([f"{rows:,}", *done.stdout.split()])
    print(render(["rows in the file", "seconds", "processor", "peak MB"], lines))


def main() -> None:
    """Time them, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, nargs="*")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        check_file(options.one)
        return
    if options.files:
        compare_files(options.files)
        return
    rows = options.rows
    rng = np.random.default_rng(0)
    scores = rng.beta(2.0, 3.0, size=rows)
    y = (rng.uniform(size=rows) < scores**1.3).astype(int)
    ways = {"argsort": lambda: np.argsort(scores), "check": lambda: check(y, scores)}
    seconds = processor_medians(ways, rounds=5)
    lines = [
        [name, f"{taken:.2f}", f"{taken / seconds['argsort']:.1f}"]
        for name, taken in seconds.items()
    ]
    print(render([f"{rows:,} rows", "seconds", "of argsort"], lines))


if __name__ == "__main__":
    main()
