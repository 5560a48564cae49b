"""Every command of the guide runs, and says what the guide shows."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
KEYS = DOCS / "reference" / "json.md"
PAGES = {
    "reference/command-line.md": 12,
    "start/terminal.md": 7,
}  # with their commands, at least


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(), re.S | re.M)


def commands(page: str) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that are shown below it.

    Text in double quotes may have several lines.
    """
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, *shown = part.rstrip("\n").split("\n")
            while line.count('"') % 2:
                line = f"{line}\n{shown[0]}"
                shown = shown[1:]
            yield line, shown


def agrees(shown: list[str], output: str) -> bool:
    """Whether the lines shown are in the output, in their order; ... stands for anything."""
    pieces = (
        re.escape(piece.strip()) for piece in re.split(r"\.\.\.", "\n".join(shown)) if piece.strip()
    )
    return re.search(".*?".join(pieces), output, re.S) is not None


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_guide_can_be_followed(
    page: str, tmp_path: Path, calibrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that need a shell run in one; the others in this process, which saves their start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "bin").mkdir()
    for name, arguments in (("calibrant", "-m calibrant"), ("python", "")):
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n')
        script.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "COLUMNS": "100",
    }
    for code in blocks(page, "python"):
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    run = list(commands(page))
    assert len(run) >= PAGES[page]
    in_a_shell = 0
    for line, shown in run:
        if line.startswith("calibrant ") and not set(line) & set("|<>&;$*"):
            answer = calibrant(*shlex.split(line)[1:])
            code = answer.code
            output = answer.out
            problem = answer.err
        else:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", line],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
            )
            code = done.returncode
            output = done.stdout
            problem = done.stderr
            in_a_shell += "calibrant " in line
        assert code == 0, (line, problem)
        assert agrees(shown, output), (line, output)
    assert in_a_shell >= 3 or page.startswith("start")
    assert (tmp_path / "audit.html").stat().st_size > 10_000


def test_a_wrong_page_would_be_noticed() -> None:
    assert agrees(["one", "...", "three"], "one\ntwo\nthree\n")
    assert not agrees(["one", "four"], "one\ntwo\nthree\n")
    assert not agrees(["three", "...", "one"], "one\ntwo\nthree\n")


RESULT_KEYS = {"verdict", "sentence", "assumptions", "notes", "numbers", "next_steps"}
TWO_MODELS = ("two.csv", "--score", "a", "--score", "b", "--label", "y")


@pytest.fixture
def two_models(folder: Path) -> Path:
    return folder.joinpath("two.csv").write_text(
        "a,b,y\n" + "0.1,0.2,0\n0.7,0.6,1\n0.3,0.4,1\n" * 50
    )


@pytest.mark.broad
@pytest.mark.usefixtures("two_models")
@pytest.mark.parametrize(
    "command",
    [
        "audit",
        "fit",
        "apply",
        "verify",
        "export",
        "compare",
        "compare-models",
        "threshold",
        "rate",
        "decide",
        "plan",
        "plan-rate",
    ],
)
def test_the_keys_are_those_of_the_guide(command: str, model: Path, calibrant: Any) -> None:
    """A key that a script may rely on is on the page; what is on the page is there."""
    columns = ("--score", "p", "--label", "y")
    arguments = {
        "audit": ("scores.csv", *columns),
        "fit": ("scores.csv", *columns, "--bins", "5"),
        "apply": ("model.json", "scores.csv", "-o", "out.csv"),
        "verify": ("model.json", "scores.csv"),
        "export": ("model.json", "--to", "python"),
        "compare": ("scores.csv", *columns, "--bins", "5"),
        "compare-models": TWO_MODELS,
        "threshold": ("scores.csv", *columns, "--recall", "0.5"),
        "rate": ("scores.csv", *columns),
        "decide": ("model.json", "scores.csv", "--cost-false-alarm", "1", "--cost-miss", "2"),
        "plan": ("--epsilon", "0.1"),
        "plan-rate": ("--at-least", "0.9"),
    }[command]
    found = calibrant(command, *arguments, "--json").json
    row = next(
        line for line in KEYS.read_text().splitlines() if line.startswith(f"| `{command}` | `")
    )
    of_a_result = RESULT_KEYS if row.endswith("; the keys of a result |") else set()
    assert set(re.findall(r"`([\w-]+)`", row)[1:]) | of_a_result | {"command"} == set(found)
    assert found["command"] == command


PARTS = {
    "findings": ("audit", lambda found: found["findings"][0]),
    "guarantee": ("fit", lambda found: found["guarantee"]),
    "regions": ("fit", lambda found: found["guarantee"]["regions"][0]),
    "models": ("compare-models", lambda found: found["models"][0]),
    "differences": ("compare-models", lambda found: found["differences"][0]),
    "methods": ("compare", lambda found: found["methods"][0]),
}


@pytest.mark.broad
@pytest.mark.usefixtures("two_models")
@pytest.mark.parametrize("part", PARTS)
def test_the_keys_of_each_part_are_those_of_the_guide(
    part: str, model: Path, calibrant: Any
) -> None:
    command, entry = PARTS[part]
    arguments = {"verify": ("model.json", "scores.csv"), "compare-models": TWO_MODELS}.get(
        command, ("scores.csv", "--score", "p", "--label", "y")
    )
    found = entry(calibrant(command, *arguments, "--json").json)
    row = next(line for line in KEYS.read_text().splitlines() if line.startswith(f"| `{part}` | `"))
    assert re.findall(r"`(\w+)`", row)[1:] == list(found)
