"""Guarantees about rows of new groups, attacked where the truth is known."""

import numpy as np
import pytest

from calibrant import BinningCalibrator, Calibrator, Tally, TopLabelCalibrator
from calibrant.cells.entries import Entries
from calibrant.cells.group_counts import GroupCounts
from calibrant.limits.region_limits import GroupDesign, mean_limits
from worlds.guarantees import assert_rare

ALPHA = 0.1


def _tally(regions, codes, groups, n_regions):
    table = GroupCounts.of(regions, codes, groups)
    return Tally(*table.totals(n_regions), groups=table)


def _limits(tally, design):
    return mean_limits(Entries.of_tally(tally, design.cap), ALPHA)


def _check(missed, seeds, alpha=ALPHA):
    assert_rare(missed, seeds, alpha)


def _beta_binomial(rng, n_groups, size, icc, rate):
    groups = np.repeat(np.arange(n_groups), size)
    own = rng.beta(rate * (1 / icc - 1), (1 - rate) * (1 / icc - 1), size=n_groups)
    return groups, (rng.uniform(size=groups.size) < own[groups]).astype(int)


@pytest.mark.broad
@pytest.mark.parametrize("shared", [True, False], ids=["shared scores", "own scores"])
@pytest.mark.parametrize(("n_groups", "icc"), [(10, 0.3), (300, 0.9), (300, 0.1)])
def test_the_limits_cover_where_groups_share_a_random_rate(n_groups, icc, shared):
    rng = np.random.default_rng(1)
    missed = 0
    seeds = 40
    for _ in range(seeds):
        groups, codes = _beta_binomial(rng, n_groups, 8, icc, 0.3)
        regions = (
            rng.integers(0, 4, size=n_groups)[groups]
            if shared
            else rng.integers(0, 4, size=groups.size)
        )
        limits = _limits(_tally(regions, codes, groups, 4), GroupDesign(8))
        missed += not ((limits.lower <= 0.3) & (limits.upper >= 0.3)).all()
    _check(missed, seeds)


@pytest.mark.broad
@pytest.mark.parametrize(("n_groups", "rate", "seeds"), [(30, 0.5, 400), (100, 0.05, 200)])
def test_the_limits_cover_in_the_one_order_that_the_labels_of_groups_give(n_groups, rate, seeds):
    # bets in the order that a fixed hash gives to sorted groups miss .19 and .26, and are found
    # with probability .98
    groups = np.arange(n_groups)
    rng = np.random.default_rng(9)
    missed = 0
    for codes in (rng.uniform(size=(seeds, n_groups)) < rate).astype(int):
        limits = _limits(_tally(np.zeros(n_groups, int), codes, groups, 1), GroupDesign(1))
        missed += not limits.lower[0] <= rate <= limits.upper[0]
    _check(missed, seeds)


def test_independent_rows_would_have_missed():
    from calibrant.intervals import clopper_pearson

    rng = np.random.default_rng(2)
    missed = 0
    for _ in range(40):
        groups, codes = _beta_binomial(rng, 300, 8, 0.9, 0.3)
        limits = clopper_pearson(_tally(np.zeros(groups.size, int), codes, groups, 1), ALPHA)
        missed += not limits.lower[0] <= 0.3 <= limits.upper[0]
    assert missed > 12


@pytest.mark.broad
def test_sizes_may_tell_something_about_labels():
    # half of the groups have one row, never positive; the others have nine, of which 2/3 are: the
    # rate is 0.6
    rng = np.random.default_rng(3)
    missed = 0
    seeds = 60
    for _ in range(seeds):
        large = rng.uniform(size=200) < 0.5
        groups = np.repeat(np.arange(200), np.where(large, 9, 1))
        codes = (large[groups] & (rng.uniform(size=groups.size) < 2 / 3)).astype(int)
        tally = _tally(np.zeros(groups.size, int), codes, groups, 1)
        rows = _limits(tally, GroupDesign(9))
        alike = _limits(tally, GroupDesign(9, "groups"))
        missed += not (rows.lower[0] <= 0.6 <= rows.upper[0])
        missed += not (alike.lower[0] <= 1 / 3 <= alike.upper[0])
        assert rows.upper[0] - rows.lower[0] < 0.5
    _check(missed, 2 * seeds)


def _with_giants(rng, n_groups):
    """Ten rows a group, 30 % positive; one group in 300 has 1,000 rows, all of them positive."""
    sizes = np.where(rng.uniform(size=n_groups) < 1 / 300, 1000, 10)
    groups = np.repeat(np.arange(n_groups), sizes)
    codes = (sizes[groups] == 1000) | (rng.uniform(size=groups.size) < 0.3)
    return groups, codes.astype(int)


def _rate_with_giants(largest):
    weights = np.array([min(10, largest) * 299 / 300, min(1000, largest) / 300])
    return float(weights @ [0.3, 1.0] / weights.sum())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.errors.GroupCapWarning")
def test_the_largest_size_seen_is_no_limit_and_is_never_taken_for_one():
    rng = np.random.default_rng(4)
    missed = 0
    trapped = 0
    seeds = 60
    for seed in range(seeds):
        groups, codes = _with_giants(rng, 300)
        calibrator = BinningCalibrator(1, partition="uniform", random_state=seed)
        fitted = calibrator.fit(np.full(groups.size, 0.5), codes, groups=groups)
        found = fitted.guarantee_
        largest = fitted.guarantee_.statement.groups.max_size
        truth = _rate_with_giants(largest)
        missed += not found.lower[0] <= truth <= found.upper[0]
        trap = GroupDesign(int(np.bincount(groups).max()))
        limits = _limits(_tally(np.zeros(groups.size, int), codes, groups, 1), trap)
        whole = _rate_with_giants(1000)
        trapped += not limits.lower[0] <= whole <= limits.upper[0]
    _check(missed, seeds)
    assert trapped > 0.25 * seeds


def _sorted_world(rng, n_groups, shared):
    """Scores are uniform and the rate is the score; a coin of the whole group moves it up or down."""
    sizes = rng.integers(1, 12, size=n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)
    scores = rng.uniform(size=n_groups)[groups] if shared else rng.uniform(size=groups.size)
    coin = rng.choice([-1.0, 1.0], size=n_groups)[groups]
    rate = scores + coin * np.minimum(scores, 1 - scores)
    return scores, (rng.uniform(size=groups.size) < rate).astype(int), groups


def _true_rates(partition, points=40_000):
    scores = (np.arange(points) + 0.5) / points
    regions = partition.membership(partition.prepare(scores))
    return regions, scores, np.bincount(regions, scores) / np.bincount(regions)


@pytest.mark.broad
@pytest.mark.parametrize("target", ["rows", "groups"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared scores", "own scores"])
def test_bins_cover(shared, target):
    rng = np.random.default_rng(5)
    missed = 0
    seeds = 30
    for seed in range(seeds):
        scores, codes, groups = _sorted_world(rng, 400, shared)
        found = BinningCalibrator(4, random_state=seed).fit(
            scores, codes, groups=groups, group_target=target
        )
        _, _, truth = _true_rates(found.partition_)
        # sizes do not depend on scores or labels, so that both targets and any size limit have one
        # rate
        missed += not ((found.guarantee_.lower <= truth) & (found.guarantee_.upper >= truth)).all()
        assert found.guarantee_.epsilon < 0.35
    _check(missed, seeds)


def _classes_world(rng, n_groups):
    """The top class is right as often as its score says.

    A coin of the whole group moves that up or down.
    """
    groups = np.repeat(np.arange(n_groups), rng.integers(15, 20, size=n_groups))
    scores = rng.dirichlet([1.0, 1.0, 1.0], size=groups.size)
    top = scores.argmax(axis=1)
    best = scores.max(axis=1)
    coin = rng.choice([-1.0, 1.0], size=n_groups)[groups]
    right = rng.uniform(size=groups.size) < best + coin * np.minimum(best, 1 - best)
    return scores, np.where(right, top, (top + 1) % 3), groups


@pytest.mark.slow
def test_predicted_classes_cover():
    rng = np.random.default_rng(8)
    missed = 0
    plain_missed = 0
    seeds = 25
    fresh = _classes_world(rng, 3_000)[0]
    for _ in range(seeds):
        scores, labels, groups = _classes_world(rng, 150)
        for given in ({"groups": groups}, {}):
            found = TopLabelCalibrator(2, method="binning").fit(scores, labels, **given)
            limits = found.predict_interval(fresh)
            best = fresh.max(axis=1)
            top = fresh.argmax(axis=1)
            region = np.unique(np.column_stack([top, limits]), axis=0, return_inverse=True)[
                1
            ].ravel()
            truth = (np.bincount(region, best) / np.bincount(region))[region]
            miss = not ((limits[:, 0] <= truth + 0.004) & (truth - 0.004 <= limits[:, 1])).all()
            missed = missed + (miss and bool(given))
            plain_missed = plain_missed + (miss and not given)
    _check(missed, seeds)
    assert plain_missed > 0.25 * seeds


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False], ids=["shared scores", "own scores"])
def test_averages_of_the_curve_cover(shared):
    rng = np.random.default_rng(6)
    missed = 0
    seeds = 40
    for seed in range(seeds):
        scores, codes, groups = _sorted_world(rng, 300, shared)
        found = Calibrator("beta", 3, random_state=seed).fit(scores, codes, groups=groups)
        regions, points, truth = _true_rates(found.partition_)
        average = np.bincount(regions, found.predict(points)) / np.bincount(regions)
        missed += bool((np.abs(average - truth) > found.guarantee_.radius).any())
        assert found.guarantee_.epsilon < 0.4
    _check(missed, seeds)


def test_the_design_effect_is_that_of_the_population():
    groups, codes = _beta_binomial(np.random.default_rng(8), 20_000, 10, 0.3, 0.4)
    tally = _tally(np.zeros(groups.size, int), codes, groups, 1)
    sums = Entries.of_tally(tally, GroupDesign(10).cap)
    assert sums.design_effect == pytest.approx(1 + 9 * 0.3, rel=0.03)
    assert sums.effective_rows[0][0] == pytest.approx(200_000 / 3.7, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("icc", "most"), [(0.3, 1.15), (0.1, 1.2)])
def test_limits_are_nearly_those_of_the_normal_law_with_the_true_design_effect(icc, most):
    rng = np.random.default_rng(9)
    widths = []
    one_row = []
    for seed in range(30):
        groups, codes = _beta_binomial(rng, 1000, 10, icc, 0.5)
        scores = rng.uniform(size=1000)[groups]
        first = np.arange(0, 10_000, 10)
        bins = {"n_bins": 10, "partition": "uniform", "random_state": seed}
        fitted = BinningCalibrator(**bins).fit(scores, codes, groups=groups, max_group_size=10)
        widths.append(fitted.guarantee_.interval.radius.mean())
        alone = BinningCalibrator(**bins).fit(scores[first], codes[first])
        one_row.append(alone.guarantee_.interval.radius.mean())
    normal = 2.5758 * np.sqrt(0.25 * (1 + 9 * icc) / 1000)
    assert np.mean(widths) < most * normal
    assert np.mean(widths) < np.mean(one_row)
