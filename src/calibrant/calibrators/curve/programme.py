"""The convex programme of a curve without jumps, and its solution.

`calibrant.calibrators.curve.least_epsilon` says what is minimized, and why. Logarithmic barriers at
all conditions make the goal strictly convex, so that its minimum is unique: the same curve is found
on every processor. Newton's method follows the minimum for smaller and smaller barriers. For the
last one, which gives the curve, the goal exceeds the smallest possible by at most a small share of
epsilon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant._typing import FloatArray, IndexArray
from calibrant.cells.knots import Knots

if TYPE_CHECKING:
    from calibrant.calibrators.curve.least_epsilon import CurveMoves

LEAST_SLOPE = 0.2
"""Of h: the smallest slope, so that no scores are tied."""
_BEYOND = 0.5  # of the distance to 0 or 1: how far the curve moves at its ends
# how far s, t and u may move from 0, 0 and 1; t may be a little below 0, so that h is inside
_LOWEST = np.array([-1.0, -0.05, LEAST_SLOPE - 1.0])
_HIGHEST = np.array([1.0, 20.0, 20.0])
_LEAST_ROOM = 1e-6  # of epsilon: in front of conditions on the order, where h hardly rises
_PREFERENCE = 0.02  # of epsilon: what the whole allowed divergence counts as
_POWER = 40  # of the divergence over the allowed one: so steeply rises its price
_BEND = 0.002  # of epsilon: what a change of the slope by 1 counts as
_REFUTED = 1.0  # half of what an average counts as that is off by 1 for certain
_GAP = 0.003  # of epsilon: by how much the goal may exceed the smallest one
_BLUR = 100.0  # times the last barrier: up to there, absolute values |x| are nearly x^2
_ABOVE = 1.2  # times the epsilon of h: where the search begins
_FIRST = 0.5  # times the goal of h, over the number of conditions: the first barrier
_SMALLER = 0.03  # times the barrier before
_NEAR = 10.0  # squared Newton decrement that is small enough for the next barrier
_CONVERGED = 1e-8  # the same for the last barrier: the step that follows is exact but for rounding
_STEPS = 50  # for each barrier, at most
_AWAY = 0.1  # of epsilon: first dual variables are those of a point so far from all conditions
_MOST_LOST = 0.95  # of a dual variable, by one step
_SHORTEST = 1e-9  # share of a step
_ROUNDING = 1e-12  # of the goal over a barrier
_RIDGE = 1e-11  # of the Hessian's diagonal: more than rounding can take from it


class MovedCurve(NamedTuple):
    """A curve that was found: its values at knots, its coefficients, and its largest error."""

    values: FloatArray
    coefficients: FloatArray
    epsilon: float


class _Point(NamedTuple):
    """How far coefficients are from those of h, what is linear in them, and epsilon."""

    moved: FloatArray
    linear: FloatArray
    epsilon: float


class _Duals(NamedTuple):
    """The dual variables of all conditions, and slopes of absolute values, from -1 to 1.

    At the minimum they follow from the point. Elsewhere, those that the steps before lead to give a
    better Hessian.
    """

    of_rooms: FloatArray
    signs: FloatArray


class Programme:
    """The programme for blends of one width.

    Its variables are how far the coefficients (s, t, u) of each region are from those of h, and
    epsilon. What is linear in the former depends, in each region, on those of the region and of both
    its neighbours, its *window*. So there are arrays of shape (n_regions, n_rows, 9), and the Hessian
    is a band. All regions have as many knots as the largest one: the others repeat their last knot,
    and what is repeated counts nowhere.
    """

    def __init__(self, moves: CurveMoves, width: float, allowed: float, smoothness: float) -> None:
        self.moves = moves
        self.allowed = allowed
        knots = moves.knots
        n_knots = np.diff(knots.starts)
        place = np.arange(n_knots.max())
        self.is_knot = place < n_knots[:, None]
        self.knot = knots.starts[:-1, None] + np.minimum(place, n_knots[:, None] - 1)
        self.mean = p = moves.mean[self.knot]
        self.rows = np.where(self.is_knot, moves.rows[self.knot], 0.0)
        self.least_loss = -float((self.rows * (p * np.log(p) + (1.0 - p) * np.log1p(-p))).sum())
        self.gaps = np.where(self.is_knot[:, 1:], moves.gaps[self.knot[:, :-1]], 0.0)
        edges = joined_edges(knots) if width > 0.0 else np.empty(0, dtype=np.intp)
        curves = np.stack([np.ones(knots.n_knots), moves.first, moves.mean], axis=1)
        here = curves[self.knot]
        before, after = (
            part[self.knot, None] for part in _blends(knots, moves.at_knots, edges, width)
        )
        shares = (before, 1.0 - before - after, after)
        values = np.concatenate([share * here for share in shares], axis=2)
        rest = values.copy()
        rest[:, :, 4:6] -= here[:, :, 1:]
        orders, least = self._orders(values)
        errors, known = self._errors(rest)
        # one product gives all that is linear
        parts = (values, orders, np.diff(rest, axis=1), _waves(knots, edges, curves), errors)
        self.ends = np.cumsum([part.shape[1] for part in parts]).tolist()
        linear = np.concatenate(parts, axis=1)
        self.unmoved = linear @ np.tile([0.0, 0.0, 1.0], 3)
        self.unmoved[:, self.ends[3] :] += known
        self.free = self._free()
        self.linear = linear * _windows(self.free)[:, None, :]
        epsilon = self.epsilon(self.unmoved)
        room = self.unmoved[:, self.ends[0] : self.ends[1]]
        room[:] = np.maximum(room - least, _LEAST_ROOM * epsilon)
        self.counts = np.repeat(~moves.ignored[:, None], 4, axis=1)
        waves = np.tile([smoothness, _BEND * epsilon], (len(rest), 1))
        # what absolute values of steps of the rest, of waves, and of errors count as
        self.prices = np.concatenate([0.0 * self.gaps, waves, _REFUTED * self.counts], axis=1)
        self.price = _PREFERENCE * epsilon
        self.dear = 0.0  # until the search begins
        # conditions on the order, on errors, and on coefficients
        free = self.free > 0.0
        self.used = np.concatenate([orders[:, :, 0] < np.inf, self.counts, free, free], axis=1)
        self.last_barrier = _GAP * epsilon / self.used.size
        self.blur = _BLUR * self.last_barrier

    def _free(self) -> FloatArray:
        """1 for each coefficient that may change.

        A flat region is only shifted, and g0 has a part only where it never decreases.
        """
        moves = self.moves
        starts = moves.knots.starts
        region = moves.knots.region
        is_curved = moves.mean[starts[1:] - 1] > moves.mean[starts[:-1]]
        falls = (np.diff(moves.first) < 0.0) & (np.diff(region) == 0)
        rises = np.bincount(region[1:], falls, minlength=is_curved.size) == 0
        return np.column_stack([np.ones(rises.size), is_curved & rises, is_curved])

    def _orders(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Steps between knots and, in each segment, the first value and minus the last; and the
        least that each may be: -1 in place of those that are not there.
        """
        mean = self.mean
        starts = self.moves.knots.starts[:-1]
        continues = np.diff(self.moves.knots.segment[starts], append=-1) == 0
        begins = ~np.roll(continues, 1)
        # the first knot of the region after, which does not depend on the next but one
        window = np.concatenate(
            [np.zeros((len(mean), 3)), np.roll(values[:, 0, :6], -1, 0)], axis=1
        )
        rise = np.roll(mean[:, 0], -1) - mean[:, -1]
        ends = (
            (continues, window - values[:, -1], LEAST_SLOPE * rise),
            (begins, values[:, 0], (1.0 - _BEYOND) * mean[:, 0]),
            (~continues, -values[:, -1], -mean[:, -1] - _BEYOND * (1.0 - mean[:, -1])),
        )
        orders = [np.where(there[:, None], part, 0.0)[:, None] for there, part, _ in ends]
        least = [np.where(there, part, -1.0)[:, None] for there, _, part in ends]
        return (
            np.concatenate([np.diff(values, axis=1), *orders], axis=1),
            np.concatenate([LEAST_SLOPE * np.diff(mean, axis=1), *least], axis=1),
        )

    def _errors(self, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Upper limits, and minus lower limits, on errors, for both limits on the average of g0:
        their linear parts, without what the rest may be off by, and constants.
        """
        moves = self.moves
        share = np.where(self.is_knot, _shares(moves.knots, moves.at_knots)[self.knot], 0.0)
        average = _sums(share, rest)
        linear = []
        known = []
        for first in (moves.of_first.lower, moves.of_first.upper):
            for sign, side, apart in (
                (1.0, moves.above, moves.apart.lower),
                (-1.0, moves.below, moves.apart.upper),
            ):
                whole = average.copy()
                whole[:, 4] += first
                whole[:, 5] += first + apart
                linear.append(-sign * whole)
                known.append(sign * (side.limit + side.known * first))
        return np.stack(linear, axis=1), np.stack(known, axis=1)

    def solved(self) -> MovedCurve:
        """The best curve."""
        moved = np.zeros(self.free.shape)
        if self.counts.any():
            moved = self._minimum()
        found = self.unmoved + self._change(moved)
        values = found[:, : self.ends[0]][self.is_knot]
        coefficients = (moved + np.array([0.0, 0.0, 1.0])).T.ravel()
        return MovedCurve(values, coefficients, self.epsilon(found))

    def epsilon(self, linear: FloatArray, blur: float = 0.0) -> float:
        """The largest error that is not ruled out, outside of ignored regions."""
        off = (self.gaps * np.sqrt(self._steps(linear) ** 2 + blur**2)).sum(axis=1)
        largest = linear[:, self.ends[3] :].max(axis=1) + off
        return float(np.where(self.moves.ignored, 0.0, largest).max())

    def _change(self, moved: FloatArray) -> FloatArray:
        """How much all that is linear changes."""
        return np.asarray((self.linear @ _windows(moved)[:, :, None])[:, :, 0])

    def _minimum(self) -> FloatArray:
        """How far the best coefficients are from those of h."""
        above = _ABOVE * self.epsilon(self.unmoved, self.blur)
        at = _Point(np.zeros(self.free.shape), self.unmoved, above)
        self.dear = self._goal(at)
        barrier = max(_FIRST * self.dear / self.used.size, self.last_barrier)
        duals = None
        while True:
            is_last = barrier == self.last_barrier
            value = self._value(at, barrier)
            for _ in range(_STEPS):
                try:
                    step, decrement, duals = self._newton(at, barrier, duals)
                except np.linalg.LinAlgError:  # because of rounding; all points are allowed
                    return at.moved
                at, value = self._lower(at, step, value, barrier)
                if decrement < (_CONVERGED if is_last else _NEAR):
                    break
            if is_last:
                return at.moved
            barrier = max(_SMALLER * barrier, self.last_barrier)

    def _lower(
        self, at: _Point, step: _Point, value: float, barrier: float
    ) -> tuple[_Point, float]:
        """The end of the first of shorter and shorter steps that makes the value smaller."""
        size = 1.0
        while size > _SHORTEST:
            tried = _Point(
                at.moved + size * step.moved,
                at.linear + size * step.linear,
                at.epsilon + size * step.epsilon,
            )
            found = self._value(tried, barrier)
            if found <= value + _ROUNDING * abs(value):
                return tried, found
            size /= 2.0
        return at, value

    def _value(self, at: _Point, barrier: float) -> float:
        """The goal over the barrier, and the barriers; infinite where a condition is broken."""
        values = at.linear[:, : self.ends[0]]
        if values.min() <= 0.0 or values.max() >= 1.0:
            return np.inf
        rooms = self._rooms(at)
        if rooms.min() <= 0.0:
            return np.inf
        return self._goal(at) / barrier - float(np.log(rooms).sum())

    def _goal(self, at: _Point) -> float:
        """What is minimized."""
        share = self._share(at.linear[:, : self.ends[0]])
        absolute = np.sqrt(at.linear[:, self.ends[1] :] ** 2 + self.blur**2)
        errors = at.linear[:, self.ends[3] :]
        refuted = _REFUTED * errors[self.counts].sum()
        costs = self.price * share + self.dear * share**_POWER / _POWER
        return at.epsilon + costs + float((self.prices * absolute).sum() - refuted)

    def _share(self, values: FloatArray) -> float:
        """How much the log loss of all rows grows if h is right, over what is allowed."""
        p = self.mean
        losses = self.rows * (p * np.log(values) + (1.0 - p) * np.log1p(-values))
        return max(-float(losses.sum()) - self.least_loss, 0.0) / self.allowed

    def _rooms(self, at: _Point) -> FloatArray:
        """What keeps each condition; 1 where there is none."""
        orders = at.linear[:, self.ends[0] : self.ends[1]]
        off = self.gaps * np.sqrt(self._steps(at.linear) ** 2 + self.blur**2)
        spare = at.epsilon - at.linear[:, self.ends[3] :] - off.sum(axis=1, keepdims=True)
        rooms = np.concatenate([orders, spare, at.moved - _LOWEST, _HIGHEST - at.moved], axis=1)
        return np.where(self.used, rooms, 1.0)

    def _newton(
        self, at: _Point, barrier: float, duals: _Duals | None
    ) -> tuple[_Point, float, _Duals]:
        """Newton's step, its squared decrement, which is about twice what it gains, and the dual
        variables after it.
        """
        bent = at.linear[:, self.ends[1] :]
        absolute = np.sqrt(bent**2 + self.blur**2)
        signs = bent / absolute
        rooms = self._rooms(at)
        if duals is None:
            duals = _Duals(barrier / np.maximum(rooms, _AWAY * at.epsilon), signs)
        pushes = self.used / rooms
        pulls = self.used * duals.of_rooms / barrier
        n_orders = self.ends[1] - self.ends[0]
        limits = slice(n_orders, n_orders + 4)
        n_steps = self.gaps.shape[1]
        # how fast epsilon's conditions change, with what the rest is off by
        errors = (
            _sums(self.gaps * signs[:, :n_steps], self._steps(self.linear))[:, None]
            + self.linear[:, -4:]
        )
        # first and second derivatives by all that is linear; absolute values of steps count by the
        # conditions in which they are
        prices = self.prices / barrier
        prices[:, :n_steps] = pushes[:, limits].sum(axis=1, keepdims=True) * self.gaps
        slopes = prices * signs
        slopes[:, -4:] += pushes[:, limits] - _REFUTED * self.counts / barrier
        prices[:, :n_steps] = pulls[:, limits].sum(axis=1, keepdims=True) * self.gaps
        bends = (1.0 - duals.signs * signs) / absolute
        rates = pulls / rooms
        # the cost of the divergence, by the divergence, and the divergence by the values
        values = at.linear[:, : self.ends[0]]
        share = self._share(values)
        unit = barrier * self.allowed
        cost = (self.price + self.dear * share ** (_POWER - 1)) / unit
        dearer = self.dear * (_POWER - 1) * share ** (_POWER - 2) / (unit * self.allowed)
        away = self.mean / values**2 + (1.0 - self.mean) / (1.0 - values) ** 2
        growth = self.rows * (values - self.mean) / (values * (1.0 - values))
        first = np.concatenate([cost * growth, -pushes[:, :n_orders], slopes], axis=1)
        second = np.concatenate(
            [cost * self.rows * away, rates[:, :n_orders], prices * bends], axis=1
        )
        below, above = np.split(pushes[:, limits.stop :], 2, axis=1)
        gradient = _of_regions(_sums(first, self.linear)) + above - below
        band = _band(_squares(second, self.linear) + _squares(rates[:, limits], errors))
        of_moved = rates[:, limits.stop :].reshape(-1, 2, 3).sum(axis=1)
        band[0] += np.where(self.free > 0.0, of_moved, 1.0).ravel()
        band[0] *= 1.0 + _RIDGE
        # two things join all regions: the divergence, and epsilon
        joint = _of_regions(_sums(growth, self.linear[:, : self.ends[0]]))
        mixed = _of_regions(_sums(-rates[:, limits], errors))
        of_epsilon = (1.0 / barrier - float(pushes[:, limits].sum()), float(rates[:, limits].sum()))
        sides = np.stack([part.ravel() for part in (gradient, joint, mixed)], axis=1)
        moved, epsilon, decrement = _solution(band, sides, dearer, of_epsilon)
        step = _Point(moved, self._change(moved), epsilon)
        return step, decrement, self._duals_after(step, duals, rooms, signs, absolute, barrier)

    def _duals_after(
        self,
        step: _Point,
        duals: _Duals,
        rooms: FloatArray,
        signs: FloatArray,
        absolute: FloatArray,
        barrier: float,
    ) -> _Duals:
        """The dual variables after a step, from what held before it."""
        turns = step.linear[:, self.ends[1] :]
        steps = self._steps(step.linear)
        wider = (self.gaps * signs[:, : steps.shape[1]] * steps).sum(axis=1, keepdims=True)
        orders = step.linear[:, self.ends[0] : self.ends[1]]
        spare = step.epsilon - turns[:, -4:] - wider
        more = np.concatenate([orders, spare, step.moved, -step.moved], axis=1)
        change = barrier / rooms - duals.of_rooms * (1.0 + more / rooms)
        lost = float((-change / duals.of_rooms)[self.used].max())
        of_rooms = duals.of_rooms + change * min(1.0, _MOST_LOST / max(lost, _MOST_LOST))
        turned = signs + (1.0 - duals.signs * signs) / absolute * turns
        return _Duals(of_rooms, np.clip(turned, -1.0, 1.0))

    def _steps(self, linear: FloatArray) -> FloatArray:
        """Steps of the rest between knots."""
        return linear[:, self.ends[1] : self.ends[2]]


def _solution(
    band: FloatArray, sides: FloatArray, dearer: float, of_epsilon: tuple[float, float]
) -> tuple[FloatArray, float, float]:
    """The step of coefficients and of epsilon, and its squared decrement.

    The Hessian of coefficients is a band, plus `dearer` times the square of the second side. The
    first side is the gradient, and the third has the mixed derivatives with epsilon, whose own are
    `of_epsilon`.
    """
    from scipy.linalg import solveh_banded  # 6 MB, which a loaded model does not need

    solved = solveh_banded(band, sides, lower=True, check_finite=False)
    inner = sides.T @ solved
    border = [
        [1.0 + dearer * inner[1, 1], inner[1, 2]],
        [-dearer * inner[2, 1], of_epsilon[1] - inner[2, 2]],
    ]
    along, epsilon = np.linalg.solve(border, [-inner[1, 0], inner[2, 0] - of_epsilon[0]]).tolist()
    moved = solved @ [-1.0, -dearer * along, -epsilon]
    decrement = -float(sides[:, 0] @ moved) - of_epsilon[0] * epsilon
    return moved.reshape(-1, 3), epsilon, decrement


def _windows(of_regions: FloatArray) -> FloatArray:
    """Numbers of each region and of both its neighbours; 0 beyond the ends."""
    padded = np.pad(of_regions, ((1, 1), (0, 0)))
    return np.concatenate([padded[:-2], padded[1:-1], padded[2:]], axis=1)


def _of_regions(of_windows: FloatArray) -> FloatArray:
    """Sums over windows of the numbers of each region."""
    found = of_windows[:, 3:6].copy()
    found[:-1] += of_windows[1:, :3]
    found[1:] += of_windows[:-1, 6:]
    return found


def _sums(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """Weighted sums of the rows of each region."""
    return np.asarray((weights[:, None, :] @ rows)[:, 0])


def _squares(weights: FloatArray, rows: FloatArray) -> FloatArray:
    """Weighted sums of the outer products of the rows of each region with themselves."""
    return np.asarray(np.swapaxes(rows * weights[:, :, None], 1, 2) @ rows)


def _band(of_windows: FloatArray) -> FloatArray:
    """The lower diagonals of the sum of matrices of windows."""
    n = 3 * len(of_windows)
    band = np.zeros((9, n + 6))
    for column in range(9):
        band[: 9 - column, column : column + n : 3] += of_windows[:, column:, column].T
    return band[:, 3:-3]


def _waves(knots: Knots, edges: IndexArray, curves: FloatArray) -> FloatArray:
    """The distance of both curves at each edge, and the change of the slope, in the window of the
    region before it; 0 elsewhere.
    """
    waves = np.zeros((knots.regions.n_regions, 2, 9))
    region = knots.region[edges] - 1
    waves[region, 0, 3:6] = -curves[edges]
    waves[region, 0, 6:] = curves[edges]
    waves[region, 1, 3:] = [0.0, -1.0, -1.0, 0.0, 1.0, 1.0]
    return waves


def joined_edges(knots: Knots) -> IndexArray:
    """The first knot of each region whose curve continues that of the region before.

    Both have several knots: a region of one score, which many rows share, has a value of its own.
    """
    first = knots.starts[1:-1]
    is_wide = np.diff(knots.starts) > 1
    same = knots.segment[first] == knots.segment[first - 1]
    return np.asarray(first[same & is_wide[1:] & is_wide[:-1]])


def _blends(
    knots: Knots, at_knots: FloatArray, edges: IndexArray, width: float
) -> tuple[FloatArray, FloatArray]:
    """How much the curves of the regions before and after count at each knot."""
    place = _places(knots, at_knots)
    region = knots.region
    begins = np.isin(knots.starts[:-1], edges)[region]
    ends = np.isin(knots.starts[1:], edges)[region]
    scale = width or 1.0
    before = np.where(begins & (place < width), 1.0 - _step(place / scale), 0.0)
    after = np.where(ends & (place > 1.0 - width), _step((place - 1.0) / scale), 0.0)
    return before, after


def _step(distance: FloatArray) -> FloatArray:
    """From 0 at -1 to 1 at 1, without corners."""
    x = np.clip((distance + 1.0) / 2.0, 0.0, 1.0)
    return np.asarray(x * x * (3.0 - 2.0 * x))


def _places(knots: Knots, at_knots: FloatArray) -> FloatArray:
    """Where each knot is in its region, from exactly 0 to exactly 1: the mean of its number and of
    the share of rows before it.
    """
    starts = knots.starts[:-1]
    region = knots.region
    n_steps = np.maximum(np.diff(knots.starts) - 1, 1)[region]
    number = (np.arange(knots.n_knots) - starts[region]) / n_steps
    between = np.where(np.diff(region) == 0, (at_knots[1:] + at_knots[:-1]) / 2.0, 0.0)
    reached = np.append(0.0, np.cumsum(between))
    reached = reached - reached[starts][region]
    total = reached[knots.starts[1:] - 1][region]
    share = np.where(total > 0.0, reached / np.where(total > 0.0, total, 1.0), number)
    return np.asarray((number + share) / 2.0)


def _shares(knots: Knots, at_knots: FloatArray) -> FloatArray:
    """The share of each knot in the rows of its region; equal shares without rows."""
    total = np.add.reduceat(at_knots, knots.starts[:-1])[knots.region]
    size = np.diff(knots.starts)[knots.region]
    return np.where(total > 0.0, at_knots / np.where(total > 0.0, total, 1.0), 1.0 / size)
