"""Limits on the error of predictions in every subgroup simultaneously, for new rows: bets on label
minus prediction, for rows or whole groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.bounded_mean import betting_mean, weighted_means
from calibrant.limits.error_budget import even_width_tails
from calibrant.limits.goal_bets import BetUnits, goal_limits
from calibrant.limits.interval import Interval

_MOST_GOAL_ROWS = 20_000  # with more rows, bets that aim at a goal take too long
_LEAST_VARIANCE = 1e-4
_LEAST_PREDICTION_VARIANCE = 1e-8
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class SubgroupRows:
    """Rows of a family of subgroups, with predictions.

    Attributes
    ----------
    family : SubgroupFamily
        Their subgroups.
    predictions : float array of shape (n,)
        The prediction for each row.
    codes : int array of shape (n,)
        Labels.
    unit : int array of shape (n,), optional
        The group of each row; the rows of a group are contiguous.
    weights : float array of shape (n,), optional
        With groups, the weight of each row; the weights of a group add up to at most 1.
    """

    family: SubgroupFamily
    predictions: FloatArray
    codes: CodeArray
    unit: IndexArray | None = None
    weights: FloatArray | None = None

    @property
    def errors(self) -> FloatArray:
        """Label minus prediction."""
        return np.asarray(self.codes - self.predictions)

    def averages(self, values: FloatArray) -> FloatArray:
        """The weighted mean of each subgroup."""
        counted = np.ones(values.size) if self.weights is None else self.weights
        total = self.family.sums(counted)
        return np.asarray(self.family.sums(counted * values) / np.maximum(total, 1e-300))

    def members(self) -> Iterator[IndexArray]:
        """The rows of each subgroup, in order."""
        for part in self.family.crossings:
            order = np.argsort(part.cell, kind="stable")
            ends = np.cumsum(np.bincount(part.cell, minlength=part.size + 1))[:-1]
            yield from np.split(order, ends)[: part.size]

    def units(self, values: FloatArray, rows: IndexArray) -> tuple[FloatArray, FloatArray | None]:
        """The independent draws of a subgroup: the mean of each, and its weight if not 1."""
        if self.unit is None or self.weights is None:
            return values[rows], None
        starts = np.flatnonzero(np.diff(self.unit[rows], prepend=-1))
        if not starts.size:
            return np.empty(0), np.empty(0)
        weights = np.add.reduceat(self.weights[rows], starts)
        sums = np.add.reduceat(self.weights[rows] * values[rows], starts)
        return sums / weights, weights / (1.0 + 1e-12)


@dataclass(frozen=True, slots=True, eq=False)
class Guesses:
    """Expectations for each subgroup, from rows that are not used in the proof: a bad guess only
    widens the limits.

    Attributes
    ----------
    variances : float array of shape (n_subgroups,)
        Variance of label minus prediction, or of its sum over a group.
    prediction_variances : float array of shape (n_subgroups,)
        Variance of the prediction minus its mean.
    weights : float array of shape (n_subgroups,)
        The mean weight of a group; 1 without groups.
    n_draws : float array of shape (n_subgroups,)
        Number of rows, or of groups.
    """

    variances: FloatArray
    prediction_variances: FloatArray
    weights: FloatArray
    n_draws: FloatArray

    @classmethod
    def of(cls, rows: SubgroupRows) -> Self:
        """Guesses from rows that the predictions were fitted to."""
        if rows.unit is not None:
            return cls._of_groups(rows)
        counts = np.maximum(rows.family.counts, 1)
        predicted = rows.predictions
        seen = rows.family.counts > 0
        spread = rows.family.sums(predicted * (1.0 - predicted)) / counts
        squares = rows.family.sums(np.square(predicted)) / counts
        about = squares - np.square(rows.family.sums(predicted) / counts)
        variances = np.maximum(np.where(seen, spread, 0.25), _LEAST_VARIANCE)
        of_predictions = np.maximum(np.where(seen, about, 0.25), _LEAST_PREDICTION_VARIANCE)
        return cls(variances, of_predictions, np.ones(counts.size), counts.astype(np.float64))

    @classmethod
    def _of_groups(cls, rows: SubgroupRows) -> Self:
        variances = []
        of_predictions = []
        weights = []
        n_draws = []
        averages = rows.averages(rows.predictions)
        for number, own in enumerate(rows.members()):
            means, counted = rows.units(rows.errors, own)
            predicted, _ = rows.units(rows.predictions, own)
            if counted is None or not counted.size:
                variances.append(0.25)
                of_predictions.append(0.25)
                weights.append(1.0)
                n_draws.append(1.0)
                continue
            variances.append(float(np.mean(np.square(counted * means))))
            off = counted * (predicted - averages[number])
            of_predictions.append(float(np.mean(np.square(off))))
            weights.append(float(counted.mean()))
            n_draws.append(float(counted.size))
        typical = np.array(weights)
        least = np.square(typical)
        return cls(
            np.maximum(np.array(variances), _LEAST_VARIANCE * least),
            np.maximum(np.array(of_predictions), _LEAST_PREDICTION_VARIANCE * least),
            typical,
            np.array(n_draws),
        )


def error_limits(rows: SubgroupRows, guesses: Guesses, alpha: float) -> Interval:
    """Simultaneous limits on the mean of label minus prediction in the population of each subgroup.

    Claimed: with probability at least 1 - alpha over these rows, in every subgroup of the family
    the rate of new rows differs from their average prediction by no more than the limits say.
    Assumed: rows, or whole groups, are i.i.d., in an order that does not depend on them;
    predictions, cuts, the choice of subgroups, guesses and the cap on groups do not depend on them.

    Notes
    -----
    Other rows fix the subgroups and the tail of each. Take one of them. Given which rows belong to
    it, these are independent draws from its population, so bets on label minus prediction hold
    (`calibrant.limits.goal_bets`), whatever their number. Subgroups overlap: alpha is shared by
    Bonferroni's rule, with most for those with the widest limits, by guesses at their variances and
    numbers of rows. Subgroups or tails chosen by the proof rows would break this: if an attribute
    depends on labels, or if large groups have other rates than small ones, the rows that make a
    subgroup large enough are not like the others.

    With groups, a draw is a group: w is the weight of its rows in the subgroup, and z their mean of
    label minus prediction. The limits are on E[w z] / E[w], the mean over rows of new groups, with
    the cap on groups.
    """
    tails = _tails(guesses, np.sqrt(guesses.variances) / guesses.weights, alpha)
    values = rows.errors
    return _all_limits(rows, values, (-1.0, 1.0), guesses.variances, guesses.weights, tails)


def prediction_limits(rows: SubgroupRows, guesses: Guesses, alpha: float) -> Interval:
    """Simultaneous limits on the average prediction among new rows in every subgroup, as in
    `error_limits`.
    """
    deviations = np.sqrt(guesses.prediction_variances) / guesses.weights
    tails = _tails(guesses, deviations, alpha)
    variances = guesses.prediction_variances
    return _all_limits(rows, rows.predictions, (0.0, 1.0), variances, guesses.weights, tails)


def _tails(guesses: Guesses, deviations: FloatArray, alpha: float) -> FloatArray:
    """The tail of each limit, by the deviation of one draw and the expected number of draws."""
    return even_width_tails(deviations / np.sqrt(np.maximum(guesses.n_draws, 1.0)), alpha)


def _all_limits(
    rows: SubgroupRows,
    values: FloatArray,
    ends: tuple[float, float],
    variances: FloatArray,
    typical: FloatArray,
    tails: FloatArray,
) -> Interval:
    lower = []
    upper = []
    for number, own in enumerate(rows.members()):
        means, weights = rows.units(values, own)
        variance = float(variances[number])
        units = BetUnits(np.clip(means, *ends), *ends, variance, weights, float(typical[number]))
        low, high = _limits(units, float(tails[number]))
        lower.append(max(low - _ROUNDING, ends[0]))
        upper.append(min(high + _ROUNDING, ends[1]))
    return Interval(np.array(lower), np.array(upper))


def _limits(units: BetUnits, tail: float) -> tuple[float, float]:
    """Limits for one subgroup. The kind of bets depends only on its number of draws."""
    if units.values.size <= _MOST_GOAL_ROWS:
        return goal_limits(units, tail)
    width = units.high - units.low
    shares = (units.values - units.low) / width
    if units.weights is None:
        low, high = betting_mean(shares, 2.0 * tail)
    else:
        nowhere = np.zeros(shares.size, dtype=np.intp)
        found = weighted_means(nowhere, units.weights, shares, 1, 2.0 * tail)
        low = float(found.lower[0])
        high = float(found.upper[0])
    return units.low + width * low, units.low + width * high
