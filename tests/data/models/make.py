"""The example model files of the present schema: one small calibrator of each type, and what it
answers.

Every release must read them and answer what `expected.json` records. After adding an example, run
this file from the root of the repository; a file that is there is never written again. A new schema
gets a folder of its own.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import (
    AnchoredCalibrator,
    BetaCalibrator,
    BinningCalibrator,
    IsotonicCalibrator,
    LabelShiftCalibrator,
    OnlineCalibrator,
    Partition,
    PlattCalibrator,
    ShiftCalibrator,
    SubgroupCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
    save_model,
)
from calibrant.calibrators import (
    CrossVennAbersCalibrator,
    ScalingBinningCalibrator,
    VennBinningCalibrator,
)
from calibrant.ratios import ULSIF

HERE = Path(__file__).parent / "2"
SEGMENTS = ["north", "süd"] * 5
PROBE = [0.0, 0.05, 0.125, 0.3, 0.5, 0.62, 0.75, 0.875, 0.99, 1.0]


def examples(n_rows: int = 60) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Each calibrator, with the further arguments of its `predict`."""
    rng = np.random.default_rng(0)
    scores = np.round(rng.uniform(size=n_rows), 3)
    y = (rng.uniform(size=n_rows) < scores).astype(int)
    region = np.where(np.arange(n_rows) % 3 == 0, "north", "süd")
    weight = 0.5 + np.round(scores, 2)
    text = np.where(y == 1, "bad", "good")
    x = scores[:, None]
    fixed = Partition.from_edges([0.3, 0.7])
    return {
        "binning": (BinningCalibrator(3).fit(scores, y), {}),
        "binning-own": (BinningCalibrator(3, pilot=None).fit(scores, y), {}),
        "binning-uniform": (
            BinningCalibrator(3, partition="uniform").fit(scores, y, score_range=(0, 2)),
            {},
        ),
        "binning-split": (
            BinningCalibrator(3, pilot=0.3, random_state=0, interval="blaker").fit(scores, y),
            {},
        ),
        "binning-text": (
            BinningCalibrator(2, pos_label="bad", value="midpoint").fit(scores, text),
            {},
        ),
        "binning-bool": (BinningCalibrator(2, confidence_level=0.95).fit(scores, y == 1), {}),
        "binning-atoms": (
            BinningCalibrator(partition=Partition.atoms([0.0, 0.5])).fit(scores, y),
            {},
        ),
        "binning-segments": (
            BinningCalibrator(2, segment_rule=None).fit(scores, y, segments=region),
            {"segments": SEGMENTS},
        ),
        "binning-weighted": (
            BinningCalibrator(3, pilot=None, interval="clopper-pearson-weighted").fit(scores, y),
            {},
        ),
        "anchored": (AnchoredCalibrator("beta", n_bins=3).fit(scores, y), {}),
        "anchored-split": (
            AnchoredCalibrator("venn-abers", n_bins=2, pilot=0.3, random_state=0).fit(scores, y),
            {},
        ),
        "venn-binning": (VennBinningCalibrator(3).fit(scores, y), {}),
        "scaling-binning": (
            ScalingBinningCalibrator(BetaCalibrator(), n_bins=2, random_state=0).fit(scores, y),
            {},
        ),
        "platt": (PlattCalibrator(smoothing=False).fit(scores, y), {}),
        "temperature": (TemperatureCalibrator().fit(scores, y), {}),
        "beta": (BetaCalibrator().fit(scores, y), {}),
        "isotonic": (IsotonicCalibrator().fit(scores, 2.0 * y - 1.0), {}),
        "venn-abers": (VennAbersCalibrator(loss="brier").fit(scores, y), {}),
        "cross-venn-abers": (
            CrossVennAbersCalibrator().fit(scores, y, folds=np.arange(n_rows) % 2),
            {},
        ),
        "shift": (
            ShiftCalibrator(2).fit(scores, y, importance_weight=weight, weight_bound=1.5),
            {},
        ),
        "shift-estimated": (
            ShiftCalibrator(2).fit(scores, y, X=x, X_target=x[x[:, 0] > 0.4], ratio=ULSIF()),
            {},
        ),
        "label-shift": (LabelShiftCalibrator(2).fit(scores, y, target_prior=0.3), {}),
        "label-shift-estimated": (
            LabelShiftCalibrator(2).fit(scores, y, target_scores=scores[scores > 0.3]),
            {},
        ),
        "subgroups": (
            SubgroupCalibrator(base=PlattCalibrator(), min_share=0.2).fit(
                np.tile(scores, 5),
                np.tile(y, 5),
                attributes={"region": np.tile(region, 5), "score": np.tile(scores, 5)},
            ),
            {"attributes": {"region": SEGMENTS, "score": PROBE}},
        ),
        "online": (OnlineCalibrator(fixed).fit(scores, y), {}),
        "online-paper": (
            OnlineCalibrator(fixed, sequence="paper", running=True).fit(scores, y),
            {},
        ),
        "online-warming-up": (OnlineCalibrator(n_bins=2, warmup=100).fit(scores, y), {}),
    }


def inputs(calibrator: Any) -> Any:
    """The scores of the probe, in as many columns as the calibrator takes."""
    folds = getattr(calibrator, "calibrators_", ())
    return np.array([PROBE] * len(folds)).T if folds else np.array(PROBE)


def observed(calibrator: Any, **options: Any) -> dict[str, Any]:
    """What a calibrator answers, as plain JSON values."""
    found = {
        "type": type(calibrator).__name__,
        "classes": calibrator.classes_.tolist(),
        "predict": calibrator.predict(inputs(calibrator), **options).tolist(),
        "epsilon": calibrator.guarantee_.epsilon,
    }
    if hasattr(calibrator, "predict_interval"):
        found["predict_interval"] = calibrator.predict_interval(
            inputs(calibrator), **options
        ).tolist()
    return found


def main() -> None:
    record = HERE / "expected.json"
    expected = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    for name, (calibrator, options) in examples().items():
        place = HERE / f"{name}.json"
        if not place.exists():
            save_model(
                calibrator,
                place,
                columns={"score": "p", "label": "y"},
                provenance={"rows": 60, "seed": 0},
            )
            expected[name] = observed(calibrator, **options)
    record.write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
