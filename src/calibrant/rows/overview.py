"""One look at all rows: their fingerprint, and how far their scores reach."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.rows.base import ScoredData
from calibrant.rows.batch import Columns, numbers, plain_column
from calibrant.rows.faults import Place
from calibrant.rows.fingerprint import Fingerprint, TakeFingerprint
from calibrant.rows.work import Work


@dataclass(frozen=True, slots=True)
class Reach:
    """The smallest and the largest score; those of two parts of the data add."""

    low: float = math.inf
    high: float = -math.inf

    def __add__(self, other: "Reach") -> "Reach":
        return Reach(min(self.low, other.low), max(self.high, other.high))

    @property
    def is_probability(self) -> bool:
        """Whether all scores lie between 0 and 1."""
        return self.low >= 0.0 and self.high <= 1.0

    @property
    def is_percentage(self) -> bool:
        """Whether scores look like percentages."""
        return self.low >= 0.0 and 1.0 < self.high <= 100.0

    def __str__(self) -> str:
        return f"from {self.low:.4g} to {self.high:.4g}"


@dataclass(frozen=True, slots=True)
class Seen:
    """Fingerprint and reach of some rows."""

    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    reach: Reach = field(default_factory=Reach)

    def __add__(self, other: "Seen") -> "Seen":
        return Seen(self.fingerprint + other.fingerprint, self.reach + other.reach)


@dataclass(frozen=True, slots=True)
class TakeReach(Work[Reach]):
    """Find the smallest and the largest score."""

    data_columns: Columns

    @property
    def columns(self) -> Columns:
        """The score alone."""
        return self.data_columns.only()

    def __call__(self, batch: Any, place: Place) -> Reach:
        """The reach of one batch, as far as its scores are numbers."""
        name = self.data_columns.score
        scores = numbers(plain_column(batch.column(name)), name, "score")
        known = scores[np.isfinite(scores)]
        return Reach(float(known.min()), float(known.max())) if known.size else Reach()

    def nothing(self) -> Reach:
        """No scores."""
        return Reach()


@dataclass(frozen=True, slots=True)
class Look(Work[Seen]):
    """Take the fingerprint and the reach in one reading."""

    data_columns: Columns

    @property
    def columns(self) -> Columns:
        """Those of the fingerprint, which hold the score."""
        return TakeFingerprint(self.data_columns).columns

    def __call__(self, batch: Any, place: Place) -> Seen:
        """Both, of one batch."""
        return Seen(TakeFingerprint(self.data_columns)(batch, place), TakeReach(self.data_columns)(batch, place))

    def nothing(self) -> Seen:
        """No rows."""
        return Seen()


def look(data: ScoredData) -> Seen:
    """Read the data once; refuse rows that can not be used."""
    found = data.fold(Look(data.columns))
    found.fingerprint.faults.check()
    return found


def reach_of(data: ScoredData) -> Reach:
    """How far the scores reach."""
    return data.fold(TakeReach(data.columns))
