"""Limits on a curve for rows in units: whole groups, or rows with importance weights.

The identity of `calibrant.calibrators.curve.curve_bounds` holds with averages over the
population in which units count by their weights. (A) is bounded by bets on w_c (mean residual of
the unit's rows in b, minus m), for all counted units with rows in the region; (C_k) by bets on the
units of half k, which are whole units drawn at random. The bets are conditional only on which units
have rows in b, never on how many, so sizes and weights may depend on labels. A group may have rows
in several regions, so Bonferroni replaces Sidak, and the shares of the budget are fixed by pilot
rows alone.

(D). Let s_c(i) be the share of a unit's rows at knots up to i, with each row split between its two
neighbouring knots as in linear interpolation. E[f] minus the average of f over the rows, weighted
by their units, is the sum over i of the steps of f times F_N(i) - F(i), with F(i) = E[w s(i)] /
E[w]. With a stake l <= 1/2 / m, fixed beforehand, the product of 1 + l w_c (s_c(i) - m) has mean 1
at m = F(i), and it decreases in m, so it is no smaller at F(i) < m. So a lower limit is any m at
which it reaches J / tail for one of J stakes that are at most 1/2 / m (Markov). A stake must not
depend on m: one that is clipped to 1/2 / m would not be fixed. Its logarithm is at least l Z - c
l^2 Q, with c = 4 ln 2 - 2, Z the sum of w (s - m) and Q that of w^2 (s - m)^2: log(1 + u) >= u - c
u^2 for u >= -1/2. Because s lies in [0, 1], Q is at most the sum of w^2 (s (1 - 2 m) + m^2). So
four sums per knot are enough.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray
from calibrant.calibrators.curve.curve_bounds import (
    Budget,
    CurveEvidence,
    CurveLimits,
    reached,
)
from calibrant.calibrators.curve.unit_rows import UnitRows, counts_at_knots
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.cells.entries import Entries
from calibrant.cells.knots import Knots
from calibrant.cells.units import sorted_by
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource
from calibrant.sample.row_keys import position_keys
from calibrant.sample.sources.memory import MemoryRows

_STAKES = 2.0 ** np.arange(7)  # times the best stake for units of weight 1 and a share of one half
_FIRST_STAKE = 0.5  # at most, so that there is one for every share
_MOST_LOST = 0.5
_SQUARE = 4.0 * math.log(2.0) - 2.0  # log(1 + u) >= u - this u^2 for u >= -1/2
_BISECTIONS = 40


@dataclass(frozen=True, eq=False)
class CurveUnits:
    """Rows of independent units with weights: whole groups, or rows.

    Attributes
    ----------
    knots : Knots
        The knots.
    rows : MemoryRows
        The counted rows.
    units : UnitRows
        The rows between knots, with their units.
    half : int array of shape (n_units,)
        The random half of each unit.
    pilot : UnitRows or None
        Pilot rows; None if there are none.
    of_pilot : float array of shape (n_knots, 2)
        Pilot rows by knot and label.
    unproved : int array
        Regions for which nothing is guaranteed.
    source : RandomSource
        The source of random numbers.
    """

    knots: Knots
    rows: MemoryRows
    units: UnitRows
    half: IndexArray
    pilot: UnitRows | None
    of_pilot: FloatArray
    unproved: IndexArray
    source: RandomSource

    @classmethod
    def of(
        cls,
        binned: Binned,
        pilot: MemoryRows | None,
        knots: Knots,
        source: RandomSource,
        cap: float | None,
    ) -> Self:
        """Find the units of the rows, and their halves."""
        rows = _in_order(binned.rows.counted_rows())
        pilot = None if pilot is None else _in_order(pilot)
        keys = position_keys(0, len(rows)) if rows.keys is None else rows.keys
        if rows.groups is not None:
            keys = rows.groups.keys
        half = (source.for_purpose("halves").hashes(keys) & np.uint64(1)).astype(np.intp)
        of_pilot = np.zeros((knots.n_knots, 2))
        if pilot is not None:
            of_pilot = counts_at_knots(pilot, knots)
        unproved = () if binned.design is None else binned.design.unproved
        return cls(
            knots,
            rows,
            UnitRows.of(rows, knots, cap),
            half,
            None if pilot is None else UnitRows.of(pilot, knots, cap),
            of_pilot,
            np.array(unproved, dtype=np.intp),
            source,
        )

    @cached_property
    def expected(self) -> FloatArray:
        """Expected number of units in each region, by the share of pilot units in it.

        The number of counted groups with rows in a region may depend on their labels.
        """
        n_regions = self.knots.regions.n_regions
        n_units = len(self.rows) if self.rows.groups is None else self.rows.n_groups()
        if self.pilot is None:
            return np.full(n_regions, max(n_units / n_regions, 1.0))
        of_region = np.bincount(self.pilot.cells.cell, minlength=n_regions) + 1.0
        n_pilot = max(np.unique(self.pilot.cells.unit).size, 1)
        return np.asarray(np.minimum(of_region * (n_units / n_pilot), n_units))

    @cached_property
    def at_knots(self) -> FloatArray:
        """The weight of rows at each knot."""
        return self.units.at_knots(self.units.weight, self.knots.n_knots)

    @cached_property
    def labelled(self) -> FloatArray:
        """The weight of the rows of each region."""
        return np.add.reduceat(self.at_knots, self.knots.starts[:-1])

    @cached_property
    def positives(self) -> FloatArray:
        """The weight of the positive rows of each region."""
        return self._with_label(self.units.codes)

    @cached_property
    def has_negatives(self) -> BoolArray:
        """Whether each region has a negative row."""
        return np.asarray(self._with_label(1 - self.units.codes) > 0.0)

    def _with_label(self, codes: CodeArray) -> FloatArray:
        of_entry = self.units.weight * self.units.means(codes.astype(np.float64))
        return self.units.in_regions(of_entry, self.knots.regions.n_regions)

    def prove(self, evidence: CurveEvidence, alpha: float, shares: FloatArray) -> CurveLimits:
        """Limits by bets on units; see `CurveRows.prove`."""
        n_regions = self.knots.regions.n_regions
        budget = Budget.of(alpha, shares, self.knots, are_independent=False)
        of_halves = [budget.of_curves, budget.of_curves]
        labels, *curves, first = self._bets(
            evidence, [budget.of_labels, *of_halves, budget.of_first]
        )
        gaps = self._gaps(budget.of_steps)
        nothing = np.isin(np.arange(n_regions), self.unproved)
        ends = np.mean([evidence.ends(half - evidence.first) for half in evidence.halves], axis=0)
        lower, upper = (
            np.mean([getattr(half, side) for half in curves], axis=0) for side in ("lower", "upper")
        )
        return CurveLimits(
            Interval(np.where(nothing, -2.0, labels.lower), np.where(nothing, 2.0, labels.upper)),
            Interval(np.where(nothing, ends[0], lower), np.where(nothing, ends[1], upper)),
            Interval(np.where(nothing, 0.0, first.lower), np.where(nothing, 1.0, first.upper)),
            np.where(nothing[self.knots.region], 1.0, gaps),
            np.zeros(n_regions, dtype=bool),
        )

    def _bets(self, evidence: CurveEvidence, tails: list[FloatArray]) -> list[Interval]:
        """Limits on (A), on (C_1) and (C_2), and on the average of the first curve.

        All are columns of one walk. The other half and pilot units, which a limit does not bet on,
        sharpen its bets.
        """
        first = evidence.first
        low, high = evidence.ends(first)
        half = self.half[self.units.cells.unit]
        values = self.units.at_rows(first)
        errors_of_pilot, values_of_pilot = self.pilot_units(first)
        bets = [self.units.draws(self.units.codes - values)]
        ends = [(-high, 1.0 - low)]
        seen = [errors_of_pilot]
        for number, curve in enumerate(evidence.halves):
            apart = self.units.at_rows(curve - first)
            units = self.units.draws(apart)
            bets.append(units.take(half == number))
            ends.append(evidence.ends(curve - first))
            seen.append(units.take(half != number))
        bets.append(self.units.draws(values))
        ends.append((low, high))
        seen.append(values_of_pilot)
        generator = self.source.for_purpose("order of bets").generator()
        together = BetUnits.of(
            Entries.joined(bets),
            np.concatenate([end[0] for end in ends]),
            np.concatenate([end[1] for end in ends]),
            generator,
            Entries.joined(seen),
        )
        found = bet_limits(together, np.concatenate(tails))
        limits = zip(np.split(found.lower, 4), np.split(found.upper, 4), strict=True)
        return [Interval(*of_question) for of_question in limits]

    def pilot_units(self, first: FloatArray) -> tuple[Entries, Entries]:
        """Label minus a first curve, and the curve, of pilot units; none without a pilot."""
        if self.pilot is None:
            nothing = np.empty(0)
            none = Entries(np.empty(0, dtype=np.intp), nothing, self.units.n_regions, nothing)
            return none, none
        values = self.pilot.at_rows(first)
        return self.pilot.draws(self.pilot.codes - values), self.pilot.draws(values)

    def _gaps(self, tail: float) -> FloatArray:
        """The largest distance between the share of rows up to each knot and that of the
        population.
        """
        knots = self.knots
        weight = self.units.weight
        squares = self.units.at_knots(weight**2, knots.n_knots)
        below_knot = reached(self.at_knots, knots)
        of_squares = reached(squares, knots)
        total = self.labelled[knots.region]
        total_squares = np.add.reduceat(squares, knots.starts[:-1])[knots.region]
        n_units = self.units.in_regions(np.ones(weight.size), knots.regions.n_regions)
        here = n_units[knots.region]
        share = below_knot / np.where(total > 0.0, total, 1.0)
        below = share - _lower_share(below_knot, of_squares, total, total_squares, here, tail)
        opposite = (total - below_knot, total_squares - of_squares, total, total_squares, here)
        above = (1.0 - share) - _lower_share(*opposite, tail)
        found = np.where(total > 0.0, np.maximum(below, above), 1.0)
        found[knots.starts[1:] - 1] = 0.0
        return found

    def to_fit(self, number: int) -> FloatArray:
        """Pilot rows and rows of the other half by knot and label."""
        chosen = self.half[self.rows.units.unit] != number
        return np.asarray(self.of_pilot + counts_at_knots(self.rows, self.knots, chosen))


def _lower_share(
    below_knot: FloatArray,
    of_squares: FloatArray,
    total: FloatArray,
    total_squares: FloatArray,
    n_units: FloatArray,
    tail: float,
) -> FloatArray:
    """A lower limit on E[w s] / E[w], from sums of w s, w^2 s, w and w^2 over `n_units` units."""
    goal = math.log(_STAKES.size / tail) + 1e-9
    ruled_out = np.zeros(below_knot.size)
    kept = below_knot / np.where(total > 0.0, total, 1.0)
    first = np.minimum(np.sqrt(8.0 * goal / np.maximum(n_units, 1.0)), _FIRST_STAKE)
    stake = first * _STAKES[:, None]
    for _ in range(_BISECTIONS):
        mean = (ruled_out + kept) / 2.0
        won = below_knot - mean * total
        squares = of_squares * (1.0 - 2.0 * mean) + mean**2 * total_squares
        capital = stake * won - _SQUARE * stake**2 * squares
        is_out = np.where(stake * mean <= _MOST_LOST, capital, -np.inf).max(axis=0) >= goal
        ruled_out = np.where(is_out, mean, ruled_out)
        kept = np.where(is_out, kept, mean)
    return ruled_out


def _in_order(rows: MemoryRows) -> MemoryRows:
    """Rows of groups in an order that does not depend on the order of the rows."""
    if rows.groups is None:
        return rows
    if rows.weights is None and rows.segment is None:
        # rows that agree in group, label and score are interchangeable
        owner = 2 * rows.groups.codes.astype(np.int64) + rows.codes
        order = sorted_by(owner, np.argsort(rows.scores))
    else:
        weights = rows.codes if rows.weights is None else rows.weights
        segment = rows.codes if rows.segment is None else rows.segment
        order = np.lexsort((weights, rows.codes, rows.scores, segment, rows.groups.codes))
    return rows.take(order)
