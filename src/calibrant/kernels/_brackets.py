"""Order statistics of scores with ties: brackets around the wanted ranks, in which repeated scores stand alone.

Two samples place the brackets; one pass counts and copies out their rows. What the samples get wrong is seen in the
counts and put right by a second pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels._grid import build
from calibrant.kernels._narrow import by_sorting, collect, narrow, reach, sample
from calibrant.kernels._passes import Passes

SORTED_ROWS = 1 << 14
"""Size of the first sample, which is sorted."""

COUNTED_FACTOR = 1.2
"""Size of the second sample, which is counted: balances its cost and that of the brackets' rows; measured."""

STEPS = 17
"""Edges tried around each rank."""


def by_brackets(scores: NDArray[Any], wanted: IntArray, passes: Passes) -> FloatArray:
    """The scores of the given ranks, which increase strictly."""
    rows = scores.shape[0]
    counted_rows = int((COUNTED_FACTOR * rows * wanted.shape[0]) ** (2 / 3))
    if 3 * counted_rows > rows:
        return by_sorting(scores, wanted)
    brackets = _Brackets.around(wanted, scores, counted_rows, passes)
    grid = build(brackets.edges, scores) if brackets.edges.shape[0] else None
    if grid is None:
        return by_sorting(scores, wanted)
    return _pick(scores, wanted, brackets, *passes.scan(scores, grid, brackets.names))


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
    def around(cls, wanted: IntArray, scores: NDArray[Any], counted_rows: int, passes: Passes) -> _Brackets:
        """Brackets from two samples: a small one is sorted for edges to try, a larger one is counted between them."""
        rows = scores.shape[0]
        known = np.sort(sample(scores, min(SORTED_ROWS, rows // 8))) + 0.0
        steps = max(3, min(STEPS, 1024 // wanted.shape[0]))
        positions = reach(wanted, rows, known.shape[0], np.linspace(-1, 1, steps))
        tried = known[np.clip(np.rint(positions).astype(np.int64), 0, known.shape[0] - 1)]
        atoms = np.unique(tried[1:][tried[1:] == tried[:-1]])
        edges = np.unique(np.concatenate((tried.ravel(), atoms, _after(atoms))))
        edges = edges[np.isfinite(edges)]
        drawn = sample(scores, counted_rows)
        grid = build(edges, drawn)
        if grid is None:
            below = np.sort(drawn).searchsorted(edges)
        else:
            names = np.arange(0, 2 * edges.shape[0] + 2, 2)
            below = np.cumsum(passes.scan(drawn, grid, names)[0][names])[:-1]
        low, high = reach(wanted, rows, counted_rows, np.array((-1.0, 1.0)))
        padded = np.concatenate(((-np.inf,), edges, (np.inf,)))
        starts = padded[below.searchsorted(low, side="right")]
        ends = padded[below.searchsorted(high, side="left") + 1]
        return cls(starts, ends, atoms)


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
            result[here] = narrow(inside, local[here])
        else:
            inside = collect(scores, brackets.edges, int(cell), int(per_cell[cell]))
            result[here] = narrow(inside, local[here])
    return result + 0.0
