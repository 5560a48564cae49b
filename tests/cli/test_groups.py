"""`--group`: whole groups are drawn and counted, the guarantee tells of them, and verify counts
them again.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibrant import (
    BinningCalibrator,
    Calibrator,
    Partition,
    ShiftCalibrator,
    audit,
    compare_models,
    load_model,
    plan,
    save_model,
    scored,
    threshold,
    validation_table,
)
from calibrant.assess.metrics.reliability import models_picture, reliability_tables
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.draw.report.picture_figure import picture_figures

COLUMNS = ("--score", "p", "--label", "y", "--group", "patient")


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    patient = rng.integers(0, 400, 3_000)
    score = np.round(rng.uniform(size=3_000), 4)
    label = (rng.uniform(size=3_000) < (score + rng.uniform(size=400)[patient]) / 2).astype(int)
    frame = pd.DataFrame(
        {"p": score, "y": label, "patient": [f"patient {number}" for number in patient]}
    )
    monkeypatch.chdir(tmp_path)
    frame.to_csv("visits.csv", index=False)
    frame.sample(frac=1.0, random_state=1).to_parquet("shuffled.parquet")
    return frame


@pytest.mark.broad
@pytest.mark.parametrize("method", ["curve", "binning", "scaling-binning"])
def test_fit_equals_the_library_and_verify_counts_again(
    method: str, visits: pd.DataFrame, calibrant: Any
) -> None:
    settings = ("--method", method, "--bins", "5", "-o", "model.json")
    answer = calibrant("fit", "visits.csv", *COLUMNS, *settings, "--json")
    kind = {
        "curve": Calibrator,
        "binning": BinningCalibrator,
        "scaling-binning": ScalingBinningCalibrator,
    }[method]
    expected = kind(n_bins=5).fit(visits["p"], visits["y"], groups=visits["patient"])
    assert answer.code == 0
    assert answer.json["groups"] == 400
    assert answer.json["guarantee"]["sentence"] == expected.guarantee_.sentence
    assert answer.json["guarantee"]["epsilon"] == pytest.approx(
        expected.guarantee_.epsilon, abs=1e-9
    )
    model = load_model("model.json")
    assert model.columns["group"] == "patient"
    assert model.provenance["groups"] == 400
    assert model.calibrator.tally_ == expected.tally_
    for data in ("visits.csv", "shuffled.parquet"):  # in any order
        checked = calibrant("verify", "model.json", data, "--json")
        assert checked.code == 0, checked.out
        assert checked.json["stands"] is True
        assert checked.json["differences"] == []
        assert checked.json["guarantee"] == expected.guarantee_.sentence
        assert "if new groups are like these" in checked.json["guarantee"]


def test_verify_tells_other_groups(visits: pd.DataFrame, calibrant: Any) -> None:
    assert (
        calibrant("fit", "visits.csv", *COLUMNS, "--method", "binning", "-o", "model.json").code
        == 0
    )
    visits.assign(patient=visits["patient"].where(visits.index > 0, "someone else")).to_csv(
        "other.csv", index=False
    )
    answer = calibrant("verify", "model.json", "other.csv", "--json")
    assert answer.code == 1
    assert {one["path"] for one in answer.json["differences"]} >= {
        "provenance.fingerprint",
        "provenance.groups",
    }


def test_settings_of_groups_reach_the_calibrator(visits: pd.DataFrame, calibrant: Any) -> None:
    settings = (
        "--method",
        "uniform",
        "--bins",
        "4",
        "--max-group-size",
        "40",
        "--group-target",
        "groups",
    )
    answer = calibrant("fit", "visits.csv", *COLUMNS, *settings, "--json")
    given = {"groups": visits["patient"], "max_group_size": 40, "group_target": "groups"}
    expected = BinningCalibrator(4, partition="uniform").fit(visits["p"], visits["y"], **given)
    assert answer.json["guarantee"]["epsilon"] == expected.guarantee_.epsilon


@pytest.mark.broad
def test_compare_keeps_groups_whole(visits: pd.DataFrame, calibrant: Any) -> None:
    options = ("visits.csv", *COLUMNS, "--bins", "4", "--json")
    answer = calibrant("compare", *options, "--max-group-size", "20")
    assert answer.code == 0, answer.err
    assert "--max-group-size must be given" in calibrant("compare", *options).err
    said = {entry["method"]: entry["guarantee"] for entry in answer.json["methods"]}
    assert "if new groups are like these" in said["binning"]
    assert "groups" in said["curve"]


@pytest.mark.broad
def test_audit_takes_whole_groups(visits: pd.DataFrame, calibrant: Any) -> None:
    answer = calibrant("audit", "visits.csv", *COLUMNS, "--max-group-size", "20", "--json")
    labels, scores, groups = (visits[name].to_numpy() for name in ("y", "p", "patient"))
    expected = audit(labels, scores, groups=groups, max_group_size=20)
    assert answer.code == 0
    assert answer.json["lower_bound"] == pytest.approx(expected.lower_bound, abs=1e-9)
    free = calibrant(
        "audit", "visits.csv", *COLUMNS, "--json"
    )  # the size comes from groups that are set aside
    assert free.json["lower_bound"] == pytest.approx(
        audit(labels, scores, groups=groups).lower_bound, abs=1e-9
    )
    refused = calibrant("audit", "visits.csv", *COLUMNS, "--full")
    assert refused.code == 2
    assert "--max-group-size must be given with --full and --group" in refused.err
    full = calibrant("audit", "visits.csv", *COLUMNS, "--full", "--max-group-size", "20", "--json")
    table = validation_table(labels, scores, groups=groups, max_group_size=20)
    assert full.json["validation"]["measures"][0]["upper"] == pytest.approx(
        table["expected / observed"].upper
    )


def test_audit_by_month_of_groups_and_of_segments(visits: pd.DataFrame, calibrant: Any) -> None:
    day = np.where(np.arange(len(visits)) < len(visits) // 2, "2024-01-05", "2024-02-05")
    visits.assign(day=day, region=np.where(visits.index % 2, "n", "s")).to_csv(
        "visits.csv", index=False
    )
    by_month = ("audit", "visits.csv", *COLUMNS, "--max-group-size", "20", "--time", "day")
    answer = calibrant(*by_month, "--json", "-o", "audit.html")
    assert answer.code == 0
    assert answer.json["within_segments"] is not None
    both = calibrant(*by_month, "--segment", "region", "--tolerance", "0.5", "--json")
    assert both.code == 0
    assert both.json["within_segments"]["is_miscalibrated"] is False


@pytest.mark.broad
def test_weights_are_importance_weights_of_the_chosen_method(
    visits: pd.DataFrame, calibrant: Any
) -> None:
    weight = np.random.default_rng(5).uniform(0.5, 1.0, size=len(visits))
    visits.assign(w=weight, region=np.where(visits.index % 2, 1, 2), q=visits["p"] ** 2).to_csv(
        "v.csv", index=False
    )
    scores = visits["p"].to_numpy()
    labels = visits["y"].to_numpy()
    plain = ("v.csv", "--score", "p", "--label", "y")
    given = ("--weight", "w", "--weight-bound", "1")
    kinds = {
        "curve": Calibrator,
        "binning": BinningCalibrator,
        "scaling-binning": ScalingBinningCalibrator,
    }
    for method, kind in kinds.items():
        answer = calibrant(
            "fit",
            *plain,
            *given,
            "--method",
            method,
            "--bins",
            "2",
            "--json",
            "-o",
            f"{method}.json",
        )
        expected = kind(n_bins=2).fit(scores, labels, importance_weight=weight, weight_bound=1.0)
        assert answer.json["guarantee"]["epsilon"] == pytest.approx(expected.guarantee_.epsilon), (
            answer.err
        )
    assert calibrant("verify", "binning.json", "v.csv").code == 0
    assert calibrant("fit", *plain, *given, "--json").json["method"] == "curve"
    assert calibrant("fit", *plain, "--weight", "w", "--method", "platt").code == 0
    refused = calibrant("fit", *plain, *given, "--interval", "kl")
    assert "--interval must be left out with --weight" in refused.err
    found = calibrant("audit", *plain, *given, "--json")
    bound = audit(labels, scores, importance_weight=weight, weight_bound=1.0).lower_bound
    assert found.json["lower_bound"] == pytest.approx(bound)
    assert "--weight-bound must be given" in calibrant("audit", *plain, "--weight", "w").err
    assert calibrant("compare", *plain, *given, "--bins", "2").code == 0
    two = ("v.csv", "--score", "p", "--score", "q", "--label", "y", "--json")
    weighted = calibrant("compare-models", *two, *given)
    assert weighted.json["population"] == "in the weighted population"
    models = {"p": scores, "q": scores**2}
    expected = compare_models(labels, models, importance_weight=weight, weight_bound=1.0)
    assert weighted.json["differences"][0]["upper"] == pytest.approx(expected.differences[0].upper)
    grouped = calibrant("compare-models", *two, "--group", "patient", "--max-group-size", "9")
    assert "new groups" in grouped.json["population"]
    calibrant(
        "compare-models",
        *two[:-1],
        "--group",
        "patient",
        "--max-group-size",
        "9",
        "-o",
        "pair.html",
    )
    calibrant("compare-models", *two[:-1], "-o", "alone.html")
    (figure,) = picture_figures([models_picture(reliability_tables(labels, models, 0.95))])
    limits = figure.series[0].whiskers
    assert limits in Path("alone.html").read_text()
    assert limits not in Path("pair.html").read_text()  # grouped rows have wider ones
    found = calibrant("audit", *plain, *given, "--group", "patient", "--json")
    beside = {"importance_weight": weight, "groups": visits["patient"], "weight_bound": 1.0}
    assert found.json["lower_bound"] == pytest.approx(audit(labels, scores, **beside).lower_bound)
    assert "no importance weight exceeds 1" in found.json["assumptions"]
    assert (
        calibrant(
            "fit", *plain, *given, "--group", "patient", "--method", "curve", "--bins", "2"
        ).code
        == 0
    )
    refused = calibrant("compare-models", *two, "--group", "patient").err.replace("\n", " ")
    assert "--max-group-size must be given" in refused
    assert "choose it before looking at these rows; a typical size is often best" in refused
    assert "the largest group" not in refused  # a limit taken from the counted rows proves nothing
    assert "Required with --group." in " ".join(calibrant("compare-models", "--help").out.split())
    assert "Required with --full and --group." in " ".join(calibrant("audit", "--help").out.split())


@pytest.mark.broad
def test_kept_segments_are_named(visits: pd.DataFrame, calibrant: Any) -> None:
    region = np.arange(len(visits)) % 3
    visits.assign(region=region).to_csv("v.csv", index=False)
    options = ("fit", "v.csv", "--score", "p", "--label", "y", "--segment", "region", "--bins", "2")
    answer = calibrant(*options, "--keep-segment", "1", "--keep-segment", "2", "--json")
    expected = Calibrator(n_bins=2, segment_rule=[1, 2]).fit(
        visits["p"].to_numpy(), visits["y"].to_numpy(), segments=region
    )
    assert answer.json["guarantee"]["epsilon"] == pytest.approx(expected.guarantee_.epsilon)
    assert (
        "--keep-segment must be one of the segments"
        in calibrant(*options, "--keep-segment", "north").err
    )
    assert (
        "--min-rows or --keep-segment must name segments of the data"
        in calibrant(*options, "--keep-segment", "7").err
    )


def test_plan_takes_the_size_of_groups(calibrant: Any) -> None:
    answer = calibrant(
        "plan", "--epsilon", "0.1", "--bins", "5", "--group-size", "10", "--icc", "0.3", "--json"
    )
    expected = plan(epsilon=0.1, n_bins=5, group_size=10, icc=0.3)
    assert answer.code == 0
    assert answer.json["n"] == expected.n
    assert answer.json["sentence"] == expected.sentence.replace(
        "BinningCalibrator", "--method binning"
    )
    alone = calibrant("plan", "--epsilon", "0.1", "--icc", "0.3")
    assert alone.code == 2
    assert "--icc must be given with --group-size" in alone.err


REFUSED = {
    "another method": (
        ("--method", "platt"),
        "--group must be used with --method curve, binning, uniform,",
    ),
    "a size": (
        ("--method", "scaling-binning", "--min-rows", "9"),
        "--min-rows must be left out with",
    ),
    "a bound": (("--weight-bound", "9"), "--weight-bound must be used with --weight"),
    "a segment": (("--keep-segment", "north"), "--keep-segment must be used with --segment"),
    "the label": (
        ("--group", "y"),
        "group column 'y' must be a different column from the label",
    ),
    "no such column": (("--group", "patients"), "did you mean 'patient'?"),
    "an id": (("--id", "patient"), "--id must be None with a group"),
    "sampling rates": (
        ("--sampling-rates", "0.1", "1"),
        "use --weight, one over the share of each row's class",
    ),
    "a size that is not used": (
        ("--prior", "0.1", "--max-group-size", "9"),
        "--max-group-size must be left out",
    ),
    "times": (("--time", "p"), "--time must be used with --holdout last"),
    "a part of the rows": (
        ("--calibration-size", "0.1"),
        "--calibration-size must be used with --holdout last",
    ),
    "too many groups": (
        ("--holdout", "last", "--calibration-size", "401"),
        "be at most 400, the number of groups",
    ),
    "no part": (
        ("--holdout", "last", "--calibration-size", "0"),
        "must be a fraction strictly between 0 and 1",
    ),
    "fractions": (("--group", "f"), "group column 'f' must contain whole numbers"),
    "a missing group": (("--group", "m"), "group column 'm' must"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused(
    name: str, visits: pd.DataFrame, calibrant: Any
) -> None:
    options, said = REFUSED[name]
    visits.assign(f=visits["p"] + 0.5, m=visits["patient"].where(visits.index != 7)).to_csv(
        "visits.csv", index=False
    )
    answer = calibrant("fit", "visits.csv", *COLUMNS, *options)
    assert answer.code == 2
    assert said in answer.err


@pytest.mark.broad
def test_groups_with_weights_or_a_prior(visits: pd.DataFrame, calibrant: Any) -> None:
    visits.assign(w=0.5 + visits["p"] / 2).to_csv("visits.csv", index=False)
    answer = calibrant(
        "fit", "visits.csv", *COLUMNS, "--weight", "w", "--bins", "3", "-o", "model.json", "--json"
    )
    assert "groups capped at weight" in answer.json["guarantee"]["sentence"]
    notes = " ".join(answer.json["guarantee"]["notes"])
    assert "a group's total weight in a region is capped at" in notes
    assert calibrant("verify", "model.json", "visits.csv").code == 0
    answer = calibrant("fit", "visits.csv", *COLUMNS, "--prior", "0.3", "--bins", "3", "--json")
    said = [answer.json["guarantee"][name] for name in ("sentence", "assumptions", "notes")]
    assert "a row drawn at random from a new group" in str(said)


@pytest.mark.broad
def test_verify_counts_the_groups_of_a_shift_again(visits: pd.DataFrame, calibrant: Any) -> None:
    weighted = visits.assign(w=0.5 + visits["p"] / 2)
    weighted.to_csv("visits.csv", index=False)
    named = {"score": "p", "label": "y", "weight": "w", "group": "patient"}
    data = scored("visits.csv", **named)
    fitted = ShiftCalibrator(n_bins=2).fit(data, weight_bound=1.0)
    save_model(fitted, "whole.json", columns=named)
    whole = calibrant("verify", "whole.json", "visits.csv")
    assert whole.code == 0, whole.out
    said = " ".join(whole.out.split())
    assert "The guarantee stands: refitting on these rows gives the same file. In each of 2" in said
    found = calibrant("verify", "whole.json", "visits.csv", "--json").json
    assert found["differences"] == []
    assert "not checked: created_by" in found["notes"]  # and nothing of the limits
    save_model(fitted, "ungrouped.json", columns={"score": "p", "label": "y", "weight": "w"})
    ungrouped = calibrant("verify", "ungrouped.json", "visits.csv")
    assert "the file does not name the column of groups" in " ".join(ungrouped.out.split())


@pytest.mark.parametrize("kind", [BinningCalibrator, ShiftCalibrator])
def test_verify_does_not_count_pilot_groups_in_given_bins(
    kind: type, visits: pd.DataFrame, calibrant: Any
) -> None:
    """They set the cap on groups, and which groups they were is not known from the file."""
    visits.assign(w=0.5 + visits["p"] / 2).to_csv("visits.csv", index=False)
    named = {"score": "p", "label": "y", "weight": "w", "group": "patient"}
    fitted = kind(partition=Partition.from_edges([0.5])).fit(scored("visits.csv", **named))
    assert fitted.guarantee_.statement.groups.aside > 0
    save_model(fitted, "given.json")
    columns = ("--score", "p", "--label", "y", "--weight", "w", "--group", "patient")
    answer = calibrant("verify", "given.json", "visits.csv", *columns)
    assert "does not stand" not in answer.out


@pytest.mark.broad
def test_the_most_recent_rows_calibrate(visits: pd.DataFrame, calibrant: Any) -> None:
    rng = np.random.default_rng(5)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 100, len(visits)), unit="D")
    patient_of_day = visits.assign(day=day.strftime("%Y-%m-%d"), y=visits["y"].astype("Int64"))
    patient_of_day.loc[:9, ["y", "day"]] = (None, "2023-12-01")
    patient_of_day.to_csv("visits.csv", index=False)
    options = ("visits.csv", "--score", "p", "--label", "y", "--skip-missing", "--bins", "3")
    last = (
        "--holdout",
        "last",
        "--time",
        "day",
        "--calibration-size",
        "500",
        "-o",
        "model.json",
        "--overwrite",
    )
    answer = calibrant("fit", *options, *last, "--json")
    labelled = patient_of_day[10:]
    since = labelled["day"].sort_values(ascending=False).iloc[499]
    recent = labelled[labelled["day"] >= since]
    assert answer.json["rows"] == len(recent)
    assert f"of day {since} to {labelled['day'].max()}" in answer.json["notes"][0]
    expected = Calibrator(n_bins=3).fit(recent["p"].to_numpy(), recent["y"].to_numpy())
    assert answer.json["guarantee"]["epsilon"] == pytest.approx(expected.guarantee_.epsilon)
    checked = calibrant("verify", "model.json", "visits.csv")
    assert checked.code == 0, checked.out + checked.err
    whole = calibrant("fit", *options, "--group", "patient", *last[:4], "--json").json
    assert whole["groups"] < 400
    assert "groups with many rows are more often among the most recent" in whole["notes"][0]
    assert "groups" not in answer.json["notes"][0]
    assert calibrant("fit", *options, *last[:2], "--json").json["rows"] == round(
        0.25 * len(labelled)
    )


def test_the_size_limit_needs_groups(visits: pd.DataFrame, calibrant: Any) -> None:
    answer = calibrant("fit", "visits.csv", *COLUMNS[:4], "--max-group-size", "5")
    assert answer.code == 2
    assert "--max-group-size must be used with --group" in answer.err


def test_groups_of_two_kinds_in_two_files_are_refused(visits: pd.DataFrame, calibrant: Any) -> None:
    visits.assign(patient=range(len(visits))).to_csv("later.csv", index=False)
    answer = calibrant("fit", "visits.csv", "later.csv", *COLUMNS)
    assert answer.code == 2
    assert (
        "group column 'patient' must contain one kind of entry in all files; got numbers and text"
        in answer.err
    )


def test_a_cap_that_changes_a_threshold_is_told_in_the_words_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calibrant: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    groups = np.concatenate([np.arange(2000), np.repeat([3001], 3000)])
    for seed in range(20):  # until the large group is not among those that are set aside
        rng = np.random.default_rng(seed)
        scores = rng.uniform(size=groups.size)
        y = ((rng.uniform(size=groups.size) < 0.95) & (groups < 3001)).astype(int)
        given = {"groups": groups}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            caps = [threshold(y, scores, precision=0.8, **given).max_group_size]
            caps.append(
                BinningCalibrator(1).fit(scores, y, **given).guarantee_.statement.groups.max_size
            )
        if caps == [1, 1]:
            break
    lines = [
        "p,y,g",
        *(f"{p},{label},{group}" for p, label, group in zip(scores, y, groups, strict=True)),
    ]
    Path("rows.csv").write_text("\n".join(lines))
    answer = calibrant(
        "threshold",
        "rows.csv",
        "--score",
        "p",
        "--label",
        "y",
        "--group",
        "g",
        "--precision",
        "0.8",
    )
    assert answer.code == 0
    said = " ".join(answer.err.split())
    assert said.startswith(
        "warning: precision 0.8 is guaranteed with a group counting as at most 1 row; among all"
        " counted rows"
    )
    assert said.endswith("among all rows, set --max-group-size")
    columns = ("--score", "p", "--label", "y", "--group", "g")
    whole = calibrant("threshold", "rows.csv", *columns, "--precision", "0.8", "--details")
    assert "of the rows counted are above that" in " ".join(whole.out.split())
    model = calibrant(
        "fit", "rows.csv", *columns, "--method", "binning", "--bins", "1", "--details"
    )
    assert "lies outside the limits, which count a group as at most 1 row" in " ".join(
        model.out.split()
    )
