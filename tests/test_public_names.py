"""The public names, listed: `calibrant` itself, and its doors, which only re-export.

Every other path is private.
"""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import calibrant

PUBLIC = {
    "": [
        "Audit",
        "BetaCalibrator",
        "BinningCalibrator",
        "BlendCalibrator",
        "CalibratedClassifier",
        "Calibrator",
        "CalibratorComparison",
        "ClassWiseCalibrator",
        "Decisions",
        "DriftMonitor",
        "Exchangeability",
        "ExpectedPerformance",
        "Guarantee",
        "GuaranteeMonitor",
        "Interval",
        "IsotonicCalibrator",
        "LabelShiftCalibrator",
        "Model",
        "ModelComparison",
        "NetBenefit",
        "NetBenefitDisplay",
        "OnlineCalibrator",
        "Partition",
        "Plan",
        "PlattCalibrator",
        "Rate",
        "RatePlan",
        "ReliabilityDisplay",
        "Report",
        "Sample",
        "ScoreCalibrator",
        "ScoreDriftMonitor",
        "SequentialModelComparison",
        "ShiftCalibrator",
        "SubgroupCalibrator",
        "Tally",
        "TemperatureCalibrator",
        "Threshold",
        "TopLabelCalibrator",
        "Validation",
        "VennAbersCalibrator",
        "audit",
        "check",
        "compare_calibrators",
        "compare_models",
        "decide",
        "expected_performance",
        "load_model",
        "net_benefit",
        "plan",
        "plan_rate",
        "rate",
        "save_model",
        "scored",
        "threshold",
        "validation_table",
    ],
    "adversary": [
        "Confrontation",
        "GhostWorld",
        "SAMPLE_SIZES",
        "WidthDemonstration",
        "confront",
        "width_demonstration",
    ],
    "calibrators": [
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
    ],
    "errors": [
        "CalibrantError",
        "CalibrantWarning",
        "GroupCapWarning",
        "InvalidTypeError",
        "InvalidValueError",
        "NoTableError",
        "NotTakenError",
        "PooledSegmentsWarning",
        "StoreError",
        "WeakGuaranteeWarning",
    ],
    "export": [
        "DIALECTS",
        "OUTPUTS",
        "Steps",
        "Table",
        "export_table",
        "to_onnx",
        "to_python",
        "to_sql",
    ],
    "intervals": [
        "Interval",
        "METHODS",
        "Method",
        "MonotoneBand",
        "blaker",
        "clopper_pearson",
        "empirical_bernstein",
        "get_method",
        "hoeffding",
        "kl",
    ],
    "metrics": [
        "BrierScore",
        "Estimate",
        "ReliabilityTable",
        "auc",
        "brier_score",
        "debiased_ece",
        "ece",
        "log_loss",
        "reliability_table",
        "smooth_ece",
        "sweep_bins",
    ],
    "multiclass": [
        "ClassWiseCalibrator",
        "ClassWiseGuarantee",
        "TopLabelCalibrator",
    ],
    "partition": [
        "Bins",
        "FunctionPartition",
        "OTHER",
        "Partition",
        "ScorePartition",
        "SegmentedPartition",
    ],
    "monitor": [
        "Change",
        "DriftMonitor",
        "ExpectedPerformance",
        "GuaranteeMonitor",
        "Moment",
        "Monitor",
        "MonitorResult",
        "MonitorSnapshot",
        "ScoreDriftMonitor",
        "expected_performance",
    ],
    "ratios": [
        "DensityRatio",
        "LargeShiftWarning",
        "LogisticRatio",
        "RatioDiagnostics",
        "ULSIF",
        "effective_sample_size",
    ],
    "sequences": [
        "CentredBetaBinomial",
        "Paper",
        "SEQUENCES",
        "Sequence",
        "get_sequence",
    ],
    "shift": [
        "Entries",
        "Evidence",
        "LabelShiftCalibrator",
        "SHIFT_METHODS",
        "ShiftCalibrator",
        "ShiftMethod",
        "betting",
        "empirical_bernstein",
        "get_shift_method",
        "oracle",
        "paper",
        "tolerated_error",
        "widened",
    ],
    "tripod": [
        "Calibration",
        "ConformalSets",
        "calibration_to_interval",
        "interval_to_calibration",
        "interval_to_set",
        "minimum_expected_width",
        "region_sets",
    ],
}
"""The names of each public module; the first is `calibrant` itself."""

DOORS = sorted(PUBLIC.keys() - {""})


def test_the_package_exports_these_names():
    assert calibrant.__all__ == PUBLIC[""]
    assert all(getattr(calibrant, name) is not None for name in PUBLIC[""])


@pytest.mark.parametrize("door", DOORS)
def test_a_door_exports_these_names(door):
    module = import_module(f"calibrant.{door}")
    defined = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
    ]
    defined = [name for name in defined if inspect.isclass(vars(module)[name])]
    assert sorted(getattr(module, "__all__", defined)) == PUBLIC[door]
    assert all(hasattr(module, name) for name in PUBLIC[door])
    assert getattr(calibrant, door) is module


IMPORTED_WHEN_USED = {"calibrators"}
"""Doors whose names are imported when they are first used: a loaded model needs one of them."""


@pytest.mark.parametrize("door", sorted({*DOORS} - {"errors"}))
def test_a_door_holds_no_code(door):
    tree = ast.parse(Path(import_module(f"calibrant.{door}").__file__).read_text("utf-8"))
    body = tree.body[1:]
    if door in IMPORTED_WHEN_USED:
        body.extend(node for block in body if isinstance(block, ast.If) for node in block.body)
        body = [
            node
            for node in body
            if not isinstance(node, ast.If) and getattr(node, "name", "") != "__getattr__"
        ]
    others = [node for node in body if not isinstance(node, ast.ImportFrom)]
    assert [ast.unparse(node.targets[0]) for node in others] == ["__all__"]


def test_dir_shows_public_names_only():
    assert dir(calibrant) == sorted(["__version__", *PUBLIC[""], *DOORS])
