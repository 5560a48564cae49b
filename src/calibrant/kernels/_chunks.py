"""Split rows into small chunks that fit the cache and large ones for threads; check every row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import CodeArray

Result = TypeVar("Result")

# one megabyte of keys: larger chunks leave the cache; with smaller ones the calls themselves take a
# tenth of the time
CHUNK_ROWS = 1 << 17
THREAD_ROWS = 10_000_000  # for fewer rows, one thread is as fast as two


Limits: TypeAlias = tuple[float, float]


class OutsideLimitsError(Exception):
    """A score is not finite, or lies outside the limits."""


def chunks(
    scores: NDArray[Any],
    rows: int = CHUNK_ROWS,
    limits: Limits | None = None,
    kinds: Sequence[np.dtype[Any]] = (np.dtype(np.float64),),
) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """Yield (start, stop, scores[start:stop] as a contiguous array), reusing one buffer where a
    copy is needed.

    Scores with a dtype not in `kinds` become float64.

    With limits, each chunk is checked before it is yielded: checking a chunk in the cache takes
    half the time of a separate pass.
    """
    total = scores.shape[0]
    direct = scores.dtype in kinds and scores.flags.c_contiguous and scores.flags.aligned
    buffer = np.empty(0 if direct else min(rows, total))
    for start in range(0, total, rows):
        stop = min(start + rows, total)
        piece = scores[start:stop]
        if limits is not None and not inside(piece, *limits):
            raise OutsideLimitsError
        if not direct:
            np.copyto(buffer[: stop - start], piece)
            piece = buffer[: stop - start]
        yield start, stop, piece


def inside(piece: NDArray[Any], low: float, high: float) -> bool:
    """Whether all entries of a nonempty array are finite and within the limits."""
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
    pieces = threads if rows >= THREAD_ROWS else 1
    if pieces <= 1:
        return [work(slice(0, rows))]
    from concurrent.futures import ThreadPoolExecutor

    bounds = [rows * piece // pieces for piece in range(pieces + 1)]
    slices = [slice(start, stop) for start, stop in pairwise(bounds)]
    with ThreadPoolExecutor(pieces) as pool:
        return list(pool.map(work, slices))


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


def encode(labels: NDArray[Any], negative: Any, positive: Any) -> tuple[CodeArray, int]:
    """Labels of two kinds as 0 and 1.

    Parameters
    ----------
    labels : array of shape (n,), numeric or bool
    negative, positive : scalars
        The two labels.

    Returns
    -------
    codes : array of shape (n,), uint8
        1 where the label equals `positive`. Shares memory with bool or uint8 labels that are 0 and
        1 already.
    first_bad : int
        Index of the first label that is neither of the two, or -1. If there is one, the codes are
        meaningless.

    Examples
    --------
    >>> import numpy as np
    >>> encode(np.array([-1, 1, 1]), -1, 1)
    (array([0, 1, 1], dtype=uint8), -1)
    """
    small = labels.dtype == np.bool_ or labels.dtype == np.uint8
    if small and negative == 0 and positive == 1:
        codes: CodeArray = labels.view(np.uint8)
        if labels.dtype == np.bool_ or labels.shape[0] == 0 or codes.max() <= 1:
            return codes, -1
        return codes, int((codes > 1).argmax())
    codes = np.empty(labels.shape, np.uint8)
    known = np.empty(min(labels.shape[0], CHUNK_ROWS), np.bool_)
    bad = -1
    for start in range(0, labels.shape[0], CHUNK_ROWS):
        piece = labels[start : start + CHUNK_ROWS]
        part = codes[start : start + CHUNK_ROWS].view(np.bool_)
        good = known[: piece.shape[0]]
        np.equal(piece, positive, out=part)
        np.equal(piece, negative, out=good)
        np.logical_or(good, part, out=good)
        if bad < 0 and not good.all():
            bad = start + int(good.argmin())
    return codes, bad
