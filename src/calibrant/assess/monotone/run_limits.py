"""Limits for the rates of runs of scores, by bets on rows with weights or on whole groups."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, Seed
from calibrant.calibrators.regions.grouped_rows import n_pilot_groups, too_few_groups
from calibrant.cells.entries import Entries
from calibrant.cells.units import RowUnits
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.interval import Interval
from calibrant.params.random import seed_number
from calibrant.sample.sources.memory import MemoryRows

_NEIGHBOURS = 40  # rows on each side of a run that sharpen its bets
_AT_ONCE = 64  # runs that are bet on together, because they overlap
_MORE_GROUPS = "use more groups"


@dataclass(frozen=True, slots=True, eq=False)
class ScoredUnits:
    """Rows sorted by score, and the units that they belong to.

    Attributes
    ----------
    scores : float array of shape (n_rows,)
        In increasing order.
    codes : int array of shape (n_rows,)
        Labels, 0 or 1.
    units : RowUnits
        Rows or groups, whose weights add up to at most 1 each.
    n_units : int
        The number of units, including those whose rows all have weight 0.
    """

    scores: FloatArray
    codes: CodeArray
    units: RowUnits
    n_units: int

    @classmethod
    def of_rows(cls, rows: MemoryRows, bound: float) -> Self:
        """Every row is a unit with weight / `bound`."""
        scores = np.asarray(rows.scores, dtype=np.float64)
        order = np.argsort(scores, kind="stable")
        n = order.size
        units = RowUnits(np.arange(n), n, rows.units.weights[order] / bound)
        return cls(scores[order], rows.codes[order], units, n)

    @classmethod
    def pilot_and_counted(
        cls, rows: MemoryRows, bound: float, random_state: Seed
    ) -> tuple[Self, Self]:
        """Draw pilot groups at random; the others are counted.

        A row counts with its weight over `bound`, divided by the number of rows in its group.
        """
        groups = rows.groups
        n_groups = rows.n_groups()
        if groups is None or n_groups < 2:
            raise too_few_groups(n_groups, _MORE_GROUPS)
        seed = seed_number(random_state)
        is_pilot = rows.chosen(rows.draw(n_pilot_groups(n_groups, 1), seed))
        weights = rows.units.weights / (groups.sizes[groups.codes] * bound)
        units = RowUnits(groups.codes, len(groups.keys), weights)
        return cls._of(rows, units, is_pilot), cls._of(rows, units, ~is_pilot)

    @classmethod
    def _of(cls, rows: MemoryRows, units: RowUnits, chosen: BoolArray) -> Self:
        scores = np.asarray(rows.scores, dtype=np.float64)
        # in an order that does not depend on how the rows came, so that sums are bit-identical
        order = np.lexsort((units.weights, rows.codes, units.unit, scores))
        order = order[chosen[order]]
        n_groups = np.unique(units.unit[order]).size
        order = order[units.weights[order] > 0.0]
        return cls(scores[order], rows.codes[order], units.part(order), n_groups)

    def in_runs(self, low: FloatArray, high: FloatArray, beside: int = 0) -> list[Entries]:
        """For each run from a lowest to a highest score: its units with rows there; or those of the
        rows `beside` it, so many on each side.
        """
        starts = np.searchsorted(self.scores, low, side="left")
        stops = np.searchsorted(self.scores, high, side="right")
        found = []
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            rows = np.arange(start, stop)
            if beside:
                last = min(stop + beside, self.scores.size)
                rows = np.r_[max(0, start - beside) : start, stop:last]
            nowhere = np.zeros(rows.size, dtype=np.intp)
            found.append(Entries.of_rows(self.codes[rows], nowhere, 1, self.units.part(rows)))
        return found


def run_limits(
    counted: ScoredUnits,
    pilot: ScoredUnits | None,
    low: FloatArray,
    high: FloatArray,
    tail: float,
    generator: np.random.Generator,
) -> Interval:
    """A lower limit on the largest rate in each run, and an upper limit on the smallest.

    Each misses with probability at most `tail`: given the scores if every row is a unit, given the
    pilot groups otherwise.

    Parameters
    ----------
    counted : ScoredUnits
        The units that are bet on.
    pilot : ScoredUnits or None
        Groups that are not bet on; they sharpen the bets. None if every row is a unit.
    low, high : float arrays
        The lowest and the highest score of each run. They depend on pilot groups alone or, if every
        row is a unit, on the scores alone.
    tail : float in (0, 1)
        Largest probability that each limit misses.
    generator : Generator
        What draws the order of bets, independently of the units.

    Notes
    -----
    **Rows with weights.** Let r(s) = E[w Y | s] / E[w | s] be the rate of the weighted population
    at the score s. Given all scores, the pairs (w, Y) of different rows are independent; a weight
    may depend on its own label. For m at least the largest r of a run, each of its rows has E[w (Y -
    m) | s] = E[w | s] (r(s) - m) <= 0. So the capital of bets that labels exceed m, with stakes that
    are known before each row, is a nonnegative supermartingale, and ever reaches 1 / tail with
    probability at most `tail` (Ville). By the argument of `calibrant.limits.bet_limits` the limit
    exceeds the largest r only if that number itself was ruled out. The upper limit follows by
    symmetry.

    Rows next to the run sharpen the bets. Given the scores they are independent of those in it, so
    the stakes do not depend on the rows they are placed on. Rows of weight 0 are left out: E[w (Y -
    m) | s] has the same sign among the others.

    Rows that are kept with probability w / bound would be n E[w] draws with exact limits (w over
    its bound). Bets are worth about n E[w]^2 / E[w^2] draws, which is never less.

    **Groups.** A group has N rows with scores S_i, labels Y_i and weights v_i from 0 to 1 (all 1
    without weights). Its row i counts with u_i = v_i / N. For each set R of scores let mu(R) = E[sum
    of u_i over rows with S_i in R]. The rate r is defined by

        E[sum of u_i Y_i over rows with S_i in R] = integral of r over R with respect to mu

    for every R: r(s) = E[Y | s] for a random row of a new group, or the rate of the weighted
    population of such rows. How the rows of a group depend on each other, and how scores and labels
    depend on N, does not matter.

    Fix a run R, and let W be the sum of u_i over the group's rows in R, which is at most 1, and Z
    the mean of their labels with the weights u_i. For m at least the largest r in R,

        E[W (Z - m)] = integral of r - m over R with respect to mu <= 0.

    The sign is the same given that the group has rows in R. Groups are independent, also given
    which of them have rows in R. So the capital of bets on W (Z - m), with stakes known before each
    group, is a nonnegative supermartingale, as above. If r is nondecreasing, the largest r in R is
    at most r(s) at every s from `high` on.

    **Why pilot groups cut the runs.** Given all scores of its group, the rate of a label is not
    r(s): it may depend on the other scores and on N. So the scores of counted groups must not
    determine the runs, nor may their number of rows determine how many there are. Rows next to a
    run belong to the same groups as those in it, so only pilot groups may sharpen the bets.

    **What it gains over one row of each group** (whose W is 0 or 1, with exact limits): the
    variance of W (Z - m) is at most that for one row, and about 1 / N of it if a group rarely has
    two rows in a run. The most that a group can lose is the same, so short runs gain less.
    """
    runs = counted.in_runs(low, high)
    others = (pilot or counted).in_runs(low, high, 0 if pilot else _NEIGHBOURS)
    limits = []
    for first in range(0, len(runs), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        zero = np.zeros(len(runs[some]))
        seen = Entries.joined(others[some])
        units = BetUnits.of(Entries.joined(runs[some]), zero, zero + 1.0, generator, seen)
        limits.append(bet_limits(units, zero + tail))
    return Interval.joined(limits)
