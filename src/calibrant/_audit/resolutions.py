"""Regions of a score at several resolutions: all rows, halves, quarters, and so on down to bins or single values."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._audit.cells import Cells
from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.intervals import Interval
from calibrant.intervals._binomial import sidak_level
from calibrant.intervals.non_identical import gap_limits, non_identical
from calibrant.metrics.bins import equal_mass

_ROUNDING = 1e-12  # allowed for rounding in a mean score, at the cost of the proved error


@dataclass(frozen=True, slots=True, eq=False)
class Resolutions:
    """The regions of every resolution, coarse to fine, and what is proved for each.

    Attributes
    ----------
    level : int array of shape (m,)
        Resolution of each region; the region of resolution 0 holds all rows.
    parent : int array of shape (m,)
        The region of the next coarser resolution that contains it; -1 for the first.
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
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.counts[0])

    @property
    def error(self) -> FloatArray:
        """Proved distance between mean score and mean rate of each region; 0 where nothing is proved."""
        return np.maximum(gap_limits(Interval(self.lower, self.upper), self.mean_score)[0] - _ROUNDING, 0.0)

    def largest_possible(self) -> float:
        """Largest distance between mean score and mean rate that is not ruled out, over the finest regions."""
        distance = gap_limits(Interval(self.lower, self.upper), self.mean_score)[1]
        return min(1.0, float(distance[self.level == self.level[-1]].max()) + _ROUNDING)

    def average_error(self) -> float:
        """Proved average error over the rows: the best sum over regions of any resolutions that do not overlap."""
        best = self.counts * self.error
        for level in range(int(self.level[-1]), 0, -1):
            here = np.flatnonzero(self.level == level)
            parts = np.bincount(self.parent[here], best[here], minlength=best.size)
            best = np.maximum(best, parts)
        return float(best[0]) / self.n_rows


def resolve(cells: Cells, n_bins: int, alpha: float) -> Resolutions:
    """Cut the scores at every resolution, and find limits that hold for all regions with probability 1 - alpha.

    Every resolution gets the same share of alpha. Within a resolution the share is divided by Sidak's rule: given the
    scores, labels of different regions are independent. The cuts depend on the scores alone, and equal scores stay
    together, so choosing the cuts costs no part of alpha.
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
                "tail": np.full(first.size, sidak_level(alpha / n_levels, first.size) / 2),
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
    """For every resolution, coarse to fine, the region of each cell. Each region lies within one coarser region."""
    nested = [equal_mass(counts, n_bins)]
    while nested[0][-1] > nested[0][0]:
        nested.insert(0, nested[0] // 2)
    if finite:
        nested.append(np.arange(counts.size))
    sizes = [int(np.count_nonzero(np.diff(cell))) for cell in nested]
    # a resolution with the same regions as the next finer one would use a share of alpha for nothing
    return [cell for cell, size, finer in zip(nested, sizes, [*sizes[1:], -1], strict=True) if size != finer]
