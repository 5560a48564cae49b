"""Exact order statistics without a sort: samples say where to look, one pass counts and copies out the few rows there.

After Floyd and Rivest (1975), "Expected time bounds for selection", for many ranks at once. Samples only save time: what
they get wrong is seen in the counts and put right by a second pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels._chunks import chunks
from calibrant.kernels._grid import Grid, build

Scan: TypeAlias = Callable[[NDArray[Any], Grid, IndexArray], tuple[IntArray, FloatArray, NDArray[Any]]]
"""From scores, a grid and a name for each cell: the rows with each name, the scores with odd names, their names."""

SORT_ROWS = 1 << 15
"""Up to so many rows a sort is as fast as anything else."""

STANDARD_DEVIATIONS = 3.3
"""Half-width of the bracket around a rank. A rank outside it costs a second pass, about once in a thousand ranks."""

SORTED_ROWS = 1 << 14
"""Size of the first sample, which is sorted."""

COUNTED_FACTOR = 1.2
"""Size of the second sample, which is counted: it balances the sample's cost and that of the brackets' rows; measured."""

STEPS = 17
"""Edges tried around each rank."""


def order_statistics(scores: NDArray[Any], ranks: IntArray, scan: Scan) -> FloatArray:
    """The scores of the given 1-based ranks."""
    if ranks.shape[0] == 0:
        return np.empty(0)
    wanted, inverse = np.unique(ranks, return_inverse=True)
    return _select(scores, wanted, scan)[inverse]


def _select(scores: NDArray[Any], wanted: IntArray, scan: Scan) -> FloatArray:
    rows = scores.shape[0]
    counted_rows = int((COUNTED_FACTOR * rows * wanted.shape[0]) ** (2 / 3))
    if rows <= SORT_ROWS or 3 * counted_rows > rows:
        return _by_sorting(scores, wanted)
    brackets = _Brackets.around(wanted, scores, counted_rows, scan)
    grid = build(brackets.edges, scores) if brackets.edges.shape[0] else None
    if grid is None:
        return _by_sorting(scores, wanted)
    return _pick(scores, wanted, brackets, *scan(scores, grid, brackets.names))


def _by_sorting(scores: NDArray[Any], ranks: IntArray) -> FloatArray:
    values = scores.astype(np.float64)
    if ranks.shape[0] <= 3:
        values.partition(ranks - 1)
    else:
        values.sort()
    # Zeros of both signs are equal, and which comes first depends on the method: give the positive one.
    result: FloatArray = values[ranks - 1] + 0.0
    return result


def _sample(scores: NDArray[Any], size: int) -> FloatArray:
    """One score from each of `size` equal stretches of rows, at a scattered place, so that no period of the data shows."""
    stretch = scores.shape[0] // size
    index = np.arange(size, dtype=np.int64)
    index = index * stretch + ((index * 2654435761) >> 13) % stretch
    return scores[index].astype(np.float64, copy=False)


class _Brackets:
    """For each wanted rank, an interval of scores that holds it almost surely, as cells between edges.

    Cells of the brackets have odd names: their rows are copied out. A score that repeats in the sample gets a cell of
    its own, which needs no copy: however many rows it has, its value is known.
    """

    def __init__(self, starts: FloatArray, ends: FloatArray, atoms: FloatArray) -> None:
        edges = np.unique(np.concatenate((starts, ends, atoms, _after(atoms))))
        self.edges = edges[np.isfinite(edges)]
        lower = np.concatenate(((-np.inf,), self.edges))
        self.single = np.isin(lower, atoms)
        inside = np.sort(starts).searchsorted(lower, side="right") > np.sort(ends).searchsorted(lower, side="right")
        self.copied = inside & ~self.single
        # Names increase by one where a copied cell begins or ends, else by two: so the copied ones are odd.
        steps = np.where(np.diff(self.copied, prepend=False), 1, 2)
        steps[0] = int(self.copied[0])
        self.names: IndexArray = np.cumsum(steps)

    @classmethod
    def around(cls, wanted: IntArray, scores: NDArray[Any], counted_rows: int, scan: Scan) -> _Brackets:
        """Brackets from two samples: a small one is sorted for edges to try, a larger one is counted between them."""
        rows = scores.shape[0]
        known = np.sort(_sample(scores, min(SORTED_ROWS, rows // 8))) + 0.0
        steps = max(3, min(STEPS, 1024 // wanted.shape[0]))
        positions = _reach(wanted, rows, known.shape[0], np.linspace(-1, 1, steps))
        tried = known[np.clip(np.rint(positions).astype(np.int64), 0, known.shape[0] - 1)]
        atoms = np.unique(tried[1:][tried[1:] == tried[:-1]])
        edges = np.unique(np.concatenate((tried.ravel(), atoms, _after(atoms))))
        edges = edges[np.isfinite(edges)]
        sample = _sample(scores, counted_rows)
        grid = build(edges, sample)
        if grid is None:
            below = np.sort(sample).searchsorted(edges)
        else:
            names = np.arange(0, 2 * edges.shape[0] + 2, 2)
            below = np.cumsum(scan(sample, grid, names)[0][names])[:-1]
        low, high = _reach(wanted, rows, counted_rows, np.array((-1.0, 1.0)))
        padded = np.concatenate(((-np.inf,), edges, (np.inf,)))
        starts = padded[below.searchsorted(low, side="right")]
        ends = padded[below.searchsorted(high, side="left") + 1]
        return cls(starts, ends, atoms)


def _reach(wanted: IntArray, rows: int, size: int, parts: FloatArray) -> FloatArray:
    """Where in a sample of `size` rows the wanted ranks are expected, plus the given parts of the half-width."""
    place = (wanted - 0.5) / rows
    half_width = STANDARD_DEVIATIONS * np.sqrt(size * place * (1 - place)) + 1
    result: FloatArray = place * size + np.outer(parts, half_width)
    return result


def _after(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", under="ignore"):
        result: FloatArray = np.nextafter(values, np.inf)
    return result


def _pick(
    scores: NDArray[Any],
    wanted: IntArray,
    brackets: _Brackets,
    counts: IntArray,
    values: FloatArray,
    codes: NDArray[Any],
) -> FloatArray:
    per_cell = counts[brackets.names]
    reached = np.cumsum(per_cell)
    cells = reached.searchsorted(wanted, side="left")
    local = wanted - (reached - per_cell)[cells]
    order = np.argsort(codes, kind="stable")
    stops = np.cumsum(np.where(brackets.copied, per_cell, 0))
    result = np.empty(wanted.shape)
    for cell in np.unique(cells):
        here = cells == cell
        if brackets.single[cell]:
            result[here] = brackets.edges[cell - 1]
        elif brackets.copied[cell]:
            inside = values[order[stops[cell] - per_cell[cell] : stops[cell]]]
            result[here] = _narrow(inside, local[here])
        else:
            inside = _collect(scores, brackets.edges, int(cell), int(per_cell[cell]))
            result[here] = _narrow(inside, local[here])
    return result + 0.0


def _narrow(values: FloatArray, ranks: IntArray) -> FloatArray:
    """Order statistics of the rows of one bracket, most of which a comparison with two of them rules out."""
    rows = values.shape[0]
    if ranks.shape[0] > 1 or rows < 4096:
        return _by_sorting(values, ranks)
    known = np.sort(values[:: max(8, rows // 2048)])
    low, high = _reach(ranks, rows, known.shape[0], np.array((-1.0, 1.0)))[:, 0]
    lower = known[int(low)] if low >= 0 else -np.inf
    upper = known[int(high) + 1] if high + 1 < known.shape[0] else np.inf
    below = values < lower
    rank = ranks - np.count_nonzero(below)
    inside = values[np.greater(values <= upper, below, out=below)]
    if 1 <= rank[0] <= inside.shape[0]:
        return _by_sorting(inside, rank)
    return _by_sorting(values, ranks)


def _collect(scores: NDArray[Any], edges: FloatArray, cell: int, size: int) -> FloatArray:
    """The scores of one cell."""
    lower = edges[cell - 1] if cell else -np.inf
    upper = edges[cell] if cell < edges.shape[0] else np.inf
    result = np.empty(size)
    filled = 0
    for _, _, piece in chunks(scores):
        found = piece[(piece >= lower) & (piece < upper)]
        result[filled : filled + found.shape[0]] = found
        filled += found.shape[0]
    return result
