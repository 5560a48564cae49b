"""Calibrators: scikit-learn estimators on scores.

They combine partition, tally, interval and guarantee.
"""

from calibrant.calibrators.anchored.estimator import AnchoredCalibrator
from calibrant.calibrators.beta import BetaCalibrator
from calibrant.calibrators.binning import BinningCalibrator
from calibrant.calibrators.blend import BlendCalibrator
from calibrant.calibrators.cross_venn_abers import CrossVennAbersCalibrator
from calibrant.calibrators.isotonic import IsotonicCalibrator
from calibrant.calibrators.platt import PlattCalibrator
from calibrant.calibrators.scaling_binning import ScalingBinningCalibrator
from calibrant.calibrators.subgroups.estimator import SubgroupCalibrator
from calibrant.calibrators.temperature import TemperatureCalibrator
from calibrant.calibrators.venn_abers import VennAbersCalibrator
from calibrant.calibrators.venn_binning import VennBinningCalibrator

__all__ = [
    "AnchoredCalibrator",
    "BetaCalibrator",
    "BinningCalibrator",
    "BlendCalibrator",
    "CrossVennAbersCalibrator",
    "IsotonicCalibrator",
    "PlattCalibrator",
    "ScalingBinningCalibrator",
    "SubgroupCalibrator",
    "TemperatureCalibrator",
    "VennAbersCalibrator",
    "VennBinningCalibrator",
]
