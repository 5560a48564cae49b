"""The size of errors in a population: bets on label minus score, for rows or whole groups."""

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.assess.metrics.independent_units import Units
from calibrant.assess.subgroups.how_much import Tested
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.interval import Interval
from calibrant.sample.sources.memory import MemoryRows

_ROUNDING = 1e-9


def _outcomes(rows: MemoryRows) -> FloatArray:
    """Label minus score, rescaled from [-1, 1] to [0, 1]."""
    return np.asarray((rows.codes - rows.scores + 1.0) / 2.0)


def bet_tests(rows: MemoryRows, units: Units) -> Tested:
    """Tests of the mean of label minus score in the population of a subgroup.

    Within the subgroup, a unit (a row or a group) has weight w and weighted mean d of label minus
    score. Units are independent draws, so the bets of `calibrant.limits.shift.betting` hold for E[w
    d] / E[w].
    """
    outcomes = _outcomes(rows)
    weights = units.weights(len(rows))

    def tested(members: BoolArray, tail: float, too_low: bool) -> tuple[float, float]:
        place = np.flatnonzero(members)
        part = units.part(place)
        limits = part.means(outcomes[place], np.zeros(place.size, dtype=np.intp), 1, 2.0 * tail)
        mean = float(np.average(rows.scores[place], weights=weights[place]))
        limit = limits.lower if too_low else limits.upper
        inwards = -_ROUNDING if too_low else _ROUNDING
        return mean, mean + 2.0 * float(limit[0]) - 1.0 + inwards

    return tested


def all_error_limits(
    family: SubgroupFamily, rows: MemoryRows, units: Units, each: float
) -> Interval:
    """Limits on the mean of label minus score, in the population of every subgroup.

    The limits of a subgroup miss with probability at most `each`, which must not depend on these
    rows.
    """
    found = _all_means(family, _outcomes(rows), units, each)
    return Interval(2.0 * found.lower - 1.0 - _ROUNDING, 2.0 * found.upper - 1.0 + _ROUNDING)


def all_score_limits(
    family: SubgroupFamily, rows: MemoryRows, units: Units, each: float
) -> Interval:
    """Limits on the average score, in the population of every subgroup; see `all_error_limits`."""
    found = _all_means(family, np.asarray(rows.scores, dtype=np.float64), units, each)
    lower = np.maximum(found.lower - _ROUNDING, 0.0)
    return Interval(lower, np.minimum(found.upper + _ROUNDING, 1.0))


def _all_means(family: SubgroupFamily, outcomes: FloatArray, units: Units, each: float) -> Interval:
    """Limits on the mean of numbers in [0, 1]."""
    lower = []
    upper = []
    for part in family.crossings:
        inside = np.flatnonzero(part.cell < part.size)
        place = part.cell[inside].astype(np.intp)
        own = units.part(inside)
        limits = own.means(outcomes[inside], place, part.size, each)
        lower.append(limits.lower)
        upper.append(limits.upper)
    return Interval(np.concatenate(lower), np.concatenate(upper))
