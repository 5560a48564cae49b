"""`plan_rate`: what it plans is what `rate` gives, and what it calls feasible is exact."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from calibrant import plan_rate, rate
from calibrant.assess.rates.label_counts import most_negative_labels
from calibrant.errors import InvalidTypeError, InvalidValueError


def limits_with(n_labels, failures, n_items=10_000):
    y = np.full(n_items, np.nan)
    y[:n_labels] = 1
    y[:failures] = 0
    return rate(y, np.ones(n_items))


@pytest.mark.parametrize("n_labels", [59, 100, 200, 500])
def test_the_line_of_feasibility_is_exact(n_labels):
    most = most_negative_labels(n_labels, 10_000, 0.95)
    assert limits_with(n_labels, most).lower_alone >= 0.95
    assert limits_with(n_labels, most + 1).lower_alone < 0.95


def test_two_hundred_labels_show_95_percent_only_if_at_most_4_fail():
    plan = plan_rate(at_least=0.95, n_items=10_000, n_labels=200)
    assert plan.feasible == ((200, 4),)
    assert plan.notes == ("With 200 labels, 95% can be shown only if at most 4 fail.",)


def test_the_fewest_labels_show_it_only_if_none_fails():
    fewest = plan_rate(at_least=0.95, n_items=10_000).fewest_labels
    assert fewest is not None
    assert limits_with(fewest, 0).lower_alone >= 0.95
    assert limits_with(fewest - 1, 0).lower_alone < 0.95


def test_one_label_is_enough_for_a_rate_that_few_items_without_it_leave():
    """A positive label shows a rate of 1%: below it, one is drawn with probability less than 5%."""
    assert plan_rate(at_least=0.01, n_items=10_000).fewest_labels == 1


@pytest.mark.slow
@pytest.mark.parametrize("judge", [None, (0.97, 0.95)])
def test_a_planned_width_is_about_the_width_of_limits(judge):
    good = (np.arange(4000) < 3200).astype(int)
    how = {} if judge is None else {"sensitivity": judge[0], "specificity": judge[1]}
    n_labels = plan_rate(width=0.06, n_items=4000, expected_rate=0.8, **how).n_labels
    assert n_labels is not None
    rng = np.random.default_rng(0)
    widths = []
    for _ in range(20):
        verdict = (
            np.ones(4000)
            if judge is None
            else np.where(good == 1, rng.random(4000) < 0.97, rng.random(4000) > 0.95)
        )
        y = np.full(4000, np.nan)
        drawn = rng.choice(4000, n_labels, replace=False)
        y[drawn] = good[drawn]
        found = rate(y, verdict)
        widths.append(found.upper - found.lower)
    assert np.mean(widths) == pytest.approx(0.06, rel=0.08)


@pytest.mark.slow
def test_planned_labels_show_the_rate_about_as_often_as_planned():
    plan = plan_rate(at_least=0.9, n_items=4000, expected_rate=0.95, probability=0.8)
    assert plan.n_labels is not None
    rng = np.random.default_rng(1)
    good = (np.arange(4000) < 3800).astype(int)
    shown = 0
    for _ in range(200):
        y = np.full(4000, np.nan)
        drawn = rng.choice(4000, plan.n_labels, replace=False)
        y[drawn] = good[drawn]
        shown += rate(y, np.ones(4000)).check(at_least=0.9) == "shown"
    assert 0.7 < shown / 200 < 0.95


def test_a_judge_saves_labels():
    alone = plan_rate(at_least=0.95, n_items=10_000, expected_rate=0.97).n_labels
    judged = plan_rate(
        at_least=0.95, n_items=10_000, expected_rate=0.97, sensitivity=0.98, specificity=0.9
    ).n_labels
    assert alone is not None
    assert judged is not None
    assert judged < 0.7 * alone


@pytest.mark.parametrize(("rate_of_good", "n_labels"), [(0.95, 177), (0.97, 75)])
def test_the_probability_of_a_plan_is_exact_and_one_label_fewer_has_less(rate_of_good, n_labels):
    """By the law of the labels: the plan is the fewest labels that show it with 80%."""
    plan = plan_rate(at_least=0.9, n_items=4000, expected_rate=rate_of_good)
    assert plan.n_labels == n_labels
    chances = []
    for count in range(n_labels - 40, n_labels + 1):
        most = most_negative_labels(count, 4000, 0.9)
        chances.append(hypergeom.cdf(most, 4000, round(4000 * (1 - rate_of_good)), count))
    assert chances[-1] >= 0.8
    assert max(chances[:-1]) < 0.8


def test_a_plan_with_a_judge_is_shown_as_often_as_stated():
    plan = plan_rate(
        at_least=0.95, n_items=10_000, expected_rate=0.97, sensitivity=0.98, specificity=0.9
    )
    assert plan.n_labels == 280
    rng = np.random.default_rng(2)
    good = (np.arange(10_000) < 9_700).astype(int)
    shown = 0
    for _ in range(150):
        judge = np.where(good == 1, rng.random(good.size) < 0.98, rng.random(good.size) > 0.9)
        y = np.full(good.size, np.nan)
        drawn = rng.choice(good.size, plan.n_labels, replace=False)
        y[drawn] = good[drawn]
        shown += rate(y, judge).check(at_least=0.95) == "shown"
    assert 0.68 < shown / 150 < 0.92


def test_a_rate_below_the_target_is_never_shown():
    plan = plan_rate(at_least=0.95, expected_rate=0.9)
    assert plan.n_labels is None
    assert plan.sentence.startswith("No number of labels")


@pytest.mark.parametrize(
    ("settings", "parameter", "kind"),
    [
        ({}, "width", InvalidTypeError),
        ({"width": 0.1, "at_least": 0.9}, "width", InvalidTypeError),
        ({"width": 0.1, "sensitivity": 0.9}, "sensitivity", InvalidTypeError),
        ({"width": 2}, "width", InvalidValueError),
        ({"at_least": 95}, "at_least", InvalidValueError),
        ({"width": 0.1, "n_items": 0}, "n_items", InvalidValueError),
    ],
)
def test_bad_settings_name_the_parameter(settings, parameter, kind):
    with pytest.raises(kind) as raised:
        plan_rate(**settings)
    assert raised.value.parameter == parameter


def test_more_labels_than_items_are_refused():
    with pytest.raises(InvalidValueError) as caught:
        plan_rate(at_least=0.95, n_items=100, n_labels=101)
    assert caught.value.parameter == "n_labels"
    with pytest.raises(InvalidTypeError) as caught:
        plan_rate(width=0.1, n_items=100, n_labels=50)
    assert caught.value.parameter == "n_labels"


def test_the_lines_of_feasibility_say_that_they_leave_out_the_judge():
    judged = plan_rate(at_least=0.95, n_items=1_000, sensitivity=0.9, specificity=0.9)
    assert "labels alone" in judged.notes[-1]
    assert "expected rate" in judged.notes[-1]
    assert not any("alone" in note for note in plan_rate(at_least=0.95, n_items=1_000).notes)


def test_at_most_is_the_mirror_image_of_at_least() -> None:
    """Swap the classes: the same labels, with the same probability."""
    at_least = plan_rate(
        at_least=0.9, n_items=5_000, expected_rate=0.94, sensitivity=0.95, specificity=0.8
    )
    at_most = plan_rate(
        at_most=0.1, n_items=5_000, expected_rate=0.06, sensitivity=0.8, specificity=0.95
    )
    assert (at_most.at_least, at_most.at_most) == (None, 0.1)
    assert at_most.n_labels == at_least.n_labels
    assert at_most.fewest_labels == at_least.fewest_labels
    assert at_most.feasible == at_least.feasible
    assert "the probability of showing a rate of at most 10%" in at_most.sentence
    assert at_most.tables()[0].columns.keys() == {"n_labels", "most_positive"}


def test_a_planned_share_of_bad_answers_is_shown_as_often_as_stated() -> None:
    """Known truth: 5% are bad."""
    plan = plan_rate(at_most=0.1, n_items=4000, expected_rate=0.05, probability=0.8)
    rng = np.random.default_rng(0)
    truth = np.zeros(4000)
    truth[:200] = 1
    shown = 0
    for _ in range(200):
        y = np.full(4000, np.nan)
        drawn = rng.choice(4000, plan.n_labels, replace=False)
        y[drawn] = truth[drawn]
        shown += rate(y, np.ones(4000)).check(at_most=0.1) == "shown"
    assert 0.7 <= shown / 200 <= 0.92


def test_what_labels_can_show_of_a_low_rate_is_exact() -> None:
    plan = plan_rate(at_most=0.05, n_items=10_000, n_labels=200)
    ((count, most),) = plan.feasible
    assert (count, most) == (200, 4)
    assert plan.notes == (
        "With 200 labels, at most 5% can be shown only if at most 4 are positive.",
    )
    for positives, answer in ((most, "shown"), (most + 1, "undecided")):
        y = np.full(10_000, np.nan)
        y[:200] = np.arange(200) < positives
        assert rate(y, np.ones(10_000)).check(at_most=0.05) == answer
    assert plan.sentence.endswith("even if none of them is positive.")


@pytest.mark.parametrize(
    "given",
    [
        {"at_least": 0.9, "at_most": 0.95},
        {"width": 0.1, "at_most": 0.9},
        {"width": 0.1, "at_least": 0.9, "at_most": 0.9},
    ],
)
def test_one_question_at_a_time(given) -> None:
    with pytest.raises(InvalidTypeError, match="give exactly one of the three"):
        plan_rate(**given)
