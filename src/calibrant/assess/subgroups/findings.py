"""By how much is a subgroup off? The search uses one half of the rows and the limits the other, and
vice versa: binomial limits for the rows at hand, bets for their population. What was shown is told as
numbers and in words; equivalent findings are merged.
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
from calibrant.text import numbers

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
    mean_score: float | None
    rate_limit: float | None


UNTESTED = ProvedSize(-1, False, 0.0, 0, None, None)
"""No error is guaranteed."""


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
    found = Interval.joined(limits)
    return Interval(
        np.maximum(found.lower - _ROUNDING_OF_BETS, -1.0),
        np.minimum(found.upper + _ROUNDING_OF_BETS, 1.0),
    )


TOO_LOW = "scores too low"
TOO_HIGH = "scores too high"
_Key: TypeAlias = tuple[int, bool]
"""The index of a subgroup, and whether its scores are too low."""
_CLEAR = 3.0  # standard deviations from which on an error is a finding of its own


@dataclass(frozen=True, slots=True)
class SubgroupFinding:
    """A subgroup whose scores are shown to be wrong.

    Attributes
    ----------
    subgroup : str
        The subgroup in words, such as "sex = f, age 61 to 74".
    direction : str
        "scores too low" or "scores too high".
    n_rows : int
        The number of its rows.
    mean_score, rate : float
        Their mean score and their observed rate.
    error : float
        A lower bound on the error: the mean of rate minus score, or of score minus rate, over the
        rows that it was tested on. 0 if only the direction is known, for some row of the subgroup.
    tested_rows : int
        The number of rows that `error` is about: a random half of the subgroup's rows; 0 if only
        the direction is known.
    tested_score : float or None
        Their mean score.
    rate_limit : float or None
        A lower bound on their mean rate if scores are too low, an upper bound if they are too high.
        None for a population, whose mean score is not known exactly: only the error is shown.
    also : tuple of str
        Other subgroups that are off in the same direction that this one explains.
    target : {"rows", "population"}
        Whether `error` is about the tested rows or their population.
    """

    subgroup: str
    direction: str
    n_rows: int
    mean_score: float
    rate: float
    error: float
    tested_rows: int = 0
    tested_score: float | None = None
    rate_limit: float | None = None
    also: tuple[str, ...] = ()
    target: str = "rows"

    @property
    def short(self) -> str:
        """The finding in a few words, to follow "scores are"."""
        direction = self.direction.removeprefix("scores ")
        where = f"in {self.subgroup}"
        if self.tested_rows and self.target == "rows":
            where = f"in {self.tested_rows:,} tested rows of {self.subgroup}"
        if not self.error:
            return f"{direction} for some {where}"
        least = numbers.points(numbers.lower(self.error))
        return f"{direction} by at least {least} on average {where}"

    @property
    def text(self) -> str:
        """The finding in words, with what was seen."""
        predicted = numbers.per_cent(numbers.nearest(self.mean_score))
        observed = numbers.per_cent(numbers.nearest(self.rate))
        seen = f"model says {predicted}, happened {observed} in {numbers.rows(self.n_rows)}"
        tested = others = ""
        if self.rate_limit is not None and self.tested_score is not None:
            limit = f"at most {numbers.per_cent(numbers.upper(self.rate_limit))}"
            if self.direction == TOO_LOW:
                limit = f"at least {numbers.per_cent(numbers.lower(self.rate_limit))}"
            said = numbers.per_cent(numbers.nearest(self.tested_score))
            tested = f", where the model says {said} and the true rate is {limit}"
        if self.also:
            more = numbers.counted(len(self.also), "more subgroup is", "more subgroups are")
            such = "" if len(self.also) == 1 else "such as "
            others = f"; {more} off in the same direction ({such}{self.also[0]})"
        return f"Scores are {self.short}{tested} ({seen}){others}."

    def __str__(self) -> str:
        return self.text


def folded(
    entries: SubgroupEntries,
    which: BoolArray,
    sizes: list[ProvedSize],
    strength: FloatArray,
    variance: FloatArray,
    target: str,
) -> tuple[SubgroupFinding, ...]:
    """Everything that is shown, in as few findings as possible: the strongest first, with those
    that it explains.

    A finding explains others of the same direction if their rows outside of it, and outside of
    earlier findings, show no clear error: their label sum is within three standard deviations of
    what their scores predict. So parts of a subgroup, larger subgroups that contain it, and nearly
    the same rows defined by other attributes are reported as one. Everything that is merged is
    shown, too; this affects only the wording.

    Parameters
    ----------
    entries : SubgroupEntries
        The rows.
    which : bool array of shape (n_subgroups,)
        The subgroups that contain rows whose rate is off.
    sizes : list of ProvedSize
        The errors shown.
    strength : float array of shape (n_subgroups,)
        The strength of the evidence against each subgroup.
    variance : float array
        The expected variance of each entry's label minus score.
    target : {"rows", "population"}
        Whether the errors shown are about the tested rows or their population.
    """
    family = entries.family
    surplus = entries.surplus
    averages = entries.averages()
    largest: dict[_Key, ProvedSize] = {}
    for one in sorted(sizes, key=lambda one: one.error):
        largest[one.subgroup, one.too_low] = one
    found_off = np.flatnonzero(which).tolist()
    sides = [(number, bool(averages[1][number] > averages[0][number])) for number in found_off]
    keys = list(dict.fromkeys([*largest, *sides]))
    keys.sort(key=lambda key: (key not in largest, -strength[key[0]], key))
    outside = {side: np.ones(family.n_rows, dtype=bool) for side in (True, False)}
    found = []
    while keys:
        leader = number, too_low = keys.pop(0)
        outside[too_low] &= ~family.members(number)
        left = family.sums(np.where(outside[too_low], surplus, 0.0)) * (1.0 if too_low else -1.0)
        spread = np.sqrt(family.sums(np.where(outside[too_low], variance, 0.0)))
        explained = left <= _CLEAR * spread
        together = [key for key in keys if key[1] == too_low and explained[key[0]]]
        keys = [key for key in keys if key not in together]
        size = largest.get(leader, UNTESTED)
        finding = SubgroupFinding(
            subgroup=family.words(number),
            direction=TOO_LOW if too_low else TOO_HIGH,
            n_rows=int(family.counts[number]),
            mean_score=float(averages[0][number]),
            rate=float(averages[1][number]),
            error=size.error,
            tested_rows=size.n_rows,
            tested_score=size.mean_score,
            rate_limit=size.rate_limit if target == "rows" else None,
            also=tuple(family.words(other) for other, _ in together),
            target=target,
        )
        found.append(finding)
    return tuple(found)
