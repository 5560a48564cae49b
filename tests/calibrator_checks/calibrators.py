"""Every calibrator and other estimator that is checked, and what each is able to do."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from calibrant import (
    BetaCalibrator,
    BinningCalibrator,
    BlendCalibrator,
    CalibratedClassifier,
    Calibrator,
    ClassWiseCalibrator,
    IsotonicCalibrator,
    LabelShiftCalibrator,
    OnlineCalibrator,
    Partition,
    PlattCalibrator,
    ShiftCalibrator,
    SubgroupCalibrator,
    TemperatureCalibrator,
    TopLabelCalibrator,
    VennAbersCalibrator,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.intervals import METHODS, MonotoneBand
from calibrant.ratios import ULSIF, DensityRatio, LogisticRatio
from calibrant.sequences import SEQUENCES
from calibrant.tripod import ConformalSets
from calibrator_checks.data import GivenScores

CALIBRATORS: dict[str, Any] = {
    "default": BinningCalibrator(),
    "ten-bins": BinningCalibrator(n_bins=10),
    "ten-bins-own": BinningCalibrator(n_bins=10, pilot=None),
    "monotone": BinningCalibrator(n_bins=10, pilot=None, value="monotone"),
    "one-bin": BinningCalibrator(n_bins=1),
    "uniform": BinningCalibrator(n_bins=8, partition="uniform"),
    "uniform-range": BinningCalibrator(partition=Partition.fixed_width(5, (-1.0, 2.0))),
    "split": BinningCalibrator(n_bins=5, pilot=0.2, random_state=0),
    "split-rows": BinningCalibrator(n_bins=5, pilot=50, random_state=0),
    "midpoint": BinningCalibrator(n_bins=6, value="midpoint"),
    "partition": BinningCalibrator(partition=Partition.from_edges([0.2, 0.5, 0.9])),
    **{
        name: BinningCalibrator(n_bins=6, interval=name, pilot=None, value="mean")
        for name in METHODS
        if name != "clopper-pearson"
    },
    "curve": Calibrator(),
    "curve-isotonic": Calibrator("isotonic", n_bins=4, pilot=0.2, random_state=0),
    "curve-temperature": Calibrator(
        TemperatureCalibrator(), partition=Partition.from_edges([0.3, 0.7])
    ),
    "platt": PlattCalibrator(),
    "platt-unsmoothed": PlattCalibrator(smoothing=False),
    "temperature": TemperatureCalibrator(),
    "temperature-logit": TemperatureCalibrator(scale="logit"),
    **{f"beta-{name}": BetaCalibrator(parameters=name) for name in ("abm", "ab", "am")},
    "isotonic": IsotonicCalibrator(),
    "blend": BlendCalibrator(),
    "subgroups": SubgroupCalibrator(),
    "subgroups-platt": SubgroupCalibrator(base=PlattCalibrator(), pilot=0.2),
    "venn-abers": VennAbersCalibrator(),
    "venn-abers-brier": VennAbersCalibrator(loss="brier"),
    "scaling-binning": ScalingBinningCalibrator(random_state=0),
    "scaling-binning-isotonic": ScalingBinningCalibrator(
        IsotonicCalibrator(), n_bins=4, pilot=100, random_state=0
    ),
    "scaling-binning-beta": ScalingBinningCalibrator(
        BetaCalibrator(), partition="uniform", random_state=0
    ),
    **{
        f"online-{name}": OnlineCalibrator(Partition.from_edges([0.2, 0.7]), sequence=name)
        for name in SEQUENCES
    },
    "online-running": OnlineCalibrator(Partition.from_edges([0.5]), running=True, value="midpoint"),
    "online-warmup": OnlineCalibrator(n_bins=3, warmup=60),
}

OTHERS: dict[str, Any] = {
    "label-shift": LabelShiftCalibrator(n_bins=6),
    "label-shift-own": LabelShiftCalibrator(n_bins=6, pilot=None),
    "label-shift-known": LabelShiftCalibrator(n_bins=4, partition="uniform"),
    "label-shift-split": LabelShiftCalibrator(n_bins=4, pilot=0.2, random_state=0),
    "shift": ShiftCalibrator(n_bins=4),
    "shift-bernstein": ShiftCalibrator(
        n_bins=4, interval="empirical-bernstein", pilot=0.2, random_state=0
    ),
    "shift-sums": ShiftCalibrator(n_bins=4, interval="empirical-bernstein"),
    "shift-uniform": ShiftCalibrator(n_bins=3, partition="uniform", value="midpoint"),
    "label-shift-estimated": LabelShiftCalibrator(n_bins=5),
    "top-label": TopLabelCalibrator(n_bins=3),
    "top-label-binning": TopLabelCalibrator(n_bins=3, method="binning"),
    "class-wise": ClassWiseCalibrator(n_bins=3),
    "conformal": ConformalSets(),
    "monotone-band": MonotoneBand(),
    "classifier": CalibratedClassifier(GivenScores(), random_state=0),
    "classifier-cross": CalibratedClassifier(
        GivenScores(), VennAbersCalibrator(), cv=2, random_state=0
    ),
    "ulsif": ULSIF(centers=10),
    "logistic-ratio": LogisticRatio(),
}
"""Estimators that need more than one score and one label per row: see `data_for`."""

INPUT_PATHS = {
    name: CALIBRATORS[name]
    for name in (
        "default",
        "curve",
        "online-centred-beta-binomial",
        "platt",
        "temperature",
        "beta-abm",
        "isotonic",
        "blend",
        "subgroups",
        "venn-abers",
        "scaling-binning",
    )
}
"""One calibrator of each class, since one reader serves every setting: the forms of input are tried
on these.
"""


def draws_rows(calibrator: Any) -> bool:
    """Whether which rows do what is drawn at random, so that the order of rows matters."""
    if looks_first(calibrator):
        return calibrator.partition == "quantile" and calibrator.n_bins != 1
    return getattr(calibrator, "pilot", None) is not None


def looks_first(calibrator: Any) -> bool:
    """Whether rows are drawn only to look at them, and not where rows have weights."""
    return isinstance(getattr(calibrator, "pilot", None), str)


def follows_order(calibrator: Any) -> bool:
    """Whether the answer depends on the order in which rows come, as some confidence sequences do."""
    warms_up = isinstance(calibrator, OnlineCalibrator) and calibrator.partition is None
    return warms_up or getattr(calibrator, "sequence", None) == "paper"


ABILITIES: dict[str, Callable[[Any], bool]] = {
    "scores": lambda calibrator: any(calibrator is one for one in CALIBRATORS.values()),
    "labels": lambda calibrator: not isinstance(calibrator, DensityRatio),
    "interval": lambda calibrator: hasattr(calibrator, "predict_interval"),
    "set": lambda calibrator: hasattr(calibrator, "predict_set"),
    "json": lambda calibrator: hasattr(calibrator, "from_dict"),
    "tally": lambda calibrator: (
        hasattr(calibrator, "from_tally")
        and not isinstance(calibrator, ShiftCalibrator | LabelShiftCalibrator)
    ),
    "confidence_level": lambda calibrator: "confidence_level" in calibrator.get_params(),
    "n_jobs": lambda calibrator: "n_jobs" in calibrator.get_params(),
    "classes": lambda calibrator: "classes" in signature(calibrator.fit).parameters,
    "pos_label": lambda calibrator: "pos_label" in calibrator.get_params(),
    "ignores order": (
        lambda calibrator: not draws_rows(calibrator) and not follows_order(calibrator)
    ),
    "draws rows": draws_rows,
    "draws weighted rows": (
        lambda calibrator: draws_rows(calibrator) and not looks_first(calibrator)
    ),
    "weighs rows": lambda calibrator: (
        (looks_first(calibrator) or not draws_rows(calibrator)) and not follows_order(calibrator)
    ),
    # bins of a map that is fitted to the labels: with other labels, other bins; a prior is that of
    # the positive class; a curve that never falls, and values that never fall, do not follow labels
    # that do
    "mirrors": lambda calibrator: (
        not any(hasattr(calibrator, name) for name in ("base", "target_prior", "curve"))
        and getattr(calibrator, "value", None) != "monotone"
    ),
    # one class alone says nothing about how much more frequent it is elsewhere
    "one class": lambda calibrator: (
        getattr(calibrator, "target_prior", None) is None or calibrator.source_prior is not None
    ),
    "weights": lambda calibrator: "sample_weight" in signature(calibrator.fit).parameters,
    "ranks only": lambda calibrator: (
        getattr(calibrator, "partition", None) == "quantile" and not hasattr(calibrator, "curve")
    ),
}
