"""The smallest and the largest score of some rows, and scores far beyond them."""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.cells.bins import SegmentedScores
from calibrant.sample.batch import Work, read_batch
from calibrant.sample.faults import Place
from calibrant.text.numbers import nearest, span

Limits: TypeAlias = tuple[float, float]


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

    @property
    def percentage_advice(self) -> str:
        """What to do about scores that look like percentages."""
        return f"divide by 100 if these are percentages; the largest score is {nearest(self.high)}"

    def __str__(self) -> str:
        return f"from {span(self.low, self.high)}"


def scores_of(prepared: NDArray[Any] | SegmentedScores) -> NDArray[Any]:
    """The scores, without the segments."""
    return prepared if isinstance(prepared, np.ndarray) else prepared.scores


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

    limits: Limits = (-math.inf, math.inf)

    def __call__(self, batch: Any, place: Place) -> int:
        """Count the rows of one batch."""
        return rows_beyond(read_batch(batch, self.columns, place)[0].scores, self.limits)

    def nothing(self) -> int:
        """No rows."""
        return 0


def rows_beyond(scores: NDArray[Any], limits: Limits) -> int:
    """Number of scores below or above the limits."""
    # compare as doubles: numpy would round the limits to float32 for float32 scores
    low = np.float64(limits[0])
    high = np.float64(limits[1])
    return int(np.count_nonzero((scores < low) | (scores > high)))
