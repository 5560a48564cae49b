"""Model files that are damaged, hostile or newer are refused with a reason, and never run."""

import json
import subprocess
import sys

import pytest

from calibrant.answers import model_text
from calibrant.errors import CalibrantError
from worlds.model_files import (
    EXAMPLES,
    SMALL,
    changed,
    file_of,
    observed,
    read,
    refused,
    sealed,
    written,
)


def unharmed(data: bytes) -> bool:
    """Whether a damaged file still gives the very same model; otherwise it must be refused."""
    try:
        model = read(data)
    except CalibrantError:
        return False
    assert observed(model.calibrator) == observed(SMALL)
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
    assert (
        harmless < 10
    )  # no blind eye: but for the odd space or exponent, all 8 bits of every byte matter


@pytest.mark.broad
def test_every_truncation_is_refused_or_harmless():
    data = written(SMALL)
    assert [length for length in range(len(data)) if unharmed(data[:length])] == [
        len(data) - 1
    ]  # the last line's end


def test_damage_is_said_to_be_damage():
    data = written(SMALL)
    other = data.replace(b'"counts": [', b'"counts": [1')
    assert other != data
    refused(other, "changed or damaged after it was written")
    refused(data[:500], "cut short")


@pytest.mark.parametrize("share", [0.901, 0.99, 0.9999999])
def test_no_file_says_an_epsilon_other_than_that_of_its_counts(share):
    epsilon = share * SMALL.guarantee_.epsilon
    refused(changed("guarantee", "epsilon", to=epsilon), "epsilon of the guarantee must follow")


def nested(depth: int) -> bytes:
    return b'{"format": "calibrant.model/1", "provenance": ' + b"[" * depth + b"]" * depth + b"}"


def many(entry: bytes, size: int) -> bytes:
    return (
        b'{"format": "calibrant.model/1", "provenance": [' + entry * (size // len(entry)) + b"0]}"
    )


def many_regions(n_regions: int, interval: str) -> bytes:
    """A file that is right but for its guarantee, and as laborious as any."""
    content = json.loads(file_of(SMALL))
    state = content["calibrator"]["state"]
    content["calibrator"]["parameters"]["interval"] = interval
    del state["inner"]
    state["partition"] |= {
        "edges": list(range(n_regions - 1)),
        "first_rank": None,
        "last_rank": None,
        "n_rows": None,
    }
    for name in ("absorbing", "aside"):
        state["partition"].pop(name, None)
    state["tally"] |= {"counts": [9] * n_regions, "positives": [4] * n_regions, "partition": None}
    return sealed(content)


FULL = model_text.MOST_BYTES - 100
STATE = ("calibrator", "state")
HOSTILE = {
    "empty": (b"", "empty"),
    "one byte too long": (b" " * (model_text.MOST_BYTES + 1), "at most 8,000,000 bytes"),
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
    "giant string of wide characters": (
        b'{"format": "' + "😀".encode() * (FULL // 4) + b'"}',
        "not a calibrant",
    ),
    "giant key": (b'{"' + b"a" * FULL + b'": 1}', "not a calibrant"),
    "giant integer": (b'{"format": ' + b"9" * FULL + b"}", "at most 100 digits"),
    "giant negative integer": (b'{"format": -' + b"9" * FULL + b"}", "at most 100 digits"),
    "giant exponent": (
        sealed({})[:-1] + b', "format": 1e' + b"9" * 100_000 + b"}",
        "not a calibrant",
    ),
    "giant fraction": (b'{"format": 0.' + b"9" * FULL + b"}", "not a calibrant"),
    "NaN": (b'{"format": NaN}', "finite; got NaN"),
    "Infinity": (b'{"format": [-Infinity]}', "finite; got -Infinity"),
    "overflow": (
        sealed(json.loads(file_of(SMALL))).replace(
            b'"provenance": {}', b'"provenance": {"a": 1e999}'
        ),
        "finite",
    ),
    "duplicate key": (b'{"format": "calibrant.model/1", "format": "calibrant.model/1"}', "once"),
    "inner duplicate key": (b'{"format": {"a": 1, "a": 1}}', "once"),
    "not UTF-8": (b'{"format": "\xff"}', "not UTF-8"),
    "UTF-16": ('{"format": "calibrant.model/1"}'.encode("utf-16"), "not UTF-8"),
    "byte order mark": (b"\xef\xbb\xbf" + file_of(SMALL), "not JSON"),
    "half a surrogate pair": (
        file_of(SMALL).replace(b'"columns": {}', b'"columns": {"a": "\\ud800"}'),
        "surrogate",
    ),
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
    "another version": (
        changed("format", to="calibrant.model/2"),
        "be of format 'calibrant.model/1'; got 'calibrant.model/2': use the release of calibrant",
    ),
    "a much later version": (
        b'{"format": "calibrant.model/12", "anything": 1}',
        "the release of calibrant that wrote it",
    ),
    "unknown entry": (sealed({**json.loads(file_of(SMALL)), "exec": "rm"}), "exactly the entries"),
    "missing entry": (b'{"format": "calibrant.model/1"}', "none named 'checksum'"),
    "checksum of another kind": (
        json.dumps({**json.loads(file_of(SMALL)), "checksum": None}).encode(),
        "changed or damaged",
    ),
    "too many regions": (many_regions(10_001, "blaker"), "at most 10,000 regions"),
    "as many regions as allowed": (
        many_regions(10_000, "clopper-pearson"),
        "epsilon of the guarantee",
    ),
    "as many values as allowed, damaged": (
        json.dumps(
            {**json.loads(file_of(SMALL)), "provenance": {"a": [0.1234567890] * 499_600}}
        ).encode(),
        "changed or damaged",
    ),
    "columns not text": (changed("columns", to={"score": 1}), "columns"),
    "provenance not an object": (changed("provenance", to=[1]), "provenance"),
    "guarantee too good": (changed("guarantee", "epsilon", to=0.01), "epsilon of the guarantee"),
    "guarantee of nothing": (changed("guarantee", "epsilon", to=None), "epsilon of the guarantee"),
    "guarantee where there is none": (
        changed("guarantee", "epsilon", to=0.5, of=EXAMPLES["platt"][0]),
        "epsilon",
    ),
    "guarantee of another level": (
        changed("guarantee", "confidence_level", to=0.99),
        "confidence_level",
    ),
    "guarantee without sentence": (changed("guarantee", "sentence", to=None), "sentence"),
    "guarantee not an object": (changed("guarantee", to=[]), "guarantee"),
    "calibrator not an object": (changed("calibrator", to=[1]), "state must be the dict"),
    "type is a dunder": (changed("calibrator", "type", to="__class__"), "type of the calibrator"),
    "type is a list": (
        changed("calibrator", "type", to=["BinningCalibrator"]),
        "type of the calibrator",
    ),
    "type is a base class": (
        changed("calibrator", "type", to="CurveCalibrator"),
        "type of the calibrator",
    ),
    "type is another base class": (
        changed("calibrator", "type", to="RegionCalibrator"),
        "type of the calibrator",
    ),
    "type is a module's": (changed("calibrator", "type", to="os.system"), "type of the calibrator"),
    "type of another state": (
        changed("calibrator", "type", to="PlattCalibrator"),
        "parameters of a PlattCalibrator",
    ),
    "unknown parameter": (changed("calibrator", "parameters", to={"n_binz": 3}), "n_binz"),
    "parameter that is not saved": (
        changed("calibrator", "parameters", to={"n_jobs": 10**9}),
        "n_jobs",
    ),
    "parameter self": (changed("calibrator", "parameters", to={"self": 1}), "self"),
    "parameters in a list": (
        changed("calibrator", "parameters", to=["n_bins"]),
        "must be the dict",
    ),
    "bins of text": (changed("calibrator", "parameters", "n_bins", to="many"), "n_bins"),
    "no bins": (changed("calibrator", "parameters", "n_bins", to=0), "n_bins"),
    "level above one": (
        changed("calibrator", "parameters", "confidence_level", to=1.5),
        "confidence_level",
    ),
    "interval of another kind": (
        changed("calibrator", "parameters", "interval", to={"type": 1}),
        "parameters",
    ),
    "base of an unknown type": (
        changed(
            "calibrator",
            "parameters",
            "base",
            to={"type": "X", "parameters": {}},
            of=EXAMPLES["scaling-binning"][0],
        ),
        "known calibrator",
    ),
    "positive label of no class": (
        changed("calibrator", "parameters", "pos_label", to=7),
        "pos_label",
    ),
    "one class": (changed("calibrator", "classes", to=[1]), "classes"),
    "three classes": (changed("calibrator", "classes", to=[0, 1, 2]), "classes"),
    "equal classes": (changed("calibrator", "classes", to=[1, 1]), "classes"),
    "classes that are equal but for their kind": (
        changed("calibrator", "classes", to=[1, True]),
        "classes",
    ),
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
    "edges that fall": (
        changed(*STATE, "partition", "edges", to=[0.7, 0.3]),
        "strictly increasing",
    ),
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
    "isotonic curve that falls": (
        changed(*STATE, "values", 0, to=0.99, of=EXAMPLES["isotonic"][0]),
        "not fall",
    ),
    "isotonic curve above one": (
        changed(*STATE, "values", -1, to=1.5, of=EXAMPLES["isotonic"][0]),
        "values must be",
    ),
    "probability above one": (
        changed(*STATE, "p1", 0, to=1.5, of=EXAMPLES["venn-abers"][0]),
        "p1 must be",
    ),
    "limits out of order": (
        changed(*STATE, "weighted", "lower", 0, to=1.0, of=EXAMPLES["shift"][0]),
        "be at most upper",
    ),
    "a sum of too many parts": (
        changed(
            *STATE, "tally", "weights", "w", 0, to=[5e-324, 1e300] * 40, of=EXAMPLES["shift"][0]
        ),
        "at most 64 numbers",
    ),
    "priors above one": (
        changed(*STATE, "priors", "s", to=[2, 2, 2], of=EXAMPLES["label-shift"][0]),
        "prior",
    ),
    "another share of the error": (
        changed(*STATE, "plain_level", to=0.5, of=EXAMPLES["label-shift"][0]),
        "plain_level",
    ),
    "negative weights": (
        changed(*STATE, "tally", "weights", "w", 0, to=[-1.0], of=EXAMPLES["shift"][0]),
        "weights",
    ),
    "more segments than regions": (
        changed(*STATE, "partition", "parts", to=[{}] * 10_001, of=EXAMPLES["binning-segments"][0]),
        "at most 10,000 regions",
    ),
    "a segment twice": (
        changed(
            *STATE,
            "partition",
            "segments",
            to=["north", "north"],
            of=EXAMPLES["binning-segments"][0],
        ),
        "segments",
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.broad) if name.startswith("as many") else name
        for name in HOSTILE
    ],
)
def test_hostile_file_is_refused_with_a_reason(name):
    refused(*HOSTILE[name])


MEASURE = """
import sys
import calibrant.calibrators
from calibrant.errors import CalibrantError
from calibrant import load_model

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
@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells the peak memory of one process"
)
def test_hostile_files_are_refused_within_256_megabytes(tmp_path):
    for number, (data, _) in enumerate(HOSTILE.values()):
        (tmp_path / f"{number}.json").write_bytes(data)
    paths = sorted(map(str, tmp_path.iterdir()))
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, *paths], capture_output=True, text=True, check=True
    )
    peaks = dict(line.split("\t") for line in run.stdout.splitlines())
    assert list(peaks) == paths
    assert (
        8_000 < max(map(int, peaks.values())) < 256 * 1024
    )  # no less than the longest file itself
