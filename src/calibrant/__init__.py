"""Scores of any binary classifier, turned into probabilities that come with a proof."""

from typing import TYPE_CHECKING, Any

from calibrant._version import __version__ as __version__

if TYPE_CHECKING:
    from calibrant._audit import Audit as Audit
    from calibrant._audit import audit as audit
    from calibrant._compare import Comparison as Comparison
    from calibrant._compare import compare as compare
    from calibrant._compare_models import ModelComparison as ModelComparison
    from calibrant._compare_models import SequentialModelComparison as SequentialModelComparison
    from calibrant._compare_models import compare_models as compare_models
    from calibrant._decide import Decisions as Decisions
    from calibrant._decide import NetBenefit as NetBenefit
    from calibrant._decide import decide as decide
    from calibrant._decide import net_benefit as net_benefit
    from calibrant._exchangeable import Exchangeability as Exchangeability
    from calibrant._exchangeable import check_exchangeable as check_exchangeable
    from calibrant._find_groups import find_groups as find_groups
    from calibrant._plan import Plan as Plan
    from calibrant._plan import plan as plan
    from calibrant._threshold import Threshold as Threshold
    from calibrant._threshold import threshold as threshold
    from calibrant._validation import Validation as Validation
    from calibrant._validation import validate as validate
    from calibrant.assess.rates import Rate as Rate
    from calibrant.assess.rates import RatePlan as RatePlan
    from calibrant.assess.rates import plan_rate as plan_rate
    from calibrant.assess.rates import rate as rate
    from calibrant.calibrators import AnchoredCalibrator as AnchoredCalibrator
    from calibrant.calibrators import BetaCalibrator as BetaCalibrator
    from calibrant.calibrators import BinningCalibrator as BinningCalibrator
    from calibrant.calibrators import CrossVennAbersCalibrator as CrossVennAbersCalibrator
    from calibrant.calibrators import IsotonicCalibrator as IsotonicCalibrator
    from calibrant.calibrators import OnlineCalibrator as OnlineCalibrator
    from calibrant.calibrators import PlattCalibrator as PlattCalibrator
    from calibrant.calibrators import ScalingBinningCalibrator as ScalingBinningCalibrator
    from calibrant.calibrators import TemperatureCalibrator as TemperatureCalibrator
    from calibrant.calibrators import VennAbersCalibrator as VennAbersCalibrator
    from calibrant.calibrators import VennBinningCalibrator as VennBinningCalibrator
    from calibrant.calibrators.base import ScoreCalibrator as ScoreCalibrator
    from calibrant.classifier import CalibratedClassifier as CalibratedClassifier
    from calibrant.conformal import ConformalSets as ConformalSets
    from calibrant.drift import DriftMonitor as DriftMonitor
    from calibrant.guarantee import Guarantee as Guarantee
    from calibrant.intervals import Interval as Interval
    from calibrant.model_files import Model as Model
    from calibrant.model_files import load_model as load_model
    from calibrant.model_files import save_model as save_model
    from calibrant.monotone import MonotoneBand as MonotoneBand
    from calibrant.multiclass import ClassWiseCalibrator as ClassWiseCalibrator
    from calibrant.multiclass import TopLabelCalibrator as TopLabelCalibrator
    from calibrant.partition import Partition as Partition
    from calibrant.rows import ScoredData as ScoredData
    from calibrant.rows import scored as scored
    from calibrant.shift import LabelShiftCalibrator as LabelShiftCalibrator
    from calibrant.shift import ShiftCalibrator as ShiftCalibrator
    from calibrant.tally import Tally as Tally
    from calibrant.views.net_benefit import NetBenefitDisplay as NetBenefitDisplay
    from calibrant.views.plot import ReliabilityDisplay as ReliabilityDisplay
    from calibrant.views.report import render_report as render_report
    from calibrant.views.report import write_report as write_report

# The public names of each module. They are imported when first used, so that `import calibrant` costs next to nothing.
# Saved calibrators are found by this table too: a class that is not in it cannot be loaded by its name alone.
_NAMES = {
    "_audit": ("Audit", "audit"),
    "_compare": ("Comparison", "compare"),
    "_compare_models": ("ModelComparison", "SequentialModelComparison", "compare_models"),
    "_decide": ("Decisions", "NetBenefit", "decide", "net_benefit"),
    "_exchangeable": ("Exchangeability", "check_exchangeable"),
    "_find_groups": ("find_groups",),
    "_plan": ("Plan", "plan"),
    "_threshold": ("Threshold", "threshold"),
    "_validation": ("Validation", "validate"),
    "assess.rates": ("Rate", "RatePlan", "plan_rate", "rate"),
    "calibrators": (
        "AnchoredCalibrator",
        "BetaCalibrator",
        "BinningCalibrator",
        "CrossVennAbersCalibrator",
        "IsotonicCalibrator",
        "OnlineCalibrator",
        "PlattCalibrator",
        "ScalingBinningCalibrator",
        "TemperatureCalibrator",
        "VennAbersCalibrator",
        "VennBinningCalibrator",
    ),
    "calibrators.base": ("ScoreCalibrator",),
    "classifier": ("CalibratedClassifier",),
    "conformal": ("ConformalSets",),
    "drift": ("DriftMonitor",),
    "guarantee": ("Guarantee",),
    "intervals": ("Interval",),
    "model_files": ("Model", "load_model", "save_model"),
    "monotone": ("MonotoneBand",),
    "multiclass": ("ClassWiseCalibrator", "TopLabelCalibrator"),
    "partition": ("Partition",),
    "rows": ("ScoredData", "scored"),
    "shift": ("LabelShiftCalibrator", "ShiftCalibrator"),
    "tally": ("Tally",),
    "views.net_benefit": ("NetBenefitDisplay",),
    "views.plot": ("ReliabilityDisplay",),
    "views.report": ("render_report", "write_report"),
}
_HOMES = {name: f"calibrant.{module}" for module, names in _NAMES.items() for name in names}
_MODULES = {
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
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"calibrant.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
