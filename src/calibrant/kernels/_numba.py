"""The per-row work, compiled: serial loops that release the GIL.

Importing this module imports numba.

The loops take contiguous float64 or float32 scores, in blocks that stay in the cache, and the
numbers of a grid. A score's key gives the number of cuts with a smaller key. The one or two cuts
that share the key are compared without a branch, so the processor has nothing to predict. All input
arrays are contiguous read-only views, so nothing is compiled again for writable or strided input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels._grid import MAGIC, POSITIVE_BITS, CutKeys
from calibrant.kernels._numpy import CHUNK_ROWS, Limits, OutsideLimitsError, chunks
from calibrant.kernels.hash import GOLDEN, ROUNDS

BLOCK = 1024  # rows whose keys are computed together, so that the compiler can vectorise
# histograms filled in turn: otherwise consecutive equal scores would wait for each other's store
LANES = 2
ONE = np.uint64(1)
FINITE = (-float(np.finfo(np.float64).max), float(np.finfo(np.float64).max))
# cuts that may share a key if rows are counted at knots: they are compared one by one
KNOT_DEPTH = 8
# rows per call if nothing is copied: enough that the call overhead vanishes, few enough that counts
# fit in 32 bits
LARGEST_PIECE = 1 << 20

_KINDS = (np.dtype(np.float64), np.dtype(np.float32))
_SHIFTS = tuple(np.uint64(shift) for shift, _ in ROUNDS)
_FACTORS = tuple(np.uint64(factor) for _, factor in ROUNDS)


def _compiled(function: Callable[..., Any]) -> Any:
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:
        # If no folder is writable there is no cache, and each process compiles for itself.
        return numba.njit(nogil=True, error_model="numpy")(function)


@_compiled
def _load(scores: Any, start: Any, numbers: Any, limits: Any, block: Any, keys: Any) -> Any:
    """Load a block of scores as doubles, and compute their keys.

    Return how many there are, and whether all are within the limits.
    """
    kind, shift, offset, low, high, scale, top = numbers
    part = scores[start : start + BLOCK]
    rows = part.shape[0]
    inside = True
    if kind == POSITIVE_BITS:
        # Without the mask the compiler has to guard against shifts by 64 bits or more.
        bits = block.view(np.int64)
        shift = shift & 63
        for row in range(rows):
            block[row] = part[row]
            inside &= (limits[0] <= part[row]) & (part[row] <= limits[1])
            keys[row] = min(max((bits[row] >> shift) - offset, 0), top)
    else:
        last = np.int32(top)
        for row in range(rows):
            block[row] = part[row]
            inside &= (limits[0] <= part[row]) & (part[row] <= limits[1])
            clipped = min(max(block[row], low), high)
            keys[row] = min(np.int32(((clipped - low) * scale + MAGIC) - MAGIC), last)
    return np.uint64(rows), inside


@_compiled
def _count(scores: Any, labels: Any, numbers: Any, first: Any, padded: Any, totals: Any) -> None:
    """Count the rows of each cell and label."""
    n_codes = np.uint64(totals.shape[0] // LANES)
    keys = np.empty(BLOCK, np.uint32)
    block = np.empty(BLOCK)
    for start in range(0, scores.shape[0], BLOCK):
        rows, _ = _load(scores, start, numbers, FINITE, block, keys)
        part = labels[start : start + BLOCK]
        for row in range(rows):
            score = block[row]
            cell = np.uint64(first[np.uint64(keys[row])])
            cell += np.uint64(score >= padded[cell]) + np.uint64(score >= padded[cell + ONE])
            keys[row] = np.uint64(2) * cell + np.uint64(part[row])
        for row in range(rows):
            totals[(row & np.uint64(LANES - 1)) * n_codes + np.uint64(keys[row])] += 1


@_compiled
def _look_up(
    scores: Any,
    values: Any,
    numbers: Any,
    first: Any,
    padded: Any,
    alone: Any,
    limits: Any,
    out: Any,
) -> Any:
    """Look up the value of each score's cell; stop and return False at a score outside the limits.

    `alone` says that no two cuts share a key.
    """
    keys = np.empty(BLOCK, np.uint32)
    block = np.empty(BLOCK)
    for start in range(0, scores.shape[0], BLOCK):
        rows, inside = _load(scores, start, numbers, limits, block, keys)
        if not inside:
            return False
        part = out[start : start + BLOCK]
        if alone:
            for row in range(rows):
                cell = np.uint64(first[np.uint64(keys[row])])
                part[row] = values[cell + np.uint64(block[row] >= padded[cell])]
        else:
            for row in range(rows):
                score = block[row]
                cell = np.uint64(first[np.uint64(keys[row])])
                part[row] = values[
                    cell + np.uint64(score >= padded[cell]) + np.uint64(score >= padded[cell + ONE])
                ]
    return True


@_compiled
def _histogram(scores: Any, numbers: Any, totals: Any) -> None:
    """Count the rows of each key."""
    keys = np.empty(BLOCK, np.uint32)
    block = np.empty(BLOCK)
    for start in range(0, scores.shape[0], BLOCK):
        rows, _ = _load(scores, start, numbers, FINITE, block, keys)
        for row in range(rows):
            totals[np.uint64(keys[row])] += np.uint32(1)


@_compiled
def _extract(scores: Any, numbers: Any, marks: Any, kept: Any, found: Any) -> Any:
    """Copy out the scores whose keys are marked, with their marks; return how many."""
    keys = np.empty(BLOCK, np.uint32)
    block = np.empty(BLOCK)
    places = np.empty(BLOCK + 1, np.uint32)
    filled = np.uint64(0)
    for start in range(0, scores.shape[0], BLOCK):
        rows, _ = _load(scores, start, numbers, FINITE, block, keys)
        n_places = np.uint64(0)
        for row in range(rows):
            places[n_places] = row
            n_places += np.uint64(marks[np.uint64(keys[row])] != 0)
        for place in range(n_places):
            chosen = np.uint64(places[place])
            kept[filled] = block[chosen]
            found[filled] = marks[np.uint64(keys[chosen])]
            filled += ONE
    return filled


@_compiled
def _scramble(keys: Any, start: Any, plus: Any, hashes: Any) -> None:
    """Write the hashes of a block of keys, as in `calibrant.params.random.mixed`."""
    part = keys[start : start + BLOCK]
    for row in range(part.shape[0]):
        z = part[row] + plus
        z = (z ^ (z >> _SHIFTS[0])) * _FACTORS[0]
        z = (z ^ (z >> _SHIFTS[1])) * _FACTORS[1]
        hashes[row] = (z ^ (z >> _SHIFTS[2])) * _FACTORS[2]


@_compiled
def _count_knots(
    scores: Any,
    labels: Any,
    row_keys: Any,
    plus: Any,
    numbers: Any,
    first: Any,
    padded: Any,
    table: Any,
    n_labels: Any,
    totals: Any,
) -> None:
    """Count the rows of each place, half and label, as in `calibrant.cells.knots`."""
    keys = np.empty(BLOCK, np.uint32)
    block = np.empty(BLOCK)
    hashes = np.empty(BLOCK, np.uint64)
    for start in range(0, scores.shape[0], BLOCK):
        rows, _ = _load(scores, start, numbers, FINITE, block, keys)
        part = labels[start : start + BLOCK]
        _scramble(row_keys, start, plus, hashes)
        for row in range(rows):
            score = block[row]
            cell = np.uint64(first[np.uint64(keys[row])])
            while score >= padded[cell]:  # rarely: few scores share their key with a cut
                cell += ONE
            share = (score - table[cell, 1]) * table[cell, 2]
            # the first 53 bits fit in a signed integer, which is faster to convert
            uniform = np.float64(np.int64(hashes[row] >> np.uint64(11))) * 2.0**-53
            place = np.uint64(table[cell, 0]) + np.uint64(uniform < share)
            half = np.uint64(2) * place + (hashes[row] & ONE)
            keys[row] = half * n_labels + np.uint64(part[row])
        for row in range(rows):
            totals[np.uint64(keys[row])] += 1


def fits(grid: CutKeys | None, names: int, depth: int = 2) -> bool:
    """Return whether the compiled kernels can work with this grid and this number of cells.

    At most `depth` cuts may share a key.
    """
    return grid is not None and grid.depth <= depth and names < 0xFFFF


def _numbers(grid: CutKeys) -> tuple[Any, ...]:
    return grid.kind, grid.shift, grid.offset, grid.low, grid.high, grid.scale, grid.size - 1


def _pieces(scores: NDArray[Any], *others: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Split the scores into pieces, large ones if nothing has to be converted or copied."""
    direct = all(array.flags.c_contiguous for array in (scores, *others))
    for start, stop, piece in chunks(scores, LARGEST_PIECE if direct else CHUNK_ROWS, kinds=_KINDS):
        yield slice(start, stop), _read_only(piece)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def look_up_into(
    scores: NDArray[Any],
    cuts: FloatArray,
    grid: CutKeys,
    table: NDArray[Any],
    out: NDArray[Any],
    limits: Limits | None,
) -> None:
    """Write the table entry of each score to `out`."""
    low, high = limits or FINITE
    ends = (max(low, FINITE[0]), min(high, FINITE[1]))  # infinities are rejected
    first = grid.first.astype(np.uint16)
    values = table.copy()
    for part, piece in _pieces(scores):
        if not _look_up(
            piece, values, _numbers(grid), first, grid.padded, grid.depth == 1, ends, out[part]
        ):
            raise OutsideLimitsError


def cells(
    scores: NDArray[Any], cuts: FloatArray, grid: CutKeys, limits: Limits | None = None
) -> Iterator[tuple[slice, IntArray]]:
    """Yield the rows of each chunk and their cells, in a buffer that the next chunk overwrites."""
    numbers = np.arange(cuts.shape[0] + 1)
    buffer = np.empty(min(scores.shape[0], CHUNK_ROWS), numbers.dtype)
    for start in range(0, scores.shape[0], CHUNK_ROWS):
        rows = slice(start, min(start + CHUNK_ROWS, scores.shape[0]))
        found = buffer[: rows.stop - start]
        look_up_into(scores[rows], cuts, grid, numbers, found, limits)
        yield rows, found


def count(
    scores: NDArray[Any], labels: NDArray[np.uint8], cuts: FloatArray, grid: CutKeys
) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell."""
    n_cells = cuts.shape[0] + 1
    first = grid.first.astype(np.uint16)
    totals = np.zeros(LANES * 2 * n_cells, np.int64)
    for part, piece in _pieces(scores, labels):
        _count(
            piece,
            _read_only(np.ascontiguousarray(labels[part])),
            _numbers(grid),
            first,
            grid.padded,
            totals,
        )
    result = totals.reshape(LANES, n_cells, 2).sum(axis=0)
    return result.sum(axis=1), result[:, 1].copy()


def count_knots(
    scores: NDArray[Any],
    labels: NDArray[Any],
    keys: NDArray[np.uint64],
    key: int,
    grid: CutKeys,
    table: FloatArray,
    shape: tuple[int, int, int],
) -> IntArray:
    """Rows by place, half and label, from the keys of rows and the key of their hashes."""
    first = grid.first.astype(np.uint16)
    totals = np.zeros(shape, np.int64)
    for part, piece in _pieces(scores, labels, keys):
        _count_knots(
            piece,
            _read_only(labels[part].astype(np.uint8)),
            _read_only(np.ascontiguousarray(keys[part])),
            np.uint64((key + GOLDEN) % 2**64),
            _numbers(grid),
            first,
            grid.padded,
            table,
            np.uint64(shape[2]),
            totals.reshape(-1),
        )
    return totals


def histogram(scores: NDArray[Any], grid: CutKeys) -> IntArray:
    """Number of rows with each key."""
    totals = np.zeros(grid.size, np.int64)
    for _, piece in _pieces(scores):
        part = np.zeros(grid.size, np.uint32)
        _histogram(piece, _numbers(grid), part)
        totals += part
    return totals


def extract(
    scores: NDArray[Any], grid: CutKeys, marks: NDArray[np.uint16]
) -> tuple[FloatArray, NDArray[Any]]:
    """The scores whose keys are marked, and their marks."""
    most = min(scores.shape[0], LARGEST_PIECE) + 1  # the loop also writes one row that is not kept
    kept = np.empty(most)
    found = np.empty(most, np.uint16)
    values: list[FloatArray] = []
    codes: list[NDArray[Any]] = []
    for _, piece in _pieces(scores):
        rows = int(_extract(piece, _numbers(grid), marks, kept, found))
        values.append(kept[:rows].copy())
        codes.append(found[:rows].copy())
    return np.concatenate(values), np.concatenate(codes)
