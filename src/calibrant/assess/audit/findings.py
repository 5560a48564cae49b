"""The findings of an audit, as numbers and as text.

Regions of a score at several resolutions: all rows, halves, quarters, and so on down to bins or
single values. What is shown about them is joined here, whatever the limits rest on.

The rows of a segment are entries in increasing order of their scores. `PlainEvidence` has cells of
independent rows, `UnitEvidence` has rows with weights or groups. They differ in how regions may be
cut, and in which limits hold. How regions nest, the columns of the table, and how alpha is shared is
the same.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.assess.subgroups.findings import TOO_HIGH, TOO_LOW
from calibrant.cells.score_counts import ScoreCounts
from calibrant.limits.interval import Interval
from calibrant.text import numbers
from calibrant.text.result import ColumnTable
from calibrant.text.result_table import columns_by_name

NO_EVIDENCE = "no sign of error"
OVERCONFIDENT = "overconfident"
UNDERCONFIDENT = "underconfident"
_NUMBERS = (
    "low",
    "high",
    "error",
    "mean_score",
    "rate",
    "relative_lower",
    "relative_upper",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Scores that are shown to be wrong, and the direction of the error.

    Attributes
    ----------
    segment : object
        The segment; None for all rows.
    low, high : float
        Range of scores.
    direction : str
        "scores too low" or "scores too high", for a range of scores; "overconfident" or
        "underconfident", for the lowest and the highest scores together: too extreme, or not
        extreme enough.
    error : float
        Some score in the range is off by at least this much: from E[Y | score], or from E[Y |
        score, segment].
    count : int
        Number of rows in the range.
    mean_score, rate : float
        Mean score and observed rate of these rows.
    relative_lower, relative_upper : float
        Limits on the true rate of these rows divided by their mean score; NaN if nothing is known.
    """

    segment: Hashable
    low: float
    high: float
    direction: str
    error: float
    count: int
    mean_score: float
    rate: float
    relative_lower: float = np.nan
    relative_upper: float = np.nan

    def __str__(self) -> str:
        """The finding as a statement about the average of the region.

        >>> print(Finding(None, 0.0, 0.0, "scores too low", 0.1, 500, 0.0, 0.2))
        score 0 (500 rows) is too low by at least 10 points: model says 0%, happened 20%
        """
        which = f"scores from {self.scores}"
        verb = "are"
        average = " on average"
        if self.is_of_both_ends:
            which = "the lowest and the highest scores"
            average = ""
        elif self.low == self.high:
            which = f"score {self.scores}"
            verb = "is"
            average = ""
        segment = "" if self.segment is None else f" in segment {self.segment!r}"
        predicted = numbers.per_cent(numbers.nearest(self.mean_score))
        observed = numbers.per_cent(numbers.nearest(self.rate))
        return (
            f"{which}{segment} ({numbers.rows(self.count)}) {verb}"
            f" {self.direction.removeprefix('scores ')} by at least"
            f" {numbers.points(numbers.lower(self.error))}{average}: model says {predicted},"
            f" happened {observed}"
        )

    @property
    def scores(self) -> str:
        """The range of scores, or the one score."""
        if self.low == self.high:
            return numbers.nearest(self.low)
        return numbers.span(self.low, self.high)

    @property
    def is_of_both_ends(self) -> bool:
        """Whether the finding is about the lowest and the highest scores together."""
        return self.direction in (OVERCONFIDENT, UNDERCONFIDENT)


@dataclass(frozen=True, slots=True, eq=False)
class AuditTable(ColumnTable):
    """Every region of every resolution: mean score, observed rate, and what was shown.

    Attributes
    ----------
    segment : object array of shape (m,)
        The segment; None for all rows.
    resolution : int array of shape (m,)
        0 for all rows of the segment; higher numbers are finer.
    low, high : float arrays of shape (m,)
        Smallest and largest score of the region's rows.
    counts : int array of shape (m,)
        Rows.
    mean_score, rate : float arrays of shape (m,)
        Mean score, and share of positive labels.
    lower, upper : float arrays of shape (m,)
        Limits for the mean of E[Y | score] over these rows, or of E[Y | score, segment] for the
        rows of a segment; valid for the whole table simultaneously. With importance weights or
        groups: `mean_score` plus limits for the mean of E[Y | score] - score over the population of
        the region.
    error : float array of shape (m,)
        A lower bound on the distance between the mean score and that mean; 0 if none was shown.
    relative_lower, relative_upper : float arrays of shape (m,)
        Limits on the same mean divided by the mean score: for rare events, where a difference says
        little. With importance weights or groups, both means are those of the region's population.
        Infinity if there is no limit.
    """

    segment: NDArray[np.object_]
    resolution: IntArray
    low: FloatArray
    high: FloatArray
    counts: IntArray
    mean_score: FloatArray
    rate: FloatArray
    lower: FloatArray
    upper: FloatArray
    error: FloatArray
    relative_lower: FloatArray
    relative_upper: FloatArray

    @classmethod
    def joined(cls, tables: Sequence["AuditTable"]) -> "AuditTable":
        """Several tables as one."""
        columns = columns_by_name(tables, [field.name for field in fields(cls)])
        return cls(**{name: np.concatenate(parts) for name, parts in columns.items()})

    @property
    def verdict(self) -> tuple[str, ...]:
        """The verdict on each region: "scores too low", "scores too high" or "no sign of error"."""
        direction = np.where(self.mean_score < self.lower, TOO_LOW, TOO_HIGH)
        return tuple(np.where(self.error > 0.0, direction, NO_EVIDENCE).tolist())

    @property
    def is_finest(self) -> BoolArray:
        """Whether a region belongs to its segment's finest resolution."""
        return np.concatenate(
            [self.resolution[rows] == self.resolution[rows.stop - 1] for rows in self.blocks]
        )

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The regions of all rows, and then of each segment.

        The first region of a block contains all of its rows.
        """
        starts = np.flatnonzero(self.resolution == 0).tolist()
        return tuple(slice(*ends) for ends in pairwise([*starts, self.resolution.size]))

    def finding(self, row: int) -> Finding:
        """What was shown about one region."""
        return Finding(
            segment=self.segment[row],
            direction=TOO_LOW if self.mean_score[row] < self.lower[row] else TOO_HIGH,
            count=int(self.counts[row]),
            **{name: float(getattr(self, name)[row]) for name in _NUMBERS},
        )


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
