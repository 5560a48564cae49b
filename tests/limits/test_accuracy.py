"""The limits against 50-digit arithmetic: N from 1 to 10^12, every regime of k, alpha from 1e-99
to 0.5.

No root is searched for. With T(p) the exact tail, log T is concave in log p with derivative k P(X =
k) / T, so that (log T(limit) - log level) / derivative is the relative error of the limit, up to
its square.
"""

import mpmath as mp
import numpy as np
import pytest
from scipy.special import betainc

from calibrant import Tally
from calibrant.intervals import blaker, hoeffding, kl
from calibrant.limits.binomial import lower_limit, upper_limit

DIGITS = 50
BAR = 1e-9
TINY = float(np.finfo(float).tiny)
N_NODES = 64


def random_cases(seed, size):
    """N log-uniform; k at and next to both ends, small, next to N/2, proportional to N, and
    log-uniform.

    alpha is log-uniform on [1e-99, 0.5], and in a quarter of the cases on [1e-3, 0.5], where users
    live.
    """
    rng = np.random.default_rng(seed)
    n = np.floor(10 ** rng.uniform(0, 12, size)).astype(np.int64)
    n[: size // 100] = 10**12
    small = rng.integers(0, 10, size)
    spread = np.floor(np.exp(rng.random(size) * np.log(n))).astype(np.int64)
    share = np.floor(rng.random(size) * (n + 1)).astype(np.int64)
    kinds = np.stack(
        [np.zeros_like(n), np.ones_like(n), small, small % 3, n // 2, spread, share, share]
    )
    k = np.minimum(kinds[rng.integers(0, len(kinds), size), np.arange(size)], n)
    k = np.where(rng.random(size) < 0.5, k, n - k)
    smallest = np.where(rng.random(size) < 0.75, -99.0, -3.0)
    return k, n, 10 ** rng.uniform(smallest, np.log10(0.5))


def gauss_legendre():
    """Nodes and weights on [0, 1] to 50 digits."""
    rule = []
    for start in np.polynomial.legendre.leggauss(N_NODES)[0]:
        x = mp.mpf(float(start))
        for _ in range(4):
            before = mp.mpf(1)
            value = x
            for j in range(2, N_NODES + 1):
                before, value = value, ((2 * j - 1) * x * value - (j - 1) * before) / j
            slope = N_NODES * (x * value - before) / (x * x - 1)
            x -= value / slope
        rule.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return rule


def ratio_by_fraction(k, n, p, levels=60):
    """P(X >= k) / P(X = k) by the continued fraction of the incomplete beta function, or None if it
    is slow.
    """
    a = mp.mpf(k)
    b = mp.mpf(n - k + 1)
    c = mp.mpf(1)
    d = 1 / (1 - (a + b) * p / (a + 1))
    value = d
    for m in range(1, levels):
        for term in (
            m * (b - m) * p / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * p / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            value *= c * d
        if abs(c * d - 1) < mp.mpf(10) ** -20:
            return value * (1 - p)
    return None


def ratio_by_integral(k, n, p, rule):
    """P(X >= k) / P(X = k) as k times the integral of (1 - x)^(k-1) (1 + x p/q)^(n-k), where the
    fraction is slow.
    """
    odds = p / (1 - p)
    rest = n - k

    def log_integrand(x):
        return (k - 1) * mp.log1p(-x) + rest * mp.log1p(odds * x)

    lean = 1 - rest * odds / k
    curvature = rest * odds / ((1 - p) * k * k)
    end = min(92 / (lean + mp.sqrt(lean * lean + 92 * curvature)) / k, mp.mpf(0.5))
    for _ in range(6):
        slope = -(k - 1) / (1 - end) + rest * odds / (1 + odds * end)
        end = min(end - (log_integrand(end) + 46) / slope, (1 + end) / 2)
    return k * end * mp.fsum(weight * mp.exp(log_integrand(end * node)) for node, weight in rule)


def relative_error(k, n, p, log_choose, log_level, rule):
    """Relative error of p as the solution of P(X >= k) = level; positive where p is too large."""
    q = 1 - p
    ratio = ratio_by_fraction(k, n, p)
    ratio = ratio_by_integral(k, n, p, rule) if ratio is None else ratio
    log_tail = log_choose + k * mp.log(p) + (n - k) * mp.log(q) + mp.log(ratio)
    return (log_tail - log_level) * ratio / k


def worst_errors(seed, size):
    """Largest relative errors of the lower and of the upper limit, and how many limits lie on the
    unsafe side.
    """
    k, n, alpha = random_cases(seed, size)
    lower = lower_limit(k, n, alpha / 2)
    upper = upper_limit(k, n, alpha / 2)
    worst = {"lower": 0.0, "upper": 0.0}
    unsafe = 0
    with mp.workdps(DIGITS):
        rule = gauss_legendre()
        for i in range(size):
            ki = int(k[i])
            ni = int(n[i])
            log_level = mp.log(mp.mpf(float(alpha[i] / 2)))
            log_choose = mp.loggamma(ni + 1) - mp.loggamma(ki + 1) - mp.loggamma(ni - ki + 1)
            if ki == 0:
                assert lower[i] == 0.0
            elif lower[i] == 0.0:
                # The tail at the smallest normal double is above the level: the truth underflows.
                assert log_choose + ki * mp.log(mp.mpf(TINY)) > log_level
            else:
                error = relative_error(ki, ni, mp.mpf(lower[i]), log_choose, log_level, rule)
                worst["lower"] = max(worst["lower"], abs(float(error)))
                unsafe += error > 0
            if ki == ni:
                assert upper[i] == 1.0
            elif upper[i] == 1.0:
                # The tail four doubles before 1 is above the level: the truth rounds to 1.
                q = mp.mpf(2) ** -51
                assert log_choose + (ni - ki) * mp.log(q) + ki * mp.log1p(-q) > log_level
            else:
                q = 1 - mp.mpf(upper[i])
                error = relative_error(ni - ki, ni, q, log_choose, log_level, rule) * q / (1 - q)
                worst["upper"] = max(worst["upper"], abs(float(error)))
                unsafe += error > 0
    return worst, unsafe


def assert_accurate(seed, size):
    worst, unsafe = worst_errors(seed, size)
    assert worst["lower"] < BAR
    assert worst["upper"] < BAR
    assert unsafe == 0, "a limit was rounded inwards"


@pytest.mark.broad
def test_exact_limits_agree_with_fifty_digits():
    assert_accurate(seed=0, size=300)


@pytest.mark.slow
def test_exact_limits_agree_with_fifty_digits_on_thousands_of_cases():
    assert_accurate(seed=1, size=2500)


def test_known_failures_of_the_beta_quantile():
    # scipy 1.17: 0.14 % too high for the first, 90 % too high for the second
    with mp.workdps(DIGITS):
        first = -mp.expm1(mp.log1p(-mp.mpf(0.025)) / 10**9)
    assert lower_limit(1, 10**9, 0.025) == pytest.approx(float(first), rel=BAR)
    found = lower_limit(1000, 1_608_395_716, 1.05e-11)
    assert betainc(1000, 1_608_395_716 - 999, found) == pytest.approx(1.05e-11, rel=1e-6)


def test_the_distance_to_one_is_resolved_as_well_as_the_limit():
    upper = upper_limit([10, 500, 900], 1000, 1e-100)
    mirrored = lower_limit([990, 500, 100], 1000, 1e-100)
    np.testing.assert_allclose(1 - upper, mirrored, rtol=1e-12)


@pytest.mark.broad
def test_kl_limits_agree_with_fifty_digits():
    k, n, alpha = random_cases(5, 2000)
    worst = 0.0
    for ki, ni, level in zip(k.tolist(), n.tolist(), alpha.tolist(), strict=True):
        interval = kl(Tally.from_counts([ni], [ki]), level)
        with mp.workdps(DIGITS):
            bound = mp.log(2 / mp.mpf(level))

            def error(hits, p, n=ni, bound=bound):
                """Relative error of p as the solution of n kl(hits / n, p) = bound."""
                value = hits * mp.log(hits / (n * p))
                value += (n - hits) * mp.log((n - hits) / (n * (1 - p))) if hits < n else 0
                return (value - bound) * (p - 1) / (hits - n * p)

            lower = mp.mpf(interval.lower[0])
            rest = 1 - mp.mpf(interval.upper[0])
            errors = []
            if lower > 0:
                errors.append(error(ki, lower))
            if rest > 0:
                errors.append(error(ni - ki, rest) * rest / (1 - rest))
            assert all(e <= 0 for e in errors), "a limit was rounded inwards"
            worst = max([worst, *(abs(float(e)) for e in errors)])
            # A lower limit of 0 is right only where the truth is no normal double.
            if ki > 0 and lower == 0:
                assert error(ki, mp.mpf(TINY)) > 0
    assert worst < BAR


def log_upper_tail(k, n, p, rule):
    if k == 0:
        return mp.mpf(0)
    ratio = ratio_by_fraction(k, n, p)
    ratio = ratio_by_integral(k, n, p, rule) if ratio is None else ratio
    log_choose = mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
    return log_choose + k * mp.log(p) + (n - k) * mp.log(1 - p) + mp.log(ratio)


def acceptability_left_of_the_rate(k, n, p, rule):
    """P(X >= k) + P(X <= j) with the largest j for which the second does not exceed the first,
    found by bisection.
    """
    above = log_upper_tail(k, n, p, rule)

    def below(j):
        return log_upper_tail(n - j, n, 1 - p, rule)

    fits = -1
    exceeds = min(k - 1, int(n * p))
    while exceeds - fits > 1:
        middle = (fits + exceeds) // 2
        fits, exceeds = (middle, exceeds) if below(middle) <= above else (fits, middle)
    return mp.exp(above) + (mp.exp(below(fits)) if fits >= 0 else 0)


@pytest.mark.broad
@pytest.mark.parametrize("alpha", [0.2, 0.01, 1e-9])
def test_blaker_limits_agree_with_fifty_digits_up_to_a_million(alpha):
    n = 10**6
    counts = [n] * 7
    positives = [1, 2, 30, 1000, 123_456, n // 2, n - 20]
    delta = -np.expm1(np.log1p(-alpha) / 7)
    interval = blaker(Tally.from_counts(counts, positives), alpha)
    with mp.workdps(DIGITS):
        rule = gauss_legendre()
        for k, lower, upper in zip(positives, interval.lower, interval.upper, strict=True):
            for hits, end in ((k, mp.mpf(lower)), (n - k, 1 - mp.mpf(upper))):
                assert acceptability_left_of_the_rate(hits, n, end, rule) <= delta
                assert (
                    acceptability_left_of_the_rate(hits, n, end * (1 + mp.mpf(BAR)), rule) > delta
                )


def test_a_limit_too_small_for_a_double_is_zero():
    interval = kl(Tally.from_counts([1], [1]), 1e-320)
    assert interval.lower[0] == 0.0
    assert interval.upper[0] == 1.0


def test_tail_above_one_half_is_the_mirror_image():
    # P(X >= k) = tail is P(X <= k - 1) = 1 - tail.
    k = np.arange(1, 21)
    np.testing.assert_allclose(lower_limit(k, 20, 0.75), upper_limit(k - 1, 20, 0.25), rtol=1e-10)
    np.testing.assert_allclose(upper_limit(k - 1, 20, 0.75), lower_limit(k, 20, 0.25), rtol=1e-10)


@pytest.mark.parametrize("tail", [0.0, 1e-101, 1.0, -0.1, float("nan")])
def test_a_tail_outside_the_unit_interval_is_refused(tail):
    with pytest.raises(ValueError, match="tail must lie strictly between 0 and 1"):
        lower_limit(1, 2, tail)


def test_more_positives_than_trials_are_refused():
    with pytest.raises(ValueError, match="k must satisfy 0 <= k <= n"):
        upper_limit(3, 2, 0.1)


def test_hoeffding_is_never_narrower_than_kl():
    k, n, _ = random_cases(7, 500)
    tally = Tally.from_counts(n, k)
    assert np.all(hoeffding(tally, 0.1).upper >= kl(tally, 0.1).upper * (1 - 1e-12))
    assert np.all(hoeffding(tally, 0.1).lower <= kl(tally, 0.1).lower * (1 + 1e-12))
