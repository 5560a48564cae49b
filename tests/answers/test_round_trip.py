"""Model files: what is written comes back to the last bit."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest

import calibrant.calibrators
import calibrator_checks
from calibrant import (
    BinningCalibrator,
    Model,
    PlattCalibrator,
    ScoreCalibrator,
    load_model,
    save_model,
)
from calibrant.errors import InvalidValueError
from calibrant.intervals import MonotoneBand
from read_marks import unmarked
from worlds.model_files import EXAMPLES, FROZEN, SMALL, made, read, written


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_type_comes_back_to_the_last_bit(name):
    calibrator, options = EXAMPLES[name]
    data = written(calibrator, columns={"score": "p"}, provenance={"rows": 60})
    model = read(data)
    assert type(model.calibrator) is type(calibrator)
    assert made.observed(model.calibrator, **options) == made.observed(calibrator, **options)
    assert unmarked(model.calibrator.guarantee_) == str(calibrator.guarantee_)
    assert model.calibrator.classes_.dtype == calibrator.classes_.dtype
    assert model.columns == {"score": "p"}
    assert model.provenance == {"rows": 60}
    assert written(model) == data


@pytest.mark.broad
@pytest.mark.parametrize("name", calibrator_checks.CALIBRATORS)
def test_every_calibrator_of_the_suite_comes_back_to_the_last_bit(name):
    calibrator = calibrator_checks.fitted(calibrator_checks.CALIBRATORS[name])
    data = written(calibrator)
    model = read(data)
    calibrator_checks.assert_same(
        calibrator_checks.answers(model.calibrator), calibrator_checks.answers(calibrator)
    )
    assert unmarked(model.calibrator.guarantee_) == str(calibrator.guarantee_)
    assert written(model.calibrator) == data


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        ([False, True], True),
        ([False, True], None),
        ([0, 1], None),
        ([-1, 1], None),
        ([0.0, 1.0], None),
        ([0.25, 1.5], 0.25),
        (["no", "yes"], "no"),
        (["日本", "ß"], "ß"),
        ([-(2**63), 2**63 - 1], 2**63 - 1),
    ],
)
def test_labels_keep_their_kind(labels, pos_label):
    y = np.array(labels)[np.arange(40) % 2]
    calibrator = BinningCalibrator(2, pos_label=pos_label).fit(np.linspace(0, 1, 40), y)
    restored = read(written(calibrator)).calibrator
    assert restored.classes_.dtype == calibrator.classes_.dtype
    assert restored.classes_.tolist() == calibrator.classes_.tolist()
    assert repr(restored.guarantee_.positive_label) == repr(calibrator.guarantee_.positive_label)
    np.testing.assert_array_equal(
        restored.predict_proba([0.2, 0.9]), calibrator.predict_proba([0.2, 0.9])
    )


@pytest.mark.broad
def test_a_stream_goes_on_where_it_stopped():
    for name in ("online", "online-betting", "online-stitched", "online-warming-up"):
        original = copy.deepcopy(EXAMPLES[name][0])
        restored = read(written(original)).calibrator
        scores, y = calibrator_checks.make_data(100)
        for stream in (original, restored):
            stream.partial_fit(scores, y)
        assert made.observed(restored) == made.observed(original)


@pytest.mark.broad
def test_files_text_files_and_paths_hold_the_same(tmp_path):
    save_model(SMALL, tmp_path / "a.json")
    save_model(SMALL, str(tmp_path / "b.json"))
    with open(tmp_path / "c.json", "wb") as file:
        save_model(SMALL, file)
    with open(tmp_path / "d.json", "w", encoding="utf-8", newline="") as file:
        save_model(SMALL, file)
    data = written(SMALL)
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {data}
    with open(tmp_path / "a.json", encoding="utf-8") as file:
        assert load_model(file).fingerprint == read(data).fingerprint
    assert load_model(tmp_path / "b.json").fingerprint == read(data).fingerprint


def test_fingerprint_is_that_of_the_checksum_and_tells_content_apart():
    data = written(SMALL)
    checksum = json.loads(data)["checksum"]
    assert (
        read(data).fingerprint == checksum.removeprefix("sha256:")[:16] == Model(SMALL).fingerprint
    )
    assert Model(SMALL, {"score": "p"}).fingerprint != Model(SMALL).fingerprint


def test_an_editor_may_lay_the_file_out_anew():
    content = json.loads(written(SMALL, provenance={"by": "Zoë"}))
    shuffled = dict(sorted(content.items(), reverse=True))
    for text in (
        json.dumps(content),
        json.dumps(shuffled, indent="\t"),
        json.dumps(content, ensure_ascii=False),
    ):
        assert made.observed(read(text.encode()).calibrator) == made.observed(SMALL)


def test_provenance_of_a_model_is_kept_unless_given_anew():
    model = read(
        written(
            SMALL,
            columns={"score": "p"},
            provenance={"rows": np.int64(60), "edges": (1, 2.5, None)},
        )
    )
    assert model.provenance == {"rows": 60, "edges": [1, 2.5, None]}
    again = read(written(model, provenance={"rows": 61}))
    assert (again.columns, again.provenance) == ({"score": "p"}, {"rows": 61})


def test_file_is_for_readers_too():
    lines = written(SMALL).decode().splitlines()
    assert lines[1] == '  "format": "calibrant.model/2",'
    assert f'        "counts": {SMALL.tally_.counts.tolist()},' in lines
    guarantee = json.loads(written(SMALL))["guarantee"]
    assert guarantee == {
        "epsilon": SMALL.guarantee_.epsilon,
        "confidence_level": 0.9,
        "sentence": SMALL.guarantee_.sentence,
        "details": SMALL.guarantee_.details,
    }


# Files of every released schema


def test_every_type_has_a_frozen_file():
    types = {json.loads(path.read_text(encoding="utf-8"))["calibrator"]["type"] for path in FROZEN}
    shift = [name for name in calibrant.shift.__all__ if name.endswith("Calibrator")]
    assert types == {*calibrant.calibrators.__all__, "OnlineCalibrator", *shift}


def test_a_class_of_a_user_with_our_name_is_never_returned_for_our_file():
    ours = calibrant.PlattCalibrator
    kind = type("PlattCalibrator", (ours,), {"predict": lambda self, scores: np.ones(len(scores))})
    state = ours().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).to_dict()
    assert type(ScoreCalibrator.from_dict(state)) is ours
    assert type(ScoreCalibrator.from_dict(json.loads(json.dumps(state)))) is ours
    scaled = calibrant.calibrators.ScalingBinningCalibrator(ours(), n_bins=1).fit(
        [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]
    )
    assert type(ScoreCalibrator.from_dict(scaled.to_dict()).base_) is ours
    with pytest.raises(InvalidValueError, match="type of the calibrator must be"):
        kind.from_dict(state)


def test_a_class_of_a_user_is_read_back_by_itself_only():
    class Mine(calibrant.PlattCalibrator):
        pass

    state = Mine().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).to_dict()
    assert type(Mine.from_dict(state)) is Mine
    with pytest.raises(
        InvalidValueError, match=r"type of the calibrator must be a known calibrator; got '"
    ):
        ScoreCalibrator.from_dict(state)


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_frozen_file_answers_what_it_always_did(path):
    expected = json.loads((path.parent / "expected.json").read_text(encoding="utf-8"))[path.stem]
    model = load_model(path)
    options = {"segments": made.SEGMENTS} if "segments" in path.stem else {}
    if path.stem == "subgroups":
        options = {"attributes": {"region": made.SEGMENTS, "score": made.PROBE}}
    found = made.observed(model.calibrator, **options)
    assert (found["type"], found["classes"]) == (expected["type"], expected["classes"])
    assert (found["epsilon"] is None) == (expected["epsilon"] is None)
    for name in expected.keys() - {"type", "classes"}:
        if expected[name] is not None:
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-9, err_msg=name)
    assert model.columns == {"score": "p", "label": "y"}


def test_fresh_process_reads_every_type():
    code = (
        "import sys; from calibrant import load_model\nassert not"
        " any(name.startswith(('calibrant.calibrators', 'sklearn')) for name in sys.modules)\nfor"
        " path in sys.argv[1:]: print(type(load_model(path).calibrator).__name__)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, FROZEN)], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == [
        json.loads(path.read_text(encoding="utf-8"))["calibrator"]["type"] for path in FROZEN
    ]


def test_a_model_predicts_what_its_calibrator_predicts():
    scores = [0.1, 0.5, 0.9]
    for name, (calibrator, *_) in EXAMPLES.items():
        model = Model(calibrator)
        assert model.guarantee_ is calibrator.guarantee_
        methods = [name for name in dir(calibrator) if name.startswith("predict")]
        assert {"predict", "predict_proba"} <= set(methods) <= set(dir(model))
        if "segments" in name or "cross" in name or "subgroups" in name:
            continue
        for method in methods:
            np.testing.assert_array_equal(
                getattr(model, method)(scores), getattr(calibrator, method)(scores)
            )
    with pytest.raises(AttributeError, match="no attribute 'predict_interval'"):
        Model(PlattCalibrator().fit([0.1, 0.9], [0, 1])).predict_interval(scores)
    with pytest.raises(AttributeError, match="'Model' object has no attribute 'fit'"):
        model.fit(scores, [0, 1, 1])
    assert copy.deepcopy(model).fingerprint == model.fingerprint


def test_a_band_is_saved_like_a_calibrator(tmp_path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=500)
    band = MonotoneBand().fit(scores, rng.uniform(size=500) < scores)
    save_model(band, tmp_path / "band.json", columns={"score": "p"})
    model = load_model(tmp_path / "band.json")
    np.testing.assert_array_equal(model.predict_interval(scores), band.predict_interval(scores))
    assert model.written["sentence"] == band.guarantee_.sentence
