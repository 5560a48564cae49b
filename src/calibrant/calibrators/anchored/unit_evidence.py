"""Limits on a curve where rows are units: whole groups, or rows with importance weights.

The identity of `calibrant.calibrators.anchored.curve_bounds` holds with averages over the population
in which units count by their weights. (A) is bounded by bets on w_c (mean residual of the unit's
rows in b, less m), for all counted units with rows in the region; (C_k) by bets on the units of half
k, which are whole units drawn at random. Given is only which units have rows in b, never how many,
so sizes and weights may depend on labels. A group may have rows in several regions: there is
Bonferroni in place of Sidak, and the shares of the budget are fixed by pilot rows alone.

(D). Let s_c(i) be the part of a unit's rows at knots up to i, each row split between its two
neighbouring knots as curves are read there. E[f] less the average of f over the rows, which count
by the weights of their units, is the sum over i of the steps of f times F_N(i) - F(i), with F(i) =
E[w s(i)] / E[w]. With a stake l <= 1/2 / m, fixed beforehand, the product of 1 + l w_c (s_c(i) - m)
has mean 1 at m = F(i), and it falls in m, so that it is no smaller at F(i) < m. So a lower limit is
any m at which it reaches J / tail for one of J stakes that are at most 1/2 / m (Markov). A stake
must not depend on m: one that is cut off at 1/2 / m would not be fixed. Its logarithm is at least l
Z - c l^2 Q, with c = 4 ln 2 - 2, Z the sum of w (s - m) and Q that of w^2 (s - m)^2: log(1 + u) >=
u - c u^2 for u >= -1/2. Since s lies in [0, 1], Q is at most the sum of w^2 (s (1 - 2 m) + m^2). So
four sums for each knot are enough.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray
from calibrant.calibrators.anchored.curve_evidence import CURVE_SHARE, MOVED_SHARE, CurveEvidence
from calibrant.calibrators.anchored.unit_rows import UnitRows
from calibrant.limits.bet_walk import FEW_STEPS
from calibrant.limits.goal_bets import BetUnits, unit_limits
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource

_STAKES = 2.0 ** np.arange(7)  # over the best one for units of weight 1 and a share of one half
_FIRST_STAKE = 0.5  # at most, so that there is one for every share
_MOST_LOST = 0.5
_SQUARE = 4.0 * math.log(2.0) - 2.0  # log(1 + u) >= u - this u^2 for u >= -1/2
_BISECTIONS = 40


@dataclass(frozen=True, eq=False)
class UnitEvidence(CurveEvidence):
    """Rows of units at knots.

    Attributes
    ----------
    units : UnitRows
        The rows and their units.
    half : int array of shape (n_units,)
        The half of each unit, 0 or 1.
    spread : float array of shape (n_regions,)
        A guess of the variance of w (mean residual), by pilot rows.
    typical_weight : float array of shape (n_regions,)
        A guess of the mean weight.
    spreads : float array of shape (2, n_regions)
        Guesses of the variance of w (mean of g_k - g0), by pilot rows and the other half.
    unproved : int array
        Regions for which nothing is proved: no pilot row knows their segment.
    order : RandomSource
        What the order comes from in which units are bet on.
    """

    units: UnitRows
    half: IndexArray
    spread: FloatArray
    typical_weight: FloatArray
    spreads: FloatArray
    unproved: IndexArray
    order: RandomSource

    @cached_property
    def at_knots(self) -> FloatArray:
        """The weight of rows at each knot."""
        return self.units.at_knots(self.units.weight, self.knots.n_knots)

    @cached_property
    def positives(self) -> FloatArray:
        """The weight of the positive rows of each region."""
        return self._labelled(self.units.codes)

    @cached_property
    def has_negatives(self) -> BoolArray:
        """Whether a row of each region is negative."""
        return np.asarray(self._labelled(1 - self.units.codes) > 0.0)

    def _labelled(self, codes: CodeArray) -> FloatArray:
        of_entry = self.units.weight * self.units.means(codes.astype(np.float64))
        return self.units.in_regions(of_entry, self.knots.regions.n_regions)

    def limits(self, alpha: float, shares: FloatArray) -> tuple[Interval, FloatArray]:
        """Limits by bets on units; see `CurveEvidence.limits`."""
        n_regions = self.knots.regions.n_regions
        of_steps = MOVED_SHARE * alpha
        of_curves = CURVE_SHARE * (alpha - of_steps)
        of_labels = alpha - of_steps - of_curves
        entries = self.units.ordered(self.order.order(self.units.n_units), n_regions)
        labels = self._bets(entries, self.first, self.spread, of_labels * shares / 2.0)
        curves = [
            self._curve_limits(entries, number, of_curves * shares / 4.0) for number in range(2)
        ]
        lower = labels.lower - (curves[0].upper + curves[1].upper) / 2.0
        upper = labels.upper - (curves[0].lower + curves[1].lower) / 2.0
        n_steps = max(self.knots.n_knots - n_regions, 1)
        gaps = self._gaps(of_steps / (2.0 * n_steps))
        nothing = np.isin(np.arange(n_regions), self.unproved)
        lower = np.where(nothing, -2.0, lower)
        upper = np.where(nothing, 2.0, upper)
        return Interval(lower, upper), np.where(nothing[self.knots.region], 1.0, gaps)

    def _bets(
        self,
        entries: list[IndexArray],
        first: FloatArray,
        spread: FloatArray,
        tail: FloatArray,
    ) -> Interval:
        """(A): limits on the rate less the average of the first curve, in each region."""
        low, high = self.ends(first)
        errors = self.units.means(self.units.codes - self.units.at_rows(first))
        samples = [
            BetUnits(errors[of], -high[b], 1.0 - low[b], spread[b], self.units.weight[of], typical)
            for b, (of, typical) in enumerate(zip(entries, self.typical_weight, strict=True))
        ]
        return Interval(*unit_limits(samples, tail))

    def _curve_limits(self, entries: list[IndexArray], number: int, tail: FloatArray) -> Interval:
        """(C_k): limits on the average of the curve of a half less the first one."""
        apart = self.halves[number] - self.first
        low, high = self.ends(apart)
        values = self.units.means(self.units.at_rows(apart))
        spread = self.spreads[number]
        samples = []
        for b, every in enumerate(entries):
            of = every[self.half[self.units.unit[every]] == number]
            weight = self.units.weight[of]
            typical = self.typical_weight[b]
            samples.append(BetUnits(values[of], low[b], high[b], spread[b], weight, typical))
        return Interval(*unit_limits(samples, tail, FEW_STEPS))

    def _gaps(self, tail: float) -> FloatArray:
        """How far the share of rows at knots up to each one can be from that of the population."""
        knots = self.knots
        weight = self.units.weight
        squares = self.units.at_knots(weight**2, knots.n_knots)
        reached = _cumulated(self.at_knots, knots.starts)
        of_squares = _cumulated(squares, knots.starts)
        total = self.rows[knots.region]
        total_squares = np.add.reduceat(squares, knots.starts[:-1])[knots.region]
        n_units = self.units.in_regions(np.ones(weight.size), knots.regions.n_regions)
        here = n_units[knots.region]
        share = reached / np.where(total > 0.0, total, 1.0)
        below = share - _lower_share(reached, of_squares, total, total_squares, here, tail)
        opposite = (total - reached, total_squares - of_squares, total, total_squares, here)
        above = (1.0 - share) - _lower_share(*opposite, tail)
        found = np.where(total > 0.0, np.maximum(below, above), 1.0)
        found[knots.starts[1:] - 1] = 0.0
        return found


def _cumulated(values: FloatArray, starts: IndexArray) -> FloatArray:
    """Sums over the knots of a region up to each one."""
    total = np.cumsum(values)
    before = (total - values)[starts[:-1]]
    return np.asarray(total - np.repeat(before, np.diff(starts)))


def _lower_share(
    reached: FloatArray,
    of_squares: FloatArray,
    total: FloatArray,
    total_squares: FloatArray,
    n_units: FloatArray,
    tail: float,
) -> FloatArray:
    """A lower limit of E[w s] / E[w]: of sums of w s, w^2 s, w and w^2 over so many units."""
    goal = math.log(_STAKES.size / tail) + 1e-9
    ruled_out = np.zeros(reached.size)
    kept = reached / np.where(total > 0.0, total, 1.0)
    first = np.minimum(np.sqrt(8.0 * goal / np.maximum(n_units, 1.0)), _FIRST_STAKE)
    stake = first * _STAKES[:, None]
    for _ in range(_BISECTIONS):
        mean = (ruled_out + kept) / 2.0
        won = reached - mean * total
        squares = of_squares * (1.0 - 2.0 * mean) + mean**2 * total_squares
        capital = stake * won - _SQUARE * stake**2 * squares
        is_out = np.where(stake * mean <= _MOST_LOST, capital, -np.inf).max(axis=0) >= goal
        ruled_out = np.where(is_out, mean, ruled_out)
        kept = np.where(is_out, kept, mean)
    return ruled_out
