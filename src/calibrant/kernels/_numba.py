"""The per-row work compiled: serial loops that release the interpreter's lock. Importing this imports numba.

Every array that comes from outside enters as a contiguous read-only float64 or uint8 view, in pieces where it has to be
converted, so that nothing is compiled again for writable, strided or float32 input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels._chunks import chunks
from calibrant.kernels._grid import LINEAR, LOWEST_BITS, MAGIC, POSITIVE_BITS, Grid

Function = TypeVar("Function", bound=Callable[..., Any])

CONVERTED_ROWS = 1 << 15
"""Rows at a time where something has to be converted or copied out: few enough to stay in the cache."""
LANES = 4
"""Histograms filled in turn: equal scores in a row would otherwise wait for each other's store."""
MARK = 0xFFFF
"""Code of a key that is shared with a cut, so that the score has to be compared."""


def _compiled(function: Function) -> Function:
    compiled: Function = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return compiled


def _key(score: Any, bits: Any, parameters: Any, top: Any) -> Any:
    """Key of a score, by the kind of its grid: the type of the parameters says which, so that loops do not ask."""
    raise NotImplementedError


@overload(_key)  # type: ignore[untyped-decorator]
def _key_of_kind(score: Any, bits: Any, parameters: Any, top: Any) -> Any:
    if len(parameters) == 2:

        def positive_bits(score: Any, bits: Any, parameters: Any, top: Any) -> Any:
            # Without the mask the compiler has to guard against shifts of 64 bits and more.
            key = (bits >> (parameters[0] & 63)) - parameters[1]
            return np.uint64(min(max(key, 0), top))

        return positive_bits
    if len(parameters) == 3:

        def linear(score: Any, bits: Any, parameters: Any, top: Any) -> Any:
            low, high, scale = parameters
            clipped = min(max(score, low), high)
            return np.uint64(min(np.int64(((clipped - low) * scale + MAGIC) - MAGIC), top))

        return linear

    def signed_bits(score: Any, bits: Any, parameters: Any, top: Any) -> Any:
        ordered = 0 if score == 0.0 else bits ^ ((bits >> 63) & LOWEST_BITS)
        return np.uint64(min(max((ordered >> (parameters[0] & 63)) - parameters[1], 0), top))

    return signed_bits


def _parameters(grid: Grid) -> tuple[Any, ...]:
    if grid.kind == POSITIVE_BITS:
        return grid.shift, grid.offset
    if grid.kind == LINEAR:
        return grid.low, grid.high, grid.scale
    return grid.shift, grid.offset, 0, 0


@_compiled
def _resolve(score: Any, key: Any, first: Any, padded: Any) -> Any:
    low = first[key]
    high = first[key + np.uint64(1)]
    while high - low > 4:
        middle = (low + high) // 2
        if score >= padded[middle]:
            low = middle + 1
        else:
            high = middle
    while low < high and score >= padded[low]:
        low += 1
    return np.uint64(low)


@_compiled
def _count(
    scores: Any, all_bits: Any, labels: Any, parameters: Any, table: Any, first: Any, padded: Any, totals: Any
) -> None:
    top = np.int64(table.shape[0] - 1)
    n_codes = np.uint64(totals.shape[0] // LANES)
    for row in range(np.uint64(scores.shape[0])):
        key = _key(scores[row], all_bits[row], parameters, top)
        cell = np.uint64(table[key])
        if cell == MARK:
            cell = _resolve(scores[row], key, first, padded)
        lane = (row & np.uint64(LANES - 1)) * n_codes
        totals[lane + np.uint64(2) * cell + np.uint64(labels[row])] += 1


@_compiled
def _look_up(
    scores: Any, all_bits: Any, values: Any, parameters: Any, table: Any, first: Any, padded: Any, out: Any
) -> None:
    top = np.int64(table.shape[0] - 1)
    for row in range(np.uint64(scores.shape[0])):
        key = _key(scores[row], all_bits[row], parameters, top)
        cell = np.uint64(table[key])
        if cell == MARK:
            cell = _resolve(scores[row], key, first, padded)
        out[row] = values[cell]


@_compiled
def _scan(
    scores: Any,
    all_bits: Any,
    names: Any,
    parameters: Any,
    table: Any,
    first: Any,
    padded: Any,
    totals: Any,
    kept: Any,
    codes: Any,
) -> Any:
    top = np.int64(table.shape[0] - 1)
    n_codes = np.uint64(totals.shape[0] // LANES)
    filled = np.uint64(0)
    for row in range(np.uint64(scores.shape[0])):
        score = scores[row]
        key = _key(score, all_bits[row], parameters, top)
        code = np.uint64(table[key])
        if code == MARK:
            code = np.uint64(names[_resolve(score, key, first, padded)])
        totals[(row & np.uint64(LANES - 1)) * n_codes + code] += 1
        # Written always and kept if odd: cheaper than a branch that cannot be foreseen.
        kept[filled] = score
        codes[filled] = code
        filled += code & np.uint64(1)
    return filled


def fits(grid: Grid | None, names: int) -> bool:
    """Whether the compiled kernels can work with this grid and so many names of cells."""
    return grid is not None and names < MARK


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _pieces(scores: NDArray[Any], rows: int) -> Iterator[tuple[slice, NDArray[Any], NDArray[Any]]]:
    for start, stop, piece in chunks(scores, rows):
        yield slice(start, stop), _read_only(piece), _read_only(piece.view(np.int64))


def _rows_at_once(*arrays: NDArray[Any]) -> int:
    """All of them where nothing has to be converted."""
    scores = arrays[0]
    direct = scores.dtype == np.float64 and all(array.flags.c_contiguous for array in arrays)
    return max(1, scores.shape[0]) if direct else CONVERTED_ROWS


def _tables(grid: Grid, names: IndexArray) -> tuple[Any, ...]:
    table = names.astype(np.uint16)[grid.first]
    table[grid.shared] = MARK
    first = np.append(grid.first, grid.cuts.shape[0]).astype(np.int64)
    return _parameters(grid), table, first, grid.padded


def assign_into(scores: NDArray[Any], cuts: FloatArray, grid: Grid, out: IndexArray) -> None:
    """Write the cell of each score to `out`."""
    cells = np.arange(cuts.shape[0] + 1)
    tables = _tables(grid, cells)
    for part, piece, bits in _pieces(scores, _rows_at_once(scores)):
        _look_up(piece, bits, cells, *tables, out[part])


def look_up_into(scores: NDArray[Any], cuts: FloatArray, grid: Grid, table: FloatArray, out: FloatArray) -> None:
    """Write the table's entry for each score to `out`."""
    tables = _tables(grid, np.arange(cuts.shape[0] + 1))
    values = table.copy()
    for part, piece, bits in _pieces(scores, _rows_at_once(scores)):
        _look_up(piece, bits, values, *tables, out[part])


def count(
    scores: NDArray[Any], labels: NDArray[np.uint8], cuts: FloatArray, grid: Grid
) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell."""
    n_cells = cuts.shape[0] + 1
    tables = _tables(grid, np.arange(n_cells))
    totals = np.zeros(LANES * 2 * n_cells, np.int64)
    for part, piece, bits in _pieces(scores, _rows_at_once(scores, labels)):
        _count(piece, bits, _read_only(np.ascontiguousarray(labels[part])), *tables, totals)
    result = totals.reshape(LANES, n_cells, 2).sum(axis=0)
    return result.sum(axis=1), result[:, 1].copy()


def scan(scores: NDArray[Any], grid: Grid, names: IndexArray) -> tuple[IntArray, FloatArray, NDArray[Any]]:
    """Count the rows of each code, and copy out the rows whose code is odd."""
    tables = _tables(grid, names)
    n_codes = int(names[-1]) + 1
    totals = np.zeros(LANES * n_codes, np.int64)
    kept, codes = np.empty(CONVERTED_ROWS + 1), np.empty(CONVERTED_ROWS + 1, np.uint16)
    parts: list[FloatArray] = []
    part_codes: list[NDArray[Any]] = []
    for _, piece, bits in _pieces(scores, CONVERTED_ROWS):
        filled = _scan(piece, bits, names, *tables, totals, kept, codes)
        parts.append(kept[:filled].copy())
        part_codes.append(codes[:filled].copy())
    return totals.reshape(LANES, n_codes).sum(axis=0), np.concatenate(parts), np.concatenate(part_codes)
