"""Streams: the whole path of limits against confseq, batches against the tally, memory against the
stream's length.

confseq needs numpy < 2, so it lives in an environment of its own; name that environment's Python
and both are timed in this run, in turns:

    python -m venv peers
    peers/bin/pip install "numpy<2" scipy matplotlib multiprocess pybind11 scikit-build cmake ninja
    setuptools wheel peers/bin/pip install --no-build-isolation confseq      # needs a C++ compiler
    and the Boost headers python benchmarks/streams.py --confseq peers/bin/python

confseq's `beta_binomial_mixture_bound` is called as its defaults have it (one side of the
boundary); ours gives both limits. Its `hedged_cs` bets against 1,000 rates, as ours does.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from timing import best_of, once, render

from calibrant import OnlineCalibrator, Partition
from calibrant.sequences import BetaBinomial, Betting

PEER = """
import sys, time
import numpy as np
from confseq import betting, boundaries
y = np.load(sys.argv[1]).astype(float)
n = np.arange(1, y.size + 1)
best = {"beta-binomial": float("inf"), "betting": float("inf")}
for _ in range(3):
    start = time.perf_counter()
    boundaries.beta_binomial_mixture_bound(n * 0.25, 0.1, 25.0, 0.5, 0.5)
    best["beta-binomial"] = min(best["beta-binomial"], time.perf_counter() - start)
start = time.perf_counter()
betting.hedged_cs(y, alpha=0.1, breaks=1000)
best["betting"] = time.perf_counter() - start
print(best["beta-binomial"], best["betting"])
"""


def paths(labels: np.ndarray, peer: str | None) -> None:
    seconds = {"beta-binomial": float("nan"), "betting": float("nan")}
    if peer is not None:
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "labels.npy", labels)
            command = [peer, "-W", "ignore", "-c", PEER, str(Path(folder) / "labels.npy")]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds = dict(zip(seconds, map(float, printed.split()), strict=True))
    lines = []
    for name, kind in {"beta-binomial": BetaBinomial, "betting": Betting}.items():
        ways = {
            one: lambda kind=kind, one=one: kind.path(labels, 0.1, implementation=one)
            for one in ("numpy", "numba")
        }
        ours = best_of(ways, 1, rounds=7)
        row = [name, f"{seconds[name]:.3f} s"]
        row += [
            f"{ours[one] / 1e6:.2f} ms ({seconds[name] * 1e9 / ours[one]:,.0f}x)"
            for one in ("numpy", "numba")
        ]
        lines.append(row)
    print(f"The limits after each of {labels.size:,} labels")
    print(render(["sequence", "confseq", "numpy", "numba"], lines))


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
