"""The martingales of all monitors: bets on a change, averaged over its direction, its size and its
start.

Each is a nonnegative martingale under its null hypothesis and starts at 1. By Ville's inequality it
ever reaches 1 / alpha with probability at most alpha. All sums are of logarithms.
"""

from typing import ClassVar

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.params.declared_state import Resumed
from calibrant.params.kind import EntryTable
from calibrant.params.state_kinds import Counts, Numbers, NumbersOrNull, OneCount, Tabled

SIZES = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
"""Sizes of change that are bet on."""
SIZE_WEIGHTS = np.array([0.1, 0.2, 0.25, 0.25, 0.2])
"""Their weights: larger changes show with fewer labels."""


def later_start(number: int) -> int:
    """The number of batches after which start `number`, counted from 1, begins: two starts per
    doubling.

    >>> [later_start(number) for number in range(1, 10)]
    [1, 2, 3, 4, 6, 8, 12, 16, 23]
    """
    return 1 if number == 1 else int(np.ceil(2.0 ** (number / 2.0)))


def start_weight(number: int | IntArray) -> FloatArray:
    """The weight of a start: 1/2 for the first, and 1 / (2 j (j + 1)) for number j.

    They add up to 1.

    >>> round(float(start_weight(np.arange(10_000)).sum()), 3)
    1.0
    """
    j = np.asarray(number, dtype=np.float64)
    return np.asarray(np.where(j == 0, 0.5, 0.5 / np.maximum(j * (j + 1.0), 1.0)))


def log_sum(logs: FloatArray) -> float:
    """The logarithm of the sum of numbers given by their logarithms.

    >>> round(log_sum(np.array([0.0, -np.inf, 0.0])), 3)
    0.693
    """
    largest = float(np.max(logs))
    if largest == -np.inf:
        return largest
    return largest + float(np.log(np.exp(logs - largest).sum()))


class ShiftMixture(Resumed):
    """Bets that the mean of independent N(0, 1) numbers has changed.

    Each batch gives one z for each channel. Bets multiply by exp(c z - c^2 / 2), with c = d x a: a
    size d, a direction x over the channels, and a stake a. All stakes are known before z, so each
    product is a martingale in the filtration of the z, and so is the weighted sum over sizes, both
    signs, directions and starts. The weights of starts that have not begun are added unchanged.

    The stake of a channel is a = strength * N_start / N: how far a change of 1 moves z, if only
    N_start of the N units in the pool are from before the change.

    Attributes
    ----------
    directions : float array of shape (n_directions, n_channels)
        The changes that are bet on: the same in all channels, a slope, single channels.
    weights : float array of shape (n_directions,)
        Their weights, which add up to 1.
    sizes : float array
        Sizes d.
    first : float array of shape (n_starts, n_channels)
        The size of the pool when each start began.
    moved, spent : float arrays of shape (n_starts, n_channels)
        Sums of a z and of a^2.
    n_batches : int
        Batches so far.
    """

    _entries: ClassVar[EntryTable] = {
        "first": Tabled(Numbers(size="n_channels", low=0.0)),
        "moved": Tabled(Numbers(size="n_channels")),
        "spent": Tabled(Numbers(size="n_channels", low=0.0)),
        "n_batches": OneCount(),
    }

    def __init__(
        self, directions: FloatArray, weights: FloatArray, sizes: FloatArray = SIZES
    ) -> None:
        self.directions = directions
        self.weights = weights
        self.sizes = sizes
        self.first = np.zeros((0, directions.shape[1]))
        self.moved = self.first
        self.spent = self.first
        self.n_batches = 0

    @property
    def n_channels(self) -> int:
        """How many numbers each batch gives."""
        return int(self.directions.shape[1])

    @property
    def n_starts(self) -> int:
        """How many starts have begun."""
        return len(self.first)

    def begins(self) -> bool:
        """Whether a start begins with the next batch."""
        return self.n_starts == 0 or self.n_batches >= later_start(self.n_starts)

    def update(self, z: FloatArray, strength: FloatArray, pool: FloatArray) -> None:
        """Process the numbers of a batch.

        `pool` is the size of the pool of each channel before the batch.
        """
        if self.begins():
            nothing = np.zeros((1, z.size))
            self.first = np.concatenate([self.first, pool[None, :]])
            self.moved = np.concatenate([self.moved, nothing])
            self.spent = np.concatenate([self.spent, nothing])
        stake = strength * (self.first / np.maximum(pool, 1.0))
        self.moved = self.moved + stake * z
        self.spent = self.spent + stake * stake
        self.n_batches += 1

    def log_parts(self) -> FloatArray:
        """Logarithm of the weighted product of each start and direction, summed over sizes and
        signs.
        """
        moved = self.moved @ self.directions.T
        spent = self.spent @ (self.directions.T**2)
        sizes = np.concatenate([self.sizes, -self.sizes])
        logs = sizes * moved[..., None] - 0.5 * sizes**2 * spent[..., None]
        largest = logs.max(axis=-1)
        weights = np.concatenate([SIZE_WEIGHTS, SIZE_WEIGHTS]) / 2.0
        summed = largest + np.log(np.exp(logs - largest[..., None]) @ weights)
        started = start_weight(np.arange(self.n_starts))
        return np.asarray(summed + np.log(started)[:, None] + np.log(self.weights))

    def log_evidence(self) -> float:
        """Logarithm of the martingale."""
        if self.n_starts == 0:
            return 0.0
        waiting = 1.0 - float(start_weight(np.arange(self.n_starts)).sum())
        return log_sum(np.append(self.log_parts().ravel(), np.log(waiting)))

    def likely_start(self) -> int:
        """The number of the start with the largest share of the evidence."""
        parts = self.log_parts()
        return int(np.argmax([log_sum(row) for row in parts]))


class RestartedBets(Resumed):
    """Bets that restart with every batch: M <- (M + w_t) F, for each of several kinds of bets.

    F is the product of a batch's factors, each with expectation at most 1 given the past. With w_0
    = 1/2 and w_t = 1 / (2 t (t + 1)), M plus the weights not yet used is a nonnegative
    supermartingale that starts at 1.

    Attributes
    ----------
    weights : float array of shape (n_bets,)
        Weights of the kinds of bets, which add up to 1.
    logs : float array of shape (n_bets,)
        Logarithm of each M.
    best : float array of shape (n_bets,)
        Logarithm of the largest contribution of a single start to M.
    since : int array of shape (n_bets,)
        The batch with which that start began.
    n_batches : int
        Batches so far.
    """

    _entries: ClassVar[EntryTable] = {
        "logs": NumbersOrNull(-np.inf, size="weights"),
        "best": NumbersOrNull(-np.inf, size="weights"),
        "since": Counts(size="weights"),
        "n_batches": OneCount(),
    }

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights
        self.logs = np.full(weights.size, -np.inf)
        self.best = self.logs
        self.since = np.zeros(weights.size, dtype=np.int64)
        self.n_batches = 0

    def update(self, log_factors: FloatArray) -> None:
        """Process the logarithm of each factor of a batch."""
        new = float(np.log(start_weight(self.n_batches)))
        self.since = np.where(new >= self.best, self.n_batches, self.since)
        self.best = np.maximum(self.best, new) + log_factors
        self.logs = np.logaddexp(self.logs, new) + log_factors
        self.n_batches += 1

    def log_evidence(self) -> float:
        """Logarithm of the supermartingale."""
        waiting = (
            0.5 / self.n_batches if self.n_batches else 1.0
        )  # the sum of 1 / (2 t (t + 1)) from n on is 1 / (2 n)
        return log_sum(np.append(self.logs + np.log(self.weights), np.log(waiting)))


def running_mean_limits(total: float, n_rows: int, alpha: float) -> tuple[float, float]:
    """Limits on the average conditional mean of numbers in [0, 1], valid at every moment with
    probability 1 - alpha.

    exp(l S - l^2 n / 8), with S the sum of n numbers minus their conditional means, is a
    supermartingale for every l (Hoeffding's lemma). Averaged over l ~ N(0, 1 / r) it gives |S| <=
    sqrt((n/4 + r) ln((n/4 + r) / (r alpha^2))).

    >>> low, high = running_mean_limits(500, 1000, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.45, 0.55)
    """
    if n_rows == 0:
        return 0.0, 1.0
    width = 100.0  # r: narrowest for some hundreds of rows
    variance = n_rows / 4.0 + width
    most = float(np.sqrt(variance * (np.log(variance / width) - 2.0 * np.log(alpha))))
    return max(0.0, (total - most) / n_rows), min(1.0, (total + most) / n_rows)
