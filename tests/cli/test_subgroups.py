"""`calibrant audit --attribute`: subgroups on the command line and in the report."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibrant import Report, SubgroupCalibrator, audit, save_model, scored
from calibrant.draw.report.subgroup_rows import forest


@pytest.fixture(scope="module")
def off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores that are calibrated over all rows, and off in opposite directions for the old and the
    young.
    """
    rng = np.random.default_rng(0)
    n = 4_000
    old = rng.random(n) < 0.5
    scores = rng.uniform(0.2, 0.8, n)
    y = rng.random(n) < scores + np.where(old, 0.12, -0.12)
    path = tmp_path_factory.mktemp("subgroups") / "rows.csv"
    frame = pd.DataFrame(
        {"p": scores, "y": y.astype(int), "old": old, "sex": rng.choice(["f", "m"], n)}
    )
    frame["day"] = pd.date_range("2025-01-01", periods=n, freq="40min").astype(str)
    frame.to_csv(path, index=False)
    return path


def test_subgroups_are_audited_and_decide_the_exit_code(calibrant: Callable, off: Path):
    plain = calibrant("audit", off, "--score", "p", "--label", "y", "--check")
    assert plain.code == 0
    found = calibrant(
        "audit",
        off,
        "--score",
        "p",
        "--label",
        "y",
        "--check",
        "--attribute",
        "old",
        "--attribute",
        "sex",
    )
    assert found.code == 1
    assert "old = True: predicted" in found.out


def test_the_json_has_findings_and_all_subgroups(calibrant: Callable, off: Path):
    options = (
        "--score",
        "p",
        "--label",
        "y",
        "--attribute",
        "old",
        "--order",
        "1",
        "--min-share",
        "0.1",
        "--json",
    )
    found = calibrant("audit", off, *options).json["by_attributes"]
    assert {one["subgroup"] for one in found["findings"]} == {"old = True", "old = False"}
    assert [one["subgroup"] for one in found["subgroups"]] == [
        "all rows",
        "old = False",
        "old = True",
    ]
    assert (found["order"], found["min_share"], found["target"]) == (1, 0.1, "rows")
    assert (
        calibrant("audit", off, "--score", "p", "--label", "y", "--json").json["by_attributes"]
        is None
    )


def test_subgroups_go_with_periods_of_time(calibrant: Callable, off: Path):
    options = ("--score", "p", "--label", "y", "--attribute", "old", "--json")
    months = calibrant("audit", off, *options, "--time", "day").json
    assert months["within_segments"] is not None
    assert months["by_attributes"] == calibrant("audit", off, *options).json["by_attributes"]


def test_an_attribute_must_be_a_column_and_not_the_label(calibrant: Callable, off: Path):
    unknown = calibrant("audit", off, "--score", "p", "--label", "y", "--attribute", "sexe")
    assert unknown.code == 2
    assert "did you mean 'sex'?" in unknown.err
    label = calibrant("audit", off, "--score", "p", "--label", "y", "--attribute", "y")
    assert label.code == 2
    assert "label" in label.err


def test_the_report_marks_what_is_proved(calibrant: Callable, off: Path, tmp_path: Path):
    page = tmp_path / "audit.html"
    options = ("--score", "p", "--label", "y", "--attribute", "old", "--attribute", "sex")
    assert calibrant("audit", off, *options, "-o", page).code == 0
    text = page.read_text("utf-8")
    assert text.count('class="proved low"') == 1
    assert text.count('class="proved high"') == 1
    assert "Subgroup old = " in text
    without = tmp_path / "plain.html"
    calibrant("audit", off, "--score", "p", "--label", "y", "-o", without)
    assert 'class="forest"' not in without.read_text("utf-8")


def test_a_forest_shows_findings_first_then_all_rows_then_the_farthest_and_counts_the_rest():
    rng = np.random.default_rng(1)
    n = 6_000
    named = {name: rng.choice(list("abcd"), n) for name in ("u", "v", "w")}
    scores = rng.uniform(0.2, 0.6, n)
    y = rng.random(n) < scores + 0.2 * (named["u"] == "a")
    found = audit(y, scores, attributes=named)
    shown = forest(found.by_attributes)
    n_found = len(found.subgroups)
    assert [row.subgroup for row in shown.rows[:n_found]] == [
        one.subgroup for one in found.subgroups
    ]
    assert shown.rows[n_found].subgroup == "all rows"
    assert len(shown.rows) + shown.n_left_out == found.by_attributes.n_subgroups
    assert all(row.finding is None for row in shown.rows[n_found:])
    assert f"{shown.n_left_out} more subgroups" in Report(found).html


def test_verify_fits_a_calibrator_of_subgroups_again(
    calibrant: Callable, off: Path, tmp_path: Path
):
    frame = pd.read_csv(off)
    fitted = SubgroupCalibrator(["old", "sex"]).fit(scored(frame, score="p", label="y"))
    model = tmp_path / "model.json"
    save_model(fitted, model, columns={"score": "p", "label": "y"})
    assert calibrant("verify", model, off).code == 0
    changed = tmp_path / "changed.csv"
    frame.assign(y=frame["y"].where(frame.index != 7, 1 - frame["y"])).to_csv(changed, index=False)
    assert calibrant("verify", model, changed).code == 1
