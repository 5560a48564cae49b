"""Scores of the shapes that real models produce, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[Any]

SHAPES: dict[str, Callable[[np.random.Generator, int], Scores]] = {
    "uniform": lambda generator, rows: generator.random(rows),
    "skewed": lambda generator, rows: generator.beta(0.5, 8.0, rows),
    "rare-event": lambda generator, rows: generator.beta(0.05, 50.0, rows),
    "tiny": lambda generator, rows: 1e-6 * generator.random(rows),
    "near-one": lambda generator, rows: 1.0 - 1e-6 * generator.random(rows),
    "two-decimal": lambda generator, rows: np.round(generator.random(rows), 2),
    "forest": lambda generator, rows: generator.binomial(100, generator.beta(0.3, 1.0, rows)) / 100,
    "half-zero": lambda generator, rows: np.maximum(generator.random(rows) - 0.5, 0.0),
    "constant": lambda generator, rows: np.full(rows, 0.3),
    "sorted": lambda generator, rows: np.sort(generator.random(rows)),
    "logits": lambda generator, rows: generator.normal(-1.0, 3.0, rows),
    "cauchy": lambda generator, rows: generator.standard_cauchy(rows),
    "outliers": lambda generator, rows: np.where(
        generator.random(rows) < 1e-5, 1e300, generator.random(rows)
    ),
    "float32": lambda generator, rows: generator.random(rows, dtype=np.float32),
}
"""Each takes a generator and a number of rows."""


def make(name: str, rows: int, seed: int = 0) -> tuple[Scores, NDArray[np.uint8]]:
    """Scores of a named shape, and labels that are 1 more often where the score is high."""
    generator = np.random.default_rng(seed)
    scores = SHAPES[name](generator, rows)
    middle = float(np.median(scores[:: max(1, rows // 10_000)])) if rows else 0.0
    chance = np.where(scores > middle, 0.4, 0.1)
    return scores, (generator.random(rows) < chance).astype(np.uint8)
