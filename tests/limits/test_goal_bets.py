"""Limits by bets that aim at a goal: exact by enumeration, by simulation, and nearly as narrow as
the normal limits.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from calibrant.limits.bet_walk import lower_limits
from calibrant.limits.block_bets import late_sizes
from calibrant.limits.goal_bets import BetUnits, goal_limits
from worlds.guarantees import assert_rare

TAIL = 0.2
SEQUENCES = list(itertools.product((0, 1), repeat=9))


@pytest.fixture(scope="module")
def limits():
    """Of every sequence. A fixture, so that workers which only collect need not compute it."""
    return {
        labels: goal_limits(BetUnits(np.array(labels, dtype=float), 0.0, 1.0, 0.2), TAIL)
        for labels in SEQUENCES
    }


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.5, 0.8, 0.97])
def test_each_limit_misses_at_most_as_often_as_stated_by_enumeration(rate, limits):
    """All sequences of nine labels, each with its probability."""
    missed = np.zeros(2)
    for labels in SEQUENCES:
        lower, upper = limits[labels]
        ones = sum(labels)
        chance = rate**ones * (1.0 - rate) ** (9 - ones)
        missed += chance * np.array([lower > rate, upper < rate])
    assert (missed <= TAIL).all()
    assert missed.max() > 0.0  # the limits are not vacuous


def _skewed(rng, n):
    p = rng.beta(0.3, 6.0, n)
    return BetUnits((rng.uniform(size=n) < p) - p, -1.0, 1.0, 0.04), 0.0


def _jumps(rng, n):
    return BetUnits(np.where(rng.uniform(size=n) < 0.02, 1.0, 0.0), 0.0, 1.0, 0.25), 0.02


def _wrong_guess(rng, n):
    return BetUnits(rng.choice([-0.5, 0.8], size=n, p=[0.6, 0.4]), -0.5, 0.8, 0.05), 0.02


def _weighted(rng, n):
    """The weight depends on the value, so that the weighted mean is not the mean."""
    values = rng.uniform(size=n)
    weights = np.where(values > 0.7, 1.0, 0.1)
    mean = (0.3 * 0.85 + 0.1 * 0.7 * 0.35) / (0.3 + 0.1 * 0.7)
    return BetUnits(values, 0.0, 1.0, 0.02, weights, 0.4), mean


def _atom(rng, n):
    return (
        BetUnits(
            np.where(rng.uniform(size=n) < 0.9, 0.0, rng.uniform(-1.0, 1.0, n)), -1.0, 1.0, 0.03
        ),
        0.0,
    )


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 40, 120])
@pytest.mark.parametrize("world", [_skewed, _jumps, _wrong_guess, _weighted, _atom])
def test_each_limit_misses_at_most_as_often_as_stated(world, n):
    rng = np.random.default_rng(n)
    draws = 200
    missed = np.zeros(2, dtype=int)
    for _ in range(draws):
        units, mean = world(rng, n)
        lower, upper = goal_limits(units, 0.1)
        missed += [lower > mean, upper < mean]
    for side in missed.tolist():
        assert_rare(side, draws, 0.1)


@pytest.mark.parametrize(("n", "wider"), [(100, 1.12), (1000, 1.05), (20_000, 1.04)])
def test_limits_are_nearly_those_of_the_normal_distribution(n, wider):
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(5):
        p = rng.uniform(0.2, 0.5, n)
        lower, upper = goal_limits(BetUnits((rng.uniform(size=n) < p) - p, -0.5, 0.8, 0.22), 0.005)
        normal = norm.isf(0.005) * np.sqrt((p * (1.0 - p)).mean() / n)
        ratios.append((upper - lower) / 2 / normal)
    assert 1.0 < np.mean(ratios) < wider


def test_the_opposite_sign_mirrors_the_limits():
    values = np.random.default_rng(0).uniform(-0.3, 0.6, 200)
    lower, upper = goal_limits(BetUnits(values, -0.3, 0.6, 0.07), 0.05)
    assert goal_limits(BetUnits(-values, -0.6, 0.3, 0.07), 0.05) == (-upper, -lower)


def test_a_smaller_tail_contains_a_larger_one():
    values = np.random.default_rng(0).uniform(size=150)
    lower, upper = goal_limits(BetUnits(values, 0.0, 1.0, 1 / 12), 0.1)
    wider = goal_limits(BetUnits(values, 0.0, 1.0, 1 / 12), 0.001)
    assert wider[0] < lower < values.mean() < upper < wider[1]


def test_without_draws_the_limits_are_the_range():
    assert goal_limits(BetUnits(np.empty(0), -0.25, 0.5, 0.1), 0.05) == (-0.25, 0.5)


def test_weights_of_one_change_nothing():
    values = np.random.default_rng(1).uniform(size=300)
    plain = goal_limits(BetUnits(values, 0.0, 1.0, 0.1), 0.05)
    assert goal_limits(BetUnits(values, 0.0, 1.0, 0.1, np.ones(300)), 0.05) == plain


def capital_by_definition(values, weights, mean, candidate, low, goal):
    """The largest capital of bets against a mean, with the stakes of bets against a candidate."""
    n = values.size
    span = 1.0 - low
    capital = 1.0
    against_candidate = 1.0
    largest = 1.0
    for row in range(n):
        before = values[:row]
        weight = weights[:row]
        centre = np.average(before, weights=weight) if row else 0.0
        spread = np.sum((weight * (before - centre)) ** 2)
        deviation = math.sqrt((2.0 * 0.01 * span**2 + spread) / (2.0 + row))
        x = against_candidate / goal
        if x >= 1.0:
            break
        stake = norm.pdf(norm.ppf(x)) / (x * deviation * math.sqrt(n - row))
        stake = min(stake, 0.9 / (candidate - low)) * weights[row]
        capital *= 1.0 + stake * (values[row] - mean)
        against_candidate *= 1.0 + stake * (values[row] - candidate)
        largest = max(largest, capital)
    return largest


@pytest.mark.parametrize("world", ["spread", "equal", "rare", "weighted"])
def test_the_limit_is_where_the_capital_reaches_the_goal_and_a_step_further_it_does_not(world):
    """Fails if the goal, the cap on stakes, or the candidates change."""
    rng = np.random.default_rng(8)
    low = -1.0
    n = 100
    weights = np.ones(n)
    values = rng.uniform(-0.4, 0.9, n)
    if world == "equal":  # the cap decides
        values = np.full(n, 0.25)
    if world == "rare":
        values = np.where(rng.uniform(size=n) < 0.1, 0.8, 0.0)
    if world == "weighted":
        weights = rng.uniform(0.1, 1.0, n)
    tail = 0.04
    lower, _ = goal_limits(
        BetUnits(values, low, 1.0, weights=None if world != "weighted" else weights), tail
    )
    step = math.sqrt(0.01) * 2.0 / (4.0 * math.sqrt(n))
    number = math.ceil((lower - low) / step - 1e-9)
    goal = 1.0 / (0.99 * tail)
    for below in range(number - 3, number):
        candidate = low + below * step
        assert capital_by_definition(values, weights, candidate, candidate, low, goal) >= goal
    candidate = low + number * step
    assert capital_by_definition(values, weights, lower, candidate, low, goal) >= goal
    if candidate > lower + step / 2**8:
        beyond = lower + step / 2**8
        assert capital_by_definition(values, weights, beyond, candidate, low, goal) < goal


def test_sums_of_powers_cost_little_width():
    """Limits where early blocks are bounded are near to those of exact blocks."""
    rng = np.random.default_rng(9)
    values = rng.beta(0.5, 2.0, 3000)
    weights = rng.uniform(0.05, 1.0, values.size)
    for units in (
        BetUnits(values, 0.0, 1.0, 0.03),
        BetUnits(values, 0.0, 1.0, 0.01, weights, 0.5),
    ):
        for one in (units, units.mirrored):
            found = [
                float(lower_limits(one.bets(20.0, late_sizes(n_late)), np.array([0.01]))[0])
                for n_late in (128, 3000)
            ]
            assert found[0] == pytest.approx(found[1], abs=0.06 * (values.mean() - units.low) / 9)


@pytest.mark.slow
def test_limits_of_many_rows_hold_where_early_blocks_are_bounded():
    rng = np.random.default_rng(11)
    draws = 60
    missed = np.zeros(2, dtype=int)
    for _ in range(draws):
        values = np.where(rng.uniform(size=20_000) < 0.001, 1.0, rng.uniform(0.0, 0.02, 20_000))
        lower, upper = goal_limits(BetUnits(values, -1.0, 1.0), 0.25)
        mean = 0.001 + 0.999 * 0.01
        missed += [lower > mean, upper < mean]
    for side in missed.tolist():
        assert_rare(side, draws, 0.25)
