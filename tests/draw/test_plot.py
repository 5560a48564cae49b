"""Reliability diagrams: what is drawn is what was computed, and what cannot be drawn is said."""

import warnings
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    PlattCalibrator,
    ReliabilityDisplay,
    threshold,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.draw.style import decided
from calibrant.errors import CalibrantWarning, InvalidValueError
from calibrant.metrics import reliability_table
from calibrant.text.picture import STYLES

RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=4000)
Y = (RNG.uniform(size=4000) < SCORES**2).astype(int)


@pytest.fixture
def ax():
    return Figure().subplots()


def heights(ax) -> set[float]:
    """All heights at which something is drawn as a line or a marker."""
    return {
        round(float(y), 9) for line in ax.lines for y in np.asarray(line.get_ydata(), dtype=float)
    }


def test_observed_rates_are_those_of_the_table(ax) -> None:
    display = ReliabilityDisplay.from_predictions(Y, SCORES, n_bins=8, ax=ax)
    table = reliability_table(Y, SCORES, n_bins=8)
    np.testing.assert_array_equal(display.observed.rate, table.rate)
    assert {round(float(rate), 9) for rate in table.rate} <= heights(ax)


def test_guarantees_are_those_of_the_calibrator(ax) -> None:
    calibrator = BinningCalibrator(8).fit(SCORES, Y)
    display = ReliabilityDisplay.from_calibrator(calibrator, ax=ax)
    assert display.guarantee is calibrator.guarantee_
    assert display.observed is None


@pytest.mark.broad
def test_a_classifier_is_drawn_by_its_calibrator(ax) -> None:
    from sklearn.linear_model import LogisticRegression

    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(SCORES[:, None], Y)
    display = ReliabilityDisplay.from_calibrator(model, ax=ax)
    assert display.guarantee is model.guarantee_


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


@pytest.mark.broad
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
            display = ReliabilityDisplay.from_predictions(
                y, scores, monotone=True, ax=Figure().add_subplot()
            )
        told = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert any("if the rate does not fall" in text for text in told) == (name == "rising")


def drawn(seed: int = 0, n: int = 1_500):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    return rng.uniform(size=n) < scores, scores


def test_several_models_share_alpha_and_differ_in_colour_dash_and_marker() -> None:
    y, scores = drawn()
    models = {"a": scores, "b": scores**2, "c": np.sqrt(scores)}
    display = ReliabilityDisplay.from_predictions(
        y, models, n_bins=5, confidence_level=0.9, ax=Figure().add_subplot()
    )
    alone = reliability_table(y, scores**2, n_bins=5, confidence_level=1 - 0.1 / 3)
    np.testing.assert_array_equal(display.models["b"].upper, alone.upper)
    lines = [container[0] for container in display.ax_.containers]
    for look in ("get_color", "get_marker", "get_linestyle"):
        assert len({getattr(line, look)() for line in lines}) == 3 or look == "get_linestyle"
    assert (
        len({style.dash for style in STYLES})
        == len({style.marker for style in STYLES})
        == len(STYLES)
    )
    assert "all bins and models simultaneously" in display.ax_.get_title(loc="left")


def test_rare_events_are_drawn_on_the_logit_scale() -> None:
    rng = np.random.default_rng(1)
    scores = 10 ** rng.uniform(-4, -1, size=5_000)
    y = rng.uniform(size=5_000) < scores
    display = ReliabilityDisplay.from_predictions(
        y, scores, n_bins=6, scale="logit", ax=Figure().add_subplot()
    )
    assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("logit", "logit")
    low, high = display.ax_.get_xlim()
    assert 0 < low < 1e-3 < 0.05 < high < 1
    with pytest.raises(InvalidValueError, match="scale must be"):
        ReliabilityDisplay.from_predictions(y, scores, scale="log", ax=Figure().add_subplot())


@pytest.mark.broad
def test_thresholds_and_their_regions_are_marked() -> None:
    y, scores = drawn(2, 4_000)
    found = threshold(y, scores, precision=0.8, npv=0.8)
    ax = Figure().add_subplot()
    ReliabilityDisplay.from_predictions(y, scores, thresholds=found, ax=ax)
    told = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"selected", "referred to a person"} <= set(told)
    act, leave = found.cuts
    assert {f"precision 0.8: {act.threshold:.3g}", f"npv 0.8: {leave.threshold:.3g}"} <= set(told)
    ReliabilityDisplay.from_predictions(
        y, scores, thresholds={"alert": 0.9}, ax=(other := Figure().add_subplot())
    )
    assert "alert: 0.9" in [text.get_text() for text in other.get_legend().get_texts()]


@pytest.mark.parametrize("lost", ["precision", "npv"])
def test_rows_are_referred_where_only_one_of_two_targets_is_proved(lost) -> None:
    y, scores = drawn(2, 4_000)
    found = threshold(y, scores, precision=0.8, npv=0.8)
    cuts = tuple(replace(cut, threshold=None) if cut.target == lost else cut for cut in found.cuts)
    left = replace(found, cuts=cuts)
    act, leave = (cut.threshold for cut in found.cuts)
    at = np.linspace(0.0, 1.0, 1_001)
    for name, (low, high) in decided(left, 0.0, 1.0).items():
        inside = left.predict(at) if name == "selected" else left.refer(at)
        np.testing.assert_array_equal(
            inside, (at >= low) & ((at < high) | (at == 1.0) & (high == 1.0))
        )
    expected = {"referred to a person": (leave, 1.0)}
    if lost == "npv":
        expected = {"selected": (act, 1.0), "referred to a person": (0.0, act)}
    assert decided(left, 0.0, 1.0) == expected
    ax = Figure().add_subplot()
    ReliabilityDisplay.from_predictions(y, scores, thresholds=left, ax=ax)
    assert set(expected) <= {text.get_text() for text in ax.get_legend().get_texts()}


@pytest.mark.broad
@pytest.mark.parametrize(("power", "is_below"), [(3.0, False), (0.3, True)])
def test_the_legend_covers_no_mark(power, is_below) -> None:
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=4_000)
    figure = Figure(figsize=(6, 6), layout="constrained")
    display = ReliabilityDisplay.from_predictions(
        rng.uniform(size=4_000) < scores**power, scores, ax=figure.subplots()
    )
    figure.canvas.draw()
    legend, axes = (part.get_window_extent() for part in (display.ax_.get_legend(), display.ax_))
    assert (legend.y1 < axes.y0) == is_below
    seen = display.observed.counts > 0
    for height in (display.observed.rate[seen], display.observed.upper[seen]):
        places = display.ax_.transData.transform(
            np.column_stack([display.observed.mean_score[seen], height])
        )
        assert not any(legend.contains(*place) for place in places)


def test_from_estimator_is_from_predictions_of_its_probabilities():
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    X, y = make_classification(n_samples=600, random_state=0)
    words = np.where(y == 1, "yes", "no")
    model = LogisticRegression().fit(X[:300], words[:300])
    shown = ReliabilityDisplay.from_estimator(
        model, X[300:], words[300:], pos_label="no", ax=Figure().add_subplot()
    )
    alone = ReliabilityDisplay.from_predictions(
        words[300:], model.predict_proba(X[300:])[:, 0], pos_label="no", ax=Figure().add_subplot()
    )
    np.testing.assert_array_equal(shown.observed.rate, alone.observed.rate)
    assert shown.name == "LogisticRegression"
    with pytest.raises(InvalidValueError) as refused:
        ReliabilityDisplay.from_estimator(model, X[300:], words[300:], pos_label="maybe")
    assert refused.value.parameter == "pos_label"
