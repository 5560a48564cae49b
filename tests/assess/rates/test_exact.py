"""Exact limits: the hypergeometric law, the search over pairs, and the coverage of every small
world by enumeration.
"""

from itertools import product

import numpy as np
import pytest
from scipy.stats import hypergeom

from calibrant.assess.rates import exact
from calibrant.assess.rates.exact import (
    Stratum,
    positives_within,
    probabilities,
    stratified_limits,
    upper_tails,
)


@pytest.mark.parametrize(("n_items", "n_drawn"), [(10, 4), (10, 10), (4000, 200), (10**6, 500)])
def test_the_law_is_that_of_scipy(n_items, n_drawn):
    positives = np.unique(np.array([0, 1, n_items // 3, n_items - 1, n_items]))
    law = probabilities(n_items, positives, n_drawn)
    counts = np.arange(n_drawn + 1)
    expected = np.array([hypergeom.pmf(counts, n_items, good, n_drawn) for good in positives])
    np.testing.assert_allclose(law, expected, rtol=1e-7, atol=1e-300)
    np.testing.assert_allclose(upper_tails(law)[:, 0], 1.0)


def test_limits_from_labels_alone_are_the_first_that_are_not_ruled_out():
    for seen in range(13):
        low, high = positives_within(40, 12, seen, 0.025)
        kept = [good for good in range(41) if hypergeom.sf(seen - 1, 40, good, 12) > 0.025]
        kept_above = [good for good in range(41) if hypergeom.cdf(seen, 40, good, 12) > 0.025]
        assert (low, high) == (min(kept), max(kept_above))


def brute_force(first: Stratum, second: Stratum, alpha: float) -> int:
    """The lower limit by all pairs in the box, with scipy's law."""
    tail = (1.0 - exact.BOX_SHARE) * alpha
    gamma = 1.0 - np.sqrt(1.0 - exact.BOX_SHARE * alpha)
    boxes = [
        positives_within(s.n_items, s.n_labels, s.positives, gamma / 2) for s in (first, second)
    ]
    ranks = exact.outcome_order(
        first.n_items, first.n_labels, second.n_items, second.n_labels, tail
    )
    region = ranks >= ranks[first.positives, second.positives]
    kept = []
    for one, two in product(*(range(low, high + 1) for low, high in boxes)):
        law1 = hypergeom.pmf(np.arange(first.n_labels + 1), first.n_items, one, first.n_labels)
        law0 = hypergeom.pmf(np.arange(second.n_labels + 1), second.n_items, two, second.n_labels)
        if np.sum(np.outer(law1, law0)[region]) > tail:
            kept.append(one + two)
    return min(kept)


@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_what_all_pairs_say(seed):
    rng = np.random.default_rng(seed)
    strata = []
    for _ in range(2):
        n_items = int(rng.integers(3, 30))
        n_labels = int(rng.integers(0, n_items + 1))
        strata.append(Stratum(n_items, n_labels, int(rng.integers(0, n_labels + 1))))
    found, _ = stratified_limits(*strata, 0.1)
    estimate = sum(s.n_items * s.positives / s.n_labels if s.n_labels else 0.0 for s in strata)
    assert found == min(brute_force(*strata, 0.1), int(estimate))


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("n_labels", [(1, 1), (3, 2), (0, 3), (5, 3), (5, 0)])
def test_every_small_world_is_covered_by_enumeration(n_labels, alpha):
    """For all pairs (K1, K0) the probability that either limit fails is at most alpha, given labels
    by stratum; each fails with at most half of that.
    """
    sizes = (5, 3)
    limits = {
        (x1, x0): stratified_limits(
            Stratum(sizes[0], n_labels[0], x1), Stratum(sizes[1], n_labels[1], x0), alpha / 2.0
        )
        for x1, x0 in product(range(n_labels[0] + 1), range(n_labels[1] + 1))
    }
    for one, two in product(range(sizes[0] + 1), range(sizes[1] + 1)):
        missed = np.zeros(2)
        for (x1, x0), (low, high) in limits.items():
            chance = hypergeom.pmf(x1, sizes[0], one, n_labels[0]) * hypergeom.pmf(
                x0, sizes[1], two, n_labels[1]
            )
            missed += chance * np.array([low > one + two, high < one + two])
        assert missed.max() <= alpha / 2.0 + 1e-9


@pytest.mark.slow
def test_larger_worlds_are_covered_by_enumeration_at_the_worst_pairs():
    """All outcomes of 12 and 8 labels among 60 and 40 items, at every fourth pair."""
    sizes = (60, 40)
    labels = (12, 8)
    alpha = 0.1
    limits = {
        (x1, x0): stratified_limits(Stratum(60, 12, x1), Stratum(40, 8, x0), alpha / 2.0)
        for x1, x0 in product(range(13), range(9))
    }
    low = np.array([[limits[x1, x0][0] for x0 in range(9)] for x1 in range(13)])
    high = np.array([[limits[x1, x0][1] for x0 in range(9)] for x1 in range(13)])
    worst = 0.0
    for one, two in product(range(0, 61, 4), range(0, 41, 4)):
        law1 = hypergeom.pmf(np.arange(13), sizes[0], one, labels[0])
        law0 = hypergeom.pmf(np.arange(9), sizes[1], two, labels[1])
        outside = (low > one + two) | (high < one + two)
        worst = max(worst, float(np.sum(np.outer(law1, law0)[outside])))
    assert worst <= alpha
    assert worst > alpha / 2  # not far too wide


def test_flipping_labels_mirrors_the_limits():
    first = Stratum(3200, 160, 156)
    second = Stratum(800, 40, 4)
    low, high = stratified_limits(first, second, 0.05)
    assert stratified_limits(first.mirrored, second.mirrored, 0.05) == (4000 - high, 4000 - low)


def test_a_higher_confidence_level_contains_a_lower_one():
    strata = Stratum(3200, 160, 150), Stratum(800, 40, 4)
    outer = stratified_limits(*strata, 0.01)
    inner = stratified_limits(*strata, 0.1)
    assert outer[0] < inner[0] < inner[1] < outer[1]


def test_a_net_that_is_coarse_is_on_the_safe_side(monkeypatch):
    """With a rough tolerance the limits move outwards, never inwards."""
    strata = Stratum(32_000, 160, 150), Stratum(8_000, 40, 4)
    monkeypatch.setattr(exact, "_FINENESS", 0.0)
    stratified_limits.cache_clear()
    fine = stratified_limits(*strata, 0.05)
    monkeypatch.setattr(exact, "_FINENESS", 0.1)
    stratified_limits.cache_clear()
    rough = stratified_limits(*strata, 0.05)
    stratified_limits.cache_clear()
    assert rough[0] < fine[0] < fine[1] < rough[1]
