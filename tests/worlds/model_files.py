"""Model files of every type, and what tests do with them: write, read, change, refuse."""

import io
import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from calibrant import (
    BetaCalibrator,
    BinningCalibrator,
    BlendCalibrator,
    Calibrator,
    IsotonicCalibrator,
    LabelShiftCalibrator,
    Model,
    OnlineCalibrator,
    Partition,
    PlattCalibrator,
    ShiftCalibrator,
    SubgroupCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
    load_model,
    save_model,
)
from calibrant.answers import model_text
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.errors import CalibrantError
from calibrant.ratios import ULSIF

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
        "curve": (Calibrator("beta", n_bins=3).fit(scores, y), {}),
        "curve-split": (
            Calibrator("venn-abers", n_bins=2, pilot=0.3, random_state=0).fit(scores, y),
            {},
        ),
        "blend": (BlendCalibrator().fit(scores, y), {}),
        "scaling-binning": (
            ScalingBinningCalibrator(BetaCalibrator(), n_bins=2, random_state=0).fit(scores, y),
            {},
        ),
        "platt": (PlattCalibrator(smoothing=False).fit(scores, y), {}),
        "temperature": (TemperatureCalibrator().fit(scores, y), {}),
        "beta": (BetaCalibrator().fit(scores, y), {}),
        "isotonic": (IsotonicCalibrator().fit(scores, 2.0 * y - 1.0), {}),
        "venn-abers": (VennAbersCalibrator(loss="brier").fit(scores, y), {}),
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


def observed(calibrator: Any, **options: Any) -> dict[str, Any]:
    """What a calibrator answers, as plain JSON values."""
    found = {
        "type": type(calibrator).__name__,
        "classes": calibrator.classes_.tolist(),
        "predict": calibrator.predict(PROBE, **options).tolist(),
        "epsilon": calibrator.guarantee_.epsilon,
    }
    if hasattr(calibrator, "predict_interval"):
        found["predict_interval"] = calibrator.predict_interval(PROBE, **options).tolist()
    return found


EXAMPLES = examples()
SMALL = EXAMPLES["binning"][0]


def written(model: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    save_model(model, file, **options)
    return file.getvalue()


@cache
def file_of(model: Any) -> bytes:
    """The file of an example, which stays as it is: written once for all tests that change it."""
    return written(model)


def read(data: bytes) -> Model:
    return load_model(io.BytesIO(data))


def sealed(content: dict[str, Any]) -> bytes:
    """A file whose checksum is right, whatever the content: any author can compute one."""
    try:
        content = {**content, "checksum": model_text.checksum_of(content)}
    except CalibrantError:
        content = {**content, "checksum": "sha256:"}
    return json.dumps(content).encode()


def refused(data: bytes, match: str) -> None:
    with pytest.raises(CalibrantError, match=match) as caught:
        read(data)
    assert len(str(caught.value)) < 1000


def changed(*path: Any, to: Any, of: Any = SMALL) -> bytes:
    """A file with another value in one place, and the right checksum."""
    content = json.loads(file_of(of))
    place = content
    for key in path[:-1]:
        place = place[key]
    assert path[-1] in place or isinstance(place, list)
    place[path[-1]] = to
    return sealed(content)
