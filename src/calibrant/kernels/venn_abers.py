"""Isotonic fits with one row added, for every position of that row: the inner loop of Venn-Abers,
in linear time.

One function does the work in exact integers. It runs unchanged on Python's integers, or compiled by
numba, the extra ``[fast]``, if that is installed and there are enough distinct scores to repay
loading it. Both give bit-identical results.

Notes
-----
Draw the points P_i = (rows up to the i-th distinct score, positives up to it), P_0 = (0, 0), the
cumulative sum diagram. The isotonic fit is the slope of its greatest convex minorant (Barlow,
Bartholomew, Bremner and Brunk 1972). Adding a row with label 1 at the j-th score moves P_j,
P_{j+1}, ... by (1, 1); it is the same to move P_0 .. P_{j-1} by (-1, -1) and leave the others. So
p1 at the j-th score is the slope of the bridge, the common tangent from below of the points moved
and the points left. The slope never decreases in j, which has three consequences, each a line of
algebra:

- a moved point above the present bridge will never be an end of a later one, so one left end is all
  there is to keep;
- the last point moved lies on or below the present bridge whenever it was the bridge's right end,
  so it becomes the left end, and a point that was hidden above the hull on the right stays above
  the new bridge;
- a score between two distinct ones has the p1 of the upper of the two, and one above all has 1.

Hence one hull of the points, built from the right, is only ever shortened from its left: O(n) in
all. The algorithm is that of Vovk, Petej and Fedorova (2015), "Large-scale probabilistic predictors
with and without guarantees of validity". p0 is 1 - p1 of the mirrored problem: scores reversed,
labels exchanged.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels import Implementation, uses_numba

__all__ = ["multiprobabilities"]

# distinct scores from which on numba pays off: it saves 1.5 microseconds each, and takes some
# tenths of a second to load
NUMBA_SCORES = 50_000
# up to this many rows, a product of two differences, and a difference of two such products, fit in
# 64 bits
_EXACT_ROWS = 2**31 - 1


def bridge_slopes(x: Any, y: Any, stack: Any, rise: Any, run: Any) -> None:
    """Rise and run of the bridge for each position of an added positive row.

    Plain loops, so that numba can compile them.

    `x` and `y` hold P_0 .. P_m; `stack` has m + 1 entries; `rise` and `run`, of m entries, receive
    the result.
    """
    m = len(x) - 1
    stack[0] = m
    top = 0
    for i in range(m - 1, 0, -1):
        xi = x[i]
        yi = y[i]
        while top > 0:
            t = stack[top]
            u = stack[top - 1]
            if (y[t] - yi) * (x[u] - xi) < (y[u] - yi) * (x[t] - xi):
                break
            top -= 1
        top += 1
        stack[top] = i
    left_x = -1
    left_y = -1
    # start with a vertical line: the first point always lies below it
    dx = 0
    dy = 1
    for j in range(m):
        moved_x = x[j] - 1
        moved_y = y[j] - 1
        if j == 0 or (moved_y - left_y) * dx < dy * (moved_x - left_x):
            left_x = moved_x
            left_y = moved_y
            t = stack[top]
            dx = x[t] - left_x
            dy = y[t] - left_y
            while top > 0:
                u = stack[top - 1]
                next_x = x[u] - left_x
                next_y = y[u] - left_y
                if dy * next_x < next_y * dx:
                    break
                top -= 1
                dx = next_x
                dy = next_y
        rise[j] = dy
        run[j] = dx


@lru_cache(maxsize=1)
def _compiled() -> Any:
    import numba

    return numba.njit(nogil=True, cache=True)(bridge_slopes)


def _cumulative(counts: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _slopes(counts: IntArray, positives: IntArray, use_numba: bool) -> tuple[IntArray, IntArray]:
    m = counts.shape[0]
    x = _cumulative(counts)
    y = _cumulative(positives)
    if use_numba:
        stack = np.empty(m + 1, np.int64)
        rise = np.empty(m, np.int64)
        run = np.empty(m, np.int64)
        _compiled()(x, y, stack, rise, run)
        return rise, run
    lists = [0] * (m + 1), [0] * m, [0] * m
    bridge_slopes(x.tolist(), y.tolist(), *lists)
    return np.array(lists[1], np.int64), np.array(lists[2], np.int64)


def multiprobabilities(
    counts: IntArray, positives: IntArray, *, implementation: Implementation = None
) -> tuple[FloatArray, FloatArray]:
    """Isotonic fit at each distinct score after adding one row there with label 0, and with label
    1.

    Parameters
    ----------
    counts, positives : int arrays of shape (m,)
        Rows and positive rows at each distinct score, in increasing order of score; every count is
        at least 1.
    implementation : {"numpy", "numba"}, optional
        Forces one, for tests and benchmarks.

    Returns
    -------
    p0, p1 : arrays of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> p0, p1 = multiprobabilities(np.ones(6, int), np.array([0, 1, 0, 1, 0, 1]))
    >>> p0.round(3).tolist(), p1.round(3).tolist()
    ([0.0, 0.333, 0.333, 0.4, 0.4, 0.5], [0.5, 0.6, 0.6, 0.667, 0.667, 1.0])
    """
    compiled = (
        uses_numba(counts.shape[0], NUMBA_SCORES, implementation)
        and int(counts.sum()) < _EXACT_ROWS
    )
    rise, run = _slopes(counts, positives, compiled)
    fall, span = _slopes(counts[::-1], (counts - positives)[::-1], compiled)
    # run - rise is exact, so a small p0 is as accurate as a small p1
    return ((span - fall) / span)[::-1], rise / run
