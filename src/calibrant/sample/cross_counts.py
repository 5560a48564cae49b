"""Rows by their attributes, a fine cell of the score, and the label: counted where they are, in one
pass.

This is a GROUP BY of the cross of all attributes, with the sum of scores in each group. It is far
smaller than the rows, and adds over batches, files, threads and machines.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IndexArray, Keys
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.kernels.hash import mixed
from calibrant.params.attributes import read_attributes
from calibrant.sample.batch import Columns, Work, read_batch
from calibrant.sample.draw import Draw, position_keys
from calibrant.sample.faults import Fault, Faults, Place

_MOST_ENTRIES = 4_000_000  # of batches that were not added up yet
_MOST_LABELS = 20


@dataclass(frozen=True, slots=True, eq=False)
class CrossSums:
    """Groups of rows with equal attributes, cells of the score and halves: rows, sums of scores and
    of variances.

    Attributes
    ----------
    key : int array
        The group of each entry: a number made of its parts.
    values : float array of shape (entries, 3)
        Rows, the sum of their scores s, and the sum of s (1 - s).
    """

    key: IndexArray
    values: FloatArray

    @classmethod
    def of(cls, key: IndexArray, values: FloatArray) -> "CrossSums":
        """Add up entries with equal keys."""
        distinct, place = np.unique(key, return_inverse=True)
        sums = [np.bincount(place, column, minlength=distinct.size) for column in values.T]
        return cls(distinct, np.column_stack(sums))


@dataclass(frozen=True, slots=True, eq=False)
class CrossCounts:
    """Such groups for every kind of label, of some batches."""

    parts: Mapping[Hashable, tuple[CrossSums, ...]] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    def __add__(self, other: "CrossCounts") -> "CrossCounts":
        found = dict(self.parts)
        for label, parts in other.parts.items():
            if label not in found and len(found) > _MOST_LABELS:
                continue  # too many kinds of label, which is refused later
            found[label] = (*found.get(label, ()), *parts)
            if sum(part.key.size for part in found[label]) > _MOST_ENTRIES:
                found[label] = (joined_sums(found[label]),)
        return CrossCounts(found, self.faults + other.faults)


def joined_sums(parts: tuple[CrossSums, ...]) -> CrossSums:
    """Several parts as one."""
    keys = np.concatenate([part.key for part in parts])
    return CrossSums.of(keys, np.concatenate([part.values for part in parts]))


@dataclass(frozen=True, slots=True)
class CountCross(Work[CrossCounts]):
    """Count rows by the levels of attributes, the cell of the score, and one of two halves.

    Which half a row belongs to follows from its score and its attributes, never from its label or
    its place: labels are independent given scores and attributes, and so are those of two such
    halves.
    """

    levels: tuple[AttributeLevels, ...] = ()
    n_cells: int = 0
    cell_of: Callable[[FloatArray], IndexArray] = field(default=np.asarray)

    @property
    def columns(self) -> Columns:
        """Score, label and attributes."""
        return replace(
            self.data_columns.only("label"), also=tuple(level.name for level in self.levels)
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each part of a key has: levels and none of them, cells of the score, two
        halves.
        """
        return (*(level.n_levels + 1 for level in self.levels), self.n_cells, 2)

    def __call__(self, batch: Any, place: Place) -> CrossCounts:
        """Count one batch."""
        rows, faults = read_batch(batch, self.data_columns.only("label"), place)
        scores = np.asarray(rows.scores, dtype=np.float64)
        outside = (scores < 0.0) | (scores > 1.0)
        if outside.any():
            fault = Fault("score", self.data_columns.score, "be probabilities in [0, 1]")
            faults += Faults.of(fault, rows.in_batch(outside), place)
            rows = rows.take(~outside)
            scores = scores[~outside]
        if rows.labels is None or not len(rows):
            return CrossCounts({}, faults)
        kept = np.arange(len(batch)) if rows.origin is None else rows.origin
        codes = [_level_codes(batch, level)[kept] for level in self.levels]
        key = np.ravel_multi_index((*codes, self.cell_of(scores), _half(scores, codes)), self.sizes)
        values = np.column_stack([np.ones(scores.size), scores, scores * (1.0 - scores)])
        found = {}
        for number, label in enumerate(rows.labels.names):
            own = rows.labels.number == number
            if own.any():
                found[label] = (CrossSums.of(key[own], values[own]),)
        return CrossCounts(found, faults)

    def nothing(self) -> CrossCounts:
        """No rows."""
        return CrossCounts()


def _level_codes(batch: Any, level: AttributeLevels) -> IndexArray:
    """The level of each row of a batch; the number after the last for rows without one."""
    (column,) = read_attributes({level.name: batch.column(level.name)}, len(batch))
    codes = level.codes(column)
    return np.where(codes < 0, level.n_levels, codes)


def _half(scores: FloatArray, codes: list[IndexArray]) -> IndexArray:
    """0 or 1, from a hash of the score and all attributes."""
    bits: Keys = mixed(scores.view(np.uint64))
    for code in codes:
        bits = mixed(bits + code.astype(np.uint64))
    return (bits >> np.uint64(63)).astype(np.intp)


@dataclass(frozen=True, slots=True)
class TakeDrawn(Work[tuple[tuple[Place, Any], ...]]):
    """Take the drawn rows, all of their columns in one pass."""

    draw: Draw | None = None
    others: tuple[str, ...] = ()

    @property
    def columns(self) -> Columns:
        """Score, label, and the others."""
        return replace(self.data_columns.only("label"), also=self.others)

    def __call__(self, batch: Any, place: Place) -> tuple[tuple[Place, Any], ...]:
        """Take those of one batch."""
        if self.draw is None:
            return ((place, batch),)
        import pyarrow as pa

        drawn = self.draw.chosen(position_keys(place.key, len(batch)))
        return ((place, batch.filter(pa.array(drawn))),)

    def nothing(self) -> tuple[tuple[Place, Any], ...]:
        """No rows."""
        return ()
