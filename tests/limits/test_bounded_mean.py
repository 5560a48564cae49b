"""Limits for the mean of outcomes between 0 and 1: they cover, shrink, mirror, and solve their
equations.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from calibrant.limits import bounded_mean
from calibrant.limits.bets import Bets
from calibrant.limits.bounded_mean import betting_mean, largest_distance, lower_mean
from worlds.guarantees import assert_kept, assert_rare

ALPHA = 0.1
LEVEL = 1e-4  # there are some 40 binomial tests of metrics and means


@pytest.mark.broad
@pytest.mark.parametrize("world", ["beta", "labels", "two values"])
def test_limits_of_a_bounded_mean_cover_and_shrink(world: str) -> None:
    rng = np.random.default_rng(8)
    draw, mean = {
        "beta": (lambda n: rng.beta(0.2, 3, size=n), 0.2 / 3.2),
        "labels": (lambda n: rng.integers(2, size=n).astype(float), 0.5),
        "two values": (lambda n: np.where(rng.uniform(size=n) < 0.02, 1.0, 0.1), 0.118),
    }[world]
    missed = 0
    for _ in range(500):
        low, high = betting_mean(draw(200), ALPHA)
        missed += not low <= mean <= high
    assert_rare(missed, 500, ALPHA, level=LEVEL)
    low, high = betting_mean(draw(100_000), ALPHA)
    assert high - low < 0.0125


@pytest.mark.parametrize(
    ("mean", "n", "tail"), [(0.05, 1000, 0.05), (0.7, 30, 1e-6), (0.999, 5, 0.3)]
)
def test_lower_limit_of_a_mean_solves_its_equation(mean: float, n: int, tail: float) -> None:
    limit = lower_mean(mean, n, tail)
    entropy = special.rel_entr(mean, limit) + special.rel_entr(1 - mean, 1 - limit)
    assert n * entropy == pytest.approx(-math.log(tail), rel=1e-9)
    assert limit < mean


def largest_capital(outcomes: list[float], mean: float, alpha: float) -> float:
    """The largest capital of the bets on larger outcomes than `mean`, as the docstring of
    `betting_mean` has it.
    """
    capital = largest = 1.0
    total = 0.5
    squares = 0.25
    for i, outcome in enumerate(outcomes, start=1):
        bet = math.sqrt(2 * math.log(2 / alpha) / (len(outcomes) * squares / i))
        capital *= 1 + min(bet, 0.5 / mean) * (outcome - mean)
        largest = max(largest, capital)
        total += outcome
        squares += (outcome - total / (i + 1)) ** 2
    return largest


@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_limits_of_a_betting_mean_are_where_the_capital_reaches_two_over_alpha(
    alpha: float,
) -> None:
    outcomes = np.random.default_rng(21).beta(2, 3, size=400)
    low, high = betting_mean(outcomes, alpha)
    for bets, limit in ((outcomes, low), (1 - outcomes, 1 - high)):
        inside = limit + 2e-3 * (bets.mean() - limit)
        assert (
            largest_capital(bets.tolist(), limit, alpha)
            >= 2 / alpha
            > largest_capital(bets.tolist(), inside, alpha)
        )


def test_betting_is_narrower_than_bernstein_and_chernoff_and_mirrors() -> None:
    rng = np.random.default_rng(9)
    for n in (100, 1_000, 30_000):
        outcomes = rng.beta(0.5, 2, size=n)
        low, high = betting_mean(outcomes, ALPHA)
        bernstein = math.sqrt(
            2 * outcomes.var(ddof=1) * math.log(4 / ALPHA) / n
        )  # Maurer and Pontil (2009), Theorem 4
        bernstein += 7 * math.log(4 / ALPHA) / (3 * (n - 1))
        chernoff = (
            1
            - lower_mean(1 - outcomes.mean(), n, ALPHA / 2)
            - lower_mean(outcomes.mean(), n, ALPHA / 2)
        )
        assert low < outcomes.mean() < high
        assert high - low < 0.9 * 2 * bernstein
        assert high - low < 0.75 * chernoff
        assert betting_mean(1 - outcomes, ALPHA) == pytest.approx((1 - high, 1 - low), abs=1e-6)
    assert betting_mean(np.zeros(50), ALPHA)[0] == 0.0
    assert betting_mean(np.ones(50), ALPHA)[1] == 1.0
    assert betting_mean(np.zeros(1), ALPHA) == pytest.approx((0.0, 1.0), abs=0.05)


def test_bets_on_blocks_give_nearly_the_limits_of_bets_on_single_outcomes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(10)
    for outcomes in (rng.beta(0.5, 2, size=40_000), rng.uniform(0.49, 0.51, size=40_000)):
        blocks = betting_mean(outcomes, ALPHA)
        with monkeypatch.context() as patch:
            patch.setattr("calibrant.limits.bounded_mean._BET_ON_SINGLY", 40_000)
            single = betting_mean(outcomes, ALPHA)
        width = single[1] - single[0]
        assert blocks == pytest.approx(single, abs=0.01 * width)


@pytest.mark.broad
def test_bets_on_blocks_cover_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.limits.bounded_mean._BET_ON_SINGLY", 20)
    draws = np.random.default_rng(12).beta(0.5, 2, size=(400, 300))
    found = np.array([betting_mean(outcomes, 0.2) for outcomes in draws])
    assert_kept([{"mean": (found[:, 0] > 0.2) | (found[:, 1] < 0.2)}], 0.2, caught=0.3)
    assert np.diff(found).mean() < 0.1


def test_bets_on_blocks_stay_below_the_largest_that_is_allowed(monkeypatch):
    """Blocks are so small that a bet on one is about 0.8 of the largest: larger ones would be cut
    off.
    """
    made = []

    def recorded(*fields):
        made.append(Bets(*fields))
        return made[-1]

    monkeypatch.setattr(bounded_mean, "Bets", recorded)
    outcomes = np.random.default_rng(0).integers(0, 2, 40_000).astype(float)
    bounded_mean.betting_mean(outcomes, 0.05)
    (bets,) = made
    on_blocks = bets.stake[2**13 :]
    assert 0.7 < np.median(on_blocks) / bets.most_staked < 0.85


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
