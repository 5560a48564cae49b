"""A mean of seven increasing curves, weighted by how well each would predict rows left out of it.

`fit_blend` is a plain function of counts of rows by score. The counts need not be whole, so it also
fits half-samples, pilot rows and weighted rows. It draws nothing at random and uses nothing but its
arguments. The curve never falls: for rates that do (`is_falling`), exchange the labels (`mirrored`),
and take one minus the curve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.special import expit, logit

from calibrant._typing import BoolArray, FloatArray
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


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A curve on the logit scale, its coefficients, and the log loss over all rows, each left out of
    the fit.
    """

    logits: Scale
    coefficients: FloatArray
    loss: float


def fit_blend(rows: ScoreCounts, *, are_probabilities: bool) -> BlendCurve:
    """Fit the blend to counts of rows.

    Parameters
    ----------
    rows : ScoreCounts
        Rows and positives at increasing scores. Weights of rows must be scaled beforehand, so that
        they add up to the number of rows that they are worth: see `kish_scaled`.
    are_probabilities : bool
        Whether the scores are probabilities in [0, 1], rather than any real numbers. Where a
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
    used = rows.counts > _NEGLIGIBLE * rows.n_rows
    # as floats, so that no step of a fit converts them again
    counts, positives = (
        of_rows[used].astype(np.float64) for of_rows in (rows.counts, rows.positives)
    )
    rows = ScoreCounts(rows.scores[used], counts, positives)
    rows = rows.thinned(_MOST_CELLS)
    scale = _logits(rows.scores) if are_probabilities else _standard_scores(rows)
    own = scale(rows.scores)
    z = _compressed(own, rows.n_rows)
    trust = float(are_probabilities)
    line = _member(_line, z, rows, [0.0, trust], np.diag([0.1, 2.0]))
    line.coefficients[1] = max(line.coefficients[1], _LEAST_SLOPE)
    members = [line]
    if are_probabilities:
        members.append(_member(_line, z, rows, [0.0, 1.0], np.diag([1.0, 20.0])))
        members.append(_member(_logarithms, z, rows, [0.0, 1.0, 1.0], np.diag([0.1, 2.0, 2.0])))
    members += _splines(z, rows, line)
    losses = [member.loss for member in members]
    losses.append(_loss(own, rows) - _TRUST if are_probabilities else np.inf)
    weights = np.exp((min(losses) - np.array(losses)) / 2.0)
    reach = (float(rows.scores[0]), float(rows.scores[-1]))
    return BlendCurve(scale, reach, rows.n_rows, tuple(members), weights / weights.sum())


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


def _member(
    features: Features,
    z: FloatArray,
    rows: ScoreCounts,
    mean: list[float] | FloatArray,
    precision: FloatArray,
) -> Member:
    coefficients, loss = fit_rising(features(z), rows, np.asarray(mean), precision)
    return Member(lambda z: features(z) @ coefficients, coefficients, loss)


def _loss(z: FloatArray, rows: ScoreCounts) -> float:
    return float((rows.counts * np.logaddexp(0.0, z) - rows.positives * z).sum())


# The fit of one member


def fit_rising(
    features: FloatArray, rows: ScoreCounts, mean: FloatArray, precision: FloatArray
) -> tuple[FloatArray, float]:
    """Fit logit p = features @ theta, with theta >= 0 in all but the first entry.

    Minimises the log loss over all rows plus (theta - mean)' precision (theta - mean) / 2. If
    coefficients turn negative they become 0 for good, and the others are fitted again.

    Parameters
    ----------
    features : float array of shape (n_cells, k)
        The first column is 1.
    rows : ScoreCounts
        Rows and positives in each cell; they need not be whole numbers.
    mean, precision : float arrays of shapes (k,) and (k, k)
        The prior of theta. It decides where the rows say nothing, so separable rows, one class and
        one score all have a finite fit.

    Returns
    -------
    theta : float array of shape (k,)
        The coefficients.
    loss : float
        The log loss over all rows, each approximately left out of the fit.
    """
    free = np.ones(mean.size, dtype=bool)
    theta = mean
    while True:
        theta = _newton(features, rows, mean, precision, np.where(free, theta, 0.0), free)
        negative = free & (theta < 0.0)
        negative[0] = False
        if not negative.any():
            return theta, _left_out_loss(features, rows, precision, theta, free)
        free &= ~negative


def _newton(
    features: FloatArray,
    rows: ScoreCounts,
    mean: FloatArray,
    precision: FloatArray,
    theta: FloatArray,
    free: BoolArray,
) -> FloatArray:
    """The best free coefficients; the others stay 0."""
    used, prior = _part(features, precision, free)

    def objective(z: FloatArray, theta: FloatArray) -> float:
        away = theta - mean
        loss = rows.counts @ np.logaddexp(0.0, z) - rows.positives @ z
        return float(loss + away @ precision @ away / 2)

    z = features @ theta
    reached = objective(z, theta)
    for _ in range(_STEPS):
        p = expit(z)
        expected = rows.counts * p
        slope = used.T @ (expected - rows.positives)
        slope += (precision @ (theta - mean))[free]
        step = np.zeros_like(theta)
        step[free] = np.linalg.solve(_hessian(used, expected * (1.0 - p), prior), slope)
        decrease = float(step[free] @ slope)
        if decrease < _DECREASE:
            return theta - step
        for _ in range(_HALVINGS):
            z = features @ (theta - step)
            found = objective(z, theta - step)
            if found <= reached - 1e-4 * decrease:
                break
            step /= 2.0
            decrease /= 2.0
        else:
            return theta  # rounding hides any further decrease
        theta = theta - step
        reached = found
    return theta


def _part(
    features: FloatArray, precision: FloatArray, free: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """The features and the prior precision of the free coefficients."""
    ridge = _RIDGE * np.eye(int(free.sum()))
    if free.all():
        return features, precision + ridge
    return features[:, free], precision[np.ix_(free, free)] + ridge


def _hessian(used: FloatArray, curvature: FloatArray, prior: FloatArray) -> FloatArray:
    """`curvature` is p (1 - p), times the rows, in each cell."""
    return np.asarray((used * curvature[:, None]).T @ used + prior)


def _left_out_loss(
    features: FloatArray,
    rows: ScoreCounts,
    precision: FloatArray,
    theta: FloatArray,
    free: BoolArray,
) -> float:
    """The log loss of rows, each predicted as if it had not been fitted.

    Without a row, one Newton step from theta moves its logit by v (y - p) / (1 - v p (1 - p)),
    where v is its feature vector in the norm of the inverse Hessian.
    """
    z = features @ theta
    p = expit(z)
    spread = p * (1.0 - p)
    used, prior = _part(features, precision, free)
    inverse = np.linalg.inv(_hessian(used, rows.counts * spread, prior))
    v = ((used @ inverse) * used).sum(axis=1)
    v = np.minimum(v, _MOST_LEVERAGE / np.maximum(spread, 1e-12))
    push = v / (1.0 - v * spread)
    as_positive = np.logaddexp(0.0, push * (1.0 - p) - z)
    as_negative = np.logaddexp(0.0, push * p + z)
    negatives = rows.counts - rows.positives
    return float((rows.positives * as_positive + negatives * as_negative).sum())


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


def _splines(z: FloatArray, rows: ScoreCounts, line: Member) -> list[Member]:
    """Splines in z and in the logit of the rank."""
    found = []
    wanted = _NODES[int(np.searchsorted(_ROWS, rows.n_rows, side="right"))]
    nodes = _nodes(z, rows, max(wanted, _NODES[1]))
    if nodes.size >= _FEWEST_NODES:
        found.append(_spline(lambda z: z, nodes, z, rows, line.coefficients, 2.0, 0.5))
    ranks = _logits_of_ranks(z, rows)
    if ranks is None:
        return found
    x = ranks(z)
    nodes = _nodes(x, rows, wanted)
    if nodes.size < _FEWEST_NODES:
        return found
    level = logit((rows.n_positive + 0.5) / (rows.n_rows + 1.0))
    straight, _ = fit_rising(_line(x), rows, np.array([level, 0.5]), np.diag([0.1, 0.1]))
    straight[1] = max(straight[1], 0.05)
    stiff, flexible = (
        _spline(ranks, nodes, z, rows, straight, spread, 0.1) for spread in (0.5, 2.0)
    )
    return [*found, stiff, flexible]


def _spline(
    scale: Scale,
    nodes: FloatArray,
    z: FloatArray,
    rows: ScoreCounts,
    line: FloatArray,
    spread: float,
    trust: float,
) -> Member:
    """A spline whose slope is a random walk from node to node, by about `spread` times that of the
    line from the first to the last; `trust` is the precision of the mean slope.
    """
    intercept, slope = line
    k = nodes.size
    steps = np.diff(np.eye(k), axis=0)
    precision = np.zeros((k + 1, k + 1))
    precision[0, 0] = 0.1
    precision[1:, 1:] = steps.T @ steps * (k / (spread * slope) ** 2) + trust / k**2
    mean = np.append(intercept + slope * nodes[0], np.full(k, slope))
    found = _member(lambda z: _integrated_hats(scale(z), nodes), z, rows, mean, precision)
    quadratic = _quadratics(nodes, found.coefficients)
    return replace(found, logits=lambda z: quadratic(scale(z)))


def _nodes(x: FloatArray, rows: ScoreCounts, n_nodes: int) -> FloatArray:
    """Different quantiles of x, in the middle of equal shares of the rows."""
    return np.unique(np.interp((np.arange(n_nodes) + 0.5) / n_nodes, _mid_ranks(rows), x))


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
