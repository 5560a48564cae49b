"""Every command that answers a question writes a report, which names what it was made from."""

import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import BinningCalibrator, save_model
from calibrant.cli._app import app
from worlds.report_pages import read

COLUMNS = ("--score", "p", "--label", "y")
COMMANDS = {
    "audit": ("rows.parquet", *COLUMNS, "--segment", "g"),
    "subgroups": ("rows.parquet", *COLUMNS, "--attribute", "g", "--attribute", "h"),
    "fit": ("rows.parquet", *COLUMNS, "--bins", "4", "--seed", "3"),
    "check": ("rows.parquet", *COLUMNS, "--time", "day"),
    "compare": ("rows.parquet", *COLUMNS, "--bins", "4"),
    "compare-models": ("rows.parquet", "--score", "p", "--score", "q", "--label", "y"),
    "threshold": ("rows.parquet", *COLUMNS, "--precision", "0.6", "--npv", "0.6"),
    "rate": ("rows.parquet", *COLUMNS, "--at-least", "0.2"),
    "decide": ("model.json", "rows.parquet", "--cost-false-alarm", "1", "--cost-miss", "7.5"),
    "plan": ("--epsilon", "0.1", "--bins", "4"),
    "plan-rate": ("--at-least", "0.9", "--items", "2000", "--expected-rate", "0.95"),
    "watch": ("labels.jsonl", "--model", "model.json", "--store", "watch.db", "--once"),
}
NO_ANSWER = {"apply", "export", "completion", "verify", "demo", "serve"}
"""They write rows, code or a script, check a file, show the others, or run a service."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=2_000)
    y = (rng.uniform(size=2_000) < scores**2).astype(int)
    columns = {
        "p": scores,
        "q": scores**2,
        "y": y,
        "g": rng.choice(["<b>north</b>", "south"], 2_000),
        "h": rng.choice(["old", "young"], 2_000),
        "day": np.arange(2_000),
    }
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    save_model(BinningCalibrator(4).fit(scores, y), folder / "model.json", columns={"score": "p"})
    lines = "".join(
        f'{{"id": "{row}", "p": {score}, "label": {label}, "at": {20_000 + row // 200}}}\n'
        for row, (score, label) in enumerate(zip(scores.tolist(), y.tolist(), strict=True))
    )
    (folder / "labels.jsonl").write_text(lines)
    return folder


def test_no_command_is_forgotten() -> None:
    assert {*COMMANDS} - {"subgroups"} | NO_ANSWER == set(app.list_commands(None))


@pytest.mark.broad
@pytest.mark.parametrize("name", COMMANDS)
def test_each_report_names_inputs_options_and_the_command(
    name: str, folder: Path, calibrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    command = "audit" if name == "subgroups" else name
    arguments = (command, *COMMANDS[name], "-o", f"{name}.html")
    answer = calibrant(*arguments)
    assert answer.code in (0, 1), answer.err
    assert f"Saved {name}.html." in answer.out
    root = read((folder / f"{name}.html").read_text("utf-8"))
    sections = {node.attributes["aria-labelledby"]: node for node in root.all("section")}
    made = sections["made-title"]
    assert made.all("pre", "copy")[0].text == shlex.join(["calibrant", *arguments])
    for option, value in pairwise(arguments):
        if option.startswith("--") and not value.startswith("-"):
            assert f"{option} " in made.text
            assert value in made.text
    steps = root.all("ol", "steps")[0].all("pre")
    in_python = [step.text for step in steps if not step.text.startswith("calibrant ")]
    assert len(in_python) == (name == "subgroups")
    assert all(text.startswith("SubgroupCalibrator().fit(other_") for text in in_python)
    assert "{" not in "".join(step.text for step in steps)
    assert root.all("nav")[0].all("a")
    assert root.all("p", "copy")[0].text
    assert "<b>north" not in (folder / f"{name}.html").read_text("utf-8")
    if name != "plan":
        assert [node for node in root.all("a") if "download" in node.attributes]
        assert (
            root.all("svg", "chart") or root.all("svg", "forest") or name in ("check", "plan-rate")
        )


@pytest.mark.broad
def test_what_to_do_next_are_commands_that_exist(folder: Path) -> None:
    """Each step names a command of the command line and options that it has."""
    import click

    from result_examples import EXAMPLES

    for example in EXAMPLES.values():
        for advice in example().next_steps:
            words = advice.command.split()
            if not words:
                continue
            command = app.get_command(click.Context(app), words[0])
            assert command is not None, advice
            known = {name for parameter in command.params for name in parameter.opts}
            assert {word for word in words if word.startswith("-")} <= known, advice


@pytest.mark.broad
def test_the_password_of_a_database_is_not_in_the_report(
    folder: Path, calibrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calibrant.cli._report import _shareable

    monkeypatch.chdir(folder)
    shown = _shareable("calibrant watch x --store postgresql://me:se:cret@host/db -o a.html")
    assert "cret" not in shown
    assert "postgresql://me:***@host/db" in shown


@pytest.mark.broad
def test_fit_writes_the_model_and_its_report(
    folder: Path, calibrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    outputs = ("-o", "both.json", "-o", "both.html")
    answer = calibrant("fit", *COMMANDS["fit"], *outputs, "--json")
    assert answer.json["model"] == "both.json"
    assert answer.json["report"] == "both.html"
    root = read((folder / "both.html").read_text("utf-8"))
    assert answer.json["guarantee"]["sentence"] in root.text
    assert "calibrant apply both.json new.csv" in root.text
    assert calibrant("verify", "both.json", "rows.parquet").code == 0
