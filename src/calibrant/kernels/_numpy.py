"""The per-row work with numpy alone: a few vectorised passes over each chunk, into buffers that are reused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels._chunks import CHUNK_ROWS, chunks
from calibrant.kernels._grid import Grid

PAIR_CODES = 64
"""Up to so many codes two rows are counted as one number, and the table of pairs still fits the first-level cache."""


def code_type(largest: int) -> type[np.unsignedinteger[Any]]:
    """Smallest unsigned type that holds codes up to `largest` and one more value, which marks rows to be compared."""
    if largest < 0xFF:
        return np.uint8
    return np.uint16 if largest < 0xFFFF else np.uint32


class Coder:
    """Turns chunks of scores into small codes, one for each cell.

    Parameters
    ----------
    grid : Grid
    names : the code of each cell
    rows : the longest chunk to come
    """

    def __init__(self, grid: Grid, names: IndexArray, rows: int) -> None:
        kind = code_type(int(names[-1]))
        self._grid = grid
        self._names = names.astype(kind)
        self._mark = np.iinfo(kind).max
        self._table = self._names[grid.first]
        self._table[grid.shared] = self._mark
        self._keys = np.empty(rows, np.intp)
        self._work = np.empty(rows)
        self._codes = np.empty(rows, kind)
        self._marked = np.empty(rows, np.bool_)

    def codes(self, scores: FloatArray) -> NDArray[Any]:
        """Codes of the scores, in a buffer that the next call overwrites."""
        rows = scores.shape[0]
        keys = self._grid.keys(scores, self._keys[:rows], self._work[:rows])
        codes = self._table.take(keys, out=self._codes[:rows], mode="clip")
        hits = np.equal(codes, self._mark, out=self._marked[:rows]).nonzero()[0]
        if hits.shape[0]:
            codes[hits] = self._names[self._grid.resolve(scores[hits], keys[hits])]
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

    def total(self) -> IntArray:
        """Count of each code so far."""
        if self._pairs is None:
            return self._single
        square = self._pairs.reshape(self._n_codes, self._n_codes)
        return self._single + square.sum(axis=0) + square.sum(axis=1)


def assign_into(scores: NDArray[Any], cuts: FloatArray, grid: Grid | None, out: IndexArray) -> None:
    """Write the cell of each score to `out`."""
    if grid is None:
        for start, stop, piece in chunks(scores):
            out[start:stop] = cuts.searchsorted(piece, side="right")
        return
    coder = Coder(grid, np.arange(cuts.shape[0] + 1), min(scores.shape[0], CHUNK_ROWS))
    for start, stop, piece in chunks(scores):
        out[start:stop] = coder.codes(piece)


def count(
    scores: NDArray[Any], labels: NDArray[np.uint8], cuts: FloatArray, grid: Grid | None
) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell."""
    n_codes = 2 * (cuts.shape[0] + 1)
    rows = min(scores.shape[0], CHUNK_ROWS)
    if grid is None:
        totals = np.zeros(n_codes, np.int64)
        for start, stop, piece in chunks(scores):
            cells = cuts.searchsorted(piece, side="right")
            totals += np.bincount(2 * cells + labels[start:stop], minlength=n_codes)
    else:
        coder = Coder(grid, np.arange(0, n_codes, 2), rows)
        histogram = Histogram(n_codes, rows)
        for start, stop, piece in chunks(scores):
            codes = coder.codes(piece)
            histogram.add(np.add(codes, labels[start:stop], out=codes))
        totals = histogram.total()
    table = totals.reshape(-1, 2)
    return table.sum(axis=1), table[:, 1].copy()


def look_up_into(scores: NDArray[Any], cuts: FloatArray, grid: Grid | None, table: FloatArray, out: FloatArray) -> None:
    """Write the table's row for each score to `out`."""
    if grid is None:
        for start, stop, piece in chunks(scores):
            table.take(cuts.searchsorted(piece, side="right"), axis=0, out=out[start:stop], mode="clip")
        return
    # NaN marks what has to be compared, so a table that holds NaN itself is slower and still right.
    values = table[grid.first]
    values[grid.shared] = np.nan
    rows = min(scores.shape[0], CHUNK_ROWS)
    key_buffer, work, marked = np.empty(rows, np.intp), np.empty(rows), np.empty(rows, np.bool_)
    for start, stop, piece in chunks(scores):
        length = stop - start
        keys = grid.keys(piece, key_buffer[:length], work[:length])
        part = values.take(keys, axis=0, out=out[start:stop], mode="clip")
        head = part if part.ndim == 1 else part[:, 0]
        hits = np.isnan(head, out=marked[:length]).nonzero()[0]
        if hits.shape[0]:
            part[hits] = table[grid.resolve(piece[hits], keys[hits])]


def scan(scores: NDArray[Any], grid: Grid, names: IndexArray) -> tuple[IntArray, FloatArray, NDArray[Any]]:
    """Count the rows of each code, and copy out the rows whose code is odd.

    Returns
    -------
    counts : for each code up to the largest
    values : the scores with odd codes, in the order of the rows
    codes : their codes
    """
    rows = min(scores.shape[0], CHUNK_ROWS)
    coder = Coder(grid, names, rows)
    n_codes = int(names[-1]) + 1
    histogram = Histogram(n_codes, rows)
    odd = np.empty(rows, np.uint8)
    values: list[FloatArray] = []
    kept: list[NDArray[Any]] = []
    for start, stop, piece in chunks(scores):
        codes = coder.codes(piece)
        histogram.add(codes)
        hits = (np.bitwise_and(codes, 1, out=odd[: stop - start], casting="unsafe")).view(np.bool_).nonzero()[0]
        values.append(piece[hits])
        kept.append(codes[hits])
    return histogram.total(), np.concatenate(values), np.concatenate(kept)
