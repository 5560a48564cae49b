"""Is any subgroup off? Compare the largest surprise over all subgroups with labels drawn from the
scores.
"""

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray
from calibrant.assess.subgroups.evidence import Expected, positives_of
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.params.random import RandomSource
from calibrant.sample.progress import watched

_ROWS_AT_ONCE = 8191  # sums of this many labels fit in 13 bits
_BITS = 13
_PACKED = 4  # so that four such sums fit in the 53 bits of a double
_DRAWS_AT_ONCE = 200
_TIED = 1e-12  # tolerance for ties: rounding may depend on the position in an array


def largest_surprise_p_value(
    family: SubgroupFamily, scores: FloatArray, codes: CodeArray, n_draws: int, source: RandomSource
) -> float:
    """The p-value of the largest surprise, under the hypothesis that every row's rate is its score.

    Claimed: if labels are independent given scores and attributes, and each has its score as its
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
    expected = Expected.of(family, scores)
    real = float(expected.surprise(positives_of(family, codes)).max())
    if real == np.inf:
        return 1.0 / (1.0 + n_draws)
    generator = source.generator()
    reached = 0
    with watched(None, n_draws, "drawing labels", "draws") as advance:
        for start in range(0, n_draws, _DRAWS_AT_ONCE):
            size = min(_DRAWS_AT_ONCE, n_draws - start)
            drawn = _drawn_positives(family, scores, size, generator)
            surprises = expected.surprise(drawn).max(axis=1)
            reached += int(np.count_nonzero(surprises >= real * (1.0 - _TIED)))
            advance(size)
    return (1.0 + reached) / (1.0 + n_draws)


def _drawn_positives(
    family: SubgroupFamily, scores: FloatArray, n_draws: int, generator: np.random.Generator
) -> FloatArray:
    """Positive labels in each subgroup (columns), for label sets drawn from the scores (rows)."""
    total = np.zeros((n_draws, family.n_subgroups))
    for start in range(0, scores.size, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        part = scores[rows]
        labels = generator.random((n_draws, part.size)) < part
        total += _sums_of_labels(family, rows, labels)
    return total


def _sums_of_labels(family: SubgroupFamily, rows: slice, labels: BoolArray) -> FloatArray:
    """Sums of several label sets over the rows of each subgroup, four at a time as digits of one
    number.
    """
    n_sets = len(labels)
    n_numbers = -(-n_sets // _PACKED)
    packed = np.zeros((n_numbers, labels.shape[1]))
    for digit in range(_PACKED):
        own = labels[digit::_PACKED]
        packed[: len(own)] += own * float(1 << (_BITS * digit))
    sums = np.empty((n_numbers, family.n_subgroups), dtype=np.int64)
    first = 0
    for part in family.crossings:
        cell = part.cell[rows].astype(np.intp)
        for number in range(n_numbers):
            own_sums = np.bincount(cell, packed[number], minlength=part.size + 1)
            sums[number, first : first + part.size] = own_sums[: part.size]
        first += part.size
    found = np.empty((n_numbers * _PACKED, family.n_subgroups))
    for digit in range(_PACKED):
        found[digit::_PACKED] = (sums >> (_BITS * digit)) & ((1 << _BITS) - 1)
    return found[:n_sets]
