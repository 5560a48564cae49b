"""Isotonic regression: agreement with scikit-learn, and where it merges scores that differ."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from calibrant import IsotonicCalibrator


@pytest.mark.parametrize("digits", [12, 2, 0])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_scikit_learn(digits, weighted):
    rng = np.random.default_rng(2)
    scores = np.round(3 * rng.normal(size=1500), digits)
    y = (rng.uniform(size=1500) < 1 / (1 + np.exp(-scores))).astype(int)
    weights = rng.integers(1, 4, size=1500) if weighted else None
    theirs = IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(
        scores, y, sample_weight=weights
    )
    ours = IsotonicCalibrator().fit(scores, y, sample_weight=weights)
    points = np.concatenate([scores, np.linspace(-15, 15, 2001)])
    np.testing.assert_allclose(ours.predict(points), theirs.predict(points), rtol=0, atol=1e-12)
    assert ours.thresholds_.size == theirs.X_thresholds_.size


def test_tiny_scores_stay_apart():
    # scikit-learn merges scores within 1e-15 of each other, as sklearn.isotonic._make_unique says
    scores = [1e-18, 2e-18, 3e-18]
    y = [0, 1, 1]
    merged = IsotonicRegression(out_of_bounds="clip").fit(scores, y)
    assert merged.X_thresholds_.size == 1
    np.testing.assert_array_equal(IsotonicCalibrator().fit(scores, y).predict(scores), y)


@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
def test_curve_is_flat_outside_and_never_falls():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=300)
    calibrator = IsotonicCalibrator().fit(scores, rng.uniform(size=300) < 0.5)
    values = calibrator.predict(np.linspace(-10, 10, 4001))
    assert (np.diff(values) >= 0).all()
    assert calibrator.predict([-1e308, 1e308]).tolist() == [
        calibrator.values_[0],
        calibrator.values_[-1],
    ]


def test_on_its_own_rows_each_step_has_its_own_rate():
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=500)
    y = (rng.uniform(size=500) < scores).astype(int)
    values = IsotonicCalibrator().fit(scores, y).predict(scores)
    for value in np.unique(values):
        assert y[values == value].mean() == pytest.approx(value, abs=1e-12)


@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
@pytest.mark.parametrize(
    "scores", [[-1.7e308, 0.0, 1.7e308], [0.0, 5e-324, 1e-323], [2.0, 2.0, 2.0]]
)
def test_extreme_scores_without_warnings(scores):
    calibrator = IsotonicCalibrator().fit(scores, [0, 1, 1])
    found = calibrator.predict([-1.7e308, -1.0, 0.0, 5e-324, 1.0, 1.7e308])
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) >= 0).all()


@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
def test_one_class():
    assert IsotonicCalibrator().fit([0.1, 0.2], [1, 1], classes=(0, 1)).predict(
        [0.0, 1.0]
    ).tolist() == [1.0, 1.0]


def test_says_what_is_known_and_why_there_is_no_epsilon():
    guarantee = IsotonicCalibrator().fit([0.1, 0.2, 0.3], [0, 1, 1]).guarantee_
    assert guarantee.epsilon is None
    assert "chooses its steps from the labels" in guarantee.reason
    assert guarantee.sentence.startswith("No bound on the calibration error is guaranteed")
    assert "ScalingBinningCalibrator" in str(guarantee)
