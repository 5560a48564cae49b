"""Scores of any binary classifier, turned into probabilities with a distribution-free guarantee.

Begin with scores and labels of rows that the model was not trained on:

    calibrator = calibrant.Calibrator().fit(scores, y)
    print(calibrator.guarantee_)            # what is guaranteed, and if what
    calibrator.predict(new_scores)          # probabilities
    calibrator.predict_interval(new_scores) # limits of the true rate

With a scikit-learn model and all rows: `CalibratedClassifier(model).fit(X, y)`. To ask whether a
model is calibrated: `audit(y, scores)`; whether rows are i.i.d.: `check(y, scores)`; how many labels
a guarantee needs: `plan(epsilon=0.05)`. Each answer can be printed; its `details` say the rest, and
`to_dict` has the numbers.

On the command line: `calibrant demo`, or `calibrant audit scores.csv --score p --label y`.
"""

from typing import TYPE_CHECKING, Any

from calibrant._version import __version__ as __version__

if TYPE_CHECKING:
    from calibrant.answers.model_file import Model as Model
    from calibrant.answers.model_file import load_model as load_model
    from calibrant.answers.model_file import save_model as save_model
    from calibrant.assess.audit.audit import audit as audit
    from calibrant.assess.audit.result import Audit as Audit
    from calibrant.assess.check.check import check as check
    from calibrant.assess.check.exchangeability import Exchangeability as Exchangeability
    from calibrant.assess.compare_models.calibrators import (
        compare_calibrators as compare_calibrators,
    )
    from calibrant.assess.compare_models.compare_models import compare_models as compare_models
    from calibrant.assess.compare_models.model_comparison import (
        CalibratorComparison as CalibratorComparison,
    )
    from calibrant.assess.compare_models.model_comparison import ModelComparison as ModelComparison
    from calibrant.assess.compare_models.sequential import (
        SequentialModelComparison as SequentialModelComparison,
    )
    from calibrant.assess.decide import Decisions as Decisions
    from calibrant.assess.decide import decide as decide
    from calibrant.assess.net_benefit import NetBenefit as NetBenefit
    from calibrant.assess.net_benefit import net_benefit as net_benefit
    from calibrant.assess.plan.plan import plan as plan
    from calibrant.assess.plan.result import Plan as Plan
    from calibrant.assess.rates.label_counts import RatePlan as RatePlan
    from calibrant.assess.rates.label_counts import plan_rate as plan_rate
    from calibrant.assess.rates.rate_of_items import rate as rate
    from calibrant.assess.rates.result import Rate as Rate
    from calibrant.assess.threshold.proved_threshold import Threshold as Threshold
    from calibrant.assess.threshold.threshold import threshold as threshold
    from calibrant.assess.validation.result import Validation as Validation
    from calibrant.assess.validation.validation_table import validation_table as validation_table
    from calibrant.calibrators.beta import BetaCalibrator as BetaCalibrator
    from calibrant.calibrators.binning import BinningCalibrator as BinningCalibrator
    from calibrant.calibrators.blend import BlendCalibrator as BlendCalibrator
    from calibrant.calibrators.curve.estimator import Calibrator as Calibrator
    from calibrant.calibrators.isotonic import IsotonicCalibrator as IsotonicCalibrator
    from calibrant.calibrators.platt import PlattCalibrator as PlattCalibrator
    from calibrant.calibrators.score_calibrator import ScoreCalibrator as ScoreCalibrator
    from calibrant.calibrators.subgroups.estimator import SubgroupCalibrator as SubgroupCalibrator
    from calibrant.calibrators.temperature import TemperatureCalibrator as TemperatureCalibrator
    from calibrant.calibrators.venn_abers import VennAbersCalibrator as VennAbersCalibrator
    from calibrant.cells.partition import Partition as Partition
    from calibrant.cells.tally import Tally as Tally
    from calibrant.classifier.calibrated_classifier import (
        CalibratedClassifier as CalibratedClassifier,
    )
    from calibrant.draw.net_benefit_display import NetBenefitDisplay as NetBenefitDisplay
    from calibrant.draw.reliability_display import ReliabilityDisplay as ReliabilityDisplay
    from calibrant.draw.report.report import Report as Report
    from calibrant.guarantee.guarantee import Guarantee as Guarantee
    from calibrant.limits.interval import Interval as Interval
    from calibrant.monitor.drift import DriftMonitor as DriftMonitor
    from calibrant.monitor.expected import ExpectedPerformance as ExpectedPerformance
    from calibrant.monitor.expected import expected_performance as expected_performance
    from calibrant.monitor.guarantee import GuaranteeMonitor as GuaranteeMonitor
    from calibrant.monitor.score_drift import ScoreDriftMonitor as ScoreDriftMonitor
    from calibrant.multiclass.class_wise import ClassWiseCalibrator as ClassWiseCalibrator
    from calibrant.multiclass.top_label import TopLabelCalibrator as TopLabelCalibrator
    from calibrant.sample.sample import Sample as Sample
    from calibrant.sample.scored import scored as scored
    from calibrant.shift.covariate_shift import ShiftCalibrator as ShiftCalibrator
    from calibrant.shift.label_shift import LabelShiftCalibrator as LabelShiftCalibrator
    from calibrant.streams.online import OnlineCalibrator as OnlineCalibrator

# Where each public name is defined. Names are imported on first use, so that `import calibrant`
# costs next to nothing.
_NAMES = {
    "answers.model_file": (
        "Model",
        "load_model",
        "save_model",
    ),
    "assess.audit.audit": ("audit",),
    "assess.audit.result": ("Audit",),
    "assess.check.exchangeability": ("Exchangeability",),
    "assess.check.check": ("check",),
    "assess.compare_models.calibrators": ("compare_calibrators",),
    "assess.compare_models.compare_models": ("compare_models",),
    "assess.compare_models.model_comparison": ("CalibratorComparison", "ModelComparison"),
    "assess.compare_models.sequential": ("SequentialModelComparison",),
    "assess.decide": (
        "Decisions",
        "decide",
    ),
    "assess.net_benefit": (
        "NetBenefit",
        "net_benefit",
    ),
    "assess.plan.plan": ("plan",),
    "assess.plan.result": ("Plan",),
    "assess.rates.label_counts": (
        "RatePlan",
        "plan_rate",
    ),
    "assess.rates.rate_of_items": ("rate",),
    "assess.rates.result": ("Rate",),
    "assess.threshold.proved_threshold": ("Threshold",),
    "assess.threshold.threshold": ("threshold",),
    "assess.validation.validation_table": ("validation_table",),
    "assess.validation.result": ("Validation",),
    "calibrators.curve.estimator": ("Calibrator",),
    "calibrators.beta": ("BetaCalibrator",),
    "calibrators.binning": ("BinningCalibrator",),
    "calibrators.blend": ("BlendCalibrator",),
    "calibrators.isotonic": ("IsotonicCalibrator",),
    "calibrators.platt": ("PlattCalibrator",),
    "calibrators.score_calibrator": ("ScoreCalibrator",),
    "calibrators.subgroups.estimator": ("SubgroupCalibrator",),
    "calibrators.temperature": ("TemperatureCalibrator",),
    "calibrators.venn_abers": ("VennAbersCalibrator",),
    "cells.partition": ("Partition",),
    "cells.tally": ("Tally",),
    "classifier.calibrated_classifier": ("CalibratedClassifier",),
    "draw.net_benefit_display": ("NetBenefitDisplay",),
    "draw.reliability_display": ("ReliabilityDisplay",),
    "draw.report.report": ("Report",),
    "guarantee.guarantee": ("Guarantee",),
    "limits.interval": ("Interval",),
    "monitor.drift": ("DriftMonitor",),
    "monitor.expected": (
        "ExpectedPerformance",
        "expected_performance",
    ),
    "monitor.guarantee": ("GuaranteeMonitor",),
    "monitor.score_drift": ("ScoreDriftMonitor",),
    "multiclass.class_wise": ("ClassWiseCalibrator",),
    "multiclass.top_label": ("TopLabelCalibrator",),
    "sample.scored": ("scored",),
    "sample.sample": ("Sample",),
    "shift.covariate_shift": ("ShiftCalibrator",),
    "shift.label_shift": ("LabelShiftCalibrator",),
    "streams.online": ("OnlineCalibrator",),
}
_HOMES = {name: f"calibrant.{module}" for module, names in _NAMES.items() for name in names}

# Further public modules. Except for `errors`, they have no code of their own and only re-export
# names.
_DOORS = (
    "adversary",
    "calibrators",
    "errors",
    "export",
    "intervals",
    "metrics",
    "monitor",
    "multiclass",
    "partition",
    "ratios",
    "sequences",
    "shift",
    "tripod",
)

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _DOORS:
        return import_module(f"calibrant.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({"__version__", *__all__, *_DOORS})
