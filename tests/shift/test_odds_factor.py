"""Limits for the factor of the odds under label shift: bets on small units of both kinds of rows."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from calibrant.shift import odds_factor
from calibrant.shift.odds_factor import odds_factor_limits

LEVEL = 1e-3
OPEN = (0.0, math.inf)


def draw(rng, n, share, distance):
    y = rng.random(n) < share
    return rng.normal(distance * y), y.astype(np.uint8)


def odds(share):
    return share / (1.0 - share)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize(
    ("n", "m", "source", "target", "distance"),
    [(500, 500, 0.3, 0.6, 1.5), (300, 700, 0.5, 0.1, 2.5)],
)
def test_each_limit_fails_at_most_as_often_as_stated(
    n, m, source, target, distance, alpha, monkeypatch
):
    # a limit fails only if the cell that holds the truth is ruled out: the search begins there
    monkeypatch.setattr(odds_factor, "_AT_ONCE", 1)
    rng = np.random.default_rng(0)
    factor = odds(target) / odds(source)
    near = factor * (1 - 1e-9), factor * (1 + 1e-9)
    draws = 400
    missed = np.zeros(2)
    for _ in range(draws):
        scores, y = draw(rng, n, source, distance)
        moved, _ = draw(rng, m, target, distance)
        low, high = odds_factor_limits(scores, y, moved, alpha / 2, near, rng)
        missed += [low > factor, high < factor]
    for times in (*missed, missed.sum() / 2):
        assert binomtest(int(times), draws, alpha / 2, alternative="greater").pvalue > LEVEL


def test_rows_sorted_by_score_or_label_do_no_harm():
    rng = np.random.default_rng(1)
    draws = 60
    missed = 0
    for _ in range(draws):
        scores, y = draw(rng, 600, 0.3, 1.5)
        moved, _ = draw(rng, 600, 0.6, 1.5)
        order = np.lexsort([scores, y])
        low, high = odds_factor_limits(
            scores[order], y[order], np.sort(moved)[::-1], 0.1, OPEN, rng
        )
        missed += not low <= odds(0.6) / odds(0.3) <= high
    assert binomtest(missed, draws, 0.2, alternative="greater").pvalue > LEVEL


def test_limits_are_close_to_those_of_a_normal_estimate():
    # with the best function of the score, known
    source, target, distance = 0.2, 0.5, 1.5
    estimates = []
    widths = []
    rng = np.random.default_rng(2)
    for place in range(200):
        scores, y = draw(rng, 5_000, source, distance)
        moved, _ = draw(rng, 5_000, target, distance)
        best, moved_best = (
            target
            * norm.pdf(part - distance)
            / (target * norm.pdf(part - distance) + (1 - target) * norm.pdf(part))
            for part in (scores, moved)
        )
        surplus = best - moved_best.mean()
        estimates.append(np.log(-np.sum(surplus[y == 0]) / np.sum(surplus[y == 1])))
        if place < 12:
            low, high = odds_factor_limits(scores, y, moved, 0.0125, OPEN, rng)
            widths.append(np.log(high / low))
    normal = 2 * norm.isf(0.0125) * np.std(estimates)
    assert 0.95 * normal < np.mean(widths) < 1.4 * normal


def test_a_score_that_tells_nothing_leaves_the_start():
    rng = np.random.default_rng(3)
    scores, y = draw(rng, 1_000, 0.3, 0.0)
    moved, _ = draw(rng, 1_000, 0.9, 0.0)
    assert odds_factor_limits(scores, y, moved, 0.05, OPEN, rng) == OPEN
    assert odds_factor_limits(scores[:20], y[:20], moved, 0.05, (0.5, 40.0), rng) == (0.5, 40.0)


def test_bets_know_earlier_units_alone():
    rng = np.random.default_rng(4)
    scores, y = draw(rng, 700, 0.3, 1.5)
    moved, _ = draw(rng, 900, 0.6, 1.5)
    before = odds_factor._blocks(scores, y, moved, np.random.default_rng(5))
    last = np.random.default_rng(5).permutation(700)[-1]
    y[last] = 1 - y[last]
    scores[last] += 10.0
    after = odds_factor._blocks(scores, y, moved, np.random.default_rng(5))
    assert len(before) == len(after) > 20
    for one, other in zip(before[:-1], after[:-1], strict=True):
        np.testing.assert_array_equal(one.positive, other.positive)
        np.testing.assert_array_equal(one.negative, other.negative)
        assert one.reach == other.reach
    assert not np.array_equal(before[-1].negative, after[-1].negative)


def test_the_mean_of_a_unit_is_zero_at_the_truth_and_at_no_other_factor():
    rng = np.random.default_rng(6)
    scores, y = draw(rng, 400_000, 0.2, 1.5)
    moved, _ = draw(rng, 400_000, 0.5, 1.5)
    blocks = odds_factor._blocks(scores, y, moved, rng)
    positive, negative = (
        np.concatenate([getattr(block, name) for block in blocks])
        for name in ("positive", "negative")
    )
    means = [factor * positive + negative for factor in (4.0, 3.0, 5.5)]
    errors = [each.mean() / (each.std() / math.sqrt(each.size)) for each in means]
    assert abs(errors[0]) < 4.0
    assert errors[1] < -4.0
    assert errors[2] > 4.0
