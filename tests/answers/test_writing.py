"""Writing model files: whole or not at all, never over another file unasked.

What has no file is named.
"""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import calibrant.calibrators
import calibrator_checks
from calibrant import (
    BinningCalibrator,
    ClassWiseCalibrator,
    Model,
    Partition,
    PlattCalibrator,
    TopLabelCalibrator,
    load_model,
    save_model,
)
from calibrant.answers import model_text
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from worlds.errors import about
from worlds.model_files import EXAMPLES, SMALL, written


def test_a_file_that_is_there_is_not_replaced_unless_told(tmp_path):
    place = tmp_path / "model.json"
    save_model(SMALL, place)
    before = place.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save_model(EXAMPLES["platt"][0], place)
    assert place.read_bytes() == before
    save_model(EXAMPLES["platt"][0], place, overwrite=True)
    assert isinstance(load_model(place).calibrator, PlattCalibrator)
    assert list(tmp_path.iterdir()) == [place]


def test_a_file_that_comes_in_the_meantime_is_not_replaced(tmp_path, monkeypatch):
    place = tmp_path / "model.json"
    flush = os.fsync

    def other_comes_first(descriptor):
        place.write_bytes(b"other")
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", other_comes_first)
    with pytest.raises(FileExistsError):
        save_model(SMALL, place)
    assert place.read_bytes() == b"other"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("step", ["fsync", "replace", "link"])
def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, step):
    place = tmp_path / "model.json"
    save_model(SMALL, place)
    before = place.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    if step == "link":
        monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        save_model(
            EXAMPLES["platt"][0],
            tmp_path / "new.json" if step == "link" else place,
            overwrite=step != "link",
        )
    assert place.read_bytes() == before
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_kill_in_the_middle_leaves_the_old_file_whole(tmp_path, step):
    place = tmp_path / "model.json"
    save_model(SMALL, place)
    before = place.read_bytes()
    code = (
        "import os, sys; from calibrant import load_model, save_model\n"
        f"model = load_model({str(place)!r}); os.{step} = lambda *args: os._exit(7)\n"
        f"save_model(model, {str(place)!r}, provenance={{'rows': 1}}, overwrite=True)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 7
    assert place.read_bytes() == before


def test_permissions_follow_the_umask_and_the_file_that_was_there(tmp_path):
    place = tmp_path / "model.json"
    before = os.umask(0o027)
    try:
        save_model(SMALL, place)
        assert place.stat().st_mode & 0o777 == 0o640
        place.chmod(0o600)
        save_model(SMALL, place, overwrite=True)
        assert place.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "model.json")
    save_model(SMALL, tmp_path / "link.json")
    save_model(SMALL, tmp_path / "link.json", overwrite=True)
    assert (tmp_path / "link.json").is_symlink()
    assert load_model(tmp_path / "model.json").fingerprint == Model(SMALL).fingerprint


def test_places_that_are_no_file_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.json"):
        load_model(tmp_path / "nothing.json")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)
    with pytest.raises(IsADirectoryError, match="folder"):
        save_model(SMALL, tmp_path)
    with pytest.raises(FileNotFoundError):
        save_model(SMALL, tmp_path / "no" / "model.json")
    with pytest.raises(
        InvalidValueError, check=about("the output", "'/dev/null', a pipe, device or socket")
    ):
        save_model(SMALL, os.devnull, overwrite=True)
    for path in (None, 3, b"{}"):
        with pytest.raises(InvalidTypeError, match="path_or_file"):
            load_model(path)
        with pytest.raises(InvalidTypeError, match="path_or_file"):
            save_model(SMALL, path)


class Half:
    def read(self, size):
        return [1]


def test_a_file_object_must_give_bytes_or_text():
    with pytest.raises(InvalidTypeError, check=about("path_or_file", "list")):
        load_model(Half())


def test_no_more_is_read_than_a_model_may_hold():
    class Endless:
        def read(self, size):
            self.size = size
            return b" " * size

    file = Endless()
    with pytest.raises(InvalidValueError, check=about("the model file", "more")):
        load_model(file)
    assert file.size == model_text.MOST_BYTES + 1


@pytest.mark.broad
@pytest.mark.parametrize("kind", [ClassWiseCalibrator, TopLabelCalibrator])
@pytest.mark.parametrize("method", ["curve", "binning"])
def test_calibrators_of_several_classes_are_read_back(kind, method, tmp_path):
    scores = np.random.default_rng(0).dirichlet([1, 1, 1], 900)
    y = np.array(["a", "b", "c"])[scores.argmax(axis=1)]
    fitted = kind(n_bins=2, method=method).fit(scores, y)
    save_model(fitted, tmp_path / "model.json")
    read = load_model(tmp_path / "model.json")
    assert type(read.calibrator) is kind
    assert np.array_equal(read.predict(scores), fitted.predict(scores))
    assert np.array_equal(read.predict_interval(scores), fitted.predict_interval(scores))
    assert read.guarantee_.epsilon == fitted.guarantee_.epsilon


def test_what_has_no_model_file_is_named():
    for other in (object(), None):
        with pytest.raises(InvalidTypeError, match=f"got {type(other).__name__}"):
            written(other)


def test_of_a_classifier_its_calibrator_can_be_saved(tmp_path):
    from sklearn.linear_model import LogisticRegression

    X = np.linspace(0, 1, 400).reshape(-1, 1)
    y = np.arange(400) % 3 == 0
    classifier = calibrant.CalibratedClassifier(LogisticRegression()).fit(X, y)
    with pytest.raises(
        InvalidTypeError,
        match="got CalibratedClassifier: save its calibrator_, or pickle the class",
    ):
        save_model(classifier, tmp_path / "model.json")
    save_model(classifier.calibrator_, tmp_path / "model.json")


def test_an_unfitted_calibrator_is_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        written(BinningCalibrator())


def test_labels_of_bytes_and_regions_of_functions_are_refused():
    y = np.where(np.arange(40) % 2, b"yes", b"no")
    with pytest.raises(InvalidTypeError, check=about("pos_label", "bytes")):
        written(BinningCalibrator(2, pos_label=b"yes").fit(np.linspace(0, 1, 40), y))
    halves = Partition.from_function(lambda scores: np.asarray(scores) > 0.5, [False, True])
    with pytest.raises(InvalidTypeError, check=about("partition", "FunctionPartition")):
        written(BinningCalibrator(partition=halves).fit(np.linspace(0, 1, 40), np.arange(40) % 2))


def test_a_model_too_large_to_be_read_is_not_written(tmp_path):
    bins = Partition.from_edges(np.arange(10_000.0))
    many = BinningCalibrator(partition=bins).fit(np.arange(40.0), np.arange(40) % 2)
    with pytest.raises(
        InvalidValueError, match=r"must have a file that can be read back.*10,000 regions"
    ):
        save_model(many, tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"columns": ["p"]}, "columns"),
        ({"columns": {"score": 1}}, "columns"),
        ({"columns": {1: "p"}}, "columns"),
        ({"provenance": [1]}, "provenance"),
        ({"provenance": {1: 2}}, "keys of provenance"),
        ({"provenance": {"a": {"b": [0, object()]}}}, r"provenance\['a'\]\['b'\]\[1\]"),
        ({"provenance": {"a": np.arange(3)}}, r"provenance\['a'\]"),
        ({"provenance": {"a": float("nan")}}, "finite"),
        ({"provenance": {"a": np.float64("inf")}}, "finite"),
        ({"provenance": {"a": 10**200}}, "at most 100 digits"),
        ({"provenance": {"a": "\ud800"}}, "surrogate"),
    ],
)
def test_what_a_file_can_not_hold_is_named(options, match):
    with pytest.raises(CalibrantError, match=match):
        written(SMALL, **options)


def test_provenance_within_itself_is_refused():
    endless: dict[str, Any] = {}
    endless["self"] = endless
    with pytest.raises(InvalidValueError, match="nested at most"):
        written(SMALL, provenance=endless)


def test_a_class_of_the_same_name_is_not_mistaken_for_ours(tmp_path):
    scores, y = calibrator_checks.make_data(100)
    save_model(calibrant.PlattCalibrator().fit(scores, y), tmp_path / "model.json")

    class PlattCalibrator(calibrant.PlattCalibrator):
        """Of the user: it may mean something else."""

    assert type(load_model(tmp_path / "model.json").calibrator) is calibrant.PlattCalibrator
    with pytest.raises((TypeError, ValueError)):
        save_model(PlattCalibrator().fit(scores, y), tmp_path / "own.json")
    assert not (tmp_path / "own.json").exists()
