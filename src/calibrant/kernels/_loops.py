"""The compiled loops: serial, without the interpreter's lock. Importing this imports numba.

All take contiguous float64 scores with their bits as int64, the parameters of the keys, and for each key the number of
cuts below it or a mark where the score has to be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import overload

from calibrant.kernels._grid import LOWEST_BITS, MAGIC

BLOCK = 256
"""Rows whose keys are computed together, which the compiler turns into vector instructions."""
LANES = 2
"""Histograms filled in turn: equal scores in a row would otherwise wait for each other's store."""
ONE = np.uint64(1)
SMALL_MARK, MARK = np.uint64(0xFF), np.uint64(0xFFFF)
"""Codes of keys shared with a cut, in tables of one and of two bytes: constants, because that saves a fifth."""


def _compiled(function: Callable[..., Any]) -> Any:
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:
        # Where no folder can be written to there is no cache, and each process compiles for itself.
        return numba.njit(nogil=True, error_model="numpy")(function)


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
def count(
    scores: Any, bits: Any, labels: Any, parameters: Any, table: Any, first: Any, padded: Any, totals: Any
) -> None:
    """Add up, for each cell and label, the rows."""
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
def count_compared(
    scores: Any, bits: Any, labels: Any, parameters: Any, table: Any, first: Any, padded: Any, totals: Any
) -> None:
    """As `count`, with every score compared."""
    # Not a branch within `count`: both in one function take a quarter longer.
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
def look_up(
    scores: Any, bits: Any, values: Any, parameters: Any, table: Any, first: Any, padded: Any, comparing: Any, out: Any
) -> None:
    """Value of each score's cell."""
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
def scan(
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
    """Add up the rows of each name, copy out those with odd names, and return how many."""
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
def histogram(scores: Any, bits: Any, parameters: Any, totals: Any) -> None:
    """Add up the rows of each key."""
    top = np.int64(totals.shape[0] - 1)
    keys = np.empty(BLOCK, np.uint32)
    for start in range(0, scores.shape[0], BLOCK):
        stop = min(start + BLOCK, scores.shape[0])
        _fill(scores[start:stop], bits[start:stop], parameters, top, keys)
        for row in range(np.uint64(stop - start)):
            totals[np.uint64(keys[row])] += np.uint32(1)


@_compiled
def extract(scores: Any, bits: Any, parameters: Any, marks: Any, kept: Any, found: Any) -> Any:
    """Copy out the scores whose key is marked, with their marks, and return how many."""
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
