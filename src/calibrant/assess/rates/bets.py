"""Limits on the number of positives among items, by bets on units drawn without replacement.

A unit is an item, or a group of items that is drawn whole. Let unit u of U units have T_u
positives, K in total. Before unit i is drawn, U - i + 1 units remain, with mu_i(K) = (K - positives
seen) / (U - i + 1) positives on average. Let G_u be a guess at T_u from its scores and from units 1
.. i-1. As the next unit is a uniform draw from those that remain,

    Z_i(K) = T_i - mu_i(K) - (G_i - mean of G over the units that remain)

has mean zero given the past if K is the truth, because both differences do. So the capital prod(1 +
stake_i Z_i), with each stake known before the draw and small enough that no factor is negative, is
a nonnegative martingale, and by Ville's inequality it ever reaches 1/tail with probability at most
`tail`. Then K is ruled out. A K for which mu_i is negative, or larger than the units can hold, is
impossible and is ruled out with certainty.

*The walk.* For K' > K, Z_i(K') < Z_i(K), so against the truth K the capital at K' is a
supermartingale. The lower limit walks up from the smallest K over a lattice that was fixed without
labels, and stops at the first K that is not ruled out; the limit is one more than the last K that
was ruled out. It exceeds the truth only if the first lattice point at or above the truth is ruled
out: this has probability at most `tail`, and the lattice costs nothing. The upper limit is found by
symmetry.

*Stakes.* With x = tail times capital, the stake is phi(Phi^-1(x)) / (x s sqrt(bets left)): if Z
were normal, the capital would reach its goal as often as the most powerful test with this many
draws rejects. If the number of draws is open, it is sqrt(2 ln(1/tail) / (s^2 i ln(i + 1)))
(Waudby-Smith and Ramdas 2024). Any stake is valid.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.assess.rates.guesses import BetSteps

_MOST_STAKED = 0.9  # of the capital, in the worst case
# times the goal: capital that aims at the goal itself comes close to it and then stakes nothing
_AIM = 1.001
_ROUNDING = 1e-9  # of products of many factors; K is ruled out only beyond their rounding error
_FINENESS = 256  # lattice points within one over the root of the number of bets
_AT_ONCE = 512  # lattice points processed together
_POINTS_AT_EVERY_LOOK = 4096  # if the number of bets is open, the lattice must not depend on it


@dataclass(frozen=True, slots=True)
class Walk:
    """Finds the numbers of positives that are ruled out from one side.

    Attributes
    ----------
    steps : BetSteps
    tail : float
        The largest probability that the truth is ruled out.
    upwards : bool
        True for the lower limit.
    sequential : bool
        Whether more units may be drawn later.
    """

    steps: BetSteps
    tail: float
    upwards: bool
    sequential: bool

    def ruled_out(self, totals: IntArray) -> BoolArray:
        """Whether each number of positives is ever ruled out."""
        found = np.zeros(totals.size, dtype=bool)
        active = np.arange(totals.size)
        share = np.full(totals.size, self.tail)  # share of the goal that the capital has reached
        for place in range(self.steps.positives.size):
            mean = (totals[active] - self.steps.seen[place]) / self.steps.n_units[place]
            out = self._impossible(mean, place)
            share = share * self._factors(mean, share, place)
            out |= share >= 1.0 + _ROUNDING
            if out.any():
                found[active[out]] = True
                active = active[~out]
                share = share[~out]
            if active.size == 0:
                break
        return found

    def _impossible(self, mean: FloatArray, place: int) -> BoolArray:
        if self.upwards:
            return np.asarray(mean < 0.0)
        return np.asarray(mean > self.steps.room[place] * (1.0 + 1e-12))

    def _factors(self, mean: FloatArray, share: FloatArray, place: int) -> FloatArray:
        """The factor of each capital.

        1 where the other side rules the mean out with certainty.
        """
        steps = self.steps
        change = steps.positives[place] - mean - steps.surplus[place]
        if self.upwards:
            worst = mean - steps.lowest[place]
        else:
            worst = steps.highest[place] - mean
            change = -change
        stake = self._stakes(share, place)
        bounded = worst > 0.0
        most = np.divide(_MOST_STAKED, worst, out=np.zeros(worst.size), where=bounded)
        possible = bounded & (mean >= 0.0) & (mean <= steps.room[place])
        stake = np.where(possible, np.minimum(stake, most), 0.0)
        return np.asarray(1.0 + stake * change)

    def _stakes(self, share: FloatArray, place: int) -> FloatArray:
        spread = float(self.steps.spread[place])
        if self.sequential:
            log_goal = 2.0 * math.log(1.0 / self.tail)
            stake = math.sqrt(log_goal / ((place + 1) * math.log(place + 2.0))) / spread
            return np.full(share.size, stake)
        reached = np.maximum(share / _AIM, 1e-300)
        point = ndtri(reached)
        density = np.exp(-0.5 * point * point) / math.sqrt(2.0 * math.pi)
        scale = spread * math.sqrt(self.steps.positives.size - place)
        return np.asarray(density / (reached * scale))


def fewest_and_most(
    steps: BetSteps,
    n_items: int,
    tail: float,
    *,
    sequential: bool = False,
    start: tuple[int, int] | None = None,
) -> tuple[int, int]:
    """Limits on the number of positives among the items.

    Each fails with probability at most `tail`.

    `start` holds limits at which the walks begin, whose error probability is accounted for
    elsewhere.
    """
    low, high = start or (0, n_items)
    points = _POINTS_AT_EVERY_LOOK if sequential else _FINENESS * math.sqrt(steps.positives.size)
    step = max(1, int(n_items / points))
    up = Walk(steps, tail, upwards=True, sequential=sequential)
    down = Walk(steps, tail, upwards=False, sequential=sequential)
    fewest = _first_kept(up, n_items, step, low, mirrored=False)
    fewest_negatives = _first_kept(down, n_items, step, n_items - high, mirrored=True)
    return fewest, n_items - fewest_negatives


def _first_kept(walk: Walk, n_items: int, step: int, start: int, *, mirrored: bool) -> int:
    """One more than the last point that is ruled out, going up from `start`.

    With `mirrored`, negatives are counted.
    """
    lattice = np.arange(-(-start // step) * step, n_items + 1, step)
    limit = start
    for first in range(0, lattice.size, _AT_ONCE):
        points = lattice[first : first + _AT_ONCE]
        out = walk.ruled_out(n_items - points if mirrored else points)
        passed = points.size if out.all() else int(np.argmin(out))
        if passed:
            limit = int(points[passed - 1]) + 1
        if passed < points.size:
            break
    return min(limit, n_items)
