"""The per-row work with numpy alone: a few vectorised passes over each chunk, into buffers that are reused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.kernels._chunks import CHUNK_ROWS, Limits, chunks
from calibrant.kernels._grid import Grid

# up to so many codes two rows are counted as one number, and the table of pairs still fits the first-level cache
PAIR_CODES = 64
DENSE = 8  # with more than one row in so many to be compared, comparing all of them is faster than picking those out
FEW_CUTS = 6  # up to so many cuts, comparing with each is faster than keys


def code_type(largest: int) -> type[np.unsignedinteger[Any]]:
    """Smallest unsigned type that holds codes up to `largest` and one more value, which marks rows to be compared."""
    if largest < 0xFF:
        return np.uint8
    return np.uint16 if largest < 0xFFFF else np.uint32


class Coder:
    """Finds the cells of chunks of scores.

    Parameters
    ----------
    cuts : strictly increasing
    grid : the keys of the cuts, or None to do without
    rows : the longest chunk to come
    largest : the largest number that its buffer of cells has to hold
    """

    def __init__(self, cuts: FloatArray, grid: Grid | None, rows: int, largest: int) -> None:
        kind = code_type(largest)
        self._cuts = cuts
        self._grid = grid
        self._mark = np.iinfo(kind).max
        self._codes = np.empty(rows, kind)
        self._marked = np.empty(rows, np.bool_)
        if grid is not None:
            self._first = grid.first.astype(kind)
            self._table = np.where(grid.shared, self._mark, self._first).astype(kind)
            self._references = [grid.padded[grid.first + nth] for nth in range(min(grid.depth, 2))]
            self._keys = np.empty(rows, np.intp)
            self._work = np.empty(rows)

    def cells(self, scores: FloatArray) -> NDArray[Any]:
        """Cells of the scores, in a buffer that the next call overwrites."""
        rows = scores.shape[0]
        codes, marked = self._codes[:rows], self._marked[:rows]
        if self._grid is None:
            return self._without_keys(scores, codes, marked)
        keys = self._grid.keys(scores, self._keys[:rows], self._work[:rows])
        self._table.take(keys, out=codes, mode="clip")
        np.equal(codes, self._mark, out=marked)
        if self._grid.depth <= 2 and DENSE * np.count_nonzero(marked) > rows:
            self._first.take(keys, out=codes, mode="clip")
            for reference in self._references:
                values = reference.take(keys, out=self._work[:rows], mode="clip")
                np.add(codes, np.greater_equal(scores, values, out=marked), out=codes)
            return codes
        hits = marked.nonzero()[0]
        if hits.shape[0]:
            codes[hits] = self._grid.resolve(scores[hits], keys[hits])
        return codes

    def _without_keys(self, scores: FloatArray, codes: NDArray[Any], marked: BoolArray) -> NDArray[Any]:
        if self._cuts.shape[0] > FEW_CUTS:
            codes[:] = self._cuts.searchsorted(scores, side="right")
            return codes
        codes[:] = 0
        for cut in self._cuts:
            np.add(codes, np.greater_equal(scores, cut, out=marked), out=codes)
        return codes


class Histogram:
    """Counts codes, chunk by chunk."""

    def __init__(self, n_codes: int, rows: int) -> None:
        self._n_codes = n_codes
        self._pairs = np.zeros(n_codes * n_codes, np.int64) if n_codes <= PAIR_CODES else None
        self._single = np.zeros(n_codes, np.int64)
        self._buffer = np.empty(rows // 2, np.uint16)

    def add(self, codes: NDArray[Any]) -> None:
        """Count these codes."""
        if self._pairs is None:
            self._single += np.bincount(codes, minlength=self._n_codes)
            return
        half = codes.shape[0] // 2
        buffer = np.multiply(codes[:half], self._n_codes, out=self._buffer[:half], dtype=np.uint16)
        np.add(buffer, codes[half : 2 * half], out=buffer)
        self._pairs += np.bincount(buffer, minlength=self._pairs.shape[0])
        if codes.shape[0] % 2:
            self._single[int(codes[-1])] += 1

    def result(self) -> IntArray:
        """Count of each code so far."""
        if self._pairs is None:
            return self._single
        square = self._pairs.reshape(self._n_codes, self._n_codes)
        result: IntArray = self._single + square.sum(axis=0) + square.sum(axis=1)
        return result


def assign_into(scores: NDArray[Any], cuts: FloatArray, grid: Grid | None, out: IndexArray) -> None:
    """Write the cell of each score to `out`."""
    coder = Coder(cuts, grid, min(scores.shape[0], CHUNK_ROWS), cuts.shape[0])
    for start, stop, piece in chunks(scores):
        out[start:stop] = coder.cells(piece)


def count(
    scores: NDArray[Any], labels: NDArray[np.uint8], cuts: FloatArray, grid: Grid | None
) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell."""
    n_codes = 2 * (cuts.shape[0] + 1)
    rows = min(scores.shape[0], CHUNK_ROWS)
    coder = Coder(cuts, grid, rows, n_codes - 1)
    totals = Histogram(n_codes, rows)
    for start, stop, piece in chunks(scores):
        codes = coder.cells(piece)
        np.add(codes, codes, out=codes)
        totals.add(np.add(codes, labels[start:stop], out=codes))
    table = totals.result().reshape(-1, 2)
    return table.sum(axis=1), table[:, 1].copy()


def look_up_into(
    scores: NDArray[Any], cuts: FloatArray, grid: Grid | None, table: FloatArray, out: FloatArray, limits: Limits | None
) -> None:
    """Write the table's row for each score to `out`."""
    if grid is None or DENSE * grid.share > 1 or np.isnan(table).any():
        coder = Coder(cuts, grid, min(scores.shape[0], CHUNK_ROWS), cuts.shape[0])
        for start, stop, piece in chunks(scores, CHUNK_ROWS, limits):
            table.take(coder.cells(piece), axis=0, out=out[start:stop], mode="clip")
        return
    # From key to value in one step; NaN marks what has to be compared.
    values = table[grid.first]
    values[grid.shared] = np.nan
    for rows, piece, keys in _keyed(scores, grid, limits):
        part = values.take(keys, axis=0, out=out[rows], mode="clip")
        hits = np.isnan(part if part.ndim == 1 else part[:, 0]).nonzero()[0]
        if hits.shape[0]:
            part[hits] = table[grid.resolve(piece[hits], keys[hits])]


def _keyed(
    scores: NDArray[Any], grid: Grid, limits: Limits | None = None
) -> Iterator[tuple[slice, FloatArray, IndexArray]]:
    """Chunks: which rows they are, their scores, and the keys of these, in buffers that the next chunk overwrites."""
    rows = min(scores.shape[0], CHUNK_ROWS)
    keys, work = np.empty(rows, np.intp), np.empty(rows)
    for start, stop, piece in chunks(scores, CHUNK_ROWS, limits):
        yield slice(start, stop), piece, grid.keys(piece, keys[: stop - start], work[: stop - start])


def histogram(scores: NDArray[Any], grid: Grid) -> IntArray:
    """Rows with each key."""
    totals = np.zeros(grid.size, np.int64)
    for _, _, keys in _keyed(scores, grid):
        totals += np.bincount(np.clip(keys, 0, grid.size - 1, out=keys), minlength=grid.size)
    return totals


def extract(scores: NDArray[Any], grid: Grid, marks: NDArray[np.uint16]) -> tuple[FloatArray, NDArray[Any]]:
    """Scores whose key is marked, and their marks."""
    marked = marks > 0
    values: list[FloatArray] = []
    kept: list[NDArray[Any]] = []
    for _, piece, keys in _keyed(scores, grid):
        hits = marked.take(keys, mode="clip").nonzero()[0]
        values.append(piece[hits])
        kept.append(marks.take(keys[hits], mode="clip"))
    return np.concatenate(values), np.concatenate(kept)
