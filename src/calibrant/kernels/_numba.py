"""The per-row work compiled: what prepares arrays for the loops of `_loops`. Importing this imports numba.

Every array that comes from outside enters as a contiguous read-only view, in pieces where it has to be copied, so that
nothing is compiled again for writable or strided input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels import _loops
from calibrant.kernels._chunks import Limits, chunks
from calibrant.kernels._grid import POSITIVE_BITS, Grid
from calibrant.kernels._loops import LANES
from calibrant.kernels._numpy import code_type

# rows at a time where something has to be checked, converted or copied out: a call costs 5 microseconds
CHUNK_ROWS = 1 << 17
# rows at a time otherwise: enough that a call costs nothing, few enough that their counts fit 32 bits
LARGEST_PIECE = 1 << 20
GOOD_SHARE = 1 / 96  # for `build`: a branch that is foreseen wrongly costs more here than a slower key
# with more rows than this to be compared, comparing all is faster than a branch that cannot be foreseen
COMPARED_SHARE = 1 / 32

_KINDS = (np.dtype(np.float64), np.dtype(np.float32))


def fits(grid: Grid | None, names: int) -> bool:
    """Whether the compiled kernels can work with this grid and so many names of cells."""
    return grid is not None and names < 0xFFFF


def _parameters(grid: Grid) -> tuple[Any, ...]:
    if grid.kind == POSITIVE_BITS:
        return grid.shift, grid.offset
    return grid.low, grid.high, grid.scale


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _pieces(
    scores: NDArray[Any], *others: NDArray[Any], limits: Limits | None = None
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Pieces of the scores: large ones where nothing has to be checked, converted or copied."""
    direct = limits is None and all(array.flags.c_contiguous for array in (scores, *others))
    for start, stop, piece in chunks(scores, LARGEST_PIECE if direct else CHUNK_ROWS, limits, _KINDS):
        yield slice(start, stop), _read_only(piece)


def _tables(grid: Grid) -> tuple[Any, ...]:
    # A table of bytes leaves the first-level cache to the rows.
    kind = code_type(grid.cuts.shape[0])
    table = grid.first.astype(kind)
    comparing = grid.depth <= 2 and grid.share > COMPARED_SHARE
    if not comparing:
        table[grid.shared] = np.iinfo(kind).max
    first = np.append(grid.first, grid.cuts.shape[0]).astype(np.int64)
    return _parameters(grid), table, first, grid.padded, comparing


def assign_into(scores: NDArray[Any], cuts: FloatArray, grid: Grid, out: IndexArray) -> None:
    """Write the cell of each score to `out`."""
    cells = np.arange(cuts.shape[0] + 1)
    tables = _tables(grid)
    for part, piece in _pieces(scores):
        _loops.look_up(piece, cells, *tables, out[part])


def look_up_into(
    scores: NDArray[Any], cuts: FloatArray, grid: Grid, table: FloatArray, out: FloatArray, limits: Limits | None
) -> None:
    """Write the table's entry for each score to `out`."""
    tables = _tables(grid)
    values = table.copy()
    for part, piece in _pieces(scores, limits=limits):
        _loops.look_up(piece, values, *tables, out[part])


def count(scores: NDArray[Any], labels: NDArray[np.uint8], cuts: FloatArray, grid: Grid) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell."""
    n_cells = cuts.shape[0] + 1
    *tables, comparing = _tables(grid)
    loop = _loops.count_compared if comparing else _loops.count
    totals = np.zeros(LANES * 2 * n_cells, np.int64)
    for part, piece in _pieces(scores, labels):
        loop(piece, _read_only(np.ascontiguousarray(labels[part])), *tables, totals)
    result = totals.reshape(LANES, n_cells, 2).sum(axis=0)
    return result.sum(axis=1), result[:, 1].copy()


def histogram(scores: NDArray[Any], grid: Grid) -> IntArray:
    """Rows with each key."""
    totals = np.zeros(grid.size, np.int64)
    for _, piece in _pieces(scores):
        part = np.zeros(grid.size, np.uint32)
        _loops.histogram(piece, _parameters(grid), part)
        totals += part
    return totals


def extract(scores: NDArray[Any], grid: Grid, marks: NDArray[np.uint16]) -> tuple[FloatArray, NDArray[Any]]:
    """Scores whose key is marked, and their marks."""
    small = marks.astype(np.uint8) if int(marks.max()) < 0xFF else marks
    most = min(scores.shape[0], LARGEST_PIECE) + 1  # the loop also writes one row that is not kept
    kept, found = np.empty(most), np.empty(most, np.uint16)
    values: list[FloatArray] = []
    codes: list[NDArray[Any]] = []
    for _, piece in _pieces(scores):
        rows = int(_loops.extract(piece, _parameters(grid), small, kept, found))
        values.append(kept[:rows].copy())
        codes.append(found[:rows].copy())
    return np.concatenate(values), np.concatenate(codes)
