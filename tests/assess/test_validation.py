"""The validator's table: what is proved holds, what is asymptotic agrees with statsmodels, the test
is exact.
"""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logit
from sklearn.isotonic import isotonic_regression

from calibrant import Report, audit, scored, validation_table
from calibrant.assess.metrics.independent_units import Units
from calibrant.assess.validation.measures import kuiper_test, ratio
from calibrant.errors import InvalidValueError
from calibrant.intervals import MonotoneBand
from calibrant.metrics import auc

EACH_ROW = Units(None, 1.0, bounded=True, population="")


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.beta(1, 3, size=2_000)
    return (rng.uniform(size=2_000) < scores**1.3).astype(int), scores


@pytest.mark.broad
def test_slope_and_intercepts_are_those_of_statsmodels(rows) -> None:
    sm = pytest.importorskip("statsmodels.api")
    y, scores = rows
    found = validation_table(y, scores, confidence_level=0.9)
    x = logit(np.clip(scores, 1e-6, 1 - 1e-6))
    free = sm.GLM(y, sm.add_constant(x), family=sm.families.Binomial()).fit(tol=1e-12)
    fixed = sm.GLM(y, np.ones((y.size, 1)), family=sm.families.Binomial(), offset=x).fit(tol=1e-12)
    for name, value, limits in (
        ("intercept", free.params[0], free.conf_int(0.1)[0]),
        ("slope", free.params[1], free.conf_int(0.1)[1]),
        ("intercept, slope 1", fixed.params[0], fixed.conf_int(0.1)[0]),
    ):
        measure = found[name]
        assert (measure.value, measure.lower, measure.upper) == pytest.approx(
            (value, *limits), abs=1e-6
        )
        assert measure.basis == "asymptotic"


def test_parts_of_the_brier_score_add_up(rows) -> None:
    y, scores = rows
    found = validation_table(y, np.round(scores, 2))
    parts = [found[name].value for name in ("miscalibration", "discrimination", "uncertainty")]
    assert found["Brier score"].value == pytest.approx(parts[0] - parts[1] + parts[2])
    order = np.argsort(scores, kind="stable")
    fitted = isotonic_regression(y[order].astype(float))
    untied = validation_table(y, scores)
    assert untied["discrimination"].value == pytest.approx(
        y.var() - np.mean((y[order] - fitted) ** 2)
    )
    assert validation_table(y, np.full(y.size, y.mean()))["miscalibration"].value == pytest.approx(
        0
    )


@pytest.mark.broad
@pytest.mark.parametrize("kind", ["continuous", "tied", "rare"])
def test_a_calibrated_score_is_rejected_no_more_often_than_stated(kind: str) -> None:
    rng = np.random.default_rng(1)
    p_values = []
    for seed in range(400):
        scores = rng.beta(1, 2, size=40)
        scores = {"continuous": scores, "tied": np.round(scores, 1), "rare": scores / 30}[kind]
        scores.sort()
        y = (rng.uniform(size=40) < scores).astype(int)
        p_values.append(kuiper_test(y, scores, 39, np.random.default_rng(seed), EACH_ROW)[1])
    for level in (0.05, 0.1, 0.5):
        rejected = int(np.sum(np.array(p_values) <= level + 1e-9))
        assert stats.binomtest(rejected, 400, level, alternative="greater").pvalue > 1e-3


@pytest.mark.broad
def test_labels_are_drawn_afresh_for_other_rows_although_the_seed_is_fixed() -> None:
    # with draws by the seed alone, 98 rows with the calibrated score 0.4 had p <= 0.001 with
    # probability 0.0037
    rng = np.random.default_rng(2)
    n = 98
    k = 30
    rate = 0.4
    draws = 19
    counts = np.arange(n + 1)
    as_far = np.abs(counts - n * rate) >= abs(k - n * rate) - 1e-9
    tail = float(stats.binom.pmf(counts, n, rate)[as_far].sum())
    orders = [
        rng.permutation(n) < k for _ in range(60)
    ]  # one statistic, however the rows are ordered
    found = [validation_table(y, np.full(n, rate), n_draws=draws).p_value for y in orders]
    smallest = int(np.sum(np.array(found) < 1.5 / (1 + draws)))
    assert stats.binomtest(smallest, len(found), (1 - tail) ** draws).pvalue > 1e-3
    assert validation_table(orders[0], np.full(n, rate), n_draws=draws).p_value == found[0]


@pytest.mark.broad
def test_the_test_finds_an_error_and_does_not_depend_on_the_order(rows) -> None:
    y, scores = rows
    assert validation_table(y, scores).p_value == 0.001
    assert validation_table(y, scores).is_miscalibrated
    tied = np.round(scores, 1)
    one, other = (
        validation_table(y[order], tied[order]) for order in (np.argsort(y), np.argsort(-y))
    )
    assert one["Kuiper statistic"].value == pytest.approx(other["Kuiper statistic"].value)
    cumulative = [np.sum((y - tied)[tied <= value]) / y.size for value in np.unique(tied)]
    assert one["Kuiper statistic"].value == pytest.approx(max(*cumulative, 0) - min(*cumulative, 0))


@pytest.mark.broad
def test_expected_over_observed_holds_for_unlike_rates() -> None:
    rng = np.random.default_rng(2)
    missed = 0
    draws = 600
    for _ in range(draws):
        rates = rng.choice([0.0, 0.02, 0.5, 1.0], p=[0.6, 0.3, 0.05, 0.05], size=30)
        scores = rng.uniform(size=30)
        y = (rng.uniform(size=30) < rates).astype(int)
        found = ratio(y, scores, 0.2, EACH_ROW)
        truth = scores.mean() / rates.mean() if rates.any() else math.inf
        missed += not found.lower <= truth <= found.upper
    assert stats.binomtest(missed, draws, 0.2, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
def test_limits_of_all_grades_hold_at_once() -> None:
    rng = np.random.default_rng(3)
    rates = {"A": 0.01, "B": 0.05, "C": 0.3, "D": 0.9}
    wrong = 0
    draws = 150
    for _ in range(draws):
        grades = rng.choice(list(rates), p=[0.5, 0.3, 0.15, 0.05], size=150)
        y = (rng.uniform(size=150) < np.vectorize(rates.get)(grades)).astype(int)
        table = validation_table(
            y, np.full(150, 0.1), grades=grades, assigned=rates, classes=(0, 1), n_draws=19
        )
        wrong += set(table.grades.verdict) != {"not refuted"}
    assert stats.binomtest(wrong, draws, 0.05, alternative="greater").pvalue > 1e-3


def test_grades_that_are_wrong_are_named(rows) -> None:
    y, scores = rows
    grades = np.where(scores < 0.2, "good", "bad")
    found = validation_table(y, scores, grades=grades, assigned={"good": 0.3, "bad": 0.1}).grades
    assert dict(zip(found.grade, found.verdict, strict=True)) == {
        "bad": "assigned too low",
        "good": "assigned too high",
    }
    assert found.counts.sum() == 2_000
    by_score = validation_table(y, scores, grades=grades).grades
    assert list(by_score.grade) == ["good", "bad"]
    assert by_score.assigned == pytest.approx(
        [scores[grades == name].mean() for name in ("good", "bad")]
    )
    assert list(by_score.to_frame().columns)[-1] == "verdict"


@pytest.mark.parametrize(
    ("y", "scores"),
    [
        (np.zeros(10, int), np.full(10, 0.1)),
        (np.arange(10) % 2, np.full(10, 0.5)),
        (np.repeat([0, 1], 5), np.linspace(0, 1, 10)),
        (np.repeat([1, 0], 5), np.linspace(0, 1, 10)),
        (np.array([0, 1]), np.array([0.0, 1.0])),
        (np.array([1]), np.array([0.0])),
    ],
    ids=["one class", "one score", "separated", "reversed", "sure", "one row"],
)
def test_where_there_is_no_estimate_the_table_says_none(y, scores) -> None:
    found = validation_table(y, scores, classes=(0, 1))
    assert math.isnan(found["slope"].value)
    text = str(found)
    assert "nan" not in text.lower()
    assert "inf" not in text.lower().replace("infinity", "")
    json.dumps(found.to_dict(), allow_nan=False)


def test_bad_input_is_refused_by_name(rows) -> None:
    y, scores = rows
    for options, message in (
        ({"n_draws": 5}, "n_draws must be an int >= 19"),
        ({"grades": np.zeros(3)}, "segments must"),
        (
            {"grades": y, "assigned": {0: 0.1}},
            "assigned must have a probability for each grade; got none for 1",
        ),
        ({"grades": y, "assigned": {0: 0.1, 1: 2.0}}, "assigned must be probabilities in"),
        ({"grades": y, "assigned": 0.1}, "assigned must be a mapping from grade to probability"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            validation_table(y, scores, **options)


def test_report_shows_the_table_and_the_grades(rows) -> None:
    y, scores = rows
    table = validation_table(y, scores, grades=np.where(scores < 0.2, "<good>", "bad"))
    page = Report(audit(y, scores), validation=table).html
    assert "Validation table" in page
    assert "expected / observed" in page
    assert "&lt;good&gt;" in page
    assert "Validation table" not in Report(audit(y, scores)).html
    with pytest.raises(TypeError, match="validation must be a Validation"):
        Report(audit(y, scores), validation=1)


@pytest.mark.broad
def test_grouped_rows_need_a_bound(rows) -> None:
    y, scores = rows
    frame = pd.DataFrame({"p": scores, "y": y, "who": np.arange(y.size) // 3, "w": 1.0})
    for beside, bound in (({"group": "who"}, "max_group_size"), ({"weight": "w"}, "weight_bound")):
        data = scored(frame, score="p", label="y", **beside)
        with pytest.raises(TypeError, match=f"{bound} must be given"):
            validation_table(data)
        assert validation_table(data, **{bound: 3}).population
        assert auc(data).value == pytest.approx(auc(y, scores).value)


def test_a_band_counts_all_rows_but_those_of_pilot_groups_and_takes_weights_with_a_bound(
    rows,
) -> None:
    y, scores = rows
    frame = pd.DataFrame({"p": scores, "y": y, "who": np.arange(y.size) // 4, "w": 1.0})
    n_pilot_groups = frame["who"].nunique() // 10
    band = MonotoneBand().fit(scored(frame, score="p", label="y", group="who"))
    assert band.n_rows_ == y.size - 4 * n_pilot_groups
    weighted = scored(frame, score="p", label="y", weight="w")
    with pytest.raises(TypeError, match="weight_bound must be given with importance weights"):
        MonotoneBand().fit(weighted)
    assert MonotoneBand().fit(weighted, weight_bound=1.0).n_rows_ == y.size


@pytest.mark.broad
def test_draws_become_fewer_with_many_rows():
    scores = np.tile([0.2, 0.5, 0.8, 0.5], 50_000)
    assert validation_table(np.arange(200_000) % 2, scores).n_draws == 500


@pytest.mark.broad
def test_scores_of_0_and_1_are_clipped_to_a_millionth():
    scores = np.tile([0.0, 0.3, 0.6, 1.0], 10)
    y = np.tile([0, 1, 0, 1], 10)
    y[3] = 0
    y[8] = 1
    clipped = np.clip(scores, 1e-6, 1 - 1e-6)
    assert validation_table(y, scores)["slope"].value == pytest.approx(
        validation_table(y, clipped)["slope"].value, rel=1e-12
    )
    assert (validation_table(y, scores).n_clipped, validation_table(y, clipped).n_clipped) == (
        20,
        0,
    )


def test_limits_of_auc_lie_around_it_and_within_0_and_1():
    scores = np.linspace(0.05, 0.95, 60)
    found = validation_table(np.arange(60) > np.where(np.arange(60) % 7 == 0, 50, 30), scores)[
        "AUC"
    ]
    assert 0.5 < found.lower < found.value < found.upper <= 1.0


@pytest.mark.broad
def test_grades_whose_rows_are_without_weight_are_left_out():
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=300)
    grades = np.repeat(["a", "b", "c"], 100)
    y = rng.uniform(size=300) < scores
    weights = np.ones(300)
    for grade, others in (("b", ["a", "c"]), ("c", ["a", "b"])):
        weighted = {
            "importance_weight": np.where(grades == grade, 0.0, weights),
            "weight_bound": 1.0,
        }
        for assigned in (None, {"a": 0.5, "b": 0.5, "c": 0.5}):
            table = validation_table(y, scores, grades=grades, assigned=assigned, **weighted).grades
            assert sorted(table.grade) == others
            assert np.isfinite([table.rate, table.assigned, table.lower, table.upper]).all()


def test_the_table_names_what_a_calibrated_score_has(rows) -> None:
    table = validation_table(*rows, n_draws=19).tables()[0].text()
    assert table.heads[3] == "of a calibrated score"
    ideals = {row[0]: row[3] for row in table.rows}
    calibrated = {
        "expected / observed": "1",
        "slope": "1",
        "intercept": "0",
        "intercept, slope 1": "0",
    }
    calibrated |= {"Kuiper statistic": "0", "miscalibration": "0"}
    calibrated |= dict.fromkeys(("ICI", "E50", "E90"), "0")
    assert ideals == dict.fromkeys(ideals, "") | calibrated


def test_a_grade_may_be_assigned_the_probability_0_or_1_and_none_beyond() -> None:
    y = np.repeat([0, 1], 50)
    grades = np.where(y == 1, "bad", "good")
    scores = np.full(100, 0.5)
    found = validation_table(y, scores, grades=grades, assigned={"good": 0.0, "bad": 1.0}).grades
    assert sorted(found.assigned) == [0.0, 1.0]
    for wrong in (-1e-9, 1.0 + 1e-9):
        with pytest.raises(InvalidValueError) as refused:
            validation_table(y, scores, grades=grades, assigned={"good": wrong, "bad": 1.0})
        assert refused.value.parameter == "assigned"
