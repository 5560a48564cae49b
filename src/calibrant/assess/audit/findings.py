"""The findings of an audit, as numbers and as text."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.assess.subgroups.findings import TOO_HIGH, TOO_LOW
from calibrant.text import numbers
from calibrant.text.result import ColumnTable

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
        columns = {
            field.name: [getattr(table, field.name) for table in tables] for field in fields(cls)
        }
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
