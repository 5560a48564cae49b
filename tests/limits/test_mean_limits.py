"""Limits of groups against sums and formulas written out, group by group."""

from dataclasses import replace

import numpy as np
import pytest

from calibrant import Tally
from calibrant.cells.entries import Entries
from calibrant.cells.group_counts import GroupCounts
from calibrant.errors import InvalidValueError
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.region_limits import GroupDesign, bet_units, mean_limits, shown_above

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


def limits_of(tally, design, alpha):
    entries = Entries.of_tally(tally, design.cap)
    return mean_limits(entries, alpha, order=design.order, unproved=design.unproved)


def seen_in(world, region, design):
    """Rows, positives and weight over its bound of each group with rows in a region."""
    regions, codes, groups = world
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
            yield rows, int(codes[there].sum()), weight


def units_of(world, design):
    """Weight over its bound and share of positives of each group, by region."""
    found = []
    for region in range(3):
        seen = seen_in(world, region, design)
        found.append(sorted((weight, hits / rows) for rows, hits, weight in seen))
    return found


@pytest.mark.parametrize("design", DESIGNS)
def test_bets_are_on_each_group_once_with_its_weight_over_the_bound(world, tally, design):
    units = bet_units(Entries.of_tally(tally, design.cap), 5)
    for region, expected in enumerate(units_of(world, design)):
        weight, rate = units.w[:, region], units.z[:, region]
        found = zip(weight[weight > 0.0], rate[weight > 0.0], strict=True)
        np.testing.assert_allclose(
            np.reshape(sorted(found), (-1, 2)), np.reshape(expected, (-1, 2))
        )


@pytest.mark.parametrize("design", DESIGNS)
def test_limits_are_those_of_bets_at_an_even_share_of_the_level(tally, design):
    sums = Entries.of_tally(tally, design.cap)
    limits = limits_of(tally, design, 0.2)
    found = bet_limits(bet_units(sums, design.order), np.full(3, 0.2 / 6))
    assert limits == found
    assert (limits.lower[2], limits.upper[2]) == (0, 1)
    assert (limits.lower[:2] > 0.05).all()
    assert (limits.upper[:2] < 0.8).all()


def test_regions_without_groups_set_aside_have_no_limits_and_cost_nothing(tally):
    design = GroupDesign(4, unproved=(1, 2))
    shown = limits_of(tally, design, 0.2)
    assert (shown.lower[1:].tolist(), shown.upper[1:].tolist()) == ([0, 0], [1, 1])
    whole = bet_limits(bet_units(Entries.of_tally(tally, design.cap), 0), np.full(3, 0.1))
    assert (shown.lower[0], shown.upper[0]) == (whole.lower[0], whole.upper[0])


@pytest.mark.parametrize("design", DESIGNS)
def test_the_order_of_bets_depends_on_the_seed_and_the_groups_alone(world, tally, design):
    """Not on the order of entries, nor on which label is positive."""
    sums = Entries.of_tally(tally, design.cap)
    units = bet_units(sums, 5)
    some = np.random.default_rng(0).permutation(sums.region.size)
    columns = ("region", "weight", "value", "number", "rows", "uncapped")
    moved = replace(sums, **{name: getattr(sums, name)[some] for name in columns})
    np.testing.assert_array_equal(bet_units(moved, 5).z, units.z)
    np.testing.assert_array_equal(bet_units(moved, 5).w, units.w)
    assert not np.array_equal(bet_units(sums, 6).z, units.z)
    regions, codes, groups = world
    table = GroupCounts.of(regions, 1 - codes, groups)
    swapped = limits_of(Tally(*table.totals(3), groups=table), design, 0.2)
    limits = limits_of(tally, design, 0.2)
    np.testing.assert_allclose(swapped.lower, 1.0 - limits.upper, atol=1e-12)
    np.testing.assert_allclose(swapped.upper, 1.0 - limits.lower, atol=1e-12)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_rate_is_shown_to_be_exceeded_below_the_one_sided_limit_alone(tally, design):
    sums = Entries.of_tally(tally, design.cap)
    limit = bet_limits(bet_units(sums, 5), np.full(3, 0.1)).lower[:2]
    rates = np.linspace(0.02, 0.6, 59)
    found = np.array([shown_above(sums, rate, 0.1, 5) for rate in rates])
    assert not found[:, 2].any()
    for region in range(2):
        assert found[rates < limit[region] - 0.01, region].all()
        assert not found[rates > limit[region] + 0.01, region].any()


@pytest.mark.parametrize("design", DESIGNS)
def test_sums_are_those_of_the_groups_one_by_one(world, tally, design):
    sums = Entries.of_tally(tally, design.cap)
    squares = 0.0
    alone = 0.0
    for region in range(2):
        rows, hits, weight = np.array(list(seen_in(world, region, design))).T
        rate = (weight * hits / rows).sum() / weight.sum()
        assert sums.rates[region] == pytest.approx(rate)
        spread = ((weight * (hits / rows - rate)) ** 2).sum()
        own = (weight**2 / rows).sum()
        told = weight.sum() ** 2 * min(rate * (1 - rate) / spread, 1 / own)
        assert sums.effective_rows[0][region] == pytest.approx(told)
        squares = squares + spread
        alone = alone + own * rate * (1 - rate)
    assert sums.design_effect == pytest.approx(squares / alone)
    assert np.isnan(sums.rates[2])
    assert (sums.effective_rows[0][2], sums.effective_rows[1][2]) == (0, 0)


def test_a_saved_design_is_checked():
    for design in (GroupDesign(1), GroupDesign(7, "groups", 3), GroupDesign(2, order=2**52 + 1)):
        assert GroupDesign.from_dict(design.to_dict()) == design
    assert GroupDesign(3).to_dict() == {"max_size": 3, "target": "rows", "aside": 0}
    for change in ({"max_size": 0}, {"aside": -1}, {"target": "columns"}):
        with pytest.raises(InvalidValueError, match=next(iter(change))):
            GroupDesign.from_dict(GroupDesign(1).to_dict() | change)


@pytest.mark.parametrize("scale", [0.001, 0.1, 1.0, 100.0])
def test_the_design_effect_does_not_depend_on_the_scale_of_weights(scale: float) -> None:
    weight = np.full(4, scale)
    rate = np.array([0.0, 0.0, 1.0, 0.0])
    ones = np.ones(4, dtype=np.int64)
    region = np.zeros(4, dtype=np.intp)
    sums = Entries(region, rate, 1, weight, ones, scale, weight)
    assert sums.design_effect == pytest.approx(1.0)
    nobody = Entries(region, np.zeros(4), 1, weight, ones, scale, weight)
    assert np.isnan(nobody.design_effect)
