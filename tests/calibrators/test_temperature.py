"""Temperature scaling: agreement with scikit-learn, and data on which no temperature is best."""

import numpy as np
import pytest
from sklearn import __version__

from calibrant import TemperatureCalibrator

sklearn_version = tuple(int(part) for part in __version__.split(".")[:2])


def data(n=2000, seed=1):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=n)
    return logits, (rng.uniform(size=n) < 1 / (1 + np.exp(0.3 - 0.7 * logits))).astype(int)


@pytest.mark.skipif(
    sklearn_version < (1, 8), reason="scikit-learn has temperature scaling since 1.8"
)
@pytest.mark.parametrize("digits", [12, 1])
def test_agrees_with_scikit_learn(digits):
    # its (-x, x) for a decision x is our logit 2x, so compare probabilities
    from sklearn import calibration

    logits, y = data()
    p = np.clip(np.round(1 / (1 + np.exp(-logits)), digits), 0.01, 0.99)
    columns = np.column_stack([1 - p, p])
    theirs = calibration._TemperatureScaling().fit(columns, y)
    ours = TemperatureCalibrator().fit(columns, y)
    np.testing.assert_allclose(
        ours.predict(columns), theirs.predict(columns)[:, 1], rtol=0, atol=1e-6
    )
    assert ours.temperature_ == pytest.approx(1 / theirs.beta_, rel=1e-6)


def test_logits_and_probabilities_give_one_answer():
    logits, y = data()
    by_logit = TemperatureCalibrator(scale="logit").fit(logits, y)
    by_probability = TemperatureCalibrator().fit(1 / (1 + np.exp(-logits)), y)
    assert by_logit.temperature_ == pytest.approx(by_probability.temperature_, rel=1e-9)


@pytest.mark.filterwarnings(
    "ignore::calibrant.errors.CalibrantWarning"
)  # scores far beyond those seen
@pytest.mark.parametrize(
    ("logits", "y", "at"),
    [
        ([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1], np.exp(-10)),
        ([-2.0, -1.0, 1.0, 2.0], [1, 1, 0, 0], np.exp(10)),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1], np.exp(-10)),
        ([-1e300, 1e300, 5.0, 1.0], [0, 1, 1, 1], np.exp(-10)),
        ([0.0, 0.0, 0.0, 0.0], [0, 1, 1, 1], 1.0),
    ],
)
def test_where_no_temperature_is_best_an_end_is_taken_without_warnings(logits, y, at):
    calibrator = TemperatureCalibrator(scale="logit").fit(logits, y, classes=(0, 1))
    assert calibrator.temperature_ == pytest.approx(at)
    assert np.isfinite(calibrator.predict([-1e308, *logits, 1e308])).all()


def test_certain_probabilities_are_clipped_not_refused():
    calibrator = TemperatureCalibrator().fit([0.0, 0.0, 0.2, 0.8, 1.0, 1.0], [0, 1, 0, 1, 1, 0])
    found = calibrator.predict([0.0, 0.5, 1.0])
    assert 0 < found[0] < 0.5 == found[1] < found[2] < 1


@pytest.mark.parametrize("bad", [-0.1, 1.5])
def test_scores_that_are_no_probabilities_are_refused(bad):
    message = (
        rf"scores must be probabilities in \[0, 1\]; got {bad} at row index 1, and in no other row"
    )
    with pytest.raises(ValueError, match=f"{message}: for logits use scale="):
        TemperatureCalibrator().fit([0.2, bad, 0.7], [0, 1, 1])
    with pytest.raises(ValueError, match="must be probabilities"):
        TemperatureCalibrator().fit([0.2, 0.7], [0, 1]).predict([bad])


def test_scale_must_be_known():
    with pytest.raises(ValueError, match="scale must be one of 'probability', 'logit'; got 'odds'"):
        TemperatureCalibrator(scale="odds").fit(*data())


def test_says_why_there_is_no_guarantee():
    guarantee = TemperatureCalibrator(scale="logit").fit(*data()).guarantee_
    assert "Theorem 3" in guarantee.details
