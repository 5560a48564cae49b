"""The smallest movement of probabilities that makes the largest average error not ruled out small.

Bets give limits on the rate minus the average of p in every region. If p is off, by chance or in
truth, the limits are not centred at 0, and epsilon is larger than half of their width. Moving p
towards the middle of the limits repairs that. The moved curve is linear in each region. So its
average there is a linear function of that of p, for which there already are limits, and these hold
for every such curve simultaneously. It may jump up from one region to the next, but never
decreases: the ranking is kept.

How far p moves. The middle of the limits is partly noise of few rows, and moving there costs log
loss: if p was right before, the mean over rows of KL(p, moved p), which pilot rows estimate. If
that is at most 0.05% of the log loss, epsilon is made about as small as possible. If it is more, p
moves less, but far enough that epsilon is at most twice the smallest; 1.35 times with so many rows
that noise costs little. Moving to the rates of n rows in R regions costs R / (2 n) on average if p
was right.
"""

from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.limits.interval import Interval

_NEAR = 1.0  # how much epsilon may exceed the smallest one, so that probabilities move less
_NEAR_OF_MANY = 0.35  # the same, with so many rows that their noise costs little
_FAR = 0.02  # the same, if moving costs little
_COST = 0.0005  # relative increase in log loss allowed for moving further than the slack requires
_LITTLE_NOISE = 0.003  # noise is small if it costs less than this share of the log loss on average
_BISECTIONS = 12
_MOST_ROWS = (0.1, 0.9)  # quantiles of pilot rows between which probabilities may move freely
_LEAST = 1e-6
_LEAST_SLOPE = 0.2  # of the moved curve in a region
# share of the distance to the nearest probabilities of pilot rows: how far the curve moves at 0 and
# 1
_BEYOND = 0.5

Bounds: TypeAlias = list[tuple[float | None, float | None]]
"""Limits on each variable of a linear programme; None for no limit."""


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
class Moved:
    """A curve from probabilities to probabilities that is linear in each region.

    Attributes
    ----------
    knots : float array of shape (n_regions + 1,)
        The ends of the regions.
    left, right : float arrays of shape (n_regions,)
        The value at the start of each region, and the limit at its end.
    """

    knots: FloatArray
    left: FloatArray
    right: FloatArray

    @property
    def ends(self) -> FloatArray:
        """The values at both ends of each region, as two rows."""
        return np.stack([self.left, self.right])

    @classmethod
    def nowhere(cls, knots: FloatArray) -> Self:
        """The identity: probabilities stay as they are."""
        return cls(knots, knots[:-1], knots[1:])

    def at(self, averages: FloatArray) -> FloatArray:
        """The average of the curve in each region, if p has these averages."""
        share = (averages - self.knots[:-1]) / np.diff(self.knots)
        return np.asarray(self.left + (self.right - self.left) * share)

    def averages(self, limits: Interval) -> Interval:
        """Limits on its average in each region, from limits on the average of p.

        The curve never decreases.
        """
        return Interval(self.at(limits.lower), self.at(limits.upper))

    def towards(self, other: "Moved", share: float) -> "Moved":
        """A curve between this one and another, both of which never decrease."""
        before = np.column_stack([self.left, self.right]).ravel()
        after = np.column_stack([other.left, other.right]).ravel()
        between = np.maximum.accumulate(before + share * (after - before))
        return Moved(self.knots, between[::2], between[1::2])

    def loss(self, p: FloatArray, rates: FloatArray) -> float:
        """The log loss of p after it is moved, if these are the rates of its rows."""
        region = np.clip(np.searchsorted(self.knots, p, "right") - 1, 0, self.left.size - 1)
        share = (p - self.knots[region]) / np.diff(self.knots)[region]
        moved = self.left[region] + (self.right - self.left)[region] * share
        moved = np.clip(moved, _LEAST**2, 1.0 - _LEAST**2)
        return float(-(rates * np.log(moved) + (1.0 - rates) * np.log1p(-moved)).mean())

    def errors(self, errors: Interval, averages: Interval) -> Interval:
        """Limits on the rate minus its average in each region, from limits on the rate minus the
        average of p.
        """
        shifts = np.array([self.at(ends) - ends for ends in (averages.lower, averages.upper)])
        lower = np.maximum(errors.lower - shifts.max(axis=0), -1.0)
        upper = np.minimum(errors.upper - shifts.min(axis=0), 1.0)
        return Interval(lower, upper)


@dataclass(frozen=True, slots=True, eq=False)
class RisingRegions:
    """A curve that never decreases, as its values at both ends of each region, and what is known
    about its averages.

    Attributes
    ----------
    low, high : float arrays of shape (n_regions,)
        Its values at the start and at the end of each region.
    errors : Interval
        Limits on the rate minus its average in each region.
    averages : Interval
        Limits on its average in each region.
    follows : bool array of shape (n_regions,)
        Whether each region directly follows the one before, so that the curve may not decrease in
        between.
    """

    low: FloatArray
    high: FloatArray
    errors: Interval
    averages: Interval
    follows: BoolArray

    @property
    def epsilon(self) -> float:
        """The largest error that is not ruled out."""
        return max(float(self.errors.upper.max()), -float(self.errors.lower.min()))

    @property
    def ends(self) -> FloatArray:
        """Values at the starts of regions, then at their ends."""
        return np.concatenate([self.low, self.high])

    def smallest(self, bounds: Bounds) -> float | None:
        """The smallest possible epsilon; None if the solver finds none."""
        found = self._programme(bounds).least(np.append(np.zeros(4 * self.low.size), 1.0))
        return None if found is None else float(found[-1])

    def within(
        self, cost: FloatArray, bounds: Bounds, allowed: float
    ) -> tuple[FloatArray, FloatArray] | None:
        """Values at the ends of regions that differ least, with an epsilon of at most `allowed`.

        None if epsilon is already at most that.
        """
        if self.epsilon <= allowed:
            return None
        n_ends = 2 * self.low.size
        programme = self._programme(bounds)
        least = programme.least(np.concatenate([np.zeros(n_ends), cost, [0.0]]), allowed)
        if least is None:
            return None
        moved = np.clip(self.ends + least[:n_ends], 0.0, 1.0)
        left, right = np.split(moved, 2)
        return self._in_order(left, right)

    def _in_order(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same values in order: the solver may violate it by rounding."""
        starts = np.flatnonzero(~self.follows)
        ends = np.append(starts[1:], left.size)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            pairs = np.column_stack([left[start:end], right[start:end]]).ravel()
            order = np.maximum.accumulate(pairs)
            left[start:end] = order[::2]
            right[start:end] = order[1::2]
        return left, right

    def _programme(self, bounds: Bounds) -> "_Programme":
        width = self.high - self.low
        n_regions = width.size
        is_flat = width <= 0.0
        left = np.arange(n_regions)
        right = left + n_regions
        ends = np.arange(2 * n_regions)
        sizes = ends + 2 * n_regions
        epsilon = 4 * n_regions
        follows = np.flatnonzero(self.follows)
        flat = np.flatnonzero(is_flat)
        # where the average of each region lies between its ends, at either of its limits
        limits = np.concatenate([self.averages.lower, self.averages.upper])
        wide = np.tile(np.where(is_flat, 1.0, width), 2)
        share = np.clip((limits - np.tile(self.low, 2)) / wide, 0.0, 1.0)
        both = (np.tile(left, 2), 1.0 - share), (np.tile(right, 2), share)
        conditions = Conditions()
        # upper limits minus the shift are at most epsilon, and lower limits at least - epsilon
        for sign, of_errors in ((-1.0, -self.errors.upper), (1.0, self.errors.lower)):
            shift = [(column, sign * value) for column, value in both]
            conditions.add(np.tile(of_errors, 2), *shift, (epsilon, -1.0))
        # left minus right: the curve increases; a flat region stays flat
        conditions.add((1.0 - _LEAST_SLOPE) * width, (left, 1.0), (right, -1.0))
        conditions.add(np.zeros(flat.size), (left[flat], -1.0), (right[flat], 1.0))
        # the end of a region minus the next start
        jumps = self.low[follows] - self.high[follows - 1]
        conditions.add(jumps, (left[follows], -1.0), (right[follows - 1], 1.0))
        conditions.add(np.zeros(2 * n_regions), (ends, 1.0), (sizes, -1.0))
        conditions.add(np.zeros(2 * n_regions), (ends, -1.0), (sizes, -1.0))
        free = [*bounds, *[(0.0, None)] * (2 * n_regions + 1)]
        return _Programme(conditions.matrix(epsilon + 1), np.concatenate(conditions.limits), free)


@dataclass(frozen=True, slots=True, eq=False)
class _Programme:
    """Linear conditions on a curve.

    The variables are its shifts at both ends of each region, their absolute values, and epsilon.
    """

    conditions: Any
    limits: FloatArray
    bounds: Bounds

    def least(self, cost: FloatArray, most_epsilon: float | None = None) -> FloatArray | None:
        """The variables with the smallest cost, or None if the solver finds none."""
        from scipy.optimize import linprog

        bounds = [*self.bounds[:-1], (0.0, most_epsilon)]
        found = linprog(cost, self.conditions, self.limits, bounds=bounds)
        return np.asarray(found.x) if found.success else None


def recentred(
    knots: FloatArray,
    errors: Interval,
    averages: Interval,
    rows: IntArray,
    pilot: FloatArray,
) -> Moved:
    """The curve that moves p as far as it costs little, and at least so far that epsilon is at most
    twice the smallest possible.

    `rows` holds the number of rows in each region, and `pilot` the probabilities of pilot rows.
    Near the ends of the first and the last region probabilities move little.
    """
    follows = np.arange(rows.size) > 0
    regions = RisingRegions(knots[:-1], knots[1:], errors, averages, follows)
    reach = np.clip(np.quantile(pilot, _MOST_ROWS), _LEAST, 1.0 - _LEAST)
    ends = np.clip(regions.ends, *reach)
    cost = np.tile(rows + 1.0, 2) / (ends * (1.0 - ends))
    bounds: Bounds = [(None, None)] * (2 * rows.size)
    bounds[0] = (-_BEYOND * knots[0], _BEYOND * reach[0])
    bounds[-1] = (-_BEYOND * (1.0 - reach[1]), _BEYOND * (1.0 - knots[-1]))
    smallest = regions.smallest(bounds)
    if smallest is None:
        return Moved.nowhere(knots)
    far = regions.within(cost, bounds, (1.0 + _FAR) * smallest)
    if far is None:
        return Moved.nowhere(knots)
    log_loss = Moved.nowhere(knots).loss(pilot, pilot)
    most = (1.0 + _COST) * log_loss
    farthest = Moved(knots, *far)
    if farthest.loss(pilot, pilot) <= most:
        return farthest
    noise = rows.size / (2.0 * max(1, int(rows.sum())))
    slack = _NEAR if noise > _LITTLE_NOISE * log_loss else _NEAR_OF_MANY
    near = regions.within(cost, bounds, (1.0 + slack) * smallest)
    if near is None:
        near = knots[:-1], knots[1:]
    return _between(Moved(knots, *near), farthest, most, pilot)


def _between(near: Moved, far: Moved, most: float, pilot: FloatArray) -> Moved:
    """The curve on the line from one to another that is as far along as its log loss stays at most
    `most`.

    All curves on that line satisfy the conditions that both satisfy, because these are linear.
    """
    share = 0.0
    beyond = 1.0
    for _ in range(_BISECTIONS):
        middle = (share + beyond) / 2.0
        if near.towards(far, middle).loss(pilot, pilot) <= most:
            share = middle
        else:
            beyond = middle
    return near.towards(far, share)
