"""Binomial tail probabilities and their inverse, accurate for up to 10^15 trials and tails down to
1e-300.

``scipy.special.betaincinv`` loses digits for large counts and small tails, erring in either
direction. Here a tail is the product of two accurate factors: the probability of the boundary
count, in its deviance form, and the ratio of the tail to that probability, an integral of a smooth
log-concave function.

A probability p is carried as the pair (p, 1 - p), or as ``-log p``, from which both follow to full
relative precision. A limit of 1e-300 and one of 1 - 1e-300 are then resolved equally well.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval

_SERIES_TERMS = 9
LARGEST = 709.0
"""The largest -log p considered: p is then subnormal, while 1/p is still finite."""

_DEVIANCE_STEPS = 50
_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)
_NODES = 40
_CUTOFF = 36.0
_CHUNK = 2048
_MAX_ITERATIONS = 60
_CONVERGED = 1e-5
_OUTWARD = 1e-13
_TINY = float(np.finfo(np.float64).tiny)
_LOG_HALF = float(np.log(0.5))

# log(n!) - log(sqrt(2 pi n) (n/e)^n) for n = 1 .. 15, where the asymptotic series is not yet exact
# to rounding; the 0 for n = 0 makes the remainders of P(X = n) cancel.
_STIRLING_TABLE = np.array(
    [
        0.0,
        0.08106146679532725821967026,
        0.04134069595540929409382208,
        0.02767792568499833914878929,
        0.02079067210376509311152277,
        0.01664469118982119216319487,
        0.01387612882307074799874573,
        0.01189670994589177009505572,
        0.01041126526197209649747857,
        0.009255462182712732917728637,
        0.008330563433362871256469318,
        0.007573675487951840794972024,
        0.006942840107209529865664153,
        0.006408994188004207068439631,
        0.005951370112758847735624416,
        0.005554733551962801371038690,
    ]
)


def split(neg_log_p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn ``-log p`` into p and 1 - p, each to full relative precision."""
    return np.exp(-neg_log_p), -np.expm1(-neg_log_p)


def mirror(neg_log_p: FloatArray) -> FloatArray:
    """Turn ``-log p`` into ``-log(1 - p)`` to full relative precision."""
    p, q = split(neg_log_p)
    return np.where(
        p < 0.5, -np.log1p(-np.minimum(p, 0.5)), -np.log(np.maximum(q, np.finfo(float).tiny))
    )


def neg_log_ratio(x: FloatArray, n: FloatArray) -> FloatArray:
    """Return ``-log(x / n)`` for 0 < x <= n to full relative precision."""
    return np.where(2.0 * x < n, np.log(n / x), -np.log1p(-np.minimum((n - x) / n, 0.5)))


def deviance_part(x: FloatArray, mean: FloatArray) -> FloatArray:
    """Return ``x log(x / mean) + mean - x`` for x >= 0 and mean > 0.

    Notes
    -----
    With v = (x - mean) / (x + mean) the value is (x - mean) v + 2 x (v^3/3 + v^5/5 + ...), all of
    whose leading terms are small when x is close to the mean, where the textbook form loses every
    digit (Loader 2000, "Fast and accurate computation of binomial probabilities").
    """
    difference = x - mean
    v = difference / (x + mean)
    near = np.abs(v) < 0.1
    v_near = np.where(near, v, 0.0)
    square = v_near * v_near
    tail = np.zeros_like(square)
    for j in range(_SERIES_TERMS, 0, -1):
        tail = (tail + 1.0 / (2 * j + 1)) * square
    series: FloatArray = v_near * (difference + 2.0 * x * tail)
    if near.all():
        return series
    ratio = np.where(near | (x == 0.0), 1.0, x / mean)
    return np.where(near, series, x * np.log(ratio) - difference)


def deviance(x: FloatArray, n: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    """Return ``n kl(x / n, p)`` for 0 <= x <= n, p in (0, 1) and q = 1 - p."""
    parts = deviance_part(np.array((x, n - x)), np.array((n * p, n * q)))
    return np.asarray(parts[0] + parts[1])


def surplus(x: FloatArray, n: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    """Return ``x - n p``, computed from whichever of p and q = 1 - p is represented more finely."""
    return np.where(p < 0.5, x - n * p, n * q - (n - x))


def invert_deviance(
    x: FloatArray, n: FloatArray, bound: FloatArray, last_step: float = 1e-8
) -> FloatArray:
    """Return ``-log p`` for the p <= x/n at which ``n kl(x / n, p) = bound``, for 0 < x < n and
    bound >= 0.01.

    Notes
    -----
    As a function of -log p the square root of the deviance is increasing and concave beyond x/n,
    and the deviance lies below its parabola there; so Newton's iteration on the root, started from
    the parabola, climbs monotonically to the solution. It ends once a step is below `last_step` of
    the distance travelled; the error left is about its square.
    """
    origin = neg_log_ratio(x, n)
    solution = np.minimum(origin + np.sqrt(2.0 * bound * ((n - x) / n) / x), LARGEST)
    target = np.sqrt(bound)
    moving = np.ones(solution.shape, dtype=np.bool_)
    for _ in range(_DEVIANCE_STEPS):
        p, q = split(solution)
        value = np.maximum(deviance(x, n, p, q), 0.0)
        slope = surplus(x, n, p, q) / q
        root = np.sqrt(value)
        moving &= slope > 0.0
        step = np.where(moving, 2.0 * root * (target - root) / np.where(moving, slope, 1.0), 0.0)
        solution = np.minimum(solution + step, LARGEST)
        moving &= solution < LARGEST
        moving &= np.abs(step) > np.maximum(last_step * (solution - origin), _ROUNDING * solution)
        if not moving.any():
            break
    return solution


@cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0


def stirling_error(n: FloatArray) -> FloatArray:
    """Return log(n!) minus Stirling's formula, for whole n >= 1."""
    inverse = 1.0 / np.maximum(n, 16.0)
    square = inverse * inverse
    series = inverse * (
        1 / 12
        - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square * (1 / 1188))))
    )
    return np.where(n < 16.0, _STIRLING_TABLE[np.minimum(n, 15.0).astype(np.intp)], series)


def log_pmf(k: FloatArray, n: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    """Return log P(X = k) for X ~ Binomial(n, p), 1 <= k <= n and q = 1 - p (Loader's saddle-point
    form).
    """
    rest = n - k
    of_n, of_k, of_rest = stirling_error(np.array((n, k, rest)))
    spread = np.where(rest > 0.0, 2.0 * np.pi * k * (rest / n), 1.0)
    return np.asarray(of_n - of_k - of_rest - deviance(k, n, p, q) - 0.5 * np.log(spread))


def tail_ratio(k: FloatArray, n: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    """Return P(X >= k) / P(X = k) for X ~ Binomial(n, p), 1 <= k <= n and q = 1 - p.

    Notes
    -----
    The tail is an incomplete beta integral; with u = p exp(-v/k) it becomes the integral over v > 0
    of exp(g(v)),

        g(v) = -v + (n - k) log(1 + (p/q) (1 - exp(-v/k))),

    which is concave. Newton's iteration finds where g falls to -36, from the outside once it has
    overshot, and one Gauss-Legendre rule up to there is accurate to rounding whether the integrand
    resembles an exponential (far tail) or half a Gaussian (near the mean).
    """
    result = np.empty_like(k)
    for start in range(0, k.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        result[part] = _tail_ratio(k[part], n[part], p[part], q[part])
    return result


def _tail_ratio(k: FloatArray, n: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    rest = n - k
    odds = p / q
    pull = rest * odds / k
    lean = 1.0 - pull
    curvature = pull / (q * k)
    end = 2.0 * _CUTOFF / (lean + np.sqrt(lean * lean + 2.0 * _CUTOFF * curvature))
    for _ in range(3):
        decay = -np.expm1(-end / k)
        growth = 1.0 + odds * decay
        value = -end + rest * np.log1p(odds * decay)
        slope = -1.0 + rest * odds * (1.0 - decay) / (k * growth)
        end = end - (value + _CUTOFF) / slope
    nodes, weights = _quadrature()
    # One row per node, so each region's sum is added in the same order, bit for bit, whatever the
    # other regions are.
    v = nodes[:, None] * end
    exponent = np.expm1(-v / k)
    exponent *= -odds
    np.log1p(exponent, out=exponent)
    exponent *= rest
    exponent -= v
    np.exp(exponent, out=exponent)
    exponent *= weights[:, None]
    return np.asarray(end * exponent.sum(axis=0))


def log_tail(
    k: FloatArray, n: FloatArray, p: FloatArray, q: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return log P(X >= k), X ~ Binomial(n, p), and P(X >= k) / P(X = k).

    1 <= k <= n, p in (0, 1) and q = 1 - p.

    The derivative of the first with respect to log p is k over the second. The lower tail is the
    mirror image: P(X <= j) is ``log_tail(n - j, n, q, p)``. Meant for tails that are not close to
    1.
    """
    ratio = tail_ratio(k, n, p, q)
    return log_pmf(k, n, p, q) + np.log(ratio), ratio


def solve_tail(k: FloatArray, n: FloatArray, log_level: FloatArray) -> FloatArray:
    """Return -log p for the p at which P(X >= k) = exp(log_level), X ~ Binomial(n, p).

    1 <= k <= n, log_level < 0.

    Notes
    -----
    For a level up to 1/2 the solution lies below k/n, and there the log tail is concave in log p,
    with derivative k / R where R is `tail_ratio`. Newton's iteration is therefore safe from
    anywhere, and Halley's third-order step costs nothing more, because R' follows from R. A level
    above 1/2 is the mirror image of one below.
    """
    k, n, log_level = np.broadcast_arrays(k, n, log_level)
    upside_down = log_level > _LOG_HALF
    flipped = np.where(
        upside_down, np.log(-np.expm1(np.where(upside_down, log_level, -1.0))), log_level
    )
    solution = _solve_small_tail(np.where(upside_down, n - k + 1.0, k), n, flipped)
    return np.where(upside_down, mirror(solution), solution) if upside_down.any() else solution


def _solve_small_tail(k: FloatArray, n: FloatArray, log_level: FloatArray) -> FloatArray:
    solution = -log_level / n
    single = (k == 1.0) & (n > 1.0)
    if single.any():
        rate = -np.log1p(-np.exp(log_level[single])) / n[single]
        # Where the rate may underflow, its logarithm does not.
        faint = log_level[single] < -600.0
        log_rate = np.where(
            faint, log_level[single] - np.log(n[single]), np.log(np.where(faint, 1.0, rate))
        )
        solution[single] = -(log_rate + np.log(special.exprel(-rate)))
    active = np.flatnonzero((k > 1.0) & (k < n))
    if active.size == 0:
        return solution
    k = k[active]
    n = n[active]
    log_level = log_level[active]
    normal = special.ndtri_exp(log_level)
    roughly = np.maximum(normal * normal / 2.0, 1e-2)
    current = invert_deviance(k - 0.5, n, roughly, last_step=1e-2)
    for _ in range(_MAX_ITERATIONS):
        p, q = split(current)
        value, ratio = log_tail(k, n, p, q)
        miss = value - log_level
        slope = k / ratio
        # The second derivative over twice the first, both with respect to -log p.
        bend = 0.5 * (slope - surplus(k, n, p, q) / q)
        halley = np.abs(miss) < 1.0
        step = miss / (slope + np.where(halley, miss * bend, 0.0))
        current = np.clip(current + step, 0.5 * current, LARGEST)
        done = np.abs(miss) < _CONVERGED
        solution[active[done]] = current[done]
        if done.all():
            break
        keep = ~done
        active = active[keep]
        k = k[keep]
        n = n[keep]
        log_level = log_level[keep]
        current = current[keep]
        solution[active] = current
    return solution


def outward(neg_log_p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn ``-log p`` into a lower limit for p and an upper limit for 1 - p, both rounded away from
    the truth.

    The shift of a relative 1e-13 in -log p is several times the error of `solve_tail`, and far
    below anything a user could notice; a value too small for a normal double becomes 0.
    """
    p, q = split(neg_log_p * (1.0 + _OUTWARD))
    lower = np.where(p < _TINY, 0.0, np.nextafter(p, 0.0))
    return lower, np.nextafter(q, 1.0)


def both_limits(
    counts: IntArray,
    positives: IntArray,
    solve: Callable[[FloatArray, FloatArray], FloatArray],
    least: int = 1,
) -> Interval:
    """Return the limits of every region from ``solve(k, n)``, which gives -log of the lower limit
    for k positives in n.

    The upper limit is the mirror image: that of n - k. With fewer than `least` positives the lower
    limit is 0.
    """
    n = np.tile(counts, 2).astype(np.float64)
    seen = np.concatenate([positives, counts - positives])
    some = seen >= least
    lower = np.zeros(n.size)
    upper = np.ones(n.size)
    if some.any():  # both sides in one call: twelve limits cost hardly more than six
        lower[some], upper[some] = outward(solve(seen[some].astype(np.float64), n[some]))
    return Interval(lower[: counts.size], upper[counts.size :])


def solve_deviance(k: FloatArray, n: FloatArray, bound: ArrayLike) -> FloatArray:
    """Return -log q for the smallest q with ``n kl(k / n, q) <= bound``; 1 <= k <= n."""
    bound = np.broadcast_to(np.asarray(bound, dtype=np.float64), k.shape)
    solution = bound / n
    inner = k < n
    solution[inner] = invert_deviance(k[inner], n[inner], bound[inner])
    return solution


def lower_limit(k: ArrayLike, n: ArrayLike, tail: ArrayLike) -> FloatArray:
    """One-sided exact (Clopper-Pearson) lower limit for the mean, from k positives among n.

    The p at which P(X >= k) = tail for X ~ Binomial(n, p): the Beta(k, n - k + 1) quantile at
    `tail`. The limit is 0 where k = 0, and is rounded outwards.

    Parameters
    ----------
    k, n : array-like of int
        Positives and trials, 0 <= k <= n <= 10^15; broadcast against each other and `tail`.
    tail : array-like of float in (0, 1)
        The probability with which the limit may exceed the mean.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> print(lower_limit([0, 5, 10], 10, 0.025).round(4))
    [0.     0.1871 0.6915]
    """
    positives, trials, log_level = _checked(k, n, tail)
    return _lower(positives, trials, log_level)[0]


def upper_limit(k: ArrayLike, n: ArrayLike, tail: ArrayLike) -> FloatArray:
    """One-sided exact (Clopper-Pearson) upper limit for the mean, from k positives among n.

    The p at which P(X <= k) = tail for X ~ Binomial(n, p): the Beta(k + 1, n - k) quantile at 1 -
    `tail`. The limit is 1 where k = n, and is rounded outwards.

    Parameters
    ----------
    k, n : array-like of int
        Positives and trials, 0 <= k <= n <= 10^15; broadcast against each other and `tail`.
    tail : array-like of float in (0, 1)
        The probability with which the mean may exceed the limit.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> print(upper_limit([0, 5, 10], 10, 0.025).round(4))
    [0.3085 0.8129 1.    ]
    """
    positives, trials, log_level = _checked(k, n, tail)
    return _lower(trials - positives, trials, log_level)[1]


def _checked(
    k: ArrayLike, n: ArrayLike, tail: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    positives, trials, level = np.broadcast_arrays(
        np.asarray(k, dtype=np.float64),
        np.asarray(n, dtype=np.float64),
        np.asarray(tail, dtype=np.float64),
    )
    if not np.all((level > 0.0) & (level < 1.0)):
        raise InvalidValueError("tail", "lie strictly between 0 and 1", got=repr(tail))
    if not np.all((positives >= 0.0) & (positives <= trials)):
        raise InvalidValueError("k", "satisfy 0 <= k <= n", got=f"k={k!r}, n={n!r}")
    return positives, trials, np.log(level)


def _lower(k: FloatArray, n: FloatArray, log_level: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a lower limit for the mean of k in n, and the mirrored upper limit for n - k in n."""
    lower = np.zeros(k.shape)
    upper = np.ones(k.shape)
    some = k > 0.0
    if some.any():
        lower[some], upper[some] = outward(solve_distinct(k[some], n[some], log_level[some]))
    return lower, upper


def solve_distinct(k: FloatArray, n: FloatArray, log_level: FloatArray) -> FloatArray:
    """Solve `solve_tail` once per distinct triple (k, n, log_level): many small regions share few
    distinct triples.
    """
    numbers = np.stack(np.broadcast_arrays(k, n, log_level))
    order = np.lexsort(numbers)
    numbers = numbers[:, order]
    new = np.append(True, (numbers[:, 1:] != numbers[:, :-1]).any(axis=0))
    place = np.empty_like(order)
    place[order] = np.cumsum(new) - 1
    return solve_tail(*numbers[:, new])[place]
