"""What holds for every method, whatever the data."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Tally
from calibrant.intervals import METHODS, Interval, blaker, clopper_pearson, get_method
from calibrant.limits.non_identical import non_identical


@st.composite
def tallies(draw):
    counts = draw(st.lists(st.integers(0, 50) | st.integers(0, 10**12), min_size=1, max_size=6))
    positives = [
        draw(st.sampled_from(sorted({0, n // 2, n, min(n, 1)})) | st.integers(0, n)) for n in counts
    ]
    return Tally.from_counts(counts, positives)


alphas = st.floats(1e-95, 0.999) | st.floats(0.001, 0.5)


def flipped(tally):
    return Tally.from_counts(tally.counts, tally.counts - tally.positives)


def dense():
    """All counts of up to 30 rows, and up to 10^12 rows with few, half and nearly all positive."""
    pairs = [(n, k) for n in range(31) for k in range(n + 1)]
    for n in (10**3, 10**6, 10**9, 10**12):
        pairs += [(n, k) for k in (0, 1, 2, 17, n // 1000, n // 2, n - 17, n - 1, n)]
    return Tally.from_counts(*zip(*pairs, strict=True))


DENSE = dense()
ALPHAS = [1e-95, 1e-9, 0.001, 0.1, 0.5, 0.999]
few_random = settings(
    deadline=None, derandomize=True, max_examples=min(25, settings.default.max_examples)
)


def check_order(name, tally, alpha):
    interval = get_method(name)(tally, alpha)
    rate = tally.positives / np.maximum(tally.counts, 1)
    seen = tally.counts > 0
    assert np.all((interval.lower >= 0) & (interval.upper <= 1))
    assert np.all((interval.lower <= rate)[seen] & (rate <= interval.upper)[seen])
    assert np.all(interval.lower[tally.positives == 0] == 0)
    assert np.all(interval.upper[tally.positives == tally.counts] == 1)
    assert np.all(interval.lower[~seen] == 0)
    assert interval.lower.dtype == interval.upper.dtype == np.float64


def check_mirror(name, tally, alpha):
    interval = get_method(name)(tally, alpha)
    mirrored = get_method(name)(flipped(tally), alpha)
    np.testing.assert_allclose(mirrored.lower, 1 - interval.upper, rtol=0, atol=1e-12)
    np.testing.assert_allclose(mirrored.upper, 1 - interval.lower, rtol=0, atol=1e-12)


def check_nested(name, tally, levels):
    wide, narrow = (get_method(name)(tally, alpha) for alpha in levels)
    slack = 1e-10 * (levels[0] == levels[1] or levels[1] / levels[0] < 1 + 1e-9) + 1e-12
    assert np.all(wide.lower <= narrow.lower * (1 + slack))
    assert np.all(wide.upper >= narrow.upper * (1 - slack))


def check_inside(tally, alpha):
    inner = blaker(tally, alpha)
    outer = clopper_pearson(tally, alpha)
    assert np.all(outer.lower <= inner.lower)
    assert np.all(inner.upper <= outer.upper)


@pytest.mark.broad
@pytest.mark.parametrize("name", METHODS)
def test_what_holds_for_all_holds_on_a_dense_grid(name):
    for alpha in ALPHAS:
        check_order(name, DENSE, alpha)
        check_mirror(name, DENSE, alpha)
    for levels in pairwise(ALPHAS):
        check_nested(name, DENSE, levels)


@pytest.mark.parametrize("name", METHODS)
@few_random
@given(tally=tallies(), alpha=alphas)
def test_limits_lie_in_order_around_the_rate(name, tally, alpha):
    check_order(name, tally, alpha)


@pytest.mark.parametrize("name", METHODS)
@few_random
@given(tally=tallies(), alpha=alphas)
def test_flipping_the_labels_mirrors_the_interval(name, tally, alpha):
    check_mirror(name, tally, alpha)


@pytest.mark.parametrize("name", METHODS)
@few_random
@given(tally=tallies(), levels=st.tuples(alphas, alphas).map(sorted))
def test_a_higher_confidence_contains_a_lower_one(name, tally, levels):
    check_nested(name, tally, levels)


@few_random
@given(tally=tallies(), alpha=alphas)
def test_blaker_lies_inside_clopper_pearson(tally, alpha):
    check_inside(tally, alpha)


@pytest.mark.broad
def test_blaker_lies_inside_clopper_pearson_on_a_dense_grid():
    for alpha in ALPHAS:
        check_inside(DENSE, alpha)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("n", [1, 10, 137])
def test_limits_grow_with_the_positives(name, n):
    interval = get_method(name)(Tally.from_counts([n] * (n + 1), range(n + 1)), 0.1)
    assert np.all(np.diff(interval.lower) >= 0)
    assert np.all(np.diff(interval.upper) >= 0)


@pytest.mark.parametrize("name", METHODS)
def test_a_region_does_not_depend_on_its_neighbours(name):
    rng = np.random.default_rng(0)
    counts = np.floor(10 ** rng.uniform(0, 12, 3000)).astype(np.int64)
    positives = np.floor(counts * rng.random(3000) ** 3).astype(np.int64)
    interval = get_method(name)(Tally.from_counts(counts, positives), 0.1)
    order = rng.permutation(3000)
    shuffled = get_method(name)(Tally.from_counts(counts[order], positives[order]), 0.1)
    assert shuffled == Interval(interval.lower[order], interval.upper[order])


@pytest.mark.parametrize("name", METHODS)
def test_empty_regions_widen_the_others(name):
    alone = get_method(name)(Tally.from_counts([100], [30]), 0.1)
    among = get_method(name)(Tally.from_counts([100, 0, 0], [30, 0, 0]), 0.1)
    assert among.lower[0] < alone.lower[0]
    assert among.upper[0] > alone.upper[0]
    np.testing.assert_array_equal(among.lower[1:], 0)
    np.testing.assert_array_equal(among.upper[1:], 1)


@pytest.mark.parametrize("name", METHODS)
def test_nothing_changes_the_callers_arrays(name):
    counts = np.array([50, 50])
    positives = np.array([10, 20])
    get_method(name)(Tally.from_counts(counts, positives), 0.1)
    np.testing.assert_array_equal(counts, [50, 50])
    np.testing.assert_array_equal(positives, [10, 20])


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, 2.0, float("nan")])
def test_alpha_outside_the_unit_interval_is_refused(name, alpha):
    with pytest.raises(ValueError, match="alpha must be a number strictly between 0 and 1; got"):
        get_method(name)(Tally.from_counts([10], [5]), alpha)


def test_the_registry_names_each_method_once():
    exact = ["clopper-pearson", "blaker"]
    assert list(METHODS) == [*exact, "hoeffding", "empirical-bernstein", "kl"]
    assert all(method.name == name and method.theorem for name, method in METHODS.items())
    assert [name for name, method in METHODS.items() if method.exact] == exact


@pytest.mark.parametrize("name", ["foo", "Clopper-Pearson", "", None, 3])
def test_an_unknown_method_is_refused(name):
    with pytest.raises(ValueError, match=r"interval must be one of 'clopper-pearson', .*'kl'; got"):
        get_method(name)


def test_intervals_compare_by_value():
    one = Interval(np.array([0.1]), np.array([0.3]))
    assert one == Interval(np.array([0.1]), np.array([0.3]))
    assert one != Interval(np.array([0.1]), np.array([0.4]))
    assert one != "interval"
    assert one.midpoint == pytest.approx(0.2)
    assert one.radius == pytest.approx(0.1)


def test_many_regions_at_once():
    rng = np.random.default_rng(0)
    counts = np.floor(10 ** rng.uniform(0, 9, 5000)).astype(np.int64)
    positives = rng.binomial(counts, rng.random(5000))
    together = clopper_pearson(Tally.from_counts(counts, positives), 0.1)
    assert np.all(together.lower < together.upper)


@pytest.mark.broad
@pytest.mark.parametrize("tail", [0.25, 0.1, 1e-6])
def test_limits_for_unlike_labels_are_binomial_but_for_one_count_on_each_side(tail):
    for n in range(1, 200):
        k = np.arange(n + 1)
        unlike = non_identical(n, k, tail)
        alike = non_identical(n, k, tail, True)
        np.testing.assert_array_equal(np.delete(unlike.lower, 1), np.delete(alike.lower, 1))
        np.testing.assert_array_equal(np.delete(unlike.upper, n - 1), np.delete(alike.upper, n - 1))
        assert unlike.lower[1] <= alike.lower[1]
