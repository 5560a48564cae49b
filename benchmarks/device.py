"""Scores and labels on a GPU: checks of every implementation against numpy, then times.

    PYTHONPATH=src python benchmarks/device.py [--rows N] [--bins B] [--tune] [--without-cupy]

The checks compare counts, look-ups and order statistics of torch and CuPy arrays with numpy's searchsorted and sort: on
scores at and one step beside the cuts, of both precisions, strided and misaligned, with NaN and wrong labels. The times
are medians of 20 whole calls, from arrays on the device to counts on the host; the floor is reading the bytes once.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import torch
from timing import render

from calibrant._exact import ExactSums
from calibrant.kernels import device
from calibrant.kernels.device import _cupy, _keys, _plain, _raw, _select, _torch, _triton

try:
    import cupy
except ImportError:
    cupy = None

Array = Any
LABEL_KINDS = ["bool", "int8", "int32", "int64", "float32", "float64"]
FUSED = ["raw", "triton"] if torch.cuda.is_available() else []
EXTREMES = [0.0, -0.0, 5e-324, 1e-45, 1e-40, -1e-40, 1.0, -1.0, 0.5, 0.1, 1e30, -1e30, 3.4e38, -3.4e38]


def cut_sets(generator: np.random.Generator) -> dict[str, Array]:
    edges = np.sort(generator.beta(0.3, 8.0, 99))
    return {
        "one": np.array([0.5]),
        "steps": np.linspace(-1.0, 2.0, 99),
        "skewed": edges,
        "logits": np.sort(generator.normal(0.0, 3.0, 99)),
        "pairs": np.unique(np.concatenate((edges, np.nextafter(edges.astype(np.float32), np.float32(2))))),
        "clustered": np.unique(np.concatenate((0.5 + 1e-7 * np.arange(60), [-1e30, 1e30]))),
        "extremes": np.unique(np.array(EXTREMES) + 0.0),
        "thousand": np.sort(generator.random(1000)),
        "many": np.sort(generator.random(6000)),
    }


def case(generator: np.random.Generator, cuts: Array, kind: Any, rows: int) -> tuple[Array, Array]:
    near = cuts.astype(kind)
    pool = np.concatenate([near, np.nextafter(near, kind(np.inf)), np.nextafter(near, kind(-np.inf)),
                           np.array(EXTREMES, kind), generator.normal(size=500).astype(kind),
                           generator.random(500).astype(kind)])  # fmt: skip
    pool = pool[np.isfinite(pool)]
    return generator.choice(pool, rows), generator.integers(0, 2, rows).astype(np.uint8)


def expected(scores: Array, labels: Array, cuts: Array) -> tuple[Array, Array, Array]:
    cells = np.searchsorted(cuts, scores.astype(np.float64), side="right")
    size = cuts.shape[0] + 1
    return cells, np.bincount(cells, minlength=size), np.bincount(cells[labels == 1], minlength=size)


WRONG: list[str] = []


def same(got: Array, want: Array, words: str) -> None:
    if not np.array_equal(got, want):
        WRONG.append(words)


def libraries(place: str) -> dict[str, Callable[[Array], Array]]:
    result: dict[str, Callable[[Array], Array]] = {"torch": lambda array: torch.from_numpy(array).to(place)}
    if cupy is not None and place == "cuda" and _cupy.installed():
        result["cupy"] = cupy.asarray
    return result


def check(place: str) -> int:
    """Compare with numpy; the number of comparisons."""
    generator = np.random.default_rng(0)
    done = 0
    for (name, cuts), kind, (library, to) in itertools.product(
        cut_sets(generator).items(), (np.float32, np.float64), libraries(place).items()
    ):
        with np.errstate(all="ignore"):
            scores, labels = case(generator, cuts, kind, 100_007)
        s, y = to(scores), to(labels)
        ways = ["plain", *(way for way in FUSED if place == "cuda" and (way == "raw" or library == "torch"))]
        if cuts.shape[0] > _triton.MOST_CUTS:
            ways = [way for way in ways if way != "triton"]
        if place == "cuda":
            same(_raw.fits(device._operations(s), s, y, cuts), True, f"fits: {library} {name}")
            done += 1
        for way in ways:
            words = f"{library} {way} {name} {kind.__name__}"
            for view in (slice(None), slice(1, None), slice(3, None, 2), slice(0, 1), slice(4, 90_000, 7)):
                _, rows, positives = expected(scores[view], labels[view], cuts)
                got = device.tally(s[view], y[view], cuts, implementation=way)
                same(got[0], rows, f"rows: {words} {view}")
                same(got[1], positives, f"positives: {words} {view}")
                same(got[2], 0, f"bad: {words} {view}")
                done += 3
            for label_kind in LABEL_KINDS if name in ("steps", "skewed") else ():
                got = device.tally(s, to(labels.astype(label_kind)), cuts, implementation=way)
                same(got[1], expected(scores, labels, cuts)[2], f"positives: {words} {label_kind}")
                done += 1
            spoilt, wrong = scores.copy(), labels.astype(np.float32)
            spoilt[[5, 77_777, 100_006]] = np.nan, np.inf, -np.inf
            wrong[[6, 99, 100_005]] = 2, 0.5, np.nan
            got = device.tally(to(spoilt), to(wrong), cuts, implementation=way)
            same(got[2], 6, f"bad: {words}")
            same(got[0].sum() in (100_001, 100_007), True, f"sum with bad rows: {words}")
            same(device.first_nonfinite(to(spoilt)), 5, f"first bad score: {words}")
            same(device.encode(to(wrong), 0, 1)[1], 6, f"first bad label: {words}")
            done += 4
            if way != "triton":
                table = np.cos(np.arange(cuts.shape[0] + 1.0))
                for view in (slice(None), slice(3, None, 2)):
                    got = device.look_up(s[view], cuts, table, implementation=way)
                    same(np.asarray(got.get() if library == "cupy" else got.cpu()),
                         table[expected(scores[view], labels[view], cuts)[0]], f"look-up: {words}")  # fmt: skip
                    done += 1
        cells = device.assign(s, cuts)
        same(np.asarray(cells.get() if library == "cupy" else cells.cpu()), expected(scores, labels, cuts)[0],
             f"assign: {library} {name}")  # fmt: skip
        ranks = generator.integers(1, scores.shape[0] + 1, 150)
        ordered = np.sort(scores.astype(np.float64))[ranks - 1]
        for most, copied in ((1 << 20, 0), (0, 1 << 20), (0, 0)):  # a sort; brackets; digits
            sizes = {"SORT_ROWS": most, "COPIED_ROWS": copied, "SAMPLE_ROWS": 1 << 12}
            with mock.patch.multiple(_select, **sizes):
                same(device.order_statistics(s, ranks), ordered, f"order statistics: {library} {name} {sizes}")
            done += 1
        done += 1
        weights = generator.exponential(size=scores.shape[0])
        cells, hit = expected(scores, labels, cuts)[0], labels == 1
        sums = device.weighted(s, y, to(weights), cuts)
        size = cuts.shape[0] + 1
        same(sums.w == ExactSums.of(weights, cells, size), True, f"sums of weights: {library} {name}")
        same(sums.w2y == ExactSums.of(weights[hit] ** 2, cells[hit], size), True, f"sums of squares: {library} {name}")
        largest = np.full(size, -np.inf)
        np.maximum.at(largest, cells, weights)
        same(sums.largest, largest, f"largest weights: {library} {name}")
        done += 3
    return done


def check_many_rows(place: str) -> None:
    """More rows than 32 bits can count."""
    rows = (1 << 32) + 12_345
    scores = torch.rand(1 << 20, device=place)
    cuts = np.linspace(0.1, 0.9, 9)
    for way in ("plain", *FUSED):
        one = torch.full((1,), 0.55, device=place).expand(rows)
        got = device.tally(one, torch.ones(1, dtype=torch.uint8, device=place).expand(rows), cuts, implementation=way)
        same(got[0][5], rows, f"rows beyond 32 bits: {way}")
        same(got[1][5], rows, f"positives beyond 32 bits: {way}")
    long = scores.repeat(rows >> 20)
    labels = (long > 0.5).to(torch.uint8)
    want = device.tally(scores, (scores > 0.5).to(torch.uint8), cuts, implementation="plain")
    for way in ("plain", *FUSED):
        got = device.tally(long, labels, cuts, implementation=way)
        same(got[0], want[0] * (rows >> 20), f"contiguous rows beyond 32 bits: {way}")
        same(got[1], want[1] * (rows >> 20), f"contiguous positives beyond 32 bits: {way}")


def shapes(rows: int, place: str) -> dict[str, Callable[[], Array]]:
    def uniform() -> Array:
        return torch.rand(rows, device=place)

    return {
        "uniform": uniform,
        "skewed": lambda: uniform().pow_(8),
        "logits": lambda: uniform().normal_(0.0, 3.0),
        "two decimals": lambda: uniform().mul_(100).round_().div_(100),
        "constant": lambda: torch.full((rows,), 0.3, device=place),
    }


def quantile_cuts(scores: Array, bins: int) -> Array:
    ranks = np.ceil(np.arange(1, bins) * scores.shape[0] / bins).astype(np.int64)
    cuts = np.unique(device.order_statistics(scores, ranks))
    return cuts if cuts.shape[0] > 1 else np.linspace(0.01, 0.99, bins - 1)


def milliseconds(place: str, repeats: int, work: Callable[..., object], *arguments: Any, **options: Any) -> str:
    times = []
    for _ in range(repeats + 3):
        _wait(place)
        start = time.perf_counter()
        work(*arguments, **options)
        _wait(place)
        times.append(1e3 * (time.perf_counter() - start))
    return f"{statistics.median(times[3:]):.2f}"


def _wait(place: str) -> None:
    if place == "cuda":
        torch.cuda.synchronize()


def read(scores: Array, labels: Array) -> object:
    return scores.sum(), labels[: labels.shape[0] // 8 * 8].view(torch.int64).sum()


def measure(rows: int, bins: int, place: str) -> str:
    ways = ["plain", *FUSED] if place == "cuda" else ["plain"]
    lines = []
    for name, make in shapes(rows, place).items():
        scores = make()
        labels = (torch.rand(rows, device=place) < 0.3).to(torch.uint8)
        cuts = quantile_cuts(scores, bins)
        pairs = np.unique(np.concatenate((cuts, np.nextafter(cuts, np.inf))))
        table = np.linspace(0.0, 1.0, cuts.shape[0] + 1)
        lines.append(
            [
                name,
                milliseconds(place, 20, read, scores, labels),
                *(
                    milliseconds(place, 20, device.tally, scores, labels, edges, implementation=way)
                    for way in ways
                    for edges in (cuts, pairs)
                ),
                *(
                    milliseconds(place, 5, device.look_up, scores, cuts, table, implementation=way)
                    for way in ways
                    if way != "triton"
                ),
                milliseconds(place, 3, quantile_cuts, scores, bins),
            ]
        )
        del scores, labels
    tallies = [f"{way}{more}" for way in ways for more in ("", " pairs")]
    looks = [f"look {way}" for way in ways if way != "triton"]
    return render(["ms", "floor", *tallies, *looks, "quantiles"], lines)


def tune(rows: int, bins: int) -> str:
    made = {name: make() for name, make in shapes(rows, "cuda").items() if name in ("uniform", "skewed", "constant")}
    labels = (torch.rand(rows, device="cuda") < 0.3).to(torch.uint8)
    cuts = {name: quantile_cuts(scores, bins) for name, scores in made.items()}
    lines = []

    def add(words: str, way: str) -> None:
        try:
            times = [
                milliseconds("cuda", 5, device.tally, made[name], labels, cuts[name], implementation=way)
                for name in made
            ]
        except Exception as error:  # a setting that the device has no room for
            times = [str(error)[:60], "", ""]
        lines.append([words, *times])

    if "raw" in FUSED:
        for size in (12, 13, 14):
            _keys.SIZE = 1 << size
            for setting in ((1024, 2, 8), (512, 2, 16), (1024, 1, 16), (1024, 1, 24)):
                _raw.THREADS, _raw.BLOCKS, _raw.ROWS = setting
                add(f"raw: table 2^{size}; threads, blocks, rows {setting}", "raw")
    if "triton" in FUSED:
        for size in (11, 13):
            _keys.SIZE = 1 << size
            for setting in itertools.product((2048, 4096), (4, 8), (8, 16)):
                _triton.TILE, _triton.WARPS, _triton.PROGRAMS = setting
                add(f"triton: table 2^{size}; tile, warps, programs {setting}", "triton")
    _keys.SIZE = 1 << 13
    for size in (21, 22, 23, 24, 25):
        _plain.CHUNK_ROWS = 1 << size
        add(f"plain: 2^{size} rows at a time", "plain")
    _plain.CHUNK_ROWS = 1 << 24
    histogram = _torch.histogram
    _torch.histogram = lambda keys, size: torch.bincount(keys, minlength=size)[:size]
    add("plain: bincount", "plain")
    _torch.histogram = histogram
    return render(["ms", *made], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--bins", type=int, default=100)
    parser.add_argument("--tune", action="store_true", help="try other sizes of the kernels")
    parser.add_argument("--without-cupy", action="store_true", help="let torch compile the raw kernel")
    options = parser.parse_args()
    place = "cuda" if torch.cuda.is_available() else "cpu"
    print(torch.cuda.get_device_name() if place == "cuda" else "no GPU: torch on the CPU", torch.__version__, FUSED)
    if options.without_cupy:
        _cupy.installed = lambda: False
    print(check(place), "comparisons with numpy; wrong:", WRONG[:30], flush=True)
    if place == "cuda":
        check_many_rows(place)
        print("more than 2**32 rows; wrong:", WRONG[:30], flush=True)
        torch.cuda.empty_cache()
    print(measure(options.rows, options.bins, place), flush=True)
    if options.tune:
        print(tune(options.rows, options.bins))
    if WRONG:
        raise SystemExit(f"{len(WRONG)} wrong results")


if __name__ == "__main__":
    main()
