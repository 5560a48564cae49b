"""Scores that fall with the rate, such as credit points: the default curve falls, too, and says so."""

import numpy as np
import pytest
from scipy.special import expit

from calibrant import Calibrator


def _credit_points(rng, n):
    """Points, and defaults whose rate falls with the points."""
    points = rng.normal(600.0, 50.0, n).round()
    rate = expit((600.0 - points) / 40.0)
    return points, rng.uniform(size=n) < rate, rate


def _log_loss(rate, p):
    return -(rate * np.log(p) + (1.0 - rate) * np.log1p(-p)).mean()


@pytest.mark.parametrize("curve", ["auto", "platt", "venn-abers", "isotonic"])
def test_the_curve_falls_and_keeps_the_opposite_ranking(curve):
    points, y, _ = _credit_points(np.random.default_rng(0), 2_000)
    found = Calibrator(curve).fit(points, y)
    assert (np.diff(found.predict(np.unique(points))) <= 1e-12).all()
    assert found.predict([450.0])[0] > 0.8
    assert found.curve_.startswith("falling")
    assert found.guarantee_.statement.falls
    assert "fall as the score rises" in found.guarantee_.details


def test_it_is_as_good_as_the_same_score_with_the_other_sign():
    rng = np.random.default_rng(1)
    points, y, _ = _credit_points(rng, 3_000)
    new, _, rate = _credit_points(rng, 20_000)
    falling = Calibrator().fit(points, y)
    rising = Calibrator().fit(-points, y)
    one = _log_loss(rate, falling.predict(new))
    other = _log_loss(rate, rising.predict(-new))
    assert one < 1.01 * other
    assert falling.guarantee_.epsilon < 1.2 * rising.guarantee_.epsilon


def test_saving_keeps_the_curve_and_what_is_said():
    points, y, _ = _credit_points(np.random.default_rng(2), 1_000)
    found = Calibrator().fit(points, y)
    again = Calibrator.from_dict(found.to_dict())
    np.testing.assert_array_equal(again.predict(points), found.predict(points))
    assert again.guarantee_.statement.falls


def test_a_score_that_says_nothing_keeps_its_ranking():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=2_000)
    found = Calibrator().fit(scores, rng.uniform(size=2_000) < 0.3)
    assert not found.guarantee_.statement.falls
    assert (np.diff(found.predict(np.sort(scores))) >= 0.0).all()


def test_each_segment_has_its_own_direction():
    """One segment of three rises: its curve does, too, and it is not said that all predictions
    fall.
    """
    rng = np.random.default_rng(5)
    points, y, _ = _credit_points(rng, 3_000)
    segments = np.arange(3_000) % 3
    y = np.where(segments == 0, ~y, y)
    found = Calibrator().fit(points, y, segments=segments)
    assert not found.guarantee_.statement.falls
    grid = np.unique(points)
    for segment, sign in ((0, 1.0), (1, -1.0), (2, -1.0)):
        predicted = found.predict(grid, segments=np.full(grid.size, segment))
        assert (sign * np.diff(predicted) >= -1e-12).all()
        assert sign * (predicted[-1] - predicted[0]) > 0.5


@pytest.mark.slow
def test_the_guarantee_holds_for_falling_scores():
    rng = np.random.default_rng(4)
    truth, _, rate = _credit_points(rng, 100_000)
    draws = 60
    broken = 0
    for _ in range(draws):
        points, y, _ = _credit_points(rng, 400)
        found = Calibrator(confidence_level=0.5).fit(points, y)
        region = found.partition_.regions_of(found.partition_.prepare(truth))
        rows = np.bincount(region, minlength=found.partition_.n_regions)
        error = np.bincount(
            region, rate - found.predict(truth), found.partition_.n_regions
        ) / np.maximum(rows, 1)
        limits = found.guarantee_.errors
        broken += bool(((error < limits.lower) | (error > limits.upper))[rows > 100].any())
    assert broken <= draws * 0.5 + 3 * np.sqrt(draws * 0.25)
