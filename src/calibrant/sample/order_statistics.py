"""Exact order statistics for data of any size: histograms of the bits of floats, refined until every
cell is one value.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray, Keys
from calibrant.cells.keyed_sums import KeyedSums
from calibrant.errors import InvalidValueError
from calibrant.sample.batch import BatchRows, Work
from calibrant.sample.faults import Faults, Place

_SIGN = np.uint64(1 << 63)
_CELLS = 1 << 20  # cells that are counted in a table: 8 MB
_FIRST_CELLS_A_TABLE = 16  # the first cells: scores use few of them, so few are ever in a table
_FEW = 1 << 21  # rows whose values are counted one by one: 32 MB
_CHUNK = 1 << 15  # rows whose keys fit in the cache
_SPREAD = 6.0  # standard deviations that a rank may move when rows are drawn


class MovedRowsError(InvalidValueError):
    """The data have other rows in another pass, or rows in another order, which contradicts earlier
    results.
    """


def ordered_bits(scores: NDArray[Any]) -> Keys:
    """Integers in the order of the scores: the bits of a double, flipped below zero."""
    bits: IntArray = np.add(scores, 0.0, dtype=np.float64).view(np.int64)  # -0.0 becomes 0.0
    flips = bits >> 63  # all bits for negative numbers, else none
    flips |= _SIGN.view(np.int64)
    bits ^= flips
    return bits.view(np.uint64)


def from_ordered_bits(keys: Keys) -> FloatArray:
    """The inverse of `ordered_bits`."""
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """How finely scores are counted, and in which runs of doubles.

    Attributes
    ----------
    bits : int
        A cell has 2**bits neighbouring keys (`ordered_bits`); its number is that of its first key,
        divided by 2**bits.
    runs : uint64 array or None
        The cells of the level before that hold a wanted rank, in increasing order; None for all
        doubles.
    run_bits : int
        The width of the runs.
    before : int array
        The number of rows below each run.
    """

    bits: int
    runs: Keys | None = None
    run_bits: int = 64
    before: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def count(self, scores: NDArray[Any]) -> KeyedSums:
        """The number of scores in each cell that has any."""
        found = self._at_or_above_0(scores) if self.runs is None and len(scores) else None
        return _counted(self._cells(scores)) if found is None else found

    def _at_or_above_0(self, scores: NDArray[Any]) -> KeyedSums | None:
        """The same in fewer steps for scores that are not negative: their bits are in order. None
        for others, or if their cells do not fit into a table.
        """
        ends = np.array([scores.min(), scores.max()], dtype=np.float64) + 0.0
        low, high = (ends.view(np.int64) >> self.bits).tolist()
        if not 0.0 <= ends[0] <= ends[1] < np.inf or high - low >= _CELLS:
            return None
        cells = np.empty(len(scores), dtype=np.int64)
        for start in range(0, len(scores), _CHUNK):
            own = cells[start : start + _CHUNK]
            np.add(scores[start : start + _CHUNK], 0.0, out=own.view(np.float64))
            own >>= self.bits
            own -= low
        counts = np.bincount(cells, minlength=high - low + 1)
        used = np.flatnonzero(counts)
        first = np.uint64(low + (1 << (63 - self.bits)))
        return KeyedSums(used.astype(np.uint64) + first, counts[used])

    def _cells(self, scores: NDArray[Any]) -> Keys:
        """The cell of each score that is in a run."""
        found = []
        run_bits = np.uint64(self.run_bits % 64)
        bits = np.uint64(self.bits)
        for start in range(0, len(scores), _CHUNK):
            keys = ordered_bits(scores[start : start + _CHUNK])
            if self.runs is not None:
                keys = keys[_among(keys >> run_bits, self.runs)]
            found.append(np.right_shift(keys, bits, out=keys))
        return np.concatenate([np.empty(0, dtype=np.uint64), *found])

    def refined(self, seen: KeyedSums, ranks: IntArray) -> tuple["Level | None", FloatArray | None]:
        """The next level or, once every cell is a single key, the scores at these ranks."""
        cells, counts = seen
        reached = self._reached(seen)
        at = np.searchsorted(reached, ranks)
        if (
            not cells.size
            or at.max(initial=0) == cells.size
            or (reached[at] - counts[at] >= ranks).any()
        ):
            rule = "give the same rows each time they are read"
            got = "other rows the second time"
            raise MovedRowsError("the data", rule, got, advice="write them to a file or a table")
        if self.bits == 0:
            return None, from_ordered_bits(cells[at])
        return self._within(seen, reached, np.unique(at)), None

    def around(self, seen: KeyedSums, ranks: IntArray, n_drawn: int) -> "Level | None":
        """A level that almost surely holds the scores at these ranks after `n_drawn` random rows
        are left out, in single keys; None if too many rows are near them.
        """
        reached = self._reached(seen)
        if not reached.size or reached[-1] <= n_drawn:
            return None
        share = ranks / (reached[-1] - n_drawn)
        middle = ranks + n_drawn * share
        reach = _SPREAD * np.sqrt(n_drawn * share * (1.0 - np.minimum(share, 1.0))) + 1.0
        edges = np.zeros(reached.size + 1, dtype=np.int64)
        np.add.at(edges, np.searchsorted(reached, np.maximum(middle - reach, 1.0)), 1)
        last = np.searchsorted(reached, np.minimum(middle + reach, reached[-1]))
        np.add.at(edges, last + 1, -1)
        found = self._within(seen, reached, np.flatnonzero(np.cumsum(edges[:-1])))
        return found if found.bits == 0 else None

    def holds(self, other: "Level") -> bool:
        """Whether counts at this level determine those of another one with the same cells."""
        if self.runs is None or other.runs is None:
            return self.runs is None and self.bits == other.bits
        same = self.bits == other.bits and self.run_bits == other.run_bits
        return same and bool(np.isin(other.runs, self.runs).all())

    def part_of(self, seen: KeyedSums) -> KeyedSums:
        """The counts of cells in these runs."""
        if self.runs is None:
            return seen
        inside = _among(seen.key >> np.uint64(self.run_bits - self.bits), self.runs)
        return KeyedSums(seen.key[inside], seen.sums[inside])

    def _reached(self, seen: KeyedSums) -> IntArray:
        """The number of rows in each cell and below it."""
        total = np.cumsum(seen.sums)
        if self.runs is None or not total.size:
            return total
        run = np.searchsorted(self.runs, seen.key >> np.uint64(self.run_bits - self.bits))
        first = np.searchsorted(run, np.arange(self.runs.size))
        return np.asarray(total + (self.before - np.append(0, total)[first])[run])

    def _within(self, seen: KeyedSums, reached: IntArray, chosen: Any) -> "Level":
        """The next level, within the chosen cells."""
        cells, counts = (column[chosen] for column in seen)
        step = max(8, (_CELLS // max(cells.size, 1)).bit_length() - 1)
        bits = 0 if counts.sum() <= _FEW else max(self.bits - step, 0)
        return Level(bits, cells, self.bits, reached[chosen] - counts)


def first_level() -> Level:
    """All doubles, in cells that share their leading bits."""
    return Level(64 - (_FIRST_CELLS_A_TABLE * _CELLS).bit_length() + 1)


def _among(numbers: Keys, chosen: Keys) -> Any:
    """Whether each number is one of those chosen, which are increasing."""
    low = int(chosen[0])
    span = int(chosen[-1]) - low + 1
    if span > _CELLS:
        place = np.minimum(chosen.searchsorted(numbers), chosen.size - 1)
        return chosen[place] == numbers
    marked = np.zeros(span + 1, dtype=bool)
    marked[(chosen - np.uint64(low)).view(np.int64)] = True
    # numbers below the first wrap around to large ones; the last entry stands for all outside
    inside = np.minimum(numbers - np.uint64(low), np.uint64(span))
    return marked.take(inside.view(np.int64))


def _counted(cells: Keys) -> KeyedSums:
    """Rows of each cell that has any: with a table where their numbers are close together."""
    if not cells.size:
        return KeyedSums(cells, np.empty(0, dtype=np.int64))
    low = cells.min()
    span = int(cells.max() - low) + 1
    if span <= max(_CELLS, cells.size):
        offset = (cells - low).view(np.int64)
        counts = np.bincount(offset, minlength=span)
        used = np.flatnonzero(counts)
        return KeyedSums(used.astype(np.uint64) + low, counts[used])
    if cells.size <= _CHUNK or span > _CELLS << 4:
        values, counts = np.unique(cells, return_counts=True)
        return KeyedSums(values, counts)
    # scores of both signs, or some at 0: a table for each cluster
    middle = low + np.uint64(span // 2)
    is_low = cells < middle
    parts = (_counted(cells[is_low]), _counted(cells[~is_low]))
    key, sums = (np.concatenate(column) for column in zip(*parts, strict=True))
    return KeyedSums(key, sums)


@dataclass(frozen=True, slots=True, eq=False)
class BitCounts:
    """The rows in each cell of a level, by segment; None stands for all rows.

    The pieces are those of some batches, merged by `KeyedSums.compacted`.
    """

    pieces: Mapping[Hashable, tuple[KeyedSums, ...]] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    @classmethod
    def of(
        cls,
        segments: Mapping[Hashable, NDArray[Any]],
        levels: Mapping[Hashable, Level],
        faults: Faults | None = None,
    ) -> "BitCounts":
        """Count the scores of segments at their levels."""
        counts = {
            name: (level.count(segments[name]),)
            for name, level in levels.items()
            if name in segments
        }
        return cls(counts, Faults() if faults is None else faults)

    def __sub__(self, other: "BitCounts") -> "BitCounts":
        pieces = {
            key: tuple(KeyedSums(cells, -rows) for cells, rows in more)
            for key, more in other.pieces.items()
        }
        return self + BitCounts(pieces)

    def __add__(self, other: "BitCounts") -> "BitCounts":
        pieces = dict(self.pieces)
        for key, more in other.pieces.items():
            pieces[key] = KeyedSums.compacted((*pieces.get(key, ()), *more))
        return BitCounts(pieces, self.faults + other.faults)

    def counts(self, name: Hashable) -> KeyedSums:
        """The rows of a segment in each nonempty cell, in increasing order of cells."""
        nothing = KeyedSums(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))
        return KeyedSums.joined(self.pieces.get(name, (nothing,)))


@dataclass(frozen=True, slots=True, eq=False)
class CountBits(Work[BitCounts]):
    """Count the rows of each segment, and of all (None), at their levels."""

    roles = ("segment",)
    nothing = BitCounts()
    is_large = True  # there may be a million cells
    levels: Mapping[Hashable, Level]

    def of_rows(self, rows: BatchRows, place: Place) -> BitCounts:
        """Count one batch."""
        return BitCounts.of(rows.scores_by_segment(), self.levels, rows.faults)
