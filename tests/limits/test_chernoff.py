"""Chernoff's limits for means solve their equations."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from calibrant.limits.kl import largest_distance, lower_mean


@pytest.mark.parametrize(
    ("mean", "n", "tail"), [(0.05, 1000, 0.05), (0.7, 30, 1e-6), (0.999, 5, 0.3)]
)
def test_lower_limit_of_a_mean_solves_its_equation(mean: float, n: int, tail: float) -> None:
    limit = lower_mean(mean, n, tail)
    entropy = special.rel_entr(mean, limit) + special.rel_entr(1 - mean, 1 - limit)
    assert n * entropy == pytest.approx(-math.log(tail), rel=1e-9)
    assert limit < mean


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("bound", [1e-6, 0.003, 0.4, 6.0])
def test_the_largest_distance_is_that_of_the_best_pair_and_rounded_up(rate, bound) -> None:
    rows = 40

    def other_rate(p: float) -> mp.mpf:
        """The q below p with kl(p, q) = bound, in thirty digits."""
        mean = mp.mpf(p)

        def excess(q: mp.mpf) -> mp.mpf:
            rest = (1 - mean) * mp.log((1 - mean) / (1 - q)) if p < 1.0 else 0
            return mean * mp.log(mean / q) + rest - bound

        start = lower_mean(p, 1, math.exp(-bound))
        low = start * (1 - mp.mpf("1e-6"))
        high = start * (1 + mp.mpf("1e-6"))
        assert excess(low) > 0 > excess(high)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return low

    with mp.workdps(30):
        exact = []
        for low, high, shift in ((1.0 - rate, 1.0, 0.0), (0.0, rate, 0.5 / (rows + 1))):

            def distance(p: float, shift: float = shift) -> float:
                return p - lower_mean(p, 1, math.exp(-bound)) + (1 - 2 * p) * shift

            grid = np.linspace(max(low, 1e-6), high, 2001)
            for _ in range(3):  # the distance is concave in p
                values = [distance(p) for p in grid.tolist()]
                best = float(grid[np.argmax(values)])
                step = grid[1] - grid[0]
                grid = np.linspace(max(best - step, grid[0]), min(best + step, high), 201)
            exact.append(best - other_rate(best) + (1 - 2 * mp.mpf(best)) * mp.mpf(shift))
        found = largest_distance(rate, bound, rows)
        assert found == 1.0 or max(exact) <= found <= max(exact) * (1 + mp.mpf("2e-9"))
