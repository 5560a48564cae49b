"""Limits on the error of predictions in every subgroup simultaneously, for new rows: bets on label
minus prediction, for rows or whole groups.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.cells.subgroup_family import Crossing, SubgroupFamily
from calibrant.cells.units import RowUnits
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits, Draws
from calibrant.limits.error_budget import even_width_tails
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource, fingerprint_of

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

    def draws(self, values: FloatArray, part: Crossing) -> Draws:
        """The independent draws in disjoint subgroups: rows, or whole groups with their weights."""
        inside = np.flatnonzero(part.cell < part.size)
        cell = part.cell[inside].astype(np.intp)
        if self.unit is None or self.weights is None:
            return Draws(cell, values[inside])
        units = RowUnits(self.unit[inside], int(self.unit.max()) + 1, self.weights[inside])
        cells = units.in_cells(cell, part.size)
        mean = cells.sums(values[inside][cells.rows]) / cells.total
        return Draws(cells.cell, mean, np.minimum(cells.total, 1.0))


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
        averages = rows.averages(rows.predictions)
        columns = []
        first = 0
        for part in rows.family.crossings:
            errors = rows.draws(rows.errors, part)
            cell = errors.region
            weight = np.ones(cell.size) if errors.weight is None else errors.weight
            predicted = rows.draws(rows.predictions, part).value
            off = predicted - averages[first + cell]
            of_part = [weight, np.square(weight * errors.value), np.square(weight * off)]
            sums = [np.bincount(cell, values, minlength=part.size) for values in of_part]
            columns.append(np.stack([np.bincount(cell, minlength=part.size), *sums]))
            first += part.size
        n, weights, variances, of_predictions = np.concatenate(columns, axis=1)
        seen = n > 0
        typical = np.where(seen, weights / np.maximum(n, 1.0), 1.0)
        least = np.square(typical)
        return cls(
            np.maximum(
                np.where(seen, variances / np.maximum(n, 1.0), 0.25), _LEAST_VARIANCE * least
            ),
            np.maximum(
                np.where(seen, of_predictions / np.maximum(n, 1.0), 0.25),
                _LEAST_PREDICTION_VARIANCE * least,
            ),
            typical,
            np.maximum(n, 1.0),
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
    (`calibrant.limits.bet_limits`), whatever their number. Subgroups overlap: alpha is shared by
    Bonferroni's rule, with most for those with the widest limits, by guesses at their variances and
    numbers of rows. Subgroups or tails chosen by the proof rows would break this: if an attribute
    depends on labels, or if large groups have other rates than small ones, the rows that make a
    subgroup large enough are not like the others.

    With groups, a draw is a group: w is the weight of its rows in the subgroup, and z their mean of
    label minus prediction. The limits are on E[w z] / E[w], the mean over rows of new groups, with
    the cap on groups.
    """
    tails = _tails(guesses, np.sqrt(guesses.variances) / guesses.weights, alpha)
    return _all_limits(rows, rows.errors, (-1.0, 1.0), tails)


def prediction_limits(rows: SubgroupRows, guesses: Guesses, alpha: float) -> Interval:
    """Simultaneous limits on the average prediction among new rows in every subgroup, as in
    `error_limits`.
    """
    deviations = np.sqrt(guesses.prediction_variances) / guesses.weights
    tails = _tails(guesses, deviations, alpha)
    return _all_limits(rows, rows.predictions, (0.0, 1.0), tails)


def _tails(guesses: Guesses, deviations: FloatArray, alpha: float) -> FloatArray:
    """The tail of each limit, by the deviation of one draw and the expected number of draws."""
    return even_width_tails(deviations / np.sqrt(np.maximum(guesses.n_draws, 1.0)), alpha)


def _all_limits(
    rows: SubgroupRows, values: FloatArray, ends: tuple[float, float], tails: FloatArray
) -> Interval:
    source = RandomSource.of(
        0, "order of bets", rows=fingerprint_of(rows.predictions, labels=rows.codes)
    )
    generator = source.generator()
    limits = []
    first = 0
    for part in rows.family.crossings:
        draws = rows.draws(np.clip(values, *ends), part)
        low, high = (np.full(part.size, end) for end in ends)
        units = BetUnits.of(draws, low, high, generator)
        limits.append(bet_limits(units, tails[first : first + part.size]))
        first += part.size
    lower = np.concatenate([of.lower for of in limits]) - _ROUNDING
    upper = np.concatenate([of.upper for of in limits]) + _ROUNDING
    return Interval(np.maximum(lower, ends[0]), np.minimum(upper, ends[1]))
