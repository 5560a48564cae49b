"""Limits for the means of many samples at once, by the bets of `goal_bets` on rows that are known
as counts.

The bets, their stakes and their goal are those of `calibrant.limits.goal_bets.goal_limits`. Here
rows come as blocks: how many of them are where a sample can have its values. All samples and all
candidates for their limits are walked through together, block by block.

*The capital of a block* is the product over its rows of 1 + lam (z - m), with one stake lam that is
known before the block. Its logarithm is bounded from below by power sums: with u = lam (z - m) >=
-q > -1,

    log(1 + u) >= u - u^2 / 2 + u^3 / 3 - u^4 / (4 (1 - q)).

For u >= 0 it holds with 4 in place of 4 (1 - q): the difference has the derivative u^4 / (1 + u).
For u < 0 the terms of the logarithm's series from the fourth on add up to at most u^4 (1 + q + q^2
+ ...) / 4. A capital that is rounded down stays a supermartingale, so that nothing is lost but a
little width. Stakes in blocks are at most 0.5 / (m - low); in single rows, where the capital is
exact, 0.9 / (m - low).

*The candidates.* Let t_1 < t_2 < ... be multiples of a step that is fixed beforehand. All m in
(t_{j-1}, t_j] have one sequence of stakes: that of t_j. It is known before each row, so that the
capital against m is a supermartingale if m is the true mean; and for one sequence of stakes the
capital falls as m rises. So if t_j is ruled out, all m up to it are, and in the first interval
whose end is not ruled out the largest m that is ruled out is found by bisection. The limit exceeds
the true mean only if the true mean itself was ruled out: one event, of probability at most `tail`,
however many intervals there are.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.kernels import Implementation, uses_numba

_MOST_LOST = 0.9  # share of the capital that a bet on a single row can lose
_MOST_LOST_IN_BLOCK = 0.5  # the same, for each row of a block
_GUESS_ROWS = 20.0  # rows that the guess of the variance counts for
STEPS = 4
"""Intervals of candidates within one standard error, for limits that matter."""
FEW_STEPS = 2
"""The same, for limits that may be a few percent wider."""
NUMBA_ROWS = 500_000
"""Rows from which on the walk is compiled, where numba is installed: loading it takes 0.2 s, once."""
# standard errors whose candidates are judged together: about as many as lie beyond the first limit
_AT_ONCE = 2
_START_SHARE = 0.01  # of the tail: for the limit from which the search starts
_LEAST_VARIANCE = 1e-12  # of a guess, over the square of the range
_ROUNDING = 1e-9  # of logarithms of capital, which are sums of many terms
_START_BISECTIONS = 24
_BISECTIONS = 8  # of an interval
_POWERS = 4
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class BlockSamples:
    """Samples of independent draws, in blocks, in an order that does not depend on their values.

    Attributes
    ----------
    values : float array of shape (n_samples, n_values)
        The values that draws of each sample can have.
    counts : float array of shape (n_samples, n_values)
        How many draws have them.
    blocks : float array of shape (n_samples, n_blocks, n_values)
        How many of the draws in each block have them. Blocks may be empty.
    singles : float array of shape (n_samples, n_singles)
        The draws after the last block, one by one; NaN for none.
    low, high : float arrays of shape (n_samples,)
        What no value can lie beyond; fixed without these draws.
    variance : float array of shape (n_samples,)
        A guess of the variance, made without these draws.
    """

    values: FloatArray
    counts: FloatArray
    blocks: FloatArray
    singles: FloatArray
    low: FloatArray
    high: FloatArray
    variance: FloatArray

    @property
    def mirrored(self) -> "BlockSamples":
        """The same with the opposite sign, which turns upper limits into lower ones."""
        return replace(
            self, values=-self.values, singles=-self.singles, low=-self.high, high=-self.low
        )


def block_limits(
    samples: BlockSamples,
    tail: FloatArray,
    steps: int = STEPS,
    *,
    implementation: Implementation = None,
) -> tuple[FloatArray, FloatArray]:
    """Limits for the mean of each sample.

    Each of the two misses with probability at most `tail` of the sample.

    Without draws they are the ends of the range. `steps` is how many candidates lie within one
    standard error. `implementation` forces "numpy" or "numba", for tests and benchmarks.
    """
    walk = _Walk.of(samples, tail, steps)
    if uses_numba(int(samples.counts.sum()), NUMBA_ROWS, implementation):
        both = walk.compiled_limits()
    else:
        both = walk.lower_limits(_AT_ONCE * steps)
    n_samples = tail.size
    return both[:n_samples], -both[n_samples:]


@dataclass(frozen=True, eq=False)
class _Walk:
    """What the walk needs of each sample; steps are its blocks, then its single rows.

    Each sample is there twice: as it is, then with the opposite sign, which turns upper limits into
    lower ones.

    Attributes
    ----------
    sums : float array of shape (5, n_blocks, n_samples)
        Sums over the rows of each block of (z - centre)^p, p from 0 to 4.
    singles : float array of shape (n_singles, n_samples)
        Single rows less the centre, 0 for none.
    is_row : float array of shape (n_singles, n_samples)
        1 for a row, 0 for none.
    pace : float array of shape (n_steps, n_samples)
        One over the standard deviation of the rows before, times the square root of the rows that
        are left.
    low, high, start, step, goal : float arrays of shape (n_samples,)
        The range and a first limit, less the centre; the length of intervals; the logarithm of the
        capital needed.
    centre : float array of shape (n_samples,)
        The middle of the range.
    is_empty : bool array of shape (n_samples,)
        Whether there are no draws, or all values are one.
    """

    sums: FloatArray
    singles: FloatArray
    is_row: FloatArray
    pace: FloatArray
    low: FloatArray
    high: FloatArray
    start: FloatArray
    step: FloatArray
    goal: FloatArray
    centre: FloatArray
    is_empty: BoolArray

    @classmethod
    def of(cls, samples: BlockSamples, tail: FloatArray, steps: int) -> "_Walk":
        """Prepare the walk for lower limits of the samples, and of the mirrored ones."""
        centre = (samples.low + samples.high) / 2.0
        width = samples.high - samples.low
        guess = np.maximum(samples.variance, _LEAST_VARIANCE * width**2)
        values = samples.values - centre[:, None]
        sums = _power_sums(samples.blocks, values)
        is_row = np.isfinite(samples.singles).T.astype(np.float64)
        singles = np.where(is_row > 0.0, samples.singles.T - centre, 0.0)
        rows = np.concatenate([sums[0], is_row])
        n_rows = rows.sum(axis=0)
        in_steps = np.concatenate([sums[1], singles])
        pace = _pace(rows, in_steps, np.concatenate([sums[2], singles**2]), guess)
        deviation = np.maximum(np.sqrt(guess), width / 32.0)
        low = samples.low - centre
        high = samples.high - centre
        is_empty = (n_rows == 0) | (width <= 0.0)
        step = np.where(is_empty, 1.0, deviation / (steps * np.sqrt(np.maximum(n_rows, 1.0))))
        goal = -np.log((1.0 - _START_SHARE) * tail) + _ROUNDING
        for_start = (samples.counts, guess, _START_SHARE * tail)
        signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0])[:, None, None]
        return cls(
            np.concatenate([sums, signs * sums], axis=-1),
            np.concatenate([singles, -singles], axis=-1),
            _twice(is_row),
            _twice(pace),
            np.concatenate([low, -high]),
            np.concatenate([high, -low]),
            np.concatenate(
                [_start(values, low, high, *for_start), _start(-values, -high, -low, *for_start)]
            ),
            _twice(step),
            _twice(goal),
            np.concatenate([centre, -centre]),
            _twice(is_empty),
        )

    def taken(self, index: IndexArray) -> "_Walk":
        """Some of the samples."""
        return _Walk(*(getattr(self, name)[..., index] for name in self.__dataclass_fields__))

    def lower_limits(self, at_once: int) -> FloatArray:
        """The lower limit of each sample."""
        limit = np.where(self.is_empty, self.low, self.start)
        todo = np.flatnonzero(~self.is_empty)
        first = np.floor(self.start / self.step) + 1.0
        while todo.size:
            walk = self.taken(todo)
            number = first[todo] + np.arange(at_once)[:, None]
            means = number * walk.step
            missing, stakes = walk.bets(means)
            ruled_out = missing <= 0.0
            n_ruled_out = np.where(ruled_out.all(axis=0), at_once, ruled_out.argmin(axis=0))
            reached = np.take_along_axis(means, np.maximum(n_ruled_out - 1, 0)[None], axis=0)[0]
            limit[todo] = np.where(n_ruled_out > 0, reached, limit[todo])
            open_end = n_ruled_out < at_once
            found = np.flatnonzero(open_end)
            if found.size:
                last = n_ruled_out[found]
                limit[todo[found]] = walk.taken(found).refined(
                    limit[todo[found]], means[last, found], stakes[:, last, found]
                )
            first[todo] += at_once
            at_once *= 2  # few samples are left
            todo = todo[~open_end & (limit[todo] < self.high[todo])]
        return np.minimum(limit, self.high) + self.centre

    def compiled_limits(self) -> FloatArray:
        """The lower limit of each sample, by compiled loops."""
        from calibrant.limits import compiled_walk

        limit = np.where(self.is_empty, self.low, self.start)
        walk = self.taken(np.flatnonzero(~self.is_empty))
        singles = np.where(walk.is_row > 0.0, walk.singles, np.nan)
        limit[~self.is_empty] = compiled_walk.lower_limits(
            np.ascontiguousarray(walk.sums.transpose(2, 1, 0)),
            np.ascontiguousarray(singles.T),
            np.ascontiguousarray(walk.pace.T),
            walk.low,
            walk.high,
            walk.start,
            walk.step,
            walk.goal,
            (_MOST_LOST_IN_BLOCK, _MOST_LOST),
            _BISECTIONS,
        )
        return np.minimum(limit, self.high) + self.centre

    def bets(self, means: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bet against each mean: what is missing of the goal in the end, 0 if it was reached, and
        all stakes.
        """
        missing = np.broadcast_to(self.goal, means.shape).copy()
        n_blocks = self.sums.shape[1]
        room = means - self.low
        stakes = np.empty((self.pace.shape[0], *means.shape))
        powers = _about(self.sums, means)
        for number, pace in enumerate(self.pace):
            short = np.maximum(missing, 1e-12)
            # phi(Phi^-1(x)) / x at x = exp(-short)
            stake = np.exp(short - 0.5 * ndtri_exp(-short) ** 2 - _LOG_SQRT_2PI)
            stake *= pace
            most = _MOST_LOST_IN_BLOCK if number < n_blocks else _MOST_LOST
            np.minimum(stake, most / room, out=stake)
            stake *= missing > 0.0
            stakes[number] = stake
            if number < n_blocks:
                missing -= _block_gain([power[number] for power in powers], stake, room)
            else:
                row = number - n_blocks
                missing -= np.log1p(stake * (self.singles[row] - means) * self.is_row[row])
        return missing, stakes

    def refined(self, low: FloatArray, high: FloatArray, stakes: FloatArray) -> FloatArray:
        """The largest mean between `low`, which is ruled out, and `high`, that bets with these
        stakes rule out.
        """
        n_blocks = self.sums.shape[1]
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            powers = [power[:, 0] for power in _about(self.sums, middle[None])]
            in_blocks = _block_gain(powers, stakes[:n_blocks], middle - self.low)
            in_rows = np.log1p(stakes[n_blocks:] * (self.singles - middle) * self.is_row)
            capital = np.cumsum(np.concatenate([in_blocks, in_rows]), axis=0)
            ruled_out = capital.max(axis=0, initial=0.0) >= self.goal
            low = np.where(ruled_out, middle, low)
            high = np.where(ruled_out, high, middle)
        return low


def _twice(values: NDArray[Any]) -> NDArray[Any]:
    """The values of samples, and the same for the mirrored ones."""
    return np.concatenate([values, values], axis=-1)


def _power_sums(blocks: FloatArray, values: FloatArray) -> FloatArray:
    """Sums over the rows of each block of their values to the powers 0 to 4.

    Parameters
    ----------
    blocks : float array of shape (n_samples, n_blocks, n_values)
    values : float array of shape (n_samples, n_values)

    Returns
    -------
    float array of shape (5, n_blocks, n_samples)
    """
    sums = np.empty((_POWERS + 1, blocks.shape[1], blocks.shape[0]))
    power = np.ones_like(values)
    for of_power in sums:
        np.einsum("sbv,sv->bs", blocks, power, out=of_power)
        power = power * values
    return sums


def _about(sums: FloatArray, means: FloatArray) -> list[FloatArray]:
    """Sums over the rows of each block of (z - mean)^p, p from 1 to 4: arrays of shape (n_blocks,
    *means.shape).
    """
    # each round turns a factor z of the sums, on the left, into a factor z - mean
    found = []
    left = [of_power[:, None] for of_power in sums]
    for _ in range(_POWERS):
        shifted = []
        for lower, higher in pairwise(left):
            product = lower * means
            shifted.append(np.subtract(higher, product, out=product))
        found.append(shifted[0])
        left = shifted
    return found


def _block_gain(powers: list[FloatArray], stake: FloatArray, room: FloatArray) -> FloatArray:
    """What the logarithm of the capital gains in a block, rounded down."""
    most_lost = stake * room
    gain = powers[-1] * (stake / (-_POWERS * (1.0 - most_lost)))
    for p in range(_POWERS - 1, 0, -1):
        gain += powers[p - 1] * ((-1.0) ** (p + 1) / p)
        gain *= stake
    return np.asarray(gain)


def _pace(rows: FloatArray, sums: FloatArray, squares: FloatArray, guess: FloatArray) -> FloatArray:
    """One over the standard deviation of earlier rows, times the root of the rows left.

    The guess is some more rows.
    """

    def before(values: FloatArray) -> FloatArray:
        return np.concatenate([np.zeros_like(values[:1]), np.cumsum(values[:-1], axis=0)])

    n_before = before(rows)
    mean = before(sums) / np.maximum(n_before, 1.0)
    spread = np.maximum(before(squares) - n_before * mean**2, 0.0)
    variance = (_GUESS_ROWS * guess + spread) / (_GUESS_ROWS + n_before)
    left = rows.sum(axis=0) - n_before
    return np.asarray(1.0 / np.sqrt(variance * np.maximum(left, 1.0)))


def _start(
    values: FloatArray,
    low: FloatArray,
    high: FloatArray,
    counts: FloatArray,
    guess: FloatArray,
    tail: FloatArray,
) -> FloatArray:
    """A lower limit by one stake for all rows: by Markov's inequality, all means below it are ruled
    out at once.
    """
    goal = -np.log(tail) + _ROUNDING
    n_rows = np.maximum(counts.sum(axis=1), 1.0)
    stake = np.sqrt(2.0 * goal / (n_rows * np.maximum(guess, 1e-300)))
    ruled_out = low
    kept = high
    for _ in range(_START_BISECTIONS):
        mean = (ruled_out + kept) / 2.0
        room = np.maximum(mean - low, 1e-300)
        bet = np.minimum(stake, _MOST_LOST / room)
        won = bet[:, None] * (values - mean[:, None])
        capital = (counts * np.log1p(np.where(counts > 0.0, won, 0.0))).sum(axis=1)
        below = capital >= goal
        ruled_out = np.where(below, mean, ruled_out)
        kept = np.where(below, kept, mean)
    return ruled_out
