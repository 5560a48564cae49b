"""Tails of a sum of independent labels with known, different rates: the Poisson-binomial
distribution.
"""

import math

import numpy as np
from scipy import fft

from calibrant._typing import FloatArray, IntArray

_BLOCK = 64  # labels that are added one by one
_ROUNDING = 1e-12  # error bound for probabilities from Fourier transforms
_NEWTON_STEPS = 60


def upper_tail(rates: FloatArray, count: int) -> float:
    """P(S >= count) for the sum S of independent labels with these rates; never below the truth.

    Notes
    -----
    The distribution of each block of 64 labels comes from the usual recursion. Blocks are then
    convolved in pairs by Fourier transforms. Their rounding error is below 1e-12, which is added.

    Examples
    --------
    >>> round(upper_tail(np.full(100, 0.5), 60), 6)
    0.028444
    >>> upper_tail(np.array([0.0, 1.0, 0.25]), 2)
    0.250000000001
    """
    if count <= 0:
        return 1.0
    certain = int(np.count_nonzero(rates >= 1.0))
    open_rates = rates[(rates > 0.0) & (rates < 1.0)]
    needed = count - certain
    if needed <= 0:
        return 1.0
    if needed > open_rates.size:
        return 0.0
    tail = float(_distribution(open_rates)[needed:].sum())
    return min(1.0, max(tail, 0.0) + _ROUNDING)


def lower_tail(rates: FloatArray, count: int) -> float:
    """P(S <= count), as the upper tail of the sum of 1 - label."""
    return upper_tail(1.0 - rates, rates.size - count)


def _distribution(rates: FloatArray) -> FloatArray:
    """The probabilities P(S = 0), P(S = 1), and so on."""
    n_blocks = -(-rates.size // _BLOCK)
    padded = np.zeros((n_blocks, _BLOCK))
    padded.ravel()[: rates.size] = rates
    mass = np.zeros((n_blocks, _BLOCK + 1))
    mass[:, 0] = 1.0
    for column in range(_BLOCK):
        rate = padded[:, column : column + 1]
        moved = mass[:, :-1] * rate
        mass *= 1.0 - rate
        mass[:, 1:] += moved
    while len(mass) > 1:
        if len(mass) % 2:
            nobody = np.zeros((1, mass.shape[1]))
            nobody[0, 0] = 1.0
            mass = np.concatenate([mass, nobody])
        size = 2 * mass.shape[1] - 1
        length = fft.next_fast_len(size, real=True)
        first = fft.rfft(mass[0::2], length, axis=1)
        second = fft.rfft(mass[1::2], length, axis=1)
        mass = fft.irfft(first * second, length, axis=1)[:, :size]
    return np.asarray(mass[0])


def grouped_upper_tail(counts: IntArray, rates: FloatArray, count: int) -> float:
    """P(S >= count) for the sum S of independent labels, `counts` of them with each rate; never
    below the truth.

    Notes
    -----
    S is a sum of independent binomials. Each is kept within a window around its mean, and so is
    their sum: by Bernstein's inequality, less than 1e-15 of the mass is outside each window. The
    error bound, which is added, includes that mass. The work depends on standard deviations instead
    of counts.

    Examples
    --------
    >>> round(grouped_upper_tail(np.array([60, 40]), np.array([0.5, 0.5]), 60), 6)
    0.028444
    """
    if count <= 0:
        return 1.0
    mass = np.ones(1)
    first = 0
    mean = 0.0
    variance = 0.0
    for size, rate in zip(counts.tolist(), rates.tolist(), strict=True):
        mean += size * rate
        variance += size * rate * (1.0 - rate)
        low, high = _window(size * rate, size * rate * (1.0 - rate))
        low = max(low, 0)
        own = _binomial(size, rate, low, min(high, size))
        length = mass.size + own.size - 1
        padded = fft.next_fast_len(length, real=True)
        product = fft.rfft(mass, padded) * fft.rfft(own, padded)
        mass = np.maximum(fft.irfft(product, padded)[:length], 0.0)
        first += low
        low, high = _window(mean, variance)
        skipped = max(low - first, 0)
        mass = mass[skipped : max(high - first, skipped) + 1]
        first += skipped
    tail = float(mass[max(count - first, 0) :].sum())
    return min(1.0, tail + _ROUNDING)


def _window(mean: float, variance: float) -> tuple[int, int]:
    """Whole numbers around the mean of a sum of labels: at most 1e-15 of its mass is outside."""
    reach = 9.0 * math.sqrt(variance) + 60.0
    return math.floor(mean - reach), math.ceil(mean + reach)


def _binomial(size: int, rate: float, low: int, high: int) -> FloatArray:
    """Binomial probabilities from `low` to `high`, outside of which there is almost none.

    Ratios of neighbours are accurate for any size, where differences of log-factorials lose digits.
    """
    if rate <= 0.0 or rate >= 1.0:
        mass = np.zeros(high - low + 1)
        mass[(size if rate >= 1.0 else 0) - low] = 1.0
        return mass
    hits = np.arange(low, high, dtype=np.float64)
    steps = np.log((size - hits) / (hits + 1.0)) + (math.log(rate) - math.log1p(-rate))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def log_tail_bound(counts: IntArray | FloatArray, means: FloatArray, count: float) -> float:
    """An upper bound on log P(S >= count), from the number of labels of each kind and their mean
    rate.

    Notes
    -----
    Chernoff: log P(S >= k) <= sum_i log(1 - s_i + s_i e^t) - t k for every t >= 0. The logarithm is
    concave in s_i, so all labels of one kind may be given their mean rate. The bound needs no
    individual rates: kinds can be fine cells of a score, wherever those were counted. The best t is
    found by Newton's steps; any t gives a bound.

    Examples
    --------
    >>> round(float(np.exp(log_tail_bound(np.array([100]), np.array([0.5]), 60))), 4)
    0.1335
    """
    means = np.clip(means, 0.0, 1.0)
    total = float(counts.sum())
    expected = float((counts * means).sum())
    if count <= expected:
        return 0.0
    possible = float(counts[means > 0.0].sum())
    if count > possible * (1.0 + 1e-12):
        return -math.inf
    if count >= total:
        return (
            float((counts[counts > 0] * np.log(means[counts > 0])).sum())
            if (means[counts > 0] > 0).all()
            else -math.inf
        )
    return min(0.0, _best_exponent(counts, means, count))


def _best_exponent(counts: IntArray | FloatArray, means: FloatArray, count: float) -> float:
    """The smallest sum log(1 - s + s e^t) - t k found by Newton's steps."""
    tilt = 0.0
    best = 0.0
    low = 0.0
    high = math.inf
    for _ in range(_NEWTON_STEPS):
        weight = means * math.exp(tilt)
        tilted = weight / (1.0 - means + weight)
        slope = float((counts * tilted).sum()) - count
        curvature = float((counts * tilted * (1.0 - tilted)).sum())
        value = float((counts * np.log1p(means * math.expm1(tilt))).sum()) - tilt * count
        best = min(best, value)
        if abs(slope) <= 1e-9 * max(count, 1.0):
            break
        if slope < 0.0:
            low = tilt
        else:
            high = tilt
        step = tilt - slope / curvature if curvature > 0.0 else math.inf
        inside = low < step < min(high, low + 5.0)
        tilt = step if inside else (low + min(high, low + 5.0)) / 2.0
    return best
