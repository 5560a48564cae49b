"""What has to be known of every row before the kernels run, in about the time of one read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import CodeArray
from calibrant.kernels._chunks import CHUNK_ROWS


def first_nonfinite(scores: NDArray[Any]) -> int:
    """Index of the first NaN or infinity, or -1."""
    # A sum is the cheapest pass over doubles: it is finite unless a score is not, or it overflows.
    summed = scores.dtype == np.float64 and scores.flags.c_contiguous
    finite = np.empty(min(scores.shape[0], CHUNK_ROWS), np.bool_)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, scores.shape[0], CHUNK_ROWS):
            piece = scores[start : start + CHUNK_ROWS]
            if summed and np.isfinite(piece.sum()):
                continue
            good = np.isfinite(piece, out=finite[: piece.shape[0]])
            if not good.all():
                return start + int(good.argmin())
    return -1


def encode(labels: NDArray[Any], negative: Any, positive: Any) -> tuple[CodeArray, int]:
    """Codes 0 and 1, and the index of the first label that is neither of the two, or -1."""
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
