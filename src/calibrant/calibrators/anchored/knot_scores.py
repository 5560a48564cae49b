"""Where the knots of a curve are: chosen by pilot rows and by the edges of regions, never by a
counted row.
"""

from itertools import pairwise

import numpy as np

from calibrant._typing import FloatArray
from calibrant.cells.score_partition import ScorePartition

CELLS = 24
"""Cells of each region."""
_FEW_CELLS = 12  # where rows are fewer than this:
_FEW_ROWS = 1_000
_NEXT_TO_ZERO = 2.0**-200  # in place of 0: some databases refuse products that underflow
_BEYOND = (
    0.1,
    0.5,
    2.0,
)  # widths of the pilot's range, beyond its ends, at which scores without bounds have knots


def cells_of_regions(n_rows: int) -> int:
    """How many cells a region has, of so many rows in all."""
    return CELLS if n_rows >= _FEW_ROWS else _FEW_CELLS


def knot_scores(
    part: ScorePartition, scores: FloatArray, values: FloatArray, n_cells: int
) -> FloatArray:
    """Scores between the edges of regions at which curves bend.

    Parameters
    ----------
    part : ScorePartition
        The regions of one segment.
    scores, values : float arrays of shape (n,)
        Distinct scores of pilot rows, increasing, each as often as it was seen, and a first curve
        at them.
    n_cells : int
        Cells of each region.

    Notes
    -----
    In each region knots are at equal steps of the mean of two shares: of pilot rows below the
    score, and of the first curve's movement below it. So a cell has few rows, or a small rise.
    Where pilot scores are tied, knots are at these scores. Scores in [0, 1] have knots at both
    ends; others have some beyond those of pilot rows.
    """
    if not scores.size:
        return np.empty(0)
    distinct, rows = np.unique(scores, return_counts=True)
    at = values[np.searchsorted(scores, distinct)]
    rise = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(at)))])
    share = (np.cumsum(rows) - rows / 2.0) / scores.size + rise
    ends = np.concatenate([[-np.inf], part.cuts, [np.inf]])
    found = [_outer(distinct[0], distinct[-1])]
    is_tied = distinct.size < scores.size
    for low, high in pairwise(ends.tolist()):
        first, last = np.searchsorted(distinct, [low, high])
        if is_tied:
            found.append(_values_between(distinct[first:last], share[first:last], n_cells))
        else:
            found.append(_scores_between(distinct, share, low, high, n_cells))
    return np.concatenate(found)


def _outer(low: float, high: float) -> FloatArray:
    """Knots beyond the scores of pilot rows."""
    if low >= 0.0 and high <= 1.0:
        return np.array([_NEXT_TO_ZERO, low, high, 1.0])
    width = high - low
    beyond = np.array(_BEYOND) * (width if width > 0.0 else 1.0)
    return np.concatenate([low - beyond, [low, high], high + beyond])


def _values_between(values: FloatArray, share: FloatArray, n_cells: int) -> FloatArray:
    """Some of the scores of pilot rows in a region, at about equal steps."""
    if values.size <= n_cells + 1:
        return values
    wanted = np.linspace(share[0], share[-1], n_cells + 1)
    nearest = np.abs(share[:, None] - wanted).argmin(axis=0)
    return np.asarray(values[np.unique(nearest)])


def _scores_between(
    distinct: FloatArray, share: FloatArray, low: float, high: float, n_cells: int
) -> FloatArray:
    """Scores of a region at equal steps, between those of pilot rows too."""
    low = max(low, distinct[0])
    high = min(high, distinct[-1])
    if low >= high:
        return np.empty(0)
    begin, end = np.interp([low, high], distinct, share)
    wanted = np.linspace(begin, end, n_cells + 1)
    return np.interp(wanted[1:-1], share, distinct)
