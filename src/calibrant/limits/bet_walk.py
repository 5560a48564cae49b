"""The betting walk: bets that aim at a goal give limits for the means of many samples at once.

A bet against the mean m wins if the draws are larger than m. The goal is known beforehand: a
capital of 1 / tail after at most n draws. The best stake then depends on the capital so far and on
the number of draws left, as for a gambler who must reach a goal by a deadline (Kulldorff 1993).
With few draws left and little capital it is bold; once the goal is reached, nothing more is staked.
Limits are within 2 to 5% of those of the normal distribution with a known variance, and hold for
every distribution.

*The bets.* Draws z_i lie in [low, high] and have weights w_i in (0, 1]; the limits are for E[w z] /
E[w]. Against m: K_i = K_{i-1} (1 + lam_i w_i (z_i - m)), K_0 = 1, with 0 <= lam_i <= 0.9 / (m -
low) known before the draw. If m is the true mean, K is a nonnegative martingale, so it ever reaches
G = 1 / tail with probability at most `tail` (Ville). With x = K_{i-1} / G, a running standard
deviation s of w (z - mean) and r draws left, lam_i = phi(Phi^-1(x)) / (x s sqrt(r)): for normal
draws this stake maximises the probability of reaching the goal.

*Blocks.* The first n / 64 of n draws share one stake, and so does the first 1 / 64 of those left,
and so on until 128 single draws are left. The capital of a block is the product over its draws. For
the last blocks it is exact. For earlier blocks its logarithm is bounded from below by sums of
powers: with u = lam w (z - m), and all u of the block at least -q > -1,

    log(1 + u) >= u - u^2 / 2 + u^3 / 3 - u^4 / (4 (1 - q)).

For u >= 0 it holds even with 4 in place of 4 (1 - q): the difference has derivative u^4 / (1 + u).
For u < 0 the terms of the logarithm's series from the fourth on add up to at most u^4 (1 + q + q^2
+ ...) / 4. Stakes depend on the bound on the capital, and so on earlier draws alone; and the true
capital is at least as large. So if the bound reaches the goal, so does a martingale: the only cost
is slightly wider limits. The bound is poor for u > 1, so stakes there are at most 1 / (high - m).
Sums are taken about `low`, so that a stake near its cap never magnifies rounding errors.

*The candidates.* Let t_1 < t_2 < ... be multiples of a step that is fixed beforehand. All m in
(t_{j-1}, t_j] share one sequence of stakes, that of t_j. It is known before each draw, so the
capital against m is a martingale if m is the true mean; and for a fixed sequence of stakes the
capital decreases in m. So if t_j is ruled out, so are all m up to it, and in the first interval
whose end is not ruled out, bisection finds the largest m that is. The limit exceeds the true mean
only if the true mean itself was ruled out: one event, of probability at most `tail`, however many
intervals there are. The search starts at a limit that uses 1% of the tail and comes from a single
stake for all draws, at most 1 / (high - low): as the capital decreases in m, all smaller means are
ruled out at once (Markov).

References
----------
Kulldorff (1993), "Optimal control of favorable games with a time limit", SIAM J. Control Optim. 31,
52-69; Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting",
JRSS B 86, 1-27.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtri_exp

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.kernels import Implementation, uses_numba

SINGLE_DRAWS = 128
"""The number of last draws that are blocks of their own."""
BLOCKS = 64
"""A block holds one over this of the draws left."""
STEPS = 4
"""Intervals of candidates per standard error, for important limits."""
FEW_STEPS = 2
"""Intervals of candidates per standard error, for limits that may be a few percent wider."""
GUESS_DRAWS = 20.0
"""Number of draws that the guess at the variance counts as."""
NUMBA_DRAWS = 500_000
"""Draws from which on the compiled walk is used, if numba is installed: loading it takes 0.2 s."""
POWERS = 4
MOMENTS = tuple((p, k) for p in range(POWERS + 1) for k in range(p + 1))
"""Pairs (p, k) of the sums of w^p (z - low)^k, in the order in which they are stored."""

_PLACE = {pair: number for number, pair in enumerate(MOMENTS)}
_MOST_LOST = 0.9  # largest share of the capital that one bet can lose
_AT_ONCE = 2  # standard errors whose candidates are evaluated together
_START_SHARE = 0.01  # share of the tail for the limit at which the search starts
_LEAST_VARIANCE = 1e-12  # of a guess, over the squared range
_LEAST_STEP = (
    1.0 / 32.0
)  # of the range, over the root of the draws: the least standard deviation for the step
_MANY = 8  # times as many draws as late ones are many: then a bound is enough for the start
_NEAREST = 1e-12  # lower bound on the distance to the goal when a stake is chosen
_ROUNDING = 1e-9  # of log capital, which is a sum of many terms
_START_BISECTIONS = 24
_BISECTIONS = 8  # per interval
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False)
class Bets:
    """Draws of several samples in the order of the bets: sums over early blocks, then single draws.

    Attributes
    ----------
    moments : float array of shape (15, n_blocks, n_samples), or (5, n_blocks, n_samples)
        Sums over the draws of each block of w^p (z - low)^k, for the pairs of `MOMENTS`; if all
        weights are 1, of (z - low)^k for k from 0 to 4. Blocks may be empty.
    smallest : float array of shape (n_blocks, n_samples)
        A lower bound on z - low in each block.
    heaviest : float array of shape (n_blocks, n_samples)
        An upper bound on the weights in each block.
    draws, weights : float arrays of shape (n_draws, n_samples)
        Later draws minus `low`, and their weights; 0 for no draw.
    sizes : int array of shape (n_late_blocks,)
        The number of later draws in each block, the same for all samples.
    low, width : float arrays of shape (n_samples,)
        The lower end of the range, and its width; fixed without looking at these draws.
    variance : float array of shape (n_samples,)
        A guess at the variance of w (z - mean), made without these draws. A good guess narrows the
        limits; a bad one never invalidates them.
    typical_weight : float array of shape (n_samples,)
        A guess at the mean weight.
    guess_draws : float array of shape (n_samples,)
        Number of draws that the guess counts as.
    """

    moments: FloatArray
    smallest: FloatArray
    heaviest: FloatArray
    draws: FloatArray
    weights: FloatArray
    sizes: IndexArray
    low: FloatArray
    width: FloatArray
    variance: FloatArray
    typical_weight: FloatArray
    guess_draws: FloatArray

    @classmethod
    def joined(cls, samples: "Sequence[Bets]") -> "Bets":
        """Concatenate samples that have the same late blocks.

        Samples with fewer early blocks get empty ones.
        """
        n_blocks = max(bets.moments.shape[1] for bets in samples)
        padded = [bets._padded(n_blocks) for bets in samples]
        names = [entry.name for entry in fields(cls) if entry.name != "sizes"]
        columns = {
            name: np.concatenate([getattr(bets, name) for bets in padded], axis=-1)
            for name in names
        }
        return cls(**columns, sizes=samples[0].sizes)

    def _padded(self, n_blocks: int) -> "Bets":
        more = (0, n_blocks - self.moments.shape[1])
        if more == (0, 0):
            return self
        return replace(
            self,
            moments=np.pad(self.moments, ((0, 0), more, (0, 0))),
            smallest=np.pad(self.smallest, (more, (0, 0)), constant_values=np.inf),
            heaviest=np.pad(self.heaviest, (more, (0, 0))),
        )


def lower_limits(
    bets: Bets, tail: FloatArray, steps: int = STEPS, *, implementation: Implementation = None
) -> FloatArray:
    """The lower limit for the mean of each sample; it exceeds the mean with probability at most
    `tail`.

    `steps` is the number of candidates per standard error. `implementation` forces "numpy" or
    "numba". Without draws, the limit is the lower end of the range.
    """
    n_draws = int(bets.moments[0].sum()) + int(np.count_nonzero(bets.weights))
    n_draws //= 2  # each sample occurs twice, once per limit
    if uses_numba(n_draws, NUMBA_DRAWS, implementation):
        return _Walk.of(bets, tail, steps, compiled=True).compiled_limits()
    return _Walk.of(bets, tail, steps).lower_limits(_AT_ONCE * steps)


@dataclass(frozen=True, eq=False)
class _Walk:
    """The data of the walk for each sample; its steps are the early blocks, then the late ones.

    All means are relative to `low`.

    Attributes
    ----------
    moments, smallest, heaviest, draws, weights, low, width
        As in `Bets`.
    pace : float array of shape (n_steps, n_samples)
        One over the product of the standard deviation of earlier draws and the square root of the
        number of draws left.
    start, step, goal : float arrays of shape (n_samples,)
        The initial limit, the length of the intervals, and the logarithm of the capital to reach.
    n_draws : float array of shape (n_samples,)
        The number of draws.
    is_empty : bool array of shape (n_samples,)
        Whether there are no draws, or the range is a single value.
    ends : int array of shape (n_late_blocks + 1,)
        Where late blocks begin among the draws, and where the last one ends.
    """

    moments: FloatArray
    smallest: FloatArray
    heaviest: FloatArray
    draws: FloatArray
    weights: FloatArray
    low: FloatArray
    width: FloatArray
    pace: FloatArray
    start: FloatArray
    step: FloatArray
    goal: FloatArray
    n_draws: FloatArray
    is_empty: BoolArray
    ends: IndexArray

    @classmethod
    def of(cls, bets: Bets, tail: FloatArray, steps: int, *, compiled: bool = False) -> "_Walk":
        """Prepare the walk for lower limits, with arrays or with compiled loops."""
        guess = np.maximum(bets.variance, _LEAST_VARIANCE * bets.width**2)
        ends = np.concatenate([[0], np.cumsum(bets.sizes)])
        with_loops = compiled and _is_plain(bets.moments)
        moments, pace = (_compiled_steps if with_loops else _steps)(bets, ends, guess)
        n_draws = moments[0].sum(axis=0)
        is_empty = (n_draws == 0) | (bets.width <= 0.0)
        deviation = np.maximum(np.sqrt(guess) / bets.typical_weight, _LEAST_STEP * bets.width)
        step = deviation / (steps * np.sqrt(np.maximum(n_draws, 1.0)))
        return cls(
            moments[:, : bets.moments.shape[1]],
            bets.smallest,
            bets.heaviest,
            bets.draws,
            bets.weights,
            bets.low,
            bets.width,
            pace,
            _start(bets, guess, _START_SHARE * tail, moments),
            np.where(is_empty, 1.0, step),
            -np.log((1.0 - _START_SHARE) * tail) + _ROUNDING,
            n_draws,
            is_empty,
            ends,
        )

    def taken(self, index: IndexArray) -> "_Walk":
        """Some of the samples."""
        names = [entry.name for entry in fields(self) if entry.name != "ends"]
        return _Walk(**{name: getattr(self, name)[..., index] for name in names}, ends=self.ends)

    def lower_limits(self, at_once: int) -> FloatArray:
        """The lower limit of each sample."""
        limit = np.where(self.is_empty, 0.0, self.start)
        todo = np.flatnonzero(~self.is_empty)
        first = np.floor(self.start / self.step) + 1.0
        while todo.size:
            walk = self.taken(todo)
            number = first[todo] + np.arange(at_once)[:, None]
            means = number * walk.step
            missing, stakes = walk.bet(means)
            ruled_out = missing <= 0.0
            n_ruled_out = np.where(ruled_out.all(axis=0), at_once, ruled_out.argmin(axis=0))
            last = np.maximum(n_ruled_out - 1, 0)
            reached = np.take_along_axis(means, last[None], axis=0)[0]
            limit[todo] = np.where(n_ruled_out > 0, reached, limit[todo])
            open_end = n_ruled_out < at_once
            found = np.flatnonzero(open_end)
            if found.size:
                next_one = n_ruled_out[found]
                here = todo[found]
                beyond = means[next_one, found]
                chosen = np.ascontiguousarray(stakes[:, next_one, found])
                limit[here] = walk.taken(found).refined(limit[here], beyond, chosen)
            first[todo] += at_once
            at_once *= 2  # few samples are left
            todo = todo[~open_end & (limit[todo] < self.width[todo])]
        return np.minimum(limit, self.width) + self.low

    def compiled_limits(self) -> FloatArray:
        """The lower limit of each sample, by compiled loops."""
        from calibrant.limits import compiled_walk

        limit = np.where(self.is_empty, 0.0, self.start)
        walk = self.taken(np.flatnonzero(~self.is_empty)) if self.is_empty.any() else self
        limit[~self.is_empty] = compiled_walk.lower_limits(
            np.ascontiguousarray(walk.moments.transpose(2, 1, 0)),
            np.ascontiguousarray(walk.smallest.T),
            np.ascontiguousarray(walk.heaviest.T),
            np.ascontiguousarray(walk.draws.T),
            np.ascontiguousarray(walk.weights.T),
            np.ascontiguousarray(walk.pace.T),
            walk.ends,
            walk.width,
            walk.start,
            walk.step,
            walk.goal,
            _MOST_LOST,
            _BISECTIONS,
        )
        return np.asarray(np.minimum(limit, self.width) + self.low)

    def bet(self, means: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bet against each mean; return how far the log capital is from the goal in the end, and
        all stakes.
        """
        n_blocks = self.moments.shape[1]
        gained = np.broadcast_to(-self.goal, means.shape).copy()  # beyond the goal
        stakes = np.zeros((self.pace.shape[0], *means.shape))
        most = np.minimum(_MOST_LOST / means, 1.0 / np.maximum(self.width - means, 1e-300))
        early = _BlockGains.of(self, means)
        for number in range(n_blocks):
            stake = stakes[number]
            _set_stake(stake, gained, self.pace[number], most)
            gained += early.gain(number, stake)
        # once the goal is reached, there are no late bets
        short = np.nonzero(gained < 0.0)
        of_short, more = self._bet_late(short[1], means[short], gained[short])
        gained[short] = more
        stakes[n_blocks:, short[0], short[1]] = of_short
        return -gained, stakes

    def _bet_late(
        self, sample: IndexArray, means: FloatArray, gained: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bet on the late draws of samples, against one mean each; return stakes and gains."""
        pace = self.pace[self.moments.shape[1] :, sample]
        won = (self.draws[:, sample] - means) * self.weights[:, sample]
        most = _MOST_LOST / means
        stakes = np.empty(pace.shape)
        for block, stake in enumerate(stakes):
            _set_stake(stake, gained, pace[block], most)
            rows = won[self.ends[block] : self.ends[block + 1]]
            rows *= stake
            np.log1p(rows, out=rows)
            gained += rows[0] if rows.shape[0] == 1 else rows.sum(axis=0)
        return stakes, gained

    def refined(self, low: FloatArray, high: FloatArray, stakes: FloatArray) -> FloatArray:
        """The largest mean from `low`, which is ruled out, to `high` that these stakes rule out."""
        n_blocks = self.moments.shape[1]
        early = np.ascontiguousarray(stakes[:n_blocks])
        of_draws = np.repeat(stakes[n_blocks:], np.diff(self.ends), axis=0) * self.weights
        capital = np.empty(stakes.shape)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            powers = [power[:, 0] for power in _about(self.moments, middle[None])]
            worst = _worst(self.smallest, self.heaviest, middle)
            capital[:n_blocks] = block_gain(powers, early, worst)
            won = self.draws - middle
            won *= of_draws
            np.log1p(won, out=won)
            np.add.reduceat(won, self.ends[:-1], axis=0, out=capital[n_blocks:])
            np.cumsum(capital, axis=0, out=capital)
            ruled_out = capital.max(axis=0, initial=0.0) >= self.goal
            low = np.where(ruled_out, middle, low)
            high = np.where(ruled_out, high, middle)
        return low


@dataclass(frozen=True, slots=True, eq=False)
class _BlockGains:
    """The coefficients of `block_gain` for all blocks and means.

    Attributes
    ----------
    first, second, third, fourth : float arrays of shape (n_blocks, *shape of the means)
        Sums over draws of (w (z - m))^p, times 1, -1 / 2, 1 / 3 and 1.
    worst : float array of the same shape
        Four times an upper bound on w (m - z).
    """

    first: FloatArray
    second: FloatArray
    third: FloatArray
    fourth: FloatArray
    worst: FloatArray

    @classmethod
    def of(cls, walk: _Walk, means: FloatArray) -> "_BlockGains":
        """The coefficients of the early blocks of a walk."""
        first, second, third, fourth = _about(walk.moments, means)
        second *= -1.0 / 2.0
        third *= 1.0 / 3.0
        worst = _worst(walk.smallest[:, None], walk.heaviest[:, None], means)
        return cls(first, second, third, fourth, 4.0 * worst)

    def gain(self, number: int, stake: FloatArray) -> FloatArray:
        """As `block_gain`, with the same roundings."""
        gain = stake * self.worst[number]
        gain -= 4.0
        np.divide(stake, gain, out=gain)
        gain *= self.fourth[number]
        gain += self.third[number]
        gain *= stake
        gain += self.second[number]
        gain *= stake
        gain += self.first[number]
        gain *= stake
        return np.asarray(gain)


def _set_stake(stake: FloatArray, gained: FloatArray, pace: FloatArray, most: FloatArray) -> None:
    """Set the stakes for a block: phi(Phi^-1(x)) / x times the pace, at the capital x.

    `gained` is the logarithm of x; nothing is staked once it is 0 or more.
    """
    log_capital = np.minimum(gained, -_NEAREST)
    ndtri_exp(log_capital, out=stake)
    stake *= stake
    stake *= -0.5
    stake -= log_capital
    stake -= _LOG_SQRT_2PI
    np.exp(stake, out=stake)
    stake *= pace
    stake *= gained < 0.0
    np.minimum(stake, most, out=stake)


def block_gain(powers: list[FloatArray], stake: FloatArray, worst: FloatArray) -> FloatArray:
    """The gain in log capital from a block, rounded down.

    `powers` are the sums over its draws of (w (z - m))^p for p from 1 to 4; no draw loses more than
    `worst` times the stake.
    """
    gain = powers[-1] * (stake / (-POWERS * (1.0 - stake * worst)))
    for p in range(POWERS - 1, 0, -1):
        gain += powers[p - 1] * ((-1.0) ** (p + 1) / p)
        gain *= stake
    return np.asarray(gain)


def _worst(smallest: FloatArray, heaviest: FloatArray, means: FloatArray) -> FloatArray:
    """An upper bound on w (m - z) in each block, and at least 0."""
    return np.asarray(heaviest * np.maximum(means - smallest, 0.0))


def _is_plain(moments: FloatArray) -> bool:
    """Whether all weights are 1, so that moments are sums of powers of the draws alone."""
    return bool(moments.shape[0] == POWERS + 1)


def _moment(moments: FloatArray, p: int, k: int) -> FloatArray:
    """Sums of w^p (z - low)^k."""
    return np.asarray(moments[k if _is_plain(moments) else _PLACE[p, k]])


def _about(moments: FloatArray, means: FloatArray) -> list[FloatArray]:
    """Sums over the draws of each block of (w (z - mean))^p for p from 1 to 4.

    Arrays of shape (n_blocks, *means.shape).
    """
    shift = -means
    powers = [np.ones_like(shift)]
    for _ in range(POWERS):
        powers.append(powers[-1] * shift)
    found = []
    term = np.empty((moments.shape[1], *means.shape))
    for p in range(1, POWERS + 1):
        total = _moment(moments, p, 0)[:, None] * powers[p]
        for k in range(1, p):
            scaled = math.comb(p, k) * _moment(moments, p, k)[:, None]
            np.multiply(scaled, powers[p - k], out=term)
            total += term
        total += _moment(moments, p, p)[:, None]
        found.append(total)
    return found


def powers_of(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Powers of single draws from 0 to 4, for weights of 1; a weight of 0 means no draw."""
    found = np.empty((POWERS + 1, *values.shape))
    found[0] = weights
    for k in range(POWERS):
        np.multiply(found[k], values, out=found[k + 1])
    return found


def moments_of(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Moments of single draws, in the order of `MOMENTS`; a weight of 0 means no draw."""
    found = np.empty((len(MOMENTS), *values.shape))
    found[0] = weights > 0.0
    for p in range(1, POWERS + 1):
        previous = weights if p == 1 else found[_PLACE[p - 1, 0]] * weights
        for k in range(p + 1):
            found[_PLACE[p, k]] = previous
            previous = previous * values
    return found


def _steps(bets: Bets, ends: IndexArray, guess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The moments of early and late blocks, as in `Bets`, and the pace."""
    is_plain = _is_plain(bets.moments)
    of_draws = (powers_of if is_plain else moments_of)(bets.weights, bets.draws)
    late = np.add.reduceat(of_draws, ends[:-1], axis=1)
    moments = np.concatenate([bets.moments, late], axis=1)
    return moments, _pace(moments, guess, bets.guess_draws)


def _compiled_steps(
    bets: Bets, ends: IndexArray, guess: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same for plain draws, by compiled loops: equal to the bit."""
    from calibrant.limits import compiled_walk

    draws = np.ascontiguousarray(bets.draws.T)
    weights = np.ascontiguousarray(bets.weights.T)
    by_sample = compiled_walk.plain_moments(bets.moments, draws, weights, ends)
    pace = compiled_walk.plain_paces(by_sample, guess, bets.guess_draws)
    return by_sample.transpose(2, 1, 0), pace.T


def _pace(moments: FloatArray, guess: FloatArray, guess_draws: FloatArray) -> FloatArray:
    """One over the product of the standard deviation of earlier draws and the root of the number of
    draws left.

    It is the deviation of w (z - mean), with the weighted mean; the guess counts as additional
    draws.
    """

    def before(p: int, k: int) -> FloatArray:
        values = _moment(moments, p, k)
        found = np.zeros_like(values)
        np.cumsum(values[:-1], axis=0, out=found[1:])
        return found

    n_before = before(0, 0)
    sums = before(1, 1)
    squares = before(2, 2)
    if _is_plain(moments):
        total = weights_squared = n_before
        products = sums
    else:
        total = before(1, 0)
        weights_squared = before(2, 0)
        products = before(2, 1)
    mean = sums / np.where(total > 0.0, total, 1.0)
    spread = np.maximum(squares - 2.0 * mean * products + mean**2 * weights_squared, 0.0)
    variance = (guess_draws * guess + spread) / (guess_draws + n_before)
    left = moments[0].sum(axis=0) - n_before
    return np.asarray(1.0 / np.sqrt(variance * np.maximum(left, 1.0)))


def _start(bets: Bets, guess: FloatArray, tail: FloatArray, moments: FloatArray) -> FloatArray:
    """A lower limit from one stake for all draws, which depends on the mean only through its cap.

    By Markov's inequality, all means below it are ruled out at once. `moments` are those of all
    blocks. For plain draws, if there are many, late ones have a bound too, not exact logarithms.
    """
    goal = -np.log(tail) + _ROUNDING
    n_draws = moments[0].sum(axis=0)
    stake = np.sqrt(2.0 * goal / (np.maximum(n_draws, 1.0) * np.maximum(guess, 1e-300)))
    stake = np.minimum(stake, 1.0 / np.maximum(bets.width, 1e-300))
    many = _is_plain(moments) & (n_draws >= _MANY * bets.draws.shape[0])
    sums = np.where(many, moments.sum(axis=1), bets.moments.sum(axis=1))[:, None]
    smallest = np.where(many, 0.0, bets.smallest.min(axis=0, initial=np.inf))
    heaviest = np.where(many, 1.0, bets.heaviest.max(axis=0, initial=0.0))
    exact = np.flatnonzero(~many)
    draws = bets.draws[:, exact]
    weights = bets.weights[:, exact]
    ruled_out = np.zeros_like(goal)
    kept = bets.width
    for _ in range(_START_BISECTIONS):
        mean = (ruled_out + kept) / 2.0
        bet = np.minimum(stake, _MOST_LOST / np.maximum(mean, 1e-300))
        powers = [power[0, 0] for power in _about(sums, mean[None])]
        gain = block_gain(powers, bet, _worst(smallest, heaviest, mean))
        gain[exact] += np.log1p(bet[exact] * weights * (draws - mean[exact])).sum(axis=0)
        below = gain >= goal
        ruled_out = np.where(below, mean, ruled_out)
        kept = np.where(below, kept, mean)
    return ruled_out


@lru_cache(maxsize=64)
def late_sizes(most: int) -> tuple[int, ...]:
    """The sizes of the blocks of the last draws, about `most` draws at most.

    They are the same for all samples: 128 single draws at the end, and before them about a 64th of
    the draws left.

    >>> late_sizes(3), late_sizes(130)[:2], sum(late_sizes(2048))
    ((1, 1, 1), (2, 1), 2053)
    """
    sizes = [1] * min(most, SINGLE_DRAWS)
    total = len(sizes)
    while total < most:
        sizes.append(max(1, total // (BLOCKS - 1)))
        total += sizes[-1]
    return tuple(reversed(sizes))


@lru_cache(maxsize=1024)  # many regions have the same size
def block_sizes(n_draws: int, n_late: int = SINGLE_DRAWS) -> tuple[int, ...]:
    """The sizes of the blocks before the last `n_late` draws: a 64th of the draws left.

    >>> block_sizes(135), sum(block_sizes(10_000))
    ((2, 2, 2, 1), 9872)
    """
    sizes = []
    left = n_draws
    while left > n_late:
        size = min(max(1, left // BLOCKS), left - n_late)
        sizes.append(size)
        left -= size
    return tuple(sizes)
