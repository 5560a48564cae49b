"""Density ratios: how much more likely a row is in the target population than in the source population."""

from calibrant.ratios.base import DensityRatio, LargeShiftWarning, RatioDiagnostics, effective_sample_size
from calibrant.ratios.kliep import KLIEP
from calibrant.ratios.logistic import LogisticRatio
from calibrant.ratios.rulsif import RuLSIF
from calibrant.ratios.ulsif import ULSIF

__all__ = [
    "KLIEP",
    "ULSIF",
    "DensityRatio",
    "LargeShiftWarning",
    "LogisticRatio",
    "RatioDiagnostics",
    "RuLSIF",
    "effective_sample_size",
]
