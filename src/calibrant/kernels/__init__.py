"""The per-row work: finding a score's cell, counting, table lookup, order statistics, and input
checks.

Everything runs with numpy. Four functions are also compiled by numba, the extra ``[fast]``. Through
the public API three of them are 1.5 to 2.3 times as fast for scores that all differ (uniform,
logits, float32), and 1.9 to 4.2 times for tied ones; counts at knots are 3 times as fast. Processor
time in nanoseconds per row, for 10^7 rows (10^6 for knots), one thread, best of several alternating
runs on a busy machine, for uniform scores and for scores with two decimals (a copy of the array
takes 1.3; predict on float32 scores takes 2.3 with numba):

======================================  ====================  ============  ============
job                                     through               numpy         numba
======================================  ====================  ============  ============
`order_statistics` and `count`          fit, 15 bins          13.5, 22.5    8.7, 6.3
`count`                                 Tally.from_data       7.2, 6.7      4.5, 3.4
`look_up`                               predict               5.3, 6.5      2.7, 2.9
`assign`                                (loop of `look_up`)
`count_knots`                           fit of a curve        18            6
`first_nonfinite`                       every fit             numpy only
======================================  ====================  ============  ============

numba is used if it is installed and there are enough rows to repay loading it (about 0.4 s from its
disk cache, 1 to 3 s the first time); it is imported only then. Once it is loaded, fewer rows are
enough. Neither the implementation nor the number of threads ever changes a result.

The modules: `_grid` (from a score to its cell by arithmetic), `_numpy` and `_numba` (two
implementations of the same passes over chunks of rows), `_select` (order statistics of many rows,
from these passes), `_curves` (values of a curve), `hash` (the constants of a hash). Work on a GPU
is done by `calibrant.gpu`.

Scores are one-dimensional float64 or float32 arrays of any stride. They are finite and already
checked, unless `limits` are given. Cuts are finite and strictly increasing. float32 scores are
compared in float64.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, Literal, TypeAlias

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
    "count_knots",
    "first_nonfinite",
    "follow",
    "in_threads",
    "inside",
    "look_up",
    "order_statistics",
    "values_along",
]

Implementation: TypeAlias = Literal["numpy", "numba"] | None

# Number of rows from which on numba is used. Loading it takes about 0.4 s from its disk cache (1 to
# 3 s the first time, to compile), once per process; after that a fit takes 4 to 13 ns less per row.
NUMBA_ROWS = 10_000_000
# The threshold for a multithreaded pass over batches: all threads wait for numba to load, and they
# share what it saves.
PASS_ROWS = 10 * NUMBA_ROWS
# Once numba is loaded, one more function takes about 20 ms: both thresholds are this many times
# smaller.
LOADED = 20
PLAIN_ROWS = 8_000  # for fewer rows, a binary search per row is faster than building a lookup table
PLAIN_ROWS_A_CUT = 20  # the same threshold per cut: a table of many cuts takes longer to build


@lru_cache(maxsize=1)
def _numba_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("numba") is not None


def uses_numba(size: float, least: float, implementation: Implementation) -> bool:
    """Whether to use compiled loops: as forced, or if numba is installed and there is enough work."""
    return (
        implementation == "numba"
        if implementation is not None
        else size >= least and _numba_installed()
    )


def numba_loaded() -> bool:
    """Whether numba was loaded before, here or by another library."""
    return "numba" in sys.modules


def _compiled(rows: int, implementation: Implementation, pass_rows: int = 0) -> Any:
    """The module of compiled kernels if it should be used, else None.

    They never change a result, so it may depend on what was loaded before.
    """
    share = max(rows / NUMBA_ROWS, pass_rows / PASS_ROWS)
    if not uses_numba(share, 1.0 / LOADED if numba_loaded() else 1.0, implementation):
        return None
    from calibrant.kernels import _numba

    return _numba


def _prepare(
    scores: NDArray[Any], cuts: FloatArray, implementation: Implementation, pass_rows: int = 0
) -> tuple[Any, CutKeys | None]:
    """The module to use and its grid of keys; without a grid, the module uses binary search."""
    rows = scores.shape[0]
    compiled = _compiled(rows, implementation, pass_rows)
    few = cuts.shape[0] <= _numpy.FEW_CUTS or rows < max(
        PLAIN_ROWS, PLAIN_ROWS_A_CUT * cuts.shape[0]
    )
    if (compiled is None and few) or not cuts.shape[0]:
        return _numpy, None
    grid = build(cuts, scores)
    return (
        compiled if compiled is not None and compiled.fits(grid, cuts.shape[0] + 1) else _numpy
    ), grid


def assign(
    scores: NDArray[Any],
    cuts: FloatArray,
    *,
    threads: int = 1,
    implementation: Implementation = None,
) -> IndexArray:
    """Cell of each score: the number of cuts that are not above it.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    cuts : array of shape (m,)
        Strictly increasing.
    threads : int
        Upper limit; more than one is used on large data only.
    implementation : {"numpy", "numba"}, optional
        Forces one, for tests and benchmarks.

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
    if scores.shape[0] < PLAIN_ROWS and implementation is None:
        return cuts.searchsorted(scores, side="right")
    return _looked_up(scores, cuts, np.arange(cuts.shape[0] + 1), None, threads, implementation)


def count(
    scores: NDArray[Any],
    labels: NDArray[np.uint8] | NDArray[np.bool_],
    cuts: FloatArray,
    *,
    pass_rows: int = 0,
    threads: int = 1,
    implementation: Implementation = None,
) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    labels : array of shape (n,), uint8 or bool
        0 or 1.
    cuts : array of shape (m,)
        Strictly increasing.
    pass_rows : int, optional
        Total rows of the pass that this batch is part of, if known.
    threads : int
        Upper limit; more than one is used on large data only.
    implementation : {"numpy", "numba"}, optional
        Forces one, for tests and benchmarks.

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
    module, grid = _prepare(scores, cuts, implementation, pass_rows)
    parts = over_threads(
        rows, threads, lambda part: module.count(scores[part], codes[part], cuts, grid)
    )
    total, positives = parts[0]
    for more, more_positives in parts[1:]:
        total = total + more
        positives = positives + more_positives
    return total, positives


def count_knots(
    scores: NDArray[Any],
    codes: NDArray[Any],
    keys: NDArray[np.uint64] | None,
    key: int,
    cells: tuple[FloatArray, FloatArray],
    shape: tuple[int, int, int],
    *,
    pass_rows: int = 0,
    threads: int = 1,
    implementation: Implementation = None,
) -> IntArray | None:
    """Rows by place, half and label, compiled; None if numba is not to be used, or cannot be.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    codes : array of shape (n,), int
        The number of each row's label.
    keys : array of shape (n,), optional
        The key of each row, from which its hash is computed; its position by default.
    key : int
        The key of the hashes, from 0 to 2**64 - 1.
    cells : (array of shape (m,), array of shape (m + 1, 3))
        Cuts, strictly increasing; and of each cell its first place, where it begins, and one over
        its width.
    shape : (int, int, int)
        The number of places, 2, and the number of labels.
    pass_rows : int, optional
        Total rows of the pass that this batch is part of, if known.
    threads : int
        Upper limit; more than one is used on large data only.
    implementation : {"numpy", "numba"}, optional
        Forces one, for tests and benchmarks.

    Returns
    -------
    array of this shape, or None
        As `calibrant.cells.knots.Knots.count` counts them with numpy.
    """
    rows = scores.shape[0]
    cuts, table = cells
    compiled = _compiled(rows, implementation, pass_rows)
    if compiled is None or not cuts.shape[0]:
        return None
    grid = build(cuts, scores)
    if not compiled.fits(grid, cuts.shape[0] + 1, compiled.KNOT_DEPTH):
        return None

    def of_part(part: slice) -> IntArray:
        positions = (
            np.arange(part.start, part.stop, dtype=np.uint64) if keys is None else keys[part]
        )
        own = scores[part], codes[part], positions
        return np.asarray(compiled.count_knots(*own, key, grid, table, shape))

    return np.asarray(np.sum(over_threads(rows, threads, of_part), axis=0))


def look_up(
    scores: NDArray[Any],
    cuts: FloatArray,
    table: FloatArray,
    *,
    limits: Limits | None = None,
    threads: int = 1,
    implementation: Implementation = None,
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
    implementation : {"numpy", "numba"}, optional
        Forces one, for tests and benchmarks.

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
    return _looked_up(
        scores, cuts, np.ascontiguousarray(table, dtype=np.float64), limits, threads, implementation
    )


def _looked_up(
    scores: NDArray[Any],
    cuts: FloatArray,
    table: NDArray[Any],
    limits: Limits | None,
    threads: int,
    implementation: Implementation,
) -> NDArray[Any]:
    rows = scores.shape[0]
    module, grid = _prepare(scores, cuts, implementation)
    out = np.empty((rows, *table.shape[1:]), table.dtype)
    over_threads(
        rows,
        threads,
        lambda part: module.look_up_into(scores[part], cuts, grid, table, out[part], limits),
    )
    return out


def follow(
    scores: NDArray[Any],
    cuts: FloatArray,
    lines: FloatArray,
    *,
    limits: Limits | None = None,
    threads: int = 1,
    implementation: Implementation = None,
) -> FloatArray:
    """Value of a piecewise linear curve; with offsets, limits around it.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    cuts : array of shape (m,)
        Strictly increasing.
    lines : array of shape (m + 1, 3) or (m + 1, 3 + k)
        For each cell: where it begins, the value there, the slope, and k offsets.
    limits, threads, implementation
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
    module, grid = _prepare(scores, cuts, implementation)
    out = np.empty(shape_along(rows, lines))

    def write(part: slice) -> None:
        along = Along(lines, rows)
        own = scores[part]
        mine = out[part]
        for chunk, cells in module.cells(own, cuts, grid, limits):
            along.write(own[chunk], cells, mine[chunk])

    over_threads(rows, threads, write)
    return out


def order_statistics(
    scores: NDArray[Any],
    ranks: NDArray[Any],
    *,
    threads: int = 1,
    implementation: Implementation = None,
) -> FloatArray:
    """The exact scores at the given ranks, without sorting.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    ranks : array of shape (k,), int
        In 1..n, where 1 is the smallest score; they may repeat.
    threads : int
        Upper limit; more than one is used on large data only.
    implementation : {"numpy", "numba"}, optional
        Forces one, for tests and benchmarks.

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
    module = _compiled(scores.shape[0], implementation) or _numpy

    def rows_between(part: NDArray[Any], cuts: FloatArray) -> IntArray:
        no_labels = np.zeros(part.shape[0], np.uint8)
        return count(part, no_labels, cuts, threads=threads, implementation=implementation)[0]

    return _select.order_statistics(scores, ranks, module, rows_between, threads)
