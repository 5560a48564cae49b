"""The per-row work compiled: serial loops that release the interpreter's lock. Importing this imports numba.

Every array that comes from outside enters as a contiguous read-only float64 or uint8 view, in pieces where it has to be
converted, so that nothing is compiled again for writable, strided or float32 input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels._chunks import chunks
from calibrant.kernels._grid import LINEAR, LOWEST_BITS, MAGIC, POSITIVE_BITS, Grid
from calibrant.kernels._numpy import code_type

CONVERTED_ROWS = 1 << 15
"""Rows at a time where something has to be converted or copied out: few enough to stay in the cache."""
LARGEST_PIECE = 1 << 20
"""Rows at a time otherwise: enough that a call costs nothing, few enough that their counts fit 32 bits."""
BLOCK = 256
"""Rows whose keys are computed together, which the compiler turns into vector instructions."""
LANES = 2
"""Histograms filled in turn: equal scores in a row would otherwise wait for each other's store."""
GOOD_SHARE = 1 / 256
"""For `build`: all kinds of keys are computed equally fast here, so the finest is the best."""
COMPARED_SHARE = 1 / 32
"""With more rows than this to be compared, comparing all is faster than a branch that cannot be foreseen."""
ONE = np.uint64(1)
SMALL_MARK, MARK = np.uint64(0xFF), np.uint64(0xFFFF)
"""Codes of keys shared with a cut, in tables of one and of two bytes: constants, because that saves a fifth."""


def _compiled(function: Callable[..., Any]) -> Any:
    return numba.njit(nogil=True, cache=True, error_model="numpy")(function)


def _fill(scores: Any, bits: Any, parameters: Any, top: Any, keys: Any) -> Any:
    """Keys of a block of scores. The type of the parameters says which kind of grid, so that loops do not ask."""
    raise NotImplementedError


@overload(_fill)
def _fill_by_kind(scores: Any, bits: Any, parameters: Any, top: Any, keys: Any) -> Any:
    if len(parameters) == 2:

        def positive_bits(scores: Any, bits: Any, parameters: Any, top: Any, keys: Any) -> Any:
            # Without the mask the compiler has to guard against shifts of 64 bits and more.
            shift, offset = parameters[0] & 63, parameters[1]
            for row in range(bits.shape[0]):
                keys[row] = min(max((bits[row] >> shift) - offset, 0), top)

        return positive_bits
    if len(parameters) == 3:

        def linear(scores: Any, bits: Any, parameters: Any, top: Any, keys: Any) -> Any:
            low, high, scale = parameters
            for row in range(scores.shape[0]):
                clipped = min(max(scores[row], low), high)
                keys[row] = min(np.int64(((clipped - low) * scale + MAGIC) - MAGIC), top)

        return linear

    def signed_bits(scores: Any, bits: Any, parameters: Any, top: Any, keys: Any) -> Any:
        shift, offset = parameters[0] & 63, parameters[1]
        for row in range(scores.shape[0]):
            # Negative zero equals zero, so it must have zero's key.
            ordered = 0 if scores[row] == 0.0 else bits[row] ^ ((bits[row] >> 63) & LOWEST_BITS)
            keys[row] = min(max((ordered >> shift) - offset, 0), top)

    return signed_bits


def _parameters(grid: Grid) -> tuple[Any, ...]:
    if grid.kind == POSITIVE_BITS:
        return grid.shift, grid.offset
    if grid.kind == LINEAR:
        return grid.low, grid.high, grid.scale
    return grid.shift, grid.offset, 0, 0


@_compiled
def _resolve(score: Any, key: Any, first: Any, padded: Any) -> Any:
    """Cell of one score that shares its key with cuts."""
    low = first[key]
    high = first[key + ONE]
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
def _compare(scores: Any, table: Any, padded: Any, keys: Any, cells: Any) -> None:
    """Cells of a block of scores, where no key has more than two cuts."""
    for row in range(np.uint64(scores.shape[0])):
        score = scores[row]
        cell = np.uint64(table[np.uint64(keys[row])])
        cells[row] = cell + np.uint64(score >= padded[cell]) + np.uint64(score >= padded[cell + ONE])


@_compiled
def _count(
    scores: Any, bits: Any, labels: Any, parameters: Any, table: Any, first: Any, padded: Any, totals: Any
) -> None:
    top = np.int64(table.shape[0] - 1)
    mark = SMALL_MARK if table.itemsize == 1 else MARK
    n_codes = np.uint64(totals.shape[0] // LANES)
    keys = np.empty(BLOCK, np.uint32)
    for start in range(0, scores.shape[0], BLOCK):
        stop = min(start + BLOCK, scores.shape[0])
        block, part = scores[start:stop], labels[start:stop]
        _fill(block, bits[start:stop], parameters, top, keys)
        for row in range(np.uint64(stop - start)):
            cell = np.uint64(table[np.uint64(keys[row])])
            if cell == mark:
                cell = _resolve(block[row], np.uint64(keys[row]), first, padded)
            lane = (row & np.uint64(LANES - 1)) * n_codes
            totals[lane + np.uint64(2) * cell + np.uint64(part[row])] += 1


@_compiled
def _count_compared(
    scores: Any, bits: Any, labels: Any, parameters: Any, table: Any, first: Any, padded: Any, totals: Any
) -> None:
    # Not a branch within `_count`: both in one function take a quarter longer.
    top = np.int64(table.shape[0] - 1)
    n_codes = np.uint64(totals.shape[0] // LANES)
    keys = np.empty(BLOCK, np.uint32)
    for start in range(0, scores.shape[0], BLOCK):
        stop = min(start + BLOCK, scores.shape[0])
        block, part = scores[start:stop], labels[start:stop]
        _fill(block, bits[start:stop], parameters, top, keys)
        _compare(block, table, padded, keys, keys)
        for row in range(np.uint64(stop - start)):
            lane = (row & np.uint64(LANES - 1)) * n_codes
            totals[lane + np.uint64(2) * np.uint64(keys[row]) + np.uint64(part[row])] += 1


@_compiled
def _look_up(
    scores: Any, bits: Any, values: Any, parameters: Any, table: Any, first: Any, padded: Any, comparing: Any, out: Any
) -> None:
    top = np.int64(table.shape[0] - 1)
    mark = SMALL_MARK if table.itemsize == 1 else MARK
    keys = np.empty(BLOCK, np.uint32)
    for start in range(0, scores.shape[0], BLOCK):
        stop = min(start + BLOCK, scores.shape[0])
        block, part = scores[start:stop], out[start:stop]
        _fill(block, bits[start:stop], parameters, top, keys)
        if comparing:
            _compare(block, table, padded, keys, keys)
            for row in range(np.uint64(stop - start)):
                part[row] = values[np.uint64(keys[row])]
        else:
            for row in range(np.uint64(stop - start)):
                cell = np.uint64(table[np.uint64(keys[row])])
                if cell == mark:
                    cell = _resolve(block[row], np.uint64(keys[row]), first, padded)
                part[row] = values[cell]


@_compiled
def _scan(
    scores: Any,
    bits: Any,
    names: Any,
    parameters: Any,
    table: Any,
    first: Any,
    padded: Any,
    comparing: Any,
    totals: Any,
    kept: Any,
    codes: Any,
) -> Any:
    top = np.int64(table.shape[0] - 1)
    mark = SMALL_MARK if table.itemsize == 1 else MARK
    n_codes = np.uint64(totals.shape[0] // LANES)
    keys = np.empty(BLOCK, np.uint32)
    filled = np.uint64(0)
    for start in range(0, scores.shape[0], BLOCK):
        stop = min(start + BLOCK, scores.shape[0])
        block = scores[start:stop]
        _fill(block, bits[start:stop], parameters, top, keys)
        if comparing:
            _compare(block, table, padded, keys, keys)
        else:
            for row in range(np.uint64(stop - start)):
                cell = np.uint64(table[np.uint64(keys[row])])
                if cell == mark:
                    cell = _resolve(block[row], np.uint64(keys[row]), first, padded)
                keys[row] = cell
        for row in range(np.uint64(stop - start)):
            code = np.uint64(names[np.uint64(keys[row])])
            totals[(row & np.uint64(LANES - 1)) * n_codes + code] += 1
            # Written always and kept if odd: cheaper than a branch that cannot be foreseen.
            kept[filled] = block[row]
            codes[filled] = code
            filled += code & ONE
    return filled


@_compiled
def _histogram(scores: Any, bits: Any, parameters: Any, totals: Any) -> None:
    top = np.int64(totals.shape[0] - 1)
    keys = np.empty(BLOCK, np.uint32)
    for start in range(0, scores.shape[0], BLOCK):
        stop = min(start + BLOCK, scores.shape[0])
        _fill(scores[start:stop], bits[start:stop], parameters, top, keys)
        for row in range(np.uint64(stop - start)):
            totals[np.uint64(keys[row])] += np.uint32(1)


@_compiled
def _extract(scores: Any, bits: Any, parameters: Any, marks: Any, kept: Any, found: Any) -> Any:
    top = np.int64(marks.shape[0] - 1)
    keys = np.empty(BLOCK, np.uint32)
    places = np.empty(BLOCK + 1, np.uint32)
    filled = np.uint64(0)
    for start in range(0, scores.shape[0], BLOCK):
        stop = min(start + BLOCK, scores.shape[0])
        block = scores[start:stop]
        _fill(block, bits[start:stop], parameters, top, keys)
        n_places = np.uint64(0)
        for row in range(np.uint64(stop - start)):
            places[n_places] = row
            n_places += np.uint64(marks[np.uint64(keys[row])] != 0)
        for place in range(n_places):
            chosen = np.uint64(places[place])
            kept[filled] = block[chosen]
            found[filled] = marks[np.uint64(keys[chosen])]
            filled += ONE
    return filled


def fits(grid: Grid | None, names: int) -> bool:
    """Whether the compiled kernels can work with this grid and so many names of cells."""
    return grid is not None and names < 0xFFFF


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
    return LARGEST_PIECE if direct else CONVERTED_ROWS


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
    for part, piece, bits in _pieces(scores, _rows_at_once(scores)):
        _look_up(piece, bits, cells, *tables, out[part])


def look_up_into(scores: NDArray[Any], cuts: FloatArray, grid: Grid, table: FloatArray, out: FloatArray) -> None:
    """Write the table's entry for each score to `out`."""
    tables = _tables(grid)
    values = table.copy()
    for part, piece, bits in _pieces(scores, _rows_at_once(scores)):
        _look_up(piece, bits, values, *tables, out[part])


def count(scores: NDArray[Any], labels: NDArray[np.uint8], cuts: FloatArray, grid: Grid) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell."""
    n_cells = cuts.shape[0] + 1
    *tables, comparing = _tables(grid)
    kernel = _count_compared if comparing else _count
    totals = np.zeros(LANES * 2 * n_cells, np.int64)
    for part, piece, bits in _pieces(scores, _rows_at_once(scores, labels)):
        kernel(piece, bits, _read_only(np.ascontiguousarray(labels[part])), *tables, totals)
    result = totals.reshape(LANES, n_cells, 2).sum(axis=0)
    return result.sum(axis=1), result[:, 1].copy()


def scan(scores: NDArray[Any], grid: Grid, names: IndexArray) -> tuple[IntArray, FloatArray, NDArray[Any]]:
    """Count the rows of each code, and copy out the rows whose code is odd."""
    tables = _tables(grid)
    n_codes = int(names[-1]) + 1
    totals = np.zeros(LANES * n_codes, np.int64)
    found = _Found()
    for _, piece, bits in _pieces(scores, _rows_at_once(scores)):
        found.add(_scan(piece, bits, names, *tables, totals, *found.room(piece.shape[0])))
    return totals.reshape(LANES, n_codes).sum(axis=0), *found.result()


def histogram(scores: NDArray[Any], grid: Grid) -> IntArray:
    """Rows with each key."""
    totals = np.zeros(grid.size, np.int64)
    for _, piece, bits in _pieces(scores, _rows_at_once(scores)):
        part = np.zeros(grid.size, np.uint32)
        _histogram(piece, bits, _parameters(grid), part)
        totals += part
    return totals


def extract(scores: NDArray[Any], grid: Grid, marks: NDArray[np.uint16]) -> tuple[FloatArray, NDArray[Any]]:
    """Scores whose key is marked, and their marks."""
    small = marks.astype(np.uint8) if int(marks.max()) < 0xFF else marks
    found = _Found()
    for _, piece, bits in _pieces(scores, _rows_at_once(scores)):
        found.add(_extract(piece, bits, _parameters(grid), small, *found.room(piece.shape[0])))
    return found.result()


class _Found:
    """Rows copied out, in buffers that grow."""

    def __init__(self) -> None:
        self._values = np.empty(2 * CONVERTED_ROWS)
        self._codes = np.empty(2 * CONVERTED_ROWS, np.uint16)
        self._filled = 0

    def room(self, rows: int) -> tuple[FloatArray, NDArray[np.uint16]]:
        """Space for so many rows more, and one that is written and not kept."""
        needed = self._filled + rows + 1
        if needed > self._values.shape[0]:
            values, codes = np.empty(2 * needed), np.empty(2 * needed, np.uint16)
            values[: self._filled], codes[: self._filled] = self.result()
            self._values, self._codes = values, codes
        return self._values[self._filled :], self._codes[self._filled :]

    def add(self, rows: int) -> None:
        """Keep so many of the rows written since."""
        self._filled += int(rows)

    def result(self) -> tuple[FloatArray, NDArray[np.uint16]]:
        """All rows kept."""
        return self._values[: self._filled], self._codes[: self._filled]
