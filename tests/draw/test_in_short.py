"""The plain words for an answer are short, and never say more than the answer."""

import re
from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant.draw.report.headline import headline
from calibrant.draw.report.in_short import in_short, points
from result_examples import EXAMPLES

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=3_000)
Y = (RNG.uniform(size=3_000) < SCORES**2).astype(int)
SPOKEN = ("Audit", "Guarantee", "NoGuarantee", "Threshold", "Decisions", "Differences", "Rate")
SPOKEN += ("Plan", "Exchangeability", "MonitorSnapshot")


@pytest.mark.parametrize("name", EXAMPLES)
def test_they_are_short(name) -> None:
    said = in_short(EXAMPLES[name]())
    if name in SPOKEN:
        assert said is not None
    if said is not None:
        assert len(said.split()) <= 45
        assert said[0].isupper() or said[0] == "'"
        assert said.endswith(".")


def numbers(text: str) -> list[float]:
    return [float(number) / 100 for number in re.findall(r"([\d.]+) percentage points?", text)]


@pytest.mark.parametrize("epsilon", [0.04701, 0.01, 0.0999999, 0.000123456])
def test_a_bound_in_points_is_not_smaller_than_the_bound(epsilon) -> None:
    guarantee = calibrant.BinningCalibrator(4).fit(SCORES, Y).guarantee_
    low = np.zeros_like(guarantee.value)
    made = replace(guarantee, value=low, lower=low, upper=low + epsilon, mass_limits=None)
    (shown,) = numbers(in_short(made))
    assert epsilon <= shown <= 1.1 * epsilon


def test_a_proved_error_in_points_is_not_larger_than_the_error() -> None:
    found = calibrant.audit(Y, SCORES)
    said = in_short(found)
    (shown,) = numbers(said)
    assert 0.9 * found.worst.error <= shown <= found.worst.error
    assert "too high" in said
    assert "i.i.d." in said


def test_a_difference_is_within_its_limits() -> None:
    models = {"old": SCORES, "new": SCORES**2}
    found = calibrant.compare_models(Y, models)
    said = in_short(found)
    assert said.startswith("'new' is better than 'old'")
    low, high = map(float, re.search(r"lower by ([\d.]+) to ([\d.]+) \(", said).groups())
    brier = next(one for one in found.differences if one.measure == "Brier score")
    assert low <= brier.lower <= brier.upper <= high


def test_what_is_not_proved_is_not_said() -> None:
    """Nothing is said where only the long sentence is exact."""
    weighted = calibrant.AnchoredCalibrator(n_bins=4).fit(
        SCORES, Y, importance_weight=0.5 + SCORES, weight_bound=1.5
    )
    assert in_short(weighted.guarantee_) is None
    audited = calibrant.audit(Y, SCORES, importance_weight=0.5 + SCORES, weight_bound=1.5)
    assert in_short(audited) is None
    fitted = calibrant.BinningCalibrator(4).fit(SCORES, Y)
    assert in_short(fitted.guarantee_.with_caveat("folds were used")) is None
    nothing = np.zeros_like(fitted.guarantee_.value)
    vacuous = replace(fitted.guarantee_, lower=nothing, upper=nothing + 1.0, mass_limits=None)
    assert in_short(vacuous) is None


def test_another_population_is_not_left_out() -> None:
    """Precision in the weighted population; groups that count up to a cap, or all the same."""
    weights = np.where(Y, 2.0, 0.2)
    weighted = calibrant.threshold(
        Y, SCORES, precision=0.6, importance_weight=weights, weight_bound=2.0
    )
    assert "This is about the weighted population." in weighted.sentence
    assert in_short(weighted) is None
    groups = np.arange(SCORES.size) // 4
    capped = {"groups": groups, "max_group_size": 2}
    cut = calibrant.threshold(Y, SCORES, precision=0.4, **capped)
    assert cut.above_cap > 0.0
    cap = f"if a group counts as at most {cut.max_group_size} row"
    assert cap in in_short(cut)
    never = calibrant.threshold(Y, SCORES, precision=0.9999, **capped)
    assert in_short(never).startswith("A precision of 99.99% cannot be proved with these ")
    assert cap in in_short(never)
    bins = calibrant.BinningCalibrator(2)
    assert in_short(bins.fit(SCORES, Y, **capped).guarantee_) is None
    equal = bins.fit(SCORES, Y, groups=groups, max_group_size=4, group_target="groups")
    assert in_short(equal.guarantee_) is None
    rows = bins.fit(SCORES, Y, groups=groups, max_group_size=4)
    assert "as long as new groups are like these" in in_short(rows.guarantee_)


def _too_high():
    """Audits of scores that are too high by 0.2, whatever the attribute."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        scores = rng.uniform(0.3, 0.7, size=4_000)
        y = rng.random(4_000) < scores - 0.2
        yield calibrant.audit(y, scores, attributes={"side": rng.random(4_000) < 0.5})


def test_all_rows_are_not_called_a_subgroup() -> None:
    # all rows come first in most data sets, but not in all: halves are drawn at random
    found = next(one for one in _too_high() if one.by_attributes.findings[0].subgroup == "all rows")
    assert "scores of all rows are too high" in in_short(found)
    hidden = replace(found, lower_bound=0.0, findings=())
    everything = found.by_attributes.findings[0]
    alone = replace(found.by_attributes, findings=(replace(everything, also=()),))
    said = replace(hidden, by_attributes=alone).sentence
    assert "at any score, but scores are proved to be off in the whole sample, with 95%" in said
    assert "subgroup" not in said
    assert alone.sentence.startswith("The scores of all rows together are proved to be off")
    both = replace(found.by_attributes, findings=(replace(everything, also=("side = True",)),))
    said = replace(hidden, by_attributes=both).sentence
    assert "off in the whole sample and in some subgroups, with 95%" in said
    unknown = replace(found.by_attributes, findings=())
    said = replace(hidden, by_attributes=unknown).sentence
    assert "some subgroup, or the whole sample, is proved to be off" in said
    new_rows = replace(alone, target="population")
    assert "off in the whole population" in replace(hidden, by_attributes=new_rows).sentence


def test_all_rows_are_not_counted_as_one_more_subgroup() -> None:
    rng = np.random.default_rng(2)
    scores = rng.uniform(0.3, 0.7, size=4_000)
    y = rng.random(4_000) < scores - 0.2
    found = calibrant.audit(y, scores, attributes={"side": rng.random(4_000) < 0.5})
    everything = found.by_attributes.findings[0]
    first = replace(everything, subgroup="side = True", also=("all rows", "side = False"))
    made = replace(found, by_attributes=replace(found.by_attributes, findings=(first,)))
    assert "1 more subgroup is proved to be off" in in_short(made)
    first = replace(first, also=("all rows",))
    made = replace(found, by_attributes=replace(found.by_attributes, findings=(first,)))
    assert "more subgroup" not in in_short(made)


def test_a_subgroup_that_is_off_is_named_first() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 0.7, size=8_000)
    side = rng.random(8_000) < 0.5
    y = rng.random(8_000) < scores + np.where(side, 0.12, -0.12)
    found = calibrant.audit(y, scores, attributes={"side": side})
    assert found.worst is None
    worst = found.by_attributes.findings[0]
    said = in_short(found)
    assert f"of the subgroup {worst.subgroup} are too" in said
    assert "too high" in worst.direction or "too low" in said
    (shown,) = numbers(said)
    assert 0.9 * worst.error <= shown <= worst.error
    assert "1 more subgroup is proved to be off" in said
    assert headline(found).tag == "Proved miscalibrated in a subgroup"
    assert "but some subgroup is proved to be off" in found.sentence
    unnamed = replace(found, by_attributes=replace(found.by_attributes, findings=()))
    assert "do not show which" in in_short(unnamed)


def test_where_no_subgroup_is_off_none_is_named() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.3, 0.7, size=2_000)
    found = calibrant.audit(
        rng.random(2_000) < scores, scores, attributes={"side": rng.random(2_000) < 0.5}
    )
    assert "do not show that the scores, or those of a subgroup, are wrong" in in_short(found)
    assert headline(found).tag == "No evidence"


def test_a_segment_is_not_taken_for_a_score() -> None:
    """Segment 1 is off, not the scores that are 1."""
    segments = np.where(np.arange(3_000) % 2, 1, 2)
    y = np.where(segments == 1, Y, RNG.uniform(size=3_000) < SCORES)
    found = calibrant.audit(y, SCORES, segments=segments)
    assert "some scores in segment 1 are too high" in in_short(found)


def test_two_thresholds_are_both_said() -> None:
    both = calibrant.threshold(Y, SCORES**2, precision=0.7, npv=0.8)
    assert all(cut.threshold is not None for cut in both.cuts)
    assert re.search(
        "or more are positive and at least 80% of the rows .* negative", in_short(both)
    )
    one = calibrant.threshold(Y, SCORES**2, precision=0.9999, npv=0.8)
    assert in_short(one).endswith("A precision of 99.99% cannot be proved.")
    none = calibrant.threshold(Y, SCORES**2, precision=0.9999, npv=0.9999)
    assert in_short(none) == (
        "A precision of 99.99% and npv of 99.99% cannot be proved with these 3,000 rows."
    )
    parts = np.where(np.arange(3_000) % 2, "a", "b")
    by_segment = calibrant.threshold(Y, SCORES**2, precision=0.7, segments=parts)
    n_proved = sum(cut.threshold is not None for cut in by_segment.cuts)
    assert f"{n_proved} of 2 thresholds by segment are proved" in in_short(by_segment)


def test_a_plan_by_estimate_says_so() -> None:
    grouped = calibrant.plan(epsilon=0.1, n_bins=5, group_size=10, icc=0.3)
    curve = calibrant.plan(epsilon=0.1, n_bins=5, calibrator="AnchoredCalibrator")
    for found in (grouped, curve):
        said = in_short(found)
        assert said.startswith(f"Label {found.n:,} rows")
        assert said.endswith("This is an estimate.")
        (shown,) = numbers(said)
        assert found.epsilon <= shown


def test_a_plan_names_its_method_and_the_number_for_the_default() -> None:
    wanted = in_short(calibrant.plan(epsilon=0.03))
    assert wanted.startswith("Label 19,451 rows drawn at random, fit with binning, and")
    assert wanted.endswith("The default, anchored, needs about 22,984 rows if rates rise smoothly.")
    given = in_short(calibrant.plan(n=20_000))
    assert "The default, anchored, reaches about 3.3 percentage points if rates rise" in given
    assert "default" not in in_short(calibrant.plan(n=20_000, base_rate=0.1))


def test_average_is_said_of_a_curve() -> None:
    curve = calibrant.AnchoredCalibrator(n_bins=4).fit(SCORES, Y).guarantee_
    bins = calibrant.BinningCalibrator(4).fit(SCORES, Y).guarantee_
    assert "the average calibrated probability" in in_short(curve)
    assert "the calibrated probability" in in_short(bins)


def test_points_keep_every_digit() -> None:
    assert [points(text) for text in ("0.000012", "1", "0.01")] == [
        "0.0012 percentage points",
        "100 percentage points",
        "1 percentage point",
    ]


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


def test_tied_scores_of_many_rows_are_named_in_short() -> None:
    y, scores, rates = forest_like()
    found = calibrant.audit(y, scores)
    assert found.worst.low > 0.5
    broad = found.broadest
    assert (broad.low, broad.high, broad.count) == (0.0, 0.0, np.sum(scores == 0.0))
    assert rates[scores == 0.0].max() == 0.15
    assert 0.1 < broad.error <= 0.15  # the true error of this score
    said = in_short(found)
    assert f"those of the {broad.count:,} rows with score 0 (" in said
    assert "are too low by at least 1" in said
    assert len(said.split()) <= 45
    (note,) = (note for note in found.notes if "matters most" in note)
    assert "with score 0 (" in note


def test_the_worst_finding_is_not_said_twice() -> None:
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 4, size=4_000) / 4
    found = calibrant.audit(rng.uniform(size=4_000) < np.where(scores == 0, 0.3, scores), scores)
    assert (found.worst.low, found.worst.high) == (0.0, 0.0)
    assert found.broadest is None
    assert ", and those of" not in in_short(found)
    assert not any("matters most" in note for note in found.notes)


def test_what_matters_most_is_above_the_tolerance() -> None:
    y, scores, _ = forest_like()
    assert calibrant.audit(y, scores, tolerance=0.14).broadest is None
    right = calibrant.audit(y, np.where(scores > 0, 0.5, 0.15))
    assert right.broadest is None


def test_the_answer_of_an_audit_is_short_whatever_the_names() -> None:
    """Segments and subgroups with long names, beside scores that matter more."""
    rng = np.random.default_rng(5)
    words = "north of the old river"
    few = np.arange(20_000) < 600
    segments = np.where(few, words, "a")
    scores = np.where(few, rng.uniform(0.6, 0.7, 20_000), rng.uniform(0.1, 0.3, 20_000))
    y = rng.uniform(size=20_000) < scores + np.where(few, -0.35, 0.1)
    found = calibrant.audit(y, scores, segments=segments, n_bins=4)
    assert found.worst.segment is not None
    assert found.broadest is not None
    assert found.broadest.low < found.broadest.high
    said = in_short(found)
    assert len(said.split()) <= 45
    assert f"in segment {found.worst.segment!r}" in said
    longer = replace(found.worst, segment=" ".join([words] * 7))
    said = in_short(replace(found, findings=(longer,)))
    assert len(said.split()) <= 45
    assert "some scores in one segment are too" in said
    rng = np.random.default_rng(1)
    side = rng.random(8_000) < 0.5
    scores = rng.uniform(0.3, 0.7, size=8_000)
    y = rng.random(8_000) < scores + np.where(side, 0.12, -0.12)
    for size in (1, 2, 3, 20):
        found = calibrant.audit(y, scores, attributes={" ".join(["side"] * size): side})
        assert len(in_short(found).split()) <= 45


@pytest.mark.parametrize("kind", ["weights", "groups"])
def test_what_matters_most_is_found_with_weights_and_groups(kind) -> None:
    """The error is about the population, and the note doesn't claim it for the rows."""
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
    assert "in the region of the " in note
    assert "scores are too low by at least" in note
