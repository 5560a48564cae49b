"""Limits by bets on independent units: exact by enumeration, kept in simulations, nearly as narrow
as the best possible, and never a function of what comes later.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta, norm

from calibrant.cells.entries import Entries
from calibrant.errors import InvalidValueError
from calibrant.limits import bet_limits as engine
from calibrant.limits import bet_units
from calibrant.limits.bet_limits import bet_limits, exceeds
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.kl import lower_mean
from worlds.guarantees import assert_rare

TAIL = 0.25
SEQUENCES = list(itertools.product((0.0, 1.0), repeat=9))


class _AsGiven(np.random.Generator):
    """Leaves units in the order in which they come: their order is already random, or fixed."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def permutation(self, n):
        return np.arange(n)


def units_of(values, weights=None, ends=(0.0, 1.0), pilot=None, generator=None, number=None):
    """One region."""
    values = np.asarray(values, dtype=float)
    draws = Entries(np.zeros(values.size, dtype=int), values, 1, weights, number)
    seen = None if pilot is None else Entries(np.zeros(len(pilot), dtype=int), np.asarray(pilot), 1)
    low, high = (np.array([end]) for end in ends)
    return BetUnits.of(draws, low, high, generator or _AsGiven(), seen)


def limits_of(*given, tail=TAIL, **more):
    found = bet_limits(units_of(*given, **more), np.array([tail]))
    return float(found.lower[0]), float(found.upper[0])


@pytest.fixture
def coarse(monkeypatch):
    """Blocks, bounded logarithms and a look at first units, already at n = 9."""
    for name, value in (("_SINGLE", 2), ("_PART", 2), ("_EXACT", 3)):
        monkeypatch.setattr(bet_units, name, value)
    monkeypatch.setattr(engine, "_LOOK_FROM", 4)
    monkeypatch.setattr(engine, "_LOOK_PART", 4)
    bet_units.block_ends.cache_clear()
    yield
    bet_units.block_ends.cache_clear()


def _missed(limits, rate, values=(0.0, 1.0)):
    """The probability that each limit misses the mean, over all sequences of two values."""
    missed = np.zeros(2)
    mean = values[0] + rate * (values[1] - values[0])
    for labels, (lower, upper) in limits.items():
        ones = sum(labels)
        chance = rate**ones * (1.0 - rate) ** (len(labels) - ones)
        missed += chance * np.array([lower > mean, upper < mean])
    return missed


RATES = (0.02, 0.1, 0.3, 0.5, 0.8, 0.97)


@pytest.mark.parametrize("tail", [0.25, 0.05])
def test_each_limit_misses_at_most_as_often_as_stated_by_enumeration(tail):
    limits = {labels: limits_of(labels, tail=tail) for labels in SEQUENCES}
    missed = np.array([_missed(limits, rate) for rate in RATES])
    assert (missed <= tail).all()
    assert missed.max() > tail / 4.0  # the limits are not vacuous


@pytest.mark.parametrize("pilot", [None, [0.5], [0.0] * 30, [1.0] * 30, [0.9, 0.1] * 40])
def test_blocks_bounds_looks_and_wrong_pilots_miss_no_more_by_enumeration(coarse, pilot):
    """Between two values inside the range, so that units do not reveal the rate at once."""
    values = (0.2, 0.7)
    limits = {labels: limits_of(0.2 + 0.5 * np.array(labels), pilot=pilot) for labels in SEQUENCES}
    missed = np.array([_missed(limits, rate, values) for rate in RATES])
    assert (missed <= TAIL).all()
    assert missed.max() > 0.0


def test_weights_that_depend_on_values_miss_no_more_by_enumeration(coarse):
    weight = np.array([1.0, 0.3])
    limits = {
        labels: limits_of(labels, weight[np.array(labels, dtype=int)]) for labels in SEQUENCES
    }
    for rate in RATES:
        mean = rate * weight[1] / (rate * weight[1] + (1.0 - rate) * weight[0])
        missed = np.zeros(2)
        for labels, (lower, upper) in limits.items():
            ones = sum(labels)
            chance = rate**ones * (1.0 - rate) ** (9 - ones)
            missed += chance * np.array([lower > mean, upper < mean])
        assert (missed <= TAIL).all()


def _rare(rng, n):
    return {"values": (rng.random(n) < 0.01).astype(float)}, 0.01


def _residuals(rng, n):
    p = rng.beta(0.3, 6.0, n)
    return {"values": (rng.random(n) < p) - p, "ends": (-1.0, 1.0)}, 0.0


def _atom(rng, n):
    values = np.where(rng.random(n) < 0.9, 0.0, rng.uniform(-1.0, 1.0, n))
    return {"values": values, "ends": (-1.0, 1.0)}, 0.0


def _wrong_pilot(rng, n):
    values = rng.choice([-0.5, 0.8], size=n, p=[0.6, 0.4])
    return {"values": values, "ends": (-0.5, 0.8), "pilot": np.full(60, 0.79)}, 0.02


def _heavy_weights(rng, n):
    """Few heavy units, of another mean than the others."""
    heavy = rng.random(n) < 0.05
    values = (rng.random(n) < np.where(heavy, 0.5, 0.1)).astype(float)
    mean = (0.05 * 0.5 + 0.95 * 0.02 * 0.1) / (0.05 + 0.95 * 0.02)
    return {"values": values, "weights": np.where(heavy, 1.0, 0.02)}, mean


def _weights_of_labels(rng, n):
    """Groups are larger if their labels are positive."""
    positive = rng.random(n) < 0.2
    weights = np.where(positive, 1.0, 0.1)
    mean = 0.2 / (0.2 + 0.8 * 0.1)
    return {"values": positive.astype(float), "weights": weights}, mean


def _sorted_by_label(rng, n):
    return {"values": np.sort((rng.random(n) < 0.3).astype(float)), "generator": rng}, 0.3


WORLDS = [
    _rare,
    _residuals,
    _atom,
    _wrong_pilot,
    _heavy_weights,
    _weights_of_labels,
    _sorted_by_label,
]


@pytest.mark.slow
@pytest.mark.parametrize("tail", [0.25, 0.05])
@pytest.mark.parametrize("n", [3, 40, 600])
@pytest.mark.parametrize("world", WORLDS)
def test_each_limit_misses_at_most_as_often_as_stated(world, n, tail):
    """4,000 draws; all are columns of one walk, as regions are."""
    n_draws = 4000
    rng = np.random.default_rng(n)
    drawn = [world(rng, n) for _ in range(n_draws)]
    ends = drawn[0][0].get("ends", (0.0, 1.0))
    region = np.repeat(np.arange(n_draws), n)
    values = np.concatenate([given["values"] for given, _ in drawn])
    weights = None
    if "weights" in drawn[0][0]:
        weights = np.concatenate([given["weights"] for given, _ in drawn])
    pilot = None
    if "pilot" in drawn[0][0]:
        seen = drawn[0][0]["pilot"]
        pilot = Entries(np.repeat(np.arange(n_draws), seen.size), np.tile(seen, n_draws), n_draws)
    low, high = (np.full(n_draws, end) for end in ends)
    generator = rng if "generator" in drawn[0][0] else _AsGiven()
    units = BetUnits.of(Entries(region, values, low.size, weights), low, high, generator, pilot)
    found = bet_limits(units, np.full(n_draws, tail))
    mean = drawn[0][1]
    for side in (found.lower > mean + 1e-12, found.upper < mean - 1e-12):
        assert_rare(int(side.sum()), n_draws, tail)


def test_units_that_were_not_shuffled_show_why_an_order_is_drawn():
    """Sorted by label, the same units miss nearly always: the test above can fail."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(20):
        lower, upper = limits_of(np.sort((rng.random(600) < 0.3).astype(float)), tail=0.05)
        missed += not lower <= 0.3 <= upper
    shuffled = 0
    for _ in range(20):
        values = np.sort((rng.random(600) < 0.3).astype(float))
        lower, upper = limits_of(values, tail=0.05, generator=rng)
        shuffled += not lower <= 0.3 <= upper
    assert missed > 7 > 5 > shuffled


@pytest.mark.parametrize("n", [60, 700, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_nothing_depends_on_later_units(n, weighted):
    """Altered later units change neither the lattice nor the start, nor any earlier stake."""
    rng = np.random.default_rng(n)
    values = rng.random(n) ** 2
    weights = rng.random(n) if weighted else None
    for later in (n // 2, n - n // 20, n - 3):
        walks = []
        for altered in (False, True):
            z = values.copy()
            w = None if weights is None else weights.copy()
            if altered:
                z[later:] = rng.integers(2, size=n - later)
                if w is not None:
                    w[later:] = rng.random(n - later) ** 3
            walks.append(engine._Walk(units_of(z, w), np.array([0.01])))
        one, other = walks
        for name in ("step", "start_stake", "look_stake", "goal"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        # `left` counts the units from a block on; its stake may not use its own units either
        unaffected = one.left[:, 0] >= n - later + 1
        columns = np.zeros(16, dtype=int)
        means = np.linspace(0.2, 0.5, 16)
        stakes = [walk.play(columns, means, 8)[1] for walk in walks]
        assert unaffected.sum() > 5
        np.testing.assert_array_equal(stakes[0][unaffected], stakes[1][unaffected])


def _largest_capital(values, weights, mean, stakes, ends):
    """The largest capital against a mean at the end of a block, by its definition."""
    capital = largest = 0.0
    unit = 0
    for block in range(len(stakes) - 1, -1, -1):
        while unit < values.size and values.size - 1 - unit >= ends[block]:
            capital += math.log1p(stakes[block] * weights[unit] * (values[unit] - mean))
            unit += 1
        largest = max(largest, capital)
    return largest


@pytest.mark.parametrize("n", [25, 300, 2500])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_limit_above_the_mean_has_a_capital_that_reached_its_goal(n, weighted):
    """The certificate: the only event in which a lower limit may exceed the mean.

    The stakes of the mean's own cell of the lattice, played unit by unit with exact logarithms.
    """
    rng = np.random.default_rng(n)
    n_checked = 0
    for _ in range(60):
        values = (rng.random(n) < 0.1) * rng.random(n)
        weights = rng.random(n) if weighted else np.ones(n)
        units = units_of(values, weights if weighted else None)
        walk = engine._Walk(units, np.array([TAIL]))
        lower = walk.lower_limits()[0]
        ends = bet_units.block_ends(n)
        for mean in lower * np.array([0.999, 0.97, 0.9]) if lower > 0.0 else ():
            cell = math.ceil(math.asin(math.sqrt(mean)) / walk.step[0])
            group = (cell - 1) // 8 * 8
            angle = (group + np.arange(1, 9)) * walk.step[0]
            column = np.zeros(8, dtype=int)
            _, stakes = walk.play(column, np.sin(angle) ** 2, 8)
            own = stakes[:, cell - 1 - group]
            reached = _largest_capital(values, weights, mean, own, ends) >= walk.goal[0] - 1e-6
            look = walk.looks[:, 0]
            start = np.where(look, 0.0, walk.start_stake[0])
            began = _largest_capital(values, weights, mean, start, ends)
            assert reached or began >= walk.start_goal[0] - 1e-6
            n_checked += not began >= walk.start_goal[0]
    assert n_checked > 30


def test_the_bound_of_early_blocks_is_below_the_exact_logarithm(monkeypatch):
    rng = np.random.default_rng(3)
    values, weights = rng.random(4000) ** 3, rng.random(4000)
    exact = limits_of(values, weights, tail=0.01)
    monkeypatch.setattr(bet_units, "_EXACT", 4)
    bounded = limits_of(values, weights, tail=0.01)
    assert exact == pytest.approx(bounded, abs=1e-4)
    blocks = engine._Blocks(*(part[..., :, :] for part in _moments(values, weights)))
    for stake in (0.1, 0.9, 1.4):
        mean = np.array([0.3])
        bound = blocks.against(mean, slice(0, 1), np.zeros(1, dtype=int)).of(np.array([stake]), 0)
        log = np.log1p(stake * weights * (values - mean)).sum()
        assert bound[0] <= log + 1e-9
        assert bound[0] == pytest.approx(log, rel=0.05)


def _moments(values, weights):
    """All units as one block."""
    kinds = [values < 0.5, values >= 0.5]
    sums = [
        [(weights[of] ** p * values[of] ** k).sum() for of in kinds] for p, k in bet_units.MOMENTS
    ]
    heaviest = np.array([weights[of].max() for of in kinds])
    return np.array(sums)[:, :, None, None], heaviest[:, None, None]


@pytest.mark.parametrize(
    ("rate", "n", "most"), [(0.5, 1000, 1.06), (0.05, 1000, 1.09), (0.001, 10_000, 1.2)]
)
def test_limits_on_labels_are_nearly_as_narrow_as_exact_ones(rate, n, most):
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(12):
        labels = (rng.random(n) < rate).astype(float)
        lower, upper = limits_of(labels, tail=0.025)
        k = labels.sum()
        exact = beta.isf(0.025, k + 1, n - k) - (beta.ppf(0.025, k, n - k + 1) if k else 0.0)
        ratios.append((upper - lower) / exact)
    assert 0.98 < np.mean(ratios) < most


@pytest.mark.parametrize(("n", "wider"), [(100, 1.12), (1000, 1.05), (20_000, 1.04)])
def test_limits_on_residuals_are_nearly_those_of_the_normal_distribution(n, wider):
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(8):
        p = rng.uniform(0.2, 0.5, n)
        lower, upper = limits_of((rng.random(n) < p) - p, tail=0.005, ends=(-0.5, 0.8))
        normal = norm.isf(0.005) * np.sqrt((p * (1.0 - p)).mean() / n)
        ratios.append((upper - lower) / 2.0 / normal)
    assert 0.99 < np.mean(ratios) < wider


def test_the_order_of_rare_residuals_moves_limits_little():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.02, 0.06, 1000)
    values = (rng.random(1000) < p) - p
    widths = []
    for seed in range(25):
        generator = np.random.default_rng(seed)
        lower, upper = limits_of(values, tail=0.01, ends=(-0.06, 0.98), generator=generator)
        widths.append(upper - lower)
    assert np.std(widths) / np.mean(widths) < 0.06


def test_opposite_values_mirror_the_limits():
    values = np.random.default_rng(0).uniform(-0.3, 0.6, 900)
    lower, upper = limits_of(values, ends=(-0.3, 0.6), tail=0.05)
    assert limits_of(-values, ends=(-0.6, 0.3), tail=0.05) == pytest.approx((-upper, -lower))


def test_a_smaller_tail_contains_a_larger_one():
    values = np.random.default_rng(0).random(150)
    lower, upper = limits_of(values, tail=0.1)
    wider = limits_of(values, tail=0.001)
    assert wider[0] < lower < values.mean() < upper < wider[1]


def test_weights_of_one_change_nothing():
    values = np.random.default_rng(1).random(900)
    assert limits_of(values, np.ones(900)) == pytest.approx(limits_of(values), abs=1e-12)


def test_regions_and_columns_do_not_affect_each_other():
    rng = np.random.default_rng(4)
    region = np.repeat(np.arange(150), rng.integers(0, 90, 150))
    values = rng.random(region.size)
    ends = np.zeros(150), np.ones(150)
    found = bet_limits(
        BetUnits.of(Entries(region, values, ends[0].size), *ends, _AsGiven()), np.full(150, 0.02)
    )
    for one in (0, 7, 64, 149):
        alone = limits_of(values[region == one], tail=0.02)
        assert (found.lower[one], found.upper[one]) == pytest.approx(alone, abs=1e-12)


def test_without_units_and_in_a_range_of_one_value_the_limits_are_the_range():
    assert limits_of([], ends=(-0.25, 0.5)) == (-0.25, 0.5)
    assert limits_of([0.3] * 50, ends=(0.3, 0.3)) == (0.3, 0.3)
    assert limits_of([0.3] * 50, np.zeros(50)) == (0.0, 1.0)


def test_the_observed_mean_lies_within():
    rng = np.random.default_rng(9)
    for n in (1, 2, 5, 40):
        values = rng.random((50, n))
        for row in values:
            lower, upper = limits_of(row, tail=0.49)
            assert lower - 1e-12 <= row.mean() <= upper + 1e-12


@pytest.mark.parametrize("value", [1.01, -0.01, np.nan, np.inf])
def test_a_value_out_of_range_is_an_error(value):
    with pytest.raises(InvalidValueError, match="values must lie in their range"):
        units_of([0.5, value])


@pytest.mark.parametrize("weight", [1.01, -0.01, np.nan])
def test_a_weight_out_of_range_is_an_error(weight):
    with pytest.raises(InvalidValueError, match="weights must be from 0 to their bound"):
        units_of([0.5, 0.6], np.array([0.5, weight]))


def test_pilot_units_are_moved_into_the_range_and_sharpen_small_samples():
    rng = np.random.default_rng(6)
    values = rng.uniform(0.45, 0.55, 40)
    plain = limits_of(values, tail=0.01)
    seen = limits_of(values, tail=0.01, pilot=rng.uniform(0.45, 0.55, 50))
    assert seen[1] - seen[0] < plain[1] - plain[0]
    assert limits_of(values, pilot=[-3.0, 7.0]) == limits_of(values, pilot=[0.0, 1.0])


def test_equal_units_given_by_their_number_have_the_same_distribution():
    """Dealt out as counts in early blocks, or one by one: the same widths, and moments that add up."""
    number = np.array([30_000, 9_000, 1_000])
    values = np.array([0.0, 0.4, 1.0])
    widths = []
    for seed in range(8):
        generator = np.random.default_rng(seed)
        units = units_of(values, number=number, generator=generator)
        total = units.moments.sum(axis=(1, 2, 3))
        for (_, k), found in zip(bet_units.MOMENTS, total, strict=True):
            assert found == pytest.approx((number * values**k).sum())
        lower, upper = limits_of(values, number=number, generator=generator, tail=0.01)
        one, other = limits_of(np.repeat(values, number), generator=generator, tail=0.01)
        widths.append([upper - lower, other - one])
    dealt, single = np.mean(widths, axis=0)
    assert dealt == pytest.approx(single, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("tail", [0.25, 0.05])
def test_equal_units_given_by_their_number_miss_at_most_as_often_as_stated(monkeypatch, tail):
    monkeypatch.setattr(bet_units, "_MOST_SHUFFLED", 100)
    monkeypatch.setattr(bet_units, "_MOST_LEFT", 40)
    rng = np.random.default_rng(11)
    n_draws = 4000
    values = np.array([-0.2, 0.1, 0.8])
    share = np.array([0.6, 0.3, 0.1])
    counts = rng.multinomial(300, share, size=n_draws)
    region = np.repeat(np.arange(n_draws), 3)
    draws = Entries(region, np.tile(values, n_draws), n_draws, number=counts.ravel())
    low, high = np.full(n_draws, -0.2), np.full(n_draws, 0.8)
    found = bet_limits(BetUnits.of(draws, low, high, rng), np.full(n_draws, tail))
    mean = float(values @ share)
    for side in (found.lower > mean, found.upper < mean):
        assert_rare(int(side.sum()), n_draws, tail)


def test_a_mean_is_exceeded_where_the_lower_limit_is_above_it():
    rng = np.random.default_rng(12)
    rates = np.array([0.05, 0.3, 0.6])
    region = np.repeat(np.arange(4), [400, 400, 400, 0])
    values = (rng.random(1200) < rates[region]).astype(float)
    units = BetUnits.of(Entries(region, values, 4), np.zeros(4), np.ones(4), _AsGiven())
    assert exceeds(units, 0.2, 0.05).tolist() == [False, True, True, False]
    assert exceeds(units, 0.5, 0.05).tolist() == [False, False, True, False]


@pytest.mark.slow
def test_a_mean_that_is_not_exceeded_passes_at_most_as_often_as_stated():
    rng = np.random.default_rng(13)
    n_draws = 4000
    region = np.repeat(np.arange(n_draws), 80)
    heavy = rng.random(region.size) < 0.3
    weights = np.where(heavy, 1.0, 0.2)
    values = (rng.random(region.size) < np.where(heavy, 0.6, 0.8)).astype(float)
    mean = (0.3 * 0.6 + 0.7 * 0.2 * 0.8) / (0.3 + 0.7 * 0.2)
    ends = np.zeros(n_draws), np.ones(n_draws)
    units = BetUnits.of(Entries(region, values, ends[0].size, weights), *ends, _AsGiven())
    assert_rare(int(exceeds(units, mean, 0.1).sum()), n_draws, 0.1)


def test_the_capital_that_a_stake_aims_from_is_looked_up_precisely_enough():
    lacks = np.geomspace(0.05, 400.0, 500)
    place = engine._rank(lacks)
    d = engine._DEVIATE[place]
    assert np.allclose(np.log(ndtr(-d)), -lacks, rtol=0.01)


@pytest.mark.parametrize("n", [100, 1_000, 30_000])
def test_limits_are_narrower_than_those_of_bernstein_and_chernoff(n):
    values = np.random.default_rng(9).beta(0.5, 2.0, n)
    tail = 0.05
    lower, upper = limits_of(values, tail=tail)
    bernstein = math.sqrt(2.0 * values.var(ddof=1) * math.log(2.0 / tail) / n)
    bernstein += 7.0 * math.log(2.0 / tail) / (3.0 * (n - 1))  # Maurer and Pontil (2009), Theorem 4
    mean = values.mean()
    chernoff = 1.0 - lower_mean(1.0 - mean, n, tail) - lower_mean(mean, n, tail)
    assert lower < mean < upper
    assert upper - lower < 0.8 * 2.0 * bernstein
    assert upper - lower < 0.75 * chernoff


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_limits_of_many_units_hold_where_most_blocks_are_bounded(weighted):
    """Rare large values, which most blocks do not have."""
    rng = np.random.default_rng(14)
    n, n_draws = 8_000, 300
    region = np.repeat(np.arange(n_draws), n)
    is_large = rng.random(region.size) < 0.001
    values = np.where(is_large, 1.0, rng.uniform(0.0, 0.02, region.size))
    weights = np.where(is_large, 1.0, 0.2) if weighted else None
    of_others = 0.2 * 0.999 if weighted else 0.999
    mean = (0.001 + of_others * 0.01) / (0.001 + of_others)
    ends = np.full(n_draws, -1.0), np.ones(n_draws)
    units = BetUnits.of(Entries(region, values, ends[0].size, weights), *ends, _AsGiven())
    found = bet_limits(units, np.full(n_draws, TAIL))
    for side in (found.lower > mean, found.upper < mean):
        assert_rare(int(side.sum()), n_draws, TAIL)
