"""Limits for the mean of any outcome between 0 and 1: by betting, or from Chernoff's and the Bernstein bound."""

import math

import numpy as np

from calibrant._params import OPEN_UNIT
from calibrant._typing import FloatArray

_BISECTIONS = 60
_STEPS = 14  # halvings of a range that is only a few times as wide as the result
_MOST_STAKED = 0.5  # share of the capital that a bet can lose
_ROUNDING = 1e-9  # logarithms of capital are sums of many terms; a mean is ruled out only beyond their rounding


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
    alpha = OPEN_UNIT.check("alpha", alpha)
    n, mean = outcomes.size, float(outcomes.mean())
    lower, upper = lower_mean(mean, n, alpha / 4.0), 1.0 - lower_mean(1.0 - mean, n, alpha / 4.0)
    if n > 1:
        log_term = math.log(8.0 / alpha)
        radius = math.sqrt(2.0 * float(outcomes.var(ddof=1)) * log_term / n) + 7.0 * log_term / (3.0 * (n - 1))
        lower, upper = max(lower, mean - radius), min(upper, mean + radius)
    return lower, upper


def betting_mean(outcomes: FloatArray, alpha: float, *, most_staked: float = _MOST_STAKED) -> tuple[float, float]:
    """Return limits for the mean of independent outcomes in [0, 1]: the means against which no bet has won enough.

    They hold with probability at least 1 - alpha, and are narrower than those of `bounded_mean`.

    Parameters
    ----------
    outcomes : float array of shape (n,)
        Independent draws between 0 and 1, in an order that does not depend on them.
    alpha : float in (0, 1)
        Probability with which the interval may miss.
    most_staked : float in (0, 1), default=0.5
        Share of the capital that a bet can lose at most. Larger bets are better where outcomes hardly vary.

    Returns
    -------
    lower, upper : float

    Notes
    -----
    If m is the mean, the capital prod(1 + min(lam_i, c / m) (y_i - m)) is a nonnegative martingale for any bets lam_i
    that look at earlier outcomes only, c = `most_staked`. By Ville's inequality it ever reaches 2 / alpha with
    probability at most alpha / 2; so does the capital that bets on smaller outcomes. Kept are the means for which both
    stay below. Each factor is monotone in m, so what is kept is an interval, and halving finds its ends. The bets are
    lam_i = sqrt(2 ln(2 / alpha) / (n v)), with v a running variance of the outcomes before i.

    References
    ----------
    Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86, 1-27.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = betting_mean(np.tile([0.2, 0.3], 500), 0.05)
    >>> round(low, 3), round(high, 3)
    (0.246, 0.256)
    """
    alpha = OPEN_UNIT.check("alpha", alpha)
    n, goal = outcomes.size, math.log(2.0 / alpha)
    number = np.arange(1, n + 1)
    running_mean = (0.5 + np.cumsum(outcomes)) / (number + 1)
    squares = np.square(outcomes - running_mean)
    bets = np.sqrt(2.0 * goal * number / (n * (0.25 + np.cumsum(squares) - squares)))

    def ruled_out(mean: float, side: float) -> bool:
        stakes = np.minimum(bets, most_staked / (mean if side > 0 else 1.0 - mean))
        return bool(np.cumsum(np.log1p(side * stakes * (outcomes - mean))).max() >= goal + _ROUNDING)

    mean, limits = float(outcomes.mean()), []
    for side, end, near in zip((1.0, -1.0), (0.0, 1.0), bounded_mean(outcomes, alpha), strict=True):
        is_near = near != end and ruled_out(near, side)
        beyond, kept = near if is_near else end, mean
        for _ in range(0 if mean == end else _STEPS if is_near else _BISECTIONS // 2):
            middle = (beyond + kept) / 2.0
            beyond, kept = (middle, kept) if ruled_out(middle, side) else (beyond, middle)
        limits.append(beyond)
    return limits[0], limits[1]
