"""How many labels a target epsilon needs, and which epsilon a number of labels gives.

*The curve.* No number of labels gives `Calibrator` a small epsilon for all possible rates: a curve
that keeps the ranking cannot follow a rate that goes up and down. So this is an estimate, from a
formula that was fitted to simulated fits. The limits of the curve come from bets
(`calibrant.calibrators.curve.plain_rows`): with N rows in a region, with rate 1/2 in the worst case,
their half-width is about z / (2 sqrt(N)), where z is the normal quantile at the tail of each region.
Averaging the curves of both halves, and the fact that a curve without jumps cannot be in the middle
of all limits, make epsilon larger, and rates other than 1/2 make it smaller: the factor is at most
0.98 + 4.8 / sqrt(N) in about nine of ten fits.

Simulated: uniform scores; the rate is the score, its square, and the score of a model that is over-
or underconfident by a factor of two on the logit scale; 3, 10 and 20 regions of 91 to 2,244 rows.
For a rate that does not depend on the score, epsilon was up to 1.7 times as large. With fewer
regions there are few pilot rows, or none, so epsilon is larger.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from scipy.special import ndtri

from calibrant.assess._fewest_labels import LARGEST_PLAN, fewest
from calibrant.assess.plan.planned_rows import CORRELATION, INTERVALS, PlannedGroups, PlannedRows
from calibrant.assess.plan.result import CALIBRATORS, CURVE, CURVE_NAMED, Plan
from calibrant.calibrators.curve.curve_bounds import CURVE_SHARE, MOVED_SHARE
from calibrant.calibrators.regions.binned_rows import look_size
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.error_budget import ABSORBED_SHARE, budgets
from calibrant.params.rules import (
    FRACTION_OR_COUNT,
    OPEN_UNIT,
    Choice,
    Integer,
    Only,
    Optional,
    check_bins,
    error_budget,
)
from calibrant.text.sentences import Setting, words

FEWEST_PLANNED = 80
"""Rows per region: fewer were not simulated."""
FEWEST_REGIONS = 3
REACHED = 0.9
"""The approximate share of fits that reach the planned epsilon."""
_FACTOR = 0.98
_FACTOR_OF_FEW = 4.8  # over the square root of the rows of a region


@dataclass(frozen=True, slots=True)
class PlannedCurve:
    """How many labels a curve needs, as a search."""

    confidence_level: float
    n_bins: int

    @classmethod
    def of(cls, confidence_level: float, n_bins: int, **left: Any) -> "PlannedCurve":
        """Raise an error for settings that cannot be planned for; those in `left` must have their
        defaults.
        """
        usual = {"interval": INTERVALS[0], "pilot": "auto", "probability": REACHED}
        for name, given in left.items():
            if given != usual.get(name):
                rule = ("keep its default for ", CURVE_NAMED)
                raise InvalidValueError(name, rule, got=repr(given))
        if n_bins < FEWEST_REGIONS:
            rule = (f"be at least {FEWEST_REGIONS} for ", CURVE_NAMED)
            raise InvalidValueError("n_bins", rule, got=str(n_bins))
        return cls(confidence_level, n_bins)

    def rows(self, n: int) -> int:
        """The approximate number of rows counted in each region."""
        return (n - look_size(n, self.n_bins)) // self.n_bins

    def epsilon(self, n: int) -> float:
        """The epsilon that nine of ten fits reach.

        >>> round(PlannedCurve(0.9, 10).epsilon(10_000), 3)
        0.048
        """
        rows = self.rows(n)
        if rows < 1:
            return 1.0
        alpha = budgets(error_budget(self.confidence_level))[0] * (1.0 - ABSORBED_SHARE)
        tail = (1.0 - MOVED_SHARE) * (1.0 - CURVE_SHARE) * alpha / (2.0 * self.n_bins)
        half_width = -float(ndtri(tail)) / (2.0 * math.sqrt(rows))
        return min(half_width * (_FACTOR + _FACTOR_OF_FEW / math.sqrt(rows)), 1.0)

    def enough(self, n: int, epsilon: float) -> bool:
        """Whether `n` labels are enough."""
        return self.rows(n) >= FEWEST_PLANNED and self.epsilon(n) <= epsilon

    def answer(self, n: int) -> Plan:
        """The plan for `n` labels."""
        rows = self.rows(n)
        if rows < FEWEST_PLANNED:
            rule = (f"be at least about {FEWEST_PLANNED} per region with ", CURVE_NAMED)
            raise InvalidValueError("n", rule, got=str(n))
        return Plan(
            n,
            self.epsilon(n),
            rows,
            self.confidence_level,
            self.n_bins,
            INTERVALS[0],
            None,
            "auto",
            REACHED,
            calibrator=words((CURVE_NAMED,)),
        )


def plan(
    *,
    epsilon: float | None = None,
    n: int | None = None,
    confidence_level: float = 0.9,
    n_bins: int = 10,
    base_rate: float | None = None,
    interval: str = "clopper-pearson",
    pilot: float | int | str | None = "auto",
    probability: float = 0.9,
    group_size: int | None = None,
    icc: float | None = None,
    calibrator: str = "BinningCalibrator",
) -> Plan:
    """Return how many labels a calibrator needs for a target epsilon, or the epsilon it reaches.

    Guarantee, for `BinningCalibrator` with quantile bins, `value="jeffreys"` or "mean", and scores
    without ties: a fit on `n` rows has at most the planned epsilon. Without `base_rate` and a
    number as `pilot`, this is certain. With them, it holds with at least the stated `probability`,
    because the number of positives, or of rows in a bin, is random. Assumed then: rows are
    independent draws, and the base rate is as given.

    For `Calibrator`, the default calibrator, nothing is claimed for any rates: a curve that
    keeps the ranking cannot follow every rate. The plan is then an estimate by simulation, for
    rates that rise smoothly and clearly with the score: about 9 in 10 fits reach it. Whatever
    epsilon a fit ends up with is guaranteed for any rates. A plan for `BinningCalibrator` gives this
    estimate in a note, and as `default_fit`.

    Parameters
    ----------
    epsilon : float, optional
        The target. Give either this or `n`.
    n : int, optional
        Number of labels. Give either this or `epsilon`.
    confidence_level : float, default=0.9
        Confidence that epsilon holds in all bins simultaneously.
    n_bins : int, default=10
        Number of bins.
    base_rate : float, optional
        Overall rate of positives. None plans for the worst case over all counts of positives. With
        a base rate, the number of positives is binomial. The plan is then for the worst case in
        which no bin has more positives than the `probability` quantile of that number, or the plan
        without a base rate if that is better. For rates above 1/2, read negatives for positives.
    interval : str, default="clopper-pearson"
        As in `BinningCalibrator`.
    pilot : "auto", None, float or int, default="auto"
        As in `BinningCalibrator`. "auto" leaves out the rows that are checked for ties. With a
        fraction or number, that many rows are only used to cut bins, and the size of the smallest
        bin is random. By Theorem 5 of Gupta, Podkopaev and Ramdas (2020), for continuous scores, if
        at least 5.18 B ln(2B / t) rows cut the bins, then with probability 1 - t the smallest bin
        has at least m / 2B - sqrt(m ln(2B / t) / 2) of the m other rows. With "auto" and None the
        counts are known exactly.
    probability : float, default=0.9
        With `base_rate` or `pilot`, the probability with which the plan must succeed. The remaining
        probability is shared equally by the numbers that are random: positives, rows in a bin, rows
        that a fraction draws.
    group_size : int, optional
        The number of rows in each group, if rows are grouped; see `BinningCalibrator.fit`. `n` is a
        multiple of it.
    icc : float in [0, 1], optional
        Intra-cluster correlation of the labels, to be given with `group_size`: 0 for independent
        rows, 1 for groups whose rows all have the same label. A fit reports
        ``guarantee_.design_effect``, which is 1 + (group_size - 1) icc.
    calibrator : {"BinningCalibrator", "Calibrator"}, default="BinningCalibrator"
        The calibrator that the labels are for. With "Calibrator", you can give only
        `epsilon` or `n`, `n_bins` and `confidence_level`; the plan has at least 3 regions of at
        least 80 rows each.

    Notes
    -----
    With groups, the plan is an estimate, not a proof, because limits depend on how similar the rows
    of a group turn out to be. It is for the worst case, in which all rows of a group fall into one
    bin. With N groups in the smallest bin, m rows each, a design effect D and L = ln(2 B / alpha),
    epsilon is about sqrt(2 L p (1 - p) D / (N m)) + L / (3 N). The smallest bin has about N = (C /
    B) exp(-z sqrt(B / A + B / C)) groups, where A groups cut the bins, C are counted, and z is the
    normal quantile that all B bins keep with the stated probability.

    For `Calibrator` epsilon is planned as z / (2 sqrt(N)) (0.98 + 4.8 / sqrt(N)), with N rows
    in each region and z the normal quantile at the tail of each limit. Simulated fits with uniform
    scores, and rates that were the score, its square, or over- and underconfident scores, had a
    smaller epsilon in about 9 of 10 draws. If the rate did not depend on the score, most fits had a
    larger one, by a factor of up to 1.7; it was larger still if the rate went up and down.

    The largest epsilon is not monotone in the number of rows of a bin, because counts are whole
    numbers. So every possible size of a bin is tried, with every count of positives that a bound
    does not rule out. If that would be more than 4,000 counts, or if pilot rows leave the sizes
    open, the bound itself is used, which only decreases as a bin grows. For the limits of Clopper
    and Pearson, and Blaker's inside them, it follows from Zubkov and Serov (2013): P(X <= k) <=
    Phi(-sqrt(2 N kl((k + 1) / N, q))). So the radius is at most 1 / N plus the largest q - p with
    kl(p, q) <= z^2 / (2N). With a target, `n` is enough and `n` - 1 is not.

    References
    ----------
    Zubkov and Serov (2013), "A complete proof of universal inequalities for the distribution
    function of the binomial law", Theory of Probability and its Applications 57.

    Examples
    --------
    >>> from calibrant import plan
    >>> print(plan(epsilon=0.05, n_bins=10).details)  # doctest: +NORMALIZE_WHITESPACE
    With 7,240 labels and BinningCalibrator, the true rate in each of 10 score ranges will be within
    5 points of the prediction (90% confidence, if no scores are tied).
    <BLANKLINE>
    This plan is for BinningCalibrator. With Calibrator, the default, 9,351 labels keep it within
    5 points in about 9 of 10 fits, if the rate rises smoothly and clearly with the score.
    If scores are tied, label about 75% more rows; almost all simulated fits needed no more.
    Each score range has at least 687 rows, whatever the rates.
    >>> plan(n=10_000, n_bins=10).epsilon <= 0.0423
    True
    >>> print(plan(epsilon=0.1, n_bins=5, group_size=10, icc=0.3).sentence)  # doctest: +NORMALIZE_WHITESPACE
    With 10,210 labels in 1,021 groups of 10 and BinningCalibrator, the true rate in each of 5 score
    ranges will be within about 10 points of the prediction with a probability of at least 90% (90%
    confidence, if labels in a group have a correlation of 0.3).
    >>> plan(epsilon=0.05, n_bins=10, calibrator="Calibrator").n
    9351
    >>> plan(epsilon=0.05, n_bins=10).default_fit.n  # the same
    9351
    """  # noqa: E501
    if (epsilon is None) == (n is None):
        raise InvalidTypeError(
            "epsilon", "be given if n is not, and only then", got="neither" if n is None else "both"
        )
    confidence_level = OPEN_UNIT.check("confidence_level", confidence_level)
    n_bins = check_bins(n_bins)
    base_rate = Optional(OPEN_UNIT).check("base_rate", base_rate)
    Choice(INTERVALS).check("interval", interval)
    pilot = Optional(FRACTION_OR_COUNT | Only("auto")).check("pilot", pilot)
    probability = OPEN_UNIT.check("probability", probability)
    if (group_size is None) != (icc is None):
        raise InvalidTypeError(
            "icc", ("be given with ", Setting("group_size"), ", and only then"), got=repr(icc)
        )
    Choice(CALIBRATORS).check("calibrator", calibrator)
    settings = (confidence_level, n_bins, interval, base_rate, pilot)
    question: PlannedRows | PlannedCurve = PlannedRows(*settings, probability)
    of_curve = {
        "base_rate": base_rate,
        "interval": interval,
        "pilot": pilot,
        "probability": probability,
        "group_size": group_size,
    }
    size = 1
    if calibrator == CURVE:
        question = PlannedCurve.of(confidence_level, n_bins, **of_curve)
    elif group_size is not None and icc is not None:
        size = Integer(1).check("group_size", group_size)
        correlation = CORRELATION.check("icc", icc)
        question = PlannedGroups(*settings, probability, size, correlation)
        if pilot is None or interval != INTERVALS[0]:
            name, got = ("pilot", "None") if pilot is None else ("interval", repr(interval))
            raise InvalidValueError(name, "keep its default with groups", got=got)
    elif base_rate is None and pilot in (None, "auto"):
        question = PlannedRows(*settings, probability=1.0)  # nothing is random
    found = _answer(question, epsilon, n, n_bins, size)
    if calibrator == CURVE:
        return found
    try:
        curve = PlannedCurve.of(confidence_level, n_bins, **of_curve)
        return replace(found, default_fit=_answer(curve, epsilon, n, n_bins))
    except InvalidValueError:  # these settings, or so few rows, cannot be planned for
        return found


def _answer(
    question: PlannedRows | PlannedCurve,
    epsilon: float | None,
    n: int | None,
    n_bins: int,
    size: int = 1,
) -> Plan:
    """The fewest labels for `epsilon`, or the epsilon of `n` labels, in groups of `size` rows."""
    if epsilon is None:
        n = Integer(1).check("n", n)
        if not size <= n <= LARGEST_PLAN:
            rule = f"be {'at most' if size == 1 else 'from group_size to'} {LARGEST_PLAN:,}"
            raise InvalidValueError("n", rule, got=str(n))
        return question.answer(n // size)
    target = OPEN_UNIT.check("epsilon", epsilon)
    return question.answer(fewest(lambda number: question.enough(number, target), n_bins, target))
