"""The binomial deviance without cancellation, and its inverse.

A probability p is carried as the pair (p, 1 - p), or as ``-log p``, from which both follow to full
relative precision. A limit of 1e-300 and one of 1 - 1e-300 are then resolved equally well.
"""

import numpy as np

from calibrant._typing import FloatArray

_SERIES_TERMS = 9
LARGEST = 709.0
"""The largest -log p considered: p is then subnormal, while 1/p is still finite."""

_MAX_ITERATIONS = 50
_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)


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
    for _ in range(_MAX_ITERATIONS):
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
