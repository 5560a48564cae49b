"""The curve without jumps that has about the smallest epsilon and costs little log loss.

In each region b there is a curve M_b = s + t g0 + u h, where g0 is the first curve and h the mean of
the curves of both halves. With A the rate minus the average of g0, C the average of h - g0, and G
that of g0,

    E[Y - M_b] = A - s - u C + (1 - t - u) G.

Limits on A, C and G hold simultaneously, so they give limits for all s, t and u at once, whatever
these depend on. If t + u = 1, as for the shape of h pulled towards that of g0, G has no effect, and
the part of the width that is due to C shrinks by the factor u.

Around an edge, the curves of both regions are blended: at a knot of region b the curve is

    v = (1 - l - r) M_b + l M_{b-1} + r M_{b+1},

where l falls from 1/2 at the region's first knot to 0, and r rises from 0 to 1/2 at its last knot.
So v does not jump. What the blend adds to M_b is a part of the rest, which limits on the shares of
rows at knots bound (`calibrant.calibrators.curve.curve_bounds`): about proportional to the
distance between M_b and its neighbour at the edge. The blend is as wide as epsilon allows.

Of all such curves that never decrease, the chosen one has the smallest epsilon for which the log
loss, computed as if h were right, grows by at most what is allowed. Distances at edges have a small
price, because they make waves, and so have changes of the slope. v is linear in s, t and u, epsilon
is the largest of linear functions of them, and the growth, the divergence of v from h, is convex. So
the divergence is replaced by the largest of its tangents, which makes this a linear programme;
tangents at its solution are added until the solution is good enough (Kelley's cutting planes).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.cells.knots import Knots
from calibrant.limits.interval import Interval

SMOOTHNESS = 0.01
"""What a distance of 1 between the curves of two regions at their edge counts as, in epsilon."""
_WIDTHS = (0.5, 0.25, 0.12, 0.06)  # of a blend, as shares of a region
_NO_BLEND = 0.0
_WIDER = 1.05  # times the epsilon of a curve with jumps: what a blend may have
_BEND = 0.002  # of epsilon: what a change of the slope by 1 counts as
_REFUTED = 2.0  # what an average counts as that is off by 1 for certain
_LEAST_SLOPE = 0.2  # of h: the smallest slope, so that no scores are tied
_BEYOND = 0.5  # of the distance to 0 or 1: how far the curve moves at its ends
_NEAREST = 1e-9  # to 0 and 1, where a divergence is computed
_PREFERENCE = 0.02  # of epsilon: what the whole allowed divergence counts as
_PROGRAMMES = 6
_TOLERANCE = 1e-6  # by which a condition may be broken
_GOOD_ENOUGH = 0.005  # how much epsilon may exceed the smallest one
_MOST_OFF = 10.0  # times what is allowed: tangents further away are of little use
_BISECTIONS = 20


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


def joined_edges(knots: Knots) -> IndexArray:
    """The first knot of each region whose curve continues that of the region before.

    Both have several knots: a region of one score, which many rows share, has a value of its own.
    """
    first = knots.starts[1:-1]
    is_wide = np.diff(knots.starts) > 1
    same = knots.segment[first] == knots.segment[first - 1]
    return np.asarray(first[same & is_wide[1:] & is_wide[:-1]])


@dataclass(frozen=True, eq=False)
class CurveMoves:
    """The curves that can be made of h and g0, and what is known about their errors.

    Coefficients are an array of shape (3 n_regions,): s of all regions, then t, then u.

    Attributes
    ----------
    knots : Knots
        The knots.
    first, mean : float arrays of shape (n_knots,)
        The curves g0 and h. h never decreases within a segment.
    at_knots, gaps : float arrays of shape (n_knots,)
        The rows at each knot, and the largest distance between the share of rows at knots up to it
        and that of the population.
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
    at_knots: FloatArray
    gaps: FloatArray
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
        return np.repeat([0.0, 0.0, 1.0], self.n_regions)

    def least(self, allowed: float, smoothness: float = SMOOTHNESS) -> "MovedCurve":
        """The curve with about the smallest epsilon, if the log loss may grow by `allowed`.

        The widest blend whose epsilon is not much larger than that of the curve with jumps.
        """
        least = self._least_possible
        found = _Programme(self, _WIDTHS[0], allowed, smoothness).solved()
        if found.epsilon > _WIDER * least:
            least = _Programme(self, _NO_BLEND, allowed, smoothness).least_epsilon()
        for width in _WIDTHS[1:]:
            if found.epsilon <= _WIDER * least:
                break
            found = _Programme(self, width, allowed, smoothness).solved()
        return found

    def divergence(self, values: FloatArray) -> FloatArray:
        """How much the log loss of the rows in each region grows if h is right."""
        v = np.clip(values, _NEAREST, 1.0 - _NEAREST)
        p = self.mean
        grows = p * np.log(p / v) + (1.0 - p) * np.log((1.0 - p) / (1.0 - v))
        return np.asarray(np.add.reduceat(self.rows * grows, self.knots.starts[:-1]))

    def slopes(self, values: FloatArray) -> FloatArray:
        """The derivative of the divergence by the value at each knot."""
        v = np.clip(values, _NEAREST, 1.0 - _NEAREST)
        return np.asarray(self.rows * (v - self.mean) / (v * (1.0 - v)))

    def off(self, rest: FloatArray) -> FloatArray:
        """The largest distance between the averages over rows and population in each region."""
        steps = np.abs(np.diff(rest, append=rest[-1:])) * self.gaps
        return np.asarray(np.add.reduceat(steps, self.knots.starts[:-1]))

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Both limits on the average of the first curve."""
        return self.of_first.lower, self.of_first.upper

    @cached_property
    def _least_possible(self) -> float:
        """A lower bound on the epsilon of curves of this kind."""
        known = self.above.known - self.below.known
        width = self.above.limit - self.below.limit
        width = width + np.maximum(*(known * average for average in self.ends))
        width = width + _LEAST_SLOPE * (self.apart.upper - self.apart.lower)
        return float(np.where(self.ignored, 0.0, width / 2.0).max())


class MovedCurve(NamedTuple):
    """A curve that was found: its values at knots, its coefficients, and its largest error."""

    values: FloatArray
    coefficients: FloatArray
    epsilon: float


class _Programme:
    """The linear programme for blends of one width.

    Its variables are the coefficients, the divergence of each region, the distance of the curves
    and the change of the slope at each edge, how far each region is refuted, and epsilon.
    """

    def __init__(self, moves: CurveMoves, width: float, allowed: float, smoothness: float) -> None:
        from scipy import sparse

        self.moves = moves
        self.allowed = allowed
        self.edges = joined_edges(moves.knots) if width > 0.0 else np.empty(0, dtype=np.intp)
        self._sparse = sparse
        self._shape(width)
        n = moves.n_regions
        n_edges = self.edges.size
        self.sizes = (3 * n, n, n_edges, n_edges, n, 1)
        unmoved = moves.unmoved
        epsilon = self.epsilon(unmoved, self.values @ unmoved)
        self.price = _PREFERENCE * epsilon / allowed
        self.goals = (0.0, self.price, smoothness, _BEND * epsilon, _REFUTED, 1.0)

    def _shape(self, width: float) -> None:
        """The matrices that turn coefficients into values at knots, and so on."""
        moves = self.moves
        knots = moves.knots
        region = knots.region
        n_knots = knots.n_knots
        every = np.arange(n_knots)
        before, after = _blends(knots, moves.at_knots, self.edges, width)
        own = self._at(every, region, np.ones(n_knots))
        last = moves.n_regions - 1
        blended = self._at(every, region, -before - after)
        blended += self._at(every, np.maximum(region - 1, 0), before)
        blended += self._at(every, np.minimum(region + 1, last), after)
        self.values = (own + blended).tocsr()
        weight = _shares(knots, moves.at_knots)
        in_regions = self._sparse.csr_matrix((weight, (region, every)))
        self.of_rest = (in_regions @ blended).tocsr()
        of_edge = region[self.edges]
        there = np.ones(of_edge.size)
        self.distance = self._at(self.edges, of_edge, there)
        self.distance -= self._at(self.edges, of_edge - 1, there)
        # what a distance of 1 at an edge adds to the error, on both sides of it
        starts = knots.starts[:-1]
        on_right, on_left = (
            np.add.reduceat(np.abs(np.diff(part, append=0.0)) * moves.gaps, starts)
            for part in (before, after)
        )
        edge = np.arange(of_edge.size)
        rows = np.concatenate([of_edge, of_edge - 1])
        costs = np.concatenate([on_right[of_edge], on_left[of_edge - 1]])
        shape = (moves.n_regions, of_edge.size)
        self.off_of_edges = self._sparse.csr_matrix((costs, (rows, np.tile(edge, 2))), shape)
        signs = self._sparse.csr_matrix(
            (np.repeat([1.0, -1.0], edge.size), (np.tile(edge, 2), rows)), shape[::-1]
        )
        nothing = self._sparse.csr_matrix(shape[::-1])
        self.change = self._sparse.hstack([nothing, signs, signs]).tocsr()

    def _at(self, knot: IndexArray, region: IndexArray, weight: FloatArray) -> Any:
        """The values of regions' curves at knots, times weights."""
        n = self.moves.n_regions
        entries = np.column_stack(
            [weight, weight * self.moves.first[knot], weight * self.moves.mean[knot]]
        )
        column = np.column_stack([region, region + n, region + 2 * n])
        return self._three_in_a_row(entries, column)

    def _three_in_a_row(self, entries: FloatArray, column: IndexArray) -> Any:
        """A matrix of coefficients, three of which count in each row."""
        shape = (len(entries), 3 * self.moves.n_regions)
        ends = np.arange(0, entries.size + 1, 3)
        return self._sparse.csr_matrix((entries.ravel(), column.ravel(), ends), shape)

    def solved(self) -> MovedCurve:
        """The best curve that was found; h itself if there is none."""
        moves = self.moves
        best = moves.unmoved
        smallest = self.goal(best)
        matrix, limits, of_rest = self._conditions()
        tangents = [self._tangents(self._pulled())]
        more = np.zeros(moves.n_regions)
        for _ in range(_PROGRAMMES):
            found = self._solution(matrix, limits + of_rest @ more, tangents)
            if found is None:
                break
            variables, at_least = found
            wanted = variables[: self.sizes[0]]
            inside = self._towards(wanted)
            value = self.goal(inside)
            if value < smallest:
                best = inside
                smallest = value
            if smallest <= (1.0 + _GOOD_ENOUGH) * at_least:
                break
            tangents.append(self._tangents(wanted))
            guessed = self.off_of_edges @ np.abs(self.distance @ inside)
            more = np.maximum(moves.off(self._rest(inside)) - guessed, 0.0)
        values = self.values @ best
        return MovedCurve(values, best, self.epsilon(best, values))

    def least_epsilon(self) -> float:
        """About the smallest epsilon, by one programme with one tangent in each region."""
        matrix, limits, _ = self._conditions()
        found = self._solution(matrix, limits, [self._tangents(self._pulled())])
        if found is None:
            unmoved = self.moves.unmoved
            return self.epsilon(unmoved, self.values @ unmoved)
        variables, at_least = found
        refuted = variables[-1 - self.moves.n_regions : -1].sum()
        return at_least - _REFUTED * float(refuted)

    def goal(self, coefficients: FloatArray) -> float:
        """What is made small."""
        values = self.values @ coefficients
        lower, upper = self._limits(coefficients, values)
        refuted = np.maximum(np.maximum(lower, -upper), 0.0)
        costs = (
            float(self.moves.divergence(values).sum()),
            float(np.abs(self.distance @ coefficients).sum()),
            float(np.abs(self.change @ coefficients).sum()),
            float(np.where(self.moves.ignored, 0.0, refuted).sum()),
            self.epsilon(coefficients, values),
        )
        return sum(price * cost for price, cost in zip(self.goals[1:], costs, strict=True))

    def epsilon(self, coefficients: FloatArray, values: FloatArray) -> float:
        """The largest error that is not ruled out, outside of ignored regions."""
        lower, upper = self._limits(coefficients, values)
        return float(np.where(self.moves.ignored, 0.0, np.maximum(upper, -lower)).max())

    def _rest(self, coefficients: FloatArray) -> FloatArray:
        """The values less the parts of g0 and h in their own region."""
        moves = self.moves
        region = moves.knots.region
        _, of_first, of_mean = coefficients.reshape(3, -1)
        made = of_first[region] * moves.first + of_mean[region] * moves.mean
        return np.asarray(self.values @ coefficients - made)

    def _limits(
        self, coefficients: FloatArray, values: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Limits on the error of each region."""
        moves = self.moves
        shift, of_first, of_mean = coefficients.reshape(3, -1)
        whole = of_first + of_mean
        off = moves.off(self._rest(coefficients))
        known = shift + self.of_rest @ coefficients
        upper = np.maximum(*((moves.above.known - whole) * average for average in moves.ends))
        lower = np.minimum(*((moves.below.known - whole) * average for average in moves.ends))
        upper = moves.above.limit + upper - of_mean * moves.apart.lower - known + off
        lower = moves.below.limit + lower - of_mean * moves.apart.upper - known - off
        return lower, upper

    def _pulled(self) -> FloatArray:
        """The shape of h, pulled half-way towards that of g0, with the same middle."""
        moves = self.moves
        middle = np.add.reduceat(moves.mean - moves.first, moves.knots.starts[:-1])
        middle = middle / np.diff(moves.knots.starts)
        half = np.full(moves.n_regions, 0.5)
        return np.concatenate([middle / 2.0, half, half])

    def _grows(self, coefficients: FloatArray) -> float:
        return float(self.moves.divergence(self.values @ coefficients).sum())

    def _towards(self, wanted: FloatArray) -> FloatArray:
        """The last curve on the way from h that is allowed."""
        if self._grows(wanted) <= self.allowed:
            return wanted
        unmoved = self.moves.unmoved
        share = 0.0
        beyond = 1.0
        for _ in range(_BISECTIONS):
            middle = (share + beyond) / 2.0
            if self._grows(unmoved + middle * (wanted - unmoved)) <= self.allowed:
                share = middle
            else:
                beyond = middle
        return unmoved + share * (wanted - unmoved)

    def _tangents(self, wanted: FloatArray) -> tuple[Any, FloatArray]:
        """The tangents of all divergences at a curve, or nearer to h if that is far away, as
        conditions.
        """
        moves = self.moves
        at = wanted
        for _ in range(_BISECTIONS):
            if self._grows(at) <= _MOST_OFF * self.allowed:
                break
            at = (moves.unmoved + at) / 2.0
        values = self.values @ at
        region = moves.knots.region
        slopes = self._sparse.csr_matrix((moves.slopes(values), (region, np.arange(region.size))))
        slopes = (slopes @ self.values).tocsr()
        one = self._sparse.identity(moves.n_regions, format="csr")
        limits = slopes @ at - moves.divergence(values)
        return self._stacked([self._rows(slopes, costs=-one)]), limits

    def _rows(
        self,
        coefficients: Any,
        costs: Any = None,
        distances: Any = None,
        changes: Any = None,
        refuted: Any = None,
        epsilon: Any = None,
    ) -> tuple[Any, ...]:
        """Rows of the matrix: a block for each kind of variable, None for zeros."""
        return (coefficients, costs, distances, changes, refuted, epsilon)

    def _stacked(self, rows: list[tuple[Any, ...]]) -> Any:
        """All rows as one matrix, from the entries of the blocks, which is much faster than joining
        blocks to rows, and rows to a matrix.
        """
        starts = np.cumsum((0, *self.sizes))
        entries = []
        n_rows = 0
        for blocks in rows:
            given = [
                (start, block)
                for start, block in zip(starts[:-1], blocks, strict=True)
                if block is not None
            ]
            for start, block in given:
                row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
                entries.append((block.data, n_rows + row, start + block.indices))
            n_rows += given[0][1].shape[0]
        value, row, column = (np.concatenate(of) for of in zip(*entries, strict=True))
        return self._sparse.csr_matrix((value, (row, column)), (n_rows, starts[-1]))

    def _conditions(self) -> tuple[Any, FloatArray, Any]:
        """A matrix whose product with the variables has limits, and these; and how the limits grow
        with what errors exceed their linear part by, in each region.
        """
        moves = self.moves
        mean = moves.mean
        segment = moves.knots.segment
        sparse = self._sparse
        self.in_order = same = np.flatnonzero(np.diff(segment) == 0)
        first = np.flatnonzero(np.diff(segment, prepend=-1))
        last = np.append(first[1:], segment.size) - 1
        rows = [
            self._rows(self.values[same] - self.values[same + 1]),
            self._rows(-self.values[first]),
            self._rows(self.values[last]),
            self._rows(None, costs=sparse.csr_matrix(np.ones((1, moves.n_regions)))),
        ]
        limits = [
            -_LEAST_SLOPE * np.diff(mean)[same],
            -(1.0 - _BEYOND) * mean[first],
            mean[last] + _BEYOND * (1.0 - mean[last]),
            np.array([self.allowed]),
        ]
        if self.edges.size:
            one = sparse.identity(self.edges.size, format="csr")
            for sign in (1.0, -1.0):
                rows.append(self._rows(sign * self.distance, distances=-one))
                rows.append(self._rows(sign * self.change, changes=-one))
                limits += [np.zeros(self.edges.size)] * 2
        n_others = sum(map(len, limits))
        here = np.flatnonzero(~moves.ignored)
        every = np.arange(3 * moves.n_regions).reshape(3, -1).T
        one = sparse.identity(moves.n_regions, format="csr")[here]
        off = self.off_of_edges[here]
        epsilon = sparse.csr_matrix(-np.ones((here.size, 1)))
        wider = []
        for average in moves.ends:
            for sign, side, apart in (
                (1.0, moves.above, moves.apart.lower),
                (-1.0, moves.below, moves.apart.upper),
            ):
                own = np.column_stack([np.ones(average.size), average, average + apart])
                of_all = self._three_in_a_row(own, every) + self.of_rest
                error = -sign * of_all[here]
                known = sign * (side.limit + side.known * average)[here]
                rows.append(self._rows(error, distances=off, epsilon=epsilon))
                rows.append(self._rows(-error, distances=-off, refuted=-one))
                limits += [-known, known]
                wider += [-one, one]
        of_rest = sparse.vstack([sparse.csr_matrix((n_others, moves.n_regions)), *wider])
        region = moves.knots.region
        self.used = np.ones(sum(map(len, limits)), dtype=bool)
        self.used[: same.size] = region[same] != region[same + 1]
        self.used[n_others:] = np.tile(np.repeat([True, False], here.size), 4)
        return self._stacked(rows), np.concatenate(limits), of_rest.tocsr()

    def _solution(
        self, matrix: Any, limits: FloatArray, tangents: list[tuple[Any, FloatArray]]
    ) -> tuple[FloatArray, float] | None:
        """The variables, and a lower bound on the goal; None if the solver finds none.

        Most curves that are in order at edges are in order everywhere, so the other conditions on the
        order are used only in regions where a solution breaks one.
        """
        # without whole numbers milp calls the same solver as linprog, with less work around it
        from scipy.optimize import Bounds, LinearConstraint, milp

        while True:
            chosen = [matrix[self.used], *(rows for rows, _ in tangents)]
            most = [limits[self.used], *(limit for _, limit in tangents)]
            found = milp(
                np.repeat(self.goals, self.sizes),
                constraints=LinearConstraint(
                    self._sparse.vstack(chosen, format="csc"), -np.inf, np.concatenate(most)
                ),
                bounds=Bounds(*self._bounds.T),
            )
            if not found.success:
                return None
            broken = matrix @ found.x > limits + _TOLERANCE
            if not (broken & ~self.used).any():
                return found.x, float(found.fun)
            # all of the region's conditions, so that few rounds are needed
            region = self.moves.knots.region[self.in_order]
            broken[: region.size] = np.isin(region, region[broken[: region.size]])
            self.used |= broken

    @cached_property
    def _bounds(self) -> FloatArray:
        """Limits on the variables.

        A flat region is only shifted, and g0 has a part only where it never decreases.
        """
        moves = self.moves
        starts = moves.knots.starts
        region = moves.knots.region
        is_flat = moves.mean[starts[1:] - 1] <= moves.mean[starts[:-1]]
        falls = (np.diff(moves.first) < 0.0) & (np.diff(region) == 0)
        rises = np.bincount(region[1:], falls, minlength=moves.n_regions) == 0
        low = np.zeros(sum(self.sizes))
        high = np.full(low.size, np.inf)
        shift, of_first, of_mean = np.arange(self.sizes[0]).reshape(3, -1)
        low[shift] = -1.0
        high[shift] = 1.0
        high[of_first] = np.where(rises & ~is_flat, np.inf, 0.0)
        low[of_mean] = np.where(is_flat, 1.0, _LEAST_SLOPE)
        high[of_mean] = np.where(is_flat, 1.0, np.inf)
        return np.column_stack([low, high])


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
