"""Exact order statistics without sorting: count rows in many fine cells, then inspect the cells
that hold a wanted rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels._grid import LINEAR, POSITIVE_BITS, CutKeys, over_range
from calibrant.kernels._numpy import extract, histogram, over_threads

SORT_ROWS = 1 << 15  # up to this many rows, nothing beats sorting
SAMPLE_ROWS = 1 << 13  # for choosing the cells
# how many standard deviations a wanted score may lie from its expected place in the sample before
# the cells miss it
STANDARD_DEVIATIONS = 3.3
# with at most this many distinct values in the sample, scores are treated as discrete and each
# value is counted
FEW_VALUES = SAMPLE_ROWS // 16
COMMON_SHARE = (
    1 / 4
)  # a value with a larger share of the sample is counted too: its cell has too many rows to copy
# each kind of key is slower than the one before, so it must save copying this share of the rows
KIND_COST = 0.05

# from scores and cuts to the rows per cell
Count: TypeAlias = Callable[[NDArray[Any], FloatArray], IntArray]


def order_statistics(
    scores: NDArray[Any], ranks: IntArray, count: Count, threads: int
) -> FloatArray:
    """The scores at the given 1-based ranks."""
    if ranks.shape[0] == 0:
        return np.empty(0)
    wanted, inverse = np.unique(ranks, return_inverse=True)
    # Zeros of both signs are equal and their order depends on the method: return the positive zero.
    return _select(scores, wanted, count, threads)[inverse] + 0.0


def _select(scores: NDArray[Any], wanted: IntArray, count: Count, threads: int) -> FloatArray:
    """The scores at strictly increasing ranks."""
    if scores.shape[0] <= SORT_ROWS:
        return _sorted_at(scores, wanted)
    lower, upper, known = _sampled(scores, wanted)
    values, repeats = np.unique(known, return_counts=True)
    if values.shape[0] > FEW_VALUES:
        values = (
            values[repeats > COMMON_SHARE * known.shape[0]] if lower < upper else np.array([lower])
        )
    found = np.full(wanted.shape, np.nan)
    if values.shape[0]:
        with np.errstate(
            all="ignore"
        ):  # numpy reports an underflow next to 0, and an overflow next to the largest double
            after = np.nextafter(values, np.inf)
        cuts = np.unique(np.concatenate((values, after[np.isfinite(after)])))
        cells = np.cumsum(count(scores, cuts)).searchsorted(wanted, side="left")
        at = np.concatenate(((-np.inf,), cuts))[cells]
        found = np.where(np.isin(at, values), at, np.nan)
    rest = np.isnan(found)
    if rest.any():
        found[rest] = _from_cells(scores, wanted[rest], (lower, upper, known), count, threads)
    return found


def _from_cells(
    scores: NDArray[Any],
    wanted: IntArray,
    sampled: tuple[float, float, FloatArray],
    count: Count,
    threads: int,
) -> FloatArray:
    """The wanted scores, from the scores that share a fine cell with a wanted rank."""
    rows = scores.shape[0]
    lower, upper, known = sampled
    grid = _fine_grid(lower, upper, known, wanted / rows) if lower < upper else None
    if grid is None:
        return _sorted_at(scores, wanted)
    counts = np.sum(over_threads(rows, threads, lambda part: histogram(scores[part], grid)), axis=0)
    reached = np.cumsum(counts)
    keys = reached.searchsorted(wanted, side="left")
    chosen, cell = np.unique(keys, return_inverse=True)
    sizes = counts[chosen]
    if sizes.max() > rows // 2 or chosen.shape[0] >= 0xFFFF:
        return _sorted_at(scores, wanted)
    local = wanted - (reached - counts)[keys]
    marks = np.zeros(grid.size, np.uint16)
    marks[chosen] = np.arange(1, chosen.shape[0] + 1)
    parts = over_threads(rows, threads, lambda part: extract(scores[part], grid, marks))
    inside, mark = (np.concatenate(found) for found in zip(*parts, strict=True))
    inside = inside[np.argsort(mark, kind="stable")]
    stops = np.cumsum(sizes)
    result = np.empty(wanted.shape)
    for number, (start, stop) in enumerate(zip(stops - sizes, stops, strict=True)):
        here = cell == number
        result[here] = _select(inside[start:stop], local[here], count, 1)
    return result


def _sampled(scores: NDArray[Any], wanted: IntArray) -> tuple[float, float, FloatArray]:
    """Bounds that almost surely enclose all wanted scores, and a sorted sample."""
    rows = scores.shape[0]
    size = min(SAMPLE_ROWS, rows // 8)
    stretch = rows // size
    index = np.arange(size, dtype=np.int64)
    # One score from each of many equal stretches of rows, at scattered positions, because rows may
    # be periodic.
    known = (
        np.sort(scores[index * stretch + ((index * 2654435761) >> 13) % stretch].astype(np.float64))
        + 0.0
    )
    place = (wanted[[0, -1]] - 0.5) / rows
    reach = STANDARD_DEVIATIONS * np.sqrt(size * place * (1 - place)) + 1
    low, high = place * size + (-reach[0], reach[1])
    return float(known[max(0, int(low))]), float(known[min(size - 1, int(high) + 1)]), known


def _fine_grid(lower: float, upper: float, known: FloatArray, shares: FloatArray) -> CutKeys | None:
    """Return cells in which few rows share a cell with a wanted rank, estimated from a sample."""
    places = np.minimum((shares * known.shape[0]).astype(np.int64), known.shape[0] - 1)
    best: CutKeys | None = None
    best_cost = np.inf
    for number, kind in enumerate((POSITIVE_BITS, LINEAR)):
        grid = over_range(lower, upper, kind)
        if grid is None:
            continue
        keys = grid.sample_keys(known)
        counts = np.bincount(keys, minlength=grid.size)
        cost = float(counts[np.unique(keys[places])].sum()) / known.shape[0] + KIND_COST * number
        if cost < best_cost:
            best = grid
            best_cost = cost
    return best


def _sorted_at(scores: NDArray[Any], ranks: IntArray) -> FloatArray:
    """The scores at the given 1-based ranks, by sorting."""
    values = scores.astype(np.float64)
    if ranks.shape[0] <= 3:
        values.partition(ranks - 1)
    else:
        values.sort()
    return values[ranks - 1]
