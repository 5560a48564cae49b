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
from typing import Self, TypeAlias

import numpy as np

from calibrant._typing import FloatArray, IntArray
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

    def errors(self, errors: Interval, averages: Interval) -> Interval:
        """Limits on the rate minus its average in each region, from limits on the rate minus the
        average of p.
        """
        shifts = np.array([self.at(ends) - ends for ends in (averages.lower, averages.upper)])
        lower = np.maximum(errors.lower - shifts.max(axis=0), -1.0)
        upper = np.minimum(errors.upper - shifts.min(axis=0), 1.0)
        return Interval(lower, upper)


class _RisingCurves:
    """Curves that never decrease and are linear between knots, as a linear programme.

    Its variables are the shifts of p at the start of each region, and at its end, their absolute
    values, and epsilon: the largest error that limits on the rate minus the average of p, and on
    that average, do not rule out.
    """

    def __init__(
        self, knots: FloatArray, errors: Interval, averages: Interval, bounds: Bounds
    ) -> None:
        low = knots[:-1]
        width = np.diff(knots)
        n = width.size
        self.knots = knots
        self.epsilon = max(float(errors.upper.max()), -float(errors.lower.min()))
        self._n_ends = 2 * n
        self._bounds: Bounds = [*bounds, *[(0.0, None)] * (2 * n)]
        flat = np.flatnonzero(width <= 0.0)
        one = np.eye(n)
        sizes = -np.eye(2 * n)
        minus = -np.ones((n, 1))
        widths = (n, n, 2 * n, 1)
        conditions: list[list[FloatArray | None]] = []
        # upper limits minus the shift are at most epsilon, and lower limits at least - epsilon,
        # wherever the average of a region lies between its ends
        for sign in (-1.0, 1.0):
            for limit in (averages.lower, averages.upper):
                share = np.clip((limit - low) / np.where(width > 0.0, width, 1.0), 0.0, 1.0)
                left, right = (np.diag(sign * part) for part in (1.0 - share, share))
                conditions.append([left, right, None, minus])
        # left minus right: the curve increases; a flat region stays flat
        conditions.append([one, -one, None, None])
        conditions.append([-one[flat], one[flat], None, None])
        # the end of a region is at most the next start
        conditions.append([-one[1:], one[:-1], None, None])
        for sign in (1.0, -1.0):
            conditions.append([sign * one, None, sizes[:n], None])
            conditions.append([None, sign * one, sizes[n:], None])
        self._matrix = np.concatenate([_filled(blocks, widths) for blocks in conditions])
        limits = [-errors.upper, -errors.upper, errors.lower, errors.lower]
        zeros = np.zeros(flat.size + n - 1 + 4 * n)
        self._limits = np.concatenate([*limits, (1.0 - _LEAST_SLOPE) * width, zeros])

    def smallest(self) -> float | None:
        """The smallest possible epsilon; None if the solver finds none."""
        solution = self._least(np.append(np.zeros(2 * self._n_ends), 1.0))
        return None if solution is None else float(solution[-1])

    def within(self, cost: FloatArray, allowed: float) -> "Moved | None":
        """The curve that moves p least, at this cost at the ends of regions, with an epsilon of at
        most `allowed`. None if epsilon is already at most that.
        """
        if self.epsilon <= allowed:
            return None
        least = self._least(np.concatenate([np.zeros(self._n_ends), cost, [0.0]]), allowed)
        if least is None:
            return None
        ends = np.concatenate([self.knots[:-1], self.knots[1:]])
        left, right = np.split(np.clip(ends + least[: self._n_ends], 0.0, 1.0), 2)
        # the solver may violate the order by rounding
        order = np.maximum.accumulate(np.column_stack([left, right]).ravel())
        return Moved(self.knots, order[::2], order[1::2])

    def _least(self, cost: FloatArray, most_epsilon: float | None = None) -> FloatArray | None:
        """The variables with the smallest cost, or None if the solver finds none."""
        from scipy.optimize import linprog

        bounds = [*self._bounds, (0.0, most_epsilon)]
        solved = linprog(cost, self._matrix, self._limits, bounds=bounds)
        return np.asarray(solved.x) if solved.success else None


def _filled(blocks: list[FloatArray | None], widths: tuple[int, ...]) -> FloatArray:
    """Conditions on all variables, from their blocks; None stands for zeros."""
    n_rows = next(len(block) for block in blocks if block is not None)
    pairs = zip(blocks, widths, strict=True)
    return np.hstack([np.zeros((n_rows, width)) if one is None else one for one, width in pairs])


def recentred(
    knots: FloatArray,
    errors: Interval,
    averages: Interval,
    rows: IntArray,
    pilot: FloatArray,
) -> Moved:
    """The curve that moves p as far as is cheap, and at least so far that epsilon is at most twice
    the smallest possible.

    `rows` holds the number of rows in each region, and `pilot` the probabilities of pilot rows.
    Near the ends of the first and the last region probabilities move little.
    """
    nowhere = Moved.nowhere(knots)
    reach = np.clip(np.quantile(pilot, _MOST_ROWS), _LEAST, 1.0 - _LEAST)
    ends = np.clip(np.concatenate([knots[:-1], knots[1:]]), *reach)
    cost = np.tile(rows + 1.0, 2) / (ends * (1.0 - ends))
    bounds: Bounds = [(None, None)] * (2 * rows.size)
    bounds[0] = (-_BEYOND * knots[0], _BEYOND * reach[0])
    bounds[-1] = (-_BEYOND * (1.0 - reach[1]), _BEYOND * (1.0 - knots[-1]))
    curves = _RisingCurves(knots, errors, averages, bounds)
    smallest = curves.smallest()
    if smallest is None:
        return nowhere
    far = curves.within(cost, (1.0 + _FAR) * smallest)
    if far is None:
        return nowhere
    losses = _Losses(knots, pilot)
    log_loss = losses.of(nowhere)
    most = (1.0 + _COST) * log_loss
    if losses.of(far) <= most:
        return far
    noise = rows.size / (2.0 * max(1, int(rows.sum())))
    slack = _NEAR if noise > _LITTLE_NOISE * log_loss else _NEAR_OF_MANY
    near = curves.within(cost, (1.0 + slack) * smallest)
    return _between(nowhere if near is None else near, far, most, losses)


def _between(near: Moved, far: Moved, most: float, losses: "_Losses") -> Moved:
    """The curve on the line from one to another that is as far along as its log loss stays at most
    `most`.

    All curves on that line satisfy the conditions that both satisfy, because these are linear.
    """
    share = 0.0
    beyond = 1.0
    for _ in range(_BISECTIONS):
        middle = (share + beyond) / 2.0
        if losses.of(near.towards(far, middle)) <= most:
            share = middle
        else:
            beyond = middle
    return near.towards(far, share)


class _Losses:
    """Log losses of moved probabilities of pilot rows, if the probabilities are the true rates."""

    def __init__(self, knots: FloatArray, p: FloatArray) -> None:
        self._p = p
        self._region = np.clip(np.searchsorted(knots, p, "right") - 1, 0, knots.size - 2)
        self._share = (p - knots[self._region]) / np.diff(knots)[self._region]

    def of(self, moved: Moved) -> float:
        """The mean log loss after this move."""
        p = moved.left[self._region] + (moved.right - moved.left)[self._region] * self._share
        p = np.clip(p, _LEAST**2, 1.0 - _LEAST**2)
        return float(-(self._p * np.log(p) + (1.0 - self._p) * np.log1p(-p)).mean())
