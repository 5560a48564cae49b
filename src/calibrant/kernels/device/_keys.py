"""Tables by which the fused kernels find a score's cell: small enough for a GPU's shared memory.

As in `calibrant.kernels._grid`, a key is a whole number computed by a function that never decreases, so only cuts with
a score's own key have to be compared with it. Here every key is computed in float32, from scores of either precision:
rounding to float32 never decreases either. The kernels and this file do the same IEEE operations in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray

SIZE = 1 << 13
"""Keys of a table: 32 kB, so that few of them hold a cut and a multiprocessor can keep several copies."""
MOST_CUTS = 1 << 13
"""With more cuts the histograms would not fit a GPU's shared memory beside the table."""
_POINTS = 8
"""Places tried between two cuts to see how many scores would have to be compared."""
_NOT_SIGN = 0x7FFF_FFFF


def as_float32(cuts: FloatArray) -> NDArray[np.float32]:
    """For each cut the smallest float32 that is not below it: float32 scores compare alike with both."""
    with np.errstate(all="ignore"):
        rounded = cuts.astype(np.float32)
        result: NDArray[np.float32] = np.where(rounded < cuts, np.nextafter(rounded, np.float32(np.inf)), rounded)
    return result


@dataclass(frozen=True, slots=True)
class Keys:
    """How to compute a score's key, and what it tells.

    Attributes
    ----------
    cells : for each key the number of cuts with smaller keys, plus 65536 times the number of cuts with this key
    depth : the most cuts that any key has
    linear : whether keys are equal steps in the score, or else in its bits, read as a whole number
    low, scale : of linear keys: key = (score - low) * scale
    shift, offset : of the others: key = (bits >> shift) - offset
    """

    cells: NDArray[np.uint32]
    depth: int
    linear: bool
    low: np.float32
    scale: np.float32
    shift: int
    offset: int


def build(cuts: NDArray[Any]) -> Keys:
    """Of both kinds of keys the one that leaves fewer scores to be compared, were each cell to hold as many.

    Cuts are sorted and may repeat; there is at least one.
    """
    return _build(cuts.tobytes(), cuts.dtype.str, SIZE)


@lru_cache(maxsize=16)
def _build(content: bytes, dtype: str, size: int) -> Keys:
    # Remembered, because building takes a third of a millisecond, and many batches have the same cuts.
    cuts = np.frombuffer(content, dtype)
    with np.errstate(all="ignore"):
        narrow = cuts.astype(np.float32) + np.float32(0)
    bits = _bits(narrow)
    first, last = int(bits[0]), int(bits[-1])
    shift = 1
    while (last >> shift) - (first >> shift) > size - 3:
        shift += 1
    by_bits = _table(narrow, False, np.float32(0), np.float32(0), shift, (first >> shift) - 1, size)
    with np.errstate(all="ignore"):
        scale = np.float32(size - 3) / (narrow[-1] - narrow[0])
        low = narrow[0] - np.float32(1) / scale
    if not (np.isfinite(scale) and np.isfinite(low) and scale > 0):
        return by_bits
    by_steps = _table(narrow, True, low, scale, 1, 0, size)
    return min(by_steps, by_bits, key=lambda keys: _compared(keys, narrow))


def keys_of(keys: Keys, scores: NDArray[np.float32]) -> NDArray[np.int32]:
    """Keys of float32 scores, as the kernels compute them."""
    top = len(keys.cells) - 1
    with np.errstate(all="ignore"):
        if keys.linear:
            steps = (scores - keys.low) * keys.scale
            result: NDArray[np.int32] = np.minimum(np.maximum(steps, np.float32(0)), np.float32(top)).astype(np.int32)
        else:
            result = np.clip((_bits(scores + np.float32(0)) >> keys.shift) - keys.offset, 0, top)
    return result


def _bits(scores: NDArray[np.float32]) -> NDArray[np.int32]:
    """Signed whole numbers in the order of scores without negative zeros."""
    bits = scores.view(np.int32)
    result: NDArray[np.int32] = bits ^ ((bits >> 31) & _NOT_SIGN)
    return result


def _table(
    cuts: NDArray[np.float32], linear: bool, low: np.float32, scale: np.float32, shift: int, offset: int, size: int
) -> Keys:
    blank = Keys(np.zeros(size, np.uint32), 0, linear, low, scale, shift, offset)
    held = np.bincount(keys_of(blank, cuts), minlength=size)
    below = np.cumsum(held) - held
    cells = (below + (held << 16)).astype(np.uint32)
    return Keys(cells, int(held.max()), linear, low, scale, shift, offset)


def _compared(keys: Keys, cuts: NDArray[np.float32]) -> float:
    """Share of points between the cuts that have a cut's key."""
    parts = ((np.arange(_POINTS) + 0.5) / _POINTS)[:, None]
    known = cuts[np.isfinite(cuts)].astype(np.float64)
    points = (known[:-1] * (1 - parts) + known[1:] * parts).astype(np.float32).ravel()
    return float(np.mean(keys.cells[keys_of(keys, points)] >> 16 > 0)) if points.size else 0.0
