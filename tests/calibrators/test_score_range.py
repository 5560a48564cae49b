"""Scores of another scale than those of `fit` are noticed."""

import json

import numpy as np
import pytest

import calibrant
from calibrant import (
    BinningCalibrator,
    LabelShiftCalibrator,
    Partition,
    PlattCalibrator,
    ScoreCalibrator,
    ShiftCalibrator,
    VennAbersCalibrator,
    scored,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.errors import CalibrantWarning

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=2000)
LABELS = (RNG.uniform(size=2000) < SCORES).astype(int)
SEEN = (SCORES.min(), SCORES.max())


def fits():
    return {
        "binning": BinningCalibrator().fit(SCORES, LABELS),
        "split": BinningCalibrator(pilot=0.2).fit(SCORES, LABELS),
        "edges": BinningCalibrator(partition=Partition.from_edges([0.5])).fit(SCORES, LABELS),
        "segments": BinningCalibrator().fit(SCORES, LABELS, segments=np.zeros(2000, int)),
        "scaling-binning": ScalingBinningCalibrator().fit(SCORES, LABELS),
        "platt": PlattCalibrator().fit(SCORES, LABELS),
        "venn-abers": VennAbersCalibrator().fit(SCORES, LABELS),
        "shift": (
            ShiftCalibrator().fit(SCORES, LABELS, importance_weight=np.ones(2000), weight_bound=1.0)
        ),
        "label-shift": LabelShiftCalibrator().fit(SCORES, LABELS, target_prior=0.5),
    }


FITTED = fits()


def answers(calibrator, scores):
    given = {"segments": np.zeros(len(scores), int)} if calibrator is FITTED["segments"] else {}
    for name in (
        "predict",
        "predict_proba",
        "predict_interval",
        "predict_set",
        "predict_multiprobability",
    ):
        if hasattr(calibrator, name):
            yield name, lambda name=name: getattr(calibrator, name)(np.array(scores), **given)


@pytest.mark.parametrize("name", FITTED)
def test_scores_of_another_scale_are_warned_of_once(name):
    for _, answer in answers(FITTED[name], [0.2, 39.0]):
        with pytest.warns(
            CalibrantWarning, match=r"from 0\.2 to 39, but .* fitted on scores from"
        ) as caught:
            answer()
        assert len(caught) == 1
        assert caught[0].filename == __file__


@pytest.mark.parametrize("name", FITTED)
def test_scores_up_to_half_the_width_beyond_are_not(name):
    for _, answer in answers(FITTED[name], [-0.49, 0.5, 1.49]):
        answer()  # warnings are errors here


@pytest.mark.parametrize("name", FITTED)
def test_range_is_saved_and_old_files_have_none(name):
    calibrator = FITTED[name]
    if name != "pilot":  # the rows that cut the bins are not counted
        assert calibrator.score_range_seen_ == SEEN
    saved = json.loads(json.dumps(calibrator.to_dict()))
    assert ScoreCalibrator.from_dict(saved).score_range_seen_ == calibrator.score_range_seen_
    del saved["score_range_seen"]
    old = ScoreCalibrator.from_dict(saved)
    assert old.score_range_seen_ is None
    assert old.count_out_of_range([39.0]) == 0
    given = {"segments": [0]} if name == "segments" else {}
    old.predict([39.0], **given)


def test_saved_range_must_be_a_range():
    saved = FITTED["platt"].to_dict()
    for wrong in ([1.0, 0.0], [0.0], None, [0.0, np.nan], "ab"):
        with pytest.raises(calibrant.errors.CalibrantError):
            ScoreCalibrator.from_dict({**saved, "score_range_seen": wrong})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_out_of_range_are_counted(dtype):
    pa = pytest.importorskip("pyarrow")
    calibrator = FITTED["binning"]
    scores = np.array([-39.0, -0.4, 0.1, 0.9, 1.4, 2.0, 39.0], dtype)
    assert calibrator.count_out_of_range(scores) == 3
    assert calibrator.count_out_of_range(scored(pa.table({"p": scores}), score="p")) == 3


@pytest.mark.parametrize("split", [None, 0.2])
def test_range_is_the_same_wherever_the_rows_are(split, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"p": SCORES, "y": LABELS}), tmp_path / "rows.parquet", row_group_size=300
    )
    data = scored(tmp_path / "rows.parquet", score="p", label="y")
    ours = BinningCalibrator(pilot=split).fit(data)
    assert (
        ours.score_range_seen_
        == BinningCalibrator(pilot=split).fit(SCORES, LABELS).score_range_seen_
    )


def test_adding_columns_does_not_warn():
    pa = pytest.importorskip("pyarrow")
    data = scored(pa.table({"p": [0.1, 39.0]}), score="p")
    for name in ("binning", "platt", "scaling-binning"):
        FITTED[name].apply(data).read_all()


def test_a_single_value_has_no_scale():
    calibrator = PlattCalibrator().fit([0.5, 0.5], [0, 1])
    assert calibrator.score_range_seen_ == (0.5, 0.5)
    calibrator.predict([39.0])


def test_a_refused_fit_and_a_new_fit_leave_no_stale_range():
    calibrator = PlattCalibrator().fit(SCORES, LABELS)
    with pytest.raises(ValueError, match="finite"):
        calibrator.fit([np.nan, 1.0], [0, 1])
    assert calibrator.score_range_seen_ == SEEN
    assert calibrator.fit([5.0, 9.0, 7.0], [0, 1, 1]).score_range_seen_ == (5.0, 9.0)
