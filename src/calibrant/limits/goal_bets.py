"""Limits for the mean of bounded numbers, by bets that aim at the capital that is needed.

A bet against the mean m wins if the numbers are larger than m. What is needed is known beforehand:
a capital of 1 / tail after at most n rows. The best stake then depends on the capital so far and on
the rows that are left, as for a gambler who must reach a goal by a deadline (Kulldorff 1993). With
few rows left and a small capital it is bold; once the goal is reached, nothing is staked any more.
Limits are within 2 to 5 % of those of the normal distribution with a known variance, and hold for
every distribution.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import ndtri_exp

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.limits.bet_knots import KnotBlocks

_MOST_LOST = 0.9  # share of the capital that a bet can lose
_GUESS_ROWS = 20.0  # rows that the guess of the variance counts for
_UNKNOWN_VARIANCE = (
    0.01  # over the square of the range: what is assumed at first where there is no guess
)
_UNKNOWN_ROWS = 2.0  # rows that this counts for
_PILOT_FROM = (
    1000  # rows from which on the first are not bet on where there is no guess, but make one
)
_PILOT_PART = 50  # of so many rows, one is not bet on
_MOST_PILOT_ROWS = 32
_STEPS = 32.0  # candidates for the limit within one standard error
_AT_ONCE = 48  # candidates that are judged together
_MOST_AT_ONCE = 256  # the same for few rows, where judging more of them takes no longer
_CACHED_NUMBERS = 2**16  # candidates times rows, up to which more candidates are judged together
_START_SHARE = 0.01  # of the tail: for the limit from which the search starts
_SINGLE_ROWS = 128  # of the last rows, each is a block
_BLOCKS = 64  # a block is this part of the rows that are left
_LEAST_VARIANCE = 1e-12  # of a guess, over the square of the range
_ROUNDING = 1e-9  # of logarithms of capital, which are sums of many terms
_LARGE_BLOCK = 256  # rows from which on the capital of a block is bounded by knots
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
    variance : float, optional
        A guess of the variance of z, or of w (z - mean), made without these draws: a good one makes
        limits sharper, and a bad one never makes them wrong. None where nothing is known.
    weights : float array of shape (n,), optional
        In (0, 1]: how much each draw counts, such as the rows of a whole group over the largest
        number that counts.
    typical_weight : float
        A guess of the mean weight.
    """

    values: FloatArray
    low: float
    high: float
    variance: float | None = None
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
    """Limits for the mean of independent numbers in a range.

    Each side misses with probability at most `tail`.

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
    *The bets.* Against a mean m: K_i = K_{i-1} (1 + lam_i (Z_i - m)), K_0 = 1, lam_i >= 0 and at
    most 0.9 / (m - low), known before Z_i. If the true mean is at most m, K is a nonnegative
    supermartingale, so that it ever reaches G = 1 / tail with probability at most `tail` (Ville).
    If it does, m is ruled out. With x = K_{i-1} / G, a running standard deviation s and r rows
    left, lam_i = phi(Phi^-1(x)) / (x s sqrt(r)): for normal numbers this stake has the largest
    chance to reach the goal.

    *The candidates.* They are the multiples of a step that is fixed beforehand: by the guess of the
    variance or, where there is none, by the first rows of 1,000 or more, which are not bet on (1 of
    50, at most 32). The limit is the last of the candidates that were ruled out without a gap. If
    it lies above the true mean, then so does, or equals it, the smallest candidate that is not
    below the mean, and that was ruled out: an event of probability at most `tail`, however many
    candidates there are. The search starts at a limit that costs 1 % of the tail, and that is found
    by the stakes lam_i = sqrt(2 ln G / n) / s, at most 0.9 / (m - low): each factor 1 + lam_i (Z_i
    - m) falls in m, and at the true mean the product exceeds G with probability at most 1 / G
    (Markov). So all smaller candidates are ruled out at once.

    *Blocks.* Of n rows, the first n / 64 have one stake, and so have the first 1 / 64 of those that
    are left, until 128 single rows are left. The capital is the product over the rows of a block,
    with a stake known before the block. Of blocks with 256 rows or more it is bounded from below
    (`KnotBlocks`), so that no mean is ruled out wrongly.

    *The range* limits what can be known. If all n numbers are equal to z, then a share e of unseen
    numbers at the lower end is compatible with them unless (1 - e)^n < `tail`: no method has a
    lower limit above z - (z - low) (1 - tail^(1/n)). The limits here come within a factor of about
    1.1 of that.

    References
    ----------
    Kulldorff (1993), "Optimal control of favorable games with a time limit", SIAM J. Control Optim.
    31, 52-69; Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by
    betting", JRSS B 86, 1-27.

    Examples
    --------
    >>> import numpy as np
    >>> lower, upper = goal_limits(BetUnits(np.tile([0.2, 0.3, 0.7], 100), 0.0, 1.0,
    ...     variance=0.05), 0.05)
    >>> round(lower, 2), round(upper, 2)
    (0.38, 0.42)
    """
    return _lower_limit(units, tail), -_lower_limit(units.mirrored, tail)


def _lower_limit(units: BetUnits, tail: float) -> float:
    """The last candidate, from the lower end of the range on, that is ruled out."""
    n_rows = units.values.size
    if not n_rows or units.high <= units.low:
        return units.low
    bets = _Bets.of(units)
    step = bets.deviation_at_first / (_STEPS * math.sqrt(n_rows))
    limit = _start(bets, _START_SHARE * tail, step)
    goal = -math.log((1.0 - _START_SHARE) * tail)
    first = math.floor(limit / step) + 1
    at_once = min(max(_CACHED_NUMBERS // n_rows, _AT_ONCE), _MOST_AT_ONCE)
    while True:
        candidates = np.arange(first, first + at_once, dtype=np.float64) * step
        ruled_out = _reaches_goal(bets, candidates, goal)
        n_ruled_out = at_once if ruled_out.all() else int(ruled_out.argmin())
        if n_ruled_out:
            limit = float(candidates[n_ruled_out - 1])
        if n_ruled_out < at_once:
            return min(limit, units.high)
        first += at_once


@dataclass(frozen=True, slots=True, eq=False)
class _Bets:
    """Units in the blocks that they are bet on.

    Attributes
    ----------
    units : BetUnits
        The units.
    deviations : float array of shape (n,)
        The running standard deviation before each row.
    starts : int array of shape (n_blocks,)
        The first row of each block. Rows before the first block are not bet on.
    large : KnotBlocks or None
        The blocks with many rows, which come first; None where there are none.
    """

    units: BetUnits
    deviations: FloatArray
    starts: IndexArray
    large: KnotBlocks | None

    @classmethod
    def of(cls, units: BetUnits) -> Self:
        n_rows = units.values.size
        starts = np.fromiter(_starts(_n_pilot(units), n_rows), dtype=np.intp)
        sizes = np.diff(starts, append=n_rows)
        n_large = int(np.count_nonzero(sizes >= _LARGE_BLOCK))
        large = None
        if n_large:
            rows = slice(starts[0], starts[0] + int(sizes[:n_large].sum()))
            weights = None if units.weights is None else units.weights[rows]
            places = starts[:n_large] - starts[0]
            large = KnotBlocks.of(units.values[rows], weights, places, (units.low, units.high))
        return cls(units, _running_deviation(units), starts, large)

    @property
    def deviation_at_first(self) -> float:
        """What is known of the standard deviation of z before the first bet."""
        units = self.units
        if units.variance is not None:
            span = units.high - units.low
            return max(math.sqrt(_guess(units)) / units.typical_weight, span / _STEPS)
        first = int(self.starts[0])
        weight = 1.0 if units.weights is None or not first else float(units.weights[:first].mean())
        return float(self.deviations[first]) / weight

    def gains(self, block: int, stake: FloatArray, means: FloatArray) -> FloatArray:
        """Logarithms of what the capital of bets against each mean is multiplied by in a block.

        At most these.
        """
        if self.large is not None and block < len(self.large.rows):
            return self.large.gains(block, stake, means)
        start = self.starts[block]
        stop = self.starts[block + 1] if block + 1 < self.starts.size else None
        return self.units.gains(slice(start, stop), stake, means)


def _start(bets: _Bets, tail: float, precision: float) -> float:
    """A lower limit by stakes that do not depend on the mean, but for their cap."""
    units = bets.units
    goal = -math.log(tail) + _ROUNDING
    rows = slice(bets.starts[0], None)
    values = units.values[rows]
    weights = 1.0 if units.weights is None else units.weights[rows]
    stakes = math.sqrt(2.0 * goal / values.size) / bets.deviations[rows]
    ruled_out = units.low
    kept = units.high
    while kept - ruled_out > precision:
        mean = (ruled_out + kept) / 2.0
        if mean in (ruled_out, kept):
            break
        won = np.minimum(stakes, _MOST_LOST / (mean - units.low)) * weights * (values - mean)
        if np.log1p(won, out=won).sum() >= goal:
            ruled_out = mean
        else:
            kept = mean
    return ruled_out


def _reaches_goal(bets: _Bets, means: FloatArray, goal: float) -> BoolArray:
    """Whether bets against each mean ever reach the goal, a logarithm."""
    n_rows = bets.units.values.size
    most = _MOST_LOST / (means - bets.units.low)
    missing = np.full(means.size, goal + _ROUNDING)  # logarithm of the goal over the capital
    for block, start in enumerate(bets.starts.tolist()):
        active = missing > 0.0
        if not active.any():
            break
        short = missing[active]
        # phi(Phi^-1(x)) / x at x = exp(-short)
        quantile = ndtri_exp(-short)
        hunger = np.exp(short - 0.5 * quantile**2 - _LOG_SQRT_2PI)
        stake = hunger / (bets.deviations[start] * math.sqrt(n_rows - start))
        stake = np.minimum(stake, most[active])
        missing[active] = short - bets.gains(block, stake, means[active])
    return np.asarray(missing <= 0.0)


def _n_pilot(units: BetUnits) -> int:
    """How many first rows are not bet on, but fix the candidates: where no variance is known, and
    rows are many.
    """
    n_rows = units.values.size
    if units.variance is not None or n_rows < _PILOT_FROM:
        return 0
    return min(n_rows // _PILOT_PART, _MOST_PILOT_ROWS)


def _starts(first: int, n_rows: int) -> Iterator[int]:
    """Where the rows of each stake begin."""
    start = first
    while start < n_rows:
        yield start
        left = n_rows - start
        start += 1 if left <= _SINGLE_ROWS else max(1, left // _BLOCKS)


def _guess(units: BetUnits) -> float:
    """A variance that was not estimated from these rows."""
    square = (units.high - units.low) ** 2
    if units.variance is None:
        return _UNKNOWN_VARIANCE * square
    return max(units.variance, _LEAST_VARIANCE * square)


def _running_deviation(units: BetUnits) -> FloatArray:
    """The standard deviation of w (z - mean) of the rows before each row.

    The guess counts for some more rows.

    Where nothing is known, not even how large weights are, it is a guess for weights as large as
    those before.
    """
    weights = np.ones(units.values.size) if units.weights is None else units.weights
    middle = (units.low + units.high) / 2.0
    values = units.values - middle  # small numbers lose fewer digits in sums of squares
    total = _before(weights)
    squares = _before(weights**2)
    mean = _before(weights * values) / np.where(total > 0.0, total, 1.0)
    spread = (
        _before((weights * values) ** 2)
        - 2.0 * mean * _before(weights**2 * values)
        + mean**2 * squares
    )
    spread = np.maximum(spread, 0.0)
    rows = np.arange(weights.size)
    guess = _guess(units)
    if units.variance is not None:
        return np.sqrt((_GUESS_ROWS * guess + spread) / (_GUESS_ROWS + rows))
    scale = np.divide(squares, rows, out=np.ones(weights.size), where=rows > 0)
    return np.sqrt((_UNKNOWN_ROWS * guess * scale + spread) / (_UNKNOWN_ROWS + rows))


def _before(values: FloatArray) -> FloatArray:
    """Sums over the rows before each row."""
    return np.asarray(np.concatenate([[0.0], np.cumsum(values[:-1])]))
