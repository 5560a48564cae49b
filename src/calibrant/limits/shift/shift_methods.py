"""Simultaneous confidence intervals for the rates of a target population, from weighted rows of
another.

Examples
--------
>>> from calibrant import Partition, Tally
>>> from calibrant.shift import Evidence
>>> bins, y, w = Partition.fixed_width(1), [0, 1, 1] * 300, [2.0, 1.0, 1.0] * 300
>>> tally = Tally.from_data(bins, [0.5] * 900, y, importance_weight=w)
>>> method = get_shift_method("empirical-bernstein")
>>> method(Evidence(tally, weight_bound=2.0), alpha=0.1).lower.round(4)
array([0.4388])
"""

from __future__ import annotations

from calibrant.limits.shift.betting import betting
from calibrant.limits.shift.empirical_bernstein import empirical_bernstein
from calibrant.limits.shift.evidence import ShiftMethod
from calibrant.limits.shift.oracle import oracle
from calibrant.limits.shift.paper import paper, why_vacuous
from calibrant.params.rules import Choice

_ON_ROWS = "betting on w (y - q) (Waudby-Smith and Ramdas 2024), at the Sidak level"
_BERNSTEIN = (
    "the empirical Bernstein bound on w (y - q) inverted (Audibert et al. 2007), at the Sidak level"
)
_ORACLE = "known relative masses (Gupta, Podkopaev and Ramdas 2020), by Bonferroni"
_PAPER = "Gupta, Podkopaev and Ramdas (2020, Theorem 7) with c = 9, by Bonferroni"

SHIFT_METHODS: dict[str, ShiftMethod] = {
    method.name: method
    for method in (
        ShiftMethod("betting", betting, _ON_ROWS, needs_rows=True),
        ShiftMethod("empirical-bernstein", empirical_bernstein, _BERNSTEIN),
        ShiftMethod("oracle", oracle, _ORACLE, any_multiple=False),
        ShiftMethod("paper", paper, _PAPER, remark=why_vacuous),
    )
}
"""Every method, by the name that the parameter ``interval`` of `ShiftCalibrator` takes."""


def get_shift_method(name: str) -> ShiftMethod:
    """Return the method called `name`.

    >>> get_shift_method("betting").needs_rows
    True
    """
    return SHIFT_METHODS[Choice(SHIFT_METHODS).check("interval", name)]
