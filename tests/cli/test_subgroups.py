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
    said, table = found.out.split("\n\n")[:2]
    assert "6 of 9 subgroups are off" in " ".join(said.split())
    heads, *lines = (" ".join(line.split()) for line in table.splitlines())
    assert heads == "subgroup rows model says happened scores by at least"
    assert "old = True 2,031 49.8% 61.4% too low 8.2 points" in lines
    assert "old = False 1,969 50.2% 37.4% too high 9 points" in lines
    assert "subgroup" not in plain.out.partition("Next: ")[0]


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
    assert (
        "Scores are too low by at least 8.2 points on average in 1,014 tested rows of old" in text
    )
    without = tmp_path / "plain.html"
    calibrant("audit", off, "--score", "p", "--label", "y", "-o", without)
    assert 'class="forest"' not in without.read_text("utf-8")


def test_a_forest_shows_findings_first_then_what_they_tell_then_the_farthest_and_counts_the_rest():
    rng = np.random.default_rng(1)
    n = 6_000
    named = {name: rng.choice(list("abcd"), n) for name in ("u", "v", "w")}
    scores = rng.uniform(0.2, 0.6, n)
    y = rng.random(n) < scores + 0.2 * (named["u"] == "a")
    found = audit(y, scores, attributes=named)
    shown = forest(found.by_attributes)
    leaders = [one.subgroup for one in found.subgroups]
    told = [words for one in found.subgroups for words in one.also]
    assert told
    assert [row.subgroup for row in shown.rows[: len(leaders)]] == leaders
    folded = shown.rows[len(leaders) : len(leaders) + len(told)]
    assert [row.subgroup for row in folded] == told
    assert all(row.finding is None for row in folded)
    assert {row.verdict for row in folded} == {"scores too low"}
    rest = shown.rows[len(leaders) + len(told) :]
    assert {row.verdict for row in rest} == {"no sign of error"}
    distances = [abs(row.rate - row.mean_score) for row in rest if row.subgroup != "all rows"]
    assert distances == sorted(distances, reverse=True)
    assert shown.n_folded_left_out == 0
    assert len(shown.rows) + shown.n_left_out == found.by_attributes.n_subgroups
    assert f"{shown.n_left_out} more subgroups are left out" in Report(found).html


def test_a_forest_draws_errors_around_zero_and_all_of_each_bar_in_sight():
    rng = np.random.default_rng(2)
    n = 4_000
    old = rng.random(n) < 0.3
    scores = rng.uniform(0.2, 0.6, n)
    found = audit(rng.random(n) < scores - 0.15 * old, scores, attributes={"old": old})
    shown = forest(found.by_attributes)
    axis = shown.axis
    assert axis.low == -axis.high
    for row in shown.rows:
        assert axis.low <= row.lower - row.mean_score <= row.upper - row.mean_score <= axis.high
    leader = shown.rows[0]
    assert leader.subgroup == "old = True"
    assert leader.proved_error == -found.subgroups[0].error < 0.0
    assert [row.proved_error for row in shown.rows[1:]] == [0.0] * (len(shown.rows) - 1)


def test_of_very_many_folded_subgroups_some_are_shown_and_the_rest_counted():
    rng = np.random.default_rng(3)
    n = 6_000
    named = {f"a{number}": rng.choice(list("xyz"), n) for number in range(6)}
    scores = rng.uniform(0.2, 0.6, n)
    found = audit(rng.random(n) < scores + 0.3, scores, attributes=named)
    shown = forest(found.by_attributes)
    n_folded = sum(len(one.also) for one in found.subgroups)
    assert n_folded > 40
    assert shown.n_folded_left_out == n_folded - 40
    assert f"{n_folded - 40} more subgroups that a finding explains" in Report(found).html


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


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_apply_predicts_from_scores_and_attributes(
    calibrant: Callable, off: Path, tmp_path: Path, suffix: str
):
    frame = pd.read_csv(off)
    fitted = SubgroupCalibrator(["old", "sex"]).fit(scored(frame, score="p", label="y"))
    model = tmp_path / "model.json"
    save_model(fitted, model, columns={"score": "p", "label": "y"})
    frame.loc[3, "p"] = np.nan
    frame.loc[5, "sex"] = None
    data = tmp_path / f"new.{suffix}"
    frame.to_csv(data, index=False) if suffix == "csv" else frame.to_parquet(data)
    out = tmp_path / f"out.{suffix}"
    assert calibrant("apply", model, data, "-o", out).code == 0
    read = pd.read_csv(out) if suffix == "csv" else pd.read_parquet(out)
    assert list(read) == [*frame, "calibrated"]
    kept = frame.drop(index=3)
    wanted = fitted.predict(kept["p"], attributes=kept[["old", "sex"]])
    np.testing.assert_allclose(read["calibrated"].drop(index=3), wanted, rtol=1e-12)
    assert np.isnan(read.loc[3, "calibrated"])
    frame.drop(columns="old").to_csv(tmp_path / "without.csv", index=False)
    refused = calibrant("apply", model, tmp_path / "without.csv", "-o", out, "--overwrite")
    assert refused.code == 2
    assert "have the columns of the attributes: 'old', 'sex'; got no 'old'" in refused.err


def test_a_frame_is_applied_with_its_attributes(off: Path):
    polars = pytest.importorskip("polars")

    frame = pd.read_csv(off)
    data = scored(frame, score="p", label="y")
    fitted = SubgroupCalibrator(["old"]).fit(data)
    wanted = fitted.predict(frame["p"], attributes=frame[["old"]])
    read = fitted.apply(data, prefix="new_").read_all()
    np.testing.assert_array_equal(read["new_calibrated"], wanted)
    lazy = scored(polars.from_pandas(frame).lazy(), score="p", label="y")
    found = fitted.apply(lazy).collect()
    np.testing.assert_array_equal(found["calibrated"], wanted)
