"""`check` beside a sort of the scores: python benchmarks/check.py [--rows N].

Processor time, in turns. A check of 10^6 rows took 3 s before ranks were counted one bit at a time,
and 1.45 s before they were counted in blocks; then it took 11 times as long as a sort.
"""

from __future__ import annotations

import argparse

import numpy as np
from timing import processor_medians, render

from calibrant import check


def main() -> None:
    """Time them, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
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
