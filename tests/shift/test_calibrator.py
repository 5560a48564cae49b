"""ShiftCalibrator: estimators against sums by hand, what is guaranteed in words, saving, and the
classifier.
"""

import json
import pickle
from unittest import mock

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    Partition,
    PlattCalibrator,
    ShiftCalibrator,
    Tally,
)
from calibrant.errors import InvalidTypeError
from calibrant.metrics import ece
from calibrant.ratios import ULSIF, LogisticRatio
from calibrant.shift import SHIFT_METHODS
from read_marks import unmarked
from worlds.shifted import BOUND, data, draw, rate, score, target, weight

BINS = Partition.from_edges([-0.2, 0.0, 0.2, 0.4])


def test_mean_is_the_weighted_rate_of_each_bin():
    _, scores, y, w = data()
    calibrator = ShiftCalibrator(partition=BINS).fit(
        scores, y, importance_weight=w, weight_bound=BOUND
    )
    for b in range(5):
        part = np.digitize(scores, [-0.2, 0.0, 0.2, 0.4]) == b
        expected = sum(wi * yi for wi, yi in zip(w[part], y[part], strict=True)) / sum(w[part])
        assert calibrator.guarantee_.value[b] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(
        calibrator.predict(scores), calibrator.guarantee_.value[BINS.assign(scores)]
    )


@pytest.mark.broad
def test_calibration_error_on_the_target_population_agrees_with_the_papers_formula_and_falls():
    _, scores, y, w = data(n=20_000)
    new = target(n=20_000)
    y_new = (np.random.default_rng(9).uniform(size=20_000) < rate(new)).astype(int)
    found = {}
    weighted = ShiftCalibrator(n_bins=10).fit(scores, y, importance_weight=w, weight_bound=BOUND)
    for name, fitted in (
        ("plain", BinningCalibrator(n_bins=10).fit(scores, y)),
        ("weighted", weighted),
    ):
        p = fitted.predict(score(new))
        cell = np.minimum(np.floor(p * 10).astype(int), 9)
        by_hand = sum(
            np.mean(cell == b) * abs(p[cell == b].mean() - y_new[cell == b].mean())
            for b in np.unique(cell)
        )
        found[name] = ece(y_new, p, strategy="uniform", n_bins=10).value
        assert found[name] == pytest.approx(by_hand, abs=1e-9)
    assert found["weighted"] < found["plain"]


def test_weights_of_one_give_the_rates_of_plain_binning():
    _, scores, y, _ = data()
    plain = BinningCalibrator(n_bins=6, pilot=None, value="mean").fit(scores, y)
    shifted = ShiftCalibrator(n_bins=6, pilot=None).fit(
        scores, y, importance_weight=np.ones(len(y)), weight_bound=1.0
    )
    assert shifted.partition_ == plain.partition_
    np.testing.assert_allclose(shifted.guarantee_.value, plain.guarantee_.value, rtol=0, atol=1e-15)


def test_segments_and_split_count_the_rows_that_plain_binning_counts():
    _, scores, y, w = data()
    group = np.where(np.arange(len(y)) % 3 == 0, "a", "b")
    plain = BinningCalibrator(n_bins=3).fit(scores, y, segments=group)
    shifted = ShiftCalibrator(n_bins=3).fit(
        scores, y, importance_weight=w, segments=group, weight_bound=BOUND
    )
    np.testing.assert_array_equal(shifted.tally_.counts, plain.tally_.counts)
    assert shifted.predict(scores[:9], segments=group[:9]).shape == (9,)
    plain = BinningCalibrator(n_bins=3, pilot=0.25, random_state=5).fit(scores, y)
    shifted = ShiftCalibrator(n_bins=3, pilot=0.25, random_state=5)
    shifted.fit(scores, y, importance_weight=w, weight_bound=BOUND)
    np.testing.assert_array_equal(shifted.tally_.counts, plain.tally_.counts)
    np.testing.assert_array_equal(shifted.tally_.positives, plain.tally_.positives)


@pytest.mark.parametrize("name", SHIFT_METHODS)
def test_values_lie_in_their_intervals_and_epsilon_is_the_largest_distance(name):
    _, scores, y, w = data()
    calibrator = ShiftCalibrator(partition=BINS, interval=name)
    guarantee = calibrator.fit(scores, y, importance_weight=w, weight_bound=BOUND).guarantee_
    assert ((guarantee.lower <= guarantee.value) & (guarantee.value <= guarantee.upper)).all()
    assert (
        guarantee.epsilon
        == np.maximum(guarantee.upper - guarantee.value, guarantee.value - guarantee.lower).max()
    )
    assert guarantee.method == name


@pytest.mark.broad
def test_estimated_weights_are_the_ratios_own():
    x, scores, y, _ = data()
    calibrator = ShiftCalibrator(partition=BINS).fit(
        scores, y, X=x, X_target=target(), ratio=ULSIF(centers=40)
    )
    w = ULSIF(centers=40).fit(x, target()).predict(x)
    region = BINS.assign(scores)
    expected = np.bincount(region, w * y) / np.bincount(region, w)
    np.testing.assert_allclose(calibrator.guarantee_.value, expected, rtol=0, atol=1e-12)
    other = ShiftCalibrator(partition=BINS)
    source = data(seed=8)[0]
    other.fit(scores, y, X=x, X_target=target(), X_source=source, ratio=ULSIF(centers=40))
    assert other.ratio_.diagnostics_.n_source == 4000
    assert (other.guarantee_.value != calibrator.guarantee_.value).any()


@pytest.mark.broad
def test_guarantee_says_what_is_assumed_of_the_weights():
    x, scores, y, w = data()
    known = (
        ShiftCalibrator(n_bins=4).fit(scores, y, importance_weight=w, weight_bound=BOUND).guarantee_
    )
    assert known.is_proved
    assert "the importance weights are the density ratio of the target" in known.details
    assert "the true rate in the target population" in known.sentence
    assert any("no importance weight exceeds 8" in text for text in known.assumptions)
    assert not any("one distribution" in text for text in known.assumptions)
    unbounded = ShiftCalibrator(n_bins=4).fit(scores, y, importance_weight=w).guarantee_
    assert not unbounded.is_proved
    assert unbounded.sentence.startswith("Nothing is guaranteed: weight_bound was not given")
    assert unbounded.notes[0].startswith("if no weight is larger than those seen: In each of 4 ")
    assert "(90% confidence" in unbounded.notes[0]
    estimated = ShiftCalibrator(n_bins=4).fit(
        scores, y, X=x, X_target=target(), weight_bound=20.0, ratio=ULSIF()
    )
    assert not estimated.guarantee_.is_proved
    assert "asymptotic" in str(estimated.guarantee_)
    assert estimated.guarantee_.notes[0].startswith("if the weights are exact: In each of 4 ")
    assert "(90% confidence" in estimated.guarantee_.notes[0]
    assert estimated.ratio_.diagnostics_.sentence in estimated.guarantee_.notes


def test_sensitivity_widens_and_says_when_a_conclusion_falls():
    _, scores, y, w = data(n=20_000)
    calibrator = ShiftCalibrator(partition=BINS).fit(
        scores, y, importance_weight=w, weight_bound=BOUND
    )
    exact = calibrator.guarantee_
    wider = calibrator.guarantee_for(0.2)
    assert (wider.lower < exact.lower).all()
    assert (wider.upper > exact.upper).all()
    assert "up to a relative error of 0.2" in wider.details
    told = {"weight_bound": BOUND, "weight_error": 0.2}
    set_before = ShiftCalibrator(partition=BINS).fit(scores, y, importance_weight=w, **told)
    assert set_before.guarantee_.interval == wider.interval
    tolerated = calibrator.tolerated_weight_error(0.5)
    concluded = (exact.lower > 0.5) | (exact.upper < 0.5)
    np.testing.assert_array_equal(tolerated > 0, concluded)
    for b in np.flatnonzero(concluded):
        for factor, expected in ((0.99, True), (1.01, False)):
            moved = calibrator.guarantee_for(min(factor * tolerated[b], 0.999))
            assert ((moved.lower[b] > 0.5) or (moved.upper[b] < 0.5)) == expected


@pytest.mark.parametrize("name", SHIFT_METHODS)
def test_json_round_trip_answers_the_same(name):
    _, scores, y, w = data()
    calibrator = ShiftCalibrator(n_bins=4, interval=name)
    told = {"weight_bound": BOUND, "weight_error": 0.05}
    calibrator.fit(scores, y, importance_weight=w, **told)
    read = ShiftCalibrator.from_dict(json.loads(json.dumps(calibrator.to_dict())))
    np.testing.assert_array_equal(
        read.predict_interval(scores), calibrator.predict_interval(scores)
    )
    assert unmarked(read.guarantee_) == str(calibrator.guarantee_)
    assert read.guarantee_.assumptions == calibrator.guarantee_.assumptions
    assert read.guarantee_for(0.1).interval == calibrator.guarantee_for(0.1).interval
    assert read.tally_ == calibrator.tally_


@pytest.mark.broad
def test_json_of_estimated_weights_keeps_the_caveat_and_leaves_the_ratio_behind():
    x, scores, y, _ = data()
    calibrator = ShiftCalibrator(n_bins=4).fit(
        scores, y, X=x, X_target=target(), ratio=ULSIF(centers=20)
    )
    read = ShiftCalibrator.from_dict(json.loads(json.dumps(calibrator.to_dict())))
    assert read.ratio_ is None
    assert unmarked(read.guarantee_) == str(calibrator.guarantee_)


def test_merged_tallies_equal_one_fit():
    _, scores, y, w = data()
    options = {"interval": "empirical-bernstein", "weight_bound": BOUND}
    whole = ShiftCalibrator(partition=BINS, interval="empirical-bernstein").fit(
        scores, y, importance_weight=w, weight_bound=BOUND
    )
    tallies = [
        Tally.from_data(BINS, scores[part], y[part], importance_weight=w[part])
        for part in (slice(0, 99), slice(99, None))
    ]
    merged = ShiftCalibrator.from_tally(BINS, tallies[1] + tallies[0], **options)
    np.testing.assert_array_equal(merged.predict_interval(scores), whole.predict_interval(scores))
    assert str(merged.guarantee_) == str(whole.guarantee_)
    with pytest.raises(InvalidTypeError, match="interval must be one that needs counts only"):
        ShiftCalibrator.from_tally(BINS, tallies[0], interval="betting", weight_bound=BOUND)
    with pytest.raises(InvalidTypeError, match="tally must have importance weights"):
        ShiftCalibrator.from_tally(BINS, Tally.from_data(BINS, scores, y), weight_bound=BOUND)


def test_a_bin_without_weight_predicts_one_half_and_guarantees_nothing():
    _, scores, y, w = data()
    w[BINS.assign(scores) == 2] = 0.0
    for name in ("betting", "empirical-bernstein"):
        calibrator = ShiftCalibrator(partition=BINS, interval=name).fit(
            scores, y, importance_weight=w, weight_bound=BOUND
        )
        np.testing.assert_array_equal(calibrator.predict([0.1]), [0.5])
        np.testing.assert_array_equal(calibrator.predict_interval([0.1]), [[0.0, 1.0]])
        np.testing.assert_array_equal(calibrator.predict_set([0.1]), [[True, True]])
        assert calibrator.guarantee_.radius[2] == 0.5
        assert "1 of 5 regions have no weight" in calibrator.guarantee_.notes[0]


@pytest.mark.broad
def test_classifier_hands_rows_and_target_rows_to_the_calibrator():
    x, _, y, _ = data()
    calibrator = ShiftCalibrator(n_bins=4)
    ratio = ULSIF(centers=20)
    for new in (target(), target(n=4000)):  # as many target rows as labelled ones, too
        model = CalibratedClassifier(LogisticRegression(), calibrator, random_state=0).fit(
            x, y, X_target=new, ratio=ratio
        )
        assert model.calibrator_.ratio_.diagnostics_.n_target == len(new)
        assert (
            model.calibrator_.ratio_.diagnostics_.n_source == 3000
        )  # trained on, and not calibrated on
        assert model.calibrator_.tally_.n_rows + model.guarantee_.statement.looked == 1000
        assert "asymptotic" in str(model.guarantee_)
        assert model.predict_interval(new[:3]).shape == (3, 2)
    frozen = FrozenEstimator(LogisticRegression().fit(x, y))
    model = CalibratedClassifier(frozen, calibrator).fit(x, y, X_target=target(), ratio=ratio)
    assert model.calibrator_.ratio_.diagnostics_.n_source == 4000
    crossed = CalibratedClassifier(LogisticRegression(), calibrator, cv=3, random_state=0).fit(
        x, y, X_target=target(), ratio=ratio
    )
    assert "the weights are exact and that makes no difference" in crossed.guarantee_.details


def test_classifier_takes_known_weights_by_row():
    x, _, y, w = data()
    calibrator = ShiftCalibrator(n_bins=4)
    model = CalibratedClassifier(LogisticRegression(), calibrator, random_state=0).fit(
        x, y, importance_weight=w, weight_bound=BOUND
    )
    assert model.guarantee_.is_proved
    assert model.calibrator_.tally_.weights.w.rounded().sum() < w.sum()


def test_classifier_takes_any_ratio_and_refuses_target_rows_where_they_would_be_ignored():
    x, _, y, _ = data()
    calibrator = ShiftCalibrator(n_bins=4)
    model = CalibratedClassifier(LogisticRegression(), calibrator, random_state=0).fit(
        x, y, X_target=target(), ratio=LogisticRatio()
    )
    assert model.guarantee_.epsilon < 1
    for other in (None, PlattCalibrator()):
        with pytest.raises(
            InvalidTypeError, match="X_target must be None for a calibrator that does not correct"
        ):
            CalibratedClassifier(LogisticRegression(), other).fit(x, y, X_target=target())


def test_rows_are_counted_once_and_only_results_are_kept():
    _, scores, y, w = data()
    with mock.patch.object(Tally, "of_codes", wraps=Tally.of_codes) as count:
        for options in ({"n_bins": 4}, {"n_bins": 4, "pilot": 0.3}, {"partition": BINS}):
            calibrator = ShiftCalibrator(**options).fit(
                scores, y, importance_weight=w, weight_bound=BOUND
            )
            assert count.call_count == 1
            count.reset_mock()
            assert len(pickle.dumps(calibrator)) < 20_000  # 4,000 rows would take more
    assert not isinstance(calibrator, BinningCalibrator)


def test_quantile_bins_sum_the_weights_of_their_cells():
    _, scores, y, w = data()
    scores = np.round(scores, 1)  # with ties
    fitted = ShiftCalibrator(n_bins=4, pilot=None, interval="empirical-bernstein").fit(
        scores, y, importance_weight=w, weight_bound=BOUND
    )
    again = Tally.from_data(fitted.partition_, scores, y, importance_weight=w)
    assert fitted.tally_ == again


def halved(options, scale):
    x, scores, y = draw(np.random.default_rng(3), 4000)
    bins = Partition.from_edges([-0.2, 0.2])
    calibrator = ShiftCalibrator(partition=bins, **options)
    return calibrator.fit(
        scores,
        y,
        importance_weight=scale * weight(x),
        weight_bound=scale * BOUND,
    ).guarantee_


@pytest.mark.parametrize("interval", SHIFT_METHODS)
def test_methods_that_divide_by_the_weights_take_any_multiple(interval):
    exact = halved({"interval": interval}, 1.0)
    half = halved({"interval": interval}, 0.5)
    np.testing.assert_allclose(half.lower, exact.lower, rtol=1e-12)
    np.testing.assert_allclose(half.upper, exact.upper, rtol=1e-12)
    np.testing.assert_allclose(half.value, exact.value, rtol=1e-12)
    assert any("or a multiple of it" in assumption for assumption in half.assumptions)


@pytest.mark.broad
def test_arrays_of_the_caller_and_numpys_error_state_are_unchanged():
    x, scores, y, w = data()
    copies = [array.copy() for array in (x, scores, y, w)]
    with np.errstate(all="raise"):
        ShiftCalibrator(n_bins=4).fit(scores, y, importance_weight=w, weight_bound=BOUND).predict(
            scores
        )
        ShiftCalibrator(n_bins=4).fit(scores, y, X=x, X_target=target(), ratio=ULSIF())
    for array, before in zip((x, scores, y, w), copies, strict=True):
        np.testing.assert_array_equal(array, before)
