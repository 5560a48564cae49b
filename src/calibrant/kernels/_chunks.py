"""Rows in pieces: small ones that stay in the cache, and large ones for threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray

Result = TypeVar("Result")

CHUNK_ROWS = 1 << 17
"""One megabyte of keys: larger pieces leave the cache, in smaller ones the calls themselves cost a tenth."""

THREAD_ROWS = 10_000_000
"""Below this many rows one thread is as good as two."""


def chunks(scores: NDArray[Any], rows: int = CHUNK_ROWS) -> Iterator[tuple[int, int, FloatArray]]:
    """Yield (start, stop, scores[start:stop] as contiguous float64), in one reused buffer where they are converted."""
    total = scores.shape[0]
    direct = scores.dtype == np.float64 and scores.flags.c_contiguous and scores.flags.aligned
    buffer = np.empty(0 if direct else min(rows, total))
    for start in range(0, total, rows):
        stop = min(start + rows, total)
        if direct:
            yield start, stop, scores[start:stop]
        else:
            piece = buffer[: stop - start]
            np.copyto(piece, scores[start:stop])
            yield start, stop, piece


def over_threads(rows: int, threads: int, work: Callable[[slice], Result]) -> list[Result]:
    """Results of `work` on consecutive slices that cover `rows`, in order; in one piece unless threads pay."""
    pieces = threads if rows >= THREAD_ROWS else 1
    if pieces <= 1:
        return [work(slice(0, rows))]
    from concurrent.futures import ThreadPoolExecutor

    bounds = [rows * piece // pieces for piece in range(pieces + 1)]
    slices = [slice(start, stop) for start, stop in pairwise(bounds)]
    with ThreadPoolExecutor(pieces) as pool:
        return list(pool.map(work, slices))
