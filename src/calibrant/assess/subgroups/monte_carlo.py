"""Is any subgroup off? Compare the largest surprise over all subgroups with labels drawn from the
scores.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.assess.subgroups.entries import SubgroupEntries
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.params.random import RandomSource
from calibrant.sample.progress import watched

_ROWS_AT_ONCE = 8191  # sums of this many labels fit in 13 bits
_BITS = 13
_PACKED = 4  # so that four such sums fit in the 53 bits of a double
_DRAWS_AT_ONCE = 200
_MOST_JOINT = 256  # joint cells of crossings that are counted together
_TIED = 1e-12  # tolerance for ties: rounding may depend on the position in an array


def largest_surprise_p_value(entries: SubgroupEntries, n_draws: int, source: RandomSource) -> float:
    """The p-value of the largest surprise of single rows, under the hypothesis that every row's rate
    is its score.

    Guarantee: if labels are independent given scores and attributes, and each has its score as its
    rate, then the result is at most p with probability at most p, for every p. Nothing else is
    assumed.

    Notes
    -----
    Monte Carlo test (Barnard 1963; Dwass 1957): under the null, the labels and `n_draws` sets of
    labels that are drawn from the scores are exchangeable, and so are the largest surprises over
    all subgroups. So the rank of the real one is uniform up to ties, which count against it: p = (1
    + #{drawn >= real}) / (1 + n_draws). The subgroups may overlap and depend on each other in any
    way, so a search through many nearly equal subgroups costs nothing.
    """
    expected = entries.expected()
    real = float(expected.surprise(entries.n_positive).max())
    if real == np.inf:
        return 1.0 / (1.0 + n_draws)
    generator = source.generator()
    tables = JointCells.of(entries.family)
    reached = 0
    with watched(None, n_draws, "drawing labels", "draws") as advance:
        for start in range(0, n_draws, _DRAWS_AT_ONCE):
            size = min(_DRAWS_AT_ONCE, n_draws - start)
            drawn = _drawn_positives(tables, entries.totals, size, generator)
            surprises = expected.surprise(drawn).max(axis=1)
            reached += int(np.count_nonzero(surprises >= real * (1.0 - _TIED)))
            advance(size)
    return (1.0 + reached) / (1.0 + n_draws)


@dataclass(frozen=True, slots=True, eq=False)
class JointCells:
    """Crossings that are counted together: rows by joint cells, and which subgroups these are in.

    Crossings of a few attributes have few joint cells. So labels are summed by joint cell once, and
    these sums are added up for each crossing, instead of summing all labels for each.

    Attributes
    ----------
    cells : tuple of int arrays of shape (n,)
        For each group of crossings, the joint cell of each row.
    within : tuple of float arrays of shape (n_cells, size)
        For each group, 1 where a joint cell is in a subgroup, and 0 elsewhere.
    place : int array of shape (n_subgroups,)
        The column of each subgroup of the family, after those of all groups are put side by side.
    """

    cells: tuple[IndexArray, ...]
    within: tuple[FloatArray, ...]
    place: IndexArray

    @classmethod
    def of(cls, family: SubgroupFamily) -> Self:
        """Group each crossing with those that its joint cells already determine, or nearly."""
        firsts = np.cumsum([0, *(part.size for part in family.crossings)])
        left = list(range(len(family.crossings)))
        cells = []
        within = []
        columns = []
        while left:
            joint = np.zeros(family.n_rows, dtype=np.intp)
            together: list[int] = []
            for number in left:
                part = family.crossings[number]
                finer = _numbered(joint * (part.size + 1) + part.cell)
                if not together or int(finer.max(initial=0)) < _MOST_JOINT:
                    joint = finer
                    together.append(number)
            n_cells = int(joint.max(initial=-1)) + 1
            cells.append(joint)
            for number in together:
                part = family.crossings[number]
                of_cell = np.zeros(n_cells, dtype=np.intp)
                of_cell[joint] = part.cell
                columns.append(firsts[number] + np.arange(part.size))
                within.append((of_cell[:, None] == np.arange(part.size)).astype(np.float64))
            within[-len(together) :] = [np.hstack(within[-len(together) :])]
            left = [number for number in left if number not in together]
        return cls(tuple(cells), tuple(within), np.argsort(np.concatenate(columns)))


def _numbered(codes: IndexArray) -> IndexArray:
    """The number of each code among those that occur."""
    occurs = np.zeros(int(codes.max(initial=-1)) + 1, dtype=bool)
    occurs[codes] = True
    return (np.cumsum(occurs) - 1)[codes]


def _drawn_positives(
    tables: JointCells, scores: FloatArray, n_draws: int, generator: np.random.Generator
) -> FloatArray:
    """Positive labels in each subgroup (columns), for label sets drawn from the scores (rows)."""
    total = np.zeros((n_draws, tables.place.size))
    for start in range(0, scores.size, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        part = scores[rows]
        labels = generator.random((n_draws, part.size)) < part
        total += _sums_of_labels(tables, rows, labels)
    return total


def _sums_of_labels(tables: JointCells, rows: slice, labels: BoolArray) -> FloatArray:
    """Sums of several label sets over the rows of each subgroup, four at a time as digits of one
    number. All sums are whole numbers below 2^53, so doubles add them exactly in any order.
    """
    n_sets = len(labels)
    n_numbers = -(-n_sets // _PACKED)
    packed = np.zeros((n_numbers, labels.shape[1]))
    own_digit = np.empty_like(packed)
    for digit in range(_PACKED):
        own = labels[digit::_PACKED]
        np.multiply(own, float(1 << (_BITS * digit)), out=own_digit[: len(own)])
        packed[: len(own)] += own_digit[: len(own)]
    found_sums = []
    for joint, within in zip(tables.cells, tables.within, strict=True):
        cell = joint[rows]
        by_cell = np.stack([np.bincount(cell, one, len(within)) for one in packed])
        found_sums.append(by_cell @ within)
    sums = np.hstack(found_sums)[:, tables.place].astype(np.int64)
    found = np.empty((n_numbers * _PACKED, tables.place.size))
    for digit in range(_PACKED):
        found[digit::_PACKED] = (sums >> (_BITS * digit)) & ((1 << _BITS) - 1)
    return found[:n_sets]
