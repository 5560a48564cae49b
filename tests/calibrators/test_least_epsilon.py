"""The curve without jumps that has about the smallest epsilon: its cost, its order, its edges."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from calibrant import Calibrator
from calibrant.calibrators.curve.least_epsilon import (
    SMOOTHNESS,
    CurveMoves,
    Side,
    _blends,
    _places,
    _Programme,
    joined_edges,
)
from calibrant.cells.knots import Knots
from calibrant.cells.score_partition import ScorePartition
from calibrant.limits.interval import Interval

KNOTS = Knots.between(ScorePartition(np.array([0.3, 0.6])), [np.linspace(0.0, 1.0, 16)])
FIRST = 0.1 + 0.7 * KNOTS.score
MEAN = 0.1 + 0.75 * KNOTS.score**1.3
ROWS = np.full(KNOTS.n_knots, 12.0)


def moves(middle, half_width=0.08, unknown=0.02, known=1.0, ignored=(False, False, False)):
    """Limits of equal widths on labels minus the first curve, with these middles."""
    starts = KNOTS.starts[:-1]
    size = np.diff(KNOTS.starts)
    apart = np.add.reduceat(MEAN - FIRST, starts) / size
    average = np.add.reduceat(FIRST, starts) / size
    known = np.full(3, known)
    middle = np.asarray(middle) + apart + (1.0 - known) * average
    return CurveMoves(
        KNOTS,
        FIRST,
        MEAN,
        ROWS,
        np.where(np.diff(KNOTS.region, append=3) == 0, 0.03, 0.0),
        ROWS,
        Side(middle - half_width, known),
        Side(middle + half_width, known),
        Interval(apart - unknown, apart + unknown),
        Interval(average - 0.02, average + 0.02),
        np.array(ignored),
    )


MIDDLES = {
    "right": (0.0, 0.0, 0.0),
    "off in the middle": (0.0, 0.06, 0.0),
    "falling": (0.15, 0.0, -0.15),
}
EDGES = KNOTS.starts[1:-1]


@pytest.mark.parametrize("known", [0.0, 1.0])
@pytest.mark.parametrize("name", MIDDLES)
def test_the_cost_is_at_most_what_is_allowed_and_more_helps(name, known):
    found = moves(MIDDLES[name], known=known)
    unmoved = _Programme(found, 0.0, 1.0, SMOOTHNESS)
    most = before = unmoved.epsilon(found.unmoved, MEAN)
    for allowed in (0.05, 0.5, 5.0):
        moved = found.least(allowed)
        assert found.divergence(moved.values).sum() <= allowed * (1.0 + 1e-6)
        assert moved.epsilon <= 1.02 * before
        before = moved.epsilon
    assert moved.epsilon < 0.97 * most


@pytest.mark.parametrize("width", [0.5, 0.0])
@pytest.mark.parametrize("name", MIDDLES)
def test_no_other_coefficients_are_much_better(name, width):
    """Steps from the solution in random directions, within what is allowed and in order."""
    allowed = 0.5
    found = moves(MIDDLES[name])
    programme = _Programme(found, width, allowed, SMOOTHNESS)
    best = programme.solved()
    goal = programme.goal(best.coefficients)
    rng = np.random.default_rng(3)
    tried = 0
    for size in (0.3, 0.03, 0.003):
        for _ in range(300):
            other = best.coefficients + size * rng.normal(size=9)
            other[3:6] = np.maximum(other[3:6], 0.0)
            other[6:] = np.maximum(other[6:], 0.2)
            values = programme.values @ other
            rises = np.diff(values) >= 0.2 * np.diff(MEAN) - 1e-9
            if rises.all() and found.divergence(values).sum() <= allowed:
                tried += 1
                assert programme.goal(other) >= 0.99 * goal
    assert tried > 10


@pytest.mark.parametrize("name", MIDDLES)
def test_blended_curves_do_not_jump_and_others_do(name):
    found = moves(MIDDLES[name])
    values = found.least(5.0).values
    np.testing.assert_allclose(values[EDGES], values[EDGES - 1], atol=1e-9)
    apart = _Programme(found, 0.0, 5.0, 0.0).solved().values
    if name == "off in the middle":
        assert np.abs(apart[EDGES] - apart[EDGES - 1]).max() > 0.01


def test_the_errors_of_a_programme_are_those_of_the_final_curve():
    """Limits on labels, on the averages of both curves, and on the rest, by steps times gaps."""
    found = moves(MIDDLES["falling"])
    programme = _Programme(found, 0.5, 5.0, SMOOTHNESS)
    best = programme.solved()
    _, of_first, of_mean = (part[KNOTS.region] for part in best.coefficients.reshape(3, -1))
    rest = best.values - of_first * FIRST - of_mean * MEAN
    off = np.add.reduceat(np.abs(np.diff(rest, append=rest[-1])) * found.gaps, KNOTS.starts[:-1])
    mean = np.add.reduceat(rest, KNOTS.starts[:-1]) / np.diff(KNOTS.starts)
    _, of_first, of_mean = best.coefficients.reshape(3, -1)
    slack = 1.0 - of_first - of_mean
    upper = np.maximum(slack * found.of_first.lower, slack * found.of_first.upper)
    upper += found.above.limit - of_mean * found.apart.lower - mean + off
    lower = np.minimum(slack * found.of_first.lower, slack * found.of_first.upper)
    lower += found.below.limit - of_mean * found.apart.upper - mean - off
    assert best.epsilon == pytest.approx(np.maximum(upper, -lower).max(), rel=1e-9)


def test_more_smoothness_makes_smaller_distances_at_edges():
    found = moves(MIDDLES["falling"])
    apart = []
    for smoothness in (0.0, 0.01, 1.0):
        programme = _Programme(found, 0.5, 5.0, smoothness)
        apart.append(np.abs(programme.distance @ programme.solved().coefficients).sum())
    assert apart[2] < 0.9 * apart[0]
    assert apart[2] <= apart[1] + 1e-9


def test_positions_reach_from_0_to_1_and_edges_weigh_one_half():
    rows = np.random.default_rng(0).integers(0, 9, size=KNOTS.n_knots).astype(float)
    for at_knots in (rows, np.zeros(KNOTS.n_knots)):
        place = _places(KNOTS, at_knots)
        assert (place[KNOTS.starts[:-1]] == 0.0).all()
        assert (place[KNOTS.starts[1:] - 1] == 1.0).all()
        for width in (0.5, 0.06):
            before, after = _blends(KNOTS, at_knots, EDGES, width)
            assert (before[EDGES] == 0.5).all()
            assert (after[EDGES - 1] == 0.5).all()
            assert before[0] == after[-1] == 0.0


def test_regions_of_one_score_are_not_joined():
    assert joined_edges(KNOTS).tolist() == EDGES.tolist()
    tied = ScorePartition(np.array([0.3, 0.6]), atoms=np.array([True, False]))
    knots = Knots.between(tied, [np.linspace(0.0, 1.0, 16)])
    single = np.flatnonzero(np.diff(knots.starts) == 1)
    assert single.size == 1
    assert knots.starts[single[0]] not in joined_edges(knots)
    assert knots.starts[single[0] + 1] not in joined_edges(knots)


def test_values_stay_in_order_and_none_are_tied():
    for name in MIDDLES:
        values = moves(MIDDLES[name]).least(5.0).values
        assert (np.diff(values) >= 0.2 * np.diff(MEAN) - 1e-9).all()
        assert values[0] >= 0.5 * MEAN[0] - 1e-9
        assert 1.0 - values[-1] >= 0.5 * (1.0 - MEAN[-1]) - 1e-9


def test_a_first_curve_that_falls_has_no_part():
    found = replace(moves(MIDDLES["right"]), first=FIRST[::-1].copy())
    np.testing.assert_allclose(found.least(0.5).coefficients[3:6], 0.0, atol=1e-12)


def test_a_flat_region_is_only_shifted():
    flat = np.where(KNOTS.region == 1, MEAN[KNOTS.starts[1]], MEAN)
    found = replace(moves(MIDDLES["off in the middle"]), mean=flat)
    _, of_first, of_mean = found.least(0.5).coefficients.reshape(3, -1)
    assert (of_first[1], of_mean[1]) == (0.0, 1.0)


def test_an_ignored_region_does_not_matter():
    found = moves((0.0, 0.4, 0.0), ignored=(False, True, False))
    assert found.least(0.5).epsilon < 0.1


def test_exchanged_labels_give_the_mirrored_curve():
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=1_500)
    y = (rng.uniform(size=1_500) < expit(5.0 * scores - 3.0)).astype(int)
    one = Calibrator(random_state=3).fit(scores, y)
    other = Calibrator(random_state=3).fit(scores, 1 - y)
    assert abs(one.guarantee_.epsilon / other.guarantee_.epsilon - 1.0) < 0.1
    assert np.abs(one.predict(scores) + other.predict(scores) - 1.0).max() < 0.1
