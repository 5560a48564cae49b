"""The command line speaks of options and theorems, never of parameters, classes of Python, or
labels of LaTeX.
"""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

COLUMNS = ("--score", "p", "--label", "y")
LATEX = re.compile(r"\b(thm|cor|eq|prop|lem|def|sec|asmp):\w")
PYTHON = re.compile(r"\w+Calibrator\b|\b(split|n_bins|classes|pos_label|interval|base)=|\bNone\b")


def check_plain(text: str) -> None:
    assert not LATEX.search(text), LATEX.search(text)
    assert not PYTHON.search(text), PYTHON.search(text)


METHODS = (
    "curve",
    "binning",
    "uniform",
    "scaling-binning",
    "platt",
    "temperature",
    "beta",
    "isotonic",
    "venn-abers",
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", [(), pytest.param(("--json",), marks=pytest.mark.broad)])
def test_what_fit_and_verify_say(
    method: str, form: tuple[str, ...], folder: Path, calibrant: Any
) -> None:
    answer = calibrant("fit", "scores.csv", *COLUMNS, "--method", method, "-o", "model.json", *form)
    assert answer.code == 0, answer.err
    check_plain(answer.out + answer.err)
    check_plain(calibrant("verify", "model.json", "scores.csv", *form).out)


@pytest.mark.broad
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_audit_and_compare_and_plan_say(
    form: tuple[str, ...], folder: Path, calibrant: Any
) -> None:
    audit = calibrant("audit", "scores.csv", *COLUMNS, *form).out
    for text in (audit, calibrant("compare", "scores.csv", *COLUMNS, *form).out):
        check_plain(text)
    check_plain(calibrant("plan", "--epsilon", "0.05", *form).out)


@pytest.mark.broad
def test_limits_of_the_paper_are_cited_by_number(folder: Path, calibrant: Any) -> None:
    paper = ("--method", "binning", "--bins", "4", "--interval", "empirical-bernstein", "--json")
    theorem = calibrant("fit", "scores.csv", *COLUMNS, *paper).json["guarantee"]["theorem"]
    assert "2020, Theorem 4" in theorem
    check_plain(theorem)


def test_methods_without_a_guarantee_name_those_with_one(folder: Path, calibrant: Any) -> None:
    told = " ".join(
        calibrant("fit", "scores.csv", *COLUMNS, "--method", "platt", "--details").out.split()
    )
    assert "Theorem 3" in told
    assert "put bins on top with --method scaling-binning, or use --method binning" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--pilot", "1.5"),
            (
                "--pilot must be a fraction strictly between 0 and 1, a number of rows >= 1 or"
                ' "auto"; got 1.5'
            ),
        ),
        (
            ("--pilot", "0"),
            (
                "--pilot must be a fraction strictly between 0 and 1, a number of rows >= 1 or"
                ' "auto"; got 0'
            ),
        ),
    ],
)
def test_errors_of_fit(arguments: tuple[str, ...], told: str, folder: Path, calibrant: Any) -> None:
    answer = calibrant("fit", "scores.csv", *COLUMNS, *arguments)
    assert answer.code == 2
    assert told in answer.err
    check_plain(answer.err)


def test_errors_of_export(folder: Path, calibrant: Any) -> None:
    calibrant(
        "fit", "scores.csv", *COLUMNS, "--method", "scaling-binning", "-o", "model.json", "--quiet"
    )
    answer = calibrant("export", "model.json", "--to", "python")
    assert answer.code == 2
    assert "use --method binning" in answer.err
    check_plain(answer.err)


def test_errors_of_plan(calibrant: Any) -> None:
    assert "--rows must be at least --bins 10; got 3" in calibrant("plan", "--rows", "3").err


def test_verify_does_not_blame_an_option_that_was_not_given(
    model: Path, folder: Path, table: pa.Table, calibrant: Any
) -> None:
    three = pa.array([2 if row == 7 else value for row, value in enumerate(table["y"].to_pylist())])
    pq.write_table(table.set_column(2, "y", three), folder / "three.parquet")
    answer = calibrant("verify", "model.json", "three.parquet")
    assert answer.code == 2
    assert "--classes" not in answer.err
    assert "the model was fitted on, [0, 1]; got 3: 0, 1, 2" in answer.err
    words = pa.array(["yes" if value else "no" for value in table["y"].to_pylist()])
    pq.write_table(table.set_column(2, "y", words), folder / "words.parquet")
    answer = calibrant("verify", "model.json", "words.parquet")
    assert answer.code == 2
    assert "--classes" not in answer.err
    assert "the labels must be those that the model was fitted on, [0, 1]; got 'no'" in answer.err


TEMPLATES = ("n_bins", "split=0.2", "PlattCalibrator", "{n}", "{0!r}", "--bins", "class 1")


@pytest.mark.parametrize("name", TEMPLATES)
def test_names_of_columns_are_printed_as_they_are(name: str, folder: Path, calibrant: Any) -> None:
    pq.write_table(pa.table({name: [0.1, None, 0.3], "y": [0, 1, 0]}), folder / "odd.parquet")
    answer = calibrant("fit", "odd.parquet", "--score", name, "--label", "y")
    assert answer.code == 2
    assert f"score column {name!r} must have no missing values" in answer.err
    answer = calibrant("fit", "scores.csv", "--score", name, "--label", "y")
    assert answer.code == 2
    assert repr(name) in answer.err


@pytest.mark.broad
@pytest.mark.parametrize("name", TEMPLATES)
def test_names_of_classes_and_segments_are_printed_as_they_are(
    name: str, folder: Path, calibrant: Any
) -> None:
    labels = [name, "other"] * 100
    table = pa.table({"p": [number / 200 for number in range(200)], "y": labels, "s": [name] * 200})
    pq.write_table(table, folder / "odd.parquet")
    options = ("--score", "p", "--label", "y", "--pos-label", name, "--bins", "2")
    fitted = calibrant(
        "fit",
        "odd.parquet",
        *options,
        "--segment",
        "s",
        "--min-rows",
        "none",
        "-o",
        "model.json",
        "--json",
    )
    assert fitted.code == 0, fitted.err
    assert f"the true rate of {name!r} is within" in fitted.json["guarantee"]["sentence"]
    assert all(name in region["region"] for region in fitted.json["guarantee"]["regions"])
    assert calibrant("verify", "model.json", "odd.parquet").code == 0
    compared = calibrant("compare", "odd.parquet", *options, "--json").json
    told = {entry["method"]: entry["guarantee"] for entry in compared["methods"]}
    assert f"the true rate of {name!r} is within" in told["binning"]
    third = pa.table({"p": [0.1, 0.2, 0.3], "y": [name, "other", "third"]})
    pq.write_table(third, folder / "third.parquet")
    refused = calibrant("fit", "third.parquet", *options)
    assert refused.code == 2
    assert repr(name) in refused.err


def test_names_of_files_are_printed_as_they_are(folder: Path, calibrant: Any) -> None:
    for name in ("n_bins.csv", "{n}.csv", "split=0.2.csv"):
        (folder / name).write_text("p,y\n")
        answer = calibrant("fit", name, *COLUMNS)
        assert answer.code == 2
        assert repr(name) in answer.err
