"""`calibrant threshold` and `calibrant decide`: the numbers of Python, files, exit codes, and clear
errors.
"""

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import decide, load_model, threshold

COLUMNS = ("--score", "p", "--label", "y")


@pytest.fixture
def rows(folder: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=3_000)
    found = {
        "p": scores,
        "y": (rng.uniform(size=3_000) < scores).astype(int),
        "g": np.arange(3_000) % 2,
    }
    pq.write_table(pa.table(found), folder / "rows.parquet")
    return found


def test_thresholds_are_those_of_python(
    rows: dict[str, np.ndarray], folder: Path, calibrant: Any
) -> None:
    found = calibrant(
        "threshold", "rows.parquet", *COLUMNS, "--precision", "0.8", "-o", "t.json", "--json"
    ).json
    expected = threshold(rows["y"], rows["p"], precision=0.8)
    assert found["cuts"][0]["threshold"] == expected.threshold
    assert found["sentence"] == expected.sentence
    saved = load_model(folder / "t.json")
    assert saved.calibrator == expected
    assert saved.columns["score"] == "p"
    text = calibrant(
        "export", "t.json", "--to", "sql", "--dialect", "duckdb", "--table", "rows"
    ).out
    assert repr(expected.threshold) in text
    answer = calibrant("apply", "t.json", "rows.parquet", "-o", "out.parquet", "--json")
    assert (answer.code, answer.json["columns"], answer.json["refused"]) == (0, ["selected"], 0)
    assert (
        pq.read_table("out.parquet")["selected"].to_pylist() == expected.predict(rows["p"]).tolist()
    )
    told = calibrant("threshold", "rows.parquet", *COLUMNS, "--precision", "0.8").out
    assert f"score >= about {expected.threshold:.4f}" in told.replace("\n", " ")
    assert told.count(f">= about {expected.threshold:.4f}") == 2  # the sentence and the table
    assert repr(expected.threshold) not in told
    assert "Next: add -o model.json to save it" in told


@pytest.mark.broad
@pytest.mark.usefixtures("rows")
def test_segments_and_two_sides(calibrant: Any) -> None:
    found = calibrant(
        "threshold",
        "rows.parquet",
        *COLUMNS,
        "--precision",
        "0.7",
        "--npv",
        "0.7",
        "--segment",
        "g",
        "--json",
    ).json
    assert [(cut["segment"], cut["target"]) for cut in found["cuts"]] == [
        (0, "precision"),
        (0, "npv"),
        (1, "precision"),
        (1, "npv"),
    ]
    told = calibrant(
        "threshold",
        "rows.parquet",
        *COLUMNS,
        "--precision",
        "0.7",
        "--npv",
        "0.7",
        "--segment",
        "g",
    ).out
    assert len(re.findall(r"^[01] +precision", told, re.M)) == 2


@pytest.mark.usefixtures("rows")
def test_a_report_says_how_many_rows_are_selected_only_if_rows_are(
    folder: Path, calibrant: Any
) -> None:
    for precision, selects in (("0.8", True), ("0.9999", False)):
        words = ("--precision", precision, "--npv", "0.8", "-o", "t.html", "--overwrite")
        assert calibrant("threshold", "rows.parquet", *COLUMNS, *words).code == 0
        page = (folder / "t.html").read_text()
        assert ("<dt>Selected</dt>" in page) == selects
        assert "referred to a person" in page


@pytest.mark.broad
@pytest.mark.usefixtures("rows")
def test_check_tells_that_nothing_is_proved(calibrant: Any) -> None:
    arguments = ("threshold", "rows.parquet", *COLUMNS, "--precision", "0.9999")
    assert calibrant(*arguments).code == 0
    answer = calibrant(*arguments, "--check")
    assert answer.code == 3
    assert answer.out.startswith("UNCLEAR  ")
    assert "cannot be guaranteed" in answer.out
    assert "false alarms" not in answer.out + answer.err  # there is no table of them


@pytest.mark.broad
@pytest.mark.usefixtures("rows")
def test_a_file_that_selects_no_row_is_said_to(calibrant: Any) -> None:
    arguments = ("threshold", "rows.parquet", *COLUMNS, "--overwrite")
    none = "t.json selects no row"
    assert none in calibrant(*arguments, "--precision", "0.9999", "-o", "t.json").err
    assert (
        none in calibrant(*arguments, "--precision", "0.9999", "--npv", "0.8", "-o", "t.json").err
    )
    for output, target in (("t.json", "0.8"), ("t.html", "0.9999")):
        assert f"Saved {output}." in calibrant(*arguments, "--precision", target, "-o", output).out


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "the target must be one of precision, recall, npv and specificity"),
        (("--precision", "2"), "--precision must be a number strictly between 0 and 1; got 2.0"),
        (("--precision", "0.9", "-o", "t.txt"), "-o must end in .json, or in .html for a report"),
        (("--precision", "0.9", "--pilot", "none"), "--pilot must be a fraction"),
        (
            ("--precision", "0.9", "--group", "g", "--method", "ranks"),
            "--group must be used with --method look",
        ),
        (
            ("--recall", "0.9", "--start", "0.5"),
            "--start must be used with one target, precision or npv",
        ),
    ],
)
def test_wrong_options_are_told(options: tuple[str, ...], message: str, calibrant: Any) -> None:
    answer = calibrant("threshold", "rows.parquet", *COLUMNS, *options)
    assert answer.code == 2
    assert message in answer.err


def test_decisions_are_those_of_python(
    rows: dict[str, np.ndarray], folder: Path, calibrant: Any
) -> None:
    calibrant("fit", "rows.parquet", *COLUMNS, "-o", "m.json", "--method", "binning")
    costs = ("--cost-false-alarm", "1", "--cost-miss", "3")
    found = calibrant(
        "decide", "m.json", "rows.parquet", *costs, "-o", "out.parquet", "--json"
    ).json
    expected = decide(
        load_model(folder / "m.json").calibrator, rows["p"], cost_false_alarm=1, cost_miss=3
    )
    assert found["counts"] == expected.counts
    assert (found["cost"], found["cost_lower"], found["cost_upper"]) == pytest.approx(
        (expected.cost, expected.cost_lower, expected.cost_upper)
    )
    written = pq.read_table(folder / "out.parquet")
    assert written.column_names == ["p", "y", "g", "action", "rate_lower", "rate_upper"]
    assert written["action"].to_pylist() == expected.action.tolist()
    told = calibrant("decide", "m.json", "rows.parquet", *costs, "-o", "out.csv", "--details").out
    assert "cost the same, is 0.25" in " ".join(told.split())
    assert (folder / "out.csv").read_text().startswith("p,y,g,action,")


@pytest.mark.usefixtures("rows")
def test_decide_refuses_costs_and_models_that_prove_nothing(calibrant: Any) -> None:
    calibrant("fit", "rows.parquet", *COLUMNS, "-o", "platt.json", "--method", "platt")
    answer = calibrant(
        "decide", "platt.json", "rows.parquet", "--cost-false-alarm", "1", "--cost-miss", "3"
    )
    assert answer.code == 2
    assert "the model must have guaranteed rates" in answer.err
    answer = calibrant(
        "decide", "platt.json", "rows.parquet", "--cost-false-alarm", "0", "--cost-miss", "3"
    )
    assert "--cost-false-alarm must be a number > 0; got 0.0" in answer.err


def test_decide_refuses_scores_of_another_scale_and_counts_rows_that_it_does_not_take(
    rows: dict[str, np.ndarray], folder: Path, calibrant: Any
) -> None:
    calibrant("fit", "rows.parquet", *COLUMNS, "-o", "m.json", "--method", "binning")
    pq.write_table(pa.table({"p": [*(100 * rows["p"][:20]), None]}), folder / "percent.parquet")
    arguments = (
        "decide",
        "m.json",
        "percent.parquet",
        "--cost-false-alarm",
        "1",
        "--cost-miss",
        "3",
    )
    answer = calibrant(*arguments)
    assert answer.code == 2
    assert "as the model was fitted on scores from" in answer.err
    found = calibrant(*arguments, "--allow-out-of-range", "--json").json
    assert (found["n_rows"], found["n_refused"], found["is_proved"]) == (20, 1, True)
    assert "1 row without a decision" in calibrant(*arguments, "--allow-out-of-range").out.replace(
        "\n", " "
    )


@pytest.mark.usefixtures("rows")
def test_a_near_miss_names_both_costs(calibrant: Any) -> None:
    answer = calibrant("decide", "m.json", "rows.parquet", "--cost-fp", "1")
    assert answer.code == 2
    assert (
        "there is no option --cost-fp; there are --cost-false-alarm and --cost-miss" in answer.err
    )


@pytest.mark.broad
def test_reports_say_what_the_commands_say(
    rows: dict[str, np.ndarray], folder: Path, calibrant: Any
) -> None:
    names = np.array(["<b>north</b>", "south"])[rows["g"]]
    columns = {"p": rows["p"], "q": rows["p"] ** 2, "y": rows["y"], "g": names}
    pq.write_table(pa.table(columns), folder / "named.parquet")
    calibrant("fit", "rows.parquet", *COLUMNS, "-o", "m.json", "--method", "binning")
    costs = ("--cost-false-alarm", "1", "--cost-miss", "3")
    commands = {
        "t.html": (
            "threshold",
            "named.parquet",
            *COLUMNS,
            "--precision",
            "0.7",
            "--npv",
            "0.7",
            "--segment",
            "g",
        ),
        "d.html": ("decide", "m.json", "rows.parquet", *costs),
        "c.html": (
            "compare-models",
            "named.parquet",
            "--score",
            "p",
            "--score",
            "q",
            "--label",
            "y",
        ),
    }
    for name, arguments in commands.items():
        told = calibrant(*arguments, "-o", name).out
        assert f"Saved {name}." in told
        page = (folder / name).read_text()
        body = html.unescape(page)
        said = " ".join(told.split("\n\n")[0].split()).removeprefix("OK ").removeprefix("UNCLEAR ")
        assert said.partition(":")[0] in " ".join(body.split())
        assert said in " ".join(body.split()) or name == "t.html"
        assert page.count("<svg") == page.count("</svg>")
        assert "<b>north" not in page
        assert "http" not in page.replace("http-equiv", "")
        assert "already exists" in calibrant(*arguments, "-o", name).err
    page = (folder / "t.html").read_text()
    expected = threshold(rows["y"], rows["p"], precision=0.7, npv=0.7, segments=names)
    body = html.unescape(page)
    assert f"{expected.sentence}</p>" in body
    assert f"{len(expected.cuts)} of {len(expected.cuts)}</span>" in body
    assert all(repr(cut.threshold) in page for cut in expected.cuts)
    assert "nan" not in "".join(re.findall(r' d="([^"]*)"', page))
    answer = calibrant(
        "compare-models",
        "named.parquet",
        "--score",
        "p",
        "--score",
        "q",
        "--label",
        "y",
        "-o",
        "c.txt",
    )
    assert "-o must end in .html" in answer.err


def test_a_month_is_called_a_month(
    rows: dict[str, np.ndarray], folder: Path, calibrant: Any
) -> None:
    days = np.datetime64("2024-01-01") + np.arange(3_000) // 50
    pq.write_table(
        pa.table({"p": rows["p"] ** 2, "y": rows["y"], "day": days}), folder / "days.parquet"
    )
    told = calibrant("audit", "days.parquet", *COLUMNS, "--time", "day", "--details").out
    assert re.search(r"^month +", told, re.M)
    assert re.search(r"^2024-\d\d ", told, re.M)
    assert "segment" not in told


@pytest.mark.parametrize(
    ("factor", "words"),
    [(100.0, "divide by 100 if these are percentages"), (-1.0, "with calibrant fit and apply")],
)
def test_compare_models_says_what_to_do_with_scores_that_are_no_probabilities(
    factor: float, words: str, tmp_path: Path, calibrant: Any
) -> None:
    p = np.linspace(0.01, 0.99, 50)
    pq.write_table(
        pa.table({"p": p, "q": factor * p, "y": np.arange(50) % 2}), path := tmp_path / "x.parquet"
    )
    answer = calibrant("compare-models", path, "--score", "p", "--score", "q", "--label", "y")
    assert answer.code == 2
    assert "score column 'q' must be probabilities in [0, 1]; got scores from " in answer.err
    assert words in answer.err
    assert "BinningCalibrator" not in answer.err


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("command", "given", "hint"),
    [
        ("threshold", ("--precision", "80"), "got 80.0: write 0.8 for 80%"),
        (
            "threshold",
            ("--precision", "0.8", "--alpha", "0.1"),
            "use --confidence, which is 1 - alpha",
        ),
        ("audit", ("--html", "a.html"), "there is no option --html; use -o report.html"),
        ("fit", ("--report", "a.html"), "there is no option --report; use -o report.html"),
        (
            "fit",
            ("-o", "a.html", "-o", "B.HTM"),
            "-o must name at most one report; got 'a.html' and 'B.HTM'",
        ),
        (
            "fit",
            ("-o", "a.json", "-o", "b.json"),
            "-o must name at most one model file; got 'a.json' and 'b.json'",
        ),
        ("fit", ("--n-bins", "4"), "there is no option --n-bins; use --bins"),
        ("fit", ("--attribute", "age"), "with SubgroupCalibrator in Python"),
        ("fit", ("--random-state", "4"), "use --seed"),
        ("check", ("--xyzzy",), "there is no option --xyzzy (see"),
        ("check", ("--data", "a.csv"), "there is no option --data; give DATA without an option"),
        ("check", ("--report", "a.html"), "there is no option --report; use -o report.html"),
        ("check", ("-o", "a.txt"), "-o must end in .html, as the report is a web page"),
    ],
)
def test_errors_name_what_was_meant(
    command: str, given: tuple[str, ...], hint: str, calibrant: Any
) -> None:
    answer = calibrant(command, "rows.parquet", *COLUMNS, *given)
    assert (answer.code, hint in answer.err) == (2, True), answer.err


def test_scores_of_the_other_class_are_remarked(
    rows: dict[str, np.ndarray], folder: Path, calibrant: Any
) -> None:
    pq.write_table(
        pa.table({"p": rows["p"], "y": np.where(rows["y"] == 1, "bad", "good")}),
        folder / "words.parquet",
    )
    told = (
        "high scores go with 'bad', not with 'good' (AUC 0.18): if they are scores for 'bad',"
        " give --pos-label bad"
    )
    wrong, right = (("words.parquet", *COLUMNS, "--pos-label", label) for label in ("good", "bad"))
    assert calibrant("fit", *wrong, "--bins", "4", "--json").json["notes"] == [told]
    assert told in " ".join(calibrant("threshold", *wrong, "--precision", "0.8").err.split())
    assert calibrant("fit", *right, "--bins", "4", "--json").json["notes"] == []
    assert "high scores" not in calibrant("threshold", *right, "--precision", "0.8").err


def test_quiet_prints_the_answer_alone(
    rows: dict[str, np.ndarray], folder: Path, calibrant: Any
) -> None:
    pq.write_table(
        pa.table({name: values[:200] for name, values in rows.items()}), folder / "few.parquet"
    )
    for command in (
        ("threshold", "--precision", "0.8"),
        ("compare", "--bins", "2"),
    ):
        answer = calibrant(*command, "few.parquet", *COLUMNS, "--quiet")
        assert (answer.code, answer.err) == (0, "")
        assert "note:" not in answer.out


@pytest.mark.usefixtures("rows")
def test_all_rows_of_a_fit_are_accounted_for(calibrant: Any) -> None:
    command = (
        "fit",
        "rows.parquet",
        *COLUMNS,
        "--method",
        "binning",
        "--bins",
        "4",
        "--pilot",
        "none",
    )
    assert calibrant(*command, "--json").json["guarantee"]["n_rows"] == 2_997
    told = " ".join(calibrant(*command, "--details").out.split())
    assert "3 of 3,000 rows lie on bin edges and are not counted" in told


@pytest.mark.usefixtures("rows")
def test_the_report_of_audit_on_the_logit_scale(folder: Path, calibrant: Any) -> None:
    made = ("audit", "rows.parquet", *COLUMNS, "--scale", "logit")
    assert calibrant(*made, "-o", "a.html").code == 0
    assert "on the logit scale" in (folder / "a.html").read_text()


def test_the_share_selected_among_rows_without_labels(calibrant, tmp_path):
    rng = np.random.default_rng(0)
    scores = rng.random(500)
    rows = zip(scores.tolist(), (rng.random(500) < scores).astype(int).tolist(), strict=True)
    (tmp_path / "scores.csv").write_text("p,y\n" + "".join(f"{p},{y}\n" for p, y in rows))
    (tmp_path / "new.csv").write_text(
        "p\n" + "".join(f"{p}\n" for p in rng.random(20_000).tolist())
    )
    asked = (
        "threshold",
        tmp_path / "scores.csv",
        "--score",
        "p",
        "--label",
        "y",
        "--precision",
        "0.7",
    )
    alone = calibrant(*asked, "--json").json["thresholds"][0]
    found = calibrant(*asked, "--unlabelled", tmp_path / "new.csv", "--json").json["thresholds"][0]
    assert found["threshold"] == alone["threshold"]
    assert found["selected_upper"] - found["selected_lower"] < 0.03
    assert alone["selected_upper"] - alone["selected_lower"] > 0.1
    refused = calibrant(*asked, "--unlabelled", tmp_path / "new.csv", "-o", tmp_path / "model.json")
    assert refused.code == 2
    assert "--unlabelled" in refused.err
