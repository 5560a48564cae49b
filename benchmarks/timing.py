"""Side-by-side timing: several ways to do one thing, taken in turn, the best of several rounds for
each.

On a shared machine the rounds differ more than the ways do. Taking turns exposes every way to the
same weather, and the best round is the one that the weather disturbed least. Only ratios within one
run mean anything.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def best_of(
    ways: Mapping[str, Callable[[], object]], rows: int, rounds: int = 5
) -> dict[str, float]:
    """Nanoseconds a row of each way: the best of several rounds, in which the ways take turns.

    Each way runs once more at the start, unmeasured, so that compiling and first touches of memory
    do not count.
    """
    best = dict.fromkeys(ways, float("inf"))
    for way in ways.values():
        way()
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: seconds / rows * 1e9 for name, seconds in best.items()}


def processor_medians(
    ways: Mapping[str, Callable[[], object]], rounds: int = 9
) -> dict[str, float]:
    """Seconds of processor time of each way: the median of rounds in which the ways take turns.

    On a busy machine it is disturbed less than the clock on the wall. Each way runs once more at
    the start, unmeasured.
    """
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.process_time()
            way()
            taken[name].append(time.process_time() - start)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def once(way: Callable[[], object]) -> float:
    """Seconds of a single run."""
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


def render(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A plain text table: the first column to the left, the others to the right."""
    widths = [max(len(line[column]) for line in (header, *lines)) for column in range(len(header))]

    def one(line: Sequence[str]) -> str:
        cells = (
            text.ljust(width) if not column else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return "\n".join((one(header), one(["-" * width for width in widths]), *map(one, lines)))


def ratio(base: float, other: float) -> str:
    """Other, and how many times faster than base it is."""
    return f"{other:6.2f} ({base / other:5.1f}x)"


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    import numpy as np

    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def write_json(path: str | None, content: Mapping[str, Any]) -> None:
    """Save the numbers, where a file was asked for."""
    if path is not None:
        Path(path).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
