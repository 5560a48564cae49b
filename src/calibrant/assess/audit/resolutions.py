"""Regions of a score at several resolutions: all rows, halves, quarters, and so on down to bins or
single values. What is shown about them is joined here, whatever the limits rest on.

The rows of a segment are entries in increasing order of their scores. `PlainEvidence` has cells of
independent rows, `UnitEvidence` has rows with weights or groups. They differ in how regions may be
cut, and in which limits hold. How regions nest, the columns of the table, and how alpha is shared is
the same.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import IndexArray, IntArray
from calibrant.assess.audit.findings import AuditTable, Finding
from calibrant.cells.score_counts import ScoreCounts
from calibrant.limits.interval import Interval

# Shares of alpha: for the limits of all regions, for the spread of the scores, for the average
# error in the population, for the unseen mass.
REGIONS_SHARE = 0.85
SPREAD_SHARE = 0.05
AVERAGE_SHARE = 0.05
UNSEEN_SHARE = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Resolutions:
    """The regions of one segment at every resolution, coarse to fine, and what is shown for each.

    Attributes
    ----------
    table : AuditTable
        The regions; the one at resolution 0 contains all rows.
    parent : int array of shape (m,)
        The region of the next coarser resolution that contains each region; -1 for the first.
    largest_possible : float
        Largest distance between mean score and mean rate that is not ruled out, over the finest
        regions.
    finite : bool
        Whether the finest regions are single score values.
    n_values : int or None
        Number of distinct scores; None if there are more than were counted.
    spread : Finding or None
        Whether the scores are overconfident or underconfident; None if there is nothing to compare.
    """

    table: AuditTable
    parent: IndexArray
    largest_possible: float
    finite: bool
    n_values: int | None
    spread: Finding | None

    @classmethod
    def of(
        cls,
        segment: Hashable,
        regions: dict[str, NDArray[Any]],
        rates: Interval,
        errors: Interval,
        relative: Interval,
        rounding: float,
        *,
        finite: bool,
        n_values: int | None,
        spread: Finding | None,
    ) -> Self:
        """What limits on the mean rate of each region show, on its distance from the mean score,
        and on their ratio. `rounding` is that of the distance.
        """
        resolution = regions["resolution"]
        names = np.empty(resolution.size, dtype=object)
        names.fill(segment)
        columns = {name: regions[name] for name in regions.keys() - {"parent", "positives"}}
        table = AuditTable(
            segment=names,
            lower=rates.lower,
            upper=rates.upper,
            error=np.maximum(np.maximum(errors.lower, -errors.upper) - rounding, 0.0),
            relative_lower=relative.lower,
            relative_upper=relative.upper,
            **columns,
        )
        farthest = np.maximum(np.abs(errors.lower), np.abs(errors.upper))
        most = float(farthest[resolution == resolution[-1]].max())
        possible = min(1.0, most + rounding)
        return cls(table, regions["parent"], possible, finite, n_values, spread)

    @property
    def worst(self) -> Finding:
        """The largest error shown as a finding; its error is 0 if nothing is guaranteed."""
        found = self.table.finding(int(self.table.error.argmax()))
        return found if self.spread is None or self.spread.error <= found.error else self.spread

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.table.counts[0])

    def average_error(self) -> float:
        """Average error shown over the rows: the best sum over nonoverlapping regions of any
        resolutions.
        """
        best = self.table.counts * self.table.error
        level = self.table.resolution
        for finer in range(int(level[-1]), 0, -1):
            here = np.flatnonzero(level == finer)
            best = np.maximum(best, np.bincount(self.parent[here], best[here], minlength=best.size))
        return float(best[0]) / self.n_rows


def finest_bins(n_rows: int, n_bins: int | str) -> int:
    """The number of bins at the finest resolution."""
    return 2 ** int(np.log2(n_rows) / 3) if isinstance(n_bins, str) else min(n_bins, n_rows)


def nested_regions(
    entries: ScoreCounts, rows: IntArray, levels: Sequence[IndexArray]
) -> dict[str, NDArray[Any]]:
    """What the regions of all resolutions contain, with the region that each lies in, its parent.

    `rows` are the numbers of rows of the entries. `levels` has the region of each entry, coarse to
    fine, or -1; each region lies within one coarser region.
    """
    parts: list[dict[str, NDArray[Any]]] = []
    offset = 0
    above = np.full(rows.size, -1)
    columns = (rows, entries.counts, entries.positives, entries.total, entries.scores, entries.high)
    for level, region in enumerate(levels):
        inside = region >= 0
        used = slice(None) if inside.all() else np.flatnonzero(inside)
        is_first = np.diff(region[used], prepend=-1) != 0
        first = np.flatnonzero(is_first)
        *summed, scores, highest = (column[used] for column in columns)
        counts, weight, positives, total = (np.add.reduceat(column, first) for column in summed)
        low = scores[first]
        high = highest[np.append(first[1:], highest.size)[: first.size] - 1]
        parts.append(
            {
                "resolution": np.full(first.size, level),
                "parent": above[used][first],
                "low": low,
                "high": high,
                "counts": counts,
                "positives": positives,
                "mean_score": np.clip(total / weight, low, high),
                "rate": positives / weight,
            }
        )
        above = np.full(rows.size, -1)
        above[used] = offset + np.cumsum(is_first) - 1
        offset += first.size
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
