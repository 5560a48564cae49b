"""Exact one-sided binomial limits (Clopper-Pearson), for up to 10^12 trials and tails down to 1e-100.

Quantiles of the beta distribution from scipy are quick and precise, but in about one of 10^5 cases
with more than 10^7 trials they are far off, in either direction. The tail at the answer shows that;
the rate is then bisected.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from calibrant._typing import BoolArray, FloatArray
from calibrant.errors import InvalidValueError

SMALLEST = float(np.finfo(np.float64).tiny)
"""The smallest limit above 0."""

_WRONG = 1e-9  # relative error of a tail from which on an answer is not accepted
_BISECTIONS = 70
# relative distance by which limits are moved outwards, more than their error: in all cases, and per
# square root of the number of trials, up to the largest
_ERROR = 1e-12
_ERROR_PER_ROOT = 2e-14
_MOST_ERROR = 6e-10
_SMALLEST_TAIL = 1e-100


def upper_tail(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """P(X >= k) for X ~ Binomial(n, p) and 1 <= k <= n."""
    return np.asarray(betainc(k, n - k + 1.0, p))


def lower_tail(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """P(X <= k) for X ~ Binomial(n, p) and 0 <= k < n."""
    return np.asarray(betaincc(k + 1.0, n - k, p))


def bisected(
    holds: Callable[[FloatArray], BoolArray], low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rates between low and high next to each other: a condition holds up to the first of both."""
    for _ in range(_BISECTIONS):
        middle = np.where(high > 4.0 * low, np.sqrt(low * high), (low + high) / 2.0)
        is_lower = holds(middle)
        low = np.where(is_lower, middle, low)
        high = np.where(is_lower, high, middle)
    return low, high


def lower_limit(k: ArrayLike, n: ArrayLike, tail: ArrayLike) -> FloatArray:
    """One-sided exact (Clopper-Pearson) lower limit for the mean, from k positives among n.

    The p at which P(X >= k) = tail for X ~ Binomial(n, p): the Beta(k, n - k + 1) quantile at
    `tail`. The limit is 0 where k = 0, and is rounded outwards.

    Parameters
    ----------
    k, n : array-like of int
        Positives and trials, 0 <= k <= n <= 10^12; broadcast against each other and `tail`.
    tail : array-like of float from 1e-100 to below 1
        The probability with which the limit may exceed the mean.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> print(lower_limit([0, 5, 10], 10, 0.025).round(4))
    [0.     0.1871 0.6915]
    """
    k, n, tail = _checked(k, n, tail)
    lower = np.zeros(k.shape)
    some = k > 0.0
    with np.errstate(all="ignore"):
        found = betaincinv(k[some], n[some] - k[some] + 1.0, tail[some])
    lower[some] = moved_out(
        _verified(found, upper_tail, k[some], n[some], tail[some]), -1.0, n[some]
    )
    return lower


def upper_limit(k: ArrayLike, n: ArrayLike, tail: ArrayLike) -> FloatArray:
    """One-sided exact (Clopper-Pearson) upper limit for the mean, from k positives among n.

    The p at which P(X <= k) = tail for X ~ Binomial(n, p): the Beta(k + 1, n - k) quantile at 1 -
    `tail`. The limit is 1 where k = n, and is rounded outwards.

    Parameters
    ----------
    k, n : array-like of int
        Positives and trials, 0 <= k <= n <= 10^12; broadcast against each other and `tail`.
    tail : array-like of float from 1e-100 to below 1
        The probability with which the mean may exceed the limit.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> print(upper_limit([0, 5, 10], 10, 0.025).round(4))
    [0.3085 0.8129 1.    ]
    """
    k, n, tail = _checked(k, n, tail)
    upper = np.ones(k.shape)
    some = k < n
    with np.errstate(all="ignore"):
        found = betainccinv(k[some] + 1.0, n[some] - k[some], tail[some])
    upper[some] = moved_out(
        _verified(found, lower_tail, k[some], n[some], tail[some]), 1.0, n[some]
    )
    return upper


def _verified(
    found: FloatArray,
    tail_at: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    k: FloatArray,
    n: FloatArray,
    tail: FloatArray,
) -> FloatArray:
    """The rates found for tails; bisected where the tail there is another one."""
    with np.errstate(all="ignore"):
        wrong = np.flatnonzero(~(np.abs(tail_at(k, n, found) / tail - 1.0) < _WRONG))
    if wrong.size:
        k, n, tail = k[wrong], n[wrong], tail[wrong]
        rises = tail_at is upper_tail
        ends = np.full(wrong.size, SMALLEST), np.ones(wrong.size)
        below, above = bisected(lambda p: (tail_at(k, n, p) < tail) == rises, *ends)
        found[wrong] = below if rises else above
    return found


def moved_out(limits: FloatArray, sign: float, n: FloatArray | float = 0.0) -> FloatArray:
    """Limits, moved by a little more than their error, down (-1) or up (1)."""
    error = _ERROR + np.minimum(_ERROR_PER_ROOT * np.sqrt(n), _MOST_ERROR)
    moved = np.nextafter(limits * (1.0 + sign * error * (1.0 - limits)), sign * 2.0)
    return np.clip(np.where(moved < SMALLEST, 0.0, moved), 0.0, 1.0)


def _checked(
    k: ArrayLike, n: ArrayLike, tail: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    positives, trials, tails = np.broadcast_arrays(
        np.asarray(k, dtype=np.float64),
        np.asarray(n, dtype=np.float64),
        np.asarray(tail, dtype=np.float64),
    )
    if not np.all((tails >= _SMALLEST_TAIL) & (tails < 1.0)):
        rule = f"lie strictly between 0 and 1, and be at least {_SMALLEST_TAIL:g}"
        raise InvalidValueError("tail", rule, got=repr(tail))
    if not np.all((positives >= 0.0) & (positives <= trials)):
        raise InvalidValueError("k", "satisfy 0 <= k <= n", got=f"k={k!r}, n={n!r}")
    return positives, trials, tails
