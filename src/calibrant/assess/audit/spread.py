"""Are the scores overconfident or underconfident? One test over the lowest and the highest scores.

A region shows scores that are too high, or too low. Scores that are too extreme are both: too high at
one end and too low at the other. No region sees both ends, so a slope slightly below 1 can hide from
all of them.

*Statistic.* The outer thirds of the scores are taken, by their information s (1 - s). T counts the
positives among the highest scores and the negatives among the lowest. Its labels have the rates f =
s and f = 1 - s if the scores are calibrated. Few of them are overconfidence, many underconfidence.

*Bound.* If no score is off by more than t, then T is stochastically at most the sum of labels with
the rates min(1, f + t), and at least that with max(0, f - t). Its tail is a known Poisson-binomial
tail, and it increases with t. So every t at which the tail is below the level is ruled out, and the
largest of them is a lower bound on sup |E[Y | score] - score|. One test decides about all t.

*Cells.* Rows are counted in fixed cells, about equally wide in log odds: scores such as 1 - 1e-9 are
far from 0.99. The rates of a cell may be replaced by their mean (Hoeffding 1956). For two labels of
a sum with p + q fixed, P(S >= k) is linear in p q, with the slope P(R = k - 2) - P(R = k - 1), where
R is the sum of the others. R is unimodal, with a mode less than 1 from its mean (Darroch 1964). So
for k >= E[S] + 3 the slope is not negative, and the tail is largest if all rates of the cell are
equal. For smaller k, only Chernoff's bound is used, which is always largest for equal rates. So
counts and mean scores of cells are enough, wherever rows were counted.
"""

import math
from collections.abc import Callable, Hashable

import numpy as np
from scipy.special import expit

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.audit.findings import OVERCONFIDENT, UNDERCONFIDENT, Finding
from calibrant.cells.score_counts import ScoreCounts
from calibrant.limits.poisson_binomial import grouped_upper_tail, log_tail_bound

CELL_EDGES: FloatArray = expit(np.arange(-30.0, 30.5, 0.5))
"""Where the cells of scores begin; below the first is one more."""

_OUTER = 1.0 / 3.0  # of the information, at each end: more is further from the best weights
_MARGIN = 3.0  # above the mean, in labels: see "Cells"
_ROUNDING = 1e-10  # of mean scores
_MOST_EXACT = 2_000_000  # rows; beyond, Chernoff's bound is close enough
_NEAR = 4.0  # in log units: if the bound misses the level by more, the exact tail does, too
_HALVINGS = 30
_EXACT_HALVINGS = 8  # each costs a tail


def outer_signs(counts: FloatArray, means: FloatArray) -> IntArray:
    """For cells in increasing order of their mean score: -1 in the lowest third of the information,
    1 in the highest, 0 between.

    >>> outer_signs(np.full(4, 10.0), np.array([0.2, 0.4, 0.6, 0.8]))
    array([-1,  0,  0,  1])
    """
    information = counts * means * (1.0 - means)
    if not information.any():  # only the scores 0 and 1
        information = counts
    before = np.cumsum(information) - information / 2.0
    share = before / information.sum()
    highest = (share > 1.0 - _OUTER).astype(np.int64)
    return np.asarray(highest - (share < _OUTER))


def spread_of(cells: ScoreCounts, alpha: float, segment: Hashable = None) -> Finding | None:
    """What is shown with probability 1 - alpha about rows that were counted at each score, or in
    cells within those of `CELL_EDGES`; its error is 0 if nothing is. None if all rows are in one
    cell.
    """
    rows, hits = cells.whole
    first = np.flatnonzero(np.diff(np.searchsorted(CELL_EDGES, cells.scores, "right"), prepend=-1))
    counts = np.add.reduceat(rows, first)
    positives = np.add.reduceat(hits, first)
    low = cells.scores[first]
    high = cells.high[np.append(first[1:], rows.size) - 1]
    means = np.clip(np.add.reduceat(cells.total, first) / counts, low, high)
    signs = outer_signs(counts.astype(np.float64), means)
    used = signs != 0
    if not ((signs > 0).any() and (signs < 0).any()):
        return None
    outer = counts[used]
    total = int(outer.sum())
    seen = int(np.where(signs > 0, positives, counts - positives)[used].sum())
    rates = np.where(signs > 0, means, 1.0 - means)[used]
    overconfident = seen < float((outer * rates).sum())
    if overconfident:
        seen = total - seen
        rates = 1.0 - rates
    return Finding(
        segment=segment,
        direction=OVERCONFIDENT if overconfident else UNDERCONFIDENT,
        error=_largest_ruled_out(outer, rates, seen, alpha / 2.0),
        count=total,
        mean_score=float((counts * means)[used].sum()) / total,
        rate=int(positives[used].sum()) / total,
        low=float(low[used].min()),
        high=float(high[used].max()),
    )


def _largest_ruled_out(rows: IntArray, rates: FloatArray, seen: int, tail: float) -> float:
    """A number t such that labels with the rates min(1, rates + t) reach `seen` with probability
    at most `tail`; 0 if there is none.
    """
    log_tail = math.log(tail)

    def raised(by: float) -> FloatArray:
        return np.minimum(rates + (by + _ROUNDING), 1.0)

    def is_above(by: float) -> bool:
        return seen >= float((rows * raised(by)).sum()) + _MARGIN

    def log_bound(by: float) -> float:
        return log_tail_bound(rows, raised(by), seen)

    def is_ruled_out(by: float) -> bool:
        return is_above(by) and grouped_upper_tail(rows, raised(by), seen) <= tail

    if log_bound(0.0) > log_tail + _NEAR:
        return 0.0
    found = _last(lambda by: log_bound(by) <= log_tail, 0.0, 1.0, _HALVINGS)
    most = _last(is_above, found, 1.0, _HALVINGS)
    if rows.sum() > _MOST_EXACT:
        return found
    return _last(is_ruled_out, found, most, _EXACT_HALVINGS)


def _last(is_true: Callable[[float], bool], low: float, high: float, halvings: int) -> float:
    """The last number found at which a statement is true, from `low` up to `high`; `low` if none is.

    The statement is true up to some number, and false beyond it.
    """
    for _ in range(halvings):
        middle = (low + high) / 2.0
        if is_true(middle):
            low = middle
        else:
            high = middle
    return low
