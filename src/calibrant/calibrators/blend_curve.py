"""A mean of seven increasing curves, weighted by how well each would predict rows left out of it.

`fit_blends` is a plain function of counts of rows by score. The counts need not be whole, so it also
fits half-samples, pilot rows and weighted rows. It draws nothing at random and uses nothing but its
arguments. Several counts of rows, such as those of all segments, are fitted together, which is much
faster. The curve never falls: for rates that do (`is_falling`), exchange the labels (`mirrored`), and
take one minus the curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from scipy.special import expit, logit

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.cells.score_counts import ScoreCounts

Scale: TypeAlias = Callable[[FloatArray], FloatArray]
"""An increasing function of each number."""
Features: TypeAlias = Callable[[FloatArray], FloatArray]
"""A function from n numbers to a matrix of n rows, whose first column is 1."""

_MOST_CELLS = 2_048
_NODES = (8, 16, 32)  # of the curves by rank, from so many rows on:
_ROWS = (3_000, 10_000)  # the curve by place has at least the second number
_FEWEST_NODES = 3
_TRUST = 3.0  # by which the log loss of the score itself, which needs no fit, counts as smaller
_LEAST_SLOPE = 0.02  # of a line, so that it ties no scores
_LEAST_SLOPE_OF_RANKS = 0.05
_CLEARLY = 4.0  # standard errors by which the number of misordered pairs must exceed chance
_RANKS = np.array([0.0, 0.02, 0.05, *np.linspace(0.1, 0.9, 9), 0.95, 0.98, 1.0])
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
_LARGEST = 1.0 - 2.0**-53
_STEPS = 50  # of Newton
_HALVINGS = 30
_DECREASE = 1e-9  # of the loss over all rows: Newton's steps end when none larger is in sight
_RIDGE = 1e-9  # keeps steps finite where neither rows nor prior determine a coefficient
_MOST_LEVERAGE = 0.9  # of one row, so that leaving it out stays a finite step
_FARTHEST = 1e300  # of standard scores, so that none is infinite
_NEGLIGIBLE = 1e-12  # of all rows: scores with fewer are left out, because ranks cannot tell them
_APART = 1e-9  # quantiles that are closer, on a scale of order 1, count as one
_TOGETHER = 1 << 21  # features that are held in memory for fits at once
_ONE_THREAD = 128  # rows of 33 columns: OpenBLAS uses threads from 2^18 products on


@dataclass(frozen=True, slots=True, eq=False)
class BlendCurve:
    """A continuous curve that never falls: call it with scores for probabilities in (0, 1).

    Attributes
    ----------
    scale : function
        From scores to logits, or to standard scores if they are no probabilities.
    reach : (float, float)
        The smallest and the largest score of the rows.
    n_rows : float
        The number of rows. It limits which logits are used as they are, and which are returned.
    members : tuple of Member
        The curves that were fitted.
    weights : float array
        Their weights, and last that of the score itself; the sum is 1.
    """

    scale: Scale
    reach: tuple[float, float]
    n_rows: float
    members: tuple[Member, ...]
    weights: FloatArray

    def __call__(self, scores: FloatArray) -> FloatArray:
        """The probability of the positive class at each score."""
        return np.asarray(expit(self.logits(scores)))

    def logits(self, scores: FloatArray) -> FloatArray:
        """The weighted mean of the members' logits, kept to what so many rows can say."""
        z = _compressed(self.scale(scores), self.n_rows)
        inside = self.scale(np.clip(scores, *self.reach))
        # beyond the rows, the score itself goes on as the other members do
        own = inside + z - _compressed(inside, self.n_rows)
        total = self.weights[-1] * own
        for weight, member in zip(self.weights, self.members, strict=False):
            total += weight * member.logits(z)
        return _capped(total, self.n_rows)


class Member(NamedTuple):
    """A curve on the logit scale, its coefficients, and the log loss over all rows, each left out of
    the fit.
    """

    logits: Scale
    coefficients: FloatArray
    loss: float


class Form(NamedTuple):
    """A member before it is fitted: its features of z, the normal prior of their coefficients, its
    curve given these, and the smallest slope of a line.
    """

    features: Features
    mean: FloatArray
    precision: FloatArray
    logits: Callable[[FloatArray], Scale]
    least_slope: float = 0.0


class Problem(NamedTuple):
    """The fit of logit p = features @ theta to rows, one row of features for each of their scores."""

    features: FloatArray
    rows: ScoreCounts
    mean: FloatArray
    precision: FloatArray


def fit_blend(rows: ScoreCounts, *, are_probabilities: bool) -> BlendCurve:
    """Fit the blend to counts of rows; see `fit_blends`."""
    return fit_blends([rows], [are_probabilities])[0]


def fit_blends(data: Sequence[ScoreCounts], are_probabilities: Sequence[bool]) -> list[BlendCurve]:
    """Fit the blend to each of several counts of rows.

    Parameters
    ----------
    data : sequence of ScoreCounts
        Rows and positives at increasing scores. Weights of rows must be scaled beforehand, so that
        they add up to the number of rows that they are worth: see `kish_scaled`.
    are_probabilities : sequence of bool
        Whether the scores of each are probabilities in [0, 1], rather than any real numbers. Where a
        guarantee depends on the curve, decide it by the range that the scores are declared to have,
        not by the scores seen.

    Notes
    -----
    z is the logit of the score, or another score standardised, and compressed where it is more
    extreme than n rows can verify. The members, each with its features and with the mean and the
    precision of the normal prior of their coefficients (none but the first is negative):

    - line: 1, z; (0, 1), or (0, 0) for other scores; 0.1 and 2;
    - near, for probabilities: 1, z; (0, 1); 1 and 20;
    - beta, for probabilities: 1, ln p, -ln(1 - p); (0, 1, 1); 0.1, 2 and 2;
    - spline: the slope in z is a random walk about that of the line, over 16 nodes, and
      32 from 10,000 rows on;
    - two splines in the logit of the rank, over 8 nodes, 16 from 3,000, and 32 from 10,000 rows on;
    - for probabilities, z itself, uncompressed, of which nothing is fitted.

    Their weights are proportional to exp(-L / 2), where L is the log loss over all rows, each left
    out of the fit; for z itself the log loss less 3. A mean is safer than the member of smallest L,
    which is often the best by chance.
    """
    blends = [_Blend(*given) for given in zip(data, are_probabilities, strict=True)]
    lines = _fitted(blends, [blend.lines() for blend in blends])
    # the slopes of splines vary about those of lines
    of_blends = zip(blends, lines, strict=True)
    splines = _fitted(blends, [blend.splines(members) for blend, members in of_blends])
    return [
        blend.curve([*of_lines[: len(of_lines) - blend.has_ranks], *of_splines])
        for blend, of_lines, of_splines in zip(blends, lines, splines, strict=True)
    ]


def _fitted(blends: list[_Blend], forms: list[list[Form]]) -> list[list[Member]]:
    """The members of each blend that have these forms, fitted together."""
    problems = [
        Problem(form.features(blend.z), blend.rows, form.mean, form.precision)
        for blend, of_blend in zip(blends, forms, strict=True)
        for form in of_blend
    ]
    solutions = iter(fit_rising(problems))
    return [[_member(form, *next(solutions)) for form in of_blend] for of_blend in forms]


def _member(form: Form, coefficients: FloatArray, loss: float) -> Member:
    coefficients[1] = max(coefficients[1], form.least_slope)
    return Member(form.logits(coefficients), coefficients, loss)


class _Blend:
    """Rows, and the scales on which the members of their blend are fitted."""

    def __init__(self, rows: ScoreCounts, are_probabilities: bool) -> None:
        used = rows.counts > _NEGLIGIBLE * rows.n_rows
        # as floats, so that no step of a fit converts them again
        counts, positives = (
            of_rows[used].astype(np.float64) for of_rows in (rows.counts, rows.positives)
        )
        rows = ScoreCounts(rows.scores[used], counts, positives).thinned(_MOST_CELLS)
        self.rows = rows
        self.are_probabilities = are_probabilities
        self.scale = _logits(rows.scores) if are_probabilities else _standard_scores(rows)
        self.own = self.scale(rows.scores)
        self.z = _compressed(self.own, rows.n_rows)
        self.ranks = _logits_of_ranks(self.z, rows)

    @property
    def has_ranks(self) -> bool:
        """Whether the last of the lines is in the logit of the rank. It is no member."""
        return self.ranks is not None

    def lines(self) -> list[Form]:
        """The forms with few coefficients."""
        slope = float(self.are_probabilities)
        found = [_straight(_line, [0.0, slope], [0.1, 2.0], _LEAST_SLOPE)]
        if self.are_probabilities:
            found.append(_straight(_line, [0.0, 1.0], [1.0, 20.0]))
            found.append(_straight(_logarithms, [0.0, 1.0, 1.0], [0.1, 2.0, 2.0]))
        if self.ranks is not None:
            ranks = self.ranks
            level = float(logit((self.rows.n_positive + 0.5) / (self.rows.n_rows + 1.0)))
            of_ranks = [level, 0.5], [0.1, 0.1], _LEAST_SLOPE_OF_RANKS
            found.append(_straight(lambda z: _line(ranks(z)), *of_ranks))
        return found

    def splines(self, lines: list[Member]) -> list[Form]:
        """Splines in z and in the logit of the rank, about lines."""
        n_nodes = _NODES[int(np.searchsorted(_ROWS, self.rows.n_rows, side="right"))]
        line = lines[0].coefficients
        found = []
        nodes = self._nodes(self.z, max(n_nodes, _NODES[1]))
        if nodes.size >= _FEWEST_NODES:
            found.append(_spline(lambda z: z, nodes, line, spread=2.0, trust=0.5))
        if self.ranks is None:
            return found
        nodes = self._nodes(self.ranks(self.z), n_nodes)
        if nodes.size >= _FEWEST_NODES:
            line = lines[-1].coefficients
            found.append(_spline(self.ranks, nodes, line, spread=0.5, trust=0.1))
            found.append(_spline(self.ranks, nodes, line, spread=2.0, trust=0.1))
        return found

    def _nodes(self, x: FloatArray, n_nodes: int) -> FloatArray:
        """Different quantiles of x, in the middle of equal shares of the rows."""
        shares = (np.arange(n_nodes) + 0.5) / n_nodes
        return np.unique(np.interp(shares, _mid_ranks(self.rows), x))

    def curve(self, members: list[Member]) -> BlendCurve:
        """The weighted mean of the members, and of the score itself if it is a probability."""
        own = _loss(self.own, self.rows) - _TRUST if self.are_probabilities else np.inf
        losses = np.array([*(member.loss for member in members), own])
        weights = np.exp((losses.min() - losses) / 2.0)
        reach = (float(self.rows.scores[0]), float(self.rows.scores[-1]))
        rest = (self.rows.n_rows, tuple(members), weights / weights.sum())
        return BlendCurve(self.scale, reach, *rest)


def is_falling(rows: ScoreCounts) -> bool:
    """Whether the rate clearly decreases in the score: pairs of a positive and a negative row are in
    order less often than by chance, by far (Mann and Whitney's test).
    """
    negatives = rows.counts - rows.positives
    pairs = rows.n_positive * float(negatives.sum())
    ordered = float((rows.positives * (np.cumsum(negatives) - negatives / 2)).sum())
    error = float(np.sqrt(pairs * (rows.n_rows + 1.0) / 12))
    return ordered - pairs / 2 < -_CLEARLY * error


def mirrored(rows: ScoreCounts) -> ScoreCounts:
    """The rows, with exchanged labels."""
    return ScoreCounts(rows.scores, rows.counts, rows.counts - rows.positives)


def kish_scaled(weights: FloatArray) -> FloatArray:
    """Weights of rows, scaled to add up to the number of rows that they are worth (Kish 1965).

    That is (sum of w)^2 / (sum of w^2): all of them if weights are equal.

    >>> kish_scaled(np.array([2.0, 2.0, 2.0])), kish_scaled(np.array([1.0, 3.0]))
    (array([1., 1., 1.]), array([0.4, 1.2]))
    """
    shares = weights / weights.max()
    return np.asarray(shares * (shares.sum() / np.square(shares).sum()))


def _loss(z: FloatArray, rows: ScoreCounts) -> float:
    return float((rows.counts * np.logaddexp(0.0, z) - rows.positives * z).sum())


# The fit of members


def fit_rising(problems: Sequence[Problem]) -> list[tuple[FloatArray, float]]:
    """Fit logit p = features @ theta, with theta >= 0 in all but the first entry.

    Minimises the log loss over all rows plus (theta - mean)' precision (theta - mean) / 2. If
    coefficients turn negative they become 0 for good, and the others are fitted again. The prior
    decides where the rows say nothing, so separable rows, one class and one score all have a finite
    fit. Many small problems of about one size take little more time than one.

    Returns
    -------
    list of (theta, loss)
        The coefficients, and the log loss over all rows, each approximately left out of the fit.
    """
    alike: dict[tuple[int, int], list[int]] = {}
    for number, problem in enumerate(problems):
        n_cells, width = problem.features.shape
        # the padded length depends on the problem alone, and so does its solution, to the last bit
        step = 1 << max(n_cells.bit_length() - 3, 0)
        alike.setdefault((-(-n_cells // step) * step, width), []).append(number)
    found: list[tuple[FloatArray, float]] = [(np.empty(0), 0.0)] * len(problems)
    for (n_cells, width), numbers in alike.items():
        most = max(_TOGETHER // (n_cells * width), 1)
        for start in range(0, len(numbers), most):
            some = numbers[start : start + most]
            stack = _Stack.of([problems[number] for number in some], n_cells)
            coefficients, losses = stack.solved()
            for number, theta, loss in zip(some, coefficients, losses.tolist(), strict=True):
                found[number] = (theta, loss)
    return found


class _Stack(NamedTuple):
    """Problems of one width, padded to one length by cells without rows."""

    features: FloatArray
    counts: FloatArray
    positives: FloatArray
    mean: FloatArray
    precision: FloatArray

    @classmethod
    def of(cls, problems: list[Problem], n_cells: int) -> Self:
        """Stack the problems."""

        def padded(arrays: Sequence[FloatArray | IntArray]) -> FloatArray:
            found = np.zeros((len(arrays), n_cells, *arrays[0].shape[1:]))
            for place, array in zip(found, arrays, strict=True):
                place[: len(array)] = array
            return found

        return cls(
            padded([problem.features for problem in problems]),
            padded([problem.rows.counts for problem in problems]),
            padded([problem.rows.positives for problem in problems]),
            np.array([problem.mean for problem in problems]),
            np.array([problem.precision for problem in problems]),
        )

    def take(self, which: IndexArray | BoolArray) -> _Stack:
        """Some of the problems."""
        return _Stack(*(array[which] for array in self))

    def solved(self) -> tuple[FloatArray, FloatArray]:
        """The coefficients and the losses of all problems."""
        theta = self.mean.copy()
        free = np.ones(theta.shape, dtype=bool)
        open_ = np.arange(len(theta))
        while open_.size:
            start = np.where(free[open_], theta[open_], 0.0)
            theta[open_] = self.take(open_)._newton(start, free[open_])
            negative = free & (theta < 0.0)
            negative[:, 0] = False
            free &= ~negative
            open_ = np.flatnonzero(negative.any(axis=1))
        return theta, self._left_out_loss(theta, free)

    def _logits(self, theta: FloatArray) -> FloatArray:
        return _products(self.features, theta)

    def _objective(self, z: FloatArray, theta: FloatArray) -> FloatArray:
        away = theta - self.mean
        loss = (self.counts * np.logaddexp(0.0, z) - self.positives * z).sum(axis=1)
        return np.asarray(loss + (away * _products(self.precision, away)).sum(axis=1) / 2.0)

    def _hessian(self, p: FloatArray, free: BoolArray) -> FloatArray:
        """The second derivatives by the free coefficients; for the others those of the identity."""
        curvature = self.counts * p * (1.0 - p)
        features = _in_parts(self.features)
        weighted = features * _in_parts(curvature[:, :, None])
        found = (weighted.transpose(0, 1, 3, 2) @ features).sum(axis=1) + self.precision
        one = np.eye(free.shape[1])
        both = free[:, :, None] & free[:, None, :]
        return np.where(both, found + _RIDGE * one, one)

    def _newton(self, theta: FloatArray, free: BoolArray) -> FloatArray:
        """The best free coefficients; the others stay 0."""
        best = theta.copy()
        stack = self
        numbers = np.arange(len(theta))  # of the problems that are still in the stack
        z = _products(self.features, theta)
        reached = self._objective(z, theta)
        for _ in range(_STEPS):
            p = expit(z)
            errors = stack.counts * p - stack.positives
            slope = _products(stack.features.transpose(0, 2, 1), errors)
            slope += _products(stack.precision, theta - stack.mean)
            slope = np.where(free, slope, 0.0)
            solved = np.linalg.solve(stack._hessian(p, free), slope[:, :, None])
            step = np.asarray(solved[:, :, 0], dtype=np.float64)
            decrease = (step * slope).sum(axis=1)
            goes_on = decrease >= _DECREASE
            length, z, reached = stack._descended(
                theta, step, np.where(goes_on, decrease, -np.inf), reached
            )
            theta = theta - length[:, None] * step
            best[numbers] = theta
            goes_on &= length > 0.0
            if not goes_on.any():
                break
            if not goes_on.all():
                stack = stack.take(goes_on)
                numbers, theta, free, z, reached = (
                    array[goes_on] for array in (numbers, theta, free, z, reached)
                )
        return best

    def _descended(
        self, theta: FloatArray, step: FloatArray, decrease: FloatArray, before: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Which share of each step to take, and the logits and the objective after it; 0 if rounding
        hides any decrease.
        """
        length = np.ones(len(theta))
        for _ in range(_HALVINGS):
            there = theta - length[:, None] * step
            z = _products(self.features, there)
            found = self._objective(z, there)
            too_far = ~(found <= before - 1e-4 * length * decrease)
            if not too_far.any():
                return length, z, found
            length[too_far] /= 2.0
        length[too_far] = 0.0
        return length, z, found

    def _left_out_loss(self, theta: FloatArray, free: BoolArray) -> FloatArray:
        """The log loss of rows, each predicted as if it had not been fitted.

        Without a row, one Newton step from theta moves its logit by v (y - p) / (1 - v p (1 - p)),
        where v is its feature vector in the norm of the inverse Hessian.
        """
        z = _products(self.features, theta)
        p = expit(z)
        spread = p * (1.0 - p)
        used = np.where(free[:, None, :], self.features, 0.0)
        inverse = np.linalg.inv(self._hessian(p, free))
        v = ((_in_parts(used) @ inverse[:, None]).reshape(used.shape) * used).sum(axis=2)
        v = np.minimum(v, _MOST_LEVERAGE / np.maximum(spread, 1e-12))
        push = v / (1.0 - v * spread)
        as_positive = np.logaddexp(0.0, push * (1.0 - p) - z)
        as_negative = np.logaddexp(0.0, push * p + z)
        negatives = self.counts - self.positives
        return np.asarray((self.positives * as_positive + negatives * as_negative).sum(axis=1))


def _products(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """The product of each matrix with its vector."""
    return np.asarray(np.einsum("pij,pj->pi", matrices, vectors))


def _in_parts(cells: FloatArray) -> FloatArray:
    """The cells of each problem in parts, whose matrix products are so small that BLAS computes each
    in one thread: threads would change the last digits, and wait for each other on a busy machine.
    """
    n_problems, n_cells, width = cells.shape
    return cells.reshape(n_problems, -1, math.gcd(n_cells, _ONE_THREAD), width)


# From scores to z


def _logits(scores: FloatArray) -> Scale:
    """The logit of a probability; an end that rows lie on is half-way to the nearest other score."""
    inside = scores[(scores > 0.0) & (scores < 1.0)]
    first, last = inside[[0, -1]] if inside.size else (0.5, 0.5)
    has_0 = scores[0] == 0.0
    has_1 = scores[-1] == 1.0
    at_0, at_first = logit([max(first / 2.0, _SMALLEST), first])
    at_last, at_1 = logit([last, min((1.0 + last) / 2.0, _LARGEST)])

    def scale(scores: FloatArray) -> FloatArray:
        found = logit(np.clip(scores, _SMALLEST, _LARGEST))
        if has_0:
            share = np.clip(scores / first, 0.0, 1.0)
            found = np.where(share < 1.0, at_0 + share * (at_first - at_0), found)
        if has_1:
            share = np.clip((scores - last) / (1.0 - last), 0.0, 1.0)
            found = np.where(share > 0.0, at_last + share * (at_1 - at_last), found)
        return np.asarray(found)

    return scale


def _standard_scores(rows: ScoreCounts) -> Scale:
    """The distance from the median, in halves of the distance between the quartiles."""
    size = 8.0 * float(np.abs(rows.scores).max()) or 1.0  # differences of scores may overflow
    small = rows.scores / size
    quarter, median, three = np.interp([0.25, 0.5, 0.75], _mid_ranks(rows), small)
    unit = (three - quarter) / 2.0 or (small[-1] - small[0]) / 2.0 or 1.0
    return lambda scores: np.clip((scores / size - median) / unit, -_FARTHEST, _FARTHEST)


def _compressed(z: FloatArray, n_rows: float) -> FloatArray:
    """z, or its logarithm where it is more extreme than so many rows can verify."""
    most = 1.0 + np.log(max(n_rows, 1.0))
    beyond = np.maximum(np.abs(z) - most, 0.0)
    return np.where(beyond > 0.0, np.sign(z) * (most + np.log1p(beyond)), z)


def _capped(z: FloatArray, n_rows: float) -> FloatArray:
    """Logits that increase to a bound, one beyond what so many rows of one class would give."""
    most = np.log(2.0 * n_rows + 2.0)
    beyond = np.maximum(np.abs(z) - most, 0.0)
    return np.where(beyond > 0.0, np.sign(z) * (most + 1.0 - 1.0 / (1.0 + beyond)), z)


def _mid_ranks(rows: ScoreCounts) -> FloatArray:
    """The share of rows below each score, counting half of those at it."""
    return np.asarray((np.cumsum(rows.counts) - rows.counts / 2.0) / rows.n_rows)


# Features


def _line(z: FloatArray) -> FloatArray:
    return np.column_stack([np.ones_like(z), z])


def _logarithms(z: FloatArray) -> FloatArray:
    """The logarithm of the probability, and minus that of its complement."""
    return np.column_stack([np.ones_like(z), -np.logaddexp(0.0, -z), np.logaddexp(0.0, z)])


def _straight(
    features: Features, mean: list[float], precision: list[float], least_slope: float = 0.0
) -> Form:
    """A form that is linear in its features, with independent priors."""
    return Form(
        features,
        np.array(mean),
        np.diag(precision),
        lambda coefficients: lambda z: features(z) @ coefficients,
        least_slope,
    )


def _spline(scale: Scale, nodes: FloatArray, line: FloatArray, spread: float, trust: float) -> Form:
    """A spline whose slope is a random walk from node to node, by about `spread` times that of the
    line from the first to the last; `trust` is the precision of the mean slope.
    """
    intercept, slope = line
    k = nodes.size
    steps = np.diff(np.eye(k), axis=0)
    precision = np.zeros((k + 1, k + 1))
    precision[0, 0] = 0.1
    precision[1:, 1:] = steps.T @ steps * (k / (spread * slope) ** 2) + trust / k**2

    def logits(coefficients: FloatArray) -> Scale:
        curve = _quadratics(nodes, coefficients)
        return lambda z: curve(scale(z))

    return Form(
        lambda z: _integrated_hats(scale(z), nodes),
        np.append(intercept + slope * nodes[0], np.full(k, slope)),
        precision,
        logits,
    )


def _integrated_hats(x: FloatArray, nodes: FloatArray) -> FloatArray:
    """Features of a curve, the coefficients of which are its value at the first node and its slopes
    at all nodes. The slope is linear between nodes, and constant beyond them.
    """
    width = np.diff(nodes)
    share = np.clip((x[:, None] - nodes[:-1]) / width, 0.0, 1.0)
    rising = width * share**2 / 2.0
    found = np.zeros((x.size, nodes.size + 1))
    found[:, 0] = 1.0
    found[:, 1] = np.minimum(x - nodes[0], 0.0)
    found[:, -1] = np.maximum(x - nodes[-1], 0.0)
    found[:, 1:-1] += width * share - rising
    found[:, 2:] += rising
    return found


def _quadratics(nodes: FloatArray, coefficients: FloatArray) -> Scale:
    """The curve of `_integrated_hats`, piece by piece: each x is in one piece, so it takes much less
    work than all features of it.
    """
    slope = coefficients[1:]
    width = np.diff(nodes)
    rise = width * (slope[:-1] + slope[1:]) / 2.0
    value = coefficients[0] + np.append(0.0, np.cumsum(rise))
    bend = np.diff(slope) / (2.0 * width)

    def curve(x: FloatArray) -> FloatArray:
        inside = np.clip(x, nodes[0], nodes[-1])
        piece = np.clip(np.searchsorted(nodes, inside, side="right") - 1, 0, width.size - 1)
        along = inside - nodes[piece]
        found = value[piece] + along * (slope[piece] + along * bend[piece])
        beyond = np.minimum(x - nodes[0], 0.0) * slope[0]
        return np.asarray(found + beyond + np.maximum(x - nodes[-1], 0.0) * slope[-1])

    return curve


def _logits_of_ranks(z: FloatArray, rows: ScoreCounts) -> Scale | None:
    """The logit of the rank of z among the rows, by a monotone cubic through a few quantiles and
    linear beyond them; None if too few rows differ.
    """
    from scipy.interpolate import PchipInterpolator

    nearest = 0.5 / max(rows.n_rows, 1.0)
    share = np.clip(_RANKS, nearest, 1.0 - nearest)
    quantiles = np.interp(share, _mid_ranks(rows), z)
    apart = np.diff(quantiles) > _APART * max(1.0, quantiles[-1] - quantiles[0])
    which = np.append(0, np.cumsum(apart))
    if which[-1] + 1 < _FEWEST_NODES:
        return None
    at, rank = (np.bincount(which, kind) / np.bincount(which) for kind in (quantiles, share))
    cubic = PchipInterpolator(at, logit(rank))
    low, high = at[[0, -1]]

    def scale(z: FloatArray) -> FloatArray:
        inside = np.clip(z, low, high)
        return np.asarray(cubic(inside) + (z - inside) / (high - low))

    return scale
