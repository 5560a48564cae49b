"""Density ratios: how much more likely a row is in the target population than in the source
population.
"""

from calibrant.shift.ratios.density_ratio import (
    DensityRatio,
    LargeShiftWarning,
    RatioDiagnostics,
    effective_sample_size,
)
from calibrant.shift.ratios.logistic_ratio import LogisticRatio
from calibrant.shift.ratios.ulsif import ULSIF

__all__ = [
    "ULSIF",
    "DensityRatio",
    "LargeShiftWarning",
    "LogisticRatio",
    "RatioDiagnostics",
    "effective_sample_size",
]
