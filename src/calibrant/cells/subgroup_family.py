"""A family of overlapping subgroups with enough rows: all values of single attributes, of pairs and
of triples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import entries_at
from calibrant.params.random import mixed
from calibrant.text.numbers import counted

MOST_ORDERS = 3
MOST_SUBGROUPS = 50_000
"""Largest family: searching more takes hours, and little could be said about each subgroup."""
_ADVICE = "use fewer attributes, a smaller order or a larger min_share"
_MOST_COMBINATIONS = 20_000_000  # of levels in one crossing, before those with few rows are dropped

_Mark: TypeAlias = tuple[int, int, int]
"""A fingerprint of a set of rows: their number, and two sums."""


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """The subgroups formed by some attributes together: disjoint, so one index says which a row
    belongs to.

    Attributes
    ----------
    attributes : tuple of int
        The attributes; empty for all rows.
    levels : int array of shape (size, number of attributes)
        The level of each attribute, for each subgroup.
    cell : int array of shape (n,)
        The subgroup of each row; `size` for rows in none.
    """

    attributes: tuple[int, ...]
    levels: IntArray
    cell: NDArray[Any]

    @property
    def size(self) -> int:
        """The number of subgroups."""
        return len(self.levels)


@dataclass(frozen=True, slots=True, eq=False)
class SubgroupFamily:
    """All subgroups of up to three attributes with enough rows, and all rows as one more.

    The choice of subgroups depends on attributes alone. Of subgroups with the same rows, such as
    "pregnant" and "pregnant and female", only the one with the fewest attributes is kept.

    Attributes
    ----------
    levels : tuple of AttributeLevels
        The attributes.
    crossings : tuple of Crossing
        Subgroups by the attributes that define them; all rows first.
    n_rows : int
        The number of rows.
    counts : int array of shape (n_subgroups,)
        Rows of each subgroup.
    least : int
        The smallest number of rows in a subgroup.
    weights : float array of shape (n,), optional
        If rows are entries that stand for several rows each: how many. `counts` then counts rows.
    """

    levels: tuple[AttributeLevels, ...]
    crossings: tuple[Crossing, ...]
    n_rows: int
    counts: IntArray
    least: int
    weights: FloatArray | None = None

    @classmethod
    def of(
        cls,
        levels: Sequence[AttributeLevels],
        codes: Sequence[IndexArray],
        order: int,
        min_share: float,
        weights: FloatArray | None = None,
    ) -> Self:
        """Make the family of rows whose levels are given by `codes`, one array per attribute.

        >>> from calibrant.params.attributes import read_attributes
        >>> columns = read_attributes({"sex": ["f", "m"] * 4, "old": [False] * 4 + [True] * 4})
        >>> levels = [AttributeLevels.of(column) for column in columns]
        >>> codes = [level.codes(column) for level, column in zip(levels, columns)]
        >>> family = SubgroupFamily.of(levels, codes, 2, 0.25)
        >>> [family.words(number) for number in range(4)], family.n_subgroups
        (['all rows', 'sex = f', 'sex = m', 'old = False'], 9)
        """
        n_rows = len(codes[0])
        total = n_rows if weights is None else float(weights.sum())
        least = max(1, int(np.ceil(min_share * total - 1e-9)))
        crossings = _crossings(
            levels, codes, min(order, MOST_ORDERS), _Kept(n_rows, weights, least)
        )
        counts = _counts(crossings, weights)
        return cls(tuple(levels), tuple(crossings), n_rows, counts, least, weights)

    @property
    def n_subgroups(self) -> int:
        """The number of subgroups, including all rows."""
        return self.counts.size

    @property
    def order(self) -> IntArray:
        """The number of attributes that define each subgroup."""
        return np.repeat(
            [len(part.attributes) for part in self.crossings],
            [part.size for part in self.crossings],
        )

    def take(self, rows: IndexArray | BoolArray) -> Self:
        """The same subgroups, with some of their rows."""
        parts = tuple(replace(part, cell=part.cell[rows]) for part in self.crossings)
        weights = entries_at(self.weights, rows)
        counts = _counts(parts, weights)
        return replace(
            self, crossings=parts, n_rows=len(parts[0].cell), counts=counts, weights=weights
        )

    def of_other_rows(self, codes: Sequence[IndexArray]) -> Self:
        """The same subgroups, with other rows, whose levels are given by `codes`."""
        parts = tuple(_assigned(part, codes) for part in self.crossings)
        return replace(
            self, crossings=parts, n_rows=len(codes[0]), counts=_counts(parts, None), weights=None
        )

    def rows_in(self, chosen: BoolArray) -> int:
        """The number of chosen rows."""
        return (
            int(np.count_nonzero(chosen))
            if self.weights is None
            else int(self.weights[chosen].sum())
        )

    def shared(self, chosen: BoolArray) -> FloatArray:
        """The number of chosen rows in each subgroup."""
        return self.sums(
            chosen.astype(np.float64)
            if self.weights is None
            else np.where(chosen, self.weights, 0.0)
        )

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over the rows of each subgroup."""
        parts = [
            np.bincount(part.cell, values, minlength=part.size + 1)[: part.size].astype(np.float64)
            for part in self.crossings
        ]
        return np.concatenate(parts)

    def members(self, number: int) -> BoolArray:
        """Which rows belong to a subgroup."""
        part, cell = self._at(number)
        return np.asarray(part.cell == cell)

    def conditions(self, number: int) -> frozenset[tuple[int, int]]:
        """The attributes and levels that define a subgroup."""
        part, cell = self._at(number)
        return frozenset(zip(part.attributes, part.levels[cell].tolist(), strict=True))

    def number_of(self, conditions: frozenset[tuple[int, int]]) -> int | None:
        """The index of the subgroup defined by these attributes and levels; None if there is none."""
        wanted = sorted(conditions)
        attributes = tuple(attribute for attribute, _ in wanted)
        levels = np.array([level for _, level in wanted], dtype=np.int64)
        first = 0
        for part in self.crossings:
            if part.attributes == attributes:
                places = np.flatnonzero((part.levels == levels).all(axis=1))
                return first + int(places[0]) if places.size else None
            first += part.size
        return None

    def words(self, number: int) -> str:
        """A subgroup in words."""
        part, cell = self._at(number)
        if not part.attributes:
            return "all rows"
        levels = part.levels[cell].tolist()
        return ", ".join(
            self.levels[one].words[level]
            for one, level in zip(part.attributes, levels, strict=True)
        )

    def _at(self, number: int) -> tuple[Crossing, int]:
        for part in self.crossings:
            if number < part.size:
                return part, number
            number -= part.size
        raise IndexError(number)


def most_subgroups(levels: Sequence[AttributeLevels], order: int, min_share: float) -> int:
    """The largest number of subgroups that a family of these levels can have, whatever its rows
    are.

    Subgroups of the same attributes are disjoint. So at most 1 / `min_share` of them have that
    share of the rows; with a share of 0 it is the number of all combinations of levels. All rows
    are one more.

    >>> from calibrant.params.attributes import read_attributes
    >>> columns = read_attributes({"sex": ["f", "m"] * 4, "place": list("abcdefgh")})
    >>> levels = [AttributeLevels.of(column) for column in columns]
    >>> most_subgroups(levels, 2, 0.2), most_subgroups(levels, 2, 0.0)  # 1 + 2 + 5 + 5, 3 * 9
    (13, 27)
    """
    disjoint = np.floor(1.0 / min_share + 1e-9) if min_share else np.inf
    sizes = [level.n_levels for level in levels]
    n_subgroups = 1
    for size in range(1, min(order, MOST_ORDERS) + 1):
        for chosen in combinations(sizes, size):
            n_subgroups += int(min(prod(chosen), disjoint))
    return n_subgroups


def _counts(crossings: Sequence[Crossing], weights: FloatArray | None) -> IntArray:
    """Rows of each subgroup."""
    parts = [
        np.bincount(part.cell, weights, minlength=part.size + 1)[: part.size] for part in crossings
    ]
    return np.concatenate(parts).astype(np.int64)


def _crossings(
    levels: Sequence[AttributeLevels], codes: Sequence[IndexArray], order: int, kept: "_Kept"
) -> list[Crossing]:
    """All rows, then single attributes, pairs and triples."""
    everyone = Crossing((), np.zeros((1, 0), dtype=np.int64), np.zeros(kept.n_rows, dtype=np.uint8))
    kept(everyone, least=0)
    by_attributes: dict[tuple[int, ...], Crossing] = {}
    for number in range(len(levels)):
        n_levels = levels[number].n_levels
        cell = np.where(codes[number] < 0, n_levels, codes[number])
        by_attributes[number,] = kept(Crossing((number,), np.arange(n_levels)[:, None], cell))
    for size in range(2, order + 1):
        for wanted in combinations(range(len(levels)), size):
            before = by_attributes[wanted[:-1]]
            last = by_attributes[wanted[-1:]]
            if before.size and last.size:
                kept.check_combinations(before.size * last.size)
                by_attributes[wanted] = kept(_crossed(before, last))
            else:
                by_attributes[wanted] = Crossing(
                    wanted, np.empty((0, size), dtype=np.int64), np.empty(0)
                )
    return [everyone, *(part for part in by_attributes.values() if part.size)]


def _crossed(before: Crossing, last: Crossing) -> Crossing:
    """All combinations of the subgroups of some attributes with the levels of one more."""
    none = before.size * last.size
    both = before.cell.astype(np.intp) * last.size + last.cell
    cell = np.where((before.cell == before.size) | (last.cell == last.size), none, both)
    levels = np.hstack(
        [np.repeat(before.levels, last.size, axis=0), np.tile(last.levels, (before.size, 1))]
    )
    return Crossing((*before.attributes, *last.attributes), levels, cell)


class _Kept:
    """Keeps subgroups with enough rows, without those that have the same rows as one kept before.

    Each row has two random whole numbers. Equal sets of rows have equal sums of these; different
    sets hardly ever do. Which subgroups are kept depends on attributes alone.
    """

    def __init__(self, n_rows: int, weights: FloatArray | None, least: int) -> None:
        self.n_rows = n_rows
        self._weights = weights
        self._least = least
        self._marks = _marks(n_rows)
        self._seen: set[_Mark] = set()

    def check(self, n_subgroups: int) -> None:
        """Raise an error for a family that is too large to search."""
        if n_subgroups > MOST_SUBGROUPS:
            rule = f"define at most {MOST_SUBGROUPS:,} subgroups"
            got = f"more, with at least {counted(self._least, 'row')} each"
            raise InvalidValueError("attributes", rule, got=got, advice=_ADVICE)

    def check_combinations(self, number: int) -> None:
        """Raise an error for attributes whose levels make too many combinations."""
        if number > _MOST_COMBINATIONS:
            rule = f"have at most {_MOST_COMBINATIONS:,} combinations of levels at a time"
            raise InvalidValueError("attributes", rule, got=f"{number:,}", advice=_ADVICE)

    def __call__(self, part: Crossing, least: int | None = None) -> Crossing:
        """The subgroups of a crossing that are kept."""
        size = part.size + 1
        rows = np.bincount(part.cell, self._weights, minlength=size)
        counts = np.bincount(part.cell, minlength=size)
        sums = [np.bincount(part.cell, mark, minlength=size) for mark in self._marks]
        kept = []
        enough = rows[: part.size] >= (self._least if least is None else least)
        for cell in np.flatnonzero(enough).tolist():
            mark = (int(counts[cell]), int(sums[0][cell]), int(sums[1][cell]))
            if mark not in self._seen:
                self._seen.add(mark)
                self.check(len(self._seen))
                kept.append(cell)
        number = np.full(size, len(kept))
        number[kept] = np.arange(len(kept))
        small = np.min_scalar_type(len(kept))
        return Crossing(part.attributes, part.levels[kept], number.astype(small)[part.cell])


def _marks(n_rows: int) -> tuple[FloatArray, FloatArray]:
    """Two whole numbers of 24 bits for each row, whose sums are exact."""
    bits = mixed(np.arange(n_rows, dtype=np.uint64))
    low = bits & np.uint64(2**24 - 1)
    high = bits >> np.uint64(40)
    return low.astype(np.float64), high.astype(np.float64)


def _assigned(part: Crossing, codes: Sequence[IndexArray]) -> Crossing:
    """The subgroup of each of other rows.

    A row without a level, or with a level never seen here, is in none.
    """
    n_rows = len(codes[0])
    if not part.attributes:
        return replace(part, cell=np.zeros(n_rows, dtype=np.uint8))
    known = np.zeros(part.size, dtype=np.intp)
    wanted = np.zeros(n_rows, dtype=np.intp)
    outside = np.zeros(n_rows, dtype=bool)
    for place, attribute in enumerate(part.attributes):
        width = int(part.levels[:, place].max()) + 1
        own = codes[attribute]
        outside |= (own < 0) | (own >= width)
        known = known * width + part.levels[:, place]
        wanted = wanted * width + np.clip(own, 0, width - 1)
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known[order], wanted), part.size - 1)
    cell = np.where(outside | (known[order][at] != wanted), part.size, order[at])
    return replace(part, cell=cell)
