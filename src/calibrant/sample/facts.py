"""What is known about rows once they are read: facts that a guarantee has to mention, and the range
of the scores.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.cells.bins import SegmentedScores, scores_of
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import Choice, Flag, Integer
from calibrant.params.state_kinds import Label, Lists, Maybe, OneCount
from calibrant.sample.batch import BatchRows, Work
from calibrant.sample.faults import Place
from calibrant.text.numbers import counted, nearest, span

Limits: TypeAlias = tuple[float, float]
"""The smallest and the largest score."""

_DRAWN_BY = ("id", "partition")
_BY_ID = "rows were drawn by an id that is unique per row"
_SKIPPED = (
    "in every region, whether a row's label is missing does not depend on the label; shares of the"
    " population are shares of the rows with a label"
)
ONE_OF_EACH = "groups are independent draws, and one row of each was drawn at random"
_NAMED = 12  # segments named in a note
_BY_PARTITION = (
    "the rows that cut the bins were drawn by partition and position in it, as the data have no"
    " order; with an id column the draw does not depend on partitions"
)


@dataclass(frozen=True, slots=True)
class RowFacts(Saved):
    """What a guarantee has to say about the rows of a fit.

    Attributes
    ----------
    drawn_by : str or None
        How rows were drawn to cut the bins: by "id" or "partition"; None if they were drawn by
        position, or not at all.
    skipped : int
        Rows skipped because their label is missing.
    looked, cutting : int
        Pilot rows that were only checked for ties, and rows that cut bins because ties were found.
    pooled : tuple
        Segments of these rows that share the regions of other segments.
    one_of_each : (int, int)
        If one row of each group was drawn: the number of groups, and the number of rows left out.
    over_seed : bool
        Whether rows were drawn and have so few different values that the probability is also over
        the seed (`calibrant.params.random.RowSums.has_few_values`).
    """

    _entries: ClassVar[EntryTable] = {
        "drawn_by": Entry(Maybe(Choice(_DRAWN_BY)), absent=None),
        "skipped_rows": Entry(Integer(0), of="skipped", absent=0),
        "looked_rows": Entry(Integer(0), of="looked", absent=0),
        "cutting_rows": Entry(Integer(0), of="cutting", absent=0),
        "pooled_segments": Entry(Lists(Label()), of="pooled", absent=()),
        "one_of_each": Entry(Lists(OneCount(), size=2), absent=(0, 0)),
        "over_seed": Entry(Flag(), absent=False),
    }

    drawn_by: str | None = None
    skipped: int = 0
    looked: int = 0
    cutting: int = 0
    pooled: tuple[str | int | float, ...] = ()
    one_of_each: tuple[int, int] = (0, 0)
    over_seed: bool = False

    @property
    def assumed(self) -> tuple[str, ...]:
        """Assumptions of the guarantee."""
        stated = {
            _BY_ID: self.drawn_by == "id",
            _SKIPPED: self.skipped,
            ONE_OF_EACH: self.one_of_each[0],
        }
        return tuple(text for text, holds in stated.items() if holds)

    @property
    def said_of_groups(self) -> str:
        """What a guarantee says about groups if one row of each was drawn; empty without groups."""
        groups, others = self.one_of_each
        if not groups:
            return ""
        left = (
            f" The other {counted(others, 'row')} {'was' if others == 1 else 'were'} not used."
            if others
            else ""
        )
        return (
            f" One row was drawn at random from each of {counted(groups, 'group')}: this is about a"
            f" row drawn at random from a new group, and every group counts the same.{left}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the guarantee."""
        told = []
        if self.skipped:
            were = "was" if self.skipped == 1 else "were"
            told.append(f"{counted(self.skipped, 'row')} without a label {were} skipped")
        if self.drawn_by == "partition":
            told.append(_BY_PARTITION)
        return (*told, *self._on_pooled())

    def _on_pooled(self) -> tuple[str, ...]:
        if not self.pooled:
            return ()
        names = listed_names(self.pooled)
        one = len(self.pooled) == 1
        does = "shares the regions" if one else "share the regions"
        return (
            (
                f'{counted(len(self.pooled), "segment")} {does} of "other", as well as segments not'
                f" seen: {names}"
            ),
        )


def listed_names(segments: tuple[str | int | float, ...]) -> str:
    """The names of segments; the first 12 if there are many."""
    more = ", ..." if len(segments) > _NAMED else ""
    return ", ".join(map(str, segments[:_NAMED])) + more


@dataclass(frozen=True, slots=True)
class Reach:
    """The smallest and the largest score; those of two parts of the data can be added."""

    low: float = math.inf
    high: float = -math.inf

    @classmethod
    def of(cls, prepared: NDArray[Any] | SegmentedScores) -> "Reach":
        """The range of finite scores, as prepared by a partition."""
        scores = scores_of(prepared)
        return cls(float(scores.min()) + 0.0, float(scores.max()) + 0.0) if scores.size else cls()

    def __add__(self, other: "Reach") -> "Reach":
        return Reach(min(self.low, other.low), max(self.high, other.high))

    def is_within(self, other: "Reach") -> bool:
        """Whether these scores are neither the smallest nor the largest of others."""
        return other.low < self.low and self.high < other.high

    @property
    def seen(self) -> Limits | None:
        """Both scores; None if there are no rows."""
        return (self.low, self.high) if self.low <= self.high else None

    @property
    def is_finite(self) -> bool:
        """Whether there are rows, and no score is NaN or infinite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def is_probability(self) -> bool:
        """Whether all scores lie between 0 and 1."""
        return self.low >= 0.0 and self.high <= 1.0

    @property
    def is_percentage(self) -> bool:
        """Whether scores look like percentages."""
        return self.low >= 0.0 and 1.0 < self.high <= 100.0

    def advice(self, calibrate: str) -> str:
        """What to do about scores that are not probabilities: `calibrate`, if nothing is simpler."""
        if self.is_percentage:
            largest = nearest(self.high)
            return f"divide by 100 if these are percentages; the largest score is {largest}"
        if self.low < 0.0:
            return f"if these are logits, use 1 / (1 + exp(-score)); otherwise {calibrate}"
        return calibrate

    def __str__(self) -> str:
        return f"from {span(self.low, self.high)}"


def familiar_limits(seen: Limits | None) -> Limits:
    """The range in which scores of the same scale lie: the range seen, extended by half its width
    on each side.

    A single value has no scale.

    >>> familiar_limits((0.0, 1.0)), familiar_limits((0.5, 0.5))
    ((-0.5, 1.5), (-inf, inf))
    """
    if seen is None or seen[0] == seen[1]:
        return -math.inf, math.inf
    half = seen[1] / 2 - seen[0] / 2
    return seen[0] - half, seen[1] + half


@dataclass(frozen=True, slots=True)
class CountBeyond(Work[int]):
    """Count rows with a score below or above the limits.

    Scores that are not finite are not counted.
    """

    nothing = 0
    limits: Limits = (-math.inf, math.inf)

    def of_rows(self, rows: BatchRows, place: Place) -> int:
        """Count the rows of one batch."""
        return rows_beyond(rows.scores, self.limits)


def rows_beyond(scores: NDArray[Any], limits: Limits) -> int:
    """Number of scores below or above the limits."""
    # compare as doubles: numpy would round the limits to float32 for float32 scores
    low = np.float64(limits[0])
    high = np.float64(limits[1])
    return int(np.count_nonzero((scores < low) | (scores > high)))
