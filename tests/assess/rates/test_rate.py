"""`rate`: what it takes, what it says, and what "auto" depends on."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from calibrant import rate
from calibrant.assess.rates.drawn import LEVEL, check_draw
from calibrant.assess.rates.items import read_items
from calibrant.errors import InvalidTypeError, InvalidValueError


def world(seed=0, n_items=1000, share=0.9, right=0.95):
    """Labels of all items, and verdicts that are right with some probability."""
    rng = np.random.default_rng(seed)
    good = (rng.random(n_items) < share).astype(int)
    judge = np.where(rng.random(n_items) < right, good, 1 - good)
    return good, judge, rng


def some_labels(good, rng, n_labels=100):
    y = np.full(good.size, np.nan)
    drawn = rng.choice(good.size, n_labels, replace=False)
    y[drawn] = good[drawn]
    return y


def test_numbers_of_items_and_labels_and_the_order_of_limits():
    good, judge, rng = world()
    found = rate(some_labels(good, rng), judge)
    assert (found.n_items, found.n_labels, found.target, found.method) == (
        1000,
        100,
        "items",
        "exact",
    )
    assert 0 < found.lower < found.estimate < found.upper < 1
    assert found.lower <= good.mean() <= found.upper


def as_pandas(y):
    import pandas as pd

    return pd.Series(y)


def as_polars(y):
    import polars as pl

    return pl.Series([None if math.isnan(value) else value for value in y])


def as_arrow(y):
    import pyarrow as pa

    return pa.array([None if math.isnan(value) else int(value) for value in y])


@pytest.mark.parametrize(
    "form",
    [
        lambda y: [None if math.isnan(value) else int(value) for value in y],
        lambda y: [None if math.isnan(value) else bool(value) for value in y],
        lambda y: ["" if math.isnan(value) else str(int(value)) for value in y],
        lambda y: np.ma.array(np.nan_to_num(y), mask=np.isnan(y)),
        as_pandas,
        as_polars,
        as_arrow,
    ],
    ids=["list", "bools", "text", "masked", "pandas", "polars", "arrow"],
)
def test_missing_labels_of_any_kind_are_unlabelled_items(form):
    good, judge, rng = world()
    y = some_labels(good, rng)
    labels = form(y)
    pos_label = "1" if isinstance(labels, list) and isinstance(labels[0], str) else None
    found = rate(labels, judge, pos_label=pos_label)
    expected = rate(y, judge)
    assert (found.lower, found.upper, found.n_labels) == (expected.lower, expected.upper, 100)


def test_verdicts_in_words_and_numbers_give_the_same_limits():
    good, judge, rng = world()
    y = some_labels(good, rng)
    words = np.where(judge == 1, "pass", "fail")
    for form in (words, words.astype(object), list(words), judge.astype(bool), 10 * judge - 3):
        found = rate(y, form)
        assert (found.lower, found.upper) == (rate(y, judge).lower, rate(y, judge).upper)


def test_all_labels_alike_get_their_limit():
    _, judge, _ = world()
    y = [1] * 100 + [None] * 900
    found = rate(y, judge)
    assert found.upper == 1.0
    assert 0.9 < found.lower < 1.0
    words = rate(["pass"] * 100 + [None] * 900, judge, pos_label="pass")
    assert words.lower == found.lower
    none_positive = rate(["pass"] * 100 + [None] * 900, judge, pos_label="fail")
    assert none_positive.lower == 0.0
    assert none_positive.upper == pytest.approx(1 - found.lower)


def test_no_label_under_one_verdict_gets_its_limit():
    y = np.full(1000, np.nan)
    y[:60] = 1
    judge = np.ones(1000)
    judge[-100:] = 0
    for method in ("auto", "exact", "bets"):
        found = rate(y, judge, method=method)
        assert found.upper == 1.0
        assert found.lower <= 0.95
    assert rate(y, judge, method="exact").lower < 0.9  # nothing is known of a tenth of the items


def test_all_items_labelled_is_known_exactly():
    good, judge, _ = world()
    found = rate(good, judge)
    assert found.lower == found.upper == found.estimate == pytest.approx(good.mean())
    assert "all 1,000 labels are known" in found.sentence
    population = rate(good, judge, target="population")
    assert population.lower < good.mean() < population.upper


def test_auto_depends_on_scores_and_numbers_never_on_labels():
    good, judge, rng = world(share=0.5)
    y = some_labels(good, rng, 60)
    labelled = ~np.isnan(y)
    for scores in (judge, rng.random(1000), np.ones(1000), np.arange(1000) < 5):
        methods = set()
        for labels in (np.zeros(60), np.ones(60), rng.integers(0, 2, 60), np.arange(60) % 2):
            changed = y.copy()
            changed[labelled] = labels
            methods.add(rate(changed, scores).method)
        assert len(methods) == 1
    assert rate(y, np.ones(1000)).method == "labels"
    assert rate(y, np.arange(1000) < 5).method == "labels"
    assert rate(y, judge).method == "exact"


def test_many_labels_are_bet_on():
    good, judge, rng = world(n_items=5000)
    found = rate(some_labels(good, rng, 2100), judge)
    assert found.method == "bets"
    assert found.lower <= good.mean() <= found.upper
    assert found.upper - found.lower < 0.02


def test_a_good_judge_makes_limits_narrower_than_labels_alone():
    good, judge, rng = world(n_items=4000, share=0.8, right=0.97)
    y = some_labels(good, rng, 200)
    alone = rate(y, judge, method="labels")
    for method in ("exact", "bets"):
        found = rate(y, judge, method=method)
        assert found.upper - found.lower < 0.75 * (alone.upper - alone.lower)


def test_flipping_labels_and_verdicts_mirrors_the_limits():
    good, judge, rng = world()
    y = some_labels(good, rng)
    for method in ("exact", "labels"):
        one = rate(y, judge, method=method)
        two = rate(1 - y, 1 - judge, method=method)
        assert (two.lower, two.upper) == pytest.approx((1 - one.upper, 1 - one.lower))


def test_the_same_call_gives_the_same_answer():
    good, judge, rng = world()
    y = some_labels(good, rng)
    for method in ("exact", "bets"):
        assert rate(y, judge, method=method) == rate(y, judge, method=method)


def test_segments_share_one_budget():
    good, judge, rng = world(n_items=3000)
    y = some_labels(good, rng, 300)
    region = np.array(["north", "south", "west"])[np.arange(3000) % 3]
    found = rate(y, judge, segments=region)
    assert [part.segment for part in found.segments] == ["north", "south", "west"]
    assert sum(part.n_items for part in found.segments) == 3000
    assert sum(part.n_labels for part in found.segments) == 300
    alone = rate(y[region == "north"], judge[region == "north"], confidence_level=1 - 0.05 / 4)
    assert (found.segments[0].lower, found.segments[0].upper) == (alone.lower, alone.upper)
    assert "hold together" in found.pictures()[0].description


def test_a_segment_without_labels_has_no_limits():
    good, judge, _ = world(n_items=300)
    y = np.where(np.arange(300) < 40, good, np.nan)
    found = rate(y, judge, segments=np.where(np.arange(300) < 200, "a", "b"))
    assert (found.segments[1].lower, found.segments[1].upper) == (0.0, 1.0)


def test_groups_are_drawn_whole():
    good, judge, rng = world()
    groups = np.arange(1000) // 5
    drawn = rng.choice(200, 40, replace=False)
    y = np.where(np.isin(groups, drawn), good, np.nan)
    found = rate(y, judge, groups=groups)
    assert (found.method, found.n_groups, found.n_labelled_groups) == ("bets", 200, 40)
    assert found.lower <= good.mean() <= found.upper
    assert found.upper - found.lower < 0.25


def test_a_random_draw_that_is_refuted_is_said_first():
    good, judge, _ = world()
    failed = np.flatnonzero(judge == 0)
    y = np.full(1000, np.nan)
    y[failed[:60]] = good[failed[:60]]
    y[np.flatnonzero(judge == 1)[:10]] = 1
    found = rate(y, judge)
    assert found.draw is not None
    assert found.draw.refuted
    assert found.sentence.startswith("The labelled items are not a random draw")
    fine = rate(some_labels(good, np.random.default_rng(3)), judge)
    assert fine.draw is not None
    assert not fine.draw.refuted
    assert "(95% confidence; estimate 89.6%" in fine.sentence


def test_the_sentence_says_whose_rate_it_is():
    good, judge, rng = world()
    y = some_labels(good, rng)
    assert "of these 1,000 items" in rate(y, judge).sentence
    population = rate(y, judge, target="population")
    assert "of the population" in population.sentence
    assert any("independent draws" in text for text in population.assumptions)
    assert "at every look" in rate(y, judge, sequential=True).sentence


def test_the_gate_is_shown_refuted_or_undecided():
    good, judge, rng = world(share=0.9)
    found = rate(some_labels(good, rng), judge)
    assert found.check(at_least=0.5) == "shown"
    assert found.check(at_least=found.lower) == "shown"
    assert found.check(at_least=0.99) == "refuted"
    assert found.check(at_least=found.estimate) == "undecided"


def test_a_result_is_data():
    good, judge, rng = world()
    found = rate(some_labels(good, rng), judge, segments=np.arange(1000) % 2)
    state = json.loads(json.dumps(found.to_dict()))
    assert state["lower"] == found.lower
    assert [row["segment"] for row in state["rates"]] == ["all items", 0, 1]
    assert len(found.to_frame()) == 3
    assert "<table>" in found._repr_html_()
    assert "drawn at random" in found.details


@pytest.mark.parametrize(
    ("y", "scores", "settings", "parameter"),
    [
        ([None, None, np.nan, ""], [1, 0, 1, 0], {}, "y"),
        ([1, 0, 1], [1, 0], {}, "scores and y"),
        ([1, 0, 2, None], [1, 0, 1, 0], {}, "y"),
        ([1, 0, None], [1, None, 0], {}, "scores"),
        ([1, 0, None], [1.0, np.nan, 0.0], {}, "scores"),
        ([1, 0, None], ["pass", "", "fail"], {}, "scores"),
        ([1, 0, None], [], {}, "scores"),
        (["fine", "bad", None], [1, 0, 1], {}, "pos_label"),
        (["fine", "fine", None], [1, 0, 1], {}, "pos_label"),
        ([1, 0, None, None], [1, 0, 1, 0], {"target": "people"}, "target"),
        ([1, 0, None, None], [1, 0, 1, 0], {"method": "clt"}, "method"),
        ([1, 0, None, None], [1, 0, 1, 0], {"confidence_level": 95}, "confidence_level"),
        ([1, 0, None, None], [1, 0, 1, 0], {"groups": [1, 2, 1, 2]}, "groups"),
        ([1, 0, None, None], [1, 0, 1, 0], {"groups": [1, 2, 3]}, "groups"),
        ([1, 0, None, None], [1, 0, 1, 0], {"segments": [1, 2]}, "segments"),
        ([1, 0, 1, None], [1, 0, 1, 0], {"groups": [1, 1, 1, 2], "target": "population"}, "groups"),
    ],
)
def test_bad_input_names_the_parameter(y, scores, settings, parameter):
    with pytest.raises(InvalidValueError) as raised:
        rate(y, scores, **settings)
    assert raised.value.parameter == parameter


def test_days_of_labels_are_numbers_or_text_and_missing_where_there_is_no_label():
    good, judge, rng = world()
    y = some_labels(good, rng)
    days = rng.integers(1, 6, 1000)
    as_text = [
        None if math.isnan(label) else f"2026-01-0{day}" for label, day in zip(y, days, strict=True)
    ]
    as_numbers = [
        None if math.isnan(label) else int(day) for label, day in zip(y, days, strict=True)
    ]
    expected = rate(y, judge, sequential=days)
    for form in (as_text, as_numbers, days.tolist()):
        found = rate(y, judge, sequential=form)
        assert (found.lower, found.upper) == (expected.lower, expected.upper)
    with pytest.raises(InvalidValueError) as raised:
        rate(y, judge, sequential=[None] * 1000)
    assert raised.value.parameter == "sequential"


@pytest.mark.parametrize("settings", [{"sequential": True}, {"groups": [1, 1, 2, 2]}])
def test_exact_limits_are_for_single_items_and_one_look(settings):
    with pytest.raises(InvalidTypeError) as raised:
        rate([1, 0, None, None], [1, 0, 1, 0], method="exact", **settings)
    assert raised.value.parameter == "method"


def test_a_group_without_a_name_is_refused():
    for missing in (None, float("nan")):
        with pytest.raises(InvalidValueError) as caught:
            rate([1, 1, None, None], [1, 1, 0, 1], groups=[1, 1, missing, missing])
        assert caught.value.parameter == "groups"
        assert "2 such rows" in caught.value.got


def test_a_third_label_gets_advice_for_items():
    with pytest.raises(InvalidValueError) as caught:
        rate(["good", "bad", "unsure", None], [1, 0, 1, 0], pos_label="good")
    assert caught.value.parameter == "y"
    assert "Calibrator" not in str(caught.value)
    assert "leave an entry empty" in str(caught.value)


def test_a_refuted_draw_is_not_called_random_and_decides_nothing():
    judge = np.repeat([1, 0], [900, 100])
    y = np.full(1000, np.nan)
    y[900:] = 0
    found = rate(y, judge)
    assert found.draw.refuted
    assert "p < 0.001" in found.sentence
    assert "The limits may not hold" in found.sentence
    assert found.check(at_least=0.95) == "undecided"


def test_all_labels_are_said_to_be_known_only_where_they_are():
    assert "all 1 labels are known" in rate([1], [1]).sentence
    assert "all 3 labels are known" in rate([1, 1, 0], [1, 1, 0]).sentence
    nearly = rate([1] * 99 + [None], [1] * 100, confidence_level=0.01)
    assert "are known" not in nearly.sentence


@pytest.mark.parametrize("n_labels", [20, 40, 50])
def test_without_a_failure_labels_needed_are_the_fewest_that_show_it(n_labels):
    y = np.full(5_000, np.nan)
    y[:n_labels] = 1
    needed = rate(y, np.ones(5_000)).labels_needed(at_least=0.95)
    y[:needed] = 1
    assert rate(y, np.ones(5_000)).check(at_least=0.95) == "shown"
    y[needed - 2 :] = np.nan
    assert rate(y, np.ones(5_000)).check(at_least=0.95) == "undecided"


def test_labels_needed_are_about_enough_where_some_fail():
    y = np.full(20_000, np.nan)
    y[:100] = np.arange(100) % 50 > 0  # 98 of 100
    needed = rate(y, np.ones(20_000)).labels_needed(at_least=0.95)
    enough = np.full(20_000, np.nan)
    enough[:needed] = np.arange(needed) % 50 > 0
    found = rate(enough, np.ones(20_000))
    assert found.lower_alone == pytest.approx(0.95, abs=0.004)


def test_looks_at_a_population_share_alpha_once():
    """All items labelled, in order: the step to the population keeps its tenth of alpha."""
    good, judge, _ = world(n_items=400)
    alpha = 0.2
    last = rate(good, judge, target="population", sequential=True, confidence_level=1 - alpha)
    once = rate(good, judge, target="population", confidence_level=1 - alpha / 10)
    assert (last.lower, last.upper) == pytest.approx((once.lower, once.upper), abs=1e-12)


def test_at_most_is_decided_by_the_other_limit() -> None:
    y = np.full(2_000, np.nan)
    y[:300] = np.arange(300) % 10 == 0
    found = rate(y, np.ones(2_000))
    assert found.check(at_most=found.upper_alone) == "shown"
    assert found.check(at_most=np.nextafter(found.upper_alone, 0.0)) == "undecided"
    assert found.check(at_most=found.lower_alone) == "undecided"
    assert found.check(at_most=np.nextafter(found.lower_alone, 0.0)) == "refuted"
    other = rate(1 - y, np.ones(2_000))
    for target in (0.05, 0.08, 0.12, 0.15, 0.2):
        assert found.check(at_most=target) == other.check(at_least=1 - target)
        assert found.labels_needed(at_most=target) == other.labels_needed(at_least=1 - target)


@pytest.mark.parametrize("method", ["check", "labels_needed"])
@pytest.mark.parametrize("given", [{}, {"at_least": 0.5, "at_most": 0.6}])
def test_either_at_least_or_at_most_is_asked(method, given) -> None:
    found = rate([1, 0, None], [1, 0, 1])
    with pytest.raises(InvalidTypeError, match="at_least must be given if at_most is not"):
        getattr(found, method)(**given)
    with pytest.raises(InvalidValueError, match=r"at_most .* write 0.1 for 10%"):
        getattr(found, method)(at_most=10)


@pytest.mark.parametrize(("bad", "most"), [(210, 0.05), (100, None)])
def test_a_share_of_bad_items_is_wrongly_shown_in_at_most_alpha(bad, most) -> None:
    """Known truth: 210 or 100 of 2,000 items are bad, and at most 10% is asked for."""
    rng = np.random.default_rng(3)
    truth = np.arange(2_000) < bad
    judge = np.where(rng.random(2_000) < 0.9, truth, ~truth)
    shown = 0
    for _ in range(200):
        y = np.full(2_000, np.nan)
        drawn = rng.choice(2_000, 300, replace=False)
        y[drawn] = truth[drawn]
        shown += rate(y, judge).check(at_most=0.1) == "shown"
    if most is None:
        assert shown > 150
    else:
        assert stats.binom.sf(shown - 1, 200, most) > 0.01


@pytest.mark.parametrize("labels", [np.linspace(0, 1, 20), [0, 1] * 10, ["good", "bad"] * 10])
def test_swapped_scores_and_labels_are_asked_about(labels) -> None:
    few = [1.0, 0.0] + [math.nan] * 18
    with pytest.raises(InvalidValueError, match="are the scores and labels swapped"):
        rate(labels, few)
    with pytest.raises(InvalidValueError) as caught:
        rate(few, few)
    assert "swapped" not in str(caught.value)


@pytest.mark.parametrize("size", [2.0**500, 2.0**1000, 2.0**1023, 2.0**-700, 2.0**-1000])
def test_scores_of_any_size_give_the_same_limits_and_the_same_draw(size) -> None:
    """Sums and squares of scores near 1e300 leave the range of floats unless they are scaled."""
    rng = np.random.default_rng(8)
    good = rng.random(400) < 0.7
    scores = np.where(good, 1.0, -1.0) * rng.uniform(0.2, 1.0, 400)
    y = some_labels(good, rng, 80)
    expected = rate(y, scores)
    found = rate(y, scores * size)
    assert (found.lower, found.upper, found.method) == (expected.lower, expected.upper, "exact")
    assert found.draw is not None
    assert expected.draw is not None
    assert found.draw.p_value == expected.draw.p_value
    groups = np.arange(400) // 4
    drawn = np.where(np.isin(groups, rng.choice(100, 25, replace=False)), good, np.nan)
    grouped = rate(drawn, scores * size, groups=groups).draw
    assert grouped is not None
    assert grouped.p_value == rate(drawn, scores, groups=groups).draw.p_value


def test_labels_drawn_in_each_segment_separately_are_no_random_draw() -> None:
    # the same number of labels in each segment: what they say about all items is wrong
    segments = np.repeat(["large", "small"], [9_000, 1_000])
    caught = missed = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        good = rng.random(10_000) < np.where(segments == "large", 0.95, 0.6)
        y = np.full(10_000, np.nan)
        for place in (slice(0, 9_000), slice(9_000, 10_000)):
            drawn = place.start + rng.choice(place.stop - place.start, 200, replace=False)
            y[drawn] = good[drawn]
        found = rate(y, np.full(10_000, 0.5), segments=segments, method="labels")
        missed += not found.lower <= good.mean() <= found.upper
        assert found.draw is not None
        caught += found.is_doubtful and found.draw.is_segment
    assert missed == 100
    assert caught == 100
    assert "of them are in segment" in found.sentence
    assert found.check(at_least=0.8) == "undecided"


def test_segments_refute_a_random_draw_rarely() -> None:
    rng = np.random.default_rng(9)
    draws = 1_000
    refuted = 0
    segments = rng.integers(0, 6, 2_000)
    scores = rng.random(2_000)
    for _ in range(draws):
        y = np.full(2_000, np.nan)
        y[rng.choice(2_000, 300, replace=False)] = 1.0
        items, _positive = read_items(y, scores, None, None)
        draw = check_draw(items, list(range(6)), segments)
        assert draw is not None
        refuted += draw.refuted
    assert stats.binomtest(refuted, draws, LEVEL, alternative="greater").pvalue > 1e-3


def test_groups_in_one_segment_are_compared_by_their_share() -> None:
    groups = np.repeat(np.arange(400), 5)
    segments = np.where(groups < 300, "a", "b")
    y = np.where(
        (groups % 300) < 40, 1.0, np.nan
    )  # 40 groups of the first 300, and of the last 100
    found = rate(y, np.tile(np.arange(5) / 5, 400), groups=groups, segments=segments)
    assert found.draw is not None
    assert found.draw.is_segment
    assert (found.draw.share_drawn, found.draw.share_all) in ((0.5, 0.75), (0.5, 0.25))


@pytest.mark.parametrize("target", ["items", "population"])
@pytest.mark.parametrize("method", ["bets", "exact", "labels"])
def test_the_code_of_a_verdict_makes_no_difference(target, method):
    rng = np.random.default_rng(0)
    good = rng.random(800) < 0.9
    judge = np.where(rng.random(800) < 0.9, good, ~good)
    y = np.full(800, np.nan)
    y[:100] = good[:100]
    limits = []
    for codes in (judge, judge.astype(float), np.where(judge, 7, 3), np.where(judge, -1, -2)):
        found = rate(y, codes, target=target, method=method)
        limits.append((found.lower, found.upper, found.lower_alone, found.upper_alone))
    assert len(set(limits)) == 1


def test_a_segment_without_labels_has_no_estimate():
    found = rate([1, None, 0, 1] + 4 * [None], [0] * 8, segments=list("aaaabbbb"))
    first, second = found.segments
    assert first.estimate == pytest.approx(2 / 3)
    assert np.isnan(second.estimate)
    assert (second.lower, second.upper) == (0.0, 1.0)
    assert found.to_dict()["rates"][2]["estimate"] is None
    assert found.gate(at_least=0.4).of("undecided")[-1].segment == "b"


@pytest.mark.parametrize("n_items", [300, 4_000])
def test_labels_needed_for_a_population_do_not_depend_on_its_sample_of_items(n_items):
    """The labels that it names show the target, if the estimate stays; an eighth fewer do not."""
    few = rate([1] * 57 + [0] * 3 + [None] * (n_items - 60), [1] * n_items, target="population")
    needed = few.labels_needed(at_least=0.9)
    gate = few.gate(at_least=0.9)
    assert (gate.answer, gate.more_labels) == ("undecided", needed - 60)
    answers = []
    for labels in (needed * 7 // 8, needed):
        wrong = round(labels * 0.05)
        y = [0] * wrong + [1] * (labels - wrong) + [None] * 1_000
        answers.append(rate(y, [1] * len(y), target="population").check(at_least=0.9))
    assert answers == ["undecided", "shown"]
