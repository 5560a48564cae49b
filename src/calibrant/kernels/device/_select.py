"""Exact order statistics without a sort: count between cuts taken from a sample, then sort the few rows that matter.

Cuts stand close around the places where a sample expects the wanted scores, and each has a cell of its own, so that
repeated scores are known without looking. The rows of the other cells that hold a wanted rank are copied out and
sorted. Where those are too many, because the sample misled, the digits of the scores are counted instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray
from calibrant.kernels.device._digits import by_digits
from calibrant.kernels.device._plain import pieces

SORT_ROWS = 1 << 23
"""Up to so many rows a sort is faster, and its memory is small."""
COPIED_ROWS = 1 << 24
"""Rows of brackets that are sorted at once, in about 450 MB; if there are more, fewer ranks are found at once."""
MOST_PARTS = 8
"""With this many times more, the sample was of no use."""
SAMPLE_ROWS = 1 << 22
"""Rows that tell where to cut."""
RANKS_AT_ONCE = 127
"""Ranks that are found together: more would need more cuts than are counted fast."""
MOST_CUTS = 4096
"""Cuts around all ranks together, before each gets a cell of its own."""
STEPS = 129
"""Cuts around each rank, if they are not too many."""
STANDARD_DEVIATIONS = 4.0
"""Half-width of the bracket around a rank."""


def order_statistics(ops: Any, scores: Any, ranks: IntArray) -> FloatArray:
    """The scores of the given 1-based ranks."""
    if ranks.shape[0] == 0:
        return np.empty(0)
    wanted, inverse = np.unique(ranks, return_inverse=True)
    if scores.shape[0] <= SORT_ROWS:
        found = _sorted_at(ops, scores, wanted - 1)
    else:
        groups = np.array_split(wanted, -(-wanted.shape[0] // RANKS_AT_ONCE))
        known = ops.sorted_values(_sample(ops, scores))
        found = np.concatenate([_by_brackets(ops, scores, group, known) for group in groups])
    # Zeros of both signs are equal, and which comes first depends on the method: give the positive one.
    result: FloatArray = (found + 0.0)[inverse]
    return result


def _sorted_at(ops: Any, scores: Any, places: IntArray) -> FloatArray:
    result: FloatArray = ops.to_float_array(ops.take(ops.sorted_values(scores), ops.to_device(places, scores)))
    return result


def _sample(ops: Any, scores: Any) -> Any:
    """One score from each of many equal stretches of rows, at scattered places: the rows may be periodic."""
    rows = scores.shape[0]
    size = min(SAMPLE_ROWS, rows)
    index = ops.count_up(size, scores)
    # The stretches cover all rows: of sorted scores, a sample without the last ones would be a wrong one.
    index = index * rows // size + ((index * 2654435761) >> 13) % (rows // size)
    return ops.take(scores, index)


def _by_brackets(ops: Any, scores: Any, wanted: IntArray, known: Any) -> FloatArray:
    """The scores of ranks that increase strictly, with the help of a sorted sample."""
    values = _candidates(ops, scores.shape[0], wanted, known)
    with np.errstate(all="ignore"):
        edges = np.unique(np.concatenate((values, np.nextafter(values, values.dtype.type(np.inf)))))
    edges = edges[np.isfinite(edges)]
    counts = _count(ops, scores, edges)
    reached = np.cumsum(counts)
    cells = reached.searchsorted(wanted, side="left")
    lower = np.concatenate(((-np.inf,), edges))
    result: FloatArray = lower[cells].astype(np.float64)
    open_cells = ~np.isin(lower, values)[cells]  # those that are not one score's own
    if not open_cells.any():
        return result
    chosen = np.unique(cells[open_cells])
    copied = int(counts[chosen].sum())
    if copied > COPIED_ROWS:
        if copied > MOST_PARTS * COPIED_ROWS or wanted.shape[0] == 1:
            return by_digits(ops, scores, wanted)
        halves = np.array_split(wanted, 2)
        return np.concatenate([_by_brackets(ops, scores, half, known) for half in halves])
    inside = _copy_out(ops, scores, edges, chosen, copied)
    here = cells[open_cells]
    before = (np.cumsum(counts[chosen]) - counts[chosen])[chosen.searchsorted(here)]
    local = wanted[open_cells] - (reached - counts)[here]
    result[open_cells] = _sorted_at(ops, inside, before + local - 1)
    return result


def _candidates(ops: Any, rows: int, wanted: IntArray, known: Any) -> NDArray[Any]:
    """Scores of the sample around each wanted rank."""
    size = known.shape[0]
    place = (wanted - 0.5) / rows
    half_width = STANDARD_DEVIATIONS * np.sqrt(size * place * (1 - place)) + 1
    steps = max(3, min(STEPS, MOST_CUTS // wanted.shape[0]))
    positions = np.rint(place * size + np.outer(np.linspace(-1, 1, steps), half_width)).astype(np.int64)
    index = np.unique(np.clip(positions, 0, size - 1))
    return np.unique(ops.to_host(ops.take(known, ops.to_device(index, known))))


def _count(ops: Any, scores: Any, edges: NDArray[Any]) -> IntArray:
    size = edges.shape[0] + 1
    cuts = ops.to_device(edges, scores)
    total = ops.zeros((size,), "int64", scores)
    for part in pieces(scores.shape[0]):
        total += ops.histogram(ops.search(scores[part], cuts), size)
    result: IntArray = ops.to_host(total)
    return result


def _copy_out(ops: Any, scores: Any, edges: NDArray[Any], chosen: NDArray[np.intp], rows: int) -> Any:
    """The rows of the chosen cells, in one array."""
    lower = np.concatenate(((-np.inf,), edges))
    upper = np.concatenate((edges, (np.inf,)))
    ends = np.unique(np.concatenate((lower[chosen], upper[chosen])))
    ends = ends[np.isfinite(ends)].astype(edges.dtype)
    marks = ops.to_device(np.isin(np.concatenate(((-np.inf,), ends)), lower[chosen]), scores)
    cuts = ops.to_device(ends, scores)
    result = ops.empty((rows,), ops.kind(scores), scores)
    stop = 0
    for part in pieces(scores.shape[0]):
        found = scores[part][ops.take(marks, ops.search(scores[part], cuts))]
        start, stop = stop, stop + found.shape[0]
        result[start:stop] = found
    return result
