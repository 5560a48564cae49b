"""The evidence behind intervals under covariate shift: weighted sums or rows, and a bound on the
weights.

Throughout, region b holds N rows with weights w_i in [0, U] and labels y_i. The limits are for
theta_b = E[w Y | b] / E[w | b], the rate of the positive label among the target population's rows
in region b. It is the root q of E[w (Y - q) | b] = 0, and the mean of w (y - q) over the rows is
(mean of w) times (pi-check - q).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant._typing import FloatArray
from calibrant.cells.entries import Entries
from calibrant.cells.tally import Tally, WeightSums
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.interval import Interval
from calibrant.params.rules import WEIGHT_BOUND, Number
from calibrant.params.state_kinds import Written

WEIGHT_FLOOR = Number("a number >= 0 that no importance weight falls below", 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """All data that a method may use; each method takes what it needs.

    Attributes
    ----------
    tally : Tally
        Counts, positives and weighted sums of every region.
    weight_bound : float
        U, an upper bound on the weights.
    weight_floor : float
        L, a lower bound on the weights.
    relative_mass : float array of shape (n_regions,) or None
        m_b = P(b) / P~(b), each region's probability in the calibration population divided by that
        in the target population.
    rows : Entries or None
        The rows themselves, if they are in memory: the region, label (0 or 1, or another outcome
        between them) and weight of each, in an order that does not depend on the labels.
    """

    tally: Tally
    weight_bound: float
    weight_floor: float = 0.0
    relative_mass: FloatArray | None = None
    rows: Entries | None = None

    def __post_init__(self) -> None:
        bound = WEIGHT_BOUND.check("weight_bound", self.weight_bound)
        floor = WEIGHT_FLOOR.check("weight_floor", self.weight_floor)
        sums = weight_sums(self.tally)
        largest = float(sums.largest.max())
        smallest = float(sums.smallest.min())
        if largest > bound:
            got = f"{bound:g}, and a weight of {largest:g}"
            row = "" if self.rows is None else f" in row {int(self.rows.weights.argmax())}"
            raise InvalidValueError("weight_bound", "be at least every weight", got + row)
        if floor > min(smallest, bound):
            got = f"{floor:g}, and a weight of {smallest:g}"
            raise InvalidValueError("weight_floor", f"be {WEIGHT_FLOOR.words}", got=got)


@dataclass(frozen=True, slots=True)
class ShiftMethod:
    """One method for turning weighted evidence into simultaneous intervals, and the theorem behind
    it.

    Attributes
    ----------
    name : str
        The name of the method, as in the parameter ``interval`` of `ShiftCalibrator`.
    function : callable
        ``function(evidence, alpha)`` returns the `Interval` of all regions.
    theorem : str
        One line: the result behind the method.
    needs_rows : bool
        Whether it needs the rows themselves; otherwise it works from a tally, which can be merged.
    """

    name: str
    function: Callable[[Evidence, float], Interval]
    theorem: str
    needs_rows: bool = False

    def __call__(self, evidence: Evidence, alpha: float) -> Interval:
        """Return the interval of every region, valid for all simultaneously with probability at
        least 1 - alpha.
        """
        return self.function(evidence, alpha)


def weight_sums(tally: Tally) -> WeightSums:
    """Return the weighted sums of `tally`; raise if it has none."""
    if tally.weights is None:
        raise InvalidTypeError(
            "tally",
            "have importance weights",
            got="counts only",
            advice="pass importance_weight to Tally.from_data",
        )
    return tally.weights


def weighted_rates(tally: Tally) -> FloatArray:
    """Return pi-check, the weighted rate of positives in each region (the estimator of Theorem 7 of
    the paper).

    NaN without weight.

    >>> from calibrant import Partition, Tally
    >>> bins = Partition.fixed_width(2)
    >>> weighted_rates(Tally.from_data(bins, [0.1, 0.2, 0.9], [1, 0, 1], importance_weight=[1.0,
    ...     3.0, 0.0]))
    array([0.25,  nan])
    """
    sums = weight_sums(tally)
    total = sums.w.rounded()
    hits = sums.wy.rounded()
    rates = np.full(tally.n_regions, np.nan)
    np.divide(hits, total, out=rates, where=total > 0.0)
    return rates


def effective_rows(tally: Tally) -> tuple[FloatArray, FloatArray]:
    """Return the number of rows and of positives in each region.

    For weighted rows, return the number of unweighted rows that would give the weighted rate the
    same precision.

    That number is (sum of w)^2 / (sum of w^2) (Kish 1965), and its share of positives is the
    weighted rate.

    >>> from calibrant import Partition, Tally
    >>> tally = Tally.from_data(Partition.fixed_width(1), [0.1, 0.2, 0.9], [1, 0, 1],
    ...     importance_weight=[2, 2, 2])
    >>> [numbers.tolist() for numbers in effective_rows(tally)]
    [[3.0], [2.0]]
    """
    if tally.weights is None:
        return tally.counts.astype(np.float64), tally.positives.astype(np.float64)
    total = tally.weights.w.rounded()
    squares = tally.weights.w2.rounded()
    rows = np.divide(total, squares, out=np.zeros(total.size), where=squares > 0.0)
    return rows * total, rows * tally.weights.wy.rounded()


WEIGHT_BOUND_OF_TALLY = Written(
    lambda bound: bound, lambda value, name, known: Evidence(known["tally"], value).weight_bound
)
"""A bound on the weights of a tally, checked against the tally read before it."""
