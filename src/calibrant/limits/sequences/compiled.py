"""Paths of limits, compiled: loops over labels that numpy cannot vectorise.

Imported only if numba is used.
"""

import math

import numpy as np
from numba import njit

from calibrant._typing import CodeArray, FloatArray, IntArray

_MAX_ITERATIONS = 100


@njit(nogil=True, cache=True)
def _level(q: float, k: float, n: float) -> float:
    return k * math.log(q) + (n - k) * math.log1p(-q)


@njit(nogil=True, cache=True)
def _root(q: float, k: float, n: float, target: float) -> float:
    """The q below k/n at which k log q + (n - k) log(1 - q) = target, by Newton's iteration from an
    initial guess q.

    The function is concave and increasing there, so every step after the first approaches the root
    from below.
    """
    for _ in range(_MAX_ITERATIONS):
        slope = k / q - (n - k) / (1.0 - q)
        if slope <= 0.0:
            q *= 0.5
            continue
        moved = q + (target - _level(q, k, n)) / slope
        if moved <= 0.0:
            moved = 0.5 * q
        if moved >= k / n:
            moved = 0.5 * (q + k / n)
        if abs(moved - q) <= 1e-13 * q:
            return moved
        q = moved
    return q


@njit(nogil=True, cache=True)
def _beta_binomial_path(
    labels: CodeArray, log_share: float, lower: FloatArray, upper: FloatArray
) -> None:
    k = 0.0
    log_mixture = 0.0
    # the previous limits, stored as the lower limit and as 1 minus the upper limit
    low = 0.25
    gap = 0.25
    for i in range(labels.size):
        if labels[i]:
            log_mixture += math.log((k + 0.5) / (i + 1.0))
            k += 1.0
        else:
            log_mixture += math.log((i - k + 0.5) / (i + 1.0))
        n = i + 1.0
        negatives = n - k
        target = log_mixture - log_share
        lower[i] = 0.0
        upper[i] = 1.0
        if k == n:
            low = math.exp(target / n)
        elif k > 0.0:
            low = _root(min(low, 0.999 * k / n), k, n, target)
        if k == 0.0:
            gap = math.exp(target / n)
        elif k < n:
            gap = _root(min(gap, 0.999 * negatives / n), negatives, n, target)
        # outwards by more than the rounding error of the sums above, which grows with n
        slack = 1e-12 + 1e-15 * n
        if k > 0.0:
            lower[i] = low * (1.0 - slack)
        if k < n:
            upper[i] = 1.0 - gap * (1.0 - slack)


def beta_binomial_path(labels: CodeArray, log_share: float) -> tuple[FloatArray, FloatArray]:
    """Limits of the beta-binomial mixture after each label."""
    lower, upper = np.empty((2, labels.size))
    _beta_binomial_path(np.ascontiguousarray(labels), log_share, lower, upper)
    return lower, upper


@njit(nogil=True, cache=True)
def bet(
    labels: CodeArray,
    raise_by: FloatArray,
    rates: FloatArray,
    largest_raise: FloatArray,
    largest_lower: FloatArray,
    threshold: float,
    too_low: FloatArray,
    too_high: FloatArray,
    lows: IntArray,
    highs: IntArray,
) -> None:
    """Let both gamblers bet on each label against the rates still alive.

    After each label, record how many rates are ruled out.
    """
    low = 0
    high = rates.size
    for i in range(labels.size):
        outcome = float(labels[i])
        fallen = low
        risen = high
        for j in range(low, high):
            gain = outcome - rates[j]
            too_low[j] *= 1.0 + min(raise_by[i], largest_raise[j]) * gain
            too_high[j] *= 1.0 - min(raise_by[i], largest_lower[j]) * gain
            if too_low[j] >= threshold:
                fallen = j + 1
            elif too_high[j] >= threshold and risen == high:
                risen = j
        low = fallen
        high = max(risen, fallen)
        lows[i] = low
        highs[i] = high
