"""Limits from rows on probabilities that were fixed before these rows were seen.

With p the probability and b a region of p that pilot rows cut, E[Y - p | b] is the mean of
independent numbers: given which rows fall into b, their pairs (p, Y) are independent draws. So bets
on Y - p bound it, with all of the rows of b and at no cost for a curve. If p hardly
varies in b and positives or negatives are rare, exact binomial limits on the rate are narrower than
bets. In that case the rate minus the average of p is bounded by these, and by limits on the
average. Pilot rows and the number of rows in each region determine which of the two is used, before
any label is seen: the same number of typical pilot rows are bet on, and counted, and the method
with the narrower limits for them is used for the rows themselves.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IntArray
from calibrant.calibrators._recentre import Moved
from calibrant.calibrators.curve.pilot_rows import Guess
from calibrant.cells.entries import Entries
from calibrant.cells.score_partition import ScorePartition
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.error_budget import sidak_levels
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource
from calibrant.sample.sources.memory import MemoryRows

AVERAGE_SHARE = 0.02
"""Share of the error budget for limits on the average prediction of each region."""
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutLimits:
    """What is shown about each region; everything holds simultaneously.

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

    @classmethod
    def by_bets(cls, limits: Interval, value: FloatArray) -> Self:
        """From limits on label minus probability, followed by those on the probability."""
        errors, averages = limits.halves()
        rates = Interval(errors.lower + averages.lower, errors.upper + averages.upper)
        return cls(errors, averages, rates, value)

    def of(self, moved: Moved) -> "HeldOutLimits":
        """The same limits for moved probabilities."""
        return replace(
            self,
            errors=moved.errors(self.errors, self.averages),
            averages=moved.averages(self.averages),
            value=moved.at(self.value),
        )

    def counted(
        self, positives: IntArray, n_rows: IntArray, tails: FloatArray, is_counted: BoolArray
    ) -> "HeldOutLimits":
        """The limits, with exact binomial limits on the rates of some regions in place of bets."""
        exact = Interval(
            lower_limit(positives, n_rows, tails), upper_limit(positives, n_rows, tails)
        )
        lower = exact.lower - self.averages.upper
        upper = exact.upper - self.averages.lower
        errors = _chosen(is_counted, Interval(lower, upper), self.errors)
        return replace(self, errors=errors, rates=_chosen(is_counted, exact, self.rates))


def largest_group(rows: MemoryRows, partition: ScorePartition) -> int:
    """The largest number of rows that a unit has in a region: 1 without groups."""
    if rows.groups is None:
        return 1
    cells = rows.units.in_cells(partition.regions_of(rows.scores), partition.n_regions)
    return int(cells.n_rows.max())


def means_of(
    values: FloatArray | CodeArray, rows: MemoryRows, partition: ScorePartition, cap: int
) -> Entries:
    """The means of a number per row over the units of each region: single rows, or groups, which
    count as at most `cap` rows. One region follows another.
    """
    regions = partition.regions_of(rows.scores)
    units = None if rows.groups is None else rows.units
    entries = Entries.of_rows(values, regions, partition.n_regions, units, float(cap))
    return entries.take(np.argsort(entries.region, kind="stable"))


def held_out_limits(
    rows: MemoryRows,
    partition: ScorePartition,
    pilot: MemoryRows,
    alpha: float,
    generator: np.random.Generator,
) -> HeldOutLimits:
    """Simultaneous limits for all regions, which hold with probability at least 1 - alpha.

    Assumptions: rows, or whole groups, are independent draws from one distribution. Fixed before
    they were seen: the probabilities, the partition and the pilot. The generator, which draws the
    order of bets, is independent of them.

    Regions of independent rows get Sidak's share of alpha, because the rows of different regions
    are independent given the number of rows in each region. A group may have rows in several
    regions: then the shares add up (Bonferroni).
    """
    n_regions = partition.n_regions
    bounds = np.clip(partition.bounds, 0.0, 1.0)
    cap = largest_group(pilot, partition)
    asked, of_pilot = (
        [means_of(values, of, partition, cap) for values in (of.codes - of.scores, of.scores)]
        for of in (rows, pilot)
    )
    guess = Guess.of(of_pilot[0], of_pilot[1], *bounds.T)
    n_units = asked[0].n_units
    of_averages = AVERAGE_SHARE * alpha
    of_errors = alpha - of_averages
    if rows.groups is None:
        shares = guess.shares(n_units, of_errors)
        tails = sidak_levels(of_errors, shares) / 2.0
    else:  # the number of groups with rows in a region may depend on their labels
        equal = np.full(n_regions, max(1, rows.n_groups() // n_regions))
        shares = guess.shares(equal, of_errors)
        tails = of_errors * shares / 2.0
    every_tail = np.concatenate([tails, np.full(n_regions, of_averages / (2.0 * n_regions))])
    units = _bet_units(asked, of_pilot, bounds, generator)
    if rows.groups is None:
        typical = _typical(of_pilot, n_units)
        # one fixed order, so that the choice does not depend on a draw
        of_typical = _bet_units(typical, of_pilot, bounds, RandomSource(0).generator())
        # all in one walk, which takes hardly longer than either
        both = bet_limits(units.beside(of_typical), np.tile(every_tail, 2))
        limits, bets = (
            HeldOutLimits.by_bets(some, part[1].rates)
            for some, part in zip(both.halves(), (asked, typical), strict=True)
        )
        everywhere = np.ones(n_regions, dtype=bool)
        counts = bets.counted(_positives(typical), typical[0].n_units, tails, everywhere)
        is_rare = counts.errors.upper - counts.errors.lower < bets.errors.upper - bets.errors.lower
        limits = limits.counted(_positives(asked), n_units, tails, is_rare)
    else:
        limits = HeldOutLimits.by_bets(bet_limits(units, every_tail), asked[1].rates)
    middle = bounds.mean(axis=1)
    return HeldOutLimits(
        Interval(np.maximum(limits.errors.lower, -1.0), np.minimum(limits.errors.upper, 1.0)),
        limits.averages,
        Interval(np.clip(limits.rates.lower, 0.0, 1.0), np.clip(limits.rates.upper, 0.0, 1.0)),
        np.where(np.isnan(limits.value), middle, limits.value),
    )


def _bet_units(
    asked: list[Entries], pilot: list[Entries], bounds: FloatArray, generator: np.random.Generator
) -> BetUnits:
    """Label minus probability in each region, and the probability, in the form that bets need.

    `bounds` are the ends of the regions.
    """
    low, high = bounds.T
    return BetUnits.of(
        Entries.joined(asked),
        np.concatenate([-high, low]),
        np.concatenate([1.0 - low, high]),
        generator,
        Entries.joined(pilot),
    )


def _positives(asked: list[Entries]) -> IntArray:
    """The number of positive single rows in each region, from label minus probability, and the
    probability.
    """
    errors, scores = asked
    return np.rint(errors.sums(errors.value + scores.value)).astype(np.int64)


def _typical(asked: list[Entries], n_rows: IntArray) -> list[Entries]:
    """As many typical units of each region as there are rows: taken at even steps in the order of
    their errors.

    They are mixed evenly, as in a random order, by multiples of the golden ratio.
    """
    errors = asked[0]
    chosen = [np.empty(0, dtype=np.intp)]
    for region, n in enumerate(n_rows.tolist()):
        units = np.flatnonzero(errors.region == region)
        if not units.size or not n:
            continue
        step = (np.arange(n) + 0.5) * (units.size / n)
        mixed = np.argsort(np.arange(1, n + 1) * _GOLDEN % 1.0, kind="stable")
        by_error = units[np.argsort(errors.value[units], kind="stable")]
        chosen.append(by_error[step.astype(np.intp)[mixed]])
    return [part.take(np.concatenate(chosen)) for part in asked]


def _chosen(first: BoolArray, one: Interval, other: Interval) -> Interval:
    return Interval(
        np.where(first, one.lower, other.lower), np.where(first, one.upper, other.upper)
    )
