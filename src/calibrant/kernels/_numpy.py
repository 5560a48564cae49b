"""The per-row work with numpy alone: a few vectorised passes over each chunk, with reused buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels._chunks import CHUNK_ROWS, Limits, chunks
from calibrant.kernels._grid import CutKeys

SHARE_COMPARED = (
    1 / 8
)  # if more rows than this need comparing, comparing all is faster than selecting them
FEW_CUTS = 6  # up to this many cuts, comparing all rows with each is faster than keys
PAIRED_CODES = 64  # up to this many codes, the table of all pairs stays in the cache


def cells(
    scores: NDArray[Any], cuts: FloatArray, grid: CutKeys | None, limits: Limits | None = None
) -> Iterator[tuple[slice, IndexArray]]:
    """Yield the rows of each chunk and their cells, in a buffer that the next chunk overwrites."""
    # a number that is neither a cell nor a combined cell and label; small dtypes leave the cache to
    # the rows
    mark = 2 * cuts.shape[0] + 2
    buffer = np.empty(min(scores.shape[0], CHUNK_ROWS), np.min_scalar_type(mark))
    if grid is None:
        for start, stop, piece in chunks(scores, limits=limits):
            found = buffer[: stop - start]
            if cuts.shape[0] <= FEW_CUTS:
                found[:] = 0
                for cut in cuts:
                    found += piece >= cut
            else:
                found[:] = cuts.searchsorted(piece, side="right")
            yield slice(start, stop), found
        return
    compares_all = grid.share > SHARE_COMPARED and grid.depth <= 2
    table = (grid.first if compares_all else np.where(grid.shared, mark, grid.first)).astype(
        buffer.dtype
    )
    rivals = [grid.padded[grid.first + nth] for nth in range(grid.depth)] if compares_all else []
    values = np.empty(buffer.shape[0] if rivals else 0)
    for rows, piece, keys in _keyed(scores, grid, limits):
        found = table.take(keys, out=buffer[: piece.shape[0]], mode="clip")
        for rival in rivals:
            found += piece >= rival.take(keys, out=values[: piece.shape[0]], mode="clip")
        hits = np.flatnonzero(found == mark) if not rivals else ()
        if len(hits):
            found[hits] = grid.resolve(piece[hits], keys[hits])
        yield rows, found


def _keyed(
    scores: NDArray[Any], grid: CutKeys, limits: Limits | None = None
) -> Iterator[tuple[slice, FloatArray, IndexArray]]:
    """Yield the rows of each chunk, their scores and their keys, in buffers that the next chunk
    overwrites.
    """
    rows = min(scores.shape[0], CHUNK_ROWS)
    keys = np.empty(rows, np.intp)
    work = np.empty(rows)
    for start, stop, piece in chunks(scores, CHUNK_ROWS, limits):
        yield (
            slice(start, stop),
            piece,
            grid.keys(piece, keys[: stop - start], work[: stop - start]),
        )


def count(
    scores: NDArray[Any], labels: NDArray[np.uint8], cuts: FloatArray, grid: CutKeys | None
) -> tuple[IntArray, IntArray]:
    """Rows and positives in each cell."""
    totals = np.zeros(2 * (cuts.shape[0] + 1), np.int64)
    for rows, codes in cells(scores, cuts, grid):
        np.add(codes, codes, out=codes)
        totals += _histogram(np.add(codes, labels[rows], out=codes), totals.shape[0])
    table = totals.reshape(-1, 2)
    return table.sum(axis=1), table[:, 1].copy()


def _histogram(codes: IndexArray, size: int) -> IntArray:
    """Number of rows with each code; with few codes, two rows are counted as one number."""
    half = codes.shape[0] // 2
    if size > PAIRED_CODES or not half:
        return np.bincount(codes, minlength=size)
    pairs = codes[:half].astype(np.uint16) * size + codes[half : 2 * half]
    square = np.bincount(pairs, minlength=size * size).reshape(size, size)
    return np.asarray(
        square.sum(axis=0) + square.sum(axis=1) + np.bincount(codes[2 * half :], minlength=size)
    )


def look_up_into(
    scores: NDArray[Any],
    cuts: FloatArray,
    grid: CutKeys | None,
    table: NDArray[Any],
    out: NDArray[Any],
    limits: Limits | None,
) -> None:
    """Write the table row of each score to `out`."""
    if (
        grid is None
        or grid.share > SHARE_COMPARED
        or table.dtype.kind != "f"
        or np.isnan(table).any()
    ):
        for rows, found in cells(scores, cuts, grid, limits):
            table.take(found, axis=0, out=out[rows], mode="clip")
        return
    # From key to value in one step; NaN marks scores that must be compared.
    values = table[grid.first]
    values[grid.shared] = np.nan
    for rows, piece, keys in _keyed(scores, grid, limits):
        part = values.take(keys, axis=0, out=out[rows], mode="clip")
        hits = np.isnan(part if part.ndim == 1 else part[:, 0]).nonzero()[0]
        if hits.shape[0]:
            part[hits] = table[grid.resolve(piece[hits], keys[hits])]


def histogram(scores: NDArray[Any], grid: CutKeys) -> IntArray:
    """Number of rows with each key."""
    totals = np.zeros(grid.size, np.int64)
    for _, _, keys in _keyed(scores, grid):
        totals += np.bincount(np.clip(keys, 0, grid.size - 1, out=keys), minlength=grid.size)
    return totals


def extract(
    scores: NDArray[Any], grid: CutKeys, marks: NDArray[np.uint16]
) -> tuple[FloatArray, NDArray[Any]]:
    """The scores whose keys are marked, and their marks."""
    marked = marks > 0
    values: list[FloatArray] = []
    kept: list[NDArray[Any]] = []
    for _, piece, keys in _keyed(scores, grid):
        hits = marked.take(keys, mode="clip").nonzero()[0]
        values.append(piece[hits])
        kept.append(marks.take(keys[hits], mode="clip"))
    return np.concatenate(values), np.concatenate(kept)
