"""Scores of any binary classifier, turned into probabilities that come with a proof."""

from typing import TYPE_CHECKING, Any

from calibrant._version import __version__ as __version__

if TYPE_CHECKING:
    from calibrant._audit import Audit, audit
    from calibrant._compare import Comparison, compare
    from calibrant._plan import Plan, plan
    from calibrant.calibrators.base import ScoreCalibrator
    from calibrant.calibrators.beta import BetaCalibrator
    from calibrant.calibrators.binning import BinningCalibrator
    from calibrant.calibrators.cross_venn_abers import CrossVennAbersCalibrator
    from calibrant.calibrators.isotonic import IsotonicCalibrator
    from calibrant.calibrators.online import OnlineCalibrator
    from calibrant.calibrators.platt import PlattCalibrator
    from calibrant.calibrators.scaling_binning import ScalingBinningCalibrator
    from calibrant.calibrators.temperature import TemperatureCalibrator
    from calibrant.calibrators.venn_abers import VennAbersCalibrator
    from calibrant.calibrators.venn_binning import VennBinningCalibrator
    from calibrant.classifier import CalibratedClassifier
    from calibrant.conformal import ConformalSets
    from calibrant.drift import DriftMonitor
    from calibrant.guarantee import Guarantee
    from calibrant.intervals import Interval
    from calibrant.multiclass import ClassWiseCalibrator, TopLabelCalibrator
    from calibrant.partition import Partition
    from calibrant.rows import ScoredData, scored
    from calibrant.saving import Model, load_model, save_model
    from calibrant.shift import LabelShiftCalibrator, ShiftCalibrator
    from calibrant.tally import Tally
    from calibrant.views.plot import ReliabilityDisplay
    from calibrant.views.report import render_report, write_report

# Where each public name lives. It is imported when first used, so that `import calibrant` costs next to nothing. Saved
# calibrators are found by this table too: what is not in it cannot be read back by its bare name.
_HOMES = {
    "Audit": "calibrant._audit",
    "audit": "calibrant._audit",
    "BetaCalibrator": "calibrant.calibrators.beta",
    "BinningCalibrator": "calibrant.calibrators.binning",
    "CalibratedClassifier": "calibrant.classifier",
    "ClassWiseCalibrator": "calibrant.multiclass",
    "compare": "calibrant._compare",
    "Comparison": "calibrant._compare",
    "ConformalSets": "calibrant.conformal",
    "CrossVennAbersCalibrator": "calibrant.calibrators.cross_venn_abers",
    "DriftMonitor": "calibrant.drift",
    "Guarantee": "calibrant.guarantee",
    "Interval": "calibrant.intervals",
    "IsotonicCalibrator": "calibrant.calibrators.isotonic",
    "LabelShiftCalibrator": "calibrant.shift",
    "load_model": "calibrant.saving",
    "Model": "calibrant.saving",
    "OnlineCalibrator": "calibrant.calibrators.online",
    "Partition": "calibrant.partition",
    "Plan": "calibrant._plan",
    "plan": "calibrant._plan",
    "PlattCalibrator": "calibrant.calibrators.platt",
    "render_report": "calibrant.views.report",
    "write_report": "calibrant.views.report",
    "ReliabilityDisplay": "calibrant.views.plot",
    "save_model": "calibrant.saving",
    "ScalingBinningCalibrator": "calibrant.calibrators.scaling_binning",
    "ScoreCalibrator": "calibrant.calibrators.base",
    "ScoredData": "calibrant.rows",
    "scored": "calibrant.rows",
    "ShiftCalibrator": "calibrant.shift",
    "Tally": "calibrant.tally",
    "TemperatureCalibrator": "calibrant.calibrators.temperature",
    "TopLabelCalibrator": "calibrant.multiclass",
    "VennAbersCalibrator": "calibrant.calibrators.venn_abers",
    "VennBinningCalibrator": "calibrant.calibrators.venn_binning",
}

__all__ = [
    "Audit",
    "BetaCalibrator",
    "BinningCalibrator",
    "CalibratedClassifier",
    "ClassWiseCalibrator",
    "Comparison",
    "ConformalSets",
    "CrossVennAbersCalibrator",
    "DriftMonitor",
    "Guarantee",
    "Interval",
    "IsotonicCalibrator",
    "LabelShiftCalibrator",
    "Model",
    "OnlineCalibrator",
    "Partition",
    "Plan",
    "PlattCalibrator",
    "ReliabilityDisplay",
    "ScalingBinningCalibrator",
    "ScoreCalibrator",
    "ScoredData",
    "ShiftCalibrator",
    "Tally",
    "TemperatureCalibrator",
    "TopLabelCalibrator",
    "VennAbersCalibrator",
    "VennBinningCalibrator",
    "audit",
    "compare",
    "load_model",
    "plan",
    "render_report",
    "save_model",
    "scored",
    "write_report",
]


_MODULES = (
    "adversary",
    "export",
    "intervals",
    "metrics",
    "multiclass",
    "partition",
    "ratios",
    "sequences",
    "shift",
    "tripod",
)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"calibrant.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
