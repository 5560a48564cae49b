"""Calibration for another population than the one with labels: covariate shift by weights, label shift by priors."""

from calibrant.shift.covariate import ShiftCalibrator
from calibrant.shift.label import LabelShiftCalibrator

__all__ = ["LabelShiftCalibrator", "ShiftCalibrator"]
