"""Units in the order of bets: all of them once, in a uniform order, however many are equal."""

import numpy as np
import pytest
from scipy import stats

from calibrant.cells.entries import Entries
from calibrant.limits import bet_units
from calibrant.limits.bet_units import MOMENTS, BetUnits, block_ends

LEVEL = 1e-4


def units_of(numbers, values, generator):
    """Regions whose units have the same few values; `numbers` has a row for each region."""
    numbers = np.asarray(numbers)
    n_regions, n_values = numbers.shape
    region = np.repeat(np.arange(n_regions), n_values)
    draws = Entries(region, np.tile(values, n_regions), n_regions, number=numbers.ravel())
    return BetUnits.of(draws, np.zeros(n_regions), np.ones(n_regions), generator)


@pytest.mark.parametrize(
    "numbers",
    [
        [[150_000, 20_000, 7], [900, 0, 100], [0, 0, 0], [16_384, 0, 0]],
        [[10, 20, 0], [10**12, 10**6, 3]],
        [[1, 0, 0], [0, 0, 1], [64, 1, 0]],
    ],
)
def test_units_that_are_dealt_out_are_all_there_once(numbers):
    values = np.array([0.0, 0.25, 1.0])
    units = units_of(numbers, values, np.random.default_rng(0))
    sums = units.moments.sum(axis=2)
    is_low = np.array([[True, True, False]]).T
    for (_, k), found in zip(MOMENTS, sums, strict=True):
        for kind, chosen in enumerate((is_low, ~is_low)):
            expected = np.asarray(numbers) @ (values[:, None] ** k * chosen)
            np.testing.assert_allclose(found[kind], expected.ravel(), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 64, 65, 511, 512, 513, 2_000])
def test_the_last_units_are_also_kept_singly(n):
    rng = np.random.default_rng(n)
    values, weights = rng.random(n), rng.random(n)
    draws = Entries(np.zeros(n, dtype=int), values, 1, weights)
    units = BetUnits.of(draws, np.zeros(1), np.ones(1), rng)
    n_late = int(units.ends[-1])
    assert n_late >= min(n, 512)
    single = units.z[:, 0], units.w[:, 0]
    late_blocks = units.moments[:, :, : units.ends.size - 1].sum(axis=1)[..., 0]
    of_block = np.repeat(np.arange(units.ends.size - 1), np.diff(units.ends))
    for (p, k), found in zip(MOMENTS, late_blocks, strict=True):
        terms = single[1] ** p * single[0] ** k * (single[1] > 0.0)
        np.testing.assert_allclose(found, np.bincount(of_block, terms), rtol=1e-12, atol=1e-12)
    if n <= n_late:
        assert sorted(single[1][single[1] > 0.0]) == sorted(weights)


def test_blocks_grow_with_the_units_left_and_never_overlap():
    ends = block_ends(100_000)
    sizes = np.diff(ends)
    assert (sizes[:64] == 1).all()
    assert (sizes[64:] == np.maximum(ends[64:-1] // 32, 1)).all()
    assert ends[-2] < 100_000 <= ends[-1]


def test_the_order_of_units_is_uniform():
    """Each of 3 units of another value is as often in any place."""
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(units_of([[9, 3]], [0.0, 1.0], rng).z[:, 0]) for _ in range(600)]
    assert {place.size for place in places} == {3}
    seen = np.bincount(np.concatenate(places), minlength=12)
    assert stats.chisquare(seen).pvalue > LEVEL


def test_kinds_are_independent_of_the_order_in_early_blocks():
    """Given the size of the first block, its kinds are hypergeometric."""
    numbers = np.tile([40_000, 30_000], (400, 1))
    units = units_of(numbers, [0.0, 1.0], np.random.default_rng(3))
    zeros, ones = units.moments[0, :, -1]
    size = zeros + ones
    found = stats.hypergeom(70_000, 40_000, size)
    z = (zeros - found.mean()) / found.std()
    assert stats.kstest(z, "norm").pvalue > LEVEL
    assert size.mean() == pytest.approx(70_000 / 16, rel=0.01)
    assert size.std() == pytest.approx(np.sqrt(70_000 * 15 / 256), rel=0.2)


def test_only_regions_with_many_equal_units_are_dealt_out():
    numbers = [[bet_units._MOST_SHUFFLED, 1], [10_000, 6_000]]
    units = units_of(numbers, [0.0, 1.0], np.random.default_rng(1))
    sizes = units.moments[0].sum(axis=0)
    n_ordered = block_ends(16_000).size - 1
    assert sizes[n_ordered:, 0].sum() > 10_000
    assert not sizes[n_ordered:, 1].any()
    assert sizes[:n_ordered, 0].sum() <= bet_units._MOST_LEFT
