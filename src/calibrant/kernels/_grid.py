"""From a score to the few cuts it must be compared with, by arithmetic instead of a binary search.

A *key* is an integer computed from a score by a nondecreasing function. If no cut shares a score's
key, the key alone gives the cell; only scores that share their key with a cut are compared with it.
Exactness needs only monotonicity: if score >= cut then key(score) >= key(cut), with any rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray

# kinds of keys
POSITIVE_BITS = (
    0  # from the top bits of the float: equal steps within each power of two; needs cuts >= 0
)
LINEAR = 1  # from equal steps between the outermost cuts

MAGIC = 2.0**52  # added to a float below 2**51, it leaves the nearest integer in the low bits
MAGIC_BITS = int(np.float64(MAGIC).view(np.int64))
MOST_STEPS = 2.0**50  # from zero to a score: so that adding MAGIC rounds to whole steps

RANGE_KEYS = 1 << 14  # for order statistics: fewer keys leave more scores to be copied and sorted
SAMPLE_ROWS = 2048  # rows used to choose a grid: enough to see a share of 1% of the rows
GOOD_SHARE = 1 / 64  # if fewer rows than this must be compared, a faster key beats a finer one
USELESS_SHARE = (
    0.6  # with a larger share of rows in keys of three or more cuts, keys cost more than they save
)


@dataclass(frozen=True, slots=True)
class CutKeys:
    """The keys of one set of cuts.

    Attributes
    ----------
    cuts : strictly increasing, finite, without negative zero
    padded : the cuts followed by two infinities, so that `padded[first + 1]` always exists
    first : for each key, how many cuts have a smaller key
    shared : for each key, whether a cut has it
    depth : the most cuts that any key has
    share : the share of rows that have the key of a cut, estimated from a sample
    """

    cuts: FloatArray
    padded: FloatArray
    first: IndexArray
    shared: NDArray[np.bool_]
    depth: int
    kind: int
    shift: int
    offset: int
    low: float
    high: float
    scale: float
    start: float
    share: float = 0.0

    @property
    def size(self) -> int:
        """Number of keys."""
        return len(self.first)

    def reaches(self, limits: tuple[float, float] | None) -> bool:
        """Whether scores within these limits have keys, without being clipped to the grid."""
        if limits is None:
            return False
        return max(map(abs, limits)) * self.scale < MOST_STEPS

    def keys(
        self, scores: FloatArray, out: IndexArray, work: FloatArray, *, clip: bool = True
    ) -> IndexArray:
        """Write the keys of contiguous `scores` to `out`.

        They may lie outside the grid and must then be clipped. Without `clip`, no score may lie so
        far outside that its key isn't a whole number: see `reaches`.
        """
        if self.kind == POSITIVE_BITS:
            np.right_shift(scores.view(np.int64), self.shift, out=out)
            return np.subtract(out, self.offset, out=out)
        near = np.clip(scores, self.low, self.high, out=work) if clip else scores
        np.multiply(near, self.scale, out=work)
        np.add(work, self.start, out=work)
        return np.subtract(work.view(np.int64), MAGIC_BITS, out=out)

    def sample_keys(self, scores: FloatArray) -> IndexArray:
        """The keys of a few scores, inside the grid."""
        keys = self.keys(scores, np.empty(scores.shape, np.intp), np.empty_like(scores))
        return np.clip(keys, 0, self.size - 1)

    def resolve(self, scores: FloatArray, keys: IndexArray) -> IndexArray:
        """Cells of the given scores, by comparing them with the cuts that share their keys."""
        if self.depth > 2 or scores.shape[0] < 256:
            return self.cuts.searchsorted(scores, side="right")
        cells = self.first.take(keys, mode="clip")
        result = cells + (scores >= self.padded.take(cells))
        if self.depth == 2:
            cells += 1
            result += scores >= self.padded.take(cells)
        return result


def build(cuts: FloatArray, scores: NDArray[Any]) -> CutKeys | None:
    """Choose the keys that leave the fewest of these scores to be compared with cuts.

    Return None if no keys help.

    The choice is based on a sample of the scores. It affects the time taken, never the result.
    Kinds of keys are tried fastest first, until few rows must be compared.
    """
    cuts = cuts + 0.0
    stride = max(1, scores.shape[0] // SAMPLE_ROWS)
    sample = np.ascontiguousarray(scores[::stride], dtype=np.float64)
    sizes = (_grid_size(cuts.shape[0]), 1 << 16)
    best: CutKeys | None = None
    for size in sizes:
        for kind in (POSITIVE_BITS, LINEAR):
            grid = _try(cuts, kind, size)
            if grid is None:
                continue
            share = float(np.mean(grid.shared[grid.sample_keys(sample)])) if sample.size else 0.0
            # If every score ties with a cut, all grids have the same share: take the one with fewer
            # cuts per key.
            if best is None or (share, grid.depth) < (best.share, best.depth):
                best = replace(grid, share=share)
            if share <= GOOD_SHARE:
                return best
        # Ties with a cut remain ties on any grid; a finer grid helps only if keys hold several
        # distinct cuts.
        if best is not None and best.depth <= 2:
            return best
    if best is not None and best.depth > 2 and best.share > USELESS_SHARE:
        return None
    return best


def over_range(low: float, high: float, kind: int) -> CutKeys | None:
    """Return a grid of one kind with about `RANGE_KEYS` keys from `low` to `high`, or None if no such
    grid exists.
    """
    return _try(np.array((low, high)), kind, RANGE_KEYS)


def _grid_size(n_cuts: int) -> int:
    """Enough keys that few scores share one with a cut, and few enough that their tables fit in the
    cache.
    """
    size = 1 << 12
    while size < 128 * n_cuts and size < 1 << 18:
        size *= 2
    return size


def _try(cuts: FloatArray, kind: int, size: int) -> CutKeys | None:
    return _remembered(cuts.tobytes(), kind, size)


@lru_cache(maxsize=8)
def _remembered(cut_bytes: bytes, kind: int, size: int) -> CutKeys | None:
    """Return the grid, cached: data that come in batches are counted over the same cuts again and
    again.
    """
    cuts = np.frombuffer(cut_bytes, dtype=np.float64)
    low = float(cuts[0])
    high = float(cuts[-1])
    shift = 1
    offset = 0
    scale = 1.0
    if kind == LINEAR:
        width = high - low
        if cuts.shape[0] > 1:
            # Python floats: they overflow to infinity without a warning.
            scale = (size - 3) / width if width > 0 else 0.0
        if not (0.0 < scale < np.inf) or not width < np.inf:
            return None
        # Leave one step of room on each side, so that scores outside the cuts do not share the
        # outer cuts' keys.
        low = low - 1.0 / scale
        high = high + 1.0 / scale
        if not (low < cuts[0] and cuts[-1] < high):
            return None
        if not max(-low, high) * scale < MOST_STEPS:
            return None
    else:
        if low < 0:
            return None
        bits = cuts.view(np.int64)
        first = int(bits[0])
        last = int(bits[-1])
        # Drop at least one bit, so that the lowest key minus the offset fits in 64 bits.
        while (last >> shift) - (first >> shift) > size - 3:
            shift += 1
        # Negative zero has the lowest key of all, which must then be the key of zero too.
        offset = max((first >> shift) - 1, 0)
    grid = CutKeys(
        cuts=cuts,
        padded=np.concatenate((cuts, (np.inf, np.inf))),
        first=np.empty(0, np.intp),
        shared=np.empty(0, np.bool_),
        depth=0,
        kind=kind,
        shift=shift,
        offset=offset,
        low=low,
        high=high,
        scale=scale,
        start=MAGIC - low * scale,
    )
    keys = grid.keys(cuts, np.empty(cuts.shape, np.intp), np.empty_like(cuts))
    used = int(keys[-1]) + 2
    per_key = np.bincount(np.clip(keys, 0, used - 1), minlength=used)
    return replace(
        grid, first=np.cumsum(per_key) - per_key, shared=per_key > 0, depth=int(per_key.max())
    )
