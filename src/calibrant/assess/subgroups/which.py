"""Which subgroups are off? Exact tails of the label sum, if every row of a subgroup has its score
as its rate.
"""

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray
from calibrant.assess.subgroups.evidence import Expected, positives_of
from calibrant.cells.score_kinds import N_KINDS, kinds_of
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.poisson_binomial import log_tail_bound, lower_tail, upper_tail

_NEAR = 4.0  # in log units: a bound that misses the level by more is not followed up
_ROUNDING = 1e-10  # of mean scores
_MOST_EXACT = (
    200_000  # largest subgroup whose tail is computed exactly; beyond, a bound is close enough
)


class Exact(Protocol):
    """A function that computes the logarithm of a tail exactly."""

    def __call__(self, number: int, *, too_many: bool) -> float:
        """The log tail of a subgroup, on the side of too many or of too few positives."""


def level_of_each(family: SubgroupFamily, alpha: float) -> FloatArray:
    """The level of each subgroup: orders share alpha evenly, and so do the subgroups of an order.

    All rows count as a subgroup of order 1. The number of subgroups depends on attributes alone.
    """
    order = np.maximum(family.order, 1)
    used = np.unique(order)
    sizes = np.bincount(order)
    return np.asarray(alpha / used.size / sizes[order])


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSums:
    """Rows and scores of each subgroup by kind of score: all that a bound on a tail needs.

    Attributes
    ----------
    counts, totals : float arrays of shape (n_subgroups, N_KINDS)
        Numbers of rows, and sums of their scores.
    """

    counts: FloatArray
    totals: FloatArray

    @classmethod
    def of(
        cls, family: SubgroupFamily, kind: IndexArray, rows: FloatArray | None, totals: FloatArray
    ) -> Self:
        """Sums over rows, or over entries that stand for `rows` rows with these score totals."""
        shape = (-1, N_KINDS)
        counts = []
        sums = []
        for part in family.crossings:
            place = part.cell.astype(np.intp) * N_KINDS + kind
            size = (part.size + 1) * N_KINDS
            counts.append(np.bincount(place, rows, minlength=size).reshape(shape)[: part.size])
            sums.append(np.bincount(place, totals, minlength=size).reshape(shape)[: part.size])
        return cls(
            np.concatenate(counts).astype(np.float64), np.concatenate(sums).astype(np.float64)
        )

    def log_tail(self, number: int, positives: int, *, too_many: bool) -> float:
        """An upper bound on the logarithm of a subgroup's tail, on the side of too many or of too
        few positives.
        """
        counts = self.counts[number]
        means = self.totals[number] / np.maximum(counts, 1.0)
        if too_many:
            return log_tail_bound(counts, means + _ROUNDING, positives)
        return log_tail_bound(counts, 1.0 - means + _ROUNDING, int(counts.sum()) - positives)


def proved_off(
    family: SubgroupFamily, scores: FloatArray, codes: CodeArray, alpha: float
) -> BoolArray:
    """The subgroups in which some row's rate is proved to differ from its score.

    Claimed: if labels are independent given scores and attributes, then with probability at least 1
    - alpha every marked subgroup has a row whose rate is above its score if there are too many
    positives, or below if there are too few.

    Notes
    -----
    If no row of a subgroup has a rate above its score, the sum of labels is stochastically
    dominated by the sum with rates equal to scores, whose distribution is Poisson-binomial and
    known. Each side gets half of the subgroup's level. Chernoff's bound is tried first, from the
    mean scores of 128 kinds of rows. If it narrowly misses, the tail is computed exactly.
    """
    expected = Expected.of(family, scores)
    positives = positives_of(family, codes)
    sums = ScoreSums.of(family, kinds_of(scores), None, scores)

    def exact(number: int, *, too_many: bool) -> float:
        own = scores[family.members(number)]
        tail = upper_tail if too_many else lower_tail
        return math.log(max(tail(own, int(positives[number])), 1e-300))

    return marked_subgroups(family, expected, positives, sums, alpha, exact)


def marked_subgroups(
    family: SubgroupFamily,
    expected: Expected,
    positives: FloatArray,
    sums: ScoreSums,
    alpha: float,
    exact: Exact | None = None,
) -> BoolArray:
    """Mark subgroups by bounds on their tails; `exact` computes a tail exactly if rows are at hand."""
    log_level = np.log(level_of_each(family, alpha) / 2.0)
    candidates = np.flatnonzero(expected.surprise(positives) > -log_level - _NEAR)
    found = np.zeros(family.n_subgroups, dtype=bool)
    for number in candidates.tolist():
        too_many = bool(positives[number] > expected.total[number])
        bound = sums.log_tail(number, int(positives[number]), too_many=too_many)
        is_near = log_level[number] < bound < log_level[number] + _NEAR
        if exact is not None and is_near and family.counts[number] <= _MOST_EXACT:
            bound = exact(number, too_many=too_many)
        found[number] = bound <= log_level[number]
    return found
