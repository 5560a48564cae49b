"""Bets against candidate means of weighted outcomes in [0, 1]: their capital, and the means they
rule out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray, IndexArray, IntArray

# the logarithm of the capital is a sum of many terms; rule a mean out only beyond their rounding
# error
ROUNDING = 1e-9
_END = 2.0**-40  # far smaller than any sample can resolve
_CLOSE = 1e-6  # at a limit, the log capital may exceed the goal by at most this
_MOST_TRIES = 80


@dataclass(frozen=True, slots=True, eq=False)
class Bets:
    """Bets on weighted outcomes, one after another.

    The stake of each bet is chosen before its outcomes are seen.

    If the weights w and outcomes y are independent draws of one region, in an order that depends on
    neither, and m is E[w y] / E[w], then the capital prod(1 + min(stake, c / m) w (y - m)) is a
    nonnegative martingale, and so is the capital of bets on smaller outcomes. By Ville's inequality
    it ever reaches exp(goal) with probability at most exp(-goal). The stakes do not depend on m, so
    each factor is monotone in m.

    Attributes
    ----------
    weight, outcome : float arrays
        Weights and outcomes, both in [0, 1], by region and in the order of the bets.
    stake : float array
        Stake of each bet.
    first : int array
        The first bet of each region.
    most_staked : float
        c: the largest share of the capital that one bet can lose.
    starts, number : int array or None, int array
        Where the outcomes of each bet begin, if a bet covers several outcomes together, and how
        often each outcome counts.
    """

    weight: FloatArray
    outcome: FloatArray
    stake: FloatArray
    first: IndexArray
    most_staked: float
    starts: IndexArray | None = None
    number: IntArray | int = 1

    def best_capital(self, means: FloatArray, side: float) -> FloatArray:
        """The largest log capital after any bet, for bets that each region's true mean is larger
        (or smaller) than `means`.
        """
        q = np.repeat(means, np.diff(self.first, append=self.stake.size))
        stake = side * np.minimum(self.stake, self.most_staked / (q if side > 0 else 1.0 - q))
        if self.starts is None:
            growth = np.log1p(stake * self.weight * (self.outcome - q))
        else:
            length = np.diff(self.starts, append=self.weight.size)
            stake = np.repeat(stake, length)
            q = np.repeat(q, length)
            growth = np.add.reduceat(
                self.number * np.log1p(stake * self.weight * (self.outcome - q)), self.starts
            )
        capital = np.cumsum(growth)
        before = np.where(self.first > 0, capital[self.first - 1], 0.0)
        return np.asarray(np.maximum.reduceat(capital, self.first) - before)

    def limits(
        self, mean: FloatArray, width: FloatArray, step: FloatArray, goal: float
    ) -> tuple[FloatArray, FloatArray]:
        """Limits for the mean of each region; each limit misses with probability at most
        exp(-goal).

        The search begins about `width` away from the observed `mean`, with steps of at least `step`.
        """
        needed = goal + ROUNDING
        low = last_rejected(
            +1.0, lambda means: self.best_capital(means, +1.0) - needed, mean - width, step
        )
        high = last_rejected(
            -1.0, lambda means: self.best_capital(means, -1.0) - needed, 1.0 - mean - width, step
        )
        return low, 1.0 - high


def last_rejected(
    side: float, excess: Callable[[FloatArray], FloatArray], near: FloatArray, step: FloatArray
) -> FloatArray:
    """The largest rejected rate of each region, searching up from 0; with `side` -1, the largest
    rejected 1 - rate.

    `excess` takes one rate per region. It decreases continuously, and a rate is rejected where it
    is at least 0. The search begins `near` the result, at most about a `step` away. Each
    returned rate was itself evaluated, or is 0.

    >>> last_rejected(1.0, lambda rates: 0.3 - rates, np.array([0.5]), np.array([0.1])).round(6)
    array([0.3])
    """
    low = np.zeros(near.size)
    high = np.ones(near.size)
    before = np.zeros(near.size) > 0.0
    found = near < -np.inf
    # excess at the last rejected rate and at the last rate not rejected
    above = np.full(near.size, np.nan)
    below = np.full(near.size, np.nan)
    rate = np.clip(near, _END, 1.0 - _END)
    for _ in range(_MOST_TRIES):
        value = excess(rate if side > 0 else 1.0 - rate)
        lost = value >= 0.0
        # halve the value at an end that stayed put twice, so that both ends move (the Illinois
        # method)
        above = np.where(lost, value - _CLOSE / 2.0, np.where(before, above, above / 2.0))
        below = np.where(lost, np.where(before, below / 2.0, below), value - _CLOSE / 2.0)
        low = np.where(lost, rate, low)
        high = np.where(lost, high, rate)
        before = lost
        found |= (lost & (value <= _CLOSE)) | (high - low <= _END)
        if found.all():
            break
        step = 2.0 * step
        with np.errstate(invalid="ignore"):
            between = (above * high - below * low) / (above - below)
        outside = np.where(
            np.isnan(above), high - step, low + step
        )  # one of the two ends has not been evaluated yet
        rate = np.where(np.isnan(between), outside, np.clip(between, low, high))
        rate = np.clip(np.where(found, low, rate), _END, 1.0 - _END)
    return low
