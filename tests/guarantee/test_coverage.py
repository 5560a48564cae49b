"""Every guarantee, against distributions whose truth is known: not broken more often than it says."""

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from calibrant import BinningCalibrator, Guarantee, Partition, Tally
from calibrant.intervals import METHODS
from calibrant.limits.error_budget import budgets
from guarantee.conftest import Limits
from worlds.binary import WORLDS, World
from worlds.guarantees import assert_kept, assert_rare

CAUGHT = (
    0.16  # a guarantee that is broken so often, in place of 10%, is caught with probability 0.99
)
BATCH = 50
ROWS = 600
ALPHA = 0.1
COVERAGE = 0.9
MASS = 0.9
LEVEL = 1e-4

DESIGNS = {
    "own": {"partition": "quantile", "pilot": None},
    "auto": {"partition": "quantile"},
    "split": {"partition": "quantile", "pilot": 0.25},
    "uniform": {"partition": "uniform"},
}


def broken_guarantees(mass: np.ndarray, rate: np.ndarray, guarantee: Guarantee) -> dict[str, bool]:
    """Which of the guarantees of one fit are false, where the true mass and rate of each region are
    known.
    """
    real = mass > 0
    sets = guarantee_sets(guarantee)
    partial = guarantee.restricted_to(MASS)
    off = np.abs(guarantee.value - rate)
    slack = 1e-12  # the truth itself is computed in floating point
    return {
        "interval": bool(
            np.any(real & ((rate < guarantee.lower - slack) | (rate > guarantee.upper + slack)))
        ),
        "epsilon": bool(np.any(off[real] > guarantee.epsilon + slack)),
        "set": bool(
            np.any(real & ~sets[:, 0] & (1 - rate > 1 - COVERAGE + slack))
            or np.any(real & ~sets[:, 1] & (rate > 1 - COVERAGE + slack))
        ),
        "partial": bool(
            np.any(off[real & partial.kept] > partial.epsilon + slack)
            or mass[partial.kept].sum() < partial.mass - slack
        ),
    }


def guarantee_sets(guarantee: Guarantee) -> np.ndarray:
    from calibrant.tripod import region_sets

    return region_sets(guarantee.interval, COVERAGE)


def simulate(
    world: World, design: dict, methods: list[str], seed: int, limits: Limits
) -> Iterator[dict[tuple[str, str], list[bool]]]:
    """Which guarantees of each method were broken, for ever, some draws at a time."""
    rng = np.random.default_rng(seed)
    while True:
        with limits.collect():
            fits = [
                BinningCalibrator(n_bins=6, random_state=rng, **design).fit(
                    *world.draw(rng, ROWS), classes=(0, 1)
                )
                for _ in range(BATCH)
            ]
        broken: dict[tuple[str, str], list[bool]] = {}
        for fit in fits:
            mass, rate = world.truth(fit.partition_)
            for name in methods:
                found = Guarantee.from_tally(
                    fit.partition_, fit.tally_, interval=name, confidence_level=1 - ALPHA
                )
                for guarantee, is_broken in broken_guarantees(mass, rate, found).items():
                    broken.setdefault((name, guarantee), []).append(is_broken)
        yield broken


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_no_guarantee_is_broken_more_often_than_stated(
    world: World, design: str, limits: Limits
) -> None:
    methods = [*METHODS] if design == "own" else ["clopper-pearson"]
    assert_kept(
        simulate(world, DESIGNS[design], methods, 20201 + WORLDS.index(world), limits),
        ALPHA,
        caught=CAUGHT,
    )


@pytest.mark.broad
def test_exact_intervals_spend_their_error_budget() -> None:
    # a guarantee kept always would be a wider interval than need be: on the smooth world the default
    # must miss sometimes
    rng = np.random.default_rng(3)
    draws = 20_000  # so many are needed to refute the half below
    bins = BinningCalibrator(n_bins=10, pilot=None).fit(*WORLDS[0].draw(rng, 10_000)).partition_
    bins = Partition.from_edges(bins.edges)
    mass, rate = WORLDS[0].truth(bins)
    counts = rng.multinomial(10_000, mass, size=draws)
    positives = rng.binomial(counts, rate)
    every = {
        "counts": counts.ravel(),
        "positives": positives.ravel(),
        "rates": (positives / counts).ravel(),
    }
    limits = METHODS["clopper-pearson"].function(
        SimpleNamespace(**every, n_regions=10), budgets(ALPHA)[0]
    )
    lower = limits.lower.reshape(draws, 10)
    upper = limits.upper.reshape(draws, 10)
    first = Tally.from_counts(counts[0], positives[0], partition=bins)
    np.testing.assert_allclose(Guarantee.from_tally(bins, first).lower, lower[0], rtol=1e-12)
    misses = int(((rate < lower) | (rate > upper)).any(axis=1).sum())
    assert_rare(misses, draws, ALPHA, level=LEVEL)
    # and it is refuted that it leaves half of its budget unspent
    assert stats.binomtest(misses, draws, ALPHA / 2, alternative="greater").pvalue < LEVEL


@pytest.mark.broad
def test_default_is_at_most_half_as_wide_as_the_papers_method() -> None:
    rng = np.random.default_rng(4)
    ours = []
    default = []
    papers = []
    for _ in range(20):
        scores, y = WORLDS[0].draw(rng, 10_000)
        ours.append(
            BinningCalibrator(n_bins=10, pilot=None, value="mean").fit(scores, y).guarantee_.epsilon
        )
        default.append(BinningCalibrator(n_bins=10).fit(scores, y).guarantee_.epsilon)
        paper = BinningCalibrator(
            n_bins=10, pilot=0.2, interval="empirical-bernstein", random_state=rng
        )
        papers.append(paper.fit(scores, y).guarantee_.epsilon)
    assert np.mean(ours) == pytest.approx(0.0410, abs=5e-4)
    assert np.mean(papers) == pytest.approx(0.0843, abs=2e-3)
    assert np.mean(ours) <= 0.5 * np.mean(papers)
    assert (
        np.mean(default) <= 0.5 * 0.0843
    )  # it also looks for ties; the paper's mean of many draws


def test_nearly_empty_bin_does_not_spoil_the_statement() -> None:
    world = next(world for world in WORLDS if world.name == "near-empty")
    scores, y = world.draw(np.random.default_rng(5), 20_000)
    guarantee = BinningCalibrator(n_bins=10, partition="uniform").fit(scores, y).guarantee_
    assert guarantee.epsilon == 0.5  # half of the bins hold no row
    assert guarantee.epsilon_for(mass=0.99) < 0.03
    assert "with at least 99% of rows" in guarantee.sentence


def test_corollary_as_printed_would_undercover() -> None:
    # Corollary 4 takes the bin with the fewest rows; ours takes the maximum over bins
    bins = Partition.fixed_width(2)
    tally = Tally.from_counts([900, 1000], [0, 500], partition=bins)
    guarantee = Guarantee.from_tally(bins, tally, interval="empirical-bernstein", value="mean")
    fewest = int(guarantee.counts.argmin())
    assert guarantee.radius[fewest] < 0.5 * guarantee.epsilon
    assert guarantee.epsilon == guarantee.radius.max() == guarantee.radius[1]
