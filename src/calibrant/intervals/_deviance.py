"""The binomial deviance without cancellation, and its inverse.

A probability p is carried as the pair (p, 1 - p), or as ``-log p``, from which both follow to full relative precision;
a limit of 1e-300 and one of 1 - 1e-300 are then equally well resolved.
"""

import numpy as np

from calibrant._typing import FloatArray

_SERIES_TERMS = 9
_MAX_ITERATIONS = 100


def split(neg_log_p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn ``-log p`` into p and 1 - p, each to full relative precision."""
    return np.exp(-neg_log_p), -np.expm1(-neg_log_p)


def mirror(neg_log_p: FloatArray) -> FloatArray:
    """Turn ``-log p`` into ``-log(1 - p)`` to full relative precision."""
    p, q = split(neg_log_p)
    return np.where(p < 0.5, -np.log1p(-np.minimum(p, 0.5)), -np.log(np.maximum(q, np.finfo(float).tiny)))


def deviance_part(x: FloatArray, mean: FloatArray) -> FloatArray:
    """Return ``x log(x / mean) + mean - x`` for x >= 0 and mean > 0.

    Notes
    -----
    With v = (x - mean) / (x + mean) the value is (x - mean) v + 2 x (v^3/3 + v^5/5 + ...), all of whose leading terms
    are small when x is close to the mean, where the textbook form loses every digit (Loader 2000, "Fast and accurate
    computation of binomial probabilities").
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
    return deviance_part(x, n * p) + deviance_part(n - x, n * q)


def invert_deviance(x: FloatArray, n: FloatArray, bound: FloatArray) -> FloatArray:
    """Return ``-log p`` for the p <= x/n at which ``n kl(x / n, p) = bound``, for 0 < x < n and bound >= 0.

    Notes
    -----
    As a function of -log p the square root of the deviance is increasing and concave beyond x/n, and the deviance lies
    below its parabola there; so Newton's iteration on the root, started from the parabola, climbs monotonically to the
    solution.
    """
    origin = -np.log1p(-(n - x) / n)
    near_zero = x / n < 0.5
    origin = np.where(near_zero, np.log(n / x), origin)
    width = np.sqrt(2.0 * bound * ((n - x) / n) / x)
    solution = origin + width
    target = np.sqrt(bound)
    for _ in range(_MAX_ITERATIONS):
        p, q = split(solution)
        value = np.maximum(deviance(x, n, p, q), 0.0)
        slope = (x - n * p) / q
        root = np.sqrt(value)
        moving = (root < target) & (slope > 0.0)
        step = np.where(moving, 2.0 * root * (target - root) / np.where(moving, slope, 1.0), 0.0)
        solution = solution + step
        if np.all(step <= 4e-16 * solution):
            break
    return solution
