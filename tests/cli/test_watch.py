"""`calibrant watch`: lines of predictions and labels, counted once, with exit codes for cron."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import BinningCalibrator, load_model, save_model
from calibrant.cli import watch


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=4000)
    calibrator = BinningCalibrator(n_bins=4).fit(
        scores, (rng.uniform(size=4000) < scores).astype(int)
    )
    save_model(calibrator, "model.json")
    return tmp_path


def write_lines(
    path: Path, first: int, days: int, power: float = 1.0, rows: int = 100, mode: str = "w"
) -> None:
    """Predictions of each day, with labels two days later."""
    rng = np.random.default_rng(first)
    waiting: list[dict[str, Any]] = []
    with path.open(mode) as file:
        for day in range(first, first + days):
            for label in [one for one in waiting if one["at"] == day]:
                file.write(json.dumps(label) + "\n")
            for number in range(rows):
                score = float(rng.uniform())
                name = f"{day} {number}"
                file.write(json.dumps({"id": name, "score": score, "at": day}) + "\n")
                waiting.append(
                    {"id": name, "label": int(rng.uniform() < score**power), "at": day + 2}
                )


WATCH = ("watch", "labels.jsonl", "--model", "model.json", "--store", "watch.db", "--maturity", "3")


def test_without_drift_the_exit_code_is_0_and_a_second_run_goes_on(
    folder: Path, calibrant: Any
) -> None:
    write_lines(folder / "labels.jsonl", 20_000, 12)
    answer = calibrant(*WATCH, "--once", "--json")
    found = json.loads(answer.out)
    assert answer.code == 0
    assert not found["alarm"]
    assert found["n_recorded"] == 1200
    assert found["n_duplicate"] == 0
    again = calibrant(*WATCH, "--once", "--json")
    assert json.loads(again.out)["n_recorded"] == 1200
    assert json.loads(again.out)["n_duplicate"] == 0
    write_lines(folder / "labels.jsonl", 20_020, 3, mode="a")
    third = json.loads(calibrant(*WATCH, "--once", "--json").out)
    assert third["n_recorded"] == 1500
    assert third["n_duplicate"] == 0


def test_the_same_lines_in_another_file_count_once(folder: Path, calibrant: Any) -> None:
    write_lines(folder / "labels.jsonl", 20_000, 6)
    first = json.loads(calibrant(*WATCH, "--once", "--json").out)
    (folder / "copy.jsonl").write_text("\n" + (folder / "labels.jsonl").read_text())
    command = ("watch", "copy.jsonl", *WATCH[2:])
    second = json.loads(calibrant(*command, "--once", "--json").out)
    assert second["n_recorded"] == first["n_recorded"]
    assert second["n_mature"] == first["n_mature"]
    assert second["n_duplicate"] + second["n_late"] > 0


@pytest.mark.broad
def test_two_new_stores_give_the_same_answer_to_the_same_lines(
    folder: Path, calibrant: Any
) -> None:
    write_lines(folder / "labels.jsonl", 20_000, 25, power=2.5)
    first = calibrant(*WATCH, "--once", "--json")
    (folder / "watch.db").rename(folder / "first.db")
    second = calibrant(*WATCH, "--once", "--json")
    assert json.loads(first.out)["tests"][0]["log_evidence"] > 10.0
    assert first.out == second.out


def test_another_model_draws_other_random_numbers(tmp_path: Path) -> None:
    seeds = []
    for positives in (3, 4):
        labels = np.arange(40) < 30 + positives
        calibrator = BinningCalibrator(n_bins=1, pilot=None).fit(np.linspace(0.1, 0.9, 40), labels)
        for name in ("one.json", "again.json"):
            save_model(calibrator, tmp_path / name, overwrite=True)
            seeds.append(watch._seed(load_model(tmp_path / name)))
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]


def test_a_score_of_another_scale_is_counted_and_told(folder: Path, calibrant: Any) -> None:
    write_lines(folder / "labels.jsonl", 20_000, 6)
    odd = [{"id": name, "score": 45, "at": 20_006} for name in ("odd", "odd", "even")]
    with (folder / "labels.jsonl").open("a") as file:
        for line in odd:
            file.write(json.dumps(line) + "\n")
    answer = calibrant(*WATCH, "--once", "--details")
    said = " ".join(answer.out.split() + answer.err.split())
    assert "2 predictions have scores far outside the range in calibration, 0.00" in said
    found = json.loads(calibrant(*WATCH, "--once", "--json").out)
    assert found["n_unfamiliar"] == 2
    assert found["n_recorded"] == 602


def test_the_difference_is_named_and_assumptions_are_a_list(folder: Path, calibrant: Any) -> None:
    write_lines(folder / "labels.jsonl", 20_000, 25, power=2.5)
    answer = calibrant(*WATCH, "--once", "--details")
    (head,) = [line for line in answer.out.splitlines() if "  before  since  " in line]
    assert head.split("  ")[-1] == "difference, guaranteed"
    assert "Difference: the rate since minus the rate before." in answer.out
    listed = answer.out.partition("\nAssumptions:\n")[2]
    entries = re.findall(r"^  - (.*)", listed, flags=re.M)
    assert entries[0] == "labels count as known at the age of maturity"
    assert listed.count("age of maturity") == 1
    assert {entry.partition(":")[0] for entry in entries[1:]} == {"rates", "guarantee", "scores"}


@pytest.mark.broad
def test_drift_exits_with_1_and_writes_a_report(folder: Path, calibrant: Any) -> None:
    write_lines(folder / "labels.jsonl", 20_000, 25, power=2.5)
    answer = calibrant(*WATCH, "--once", "-o", "drift.html")
    assert answer.code == 1
    said = "The rates have changed since about row 0: 28.8% instead of 50.7% in 2,000 rows"
    assert f"PROBLEM {said}" in " ".join(answer.out.split())
    page = (folder / "drift.html").read_text(encoding="utf-8")
    assert "Is it still good enough?" in page
    assert "How far a calibrated value can be from the true rate, from all rows so far." in page
    assert said in " ".join(page.split())


def test_lines_that_cannot_be_read_exit_with_2(folder: Path, calibrant: Any) -> None:
    path = folder / "labels.jsonl"
    for bad in (
        "not json\n",
        '{"score": 0.5}\n',
        '{"id": 1}\n',
        '{"id": "x", "score": "high", "at": 20000}\n',
    ):
        path.write_text(bad)
        assert calibrant(*WATCH, "--once").code == 2
    answer = calibrant("watch", "missing.jsonl", *WATCH[2:], "--once")
    assert answer.code == 2
    answer = calibrant(*WATCH[:-1], "4", "--once")
    assert answer.code == 2


@pytest.mark.slow
@pytest.mark.service
@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_a_growing_file_is_followed_until_ctrl_c_and_nothing_is_lost(folder: Path) -> None:
    path = folder / "labels.jsonl"
    write_lines(path, 20_000, 2, rows=20)
    command = [sys.executable, "-m", "calibrant", *WATCH, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 60
    while not (folder / "watch.db").exists() and time.time() < deadline:
        time.sleep(0.1)
    write_lines(path, 20_002, 4, rows=20, mode="a")
    time.sleep(4.0)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert json.loads(out)["n_recorded"] == 120


@pytest.mark.slow
@pytest.mark.service
@pytest.mark.skipif(os.name == "nt", reason="a shell of Unix")
def test_the_recipe_for_cron_mails_after_an_alarm_and_not_before(folder: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "guides" / "monitoring.md"
    (script,) = re.findall(r"^```bash\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    programs = folder / "bin"
    programs.mkdir()
    for name, text in (
        ("calibrant", f'exec "{sys.executable}" -m calibrant "$@"'),
        ("mail", f'echo "$@" > "{folder / "mailed"}"; cat > /dev/null'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    (folder / "watch.sh").write_text(script.replace("/srv/model", str(folder)))
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}

    def night() -> int:
        return subprocess.run(
            ["sh", "watch.sh"], cwd=folder, env=environment, check=False
        ).returncode

    write_lines(folder / "labels.jsonl", 20_000, 4)
    assert night() == 0
    assert not (folder / "mailed").exists()
    write_lines(folder / "labels.jsonl", 20_005, 12, power=4.0, mode="a")
    answer = night()
    assert answer == 1, answer
    assert "exit code 1" in (folder / "mailed").read_text()
    assert json.loads((folder / "watch.json").read_text())["alarm"]


@pytest.mark.slow
@pytest.mark.service
def test_a_pipe_is_read_to_its_end(folder: Path) -> None:
    write_lines(folder / "labels.jsonl", 20_000, 5, rows=20)
    command = [sys.executable, "-m", "calibrant", "watch", "-", *WATCH[2:], "--json"]
    with (folder / "labels.jsonl").open() as lines:
        done = subprocess.run(command, stdin=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_recorded"] == 100
