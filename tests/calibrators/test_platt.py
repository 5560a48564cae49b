"""Platt scaling: agreement with scikit-learn, and data on which a plain fit breaks."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from calibrant import PlattCalibrator
from calibrant.guarantee.no_guarantee import NoGuarantee


class Identity:
    """A fitted classifier whose decision is its only feature."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        return LogisticRegression().__sklearn_tags__()


def data(n=2000, seed=1):
    rng = np.random.default_rng(seed)
    scores = 2 * rng.normal(size=n)
    return scores, (rng.uniform(size=n) < 1 / (1 + np.exp(0.3 - 1.5 * scores))).astype(int)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("digits", [12, 0])
def test_agrees_with_scikit_learn(scale, digits):
    scores, y = data()
    scores = scale * np.round(scores, digits)
    theirs = CalibratedClassifierCV(FrozenEstimator(Identity()), method="sigmoid").fit(
        scores[:, None], y
    )
    ours = PlattCalibrator().fit(scores, y)
    np.testing.assert_allclose(
        ours.predict_proba(scores), theirs.predict_proba(scores[:, None]), rtol=0, atol=1e-6
    )


def test_without_smoothing_is_logistic_regression():
    scores, y = data()
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(scores[:, None], y)
    ours = PlattCalibrator(smoothing=False).fit(scores, y)
    assert ours.slope_ == pytest.approx(theirs.coef_[0, 0], abs=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_[0], abs=1e-6)


@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
@pytest.mark.parametrize("smoothing", [True, False])
@pytest.mark.parametrize(
    ("scores", "y"),
    [
        ([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1]),
        ([-1e300, -1.0, 1.0, 1e300], [0, 0, 1, 1]),
        ([-1e308, 1e308, -1e308, 1e308], [0, 1, 0, 1]),
        ([1e-310, 2e-310, 3e-310, 4e-310], [0, 1, 0, 1]),
        ([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 0]),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1]),
        ([7.0, 7.0, 7.0, 7.0], [0, 1, 1, 1]),
        ([0.0, 0.0, 0.0, 0.0], [0, 1, 0, 1]),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 0]),
        ([3.0], [1]),
    ],
)
def test_hard_data_give_finite_monotone_curves_without_warnings(scores, y, smoothing):
    calibrator = PlattCalibrator(smoothing=smoothing).fit(scores, y, classes=(0, 1))
    assert np.isfinite([calibrator.slope_, calibrator.intercept_]).all()
    points = np.sort(np.concatenate([scores, [-1.7e308, -1.0, 0.0, 1.0, 1.7e308]]))
    found = calibrator.predict(points)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.sign(calibrator.slope_) * np.diff(found) >= 0).all()


def test_constant_score_predicts_the_base_rate():
    calibrator = PlattCalibrator(smoothing=False).fit([7.0] * 4, [0, 1, 1, 1])
    assert calibrator.slope_ == 0.0
    assert calibrator.predict([7.0, -3.0]) == pytest.approx([0.75, 0.75], abs=1e-9)


def test_separable_labels_come_out_nearly_certain():
    calibrator = PlattCalibrator(smoothing=False).fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    assert (calibrator.predict([-1.0, 1.0]).round(6) == [0, 1]).all()


def test_says_why_there_is_no_guarantee():
    guarantee = PlattCalibrator().fit(*data()).guarantee_
    assert isinstance(guarantee, NoGuarantee)
    assert guarantee.epsilon is None
    assert "Theorem 3" in guarantee.details
    assert "ScalingBinningCalibrator" in guarantee.advice


def test_smoothing_must_be_a_flag():
    with pytest.raises(TypeError, match="smoothing must be True or False; got 1"):
        PlattCalibrator(smoothing=1).fit(*data())
