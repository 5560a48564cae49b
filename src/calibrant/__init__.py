"""Scores of any binary classifier, turned into probabilities that come with a proof."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from calibrant.auditing import Audit, audit
    from calibrant.calibrators.beta import BetaCalibrator
    from calibrant.calibrators.binning import BinningCalibrator
    from calibrant.calibrators.isotonic import IsotonicCalibrator
    from calibrant.calibrators.label_shift import LabelShiftCalibrator
    from calibrant.calibrators.online import OnlineCalibrator
    from calibrant.calibrators.platt import PlattCalibrator
    from calibrant.calibrators.scaling_binning import ScalingBinningCalibrator
    from calibrant.calibrators.shift import ShiftCalibrator
    from calibrant.calibrators.temperature import TemperatureCalibrator
    from calibrant.calibrators.venn_abers import VennAbersCalibrator
    from calibrant.calibrators.venn_binning import VennBinningCalibrator
    from calibrant.classifier import CalibratedClassifier
    from calibrant.comparing import Comparison, compare
    from calibrant.conformal import ConformalSets
    from calibrant.drift import DriftMonitor
    from calibrant.guarantee import Guarantee
    from calibrant.intervals import Interval
    from calibrant.multiclass import ClassWiseCalibrator, TopLabelCalibrator
    from calibrant.partition import Partition
    from calibrant.planning import Plan, plan
    from calibrant.tally import Tally
    from calibrant.views.plot import ReliabilityDisplay

# Where each public name lives. It is imported when first asked for, so that `import calibrant` costs next to nothing.
_HOMES = {
    "BetaCalibrator": "calibrant.calibrators.beta",
    "IsotonicCalibrator": "calibrant.calibrators.isotonic",
    "PlattCalibrator": "calibrant.calibrators.platt",
    "ScalingBinningCalibrator": "calibrant.calibrators.scaling_binning",
    "ShiftCalibrator": "calibrant.calibrators.shift",
    "TemperatureCalibrator": "calibrant.calibrators.temperature",
    "VennAbersCalibrator": "calibrant.calibrators.venn_abers",
    "VennBinningCalibrator": "calibrant.calibrators.venn_binning",
    "ConformalSets": "calibrant.conformal",
    "TopLabelCalibrator": "calibrant.multiclass",
    "ClassWiseCalibrator": "calibrant.multiclass",
    "BinningCalibrator": "calibrant.calibrators.binning",
    "CalibratedClassifier": "calibrant.classifier",
    "DriftMonitor": "calibrant.drift",
    "Guarantee": "calibrant.guarantee",
    "Interval": "calibrant.intervals",
    "LabelShiftCalibrator": "calibrant.calibrators.label_shift",
    "OnlineCalibrator": "calibrant.calibrators.online",
    "Partition": "calibrant.partition",
    "Plan": "calibrant.planning",
    "ReliabilityDisplay": "calibrant.views.plot",
    "Tally": "calibrant.tally",
    "Audit": "calibrant.auditing",
    "audit": "calibrant.auditing",
    "Comparison": "calibrant.comparing",
    "compare": "calibrant.comparing",
    "plan": "calibrant.planning",
}

__all__ = [
    "Audit",
    "BetaCalibrator",
    "BinningCalibrator",
    "CalibratedClassifier",
    "ClassWiseCalibrator",
    "Comparison",
    "ConformalSets",
    "DriftMonitor",
    "Guarantee",
    "Interval",
    "IsotonicCalibrator",
    "LabelShiftCalibrator",
    "OnlineCalibrator",
    "Partition",
    "Plan",
    "PlattCalibrator",
    "ReliabilityDisplay",
    "ScalingBinningCalibrator",
    "ShiftCalibrator",
    "Tally",
    "TemperatureCalibrator",
    "TopLabelCalibrator",
    "VennAbersCalibrator",
    "VennBinningCalibrator",
    "audit",
    "compare",
    "plan",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
