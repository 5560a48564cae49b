"""The per-row work: finding a score's cell, counting, table lookup, order statistics, and input
checks.

Everything runs with numpy. Compiled loops were tried: with numba, whole fits and predictions of 10^7
rows took 0.5 to 1.0 times the processor time (fits 0.6 to 0.9), less than what a second
implementation has to save. The number of threads never changes a result.

The modules: `_grid` (from a score to its cell by arithmetic), `_numpy` (passes over chunks of
rows), `_select` (order statistics of many rows, from these passes), `_curves` (values of a curve),
`hash` (the constants of a hash). Work on a GPU is done by `calibrant.gpu`.

Scores are one-dimensional float64 or float32 arrays of any stride. They are finite and already
checked, unless `limits` are given. Cuts are finite and strictly increasing. float32 scores are
compared in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels import _numpy, _select
from calibrant.kernels._curves import Along, shape_along, values_along
from calibrant.kernels._grid import CutKeys, build
from calibrant.kernels._numpy import (
    Limits,
    OutsideLimitsError,
    first_nonfinite,
    in_threads,
    inside,
    over_threads,
)

__all__ = [
    "OutsideLimitsError",
    "assign",
    "count",
    "first_nonfinite",
    "follow",
    "in_threads",
    "inside",
    "look_up",
    "order_statistics",
    "values_along",
]

PLAIN_ROWS = 8_000  # for fewer rows, a binary search per row is faster than building a lookup table
PLAIN_ROWS_A_CUT = 20  # the same threshold per cut: a table of many cuts takes longer to build


def _grid_of(scores: NDArray[Any], cuts: FloatArray) -> CutKeys | None:
    """The grid of keys; None where a binary search is faster."""
    rows = scores.shape[0]
    least = max(PLAIN_ROWS, PLAIN_ROWS_A_CUT * cuts.shape[0])
    return None if cuts.shape[0] <= _numpy.FEW_CUTS or rows < least else build(cuts, scores)


def assign(
    scores: NDArray[Any],
    cuts: FloatArray,
    *,
    threads: int = 1,
) -> IndexArray:
    """Cell of each score: the number of cuts that are not above it.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    cuts : array of shape (m,)
        Strictly increasing.
    threads : int
        Upper limit; more than one is used on large data only.

    Returns
    -------
    array of shape (n,)
        ``numpy.searchsorted(cuts, scores, side="right")``, in 0..m.

    Examples
    --------
    >>> import numpy as np
    >>> assign(np.array([0.1, 0.5, 0.9]), np.array([0.5]))
    array([0, 1, 1])
    """
    if scores.shape[0] < PLAIN_ROWS:
        return cuts.searchsorted(scores, side="right")
    return _looked_up(scores, cuts, np.arange(cuts.shape[0] + 1), None, threads)


def count(
    scores: NDArray[Any],
    labels: NDArray[np.uint8] | NDArray[np.bool_],
    cuts: FloatArray,
    *,
    threads: int = 1,
) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    labels : array of shape (n,), uint8 or bool
        0 or 1.
    cuts : array of shape (m,)
        Strictly increasing.
    threads : int
        Upper limit; more than one is used on large data only.

    Returns
    -------
    rows, positives : arrays of shape (m + 1,)
        How many scores each cell holds, and how many of them have label 1.

    Examples
    --------
    >>> import numpy as np
    >>> count(np.array([0.1, 0.5, 0.9]), np.array([0, 0, 1], np.uint8), np.array([0.5]))
    (array([1, 2]), array([0, 1]))
    """
    rows = scores.shape[0]
    codes = labels.view(np.uint8)
    grid = _grid_of(scores, cuts)
    parts = over_threads(
        rows, threads, lambda part: _numpy.count(scores[part], codes[part], cuts, grid)
    )
    total, positives = np.sum(parts, axis=0)
    return total, positives


def look_up(
    scores: NDArray[Any],
    cuts: FloatArray,
    table: FloatArray,
    *,
    limits: Limits | None = None,
    threads: int = 1,
) -> FloatArray:
    """Entry of a table for each score's cell.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    cuts : array of shape (m,)
        Strictly increasing.
    table : array of shape (m + 1,) or (m + 1, k)
        One entry or row per cell.
    limits : (float, float), optional
        For scores not yet checked: raise `OutsideLimitsError` unless all are finite and within
        these limits.
    threads : int
        Upper limit; more than one is used on large data only.

    Returns
    -------
    array of shape (n,) or (n, k)
        ``table[assign(scores, cuts)]``.

    Examples
    --------
    >>> import numpy as np
    >>> look_up(np.array([0.1, 0.5, 0.9]), np.array([0.5]), np.array([0.25, 0.75]))
    array([0.25, 0.75, 0.75])
    """
    return _looked_up(scores, cuts, np.ascontiguousarray(table, dtype=np.float64), limits, threads)


def _looked_up(
    scores: NDArray[Any],
    cuts: FloatArray,
    table: NDArray[Any],
    limits: Limits | None,
    threads: int,
) -> NDArray[Any]:
    rows = scores.shape[0]
    grid = _grid_of(scores, cuts)
    out = np.empty((rows, *table.shape[1:]), table.dtype)
    over_threads(
        rows,
        threads,
        lambda part: _numpy.look_up_into(scores[part], cuts, grid, table, out[part], limits),
    )
    return out


def follow(
    scores: NDArray[Any],
    cuts: FloatArray,
    lines: FloatArray,
    *,
    limits: Limits | None = None,
    threads: int = 1,
) -> FloatArray:
    """Value of a piecewise linear curve; with offsets, limits around it.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    cuts : array of shape (m,)
        Strictly increasing.
    lines : array of shape (m + 1, 3) or (m + 1, 3 + k)
        For each cell: where it begins, the value there, the slope, and k offsets.
    limits, threads
        As in `look_up`.

    Returns
    -------
    array of shape (n,) or (n, k)
        ``values_along(scores, assign(scores, cuts), lines)``, without holding the cells of all rows
        in memory.

    Examples
    --------
    >>> import numpy as np
    >>> follow(np.array([0.25, 0.5]), np.array([0.5]), np.array([[0.0, 0.0, 0.5], [0.5, 0.75, 0.0]]))
    array([0.125, 0.75 ])
    """
    rows = scores.shape[0]
    grid = _grid_of(scores, cuts)
    out = np.empty(shape_along(rows, lines))

    def write(part: slice) -> None:
        along = Along(lines, rows)
        own = scores[part]
        mine = out[part]
        for chunk, cells in _numpy.cells(own, cuts, grid, limits):
            along.write(own[chunk], cells, mine[chunk])

    over_threads(rows, threads, write)
    return out


def order_statistics(
    scores: NDArray[Any],
    ranks: NDArray[Any],
    *,
    threads: int = 1,
) -> FloatArray:
    """The exact scores at the given ranks, without sorting.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    ranks : array of shape (k,), int
        In 1..n, where 1 is the smallest score; they may repeat.
    threads : int
        Upper limit; more than one is used on large data only.

    Returns
    -------
    array of shape (k,)
        ``numpy.sort(scores)[ranks - 1]``, with every zero positive.

    Examples
    --------
    >>> import numpy as np
    >>> order_statistics(np.array([0.9, 0.1, 0.5]), np.array([1, 2]))
    array([0.1, 0.5])
    """
    ranks = np.asarray(ranks, np.int64)
    if scores.shape[0] <= _select.SORT_ROWS:
        # zeros of both signs are equal, and their order depends on the method: return positive ones
        ordered = np.sort(scores.astype(np.float64))
        return np.asarray(ordered[ranks - 1] + 0.0)

    def rows_between(part: NDArray[Any], cuts: FloatArray) -> IntArray:
        no_labels = np.zeros(part.shape[0], np.uint8)
        return count(part, no_labels, cuts, threads=threads)[0]

    return _select.order_statistics(scores, ranks, rows_between, threads)
