"""Limits for the rates of runs of scores, by bets on whole groups."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, Seed
from calibrant.assess.monotone.weighted_runs import run_limits
from calibrant.calibrators.regions.grouped_rows import groups_set_aside, too_few_groups
from calibrant.cells.units import RowUnits
from calibrant.limits.interval import Interval
from calibrant.params.random import seed_number
from calibrant.sample.sources.memory import MemoryRows

_MORE_GROUPS = "use more groups"


@dataclass(frozen=True, slots=True, eq=False)
class GroupScores:
    """Rows of whole groups, sorted by score.

    Attributes
    ----------
    scores : float array of shape (n_rows,)
        In increasing order.
    codes : int array of shape (n_rows,)
        Labels, 0 or 1.
    units : RowUnits
        The groups, whose weights add up to at most 1 each.
    n_groups : int
        The number of groups, including those whose rows all have weight 0.
    """

    scores: FloatArray
    codes: CodeArray
    units: RowUnits
    n_groups: int

    @classmethod
    def pilot_and_counted(
        cls, rows: MemoryRows, bound: float | None, random_state: Seed
    ) -> tuple[Self, Self]:
        """Draw pilot groups at random; the others are counted.

        A row counts with its weight over `bound`, divided by the number of rows in its group.
        """
        groups = rows.groups
        if groups is None:
            raise too_few_groups(0, _MORE_GROUPS)
        n_groups = rows.n_groups()
        if n_groups < 2:
            raise too_few_groups(n_groups, _MORE_GROUPS)
        seed = seed_number(random_state)
        is_pilot = rows.chosen(rows.draw(groups_set_aside(n_groups, 1), seed))
        weights = rows.units.weights / (groups.sizes[groups.codes] * (bound or 1.0))
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

    def inside(self, low: FloatArray, high: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """For each run from a lowest to a highest score: the rates and weights of the groups with
        rows in it.
        """
        starts = np.searchsorted(self.scores, low, side="left")
        stops = np.searchsorted(self.scores, high, side="right")
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            run = slice(start, stop)
            found = self.units.part(run).in_cells(np.zeros(stop - start, dtype=np.intp), 1)
            rates = np.minimum(found.sums(self.codes[run]) / found.total, 1.0)
            yield rates, np.minimum(found.total, 1.0)


def grouped_limits(
    counted: GroupScores,
    pilot: GroupScores,
    low: FloatArray,
    high: FloatArray,
    tail: float,
    generator: np.random.Generator,
) -> Interval:
    """A lower limit on the largest rate in each run, and an upper limit on the smallest.

    Each misses with probability at most `tail`, given the pilot groups.

    Parameters
    ----------
    counted : GroupScores
        The groups that are bet on.
    pilot : GroupScores
        Groups that are not bet on; they sharpen the bets.
    low, high : float arrays
        The lowest and the highest score of each run. They depend on pilot groups alone.
    tail : float in (0, 1)
        Largest probability that each limit misses.
    generator : Generator
        What draws the order of bets, independently of the groups.

    Notes
    -----
    A group has N rows with scores S_i, labels Y_i and weights v_i from 0 to 1 (all 1 without
    weights). Its row i counts with u_i = v_i / N. For each set R of scores let mu(R) = E[sum of u_i
    over rows with S_i in R]. The rate r is defined by

        E[sum of u_i Y_i over rows with S_i in R] = integral of r over R with respect to mu

    for every R: r(s) = E[Y | s] for a random row of a new group, or the rate of the weighted
    population of such rows. How the rows of a group depend on each other, and how scores and labels
    depend on N, does not matter.

    Fix a run R, and let W be the sum of u_i over the group's rows in R, which is at most 1, and Z
    the mean of their labels with the weights u_i. For m at least the largest r in R,

        E[W (Z - m)] = integral of r - m over R with respect to mu <= 0.

    The sign is the same given that the group has rows in R. Groups are independent, also given
    which of them have rows in R. So the capital of bets on W (Z - m), with stakes known before each
    group, is a nonnegative supermartingale, and the argument is that of
    `calibrant.assess.monotone.weighted_runs`. If r is nondecreasing, the largest r in R is at most
    r(s) at every s from `high` on.

    **Why pilot groups cut the runs.** Given all scores of its group, the rate of a label is not
    r(s): it may depend on the other scores and on N. So the scores of counted groups must not
    determine the runs, nor may their number of rows determine how many there are. Rows next to a
    run belong to the same groups as those in it, so only pilot groups may sharpen the bets.

    **What it gains over one row of each group** (whose W is 0 or 1, with exact limits): the
    variance of W (Z - m) is at most that for one row, and about 1 / N of it if a group rarely has
    two rows in a run. The most that a group can lose is the same, so short runs gain less.
    """
    runs = [*counted.inside(low, high)]
    return run_limits(runs, [*pilot.inside(low, high)], tail, generator)
