"""Guesses at each next label from its score and earlier labels: the control variate of the bets."""

import math
from dataclasses import dataclass, fields

import numpy as np

from calibrant._typing import FloatArray, IntArray
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
