"""Venn-Abers: two isotonic fits for every score, one for each label it may have; exact and fast.

`multiprobabilities` does the work, in linear time and exact integers. Its loops run unchanged on
Python's integers, or compiled by numba, the extra ``[fast]``, if that is installed and there are
enough distinct scores to repay loading it: for 10^7 of them a fit then takes 87 nanoseconds per
row in place of 1360. Both give bit-identical results.

Notes
-----
Draw the points P_i = (rows up to the i-th distinct score, positives up to it), P_0 = (0, 0), the
cumulative sum diagram. The isotonic fit is the slope of its greatest convex minorant (Barlow,
Bartholomew, Bremner and Brunk 1972). Adding a row with label 1 at the j-th score moves P_j,
P_{j+1}, ... by (1, 1); it is the same to move P_0 .. P_{j-1} by (-1, -1) and leave the others. So
p1 at the j-th score is the slope of the bridge, the common tangent from below of the points moved
and the points left. The slope never decreases in j, which has three consequences, each a line of
algebra:

- a moved point above the present bridge will never be an end of a later one, so one left end is all
  there is to keep;
- the last point moved lies on or below the present bridge whenever it was the bridge's right end,
  so it becomes the left end, and a point that was hidden above the hull on the right stays above
  the new bridge;
- a score between two distinct ones has the p1 of the upper of the two, and one above all has 1.

Hence one hull of the points, built from the right, is only ever shortened from its left: O(n) in
all. The algorithm is that of Vovk, Petej and Fedorova (2015), "Large-scale probabilistic predictors
with and without guarantees of validity". p0 is 1 - p1 of the mirrored problem: scores reversed,
labels exchanged.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np

from calibrant import kernels
from calibrant._typing import ArrayLike, FloatArray, IntArray
from calibrant.calibrators.curve_calibrator import CurveCalibrator
from calibrant.calibrators.score_calibrator import FACTS
from calibrant.calibrators.table import Table, steps_everywhere
from calibrant.cells.score_counts import ScoreCounts
from calibrant.errors import InvalidValueError
from calibrant.guarantee.no_guarantee import BINNED_INSTEAD, NoGuarantee, WeakerGuarantee
from calibrant.params.frames import predicts
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import Choice, RuleTable
from calibrant.params.state_kinds import Numbers
from calibrant.sample.reader import ONE_EACH, check_no_weights, one_row_each, refuse
from calibrant.sample.sample import Sample
from calibrant.text.sentences import shown

# distinct scores from which on numba pays off: it saves 1.5 microseconds each, and takes some
# tenths of a second to load
_NUMBA_SCORES = 50_000
_LOADED_SCORES = 1_000  # the same, if numba is loaded already: this function takes 20 ms more
# up to this many rows, a product of two differences, and a difference of two such products, fit in
# 64 bits
_EXACT_ROWS = 2**31 - 1

LOSS = Choice(("log", "brier"))
_MANY_SCORES = 100_000
"""With at least this many scores, a lookup table over the steps is faster."""

_KNOWN = WeakerGuarantee(
    reason=(
        "none is known for the one merged probability, and [p0, p1] is not a confidence interval"
    ),
    because=(
        "Where m rows are pooled its width is about 1/m, but the error of any estimate is about"
        " 1/sqrt(m)"
    ),
    known=(
        "of the two probabilities, the one that belongs to the true label is perfectly calibrated,"
        " E[Y | p_Y] = p_Y, for every distribution, if the future row and the calibration rows are"
        " exchangeable (Vovk and Petej 2014); which one that is cannot be known beforehand"
    ),
    advice=BINNED_INSTEAD,
)


@dataclass(eq=False, repr=False, kw_only=True)
class VennAbersCalibrator(CurveCalibrator):
    """Inductive Venn-Abers: the isotonic fit at a score, once with the score added as a 0 and once
    as a 1.

    Guarantee, for every distribution, if the future row and the calibration rows are exchangeable:
    of the two probabilities p0 and p1, the one for the true label is perfectly calibrated. You
    cannot know beforehand which one that is, so this does not bound the error of `predict`, and
    [p0, p1] is **not** a confidence interval for the true rate: with 100 rows it contained the true
    rate in 8 of 100 draws. p1 - p0 shows how much a single row could still move the fit.

    Parameters
    ----------
    loss : {"log", "brier"}, default="log"
        The loss by which `predict` merges the two into one probability, which minimises the largest
        regret over both labels in log loss or Brier score.
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.

    Attributes
    ----------
    cuts_ : array of shape (m,)
        Where p0 or p1 changes; these steps are stored, not the rows.
    p0_, p1_ : arrays of shape (m + 1,)
        The two probabilities between the cuts.
    guarantee_ : WeakerGuarantee
        What is known, and why there is no bound.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    The merged probability is p1 / (1 - p0 + p1) for log loss, and p1 + (p0^2 - p1^2) / 2 for the
    Brier score. Tied scores are merged before pooling. The fit is one sort and a linear pass, exact
    in whole numbers; a prediction is one binary search.

    References
    ----------
    Vovk and Petej (2014), "Venn-Abers predictors". Vovk, Petej and Fedorova (2015), "Large-scale
    probabilistic predictors with and without guarantees of validity".

    Examples
    --------
    >>> from calibrant import VennAbersCalibrator
    >>> calibrator = VennAbersCalibrator().fit([1, 3, 4, 6, 7, 9], [0, 1, 0, 1, 0, 1])
    >>> calibrator.predict_multiprobability([0, 6.5, 10]).round(4)
    array([[0.    , 0.5   ],
           [0.4   , 0.6667],
           [0.5   , 1.    ]])
    >>> calibrator.predict([0, 6.5, 10]).round(4)
    array([0.3333, 0.5263, 0.6667])
    """

    _learned: ClassVar[EntryTable] = {
        "cuts": Entry(Numbers(increasing=True), of="cuts_"),
        "p0": Entry(Numbers(low=0.0, high=1.0), of="p0_"),
        "p1": Entry(Numbers(low=0.0, high=1.0), of="p1_"),
        "facts": FACTS,
    }
    _claim: ClassVar[NoGuarantee] = _KNOWN
    reaches_ends: ClassVar[bool] = False

    _rules: ClassVar[RuleTable] = {"loss": LOSS}

    loss: str = "log"

    def fit(  # type: ignore[override]  # without weights
        self,
        scores: ArrayLike | Sample,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Fit p0 and p1; arguments as in `PlattCalibrator.fit`.

        Importance weights are not supported: rows with different weights are not exchangeable,
        which Venn prediction requires. With `groups`, one row from each group is drawn at random
        and the others are not used: the claim is then about a row drawn at random from a new group.
        """
        self._check_parameters()
        check_no_weights(scores, "rows with different weights are not exchangeable")
        refuse(scores, "one curve is fitted to all rows", "segment", advice=ONE_EACH)
        columns = {"sample_weight": sample_weight, "groups": groups, "classes": classes}
        return self._fit_rows(one_row_each(self._read(scores, y, **columns)))

    def _learn(self, rows: ScoreCounts) -> dict[str, Any]:
        z = rows.scores
        at_p0, at_p1 = multiprobabilities(*rows.whole)
        # p0 is constant on [z_j, z_j+1) and 0 below all scores; p1 is constant on (z_j, z_j+1] and
        # 1 above all
        p0 = np.concatenate([[0.0], at_p0])
        p1 = np.append(at_p1, 1.0)
        cuts = np.unique(
            np.concatenate([z[p0[1:] != p0[:-1]], np.nextafter(z[p1[1:] != p1[:-1]], np.inf)])
        )
        cuts = cuts[np.isfinite(cuts)]
        starts = np.concatenate([[-np.inf], cuts])
        return {
            "cuts": cuts.tolist(),
            "p0": p0[np.searchsorted(z, starts, side="right")].tolist(),
            "p1": p1[np.searchsorted(z, starts, side="left")].tolist(),
        }

    def _check_curve(self) -> None:
        n_steps = self.cuts_.size + 1
        if not self.p0_.size == self.p1_.size == n_steps:
            got = f"{self.p0_.size:,} and {self.p1_.size:,}"
            raise InvalidValueError("p0 and p1", f"have {n_steps:,} entries", got=got)
        if not ((self.p0_ < 1.0) & (self.p0_ <= self.p1_) & (self.p1_ > 0.0)).all():
            rule = "be probabilities with p0 <= p1, p0 < 1 and p1 > 0"
            raise InvalidValueError("p0 and p1", rule, got=shown(self.p0_.tolist()))

    def _curve(self, scores: FloatArray) -> FloatArray:
        return self._step(scores, merged(self.p0_, self.p1_, self.loss))

    @predicts
    def predict_multiprobability(self, scores: ArrayLike) -> FloatArray:
        """Return p0 and p1, shape (n, 2): the probability of the positive class if the row's own
        label is 0, or 1.

        They are not limits of a confidence interval.
        """
        return self._step(self._checked(scores), np.column_stack([self.p0_, self.p1_]))

    def _step(self, scores: FloatArray, table: FloatArray) -> FloatArray:
        """Each score's entry or row in a table between the cuts."""
        if scores.size < _MANY_SCORES:
            return np.asarray(table[self.cuts_.searchsorted(scores, side="right")])
        return kernels.look_up(scores, self.cuts_, table)

    def _step_function(self) -> tuple[FloatArray, FloatArray]:
        return self.cuts_, merged(self.p0_, self.p1_, self.loss)

    def _own_table(self, coverage: float) -> Table:
        cuts, values = self._step_function()
        return self._curve_table(values, None, coverage, steps_everywhere(cuts))


def merged(p0: FloatArray, p1: FloatArray, loss: str) -> FloatArray:
    """Merge two probabilities into one with the smallest worst-case regret."""
    return p1 / (1.0 - p0 + p1) if loss == "log" else p1 + (p0**2 - p1**2) / 2


def bridge_slopes(x: Any, y: Any, stack: Any, rise: Any, run: Any) -> None:
    """Rise and run of the bridge for each position of an added positive row.

    Plain loops, so that numba can compile them.

    `x` and `y` hold P_0 .. P_m; `stack` has m + 1 entries; `rise` and `run`, of m entries, receive
    the result.
    """
    m = len(x) - 1
    stack[0] = m
    top = 0
    for i in range(m - 1, 0, -1):
        xi = x[i]
        yi = y[i]
        while top > 0:
            t = stack[top]
            u = stack[top - 1]
            if (y[t] - yi) * (x[u] - xi) < (y[u] - yi) * (x[t] - xi):
                break
            top -= 1
        top += 1
        stack[top] = i
    left_x = -1
    left_y = -1
    # start with a vertical line: the first point always lies below it
    dx = 0
    dy = 1
    for j in range(m):
        moved_x = x[j] - 1
        moved_y = y[j] - 1
        if j == 0 or (moved_y - left_y) * dx < dy * (moved_x - left_x):
            left_x = moved_x
            left_y = moved_y
            t = stack[top]
            dx = x[t] - left_x
            dy = y[t] - left_y
            while top > 0:
                u = stack[top - 1]
                next_x = x[u] - left_x
                next_y = y[u] - left_y
                if dy * next_x < next_y * dx:
                    break
                top -= 1
                dx = next_x
                dy = next_y
        rise[j] = dy
        run[j] = dx


@lru_cache(maxsize=1)
def _compiled_slopes() -> Any:
    import numba

    return numba.njit(nogil=True, cache=True)(bridge_slopes)


def _cumulative(counts: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _slopes(counts: IntArray, positives: IntArray, use_numba: bool) -> tuple[IntArray, IntArray]:
    m = counts.shape[0]
    x = _cumulative(counts)
    y = _cumulative(positives)
    if use_numba:
        stack = np.empty(m + 1, np.int64)
        rise = np.empty(m, np.int64)
        run = np.empty(m, np.int64)
        _compiled_slopes()(x, y, stack, rise, run)
        return rise, run
    lists = [0] * (m + 1), [0] * m, [0] * m
    bridge_slopes(x.tolist(), y.tolist(), *lists)
    return np.array(lists[1], np.int64), np.array(lists[2], np.int64)


def multiprobabilities(
    counts: IntArray, positives: IntArray, *, compiled: bool | None = None
) -> tuple[FloatArray, FloatArray]:
    """Isotonic fit at each distinct score after adding one row there with label 0, and with label
    1.

    Parameters
    ----------
    counts, positives : int arrays of shape (m,)
        Rows and positive rows at each distinct score, in increasing order of score; every count is
        at least 1.
    compiled : bool, optional
        Whether numba is used, for tests and benchmarks; by default where it pays off.

    Returns
    -------
    p0, p1 : arrays of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> p0, p1 = multiprobabilities(np.ones(6, int), np.array([0, 1, 0, 1, 0, 1]))
    >>> p0.round(3).tolist(), p1.round(3).tolist()
    ([0.0, 0.333, 0.333, 0.4, 0.4, 0.5], [0.5, 0.6, 0.6, 0.667, 0.667, 1.0])
    """
    if compiled is None:
        least = _LOADED_SCORES if "numba" in sys.modules else _NUMBA_SCORES
        compiled = counts.shape[0] >= least and find_spec("numba") is not None
    compiled = compiled and int(counts.sum()) < _EXACT_ROWS
    rise, run = _slopes(counts, positives, compiled)
    fall, span = _slopes(counts[::-1], (counts - positives)[::-1], compiled)
    # run - rise is exact, so a small p0 is as accurate as a small p1
    return ((span - fall) / span)[::-1], rise / run
