"""Limits on the error of predictions in every subgroup at once, for new rows: bets on label minus
prediction.
"""

from dataclasses import dataclass

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.bounded_mean import betting_mean
from calibrant.limits.goal_bets import BetUnits, goal_limits
from calibrant.limits.interval import Interval
from calibrant.limits.shared_tails import even_width_tails

_MOST_GOAL_ROWS = 20_000  # bets that aim at a goal take too long for more
_LEAST_VARIANCE = 1e-4
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class ProvingRows:
    """Rows that played no part in the predictions, in a random order.

    Attributes
    ----------
    family : SubgroupFamily
        Their subgroups; numbers were cut by other rows.
    predictions : float array of shape (n,)
        What is predicted for each.
    codes : int array of shape (n,)
        Labels.
    """

    family: SubgroupFamily
    predictions: FloatArray
    codes: CodeArray


def error_limits(rows: ProvingRows, variances: FloatArray, alpha: float) -> Interval:
    """Limits on the mean of label minus prediction in the population of each subgroup, all at once.

    Claimed: with probability at least 1 - alpha over these rows, in every subgroup of the family
    the rate of new rows differs from their average prediction by no more than the limits say.
    Assumed: rows are i.i.d.; predictions and cuts do not depend on them.

    Notes
    -----
    Which subgroup a row belongs to is fixed by cuts that other rows made. Given that, for all rows,
    the rows of a subgroup are independent draws from its population, so that bets on label minus
    prediction hold (`calibrant.limits.goal_bets`), for their number as it is. Subgroups overlap:
    alpha is shared by Bonferroni's rule, most for those with the widest limits, by guesses of their
    `variances` from other rows.
    """
    family = rows.family
    guessed = np.maximum(variances, _LEAST_VARIANCE)
    deviations = np.sqrt(guessed / np.maximum(family.counts, 1))
    tails = even_width_tails(deviations, alpha)
    errors = rows.codes - rows.predictions
    lower = []
    upper = []
    number = 0
    for part in family.crossings:
        order = np.argsort(part.cell, kind="stable")
        ends = np.cumsum(np.bincount(part.cell, minlength=part.size + 1))[:-1]
        for own in np.split(order, ends)[: part.size]:
            low, high = _limits(errors, own, float(guessed[number]), float(tails[number]))
            lower.append(low)
            upper.append(high)
            number += 1
    return Interval(np.array(lower), np.array(upper))


def _limits(
    errors: FloatArray, rows: IndexArray, variance: float, tail: float
) -> tuple[float, float]:
    """Limits of one subgroup. Which kind of bets is made depends on its number of rows alone."""
    own = errors[rows]
    if own.size <= _MOST_GOAL_ROWS:
        low, high = goal_limits(BetUnits(own, -1.0, 1.0, variance), tail)
    else:
        low, high = betting_mean((own + 1.0) / 2.0, 2.0 * tail)
        low = 2.0 * low - 1.0
        high = 2.0 * high - 1.0
    return max(low - _ROUNDING, -1.0), min(high + _ROUNDING, 1.0)
