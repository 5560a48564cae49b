"""A fit with groups, compared with `pandas.factorize` of the same groups: 10^7 rows in 10^6 groups
by default.

python benchmarks/groups.py [rows] [groups]
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from calibrant import BinningCalibrator, Calibrator


def seconds(work: Callable[[], Any], times: int) -> float:
    """The shortest of several processor times."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def main(n_rows: int = 10**7, n_groups: int = 10**6) -> None:
    """Print the times."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, n_groups, size=n_rows)
    scores = rng.uniform(size=n_rows)
    y = (rng.uniform(size=n_rows) < scores * rng.uniform(0.5, 1.0, size=n_groups)[groups]).astype(
        np.uint8
    )
    factorize = seconds(lambda: pd.factorize(groups), 3)
    print(f"processor time; pandas.factorize: {factorize:.2f} s")
    for calibrator in (Calibrator(), BinningCalibrator()):
        taken = seconds(lambda fit=calibrator.fit: fit(scores, y, groups=groups), 1)
        epsilon = calibrator.guarantee_.epsilon
        name = type(calibrator).__name__
        print(
            f"{name}: {taken:.2f} s, {taken / factorize:.1f} times as long; epsilon {epsilon:.4f}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
