"""Which values the scores take, where they are few."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._typing import FloatArray
from calibrant.rows.batch import read_batch
from calibrant.rows.faults import Fault, Faults, Place
from calibrant.rows.work import Work

_GLANCE = 1 << 14  # rows that are looked at first: they mostly tell already that the values are many


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """How many rows there are, and the distinct scores among them; None where they are too many."""

    rows: int
    distinct: FloatArray | None

    def joined(self, other: "Values", most: int) -> "Values":
        """The values of both."""
        rows = self.rows + other.rows
        if self.distinct is None or other.distinct is None:
            return Values(rows, None)
        return Values(rows, _few(np.concatenate([self.distinct, other.distinct]), most))


@dataclass(frozen=True, slots=True, eq=False)
class SeenValues:
    """The values of each segment, and of all rows under the name None."""

    most: int
    values: Mapping[Any, Values] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    def __add__(self, other: "SeenValues") -> "SeenValues":
        values = dict(self.values)
        for name, more in other.values.items():
            values[name] = values[name].joined(more, self.most) if name in values else more
        return SeenValues(self.most, values, self.faults + other.faults)


@dataclass(frozen=True, slots=True)
class FindValues(Work[SeenValues]):
    """Find the distinct scores, up to `most`, of probabilities in [0, 1]."""

    roles = ("segment",)
    most: int

    def __call__(self, batch: Any, place: Place) -> SeenValues:
        """Find those of one batch."""
        rows, faults = read_batch(batch, self.columns, place)
        outside = (rows.scores < 0.0) | (rows.scores > 1.0)
        faults += Faults.of(
            Fault("score", self.columns.score, "be probabilities in [0, 1]"), rows.in_batch(outside), place
        )
        groups = [(None, slice(None)), *(rows.by_segment() if rows.segments is not None else [])]
        values = {name: self._values(rows.scores[index].astype(np.float64)) for name, index in groups}
        return SeenValues(self.most, {name: found for name, found in values.items() if found.rows}, faults)

    def _values(self, scores: FloatArray) -> Values:
        if _few(scores[:_GLANCE], self.most) is None:
            return Values(len(scores), None)
        return Values(len(scores), _few(scores, self.most))

    def nothing(self) -> SeenValues:
        """No rows."""
        return SeenValues(self.most)


def _few(scores: FloatArray, most: int) -> FloatArray | None:
    values = np.unique(scores + 0.0)
    return values if values.size <= most else None
