"""Plain rows, counted at knots: what bets and exact limits show about curves.

Given the counts of rows, all orders are equally likely, so the counts include the halves and the
order of the bets is drawn afterwards (`calibrant.limits.bet_units`).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators.curve.curve_bounds import (
    PRIOR_ROWS,
    Budget,
    CurveEvidence,
    CurveLimits,
    reached,
)
from calibrant.calibrators.curve.pilot_rows import Guess
from calibrant.cells.entries import Entries
from calibrant.cells.knots import Knots
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource

_STEP_ERRORS = 4.5  # approximate standard errors of a share of rows that simultaneous limits leave
_RATE_ERRORS = 3.0  # the same, for a rate
# skewness over the square root of the rows from which on exact limits are narrower than bets
_SKEWED = 0.08
# approximate gain of exact limits over bets, per skewness over the root of the rows
_SKEW_COST = 1.0
_MOST_LOST = 0.9  # largest share of the capital that one bet on the first curve can lose
_BISECTIONS = 24
_ROUNDING = 1e-9  # of log capital, which is a sum of many terms


@dataclass(frozen=True, eq=False)
class PlainRows:
    """Plain rows, as counts.

    Attributes
    ----------
    knots : Knots
        The knots.
    counts : int array of shape (n_knots, 2, 2)
        Rows by knot, half and label.
    of_pilot : int array of shape (n_knots, 2)
        Pilot rows by knot and label.
    unlabelled : int array of shape (n_knots,)
        Unlabelled rows of the same population, by knot. No curve was fitted to them.
    source : RandomSource
        The source of random numbers.
    """

    knots: Knots
    counts: IntArray
    of_pilot: IntArray
    unlabelled: IntArray
    source: RandomSource

    @cached_property
    def at_knots(self) -> IntArray:
        """Rows at each knot, labelled or not."""
        return np.asarray(self.counts.sum(axis=(1, 2)) + self.unlabelled)

    @cached_property
    def labelled(self) -> IntArray:
        """Labelled rows of each region."""
        return np.add.reduceat(self.counts.sum(axis=(1, 2)), self.knots.starts[:-1])

    @property
    def expected(self) -> IntArray:
        """Rows of each region; given their number, they are independent draws."""
        return self.labelled

    @cached_property
    def positives(self) -> IntArray:
        """Positive rows of each region."""
        return np.add.reduceat(self.counts[:, :, 1].sum(axis=1), self.knots.starts[:-1])

    @property
    def has_negatives(self) -> BoolArray:
        """Whether each region has a negative row."""
        return np.asarray(self.positives < self.labelled)

    def pilot_units(self, first: FloatArray) -> tuple[Entries, Entries]:
        """Label minus a first curve, and the curve, of the pilot rows."""
        errors = self._errors(first, self.of_pilot)
        return errors, replace(errors, value=np.tile(first, 2))

    def to_fit(self, number: int) -> IntArray:
        """Pilot rows and rows of the other half by knot and label."""
        return np.asarray(self.of_pilot + self.counts[:, 1 - number])

    def prove(self, evidence: CurveEvidence, alpha: float, shares: FloatArray) -> CurveLimits:
        """Limits by bets, or exact limits; see `CurveRows.prove`."""
        budget = Budget.of(alpha, shares, self.knots)
        exact = self.is_exact(evidence.guess, evidence.first)
        labels = self._bets(evidence, budget.of_labels, ~exact)
        known = self.positives[exact], self.labelled[exact], budget.of_rates[exact]
        labels.lower[exact] = lower_limit(*known)
        labels.upper[exact] = upper_limit(*known)
        curves = self._curve_limits(evidence, budget.of_curves)
        of_first = evidence.guess.of_scores
        first = self._averages(evidence.first, self.at_knots, of_first, budget.of_first)
        gaps = self._gaps(budget.of_steps)
        return CurveLimits(labels, curves, first, gaps, exact)

    def _bets(self, evidence: CurveEvidence, tail: FloatArray, used: BoolArray) -> Interval:
        """Limits on (A) in the `used` regions."""
        entries = self._errors(evidence.first, self.counts.sum(axis=1))
        seen = self._errors(evidence.first, self.of_pilot)
        low, high = evidence.ends(evidence.first)
        generator = self.source.for_purpose("order of bets").generator()
        some = entries.take(used[entries.region])
        return bet_limits(BetUnits.of(some, -high, 1.0 - low, generator, seen), tail)

    def _errors(self, first: FloatArray, counts: IntArray) -> Entries:
        """Label minus a first curve, for rows counted by knot and label."""
        region = np.tile(self.knots.region, 2)
        value = np.concatenate([-first, 1.0 - first])
        n_regions = self.knots.regions.n_regions
        return Entries(region, value, n_regions, number=counts.T.ravel())

    def _curve_limits(self, evidence: CurveEvidence, tail: FloatArray) -> Interval:
        """Limits on the average of h minus the first curve: the mean of (C_1) and (C_2).

        Unlabelled scores are additional draws for both halves: they are independent of what g_1 and
        g_2 were fitted to, and the union bound allows both limits to use them.
        """
        limits = []
        for half, curve in enumerate(evidence.halves):
            counts = self.counts[:, half].sum(axis=1) + self.unlabelled
            spread = evidence.spreads[half]
            limits.append(self._averages(curve - evidence.first, counts, spread, tail))
        one, other = limits
        return Interval((one.lower + other.lower) / 2.0, (one.upper + other.upper) / 2.0)

    def _averages(
        self, values: FloatArray, counts: IntArray, variance: FloatArray, tail: FloatArray
    ) -> Interval:
        """Limits on the average of a curve in each region, by one stake for all rows."""
        rest = (counts, self.knots.starts[:-1], variance, tail)
        return Interval(lower_averages(values, *rest), -lower_averages(-values, *rest))

    def is_exact(self, guess: Guess, first: FloatArray) -> BoolArray:
        """Where exact limits on the rate replace bets, by pilot rows and the number of rows.

        They are used where they are expected to be narrower. Bets suffer from skewness. Exact
        limits need the average of the curve, which is known up to its steps times limits on the
        shares of rows at knots; and their variance is that of labels, including what the first
        curve explains of it.
        """
        knots = self.knots
        n = np.maximum(self.labelled, 1)
        variance = guess.rate * (1.0 - guess.rate)
        skewness = np.abs(1.0 - 2.0 * guess.rate) / np.sqrt(variance * n)
        half_width = _RATE_ERRORS * np.sqrt(variance / n)
        n_knots = np.diff(knots.starts)
        weight = self.of_pilot.sum(axis=1) + (PRIOR_ROWS / n_knots)[knots.region]
        total = np.add.reduceat(weight, knots.starts[:-1])[knots.region]
        share = np.clip(reached(weight, knots) / total, 0.0, 1.0)
        here = n[knots.region]
        gap = _STEP_ERRORS * np.sqrt(share * (1.0 - share) / here) + _STEP_ERRORS**2 / (2.0 * here)
        off = np.abs(np.diff(first, append=first[-1:])) * gap
        off[knots.starts[1:] - 1] = 0.0
        unknown = np.add.reduceat(off, knots.starts[:-1])
        unexplained = np.clip(1.0 - guess.spread / variance, 0.0, 1.0)
        of_exact = unknown + half_width * (1.0 - np.sqrt(unexplained))
        is_narrower = of_exact < _SKEW_COST * skewness * half_width
        return np.asarray(((skewness > _SKEWED) & is_narrower) | (n_knots == 1))

    def _gaps(self, tail: float) -> FloatArray:
        """Exact binomial limits on the share of rows up to each knot."""
        knots = self.knots
        below_knot = reached(self.at_knots, knots)
        rows = np.add.reduceat(self.at_knots, knots.starts[:-1])[knots.region]
        share = below_knot / np.maximum(rows, 1)
        below = share - lower_limit(below_knot, rows, tail)
        above = upper_limit(below_knot, rows, tail) - share
        found = np.maximum(below, above)
        found[knots.starts[1:] - 1] = 0.0
        return found


def lower_averages(
    values: FloatArray,
    counts: IntArray,
    starts: IndexArray,
    variance: FloatArray,
    tail: FloatArray,
) -> FloatArray:
    """A lower limit on the mean of each region's draws; it exceeds the mean with probability at
    most the region's `tail`.

    One stake is fixed for all draws z of a region. If m is their mean, the product over draws of 1
    + stake (z - m) has mean 1, so it reaches 1 / tail with probability at most `tail` (Markov). It
    decreases in m, so a mean that is ruled out rules out all smaller ones.

    Parameters
    ----------
    values, counts : arrays of shape (n_values,)
        The values that draws can take, and how many draws took each of them.
    starts : int array of shape (n_regions,)
        Where the values of each region begin.
    variance, tail : float arrays of shape (n_regions,)
        A guess at the variance, made without these draws, and the error probability.
    """
    region = np.repeat(np.arange(starts.size), np.diff(starts, append=values.size))
    low = np.minimum.reduceat(values, starts)
    high = np.maximum.reduceat(values, starts)
    goal = -np.log(tail) + _ROUNDING
    n_draws = np.maximum(np.add.reduceat(counts, starts), 1)
    stake = np.sqrt(2.0 * goal / (n_draws * np.maximum(variance, 1e-300)))
    stake = np.minimum(stake, _MOST_LOST / np.maximum(high - low, 1e-300))
    ruled_out = low
    kept = high
    for _ in range(_BISECTIONS):
        mean = (ruled_out + kept) / 2.0
        gains = counts * np.log1p(stake[region] * (values - mean[region]))
        is_out = np.add.reduceat(gains, starts) >= goal
        ruled_out = np.where(is_out, mean, ruled_out)
        kept = np.where(is_out, kept, mean)
    return ruled_out
