"""Calibrators: scikit-learn estimators on scores. They glue partition, tally, interval and guarantee together."""

from calibrant.calibrators.binning import BinningCalibrator

__all__ = ["BinningCalibrator"]
