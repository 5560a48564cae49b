"""Kuiper's test of calibration: the range of the cumulative differences between labels and scores."""

from collections.abc import Iterator

import numpy as np

from calibrant._typing import CodeArray, FloatArray
from calibrant.assess.metrics.independent_units import Units
from calibrant.cells.score_counts import ScoreCounts

_ROUNDING = 1e-12


def kuiper_test(
    codes: CodeArray,
    scores: FloatArray,
    draws: int,
    rng: np.random.Generator,
    units: Units,
) -> tuple[float, float]:
    """Return the range of the cumulative differences, and its p-value.

    The p-value is exact if each row is an independent draw, and asymptotic otherwise.
    """
    if units.row_weights is None:
        total = float(codes.size)
        paths = _with_drawn_labels(codes, scores, rng)
    else:
        total = float(units.row_weights.sum())
        paths = _with_random_signs(codes, scores, rng, units)
    seen = _range(next(paths), total)
    larger = sum(_range(next(paths), total) >= seen - _ROUNDING for _ in range(draws))
    return seen, (1 + larger) / (1 + draws)


def _with_drawn_labels(
    codes: CodeArray, scores: FloatArray, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield the observed path, and then paths of labels drawn with the scores as rates."""
    rows = ScoreCounts.of(scores, codes)
    values = rows.scores
    counts, positives = rows.whole
    expected = np.cumsum(rows.total)
    yield np.cumsum(positives) - expected
    if values.size <= codes.size / 4:
        while True:
            yield np.cumsum(rng.binomial(counts, values)) - expected
    ends = np.cumsum(counts) - 1
    ordered = np.repeat(values, counts)
    while True:
        sums = np.cumsum(rng.random(codes.size) < ordered, dtype=np.int64)
        yield (sums if values.size == codes.size else sums[ends]) - expected


def _with_random_signs(
    codes: CodeArray, scores: FloatArray, rng: np.random.Generator, units: Units
) -> Iterator[FloatArray]:
    """Yield the observed weighted path, and then paths with the units' differences times random
    signs.
    """
    order = np.argsort(scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=np.inf))
    off = (units.weights(codes.size) * (codes - scores))[order]
    unit = (np.arange(codes.size) if units.unit is None else units.unit)[order]
    n_units = int(unit.max()) + 1
    yield np.cumsum(off)[ends]
    while True:
        yield np.cumsum(off * rng.choice([-1.0, 1.0], size=n_units)[unit])[ends]


def _range(path: FloatArray, total: float) -> float:
    """Range of a path that starts at 0."""
    return (max(float(path.max()), 0.0) - min(float(path.min()), 0.0)) / total
