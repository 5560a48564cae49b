"""Every result says it once: a verdict, a sentence that is short and never says more than the
numbers, and pages, text and JSON that follow from the result alone.
"""

import json
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

import calibrant
from calibrant.text.picture import Drawn, Picture, ReferenceLine
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable
from result_examples import EXAMPLES
from worlds.report_pages import read

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=3_000)
Y = (RNG.uniform(size=3_000) < SCORES**2).astype(int)
MOST_WORDS = 35


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Result):
    """A result that only this test knows."""

    rate: float

    verdict = "problem"

    @property
    def sentence(self) -> str:
        return f"The rate is {100 * self.rate:g}%, if the labels are right."

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        return (Quantity("Rate", self.rate, unit="share"),)

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        return (NextStep("Label more rows", "plan(n=1000)", "plan --rows 1000"),)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("labels are right",)

    def tables(self) -> tuple[ResultTable, ...]:
        return (ResultTable("rates", {"name": ["all"], "rate": [self.rate]}),)

    def pictures(self) -> tuple[Picture, ...]:
        drawn = Drawn("rate", [self.rate], [0.0], [0.1], [0.9])
        rule = ReferenceLine("half", 0.5, is_upright=True)
        return (Picture("The rate", "What it is.", "rate", "", (drawn,), (rule,), ("all",)),)


def test_a_new_result_needs_no_registration() -> None:
    answer = Answer(0.25)
    assert str(answer).splitlines() == [
        "PROBLEM  The rate is 25%, if the labels are right.",
        "",
        "name  rate",
        "all   0.25",
        "",
        "Next: Label more rows: plan(n=1000)",
    ]
    state = json.loads(json.dumps(answer.to_dict()))
    assert state["verdict"] == "problem"
    assert state["rate"] == 0.25
    assert state["numbers"][0]["value"] == 0.25
    assert state["next_steps"][0]["command"] == "plan --rows 1000"
    root = read(calibrant.Report(answer).html)
    assert root.all("p", "tag")[0].text == "Problem"
    assert root.all("p", "verdict")[0].text == answer.sentence
    for said in ("The rate", "What it is.", "Label more rows", "plan(n=1000)", "Labels are right"):
        assert said in root.text
    assert root.all("svg", "chart")


def test_every_picture_can_be_drawn() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for name in EXAMPLES:
        result = EXAMPLES[name]()
        drawn = result.plot()
        with_limits = [one for one in result.numbers if None not in (one.low, one.high, one.value)]
        assert (drawn is None) == (not result.pictures() and not with_limits)
        pyplot.close("all")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_sentence_is_short_and_proves_nothing(name) -> None:
    result = EXAMPLES[name]()
    assert len(result.sentence.split()) <= MOST_WORDS
    assert "prove" not in str(result).replace("proved=", "")
    assert result.verdict in ("ok", "problem", "unclear", None)


def numbers(text: str) -> list[float]:
    return [float(number) / 100 for number in re.findall(r"([\d.]+) points?", text)]


@pytest.mark.parametrize("epsilon", [0.04701, 0.01, 0.0999999, 0.000123456])
def test_a_bound_in_points_is_not_smaller_than_the_bound(epsilon) -> None:
    guarantee = calibrant.BinningCalibrator(4).fit(SCORES, Y).guarantee_
    low = np.zeros_like(guarantee.value)
    made = replace(guarantee, value=low + 0.5, lower=low + 0.5, upper=low + 0.5 + epsilon)
    (shown,) = numbers(replace(made, mass_limits=None).sentence)
    assert epsilon <= shown <= 1.1 * epsilon


def test_an_error_in_points_is_not_larger_than_the_error() -> None:
    found = calibrant.audit(Y, SCORES)
    largest, average = numbers(found.sentence)
    assert 0.9 * found.worst.error <= largest <= found.worst.error
    assert 0.9 * found.average_lower_bound <= average <= found.average_lower_bound
    assert "too high" in found.sentence
    assert "independent" in found.sentence
    assert found.verdict == "problem"


def test_a_difference_is_within_its_limits() -> None:
    found = calibrant.compare_models(Y, {"old": SCORES, "new": SCORES**2})
    said = found.sentence
    assert said.startswith("'new' is better than 'old'")
    low, high = map(float, re.search(r"lower by ([\d.]+) to ([\d.]+) \(", said).groups())
    brier = next(one for one in found.differences if one.measure == "Brier score")
    assert low <= brier.lower <= brier.upper <= high


def test_another_population_is_not_left_out() -> None:
    """Precision in the weighted population; groups that count up to a cap, or all the same."""
    weights = np.where(Y, 2.0, 0.2)
    weighted = calibrant.threshold(
        Y, SCORES, precision=0.6, importance_weight=weights, weight_bound=2.0
    )
    assert "of the weighted population" in weighted.sentence
    groups = np.arange(SCORES.size) // 4
    capped = {"groups": groups, "max_group_size": 2}
    cut = calibrant.threshold(Y, SCORES, precision=0.4, **capped)
    assert cut.above_cap > 0.0
    cap = f"a group counts as at most {cut.max_group_size} row"
    assert cap in cut.sentence
    never = calibrant.threshold(Y, SCORES, precision=0.9999, **capped)
    assert never.sentence.startswith("A precision of 99.99% cannot be guaranteed with these ")
    assert cap in never.sentence
    bins = calibrant.BinningCalibrator(2)
    assert "groups capped at 2 rows" in bins.fit(SCORES, Y, **capped).guarantee_.sentence
    equal = bins.fit(SCORES, Y, groups=groups, max_group_size=4, group_target="groups")
    assert "groups count equally" in equal.guarantee_.sentence
    rows = bins.fit(SCORES, Y, groups=groups, max_group_size=4)
    assert "if new groups are like these" in rows.guarantee_.sentence
    curve = calibrant.Calibrator(n_bins=4).fit(
        SCORES, Y, importance_weight=0.5 + SCORES, weight_bound=1.5
    )
    assert "true weighted rate" in curve.guarantee_.sentence
    audited = calibrant.audit(Y, SCORES, importance_weight=0.5 + SCORES, weight_bound=1.5)
    assert f"errors{audited.population}" in audited.sentence


def test_true_and_average_are_said_of_a_curve() -> None:
    curve = calibrant.Calibrator(n_bins=4).fit(SCORES, Y).guarantee_.sentence
    assert "true rate" in curve
    assert "average prediction" in curve
    assert "all ranges together" in curve


def test_what_is_not_guaranteed_is_unclear() -> None:
    fitted = calibrant.BinningCalibrator(4).fit(SCORES, Y)
    caveat = fitted.guarantee_.with_caveat("folds were used")
    assert caveat.verdict == "unclear"
    assert caveat.sentence == "Nothing is guaranteed: folds were used."
    nothing = np.zeros_like(fitted.guarantee_.value)
    vacuous = replace(fitted.guarantee_, lower=nothing, upper=nothing + 1.0, mass_limits=None)
    assert vacuous.verdict == "unclear"
    assert fitted.guarantee_.verdict == "ok"
    assert calibrant.threshold(Y, SCORES, precision=0.9999).verdict == "unclear"
    assert calibrant.PlattCalibrator().fit(SCORES, Y).guarantee_.verdict == "unclear"
    assert calibrant.plan(epsilon=0.1, n_bins=5).verdict is None


def test_a_subgroup_that_is_off_is_named_and_all_are_listed() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 0.7, size=8_000)
    side = rng.random(8_000) < 0.5
    y = rng.random(8_000) < scores + np.where(side, 0.12, -0.12)
    found = calibrant.audit(y, scores, attributes={"side": side})
    assert found.worst is None
    assert found.verdict == "problem"
    worst = found.by_attributes.findings[0]
    assert f"tested rows of {worst.subgroup}" in found.sentence
    (shown,) = numbers(found.sentence)
    assert 0.9 * worst.error <= shown <= worst.error
    assert "2 of 3 subgroups are off" in found.sentence
    (off,) = (table for table in found.tables() if table.name == "off")
    assert sorted(off.columns["subgroup"]) == ["side = False", "side = True"]
    assert all(name in str(found) for name in off.columns["subgroup"])
    unnamed = replace(found, by_attributes=replace(found.by_attributes, findings=()))
    assert "the data do not show which" in unnamed.sentence


def test_where_nothing_is_found_the_sentence_claims_nothing() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 0.7, size=2_000)
    y = rng.random(2_000) < scores
    found = calibrant.audit(y, scores, attributes={"side": rng.random(2_000) < 0.5})
    assert found.sentence.startswith("No sign that scores are miscalibrated")
    assert found.sentence.endswith("This does not show that they are right.")
    assert found.verdict == "ok"


def test_a_segment_is_not_taken_for_a_score() -> None:
    """Segment 1 is off, not the scores that are 1."""
    segments = np.where(np.arange(3_000) % 2, 1, 2)
    y = np.where(segments == 1, Y, RNG.uniform(size=3_000) < SCORES)
    found = calibrant.audit(y, SCORES, segments=segments)
    assert "in segment 1" in found.sentence


def test_two_thresholds_are_both_said() -> None:
    both = calibrant.threshold(Y, SCORES**2, precision=0.7, npv=0.8)
    assert all(cut.threshold is not None for cut in both.cuts)
    assert re.search("are positive; at least 80% of the rows .* are negative", both.sentence)
    one = calibrant.threshold(Y, SCORES**2, precision=0.9999, npv=0.8)
    assert "A precision of 99.99% cannot be guaranteed" in one.sentence
    none = calibrant.threshold(Y, SCORES**2, precision=0.9999, npv=0.9999)
    assert none.sentence == (
        "A precision of 99.99% and a npv of 99.99% cannot be guaranteed with these 3,000 rows"
        " (90% confidence, all together, if new rows are like these)."
    )


def test_a_plan_by_estimate_says_so() -> None:
    curve = calibrant.plan(epsilon=0.1, n_bins=5, calibrator="Calibrator")
    (shown,) = numbers(curve.sentence)
    assert curve.epsilon <= shown
    assert "in about 9 of 10 fits" in curve.sentence
    assert any("This is an estimate" in note for note in curve.notes)
    grouped = calibrant.plan(epsilon=0.1, n_bins=5, group_size=10, icc=0.3)
    assert grouped.epsilon <= numbers(grouped.sentence)[0]


def forest_like() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of a forest: a quarter are 0 and have a rate of 0.15; few, near 0.7, are off by more.

    Returns labels, scores and true rates.
    """
    rng = np.random.default_rng(3)
    scores = np.where(rng.uniform(size=20_000) < 0.25, 0.0, rng.integers(5, 96, size=20_000) / 100)
    odd = rng.uniform(size=20_000) < 0.02
    scores[odd] = rng.integers(50, 950, size=20_000)[odd] / 1_000
    rates = np.where(scores == 0.0, 0.15, scores)
    rates = np.where((scores > 0.66) & (scores < 0.74), scores - 0.3, rates)
    return rng.uniform(size=20_000) < rates, scores, rates


def test_tied_scores_of_many_rows_are_in_the_notes() -> None:
    y, scores, rates = forest_like()
    found = calibrant.audit(y, scores)
    assert found.worst.low > 0.5
    broad = found.broadest
    assert (broad.low, broad.high, broad.count) == (0.0, 0.0, np.sum(scores == 0.0))
    assert rates[scores == 0.0].max() == 0.15
    assert 0.1 < broad.error <= 0.15  # the true error of this score
    (note,) = (note for note in found.notes if "matters most" in note)
    assert f"score 0 ({broad.count:,} rows) is too low" in note
    assert "is too low by at least 1" in note


def test_the_worst_finding_is_not_said_twice() -> None:
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 4, size=4_000) / 4
    found = calibrant.audit(rng.uniform(size=4_000) < np.where(scores == 0, 0.3, scores), scores)
    assert (found.worst.low, found.worst.high) == (0.0, 0.0)
    assert found.broadest is None
    assert not any("matters most" in note for note in found.notes)


def test_what_matters_most_is_above_the_tolerance() -> None:
    y, scores, _ = forest_like()
    assert calibrant.audit(y, scores, tolerance=0.14).broadest is None
    right = calibrant.audit(y, np.where(scores > 0, 0.5, 0.15))
    assert right.broadest is None


@pytest.mark.parametrize("kind", ["weights", "groups"])
def test_what_matters_most_is_found_with_weights_and_groups(kind) -> None:
    y, scores, rates = forest_like()
    rng = np.random.default_rng(6)
    options = {"groups": np.arange(20_000) // 2, "max_group_size": 2}
    if kind == "weights":
        options = {"importance_weight": rng.uniform(0.5, 1.0, size=20_000), "weight_bound": 1.0}
    found = calibrant.audit(y, scores, **options)
    broad = found.broadest
    assert broad.low == 0.0
    inside = (scores >= broad.low) & (scores <= broad.high)
    true_error = (rates - scores)[inside].mean()
    assert 0.5 * true_error < broad.error <= true_error
    assert found.worst.low > 0.5
    (note,) = (note for note in found.notes if "matters most" in note)
    assert "too low by at least" in note


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_notebook_shows_a_sentence_a_table_and_a_figure_in_little_space(name) -> None:
    pytest.importorskip("matplotlib")
    result = EXAMPLES[name]()
    page = result._repr_html_()
    assert len(page.encode()) <= 40_000
    assert ("<svg" in page) == bool(result.pictures())
    assert page.count("<table") <= 1


def test_the_wrapper_is_small_in_a_notebook() -> None:
    from sklearn.linear_model import LogisticRegression

    model = calibrant.CalibratedClassifier(LogisticRegression()).fit(SCORES[:, None], Y)
    page = model._repr_mimebundle_()["text/html"]
    assert len(page.encode()) <= 40_000
    assert "LogisticRegression" in page
    assert f"within {model.guarantee_.sentence.split('within ')[1][:8]}" in page


def test_score_ranges_have_names_for_people_and_exact_names_for_programs() -> None:
    guarantee = calibrant.BinningCalibrator(4).fit(SCORES, Y).guarantee_
    first = guarantee.to_dict()["regions"][0]["region"]
    edge = float(first.partition(", ")[2][:-1])
    assert first.startswith("(-inf, ")
    assert f"below {edge:.2g} " in str(guarantee)
    assert first not in str(guarantee)
    assert first in guarantee.details
    known = calibrant.Partition.from_edges([0.12341, 0.12344, 0.5]).describe()
    assert [name.in_words for name in known] == [
        "below 0.12341",
        "0.12341 to 0.12344",
        "0.12344 to 0.5",
        "0.5 and above",
    ]
    assert calibrant.Partition.atoms([0.0, 1.0]).describe()[1].in_words == "exactly 0"


def test_every_subgroup_that_is_off_is_listed_once() -> None:
    old = RNG.random(3_000) < 0.5
    young = ~old & (RNG.random(3_000) < 0.5)
    y = RNG.random(3_000) < SCORES + np.where(old, 0.4, -0.4) * SCORES * (1 - SCORES)
    found = calibrant.audit(y, SCORES, attributes={"old": old, "young": young})
    off = [name for one in found.subgroups for name in (one.subgroup, *one.also)]
    assert len(off) >= 3
    told = " ".join(found.remarks)
    assert told.startswith(f"{len(set(off))} of ")
    for name in off:
        assert told.count(f" {name} (") + told.count(f"; {name} (") >= 1
    assert all(text in str(found).replace("\n", " ") for text in found.remarks[:1])


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_short_text_fits_into_a_terminal(name, width) -> None:
    for line in EXAMPLES[name]().as_text(width=width).splitlines():
        assert len(line) <= width or line.startswith("Next: ")
