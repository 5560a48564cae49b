"""Exact order statistics without a sort: count the rows of many fine cells, then look into those that hold a rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels._brackets import by_brackets
from calibrant.kernels._grid import LINEAR, POSITIVE_BITS, SIGNED_BITS, Grid, over_range
from calibrant.kernels._narrow import by_sorting, narrow, reach, sample
from calibrant.kernels._passes import Passes

SORT_ROWS = 1 << 15
"""Up to so many rows a sort is as fast as anything else."""

SAMPLE_ROWS = 1 << 13
"""Rows that tell which cells to count in."""

WANTED_SHARE = 0.1
"""With more rows than this in the cells to look into, brackets from a larger sample are faster; so it is with ties."""


def order_statistics(scores: NDArray[Any], ranks: IntArray, passes: Passes) -> FloatArray:
    """The scores of the given 1-based ranks."""
    if ranks.shape[0] == 0:
        return np.empty(0)
    wanted, inverse = np.unique(ranks, return_inverse=True)
    if scores.shape[0] <= SORT_ROWS:
        return by_sorting(scores, wanted)[inverse]
    grid = _fine_grid(scores, wanted)
    result = None if grid is None else _by_histogram(scores, wanted, grid, passes)
    if result is None:
        result = by_brackets(scores, wanted, passes)
    return result[inverse]


def _fine_grid(scores: NDArray[Any], wanted: IntArray) -> Grid | None:
    """Cells of which the ranks need few rows, as far as a sample can tell; None where there are no such cells."""
    rows = scores.shape[0]
    known = np.sort(sample(scores, min(SAMPLE_ROWS, rows // 8))) + 0.0
    last = known.shape[0] - 1
    low, high = reach(wanted[[0, -1]], rows, known.shape[0], np.array((-1.0, 1.0)))
    lower, upper = known[max(0, int(low[0]))], known[min(last, int(high[-1]) + 1)]
    if lower == upper:
        return None
    places = np.clip(((wanted - 0.5) / rows * known.shape[0]).astype(np.int64), 0, last)
    best: Grid | None = None
    best_share = WANTED_SHARE
    for kind in (POSITIVE_BITS, LINEAR, SIGNED_BITS):
        grid = over_range(lower, upper, kind)
        if grid is None:
            continue
        keys = np.clip(grid.keys(known, np.empty(known.shape, np.intp), np.empty_like(known)), 0, grid.size - 1)
        counts = np.bincount(keys, minlength=grid.size)
        share = float(counts[np.unique(keys[places])].sum()) / known.shape[0]
        # The kinds come fastest first, so a later one has to be clearly finer.
        if share < best_share:
            best, best_share = grid, share / 4
    return best


def _by_histogram(scores: NDArray[Any], wanted: IntArray, grid: Grid, passes: Passes) -> FloatArray | None:
    counts = passes.histogram(scores, grid)
    reached = np.cumsum(counts)
    keys = reached.searchsorted(wanted, side="left")
    chosen, which = np.unique(keys, return_inverse=True)
    sizes = counts[chosen]
    if sizes.sum() > 2 * WANTED_SHARE * scores.shape[0] or chosen.shape[0] >= 0xFFFF:
        return None
    local = wanted - (reached - counts)[keys]
    marks = np.zeros(grid.size, np.uint16)
    marks[chosen] = np.arange(1, chosen.shape[0] + 1)
    values, found = passes.extract(scores, grid, marks)
    values = values[np.argsort(found, kind="stable")]
    stops = np.cumsum(sizes)
    result = np.empty(wanted.shape)
    for index in range(chosen.shape[0]):
        here = which == index
        result[here] = narrow(values[stops[index] - sizes[index] : stops[index]], local[here])
    return result + 0.0
