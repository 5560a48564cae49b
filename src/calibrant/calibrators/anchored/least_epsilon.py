"""The curve with about the smallest epsilon that costs little log loss.

In each region the curve is v = s + b g0 + c h, where g0 is the first curve and h the mean of the
curves of both halves. With A the rate minus the average of g0, C the average of h - g0, and G that
of g0,

    E[Y - v] = A - s - c C + (1 - b - c) G.

Limits on A, C and G hold simultaneously, so they give limits on E[Y - v] for all s, b and c at
once, whatever these depend on. If b + c = 1, as for the shape of h pulled towards that of g0, G has
no effect, and the part of the width that is due to C shrinks by the factor c. If c alone is
smaller, so does the slope of the curve: it makes room for the order of neighbouring regions.

Of all such curves that never decrease, the chosen one has the smallest epsilon for which the log
loss, computed as if h were right, grows by at most what is allowed. Epsilon is the largest of
linear functions of s, b and c, and the growth, the divergence of v from h, is convex in them. So
the divergence is replaced by the largest of its tangents, which makes this a linear programme;
tangents at its solution are added until the solution is good enough (Kelley's cutting planes).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.cells.knots import Knots
from calibrant.limits.interval import Interval

Bounds: TypeAlias = list[tuple[float | None, float | None]]
"""Limits on each variable of a linear programme; None for no limit."""

_LEAST_SLOPE = 0.2  # of h: the smallest c, so that no scores are tied
_BEYOND = 0.5  # of the distance to 0 or 1: how far the curve moves at its ends
_NEAREST = 1e-9  # to 0 and 1, where a divergence is computed
_PREFERENCE = 0.02  # of epsilon: what the whole allowed divergence counts as
_PROGRAMMES = 6
_GOOD_ENOUGH = 0.005  # how much epsilon may exceed the smallest one
_MOST_OFF = 10.0  # times what is allowed: tangents further away are of little use
_BISECTIONS = 20


class Conditions:
    """Rows of a sparse matrix, with upper bounds on their products with the variables."""

    def __init__(self) -> None:
        self.limits: list[FloatArray] = []
        self._entries: list[tuple[IndexArray, IndexArray, FloatArray]] = []
        self._n_rows = 0

    def add(self, limits: FloatArray, *columns: tuple[Any, Any]) -> None:
        """Add one row per limit; `columns` are pairs of the columns and the entries in these rows."""
        row = np.arange(limits.size) + self._n_rows
        for column, value in columns:
            at = np.broadcast_to(column, limits.shape)
            self._entries.append((row, at, np.broadcast_to(value, limits.shape)))
        self.limits.append(limits)
        self._n_rows += limits.size

    def matrix(self, n_variables: int) -> Any:
        """All rows, without zeros."""
        from scipy.sparse import csr_matrix

        row, column, value = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        there = value != 0.0
        entries = (value[there], (row[there], column[there]))
        return csr_matrix(entries, shape=(self._n_rows, n_variables))


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """Limits on the labels of each region on one side.

    Attributes
    ----------
    limit : float array of shape (n_regions,)
        The limit on the rate minus `known` times the average of the first curve.
    known : float array of shape (n_regions,)
        1 for bets, and 0 for limits on the rate itself.
    """

    limit: FloatArray
    known: FloatArray

    def mirrored(self) -> "Side":
        """The limits of exchanged labels; they are on the other side."""
        return Side(1.0 - self.known - self.limit, self.known)


@dataclass(frozen=True, eq=False)
class CurveMoves:
    """The curves that can be made of h and g0, and what is known about their errors.

    Attributes
    ----------
    knots : Knots
        The knots.
    first, mean : float arrays of shape (n_knots,)
        The curves g0 and h. h never decreases within a segment.
    rows : float array of shape (n_knots,)
        How much each knot counts in the log loss.
    below, above : Side
        Lower and upper limits on labels.
    apart, of_first : Interval
        Limits on the averages of h - g0 and of g0 in each region.
    ignored : bool array of shape (n_regions,)
        Regions whose errors do not matter.
    """

    knots: Knots
    first: FloatArray
    mean: FloatArray
    rows: FloatArray
    below: Side
    above: Side
    apart: Interval
    of_first: Interval
    ignored: BoolArray

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return self.ignored.size

    @property
    def unmoved(self) -> FloatArray:
        """The coefficients of h itself."""
        return np.repeat([[0.0], [0.0], [1.0]], self.n_regions, axis=1)

    @cached_property
    def parts(self) -> FloatArray:
        """The values at knots of what a curve is made of: 1, g0 and h; shape (3, n_knots)."""
        return np.stack([np.ones(self.mean.size), self.first, self.mean])

    def values(self, coefficients: FloatArray) -> FloatArray:
        """The curve with these coefficients, an array of shape (3, n_regions), at the knots."""
        return np.asarray((coefficients[:, self.knots.region] * self.parts).sum(axis=0))

    def divergence(self, coefficients: FloatArray) -> FloatArray:
        """How much the log loss of the rows in each region grows if h is right."""
        v = np.clip(self.values(coefficients), _NEAREST, 1.0 - _NEAREST)
        p = self.mean
        grows = p * np.log(p / v) + (1.0 - p) * np.log((1.0 - p) / (1.0 - v))
        return np.asarray(np.add.reduceat(self.rows * grows, self.knots.starts[:-1]))

    def _slopes(self, coefficients: FloatArray) -> FloatArray:
        """The derivatives of the divergence, shape (3, n_regions)."""
        v = np.clip(self.values(coefficients), _NEAREST, 1.0 - _NEAREST)
        of_value = self.rows * (v - self.mean) / (v * (1.0 - v))
        return np.asarray(np.add.reduceat(of_value * self.parts, self.knots.starts[:-1], axis=1))

    def epsilon(self, coefficients: FloatArray) -> float:
        """The largest error that is not ruled out, outside of ignored regions."""
        shift, of_first, of_mean = coefficients
        worst = np.zeros(self.n_regions)
        for average in (self.of_first.lower, self.of_first.upper):
            whole = shift + (of_first + of_mean) * average
            upper = self.above.limit + self.above.known * average - of_mean * self.apart.lower
            lower = self.below.limit + self.below.known * average - of_mean * self.apart.upper
            worst = np.maximum(worst, np.maximum(upper - whole, whole - lower))
        return float(np.where(self.ignored, 0.0, worst).max())

    def least(self, allowed: float) -> FloatArray:
        """Coefficients with about the smallest epsilon, if the log loss may grow by `allowed`."""
        unmoved = self.unmoved
        price = _PREFERENCE * self.epsilon(unmoved) / allowed

        def goal(coefficients: FloatArray) -> float:
            return self.epsilon(coefficients) + price * float(self.divergence(coefficients).sum())

        best = unmoved
        smallest = goal(best)
        conditions = self._conditions(allowed)
        self._add_tangents(conditions, self._pulled(), allowed)
        for _ in range(_PROGRAMMES):
            found = self._solved(conditions, price)
            if found is None:
                break
            wanted, at_least = found
            inside = self._towards(wanted, allowed)
            value = goal(inside)
            if value < smallest:
                best = inside
                smallest = value
            if smallest <= (1.0 + _GOOD_ENOUGH) * at_least:
                break
            self._add_tangents(conditions, wanted, allowed)
        return best

    def _pulled(self) -> FloatArray:
        """The shape of h, pulled half-way towards that of g0, with the same middle."""
        middle = np.add.reduceat(self.mean - self.first, self.knots.starts[:-1])
        middle = middle / np.diff(self.knots.starts)
        half = np.full(self.n_regions, 0.5)
        return np.stack([middle / 2.0, half, half])

    def _towards(self, wanted: FloatArray, allowed: float) -> FloatArray:
        """The last curve on the way from h that is allowed."""
        if float(self.divergence(wanted).sum()) <= allowed:
            return wanted
        unmoved = self.unmoved
        share = 0.0
        beyond = 1.0
        for _ in range(_BISECTIONS):
            middle = (share + beyond) / 2.0
            between = unmoved + middle * (wanted - unmoved)
            if float(self.divergence(between).sum()) <= allowed:
                share = middle
            else:
                beyond = middle
        return unmoved + share * (wanted - unmoved)

    def _columns(self) -> tuple[Any, Any, Any, Any, int]:
        """The variables: s, b, c and the divergence of each region, then epsilon."""
        shift, of_first, of_mean, cost = np.arange(4 * self.n_regions).reshape(4, -1)
        return shift, of_first, of_mean, cost, 4 * self.n_regions

    def _conditions(self, allowed: float) -> Conditions:
        """Limits on errors, the order of values, and the allowed divergence."""
        shift, of_first, of_mean, cost, epsilon = self._columns()
        conditions = Conditions()
        here = np.flatnonzero(~self.ignored)
        for ends in (self.of_first.lower, self.of_first.upper):
            average = ends[here]
            for sign, side, apart in (
                (-1.0, self.above, self.apart.lower[here]),
                (1.0, self.below, self.apart.upper[here]),
            ):
                conditions.add(
                    sign * (side.limit[here] + side.known[here] * average),
                    (shift[here], sign),
                    (of_first[here], sign * average),
                    (of_mean[here], sign * (apart + average)),
                    (epsilon, -1.0),
                )
        self._add_order(conditions)
        conditions.add(np.array([allowed]), *[(column, 1.0) for column in cost.tolist()])
        return conditions

    def _add_order(self, conditions: Conditions) -> None:
        """No value is smaller than one before it, and those at the ends of segments move little."""
        begin = self.knots.starts[:-1]
        end = self.knots.starts[1:] - 1
        segment = self.knots.segment[begin]
        follows = np.flatnonzero(np.diff(segment, prepend=-1) == 0)
        at_start = np.flatnonzero(np.diff(segment, prepend=-1) != 0)
        at_end = np.append(at_start[1:], self.n_regions) - 1
        before = self._at(follows - 1, end, 1.0)
        conditions.add(np.zeros(follows.size), *before, *self._at(follows, begin, -1.0))
        low = self.mean[begin[at_start]]
        high = self.mean[end[at_end]]
        conditions.add(-(1.0 - _BEYOND) * low, *self._at(at_start, begin, -1.0))
        conditions.add(high + _BEYOND * (1.0 - high), *self._at(at_end, end, 1.0))

    def _at(self, regions: Any, place: Any, sign: float) -> list[tuple[Any, Any]]:
        """The value of the curve at one knot of each of these regions, in terms of variables."""
        columns = self._columns()[:3]
        values = sign * self.parts[:, place[regions]]
        return [(column[regions], value) for column, value in zip(columns, values, strict=True)]

    def _add_tangents(self, conditions: Conditions, wanted: FloatArray, allowed: float) -> None:
        """Add the tangents of all divergences at a curve, or nearer to h if that is far away."""
        unmoved = self.unmoved
        at = wanted
        for _ in range(_BISECTIONS):
            if float(self.divergence(at).sum()) <= _MOST_OFF * allowed:
                break
            at = (unmoved + at) / 2.0
        slopes = self._slopes(at)
        shift, of_first, of_mean, cost, _ = self._columns()
        conditions.add(
            (slopes * at).sum(axis=0) - self.divergence(at),
            (shift, slopes[0]),
            (of_first, slopes[1]),
            (of_mean, slopes[2]),
            (cost, -1.0),
        )

    @cached_property
    def _bounds(self) -> Bounds:
        """Limits on the variables.

        A flat region is only shifted, and g0 has a part only where it never decreases.
        """
        starts = self.knots.starts
        is_flat = self.mean[starts[1:] - 1] <= self.mean[starts[:-1]]
        within = np.diff(self.knots.region) == 0
        falls = (np.diff(self.first) < 0.0) & within
        rises = np.bincount(self.knots.region[1:], falls, minlength=self.n_regions) == 0
        free: Bounds = [(None, None)] * self.n_regions
        of_first: Bounds = [
            (0.0, None if is_free else 0.0) for is_free in (rises & ~is_flat).tolist()
        ]
        of_mean: Bounds = [
            (1.0, 1.0) if flat else (_LEAST_SLOPE, None) for flat in is_flat.tolist()
        ]
        return [*free, *of_first, *of_mean, *[(0.0, None)] * (self.n_regions + 1)]

    def _solved(self, conditions: Conditions, price: float) -> tuple[FloatArray, float] | None:
        """Coefficients, and a lower bound on the goal; None if the solver finds none."""
        from scipy.optimize import linprog

        _, _, _, cost, epsilon = self._columns()
        weights = np.zeros(epsilon + 1)
        weights[cost] = price
        weights[epsilon] = 1.0
        limits = np.concatenate(conditions.limits)
        found = linprog(weights, conditions.matrix(epsilon + 1), limits, bounds=self._bounds)
        if not found.success:
            return None
        return found.x[: 3 * self.n_regions].reshape(3, -1), float(found.fun)
