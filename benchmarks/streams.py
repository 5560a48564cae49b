"""Streams: the whole path of limits against confseq, batches against the tally, memory against the
stream's length.

confseq needs numpy < 2, so it lives in an environment of its own; name that environment's Python
and both are timed in this run, in turns:

    python -m venv peers
    peers/bin/pip install "numpy<2" scipy matplotlib multiprocess pybind11 scikit-build cmake ninja
    setuptools wheel peers/bin/pip install --no-build-isolation confseq      # needs a C++ compiler
    and the Boost headers python benchmarks/streams.py --confseq peers/bin/python

confseq's `beta_binomial_mixture_bound` is called as its defaults have it (one side of the
boundary); ours gives both limits.
"""

import argparse
import resource
import subprocess
import sys

import numpy as np
from timing import best_of, once, render

from calibrant import OnlineCalibrator, Partition
from calibrant.sequences import CentredBetaBinomial

PEER = """
import sys, time
import numpy as np
from confseq import boundaries
n = np.arange(1, int(sys.argv[1]) + 1)
best = float("inf")
for _ in range(3):
    start = time.perf_counter()
    boundaries.beta_binomial_mixture_bound(n * 0.25, 0.1, 25.0, 0.5, 0.5)
    best = min(best, time.perf_counter() - start)
print(best)
"""


def paths(labels: np.ndarray, peer: str | None) -> None:
    seconds = float("nan")
    if peer is not None:
        command = [peer, "-W", "ignore", "-c", PEER, str(labels.size)]
        seconds = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    ways = {"path": lambda: CentredBetaBinomial.path(labels, 0.1)}
    ours = best_of(ways, 1, rounds=7)["path"]
    print(f"The limits after each of {labels.size:,} labels")
    row = [f"{seconds:.3f} s", f"{ours / 1e6:.2f} ms ({seconds * 1e9 / ours:,.0f}x)"]
    print(render(["confseq", "calibrant"], [row]))


def batches(rows: int) -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=rows)
    labels = (rng.uniform(size=rows) < scores).astype(np.uint8)
    bins = Partition.fixed_width(15)
    online = OnlineCalibrator(bins)
    times = best_of(
        {
            "tally": lambda: bins.count(scores, labels),
            "partial_fit": lambda: online.partial_fit(scores, labels),
            "sum": scores.sum,
        },
        rows,
    )
    print(f"\nA batch of {rows:,} rows, ns a row")
    print(render(list(times), [[f"{value:.2f}" for value in times.values()]]))
    one = OnlineCalibrator(bins).partial_fit([0.5], [1])
    seconds = once(lambda: [one.partial_fit([0.5], [1]) for _ in range(2000)]) / 2000
    print(f"partial_fit of one label: {seconds * 1e6:.0f} us")


def memory(batch: int) -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=batch)
    labels = (rng.uniform(size=batch) < scores).astype(np.uint8)
    online = OnlineCalibrator(Partition.fixed_width(15))
    lines = []
    for total in (10**4, 10**6, 10**8):
        while total - (online.tally_.n_rows if online.__sklearn_is_fitted__() else 0) > 0:
            size = min(
                batch, total - (online.tally_.n_rows if online.__sklearn_is_fitted__() else 0)
            )
            online.partial_fit(scores[:size], labels[:size])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        lines.append(
            [f"{total:,}", f"{peak:.0f} MiB", f"{len(str(online.to_dict())):,} characters"]
        )
    print("\nMemory of the process at its peak, and of the state, along one stream")
    print(render(["labels", "peak", "state"], lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--confseq", metavar="PYTHON", help="the Python of an environment that has confseq"
    )
    parser.add_argument(
        "--labels", type=int, default=10_000, help="length of the stream whose path is taken"
    )
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the batch")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    memory(1_000_000)
    paths((rng.uniform(size=arguments.labels) < 0.3).astype(np.uint8), arguments.confseq)
    batches(arguments.rows)


if __name__ == "__main__":
    sys.exit(main())
