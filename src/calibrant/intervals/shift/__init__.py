"""Simultaneous confidence intervals for the rates of a target population, from weighted rows of another.

Examples
--------
>>> from calibrant import Partition, Tally
>>> bins, scores, y, w = Partition.fixed_width(1), [0.5] * 90, [0, 1, 1] * 30, [2.0, 1.0, 1.0] * 30
>>> tally = Tally.from_data(bins, scores, y, importance_weight=w)
>>> get_shift_method("hoeffding")(Evidence(tally, weight_bound=2.0), alpha=0.1).lower.round(4)
array([0.3065])
"""

from calibrant._params import check_choice
from calibrant._text import Setting
from calibrant.errors import InvalidTypeError
from calibrant.intervals.base import Interval
from calibrant.intervals.shift.base import Evidence, ShiftMethod, WeightedRows
from calibrant.intervals.shift.betting import betting
from calibrant.intervals.shift.empirical_bernstein import empirical_bernstein
from calibrant.intervals.shift.hoeffding import hoeffding
from calibrant.intervals.shift.oracle import oracle
from calibrant.intervals.shift.paper import paper, why_vacuous
from calibrant.intervals.shift.sensitivity import tolerated_error, widened

__all__ = [
    "SHIFT_METHODS",
    "Evidence",
    "ShiftMethod",
    "WeightedRows",
    "betting",
    "empirical_bernstein",
    "get_shift_method",
    "hoeffding",
    "oracle",
    "paper",
    "tolerated_error",
    "widened",
]


def _betting(evidence: Evidence, alpha: float) -> Interval:
    if evidence.rows is None:
        raise InvalidTypeError(
            "interval",
            "be one that needs counts only, where the rows are not at hand",
            got="'betting'",
            advice=("use ", Setting("interval", "empirical-bernstein")),
        )
    return betting(evidence.rows, alpha, weight_bound=evidence.weight_bound)


def _oracle(evidence: Evidence, alpha: float) -> Interval:
    if evidence.relative_mass is None:
        raise InvalidTypeError(
            "relative_mass",
            ("be given for ", Setting("interval", "oracle")),
            got="None",
            advice=("use ", Setting("interval", "betting"), ", which does not need it"),
        )
    return oracle(evidence.tally, alpha, weight_bound=evidence.weight_bound, relative_mass=evidence.relative_mass)


def _paper(evidence: Evidence, alpha: float) -> Interval:
    return paper(evidence.tally, alpha, weight_bound=evidence.weight_bound, weight_floor=evidence.weight_floor)


def _paper_remark(evidence: Evidence, alpha: float) -> str | None:
    return why_vacuous(evidence.tally, alpha, weight_bound=evidence.weight_bound, weight_floor=evidence.weight_floor)


SHIFT_METHODS: dict[str, ShiftMethod] = {
    method.name: method
    for method in (
        ShiftMethod(
            "betting",
            _betting,
            "hedged betting on w (y - q) (Waudby-Smith and Ramdas 2024), at the Sidak level",
            needs_rows=True,
        ),
        ShiftMethod(
            "empirical-bernstein",
            lambda e, alpha: empirical_bernstein(e.tally, alpha, weight_bound=e.weight_bound),
            "the empirical Bernstein bound on w (y - q) inverted (Audibert et al. 2007), at the Sidak level",
        ),
        ShiftMethod(
            "hoeffding",
            lambda e, alpha: hoeffding(e.tally, alpha, weight_bound=e.weight_bound),
            "Hoeffding's inequality on w (y - theta) (1963, Theorem 2), by Bonferroni",
        ),
        ShiftMethod(
            "oracle",
            _oracle,
            "known relative masses (Gupta, Podkopaev and Ramdas 2020), by Bonferroni",
            any_multiple=False,
        ),
        ShiftMethod(
            "paper",
            _paper,
            "Gupta, Podkopaev and Ramdas (2020, Theorem 7) with c = 9, by Bonferroni",
            remark=_paper_remark,
        ),
    )
}
"""Every method by the name that the parameter ``interval`` of `ShiftCalibrator` takes."""


def get_shift_method(name: str) -> ShiftMethod:
    """Return the method called `name`.

    >>> get_shift_method("betting").needs_rows
    True
    """
    return SHIFT_METHODS[check_choice("interval", name, SHIFT_METHODS)]
