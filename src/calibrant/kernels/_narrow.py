"""Parts of the order statistics: samples, what to expect of them, and selection among few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels._chunks import chunks

STANDARD_DEVIATIONS = 3.3
"""Half-width of the bracket around a rank. A rank outside it costs a second pass, about once in a thousand ranks."""


def by_sorting(scores: NDArray[Any], ranks: IntArray) -> FloatArray:
    values = scores.astype(np.float64)
    if ranks.shape[0] <= 3:
        values.partition(ranks - 1)
    else:
        values.sort()
    # Zeros of both signs are equal, and which comes first depends on the method: give the positive one.
    result: FloatArray = values[ranks - 1] + 0.0
    return result


def sample(scores: NDArray[Any], size: int) -> FloatArray:
    """One score from each of `size` equal stretches of rows, at scattered places: the rows may be periodic."""
    stretch = scores.shape[0] // size
    index = np.arange(size, dtype=np.int64)
    index = index * stretch + ((index * 2654435761) >> 13) % stretch
    result: FloatArray = scores[index].astype(np.float64, copy=False)
    return result


def reach(wanted: IntArray, rows: int, size: int, parts: FloatArray) -> FloatArray:
    """Where in a sample of `size` rows the wanted ranks are expected, plus the given parts of the half-width."""
    place = (wanted - 0.5) / rows
    half_width = STANDARD_DEVIATIONS * np.sqrt(size * place * (1 - place)) + 1
    result: FloatArray = place * size + np.outer(parts, half_width)
    return result


def narrow(values: FloatArray, ranks: IntArray) -> FloatArray:
    """Order statistics of the rows of one bracket, most of which a comparison with two of them rules out."""
    rows = values.shape[0]
    if ranks.shape[0] > 1 or rows < 4096:
        return by_sorting(values, ranks)
    known = np.sort(values[:: max(8, rows // 2048)])
    low, high = reach(ranks, rows, known.shape[0], np.array((-1.0, 1.0)))[:, 0]
    lower = known[int(low)] if low >= 0 else -np.inf
    upper = known[int(high) + 1] if high + 1 < known.shape[0] else np.inf
    below = values < lower
    rank = ranks - np.count_nonzero(below)
    inside = values[np.greater(values <= upper, below, out=below)]
    if 1 <= rank[0] <= inside.shape[0]:
        return by_sorting(inside, rank)
    return by_sorting(values, ranks)


def collect(scores: NDArray[Any], edges: FloatArray, cell: int, size: int) -> FloatArray:
    """The scores of one cell."""
    lower = edges[cell - 1] if cell else -np.inf
    upper = edges[cell] if cell < edges.shape[0] else np.inf
    result = np.empty(size)
    filled = 0
    for _, _, piece in chunks(scores):
        found = piece[(piece >= lower) & (piece < upper)]
        result[filled : filled + found.shape[0]] = found
        filled += found.shape[0]
    return result
