"""Limits on the error of predictions in every subgroup simultaneously, for new rows: bets on label
minus prediction, for rows or whole groups, in two halves that change roles.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.cells.entries import Entries
from calibrant.cells.subgroup_family import Crossing, SubgroupFamily
from calibrant.cells.units import RowUnits
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.error_budget import even_width_tails
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource, fingerprint_of

_LEAST_VARIANCE = 1e-4
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

    def draws(self, values: FloatArray, part: Crossing) -> Entries:
        """The independent draws in disjoint subgroups: rows, or whole groups with their weights."""
        inside = np.flatnonzero(part.cell < part.size)
        cell = part.cell[inside].astype(np.intp)
        if self.unit is None or self.weights is None:
            return Entries.of_rows(values[inside], cell, part.size)
        units = RowUnits(self.unit[inside], int(self.unit.max()) + 1, self.weights[inside])
        return Entries.of_rows(values[inside], cell, part.size, units)


def standard_errors(rows: SubgroupRows) -> FloatArray:
    """Guesses at the standard error of the mean of label minus prediction in each subgroup, from
    rows that are not used for the limits, such as those that the predictions were fitted to: a bad
    guess only widens the limits.
    """
    columns = []
    for part in rows.family.crossings:
        errors = rows.draws(rows.errors, part)
        # the labels of single rows are expected to vary as the predictions say
        squares = np.square(errors.weights * errors.value)
        if rows.unit is None:
            predicted = rows.draws(rows.predictions, part).value
            squares = predicted * (1.0 - predicted)
        columns.append(np.stack([errors.n_units, *map(errors.sums, [errors.weights, squares])]))
    n, weights, variances = np.concatenate(columns, axis=1)
    seen = n > 0
    n = np.maximum(n, 1.0)
    weights = np.where(seen, weights / n, 1.0)
    variances = np.where(seen, variances / n, 0.25)
    variances = np.maximum(variances, _LEAST_VARIANCE * np.square(weights))
    return np.asarray(np.sqrt(variances) / (weights * np.sqrt(n)))


def error_limits(
    halves: Sequence[SubgroupRows], expected: Sequence[FloatArray], alpha: float
) -> Interval:
    """Simultaneous limits on the mean of label minus prediction in the population of each subgroup,
    where the prediction is the mean of two repairs.

    Guarantee: with probability at least 1 - alpha over these rows, in every subgroup of the family
    the rate of new rows differs from their average prediction by no more than the limits say.
    Assumptions: rows, or whole groups, are i.i.d., in an order that does not depend on them; for
    each half, its repair, cuts, the choice of subgroups, guesses and the cap on groups do not
    depend on the half.

    Notes
    -----
    Take one half, and the repair that was fitted without it. Other rows fix the subgroups and the
    tail of each. Given which rows belong to a subgroup, these are independent draws from its
    population, so bets on label minus prediction hold (`calibrant.limits.bet_limits`), whatever
    their number. Subgroups overlap, so alpha is divided by Bonferroni's rule; those whose limits are
    expected to be widest, from estimated standard errors, get the most. Subgroups or tails chosen
    by these rows would break this: if an attribute depends on labels, or if large groups have
    other rates than small ones, the rows that make a subgroup large enough are not like the others.

    The error of the mean of two repairs is the mean of their errors. So the mean of the limits
    from both halves is a limit for it. Each half has half of alpha: the mean of two lower limits
    can be too high only if one of them is.

    With groups, a draw is a group: w is the weight of its rows in the subgroup, and z their mean of
    label minus prediction. The limits are on E[w z] / E[w], the mean over rows of new groups, with
    the cap on groups.
    """
    found = []
    for half, errors in zip(halves, expected, strict=True):
        tails = even_width_tails(errors, alpha / 2.0)
        found.append(_bets(half, half.errors, (-1.0, 1.0), tails))
    return _mean_of(found)


def average_predictions(halves: Sequence[SubgroupRows]) -> FloatArray:
    """The mean, over both halves, of a subgroup's average prediction. A half without rows of a
    subgroup has no average to count, and without rows in either there is none: then it is 1/2.
    """
    averages = np.stack([half.averages(half.predictions) for half in halves])
    has_rows = np.stack([half.family.counts > 0 for half in halves])
    n_halves = has_rows.sum(axis=0)
    total = np.where(has_rows, averages, 0.0).sum(axis=0)
    return np.asarray(np.where(n_halves > 0, total / np.maximum(n_halves, 1), 0.5))


def subgroup_rate_limits(halves: Sequence[SubgroupRows], alpha: float) -> Interval:
    """Simultaneous limits on the rate in the population of each subgroup: exact binomial limits from
    all rows of both halves; with groups, the mean of bets on the labels of each half.
    """
    n_subgroups = halves[0].family.n_subgroups
    tail = alpha / (2.0 * n_subgroups)
    if halves[0].unit is None:
        counts = np.sum([half.family.counts for half in halves], axis=0)
        labels = [half.family.sums(half.codes.astype(np.float64)) for half in halves]
        positives = np.sum(labels, axis=0)
        return Interval(lower_limit(positives, counts, tail), upper_limit(positives, counts, tail))
    tails = np.full(n_subgroups, tail / 2.0)
    return _mean_of(
        [_bets(half, half.codes.astype(np.float64), (0.0, 1.0), tails) for half in halves]
    )


def _bets(
    rows: SubgroupRows, values: FloatArray, ends: tuple[float, float], tails: FloatArray
) -> Interval:
    """Limits on the mean of values in each subgroup, all in one walk."""
    questions = [rows.draws(np.clip(values, *ends), part) for part in rows.family.crossings]
    low, high = (np.full(rows.family.n_subgroups, end) for end in ends)
    fingerprint = fingerprint_of(rows.predictions, labels=rows.codes)
    generator = RandomSource.of(0, "order of bets", rows=fingerprint).generator()
    units = BetUnits.of(Entries.joined(questions), low, high, generator)
    limits = bet_limits(units, tails)
    lower = np.maximum(limits.lower - _ROUNDING, low)
    return Interval(lower, np.minimum(limits.upper + _ROUNDING, high))


def _mean_of(halves: list[Interval]) -> Interval:
    lower = np.mean([half.lower for half in halves], axis=0)
    return Interval(lower, np.mean([half.upper for half in halves], axis=0))
