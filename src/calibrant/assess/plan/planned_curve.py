"""The approximate epsilon of the default curve for a number of labels, if rates are smooth.

No number of labels gives `Calibrator` a small epsilon for all possible rates: a curve that
keeps the ranking cannot follow a rate that goes up and down. So this is an estimate, from a formula
that was fitted to simulated fits. The limits of the curve come from bets
(`calibrant.calibrators.curve.plain_rows`): with N rows in a region, with rate 1/2 in the worst
case, their half-width is about z / (2 sqrt(N)), where z is the normal quantile at the tail of each
region. Averaging the curves of both halves, and the fact that a curve without jumps cannot be in
the middle of all limits, make epsilon larger, and rates other than 1/2 make it smaller: the factor is
at most 0.98 + 4.8 / sqrt(N) in about nine of ten fits.

Simulated: uniform scores; the rate is the score, its square, and the score of a model that is over-
or underconfident by a factor of two on the logit scale; 3, 10 and 20 regions of 91 to 2,244 rows.
For a rate that does not depend on the score, epsilon was up to 1.7 times as large. With fewer
regions there are few pilot rows, or none, so epsilon is larger.
"""

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from calibrant.assess.plan.planned_rows import INTERVALS
from calibrant.assess.plan.result import CURVE_NAMED, Plan
from calibrant.calibrators.curve.curve_bounds import CURVE_SHARE, MOVED_SHARE
from calibrant.calibrators.regions.binned_rows import look_size
from calibrant.errors import InvalidValueError
from calibrant.limits.error_budget import ABSORBED_SHARE, budgets
from calibrant.params.rules import error_budget
from calibrant.text.sentences import words

FEWEST_PLANNED = 80
"""Rows per region: fewer were not simulated."""
FEWEST_REGIONS = 3
REACHED = 0.9
"""The approximate share of fits that reach the planned epsilon."""
_FACTOR = 0.98
_FACTOR_OF_FEW = 4.8  # over the square root of the rows of a region


def rows_of_region(n_rows: int, n_bins: int) -> int:
    """The approximate number of rows counted in each region."""
    return (n_rows - look_size(n_rows, n_bins)) // n_bins


def curve_epsilon(n_rows: int, n_bins: int, confidence_level: float) -> float:
    """The epsilon that nine of ten fits reach.

    >>> round(curve_epsilon(10_000, 10, 0.9), 3)
    0.048
    """
    rows = rows_of_region(n_rows, n_bins)
    if rows < 1:
        return 1.0
    alpha = budgets(error_budget(confidence_level))[0] * (1.0 - ABSORBED_SHARE)
    tail = (1.0 - MOVED_SHARE) * (1.0 - CURVE_SHARE) * alpha / (2.0 * n_bins)
    half_width = -float(ndtri(tail)) / (2.0 * math.sqrt(rows))
    return min(half_width * (_FACTOR + _FACTOR_OF_FEW / math.sqrt(rows)), 1.0)


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

    def enough(self, n: int, epsilon: float) -> bool:
        """Whether `n` labels are enough."""
        known = rows_of_region(n, self.n_bins) >= FEWEST_PLANNED
        return known and curve_epsilon(n, self.n_bins, self.confidence_level) <= epsilon

    def answer(self, n: int) -> Plan:
        """The plan for `n` labels."""
        rows = rows_of_region(n, self.n_bins)
        if rows < FEWEST_PLANNED:
            rule = (f"be at least about {FEWEST_PLANNED} per region with ", CURVE_NAMED)
            raise InvalidValueError("n", rule, got=str(n))
        return Plan(
            n,
            curve_epsilon(n, self.n_bins, self.confidence_level),
            rows,
            self.confidence_level,
            self.n_bins,
            INTERVALS[0],
            None,
            "auto",
            REACHED,
            calibrator=words((CURVE_NAMED,)),
        )
