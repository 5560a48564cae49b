"""The curve without jumps that has about the smallest epsilon: its cost, its order, its edges."""

import os
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import expit

from calibrant import Calibrator
from calibrant.calibrators.curve.least_epsilon import SMOOTHNESS, CurveMoves, Side
from calibrant.calibrators.curve.programme import Programme, _blends, _places, joined_edges
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


def error_of(found, coefficients, values):
    """The largest error: limits on labels, on averages of both curves, and steps times gaps."""
    _, of_first, of_mean = coefficients.reshape(3, -1)
    rest = values - of_first[KNOTS.region] * FIRST - of_mean[KNOTS.region] * found.mean
    off = np.add.reduceat(np.abs(np.diff(rest, append=rest[-1])) * found.gaps, KNOTS.starts[:-1])
    mean = np.add.reduceat(rest, KNOTS.starts[:-1]) / np.diff(KNOTS.starts)
    of_g0 = (found.of_first.lower, found.of_first.upper)
    upper = np.maximum(*((found.above.known - of_first - of_mean) * average for average in of_g0))
    lower = np.minimum(*((found.below.known - of_first - of_mean) * average for average in of_g0))
    upper += found.above.limit - of_mean * found.apart.lower - mean + off
    lower += found.below.limit - of_mean * found.apart.upper - mean - off
    refuted = np.maximum(np.maximum(lower, -upper), 0.0).sum()
    return np.maximum(upper, -lower).max(), refuted


def values_of(coefficients, width):
    """The values of blended curves."""
    shift, of_first, of_mean = coefficients.reshape(3, -1)
    region = KNOTS.region
    before, after = _blends(KNOTS, ROWS, EDGES if width else EDGES[:0], width)

    def curve(number):
        number = np.clip(number, 0, 2)
        return shift[number] + of_first[number] * FIRST + of_mean[number] * MEAN

    own = (1.0 - before - after) * curve(region)
    return own + before * curve(region - 1) + after * curve(region + 1)


UNMOVED = np.repeat([0.0, 0.0, 1.0], 3)


@pytest.mark.parametrize("known", [0.0, 1.0])
@pytest.mark.parametrize("name", MIDDLES)
def test_the_cost_is_at_most_what_is_allowed_and_more_helps(name, known):
    found = moves(MIDDLES[name], known=known)
    most = before = error_of(found, UNMOVED, MEAN)[0]
    for allowed in (0.05, 0.5, 5.0):
        moved = found.least(allowed)
        assert found.divergence(moved.values) <= allowed
        assert moved.epsilon <= 1.02 * before
        before = moved.epsilon
    assert moved.epsilon < 0.97 * most


@pytest.mark.parametrize("width", [0.5, 0.0])
@pytest.mark.parametrize("name", MIDDLES)
def test_no_other_coefficients_are_much_better(name, width):
    """Steps from the solution in random directions, at the same log loss and in order."""
    found = moves(MIDDLES[name])
    best = Programme(found, width, 0.5, 0.0).solved()
    allowed = found.divergence(best.values)
    errors = sum(error_of(found, best.coefficients, best.values))
    rng = np.random.default_rng(3)
    tried = 0
    for size in (0.3, 0.03, 0.003):
        for _ in range(300):
            other = best.coefficients + size * rng.normal(size=9)
            other[3:6] = np.maximum(other[3:6], 0.0)
            other[6:] = np.maximum(other[6:], 0.2)
            values = values_of(other, width)
            rises = np.diff(values) >= 0.2 * np.diff(MEAN) - 1e-9
            if rises.all() and found.divergence(values) <= allowed:
                tried += 1
                assert sum(error_of(found, other, values)) >= 0.985 * errors
    assert tried > 10


@pytest.mark.parametrize("name", MIDDLES)
def test_blended_curves_do_not_jump_and_others_do(name):
    found = moves(MIDDLES[name])
    values = found.least(5.0).values
    np.testing.assert_allclose(values[EDGES], values[EDGES - 1], atol=1e-9)
    apart = Programme(found, 0.0, 5.0, 0.0).solved().values
    if name == "off in the middle":
        assert np.abs(apart[EDGES] - apart[EDGES - 1]).max() > 0.01


@pytest.mark.parametrize("known", [0.0, 1.0])
@pytest.mark.parametrize("name", MIDDLES)
def test_the_errors_of_a_programme_are_those_of_the_final_curve(name, known):
    found = moves(MIDDLES[name], known=known)
    best = Programme(found, 0.5, 5.0, SMOOTHNESS).solved()
    np.testing.assert_allclose(best.values, values_of(best.coefficients, 0.5), atol=1e-12)
    epsilon, _ = error_of(found, best.coefficients, best.values)
    assert best.epsilon == pytest.approx(epsilon, rel=1e-9)


def test_more_smoothness_makes_smaller_distances_at_edges():
    found = moves(MIDDLES["falling"])
    apart = []
    for smoothness in (0.0, 0.01, 1.0):
        best = Programme(found, 0.5, 5.0, smoothness).solved()
        shift, of_first, of_mean = best.coefficients.reshape(3, -1)
        ends = shift[:, None] + of_first[:, None] * FIRST[EDGES] + of_mean[:, None] * MEAN[EDGES]
        apart.append(np.abs([ends[1, 0] - ends[0, 0], ends[2, 1] - ends[1, 1]]).sum())
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
        inner = np.diff(KNOTS.score) > 1e-9
        assert (np.diff(values)[inner] > 0.19 * np.diff(MEAN)[inner]).all()
        assert (np.diff(values) >= -1e-9).all()
        assert values[0] >= 0.499 * MEAN[0]
        assert 1.0 - values[-1] >= 0.499 * (1.0 - MEAN[-1])


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


def nearly_equal(value, rng):
    """The same, but for the last digits."""
    if isinstance(value, Interval | Side):
        parts = {part.name: nearly_equal(getattr(value, part.name), rng) for part in fields(value)}
        return type(value)(**parts)
    return value * (1.0 + 1e-15 * rng.integers(-1, 2, value.shape))


@pytest.mark.parametrize("known", [0.0, 1.0])
def test_last_digits_do_not_decide_which_curve_is_found(known):
    rng = np.random.default_rng(8)
    for _ in range(20):
        found = moves(rng.uniform(-0.1, 0.1, 3), rng.uniform(0.03, 0.15), known=known)
        changed = {
            name: nearly_equal(getattr(found, name), rng)
            for name in ("first", "mean", "gaps", "rows", "below", "above", "apart", "of_first")
        }
        other = replace(found, **changed)
        allowed = rng.uniform(0.1, 2.0)
        values = other.least(allowed).values
        np.testing.assert_allclose(found.least(allowed).values, values, atol=1e-9)


FITS = """
import numpy as np
from calibrant import Calibrator

for seed in range(24):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(150, 2500))
    scores = rng.uniform(size=n) ** rng.uniform(0.3, 4.0)
    if seed % 5 == 4:
        scores = np.round(scores, 1)
    rates = (scores**2, np.where(scores > 0.6, 0.7, 0.2), 0.5 + 0.4 * np.sin(9 * scores), 1 - scores)
    y = (rng.uniform(size=n) < rates[seed % 4]).astype(int)
    grid = np.linspace(0.01, 0.99, 30)
    fit, new = {}, {}
    if seed % 3 == 0:
        fit = {"segments": rng.integers(0, 3, n)}
        new = {"segments": np.arange(30) % 3}
    print(*map(repr, Calibrator().fit(scores, y, **fit).predict(grid, **new).tolist()))
"""


@pytest.mark.broad
def test_processors_agree_on_the_curve():
    """Those that OpenBLAS tells apart differ in the last digits of sums."""
    found = []
    for kind in ("Prescott", ""):
        named = {"OPENBLAS_CORETYPE": kind} if kind else {}
        command = [sys.executable, "-W", "ignore", "-c", FITS]
        done = subprocess.run(
            command, env={**os.environ, **named}, capture_output=True, text=True, check=True
        )
        found.append(np.array([line.split() for line in done.stdout.splitlines()], dtype=float))
    assert found[0].shape == (24, 30)
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)


def test_exchanged_labels_give_the_mirrored_curve():
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=1_500)
    y = (rng.uniform(size=1_500) < expit(5.0 * scores - 3.0)).astype(int)
    one = Calibrator(random_state=3).fit(scores, y)
    other = Calibrator(random_state=3).fit(scores, 1 - y)
    assert abs(one.guarantee_.epsilon / other.guarantee_.epsilon - 1.0) < 0.1
    assert np.abs(one.predict(scores) + other.predict(scores) - 1.0).max() < 0.1
