"""Evaluate a piecewise linear curve, with the same sum on every path and so the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray
from calibrant.kernels._numpy import CHUNK_ROWS

LINE = 3
"""Numbers that describe a line: where its cell begins, the value there, and the slope.

Any further columns are offsets for limits.
"""


def values_along(scores: NDArray[Any], cells: IndexArray, lines: FloatArray) -> FloatArray:
    """Value of the curve at scores whose cells are known; with offsets, limits around it.

    Parameters
    ----------
    scores : array of shape (n,), float64 or float32
    cells : array of shape (n,)
        The cell of each score.
    lines : array of shape (m, 3) or (m, 3 + k)
        For each cell: where it begins, the value there, the slope, and k offsets.

    Returns
    -------
    array of shape (n,), or (n, k)
        ``value + slope * (score - start)``; with offsets, its sum with each offset, clipped to [0,
        1].

    Examples
    --------
    >>> values_along(np.array([0.25, 0.75]), np.array([0, 0]), np.array([[0.0, 0.5, 0.25]]))
    array([0.5625, 0.6875])
    """
    out = np.empty(shape_along(scores.shape[0], lines))
    along = Along(lines, scores.shape[0])
    for start in range(0, scores.shape[0], CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        along.write(scores[part], cells[part], out[part])
    return out


def shape_along(rows: int, lines: FloatArray) -> tuple[int, ...]:
    """The shape of the result of `values_along`."""
    n_offsets = lines.shape[1] - LINE
    return (rows, n_offsets) if n_offsets else (rows,)


class Along:
    """Writes values chunk by chunk, with reused buffers."""

    def __init__(self, lines: FloatArray, rows: int) -> None:
        self._columns = [np.ascontiguousarray(column) for column in lines.T[:LINE]]
        self._offsets = np.ascontiguousarray(lines[:, LINE:])
        most = min(rows, CHUNK_ROWS)
        self._cells = np.empty(most, np.intp)
        self._values = np.empty(most)
        self._found = np.empty(most)

    def write(self, scores: NDArray[Any], cells: IndexArray, out: FloatArray) -> None:
        """Write the values, or the limits, of at most `CHUNK_ROWS` rows to `out`."""
        rows = scores.shape[0]
        places = self._cells[:rows]
        places[:] = cells
        start, value, slope = self._columns
        found = self._found[:rows]
        curve = self._values[:rows] if self._offsets.size else out
        np.subtract(scores, start.take(places, out=found, mode="clip"), out=curve)
        np.multiply(curve, slope.take(places, out=found, mode="clip"), out=curve)
        np.add(curve, value.take(places, out=found, mode="clip"), out=curve)
        if self._offsets.size:
            self._offsets.take(places, axis=0, out=out, mode="clip")
            for column in out.T:
                np.add(column, curve, out=column)
            np.clip(out, 0.0, 1.0, out=out)
