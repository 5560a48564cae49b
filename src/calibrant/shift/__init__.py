"""Calibration for a population other than the labelled one: covariate shift by weights, label shift
by priors.
"""

from calibrant.cells.entries import Entries
from calibrant.limits.shift.betting import betting
from calibrant.limits.shift.empirical_bernstein import empirical_bernstein
from calibrant.limits.shift.evidence import Evidence, ShiftMethod
from calibrant.limits.shift.paper import oracle, paper
from calibrant.limits.shift.shift_methods import (
    SHIFT_METHODS,
    get_shift_method,
    tolerated_error,
    widened,
)
from calibrant.shift.covariate_shift import ShiftCalibrator
from calibrant.shift.label_shift import LabelShiftCalibrator

__all__ = [
    "SHIFT_METHODS",
    "Entries",
    "Evidence",
    "LabelShiftCalibrator",
    "ShiftCalibrator",
    "ShiftMethod",
    "betting",
    "empirical_bernstein",
    "get_shift_method",
    "oracle",
    "paper",
    "tolerated_error",
    "widened",
]
