"""Attacks on `verify`: model files that say more than the rows prove must never get "stands"."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import (
    BinningCalibrator,
    LabelShiftCalibrator,
    OnlineCalibrator,
    Partition,
    load_model,
    save_model,
)
from calibrant.answers.model_text import checksum_of, pretty
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.intervals import MonotoneBand

COLUMNS = ("--score", "p", "--label", "y")


def forge(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the content of a model file, and make its checksum right again."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(pretty({**content, "checksum": checksum_of(content)}))


def paths(answer: Any) -> list[str]:
    """The entries of the file that the rows do not give."""
    return [one["path"] for one in answer.json["differences"]]


def without_settings(content: dict[str, Any]) -> None:
    del content["provenance"]["settings"]


def tight_limits(content: dict[str, Any]) -> None:
    """Limits of a weighted model are stored, for they depend on weights that are not: claim
    narrower ones.
    """
    limits = content["calibrator"]["state"]["weighted"]
    middle = [(low + high) / 2 for low, high in zip(limits["lower"], limits["upper"], strict=True)]
    for name, sign in (("lower", -1), ("upper", 1)):
        limits[name] = [value + sign * 1e-3 for value in middle]
    content["guarantee"]["epsilon"] = BinningCalibrator.from_dict(
        content["calibrator"]
    ).guarantee_.epsilon


class TestWeightedLimits:
    @pytest.fixture
    def weighted(self, folder: Path, calibrant: Any) -> Path:
        options = (
            "--method",
            "binning",
            "--bins",
            "4",
            "--weight",
            "w",
            "--weight-bound",
            "2",
            "-o",
            "model.json",
        )
        assert calibrant("fit", "scores.csv", *COLUMNS, *options).code == 0
        assert calibrant("verify", "model.json", "scores.csv").code == 0
        return folder / "model.json"

    @pytest.mark.broad
    def test_rewritten_limits_do_not_stand(self, weighted: Path, calibrant: Any) -> None:
        forge(weighted, lambda content: (without_settings(content), tight_limits(content)))
        answer = calibrant("verify", "model.json", "scores.csv", "--json")
        assert answer.code == 1
        changed = paths(answer)
        assert "guarantee.epsilon" in changed
        assert any(path.startswith("calibrator.state.weighted.") for path in changed)
        assert answer.json["guarantee"] is None

    def test_without_weights_they_are_not_checked(self, weighted: Path, calibrant: Any) -> None:
        def change(content: dict[str, Any]) -> None:
            without_settings(content)
            tight_limits(content)
            del content["columns"]["weight"], content["provenance"]["fingerprint"]

        forge(weighted, change)
        answer = calibrant("verify", "model.json", "scores.csv")
        assert answer.code == 3
        said = " ".join(answer.out.split())
        assert "not fully checked: the file does not name the column of weights" in said
        assert "With 90% confidence" not in answer.out
        forge(weighted, lambda content: content["columns"].update(weight="w"))
        assert calibrant("verify", "model.json", "scores.csv").code == 1


def test_bins_picked_by_labels_are_not_checked(
    folder: Path, table: pa.Table, calibrant: Any
) -> None:
    """Edges between runs of equal labels: every rate in the sample is 0 or 1, and says nothing."""
    scores = table["p"].to_numpy()
    y = table["y"].to_numpy()
    order = np.argsort(scores)
    steps = np.flatnonzero(np.diff(y[order]))
    longest = steps[np.argsort(np.diff(np.append(steps, len(y))))[-8:]]
    edges = np.sort(scores[order][longest + 1])
    fitted = BinningCalibrator(partition=Partition.from_edges(edges)).fit(scores, y)
    save_model(fitted, folder / "picked.json", columns={"score": "p", "label": "y"})
    answer = calibrant("verify", "picked.json", "scores.csv", "--json")
    assert answer.code == 3
    assert answer.json["stands"] is None
    assert answer.json["guarantee"] is None
    assert "does not say how its regions were cut" in answer.json["unclear"]
    assert not paths(answer)  # the counts in these regions are those of the file


@pytest.mark.parametrize("part", ["sentence", "details"])
def test_a_forged_sentence_does_not_stand(part: str, model: Path, calibrant: Any) -> None:
    def boast(content: dict[str, Any]) -> None:
        content["guarantee"][part] = "With 100% confidence, within 0.0."

    forge(model, boast)
    answer = calibrant("verify", "model.json", "scores.csv")
    assert answer.code == 1
    assert f"guarantee.{part}" in answer.out
    assert "100%" not in answer.out
    forge(model, lambda content: content.update(created_by="calibrant 0.0.1"))
    answer = calibrant("verify", "model.json", "scores.csv")
    assert answer.code == 3
    assert "the wording of another release" in " ".join(answer.out.split())


def test_a_sentence_of_files_without_details_is_that_of_an_earlier_release(
    model: Path, calibrant: Any
) -> None:
    def earlier(content: dict[str, Any]) -> None:
        content["guarantee"]["sentence"] = (
            "With 90% confidence, the rate is within 0.1 of the predicted probability."
        )
        del content["guarantee"]["details"]

    forge(model, earlier)
    answer = calibrant("verify", "model.json", "scores.csv")
    assert answer.code == 3
    assert "the wording of another release" in " ".join(answer.out.split())
    assert "within 0.1 of the predicted" not in answer.out


def ten_more_rows(state: dict[str, Any]) -> None:
    state["tally"]["counts"][0] += 10
    state["inner"]["rows"][0] += 10


@pytest.mark.broad
@pytest.mark.parametrize(
    ("name", "options", "change"),
    [
        (
            "calibrator.state.tally.counts[0]",
            (),
            ten_more_rows,
        ),
        (
            "calibrator.state.base.state.slope",
            ("--method", "scaling-binning"),
            lambda state: state["base"]["state"].update(slope=9.0),
        ),
    ],
)
def test_what_was_learned_is_compared(
    name: str, options: tuple[str, ...], change: Any, folder: Path, calibrant: Any
) -> None:
    assert (
        calibrant("fit", "scores.csv", *COLUMNS, "--bins", "4", *options, "-o", "model.json").code
        == 0
    )

    def forged(content: dict[str, Any]) -> None:
        change(content["calibrator"]["state"])

    content = json.loads((folder / "model.json").read_text())
    forged(content)
    from calibrant import ScoreCalibrator

    content["guarantee"]["epsilon"] = ScoreCalibrator.from_dict(
        content["calibrator"]
    ).guarantee_.epsilon
    content["guarantee"]["sentence"] = ScoreCalibrator.from_dict(
        content["calibrator"]
    ).guarantee_.sentence
    (folder / "model.json").write_text(pretty({**content, "checksum": checksum_of(content)}))
    answer = calibrant("verify", "model.json", "scores.csv", "--json")
    assert answer.code == 1
    assert any(path.startswith(name) for path in paths(answer))


@pytest.mark.parametrize(
    ("command", "options", "role"),
    [
        ("fit", ("--holdout", "last", "--time", "y"), "time"),
        ("fit", ("--segment", "y"), "segment"),
        ("fit", ("--weight", "y"), "weight"),
        ("fit", ("--id", "y"), "id"),
        ("fit", ("--group", "y"), "group"),
        ("threshold", ("--precision", "0.8", "--segment", "y"), "segment"),
        ("check", ("--time", "y"), "time"),
        ("check", ("--group", "y"), "groups"),
        ("audit", ("--time", "y"), "time"),
        ("audit", ("--segment", "y"), "segment"),
        ("compare", ("--weight", "y"), "weight"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_label_has_no_other_role(
    command: str, options: tuple[str, ...], role: str, calibrant: Any
) -> None:
    """With the label as time, the most recent rows would be the positive ones alone."""
    answer = calibrant(command, "scores.csv", *COLUMNS, *options)
    assert answer.code == 2, answer.out
    assert f"{role} column 'y' must be a different column from the label" in answer.err


def test_a_file_that_names_the_label_as_time_does_not_stand(folder: Path, calibrant: Any) -> None:
    options = ("--holdout", "last", "--time", "w", "-o", "last.json")
    assert calibrant("fit", "scores.csv", *COLUMNS, *options).code == 0
    assert calibrant("verify", "last.json", "scores.csv").code == 0
    forge(folder / "last.json", lambda content: content["provenance"]["settings"].update(time="y"))
    assert calibrant("verify", "last.json", "scores.csv").code == 2


@pytest.mark.broad
def test_settings_are_not_needed(model: Path, calibrant: Any) -> None:
    forge(model, without_settings)
    answer = calibrant("verify", "model.json", "scores.csv", "--json")
    assert answer.code == 0
    assert answer.json["stands"] is True
    assert answer.json["guarantee"].startswith("In each of ")
    assert "not chosen by looking at these labels" in answer.json["assumptions"][0]


def test_what_needs_more_than_rows_is_not_checked(
    folder: Path, table: pa.Table, calibrant: Any
) -> None:
    scores = table["p"].to_numpy()
    y = table["y"].to_numpy()
    partition = Partition.fixed_width(4)
    made = {
        "stream": OnlineCalibrator(partition=partition).fit(scores, y),
        "shifted": LabelShiftCalibrator(4).fit(scores, y, target_scores=scores),
        "drawn": ScalingBinningCalibrator(n_bins=4, random_state=5).fit(scores, y),
    }
    for name, fitted in made.items():
        assert fitted.guarantee_.epsilon is not None
        save_model(fitted, folder / f"{name}.json", columns={"score": "p", "label": "y"})
        answer = calibrant("verify", f"{name}.json", "scores.csv", "--json")
        assert answer.code == 3, (name, answer.out, answer.err)
        assert answer.json["guarantee"] is None


@pytest.fixture
def tiny_scores(folder: Path, table: pa.Table, calibrant: Any) -> Path:
    """A default model of scores that are all below 1e-11."""
    tiny = pa.table({"p": table["p"].to_numpy() * 1e-11, "y": table["y"]})
    pq.write_table(tiny, folder / "tiny.parquet")
    assert calibrant("fit", "tiny.parquet", *COLUMNS, "-o", "tiny.json").code == 0
    assert calibrant("verify", "tiny.json", "tiny.parquet").code == 0
    return folder / "tiny.json"


def test_a_moved_knot_does_not_stand_at_any_scale(tiny_scores: Path, calibrant: Any) -> None:
    """Knots are scores: what is less than 1e-9 apart may be all of the scale."""
    before = load_model(tiny_scores).calibrator

    def move(content: dict[str, Any]) -> None:
        curve = content["calibrator"]["state"]["curve"]
        cuts = set(before.partition_.edges.tolist())
        knots = curve["knots"][0]
        free = [place for place in range(1, len(knots) - 1) if knots[place] not in cuts]
        for place in free:
            knots[place] = knots[place - 1] + 1e-3 * (knots[place] - knots[place - 1])

    forge(tiny_scores, move)
    at = np.linspace(0.0, 1e-11, 1000)
    assert np.abs(load_model(tiny_scores).calibrator.predict(at) - before.predict(at)).max() > 0.01
    answer = calibrant("verify", "tiny.json", "tiny.parquet", "--json")
    assert answer.code == 1
    assert all(path.startswith("calibrator.state.curve.knots[0]") for path in paths(answer))


def test_an_epsilon_of_the_first_format_is_compared(model: Path, calibrant: Any) -> None:
    """The rule of that format gave a smaller epsilon, but not any."""

    def claim(content: dict[str, Any]) -> None:
        content["format"] = "calibrant.model/1"
        content["guarantee"]["epsilon"] *= 0.901

    forge(model, claim)
    answer = calibrant("verify", "model.json", "scores.csv")
    assert answer.code == 1
    assert "epsilon of the guarantee must follow" in " ".join(answer.out.split())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (
            "calibrator.score_range_seen",
            lambda content: content["calibrator"].update(score_range_seen=[-1e9, 1e9]),
        ),
        (
            "calibrator.score_range_seen",
            lambda content: content["calibrator"]["score_range_seen"].__setitem__(0, 0.0),
        ),
        (
            "calibrator.state",
            lambda content: content["calibrator"]["parameters"].update(n_bins=99),
        ),
        (
            "calibrator.state",
            lambda content: content["calibrator"]["parameters"].update(pilot=0.5),
        ),
        (
            "calibrator.state",
            lambda content: content["provenance"]["settings"].update(random_state=5),
        ),
        (None, lambda content: content["calibrator"]["parameters"].update(confidence_level=0.99)),
        (None, lambda content: content["calibrator"].update(type="BinningCalibrator")),
        (None, lambda content: content["provenance"]["settings"].update(weighted=True)),
        (None, lambda content: content["provenance"].update(settings=[])),
    ],
)
def test_what_a_file_says_beside_the_proof_is_compared(
    name: str | None, change: Any, model: Path, calibrant: Any
) -> None:
    forge(model, change)
    answer = calibrant("verify", "model.json", "scores.csv", "--json")
    assert answer.code == 1
    if name is None:  # no fit has such settings
        assert answer.json["problem"]
    else:
        assert any(path.startswith(name) for path in paths(answer))


def test_what_cannot_be_checked_is_mentioned(model: Path, calibrant: Any) -> None:
    def add(content: dict[str, Any]) -> None:
        content["provenance"]["approved_by"] = "the board"
        content["provenance"]["groups"] = 7
        content["columns"]["auditor"] = "Ann"

    forge(model, add)
    answer = calibrant("verify", "model.json", "scores.csv", "--details")
    assert answer.code == 0
    text = " ".join(answer.out.split())
    for word in ("approved_by", "groups", "auditor", "created_by"):
        assert word in text
    forge(model, lambda content: content["provenance"]["settings"].update(blessed=True))
    answer = calibrant("verify", "model.json", "scores.csv")
    assert answer.code == 1
    assert "'blessed'" in answer.out


def test_the_mark_is_cleared_by_verify_alone(model: Path, calibrant: Any) -> None:
    read = load_model(model)
    mark = "Read from a file, not recomputed from the rows: counts, limits, averages, margins."
    assert read.guarantee_.read == ("counts", "limits", "averages", "margins")
    assert mark in read.guarantee_.details
    assert read.guarantee_.to_dict()["read"] == ["counts", "limits", "averages", "margins"]
    assert mark not in read.written["details"]
    answer = calibrant("verify", "model.json", "scores.csv", "--json")
    assert answer.json["stands"] is True
    assert answer.json["guarantee"] == read.written["sentence"]


def test_a_band_is_verified_and_not_applied(folder: Path, table: pa.Table, calibrant: Any) -> None:
    band = MonotoneBand().fit(table["p"].to_numpy(), table["y"].to_numpy())
    save_model(band, folder / "band.json", columns={"score": "p", "label": "y"})
    assert calibrant("verify", "band.json", "scores.csv").code == 0
    answer = calibrant("apply", "band.json", "scores.csv", "-o", "out.csv")
    assert answer.code == 2
    assert (
        "must be a calibrator, from calibrant fit, or thresholds, from calibrant threshold"
        in answer.err
    )
    assert "got a MonotoneBand" in answer.err


@pytest.mark.skipif(
    shutil.which("openssl") is None and "CI" not in os.environ,
    reason="openssl is not installed; in CI that is an error",
)
def test_the_guide_shows_how_to_sign(model: Path, folder: Path) -> None:
    """The commands of the guide, as they stand there, accept the file and refuse a changed one."""
    guide = (Path(__file__).parents[2] / "docs" / "reference" / "files.md").read_text()
    section = guide.partition("## Signatures")[2].partition("\n## ")[0]
    commands = [line[2:] for line in section.splitlines() if line.startswith("$ ")]
    assert len(commands) == 4
    for command in commands:
        assert command.startswith("openssl ")
        subprocess.run(["bash", "-c", command], cwd=folder, check=True, capture_output=True)
    forge(model, lambda content: content["guarantee"].update(sentence="more"))
    done = subprocess.run(["bash", "-c", commands[-1]], cwd=folder, capture_output=True, text=True)
    assert done.returncode != 0
    assert "Verification" in done.stdout + done.stderr
