"""One score seen at several resolutions: all rows, halves, quarters, and so on down to bins or to single values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._audit.cells import Cells
from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.intervals import Interval
from calibrant.intervals.non_identical import gap_limits, non_identical, sidak_tail

_ROUNDING = 1e-12  # of a mean score; certified errors give it away


@dataclass(frozen=True, slots=True, eq=False)
class Resolutions:
    """The regions of every resolution, coarse to fine, and what is proved of each.

    Attributes
    ----------
    level : int array of shape (m,)
        Resolution of each region; 0 holds all rows.
    parent : int array of shape (m,)
        Which region of the resolution above holds it; -1 for the first.
    low, high : float arrays of shape (m,)
        Smallest and largest score seen in it.
    counts, positives : int arrays of shape (m,)
        Rows and positive rows.
    mean_score : float array of shape (m,)
        Mean score of its rows.
    lower, upper : float arrays of shape (m,)
        Limits for the mean of E[Y | score] over its rows, all at once.
    finite : bool
        Whether the finest regions are single score values.
    n_values : int or None
        Distinct scores; None for more than were counted.
    n_singletons : int
        Scores seen once.
    """

    level: IntArray
    parent: IndexArray
    low: FloatArray
    high: FloatArray
    counts: IntArray
    positives: IntArray
    mean_score: FloatArray
    lower: FloatArray
    upper: FloatArray
    finite: bool
    n_values: int | None
    n_singletons: int

    @property
    def interval(self) -> Interval:
        """The limits of all regions."""
        return Interval(self.lower, self.upper)

    @property
    def error(self) -> FloatArray:
        """Certified distance between mean score and mean rate of each region; 0 where nothing is proved."""
        return np.maximum(gap_limits(self.interval, self.mean_score)[0] - _ROUNDING, 0.0)

    @property
    def largest_possible(self) -> FloatArray:
        """Largest distance between mean score and mean rate that is not ruled out."""
        return np.minimum(gap_limits(self.interval, self.mean_score)[1] + _ROUNDING, 1.0)

    def average_error(self) -> float:
        """Certified average error over the rows: the best sum over regions of any resolutions that do not overlap."""
        best = self.counts * self.error
        for level in range(int(self.level[-1]), 0, -1):
            here = np.flatnonzero(self.level == level)
            parts = np.bincount(self.parent[here], best[here], minlength=best.size)
            best = np.maximum(best, parts)
        return float(best[0]) / float(self.counts[0])


def resolve(cells: Cells, n_bins: int, alpha: float) -> Resolutions:
    """Cut the scores at every resolution, and find limits that hold for all regions with probability 1 - alpha.

    Every resolution gets the same share of alpha, within a resolution by Sidak: given the scores, labels of
    different regions are independent. The cuts are functions of the scores alone, ranks moved to where no tie is
    torn apart, so nothing has to be paid for having chosen them.
    """
    nested = _nested_cells(cells.counts, n_bins, cells.finite)
    n_levels = len(nested)
    parts: list[dict[str, NDArray[Any]]] = []
    offset, above = 0, np.full(cells.counts.size, -1)
    for level, cell in enumerate(nested):
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        n_rows = np.add.reduceat(cells.counts, first)
        low, high = cells.low[first], cells.high[np.append(first[1:], cells.counts.size) - 1]
        parts.append(
            {
                "level": np.full(first.size, level),
                "parent": above[first],
                "low": low,
                "high": high,
                "counts": n_rows,
                "positives": np.add.reduceat(cells.positives, first),
                "mean_score": np.clip(np.add.reduceat(cells.total, first) / n_rows, low, high),
                "tail": np.full(first.size, sidak_tail(alpha / n_levels, first.size)),
            }
        )
        above = offset + np.cumsum(np.diff(cell, prepend=-1) != 0) - 1
        offset += first.size
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    limits = non_identical(
        columns["counts"], columns["positives"], columns.pop("tail"), columns["low"] == columns["high"]
    )
    return Resolutions(
        **columns,
        lower=limits.lower,
        upper=limits.upper,
        finite=cells.finite,
        n_values=cells.n_values,
        n_singletons=int(np.count_nonzero(cells.counts == 1)),
    )


def _nested_cells(counts: IntArray, n_bins: int, finite: bool) -> list[IntArray]:
    """For every resolution the region of each cell, coarse to fine; each lies within one of the coarser."""
    n_rows, n_cells = int(counts.sum()), counts.size
    middle = np.cumsum(counts) - counts / 2.0
    finest = np.minimum((middle * (n_bins / n_rows)).astype(np.int64), n_bins - 1)
    nested = [finest]
    while nested[0][-1] > nested[0][0]:
        nested.insert(0, nested[0] // 2)
    if finite:
        nested.append(np.arange(n_cells))
    sizes = [int(np.count_nonzero(np.diff(cell))) for cell in nested]
    # a resolution whose regions are those of the next finer one would be paid for twice
    return [cell for cell, size, finer in zip(nested, sizes, [*sizes[1:], -1], strict=True) if size != finer]
