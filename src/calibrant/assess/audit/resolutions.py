"""Regions of a score at several resolutions: all rows, halves, quarters, and so on down to bins or
single values.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import IndexArray, IntArray
from calibrant.assess.audit.cell_sums import finest_bins, is_finite
from calibrant.assess.audit.findings import AuditTable, Finding
from calibrant.assess.audit.spread import SPREAD_SHARE, Spread, spread_of
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import equal_mass
from calibrant.guarantee.relative import relative_limits
from calibrant.limits.chernoff import lower_mean
from calibrant.limits.error_budget import sidak_level
from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import gap_limits, non_identical

# Shares of alpha: for the limits of all regions, for the average error in the population, for the
# unseen mass. The rest is SPREAD_SHARE.
REGIONS_SHARE = 0.85
AVERAGE_SHARE = 0.05
UNSEEN_SHARE = 0.05
_ROUNDING = 1e-12  # for rounding in a mean score, subtracted from the proved error


@dataclass(frozen=True, slots=True, eq=False)
class Resolutions:
    """The regions of one segment at every resolution, coarse to fine, and what is proved for each.

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
    n_singletons : int
        Number of scores seen once.
    n_apart : int
        Number of regions where the error lies outside its limits if large groups count in full; see
        `audit_units`.
    spread : Spread or None
        Whether the scores are overconfident or underconfident; None if there is nothing to compare.
    """

    table: AuditTable
    parent: IndexArray
    largest_possible: float
    finite: bool
    n_values: int | None
    n_singletons: int
    n_apart: int = 0
    spread: Spread | None = None

    @property
    def lower_bound(self) -> float:
        """The largest proved error."""
        return self.worst.error

    @property
    def worst(self) -> Finding:
        """The largest proved error as a finding; its error is 0 if nothing is proved."""
        found = self.table.finding(int(self.table.error.argmax()))
        if self.spread is not None and self.spread.error > found.error:
            return self.spread.finding(found.segment)
        return found

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.table.counts[0])

    def average_error(self) -> float:
        """Proved average error over the rows: the best sum over nonoverlapping regions of any
        resolutions.
        """
        best = self.table.counts * self.table.error
        level = self.table.resolution
        for finer in range(int(level[-1]), 0, -1):
            here = np.flatnonzero(level == finer)
            best = np.maximum(best, np.bincount(self.parent[here], best[here], minlength=best.size))
        return float(best[0]) / self.n_rows


@dataclass(frozen=True, slots=True, eq=False)
class Proved:
    """What is proved about a score, from the regions of all rows, and then of each segment.

    Attributes
    ----------
    parts : list of Resolutions
        The regions of all rows, and then of each segment.
    averages : sequence of float
        Lower bounds on the average error: of the score, and of the score within segments, if there
        are any.
    unseen_mass : sequence of float
        Upper bounds on the share of the population with unseen score values, or unseen values
        within segments.
    assumptions : tuple of str
        What must be true.
    n_groups, n_set_aside, population
        As in `Audit`.
    """

    parts: list[Resolutions]
    averages: Sequence[float]
    unseen_mass: Sequence[float]
    assumptions: tuple[str, ...]
    n_groups: int = 0
    n_set_aside: int = 0
    population: str = ""


def audit_cells(
    members: list[tuple[Hashable, ScoreCounts]], n_bins: int | str, alpha: float
) -> Proved:
    """What is proved about independent rows, with probability 1 - alpha, from the cells of all rows
    and of each segment.
    """
    share = alpha * REGIONS_SHARE / len(members)
    of_spread = alpha * SPREAD_SHARE / len(members)
    parts = []
    for name, cells in members:
        finest = finest_bins(int(cells.n_rows), n_bins)
        spread = spread_of(cells, of_spread)
        parts.append(replace(resolve(name, cells, finest, share), spread=spread))
    rest = alpha if len(parts) == 1 else alpha / 2.0
    targets = [parts[:1], parts[1:]][: len(parts)]
    errors = [
        float(
            np.average(
                [part.average_error() for part in some],
                weights=[part.n_rows for part in some],
            )
        )
        for some in targets
    ]
    # an error of E[Y | score] is also an error of E[Y | score, segment], because it is an average
    # of those
    averages = []
    unseen = []
    for some, error in zip(targets, np.maximum.accumulate(errors).tolist(), strict=True):
        n_rows = sum(part.n_rows for part in some)
        missing = sum(part.n_singletons for part in some)
        averages.append(lower_mean(error, n_rows, rest * AVERAGE_SHARE))
        deviation = (1.0 + math.sqrt(2.0)) * math.sqrt(
            math.log(2.0 / (rest * UNSEEN_SHARE)) / n_rows
        )
        unseen.append(min(1.0, missing / n_rows + deviation))
    return Proved(
        parts, averages, unseen, ("the rows are independent draws from one distribution",)
    )


def resolve(segment: Hashable, cells: ScoreCounts, n_bins: int, alpha: float) -> Resolutions:
    """Cut the scores at every resolution, and find limits that hold for all regions with
    probability 1 - alpha.

    Every resolution gets the same share of alpha. Within a resolution the share is divided by
    Sidak's rule: given the scores, labels of different regions are independent. The cuts depend on
    the scores alone, and equal scores stay together, so choosing the cuts costs no part of alpha.
    """
    finite = is_finite(cells)
    rows, hits = cells.whole
    total = cells.total
    nested = _nested_cells(rows, n_bins, finite)
    n_levels = len(nested)
    parts: list[dict[str, NDArray[Any]]] = []
    offset = 0
    above = np.full(rows.size, -1)
    for level, cell in enumerate(nested):
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        n_rows = np.add.reduceat(rows, first)
        low = cells.scores[first]
        high = cells.high[np.append(first[1:], rows.size) - 1]
        parts.append(
            {
                "resolution": np.full(first.size, level),
                "parent": above[first],
                "low": low,
                "high": high,
                "counts": n_rows,
                "positives": np.add.reduceat(hits, first),
                "mean_score": np.clip(np.add.reduceat(total, first) / n_rows, low, high),
                "tail": np.full(first.size, sidak_level(alpha / n_levels, first.size) / 2),
            }
        )
        above = offset + np.cumsum(np.diff(cell, prepend=-1) != 0) - 1
        offset += first.size
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    counts = columns["counts"]
    positives = columns.pop("positives")
    mean_score = columns["mean_score"]
    limits = non_identical(
        counts, positives, columns.pop("tail"), columns["low"] == columns["high"]
    )
    nearest, farthest = gap_limits(limits, mean_score)
    relative = relative_limits(limits, Interval(mean_score, mean_score))
    parent = columns.pop("parent")
    finest = columns["resolution"] == columns["resolution"][-1]
    names = np.empty(counts.size, dtype=object)
    names.fill(segment)
    return Resolutions(
        AuditTable(
            segment=names,
            rate=positives / counts,
            lower=limits.lower,
            upper=limits.upper,
            error=np.maximum(nearest - _ROUNDING, 0.0),
            relative_lower=relative.lower,
            relative_upper=relative.upper,
            **columns,
        ),
        parent,
        largest_possible=min(1.0, float(farthest[finest].max()) + _ROUNDING),
        finite=finite,
        n_values=cells.n_values,
        n_singletons=int(np.count_nonzero(rows == 1)),
    )


def _nested_cells(counts: IntArray, n_bins: int, finite: bool) -> list[IntArray]:
    """For every resolution, coarse to fine, the region of each cell.

    Each region lies within one coarser region.
    """
    nested = [equal_mass(counts, n_bins)]
    while nested[0][-1] > nested[0][0]:
        nested.insert(0, nested[0] // 2)
    if finite:
        nested.append(np.arange(counts.size))
    sizes = [int(np.count_nonzero(np.diff(cell))) for cell in nested]
    # a resolution with the same regions as the next finer one would waste a share of alpha
    return [
        cell
        for cell, size, finer in zip(nested, sizes, [*sizes[1:], -1], strict=True)
        if size != finer
    ]
