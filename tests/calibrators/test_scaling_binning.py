"""Guaranteed bins on top of any map."""

import numpy as np
import pytest

from calibrant import (
    BetaCalibrator,
    BinningCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.errors import CalibrantError
from calibrant.sample.reader import read_rows
from worlds.one_draw import one_draw

BASES = [
    PlattCalibrator(),
    TemperatureCalibrator(),
    BetaCalibrator(),
    IsotonicCalibrator(),
    VennAbersCalibrator(),
]


def data(n=3000):
    rng = np.random.default_rng(0)
    scores = rng.beta(0.7, 0.7, size=n)
    return scores, (rng.uniform(size=n) < scores**2).astype(int)


def drawn(split, seed):
    rows = read_rows(*data()).collect()
    return rows.chosen(rows.draw(split, seed))


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_bins_of_any_base_carry_a_proved_guarantee(base, strategy):
    scores, y = data()
    calibrator = ScalingBinningCalibrator(base, n_bins=5, partition=strategy, random_state=3).fit(
        scores, y
    )
    guarantee = calibrator.guarantee_
    assert guarantee.is_proved
    assert "the base map was fitted on a random part of the rows" in guarantee.assumptions[-1]
    aside = guarantee.statement.looked + guarantee.statement.cutting
    assert calibrator.tally_.n_rows + aside == np.count_nonzero(~drawn(0.5, seed=3))
    assert len(np.unique(calibrator.predict(scores))) <= calibrator.partition_.n_regions
    assert calibrator.base is base
    assert calibrator.base_ is not base


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_bins_of_any_base_say_something_where_rows_are(base, strategy):
    # five scores with 600 rows each: whatever the seed, about 300 rows of each are counted, so no
    # region holds few
    scores = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 600)
    for seed in range(3):
        y = np.random.default_rng(seed).uniform(size=3000) < scores
        calibrator = ScalingBinningCalibrator(
            base, n_bins=5, partition=strategy, random_state=seed
        ).fit(scores, y)
        guarantee = calibrator.guarantee_
        assert guarantee.is_proved
        assert guarantee.counts.sum() == calibrator.tally_.n_rows
        assert guarantee.radius[guarantee.counts > 0].max() < 0.15


def test_counted_rows_are_those_the_base_never_saw():
    scores, y = data()
    seed = 5
    fits = drawn(1200, seed)
    assert np.count_nonzero(fits) == 1200
    calibrator = ScalingBinningCalibrator(n_bins=6, pilot=1200, random_state=seed).fit(scores, y)
    base = PlattCalibrator().fit(scores[fits], y[fits])
    assert calibrator.base_.slope_ == base.slope_
    expected = BinningCalibrator(n_bins=6).fit(base.predict(scores[~fits]), y[~fits])
    np.testing.assert_array_equal(calibrator.tally_.counts, expected.tally_.counts)
    np.testing.assert_array_equal(
        calibrator.predict_interval(scores), expected.predict_interval(base.predict(scores))
    )


def test_increasing_base_with_quantile_bins_is_binning_of_the_score():
    scores, y = data()
    with one_draw():
        fits = drawn(0.5, seed=1)
        ours = ScalingBinningCalibrator(n_bins=5, random_state=1).fit(scores, y)
        plain = BinningCalibrator(n_bins=5).fit(scores[~fits], y[~fits])
    np.testing.assert_array_equal(ours.predict(scores), plain.predict(scores))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"base": "platt"}, TypeError, "base must be a calibrator of scores"),
        ({"base": PlattCalibrator}, TypeError, "base must be a calibrator of scores"),
        (
            {"pilot": 0.0},
            ValueError,
            "pilot must be a fraction strictly between 0 and 1 or a number of rows >= 1",
        ),
        (
            {"pilot": 3000},
            ValueError,
            "pilot must leave some rows to fit the base map and some to count",
        ),
        (
            {"pilot": None},
            TypeError,
            "pilot must be a fraction strictly between 0 and 1 or a number of rows >= 1",
        ),
        ({"n_bins": 0}, ValueError, "n_bins must be an int >= 1"),
        ({"random_state": "x"}, TypeError, "random_state must be"),
    ],
)
def test_bad_parameters_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        ScalingBinningCalibrator(**options).fit(*data())


def test_a_base_map_that_predicts_nan_is_refused():
    class Broken(PlattCalibrator):
        def predict(self, scores):
            return np.where(np.arange(len(scores)) < 2, np.nan, super().predict(scores))

    rng = np.random.default_rng(0)
    with pytest.raises(CalibrantError, match="scores must be finite"):
        ScalingBinningCalibrator(Broken()).fit(rng.uniform(size=100), rng.integers(0, 2, 100))
