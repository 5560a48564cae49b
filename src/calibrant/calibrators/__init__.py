"""Calibrators: scikit-learn estimators on scores, imported when first used.

They combine partition, tally, interval and guarantee.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.calibrators.beta import BetaCalibrator
    from calibrant.calibrators.binning import BinningCalibrator
    from calibrant.calibrators.blend import BlendCalibrator
    from calibrant.calibrators.curve.estimator import Calibrator
    from calibrant.calibrators.isotonic import IsotonicCalibrator
    from calibrant.calibrators.platt import PlattCalibrator
    from calibrant.calibrators.scaling_binning import ScalingBinningCalibrator
    from calibrant.calibrators.subgroups.estimator import SubgroupCalibrator
    from calibrant.calibrators.temperature import TemperatureCalibrator
    from calibrant.calibrators.venn_abers import VennAbersCalibrator

__all__ = [
    "BetaCalibrator",
    "BinningCalibrator",
    "BlendCalibrator",
    "Calibrator",
    "IsotonicCalibrator",
    "PlattCalibrator",
    "ScalingBinningCalibrator",
    "SubgroupCalibrator",
    "TemperatureCalibrator",
    "VennAbersCalibrator",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "ScalingBinningCalibrator":  # the only one that is public here alone
        return import_module("calibrant.calibrators.scaling_binning").ScalingBinningCalibrator
    return getattr(import_module("calibrant"), name)
