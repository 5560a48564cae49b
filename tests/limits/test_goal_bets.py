"""Limits by bets that aim at a goal: exact by enumeration, by simulation, and nearly as narrow as the normal limits."""

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from calibrant.limits.goal_bets import BetUnits, goal_limits

TAIL = 0.2


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.5, 0.8, 0.97])
def test_each_limit_misses_at_most_as_often_as_stated_by_enumeration(rate):
    """All sequences of nine labels, each with its probability."""
    missed = np.zeros(2)
    for labels in SEQUENCES:
        lower, upper = LIMITS[labels]
        ones = sum(labels)
        chance = rate**ones * (1.0 - rate) ** (9 - ones)
        missed += chance * np.array([lower > rate, upper < rate])
    assert (missed <= TAIL).all()
    assert missed.max() > 0.0  # the limits are not vacuous


SEQUENCES = list(itertools.product((0, 1), repeat=9))
LIMITS = {labels: goal_limits(BetUnits(np.array(labels, dtype=float), 0.0, 1.0, 0.2), TAIL) for labels in SEQUENCES}


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
    return BetUnits(np.where(rng.uniform(size=n) < 0.9, 0.0, rng.uniform(-1.0, 1.0, n)), -1.0, 1.0, 0.03), 0.0


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
        assert binomtest(side, draws, 0.1, alternative="greater").pvalue > 1e-3


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
