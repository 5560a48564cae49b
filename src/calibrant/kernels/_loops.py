"""The compiled loops: serial, without the interpreter's lock. Importing this imports numba.

All take contiguous float64 or float32 scores, the parameters of the keys, and for each key the number of cuts below it
or a mark where the score has to be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import overload

from calibrant.kernels._grid import MAGIC

BLOCK = 256  # rows whose keys are computed together, which the compiler turns into vector instructions
LANES = 2  # histograms filled in turn: equal scores in a row would otherwise wait for each other's store
ONE = np.uint64(1)
# codes of keys shared with a cut, in tables of one and of two bytes: constants, because that saves a fifth
SMALL_MARK, MARK = np.uint64(0xFF), np.uint64(0xFFFF)


def _compiled(function: Callable[..., Any]) -> Any:
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:
        # Where no folder can be written to there is no cache, and each process compiles for itself.
        return numba.njit(nogil=True, error_model="numpy")(function)


def _fill(scores: Any, parameters: Any, top: Any, keys: Any) -> Any:
    """Keys of a block of scores. The type of the parameters says which kind of grid, so that loops do not ask."""
    raise NotImplementedError


@overload(_fill)
def _fill_by_kind(scores: Any, parameters: Any, top: Any, keys: Any) -> Any:
    if len(parameters) == 2:

        def positive_bits(scores: Any, parameters: Any, top: Any, keys: Any) -> Any:
            # Without the mask the compiler has to guard against shifts of 64 bits and more.
            bits, shift, offset = scores.view(np.int64), parameters[0] & 63, parameters[1]
            for row in range(bits.shape[0]):
                keys[row] = min(max((bits[row] >> shift) - offset, 0), top)

        return positive_bits

    def linear(scores: Any, parameters: Any, top: Any, keys: Any) -> Any:
        low, high, scale = parameters
        for row in range(scores.shape[0]):
            clipped = min(max(scores[row], low), high)
            keys[row] = min(np.int64(((clipped - low) * scale + MAGIC) - MAGIC), top)

    return linear


def _load(scores: Any, start: Any, buffer: Any) -> Any:
    """The next block of scores as doubles."""
    raise NotImplementedError


@overload(_load)
def _load_by_type(scores: Any, start: Any, buffer: Any) -> Any:
    if scores.dtype == numba.float64:

        def shared(scores: Any, start: Any, buffer: Any) -> Any:
            return scores[start : start + BLOCK]

        return shared

    def converted(scores: Any, start: Any, buffer: Any) -> Any:
        part = scores[start : start + BLOCK]
        for row in range(part.shape[0]):
            buffer[row] = part[row]
        return buffer[: part.shape[0]]

    return converted


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
def _compare(scores: Any, rows: Any, table: Any, padded: Any, keys: Any) -> None:
    """Replace the keys of a block of scores by cells, where no key has more than two cuts."""
    for row in range(np.uint64(rows)):
        score = scores[row]
        cell = np.uint64(table[np.uint64(keys[row])])
        keys[row] = cell + np.uint64(score >= padded[cell]) + np.uint64(score >= padded[cell + ONE])


@_compiled
def count(scores: Any, labels: Any, parameters: Any, table: Any, first: Any, padded: Any, totals: Any) -> None:
    """Add up, for each cell and label, the rows."""
    top = np.int64(table.shape[0] - 1)
    mark = SMALL_MARK if table.itemsize == 1 else MARK
    n_codes = np.uint64(totals.shape[0] // LANES)
    keys, buffer = np.empty(BLOCK, np.uint32), np.empty(BLOCK)
    for start in range(0, scores.shape[0], BLOCK):
        block = _load(scores, start, buffer)
        rows = block.shape[0]
        part = labels[start : start + rows]
        _fill(block, parameters, top, keys)
        for row in range(np.uint64(rows)):
            cell = np.uint64(table[np.uint64(keys[row])])
            if cell == mark:
                cell = _resolve(block[row], np.uint64(keys[row]), first, padded)
            lane = (row & np.uint64(LANES - 1)) * n_codes
            totals[lane + np.uint64(2) * cell + np.uint64(part[row])] += 1


@_compiled
def count_compared(scores: Any, labels: Any, parameters: Any, table: Any, first: Any, padded: Any, totals: Any) -> None:
    """As `count`, with every score compared."""
    # Not a branch within `count`: both in one function take a quarter longer.
    top = np.int64(table.shape[0] - 1)
    n_codes = np.uint64(totals.shape[0] // LANES)
    keys, buffer = np.empty(BLOCK, np.uint32), np.empty(BLOCK)
    for start in range(0, scores.shape[0], BLOCK):
        block = _load(scores, start, buffer)
        rows = block.shape[0]
        part = labels[start : start + rows]
        _fill(block, parameters, top, keys)
        _compare(block, rows, table, padded, keys)
        for row in range(np.uint64(rows)):
            lane = (row & np.uint64(LANES - 1)) * n_codes
            totals[lane + np.uint64(2) * np.uint64(keys[row]) + np.uint64(part[row])] += 1


@_compiled
def look_up(
    scores: Any, values: Any, parameters: Any, table: Any, first: Any, padded: Any, comparing: Any, out: Any
) -> None:
    """Value of each score's cell."""
    top = np.int64(table.shape[0] - 1)
    mark = SMALL_MARK if table.itemsize == 1 else MARK
    keys, buffer = np.empty(BLOCK, np.uint32), np.empty(BLOCK)
    for start in range(0, scores.shape[0], BLOCK):
        block = _load(scores, start, buffer)
        rows = block.shape[0]
        part = out[start : start + rows]
        _fill(block, parameters, top, keys)
        if comparing:
            _compare(block, rows, table, padded, keys)
            for row in range(np.uint64(rows)):
                part[row] = values[np.uint64(keys[row])]
        else:
            for row in range(np.uint64(rows)):
                cell = np.uint64(table[np.uint64(keys[row])])
                if cell == mark:
                    cell = _resolve(block[row], np.uint64(keys[row]), first, padded)
                part[row] = values[cell]


@_compiled
def histogram(scores: Any, parameters: Any, totals: Any) -> None:
    """Add up the rows of each key."""
    top = np.int64(totals.shape[0] - 1)
    keys, buffer = np.empty(BLOCK, np.uint32), np.empty(BLOCK)
    for start in range(0, scores.shape[0], BLOCK):
        block = _load(scores, start, buffer)
        rows = block.shape[0]
        _fill(block, parameters, top, keys)
        for row in range(np.uint64(rows)):
            totals[np.uint64(keys[row])] += np.uint32(1)


@_compiled
def extract(scores: Any, parameters: Any, marks: Any, kept: Any, found: Any) -> Any:
    """Copy out the scores whose key is marked, with their marks, and return how many."""
    top = np.int64(marks.shape[0] - 1)
    keys, buffer = np.empty(BLOCK, np.uint32), np.empty(BLOCK)
    places = np.empty(BLOCK + 1, np.uint32)
    filled = np.uint64(0)
    for start in range(0, scores.shape[0], BLOCK):
        block = _load(scores, start, buffer)
        rows = block.shape[0]
        _fill(block, parameters, top, keys)
        n_places = np.uint64(0)
        for row in range(np.uint64(rows)):
            places[n_places] = row
            n_places += np.uint64(marks[np.uint64(keys[row])] != 0)
        for place in range(n_places):
            chosen = np.uint64(places[place])
            kept[filled] = block[chosen]
            found[filled] = marks[np.uint64(keys[chosen])]
            filled += ONE
    return filled
