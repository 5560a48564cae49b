"""The sequential test of guarantees fails as seldom, and catches as often, as it says."""

import numpy as np
import pytest

from worlds.guarantees import assert_kept

RUNS = 400


def outcomes(rate: float, caught: float) -> tuple[float, float]:
    """Share of the runs in which a guarantee that is broken with this rate passes, and the mean
    number of draws.
    """
    rng = np.random.default_rng(0)
    passed = 0
    draws = 0
    for _ in range(RUNS):
        try:
            draws += assert_kept(
                ({"it": rng.uniform(size=50) < rate} for _ in range(400)), 0.1, caught=caught
            )
            passed += 1
        except AssertionError:
            continue
    return passed / RUNS, draws / max(passed, 1)


@pytest.mark.parametrize("rate", [0.02, 0.1])
def test_a_guarantee_that_is_kept_passes(rate: float) -> None:
    assert outcomes(rate, 0.16)[0] == 1.0


@pytest.mark.broad
def test_a_guarantee_that_is_broken_more_often_than_stated_is_caught() -> None:
    assert outcomes(0.16, 0.16)[0] < 0.02
    assert outcomes(0.2, 0.16)[0] == 0.0


def test_a_guarantee_that_holds_by_far_takes_few_draws() -> None:
    assert outcomes(0.02, 0.16)[1] < 150


def test_every_guarantee_is_settled_by_itself() -> None:
    rng = np.random.default_rng(1)
    both = ({"kept": rng.uniform() < 0.02, "broken": rng.uniform() < 0.3} for _ in range(10_000))
    with pytest.raises(AssertionError, match="broken was broken in"):
        assert_kept(both, 0.1, caught=0.18)
    with pytest.raises(AssertionError, match="do not settle"):
        assert_kept([{"it": False}] * 5, 0.1, caught=0.18)
