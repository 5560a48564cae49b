"""The compiled walk of bets finds the limits of the one with arrays."""

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import ndtri_exp

from calibrant.limits.bet_walk import (
    _START_SHARE,
    FEW_STEPS,
    STEPS,
    _Walk,
    block_limits,
    lower_limits,
)
from calibrant.limits.block_bets import BlockSamples, DealtBlocks

pytest.importorskip("numba")


def samples(n_rows, seed):
    """Samples of one size with skewed values, one without rows, and one of a single value."""
    rng = np.random.default_rng(seed)
    values = np.sort(rng.beta(0.5, 2.0, size=(8, 6)), axis=1)
    counts = rng.multinomial(n_rows, rng.dirichlet(np.ones(6), size=8))
    counts[3] = 0
    values[5] = 0.25
    dealt = DealtBlocks.of(counts, rng)
    at = np.take_along_axis(values, np.maximum(dealt.late, 0), axis=1)
    return BlockSamples(
        values,
        dealt.blocks,
        np.where(dealt.late >= 0, at, np.nan),
        dealt.sizes,
        values.min(axis=1),
        values.max(axis=1),
        rng.uniform(0.001, 0.2, size=8),
    )


@pytest.mark.parametrize("n_rows", [20, 300, 20_000])
@pytest.mark.parametrize("steps", [FEW_STEPS, STEPS])
def test_limits_are_those_of_numpy(n_rows, steps):
    for seed in range(3):
        given = samples(n_rows, seed)
        tail = np.geomspace(1e-9, 0.2, 8)
        expected = block_limits(given, tail, steps, implementation="numpy")
        found = block_limits(given, tail, steps, implementation="numba")
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)


def test_the_steps_of_plain_draws_are_those_of_numpy_to_the_bit():
    for n_rows in (20, 300, 20_000):
        given = samples(n_rows, 5).bets
        tail = np.geomspace(1e-9, 0.2, 8)
        with np.errstate(all="ignore"):
            expected = _Walk.of(given, tail, STEPS)
            found = _Walk.of(given, tail, STEPS, compiled=True)
        for entry in fields(_Walk):
            one = getattr(found, entry.name)
            np.testing.assert_array_equal(one, getattr(expected, entry.name), err_msg=entry.name)


def test_quantiles_of_the_normal_distribution_are_those_of_scipy():
    from calibrant.limits.compiled_walk import quantile_of_log

    log_shares = -np.geomspace(1e-12, 700.0, 2_000)
    found = np.abs([quantile_of_log(share) for share in log_shares])
    np.testing.assert_allclose(found, np.abs(ndtri_exp(log_shares)), rtol=1e-14, atol=1e-14)


def test_goals_of_the_walk_and_of_its_start_use_no_more_than_the_tail():
    given = samples(300, 1)
    tail = np.geomspace(1e-9, 0.2, 8)
    walk = _Walk.of(given.bets, tail, STEPS)
    spent = np.exp(-walk.goal) + _START_SHARE * tail
    assert (spent < tail).all()
    np.testing.assert_allclose(spent, tail, rtol=1e-8)


def test_stakes_from_the_table_are_those_of_scipy():
    from calibrant.limits.compiled_walk import boldness

    short = np.geomspace(1e-12, 700.0, 20_000)  # before the table, in it, and beyond
    found = np.array([boldness(one) for one in short])
    quantile = ndtri_exp(-short)
    expected = np.exp(short - 0.5 * quantile**2) / np.sqrt(2.0 * np.pi)
    np.testing.assert_allclose(found, expected, rtol=2e-12)


def test_plain_moments_give_the_limits_of_weighted_ones():
    """Weights of 1 may be left out of the moments."""
    bets = samples(20_000, 4).bets
    places = [k for p in range(5) for k in range(p + 1)]
    weighted = replace(bets, moments=bets.moments[places])
    tail = np.geomspace(1e-9, 0.2, 8)
    for implementation in ("numpy", "numba"):
        found = lower_limits(bets, tail, implementation=implementation)
        expected = lower_limits(weighted, tail, implementation=implementation)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)
