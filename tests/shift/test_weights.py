"""Importance weights in `fit`: survey and inverse-probability weights, whose promise is about the weighted population."""

import json

import numpy as np
import pytest
from scipy import stats

from calibrant import BinningCalibrator, Partition, ShiftCalibrator, Tally, scored
from calibrant.calibrators.base import ScoreCalibrator
from calibrant.errors import InvalidValueError
from calibrant.guarantee import Population

EDGES = np.array([0.0, 0.3, 0.6, 0.8, 1.0])
BINS = Partition.from_edges(EDGES[1:-1])
TRUTH = np.diff(EDGES**3 / 3) / np.diff(EDGES)  # the rate of a score s is s^2


def survey(rng, n):
    """Rows of a population with uniform scores and rates s^2, sampled by score and label, and weights at most 1."""
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
    draws, held, plain_held, radius = 300, 0, 0, []
    for _ in range(draws):
        scores, y, weights = survey(rng, 1200)
        found = BinningCalibrator(partition=BINS, weight_bound=1.0, random_state=rng).fit(
            scores, y, importance_weight=weights
        )
        guarantee = found.guarantee_
        held += bool(np.all((guarantee.lower <= TRUTH) & (TRUTH <= guarantee.upper)))
        radius.append(guarantee.radius.mean())
        plain = BinningCalibrator(partition=BINS).fit(scores, y).guarantee_
        plain_held += bool(np.all((plain.lower <= TRUTH) & (TRUTH <= plain.upper)))
    assert not kept_too_seldom(held, draws)
    assert kept_too_seldom(plain_held, draws)
    assert np.mean(radius) < 0.09


def test_the_interval_is_that_of_the_covariate_shift_calibrator():
    scores, y, weights = survey(np.random.default_rng(1), 2000)
    one = BinningCalibrator(5, weight_bound=1.0, value="mean").fit(scores, y, importance_weight=weights)
    other = ShiftCalibrator(n_bins=5, weight_bound=1.0).fit(scores, y, importance_weight=weights)
    for name in ("value", "lower", "upper", "counts"):
        np.testing.assert_allclose(getattr(one.guarantee_, name), getattr(other.guarantee_, name), rtol=1e-14)
    assert one.guarantee_.statement.population is Population.WEIGHTED
    assert "weighted population" in one.guarantee_.sentence()
    assert one.guarantee_.method == "betting"


@pytest.mark.parametrize("value", ["jeffreys", "mean", "monotone"])
def test_equal_weights_predict_what_rows_without_weights_do(value):
    scores, y, _ = survey(np.random.default_rng(2), 2000)
    weighted = BinningCalibrator(5, weight_bound=3.0, value=value).fit(scores, y, importance_weight=np.full(2000, 3.0))
    plain = BinningCalibrator(5, value=value).fit(scores, y)
    np.testing.assert_allclose(weighted.predict(scores), plain.predict(scores), rtol=1e-12)


def test_no_bound_no_proof():
    scores, y, weights = survey(np.random.default_rng(3), 500)
    open_ended = BinningCalibrator(3).fit(scores, y, importance_weight=weights).guarantee_
    bounded = BinningCalibrator(3, weight_bound=1.0).fit(scores, y, importance_weight=weights).guarantee_
    assert bounded.is_proved
    assert not open_ended.is_proved
    assert "weight_bound" in open_ended.caveat


def test_a_saved_calibrator_answers_the_same_and_its_limits_are_checked():
    scores, y, weights = survey(np.random.default_rng(4), 800)
    fitted = BinningCalibrator(4, weight_bound=1.0).fit(scores, y, importance_weight=weights)
    state = json.loads(json.dumps(fitted.to_dict()))
    read = ScoreCalibrator.from_dict(state)
    np.testing.assert_array_equal(read.predict_interval(scores), fitted.predict_interval(scores))
    assert str(read.guarantee_) == str(fitted.guarantee_)
    assert read.to_dict() == state
    del state["state"]["weighted"]
    with pytest.raises(InvalidValueError, match="weighted"):
        ScoreCalibrator.from_dict(state)


def test_scored_data_with_weights_give_the_same():
    import pandas as pd

    scores, y, weights = survey(np.random.default_rng(5), 800)
    frame = pd.DataFrame({"p": scores, "y": y, "w": weights})
    data = scored(frame, score="p", label="y", weight="w")
    one = BinningCalibrator(4, weight_bound=1.0).fit(data)
    other = BinningCalibrator(4, weight_bound=1.0).fit(scores, y, importance_weight=weights)
    np.testing.assert_array_equal(one.predict_interval(scores), other.predict_interval(scores))


@pytest.mark.parametrize("interval", ["betting", "empirical-bernstein"])
def test_a_weight_above_the_bound_is_noticed_in_every_row(interval):
    import pyarrow as pa

    scores, y, _ = survey(np.random.default_rng(6), 400)
    for row in range(0, 400, 13):  # some of these are drawn for the look
        weights = np.ones(400)
        weights[row] = 2.0
        with pytest.raises(InvalidValueError, match="weight_bound"):
            BinningCalibrator(4, weight_bound=1.5).fit(scores, y, importance_weight=weights)
        table = pa.table({"p": scores, "y": y, "w": weights})
        with pytest.raises(InvalidValueError, match="weight_bound"):
            ShiftCalibrator(n_bins=4, weight_bound=1.5, interval=interval).fit(
                scored(table, score="p", label="y", weight="w")
            )


def test_what_weights_do_not_go_with_is_refused():
    scores, y, weights = survey(np.random.default_rng(7), 400)
    with pytest.raises(InvalidValueError, match="sample_weight must be None beside importance_weight"):
        BinningCalibrator(4).fit(scores, y, importance_weight=weights, sample_weight=np.ones(400))
    with pytest.raises(InvalidValueError, match="ShiftCalibrator"):
        BinningCalibrator(4, interval="hoeffding").fit(scores, y, importance_weight=weights)
    with pytest.raises(InvalidValueError, match="zero in every row"):
        BinningCalibrator(4).fit(scores, y, importance_weight=np.zeros(400))
    tally = Tally.from_data(BINS, scores, y, importance_weight=weights)
    with pytest.raises(InvalidValueError, match="ShiftCalibrator.from_tally"):
        BinningCalibrator.from_tally(BINS, tally)
