"""What a guarantee says: its sentence, its remarks, its advice and its warnings."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from calibrant import BinningCalibrator, Guarantee, LabelShiftCalibrator, Partition, Tally
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.errors import CalibrantWarning, WeakGuaranteeWarning
from calibrant.text.result import parts_of
from calibrant.text.sentences import Setting, render
from worlds.guarantees_of_counts import guarantee


def test_an_empty_region_predicts_one_half_and_says_so() -> None:
    empty = guarantee([0, 50], [0, 10])
    assert (empty.value[0], empty.lower[0], empty.upper[0]) == (0.5, 0.0, 1.0)
    assert empty.epsilon == 0.5
    assert empty.is_vacuous
    assert "1 of 2 regions hold no rows" in empty.notes[0]
    assert "guarantees almost nothing so far" in empty.details
    assert empty.verdict == "unclear"


def test_an_epsilon_of_a_quarter_is_little_and_one_below_it_is_not() -> None:
    one = guarantee([500], [100])
    quarter = replace(one, value=np.array([0.5]), lower=np.array([0.25]), upper=np.array([0.75]))
    assert quarter.is_weak
    assert "guarantees little" in quarter.details
    assert not replace(quarter, lower=np.array([0.2501]), upper=np.array([0.7499])).is_weak


@pytest.mark.broad
def test_sentence_never_guarantees_more_than_is_proved() -> None:
    for k in range(28, 501, 7):  # below 5 %, relative limits are stated
        one = guarantee([500] * 4, [k] * 4)
        stated = float(one.sentence.split("within ")[1].split(" points of the prediction")[0]) / 100
        assert one.epsilon <= stated < one.epsilon + 0.001


def test_sentence_names_confidence_regions_label_and_assumption() -> None:
    text = guarantee([500] * 4, [100] * 4, confidence_level=0.95, positive_label="fraud").sentence
    for phrase in (
        "95% confidence",
        "In each of 4 score ranges",
        "the true rate of 'fraud'",
        "if new rows are like these 2,000",
    ):
        assert phrase in text


def test_a_caveat_withdraws_the_guarantee_and_keeps_the_numbers() -> None:
    proved = guarantee([500] * 4, [100] * 4)
    withdrawn = proved.with_caveat("the weights were guessed")
    assert proved.is_proved
    assert not withdrawn.is_proved
    assert withdrawn.epsilon == proved.epsilon
    assert withdrawn.sentence == "Nothing is guaranteed: the weights were guessed."


def test_ties_that_make_small_regions_are_remarked_upon() -> None:
    rng = np.random.default_rng(3)
    scores = np.round(rng.uniform(size=2000), 3)
    one = (
        BinningCalibrator(n_bins=10, pilot=None)
        .fit(scores, rng.uniform(size=2000) < scores)
        .guarantee_
    )
    assert any("pilot='auto'" in remark for remark in one.notes)
    split = BinningCalibrator(n_bins=10, pilot=0.2, random_state=0).fit(
        scores, rng.uniform(size=2000) < scores
    )
    assert not any("tied" in note for note in split.guarantee_.notes)
    assert split.guarantee_.epsilon < one.epsilon


def test_advice_for_tied_scores_is_to_let_them_share_a_bin() -> None:
    rng = np.random.default_rng(5)
    scores = np.round(rng.uniform(size=1000), 1)
    tied = BinningCalibrator(n_bins=10, pilot=None).fit(scores, rng.uniform(size=1000) < scores)
    assert "Scores are tied: use pilot='auto' or fewer bins" in tied.guarantee_.details
    shared = BinningCalibrator(n_bins=10, pilot=0.2, random_state=0).fit(
        scores, rng.uniform(size=1000) < scores
    )
    assert not shared.guarantee_.is_vacuous


@pytest.mark.parametrize("label", ["{0}", "}", "{n:,}", "{", "%s"])
def test_a_class_label_is_printed_as_it_is(label: str) -> None:
    rng = np.random.default_rng(6)
    scores = rng.uniform(size=200)
    y = np.where(rng.uniform(size=200) < scores, label, "other")
    fitted = BinningCalibrator(n_bins=2, pos_label=label).fit(scores, y)
    assert f"the true rate of {label!r} is within" in fitted.guarantee_.details


def test_a_segment_name_is_printed_as_it_is() -> None:
    scores = np.linspace(0.0, 1.0, 8)
    fitted = BinningCalibrator(n_bins=1, segment_rule=None).fit(
        scores, [0] * 8, segments=["{0}"] * 6 + ["}"] * 2, classes=(0, 1)
    )
    said = "This guarantees almost nothing so far: the region '}: all scores' contains 2 rows."
    assert said in fitted.guarantee_.details


def test_details_are_the_sentence_the_table_and_the_assumptions() -> None:
    found = guarantee([500] * 4, [100] * 4)
    assert (
        found.sentence
        == "In each of 4 score ranges, the true rate is within 4.4 points of the prediction (90%"
        " confidence, all ranges together, if new rows are like these 2,000)."
    )
    said, table, assumed = found.details.split("\n\n")
    assert said == f"OK  {found.sentence}"
    assert len(table.splitlines()) == 5
    assert (
        assumed == "Assumptions: calibration rows and future rows are independent draws from one"
        " distribution; the model behind the scores was not trained on the calibration rows."
    )


def test_a_sentence_can_be_said_in_the_words_of_another_tool() -> None:
    rng = np.random.default_rng(5)
    scores = np.round(rng.uniform(size=1000), 1)
    tied = (
        BinningCalibrator(n_bins=10, pilot=None)
        .fit(scores, rng.uniform(size=1000) < scores)
        .guarantee_
    )

    def option(setting: Setting) -> str:
        return f"--{setting.parameter} {setting.value}"

    details = "\n".join(parts_of(tied, option, 200, details=True))
    assert "use --pilot auto or fewer bins" in details
    assert render(tied.advice, option) == "Scores are tied: use --pilot auto or fewer bins"
    assert tied.advice == "Scores are tied: use pilot='auto' or fewer bins"
    assert pickle.loads(pickle.dumps(tied.advice)).parts == tied.advice.parts  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda fitted: pickle.loads(pickle.dumps(fitted))]
)
def test_a_copied_calibrator_says_the_same_of_a_parameter_that_was_not_given(copied) -> None:
    scores = np.random.default_rng(0).uniform(size=200)
    fitted = BinningCalibrator(2).fit(scores, np.arange(200) % 2, importance_weight=0.5 + scores)
    assert "Nothing is guaranteed: weight_bound was not given" in fitted.guarantee_.sentence
    assert str(copied(fitted).guarantee_) == str(fitted.guarantee_)


def test_more_regions_than_bins_are_explained() -> None:
    rng = np.random.default_rng(7)
    scores = np.round(rng.uniform(size=4000), 2)
    y = rng.uniform(size=4000) < scores
    tied = BinningCalibrator(n_bins=5, pilot=None).fit(scores, y)
    assert "The 9 regions are 5 bins and 4 single score values." in tied.guarantee_.details
    groups = np.where(rng.uniform(size=4000) < 0.5, "a", "b")
    grouped = BinningCalibrator(n_bins=5, partition="uniform").fit(scores, y, segments=groups)
    assert "The 10 regions are bins within 2 segments." in grouped.guarantee_.details
    merged = (
        BinningCalibrator(n_bins=5, pilot=0.5, random_state=0)
        .fit(np.maximum(scores, 0.5), y)
        .guarantee_
    )
    assert (
        f"scores are tied: 5 bins asked for, {len(merged.regions)} score ranges made"
        in merged.notes
    )


def test_two_caveats_are_both_told() -> None:
    one = guarantee([500], [100]).with_caveat(
        "weights were guessed", supposition="the guess is right"
    )
    both = one.with_caveat("models saw these rows")
    assert both.caveat == "weights were guessed; and models saw these rows"
    assert both.supposition == "the guess is right and that makes no difference"


def few_rows(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    scores = np.random.default_rng(0).uniform(size=n)
    return scores, np.random.default_rng(1).uniform(size=n) < scores


@pytest.mark.parametrize(
    ("calibrator", "told"),
    [
        (BinningCalibrator(5), {}),
        (ScalingBinningCalibrator(n_bins=4), {}),
        (LabelShiftCalibrator(5), {"target_prior": 0.4}),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_fit_that_proves_little_warns_once_and_says_what_to_do(calibrator, told) -> None:
    with pytest.warns(CalibrantWarning) as caught:
        calibrator.fit(*few_rows(), **told)
    assert [warning.category for warning in caught] == [WeakGuaranteeWarning]
    assert "Use fewer bins or more rows" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert calibrator.guarantee_.weakness in calibrator.guarantee_.details


@pytest.mark.filterwarnings("error")
def test_a_fit_that_proves_enough_and_a_loaded_model_do_not_warn() -> None:
    fitted = BinningCalibrator(5).fit(*few_rows(2_000))
    assert fitted.guarantee_.weakness is None
    with pytest.warns(WeakGuaranteeWarning):
        weak = BinningCalibrator(5).fit(*few_rows())
    BinningCalibrator.from_dict(weak.to_dict())
    BinningCalibrator.from_tally(weak.partition_, weak.tally_)


def test_the_advice_for_a_single_bin_is_more_rows() -> None:
    assert "the score range '0 to 1' contains 5 rows. Use more rows." in guarantee([5], [2]).details


@pytest.mark.parametrize("pilot", ["auto", 0.2, None])
def test_nothing_is_assumed_of_the_order_of_rows(pilot) -> None:
    y = np.repeat([0, 1], 200)
    for scores in (np.linspace(0.0, 1.0, 400), np.tile([0.25, 0.75], 200)):
        fitted = BinningCalibrator(2, pilot=pilot).fit(scores, y)
        assert not any("order of the rows" in text for text in fitted.guarantee_.assumptions)


@pytest.mark.parametrize(
    ("counts", "mass"),
    [
        ([300, 9_700], 1.0),
        ([1, 9_999], 0.99),
        ([0, 10_000], 0.99),
        ([0, 300], 0.95),
        ([0, 100], 0.9),
        ([0, 30], 1.0),
    ],
)
def test_the_sentence_leaves_out_a_hundredth_or_more_only_where_nothing_else_is_said(
    counts, mass
) -> None:
    """Of 300 rows, an empty region holds at most .027.

    One with 300 of 10,000 rows is left out at .95, unasked.
    """
    partition = Partition.fixed_width(2)
    tally = Tally.from_counts(counts, [count // 2 for count in counts], partition=partition)
    found = Guarantee.from_tally(partition, tally, confidence_level=0.9)
    assert found.restricted_to(0.95).epsilon < 0.9 * found.epsilon or counts[1] < 300
    assert found.stated.mass == pytest.approx(mass)
    assert (found.stated.epsilon < found.epsilon) == (mass < 1.0)
