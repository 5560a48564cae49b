"""The kernels against textbook numpy and the machine's floor: python benchmarks/kernels.py [--rows
N] [--json FILE].

Textbook numpy is quantile, searchsorted and bincount. All ways run in one process and take turns.
The columns give nanoseconds a row and, in brackets, how many times faster than the textbook that
is. `fit` checks the scores, finds the edges of 15 quantile bins and counts with every edge as a
cell of its own; `tally` counts with given edges; `predict` looks up, to a new array.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from shapes import SHAPES, make
from timing import best_of, machine, ratio, render, write_json

from calibrant import kernels

Array = NDArray[Any]
Way = Callable[[], object]

WARM_UP = """
import time
import numpy as np
from calibrant import kernels
scores = np.linspace(0.0, 1.0, 100_000)
labels = np.zeros(100_000, np.uint8)
cuts = np.linspace(0.1, 0.9, 14)
start = time.perf_counter()
kernels.order_statistics(scores, np.arange(1, 15) * 5_000, implementation="numba")
kernels.count(scores, labels, cuts, implementation="numba")
kernels.look_up(scores, cuts, np.zeros(15), implementation="numba")
print(time.perf_counter() - start)
"""


def wanted_ranks(rows: int, n_bins: int) -> Array:
    return np.ceil(np.arange(1, n_bins) * rows / n_bins).astype(np.int64)


def textbook_fit(scores: Array, labels: Array, n_bins: int) -> object:
    edges = np.quantile(scores, np.arange(1, n_bins) / n_bins)
    return textbook_tally(scores, labels, edges)


def textbook_tally(scores: Array, labels: Array, edges: Array) -> object:
    cells = np.searchsorted(edges, scores, side="right")
    size = edges.shape[0] + 1
    return np.bincount(cells, minlength=size), np.bincount(cells, weights=labels, minlength=size)


def textbook_predict(scores: Array, edges: Array, table: Array) -> object:
    return np.take(table, np.searchsorted(edges, scores, side="right"), mode="clip")


def fit(scores: Array, labels: Array, n_bins: int, **options: Any) -> object:
    kernels.first_nonfinite(scores)
    edges = np.unique(
        kernels.order_statistics(scores, wanted_ranks(scores.shape[0], n_bins), **options)
    )
    return kernels.count(scores, labels, np.unique((edges, np.nextafter(edges, np.inf))), **options)


def edges_of(scores: Array, n_bins: int) -> Array:
    return np.unique(
        kernels.order_statistics(
            scores, wanted_ranks(scores.shape[0], n_bins), implementation="numpy"
        )
    )


def tasks(
    scores: Array, labels: Array, variants: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Way]]:
    """For each task, the ways to do it: the textbook's and each variant's."""
    few = edges_of(scores, 15)
    many = edges_of(scores, 100)
    table = np.linspace(0.0, 1.0, few.shape[0] + 1)
    result: dict[str, dict[str, Way]] = {
        "fit, 15": {"textbook": partial(textbook_fit, scores, labels, 15)},
        "tally, 15": {"textbook": partial(textbook_tally, scores, labels, few)},
        "tally, 100": {"textbook": partial(textbook_tally, scores, labels, many)},
        "predict, 15": {"textbook": partial(textbook_predict, scores, few, table)},
    }
    for name, options in variants.items():
        result["fit, 15"][name] = partial(fit, scores, labels, 15, **options)
        result["tally, 15"][name] = partial(kernels.count, scores, labels, few, **options)
        result["tally, 100"][name] = partial(kernels.count, scores, labels, many, **options)
        result["predict, 15"][name] = partial(kernels.look_up, scores, few, table, **options)
    return result


def warm_up() -> dict[str, float]:
    """Seconds of the first compiled calls in a fresh process, without and with numba's disk cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-c", WARM_UP]
        seconds = [
            float(
                subprocess.run(
                    command, env=environment, capture_output=True, check=True, text=True
                ).stdout
            )
            for _ in range(3)
        ]
    return {"cold": seconds[0], "cached": min(seconds[1:])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--implementations", nargs="*", default=["numpy", "numba"])
    parser.add_argument("--no-warm-up", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = arguments.rows
    report: dict[str, Any] = {"machine": machine(), "rows": rows, "nanoseconds_a_row": {}}
    print(" ".join(f"{key} {value}" for key, value in report["machine"].items()), f"rows {rows:,}")
    if not arguments.no_warm_up:
        report["warm_up_seconds"] = warm_up()
        print(
            "warm-up of numba, seconds:",
            ", ".join(f"{k} {v:.2f}" for k, v in report["warm_up_seconds"].items()),
        )
    variants: dict[str, dict[str, Any]] = {
        implementation + ("" if threads == 1 else f" x{threads}"): {
            "implementation": implementation,
            "threads": threads,
        }
        for implementation in arguments.implementations
        for threads in arguments.threads
    }
    lines: list[list[str]] = []
    for shape in arguments.shapes:
        scores, labels = make(shape, rows)
        if not lines:
            target = np.zeros(rows)
            floors: dict[str, Way] = {
                "copy": scores.copy,
                "copy into": partial(np.copyto, target, scores),
            }
            floor = best_of({**floors, "sum": scores.sum}, rows, 2 * arguments.rounds)
            report["floor"] = floor
            print(
                "floor, ns a row:",
                ", ".join(f"{name} {value:.2f}" for name, value in floor.items()),
            )
        report["nanoseconds_a_row"][shape] = {}
        for task, ways in tasks(scores, labels, variants).items():
            measured = best_of(ways, rows, arguments.rounds)
            report["nanoseconds_a_row"][shape][task] = measured
            textbook = measured["textbook"]
            line = [
                f"{shape}: {task}",
                f"{textbook:.1f}",
                *(ratio(textbook, measured[name]) for name in variants),
            ]
            lines.append(line)
            print("  ".join(line), flush=True)
    print("\n" + render(["shape: task, bins", "textbook", *variants], lines))
    write_json(arguments.json, report)


if __name__ == "__main__":
    main()
