"""Limits for the mean of any outcome between 0 and 1: by betting, or from Chernoff's and the Bernstein bound."""

import math

import numpy as np

from calibrant._params import OPEN_UNIT
from calibrant._typing import FloatArray, IndexArray, IntArray

_BISECTIONS = 60
_STEPS = 14  # halvings of a range that is only a few times as wide as the result
_MOST_STAKED = 0.5  # share of the capital that a bet can lose
_MOST_LOST = 0.9  # the same, of bets that are fixed beforehand
_BET_ON_SINGLY = 2**13  # outcomes; of the others, means of blocks are bet on
_LARGEST_BLOCK = 64
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
    # kl(mean, q) is convex in q, and these two starts are below the limit: Newton's steps then reach it from below
    pinsker = mean - math.sqrt(2.0 * min(mean, 0.25) * bound)
    limit = max(pinsker, mean * math.exp(((1.0 - mean) * math.log1p(-mean) - bound) / mean))
    ruled_out = limit
    while 0.0 < limit < mean and (excess := _relative_entropy(mean, limit) - bound) > 0.0:
        ruled_out = limit
        limit += excess * limit * (1.0 - limit) / (mean - limit)
        if limit == ruled_out:
            break
    return ruled_out


def _relative_entropy(p: float, q: float) -> float:
    """kl(p, q) for 0 < q <= p < 1."""
    return p * math.log(p / q) + (1.0 - p) * (math.log1p(-p) - math.log1p(-q))


def largest_distance(rate: float, bound: float, rows: int) -> float:
    """Largest q - p, and p - q + (1 - 2 p) / (2 (rows + 1)), with kl(p, q) <= bound and p <= rate.

    What is added to p - q is how far Jeffreys' value for the rate p is from p. The pairs (p, q) with kl(p, q) <= bound
    are a convex set, so both are concave in p. kl(1 - p, 1 - q) is the same.
    """
    from scipy.optimize import brentq

    rate, tail = min(rate, 1.0), math.exp(-bound)

    def largest(low: float, high: float, shift: float) -> float:
        """Of p - q + (1 - 2 p) shift for p from low to high: at an end, or where the slope is 0."""

        def slope(p: float) -> float:
            q = lower_mean(p, 1, tail)
            if q <= 0.0 or p >= 1.0:
                return 1.0 if q <= 0.0 else -1.0
            return 1.0 - 2.0 * shift - q * (1.0 - q) * math.log(p * (1.0 - q) / (q * (1.0 - p))) / (p - q)

        at = high if slope(high) >= 0.0 else low if slope(low) <= 0.0 else float(brentq(slope, low, high, xtol=1e-9))
        return at - lower_mean(at, 1, tail) + (1.0 - 2.0 * at) * shift

    return min(1.0, max(largest(1.0 - rate, 1.0, 0.0), largest(0.0, rate, 0.5 / (rows + 1))) * (1.0 + 1e-10))


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
    lam_i = sqrt(2 ln(2 / alpha) / (n v)), with v a running variance of the outcomes before i. After
    2^13 outcomes, the bets are on means of blocks of up to 64 outcomes, which are independent and have the mean m too.
    The first outcomes choose the size of the blocks. The limits are nearly those of bets on single outcomes.

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
    near_limits, sizes = bounded_mean(outcomes, alpha), np.ones(n)
    if n > 2 * _BET_ON_SINGLY:
        # so small that a bet on a block stays below the largest that is allowed
        block = 0.8 * most_staked * float(outcomes[:_BET_ON_SINGLY].std()) * math.sqrt(n / (2.0 * goal))
        starts = np.r_[0:_BET_ON_SINGLY, _BET_ON_SINGLY : n : int(min(max(block, 1.0), _LARGEST_BLOCK))]
        sizes = np.diff(starts, append=n).astype(np.float64)
        outcomes = np.add.reduceat(outcomes, starts) / sizes
    running_mean = (0.5 + np.cumsum(sizes * outcomes)) / (np.cumsum(sizes) + 1.0)
    squares = sizes * np.square(outcomes - running_mean)
    number = np.arange(1, outcomes.size + 1)
    bets = sizes * np.sqrt(2.0 * goal * number / (n * (0.25 + np.cumsum(squares) - squares)))

    def ruled_out(mean: float, side: float) -> bool:
        stakes = np.minimum(bets, most_staked / (mean if side > 0 else 1.0 - mean))
        return bool(np.cumsum(np.log1p(side * stakes * (outcomes - mean))).max() >= goal + _ROUNDING)

    mean, limits = float(np.average(outcomes, weights=sizes)), []
    for side, end, near in zip((1.0, -1.0), (0.0, 1.0), near_limits, strict=True):
        is_near = near != end and ruled_out(near, side)
        beyond, kept = near if is_near else end, mean
        for _ in range(0 if mean == end else _STEPS if is_near else _BISECTIONS // 2):
            middle = (beyond + kept) / 2.0
            beyond, kept = (middle, kept) if ruled_out(middle, side) else (beyond, middle)
        limits.append(beyond)
    return limits[0], limits[1]


def fixed_bets(
    low: FloatArray,
    high: FloatArray,
    rows: IntArray,
    region: IndexArray,
    ends: tuple[FloatArray, FloatArray],
    variance: FloatArray,
    level: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return limits for the mean outcome of each region, from counts of rows, in any order.

    Parameters
    ----------
    low, high : float arrays
        Between which the outcomes of each kind of rows lie.
    rows : int array
        How many rows there are of each kind.
    region : int array
        Their region.
    ends : pair of float arrays of shape (n_regions,)
        The smallest and the largest outcome that is possible in each region.
    variance : float array of shape (n_regions,)
        A guess of the variance, made without these rows. It decides how good the limits are, and not whether they hold.
    level : float array of shape (n_regions,)
        Probability with which the limits of each region may miss.

    Notes
    -----
    For independent rows whose mean is m, prod(1 + lam (m - z_i)) has the mean 1 if lam is fixed beforehand and no
    factor can be negative. By Markov's inequality it reaches 2 / level with probability at most level / 2. It rises
    with m, so the means that are ruled out are those from some limit on; likewise for smaller means. Of outcomes that
    are known up to [low, high], the one that wins least is taken. lam = sqrt(2 ln(2 / level) / (N variance)), and no
    bet can lose more than 0.9 of the capital.

    Examples
    --------
    >>> import numpy as np
    >>> outcomes, one = np.array([-0.2, 0.8]), np.array([1.0])
    >>> low, high = fixed_bets(
    ...     outcomes, outcomes, np.array([800, 200]), np.zeros(2, int), (-0.2 * one, 0.8 * one), 0.16 * one, 0.05 * one
    ... )
    >>> low.round(3), high.round(3)
    (array([-0.033]), array([0.036]))
    """
    limits = []
    size, goal = variance.size, np.log(2.0 / level)
    total = np.maximum(np.bincount(region, rows, size), 1.0)
    stake = np.sqrt(2.0 * goal / (total * np.maximum(variance, 1e-6)))
    for sign, outcomes, (near, far) in ((1.0, high, ends), (-1.0, low, ends[::-1])):
        values, most = sign * outcomes, sign * far
        kept = np.maximum(np.bincount(region, rows * values, size) / total, sign * near)
        beyond = most.astype(np.float64)
        for _ in range(_BISECTIONS // 2):
            middle = (kept + beyond) / 2.0
            lam = np.minimum(stake, _MOST_LOST / np.maximum(most - middle, 1e-300))
            growth = rows * np.log1p(lam[region] * (middle[region] - values))
            lost = np.bincount(region, growth, size) >= goal + _ROUNDING
            kept, beyond = np.where(lost, kept, middle), np.where(lost, middle, beyond)
        limits.append(sign * beyond)
    return limits[1], limits[0]
