"""Which subgroups are off? Exact tails of the sum of labels, if every row of a subgroup has its score as its rate."""

import math

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray, IntArray
from calibrant.assess.subgroups.evidence import Expected, positives_of
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.poisson_binomial import log_tail_bound, lower_tail, upper_tail

N_KINDS = 128
"""Kinds of scores for the first bound: each has its mean."""
_NEAR = 4.0  # of the logarithm: a bound that misses the level by more is not followed up
_MOST_EXACT = 200_000  # rows of a subgroup whose tail is found exactly; beyond, a bound is close enough


def level_of_each(family: SubgroupFamily, alpha: float) -> FloatArray:
    """The level of each subgroup: orders share alpha evenly, and so do the subgroups of an order.

    All rows count with single attributes. How many there are depends on attributes alone.
    """
    order = np.maximum(family.order, 1)
    used = np.unique(order)
    sizes = np.bincount(order)
    return np.asarray(alpha / used.size / sizes[order])


def proved_off(family: SubgroupFamily, scores: FloatArray, codes: CodeArray, alpha: float) -> BoolArray:
    """The subgroups in which some row's rate is proved to differ from its score.

    Claimed: if labels are independent given scores and attributes, then with probability at least 1 - alpha every
    subgroup that is marked has a row whose rate is above its score if the labels are too many, below if too few.

    Notes
    -----
    If no row of a subgroup has a rate above its score, the sum of labels is stochastically at most the one with rates
    equal to scores, whose distribution is Poisson-binomial and known. Each side gets half of the subgroup's level. A
    bound by Chernoff is tried first, from the mean scores of 128 kinds of rows. Where it misses by little, the tail is
    found exactly.
    """
    expected = Expected.of(family, scores)
    positives = positives_of(family, codes)
    log_level = np.log(level_of_each(family, alpha) / 2.0)
    candidates = np.flatnonzero(expected.surprise(positives) > -log_level - _NEAR)
    found = np.zeros(family.n_subgroups, dtype=bool)
    kind = kinds_of(scores)
    for number in candidates.tolist():
        inside = family.members(number)
        own = scores[inside]
        counts = np.bincount(kind[inside], minlength=N_KINDS)
        means = np.bincount(kind[inside], own, minlength=N_KINDS) / np.maximum(counts, 1)
        too_many = bool(positives[number] > expected.total[number])
        bound = log_side_tail(counts, means, int(positives[number]), too_many=too_many)
        if bound > log_level[number] and bound < log_level[number] + _NEAR and own.size <= _MOST_EXACT:
            tail = upper_tail if too_many else lower_tail
            bound = math.log(max(tail(own, int(positives[number])), 1e-300))
        found[number] = bound <= log_level[number]
    return found


def kinds_of(scores: FloatArray) -> IndexArray:
    """The kind of each score: fine near 0 and near 1, where a rate moves tails most."""
    place = np.arcsin(np.sqrt(scores)) * (2.0 / np.pi)
    return np.minimum((place * N_KINDS).astype(np.intp), N_KINDS - 1)


def log_side_tail(counts: IntArray, means: FloatArray, positives: int, *, too_many: bool) -> float:
    """An upper bound of the logarithm of the tail, on the side of too many or of too few positive labels."""
    rounding = 1e-10  # of mean scores
    if too_many:
        return log_tail_bound(counts, means + rounding, positives)
    return log_tail_bound(counts, 1.0 - means + rounding, int(counts.sum()) - positives)
