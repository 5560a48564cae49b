"""Plain rows, counted at knots: what bets and exact limits prove about curves.

Given the counts of rows, all orders are equally likely, so the counts include the halves and the
order of the bets is drawn afterwards (`calibrant.limits.block_bets`).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators.anchored.curve_bounds import (
    CURVE_SHARE,
    FIRST_SHARE,
    MOVED_SHARE,
    PRIOR_ROWS,
    CurveEvidence,
    CurveLimits,
)
from calibrant.calibrators.anchored.pilot_rows import Guess
from calibrant.cells.knots import Knots, RowHashes
from calibrant.kernels import in_threads
from calibrant.limits.bet_walk import FEW_STEPS, block_limits
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.block_bets import BlockSamples, DealtBlocks
from calibrant.limits.error_budget import sidak_levels
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource

_AT_ONCE = 64  # regions whose bets are placed together, by one thread
_STEP_ERRORS = 4.5  # approximate standard errors of a share of rows that simultaneous limits leave
_RATE_ERRORS = 3.0  # the same, for a rate
# skewness over the square root of the rows from which on exact limits are narrower than bets
_SKEWED = 0.08
# approximate gain of exact limits over bets, per skewness over the root of the rows
_SKEW_COST = 1.0
_MOST_LOST = 0.9  # largest share of the capital that one bet on the first curve can lose
_BISECTIONS = 24
_ROUNDING = 1e-9  # of log capital, which is a sum of many terms


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    """The error probability of each limit.

    Attributes
    ----------
    of_labels : float array of shape (n_regions,)
        (A), on each side.
    of_curves : float array of shape (n_regions,)
        (C), for each half and on each side.
    of_first : float array of shape (n_regions,)
        The average of the first curve, on each side.
    of_steps : float
        (D), for each step between knots and on each side.
    """

    of_labels: FloatArray
    of_curves: FloatArray
    of_first: FloatArray
    of_steps: float

    @classmethod
    def of(cls, alpha: float, shares: FloatArray, n_steps: int) -> Self:
        """Share `alpha` out; the `shares` of regions add up to at most 1 and are fixed before rows
        are counted.

        >>> found = Budget.of(0.1, np.array([0.5, 0.5]), 10)
        >>> found.of_labels.round(4), found.of_curves, round(found.of_steps, 6)
        (array([0.0238, 0.0238]), array([0.0006125, 0.0006125]), 5e-05)
        """
        of_moves = MOVED_SHARE * alpha
        of_curves = CURVE_SHARE * (alpha - of_moves)
        of_labels = alpha - of_moves - of_curves
        return cls(
            sidak_levels(of_labels, shares) / 2.0,
            of_curves * shares / 4.0,
            FIRST_SHARE * of_moves * shares / 2.0,
            (1.0 - FIRST_SHARE) * of_moves / (2.0 * max(n_steps, 1)),
        )

    @property
    def of_rates(self) -> FloatArray:
        """The whole share of each region, on each side, if limits on the rate replace (A) and (C)."""
        return self.of_labels + 2.0 * self.of_curves


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

    def with_unlabelled(self, scores: FloatArray) -> Self:
        """The same rows, with additional unlabelled rows."""
        hashes = RowHashes(self.source.for_purpose("unlabelled scores"))
        counts = self.knots.count(scores, np.zeros(scores.size, dtype=np.uint8), hashes)
        return replace(self, unlabelled=counts[: self.knots.n_knots].sum(axis=(1, 2)))

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

    def guess(self, first: FloatArray) -> Guess:
        """The estimates from pilot rows for each region."""
        return Guess.of_counts(first, self.of_pilot, self.knots.starts[:-1])

    def to_fit(self, number: int) -> IntArray:
        """Pilot rows and rows of the other half by knot and label."""
        return np.asarray(self.of_pilot + self.counts[:, 1 - number])

    def prove(self, evidence: CurveEvidence, alpha: float, shares: FloatArray) -> CurveLimits:
        """Limits by bets, or exact limits; see `CurveRows.prove`."""
        n_regions = self.knots.regions.n_regions
        budget = Budget.of(alpha, shares, self.knots.n_knots - n_regions)
        some = np.array_split(np.arange(n_regions), range(_AT_ONCE, n_regions, _AT_ONCE))
        if len(some) == 1:
            labels, curves = self._bets(evidence, some[0], budget)
        else:
            limits = in_threads(lambda regions: self._bets(evidence, regions, budget), some)
            labels, curves = np.concatenate(limits, axis=2)
        exact = self.is_exact(evidence.guess, evidence.first)
        if exact.any():
            known = self.positives[exact], self.labelled[exact], budget.of_rates[exact]
            labels[0, exact] = lower_limit(*known)
            labels[1, exact] = upper_limit(*known)
        first = self._first_limits(evidence, budget.of_first)
        gaps = self._gaps(budget.of_steps)
        return CurveLimits(Interval(*labels), Interval(*curves), first, gaps, exact)

    def _bets(self, evidence: CurveEvidence, some: IndexArray, budget: Budget) -> FloatArray:
        """Limits for some regions, by bets in an order of their own."""
        first = int(some[0])
        purpose = f"order of bets from region {first}" if first else "order of bets"
        generator = self.source.for_purpose(purpose).generator()
        with np.errstate(all="ignore"):  # which a thread does not inherit
            return _bets(self, evidence, some, budget, generator)

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
        total = np.add.reduceat(weight, knots.starts[:-1])
        before = (np.cumsum(weight) - weight)[knots.starts[:-1]]
        share = np.clip((np.cumsum(weight) - before[knots.region]) / total[knots.region], 0.0, 1.0)
        here = n[knots.region]
        gap = _STEP_ERRORS * np.sqrt(share * (1.0 - share) / here) + _STEP_ERRORS**2 / (2.0 * here)
        off = np.abs(np.diff(first, append=first[-1:])) * gap
        off[knots.starts[1:] - 1] = 0.0
        unknown = np.add.reduceat(off, knots.starts[:-1])
        unexplained = np.clip(1.0 - guess.spread / variance, 0.0, 1.0)
        of_exact = unknown + half_width * (1.0 - np.sqrt(unexplained))
        is_narrower = of_exact < _SKEW_COST * skewness * half_width
        return np.asarray(((skewness > _SKEWED) & is_narrower) | (n_knots == 1))

    def _first_limits(self, evidence: CurveEvidence, tail: FloatArray) -> Interval:
        """Limits on the average of the first curve in each region."""
        rest = (self.at_knots, self.knots.starts[:-1], evidence.guess.of_scores, tail)
        lower = lower_averages(evidence.first, *rest)
        return Interval(lower, -lower_averages(-evidence.first, *rest))

    def _gaps(self, tail: float) -> FloatArray:
        """Exact binomial limits on the share of rows at knots up to each one."""
        knots = self.knots
        total = np.cumsum(self.at_knots)
        before = (total - self.at_knots)[knots.starts[:-1]]
        reached = total - before[knots.region]
        rows = np.add.reduceat(self.at_knots, knots.starts[:-1])[knots.region]
        share = reached / np.maximum(rows, 1)
        below = share - lower_limit(reached, rows, tail)
        above = upper_limit(reached, rows, tail) - share
        found = np.maximum(below, above)
        found[knots.starts[1:] - 1] = 0.0
        return found


def _bets(
    rows: PlainRows,
    evidence: CurveEvidence,
    some: IndexArray,
    budget: Budget,
    generator: np.random.Generator,
) -> FloatArray:
    """Limits on (A), and on the mean of (C) for both halves, in some regions."""
    place, inside = _knots_of(evidence.knots, some)
    counts = np.where(inside[:, :, None, None], rows.counts[place], 0)
    n_regions, n_knots = place.shape
    dealt = DealtBlocks.of(counts.reshape(n_regions, -1), generator)
    knot, half, label = np.unravel_index(np.maximum(dealt.late, 0), (n_knots, 2, 2))
    is_row = dealt.late >= 0
    first = evidence.first[place]
    of_labels = np.stack([-first, 1.0 - first], axis=-1)
    of_rows = np.repeat(of_labels[:, :, None], 2, axis=2)  # the same in both halves
    low, high = _ends(first, inside)
    labels = BlockSamples(
        of_rows.reshape(n_regions, -1),
        dealt.blocks,
        np.where(
            is_row,
            np.take_along_axis(of_labels.reshape(n_regions, -1), 2 * knot + label, axis=1),
            np.nan,
        ),
        dealt.sizes,
        -high,
        1.0 - low,
        evidence.guess.of_errors[some],
    )
    lower, upper = block_limits(labels, budget.of_labels[some])
    if rows.unlabelled.any():
        curves = _curve_limits_with(rows, evidence, some, counts, budget, generator)
    else:
        by_knot = dealt.blocks.reshape(n_regions, -1, n_knots, 2, 2)
        late = _LateRows(np.where(is_row, half, -1), knot, dealt.sizes)
        curves = _curve_limits(evidence, some, by_knot, late, budget)
    return np.stack([np.stack([lower, upper]), np.stack(curves)])


@dataclass(frozen=True, slots=True, eq=False)
class _LateRows:
    """Half and knot of late rows (half -1 for none), and the sizes of their blocks."""

    half: IndexArray
    knot: IndexArray
    sizes: tuple[int, ...]


def _curve_limits_with(
    rows: PlainRows,
    evidence: CurveEvidence,
    some: IndexArray,
    counts: IntArray,
    budget: Budget,
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Limits as in `_curve_limits`, with unlabelled scores as additional draws for both halves.

    They are independent of what g_1 and g_2 were fitted to. The union bound allows both limits to
    use them.
    """
    place, inside = _knots_of(evidence.knots, some)
    first = evidence.first[place]
    more = np.where(inside, rows.unlabelled[place], 0)
    limits = []
    for number in range(2):
        apart = evidence.halves[number][place] - first
        dealt = DealtBlocks.of(counts[:, :, number].sum(axis=2) + more, generator)
        knot = np.maximum(dealt.late, 0)
        late = np.where(dealt.late >= 0, np.take_along_axis(apart, knot, axis=1), np.nan)
        samples = BlockSamples(
            apart,
            dealt.blocks,
            late,
            dealt.sizes,
            *_ends(apart, inside),
            evidence.spreads[number][some],
        )
        limits.append(block_limits(samples, budget.of_curves[some], FEW_STEPS))
    lower, upper = np.mean(limits, axis=0)
    return lower, upper


def _curve_limits(
    evidence: CurveEvidence,
    some: IndexArray,
    blocks: FloatArray,
    late: "_LateRows",
    budget: Budget,
) -> tuple[FloatArray, FloatArray]:
    """Limits on the average of h minus the first curve in some regions: the mean of (C_1) and
    (C_2).

    Both halves are one walk: the samples of half 1, then those of half 2.
    """
    place, inside = _knots_of(evidence.knots, some)
    apart = evidence.halves[:, place] - evidence.first[place]
    of_half = [
        np.where(late.half == number, np.take_along_axis(apart[number], late.knot, axis=1), np.nan)
        for number in range(2)
    ]
    values = np.concatenate(apart)
    low, high = _ends(values, np.concatenate([inside, inside]))
    both = BlockSamples(
        values,
        np.concatenate([blocks[..., half, 0] + blocks[..., half, 1] for half in range(2)]),
        np.concatenate(of_half),
        late.sizes,
        low,
        high,
        np.concatenate(list(evidence.spreads[:, some])),
    )
    lower, upper = block_limits(both, np.tile(budget.of_curves[some], 2), FEW_STEPS)
    return np.asarray(lower.reshape(2, -1).mean(axis=0)), np.asarray(
        upper.reshape(2, -1).mean(axis=0)
    )


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


def _knots_of(knots: Knots, some: IndexArray) -> tuple[IndexArray, BoolArray]:
    """The knots of each of these regions, in rows of equal length, and which of them are its own."""
    begin = knots.starts[some]
    size = knots.starts[some + 1] - begin
    number = np.arange(size.max())
    inside = number < size[:, None]
    return begin[:, None] + np.minimum(number, size[:, None] - 1), inside


def _ends(values: FloatArray, inside: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest value in each region."""
    low = np.where(inside, values, np.inf).min(axis=1)
    high = np.where(inside, values, -np.inf).max(axis=1)
    return low, high
