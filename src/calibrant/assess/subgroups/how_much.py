"""By how much is a subgroup off? The search uses one half of the rows and the limits the other, and
vice versa: binomial limits for the rows at hand, bets for their population.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import ndtri

from calibrant._typing import BoolArray, FloatArray
from calibrant.assess.metrics.independent_units import Units
from calibrant.assess.subgroups.entries import SubgroupEntries
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import non_identical
from calibrant.sample.sources.memory import MemoryRows

N_TRIED = 5
"""The number of subgroups that each half proposes to the other."""
_MOST_SHARED = 0.5  # largest share of rows in common between two subgroups that are both tried
_ROUNDING = 1e-12
_ROUNDING_OF_BETS = 1e-9

Tested: TypeAlias = Callable[[BoolArray, float, bool], tuple[float, float]]
"""From the rows of a subgroup in one half, a tail and a side: their mean score, and the limit on
their mean rate.
"""


@dataclass(frozen=True, slots=True)
class ProvedSize:
    """The guaranteed error of a subgroup in one half of its rows.

    Attributes
    ----------
    subgroup : int
        Its index in the family.
    too_low : bool
        Whether the scores are too low.
    error : float
        A lower bound on the mean of rate minus score, or of score minus rate, over these rows.
    n_rows : int
        The number of these rows.
    mean_score : float
        Their mean score.
    rate_limit : float
        A lower bound on their mean rate if the scores are too low, an upper bound otherwise.
    """

    subgroup: int
    too_low: bool
    error: float
    n_rows: int
    mean_score: float
    rate_limit: float


def proved_sizes(
    family: SubgroupFamily,
    surplus: FloatArray,
    variance: FloatArray,
    first: BoolArray,
    alpha: float,
    tested: Tested,
    searched_in: Callable[[BoolArray], SubgroupFamily] | None = None,
) -> list[ProvedSize]:
    """The guaranteed errors, from two searches and up to ten tests.

    Guarantee: with probability at least 1 - alpha, all of them are right, if the labels of the two
    halves are independent given attributes and scores, and if each test misses with probability at
    most its tail.

    Notes
    -----
    The subgroups and sides tested in one half are chosen by the other half alone. So each of the
    ten tests is about a subgroup that is fixed beforehand, at alpha / 10 on one side.

    Parameters
    ----------
    family : SubgroupFamily
        The subgroups.
    surplus, variance : float arrays of shape (n,)
        Label minus score of each row, times its weight, and its expected variance. They only guide
        the search.
    first : bool array of shape (n,)
        The rows of the first half, chosen without looking at labels.
    alpha : float
        Largest probability that any of the errors is wrong.
    tested : function
        From the rows of a subgroup in one half, a tail and a side: their mean score, and the limit
        on their mean rate.
    searched_in : function, optional
        From the rows of one half, the family to search there; `family` by default, when attributes
        are given. Subgroups that are not in `family` are not tested.
    """
    found = []
    tail = alpha / (2.0 * N_TRIED)
    in_half = family.take if searched_in is None else searched_in
    for searched in (first, ~first):
        half = in_half(searched)
        for chosen, too_low in _best(half, surplus[searched], variance[searched], tail):
            number = family.number_of(half.conditions(chosen))
            if number is None:
                continue
            rows = family.members(number) & ~searched
            if not rows.any():
                continue
            mean, limit = tested(rows, tail, too_low)
            error = (limit - mean if too_low else mean - limit) - _ROUNDING
            if error > 0.0:
                found.append(ProvedSize(number, too_low, error, family.rows_in(rows), mean, limit))
    return found


def _best(
    family: SubgroupFamily, surplus: FloatArray, variance: FloatArray, tail: float
) -> list[tuple[int, bool]]:
    """The subgroups whose guaranteed errors are probably largest, and their sides.

    No two of them are nearly the same.
    """
    rows = np.maximum(family.counts, 1)
    sums = family.sums(surplus)
    spread = np.sqrt(family.sums(variance)) * -float(ndtri(tail))
    provable = (np.abs(sums) - spread) / rows
    left = provable > 0.0
    found: list[tuple[int, bool]] = []
    while left.any() and len(found) < N_TRIED:
        number = int(np.where(left, provable, -np.inf).argmax())
        found.append((number, bool(sums[number] > 0.0)))
        shared = family.shared(family.members(number))
        together = rows + rows[number] - shared
        left &= shared <= _MOST_SHARED * together
    return found


def rate_tests(entries: SubgroupEntries) -> Tested:
    """Tests of the mean rate of the rows at hand: independent labels with different rates
    (Hoeffding 1956).
    """

    def tested(members: BoolArray, tail: float, too_low: bool) -> tuple[float, float]:
        rows = float(entries.rows[members].sum())
        limits = non_identical(rows, float(entries.positives[members].sum()), tail)
        mean = float(entries.totals[members].sum()) / rows
        rounded = mean + entries.rounding if too_low else mean - entries.rounding
        return rounded, float(limits.lower if too_low else limits.upper)

    return tested


def bet_tests(rows: MemoryRows, units: Units) -> Tested:
    """Tests of the mean of label minus score in the population of a subgroup.

    Within the subgroup, a unit (a row or a group) has weight w and weighted mean d of label minus
    score. Units are independent draws, so the bets of `calibrant.limits.shift.betting` hold for E[w
    d] / E[w].
    """
    error = rows.codes - rows.scores

    def tested(members: BoolArray, tail: float, too_low: bool) -> tuple[float, float]:
        place = np.flatnonzero(members)
        part = units.part(place)
        low, high = part.limits(error[place], 2.0 * tail, ends=(-1.0, 1.0))
        mean = part.mean(rows.scores[place])
        return mean, mean + (low - _ROUNDING_OF_BETS if too_low else high + _ROUNDING_OF_BETS)

    return tested


def all_limits(family: SubgroupFamily, errors: FloatArray, units: Units, each: float) -> Interval:
    """Limits on the mean of label minus score, in the population of every subgroup.

    The limits of a subgroup miss with probability at most `each`, which must not depend on these
    rows.
    """
    limits = []
    for part in family.crossings:
        inside = np.flatnonzero(part.cell < part.size)
        place = part.cell[inside].astype(np.intp)
        own = units.part(inside)
        limits.append(own.means(errors[inside], place, part.size, each, ends=(-1.0, 1.0)))
    lower = np.concatenate([found.lower for found in limits]) - _ROUNDING_OF_BETS
    upper = np.concatenate([found.upper for found in limits]) + _ROUNDING_OF_BETS
    return Interval(np.maximum(lower, -1.0), np.minimum(upper, 1.0))
