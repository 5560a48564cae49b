"""The paper's tripod: calibration, confidence intervals and prediction sets, and what leads from one to another."""

from calibrant.guarantee.tripod import (
    Calibration,
    calibration_to_interval,
    interval_to_calibration,
    interval_to_set,
    minimum_expected_width,
    region_sets,
)

__all__ = [
    "Calibration",
    "calibration_to_interval",
    "interval_to_calibration",
    "interval_to_set",
    "minimum_expected_width",
    "region_sets",
]
