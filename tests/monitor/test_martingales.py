"""The martingales behind all monitors: exact by enumeration, and equal to the formulas that are
stated.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import special, stats

from calibrant.monitor.martingale import (
    RestartedBets,
    ShiftMixture,
    later_start,
    log_sum,
    running_mean_limits,
    start_weight,
)
from calibrant.monitor.pool import exact_scores
from worlds.guarantees import assert_rare


def whole(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def z_of(pool: tuple[int, int], batch: tuple[int, int], uniform: float) -> float:
    arrays = (whole(pool[0]), whole(pool[1]), whole(batch[0]), whole(batch[1]), np.array([uniform]))
    return float(exact_scores(*arrays)[0])


@pytest.mark.parametrize(
    ("pool", "batch"),
    [
        ((30, 12), (7, 3)),
        ((5, 0), (4, 2)),
        ((400, 3), (50, 0)),
        ((0, 0), (6, 2)),
        ((22_507, 284), (709, 220)),  # z = 30.5
        ((9_975, 340), (912, 1)),
    ],
)
def test_scores_are_those_of_the_hypergeometric_law(
    pool: tuple[int, int], batch: tuple[int, int]
) -> None:
    """Counted in whole numbers: all ways to choose the rows of the batch."""
    total = pool[0] + batch[0]
    hits = pool[1] + batch[1]
    size, seen = batch

    def ways(numbers: range) -> int:
        return sum(math.comb(hits, k) * math.comb(total - hits, size - k) for k in numbers)

    every = math.comb(total, size)
    equal = Fraction(ways(range(seen, seen + 1)), every)
    for uniform in (0.0625, 0.5, 0.9375):
        below = Fraction(ways(range(seen)), every) + Fraction(uniform) * equal
        z = stats.norm.ppf(float(below)) if below < 0.5 else -stats.norm.ppf(float(1 - below))
        assert z_of(pool, batch, uniform) == pytest.approx(z, abs=1e-9)


@pytest.mark.broad
def test_scores_of_very_many_rows_are_those_of_the_normal_law() -> None:
    pool = (10**9, 10**8)
    batch = (10**6, 10**5 + 900)
    variance = batch[0] * 0.1 * 0.9 * pool[0] / (pool[0] + batch[0])
    z = z_of(pool, batch, 0.5)
    assert z == pytest.approx(900 / math.sqrt(variance), rel=5e-3)  # the law is a little skewed


def test_scores_beyond_all_doubles_are_finite() -> None:
    assert z_of((10_000, 100), (1000, 1000), 0.5) > 30
    assert z_of((10_000, 9900), (1000, 0), 0.0) < -30


def test_bets_over_three_batches_are_fair_by_enumeration() -> None:
    """The mean of the product of all factors is 1, over every arrangement of labels, with V
    integrated exactly.
    """
    pool = 2
    sizes = (2, 3, 1)
    stakes = (0.7, -1.1, 0.4)
    n_rows = pool + sum(sizes)

    @cache
    def mean_factor(total: int, successes: int, size: int, found: int, stake: float) -> float:
        """The mean of exp(c z - c^2 / 2) over V, where z runs from one quantile to the next."""
        law = stats.hypergeom(total, successes, size)
        low, high = stats.norm.ppf([law.cdf(found - 1), law.cdf(found)])
        return float((stats.norm.cdf(high - stake) - stats.norm.cdf(low - stake)) / law.pmf(found))

    for n_hits in range(n_rows + 1):
        total = 0.0
        arrangements = list(itertools.combinations(range(n_rows), n_hits))
        for hits in arrangements:
            labels = np.zeros(n_rows, dtype=int)
            labels[list(hits)] = 1
            factor = 1.0
            end = pool
            for size, stake in zip(sizes, stakes, strict=True):
                found = int(labels[end : end + size].sum())
                factor *= mean_factor(
                    end + size, int(labels[: end + size].sum()), size, found, stake
                )
                end += size
            total += factor
        assert total / len(arrangements) == pytest.approx(1.0, abs=1e-12)


def test_one_v_for_every_day_would_not_be_fair() -> None:
    """Why V has the number of the batch in its key: with one V for all batches the factors are not
    independent.
    """
    sizes = (1, 1, 1, 1)
    stake = 1.5
    uniforms = (np.arange(2000) + 0.5) / 2000
    means = []
    for own in (True, False):
        shares = [
            uniforms if not own else np.random.default_rng(k).permutation(uniforms)
            for k in range(len(sizes))
        ]
        total = np.zeros(uniforms.size)
        arrangements = list(itertools.combinations(range(5), 2))
        for hits in arrangements:
            labels = np.isin(np.arange(5), hits).astype(int)
            product = np.ones(uniforms.size)
            for step in range(len(sizes)):
                end = 1 + step
                k = labels[:end].sum()
                arrays = (whole(end), whole(k), whole(1), whole(labels[end]))
                z = exact_scores(*(np.repeat(one, uniforms.size) for one in arrays), shares[step])
                product *= np.exp(stake * z - stake**2 / 2)
            total += product
        means.append(total.mean() / len(arrangements))
    assert means[0] == pytest.approx(1.0, abs=0.1)
    assert means[1] > 1.5


def test_the_mixture_is_the_stated_sum() -> None:
    rng = np.random.default_rng(0)
    directions = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 1.0]])
    weights = np.array([0.5, 0.2, 0.3])
    mixture = ShiftMixture(directions, weights)
    pools = [np.array([100.0, 50.0]) + 10 * day for day in range(7)]
    z = rng.normal(size=(7, 2))
    strength = rng.uniform(0.5, 2.0, size=(7, 2))
    for day in range(7):
        mixture.update(z[day], strength[day], pools[day])
    starts = [0, 1, 2, 3, 4, 6]
    total = 1.0 - start_weight(np.arange(6)).sum()
    for number, begin in enumerate(starts):
        for direction, weight in zip(directions, weights, strict=True):
            for size, share in ((0.05, 0.1), (0.1, 0.2), (0.2, 0.25), (0.4, 0.25), (0.8, 0.2)):
                for sign in (1, -1):
                    c = np.array(
                        [
                            sign * size * direction * strength[t] * pools[begin] / pools[t]
                            for t in range(begin, 7)
                        ]
                    )
                    product = np.exp((c * z[begin:] - c**2 / 2).sum())
                    total += start_weight(number) * weight * share / 2 * product
    assert mixture.log_evidence() == pytest.approx(math.log(total), abs=1e-12)


def test_weights_of_starts_add_up_to_one() -> None:
    assert start_weight(np.arange(10**6)).sum() == pytest.approx(1.0, abs=1e-5)
    assert [later_start(k) for k in (1, 2, 4, 6, 20)] == [1, 2, 4, 8, 1024]
    mixture = ShiftMixture(np.ones((1, 1)), np.ones(1))
    for _ in range(5000):
        mixture.update(np.zeros(1), np.zeros(1), np.ones(1))
    assert mixture.n_starts <= 26
    assert mixture.log_evidence() == pytest.approx(0.0, abs=1e-12)


def test_restarted_bets_are_the_stated_sum() -> None:
    rng = np.random.default_rng(1)
    factors = np.exp(rng.normal(size=(6, 2)))
    weights = np.array([0.3, 0.7])
    bets = RestartedBets(weights)
    for row in factors:
        bets.update(np.log(row))
    total = 1.0 - start_weight(np.arange(6)).sum()
    for begin in range(6):
        total += start_weight(begin) * (weights * factors[begin:].prod(axis=0)).sum()
    assert bets.log_evidence() == pytest.approx(math.log(total), abs=1e-12)
    assert RestartedBets(weights).log_evidence() == 0.0


def test_restarted_bets_know_since_when_they_win() -> None:
    bets = RestartedBets(np.ones(1))
    for day in range(60):
        bets.update(np.array([-0.5 if day < 40 else 0.8]))
    assert 38 <= bets.since[0] <= 42


def test_sums_of_logarithms_survive_any_size() -> None:
    assert log_sum(np.array([-1e6, -1e6])) == pytest.approx(-1e6 + math.log(2))
    assert log_sum(np.array([-np.inf])) == -np.inf


@pytest.mark.slow
def test_limits_of_a_mean_hold_at_every_moment() -> None:
    rng = np.random.default_rng(2)
    alpha = 0.1
    missed = 0
    for _ in range(300):
        rates = rng.uniform(0.2, 0.8, size=400)
        hits = np.cumsum(rng.uniform(size=400) < rates)
        means = np.cumsum(rates) / np.arange(1, 401)
        limits = [running_mean_limits(hits[n - 1], n, alpha) for n in range(1, 401)]
        missed += any(
            not low <= mean <= high for (low, high), mean in zip(limits, means, strict=True)
        )
    assert_rare(missed, 300, alpha)
    low, high = running_mean_limits(200, 400, alpha)
    assert high - low < 0.2


def test_a_constant_rate_mixture_of_normals_is_the_closed_form() -> None:
    """The bound solves the mixture's equation: at the limit its logarithm is log(1 / alpha)."""
    n = 900
    alpha = 0.05
    low, _ = running_mean_limits(450, n, alpha)
    excess = 450 - n * low
    variance = n / 4 + 100
    found = 0.5 * math.log(100 / variance) + excess**2 / (2 * variance)
    assert found == pytest.approx(math.log(1 / alpha))
    lam = np.linspace(-1, 1, 20_001)
    numeric = special.logsumexp(
        lam * excess - lam**2 * n / 8 + stats.norm.logpdf(lam, scale=0.1)
    ) + math.log(1e-4)
    assert numeric == pytest.approx(found, abs=1e-6)
