"""A smooth curve is drawn as a curve, bins as steps, in plots and in the report."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from calibrant import BinningCalibrator, Calibrator, ReliabilityDisplay, audit
from calibrant.draw.curve import predicted_curve, predicted_ends
from calibrant.draw.report.report import Report

BOUNDS = np.array([[0.0, 0.25], [0.25, 0.5], [0.5, 1.0]])


class Steps:
    """One value in each region, and another one at an edge, which is in no region."""

    def predict(self, scores):
        inside = np.searchsorted([0.25, 0.5], scores) / 2
        return np.where(np.isin(scores, [0.25, 0.5]), 0.9, inside)


class Line:
    def predict(self, scores):
        return scores**2


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=4_000)
    return scores, rng.uniform(size=4_000) < scores**2


def test_one_value_in_each_region_is_no_curve():
    assert predicted_curve(Steps(), BOUNDS, 0.0, 1.0) is None
    assert predicted_ends(Steps(), BOUNDS) is None


def test_a_curve_has_both_sides_of_each_edge():
    scores, values = predicted_curve(Line(), BOUNDS, 0.0, 1.0).T
    assert {0.25, np.nextafter(0.25, 0.0), np.nextafter(0.25, 1.0)} <= set(scores.tolist())
    np.testing.assert_array_equal(values, scores**2)
    assert (scores[0], scores[-1]) == (0.0, 1.0)


def test_regions_that_reach_to_infinity_end_at_the_outer_edges_or_where_scores_were_seen():
    bounds = np.array([[-np.inf, 0.25], [0.25, 0.5], [0.5, np.inf]])
    ends = predicted_ends(Line(), bounds)
    np.testing.assert_allclose(ends, [[0.0625, 0.0625], [0.0625, 0.25], [0.25, 0.25]])
    line = Line()
    line.score_range_seen_ = (0.125, 0.75)
    ends = predicted_ends(line, bounds)
    np.testing.assert_allclose(ends[[0, 2]], [[0.125**2, 0.0625], [0.25, 0.75**2]])


@pytest.mark.parametrize(("kind", "smooth"), [(Calibrator, True), (BinningCalibrator, False)])
def test_the_display_draws_a_curve_through_the_bands_or_steps(kind, smooth, rows):
    calibrator = kind(n_bins=5).fit(*rows)
    display = ReliabilityDisplay.from_calibrator(calibrator, ax=Figure().add_subplot())
    drawn = [
        line for line in display.ax_.get_lines() if line.get_label() == "calibrated probability"
    ]
    scores, values = drawn[0].get_data()
    assert (np.unique(values).size > 5) is smooth
    if smooth:
        np.testing.assert_array_equal(values, calibrator.predict(scores))
        assert np.unique(values).size > 100


@pytest.mark.parametrize(("kind", "wide"), [(Calibrator, True), (BinningCalibrator, False)])
def test_bars_under_a_curve_are_as_wide_as_the_predictions_of_a_region(kind, wide, rows):
    from calibrant.draw.report.audit_figures import after_figure
    from calibrant.draw.report.page import Inputs

    scores, y = rows
    inputs = Inputs(audit(y, scores), kind(n_bins=5).fit(scores, y))
    bars = after_figure(inputs, 20).bars
    assert len(bars) == 5
    assert ("smallest" in bars[0].data) is wide
    assert bool(max(bar.width for bar in bars) > 50.0) is wide
    assert "After calibration" in Report(inputs.audit, inputs.calibrator).html
