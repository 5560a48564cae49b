"""Limits for the mean of bounded numbers, by bets that aim at the capital that is needed.

A bet against the mean m wins if the numbers are larger than m. What is needed is known beforehand: a capital of
1 / tail after at most n rows. The best stake then depends on the capital so far and on the rows that are left, as for
a gambler who must reach a goal by a deadline (Kulldorff 1993). With few rows left and a small capital it is bold; once
the goal is reached, nothing is staked any more. Limits are within 2 to 5 % of those of the normal distribution with a
known variance, and hold for every distribution.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri_exp

from calibrant._typing import BoolArray, FloatArray

_MOST_LOST = 0.9  # share of the capital that a bet can lose
_GUESS_ROWS = 20.0  # rows that the guess of the variance counts for
_STEPS = 32.0  # candidates for the limit within one standard error
_AT_ONCE = 48  # candidates that are judged together
_START_SHARE = 0.01  # of the tail: for the limit from which the search starts
_SINGLE_ROWS = 128  # of the last rows, each is a block
_BLOCKS = 64  # a block is this part of the rows that are left
_LEAST_VARIANCE = 1e-12  # of a guess, over the square of the range
_ROUNDING = 1e-9  # of logarithms of capital, which are sums of many terms
_BISECTIONS = 60
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False)
class BetUnits:
    """Independent draws of one region, in an order that does not depend on them.

    Attributes
    ----------
    values : float array of shape (n,)
        Numbers with one mean; with weights, E[w z] / E[w] is what limits are for.
    low, high : float
        What no number can lie beyond; fixed without these draws.
    variance : float
        A guess of the variance of z, or of w (z - mean), made without these draws: a good one makes limits sharper, and
        a bad one never makes them wrong.
    weights : float array of shape (n,), optional
        In (0, 1]: how much each draw counts, such as the rows of a whole group over the largest number that counts.
    typical_weight : float
        A guess of the mean weight.
    """

    values: FloatArray
    low: float
    high: float
    variance: float
    weights: FloatArray | None = None
    typical_weight: float = 1.0

    @property
    def mirrored(self) -> "BetUnits":
        """The same with the opposite sign, which turns upper limits into lower ones."""
        return replace(self, values=-self.values, low=-self.high, high=-self.low)

    def gains(self, rows: slice, stake: FloatArray, means: FloatArray) -> FloatArray:
        """Logarithms of what the capital of bets against each mean is multiplied by."""
        won = self.values[rows] - means[:, None]
        if self.weights is not None:
            won *= self.weights[rows]
        won *= stake[:, None]
        return np.asarray(np.log1p(won, out=won).sum(axis=1))


def goal_limits(units: BetUnits, tail: float) -> tuple[float, float]:
    """Limits for the mean of independent numbers in a range; each side misses with probability at most `tail`.

    Parameters
    ----------
    units : BetUnits
        The draws.
    tail : float in (0, 1)
        Probability with which each of the two limits may miss.

    Returns
    -------
    lower, upper : float
        The range itself where there are no draws.

    Notes
    -----
    *The bets.* Against a mean m: K_i = K_{i-1} (1 + lam_i (Z_i - m)), K_0 = 1, lam_i >= 0 and at most 0.9 / (m - low),
    known before Z_i. If the true mean is at most m, K is a nonnegative supermartingale, so that it ever reaches
    G = 1 / tail with probability at most `tail` (Ville). If it does, m is ruled out. With x = K_{i-1} / G, a running
    standard deviation s and r rows left, lam_i = phi(Phi^-1(x)) / (x s sqrt(r)): for normal numbers this stake has the
    largest chance to reach the goal.

    *The candidates.* They are the multiples of a step that is fixed beforehand. The limit is the last of the candidates
    that were ruled out without a gap. If it lies above the true mean, then so does, or equals it, the smallest
    candidate that is not below the mean, and that was ruled out: an event of probability at most `tail`, however many
    candidates there are. The search starts at a limit that costs 1 % of the tail, and that is found by one stake for
    all rows: prod(1 + lam (Z_i - m)) falls in m, and exceeds G with probability at most 1 / G at the true mean
    (Markov), so that all smaller candidates are ruled out at once.

    *Blocks.* Of n rows, the first n / 64 have one stake, and so have the first 1 / 64 of those that are left, until 128
    single rows are left. The capital is the product over the rows of a block, with a stake known before the block.

    References
    ----------
    Kulldorff (1993), "Optimal control of favorable games with a time limit", SIAM J. Control Optim. 31, 52-69;
    Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86, 1-27.

    Examples
    --------
    >>> import numpy as np
    >>> lower, upper = goal_limits(BetUnits(np.tile([0.2, 0.3, 0.7], 100), 0.0, 1.0, variance=0.05), 0.05)
    >>> round(lower, 2), round(upper, 2)
    (0.38, 0.42)
    """
    return _lower_limit(units, tail), -_lower_limit(units.mirrored, tail)


def _lower_limit(units: BetUnits, tail: float) -> float:
    """The last candidate, from the lower end of the range on, that is ruled out."""
    n_rows = units.values.size
    if not n_rows or units.high <= units.low:
        return units.low
    guess = max(units.variance, _LEAST_VARIANCE * (units.high - units.low) ** 2)
    limit = _start(units, _START_SHARE * tail, guess)
    goal = -math.log((1.0 - _START_SHARE) * tail)
    deviation = max(math.sqrt(guess) / units.typical_weight, (units.high - units.low) / _STEPS)
    step = deviation / (_STEPS * math.sqrt(n_rows))
    first = math.floor(limit / step) + 1
    deviations = _running_deviation(units, guess)
    while True:
        candidates = np.arange(first, first + _AT_ONCE, dtype=np.float64) * step
        ruled_out = _reaches_goal(units, deviations, candidates, goal)
        n_ruled_out = _AT_ONCE if ruled_out.all() else int(ruled_out.argmin())
        if n_ruled_out:
            limit = float(candidates[n_ruled_out - 1])
        if n_ruled_out < _AT_ONCE:
            return min(limit, units.high)
        first += _AT_ONCE


def _start(units: BetUnits, tail: float, guess: float) -> float:
    """A lower limit by one stake for all rows."""
    goal = -math.log(tail) + _ROUNDING
    stake = math.sqrt(2.0 * goal / (units.values.size * guess))
    ruled_out = units.low
    kept = units.high
    everything = slice(None)
    for _ in range(_BISECTIONS):
        mean = (ruled_out + kept) / 2.0
        if mean in (ruled_out, kept):
            break
        bet = min(stake, _MOST_LOST / (mean - units.low))
        if units.gains(everything, np.array([bet]), np.array([mean]))[0] >= goal:
            ruled_out = mean
        else:
            kept = mean
    return ruled_out


def _reaches_goal(units: BetUnits, deviations: FloatArray, means: FloatArray, goal: float) -> BoolArray:
    """Whether bets against each mean ever reach the goal, a logarithm."""
    n_rows = units.values.size
    most = _MOST_LOST / (means - units.low)
    missing = np.full(means.size, goal + _ROUNDING)  # logarithm of the goal over the capital
    for start, stop in _blocks(n_rows):
        active = missing > 0.0
        if not active.any():
            break
        short = missing[active]
        # phi(Phi^-1(x)) / x at x = exp(-short)
        quantile = ndtri_exp(-short)
        hunger = np.exp(short - 0.5 * quantile**2 - _LOG_SQRT_2PI)
        stake = hunger / (deviations[start] * math.sqrt(n_rows - start))
        stake = np.minimum(stake, most[active])
        missing[active] = short - units.gains(slice(start, stop), stake, means[active])
    return np.asarray(missing <= 0.0)


def _blocks(n_rows: int) -> Iterator[tuple[int, int]]:
    """Where the rows of each stake begin and end."""
    start = 0
    while start < n_rows:
        left = n_rows - start
        size = 1 if left <= _SINGLE_ROWS else max(1, left // _BLOCKS)
        yield start, start + size
        start += size


def _running_deviation(units: BetUnits, guess: float) -> FloatArray:
    """The standard deviation of w (z - mean) of the rows before each row; the guess counts for some more rows."""
    weights = np.ones(units.values.size) if units.weights is None else units.weights
    middle = (units.low + units.high) / 2.0
    values = units.values - middle  # small numbers lose fewer digits in sums of squares
    total, squares = _before(weights), _before(weights**2)
    mean = _before(weights * values) / np.where(total > 0.0, total, 1.0)
    spread = _before((weights * values) ** 2) - 2.0 * mean * _before(weights**2 * values) + mean**2 * squares
    rows = np.arange(weights.size)
    return np.sqrt((_GUESS_ROWS * guess + np.maximum(spread, 0.0)) / (_GUESS_ROWS + rows))


def _before(values: FloatArray) -> FloatArray:
    """Sums over the rows before each row."""
    return np.asarray(np.concatenate([[0.0], np.cumsum(values[:-1])]))
