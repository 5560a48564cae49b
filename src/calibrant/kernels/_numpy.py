"""The per-row work: a few vectorised passes over each chunk of rows, with reused
buffers; small chunks fit the cache, large ones are for threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels._grid import CutKeys

Part = TypeVar("Part")
Result = TypeVar("Result")

# one megabyte of keys: larger chunks leave the cache; with smaller ones the calls themselves take a
# tenth of the time
CHUNK_ROWS = 1 << 17
THREAD_ROWS = 10_000_000  # for fewer rows, one thread is as fast as two


Limits: TypeAlias = tuple[float, float]
SHARE_COMPARED = (
    1 / 8
)  # if more rows than this need comparing, comparing all is faster than selecting them
FEW_CUTS = 6  # up to this many cuts, comparing all rows with each is faster than keys
PAIRED_CODES = 64  # up to this many codes, the table of all pairs stays in the cache


class OutsideLimitsError(Exception):
    """A score is not finite, or lies outside the limits."""


def chunks(
    scores: NDArray[Any], limits: Limits | None = None
) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """Yield (start, stop, scores[start:stop] as a contiguous array), reusing one buffer where a
    copy is needed.

    Scores of another dtype become float64.

    With limits, each chunk is checked before it is yielded: checking a chunk in the cache takes
    half the time of a separate pass.
    """
    total = scores.shape[0]
    direct = scores.dtype == np.float64 and scores.flags.c_contiguous and scores.flags.aligned
    buffer = np.empty(0 if direct else min(CHUNK_ROWS, total))
    for start in range(0, total, CHUNK_ROWS):
        stop = min(start + CHUNK_ROWS, total)
        piece = scores[start:stop]
        if limits is not None and not inside(piece, *limits):
            raise OutsideLimitsError
        if not direct:
            np.copyto(buffer[: stop - start], piece)
            piece = buffer[: stop - start]
        yield start, stop, piece


def inside(piece: NDArray[Any], low: float, high: float) -> bool:
    """Whether all entries of a nonempty array are finite and within the limits."""
    if low <= 0.0 <= high and piece[0] >= 0.0 and piece.dtype == np.float64:
        # One pass: read as whole numbers, all NaNs and negative numbers are larger than the others.
        largest = min(high, sys.float_info.max)
        if piece.view(np.uint64).max() <= np.float64(largest).view(np.uint64):
            return True
    if low == -np.inf and high == np.inf:
        return all_finite(piece)
    # Compare as Python floats: numpy would round the limits to float32 for float32 scores.
    smallest = float(piece.min())
    largest = float(piece.max())
    return low <= smallest and largest <= high and np.isfinite(smallest) and np.isfinite(largest)


def all_finite(piece: NDArray[Any]) -> bool:
    """Whether no entry is NaN or infinite."""
    # A sum is the cheapest pass over doubles: it is finite unless an entry is not, or the sum
    # overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(piece.sum()) or np.isfinite(piece).all())


def over_threads(rows: int, threads: int, work: Callable[[slice], Result]) -> list[Result]:
    """Results of `work` on consecutive slices that cover `rows`, in order.

    One slice, unless threads pay off.
    """
    pieces = max(threads, 1) if rows >= THREAD_ROWS else 1
    bounds = [rows * piece // pieces for piece in range(pieces + 1)]
    return in_threads(work, [slice(start, stop) for start, stop in pairwise(bounds)], pieces)


def in_threads(
    work: Callable[[Part], Result], parts: Sequence[Part], threads: int | None = None
) -> list[Result]:
    """Results of `work` on each part, in order; one thread per core unless `threads` says how many.

    >>> in_threads(len, ["a", "bc"])
    [1, 2]
    """
    wanted = min(len(parts), (os.cpu_count() or 1) if threads is None else threads)
    if wanted <= 1:
        return [work(part) for part in parts]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(wanted) as pool:
        return list(pool.map(work, parts))


def first_nonfinite(scores: NDArray[Any]) -> int:
    """Index of the first score that is NaN or infinite, or -1.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> first_nonfinite(np.array([0.1, np.nan]))
    1
    """
    for start in range(0, scores.shape[0], CHUNK_ROWS):
        piece = scores[start : start + CHUNK_ROWS]
        if not all_finite(piece):
            return start + int(np.isfinite(piece).argmin())
    return -1


def cells(
    scores: NDArray[Any], cuts: FloatArray, grid: CutKeys | None, limits: Limits | None = None
) -> Iterator[tuple[slice, IndexArray]]:
    """Yield the rows of each chunk and their cells, in a buffer that the next chunk overwrites."""
    # a number that is neither a cell nor a combined cell and label; small dtypes leave the cache to
    # the rows
    mark = 2 * cuts.shape[0] + 2
    buffer = np.empty(min(scores.shape[0], CHUNK_ROWS), np.min_scalar_type(mark))
    if grid is None:
        for start, stop, piece in chunks(scores, limits):
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
    clip = not grid.reaches(limits)
    for start, stop, piece in chunks(scores, limits):
        own = slice(stop - start)
        yield slice(start, stop), piece, grid.keys(piece, keys[own], work[own], clip=clip)


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
