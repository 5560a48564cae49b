"""What rows prove about probabilities that were fixed before these rows were seen.

With p the probability and b a region of p that pilot rows cut, E[Y - p | b] is the mean of
independent numbers: given which rows fall into b, their pairs (p, Y) are independent draws. So bets
on Y - p bound it (`unit_limits`), with all of the rows of b and at no cost for a curve. If p hardly
varies in b and positives or negatives are rare, exact binomial limits on the rate are narrower than
bets. In that case the rate minus the average of p is bounded by these, and by limits on the
average. Pilot rows and the number of rows in each region determine which of the two is used, before
any label is seen: the same number of typical pilot rows are bet on, and counted, and the method
with the narrower limits for them is used for the rows themselves.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators._recentre import Moved
from calibrant.calibrators.anchored.pilot_rows import Guess, RegionUnits
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.units import RowUnits
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits, Draws
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource

AVERAGE_SHARE = 0.02
"""Share of the error budget for limits on the average prediction of each region."""


@dataclass(frozen=True, slots=True, eq=False)
class ProbabilityRows:
    """Rows with a probability, a label, and possibly a group.

    Attributes
    ----------
    scores : float array of shape (n,)
        Probabilities.
    codes : int array of shape (n,)
        Labels, 0 or 1.
    groups : int array of shape (n,), optional
        The index of each row's group.
    """

    scores: FloatArray
    codes: CodeArray
    groups: IndexArray | None = None

    @property
    def n_units(self) -> int:
        """The number of rows, or of groups."""
        return len(self.scores) if self.groups is None else np.unique(self.groups).size

    def units(self, regions: IndexArray, n_regions: int, cap: int) -> "list[RegionUnits]":
        """The independent units of each region: single rows, or whole groups.

        The rows of a group in a region count as one number, their mean, with weight min(rows, cap)
        / cap.
        """
        errors = self.codes - self.scores
        if self.groups is None:
            sorted_rows = np.argsort(regions, kind="stable")
            ends = np.cumsum(np.bincount(regions, minlength=n_regions))[:-1]
            return [
                RegionUnits(errors[rows], self.scores[rows]) for rows in np.split(sorted_rows, ends)
            ]
        units = RowUnits(self.groups, int(self.groups.max()) + 1, np.ones(len(self.scores)))
        cells = units.in_cells(regions, n_regions)
        columns = (
            cells.sums(errors[cells.rows]) / cells.total,
            cells.sums(self.scores[cells.rows]) / cells.total,
            np.minimum(cells.total, cap) / cap,
        )
        by_region = np.argsort(cells.cell, kind="stable")
        ends = np.cumsum(np.bincount(cells.cell, minlength=n_regions))[:-1]
        parts = (np.split(column[by_region], ends) for column in columns)
        return [RegionUnits(*of_region) for of_region in zip(*parts, strict=True)]

    def largest_group(self, regions: IndexArray) -> int:
        """The largest number of rows that a group has in a region."""
        return 1 if self.groups is None else int(self.rows_of_groups(regions).max())

    def above_cap(self, regions: IndexArray, cap: int) -> float:
        """The share of rows beyond the cap of their groups."""
        if self.groups is None:
            return 0.0
        rows = self.rows_of_groups(regions)
        return float(np.maximum(rows - cap, 0).sum() / rows.sum())

    def rows_of_groups(self, regions: IndexArray) -> IntArray:
        """The number of rows of each group in each region where it has any."""
        if self.groups is None:
            return np.ones(len(self.scores), dtype=np.int64)
        units = RowUnits(self.groups, int(self.groups.max()) + 1, np.ones(len(self.scores)))
        return units.in_cells(regions, int(regions.max()) + 1).n_rows


@dataclass(frozen=True, slots=True, eq=False)
class Pilot:
    """What is known about each region before the proof rows are seen.

    Attributes
    ----------
    units : list of RegionUnits
        Its pilot rows, or groups of them.
    guess : Guess
        Their estimates of variances.
    cap : int
        The largest number of rows of a group that count.
    """

    units: list[RegionUnits]
    guess: Guess
    cap: int

    @classmethod
    def of(cls, rows: ProbabilityRows, partition: ScorePartition) -> Self:
        """The pilot from some rows."""
        regions = partition.regions_of(rows.scores)
        cap = rows.largest_group(regions)
        units = rows.units(regions, partition.n_regions, cap)
        return cls(units, Guess.of(units, np.clip(partition.bounds, 0.0, 1.0)), cap)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutLimits:
    """What is proved about each region; everything holds simultaneously.

    Attributes
    ----------
    errors : Interval
        The rate minus the average probability.
    averages : Interval
        The average probability.
    rates : Interval
        The rate.
    value : float array of shape (n_regions,)
        The average probability of the counted rows.
    """

    errors: Interval
    averages: Interval
    rates: Interval
    value: FloatArray

    def of(self, moved: Moved) -> "HeldOutLimits":
        """The same limits for moved probabilities."""
        return replace(
            self,
            errors=moved.errors(self.errors, self.averages),
            averages=moved.averages(self.averages),
            value=moved.at(self.value),
        )


def held_out_limits(
    rows: ProbabilityRows,
    partition: ScorePartition,
    pilot: Pilot,
    alpha: float,
    generator: np.random.Generator,
) -> HeldOutLimits:
    """Simultaneous limits for all regions, which hold with probability at least 1 - alpha.

    Assumed: rows, or whole groups, are independent draws from one distribution. Fixed before they
    were seen: the probabilities, the partition and the pilot. The generator, which draws the order of
    bets, is independent of them.

    Regions of independent rows get Sidak's share of alpha, because the rows of different regions
    are independent given the number of rows in each region. A group may have rows in several
    regions: then the shares add up (Bonferroni).
    """
    regions = partition.regions_of(rows.scores)
    n_regions = partition.n_regions
    units = rows.units(regions, n_regions, pilot.cap)
    n_units = np.array([unit.errors.size for unit in units])
    of_averages = AVERAGE_SHARE * alpha
    of_errors = alpha - of_averages
    if rows.groups is None:
        shares = pilot.guess.shares(n_units, of_errors)
        tails = -np.expm1(np.log1p(-of_errors) * shares) / 2.0
    else:  # the number of groups with rows in a region may depend on their labels
        equal = np.full(n_regions, max(1, rows.n_units // n_regions))
        shares = pilot.guess.shares(equal, of_errors)
        tails = of_errors * shares / 2.0
    bounds = np.clip(partition.bounds, 0.0, 1.0)
    bets = _Bets(bounds, pilot.units, tails, of_averages / (2.0 * n_regions))
    limits = bets.limits(units, generator)
    if rows.groups is None:
        expected = [seen.typical(n) for seen, n in zip(pilot.units, n_units.tolist(), strict=True)]
        # one fixed order, so that the choice does not depend on a draw
        of_expected = bets.limits(expected, RandomSource(0).generator())
        limits = limits.counted(units, tails, is_counted=of_expected.are_wide(expected, tails))
    middle = bounds.mean(axis=1)
    value = np.array([unit.average for unit in units])
    return HeldOutLimits(
        Interval(np.maximum(limits.errors.lower, -1.0), np.minimum(limits.errors.upper, 1.0)),
        limits.averages,
        Interval(np.clip(limits.rates.lower, 0.0, 1.0), np.clip(limits.rates.upper, 0.0, 1.0)),
        np.where(np.isnan(value), middle, value),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Limits:
    """Limits on errors, averages and rates, as in `HeldOutLimits`."""

    errors: Interval
    averages: Interval
    rates: Interval

    def counted(
        self, units: list[RegionUnits], tails: FloatArray, is_counted: BoolArray
    ) -> "_Limits":
        """The limits, with exact binomial limits on the rates of some regions in place of bets."""
        n_units = np.array([unit.errors.size for unit in units])
        positives = np.array([unit.positives for unit in units])
        exact = Interval(
            lower_limit(positives, n_units, tails), upper_limit(positives, n_units, tails)
        )
        lower = exact.lower - self.averages.upper
        upper = exact.upper - self.averages.lower
        errors = _chosen(is_counted, Interval(lower, upper), self.errors)
        return replace(self, errors=errors, rates=_chosen(is_counted, exact, self.rates))

    def are_wide(self, units: list[RegionUnits], tails: FloatArray) -> BoolArray:
        """Whether these limits, by bets on some units, are wider than those by counts of their
        labels.
        """
        counts = self.counted(units, tails, is_counted=np.ones(len(units), dtype=bool))
        return counts.errors.upper - counts.errors.lower < self.errors.upper - self.errors.lower


@dataclass(frozen=True, slots=True, eq=False)
class _Bets:
    """How bets are placed on the units of each region.

    Attributes
    ----------
    bounds : float array of shape (n_regions, 2)
        The ends of each region.
    pilot : list of RegionUnits
        Pilot units of each region.
    tails : float array of shape (n_regions,)
        Largest probability that each limit on the error misses.
    tail_of_averages : float
        Largest probability that each limit on the average probability misses.
    """

    bounds: FloatArray
    pilot: list[RegionUnits]
    tails: FloatArray
    tail_of_averages: float

    def limits(self, units: list[RegionUnits], generator: np.random.Generator) -> _Limits:
        """Limits on the rate minus the average probability of each region, and on the average."""
        n_regions = self.tails.size
        low, high = self.bounds.T
        bets = BetUnits.of(
            Draws.joined(_draws(units), n_regions),
            np.concatenate([-high, low]),
            np.concatenate([1.0 - low, high]),
            generator,
            Draws.joined(_draws(self.pilot), n_regions),
        )
        tails = np.concatenate([self.tails, np.full(n_regions, self.tail_of_averages)])
        found = bet_limits(bets, tails)
        errors = Interval(found.lower[:n_regions], found.upper[:n_regions])
        averages = Interval(found.lower[n_regions:], found.upper[n_regions:])
        rates = Interval(errors.lower + averages.lower, errors.upper + averages.upper)
        return _Limits(errors, averages, rates)


def _draws(units: list[RegionUnits]) -> list[Draws]:
    """What is bet on: label minus probability of each unit, then the probability."""
    region = np.repeat(np.arange(len(units)), [unit.errors.size for unit in units])
    weights = [np.ones(of.errors.size) if of.weights is None else of.weights for of in units]
    weight = None if all(of.weights is None for of in units) else np.concatenate(weights)
    return [
        Draws(region, np.concatenate([of.errors for of in units]), weight),
        Draws(region, np.concatenate([of.scores for of in units]), weight),
    ]


def _chosen(first: BoolArray, one: Interval, other: Interval) -> Interval:
    return Interval(
        np.where(first, one.lower, other.lower), np.where(first, one.upper, other.upper)
    )
