"""No output replaces another output, or an input, under whatever name."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import BinningCalibrator, save_model
from calibrant.monitor import Monitor

WATCH = ("watch", "labels.jsonl", "--model", "model.json", "--maturity", "1", "--once")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    scores = np.linspace(0, 1, 400)
    calibrator = BinningCalibrator(n_bins=2).fit(scores, np.arange(400) % 2)
    save_model(calibrator, "model.json")
    line = {"id": "a", "score": 0.3, "at": 20_000}
    (tmp_path / "labels.jsonl").write_text(json.dumps(line) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("store", "output"),
    [
        ("w.db", "w.db"),
        ("w.db", "./w.db"),
        ("w.db", "folder/../w.db"),
        ("w.db", "link.db"),
        ("w.db", "hard.db"),
        ("w.db", "w.db-wal"),
        ("w.db", "w.db-shm"),
        ("w.db", "w.db.quarantine.jsonl"),
        ("sqlite:///w.db", "w.db"),
        ("sqlite:///w.db?timeout=5", "w.db"),
        ("sqlite+pysqlite:///./w.db", "w.db"),
        ("postgresql+psycopg://user@host/name", "calibrant.quarantine.jsonl"),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_the_report_is_not_written_over_the_store(
    folder: Path, calibrant: Any, store: str, output: str, exists: bool
) -> None:
    (folder / "folder").mkdir()
    if exists:
        assert calibrant(*WATCH, "--store", "w.db").code == 0
        before = (folder / "w.db").read_bytes()
        os.link("w.db", "hard.db")
    elif output == "hard.db":
        return
    (folder / "link.db").symlink_to("w.db")
    answer = calibrant(*WATCH, "--store", store, "-o", output)
    assert answer.code == 2
    assert "not name a file that is written for another option" in answer.err
    if exists:
        assert (folder / "w.db").read_bytes() == before
        with Monitor("w.db", folder / "model.json", maturity=1) as monitor:
            assert monitor.snapshot().n_recorded == 1
    else:
        assert not (folder / "w.db").exists()


def test_lines_are_not_read_from_the_files_of_the_store(folder: Path, calibrant: Any) -> None:
    assert calibrant(*WATCH, "--store", "w.db").code == 0
    (folder / "w.db.quarantine.jsonl").write_text("{}\n")
    for lines in ("w.db", "w.db.quarantine.jsonl"):
        answer = calibrant("watch", lines, *WATCH[2:], "--store", "w.db")
        assert answer.code == 2
        assert "not name a file that is read" in answer.err


@pytest.mark.service
@pytest.mark.parametrize(
    ("command", "output"),
    [
        ((*WATCH, "--json", "--store", "w.db"), "w.db"),
        ((*WATCH, "--store", "w.db", "-o", "drift.html"), "drift.html"),
        (("export", "model.json", "--to", "sql", "-o", "out.sql", "--overwrite"), "out.sql"),
        (("plan", "--rows", "1000", "-o", "plan.html", "--overwrite"), "plan.html"),
    ],
    ids=["store", "report", "export", "plan"],
)
def test_standard_output_does_not_go_into_the_file_of_an_output(
    folder: Path, command: tuple[str, ...], output: str
) -> None:
    with (folder / output).open("wb") as out:
        run = [sys.executable, "-m", "calibrant", *command]
        done = subprocess.run(run, stdout=out, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2, done.stderr
    assert b"or standard output" in done.stderr
    assert (folder / output).stat().st_size == 0
