"""Lines of `calibrant watch`: bad ones are put aside, archives and logs that rotate are read."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant import BinningCalibrator, save_model

WATCH = ("watch", "labels.jsonl", "--model", "model.json", "--store", "watch.db")
DAY = 20_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    scores = np.linspace(0, 1, 400)
    save_model(BinningCalibrator(n_bins=2).fit(scores, np.arange(400) % 2), "model.json")
    return tmp_path


def write(path: Path, *records: dict[str, Any] | str, mode: str = "w") -> None:
    with path.open(mode) as file:
        for record in records:
            file.write((record if isinstance(record, str) else json.dumps(record)) + "\n")


def predictions(first: int, end: int, day: float = DAY) -> list[dict[str, Any]]:
    return [{"id": number, "score": 0.3, "at": day} for number in range(first, end)]


@pytest.mark.parametrize(
    "bad",
    [
        "not json",
        {"id": "x", "score": "high", "at": DAY},
        {"id": "x", "score": float("nan"), "at": DAY},
        {"id": "x", "label": 7, "at": DAY},
        {"id": "x", "at": DAY},
        {"id": "x", "score": 0.5},
        {"id": 1.5, "score": 0.5, "at": DAY},
        {"id": "x", "score": 0.5, "at": "2999-01-01"},
        {"id": "x", "score": 0.5, "at": {"day": DAY}},
        {"id": "x", "score": [[0.5], []], "at": DAY},
        {"id": "x", "score": [0.3, 0.7], "at": DAY},
        {"id": "x", "score": [0.3], "at": DAY},
        {"id": "x", "score": True, "at": DAY},
        {"id": "x", "score": 0.5, "at": True},
        {"id": "x", "score": 0.5, "at": [DAY]},
        {"id": "x", "label": [1], "at": DAY},
        '{"id": "x", "score": 0.5, "at": 1' + "0" * 400 + "}",
        "[" * 100_000,
        "\\u00e9\\ud800",
    ],
    ids=lambda bad: str(bad)[:60],
)
def test_a_bad_line_is_put_aside_and_the_others_are_taken(
    folder: Path, calibrant: Any, bad: dict[str, Any] | str
) -> None:
    write(folder / "labels.jsonl", *predictions(0, 2))
    assert calibrant(*WATCH, "--once").code == 0
    write(folder / "labels.jsonl", *predictions(2, 4), bad, *predictions(4, 6), mode="a")
    answer = calibrant(*WATCH, "--once")
    assert answer.code == 2
    assert "line 5 of 'labels.jsonl'" in " ".join(answer.err.split())
    (aside,) = quarantined(folder)
    assert aside["text"] == (bad if isinstance(bad, str) else json.dumps(bad))
    assert (aside["line"], aside["source"], aside["model"]) == (5, "labels.jsonl", "model")
    for _ in range(2):  # it does not stop a restart, and it is not put aside again
        answer = calibrant(*WATCH, "--once", "--json")
        found = json.loads(answer.out)
        assert answer.code == 0
        assert (found["n_recorded"], found["n_duplicate"], found["n_unreadable"]) == (6, 0, 1)
        assert len(quarantined(folder)) == 1


def quarantined(folder: Path) -> list[dict[str, Any]]:
    path = folder / "watch.db.quarantine.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_without_times_wait_for_the_end_of_the_day(folder: Path, calibrant: Any) -> None:
    lines = [{"id": number, "score": 0.3, "label": number % 2} for number in range(20)]
    write(folder / "labels.jsonl", *lines)
    answer = calibrant(*WATCH, "--once")
    said = " ".join(answer.out.split())
    assert "0 predictions counted, 0 with a label, 20 pending" in said
    assert "expired" not in said
    assert "put the time of each prediction into the field 'at'" in " ".join(answer.err.split())


def test_a_csv_is_refused_with_an_example_of_a_line(folder: Path, calibrant: Any) -> None:
    write(folder / "labels.jsonl", "id,score,label", "1,0.3,0")
    answer = calibrant(*WATCH, "--once")
    assert answer.code == 2
    said = " ".join(answer.err.split())
    assert "must be a JSON object; got 'id,score,label'" in said
    assert '{"id": "case 1", "score": 0.3, "at": "2026-01-31"}' in said


def test_predictions_and_labels_that_alternate_are_counted_day_by_day(
    folder: Path, calibrant: Any
) -> None:
    lines = []
    for day in range(DAY, DAY + 12):
        for number in range(20):
            lines.append({"id": f"{day} {number}", "score": 0.3, "at": day})
            if day >= DAY + 2:
                label = {"id": f"{day - 2} {number}", "label": number % 2, "at": day}
                lines.append(label)
    write(folder / "labels.jsonl", *lines)
    found = json.loads(calibrant(*WATCH, "--maturity", "3", "--once", "--json").out)
    # days 0 to 7 are mature on the evening before day 11 ends; all of their labels came in time
    assert (found["n_mature"], found["n_labels"]) == (160, 160)
    assert (found["n_late"], found["n_expired"]) == (0, 0)


def test_an_archive_of_complete_lines_is_counted(folder: Path, calibrant: Any) -> None:
    lines = [
        {
            "id": number,
            "score": 0.3,
            "label": number % 2,
            "at": DAY + number // 10,
            "labelled_at": DAY + number // 10 + (20 if number % 5 == 0 else 1),
        }
        for number in range(200)
    ]
    write(folder / "labels.jsonl", *lines)
    found = json.loads(calibrant(*WATCH, "--maturity", "5", "--once", "--json").out)
    assert (found["n_recorded"], found["n_late"], found["n_expired"]) == (200, 0, 40)
    assert found["n_mature"] == 140
    assert found["n_labels"] == 112


def test_cron_hears_of_events_that_stopped_and_of_nothing_else(
    folder: Path, calibrant: Any
) -> None:
    now = np.datetime64("now", "s")
    write(folder / "labels.jsonl", {"id": "a", "score": 0.3, "at": str(now)})
    for _ in range(2):
        answer = calibrant(*WATCH, "--once", "--json")
        assert answer.err == ""
        assert json.loads(answer.out)["n_recorded"] == 1
    old = {"id": "a", "score": 0.3, "at": str(now - np.timedelta64(9, "D"))}
    write(folder / "old.jsonl", old)
    answer = calibrant("watch", "old.jsonl", *WATCH[2:-1], "old.db", "--once", "--json")
    assert "9 days old" in answer.err


def test_a_log_that_was_filled_again_or_rotated_between_two_runs_is_read(
    folder: Path, calibrant: Any
) -> None:
    path = folder / "labels.jsonl"

    def n_recorded() -> int:
        answer = calibrant(*WATCH, "--once", "--json")
        assert answer.code == 0
        return int(json.loads(answer.out)["n_recorded"])

    write(path, *predictions(0, 5))
    assert n_recorded() == 5
    write(path, *predictions(0, 1), *predictions(10, 30))  # the same first line, and more of them
    assert n_recorded() == 25
    write(path, *predictions(30, 32), mode="a")
    path.rename(folder / "labels.jsonl.1")
    write(path, *predictions(32, 33))
    assert n_recorded() == 28


@pytest.mark.parametrize(
    "renamed", ["labels.jsonl.old", "labels-2026-01-31.jsonl", "labels.jsonl-20260131"]
)
def test_a_log_that_was_renamed_in_a_usual_way_is_read_to_its_end(
    folder: Path, calibrant: Any, renamed: str
) -> None:
    path = folder / "labels.jsonl"
    write(path, *predictions(0, 5))
    assert calibrant(*WATCH, "--once").code == 0
    write(path, *predictions(5, 7), mode="a")
    path.rename(folder / renamed)
    write(path, *predictions(7, 8))
    answer = calibrant(*WATCH, "--once", "--json")
    assert json.loads(answer.out)["n_recorded"] == 8
    assert "were read" not in answer.err


def test_a_link_that_was_moved_to_the_next_log_loses_no_line(folder: Path, calibrant: Any) -> None:
    write(folder / "monday", *predictions(0, 5))
    (folder / "labels.jsonl").symlink_to("monday")
    assert calibrant(*WATCH, "--once").code == 0
    write(folder / "monday", *predictions(5, 7), mode="a")
    write(folder / "tuesday", *predictions(7, 8))
    (folder / "labels.jsonl").unlink()
    (folder / "labels.jsonl").symlink_to("tuesday")
    answer = calibrant(*WATCH, "--once", "--json")
    assert json.loads(answer.out)["n_recorded"] == 8
    assert "were read" not in answer.err


def test_a_log_that_is_nowhere_to_be_found_is_reported(folder: Path, calibrant: Any) -> None:
    path = folder / "labels.jsonl"
    write(path, *predictions(0, 5))
    assert calibrant(*WATCH, "--once").code == 0
    path.rename(folder / "labels.jsonl.1.gz")
    write(path, *predictions(7, 8))
    answer = calibrant(*WATCH, "--once", "--json")
    assert json.loads(answer.out)["n_recorded"] == 6
    assert "the file of which 5 lines were read is neither at 'labels.jsonl'" in answer.err
    assert "were read" not in calibrant(*WATCH, "--once", "--json").err


def test_a_day_that_cannot_be_counted_is_exit_code_2_until_it_is_gone(
    folder: Path, calibrant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calibrant.monitor import mature_days

    def fails(*_: Any) -> Any:
        raise ValueError("a defect")

    write(folder / "labels.jsonl", *predictions(0, 5), *predictions(5, 6, DAY + 9))
    with monkeypatch.context() as broken:
        broken.setattr(mature_days, "counts_of", fails)
        answer = calibrant(*WATCH, "--once", "--details")
    assert answer.code == 2
    assert "1 day could not be closed" in " ".join(answer.out.split())
    assert calibrant(*WATCH, "--once").code == 2


@pytest.mark.parametrize("place", ["beside the store", "after a model of the same name"])
def test_what_is_wrong_for_all_lines_is_an_error(folder: Path, calibrant: Any, place: str) -> None:
    write(folder / "labels.jsonl", *predictions(0, 2))
    if place == "beside the store":
        (folder / "watch.db.quarantine.jsonl").mkdir()
        write(folder / "labels.jsonl", "not json", mode="a")
    else:
        scores = np.linspace(0, 1, 400)
        other = BinningCalibrator(n_bins=2).fit(scores, scores > 0.5)
        assert calibrant(*WATCH, "--once").code == 0
        save_model(other, "model.json", overwrite=True)
    answer = calibrant(*WATCH, "--once")
    assert answer.code == 2
    assert "unexpected" not in answer.err
    if place != "beside the store":
        assert "--name" in answer.err


def _until(condition: Any) -> None:
    deadline = time.time() + 60
    while not condition() and time.time() < deadline:
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.service
@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_a_log_that_is_replaced_at_night_is_followed(folder: Path) -> None:
    path = folder / "labels.jsonl"
    write(path, *predictions(0, 5))
    command = [sys.executable, "-m", "calibrant", *WATCH]
    with (folder / "out.txt").open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, text=True)
        text = folder / "out.txt"
        _until(lambda: "5 pending" in text.read_text())
        path.rename(folder / "labels.jsonl.1")
        write(path, *predictions(5, 12, DAY + 2))
        _until(lambda: "7 pending" in text.read_text())
        write(path, *predictions(12, 15, DAY + 4))  # cut off, and written anew
        _until(lambda: "3 pending" in text.read_text())
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    shown = text.read_text()
    assert process.returncode == 0, shown
    assert "12 predictions counted" in shown
    assert "stopped; everything that was read is in the store" in shown


def test_a_missing_file_of_lines_makes_no_store(folder: Path, calibrant: Any) -> None:
    assert calibrant(*WATCH, "--once").code == 2
    assert not (folder / "watch.db").exists()
