"""The comparison: measured on rows not fitted on, guarantees taken from the calibrators themselves."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit

from calibrant import (
    BinningCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    Tally,
    compare_calibrators,
)
from calibrant.intervals import clopper_pearson
from calibrant.limits.error_budget import budgets
from calibrant.metrics import brier_score, ece, log_loss
from worlds.guarantees import assert_rare


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=3_000)
    return (rng.uniform(size=3_000) < scores**2).astype(int), scores


def test_every_column_is_what_it_says(rows) -> None:
    y, scores = rows
    folds = KFold(3, shuffle=True, random_state=1)
    result = compare_calibrators(y, scores, {"bins": BinningCalibrator(n_bins=8)}, folds)
    assert result.methods == ("uncalibrated", "bins")
    prediction = np.empty(scores.size)
    for train, test in folds.split(scores[:, None]):
        prediction[test] = (
            BinningCalibrator(n_bins=8).fit(scores[train], y[train]).predict(scores[test])
        )
    assert result.brier[1] == pytest.approx(brier_score(y, prediction).value)
    assert result.log_loss[1] == pytest.approx(log_loss(y, prediction).value)
    assert result.ece[1] == pytest.approx(ece(y, prediction, strategy="uniform").value)
    fitted = BinningCalibrator(n_bins=8, pos_label=1).fit(scores, y, classes=(0, 1))
    assert result.epsilon[1] == fitted.guarantee_.epsilon
    assert result.guarantee[1].sentence == fitted.guarantee_.sentence
    assert result.state_bytes[1] == len(json.dumps(fitted.to_dict(), separators=(",", ":")))
    assert result.n_folds == 3


@pytest.mark.broad
def test_only_calibrators_with_a_proof_have_an_epsilon(rows) -> None:
    result = compare_calibrators(
        *rows, [PlattCalibrator(), IsotonicCalibrator(), BinningCalibrator(n_bins=10)]
    )
    assert np.isnan(result.epsilon[:3]).all()
    assert 0 < result.epsilon[3] < 0.2
    assert "No distribution-free guarantee" in str(result.guarantee[1])


@pytest.mark.broad
def test_calibrating_helps_where_scores_are_off(rows) -> None:
    result = compare_calibrators(*rows, [PlattCalibrator(), BinningCalibrator(n_bins=10)])
    assert (result.brier[1:] < result.brier[0]).all()
    assert (result.ece[1:] < 0.5 * result.ece[0]).all()


def test_probability_zero_given_to_what_happened_is_an_infinite_log_loss() -> None:
    scores = np.repeat([0.1, 0.9], 50)
    y = np.repeat([0, 1], 50)
    y[0] = 1  # in whichever fold it is tested, the bin around 0.1 has seen no positive
    result = compare_calibrators(
        y,
        scores,
        {"bins": BinningCalibrator(n_bins=2, partition="uniform", value="mean")},
        KFold(5),
    )
    assert np.isinf(result.log_loss[1])
    assert " inf " not in str(result)
    assert (
        "infinity: the log loss is infinite because a prediction of exactly 0 or 1 was wrong"
        in result.notes
    )


def test_scores_that_are_no_probabilities_have_no_row_of_their_own(rows) -> None:
    y, scores = rows
    result = compare_calibrators(y, 10 * scores - 5, [PlattCalibrator()])
    assert result.methods == ("Platt",)


@pytest.mark.broad
def test_same_classes_get_numbered_names(rows) -> None:
    result = compare_calibrators(
        *rows, [BinningCalibrator(5), BinningCalibrator(10), BinningCalibrator(20)]
    )
    assert result.methods[1:] == ("Binning", "Binning 2", "Binning 3")


@pytest.mark.broad
def test_text_labels_and_two_columns_work(rows) -> None:
    y, scores = rows
    plain = compare_calibrators(y, scores, [BinningCalibrator(5)])
    columns = np.column_stack([1 - scores, scores])
    named = compare_calibrators(
        np.where(y, "yes", "no"), columns, [BinningCalibrator(5)], pos_label="yes"
    )
    np.testing.assert_allclose(named.brier, plain.brier)
    # where the first class is positive, the first column speaks for it
    first = compare_calibrators(
        np.where(y, "a", "b"), columns[:, ::-1], [BinningCalibrator(5)], pos_label="a"
    )
    np.testing.assert_allclose(first.brier, plain.brier)


def test_given_calibrators_stay_unfitted(rows) -> None:
    calibrator = BinningCalibrator(5)
    compare_calibrators(*rows, [calibrator])
    assert not hasattr(calibrator, "guarantee_")
    assert calibrator.pos_label is None


def test_table_reads_well_and_becomes_a_frame(rows) -> None:
    result = compare_calibrators(
        *rows, {"Platt": PlattCalibrator(), "ten bins": BinningCalibrator(10)}
    )
    table, _ = result.tables()
    text = table.text()
    assert text.heads == ["method", "log loss", "Brier", "ECE", "AUC", "guaranteed"]
    assert [row[0] for row in text.rows] == ["uncalibrated", "Platt", "ten bins"]
    assert text.rows[0][-1] == ""
    assert table.about in str(result)
    assert result.notes[0].endswith("fit the chosen method on other rows, or use simultaneous=True")
    frame = result.to_frame().set_index("method")
    assert list(frame.index) == ["uncalibrated", "Platt", "ten bins"]
    assert frame.loc["ten bins", "epsilon"] == result.epsilon[2]


def test_text_never_shows_a_guarantee_below_the_true_epsilon(rows) -> None:
    result = compare_calibrators(*rows, [BinningCalibrator(10)])
    for epsilon in (0.05804, 0.0421004, 0.07, 0.00012341):
        shown = replace(result, epsilon=np.array([np.nan, epsilon]))
        said = float(shown.tables()[0].text().rows[1][5])
        assert epsilon <= said < 1.1 * epsilon


@pytest.mark.broad
def test_simultaneous_guarantees_share_alpha(rows) -> None:
    contenders = {
        "platt": PlattCalibrator(),
        "5": BinningCalibrator(5),
        "9": BinningCalibrator(9, confidence_level=0.8),
    }
    result = compare_calibrators(*rows, contenders, simultaneous=True)
    assert result.notes == ("all guarantees hold simultaneously: you may choose by them",)
    for place, (bins, alpha) in {2: (5, 0.1), 3: (9, 0.2)}.items():
        fitted = BinningCalibrator(bins, confidence_level=1 - alpha / 2).fit(*rows[::-1])
        assert result.epsilon[place] == pytest.approx(fitted.guarantee_.epsilon, rel=1e-9)
        assert result.guarantee[place].confidence_level == pytest.approx(1 - alpha / 2)
    assert contenders["5"].confidence_level == 0.9


def test_the_best_of_many_splits_is_covered_if_they_share_alpha() -> None:
    # one bin, a fifth of 100 rows counted: the smallest epsilon is that of the split that drew the
    # fewest positives
    splits = [BinningCalibrator(1, pilot=80, random_state=seed) for seed in range(8)]
    rng = np.random.default_rng(5)
    scores = rng.uniform(size=100)
    counted = [clone(split).fit(scores, scores < 0.5, classes=(0, 1)) for split in splits]
    result = compare_calibrators(
        scores < 0.5, scores, splits, [(np.arange(100), np.arange(100))], simultaneous=True
    )
    draws = 2_000
    rate = 0.15
    missed = {0.1: 0, 0.1 / 8: 0}
    for alpha in missed:  # the limits depend on the count alone, and are those of the fits
        limits = clopper_pearson(
            Tally.from_counts([20] * 21, np.arange(21)), 1 - (1 - budgets(alpha)[0]) ** 21
        )
        fits = (
            counted
            if alpha == 0.1
            else [SimpleNamespace(guarantee_=g) for g in result.guarantee[1:]]
        )
        for split, fit in zip(counted, fits, strict=True):
            k = split.tally_.positives[0]
            assert fit.guarantee_.lower[0] == pytest.approx(limits.lower[k], rel=1e-9)
            assert fit.guarantee_.upper[0] == pytest.approx(limits.upper[k], rel=1e-9)
        epsilon = np.maximum(limits.upper - np.arange(21) / 20, np.arange(21) / 20 - limits.lower)
        is_missed = (limits.lower > rate) | (limits.upper < rate)
        drawn = [split.tally_.counts[0] for split in counted]
        assert drawn == [20] * 8
        labels = rng.uniform(size=(draws, 100)) < rate
        members = [
            np.random.default_rng(seed).permutation(100)[:20] for seed in range(8)
        ]  # any fixed splits
        positives = np.stack([labels[:, rows].sum(axis=1) for rows in members], axis=1)
        best = np.take_along_axis(positives, epsilon[positives].argmin(axis=1)[:, None], axis=1)[
            :, 0
        ]
        missed[alpha] = int(is_missed[best].sum())
    assert (
        stats.binomtest(missed[0.1], draws, 0.1, alternative="greater").pvalue < 1e-6
    )  # the attack works
    assert_rare(missed[0.1 / 8], draws, 0.1)


@pytest.mark.parametrize(
    ("calibrators", "options", "message"),
    [
        ([], {}, "calibrators must contain at least one calibrator; got none"),
        (PlattCalibrator(), {}, "calibrators must be a mapping"),
        (["platt"], {}, "calibrators must have fit, predict and get_params; got str"),
        ([PlattCalibrator()], {"cv": 1}, "cv must be an int >= 2"),
        ([PlattCalibrator()], {"cv": 2_500}, "rarer class"),
        (
            [PlattCalibrator()],
            {"cv": ShuffleSplit(2, random_state=0)},
            "every row into a test fold",
        ),
    ],
    ids=["none", "bare", "text", "one fold", "many folds", "partial"],
)
def test_bad_input_is_refused_by_name(rows, calibrators, options: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        compare_calibrators(*rows, calibrators, **options)


@pytest.mark.broad
def test_the_guarantee_names_the_positive_class(rows) -> None:
    y, scores = rows
    words = np.where(np.asarray(y) == 1, "class 1 {n} yes", "no")
    result = compare_calibrators(
        words, scores, {"bins": BinningCalibrator(n_bins=5)}, pos_label="class 1 {n} yes"
    )
    assert "the true rate of class 'class 1 {n} yes' is within" in result.guarantee[1].sentence


def test_stranger_without_state_or_guarantee_is_compared_too(rows) -> None:
    class Stranger(LogisticRegression):
        def fit(self, scores, y):
            return super().fit(np.asarray(scores)[:, None], y)

        def predict(self, scores):
            return super().predict_proba(np.asarray(scores)[:, None])[:, 1]

    result = compare_calibrators(*rows, {"stranger": Stranger()})
    assert result.state_bytes[1] == 0
    assert np.isnan(result.epsilon[1])
    assert result.guarantee[1] is None


@pytest.mark.broad
def test_any_kind_of_random_state_shuffles_the_folds(rows) -> None:
    for random_state in (3, np.random.default_rng(3), np.random.RandomState(3), None):
        assert (
            compare_calibrators(*rows, [PlattCalibrator()], random_state=random_state).brier[1]
            < 0.2
        )
    one, two = (
        compare_calibrators(*rows, [PlattCalibrator()], random_state=3).brier for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_limits_of_differences_hold_for_all_methods_and_losses_at_once() -> None:
    values = np.array([0.1, 0.5, 0.8])
    rates = np.array([0.02, 0.5, 0.9])
    methods = {"platt": PlattCalibrator(), "three": BinningCalibrator(3, partition="uniform")}
    folds = KFold(5, shuffle=True, random_state=int(np.random.default_rng(0).integers(2**31)))
    rng = np.random.default_rng(1)
    missed = 0
    draws = 25
    for _ in range(draws):
        kind = np.sort(rng.integers(3, size=400))
        y = (rng.uniform(size=400) < rates[kind]).astype(int)
        scores = values[kind]
        found = compare_calibrators(y, scores, methods, confidence_level=0.8)
        expected = dict.fromkeys([*methods, "uncalibrated"], np.zeros(2))
        for train, _ in folds.split(scores[:, None]):
            fitted = {
                name: clone(method).fit(scores[train], y[train]).predict(values)
                for name, method in methods.items()
            }
            for name, p in {**fitted, "uncalibrated": values}.items():
                clipped = np.clip(p, 0.001, 0.999)
                log_losses = -(rates * np.log(clipped) + (1 - rates) * np.log(1 - clipped))
                brier = rates * (1 - p) ** 2 + (1 - rates) * p**2
                expected[name] = expected[name] + np.array([brier.mean(), log_losses.mean()]) / 5
        assert len(found.differences) == 4
        missed += any(
            not one.lower
            <= (expected[one.first] - expected[one.second])[int(one.measure == "log loss")]
            <= one.upper
            for one in found.differences
        )
    assert_rare(missed, draws, 0.2)


@pytest.mark.broad
def test_a_method_that_is_clearly_worse_is_proved_worse(rows) -> None:
    y, scores = rows
    found = compare_calibrators(np.tile(y, 1).repeat(5), np.repeat(scores, 5), [PlattCalibrator()])
    assert {one.better for one in found.differences} == {"Platt"}
    assert (
        "1 other is proved to differ, with 95% confidence for all simultaneously" in found.sentence
    )
    assert found.auc[0] == pytest.approx(found.auc[1], abs=0.01)
    alike = compare_calibrators(
        y, 10 * scores - 5, {"a": PlattCalibrator(), "b": PlattCalibrator()}
    )
    assert "no other method's loss is proved to differ from it at 95% confidence" in alike.sentence
    # folds that were given may depend on the labels, and then nothing is proved
    assert compare_calibrators(y, scores, [PlattCalibrator()], KFold(3)).differences == ()
    assert compare_calibrators(y, 10 * scores - 5, [PlattCalibrator()]).differences == ()
