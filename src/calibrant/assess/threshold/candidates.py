"""Where tests are made, and which pass.

*With pilot rows.* They choose candidate thresholds. A target is about the rows that it selects:
precision about rows at or above a threshold, and the negative predictive value about the rows below
it. The second is the first with scores and labels reversed, so one search serves both.

*From the ranks of the rows themselves.* No row is set aside. The k-th largest score is a start, for a
k that is fixed beforehand: given it, the rows above are independent draws, so the first test is
exact. From there every score is tested in turn, until the first failure. Several starts share alpha,
and a chain of tests that reaches the next start passes its part on (fallback procedure, Wiens 2003).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, ndtri, xlogy
from scipy.stats import binom

from calibrant._typing import BoolArray, CodeArray, FloatArray, IntArray
from calibrant.cells.entries import Entries
from calibrant.cells.score_counts import ScoreCounts
from calibrant.limits.binomial import lower_limit
from calibrant.limits.region_limits import shown_above
from calibrant.params.random import RandomSource

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


# Shares of the rows above each start, increasing, and parts of alpha. Most goes to a tenth and a
# quarter of the rows, the best of a few choices that were tried with rates that equal the score,
# fall at the top, or stay at the target.
_TAIL = [(0.25 / 2.5**step, 0.1 / 2.0**step) for step in range(9, 1, -1)]
_STARTS = [*_TAIL, (0.1, 0.45), (0.25, 0.46), (0.5, 0.04)]
_LEAST_TOLD = 20
_ROOM = 1.2  # multiple of the rows that a start needs at least


def starts(n: int, target: float, alpha: float) -> list[tuple[int, float]]:
    """The number of rows above each start, increasing, and its part of alpha.

    None if nothing can be shown.

    A start with too few rows to show anything passes its part to the next.

    >>> [(size, round(part, 3)) for size, part in starts(500, 0.8, 0.1)]
    [(50, 0.05), (125, 0.046), (250, 0.004)]
    """
    total = sum(part for _, part in _STARTS)
    found = []
    level = 0.0
    for share, part in _STARTS:
        level += alpha * part / total
        if int(share * n) >= _ROOM * rows_needed(target, level):
            found.append((int(share * n), level))
            level = 0.0
    if level and found:
        found[-1] = (found[-1][0], found[-1][1] + level)
    elif level and rows_needed(target, alpha) < n:
        found = [(rows_needed(target, alpha), alpha)]
    return found


def chained(tails: FloatArray, begins: list[tuple[int, float]]) -> BoolArray:
    """Which sets pass: the first of each start, and all that follow until a tail exceeds the level.

    `tails` holds the tail probability of the set of the first row, of the first two, and so on.
    """
    proved = np.zeros(tails.size, dtype=bool)
    level = 0.0
    ends = [size for size, _ in begins[1:]] + [tails.size + 1]
    for (size, part), end in zip(begins, ends, strict=True):
        level += part
        passed = tails[size - 1 : end - 1] <= level
        if passed.all():
            proved[size - 1 : end - 1] = True
        else:
            proved[size - 1 : size - 1 + int(np.argmin(passed))] = True
            level = 0.0
    return proved


def tails_of(n: IntArray, k: IntArray, target: float, least: float) -> FloatArray:
    """P(Bin(n, target) >= k), or 0 where Chernoff's bound is at most `least`, the smallest level of
    a test.
    """
    share = k / n
    kl = xlogy(share, share / target)
    kl += xlogy(1.0 - share, (1.0 - share) / (1.0 - target))
    kl *= n
    open_ = np.flatnonzero((share <= target) | (kl <= -np.log(least) + 1e-9))
    tails = np.zeros(n.size)
    tails[open_] = betainc(np.maximum(k[open_], 1), n[open_] - k[open_] + 1, target)
    tails[k == 0] = 1.0
    return tails


def ranked(
    scores: FloatArray,
    codes: CodeArray,
    target: str,
    level: float,
    alpha: float,
    start: float | None,
    source: RandomSource,
) -> tuple[Ladder, BoolArray]:
    """The counts at every score, from the start on, in the order of the tests.

    Also where the target is proved.

    Rows with equal scores are tested one after the other, in a random order drawn for their
    positions, so that a start may lie among them. Reported thresholds lie between scores. A `start`
    that was fixed beforehand does not depend on the rows, and needs none of that.
    """
    above = target == "precision"
    values, right = (scores, codes) if above else (-scores, 1 - codes)
    order = np.argsort(-values)
    ranked_values = values[order]
    last = np.append(ranked_values[1:] != ranked_values[:-1], True)
    if not last.all():
        # the order among ties is a permutation of positions: labels must not affect it, not even
        # through a fixed seed
        order = np.lexsort((source.hashes(np.arange(values.size, dtype=np.uint64)), -values))
        ranked_values = values[order]
    values = ranked_values
    n = np.arange(1, values.size + 1)
    k = np.cumsum(right[order], dtype=np.int64)
    del order
    begins = starts(values.size, level, alpha)
    if start is not None:
        first = int(np.count_nonzero(values >= (start if above else np.nextafter(-start, np.inf))))
        begins = [(first, alpha)] if first else []
    tails = tails_of(n, k, level, min((part for _, part in begins), default=alpha))
    if start is not None:
        tails[~last] = 0.0  # not tested
    proved = chained(tails, begins) if begins else np.zeros(n.size, dtype=bool)
    sizes = [size for size, _ in begins]
    # smaller sets say little about how many labels would be enough
    least = min(max(_LEAST_TOLD, n.size // 10), n.size, *sizes)
    del tails
    ends = np.flatnonzero(last)
    inside = np.arange(1, ends.size + 1)  # distinct scores in the set
    places = ends.size - inside if above else np.where(np.isin(ends + 1, sizes), -1, inside)
    tried = slice(int(np.searchsorted(ends, least - 1)), None)
    ends = ends[tried]
    places = places[tried]
    cuts = np.append(np.nextafter(values[ends[:-1] + 1], np.inf), values[-1])
    if not above:
        cuts = np.nextafter(-cuts, np.inf)
    return Ladder(cuts, n[ends], k[ends], places), proved[ends]
