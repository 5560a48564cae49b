"""Model files: what is written comes back to the last bit; what is damaged, hostile or newer is refused, never run."""

import copy
import importlib.util
import io
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant.calibrators
import calibrator_checks
from calibrant import BinningCalibrator, ClassWiseCalibrator, Partition, PlattCalibrator, ScoreCalibrator, saving
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.saving import Model, _text, load_model, save_model

MODELS = Path(__file__).parent / "data" / "models"
SCHEMAS = sorted(path.name for path in MODELS.iterdir() if path.is_dir() and path.name.isdigit())
FROZEN = [path for schema in SCHEMAS for path in sorted((MODELS / schema).glob("*.json")) if path.stem != "expected"]


def _load_examples() -> Any:
    spec = importlib.util.spec_from_file_location("model_examples", MODELS / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = _load_examples()
EXAMPLES = made.examples()
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
        content = {**content, "checksum": _text.checksum_of(content)}
    except CalibrantError:
        content = {**content, "checksum": "sha256:"}
    return json.dumps(content).encode()


def refused(data: bytes, match: str) -> None:
    with pytest.raises(CalibrantError, match=match) as caught:
        read(data)
    assert len(str(caught.value)) < 1000


# What is written comes back


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_type_comes_back_to_the_last_bit(name):
    calibrator, options = EXAMPLES[name]
    data = written(calibrator, columns={"score": "p"}, provenance={"rows": 60})
    model = read(data)
    assert type(model.calibrator) is type(calibrator)
    assert made.observed(model.calibrator, **options) == made.observed(calibrator, **options)
    assert str(model.calibrator.guarantee_) == str(calibrator.guarantee_)
    assert model.calibrator.classes_.dtype == calibrator.classes_.dtype
    assert model.columns == {"score": "p"}
    assert model.provenance == {"rows": 60}
    assert written(model) == data


@pytest.mark.parametrize("name", calibrator_checks.CALIBRATORS)
def test_every_calibrator_of_the_suite_comes_back_to_the_last_bit(name):
    calibrator = calibrator_checks.fitted(calibrator_checks.CALIBRATORS[name])
    data = written(calibrator)
    model = read(data)
    calibrator_checks.assert_same(calibrator_checks.answers(model.calibrator), calibrator_checks.answers(calibrator))
    assert str(model.calibrator.guarantee_) == str(calibrator.guarantee_)
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
    np.testing.assert_array_equal(restored.predict_proba([0.2, 0.9]), calibrator.predict_proba([0.2, 0.9]))


def test_a_stream_goes_on_where_it_stopped():
    for name in ("online", "online-betting", "online-stitched", "online-warming-up"):
        original = copy.deepcopy(EXAMPLES[name][0])
        restored = read(written(original)).calibrator
        scores, y = calibrator_checks.make_data(100)
        for stream in (original, restored):
            stream.partial_fit(scores, y)
        assert made.observed(restored) == made.observed(original)


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
    assert read(data).fingerprint == checksum.removeprefix("sha256:")[:16] == Model(SMALL).fingerprint
    assert Model(SMALL, {"score": "p"}).fingerprint != Model(SMALL).fingerprint


def test_an_editor_may_lay_the_file_out_anew():
    content = json.loads(written(SMALL, provenance={"by": "Zoë"}))
    shuffled = dict(sorted(content.items(), reverse=True))
    for text in (json.dumps(content), json.dumps(shuffled, indent="\t"), json.dumps(content, ensure_ascii=False)):
        assert made.observed(read(text.encode()).calibrator) == made.observed(SMALL)


def test_provenance_of_a_model_is_kept_unless_given_anew():
    model = read(written(SMALL, columns={"score": "p"}, provenance={"rows": np.int64(60), "edges": (1, 2.5, None)}))
    assert model.provenance == {"rows": 60, "edges": [1, 2.5, None]}
    again = read(written(model, provenance={"rows": 61}))
    assert (again.columns, again.provenance) == ({"score": "p"}, {"rows": 61})


def test_file_is_for_readers_too():
    lines = written(SMALL).decode().splitlines()
    assert lines[1] == '  "format": "calibrant.model/2",'
    assert f'        "counts": {SMALL.tally_.counts.tolist()},' in lines
    promise = json.loads(written(SMALL))["promise"]
    assert promise == {
        "epsilon": SMALL.guarantee_.epsilon,
        "confidence_level": 0.9,
        "sentence": SMALL.guarantee_.sentence(),
    }


# Files of every released schema


def test_every_type_has_a_frozen_file():
    types = {json.loads(path.read_text(encoding="utf-8"))["calibrator"]["type"] for path in FROZEN}
    assert types == {*calibrant.calibrators.__all__, *calibrant.shift.__all__}


def test_a_class_of_a_user_with_our_name_is_never_returned_for_our_file():
    ours = calibrant.PlattCalibrator
    kind = type("PlattCalibrator", (ours,), {"predict": lambda self, scores: np.ones(len(scores))})
    state = ours().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).to_dict()
    assert type(ScoreCalibrator.from_dict(state)) is ours
    assert type(ScoreCalibrator.from_dict(json.loads(json.dumps(state)))) is ours
    scaled = calibrant.ScalingBinningCalibrator(ours(), n_bins=1).fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    assert type(ScoreCalibrator.from_dict(scaled.to_dict()).base_) is ours
    with pytest.raises(InvalidValueError, match="type of the calibrator must be"):
        kind.from_dict(state)


def test_a_class_of_a_user_is_read_back_by_itself_only():
    class Mine(calibrant.PlattCalibrator):
        pass

    state = Mine().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).to_dict()
    assert type(Mine.from_dict(state)) is Mine
    with pytest.raises(InvalidValueError, match=r"type of the calibrator must be a known calibrator; got '"):
        ScoreCalibrator.from_dict(state)


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_frozen_file_answers_what_it_always_did(path):
    expected = json.loads((path.parent / "expected.json").read_text(encoding="utf-8"))[path.stem]
    model = load_model(path)
    options = {"segments": made.SEGMENTS} if "segments" in path.stem else {}
    found = made.observed(model.calibrator, **options)
    assert (found["type"], found["classes"]) == (expected["type"], expected["classes"])
    assert (found["epsilon"] is None) == (expected["epsilon"] is None)
    for name in expected.keys() - {"type", "classes"}:
        if expected[name] is not None:
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-9, err_msg=name)
    assert model.columns == {"score": "p", "label": "y"}


def test_fresh_process_reads_every_type():
    code = (
        "import sys; from calibrant.saving import load_model\n"
        "assert not any(name.startswith(('calibrant.calibrators', 'sklearn')) for name in sys.modules)\n"
        "for path in sys.argv[1:]: print(type(load_model(path).calibrator).__name__)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, *map(str, FROZEN)], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [json.loads(path.read_text(encoding="utf-8"))["calibrator"]["type"] for path in FROZEN]


# Damage


def unharmed(data: bytes) -> bool:
    """Whether a damaged file still gives the very same model; otherwise it must be refused."""
    try:
        model = read(data)
    except CalibrantError:
        return False
    assert made.observed(model.calibrator) == made.observed(SMALL)
    return True


@pytest.mark.broad
def test_every_flipped_bit_is_refused_or_harmless():
    data = written(SMALL)
    assert len(data) < 3000
    harmless = 0
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            harmless += unharmed(bytes(flipped))
    assert harmless < 10  # no blind eye: but for the odd space or exponent, all 8 bits of every byte matter


def test_every_truncation_is_refused_or_harmless():
    data = written(SMALL)
    assert [length for length in range(len(data)) if unharmed(data[:length])] == [len(data) - 1]  # the last line's end


def test_damage_is_said_to_be_damage():
    data = written(SMALL)
    other = data.replace(b'"counts": [', b'"counts": [1')
    assert other != data
    refused(other, "changed or damaged after it was written")
    refused(data[:500], "cut short")


def test_only_files_of_the_first_format_may_say_an_epsilon_of_the_older_budget():
    proved = SMALL.guarantee_.epsilon
    slightly_too_good = json.loads(written(SMALL)) | {"promise": {**saving._promise(SMALL), "epsilon": 0.99 * proved}}
    refused(sealed(slightly_too_good), "epsilon of the promise must follow from the calibrator's own counts")
    older = read(sealed({**slightly_too_good, "format": "calibrant.model/1"}))
    assert older.guarantee_.epsilon == proved
    assert json.loads(written(older.calibrator))["promise"]["epsilon"] == proved
    too_good = {**slightly_too_good["promise"], "epsilon": 0.89 * proved}
    refused(sealed({**slightly_too_good, "format": "calibrant.model/1", "promise": too_good}), "epsilon of the promise")


# Hostile files


def nested(depth: int) -> bytes:
    return b'{"format": "calibrant.model/1", "provenance": ' + b"[" * depth + b"]" * depth + b"}"


def many(entry: bytes, size: int) -> bytes:
    return b'{"format": "calibrant.model/1", "provenance": [' + entry * (size // len(entry)) + b"0]}"


def changed(*path: Any, to: Any, of: Any = SMALL) -> bytes:
    """A file with another value in one place, and the right checksum."""
    content = json.loads(file_of(of))
    place = content
    for key in path[:-1]:
        place = place[key]
    assert path[-1] in place or isinstance(place, list)
    place[path[-1]] = to
    return sealed(content)


def many_regions(n_regions: int, interval: str) -> bytes:
    """A file that is right but for its promise, and as laborious as any."""
    content = json.loads(file_of(SMALL))
    state = content["calibrator"]["state"]
    content["calibrator"]["parameters"]["interval"] = interval
    state["partition"] |= {"edges": list(range(n_regions - 1)), "first_rank": None, "last_rank": None, "n_rows": None}
    state["tally"] |= {"counts": [9] * n_regions, "positives": [4] * n_regions, "partition": None}
    return sealed(content)


FULL = _text.MOST_BYTES - 100
STATE = ("calibrator", "state")
HOSTILE = {
    "empty": (b"", "empty"),
    "one byte too long": (b" " * (_text.MOST_BYTES + 1), "at most 8,000,000 bytes"),
    "all brackets": (b"[" * FULL, "lists and objects"),
    "all braces": (b"{" * FULL, "lists and objects"),
    "brackets within limits": (b"[" * 150_000, "nested at most"),
    "all zeros": (many(b"0,", FULL), "at most 500,000 values"),
    "as many zeros as allowed": (many(b"0,", 900_000), "exactly the entries"),
    "as many long floats as allowed": (many(b"0.1234567890,", 6_000_000), "exactly the entries"),
    "empty lists": (many(b"[],", FULL), "values"),
    "as many empty lists as allowed": (many(b"[],", 590_000), "exactly the entries"),
    "as many empty objects as allowed": (many(b"{},", 590_000), "exactly the entries"),
    "deep": (nested(100), "nested at most 40"),
    "too deep to parse": (nested(90_000), "nested at most 40"),
    "giant string": (b'{"format": "' + b"a" * FULL + b'"}', "not a calibrant model file"),
    "giant string of wide characters": (b'{"format": "' + "😀".encode() * (FULL // 4) + b'"}', "not a calibrant"),
    "giant key": (b'{"' + b"a" * FULL + b'": 1}', "not a calibrant"),
    "giant integer": (b'{"format": ' + b"9" * FULL + b"}", "at most 100 digits"),
    "giant negative integer": (b'{"format": -' + b"9" * FULL + b"}", "at most 100 digits"),
    "giant exponent": (sealed({})[:-1] + b', "format": 1e' + b"9" * 100_000 + b"}", "not a calibrant"),
    "giant fraction": (b'{"format": 0.' + b"9" * FULL + b"}", "not a calibrant"),
    "NaN": (b'{"format": NaN}', "finite; got NaN"),
    "Infinity": (b'{"format": [-Infinity]}', "finite; got -Infinity"),
    "overflow": (
        sealed(json.loads(file_of(SMALL))).replace(b'"provenance": {}', b'"provenance": {"a": 1e999}'),
        "finite",
    ),
    "duplicate key": (b'{"format": "calibrant.model/1", "format": "calibrant.model/1"}', "once"),
    "inner duplicate key": (b'{"format": {"a": 1, "a": 1}}', "once"),
    "not UTF-8": (b'{"format": "\xff"}', "not UTF-8"),
    "UTF-16": ('{"format": "calibrant.model/1"}'.encode("utf-16"), "not UTF-8"),
    "byte order mark": (b"\xef\xbb\xbf" + file_of(SMALL), "not JSON"),
    "half a surrogate pair": (file_of(SMALL).replace(b'"columns": {}', b'"columns": {"a": "\\ud800"}'), "surrogate"),
    "gzip": (b"\x1f\x8b\x08\x00" + b"\0" * 100, "unpack it first"),
    "pickle": (b"\x80\x04\x95\x05\x00\x00\x00", "never unpickles anything"),
    "a list": (b"[]", "not a JSON object"),
    "a number": (b"1", "not a JSON object"),
    "trailing text": (file_of(SMALL) + b"{}", "not JSON"),
    "comment": (b"// hello\n" + file_of(SMALL), "not JSON"),
    "no format": (b"{}", "not a calibrant model file"),
    "format of another kind": (b'{"format": ["calibrant.model/1"]}', "not a calibrant model file"),
    "another format": (b'{"format": "calibrant.tally/1"}', "not a calibrant model file"),
    "format 0": (changed("format", to="calibrant.model/0"), "not a calibrant model file"),
    "newer": (changed("format", to="calibrant.model/3"), "newer calibrant.*upgrade"),
    "much newer": (b'{"format": "calibrant.model/12", "anything": 1}', "newer calibrant.*upgrade"),
    "unknown entry": (sealed({**json.loads(file_of(SMALL)), "exec": "rm"}), "exactly the entries"),
    "missing entry": (b'{"format": "calibrant.model/1"}', "none named 'checksum'"),
    "checksum of another kind": (
        json.dumps({**json.loads(file_of(SMALL)), "checksum": None}).encode(),
        "changed or damaged",
    ),
    "too many regions": (many_regions(10_001, "blaker"), "at most 10,000 regions"),
    "as many regions as allowed": (many_regions(10_000, "clopper-pearson"), "epsilon of the promise"),
    "as many values as allowed, damaged": (
        json.dumps({**json.loads(file_of(SMALL)), "provenance": {"a": [0.1234567890] * 499_900}}).encode(),
        "changed or damaged",
    ),
    "columns not text": (changed("columns", to={"score": 1}), "columns"),
    "provenance not an object": (changed("provenance", to=[1]), "provenance"),
    "promise too good": (changed("promise", "epsilon", to=0.01), "epsilon of the promise"),
    "promise of nothing": (changed("promise", "epsilon", to=None), "epsilon of the promise"),
    "promise where there is none": (changed("promise", "epsilon", to=0.5, of=EXAMPLES["platt"][0]), "epsilon"),
    "promise of another level": (changed("promise", "confidence_level", to=0.99), "confidence_level"),
    "promise without sentence": (changed("promise", "sentence", to=None), "sentence"),
    "promise not an object": (changed("promise", to=[]), "promise"),
    "calibrator not an object": (changed("calibrator", to=[1]), "state must be the dict"),
    "type is a dunder": (changed("calibrator", "type", to="__class__"), "type of the calibrator"),
    "type is a list": (changed("calibrator", "type", to=["BinningCalibrator"]), "type of the calibrator"),
    "type is a base class": (changed("calibrator", "type", to="CurveCalibrator"), "type of the calibrator"),
    "type is another base class": (changed("calibrator", "type", to="RegionCalibrator"), "type of the calibrator"),
    "type is a module's": (changed("calibrator", "type", to="os.system"), "type of the calibrator"),
    "type of another state": (changed("calibrator", "type", to="PlattCalibrator"), "parameters of a PlattCalibrator"),
    "unknown parameter": (changed("calibrator", "parameters", to={"n_binz": 3}), "n_binz"),
    "parameter that is not saved": (changed("calibrator", "parameters", to={"n_jobs": 10**9}), "n_jobs"),
    "parameter self": (changed("calibrator", "parameters", to={"self": 1}), "self"),
    "parameters in a list": (changed("calibrator", "parameters", to=["n_bins"]), "must be the dict"),
    "bins of text": (changed("calibrator", "parameters", "n_bins", to="many"), "n_bins"),
    "no bins": (changed("calibrator", "parameters", "n_bins", to=0), "n_bins"),
    "level above one": (changed("calibrator", "parameters", "confidence_level", to=1.5), "confidence_level"),
    "interval of another kind": (changed("calibrator", "parameters", "interval", to={"type": 1}), "parameters"),
    "base of an unknown type": (
        changed(
            "calibrator", "parameters", "base", to={"type": "X", "parameters": {}}, of=EXAMPLES["scaling-binning"][0]
        ),
        "known calibrator",
    ),
    "positive label of no class": (changed("calibrator", "parameters", "pos_label", to=7), "pos_label"),
    "one class": (changed("calibrator", "classes", to=[1]), "classes"),
    "three classes": (changed("calibrator", "classes", to=[0, 1, 2]), "classes"),
    "equal classes": (changed("calibrator", "classes", to=[1, 1]), "classes"),
    "classes that are equal but for their kind": (changed("calibrator", "classes", to=[1, True]), "classes"),
    "unsorted classes": (changed("calibrator", "classes", to=[1, 0]), "classes"),
    "mixed classes": (changed("calibrator", "classes", to=[0, "1"]), "classes"),
    "nested classes": (changed("calibrator", "classes", to=[[0], [1]]), "classes"),
    "classes beyond 64 bits": (changed("calibrator", "classes", to=[0, 10**30]), "classes"),
    "null classes": (changed("calibrator", "classes", to=None), "classes"),
    "positive index 2": (changed("calibrator", "positive_index", to=2), "positive_index"),
    "positive index true": (changed("calibrator", "positive_index", to=True), "positive_index"),
    "positive index 1.0": (changed("calibrator", "positive_index", to=1.0), "positive_index"),
    "huge counts": (changed(*STATE, "tally", "counts", to=[2**60, 19, 19]), "counts"),
    "counts beyond 64 bits": (changed(*STATE, "tally", "counts", to=[10**40, 19, 19]), "counts"),
    "negative counts": (changed(*STATE, "tally", "counts", to=[-1, 19, 19]), "counts"),
    "fractional counts": (changed(*STATE, "tally", "counts", to=[20.5, 19, 19]), "counts"),
    "counts in rows": (changed(*STATE, "tally", "counts", to=[[20], [19], [19]]), "counts"),
    "too many positives": (changed(*STATE, "tally", "positives", to=[21, 8, 15]), "positives"),
    "counts of another partition": (changed(*STATE, "tally", "partition", to="0" * 16), "another"),
    "too few counts": (changed(*STATE, "tally", "counts", to=[20, 19]), "one entry per region"),
    "negative uncounted": (changed(*STATE, "tally", "uncounted", to=-1), "uncounted"),
    "edges that fall": (changed(*STATE, "partition", "edges", to=[0.7, 0.3]), "strictly increasing"),
    "equal edges": (changed(*STATE, "partition", "edges", to=[0.3, 0.3]), "strictly increasing"),
    "edges of text": (changed(*STATE, "partition", "edges", to=["a", "b"]), "edges"),
    "edges outside": (changed(*STATE, "partition", "high", to=0.5), "increasing order"),
    "low above high": (changed(*STATE, "partition", "low", to=7.0), "increasing order"),
    "ranks that overlap": (changed(*STATE, "partition", "last_rank", to=[41, 41]), "overlap"),
    "ranks beyond the rows": (changed(*STATE, "partition", "last_rank", to=[21, 61]), "n_rows"),
    "rank zero": (changed(*STATE, "partition", "first_rank", to=[0, 41]), "rank"),
    "fractional ranks": (changed(*STATE, "partition", "first_rank", to=[20.5, 41]), "whole number"),
    "ranks without rows": (changed(*STATE, "partition", "n_rows", to=None), "together"),
    "partition of a function": (changed(*STATE, "partition", to={"kind": "function"}), "kind"),
    "partition of no kind": (changed(*STATE, "partition", to={"kind": ["scores"]}), "kind"),
    "a stream of bets in more regions than it has gamblers for": (
        changed(
            *STATE,
            to={
                **EXAMPLES["online-betting"][0].to_dict()["state"],
                "partition": Partition.from_edges(np.arange(40_000.0)).to_dict(),
            },
            of=EXAMPLES["online-betting"][0],
        ),
        "gamblers",
    ),
    "isotonic curve that falls": (changed(*STATE, "values", 0, to=0.99, of=EXAMPLES["isotonic"][0]), "not fall"),
    "isotonic curve above one": (changed(*STATE, "values", -1, to=1.5, of=EXAMPLES["isotonic"][0]), "values must be"),
    "probability above one": (changed(*STATE, "p1", 0, to=1.5, of=EXAMPLES["venn-abers"][0]), "p1 must be"),
    "limits out of order": (changed(*STATE, "lower", 0, to=1.0, of=EXAMPLES["shift"][0]), "be at most upper"),
    "no folds": (changed(*STATE, "folds", to=[], of=EXAMPLES["cross-venn-abers"][0]), "folds"),
    "too many folds": (changed(*STATE, "folds", to=[0] * 1001, of=EXAMPLES["cross-venn-abers"][0]), "folds"),
    "a sum of too many parts": (
        changed(*STATE, "tally", "weights", "w", 0, to=[5e-324, 1e300] * 40, of=EXAMPLES["shift"][0]),
        "at most 64 numbers",
    ),
    "priors above one": (changed(*STATE, "priors", "s", to=[2, 2, 2], of=EXAMPLES["label-shift"][0]), "prior"),
    "another share of the error": (
        changed(*STATE, "plain_level", to=0.5, of=EXAMPLES["label-shift"][0]),
        "plain_level",
    ),
    "negative weights": (changed(*STATE, "tally", "weights", "w", 0, to=[-1.0], of=EXAMPLES["shift"][0]), "weights"),
    "more segments than regions": (
        changed(*STATE, "partition", "parts", to=[{}] * 10_001, of=EXAMPLES["binning-segments"][0]),
        "at most 10,000 regions",
    ),
    "a segment twice": (
        changed(*STATE, "partition", "segments", to=["north", "north"], of=EXAMPLES["binning-segments"][0]),
        "segments",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_is_refused_with_a_reason(name):
    refused(*HOSTILE[name])


MEASURE = """
import sys
import calibrant.calibrators
from calibrant.errors import CalibrantError
from calibrant.saving import load_model

def peak():  # in kB; unlike getrusage it leaves out what the parent process had before this one began
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])

before = peak()
for path in sys.argv[1:]:
    try:
        load_model(path)
    except CalibrantError:
        print(path, peak() - before, sep="\\t")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak memory of one process")
def test_hostile_files_are_refused_within_256_megabytes(tmp_path):
    for number, (data, _) in enumerate(HOSTILE.values()):
        (tmp_path / f"{number}.json").write_bytes(data)
    paths = sorted(map(str, tmp_path.iterdir()))
    run = subprocess.run([sys.executable, "-c", MEASURE, *paths], capture_output=True, text=True, check=True)
    peaks = dict(line.split("\t") for line in run.stdout.splitlines())
    assert list(peaks) == paths
    assert 8_000 < max(map(int, peaks.values())) < 256 * 1024  # no less than the longest file itself


# Anything at all, with the right checksum

NUMBERS = st.one_of(
    st.integers(-3, 70),
    st.sampled_from([2**31, 2**53, 2**53 + 1, 2**62, 2**63, 2**64, 10**30, 10**99, -(2**63), -(10**30)]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, 1e308, -1e308, 0.5, 1.0, 1e-17, 1 - 2**-53]),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=4), st.sampled_from(sorted(EXAMPLES)))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["type", "parameters", "kind", "schema", "counts", "a"]), inner, max_size=3),
    ),
    max_leaves=8,
)
CONTENTS = {name: json.loads(file_of(calibrator)) for name, (calibrator, _) in EXAMPLES.items()}


def places(node: Any, within: int = 12) -> list[tuple[Any, Any]]:
    """Every place of a JSON value as (container, key); of long lists the first few entries only."""
    found: list[tuple[Any, Any]] = []
    pairs = node.items() if isinstance(node, dict) else enumerate(node[:within]) if isinstance(node, list) else ()
    for key, entry in pairs:
        found.append((node, key))
        found.extend(places(entry, within))
    return found


def mutate(content: dict[str, Any], data: Any) -> None:
    where = places(content["calibrator"])
    container, key = data.draw(st.sampled_from(where), label="place") if len(where) < 2**16 else where[0]
    old = container[key]
    kind = data.draw(st.sampled_from(["replace", "number", "nudge", "delete", "repeat", "swap", "another"]))
    if kind == "delete":
        del container[key]
    elif kind == "repeat" and isinstance(container, list):
        container.insert(key, copy.deepcopy(old))
    elif kind == "swap":
        other, there = data.draw(st.sampled_from(where), label="other")
        container[key], other[there] = copy.deepcopy(other[there]), copy.deepcopy(old)
    elif kind == "number" and isinstance(old, int | float) and not isinstance(old, bool):
        container[key] = data.draw(NUMBERS)
    elif kind == "nudge" and isinstance(old, int | float) and not isinstance(old, bool):
        nudges = [old + 1, old - 1, -old, old * 2, old / 2, float(old), np.nextafter(float(old), 9.0).item()]
        container[key] = data.draw(st.sampled_from(nudges))
    elif kind == "another":
        foreign = CONTENTS[data.draw(st.sampled_from(sorted(CONTENTS)))]["calibrator"]
        container[key] = copy.deepcopy(foreign["state"].get(key, foreign.get(key)))
    else:
        container[key] = data.draw(VALUES)


def assert_works(calibrator: Any) -> None:
    """Every answer is a probability, or is refused."""
    partition = getattr(calibrator, "partition_", None)
    names = partition.segments if partition is not None and partition.has_segments else ()
    options = {"segments": np.array([names[i % len(names)] for i in range(len(made.PROBE))])} if names else {}
    str(calibrator.guarantee_)
    for method in ("predict", "predict_proba", "predict_interval", "predict_set", "predict_multiprobability"):
        if hasattr(calibrator, method):
            try:
                found = getattr(calibrator, method)(made.inputs(calibrator), **options)
            except CalibrantError:
                continue
            assert ((found >= 0) & (found <= 1)).all(), method


def fuzz(name: str, data: Any) -> bool:
    content = copy.deepcopy(CONTENTS[name])
    for _ in range(data.draw(st.sampled_from([1, 1, 1, 2, 3]))):
        if places(content["calibrator"]):
            mutate(content, data)
    try:
        # the promise of an honest author, so that it is not for its promise that a file is refused
        content["promise"] = saving._promise(ScoreCalibrator.from_dict(content["calibrator"]))
    except CalibrantError:
        with pytest.raises(CalibrantError):
            read(sealed(content))
        return False
    try:
        model = read(sealed(content))
    except CalibrantError:
        return False
    assert_works(model.calibrator)
    assert made.inputs(read(written(model)).calibrator).shape == made.inputs(model.calibrator).shape
    return True


@pytest.mark.broad
@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning")  # scores far beyond those seen
@pytest.mark.parametrize("name", EXAMPLES)
@given(data=st.data())
@settings(max_examples=50, suppress_health_check=list(HealthCheck))
def test_no_content_with_a_right_checksum_crashes(name, data):
    fuzz(name, data)


@given(content=st.dictionaries(st.sampled_from(saving._KEYS), VALUES))
def test_no_outer_layer_crashes(content):
    content = {"format": "calibrant.model/1"} | content
    for data in (sealed(content), json.dumps(content).encode(), sealed({**CONTENTS["platt"], **content})):
        try:
            assert_works(read(data).calibrator)
        except CalibrantError:
            continue


@given(data=st.binary(max_size=200))
def test_no_bytes_crash(data):
    with pytest.raises(CalibrantError):
        read(data)


# Writing


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
    place, flush = tmp_path / "model.json", os.fsync

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
        save_model(EXAMPLES["platt"][0], tmp_path / "new.json" if step == "link" else place, overwrite=step != "link")
    assert place.read_bytes() == before
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_kill_in_the_middle_leaves_the_old_file_whole(tmp_path, step):
    place = tmp_path / "model.json"
    save_model(SMALL, place)
    before = place.read_bytes()
    code = (
        "import os, sys; from calibrant.saving import load_model, save_model\n"
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
    with pytest.raises(InvalidValueError, match="regular file"):
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
    with pytest.raises(InvalidTypeError, match="bytes or text"):
        load_model(Half())


def test_no_more_is_read_than_a_model_may_hold():
    class Endless:
        def read(self, size):
            self.size = size
            return b" " * size

    file = Endless()
    with pytest.raises(InvalidValueError, match="at most 8,000,000 bytes"):
        load_model(file)
    assert file.size == _text.MOST_BYTES + 1


# What can not be saved


def test_what_has_no_model_file_is_named():
    y = np.arange(90) % 3
    multiclass = ClassWiseCalibrator(n_bins=2).fit(np.random.default_rng(0).dirichlet([1, 1, 1], 90), y)
    for other in (multiclass, object(), None):
        with pytest.raises(InvalidTypeError, match=f"got {type(other).__name__}"):
            written(other)


def test_an_unfitted_calibrator_is_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        written(BinningCalibrator())


def test_labels_of_bytes_and_regions_of_functions_are_refused():
    y = np.where(np.arange(40) % 2, b"yes", b"no")
    with pytest.raises(InvalidTypeError, match="saved as JSON"):
        written(BinningCalibrator(2, pos_label=b"yes").fit(np.linspace(0, 1, 40), y))
    halves = Partition.from_function(lambda scores: np.asarray(scores) > 0.5, [False, True])
    with pytest.raises(InvalidTypeError, match="bins of a score to be saved"):
        written(BinningCalibrator(partition=halves).fit(np.linspace(0, 1, 40), np.arange(40) % 2))


def test_a_model_too_large_to_be_read_is_not_written(tmp_path):
    bins = Partition.from_edges(np.arange(10_000.0))
    many = BinningCalibrator(partition=bins).fit(np.arange(40.0), np.arange(40) % 2)
    with pytest.raises(InvalidValueError, match=r"must have a file that can be read back.*10,000 regions"):
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


# What a model predicts


def test_a_model_predicts_what_its_calibrator_predicts():
    scores = [0.1, 0.5, 0.9]
    for name, (calibrator, *_) in EXAMPLES.items():
        model = Model(calibrator)
        assert model.guarantee_ is calibrator.guarantee_
        methods = [name for name in dir(calibrator) if name.startswith("predict")]
        assert {"predict", "predict_proba"} <= set(methods) <= set(dir(model))
        if "segments" in name or "cross" in name:
            continue
        for method in methods:
            np.testing.assert_array_equal(getattr(model, method)(scores), getattr(calibrator, method)(scores))
    with pytest.raises(AttributeError, match="no attribute 'predict_interval'"):
        Model(PlattCalibrator().fit([0.1, 0.9], [0, 1])).predict_interval(scores)
    with pytest.raises(AttributeError, match="'Model' object has no attribute 'fit'"):
        model.fit(scores, [0, 1, 1])
    assert copy.deepcopy(model).fingerprint == model.fingerprint
