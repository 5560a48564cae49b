"""The paper's tripod: calibration, confidence intervals and prediction sets, and what leads from
one to another.
"""

from calibrant.assess.conformal import ConformalSets
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
    "ConformalSets",
    "calibration_to_interval",
    "interval_to_calibration",
    "interval_to_set",
    "minimum_expected_width",
    "region_sets",
]
