"""Tails of sums of labels with unlike rates, against full enumeration and the binomial
distribution.
"""

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from calibrant.limits.poisson_binomial import log_tail_bound, lower_tail, upper_tail


def enumerated(rates: np.ndarray, count: int) -> float:
    total = 0.0
    for labels in product((0, 1), repeat=rates.size):
        if sum(labels) >= count:
            total += float(np.prod(np.where(labels, rates, 1.0 - rates)))
    return total


@pytest.mark.parametrize("seed", range(5))
def test_tails_are_those_of_full_enumeration(seed: int):
    rng = np.random.default_rng(seed)
    rates = np.r_[rng.random(8), 0.0, 1.0]
    for count in range(12):
        assert upper_tail(rates, count) == pytest.approx(enumerated(rates, count), abs=2e-12)
        below = 1.0 - enumerated(rates, count + 1)
        assert lower_tail(rates, count) == pytest.approx(below, abs=2e-12)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 129, 5000])
def test_equal_rates_give_the_binomial_tail(n: int):
    for count in (0, 1, n // 3, n // 2, n):
        expected = stats.binom.sf(count - 1, n, 0.3)
        assert upper_tail(np.full(n, 0.3), count) == pytest.approx(expected, abs=5e-12)
        assert upper_tail(np.full(n, 0.3), count) >= expected * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_never_below_the_tail_also_where_rates_are_averaged(seed: int):
    rng = np.random.default_rng(seed)
    rates = rng.beta(0.5, 2.0, 300)
    kind = (rates * 20).astype(int)
    counts = np.bincount(kind)
    means = np.bincount(kind, rates) / np.maximum(counts, 1)
    for count in range(0, 301, 7):
        exact = upper_tail(rates, count)
        bound = np.exp(log_tail_bound(counts, means, count))
        assert bound >= exact - 2e-12
        if 1e-7 < exact < 0.01:
            assert bound < 20 * exact, "close enough to be of use"


def test_what_cannot_happen_has_no_tail():
    assert upper_tail(np.zeros(5), 1) == 0.0
    assert log_tail_bound(np.array([5]), np.array([0.0]), 1) == -np.inf
    assert log_tail_bound(np.array([5]), np.array([0.5]), 6) == -np.inf
    assert log_tail_bound(np.array([5]), np.array([0.5]), 5) == pytest.approx(5 * np.log(0.5))
    assert log_tail_bound(np.array([5]), np.array([0.5]), 2) == 0.0


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_the_best_of_all_exponents(seed: int):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 200, 5)
    means = rng.uniform(0.001, 0.6, 5)
    expected = float(counts @ means)
    for share in (0.02, 0.3, 0.9, 0.999):
        count = expected + share * (counts.sum() - expected)

        def exponent(tilt: float, count: float = count) -> float:
            return float(counts @ np.log1p(means * np.expm1(tilt))) - tilt * count

        best = minimize_scalar(exponent, bounds=(0.0, 40.0), options={"xatol": 1e-12}).fun
        assert log_tail_bound(counts, means, count) == pytest.approx(best, rel=1e-8, abs=1e-8)
