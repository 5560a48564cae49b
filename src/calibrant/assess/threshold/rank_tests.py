"""Thresholds from the ranks of the rows themselves: where the tests begin, and how they share
alpha.

No row is set aside. The k-th largest score is a start, for a k that is fixed beforehand: given it,
the rows above are independent draws, so the first test is exact. From there every score is tested
in turn, until the first failure. Several starts share alpha, and a chain of tests that reaches the
next start passes its part on (fallback procedure, Wiens 2003).
"""

import numpy as np
from scipy.special import betainc, xlogy

from calibrant._typing import BoolArray, CodeArray, FloatArray, IntArray
from calibrant.assess.threshold.candidates import Ladder, rows_needed
from calibrant.params.random import RandomSource

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
