"""`calibrant rate`: files of every kind, the gate and its exit codes, the report and the JSON."""

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

from calibrant import plan_rate, rate
from calibrant.cli.rate import command


@pytest.fixture(scope="module")
def answers():
    """1,000 answers in 200 questions: a judge's verdict on all, a person's on 150 of them."""
    rng = np.random.default_rng(0)
    good = rng.random(1000) < 0.97
    judge = np.where(rng.random(1000) < 0.95, good, ~good)
    labels = [None] * 1000
    for row in rng.choice(1000, 150, replace=False).tolist():
        labels[row] = bool(good[row])
    return {"judge": judge.tolist(), "human": labels, "question": (np.arange(1000) // 5).tolist()}


def rows_of(answers):
    return [dict(zip(answers, row, strict=True)) for row in zip(*answers.values(), strict=True)]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def lines(answers, tmp_path_factory):
    return write_lines(tmp_path_factory.mktemp("rate") / "eval.jsonl", rows_of(answers))


@pytest.fixture(scope="module")
def expected(answers):
    return rate(answers["human"], answers["judge"])


def assert_same(state, expected):
    found = (state["lower"], state["upper"], state["n_labels"], state["n_items"])
    assert found == (expected.lower, expected.upper, expected.n_labels, expected.n_items)


NAMED = ("--score", "judge", "--label", "human")


def test_one_sentence_with_limits(calibrant, lines, expected, answers):
    answer = calibrant("rate", lines, *NAMED, "--quiet")
    assert answer.code == 0
    assert " ".join(answer.out.split()) == f"{expected.sentence} {expected.remarks[0]}"
    assert expected.labels_lower < expected.estimate < expected.labels_upper
    assert expected.judge_alone == pytest.approx(np.mean(answers["judge"]))


def test_the_gate_is_shown_refuted_or_not_decided(calibrant, lines, expected):
    shown = calibrant("rate", lines, *NAMED, "--at-least", "0.9")
    assert shown.code == 0
    assert shown.out.startswith("OK  ")
    assert "is met" in " ".join(shown.out.split())
    refuted = calibrant("rate", lines, *NAMED, "--at-least", "0.999")
    assert refuted.code == 1
    assert refuted.out.startswith("PROBLEM  ")
    assert "is not met" in " ".join(refuted.out.split())
    middle = f"{expected.estimate:.3f}"
    undecided = calibrant("rate", lines, *NAMED, "--at-least", middle, "--json")
    assert undecided.code == 3
    assert (undecided.json["verdict"], undecided.json["answer"]) == ("unclear", "undecided")
    assert 1 <= undecided.json["more_labels"] <= 850
    assert "to decide it" in undecided.json["next_steps"][0]["what"]
    told = calibrant("rate", lines, *NAMED, "--at-least", middle).out
    assert told.startswith("UNCLEAR  ")
    assert "to decide it" in told
    assert "note: to add labels and look again, use --order" in " ".join(told.split())
    assert "look again" not in shown.out + refuted.out


@pytest.fixture(scope="module")
def topics(tmp_path_factory):
    """1,200 answers: half of those on law are good, 85% and 90% of the others, 75% of all."""
    rng = np.random.default_rng(0)
    topic = np.repeat(["law", "tax", "code"], 400)
    good = np.concatenate([np.arange(400) < size for size in (200, 340, 360)])
    drawn = set(rng.choice(1200, 300, replace=False).tolist())
    rows = [
        {"judge": 1, "human": bool(good[row]) if row in drawn else None, "topic": topic[row]}
        for row in range(1200)
    ]
    return write_lines(tmp_path_factory.mktemp("gate") / "topics.jsonl", rows)


def test_the_gate_names_the_segment_that_is_refuted(calibrant, topics, tmp_path):
    """The rate of all items is not refuted: its limits contain the target."""
    page = tmp_path / "gate.html"
    given = (*NAMED, "--segment", "topic", "--at-least", "0.72", "-o", page)
    answer = calibrant("rate", topics, *given)
    assert answer.code == 1
    told = " ".join(answer.out.split())
    assert told.startswith(
        "PROBLEM The target of at least 72% is not met in segment 'law'; it is not decid"
    )
    assert "of these items are positive" not in told
    report = page.read_text(encoding="utf-8")
    assert "is not met in segment" in report
    assert "undecided" in report
    state = calibrant("rate", topics, *given[:-2], "--json").json
    assert (state["verdict"], state["answer"]) == ("problem", "refuted")
    verdicts = {row["segment"]: row["verdict"] for row in state["verdicts"]}
    assert verdicts["law"] == "refuted"
    assert verdicts["all items"] == "undecided"
    assert state["lower"] < 0.72 < state["upper"]


def test_the_gate_says_where_it_is_not_decided_and_when_all_is_shown(calibrant, topics):
    given = (*NAMED, "--segment", "topic", "--at-least")
    middle = calibrant("rate", topics, *given, "0.5")
    assert middle.code == 3
    told = " ".join(middle.out.split())
    assert told.startswith("UNCLEAR The target of at least 50% is not decided in segment 'law'; it")
    assert "is met for all items" in told
    low = calibrant("rate", topics, *given, "0.3")
    assert low.code == 0
    told = " ".join(low.out.split())
    assert "is met for all items and in segments 'code', 'law' and 'tax'" in told


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (("--at-least", "0.95", "--items", "5000"), {"at_least": 0.95, "n_items": 5000}),
        (("--at-most", "0.1", "--labels", "100"), {"at_most": 0.1, "n_labels": 100}),
        (
            ("--at-least", "0.9", "--expected-rate", "0.95", "--probability", "0.5"),
            {"at_least": 0.9, "expected_rate": 0.95, "probability": 0.5},
        ),
        (
            (
                "--width",
                "0.1",
                "--sensitivity",
                "0.9",
                "--specificity",
                "0.8",
                "--confidence",
                "0.9",
            ),
            {"width": 0.1, "sensitivity": 0.9, "specificity": 0.8, "confidence_level": 0.9},
        ),
    ],
    ids=str,
)
def test_plan_rate_equals_the_library(calibrant, given, options):
    expected = plan_rate(**options)
    answer = calibrant("plan-rate", *given)
    assert answer.code == 0
    assert " ".join(answer.out.split()).startswith(" ".join(expected.sentence.split()))
    found = calibrant("plan-rate", *given, "--json").json
    assert (found["n_labels"], found["fewest_labels"]) == (
        expected.n_labels,
        expected.fewest_labels,
    )


def test_plan_rate_says_what_is_missing_and_plan_sends_rates_there(calibrant):
    for given in ((), ("--at-least", "0.9", "--width", "0.1")):
        answer = calibrant("plan-rate", *given)
        assert answer.code == 2
        assert "give one of --at-least, --at-most and --width" in answer.err
    few = calibrant("plan-rate", "--at-least", "0.9", "--items", "10", "--labels", "20")
    assert "--labels must be at most --items, 10; got 20" in few.err
    elsewhere = calibrant("plan", "--at-least", "0.9")
    assert elsewhere.code == 2
    assert "there is no option --at-least; for a rate, use calibrant rate, or" in elsewhere.err


def test_a_count_of_all_labels_is_not_called_an_estimate(calibrant, tmp_path):
    path = tmp_path / "all.csv"
    path.write_text("judge,human\n" + "0.9,1\n" * 3 + "0.2,0\n" * 5, encoding="utf-8")
    answer = calibrant("rate", path, *NAMED)
    first = answer.out.splitlines()[0]
    assert first == "37.5% of these 8 items are positive: all 8 labels are known."
    gated = calibrant("rate", path, *NAMED, "--at-least", "0.5")
    assert gated.code == 1
    assert gated.out.startswith("PROBLEM  37.5% of these 8 items are positive")


def test_a_score_that_is_no_number_is_named_with_its_row(calibrant, tmp_path):
    rows = [f"0.{number:03d},{number % 2}" for number in range(100)]
    rows[6] = "oops,1"
    path = tmp_path / "typo.csv"
    path.write_text("judge,human\n" + "\n".join(rows) + "\n", encoding="utf-8")
    answer = calibrant("rate", path, *NAMED)
    assert answer.code == 2
    assert "got 'oops' at row 7, and in no other row" in answer.err
    path.write_text(path.read_text("utf-8").replace("0.", "0;"), encoding="utf-8")
    assert "got 100 words, such as '0;000'" in calibrant("rate", path, *NAMED).err


def test_the_gate_also_asks_for_at_most(calibrant, lines, expected, tmp_path):
    answer = calibrant("rate", lines, *NAMED, "--at-most", "0.999", "-o", tmp_path / "rate.html")
    assert answer.code == 0
    assert "the target of at most 99.9% is met" in " ".join(answer.out.split())
    assert "at most 99.9%" in (tmp_path / "rate.html").read_text("utf-8")
    refuted = calibrant("rate", lines, *NAMED, "--at-most", "0.5", "--json")
    assert refuted.code == 1
    assert (refuted.json["at_least"], refuted.json["at_most"]) == (None, 0.5)
    middle = f"{expected.estimate:.3f}"
    assert calibrant("rate", lines, *NAMED, "--at-most", middle).code == 3
    both = calibrant("rate", lines, *NAMED, "--at-most", "0.5", "--at-least", "0.4")
    assert both.code == 2
    assert "--at-least must be given if --at-most is not, and only then; got both" in both.err


def test_the_first_line_names_the_label(calibrant, answers, tmp_path):
    words = {True: "good", False: "bad", None: None}
    named = {**answers, "human": [words[label] for label in answers["human"]]}
    path = write_lines(tmp_path / "eval.jsonl", rows_of(named))
    asked = "--pos-label", "bad", "--at-most", "0.5"
    first = calibrant("rate", path, *NAMED, *asked).out.split("\n\n")[0]
    assert "of these 1,000 items have the label 'bad' (" in " ".join(first.split())


def test_an_unknown_option_with_one_like_it(calibrant, lines):
    assert "there is --at-least" not in calibrant("rate", lines, "--at-lest", "1").err
    one = calibrant("rate", lines, "--confidence-of", "1").err
    assert "there is --confidence" in one
    assert "there are --at-least and --at-most" in calibrant("rate", lines, "--at-all", "1").err


def test_labels_that_were_not_drawn_at_random_decide_nothing(calibrant, answers, tmp_path):
    labels = [
        value if passed else None
        for value, passed in zip([True] * 1000, answers["judge"], strict=True)
    ]
    labels = [value if row % 4 == 0 else None for row, value in enumerate(labels)]
    path = write_lines(tmp_path / "eval.jsonl", rows_of({**answers, "human": labels}))
    answer = calibrant("rate", path, *NAMED, "--at-least", "0.5")
    assert answer.code == 3
    assert answer.out.startswith("UNCLEAR  ")
    assert "The labelled items are not a random draw (p < 0.001)" in " ".join(answer.out.split())


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_tables_give_the_same_limits_as_lines(calibrant, answers, expected, tmp_path, suffix):
    table = pa.table(answers)
    path = tmp_path / f"eval{suffix}"
    if suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    assert_same(calibrant("rate", path, *NAMED, "--json").json, expected)


def test_empty_labels_of_words_in_csv_are_missing(calibrant, answers, expected, tmp_path):
    words = {True: "good", False: "bad", None: ""}
    path = tmp_path / "eval.csv"
    verdicts = ["pass" if passed else "fail" for passed in answers["judge"]]
    rows = zip(verdicts, [words[label] for label in answers["human"]], strict=True)
    path.write_text(
        "judge,human\n" + "".join(f"{judge},{human}\n" for judge, human in rows), encoding="utf-8"
    )
    assert_same(calibrant("rate", path, *NAMED, "--pos-label", "good", "--json").json, expected)
    chosen = calibrant("rate", path, *NAMED, "--json")
    assert_same(chosen.json, expected)
    assert "'good' is taken as the positive class" in chosen.err
    assert "--pos-label good" in chosen.err
    path.write_text(path.read_text("utf-8").replace("good", "fine"), encoding="utf-8")
    refused = calibrant("rate", path, *NAMED)
    assert refused.code == 2
    assert "--pos-label" in refused.err


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".json"])
def test_nested_fields_are_named_with_dots(calibrant, answers, expected, tmp_path, suffix):
    rows = [
        {"output": {"judge": {"pass": row["judge"]}}, "review": {"ok": row["human"]}}
        for row in rows_of(answers)
    ]
    path = tmp_path / f"eval{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    else:
        write_lines(path, rows)
    answer = calibrant(
        "rate", path, "--score", "output.judge.pass", "--label", "review.ok", "--json"
    )
    assert_same(answer.json, expected)


def inspect_samples(answers):
    for number, row in enumerate(rows_of(answers)):
        metadata = {} if row["human"] is None else {"human": "C" if row["human"] else "I"}
        value = "C" if row["judge"] else "I"
        yield {
            "id": number,
            "epoch": 1,
            "scores": {"model_graded_qa": {"value": value}},
            "metadata": metadata,
        }


INSPECT = (
    "--score",
    "scores.model_graded_qa.value",
    "--label",
    "metadata.human",
    "--pos-label",
    "C",
)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_inspect_logs_are_read_by_their_format(calibrant, answers, expected, tmp_path, suffix):
    samples = list(inspect_samples(answers))
    path = tmp_path / f"log{suffix}"
    if suffix == ".json":
        log = {"version": 2, "status": "success", "eval": {"task": "qa"}, "samples": samples}
        path.write_text(json.dumps(log, indent=2), encoding="utf-8")
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps({"version": 2, "status": "success"}))
            archive.writestr("_journal/start.json", "{}")
            for sample in samples:
                archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    assert_same(calibrant("rate", path, *INSPECT, "--json").json, expected)


def test_promptfoo_results_are_read_with_manual_ratings_apart(
    calibrant, answers, expected, tmp_path
):
    """A manual rating overrides `success`: the judge's own verdict is that of the other components."""
    results = []
    for row in rows_of(answers):
        parts = [
            {"pass": row["judge"], "score": int(row["judge"]), "assertion": {"type": "llm-rubric"}}
        ]
        success = row["judge"]
        if row["human"] is not None:
            parts.append(
                {"pass": row["human"], "score": int(row["human"]), "assertion": {"type": "human"}}
            )
            success = row["human"]
        graded = {"pass": success, "componentResults": parts}
        results.append(
            {"success": success, "gradingResult": graded, "vars": {"question": row["question"]}}
        )
    path = tmp_path / "results.json"
    document = {"evalId": "e", "results": {"version": 3, "results": results, "stats": {}}}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert_same(calibrant("rate", path, *NAMED, "--json").json, expected)


def test_groups_and_segments(calibrant, answers, tmp_path):
    good = dict(enumerate(answers["judge"]))
    drawn = set(np.random.default_rng(1).choice(200, 60, replace=False).tolist())
    labels = [good[row] if row // 5 in drawn else None for row in range(1000)]
    segment = ["north" if row < 500 else "south" for row in range(1000)]
    path = write_lines(
        tmp_path / "eval.jsonl", rows_of({**answers, "human": labels, "region": segment})
    )
    answer = calibrant("rate", path, *NAMED, "--group", "question", "--segment", "region", "--json")
    assert answer.json["n_groups"] == 200
    assert [row["segment"] for row in answer.json["rates"]] == ["all items", "north", "south"]
    shown = calibrant("rate", path, *NAMED, "--group", "question", "--segment", "region")
    assert "south" in shown.out


def test_labels_in_order_hold_at_every_look(calibrant, answers, tmp_path):
    rows = [{**row, "day": number % 7} for number, row in enumerate(rows_of(answers))]
    path = write_lines(tmp_path / "eval.jsonl", rows)
    answer = calibrant("rate", path, *NAMED, "--order", "day", "--json")
    assert answer.json["sequential"] is True
    assert answer.json["method"] == "bets"


def test_the_report_and_the_json_file(calibrant, lines, tmp_path):
    page = tmp_path / "rate.html"
    data = tmp_path / "rate.json"
    answer = calibrant("rate", lines, *NAMED, "--at-least", "0.9", "-o", page, "-o", data)
    assert answer.code == 0
    text = page.read_text("utf-8")
    assert "is met" in text
    assert "drawn at random" in text
    assert "<table" in text
    assert json.loads(data.read_text("utf-8"))["verdict"] == "ok"
    assert calibrant("rate", lines, *NAMED, "-o", page).code == 2
    calibrant("rate", lines, *NAMED, "--at-least", "0.999", "-o", page, "--overwrite")
    assert "is not met" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--score", "judge"), "--label"),
        (("--score", "jugde", "--label", "human"), "did you mean 'judge'?"),
        (("--score", "judge", "--label", "person"), "--label"),
        ((*NAMED, "-o", "rate.pdf"), ".html"),
        ((*NAMED, "--at-least", "95"), "--at-least"),
        (("--score", "human", "--label", "judge"), "the scores"),
    ],
)
def test_bad_input_is_refused_with_2(calibrant, lines, arguments, words):
    answer = calibrant("rate", lines, *arguments)
    assert answer.code == 2
    assert words in answer.err


def test_a_damaged_line_is_named(calibrant, tmp_path):
    path = tmp_path / "eval.jsonl"
    path.write_text('{"judge": 1, "human": 1}\n{"judge": 1, "human"\n', encoding="utf-8")
    answer = calibrant("rate", path, *NAMED)
    assert answer.code == 2
    assert "line 2" in answer.err


def test_an_archive_that_is_no_log_is_refused(calibrant, tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing")
    answer = calibrant("rate", path, *INSPECT)
    assert answer.code == 2
    assert "Inspect log" in answer.err


ACTION = Path(__file__).parents[2] / ".github" / "actions" / "rate" / "action.yml"


def test_the_action_names_options_and_inputs_that_exist():
    """Every input is passed on as a variable, never pasted into the script.

    Every option is one of the command.
    """
    action = yaml.safe_load(ACTION.read_text("utf-8"))
    steps = action["runs"]["steps"]
    passed = " ".join(value for step in steps for value in step["env"].values())
    assert set(action["inputs"]) == set(re.findall(r"inputs\.([\w-]+)", passed))
    script = steps[-1]["run"]
    assert "${{" not in script
    known = {name for parameter in command.params for name in parameter.opts}
    assert set(re.findall(r"--[a-z-]+", script)) <= known


def run_action(folder: Path, **given: str) -> int:
    """The exit code of the action's script, which reads its inputs from variables."""
    script = yaml.safe_load(ACTION.read_text("utf-8"))["runs"]["steps"][-1]["run"]
    program = folder / "bin" / "calibrant"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m calibrant "$@"\n')
    program.chmod(0o755)
    inputs = {
        "SCORE": "judge",
        "LABEL": "human",
        "AT_LEAST": "0.9",
        "AT_MOST": "",
        "GROUP": "",
        "POS_LABEL": "",
        "CONFIDENCE": "0.95",
        "UNDECIDED": "fail",
        "REPORT": "rate.html",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        **given,
    }
    environment = os.environ | inputs | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, env=environment, check=False
    ).returncode


@pytest.mark.parametrize(
    "given",
    [
        {"DATA": "--help"},
        {"DATA": "--version"},
        {"DATA": ""},
        {"SCORE": "--help"},
        {"LABEL": "--help"},
        {"GROUP": "--help"},
        {"POS_LABEL": "--help"},
        {"REPORT": "--help"},
        {"AT_LEAST": "--help"},
        {"CONFIDENCE": "--help"},
        {"UNDECIDED": "--help"},
    ],
    ids=lambda given: "=".join(*given.items()),
)
def test_no_input_of_the_action_is_taken_for_an_option(lines, tmp_path, given):
    """A gate that prints its help and passes is no gate."""
    assert run_action(tmp_path, **{"DATA": str(lines), **given}) == 2


@pytest.mark.parametrize(
    ("at_least", "at_most", "undecided", "code"),
    [("0.9", "", "fail", 0), ("0.999", "", "pass", 1), ("", "0.999", "fail", 0)],
)
def test_the_script_of_the_action_runs(lines, tmp_path, at_least, at_most, undecided, code):
    inputs = {"AT_LEAST": at_least, "AT_MOST": at_most, "UNDECIDED": undecided}
    assert run_action(tmp_path, DATA=str(lines), **inputs) == code
    assert (tmp_path / "rate.html").exists()
    assert "confidence" in (tmp_path / "summary.md").read_text("utf-8")


def test_a_score_field_without_a_value_is_named(calibrant, answers, tmp_path):
    rows = [{**row, "judge": None} for row in rows_of(answers)]
    answer = calibrant("rate", write_lines(tmp_path / "eval.jsonl", rows), *NAMED)
    assert answer.code == 2
    assert "no missing values" in answer.err
    assert "1000 such rows" in answer.err


def test_a_field_that_holds_others_is_refused_with_their_names(calibrant, answers, tmp_path):
    rows = [{"output": {"judge": row["judge"]}, "human": row["human"]} for row in rows_of(answers)]
    path = write_lines(tmp_path / "eval.jsonl", rows)
    answer = calibrant("rate", path, "--score", "output", "--label", "human")
    assert answer.code == 2
    assert "'output.judge'" in answer.err


def test_where_all_items_have_a_label_more_items_would_decide(calibrant, tmp_path):
    rows = [{"judge": 1, "human": int(number > 2)} for number in range(100)]
    path = write_lines(tmp_path / "eval.jsonl", rows)
    answer = calibrant("rate", path, *NAMED, "--target", "population", "--at-least", "0.95")
    assert answer.code == 3
    assert answer.out.startswith("UNCLEAR  ")
