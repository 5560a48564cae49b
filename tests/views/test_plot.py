"""Reliability diagrams: what is drawn is what was computed, and what cannot be drawn is said."""

import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    PlattCalibrator,
    ReliabilityDisplay,
    ScalingBinningCalibrator,
)
from calibrant.errors import CalibrantWarning
from calibrant.metrics import reliability_table

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=4000)
Y = (RNG.uniform(size=4000) < SCORES**2).astype(int)


@pytest.fixture
def ax():
    return Figure().subplots()


def heights(ax) -> set[float]:
    """All heights at which something is drawn as a line or a marker."""
    return {round(float(y), 9) for line in ax.lines for y in np.asarray(line.get_ydata(), dtype=float)}


def test_observed_rates_are_those_of_the_table(ax) -> None:
    display = ReliabilityDisplay.from_predictions(Y, SCORES, n_bins=8, ax=ax)
    table = reliability_table(Y, SCORES, n_bins=8)
    np.testing.assert_array_equal(display.observed.rate, table.rate)
    assert {round(float(rate), 9) for rate in table.rate} <= heights(ax)


def test_promises_are_those_of_the_calibrator(ax) -> None:
    calibrator = BinningCalibrator(8).fit(SCORES, Y)
    display = ReliabilityDisplay.from_calibrator(calibrator, ax=ax)
    assert display.promised is calibrator.guarantee_
    assert display.observed is None


def test_a_classifier_is_drawn_by_its_calibrator(ax) -> None:
    from sklearn.linear_model import LogisticRegression

    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(SCORES[:, None], Y)
    display = ReliabilityDisplay.from_calibrator(model, ax=ax)
    assert display.promised is model.guarantee_


@pytest.mark.parametrize(
    "calibrator",
    [
        PlattCalibrator().fit(SCORES, Y),
        ScalingBinningCalibrator(random_state=0).fit(SCORES, Y),
        BinningCalibrator(3).fit(SCORES, Y, segments=np.where(SCORES * 10 % 1 > 0.5, "a", "b")),
    ],
    ids=["no bins", "bins of another score", "segments"],
)
def test_what_has_no_bins_of_the_score_is_refused_with_a_way_out(calibrator, ax) -> None:
    with pytest.raises(TypeError, match=r"bins of the score itself.*from_predictions"):
        ReliabilityDisplay.from_calibrator(calibrator, ax=ax)


def test_drawing_leaves_the_style_as_it_was(ax) -> None:
    before = dict(matplotlib.rcParams)
    ReliabilityDisplay.from_predictions(Y, SCORES, ax=ax)
    assert dict(matplotlib.rcParams) == before


def test_the_band_of_a_rate_that_does_not_fall_is_drawn() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=2_000)
    rates = {"rising": scores**2, "falling": np.where(scores < 0.7, scores, 0.1)}
    for name, rate in rates.items():
        y = (rng.uniform(size=2_000) < rate).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrantWarning)
            display = ReliabilityDisplay.from_predictions(y, scores, monotone=True, ax=Figure().add_subplot())
        told = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert any("if the rate does not fall" in text for text in told) == (name == "rising")
