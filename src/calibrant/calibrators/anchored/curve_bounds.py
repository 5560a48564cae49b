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
from calibrant.calibrators.anchored.pieces import Pieces
from calibrant.cells.knots import Knots
from calibrant.limits.binomial import lower_limit, sidak_levels, upper_limit
from calibrant.limits.block_bets import FEW_STEPS, BlockSamples, block_limits
from calibrant.limits.dealt_blocks import DealtBlocks
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource

MOVED_SHARE = 0.02
"""Of the error budget: for (D), the distribution of rows over knots."""
CURVE_SHARE = 0.1
"""Of the rest: for (C), the averages of the curves of both halves less the first one."""

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
class KnotEvidence:
    """Rows counted at knots, and the curves that limits are about.

    Attributes
    ----------
    knots : Knots
        The knots.
    counts : int array of shape (n_knots, 2, 2)
        Rows by knot, half and label.
    first : float array of shape (n_knots,)
        The first curve, g0.
    halves : float array of shape (2, n_knots)
        The curves g_1 and g_2; g_k was fitted without half k.
    spread : float array of shape (n_regions,)
        A guess of the variance of labels less the first curve, by pilot rows.
    spreads : float array of shape (2, n_regions)
        Guesses of the variance of g_k - g0, by pilot rows and the other half.
    is_exact : bool array of shape (n_regions,)
        Where exact limits of the rate take the place of bets; chosen by pilot rows and the number
        of rows.
    order : RandomSource
        What the order comes from in which rows are bet on.
    """

    knots: Knots
    counts: IntArray
    first: FloatArray
    halves: FloatArray
    spread: FloatArray
    spreads: FloatArray
    is_exact: BoolArray
    order: RandomSource

    @property
    def mean_curve(self) -> FloatArray:
        """The curve h, the mean of both."""
        return np.asarray(self.halves.mean(axis=0))

    @cached_property
    def at_knots(self) -> IntArray:
        """Rows at each knot."""
        return np.asarray(self.counts.sum(axis=(1, 2)))

    @cached_property
    def rows(self) -> IntArray:
        """Rows of each region."""
        return np.add.reduceat(self.at_knots, self.knots.starts[:-1])

    @cached_property
    def positives(self) -> IntArray:
        """Positive rows of each region."""
        return np.add.reduceat(self.counts[:, :, 1].sum(axis=1), self.knots.starts[:-1])

    def averages(self, curve: FloatArray) -> FloatArray:
        """The average of a curve over the rows of each region; over its knots where there are none."""
        starts = self.knots.starts[:-1]
        sums = np.add.reduceat(self.at_knots * curve, starts)
        plain = np.add.reduceat(curve, starts) / np.diff(self.knots.starts)
        return np.where(self.rows > 0, sums / np.maximum(self.rows, 1), plain)

    def pieces(self, curve: FloatArray) -> Pieces:
        """A curve as the table on which rows were counted."""
        return Pieces(self.knots.cells, curve[self.knots.first], curve[self.knots.last])

    def ends(self, curve: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest value of a curve in each region."""
        starts = self.knots.starts[:-1]
        return np.minimum.reduceat(curve, starts), np.maximum.reduceat(curve, starts)


@dataclass(frozen=True, eq=False)
class CurveBounds:
    """What is proved of all curves on the knots, at once.

    Attributes
    ----------
    evidence : KnotEvidence
        What it follows from.
    labels : Interval
        (A) less half of (C_1) and (C_2): the rate less the average of h; in exact regions, limits
        of the rate.
    gaps : float array of shape (n_knots,)
        How far the share of rows at knots up to each one can be from that of the population; 0 at
        the last knot of a region.
    """

    evidence: KnotEvidence
    labels: Interval
    gaps: FloatArray

    @classmethod
    def of(cls, evidence: KnotEvidence, alpha: float, shares: FloatArray) -> Self:
        """Limits that all hold with probability at least 1 - alpha."""
        knots = evidence.knots
        budget = Budget.of(alpha, shares, knots.n_knots - knots.regions.n_regions)
        n_regions = knots.regions.n_regions
        lower = np.empty(n_regions)
        upper = np.empty(n_regions)
        generator = evidence.order.generator()
        for start in range(0, n_regions, _AT_ONCE):
            some = np.arange(start, min(start + _AT_ONCE, n_regions))
            lower[some], upper[some] = _bets(evidence, some, budget, generator)
        exact = evidence.is_exact
        if exact.any():
            known = evidence.positives[exact], evidence.rows[exact], budget.of_rates[exact]
            lower[exact] = lower_limit(*known)
            upper[exact] = upper_limit(*known)
        return cls(evidence, Interval(lower, upper), _gaps(evidence, budget.of_steps))

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
        no_negative = evidence.positives == evidence.rows
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
        no_negative = self.evidence.positives == self.evidence.rows
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
        counts.reshape(n_regions, -1).astype(np.float64),
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
    by_knot = blocks.reshape(n_regions, -1, n_knots, 2, 2)
    low, high = _curve_limits(
        evidence, some, counts, by_knot, np.where(is_row, half, -1), knot, budget
    )
    return lower - high, upper - low


def _curve_limits(
    evidence: KnotEvidence,
    some: IndexArray,
    counts: IntArray,
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
                counts[:, :, number].sum(axis=2).astype(np.float64),
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
