"""Each method against an independent computation: reference tables, scipy, statsmodels, and the
printed formulas.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.special import comb
from scipy.stats import binomtest

from calibrant import Tally
from calibrant.intervals import (
    METHODS,
    blaker,
    clopper_pearson,
    empirical_bernstein,
    hoeffding,
    kl,
)
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.error_budget import sidak_level
from calibrant.limits.kolmogorov import kolmogorov_distance, rank_distance

ALPHA = 0.1
B = 10


def ten_regions(n, k):
    return Tally.from_counts([n] * B, [k] * B)


@pytest.mark.parametrize(
    ("method", "n", "k", "half_width"),
    [
        (empirical_bernstein, 100, 50, 0.3400),
        (hoeffding, 100, 50, 0.1628),
        (empirical_bernstein, 1000, 50, 0.0404),
    ],
)
def test_half_widths_at_ten_regions(method, n, k, half_width):
    interval = method(ten_regions(n, k), ALPHA)
    np.testing.assert_allclose(interval.upper - k / n, half_width, atol=5e-5)


@pytest.mark.parametrize(("n", "k", "half_width"), [(100, 50, 0.1311), (1000, 50, 0.0183)])
def test_exact_half_widths_at_the_bonferroni_level(n, k, half_width):
    tail = ALPHA / (2 * B)
    radius = (upper_limit(k, n, tail) - lower_limit(k, n, tail)) / 2
    assert radius == pytest.approx(half_width, abs=5e-5)


def test_asymmetric_epsilon_at_the_bonferroni_level():
    tail = ALPHA / (2 * B)
    above = upper_limit(5, 100, tail) - 0.05
    below = 0.05 - lower_limit(5, 100, tail)
    assert max(above, below) == pytest.approx(0.0851, abs=5e-5)
    assert (above + below) / 2 == pytest.approx(0.0621, abs=5e-5)


def test_sidak_is_a_little_narrower_than_bonferroni():
    assert sidak_level(ALPHA, B) == pytest.approx(1 - 0.9 ** (1 / B), rel=1e-13)
    radius = clopper_pearson(ten_regions(100, 50), ALPHA).radius[0]
    assert 0.1300 < radius < 0.1311


@pytest.mark.parametrize("n_regions", [1, 10, 10**7])
def test_sidak_level_does_not_underflow(n_regions):
    assert sidak_level(1e-290, n_regions) == pytest.approx(1e-290 / n_regions, rel=1e-14)


def scipy_limits(k, n, alpha):
    return binomtest(k, n).proportion_ci(1 - alpha, method="exact")


def statsmodels_limits(k, n, alpha):
    return pytest.importorskip("statsmodels.stats.proportion").proportion_confint(
        k, n, alpha, method="beta"
    )


@pytest.mark.parametrize(
    "reference", [scipy_limits, pytest.param(statsmodels_limits, marks=pytest.mark.broad)]
)
@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.01, 1e-6])
def test_clopper_pearson_agrees_with_scipy_and_statsmodels(alpha, reference):
    for n in (1, 2, 7, 50, 500):
        for k in sorted({0, 1, n // 3, n // 2, n - 1, n}):
            interval = clopper_pearson(Tally.from_counts([n], [k]), alpha)
            low, high = reference(k, n, alpha)
            assert interval.lower[0] == pytest.approx(low, rel=1e-9), (k, n)
            assert interval.upper[0] == pytest.approx(high, rel=1e-9), (k, n)


COUNTS = np.array([1, 10, 100, 1000, 10**6, 10**15])
POSITIVES = np.array([1, 3, 0, 999, 10, 4 * 10**14])


def test_hoeffding_is_its_formula():
    interval = hoeffding(Tally.from_counts(COUNTS, POSITIVES), 0.05)
    width = np.sqrt(np.log(2 * 6 / 0.05) / (2 * COUNTS))
    np.testing.assert_allclose(
        interval.lower, np.clip(POSITIVES / COUNTS - width, 0, 1), rtol=1e-12
    )
    np.testing.assert_allclose(
        interval.upper, np.clip(POSITIVES / COUNTS + width, 0, 1), rtol=1e-12
    )


def test_empirical_bernstein_is_the_papers_formula():
    interval = empirical_bernstein(Tally.from_counts(COUNTS, POSITIVES), 0.05)
    rate = POSITIVES / COUNTS
    log_term = np.log(3 * 6 / 0.05)
    width = np.sqrt(2 * rate * (1 - rate) * log_term / COUNTS) + 3 * log_term / COUNTS
    np.testing.assert_allclose(interval.lower, np.clip(rate - width, 0, 1), rtol=1e-12)
    np.testing.assert_allclose(interval.upper, np.clip(rate + width, 0, 1), rtol=1e-12)


def test_kl_limits_solve_the_equation():
    n = 200
    k = np.arange(1, 200)
    bound = np.log(2 * 199 / 0.05)
    interval = kl(Tally.from_counts([n] * 199, k), 0.05)
    p = k / n
    for q in (interval.lower, interval.upper):
        np.testing.assert_allclose(
            n * (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))), bound, rtol=1e-9
        )


def test_kl_closed_form_at_the_ends():
    interval = kl(Tally.from_counts([50, 50], [0, 50]), 0.05)
    limit = (0.05 / 4) ** (1 / 50)
    np.testing.assert_allclose(interval.lower, [0, limit], rtol=1e-11)
    np.testing.assert_allclose(interval.upper, [1 - limit, 1], rtol=1e-11)


@pytest.mark.parametrize(
    ("k", "n", "lower", "upper"),
    [
        # Examples of the R package BlakerCI (J. Klaschka, CRAN), binom.blaker.limits at level 0.95,
        # as printed in its manual pages binom.blaker.limits, binom.blaker.acc and
        # binom.blaker.VHadj.limits. The second and third are those on which Blaker's own grid
        # algorithm fails, and where exactci::exactbinomCI(29, 99, tsmethod = "blaker", tol = 1e-8)
        # gives the same.
        (3, 10, 0.08726443, 0.61941066),
        (29, 99, 0.2097022, 0.3929079),
        (59, 355, 0.1300807, 0.2090809),
        (6, 13, 0.2158050, 0.7395922),
        (7, 15, 0.2150187, 0.7096627),
    ],
)
def test_blaker_agrees_with_published_values(k, n, lower, upper):
    interval = blaker(Tally.from_counts([n], [k]), 0.05)
    digits = 5.1e-9 if n == 10 else 5.1e-8
    assert interval.lower[0] == pytest.approx(lower, abs=digits)
    assert interval.upper[0] == pytest.approx(upper, abs=digits)


def acceptability(k, n, q):
    """Blaker's acceptability function from its definition, for all q at once."""
    j = np.arange(n + 1)[:, None]
    probability = comb(n, j) * q**j * (1 - q) ** (n - j)
    distribution = probability.cumsum(axis=0)
    survival = probability[::-1].cumsum(axis=0)[::-1]
    smaller = np.minimum(distribution[k], survival[k])
    low_side = np.where(distribution <= smaller, distribution, 0).max(axis=0)
    high_side = np.where(survival <= smaller, survival, 0).max(axis=0)
    return np.minimum(smaller + np.where(survival[k] <= distribution[k], low_side, high_side), 1.0)


def test_acceptability_agrees_with_published_values():
    # R package BlakerCI, manual page of binom.blaker.acc.
    p = np.array([0.206, 0.207, 0.208, 0.209, 0.210])
    printed = [0.06606867, 0.05759836, 0.05014189, 0.04999082, 0.04330283]
    np.testing.assert_allclose(acceptability(59, 355, p), printed, atol=5.1e-9)


@pytest.mark.broad
@pytest.mark.parametrize("alpha", [0.8, 0.3, 0.1, 0.05, 0.01, 0.001])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 37, 60])
def test_blaker_is_the_convex_hull_of_the_acceptable_means(n, alpha):
    each_alone = SimpleNamespace(counts=np.full(n + 1, n), positives=np.arange(n + 1), n_regions=1)
    interval = METHODS["blaker"].function(each_alone, alpha)
    for k, (lower, upper) in enumerate(zip(interval.lower, interval.upper, strict=True)):
        outside = []
        if k > 0:
            assert acceptability(k, n, np.array([lower * (1 + 1e-9)]))[0] > alpha
            outside.append(np.linspace(lower * 0.5, lower, 300))
        if k < n:
            assert acceptability(k, n, np.array([1 - (1 - upper) * (1 + 1e-9)]))[0] > alpha
            outside.append(np.linspace(upper, (1 + upper) / 2, 300))
        assert np.all(acceptability(k, n, np.concatenate(outside)) <= alpha)


def test_kolmogorov_distance_of_one_row_is_that_of_smirnov() -> None:
    assert kolmogorov_distance(np.array([1]), 0.1) == pytest.approx(0.95)


def rank_limit(before: int, after: int, n: int, level: float) -> float:
    """How far shares from before / n to after / n can be from the population: quantiles of order
    statistics.
    """
    lowest = stats.beta.ppf(level / (2 * n), before, n + 1 - before) if before else 0.0
    highest = stats.beta.ppf(1 - level / (2 * n), after + 1, n - after) if after < n else 1.0
    return max(after / n - lowest, highest - before / n)


def test_rank_distance_is_that_of_order_statistics_in_narrow_cells() -> None:
    # the second region has the cells of the first in reverse order, and another level; one cell is
    # in no region
    rows = np.array([4, 5, 1, 80, 6, 4, 7, 4, 6, 80, 1, 5, 4])
    region = np.array([0] * 6 + [-1] + [1] * 6)
    distance = np.array([0.2, 0.2])
    level = np.array([0.01, 0.03])
    found = rank_distance(rows, region, distance, level)
    for start, number in ((0, 0), (7, 1)):
        ends = np.cumsum(rows[start : start + 6])
        for cell, (after, count) in enumerate(zip(ends, rows[start : start + 6], strict=True)):
            exact = rank_limit(after - count, after, 100, level[number])
            # a cell with a quarter of 100 * 0.2 rows, or more, has the limit of the region
            assert found[start + cell] == pytest.approx(
                min(0.2, exact) if count < 5 else 0.2, rel=1e-9
            )
    assert found[0] < 0.2
    assert found[6] == 0.0


@pytest.mark.parametrize("n", [2_000, 2_001])
def test_rank_distance_is_exact_up_to_2000_rows(n) -> None:
    found = rank_distance(
        np.array([1, n - 1]), np.zeros(2, dtype=int), np.array([0.04]), np.array([0.01])
    )
    assert found[0] == pytest.approx(rank_limit(0, 1, n, 0.01) if n == 2_000 else 0.04, rel=1e-9)
    assert found[1] == 0.04


def test_kolmogorov_distance_is_smirnovs_up_to_2000_rows_and_massarts_beyond() -> None:
    few, many = kolmogorov_distance(
        np.array([2_000, 2_001]), 0.0199
    )  # Sidak's level is 0.01, nearly
    level = 1 - np.sqrt(1 - 0.0199)
    assert few == pytest.approx(stats.ksone.isf(level / 2, 2_000), rel=1e-9)
    assert many == pytest.approx(np.sqrt(np.log(2 / level) / 4_002), rel=1e-12)
