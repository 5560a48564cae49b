"""The least movement of probabilities with which the largest average error that is not ruled out is small.

Bets give limits on the rate less the average of p in every region. Where p is off, by chance or in truth, the limits
are not centred at 0, and epsilon is larger than half of their width. Moving p towards the middle of the limits repairs
that. The moved curve is straight in each region. So its average there is a straight function of that of p, for which
there are limits already, and these hold for every such curve at once. It may jump up from a region to the next, and
never falls: the ranking is kept.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.limits.interval import Interval

_SLACK = 0.35  # by how much more than the smallest epsilon is taken, so that probabilities move less
_LEAST_SLOPE = 0.2  # of the moved curve in a region
_BEYOND = 0.5  # of the distance to the nearest probabilities of pilot rows: how far the curve moves at 0 and 1


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """A curve from probabilities to probabilities that is straight in each region.

    Attributes
    ----------
    knots : float array of shape (n_regions + 1,)
        The ends of the regions.
    left, right : float arrays of shape (n_regions,)
        The value at the beginning of each region, and the limit at its end.
    """

    knots: FloatArray
    left: FloatArray
    right: FloatArray

    @classmethod
    def nowhere(cls, knots: FloatArray) -> Self:
        """Probabilities stay as they are."""
        return cls(knots, knots[:-1], knots[1:])

    def at(self, averages: FloatArray) -> FloatArray:
        """The average of the curve in each region, where p has these averages."""
        share = (averages - self.knots[:-1]) / np.diff(self.knots)
        return np.asarray(self.left + (self.right - self.left) * share)

    def averages(self, limits: Interval) -> Interval:
        """Limits on its average in each region, from those on the average of p; the curve never falls."""
        return Interval(self.at(limits.lower), self.at(limits.upper))

    def errors(self, errors: Interval, averages: Interval) -> Interval:
        """Limits on the rate less its average in each region, from those on the rate less the average of p."""
        shifts = np.array([self.at(ends) - ends for ends in (averages.lower, averages.upper)])
        lower = np.maximum(errors.lower - shifts.max(axis=0), -1.0)
        upper = np.minimum(errors.upper - shifts.min(axis=0), 1.0)
        return Interval(lower, upper)


@dataclass(frozen=True, slots=True, eq=False)
class _Programme:
    """Linear conditions on a curve; the variables are its shifts at both ends of each region, their sizes, epsilon."""

    conditions: FloatArray
    limits: FloatArray
    bounds: list[tuple[float | None, float | None]]

    def least(self, cost: FloatArray, most_epsilon: float | None = None) -> FloatArray | None:
        """The variables with the least cost, or None where the solver finds none."""
        from scipy.optimize import linprog

        bounds = [*self.bounds[:-1], (0.0, most_epsilon)]
        found = linprog(cost, self.conditions, self.limits, bounds=bounds)
        return np.asarray(found.x) if found.success else None


def recentred(
    knots: FloatArray, errors: Interval, averages: Interval, rows: IntArray, reach: tuple[float, float]
) -> Moved:
    """The curve that moves p least, with an epsilon of at most 1.35 times the smallest that is possible.

    `rows` are the numbers of rows of each region, and `reach` the range of the probabilities of most pilot rows.
    Probabilities near 0 and 1 move little.
    """
    still = Moved.nowhere(knots)
    programme = _programme(knots, errors, averages, reach)
    n_shifts = 2 * rows.size
    smallest = programme.least(np.append(np.zeros(2 * n_shifts), 1.0))
    if smallest is None:
        return still
    now = max(float(errors.upper.max()), -float(errors.lower.min()))
    allowed = (1.0 + _SLACK) * float(smallest[-1])
    if now <= allowed:
        return still
    ends = np.clip(_ends(knots), *reach)
    cost = np.tile(rows + 1.0, 2) / (ends * (1.0 - ends))
    least = programme.least(np.concatenate([np.zeros(n_shifts), cost, [0.0]]), allowed)
    if least is None:
        return still
    left, right = np.clip(np.split(_ends(knots) + least[:n_shifts], 2), 0.0, 1.0)
    order = np.maximum.accumulate(np.column_stack([left, right]).ravel())  # the solver may miss order by rounding
    return Moved(knots, order[::2], order[1::2])


def _ends(knots: FloatArray) -> FloatArray:
    """Where regions begin, then where they end."""
    return np.concatenate([knots[:-1], knots[1:]])


def _programme(knots: FloatArray, errors: Interval, averages: Interval, reach: tuple[float, float]) -> _Programme:
    width = np.diff(knots)
    n_regions = width.size
    eye = np.eye(n_regions)
    # the shift of the average of each region, at either end of its limits
    shares = [np.clip((ends - knots[:-1]) / width, 0.0, 1.0) for ends in (averages.lower, averages.upper)]
    moves = np.concatenate([np.hstack([np.diag(1.0 - share), np.diag(share)]) for share in shares])
    slopes = np.hstack([eye, -eye])  # left less right
    jumps = np.hstack([-np.eye(n_regions)[1:], np.eye(n_regions)[:-1]])  # the end of a region less the next beginning
    sizes = np.eye(2 * n_regions)

    def without_sizes(conditions: FloatArray, epsilon: float) -> FloatArray:
        rows = conditions.shape[0]
        return np.hstack([conditions, np.zeros((rows, 2 * n_regions)), np.full((rows, 1), epsilon)])

    column = np.zeros((2 * n_regions, 1))
    conditions = np.vstack([
        without_sizes(-moves, -1.0),  # upper limits less the shift are at most epsilon
        without_sizes(moves, -1.0),  # and lower limits at least - epsilon
        without_sizes(slopes, 0.0),
        without_sizes(jumps, 0.0),
        np.hstack([sizes, -sizes, column]),
        np.hstack([-sizes, -sizes, column]),
    ])  # fmt: skip
    limits = np.concatenate([
        -np.tile(errors.upper, 2),
        np.tile(errors.lower, 2),
        (1.0 - _LEAST_SLOPE) * width,
        np.zeros(n_regions - 1),
        np.zeros(4 * n_regions),
    ])  # fmt: skip
    shifts: list[tuple[float | None, float | None]] = [(None, None)] * (2 * n_regions)
    shifts[0] = (0.0, _BEYOND * reach[0])
    shifts[-1] = (-_BEYOND * (1.0 - reach[1]), 0.0)
    return _Programme(conditions, limits, shifts + [(0.0, None)] * (2 * n_regions + 1))
