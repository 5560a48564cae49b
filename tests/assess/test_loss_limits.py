"""Limits of losses, of differences of losses and of calibration errors in hard worlds, with known
truth.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from calibrant import compare_models
from calibrant.assess.metrics.ece import ece
from calibrant.assess.metrics.independent_units import ROWS
from calibrant.metrics import brier_score, log_loss, smooth_ece

ALPHAS = (0.1, 0.5)


def assert_seldom(missed: dict, draws: int) -> None:
    for (name, alpha), count in missed.items():
        found = binomtest(count, draws, alpha, alternative="greater")
        assert found.pvalue > 1e-3, f"{name} missed {count} of {draws} at {alpha}"


def one_rate(rate: float, score: float):
    def draw(rng: np.random.Generator, n: int):
        return (rng.uniform(size=n) < rate).astype(int), np.full(n, score)

    return draw, rate * (1 - score) ** 2 + (1 - rate) * score**2


def two_scores(rng: np.random.Generator, n: int):
    scores = rng.choice([0.2, 0.8], size=n)
    return (rng.uniform(size=n) < scores).astype(int), scores


WORLDS = {
    "rare": one_rate(0.01, 0.03),
    "nearly all": one_rate(0.98, 0.9),
    "sure and wrong": one_rate(0.02, 0.0),
    "ties": (two_scores, 0.16),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("name", WORLDS)
def test_the_expected_brier_score_is_missed_at_most_as_often_as_stated(name, n):
    rng = np.random.default_rng(n)
    draw, truth = WORLDS[name]
    missed = dict.fromkeys([(name, alpha) for alpha in ALPHAS], 0)
    for _ in range(120):
        y, scores = draw(rng, n)
        for alpha in ALPHAS:
            found = brier_score(y, scores, confidence_level=1 - alpha, classes=(0, 1))
            missed[name, alpha] += not found.lower <= truth <= found.upper
    assert_seldom(missed, 120)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "share"), [(20, 0.05), (150, 0.001), (150, 0.01)])
def test_a_large_difference_of_few_rows_is_allowed_for(n, share):
    """The mean difference is that of rows which samples often do not have."""
    rng = np.random.default_rng(2)
    missed = dict.fromkeys([(share, alpha) for alpha in ALPHAS], 0)
    for draw in range(150):
        values = np.where(
            rng.uniform(size=n) < share, 1.0, rng.normal(scale=0.01, size=n).clip(-0.1, 0.1)
        )
        units = replace(ROWS, rows=draw)  # which draws the order of bets
        for alpha in ALPHAS:
            lower, upper = units.limits(values, alpha, ends=(-1.0, 1.0))
            missed[share, alpha] += not lower <= share <= upper
    assert_seldom(missed, 150)


@pytest.mark.slow
def test_groups_of_unequal_size_whose_size_follows_their_labels():
    rng = np.random.default_rng(3)
    missed = dict.fromkeys([("groups", alpha) for alpha in ALPHAS], 0)
    large = 0.2  # large groups of ten rows are all positive, the others of one row all negative
    truth = (large * 10 * (1 - 0.4) ** 2 + (1 - large) * 0.4**2) / (large * 10 + 1 - large)
    for _ in range(150):
        size = np.where(rng.uniform(size=60) < large, 10, 1)
        groups = np.repeat(np.arange(60), size)
        y = (size[groups] == 10).astype(int)
        for alpha in ALPHAS:
            options = {"groups": groups, "max_group_size": 10, "classes": (0, 1)}
            found = brier_score(y, np.full(y.size, 0.4), confidence_level=1 - alpha, **options)
            missed["groups", alpha] += not found.lower <= truth <= found.upper
    assert_seldom(missed, 150)
    assert missed["groups", 0.5] > 0


def uniform_world(n: int):
    rng = np.random.default_rng(n)
    scores = rng.uniform(size=n)
    return (
        (rng.uniform(size=n) < scores).astype(int),
        scores,
        np.clip(scores + rng.normal(scale=0.15, size=n), 0, 1),
    )


@pytest.mark.parametrize(("n", "wider"), [(500, 1.15), (5_000, 1.06)])
def test_limits_of_the_brier_score_are_nearly_the_asymptotic_ones(n, wider):
    y, scores, _ = uniform_world(n)
    found = brier_score(y, scores)
    normal = 2 * norm.isf(0.025) * np.std((y - scores) ** 2) / np.sqrt(n)
    assert normal < found.upper - found.lower < wider * normal


@pytest.mark.parametrize(("n", "of_brier", "of_log_loss"), [(500, 1.35, 1.8), (5_000, 1.12, 1.2)])
def test_limits_of_differences_are_near_the_asymptotic_ones(n, of_brier, of_log_loss):
    y, scores, other = uniform_world(n)
    found = compare_models(y, {"one": scores, "other": other})
    given = [np.where(y == 1, p, 1 - p) for p in (scores, other)]
    brier = (1 - given[0]) ** 2 - (1 - given[1]) ** 2
    loss = -np.log(np.clip(given[0], 0.001, 0.999)) + np.log(np.clip(given[1], 0.001, 0.999))
    for one, values, wider in zip(
        found.differences, (brier, loss), (of_brier, of_log_loss), strict=False
    ):
        normal = 2 * norm.isf(0.0125) * values.std() / np.sqrt(n)
        assert one.upper - one.lower < wider * normal


def test_limits_of_the_log_loss_respect_the_clip():
    y, scores, _ = uniform_world(500)
    narrow, wide = (log_loss(y, np.clip(scores, 0.1, 0.9), clip=clip) for clip in (0.1, 0.0001))
    assert wide.upper - wide.lower > narrow.upper - narrow.lower
    assert narrow.lower >= -np.log(0.9)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ALPHAS)
def test_upper_limits_of_calibration_errors_miss_sometimes_and_not_too_often(alpha):
    """All scores are too high by a tenth, so that the error is one sum of labels.

    Where it is 0, noise adds to it.
    """
    rng = np.random.default_rng(5)
    draws = 120
    missed = dict.fromkeys(["l1", "l2", "smooth", "l1 of calibrated scores"], 0)
    for _ in range(draws):
        scores = rng.choice([0.2, 0.4, 0.6], size=150)
        y = rng.uniform(size=150) < scores - 0.1
        options = {"confidence_level": 1 - alpha, "classes": (0, 1)}
        for norm_name in ("l1", "l2"):
            missed[norm_name] += (
                ece(y, scores, norm=norm_name, strategy="values", **options).upper < 0.1
            )
        missed["smooth"] += smooth_ece(y, scores, n_cells=64, **options).upper < 0.1
        y = rng.uniform(size=150) < scores
        found = ece(y, scores, strategy="values", **options)
        missed["l1 of calibrated scores"] += found.lower > 0.0
    assert_seldom({(name, alpha): count for name, count in missed.items()}, draws)
    if alpha == 0.5:
        assert missed["l1"] > 0.05 * draws
