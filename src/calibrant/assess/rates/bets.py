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
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import ndtri

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.assess.rates.cells import ScoreCells

# at this rate the squared loss of the mixture is at most that of the best guess plus ln(3)/2
_LEARNING = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A unit that is drawn as a whole: an item, or a group of items.

    Attributes
    ----------
    cells : int array
        The cell of each of its items.
    codes : int array
        Their labels.
    """

    cells: IntArray
    codes: IntArray


class Guesser:
    """The rate in each cell, from the labels so far.

    Three guesses are mixed: one rate for all cells, the rate of each cell's own labels, and the
    score itself if it is a probability. Each has weight exp(-2 x its squared error so far), so a
    useless score costs little, and a good score is used from the first label on.
    """

    def __init__(self, cells: ScoreCells) -> None:
        self._prior = cells.prior
        self._labels = np.zeros(cells.counts.size)
        self._positives = np.zeros(cells.counts.size)
        self._losses = np.zeros(2 if cells.prior is None else 3)

    def guesses(self) -> FloatArray:
        """The mixed guess at the rate in each cell."""
        weights = np.exp(-_LEARNING * (self._losses - self._losses.min()))
        return np.asarray(weights @ self._each() / weights.sum())

    def _each(self) -> FloatArray:
        overall = (self._positives.sum() + 0.5) / (self._labels.sum() + 1.0)
        own = (self._positives + overall) / (self._labels + 1.0)
        found = [np.full(own.size, overall), own]
        if self._prior is not None:
            found.append(self._prior)
        return np.array(found)

    def learn(self, unit: Unit) -> None:
        """Update the guesses with the labels of a unit."""
        errors = self._each()[:, unit.cells] - unit.codes
        self._losses += np.sum(errors * errors, axis=1)
        np.add.at(self._labels, unit.cells, 1.0)
        np.add.at(self._positives, unit.cells, unit.codes)


@dataclass(frozen=True, slots=True, eq=False)
class BetSteps:
    """What each bet knows before its unit is drawn, and the unit's positives.

    Arrays have one entry per bet.

    Attributes
    ----------
    positives : float array
        Positives of the drawn unit.
    surplus : float array
        Its guess minus the mean guess of the remaining units.
    lowest, highest : float arrays
        Limits on positives minus surplus over the remaining units.
    spread : float array
        A guess at the standard deviation of positives minus surplus.
    seen : float array
        Positives of earlier units that a number of positives includes; 0 for a population.
    n_units : float array
        Remaining units, including the next one; for a population, the units that a number of
        positives is about.
    room : float array
        The largest possible average number of positives among the remaining units.
    """

    positives: FloatArray
    surplus: FloatArray
    lowest: FloatArray
    highest: FloatArray
    spread: FloatArray
    seen: FloatArray
    n_units: FloatArray
    room: FloatArray


POPULATION = 10**6
"""The number of items in whose multiples the rate of a population is looked for."""
_TRUSTED = 5.0  # labels that the guess at a spread counts as, against observed squared errors
_LEAST_SPREAD = 1e-3


def steps_of(units: list[Unit], cells: ScoreCells, n_units: int, largest: int) -> BetSteps:
    """Guess, draw and learn, unit by unit. Guess i is a function of units 1 .. i-1 only.

    `largest` is the size of the largest unit, labelled or not: 1 for individual items.
    """
    guesser = Guesser(cells)
    left = cells.counts.astype(np.float64)
    found = np.empty((len(units), len(fields(BetSteps))))
    squares = 0.0
    seen = 0.0
    for place, unit in enumerate(units):
        remaining = n_units - place
        guess = guesser.guesses()
        there = left > 0.0
        mean = float(left @ guess) / remaining
        surplus = float(guess[unit.cells].sum()) - mean
        positives = float(unit.codes.sum())
        variance = float(left @ (guess * (1.0 - guess))) / remaining
        found[place] = (
            positives,
            surplus,
            mean - largest * float(guess[there].max()),
            mean + largest * (1.0 - float(guess[there].min())),
            _spread(variance, largest, squares, place),
            seen,
            remaining,
            float(left.sum()) / remaining,
        )
        seen += positives
        squares += (positives - mean - surplus) ** 2
        np.subtract.at(left, unit.cells, 1.0)
        guesser.learn(unit)
    return BetSteps(*found.T)


def _spread(variance: float, largest: int, squares: float, n_bets: int) -> float:
    """A guess at the standard deviation of the next unit, from a variance if items were independent
    and from the squared errors of the bets so far.
    """
    if largest > 1:
        variance *= (1.0 + largest) / 2.0  # between independent items and items that are all alike
        variance = (squares + _TRUSTED * variance) / (n_bets + _TRUSTED)
    return math.sqrt(max(variance, _LEAST_SPREAD**2))


def paired_steps(
    units: list[Unit], blocks: FloatArray, cells: ScoreCells, largest: int, n_paired: int
) -> BetSteps:
    """Bets on the population's mean: each labelled unit is paired with a block of unlabelled ones.

    Row i of `blocks` has the mean number of items in each cell over the `n_paired` units of block i.
    Numbers of positives are out of `POPULATION` items. Bounds on what a unit can bring must not look
    at its own block, so the block's mean guess is only known to lie between the smallest and the
    largest guess.
    """
    guesser = Guesser(cells)
    kept = n_paired / (n_paired + 1.0)  # of the guess: the least variance, if guesses are right
    share = cells.counts / cells.counts.sum()
    found = np.empty((len(units), len(fields(BetSteps))))
    squares = 0.0
    for place, (unit, block) in enumerate(zip(units, blocks, strict=True)):
        guess = guesser.guesses()
        surplus = kept * (float(guess[unit.cells].sum()) - float(block @ guess))
        reach = kept * largest * float(guess.max() - guess.min())
        mean = float(share @ guess)
        variance = float(share @ (guess * (1.0 - guess)))
        variance += float(share @ (guess - mean) ** 2) / (n_paired + 1.0)
        spread = _spread(largest * variance, largest, squares, place)
        positives = float(unit.codes.sum())
        own = positives, surplus, -reach, largest + reach, spread
        found[place] = *own, 0.0, POPULATION / largest, largest
        squares += (positives - largest * mean - surplus) ** 2
        guesser.learn(unit)
    return BetSteps(*found.T)


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
            room = self.steps.room[place]
            out = mean < 0.0 if self.upwards else mean > room * (1.0 + 1e-12)
            share = share * self._factors(mean, share, place)
            out |= share >= 1.0 + _ROUNDING
            if out.any():
                found[active[out]] = True
                active = active[~out]
                share = share[~out]
            if active.size == 0:
                break
        return found

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
    fewest = _first_kept(up, n_items, step, low)
    fewest_negatives = _first_kept(down, n_items, step, n_items - high)
    return fewest, n_items - fewest_negatives


def _first_kept(walk: Walk, n_items: int, step: int, start: int) -> int:
    """One more than the last point that is ruled out, going up from `start`.

    For the upper limit, negatives are counted.
    """
    lattice = np.arange(-(-start // step) * step, n_items + 1, step)
    limit = start
    for first in range(0, lattice.size, _AT_ONCE):
        points = lattice[first : first + _AT_ONCE]
        out = walk.ruled_out(points if walk.upwards else n_items - points)
        passed = points.size if out.all() else int(np.argmin(out))
        if passed:
            limit = int(points[passed - 1]) + 1
        if passed < points.size:
            break
    return min(limit, n_items)
