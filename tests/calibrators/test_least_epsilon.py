"""The curve with about the smallest epsilon: against a search, its cost, and its order."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from calibrant import AnchoredCalibrator
from calibrant.calibrators.anchored.least_epsilon import CurveMoves, Side
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


@pytest.mark.parametrize("known", [0.0, 1.0])
@pytest.mark.parametrize("name", MIDDLES)
def test_the_cost_is_at_most_what_is_allowed_and_more_helps(name, known):
    found = moves(MIDDLES[name], known=known)
    before = found.epsilon(found.unmoved)
    for allowed in (0.05, 0.5, 5.0):
        coefficients = found.least(allowed)
        assert found.divergence(coefficients).sum() <= allowed * (1.0 + 1e-6)
        after = found.epsilon(coefficients)
        assert after <= 1.005 * before
        before = after
    assert after < 0.97 * found.epsilon(found.unmoved)


# older versions of scipy say how they keep to bounds
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")
@pytest.mark.parametrize("allowed", [0.05, 0.5])
@pytest.mark.parametrize("name", MIDDLES)
def test_epsilon_is_about_that_of_a_general_search(name, allowed):
    """A solver for smooth problems, with epsilon as a variable, finds hardly anything better."""
    found = moves(MIDDLES[name])
    start = np.append(found.unmoved.ravel(), found.epsilon(found.unmoved))

    def at(x):
        return x[:9].reshape(3, 3)

    def in_order(x):
        values = found.values(at(x))
        starts = KNOTS.starts[1:-1]
        return values[starts] - values[starts - 1]

    other = minimize(
        lambda x: x[-1],
        start,
        method="SLSQP",
        bounds=[(None, None)] * 3 + [(0.0, None)] * 3 + [(0.2, None)] * 3 + [(0.0, None)],
        constraints=[
            {"type": "ineq", "fun": lambda x: x[-1] - found.epsilon(at(x))},
            {"type": "ineq", "fun": lambda x: allowed - found.divergence(at(x)).sum()},
            {"type": "ineq", "fun": in_order},
        ],
    )
    assert found.epsilon(found.least(allowed)) <= 1.04 * other.x[-1]


def test_values_stay_in_order_and_none_are_tied():
    for name in MIDDLES:
        found = moves(MIDDLES[name])
        values = found.values(found.least(5.0))
        assert (np.diff(values) >= -1e-9).all()
        rises = np.diff(MEAN) > 1e-9
        assert (np.diff(values)[rises] >= 0.19 * np.diff(MEAN)[rises]).all()
        assert values[0] >= 0.5 * MEAN[0] - 1e-9
        assert 1.0 - values[-1] >= 0.5 * (1.0 - MEAN[-1]) - 1e-9


def test_a_first_curve_that_falls_has_no_part():
    found = replace(moves(MIDDLES["right"]), first=FIRST[::-1].copy())
    coefficients = found.least(0.5)
    np.testing.assert_allclose(coefficients[1], 0.0, atol=1e-12)


def test_a_flat_region_stays_flat():
    flat = np.where(KNOTS.region == 1, MEAN[KNOTS.starts[1]], MEAN)
    found = replace(moves(MIDDLES["off in the middle"]), mean=flat)
    values = found.values(found.least(0.5))
    assert np.ptp(values[KNOTS.region == 1]) < 1e-12


def test_an_ignored_region_does_not_matter():
    found = moves((0.0, 0.4, 0.0), ignored=(False, True, False))
    assert found.epsilon(found.least(0.5)) < 0.1


def test_exchanged_labels_give_the_mirrored_curve():
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=1_500)
    y = (rng.uniform(size=1_500) < expit(5.0 * scores - 3.0)).astype(int)
    one = AnchoredCalibrator(random_state=3).fit(scores, y)
    other = AnchoredCalibrator(random_state=3).fit(scores, 1 - y)
    assert abs(one.guarantee_.epsilon / other.guarantee_.epsilon - 1.0) < 0.1
    assert np.abs(one.predict(scores) + other.predict(scores) - 1.0).max() < 0.1
