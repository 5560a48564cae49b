"""The validation study judges guarantees correctly, its parts run, and its page shows what its files
say.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from calibrant import BinningCalibrator

STUDY = Path(__file__).parents[2] / "study"
sys.path.insert(0, str(STUDY))

import few_labels  # noqa: E402
import first_pass  # noqa: E402
import judging  # noqa: E402
import known_truth  # noqa: E402
import label_rates  # noqa: E402
import page  # noqa: E402
import parts  # noqa: E402
import ranking  # noqa: E402
from sets import BY_NAME, SETS  # noqa: E402


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=2_000)
    return BinningCalibrator(4).fit(scores, rng.uniform(size=2_000) < scores)


def test_a_guarantee_is_broken_where_some_rate_leaves_its_limits(fitted):
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=40_000)
    true = rng.uniform(size=scores.size) < scores
    assert not judging.is_broken(fitted, scores, true)
    assert judging.is_broken(fitted, scores, np.where(scores > 0.75, False, true))
    assert judging.is_broken(
        fitted, scores[scores < 0.5], true[scores < 0.5]
    )  # too many rows in a region


def test_new_rows_refute_a_guarantee_where_their_exact_limits_miss_the_guaranteed_ones(fitted):
    rng = np.random.default_rng(2)
    scores = rng.uniform(size=1_000)
    y = rng.uniform(size=scores.size) < scores / 2
    expected = 0.0
    for region in range(4):
        chosen = judging.regions(fitted, scores)[0] == region
        exact = binomtest(int(y[chosen].sum()), int(chosen.sum())).proportion_ci(1 - 0.05 / 4)
        low = fitted.guarantee_.lower[region]
        high = fitted.guarantee_.upper[region]
        expected = max(expected, exact.low - high, low - exact.high)
    assert expected > 0
    assert judging.proved_distance(fitted, scores, y) == pytest.approx(expected)


def test_rows_come_in_order_of_time_or_first_from_the_main_site():
    table = pd.DataFrame(
        {"date": ["2020-03-01", "2020-01-01", "2020-02-01"], "policePrecinct": [2, 1, 2]}
    )
    stops = BY_NAME["cars searched"]
    first, second, third = parts.in_order(parts.moments(stops, "time", table), "time")
    assert [*first, *second, *third] == [1, 2, 0]
    train, known, later = parts.in_order(parts.moments(stops, "site", table), "site")
    assert [*train, *known, *later] == [0, 2, 1]


def test_parts_run_on_data_of_scikit_learn(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "DRAWS", 2)
    ours = list(parts.rows_part(BY_NAME["tumours"], "logistic", "0", tmp_path))
    assert [line["draws"] for line in ours] == [2, 2]
    assert all(0 < line["epsilon"] < 0.5 for line in ours)


def test_splits_are_counted_or_averaged():
    lines = [
        {"set": "a", "model": "b", "method": "c", "rows": 9, "epsilon": 0.1, "broken": 0},
        {"set": "a", "model": "b", "method": "c", "rows": 9, "epsilon": 0.3, "broken": 1},
    ]
    (both,) = parts.over_splits(pd.DataFrame(lines)).to_dict("records")
    assert (both["rows"], both["broken"], both["epsilon"]) == (9, 1, pytest.approx(0.2))


@pytest.mark.broad
@pytest.mark.parametrize("path", page.PAGES, ids=lambda path: path.name)
def test_tables_of_the_pages_are_those_of_the_committed_files(path):
    text = path.read_text(encoding="utf-8")
    assert page.filled(text) == text


def test_every_table_is_shown():
    shown = {
        name
        for path in page.PAGES
        for _, name, _ in page.MARKS.findall(path.read_text(encoding="utf-8"))
    }
    assert shown == set(page.TABLES)


KEYS = {
    "order": ["set", "by", "model"],
    "rate": ["rate", "judge", "labels"],
    "rate_groups": ["judge", "labels"],
    "loose_end": ["world", "rows"],
}


@pytest.mark.parametrize("part", [part for part in parts.PARTS if part != "coverage"])
def test_committed_files_have_every_unit_of_the_study(part):
    columns = KEYS.get(part, ["set", "model"])
    found = pd.read_csv(page.RESULTS / f"{part}.csv")[columns].astype(str)
    expected = {
        (name, *names)[: len(columns)] for _, name, names in parts.units([part])
    }  # without the split
    if part == "rate_groups":  # ten answers to each question
        expected = {(judge, f"{questions}0") for judge, questions in expected}
    assert set(found.itertuples(index=False, name=None)) == expected


def test_committed_coverage_has_every_cell_of_each_question():
    found = pd.read_csv(page.RESULTS / "coverage.csv").astype(str)
    assert set(found.question) == set(known_truth.CELLS)
    for question, cells in known_truth.CELLS.items():
        asked = found[found.question == question]
        columns = ["world", "rows"][: len(cells[0])]
        assert set(map(tuple, asked[columns].to_numpy())) == set(cells)


def test_simulated_parts_run_without_data(tmp_path, monkeypatch):
    monkeypatch.setitem(known_truth.QUESTIONS, "corrected", (known_truth.corrected, 5))
    unit = ("coverage", "corrected", ("rare", "500"))
    (line,) = parts.lines_of(unit, tmp_path)
    assert (line["world"], line["draws"]) == ("rare", 5)
    (ours, _) = few_labels.rate_groups_part("good", "20", count=3)
    assert (ours["labels"], ours["draws"], ours["missed"]) == (200, 3, 0.0)
    rules = list(first_pass.loose_end_part("rate = score", "500", draws=3))
    assert [line["rule"] for line in rules] == list(first_pass.RULES)
    assert not any("coverage" in unit for unit in parts.units(parts.PARTS, SETS[:2]))


def test_there_are_many_sets():
    assert len(SETS) >= 30


def test_committed_guarantees_are_not_broken_more_often_than_they_may_be():
    rows = pd.read_csv(page.RESULTS / "rows.csv")
    for _, ours in rows.groupby("method"):
        assert page.share(ours.broken.sum(), ours.draws.sum())[2] < 0.1


def test_committed_rates_miss_no_more_often_than_stated_and_are_no_wider_than_labels_alone():
    cells = label_rates.side_by_side(page.RESULTS)
    assert len(cells) == 84
    assert cells["p auto"].min() > 0.001
    assert cells["ratio"].max() <= 1.03
    good = cells[cells.judge.isin(["perfect", "very good", "good"]) & (cells.labels >= 100)]
    assert good["ratio"].max() <= 0.95
    many = cells[(cells.labels == 500) & (cells.judge != "perfect")]
    assert many["over ppi_py"].max() <= 1.2


def test_committed_rates_of_groups_hold_where_rows_alone_break():
    found = pd.read_csv(page.RESULTS / "rate_groups.csv")
    assert found[found.method == "groups"].p.min() > 0.001
    assert found[found.method == "rows"].p.min() < 1e-6


def test_committed_thresholds_from_the_loose_end_are_false_too_often_and_proved_ones_are_not():
    found = pd.read_csv(page.RESULTS / "loose_end.csv")
    proved = found.rule == "calibrant.threshold"
    assert found[proved].p.min() > 0.01
    assert found[~proved].p.min() < 1e-6


def test_holm_and_limits_of_a_median_are_those_of_the_textbook():
    assert ranking.holm(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])
    values = np.random.default_rng(5).permutation(np.arange(1.0, 48.0))
    median, low, high = ranking.median_limits(values)
    assert (median, low, high) == (24.0, 17.0, 31.0)  # ranks 17 and 31 of 47: the sign test
    assert binomtest(16, 47).pvalue > 0.025 > binomtest(16, 47, alternative="less").pvalue


def test_methods_of_equal_log_loss_are_not_told_apart_and_a_worse_one_is():
    rng = np.random.default_rng(6)
    first = rng.uniform(0.2, 0.6, 40)
    noise = rng.normal(0, 0.01, 40)
    table = pd.DataFrame({"a": first, "b": first + noise, "c": first + 0.2})
    corrected = ranking.p_values(table)
    ranks = ranking.mean_ranks(table)
    assert list(ranks.index)[-1] == "c"
    assert ranking.groups_not_told_apart(ranks, corrected) == [slice(0, 2)]


def test_limits_that_are_compared_are_those_of_their_books():
    from statsmodels.stats.proportion import proportion_confint

    low, high = known_truth.wilson(np.array([0, 3, 20]), np.array([20, 20, 20]))
    for place, positives in enumerate((0, 3, 20)):
        expected = proportion_confint(positives, 20, 0.1, "wilson")
        assert (low[place], high[place]) == pytest.approx(expected, abs=1e-12)
    shared, _ = known_truth.wilson(np.array([3]), np.array([20]), shared_by=10)
    assert shared[0] == pytest.approx(proportion_confint(3, 20, 0.01, "wilson")[0])


@pytest.mark.broad
def test_a_known_truth_finds_a_guarantee_right_and_one_about_another_world_wrong():
    rng = np.random.default_rng(4)
    calibrated = known_truth.World("calibrated")
    rows = calibrated.sample(rng, 2_000)
    assert not known_truth.of_ours(BinningCalibrator(10), calibrated, *rows)[0]
    overconfident = known_truth.World("overconfident")
    assert known_truth.of_ours(BinningCalibrator(10), overconfident, *rows)[0]
    (line, *_) = known_truth.corrected(20, "calibrated", "500")
    assert line["draws"] == 20
    assert line["false"] < 10


def test_committed_statements_of_ours_are_false_no_more_often_than_they_may_be():
    found = pd.read_csv(page.RESULTS / "coverage.csv")
    ours = found.method.str.startswith("calibrant")
    assert found[ours].p.min() > 0.01
    assert found[found.method == "Wilson limits for each bin"].p.max() < 1e-6
    assert set(found.question) == set(known_truth.QUESTIONS)
    for name, (_, draws) in known_truth.QUESTIONS.items():
        assert set(found[found.question == name].draws) == {draws}
