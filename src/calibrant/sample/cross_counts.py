"""Counts of rows by attributes, kind of score and label, made where the rows are.

This is a GROUP BY over all combinations of attributes, with the sum of scores in each group. It is
far smaller than the rows, and adds over batches, files, threads and machines. DuckDB, Polars and
Spark run it themselves (`calibrant.sample.sql.cross`); for other sources `CountCross` does, batch
by batch.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from calibrant._optional import pa
from calibrant._typing import IndexArray, IntArray
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.keyed_sums import KeyedSums
from calibrant.errors import InvalidValueError
from calibrant.params.attributes import read_attributes
from calibrant.sample.arrow_columns import absent_rows, plain_column
from calibrant.sample.batch import Columns, Work, coded_labels, read_batch
from calibrant.sample.cross_key import CrossKey, PlaceDraw, whole_scores
from calibrant.sample.faults import Fault, Faults, Place

MOST_GROUPS = 10_000_000
"""The largest number of groups brought into memory, per label."""
CROSS_SUMS = ("n", "high", "low", "variance")
"""The sums in each group: rows, steps of scores, steps of s (1 - s)."""
_MOST_LABELS = 20


@dataclass(frozen=True, slots=True, eq=False)
class CrossCounts:
    """The groups for every label, from some batches.

    A group is rows with equal attributes, kind of score and half; its key is that of
    `calibrant.sample.cross_key`, and its sums are `CROSS_SUMS`. The parts of a label are merged by
    `KeyedSums.compacted`.
    """

    parts: Mapping[Hashable, tuple[KeyedSums, ...]] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    def __add__(self, other: "CrossCounts") -> "CrossCounts":
        found = dict(self.parts)
        for label, parts in other.parts.items():
            if label not in found and len(found) > _MOST_LABELS:
                continue  # too many labels, which raises an error later
            found[label] = KeyedSums.compacted((*found.get(label, ()), *parts))
            check_n_groups(max(part.key.size for part in found[label]))
        return CrossCounts(found, self.faults + other.faults)


def joined_sums(parts: tuple[KeyedSums, ...]) -> KeyedSums:
    """Several parts as one."""
    whole = KeyedSums.joined(parts)
    check_n_groups(whole.key.size)
    return whole


def check_n_groups(n_groups: int) -> None:
    """Raise an error for more groups than fit into memory."""
    if n_groups <= MOST_GROUPS:
        return
    rule = f"form at most {MOST_GROUPS:,} combinations with the distinct scores"
    advice = "name fewer attributes, or audit a random draw of the rows in memory"
    raise InvalidValueError("attributes", rule, got="more", advice=advice)


@dataclass(frozen=True, slots=True)
class CountCross(Work[CrossCounts]):
    """Count rows by group and label, and add up their scores."""

    is_large: ClassVar[bool] = True
    key: CrossKey = field(default_factory=lambda: CrossKey(()))

    @property
    def columns(self) -> Columns:
        """Score, label and attributes."""
        return replace(self.data_columns.only("label"), also=self.attributes)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of attributes."""
        return tuple(level.name for level in self.key.levels)

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
        codes = [_level_codes(batch, level)[kept] for level in self.key.levels]
        key = self.key.keys(scores, codes)
        values = np.column_stack([np.ones(scores.size, dtype=np.int64), *whole_scores(scores)])
        found = {}
        for number, label in enumerate(rows.labels.names):
            own = rows.labels.number == number
            if own.any():
                found[label] = (KeyedSums.of(key[own], values[own]),)
        return CrossCounts(found, faults)

    def nothing(self) -> CrossCounts:
        """No rows."""
        return CrossCounts()


def _level_codes(batch: Any, level: AttributeLevels) -> IndexArray:
    """The level of each row of a batch; one past the last level for rows without a level."""
    (column,) = read_attributes({level.name: batch.column(level.name)}, len(batch))
    codes = level.codes(column)
    return np.where(codes < 0, level.n_levels, codes)


def counted_by_engine(table: Any) -> CrossCounts | None:
    """Counts made by an engine, from its Arrow table with key, label and sums.

    None if some row could not be counted, or if there are too many labels: `CountCross` then
    reports why.
    """
    check_n_groups(table.num_rows // 2)
    label = plain_column(table.column("label").combine_chunks())
    key = table.column("key")
    absent = absent_rows(label)
    if key.null_count or (absent is not None and absent.any()) or not table.num_rows:
        return None
    labels = coded_labels(label, "label")
    if len(labels.names) > _MOST_LABELS:
        return None
    keys = _whole(key)
    values = np.column_stack([_whole(table.column(name)) for name in CROSS_SUMS])
    found = {}
    for number, name in enumerate(labels.names):
        own = labels.number == number
        if own.any():
            found[name] = (KeyedSums.of(keys[own], values[own]),)
    return CrossCounts(found)


def _whole(column: Any) -> IntArray:
    """A column of whole numbers; sums in DuckDB have 128 bits."""
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class TakeDrawn(Work[tuple[tuple[Place, Any], ...]]):
    """Take all columns of the drawn rows in one pass."""

    place_draw: PlaceDraw | None = None
    others: tuple[str, ...] = ()

    @property
    def needs_positions(self) -> bool:
        """The position of a row determines whether it is drawn."""
        return self.place_draw is not None

    @property
    def columns(self) -> Columns:
        """Score, label and the others."""
        return replace(self.data_columns.only("label"), also=self.others)

    def __call__(self, batch: Any, place: Place) -> tuple[tuple[Place, Any], ...]:
        """Take the drawn rows of one batch."""
        if self.place_draw is None:
            return ((place, batch),)
        drawn = self.place_draw.chosen(place.key, len(batch))
        return ((place, batch.filter(pa.array(drawn))),)

    def nothing(self) -> tuple[tuple[Place, Any], ...]:
        """No rows."""
        return ()
