"""Limits by bets on counts: they hold for hard distributions, and are as narrow as bets row by row."""

import numpy as np
import pytest
from scipy import stats

from calibrant.limits import block_bets
from calibrant.limits.bet_walk import block_gain, block_limits
from calibrant.limits.block_bets import (
    LATE_ROWS,
    BlockSamples,
    DealtBlocks,
    block_sizes,
    late_sizes,
)
from calibrant.limits.goal_bets import BetUnits, goal_limits
from worlds.guarantees import assert_rare

LEVEL = 1e-4


def samples(values, counts, seed, low, high, variance):
    """Samples with these counts of each value, in a random order."""
    dealt = DealtBlocks.of(counts, np.random.default_rng(seed))
    every = np.broadcast_to(values, counts.shape)
    late = np.where(dealt.late >= 0, np.asarray(values)[np.maximum(dealt.late, 0)], np.nan)
    one = np.ones(counts.shape[0])
    return BlockSamples(
        every,
        dealt.blocks,
        late,
        dealt.sizes,
        low * one,
        high * one,
        variance * one,
    )


# values, their probabilities, the range, and a guess of the variance that may be bad
HARD = {
    "fair": ([-0.5, 0.5], [0.5, 0.5], (-0.5, 0.5), 0.25),
    "rare": ([0.0, 1.0], [0.97, 0.03], (0.0, 1.0), 0.03),
    "rare, a bad guess": ([0.0, 1.0], [0.03, 0.97], (0.0, 1.0), 0.25),
    "three values": ([-0.9, 0.0, 0.4], [0.1, 0.5, 0.4], (-0.9, 0.6), 0.05),
    "wide range": ([-0.01, 0.01], [0.5, 0.5], (-1.0, 1.0), 1e-4),
}


@pytest.mark.broad
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("n_rows", [40, 200])
def test_limits_miss_as_rarely_as_they_say(name, n_rows):
    values, shares, (low, high), variance = HARD[name]
    draws = 400
    counts = np.random.default_rng(3).multinomial(n_rows, shares, size=draws)
    found = samples(values, counts, 4, low, high, variance)
    mean = float(np.dot(values, shares))
    for tail in (0.05, 0.25):
        lower, upper = block_limits(found, np.full(draws, tail))
        for missed in (int((lower > mean).sum()), int((upper < mean).sum())):
            assert_rare(missed, draws, tail, level=LEVEL)


@pytest.mark.parametrize("n_rows", [60, 1_000])
def test_limits_are_as_narrow_as_those_of_single_rows(n_rows):
    values = np.array([-0.3, 0.2, 0.7])
    counts = np.random.default_rng(1).multinomial(n_rows, [0.3, 0.4, 0.3], size=20)
    lower, upper = block_limits(samples(values, counts, 2, -0.3, 0.7, 0.16), np.full(20, 0.005))
    rng = np.random.default_rng(5)
    rows = [rng.permutation(np.repeat(values, count)) for count in counts]
    others = np.array([goal_limits(BetUnits(one, -0.3, 0.7, 0.16), 0.005) for one in rows])
    assert (upper - lower).mean() == pytest.approx((others[:, 1] - others[:, 0]).mean(), rel=0.03)


def test_mirrored_samples_have_mirrored_limits_and_empty_ones_the_range():
    counts = np.array([[30, 70], [0, 0]])
    one = samples([0.0, 1.0], counts, 1, 0.0, 1.0, 0.2)
    lower, upper = block_limits(one, np.full(2, 0.05))
    down, up = block_limits(one.mirrored, np.full(2, 0.05))
    np.testing.assert_allclose([down, up], [-upper, -lower])
    assert (lower[1], upper[1]) == (0.0, 1.0)
    assert lower[0] < 0.7 < upper[0]


@pytest.mark.parametrize("n_rows", [1, 127, 128, 129, 511, 520, 5_000, 65_536])
def test_early_blocks_and_late_rows_are_all_rows(n_rows):
    counts = np.random.default_rng(0).multinomial(n_rows, [0.1, 0.2, 0.7], size=2)
    counts[1] //= 3
    dealt = DealtBlocks.of(counts, np.random.default_rng(1))
    late = [[int((row == kind).sum()) for kind in range(3)] for row in dealt.late]
    np.testing.assert_array_equal(dealt.blocks.sum(axis=1) + late, counts)
    n_late = dealt.late.shape[1]
    assert n_late == sum(dealt.sizes) == sum(late_sizes(min(n_rows, LATE_ROWS)))
    early = block_sizes(n_rows, n_late)
    np.testing.assert_array_equal(dealt.blocks[0].sum(axis=1), early)
    assert sum(early) == max(0, n_rows - n_late)
    is_row = dealt.late >= 0
    assert (np.diff(is_row.astype(int), axis=1) >= 0).all()  # what is missing comes first


def test_late_rows_are_in_a_uniform_order():
    """Each of 3 rows of another kind is as often in any place."""
    rng = np.random.default_rng(0)
    places = [np.flatnonzero(DealtBlocks.of(np.array([[9, 3]]), rng).late[0]) for _ in range(600)]
    seen = np.bincount(np.concatenate(places), minlength=12)
    assert stats.chisquare(seen).pvalue > LEVEL


def test_the_capital_of_late_rows_is_exact():
    """Limits are those of bets on the same rows, one by one in the same order."""
    values = np.array([-0.3, 0.2, 0.7])
    counts = np.random.default_rng(1).multinomial(500, [0.3, 0.4, 0.3], size=3)
    lower, upper = block_limits(samples(values, counts, 2, -0.3, 0.7, 0.16), np.full(3, 0.005))
    dealt = DealtBlocks.of(counts, np.random.default_rng(2))
    for number, kinds in enumerate(dealt.late):
        rows = values[kinds[kinds >= 0]]
        found = goal_limits(BetUnits(rows, -0.3, 0.7, 0.16), 0.005)
        assert (lower[number], upper[number]) == pytest.approx(found, abs=1e-12)


def test_early_blocks_of_many_rows_are_drawn_as_counts() -> None:
    """A sixteenth of what is left, up to its standard error; then the last rows, in order."""
    counts = np.array([[60_000, 30_000, 1_200], [20, 30, 40], [65_000, 500, 36]])
    dealt = DealtBlocks.of(counts, np.random.default_rng(1))
    late = np.array([np.bincount(kinds[kinds >= 0], minlength=3) for kinds in dealt.late])
    np.testing.assert_array_equal(dealt.blocks.sum(axis=1) + late, counts)
    sizes = dealt.blocks.sum(axis=2)
    left = counts[0].sum()
    n_thinned = 0
    while left > 1 << 14:
        assert sizes[0, n_thinned] == pytest.approx(left / 16, abs=6.0 * np.sqrt(left / 16))
        left -= sizes[0, n_thinned]
        n_thinned += 1
    later = block_sizes(int(left), late[0].sum())
    np.testing.assert_array_equal(sizes[0, n_thinned:][: len(later)], later)
    assert not sizes[1:, :n_thinned].any()  # these have no more rows than can be shuffled
    n_shuffled = block_sizes(65_536, late[2].sum())
    np.testing.assert_array_equal(sizes[2, n_thinned:][: len(n_shuffled)], n_shuffled)


def test_kinds_are_independent_of_the_order_in_early_blocks() -> None:
    """Given the size of the first block, its kinds are hypergeometric."""
    rng = np.random.default_rng(3)
    counts = np.tile([40_000, 30_000], (400, 1))
    first = DealtBlocks.of(counts, rng).blocks[:, 0]
    size = first.sum(axis=1)
    found = stats.hypergeom(70_000, 40_000, size)
    z = (first[:, 0] - found.mean()) / found.std()
    assert stats.kstest(z, "norm").pvalue > LEVEL
    assert size.std() == pytest.approx(np.sqrt(70_000 * 15 / 256), rel=0.2)


def test_the_capital_of_a_block_is_rounded_down():
    rng = np.random.default_rng(2)
    for _ in range(200):
        rows = rng.uniform(-1.0, 1.0, size=rng.integers(1, 40))
        mean = rng.uniform(-0.99, 0.9)
        stake = np.array(rng.uniform(0.0, 0.5) / (mean + 1.0))
        powers = [np.array(((rows - mean) ** p).sum()) for p in range(1, 5)]
        found = float(block_gain(powers, stake, np.array(mean + 1.0)))
        exact = float(np.log1p(stake * (rows - mean)).sum())
        assert found <= exact + 1e-12
        if stake * 2.0 < 0.1:
            assert found == pytest.approx(exact, abs=1e-3)


def test_larger_early_blocks_hardly_widen_limits(monkeypatch):
    values = np.array([-0.3, 0.7])
    counts = np.random.default_rng(0).multinomial(300_000, [0.7, 0.3], size=12)
    widths = []
    for early in (64, block_bets._EARLY_BLOCKS):
        monkeypatch.setattr(block_bets, "_EARLY_BLOCKS", early)
        some = samples(values, counts, 3, -0.3, 0.7, 0.21)
        lower, upper = block_limits(some, np.full(12, 1e-4))
        widths.append((upper - lower).mean())
    assert widths[1] < 1.01 * widths[0]


def test_a_sample_of_a_trillion_rows_is_dealt_out() -> None:
    counts = np.array([[10, 20], [10**12, 10**6]])
    dealt = DealtBlocks.of(counts, np.random.default_rng(0))
    late = np.array([np.bincount(kinds[kinds >= 0], minlength=2) for kinds in dealt.late])
    np.testing.assert_array_equal(dealt.blocks.sum(axis=1) + late, counts)
