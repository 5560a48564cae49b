"""Limits on the rate less the average of a curve in every region, about as narrow as those of the
rates of bins.

Let g0 be a first curve, fitted to pilot rows, which are never counted. Counted rows are in two
halves, at random. g_k is any curve fitted to pilot rows and the *other* half, h = (g_1 + g_2) / 2,
and h' any curve made from h. In region b

    E[Y - h' | b] = E[Y - g0 | b]  -  1/2 sum_k E[g_k - g0 | b]  -  E[h' - h | b].
                       (A)                   (C_k)                     (D)

(A) is the mean of independent draws from all rows of the region, since g0 is fixed; it has all
noise of the labels. (C_k) is a mean over half k, with no label, since g_k is fixed given what it
was fitted to. Both are bounded by bets (`calibrant.limits.block_bets`), (A) by Sidak over regions,
since given the regions of rows different regions are independent. (D) is bounded for every h' at
once: with knots k_0 < ... < k_K of the region and F(i) the share of the population at knots up to
k_i, E[f] less the average of f over the rows is the sum over i of the steps f(k_{i+1}) - f(k_i)
times F_N(i) - F(i), and the number of rows at knots up to k_i is binomial. The union bound joins
them. All curves are straight between the same knots, and rows are counted at knots
(`calibrant.cells.knots`).

Where pilot rows say that the rate is near 0 or 1 and the first curve is flat, exact binomial limits
of the rate are narrower than bets. There they have the whole part of the region, and (D) bounds the
average of h' itself.

The error budget: 2 % for (D); of the rest, 90 % for (A) and 10 % for (C), by parts of regions that
pilot rows chose.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators.anchored.curve_evidence import (
    CURVE_SHARE,
    MOVED_SHARE,
    CurveEvidence,
)
from calibrant.cells.knots import Knots
from calibrant.limits.bet_walk import FEW_STEPS
from calibrant.limits.binomial import lower_limit, sidak_levels, upper_limit
from calibrant.limits.block_bets import BlockSamples, block_limits
from calibrant.limits.dealt_blocks import DealtBlocks
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource

_AT_ONCE = 64  # regions that are bet on together
_INWARD = 0.999  # of the way to 0 or 1: how far a curve may be shifted
ROUNDING = 1e-12
"""Added to averages, which are sums over knots."""


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    """What each limit may miss.

    Attributes
    ----------
    of_labels : float array of shape (n_regions,)
        (A), on each side.
    of_curves : float array of shape (n_regions,)
        (C), for each half and on each side.
    of_steps : float
        (D), for each step between knots and on each side.
    """

    of_labels: FloatArray
    of_curves: FloatArray
    of_steps: float

    @classmethod
    def of(cls, alpha: float, shares: FloatArray, n_steps: int) -> Self:
        """Share `alpha` out; the `shares` of regions add up to at most 1 and are fixed before rows
        are counted.

        >>> found = Budget.of(0.1, np.array([0.5, 0.5]), 10)
        >>> found.of_labels.round(4), found.of_curves, round(found.of_steps, 6)
        (array([0.0226, 0.0226]), array([0.001225, 0.001225]), 0.0001)
        """
        of_steps = MOVED_SHARE * alpha
        of_curves = CURVE_SHARE * (alpha - of_steps)
        of_labels = alpha - of_steps - of_curves
        return cls(
            sidak_levels(of_labels, shares) / 2.0,
            of_curves * shares / 4.0,
            of_steps / (2.0 * max(n_steps, 1)),
        )

    @property
    def of_rates(self) -> FloatArray:
        """The whole part of each region, on each side, where limits of the rate take the place of
        (A) and (C).
        """
        return self.of_labels + 2.0 * self.of_curves


@dataclass(frozen=True, eq=False)
class KnotEvidence(CurveEvidence):
    """Plain rows, counted at knots.

    Attributes
    ----------
    counts : int array of shape (n_knots, 2, 2)
        Rows by knot, half and label.
    unlabelled : int array of shape (n_knots,)
        Rows of the same population without labels, by knot. No curve was fitted to them.
    spread : float array of shape (n_regions,)
        A guess of the variance of labels less the first curve, by pilot rows.
    spreads : float array of shape (2, n_regions)
        Guesses of the variance of g_k - g0, by pilot rows and the other half.
    by_rate : bool array of shape (n_regions,)
        Where exact limits of the rate take the place of bets; chosen by pilot rows and the number
        of rows.
    order : RandomSource
        What the order comes from in which rows are bet on.
    """

    counts: IntArray
    unlabelled: IntArray
    spread: FloatArray
    spreads: FloatArray
    by_rate: BoolArray
    order: RandomSource

    @cached_property
    def at_knots(self) -> IntArray:  # type: ignore[override]
        """Rows at each knot, with labels or without."""
        return np.asarray(self.counts.sum(axis=(1, 2)) + self.unlabelled)

    @cached_property
    def labelled(self) -> IntArray:  # type: ignore[override]
        """Rows with labels of each region."""
        return np.add.reduceat(self.counts.sum(axis=(1, 2)), self.knots.starts[:-1])

    @cached_property
    def positives(self) -> IntArray:  # type: ignore[override]
        """Positive rows of each region."""
        return np.add.reduceat(self.counts[:, :, 1].sum(axis=1), self.knots.starts[:-1])

    @property
    def has_negatives(self) -> BoolArray:
        """Whether a row of each region is negative."""
        return np.asarray(self.positives < self.labelled)

    @property
    def is_exact(self) -> BoolArray:
        """Where exact limits of the rate take the place of bets."""
        return self.by_rate

    def limits(self, alpha: float, shares: FloatArray) -> tuple[Interval, FloatArray]:
        """Limits by bets and exact ones; see `CurveEvidence.limits`."""
        n_regions = self.knots.regions.n_regions
        budget = Budget.of(alpha, shares, self.knots.n_knots - n_regions)
        lower = np.empty(n_regions)
        upper = np.empty(n_regions)
        generator = self.order.generator()
        for start in range(0, n_regions, _AT_ONCE):
            some = np.arange(start, min(start + _AT_ONCE, n_regions))
            lower[some], upper[some] = _bets(self, some, budget, generator)
        exact = self.is_exact
        if exact.any():
            known = self.positives[exact], self.labelled[exact], budget.of_rates[exact]
            lower[exact] = lower_limit(*known)
            upper[exact] = upper_limit(*known)
        return Interval(lower, upper), _gaps(self, budget.of_steps)


@dataclass(frozen=True, eq=False)
class CurveBounds:
    """What is proved of all curves on the knots, at once.

    Attributes
    ----------
    evidence : CurveEvidence
        What it follows from.
    labels : Interval
        (A) less half of (C_1) and (C_2): the rate less the average of h; in exact regions, limits
        of the rate.
    gaps : float array of shape (n_knots,)
        How far the share of rows at knots up to each one can be from that of the population; 0 at
        the last knot of a region.
    """

    evidence: CurveEvidence
    labels: Interval
    gaps: FloatArray

    @classmethod
    def of(cls, evidence: CurveEvidence, alpha: float, shares: FloatArray) -> Self:
        """Limits that all hold with probability at least 1 - alpha."""
        return cls(evidence, *evidence.limits(alpha, shares))

    def off(self, curve: FloatArray) -> FloatArray:
        """How far the average of a curve over the rows of each region can be from that over the
        population.
        """
        steps = np.abs(np.diff(curve, append=curve[-1:])) * self.gaps
        far = np.add.reduceat(steps, self.evidence.knots.starts[:-1])
        return np.where(far > 0.0, far + ROUNDING, 0.0)

    def errors(self, curve: FloatArray) -> Interval:
        """Limits on the rate less the average of a curve, in each region."""
        evidence = self.evidence
        exact = evidence.is_exact
        moved = curve - evidence.mean_curve
        average = np.where(exact, evidence.averages(curve), evidence.averages(moved))
        off = np.where(exact, self.off(curve), self.off(moved)) + ROUNDING
        low, high = evidence.ends(curve)
        lower = np.maximum(self.labels.lower - average - off, -high)
        upper = np.minimum(self.labels.upper - average + off, 1.0 - low)
        # labels of one class alone do not rule out that there is no other
        no_positive = evidence.positives == 0
        no_negative = ~evidence.has_negatives
        return Interval(
            np.where(no_positive, -high, lower), np.where(no_negative, 1.0 - low, upper)
        )

    def refuted(self, curve: FloatArray) -> BoolArray:
        """In which regions the data refute a curve: its average error is not 0."""
        errors = self.errors(curve)
        return np.asarray((errors.lower > 0.0) | (errors.upper < 0.0))

    def shifted(self, curve: FloatArray) -> FloatArray:
        """The curve, shifted in each region where it is refuted until it is not."""
        errors = self.errors(curve)
        shift = np.maximum(errors.lower, 0.0) + np.minimum(errors.upper, 0.0)
        low, high = self.evidence.ends(curve)
        shift = np.clip(shift, -_INWARD * low, _INWARD * (1.0 - high))
        return np.asarray(curve + shift[self.evidence.knots.region])

    def rates(self, curve: FloatArray, errors: Interval) -> Interval:
        """Limits on the rate of each region: those on the errors of a curve plus those on its
        average.
        """
        average = self.evidence.averages(curve)
        off = self.off(curve)
        exact = self.evidence.is_exact
        lower = np.where(exact, self.labels.lower, errors.lower + average - off)
        upper = np.where(exact, self.labels.upper, errors.upper + average + off)
        no_positive = self.evidence.positives == 0
        no_negative = ~self.evidence.has_negatives
        return Interval(
            np.where(no_positive, 0.0, np.clip(lower, 0.0, 1.0)),
            np.where(no_negative, 1.0, np.clip(upper, 0.0, 1.0)),
        )


def _gaps(evidence: KnotEvidence, tail: float) -> FloatArray:
    """Limits on the share of rows at knots up to each one, exact binomial ones."""
    knots = evidence.knots
    total = np.cumsum(evidence.at_knots)
    before = (total - evidence.at_knots)[knots.starts[:-1]]
    reached = total - before[knots.region]
    rows = evidence.rows[knots.region]
    share = reached / np.maximum(rows, 1)
    below = share - lower_limit(reached, rows, tail)
    above = upper_limit(reached, rows, tail) - share
    found = np.maximum(below, above)
    found[knots.starts[1:] - 1] = 0.0
    return found


def _bets(
    evidence: KnotEvidence, some: IndexArray, budget: Budget, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Limits on the rate less the average of h in some regions; by (A), and (C) for both halves."""
    place, inside = _knots_of(evidence.knots, some)
    counts = np.where(inside[:, :, None, None], evidence.counts[place], 0)
    n_regions, n_knots = place.shape
    dealt = DealtBlocks.of(counts.reshape(n_regions, -1), generator)
    blocks = dealt.blocks.astype(np.float64)
    knot, half, label = np.unravel_index(np.maximum(dealt.singles, 0), (n_knots, 2, 2))
    is_row = dealt.singles >= 0
    first = evidence.first[place]
    of_labels = np.stack([-first, 1.0 - first], axis=-1)
    of_rows = np.repeat(of_labels[:, :, None], 2, axis=2)  # the same in both halves
    low, high = _ends(first, inside)
    labels = BlockSamples(
        of_rows.reshape(n_regions, -1),
        blocks,
        np.where(
            is_row,
            np.take_along_axis(of_labels.reshape(n_regions, -1), 2 * knot + label, axis=1),
            np.nan,
        ),
        -high,
        1.0 - low,
        evidence.spread[some],
    )
    lower, upper = block_limits(labels, budget.of_labels[some])
    if evidence.unlabelled.any():
        low, high = _curve_limits_with(evidence, some, counts, budget, generator)
    else:
        by_knot = blocks.reshape(n_regions, -1, n_knots, 2, 2)
        low, high = _curve_limits(evidence, some, by_knot, np.where(is_row, half, -1), knot, budget)
    return lower - high, upper - low


def _curve_limits_with(
    evidence: KnotEvidence,
    some: IndexArray,
    counts: IntArray,
    budget: Budget,
    generator: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """The same with unlabelled scores: they are further draws for both halves.

    They are independent of what g_1 and g_2 were fitted to. That both limits use them does not
    matter to the union bound.
    """
    place, inside = _knots_of(evidence.knots, some)
    first = evidence.first[place]
    more = np.where(inside, evidence.unlabelled[place], 0)
    limits = []
    for number in range(2):
        apart = evidence.halves[number][place] - first
        dealt = DealtBlocks.of(counts[:, :, number].sum(axis=2) + more, generator)
        knot = np.maximum(dealt.singles, 0)
        singles = np.where(dealt.singles >= 0, np.take_along_axis(apart, knot, axis=1), np.nan)
        samples = BlockSamples(
            apart,
            dealt.blocks.astype(np.float64),
            singles,
            *_ends(apart, inside),
            evidence.spreads[number][some],
        )
        limits.append(block_limits(samples, budget.of_curves[some], FEW_STEPS))
    lower, upper = np.mean(limits, axis=0)
    return lower, upper


def _curve_limits(
    evidence: KnotEvidence,
    some: IndexArray,
    blocks: FloatArray,
    half: IndexArray,
    knot: IndexArray,
    budget: Budget,
) -> tuple[FloatArray, FloatArray]:
    """Limits on the average of h less the first curve in some regions: the mean of (C_1) and (C_2).

    `half` and `knot` are those of single rows; -1 for none.
    """
    place, inside = _knots_of(evidence.knots, some)
    first = evidence.first[place]
    parts: list[tuple[FloatArray, ...]] = []
    for number in range(2):
        apart = evidence.halves[number][place] - first
        parts.append(
            (
                apart,
                blocks[:, :, :, number, 0] + blocks[:, :, :, number, 1],
                np.where(half == number, np.take_along_axis(apart, knot, axis=1), np.nan),
                *_ends(apart, inside),
                evidence.spreads[number][some],
            )
        )
    both = BlockSamples(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    lower, upper = block_limits(both, np.tile(budget.of_curves[some], 2), FEW_STEPS)
    return np.asarray(lower.reshape(2, -1).mean(axis=0)), np.asarray(
        upper.reshape(2, -1).mean(axis=0)
    )


def _knots_of(knots: Knots, some: IndexArray) -> tuple[IndexArray, BoolArray]:
    """The knots of each of these regions, in rows of one length, and which of them are its own."""
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
