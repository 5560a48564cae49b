"""Limits for the mean of any outcome between 0 and 1: Chernoff's and the empirical Bernstein bound together."""

import math

from calibrant._params import check_open_unit
from calibrant._typing import FloatArray

_BISECTIONS = 60


def lower_mean(mean: float, n: int, tail: float) -> float:
    """Lower limit for the expectation of `n` independent outcomes in [0, 1] with the average `mean`.

    Claimed: the expectation of the average lies below the limit with probability at most `tail` (Hoeffding 1963,
    Theorem 1: n kl(mean, q) <= ln(1 / tail)). The limit rises with `mean`, so it may be given a lower bound of it.

    >>> round(lower_mean(0.05, 1000, 0.05), 4)
    0.0349
    """
    if mean <= 0.0:
        return 0.0
    bound = -math.log(tail) / n
    if mean >= 1.0:
        return math.exp(-bound)
    ruled_out, kept = 0.0, mean
    for _ in range(_BISECTIONS):
        middle = (ruled_out + kept) / 2.0
        if _relative_entropy(mean, middle) > bound:
            ruled_out = middle
        else:
            kept = middle
    return ruled_out


def _relative_entropy(p: float, q: float) -> float:
    """kl(p, q) for 0 < q <= p < 1."""
    return p * math.log(p / q) + (1.0 - p) * (math.log1p(-p) - math.log1p(-q))


def bounded_mean(outcomes: FloatArray, alpha: float) -> tuple[float, float]:
    """Return limits for the mean of independent outcomes in [0, 1], that hold with probability at least 1 - alpha.

    Parameters
    ----------
    outcomes : float array of shape (n,)
        Independent draws between 0 and 1.
    alpha : float in (0, 1)
        Probability with which the interval may miss.

    Returns
    -------
    lower, upper : float

    Notes
    -----
    Half of alpha goes to Chernoff's bound in relative-entropy form, which is the better for outcomes like labels, and
    half to the empirical Bernstein bound, mean -+ (sqrt(2 V ln(8 / alpha) / n) + 7 ln(8 / alpha) / (3 (n - 1))), which
    is the better where the variance is small. Both hold at once, so the interval is their intersection.

    References
    ----------
    Hoeffding (1963), JASA 58, Theorem 1. Maurer and Pontil (2009), "Empirical Bernstein bounds and sample variance
    penalization", Theorem 4.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = bounded_mean(np.repeat([0.2, 0.3], 500), 0.05)
    >>> round(low, 3), round(high, 3)
    (0.233, 0.267)
    """
    alpha = check_open_unit("alpha", alpha)
    n, mean = outcomes.size, float(outcomes.mean())
    lower, upper = lower_mean(mean, n, alpha / 4.0), 1.0 - lower_mean(1.0 - mean, n, alpha / 4.0)
    if n > 1:
        log_term = math.log(8.0 / alpha)
        radius = math.sqrt(2.0 * float(outcomes.var(ddof=1)) * log_term / n) + 7.0 * log_term / (3.0 * (n - 1))
        lower, upper = max(lower, mean - radius), min(upper, mean + radius)
    return lower, upper
