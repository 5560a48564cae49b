"""The second panel: observed minus predicted, where scores crowd in a corner."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from calibrant import BinningCalibrator, ReliabilityDisplay, Report, audit
from calibrant.draw.difference import (
    guarantee_differences,
    scores_crowd,
    table_crowds,
    table_differences,
)
from calibrant.metrics import reliability_table
from worlds.report_pages import chart, finest, marks, read

RNG = np.random.default_rng(0)
RARE = RNG.beta(1, 30, size=6_000)
SPREAD = RNG.uniform(size=6_000)
Y = (RNG.uniform(size=6_000) < RARE).astype(int)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_panel_is_chosen_by_scores_alone() -> None:
    """Labels cannot change it: what is shown must not depend on what was found."""
    for y in (Y, np.zeros_like(Y), 1 - Y):
        known = {"classes": (0, 1), "pos_label": 1}
        assert table_crowds(reliability_table(y, RARE, **known), 0.0, 1.0)
        assert table_crowds(reliability_table(y, 1.0 - RARE, **known), 0.0, 1.0)
        assert not table_crowds(reliability_table(y, SPREAD, **known), 0.0, 1.0)
    assert not scores_crowd(np.array([]), np.array([], dtype=int), 0.0, 1.0)


def test_it_is_drawn_in_a_new_figure_or_where_it_is_asked_for() -> None:
    assert ReliabilityDisplay.from_predictions(Y, RARE).difference_ax_ is not None
    assert ReliabilityDisplay.from_predictions(Y, SPREAD).difference_ax_ is None
    assert ReliabilityDisplay.from_predictions(Y, RARE, difference=False).difference_ax_ is None
    axes = Figure().subplots(1, 2)
    alone = ReliabilityDisplay.from_predictions(Y, RARE, ax=axes[0])
    assert alone.difference_ax_ is None
    asked = ReliabilityDisplay.from_predictions(Y, SPREAD, difference=True, ax=axes[1])
    assert asked.difference_ax_ is not None
    assert asked.difference_ax_ in asked.figure_.axes
    models = {"one": RARE, "two": RARE**2}
    assert ReliabilityDisplay.from_predictions(Y, models).difference_ax_ is None
    with pytest.raises(ValueError, match="difference"):
        ReliabilityDisplay.from_predictions(Y, RARE, difference="always")


def test_limits_are_those_of_the_rates_less_the_prediction() -> None:
    table = reliability_table(Y, RARE, n_bins=7)
    found = table_differences(table)
    np.testing.assert_array_equal(found.value, table.gap)
    np.testing.assert_array_equal(found.lower, table.lower - table.mean_score)
    np.testing.assert_array_equal(found.upper, table.upper - table.mean_score)
    shares = found.end - found.begin
    np.testing.assert_allclose(shares, table.counts / table.counts.sum())
    calibrator = BinningCalibrator(7).fit(RARE, Y)
    guarantee = calibrator.guarantee_
    around = guarantee_differences(guarantee)
    assert np.abs(np.concatenate([around.lower, around.upper])).max() <= guarantee.epsilon
    assert not around.value.any()


def test_a_bin_without_rows_is_left_out() -> None:
    table = reliability_table(Y, RARE, n_bins=5, partition="uniform")
    assert (table.counts == 0).any()
    assert table_differences(table).value.size == np.count_nonzero(table.counts)


def test_what_is_drawn_are_the_differences() -> None:
    display = ReliabilityDisplay.from_predictions(Y, RARE, n_bins=7)
    drawn = display.difference_ax_.containers[0][0].get_ydata(orig=False)
    np.testing.assert_array_equal(drawn, table_differences(display.observed).value)
    calibrator = BinningCalibrator(7).fit(RARE[:3_000], Y[:3_000])
    both = ReliabilityDisplay.from_calibrator(calibrator, Y[3_000:], RARE[3_000:])
    assert both.difference_ax_ is not None
    (points,) = both.difference_ax_.containers
    (band,) = both.difference_ax_.collections[:1]
    ends = np.unique(band.get_paths()[0].vertices[:, 0].round(12))
    assert len(ends) == np.count_nonzero(calibrator.guarantee_.counts) + 1
    expected = both.observed.rate - calibrator.guarantee_.value
    np.testing.assert_allclose(np.sort(points[0].get_ydata(orig=False)), np.sort(expected))
    np.testing.assert_allclose(points[0].get_xdata(orig=False), (ends[1:] + ends[:-1]) / 2)


def test_the_report_has_it_where_scores_crowd() -> None:
    result = audit(Y, RARE)
    root = read(Report(result).html)
    node = chart(root, "gaps")
    assert len(marks(node)) == finest(result).size
    places = [float(mark.attributes["transform"].split("(")[1].split()[0]) for mark in marks(node)]
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    assert "Observed minus predicted" in root.all("nav")[0].text
    y = RNG.uniform(size=6_000) < SPREAD
    assert "Observed minus predicted" not in Report(audit(y, SPREAD)).html
