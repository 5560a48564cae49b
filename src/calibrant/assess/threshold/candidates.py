"""Candidate thresholds, and those at which a target is guaranteed.

A target is about the rows that it selects: precision about rows at or above a threshold, and the
negative predictive value about the rows below it. The second is the first with scores and labels
reversed, so one search serves both.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from calibrant._typing import BoolArray, CodeArray, FloatArray, IntArray
from calibrant.cells.entries import Entries
from calibrant.cells.score_counts import ScoreCounts
from calibrant.limits.binomial import lower_limit
from calibrant.limits.region_limits import shown_above

_CANDIDATES = 100  # between the start and the end, and as many again close to the expected answer
_SPREAD = 3.0  # standard errors of the drawn rows within which the answer is expected
_POWER = 0.9  # of the number of labels that would probably be enough


def candidates(
    scores: FloatArray, codes: CodeArray, target: float, alpha: float, ratio: float
) -> FloatArray:
    """Return thresholds in decreasing order, chosen from rows that are not counted.

    The first is where the drawn rows give the strongest evidence, in standard errors, among
    thresholds with enough expected rows above: `ratio` counted rows for each drawn one. Candidates
    continue down to where the drawn rows are clear evidence against the target. Half of them lie
    where the answer is expected.
    """
    values, n, k = ScoreCounts.of(scores, codes).from_above()
    evidence = (k - target * n) / np.sqrt(n)
    enough = n * ratio >= 1.5 * rows_needed(target, alpha)
    start = int(np.argmax(np.where(enough, evidence, -np.inf) if enough.any() else evidence))
    error = _SPREAD * np.sqrt(target * (1.0 - target) / n)
    below = k / n - error < target
    above = k / n + error >= target
    end = max(start, int(np.flatnonzero(above)[-1])) if above.any() else start
    near = start + int(np.argmax(below[start : end + 1]))
    return np.unique(
        np.concatenate([_filled(values[start : end + 1]), _filled(values[near : end + 1])])
    )[::-1]


def _filled(values: FloatArray) -> FloatArray:
    """A selection of many values, or few values and numbers between them."""
    places = np.linspace(0.0, values.size - 1.0, _CANDIDATES)
    if values.size > _CANDIDATES:
        return values[np.round(places).astype(np.intp)]
    return np.concatenate([values, np.interp(places, np.arange(values.size), values)])


def rows_needed(target: float, alpha: float) -> int:
    """The number of rows without an error that show the target: target^n <= alpha."""
    return math.ceil(math.log(alpha) / math.log(target) - 1e-9)


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """Counts at increasing thresholds: rows that the target is about, and the correct ones among
    them.

    A place identifies the rows that a threshold selects, and is the same for a target about the
    other rows.

    Rows that are independent have an exact test, the binomial one, which is sharper than a bet.
    Grouped rows are tested by betting on the sums of whole groups, in a random order.
    """

    cuts: FloatArray
    n: IntArray
    k: IntArray
    places: IntArray
    groups: Entries | None = None
    order: int = 0  # the seed of the order of bets

    def proved(self, target: float, alpha: float) -> BoolArray:
        """The thresholds that pass their tests in sequence, before the first that fails."""
        return np.logical_and.accumulate(self.passed(target, alpha))

    def passed(self, target: float, alpha: float) -> BoolArray:
        """Whether the test at each threshold alone rejects that the target is missed."""
        if self.groups is not None:
            return shown_above(self.groups, target, alpha, self.order)
        return lower_limit(self.k, np.maximum(self.n, 1), alpha) >= target

    def strongest(self, target: float) -> int:
        """The index of the threshold with the strongest evidence."""
        return int(np.argmax((self.k - target * self.n) / np.sqrt(np.maximum(self.n, 1))))

    def n_groups(self, place: int) -> int:
        """The number of groups that the target is about at one threshold; 0 without groups."""
        return 0 if self.groups is None else int(self.groups.n_units[place])

    def is_hindered_by_cap(self, place: int, target: float, alpha: float) -> bool:
        """Whether the test at one threshold fails, and would pass with the mean size of groups as
        the cap.

        The mean is that of the counted groups, so this shows nothing: it only explains a failure.
        """
        n_groups = self.n_groups(place)
        if self.groups is None or not n_groups:
            return False
        typical = float(math.ceil(self.n[place] / n_groups))
        if typical >= self.groups.bound or self.passed(target, alpha)[place]:
            return False
        return bool(shown_above(self.groups.with_cap(typical), target, alpha, self.order)[place])


def labels_that_would_do(
    n: IntArray, k: IntArray, all_rows: int, target: float, alpha: float
) -> int | None:
    """The number of labels with which one of the thresholds would probably be guaranteed, if
    further rows are like these.

    None if at no threshold the share of correct rows exceeds the target.
    """
    rate = (k + 0.5) / (n + 1.0)
    hopeful = (rate > target) & (n > 0)
    if not hopeful.any():
        return None
    n = n[hopeful]
    rate = rate[hopeful]
    noise = -ndtri(alpha) * np.sqrt(target * (1 - target)) + ndtri(_POWER) * np.sqrt(
        rate * (1 - rate)
    )
    rows = np.maximum((noise / (rate - target)) ** 2, rows_needed(target, alpha))
    needed = float((rows * all_rows / n).min())
    digits = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    return int(math.ceil(needed / digits) * digits)


def misses_allowed(n: int, target: float, alpha: float) -> int:
    """The largest r with P(Bin(n, 1 - target) <= r - 1) <= alpha; 0 if no such r exists.

    The r-th smallest score of n positives is a threshold with recall `target`, with probability 1 -
    alpha: its recall is too low only if r or more positives lie below a point with at least that
    recall.

    >>> [misses_allowed(n, 0.9, 0.1) for n in (10, 22, 100)]
    [0, 1, 6]
    """
    if target**n > alpha:
        return 0
    guess = int(binom.ppf(alpha, n, 1.0 - target))
    while guess > 0 and binom.cdf(guess - 1, n, 1.0 - target) > alpha:
        guess -= 1
    while binom.cdf(guess, n, 1.0 - target) <= alpha:
        guess += 1
    return guess
