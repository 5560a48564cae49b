"""Scores and labels on a GPU: checks of the kernels against numpy, then times.

    PYTHONPATH=src python benchmarks/device.py [--rows N] [--bins B]

The checks compare counts, look-ups, curves, knots and order statistics of torch and CuPy arrays with
numpy's: on scores at and one step beside the cuts, of both precisions, strided and misaligned. The
times are medians of whole calls, from arrays on the device to counts on the host; "read" is reading
the bytes once, "curve" a curve of as many pieces as there are bins.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from timing import render

from calibrant import kernels
from calibrant.cells.knots import Knots
from calibrant.cells.score_partition import ScorePartition
from calibrant.gpu import draws
from calibrant.gpu import kernels as device
from calibrant.params.random import RandomSource
from calibrant.params.tensors import to_host

try:
    import cupy
except ImportError:
    cupy = None

Array = Any
PLACE = "cuda" if torch.cuda.is_available() else "cpu"
EXTREMES = [
    0.0,
    -0.0,
    5e-324,
    1e-45,
    1e-40,
    -1e-40,
    1.0,
    -1.0,
    0.5,
    0.1,
    1e30,
    -1e30,
    3.4e38,
    -3.4e38,
]
VIEWS = (slice(None), slice(1, None), slice(3, None, 2), slice(0, 1), slice(4, 90_000, 7))
WRONG: list[str] = []


def cut_sets(generator: np.random.Generator) -> dict[str, Array]:
    edges = np.sort(generator.beta(0.3, 8.0, 99))
    return {
        "one": np.array([0.5]),
        "steps": np.linspace(-1.0, 2.0, 99),
        "skewed": edges,
        "logits": np.sort(generator.normal(0.0, 3.0, 99)),
        "pairs": np.unique(
            np.concatenate((edges, np.nextafter(edges.astype(np.float32), np.float32(2))))
        ),
        "clustered": np.unique(np.concatenate((0.5 + 1e-7 * np.arange(60), [-1e30, 1e30]))),
        "extremes": np.unique(np.array(EXTREMES) + 0.0),
        "many": np.sort(generator.random(6000)),
    }


def case(generator: np.random.Generator, cuts: Array, kind: Any, rows: int) -> tuple[Array, Array]:
    near = cuts.astype(kind)
    pool = np.concatenate(
        [
            near,
            np.nextafter(near, kind(np.inf)),
            np.nextafter(near, kind(-np.inf)),
            np.array(EXTREMES, kind),
            generator.normal(size=500).astype(kind),
            generator.random(500).astype(kind),
        ]
    )
    pool = pool[np.isfinite(pool)]
    return generator.choice(pool, rows), generator.integers(0, 2, rows).astype(np.uint8)


def same(got: Array, want: Array, words: str) -> None:
    if not np.array_equal(got, want):
        WRONG.append(words)


def libraries() -> dict[str, Callable[[Array], Array]]:
    result: dict[str, Callable[[Array], Array]] = {
        "torch": lambda array: torch.from_numpy(array).to(PLACE)
    }
    if cupy is not None:
        result["cupy"] = lambda array: device.gpu_tensor(cupy.asarray(array))
    return result


def check() -> int:
    """Compare with numpy; the number of cases."""
    generator = np.random.default_rng(0)
    cases = list(
        itertools.product(
            cut_sets(generator).items(), (np.float32, np.float64), libraries().items()
        )
    )
    for (name, cuts), kind, (library, to) in cases:
        with np.errstate(all="ignore"):
            scores, labels = case(generator, cuts, kind, 100_007)
        s = to(scores)
        y = to(labels)
        size = cuts.shape[0] + 1
        words = f"{library} {name} {kind.__name__}"
        cells = np.searchsorted(cuts, scores.astype(np.float64), side="right")
        table = np.cos(np.arange(size * 1.0))
        for view in VIEWS:
            rows, positives = device.count(s[view], y[view], cuts)
            same(rows, np.bincount(cells[view], minlength=size), f"rows: {words} {view}")
            same(
                positives,
                np.bincount(cells[view][labels[view] == 1], minlength=size),
                f"positives: {words} {view}",
            )
            same(
                to_host(device.look_up(s[view], cuts, table)),
                table[cells[view]],
                f"look-up: {words} {view}",
            )
        ranks = generator.integers(1, scores.shape[0] + 1, 150)
        same(
            draws.order_statistics(s, ranks),
            np.sort(scores.astype(np.float64))[ranks - 1],
            f"ranks: {words}",
        )
        same(device.ends_of(s), (scores.min(), scores.max()), f"extremes: {words}")
        for bad in (np.nan, np.inf, -np.inf):
            scores[77_777] = bad
            same(np.isfinite(device.ends_of(to(scores))).all(), False, f"not finite: {words}")
    return len(cases)


def lines_of(cuts: Array, more: int = 0) -> Array:
    """A line for each cell, with offsets."""
    return np.cos(np.arange((3.0 + more) * (cuts.shape[0] + 1))).reshape(-1, 3 + more)


def check_curves() -> int:
    """Compare curves, limits around them, and counts at knots with those of the host."""
    generator = np.random.default_rng(1)
    cases = list(itertools.product((5, 700, 9_000), (np.float32, np.float64), libraries().items()))
    for pieces, kind, (library, to) in cases:
        cuts = np.unique(generator.random(pieces))
        scores, labels = case(generator, cuts, kind, 100_007)
        words = f"{library} {pieces} {kind.__name__}"
        s = to(scores)
        for more in (0, 2):
            with np.errstate(all="ignore"):
                want = kernels.follow(scores, cuts, lines_of(cuts, more))
            got = device.follow(s, cuts, lines_of(cuts, more))
            same(to_host(got), want, f"curve: {words} {more}")
        source = RandomSource(pieces)
        knots = Knots.between(ScorePartition(cuts[::50]).as_bins(), [cuts])
        counting, *columns = knots.counting
        cells = counting.bins_by_segment[None].cuts, np.column_stack(columns).astype(float)
        got = draws.count_knots(s, to(labels), source.key, cells, knots.n_places)
        same(got, knots.count(scores, labels, source), f"knots: {words}")
    return len(cases)


def check_many_rows() -> None:
    """More rows than 32 bits can count."""
    rows = (1 << 32) + 12_345
    one = torch.full((1,), 0.55, device=PLACE).expand(rows)
    got = device.count(
        one, torch.ones(1, dtype=torch.uint8, device=PLACE).expand(rows), np.linspace(0.1, 0.9, 9)
    )
    same([got[0][5], got[1][5]], [rows, rows], "more than 2**32 rows")


def shapes(rows: int) -> dict[str, Callable[[], Array]]:
    def uniform() -> Array:
        return torch.rand(rows, device=PLACE)

    return {
        "uniform": uniform,
        "skewed": lambda: uniform().pow_(8),
        "logits": lambda: uniform().normal_(0.0, 3.0),
        "two decimals": lambda: uniform().mul_(100).round_().div_(100),
        "doubles": lambda: torch.rand(rows, device=PLACE, dtype=torch.float64),
    }


def quantile_cuts(scores: Array, bins: int) -> Array:
    ranks = np.ceil(np.arange(1, bins) * scores.shape[0] / bins).astype(np.int64)
    return np.unique(draws.order_statistics(scores, ranks))


def milliseconds(repeats: int, work: Callable[..., object], *arguments: Any) -> str:
    times = []
    for _ in range(repeats + 1):
        _wait()
        start = time.perf_counter()
        work(*arguments)
        _wait()
        times.append(1e3 * (time.perf_counter() - start))
    return f"{statistics.median(times[1:]):.2f}"


def _wait() -> None:
    if PLACE == "cuda":
        torch.cuda.synchronize()


def read(scores: Array, labels: Array) -> object:
    return scores.sum(), labels[: labels.shape[0] // 8 * 8].view(torch.int64).sum()


def measure(rows: int, bins: int) -> str:
    lines = []
    for name, make in shapes(rows).items():
        scores = make()
        labels = (torch.rand(rows, device=PLACE) < 0.3).to(torch.uint8)
        cuts = quantile_cuts(scores, bins)
        table = np.linspace(0.0, 1.0, cuts.shape[0] + 1)
        reading = milliseconds(5, read, scores, labels)
        counting = milliseconds(3, device.count, scores, labels, cuts)
        looking = milliseconds(3, device.look_up, scores, cuts, table)
        following = milliseconds(3, device.follow, scores, cuts, lines_of(cuts))
        quantiles = milliseconds(1, quantile_cuts, scores, bins)
        lines.append([name, reading, counting, looking, following, quantiles])
        del scores, labels
    return render(["ms", "read", "count", "look-up", "curve", "quantiles"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--bins", type=int, default=100)
    options = parser.parse_args()
    print(
        torch.cuda.get_device_name() if PLACE == "cuda" else "no GPU: torch on the CPU",
        torch.__version__,
    )
    print(check(), "cases compared with numpy; wrong:", WRONG[:30], flush=True)
    print(check_curves(), "curves compared with numpy; wrong:", WRONG[:30], flush=True)
    if PLACE == "cuda":
        check_many_rows()
        print("more than 2**32 rows; wrong:", WRONG[:30], flush=True)
        torch.cuda.empty_cache()
    print(measure(options.rows, options.bins), flush=True)
    if WRONG:
        raise SystemExit(f"{len(WRONG)} wrong results")


if __name__ == "__main__":
    main()
