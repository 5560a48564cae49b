"""`calibrant audit --attribute`: subgroups on the command line and in the report."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibrant import SubgroupCalibrator, save_model, scored


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


def test_the_report_lists_every_subgroup_and_what_is_off(
    calibrant: Callable, off: Path, tmp_path: Path
):
    page = tmp_path / "audit.html"
    options = ("--score", "p", "--label", "y", "--attribute", "old", "--attribute", "sex")
    answer = calibrant("audit", off, *options, "-o", page, "--json")
    text = page.read_text("utf-8")
    off_table, every = (text.split(f'id="{name}-caption"')[1] for name in ("off", "subgroups"))
    assert off_table.split("</table>")[0].count("<tr>") == 1 + len(answer.json["off"])
    assert every.split("</table>")[0].count("<tr>") == 1 + len(
        answer.json["by_attributes"]["subgroups"]
    )
    assert "Rate minus mean score" in text or "rate minus mean score" in text
    without = tmp_path / "plain.html"
    calibrant("audit", off, "--score", "p", "--label", "y", "-o", without)
    assert "The subgroups in numbers" not in without.read_text("utf-8")


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
