"""Counts of groups: how many groups have each number of rows and
positives in a region.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import ArrayLike, IndexArray, IntArray
from calibrant.cells.keyed_sums import KeyedSums
from calibrant.errors import InvalidValueError
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import Integer
from calibrant.params.state_kinds import Maybe, Whole

_LARGEST_CODE = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class GroupCounts(Saved):
    """A table of how many groups have each number of rows and positives in a region.

    The entries are sorted and distinct, so any split of the data into whole groups, merged in any
    order, gives the identical table. A group with rows in several regions belongs to several
    entries.

    Attributes
    ----------
    region, rows, positives : int arrays
        The region, a group's rows there (at least 1), and how many of them are positive.
    size : int array
        The group's rows in all regions and in none. Omitted (0) if every row counts equally.
    number : int array
        How many groups have this combination.
    n_groups : int
        Total number of groups, including those without a row in any region.

    Examples
    --------
    >>> counts = GroupCounts.of([0, 0, 1, 0, 0], [1, 0, 1, 1, 0], [7, 7, 7, 8, 8]).without_sizes()
    >>> counts.region, counts.rows, counts.positives, counts.number
    (array([0, 1]), array([2, 1]), array([1, 1]), array([2, 1]))
    """

    _entries: ClassVar[EntryTable] = {
        "region": Whole(),
        "rows": Whole(size="region.size"),
        "positives": Whole(size="region.size"),
        "size": Entry(Maybe(Whole(size="region.size")), of="_known_size"),
        "number": Whole(size="region.size"),
        "n_groups": Integer(0),
    }

    region: IntArray
    rows: IntArray
    positives: IntArray
    size: IntArray
    number: IntArray
    n_groups: int

    @classmethod
    def of(cls, regions: ArrayLike, codes: ArrayLike, groups: ArrayLike) -> Self:
        """Count rows, given the region of each (-1 for none), its label (0 or 1) and the index of
        its group.
        """
        region, positive, group = (
            np.asarray(values).astype(np.int64) for values in (regions, codes, groups)
        )
        n_regions = int(region.max(initial=-1)) + 1
        sizes = np.bincount(group) if group.size else np.zeros(0, dtype=np.int64)
        # one sort of one number a row: by group, then region, then label
        cells = (group * n_regions + region) * 2 + positive
        cells = np.sort(cells[region >= 0])
        starts = np.flatnonzero(np.diff(cells >> 1, prepend=-1))
        rows = np.diff(starts, append=cells.size)
        hits = np.add.reduceat(cells & 1, starts) if starts.size else starts
        owner, place = np.divmod(cells[starts] >> 1, max(n_regions, 1))
        return cls.from_cells(place, rows, hits, sizes[owner], None, int(np.count_nonzero(sizes)))

    @classmethod
    def of_sets(cls, sets: Iterable[tuple[int, IntArray, IntArray]], n_groups: int) -> Self:
        """Count groups in sets of rows, which may overlap; each set is a region.

        A set has its number, and the rows and positives of every group in it. Equal groups of a set
        are merged before the next set is read.
        """
        parts = []
        for number, rows, positives in sets:
            seen = np.flatnonzero(rows)
            columns = [rows[seen], positives[seen]]
            distinct, counts = _added_up(columns, np.ones(seen.size, dtype=np.int64))
            parts.append(np.stack([np.full(counts.size, number), *distinct, counts]))
        region, rows, positives, counts = np.concatenate(parts, axis=1)
        return cls.from_cells(region, rows, positives, None, counts, n_groups)

    @classmethod
    def from_cells(
        cls,
        region: IntArray,
        rows: IntArray,
        positives: IntArray,
        size: IntArray | None,
        number: IntArray | None,
        n_groups: int,
    ) -> Self:
        """Sort entries and add up equal ones; without `number`, every entry is one group."""
        sizes = np.zeros(len(region)) if size is None else size
        arrays = [np.asarray(column, dtype=np.int64) for column in (region, rows, positives, sizes)]
        how_many = (
            np.ones(len(region), dtype=np.int64)
            if number is None
            else np.asarray(number, dtype=np.int64)
        )
        distinct, counts = _added_up(arrays, how_many)
        region, rows, positives, sizes = distinct
        return cls(region, rows, positives, sizes, counts, n_groups)

    @property
    def _columns(self) -> tuple[IntArray, ...]:
        return self.region, self.rows, self.positives, self.size, self.number

    def without_sizes(self) -> "GroupCounts":
        """The table without the groups' own sizes, which is enough if every row counts equally."""
        columns = self.region, self.rows, self.positives, None, self.number
        return GroupCounts.from_cells(*columns, self.n_groups)

    def regrouped(self, regions: IndexArray) -> "GroupCounts":
        """Rename regions; those mapped to -1 are left out. Regions with groups cannot be merged.

        A group with rows in both would have to be identified again.
        """
        # a group with rows in both regions would be counted twice, and nothing shows which these
        # are
        kept = regions[regions >= 0]
        if np.unique(kept).size < kept.size:
            rule = (
                "keep their regions apart where rows have groups, because a group may have rows in"
                " several"
            )
            raise InvalidValueError(
                "tallies", rule, advice="count the rows again over the new regions"
            )
        inside = regions[self.region] >= 0
        region, rows, positives, size, number = (column[inside] for column in self._columns)
        return GroupCounts.from_cells(regions[region], rows, positives, size, number, self.n_groups)

    def part(self, regions: slice, n_regions: int) -> "GroupCounts":
        """The entries of some of the regions."""
        renamed = np.full(n_regions, -1)
        kept = np.arange(n_regions)[regions]
        renamed[kept] = np.arange(kept.size)
        return self.regrouped(renamed)

    def totals(self, n_regions: int) -> tuple[IntArray, IntArray]:
        """Rows and positives of each region."""
        counts, positives = np.zeros((2, n_regions), dtype=np.int64)
        np.add.at(counts, self.region, self.number * self.rows)
        np.add.at(positives, self.region, self.number * self.positives)
        return counts, positives

    def __add__(self, other: "GroupCounts") -> "GroupCounts":
        """The combined table; no group may have rows in both."""
        region, rows, positives, size, number = map(
            np.concatenate, zip(self._columns, other._columns, strict=True)
        )
        # a size of 0 means that sizes were omitted; a mixture could not be told from that
        if size.any() and not size.all():
            raise InvalidValueError(
                "tallies", "both know the sizes of groups, or neither, to be added"
            )
        return GroupCounts.from_cells(
            region, rows, positives, size, number, self.n_groups + other.n_groups
        )

    def __eq__(self, other: object) -> bool:
        return (
            self.to_dict() == other.to_dict() if isinstance(other, GroupCounts) else NotImplemented
        )

    @property
    def _known_size(self) -> IntArray | None:
        """The sizes of groups; None if they are omitted."""
        return self.size if self.size.all() else None

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        size = values.pop("_known_size")
        if size is not None and (size < values["rows"]).any():
            raise InvalidValueError("size of a group", "be at least its rows in a region")
        return cls.from_cells(size=size, **values)

    def _check_state(self, known: Known) -> None:
        if (self.positives > self.rows).any() or self.rows.min(initial=1) < 1:
            rule = "have at least one row, and positives between 0 and the rows"
            raise InvalidValueError("groups", rule)
        if self.number.min(initial=1) < 1:
            raise InvalidValueError("number", "be at least 1", got=str(self.number.min()))
        regions, place = np.unique(self.region, return_inverse=True)
        held = np.zeros(regions.size, dtype=np.int64)
        np.add.at(held, place, self.number)
        if held.max(initial=0) > self.n_groups:
            rule = "be at least the groups of every region"
            raise InvalidValueError("n_groups", rule, got=str(self.n_groups))


def _added_up(columns: list[IntArray], number: IntArray) -> tuple[list[IntArray], IntArray]:
    """The distinct combinations of the columns, sorted, and the sum of `number` for each."""
    # combinations as one number sort faster than rows of a table
    bases = [int(column.max(initial=0)) + 1 for column in columns]
    if np.prod([float(base) for base in bases]) < _LARGEST_CODE:
        code = np.zeros(number.size, dtype=np.int64)
        for column, base in zip(columns, bases, strict=True):
            code = code * base + column
        if (number == 1).all():
            distinct, sums = np.unique(code, return_counts=True)
        else:
            distinct, sums = KeyedSums.of(code, number)
        digits = []
        for base in reversed(bases):
            distinct, digit = np.divmod(distinct, base)
            digits.append(digit)
        return digits[::-1], sums.astype(np.int64)
    order = np.lexsort(columns[::-1])
    ordered = [column[order] for column in columns]
    new = np.any([np.diff(column, prepend=-1) != 0 for column in ordered], axis=0)
    starts = np.flatnonzero(new)
    return [column[starts] for column in ordered], np.add.reduceat(number[order], starts)
