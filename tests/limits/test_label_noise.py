"""Noise of labels with fixed multipliers: exact by enumeration, and close to the normal limit."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from calibrant.limits.interval import Interval
from calibrant.limits.non_identical import largest_variance, noise_bound, signed_noise_bound

LABELS = np.array(list(itertools.product((0, 1), repeat=8)), dtype=float)
RATES = {
    "alike": np.full(8, 0.5),
    "rare": np.full(8, 0.03),
    "sure": np.full(8, 0.98),
    "mixed": np.array([0.01, 0.02, 0.1, 0.3, 0.6, 0.9, 0.99, 1.0]),
    "one open": np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.5]),
}
SIGNS = {
    "all": np.ones(8),
    "none": -np.ones(8),
    "halves": np.repeat([1.0, -1.0], 4),
    "turns": np.tile([1.0, -1.0], 4),
}


def exceeded(rates: np.ndarray, multipliers: np.ndarray, bound: float) -> float:
    chance = np.prod(np.where(LABELS == 1.0, rates, 1.0 - rates), axis=1)
    noise = ((rates - LABELS) * multipliers).mean(axis=1)
    return float(chance[noise > bound + 1e-12].sum())


@pytest.mark.parametrize("tail", [0.01, 0.1, 0.25, 0.45])
@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
def test_noise_exceeds_its_bound_at_most_as_often_as_stated(rates, tail):
    variance = float((rates * (1.0 - rates)).mean())
    for signs in SIGNS.values():
        assert exceeded(rates, signs, signed_noise_bound(8, variance, tail)) <= tail
        for size in (np.ones(8), np.linspace(0.1, 1.0, 8)):
            assert exceeded(rates, signs * size, noise_bound(8, variance, tail)) <= tail


def test_bounds_cannot_be_much_smaller():
    """Of labels that are all alike, the noise exceeds nine tenths of the bound more often than
    stated.
    """
    often = [
        exceeded(np.full(8, rate), np.ones(8), 0.9 * signed_noise_bound(8, 0.25, 0.25))
        for rate in (0.5, 0.55, 0.6)
    ]
    assert max(often) > 0.25


@pytest.mark.parametrize(("n", "wider"), [(100, 0.1), (4096, 0.02), (4097, 0.08), (100_000, 0.07)])
def test_with_signs_the_bound_is_nearly_that_of_the_normal_distribution(n, wider):
    """In standard errors; of many rows not every number of positives is looked at."""
    for tail in (0.25, 0.02):
        normal = norm.isf(tail) / 2.0
        assert normal < signed_noise_bound(n, 0.25, tail) * np.sqrt(n) < normal + wider


def test_a_small_variance_makes_the_bound_small():
    variance = 0.01
    assert noise_bound(10_000, variance, 0.05) == pytest.approx(
        np.sqrt(2 * variance * np.log(20) / 10_000), rel=0.05
    )
    assert noise_bound(10_000, None, 0.05) == pytest.approx(np.sqrt(np.log(20) / 20_000), rel=1e-12)


def test_the_largest_variance_is_that_of_the_rate_next_to_one_half():
    found = largest_variance(Interval(np.array([0.1, 0.4, 0.7]), np.array([0.2, 0.6, 0.9])))
    assert found == pytest.approx([0.16, 0.25, 0.21])
