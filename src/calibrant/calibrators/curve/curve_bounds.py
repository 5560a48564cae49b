"""Limits on the rate minus the average of a curve in every region, about as narrow as those on the
rates of bins.

Rows of all kinds follow one protocol (`CurveRows`): plain rows are counts
(`calibrant.calibrators.curve.plain_rows`), grouped and weighted rows are sums over units
(`calibrant.calibrators.curve.units`). This module derives what follows for curves.

Let g0 be a first curve, fitted to pilot rows, which are never counted. Counted rows are split into
two random halves. g_k is any curve fitted to pilot rows and the *other* half, h = (g_1 + g_2) / 2,
and h' any curve made from h. In region b

    E[Y - h' | b] = E[Y - g0 | b]  -  1/2 sum_k E[g_k - g0 | b]  -  E[h' - h | b].
                       (A)                   (C_k)                     (D)

(A) is the mean of independent draws from all rows of the region, because g0 is fixed; it has all
the noise of the labels. (C_k) is a mean over half k, without labels, because g_k is fixed given the
rows it was fitted to. Both are bounded by bets: (A) by those of `calibrant.limits.bet_limits`, by
Sidak over regions, because different regions are independent given the regions of the rows; (C_k),
whose noise is small, by one stake for all plain rows, which needs no order of them. (D) is bounded for
every h' simultaneously: with knots k_0 < ... < k_K of the region and F(i) the share of the
population at knots up to k_i, E[f] minus the average of f over the rows is the sum over i of the
steps f(k_{i+1}) - f(k_i) times F_N(i) - F(i), and the number of rows at knots up to k_i is
binomial. The union bound combines them. All curves are linear between the same knots, and rows are
counted at knots (`calibrant.cells.knots`).

*Mixes.* In each region write h' = s g0 + t h + r, with any s, any t >= 0, and a rest r. Let C be
the mean of (C_1) and (C_2), and G = E[g0 | b], for which there are limits too, because g0 is fixed.
Then

    E[Y - h' | b] = A - t C + (1 - s - t) G - E[r | b],

and (D) bounds the last term, also for every r at once. The limits on A, C, G and the shares of rows
hold simultaneously, so this holds for all s and t at once, even if they are chosen after looking at
all rows. (s = 0 and t = 1 is the identity above.) So h' may have the shape of g0 in part, t < 1,
wherever that makes epsilon smaller: `calibrant.calibrators.curve.least_epsilon` chooses.

If pilot rows suggest that the rate is near 0 or 1 and the first curve is flat, exact binomial
limits on the rate are narrower than bets. In that case they get the shares of (A) and (C) in the
region, and E[Y - h' | b] = E[Y | b] - t C - (s + t) G - E[r | b], with a limit on C as on (D).

Without positive rows in a region, the lower limit on its rate is taken to be 0, and without
negative ones the upper limit 1.

The error budget: 1% for (D) and 1% for G; of the rest, 95% for (A) and 5% for (C), by shares of
regions that pilot rows chose.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.calibrators.curve.fitted_curve import ProvedCurve
from calibrant.calibrators.curve.least_epsilon import Side
from calibrant.calibrators.curve.pieces import Pieces
from calibrant.calibrators.curve.pilot_rows import Guess, ends
from calibrant.cells.entries import Entries
from calibrant.cells.knots import Knots
from calibrant.cells.partition import Partition
from calibrant.limits.error_budget import sidak_levels
from calibrant.limits.interval import Interval
from calibrant.limits.region_limits import absorbed_shares

MOVED_SHARE = 0.02
"""Share of the error budget for (D), the distribution of rows over knots, and for the averages of the
first curve.
"""
CURVE_SHARE = 0.05
"""Share of the rest for (C), the averages of the curves of both halves minus the first one."""
_FIRST_SHARE = 0.5  # of the share for (D): what goes to the averages of the first curve
ROUNDING = 1e-12
"""Added to averages, which are sums over knots."""
PRIOR_ROWS = 2.0
"""Rows that the knots of a region count as in a guess at how rows are distributed."""

_INWARD = 0.999  # of the way to 0 or 1: how far a curve may be shifted


class CurveRows(Protocol):
    """Counted rows in two halves, and pilot rows: the interface that curves and their limits need."""

    @property
    def knots(self) -> Knots:
        """The knots between which rows are."""

    @property
    def of_pilot(self) -> FloatArray | IntArray:
        """Pilot rows by knot and label."""

    @property
    def expected(self) -> FloatArray | IntArray:
        """The approximate number of independent units in each region, fixed before their rows are
        seen.
        """

    @property
    def at_knots(self) -> FloatArray | IntArray:
        """The number of rows, or their weight, at each knot."""

    @property
    def labelled(self) -> FloatArray | IntArray:
        """The number, or weight, of labelled rows in each region."""

    @property
    def positives(self) -> FloatArray | IntArray:
        """The number, or weight, of positive rows in each region."""

    @property
    def has_negatives(self) -> BoolArray:
        """Whether each region has a negative row."""

    def pilot_units(self, first: FloatArray) -> tuple[Entries, Entries]:
        """Label minus a first curve, and the curve, of each pilot unit in each region."""

    def to_fit(self, number: int) -> FloatArray | IntArray:
        """Pilot rows and rows of the *other* half by knot and label, for the curve of a half."""

    def prove(self, evidence: "CurveEvidence", alpha: float, shares: FloatArray) -> "CurveLimits":
        """The limits that hold with probability at least 1 - alpha."""


def reached(values: FloatArray | IntArray, knots: Knots) -> FloatArray:
    """Cumulative sums over the knots of each region."""
    total = np.cumsum(values)
    before = (total - values)[knots.starts[:-1]]
    return np.asarray(total - before[knots.region])


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
    def of(
        cls, alpha: float, shares: FloatArray, knots: Knots, *, are_independent: bool = True
    ) -> Self:
        """Divide `alpha`; the `shares` of regions add up to at most 1 and are fixed before rows are
        counted.

        If regions are independent, given which of them rows are in, their levels are Sidak's.
        """
        of_moves = MOVED_SHARE * alpha
        of_curves = CURVE_SHARE * (alpha - of_moves)
        of_labels = alpha - of_moves - of_curves
        n_steps = max(knots.n_knots - shares.size, 1)
        return cls(
            (sidak_levels(of_labels, shares) if are_independent else of_labels * shares) / 2.0,
            of_curves * shares / 4.0,
            _FIRST_SHARE * of_moves * shares / 2.0,
            (1.0 - _FIRST_SHARE) * of_moves / (2.0 * n_steps),
        )

    @property
    def of_rates(self) -> FloatArray:
        """The whole share of each region, on each side, if limits on the rate replace (A) and (C)."""
        return self.of_labels + 2.0 * self.of_curves


@dataclass(frozen=True, slots=True, eq=False)
class CurveLimits:
    """What rows show about all curves on the knots simultaneously.

    Attributes
    ----------
    labels : Interval
        (A): the rate minus the average of the first curve; in exact regions, the rate.
    curves : Interval
        Half of (C_1) and (C_2): the average of h minus that of the first curve.
    first : Interval
        The average of the first curve.
    gaps : float array of shape (n_knots,)
        The largest distance between the share of rows at knots up to each one and that of the
        population; 0 at the last knot of a region.
    is_exact : bool array of shape (n_regions,)
        Where exact limits on the rate replace bets.
    """

    labels: Interval
    curves: Interval
    first: Interval
    gaps: FloatArray
    is_exact: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """A curve that is a constant plus s g0 + t h in each region.

    Attributes
    ----------
    of_first, of_mean : float arrays of shape (n_regions,)
        The coefficients s of the first curve g0 and t of the mean curve h; t is not negative.
    """

    of_first: FloatArray
    of_mean: FloatArray


@dataclass(frozen=True, eq=False)
class CurveEvidence:
    """Rows at knots, and the curves that the limits are about.

    Attributes
    ----------
    rows : CurveRows
        The rows.
    first : float array of shape (n_knots,)
        The first curve, g0.
    halves : float array of shape (2, n_knots)
        The curves g_1 and g_2; g_k was fitted without half k.
    fitted_to : pair of arrays of shape (n_knots, 2)
        By knot and label, the rows that each of them was fitted to.
    """

    rows: CurveRows
    first: FloatArray
    halves: FloatArray
    fitted_to: tuple[FloatArray | IntArray, FloatArray | IntArray]

    @property
    def knots(self) -> Knots:
        """The knots."""
        return self.rows.knots

    @cached_property
    def guess(self) -> Guess:
        """The estimates from pilot rows for each region."""
        return Guess.of(*self.rows.pilot_units(self.first), *self.ends(self.first))

    @cached_property
    def spreads(self) -> FloatArray:
        """Guesses at the variance of g_k - g0 in each region, from the rows that g_k was fitted to."""
        starts = self.knots.starts[:-1]
        region = self.knots.region
        spreads = []
        for curve, counts in zip(self.halves, self.fitted_to, strict=True):
            values = curve - self.first
            weight = counts.sum(axis=1) + (PRIOR_ROWS / np.diff(self.knots.starts))[region]
            total = np.add.reduceat(weight, starts)
            mean = np.add.reduceat(weight * values, starts) / total
            away = weight * (values - mean[region]) ** 2
            spreads.append(np.add.reduceat(away, starts) / total)
        return np.array(spreads)

    @cached_property
    def mean_curve(self) -> FloatArray:
        """The curve h, the mean of both."""
        return np.asarray(self.halves.mean(axis=0))

    @cached_property
    def in_regions(self) -> FloatArray | IntArray:
        """The number, or weight, of rows in each region."""
        return np.add.reduceat(self.rows.at_knots, self.knots.starts[:-1])

    def averages(self, curve: FloatArray) -> FloatArray:
        """The average of a curve over the rows of each region; over its knots if there are no rows."""
        starts = self.knots.starts[:-1]
        sums = np.add.reduceat(self.rows.at_knots * curve, starts)
        plain = np.add.reduceat(curve, starts) / np.diff(self.knots.starts)
        seen = self.in_regions > 0
        return np.where(seen, sums / np.where(seen, self.in_regions, 1.0), plain)

    def pieces(self, curve: FloatArray) -> Pieces:
        """A curve as the table on which rows were counted."""
        return Pieces(self.knots.cells, curve[self.knots.first], curve[self.knots.last])

    def ends(self, curve: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest value of a curve in each region."""
        return ends(self.knots, curve)


@dataclass(frozen=True, eq=False)
class CurveBounds:
    """What is shown about all curves on the knots simultaneously.

    Attributes
    ----------
    evidence : CurveEvidence
        The evidence behind it.
    proved : CurveLimits
        The limits from its rows.
    """

    evidence: CurveEvidence
    proved: CurveLimits

    @classmethod
    def of(cls, evidence: CurveEvidence, alpha: float, shares: FloatArray) -> Self:
        """Limits that hold simultaneously with probability at least 1 - alpha.

        `shares` are the regions' shares of alpha; they add up to at most 1 and are fixed before
        rows are counted.
        """
        return cls(evidence, evidence.rows.prove(evidence, alpha, shares))

    def off(self, curve: FloatArray) -> FloatArray:
        """The largest distance between the averages of a curve over the rows of each region and
        over the population.
        """
        steps = np.abs(np.diff(curve, append=curve[-1:])) * self.proved.gaps
        far = np.add.reduceat(steps, self.evidence.knots.starts[:-1])
        return np.where(far > 0.0, far + ROUNDING, 0.0)

    @cached_property
    def terms(self) -> tuple[Interval, Interval]:
        """Limits on the averages of h - g0 and of g0 in each region.

        In exact regions, (C) has no share of the budget, and gaps bound the first.
        """
        evidence = self.evidence
        exact = self.proved.is_exact
        by_steps = self._average(evidence.mean_curve - evidence.first)
        apart = Interval(
            np.where(exact, by_steps.lower, self.proved.curves.lower),
            np.where(exact, by_steps.upper, self.proved.curves.upper),
        )
        return apart, _both(self._average(evidence.first), self.proved.first)

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        """Lower and upper limits on labels.

        Labels of one class alone do not rule out that the other class is absent.
        """
        known = np.where(self.proved.is_exact, 0.0, 1.0)
        rows = self.evidence.rows
        no_positive = rows.positives == 0
        no_negative = ~rows.has_negatives
        below = np.where(no_positive, 0.0, self.proved.labels.lower)
        above = np.where(no_negative, 1.0, self.proved.labels.upper)
        return (
            Side(below, np.where(no_positive, 0.0, known)),
            Side(above, np.where(no_negative, 0.0, known)),
        )

    def _average(self, curve: FloatArray) -> Interval:
        """Limits on the average of a curve, from those on the shares of rows at knots."""
        average = self.evidence.averages(curve)
        off = self.off(curve)
        return Interval(average - off, average + off)

    def errors(self, curve: FloatArray, mix: Mix | None = None) -> Interval:
        """Limits on the rate minus the average of a curve, in each region.

        They hold whatever the mix is and depends on; a mix of which the curve is made gives the
        narrowest. Without one, it is h, or none of both in exact regions.
        """
        exact = self.proved.is_exact
        found = self._errors(curve, Mix(np.zeros(exact.size), np.where(exact, 0.0, 1.0)))
        return found if mix is None else _both(found, self._errors(curve, mix))

    def _errors(self, curve: FloatArray, mix: Mix) -> Interval:
        """Limits from those on (A), (C), the average of g0, and what the mix leaves of the curve."""
        region = self.evidence.knots.region
        rest = curve - mix.of_first[region] * self.evidence.first
        rest = rest - mix.of_mean[region] * self.evidence.mean_curve
        of_rest = self._average(rest)
        apart, of_first = self.terms
        ends = (of_first.lower, of_first.upper)
        below, above = self.sides
        whole = mix.of_first + mix.of_mean
        lower = np.minimum(*((below.known - whole) * average for average in ends))
        upper = np.maximum(*((above.known - whole) * average for average in ends))
        lower = below.limit + lower - mix.of_mean * apart.upper - of_rest.upper - ROUNDING
        upper = above.limit + upper - mix.of_mean * apart.lower - of_rest.lower + ROUNDING
        low, high = self.evidence.ends(curve)
        return Interval(np.maximum(lower, -high), np.minimum(upper, 1.0 - low))

    def refuted(self, curve: FloatArray, mix: Mix | None = None) -> BoolArray:
        """The regions in which the data refute a curve: its average error is not 0."""
        errors = self.errors(curve, mix)
        return np.asarray((errors.lower > 0.0) | (errors.upper < 0.0))

    def shifted(self, curve: FloatArray, mix: Mix | None = None) -> FloatArray:
        """The curve, shifted in each region where it is refuted until it is not."""
        errors = self.errors(curve, mix)
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
        exact = self.proved.is_exact
        lower = np.where(exact, self.proved.labels.lower, errors.lower + average - off)
        upper = np.where(exact, self.proved.labels.upper, errors.upper + average + off)
        no_positive = self.evidence.rows.positives == 0
        no_negative = ~self.evidence.rows.has_negatives
        return Interval(
            np.where(no_positive, 0.0, np.clip(lower, 0.0, 1.0)),
            np.where(no_negative, 1.0, np.clip(upper, 0.0, 1.0)),
        )

    def proved_for(
        self, curve: FloatArray, mix: Mix | None, partition: Partition, alpha: float
    ) -> ProvedCurve:
        """The limits that follow for a curve at knots, made of a mix.

        The bounds are about the rows strictly between edges. If a bin absorbs a tied edge v, at
        most the share q of the bin lies at v, at a cost that `alpha` includes. With limits [l1, u1]
        between and [l2, u2] at v, the bin's limits are [min(l1, (1 - q) l1 + q l2), max(u1, (1 - q)
        u1 + q u2)]. The rate at v may be anything.
        """
        errors = self.errors(curve, mix)
        rates = self.rates(curve, errors)
        off = self.off(curve)
        low, high = self.evidence.ends(curve)
        margin = np.where(self.evidence.in_regions > 0, off, high - low)
        if partition.has_absorbed:
            share = absorbed_shares(partition, alpha)
            at_edge = curve[self.evidence.knots.starts[:-1]]
            errors = _mixed(errors, Interval(-at_edge, 1.0 - at_edge), share)
            rates = _mixed(rates, Interval(np.zeros(share.size), np.ones(share.size)), share)
            margin = margin + share * (high - low)
        return ProvedCurve(errors, rates, np.minimum(margin, 1.0))


def _both(one: Interval, other: Interval) -> Interval:
    """What two intervals have in common."""
    return Interval(np.maximum(one.lower, other.lower), np.minimum(one.upper, other.upper))


def _mixed(between: Interval, at_edge: Interval, share: FloatArray) -> Interval:
    """Limits on a mixture with an unknown share of the second part, at most `share`."""
    lower = np.minimum(between.lower, (1.0 - share) * between.lower + share * at_edge.lower)
    upper = np.maximum(between.upper, (1.0 - share) * between.upper + share * at_edge.upper)
    return Interval(lower, upper)
