"""Bring the rows of each group together by the group's key, wherever they are.

A pass gives the rows and positives of each group in each region. If there are too many to hold in
memory, several passes each handle the groups with some of the keys; a cluster sends each key to one
of its tasks instead. So a group is never split, and the result is a small table: how many groups
have each number of rows and positives.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import IntArray, Keys
from calibrant.cells.bins import Bins
from calibrant.cells.group_counts import GroupCounts
from calibrant.cells.keyed_sums import KeyedSums
from calibrant.errors import InvalidValueError
from calibrant.params.random import Draw, mixed
from calibrant.sample.batch import BatchRows, Columns, Work
from calibrant.sample.counts import are_inside, located
from calibrant.sample.faults import Place

MOST_PAIRS = 1 << 24
"""Pairs of group and region held in memory: 0.5 GB, and up to four times as much until they are
merged.
"""

MOST_PASSES = 256


class ManyGroupsError(InvalidValueError):
    """More pairs of group and region than can be held at once."""


class Pairs(NamedTuple):
    """Rows and positives of groups in regions (-1 for none), sorted by group and region."""

    keys: Keys
    regions: IntArray
    rows: IntArray
    positives: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class GroupRows:
    """Rows and positives of each group in each region, for a part of the data.

    Those of several parts can be added.

    Pairs of several parts are kept side by side, and merged when their number is twice the limit.
    """

    parts: tuple[Pairs, ...] = ()

    def __add__(self, other: "GroupRows") -> "GroupRows":
        parts = self.parts + other.parts
        if sum(len(part.keys) for part in parts) > 2 * MOST_PAIRS:
            parts = (_merged(parts),)
            if len(parts[0].keys) > MOST_PAIRS:
                rule = (
                    f"have rows in at most {MOST_PAIRS * MOST_PASSES:,} pairs of group and region"
                )
                advice = "name a column of fewer groups"
                raise ManyGroupsError("group", rule, got="more", advice=advice)
        return GroupRows(parts)

    def table(self) -> GroupCounts:
        """Return how many groups have each number of rows and positives in a region."""
        pairs = _merged(self.parts)
        new = np.diff(pairs.keys, prepend=~pairs.keys[:1]) != 0
        first = np.flatnonzero(new)
        size = np.add.reduceat(pairs.rows, first)[np.cumsum(new) - 1] if first.size else pairs.rows
        columns = pairs.regions, pairs.rows, pairs.positives, size
        region, rows, positives, sizes = (column[pairs.regions >= 0] for column in columns)
        return GroupCounts.from_cells(region, rows, positives, sizes, None, first.size)


def _merged(parts: tuple[Pairs, ...]) -> Pairs:
    """The pairs of all parts, without duplicates."""
    if not parts:
        nothing = np.empty(0, dtype=np.int64)
        return Pairs(nothing.view(np.uint64), nothing, nothing, nothing)
    keys, regions, rows, positives = map(np.concatenate, zip(*parts, strict=True))
    distinct, group = np.unique(keys, return_inverse=True)
    n_places = int(regions.max(initial=-1)) + 2  # all regions, and no region
    cells = group * n_places + regions + 1
    found, sums = KeyedSums.of(cells, np.column_stack([rows, positives]))
    owner, place = np.divmod(found, n_places)
    return Pairs(distinct[owner], place - 1, *sums.T)


@dataclass(frozen=True, slots=True)
class CountGroups(Work[GroupRows]):
    """Count rows and positives by group and region: of rows not drawn or, with `aside`, of drawn
    rows.

    With several buckets, only groups of one bucket are counted.
    """

    nothing = GroupRows()
    is_large = True  # there may be millions of groups
    needs_keys = True
    partition: Bins
    positive: Any
    draw: Draw | None = None
    aside: bool = False
    bucket: int = 0
    buckets: int = 1

    @property
    def columns(self) -> Columns:
        """Score, label and group, and the segment if the regions need it."""
        segment = ("segment",) if self.partition.has_segments else ()
        return self.data_columns.only("label", "group", *segment)

    def of_rows(self, rows: BatchRows, place: Place) -> GroupRows:
        """Count one batch."""
        chosen = are_inside(rows, self.partition)
        if self.draw is not None:
            chosen = chosen & (rows.drawn_by(self.draw) == self.aside)
        if self.buckets > 1:
            bucket = mixed(rows.keys) % np.uint64(self.buckets)
            chosen = chosen & (bucket == self.bucket)
        if not chosen.all():
            rows = rows.take(np.flatnonzero(chosen))
        regions = self.partition.membership(located(rows, self.partition)).astype(np.int64)
        names, number = (
            ((), np.empty(0, np.intp))
            if rows.labels is None
            else (rows.labels.names, rows.labels.number)
        )
        hit = np.array([name == self.positive for name in names], dtype=np.int64)
        pairs = Pairs(rows.keys, regions, np.ones(len(rows), dtype=np.int64), hit[number])
        return GroupRows((_merged((pairs,)),))

    def split(self, passes: int) -> Iterator["CountGroups"]:
        """The same work in several passes, each for some of the groups."""
        return (replace(self, bucket=bucket, buckets=passes) for bucket in range(passes))
