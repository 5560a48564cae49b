"""Limits of groups against the bets and formulas written out, group by group."""

from bisect import bisect_left

import numpy as np
import pytest
from scipy.stats import norm

from calibrant import Tally
from calibrant.cells.group_counts import GroupCounts, block_of
from calibrant.cells.unit_sums import UnitSums
from calibrant.errors import InvalidValueError
from calibrant.limits.bounded_mean import lower_mean
from calibrant.limits.group_design import GroupDesign
from calibrant.limits.group_limits import (
    _sharpened,
    group_distance,
    group_limits,
    proved_above,
)
from calibrant.params.random import RandomSource

DESIGNS = [GroupDesign(4), GroupDesign(9), GroupDesign(4, "groups")]


@pytest.fixture(scope="module")
def world():
    """Three regions, of which the last has no row; sizes from 1 to 9, rates that groups share."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(90), rng.integers(1, 10, size=90))
    codes = (rng.uniform(size=groups.size) < rng.beta(1.2, 2.0, size=90)[groups]).astype(int)
    return rng.integers(0, 2, size=groups.size), codes, groups


@pytest.fixture(scope="module")
def tally(world):
    table = GroupCounts.of(*world)
    return Tally(*table.totals(3), groups=table)


def seen_in(world, region, design):
    """Rows, positives, weight over its bound and block of each group with rows in a region."""
    regions, codes, groups = world
    blocks = block_of(np.arange(90, dtype=np.uint64), RandomSource(0))
    for group in range(90):
        there = (groups == group) & (regions == region)
        if there.any():
            rows = int(there.sum())
            size = int((groups == group).sum())
            weight = (
                min(rows, design.max_size) / design.max_size
                if design.target == "rows"
                else rows / size
            )
            yield rows, int(codes[there].sum()), weight, int(blocks[group])


TURNS = [*range(0, 48, 2), *range(47, 0, -2)]


def capital(seen, q, side, goal, *, hedged=True):
    """Logarithm of the most that bets against the rate q have won after any block."""
    log_wealth = 0.0
    best = 0.0
    before = []
    for block in TURNS:
        now = [(w, hits / rows) for rows, hits, w, own in seen if own == block]
        if not now:
            continue
        most = max((w for w, _ in before), default=1.0)
        mean = (most / 2 + sum(w * y for w, y in before)) / (most + sum(w for w, _ in before))
        variance = (most**2 / 4 + sum((w * (y - mean)) ** 2 for w, y in before)) / (1 + len(before))
        if hedged:
            share = np.exp(min(log_wealth - goal, -1e-9))
            stake = (
                norm.pdf(norm.ppf(share)) / share / np.sqrt(variance * (len(seen) - len(before)))
            )
        else:
            stake = np.sqrt(2 * goal / (len(seen) * variance))
        stake = min(stake, 0.9 / (q if side > 0 else 1 - q))
        log_wealth += sum(np.log1p(side * stake * w * (y - q)) for w, y in now)
        best = max(best, log_wealth)
        if hedged and best >= goal:
            break
        before += now
    return best


@pytest.mark.broad
@pytest.mark.parametrize("design", DESIGNS)
def test_limits_are_where_the_bets_written_out_have_won_enough(world, tally, design):
    limits = group_limits(tally, design, 0.2)
    goal = np.log(2 * 3 / 0.2)
    for region in range(2):
        seen = list(seen_in(world, region, design))
        step = 1 / (40 * np.sqrt(len(seen) * min(design.max_size, 10)))
        for end, side in ((limits.lower[region], 1), (1 - limits.upper[region], -1)):
            place = np.arcsin(np.sqrt(end)) / step
            assert place == pytest.approx(round(place), abs=1e-6), "on the grid"
            shares = np.sin(np.arange(round(place) + 2) * step) ** 2
            rates = shares if side > 0 else 1 - shares
            first = goal - np.log(0.05)
            then = goal - np.log(0.95)
            begin = (
                bisect_left(
                    rates[1:],
                    True,
                    key=lambda q: capital(seen, q, side, first, hedged=False) < first,
                )
                + 1
            )
            assert 2 < begin < round(place) - 2, "the walk begins where the first bets end"
            for q in (*rates[begin:-2:6], *rates[-4:-1]):
                assert capital(seen, q, side, then) >= then
            assert capital(seen, rates[-1], side, then) < then
    assert (limits.lower[2], limits.upper[2]) == (0, 1)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.broad
def test_a_rate_is_proved_where_the_one_bet_written_out_has_won_enough(world, tally, design):
    rates = np.linspace(0.02, 0.6, 15)
    goal = -np.log(0.1)
    sums = UnitSums.of(tally, design.counting)
    found = np.array([proved_above(sums, rate, 0.1) for rate in rates])
    for region in range(2):
        seen = list(seen_in(world, region, design))
        won = [capital(seen, rate, 1, goal) >= goal for rate in rates]
        assert found[:, region].tolist() == won
        assert True in won
        assert False in won
    assert not found[:, 2].any()


@pytest.mark.parametrize("design", DESIGNS)
def test_sums_are_those_of_the_groups_one_by_one(world, tally, design):
    sums = UnitSums.of(tally, design.counting)
    squares = 0.0
    alone = 0.0
    for region in range(2):
        rows, hits, weight, _ = np.array(list(seen_in(world, region, design))).T
        rate = (weight * hits / rows).sum() / weight.sum()
        assert sums.rates[region] == pytest.approx(rate)
        spread = ((weight * (hits / rows - rate)) ** 2).sum()
        own = (weight**2 / rows).sum()
        told = weight.sum() ** 2 * min(rate * (1 - rate) / spread, 1 / own)
        assert sums.telling[0][region] == pytest.approx(told)
        squares = squares + spread
        alone = alone + own * rate * (1 - rate)
    assert sums.design_effect == pytest.approx(squares / alone)
    assert np.isnan(sums.rates[2])
    assert (sums.telling[0][2], sums.telling[1][2]) == (0, 0)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_distance_is_that_of_the_formula(world, tally, design):
    found = group_distance(tally, design, 0.3)
    for region in range(2):
        rows, _, weight, _ = np.array(list(seen_in(world, region, design))).T
        n = rows.size
        share = weight.mean()
        most = 1 - lower_mean(1 - share, n, 0.01)
        bounds = [
            a
            + np.exp(-4 * a * a / k)
            * n
            * most
            * np.exp(v)
            * (1 + most * np.expm1(v)) ** (n - 1)
            / (2 * a * 0.09)
            for a in np.sqrt(n) * np.geomspace(0.02, 4, 160)
            for k in n * np.geomspace(0.01, 1, 60)
            if (v := 2 * (a / k) ** 2) < 300 / n
        ]
        picks = min(bounds) / (share * n)
        variation = np.abs(rows / rows.sum() - weight / weight.sum()).sum() / 2
        assert found[region] == pytest.approx(min(1.0, picks + variation))
    assert found[:2].min() < 1.0 == found[2]


def test_a_saved_design_is_checked():
    for design in (GroupDesign(1), GroupDesign(7, "groups", 3)):
        assert GroupDesign.from_dict(design.to_dict()) == design
    assert GroupDesign(3).to_dict() == {"max_size": 3, "target": "rows", "aside": 0}
    for change in ({"max_size": 0}, {"aside": -1}, {"target": "columns"}):
        with pytest.raises(InvalidValueError, match=next(iter(change))):
            GroupDesign.from_dict(GroupDesign(1).to_dict() | change)


def test_the_distance_of_a_few_groups_is_at_most_1() -> None:
    table = GroupCounts.of([0, 0], [0, 1], [0, 1])
    tally = Tally(*table.totals(2), groups=table)
    np.testing.assert_array_equal(group_distance(tally, GroupDesign(max_size=1), 0.1), [1.0, 1.0])


@pytest.mark.parametrize("scale", [0.001, 0.1, 1.0, 100.0])
def test_the_design_effect_does_not_depend_on_the_scale_of_weights(scale: float) -> None:
    weight = np.full(4, scale)
    rate = np.array([0.0, 0.0, 1.0, 0.0])
    block = np.zeros(4, dtype=np.int64)
    ones = np.ones(4, dtype=np.int64)
    region = np.zeros(4, dtype=np.intp)
    sums = UnitSums(region, weight, rate, block, ones, weight, 1, scale, weight)
    assert sums.design_effect == pytest.approx(1.0)
    nobody = UnitSums(region, weight, np.zeros(4), block, ones, weight, 1, scale, weight)
    assert np.isnan(nobody.design_effect)


def test_limits_never_pass_a_rate_that_is_not_ruled_out_whatever_lies_beyond() -> None:
    class Game:
        n_groups = np.array([40, 40, 0])

        @staticmethod
        def hedged(rates, side, goal, going):
            kept = (rates > 0.3) & (rates < 0.36)
            return ~kept

    lower = np.array([0.1, 0.32, 0.0])
    upper = np.array([0.9, 0.34, 1.0])
    found = _sharpened(Game(), lower, upper, 1.0, 3.0)
    assert 0.1 < found.lower[0] <= 0.3
    assert 0.36 <= found.upper[0] < 0.9
    assert found.lower[1:].tolist() == [0.32, 0.0]
    assert found.upper[1:].tolist() == pytest.approx([0.34, 1.0])
