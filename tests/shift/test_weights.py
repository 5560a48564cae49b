"""Importance weights in `fit`, such as survey weights: the guarantee is about the weighted
population.
"""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from calibrant import (
    BetaCalibrator,
    BinningCalibrator,
    CalibratedClassifier,
    Calibrator,
    IsotonicCalibrator,
    LabelShiftCalibrator,
    OnlineCalibrator,
    Partition,
    PlattCalibrator,
    ScoreCalibrator,
    ShiftCalibrator,
    Tally,
    TemperatureCalibrator,
    VennAbersCalibrator,
    scored,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.calibrators.regions.weighted_rows import checked_bound, kept_rows
from calibrant.errors import InvalidValueError
from calibrant.guarantee.statement import Population
from calibrant.params.random import RandomSource
from calibrant.sample.reader import read_rows
from calibrant.tripod import ConformalSets
from read_marks import unmarked
from worlds.errors import about

EDGES = np.array([0.0, 0.3, 0.6, 0.8, 1.0])
BINS = Partition.from_edges(EDGES[1:-1])
TRUTH = np.diff(EDGES**3 / 3) / np.diff(EDGES)  # the rate of a score s is s^2


def survey(rng, n):
    """Rows of a population with uniform scores and rates s^2, sampled by score and label, and
    weights at most 1.
    """
    scores = rng.uniform(size=6 * n)
    y = rng.uniform(size=6 * n) < scores**2
    chance = np.where(y, 0.2 + 0.8 * scores, 0.3)
    taken = np.flatnonzero(rng.uniform(size=6 * n) < chance)[:n]
    return scores[taken], y[taken], 0.2 / chance[taken]


def kept_too_seldom(held, draws):
    return stats.binomtest(held, draws, 0.9, alternative="less").pvalue <= 1e-4


@pytest.mark.slow
def test_weighted_bins_cover_the_rates_of_the_population_and_unweighted_bins_do_not():
    rng = np.random.default_rng(0)
    draws = 200
    held = 0
    plain_held = 0
    radius = []
    for _ in range(draws):
        scores, y, weights = survey(rng, 1200)
        found = BinningCalibrator(partition=BINS, random_state=rng).fit(
            scores, y, importance_weight=weights, weight_bound=1.0
        )
        guarantee = found.guarantee_
        held += bool(np.all((guarantee.lower <= TRUTH) & (guarantee.upper >= TRUTH)))
        radius.append(guarantee.radius.mean())
        plain = BinningCalibrator(partition=BINS).fit(scores, y).guarantee_
        plain_held += bool(np.all((plain.lower <= TRUTH) & (plain.upper >= TRUTH)))
    assert not kept_too_seldom(held, draws)
    assert kept_too_seldom(plain_held, draws)
    assert np.mean(radius) < 0.09


GRID = (np.arange(20_000) + 0.5) / 20_000


@pytest.mark.slow
def test_the_average_of_a_weighted_curve_is_as_near_to_the_rate_of_the_population_as_guaranteed():
    rng = np.random.default_rng(8)
    draws = 150
    held = 0
    epsilon = []
    for _ in range(draws):
        scores, y, weights = survey(rng, 1000)
        found = Calibrator("isotonic", n_bins=3, random_state=rng)
        guarantee = found.fit(scores, y, importance_weight=weights, weight_bound=1.0).guarantee_
        region = found.partition_.regions_of(found.partition_.prepare(GRID))
        error = np.bincount(region, found.predict(GRID) - GRID**2) / np.bincount(region)
        held += bool(np.all(np.abs(error) <= guarantee.radius + 1e-3))
        epsilon.append(guarantee.epsilon)
    assert not kept_too_seldom(held, draws)
    assert np.mean(epsilon) < 0.25


def test_the_interval_is_that_of_the_covariate_shift_calibrator():
    scores, y, weights = survey(np.random.default_rng(1), 2000)
    one = BinningCalibrator(5, value="mean").fit(
        scores, y, importance_weight=weights, weight_bound=1.0
    )
    other = ShiftCalibrator(n_bins=5).fit(scores, y, importance_weight=weights, weight_bound=1.0)
    for name in ("value", "lower", "upper", "counts"):
        np.testing.assert_allclose(
            getattr(one.guarantee_, name), getattr(other.guarantee_, name), rtol=1e-14
        )
    assert one.guarantee_.statement.population is Population.WEIGHTED
    assert "the true weighted rate" in one.guarantee_.details
    assert "if new rows follow the weighted distribution of these" in one.guarantee_.sentence
    assert one.guarantee_.method == "betting"


@pytest.mark.parametrize("value", ["jeffreys", "mean", "monotone"])
def test_equal_weights_predict_what_rows_without_weights_do(value):
    scores, y, _ = survey(np.random.default_rng(2), 2000)
    weighted = BinningCalibrator(5, value=value).fit(
        scores, y, importance_weight=np.full(2000, 3.0), weight_bound=3.0
    )
    plain = BinningCalibrator(5, value=value).fit(scores, y)
    np.testing.assert_allclose(weighted.predict(scores), plain.predict(scores), rtol=1e-12)


@pytest.mark.broad
def test_equal_weights_anchor_nearly_the_same_curve():
    scores, y, _ = survey(np.random.default_rng(2), 2000)
    weighted = Calibrator(n_bins=4).fit(
        scores, y, importance_weight=np.full(2000, 3.0), weight_bound=3.0
    )
    plain = Calibrator(n_bins=4).fit(scores, y)
    assert np.abs(weighted.predict(scores) - plain.predict(scores)).mean() < 0.02
    assert 0.8 < weighted.guarantee_.epsilon / plain.guarantee_.epsilon < 1.25


def test_no_bound_no_proof():
    scores, y, weights = survey(np.random.default_rng(3), 500)
    open_ended = BinningCalibrator(3).fit(scores, y, importance_weight=weights).guarantee_
    bounded = (
        BinningCalibrator(3).fit(scores, y, importance_weight=weights, weight_bound=1.0).guarantee_
    )
    assert bounded.is_proved
    assert not open_ended.is_proved
    assert "weight_bound" in open_ended.caveat


@pytest.mark.parametrize("kind", [BinningCalibrator, Calibrator, ScalingBinningCalibrator])
def test_a_saved_calibrator_answers_the_same_and_its_limits_are_checked(kind):
    scores, y, weights = survey(np.random.default_rng(4), 800)
    fitted = kind(n_bins=2).fit(scores, y, importance_weight=weights, weight_bound=1.0)
    assert fitted.guarantee_.is_proved
    assert fitted.guarantee_.statement.population is Population.WEIGHTED
    state = json.loads(json.dumps(fitted.to_dict()))
    read = ScoreCalibrator.from_dict(state)
    np.testing.assert_array_equal(read.predict_interval(scores), fitted.predict_interval(scores))
    assert unmarked(read.guarantee_) == str(fitted.guarantee_)
    assert read.to_dict() == state
    del state["state"]["weighted"]
    with pytest.raises(InvalidValueError, check=about("weighted")):
        ScoreCalibrator.from_dict(state)


def test_scored_data_with_weights_give_the_same():
    scores, y, weights = survey(np.random.default_rng(5), 800)
    frame = pd.DataFrame({"p": scores, "y": y, "w": weights})
    data = scored(frame, score="p", label="y", weight="w")
    one = BinningCalibrator(4).fit(data, weight_bound=1.0)
    other = BinningCalibrator(4).fit(scores, y, importance_weight=weights, weight_bound=1.0)
    np.testing.assert_array_equal(one.predict_interval(scores), other.predict_interval(scores))


@pytest.mark.broad
@pytest.mark.parametrize("interval", ["betting", "empirical-bernstein"])
def test_a_weight_above_the_bound_is_noticed_in_every_row(interval):
    scores, y, _ = survey(np.random.default_rng(6), 400)
    for row in range(0, 400, 13):  # some of these are drawn for the look
        weights = np.ones(400)
        weights[row] = 2.0
        with pytest.raises(InvalidValueError, match="weight_bound"):
            BinningCalibrator(4).fit(scores, y, importance_weight=weights, weight_bound=1.5)
        table = pa.table({"p": scores, "y": y, "w": weights})
        with pytest.raises(InvalidValueError, check=about("importance_weight", "2")):
            ShiftCalibrator(n_bins=4, interval=interval).fit(
                scored(table, score="p", label="y", weight="w"), weight_bound=1.5
            )


@pytest.mark.parametrize("split", [0.3, None])  # rows that are drawn to cut bins, and rows at edges
def test_a_weight_above_the_bound_is_noticed_in_rows_that_count_in_no_bin(split):
    scores, y, _ = survey(np.random.default_rng(7), 40)
    fit = ShiftCalibrator(n_bins=4, interval="empirical-bernstein", pilot=split, random_state=0).fit
    for row in range(40):
        table = pa.table({"p": scores, "y": y, "w": np.where(np.arange(40) == row, 2.0, 1.0)})
        with pytest.raises(InvalidValueError, check=about("importance_weight", "2")):
            fit(scored(table, score="p", label="y", weight="w"), weight_bound=1.5)


@pytest.mark.parametrize(
    "kind", [PlattCalibrator, BetaCalibrator, TemperatureCalibrator, IsotonicCalibrator]
)
def test_whole_weights_of_a_curve_are_repeated_rows(kind):
    scores, y, _ = survey(np.random.default_rng(9), 300)
    times = np.random.default_rng(10).integers(0, 4, size=300)
    weighted = kind().fit(scores, y, importance_weight=times.astype(float))
    repeated = kind().fit(np.repeat(scores, times), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict(scores), repeated.predict(scores), rtol=1e-9)


def test_weighted_curves_agree_with_scikit_learn():
    scores, y, weights = survey(np.random.default_rng(11), 500)
    logistic = LogisticRegression(C=1e10, tol=1e-12, max_iter=1000).fit(
        scores[:, None], y, sample_weight=weights
    )
    ours = PlattCalibrator(smoothing=False).fit(scores, y, importance_weight=weights)
    np.testing.assert_allclose(
        ours.predict(scores), logistic.predict_proba(scores[:, None])[:, 1], atol=1e-5
    )
    features = np.column_stack([np.log(scores), -np.log1p(-scores)])
    logistic = LogisticRegression(C=1e10, tol=1e-12, max_iter=5000).fit(
        features, y, sample_weight=weights
    )
    ours = BetaCalibrator().fit(scores, y, importance_weight=weights)
    np.testing.assert_allclose(
        ours.predict(scores), logistic.predict_proba(features)[:, 1], atol=1e-4
    )
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(scores, y, sample_weight=weights)
    ours = IsotonicCalibrator().fit(scores, y, importance_weight=weights)
    np.testing.assert_allclose(ours.predict(scores), isotonic.predict(scores), atol=1e-12)


def test_venn_prediction_refuses_weights():
    scores, y, weights = survey(np.random.default_rng(12), 100)
    with pytest.raises(TypeError, match="unexpected keyword argument 'importance_weight'"):
        VennAbersCalibrator().fit(scores, y, importance_weight=weights)


@pytest.mark.parametrize(
    "kind",
    [
        VennAbersCalibrator,
        ConformalSets,
        OnlineCalibrator,
        LabelShiftCalibrator,
    ],
)
def test_a_column_of_weights_is_refused_where_it_would_be_ignored(kind):
    scores, y, weights = survey(np.random.default_rng(12), 100)
    table = pa.table({"p": scores, "y": y, "w": weights})
    told = {"target_prior": 0.5} if kind is LabelShiftCalibrator else {}
    with pytest.raises(InvalidValueError, check=about("importance_weight", "weight='w'")):
        kind().fit(scored(table, score="p", label="y", weight="w"), **told)


def test_a_classifier_passes_weights_to_its_calibrator():
    scores, y, weights = survey(np.random.default_rng(13), 2000)
    model = CalibratedClassifier(LogisticRegression(), BinningCalibrator(3))
    fitted = model.fit(scores[:, None], y, importance_weight=weights, weight_bound=1.0)
    assert fitted.guarantee_.is_proved
    assert fitted.guarantee_.statement.population is Population.WEIGHTED


def test_what_weights_do_not_go_with_is_refused():
    scores, y, weights = survey(np.random.default_rng(7), 400)
    with pytest.raises(InvalidValueError, check=about("sample_weight", "both")):
        BinningCalibrator(4).fit(scores, y, importance_weight=weights, sample_weight=np.ones(400))
    with pytest.raises(InvalidValueError, match="ShiftCalibrator"):
        BinningCalibrator(4, interval="hoeffding").fit(scores, y, importance_weight=weights)
    with pytest.raises(InvalidValueError, check=about("importance_weight", "none above 1e-100")):
        BinningCalibrator(4).fit(scores, y, importance_weight=np.zeros(400))
    tally = Tally.from_data(BINS, scores, y, importance_weight=weights)
    with pytest.raises(InvalidValueError, match=r"ShiftCalibrator\.from_tally"):
        BinningCalibrator.from_tally(BINS, tally)


def test_rows_are_kept_and_rounded_by_their_weights():
    rng = np.random.default_rng(13)
    scores, y, _ = survey(rng, 3000)
    weights = np.resize([0.0, 0.5, 2.0], 3000)
    rows = replace(read_rows(scores, y, classes=(0, 1)).collect(), weights=weights)
    kept = kept_rows(rows, 2.0, 1)
    places = np.arange(3000, dtype=np.uint64)
    uniform = RandomSource.of(1, "kept by weight", rows=rows.fingerprint()).uniforms(places)
    assert np.array_equal(kept.scores, scores[uniform < weights / 2.0])
    assert 1250 - 100 < len(kept) < 1250 + 100
    assert kept.weights is None


def test_weights_may_equal_their_bound_and_must_not_all_be_zero():
    assert checked_bound(np.array([0.0, 1.5]), 1.5) == 1.5
    assert checked_bound(np.array([0.5, 1.5]), 4.0) == 4.0
    assert checked_bound(np.array([0.5, 1.5]), None) == 1.5
    with pytest.raises(
        InvalidValueError,
        check=about("importance_weight", "1.5 at row index 1, and in no other row"),
    ):
        checked_bound(np.array([0.5, 1.5]), 1.4)
    for weights in (np.zeros(3), np.empty(0)):
        with pytest.raises(
            InvalidValueError, check=about("importance_weight", "none above 1e-100")
        ):
            checked_bound(weights, None)


def test_without_a_bound_the_largest_weight_of_all_bins_is_taken():
    scores, y, _ = survey(np.random.default_rng(7), 400)
    for high in (scores < 0.3, scores > 0.9):
        table = pa.table({"p": scores, "y": y, "w": np.where(high, 2.0, 1.0)})
        model = ShiftCalibrator(partition=BINS, interval="empirical-bernstein")
        found = model.fit(scored(table, score="p", label="y", weight="w")).guarantee_
        assert found.statement.weights.bound == 2.0
        assert not found.is_proved
