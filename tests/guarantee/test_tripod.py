"""The tripod: what follows from what, and the case where the paper's converse fails."""

import numpy as np
import pytest

from calibrant import Interval
from calibrant.tripod import (
    calibration_to_interval,
    interval_to_calibration,
    interval_to_set,
    minimum_expected_width,
    region_sets,
)


def test_there_and_back_gives_the_same_predictor() -> None:
    prediction = np.array([0.3, 0.5, 0.7])
    back = interval_to_calibration(calibration_to_interval(prediction, 0.1), simultaneous=True)
    np.testing.assert_allclose(back.value, prediction)
    assert back.epsilon == pytest.approx(0.1)


def test_converse_is_refused_for_marginal_intervals_that_share_a_midpoint() -> None:
    # regions of probability .9 and .1 with rates .6 and 1, and [.4, .6] on both: coverage .9,
    # half-width .1, error .14
    interval = Interval(np.array([0.4, 0.4]), np.array([0.6, 0.6]))
    mass = np.array([0.9, 0.1])
    rate = np.array([0.6, 1.0])
    covered = (interval.lower <= rate) & (rate <= interval.upper)
    assert mass[covered].sum() == pytest.approx(0.9)
    value = interval.midpoint[0]
    assert abs(mass @ rate - value) == pytest.approx(0.14)
    assert interval.radius.max() == pytest.approx(0.1)
    with pytest.raises(ValueError, match="two regions with one midpoint"):
        interval_to_calibration(interval, simultaneous=False)
    assert interval_to_calibration(interval, simultaneous=True).epsilon == pytest.approx(0.1)


def test_distinct_midpoints_make_a_marginal_interval_convertible() -> None:
    interval = Interval(np.array([0.1, 0.4]), np.array([0.2, 0.6]))
    assert interval_to_calibration(interval, simultaneous=False).epsilon == pytest.approx(0.1)


def test_intersection_with_the_labels_is_empty_for_intervals_inside_the_unit_interval() -> None:
    sets = interval_to_set(Interval(np.array([0.0, 0.2, 0.9, 0.0]), np.array([0.1, 0.3, 1.0, 1.0])))
    assert sets.tolist() == [[True, False], [False, False], [False, True], [True, True]]


def test_region_sets_rule_out_a_label_only_when_it_is_rare_enough() -> None:
    sets = region_sets(
        Interval(np.array([0.0, 0.0, 0.95, 0.94]), np.array([0.05, 0.06, 1.0, 1.0])), 0.95
    )
    assert sets.tolist() == [[True, False], [True, True], [False, True], [True, True]]


def test_no_set_is_ever_empty_even_for_low_coverage() -> None:
    lower = np.linspace(0, 0.9, 50)
    for coverage in (0.01, 0.3, 0.5, 0.9):
        assert region_sets(Interval(lower, lower + 0.1), coverage).any(axis=1).all()


@pytest.mark.parametrize(("level", "width"), [(0.9, 0.4), (0.99, 0.49), (0.5, 0.0), (0.3, 0.0)])
def test_minimum_width_is_one_half_minus_alpha(level: float, width: float) -> None:
    assert minimum_expected_width(level) == pytest.approx(width)
