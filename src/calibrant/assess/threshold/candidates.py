"""Where thresholds are looked for, and at which of them a target is proved.

A target is about the rows that it selects: precision about rows at or above a threshold, and the
negative predictive value about the rows below it. The second is the first with scores and labels
turned over, so one search serves both.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from calibrant._typing import BoolArray, CodeArray, FloatArray, IntArray
from calibrant.cells.group_counts import GroupCounts, block_of
from calibrant.cells.tally import Tally
from calibrant.limits.binomial import lower_limit
from calibrant.limits.group_limits import proved_above
from calibrant.limits.group_sums import GroupDesign
from calibrant.params.random import RandomSource
from calibrant.sample.groups import Groups

Count = TypeVar("Count", int, IntArray)
_CANDIDATES = 100  # between the start and the end, and as many again close to the expected answer
_SPREAD = 3.0  # standard errors of the drawn rows within which the answer is expected
_POWER = 0.9  # of the labels that would probably be enough


class Confusion(NamedTuple, Generic[Count]):
    """Counted rows by what a threshold says of them and what they are.

    Or arrays, with an entry for each threshold.
    """

    tp: Count
    fp: Count
    fn: Count
    tn: Count

    @property
    def n(self) -> Count:
        """All counted rows."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def shares(self) -> dict[str, tuple[Count, Count]]:
        """Each share, as the rows that it counts and the rows that it is a share of."""
        tp, fp, fn, tn = self
        return {
            "selected": (tp + fp, self.n),
            "precision": (tp, tp + fp),
            "recall": (tp, tp + fn),
            "specificity": (tn, tn + fp),
            "npv": (tn, tn + fn),
        }


def confusion_at(scores: FloatArray, codes: CodeArray, cut: float) -> Confusion[int]:
    """What one threshold makes of rows."""
    return Confusion(*np.bincount(2 * (scores < cut) + (codes == 0), minlength=4).tolist())


def candidates(
    scores: FloatArray, codes: CodeArray, target: float, alpha: float, ratio: float
) -> FloatArray:
    """Return thresholds in falling order, chosen from rows that are not counted.

    The first is where the drawn rows are the best evidence, in standard errors, among those that
    enough rows are expected above: `ratio` counted rows for each drawn one. From there on
    candidates follow down to where the drawn rows are clear evidence against the target. Half of
    them lie where the answer is expected.
    """
    values, n, k = above_each(scores, codes)
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


def above_each(scores: FloatArray, codes: CodeArray) -> tuple[FloatArray, IntArray, IntArray]:
    """The distinct scores in falling order, and how many rows, and how many positives, lie at or
    above each.
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    rows = np.arange(1, scores.size + 1)
    last = np.append(ranked[1:] != ranked[:-1], True)  # rows of one score are selected together
    return ranked[last], rows[last], np.cumsum(codes[order], dtype=np.int64)[last]


def _filled(values: FloatArray) -> FloatArray:
    """Some of many values, or few values and numbers between them."""
    places = np.linspace(0.0, values.size - 1.0, _CANDIDATES)
    if values.size > _CANDIDATES:
        return values[np.round(places).astype(np.intp)]
    return np.concatenate([values, np.interp(places, np.arange(values.size), values)])


def rows_needed(target: float, alpha: float) -> int:
    """How many rows without an error prove the target: target^n <= alpha."""
    return math.ceil(math.log(alpha) / math.log(target) - 1e-9)


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """What was counted at the thresholds of a ladder: rows that the target is about, and the right
    ones among them.

    A place says which rows a threshold selects, and is the same for a target that is about the
    others.
    """

    cuts: FloatArray
    n: IntArray
    k: IntArray
    places: IntArray

    def proved(self, target: float, alpha: float) -> BoolArray:
        """Which thresholds are proved one after the other, before the first that is not."""
        return np.logical_and.accumulate(self.passed(target, alpha))

    def passed(self, target: float, alpha: float) -> BoolArray:
        """Whether the exact binomial test at each threshold alone rejects that the target is
        missed.
        """
        return lower_limit(self.k, np.maximum(self.n, 1), alpha) >= target

    def strongest(self, target: float) -> int:
        """The place of the threshold with the strongest evidence."""
        return int(np.argmax((self.k - target * self.n) / np.sqrt(np.maximum(self.n, 1))))


@dataclass(frozen=True, slots=True, eq=False)
class GroupLadder(Ladder):
    """The same where rows are grouped: one test of whole groups at each threshold, by betting."""

    tally: Tally
    design: GroupDesign

    def passed(self, target: float, alpha: float) -> BoolArray:
        """Whether the bet on the groups' sums at each threshold has won 1 / alpha."""
        return proved_above(self.tally, self.design, target, alpha)


def nested_groups(
    sets: Iterable[tuple[BoolArray, BoolArray]], groups: Groups, blocks: RandomSource
) -> Tally:
    """What groups have in each of several sets of rows: rows, and right ones; sets may overlap."""
    cells = []
    number = groups.codes
    block = block_of(groups.keys, blocks)
    for place, (chosen, right) in enumerate(sets):
        rows = np.bincount(number[chosen], minlength=block.size)
        hits = np.bincount(number[chosen & right], minlength=block.size)
        seen = np.flatnonzero(rows)
        cells.append(np.stack([np.full(seen.size, place), rows[seen], hits[seen], block[seen]]))
    region, rows, hits, in_block = np.concatenate(cells, axis=1)
    table = GroupCounts.from_cells(region, rows, hits, None, in_block, None, block.size)
    return Tally(*table.totals(len(cells)), groups=table)


def labels_that_would_do(
    n: IntArray, k: IntArray, all_rows: int, target: float, alpha: float
) -> int | None:
    """How many labels would probably prove the target at one of the thresholds, if more rows are
    like these.

    None if at no threshold more rows are right than the target asks for.
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

    Of n positives, the r-th smallest score is a threshold with the recall `target`, with
    probability 1 - alpha: its recall is too low only if r or more positives lie below a point with
    at least that recall.

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
