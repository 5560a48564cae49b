"""Limits on the mass of regions, and of what lies in no region: exact values, and coverage where
the truth is known.
"""

from collections.abc import Iterator
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from calibrant import BinningCalibrator, Partition, Tally
from calibrant.cells.score_partition import ScorePartition
from calibrant.limits.error_budget import budgets
from calibrant.limits.mass import _spacings_at_edges, mass_limits, missing_mass_limit
from guarantee.conftest import Limits
from worlds.binary import WORLDS
from worlds.guarantees import assert_kept, assert_rare

TAU = 0.05


def tally_of(partition: Partition, scores: np.ndarray) -> Tally:
    return Tally.from_data(partition, scores, np.zeros(scores.size, dtype=int))


def own_quantiles(scores: np.ndarray, n_bins: int) -> tuple[Partition, Tally]:
    partition = Partition.uniform_mass(scores, n_bins)
    return partition, tally_of(partition, scores)


@pytest.mark.parametrize("alpha", [0.5, 0.1, 1e-6])
def test_both_budgets_add_up_to_alpha(alpha: float) -> None:
    rates, mass = budgets(alpha)
    assert rates == pytest.approx(0.95 * alpha, rel=1e-12)
    assert rates + mass == pytest.approx(alpha, rel=1e-15)


def test_limits_of_fixed_bins_are_exact_and_share_alpha() -> None:
    counts = np.array([0, 3, 100, 397])
    bins = Partition.fixed_width(4)
    found = mass_limits(bins, Tally.from_counts(counts, counts, partition=bins), TAU)
    np.testing.assert_allclose(
        found.regions, stats.beta.isf(TAU / 4, counts + 1, 500 - counts), rtol=1e-8
    )
    assert found.outside == 0.0


def test_limits_of_fixed_bins_in_segments_pay_for_unseen_segments_too() -> None:
    counts = np.array([10, 190, 0, 300])
    bins = Partition.by_segment({"a": Partition.fixed_width(2), "b": Partition.fixed_width(2)})
    found = mass_limits(bins, Tally.from_counts(counts, counts, partition=bins), TAU)
    np.testing.assert_allclose(
        found.regions, stats.beta.isf(TAU / 5, counts + 1, 500 - counts), rtol=1e-8
    )
    assert found.outside == missing_mass_limit(np.array([200, 300]), TAU / 5)


def test_limits_of_own_quantiles_are_over_all_runs_of_spacings_and_all_numbers_of_bins() -> None:
    partition, tally = own_quantiles(np.random.default_rng(0).uniform(size=100), 4)
    counts = partition.cut_counts()
    found = mass_limits(partition, tally, TAU)
    tail = TAU / 2 * 2 / (101 * 102)
    np.testing.assert_allclose(
        found.regions, stats.beta.isf(tail, counts + 1, 100 - counts), rtol=1e-8
    )
    # three edges, each seen once, lie within six spacings
    assert found.outside == pytest.approx(stats.beta.isf(TAU / 2 / 100, 6, 95), rel=1e-8)


def test_limits_of_own_quantiles_in_segments_share_alpha_in_quarters() -> None:
    rng = np.random.default_rng(1)
    segments = np.repeat(["a", "b"], [300, 700])
    fitted = BinningCalibrator(2, pilot=None).fit(
        rng.uniform(size=1000), rng.integers(2, size=1000), segments=segments
    )
    share = TAU / 4 / 2
    sizes = np.array([300, 700])
    counts = fitted.partition_.cut_counts().reshape(2, 2)
    n = sizes[:, None]
    segment_mass = stats.beta.isf(share, sizes + 1, 1000 - sizes)
    within = stats.beta.isf(share * 2 / ((n + 1) * (n + 2)), counts + 1, n - counts)
    edges = stats.beta.isf(share / sizes, 2, sizes - 1)
    found = mass_limits(fitted.partition_, fitted.tally_, TAU)
    np.testing.assert_allclose(
        found.regions.reshape(2, 2), segment_mass[:, None] * within, rtol=1e-8
    )
    assert found.outside == pytest.approx(
        missing_mass_limit(sizes, TAU / 4) + segment_mass @ edges, rel=1e-8
    )


def test_segments_of_one_sample_with_own_and_with_other_edges_have_exact_masses() -> None:
    rng = np.random.default_rng(2)
    segments = np.repeat(["own", "tied"], 500)
    scores = np.concatenate([rng.uniform(size=500), rng.integers(20, size=500) / 20])
    fitted = BinningCalibrator(2, segment_rule=None).fit(
        scores, rng.integers(2, size=1000), segments=segments
    )
    own, tied = fitted.partition_.bins_by_segment.values()
    assert (own.cuts_own_sample, tied.cuts_own_sample) == (True, False)
    within = stats.beta.isf(
        TAU / 8 / 2, fitted.tally_.counts[-2:] + 1, 500 - tied.aside - fitted.tally_.counts[-2:]
    )
    found = mass_limits(fitted.partition_, fitted.tally_, TAU).regions
    np.testing.assert_allclose(found[-2:], stats.beta.isf(TAU / 8, 501, 500) * within, rtol=1e-8)
    later = Tally.from_data(fitted.partition_, scores, scores > 0.5, segments=segments)
    others = mass_limits(
        fitted.partition_, later, TAU
    ).regions  # which adds up two samples of unlike size
    np.testing.assert_allclose(others[:2], found[:2] / stats.beta.isf(TAU / 8, 501, 500), rtol=1e-8)
    later_within = stats.beta.isf(TAU / 8 / 2, later.counts[-2:] + 1, 500 - later.counts[-2:])
    np.testing.assert_allclose(others[-2:], later_within, rtol=1e-8)


def test_a_single_value_that_was_seen_often_leaves_nothing_outside() -> None:
    partition, tally = own_quantiles(np.repeat([0.2, 0.5, 0.8], 40), 3)
    assert partition.layout.n_uncounted == 0
    assert mass_limits(partition, tally, TAU).outside == 0.0


def test_ranks_of_edges_are_found_behind_ties() -> None:
    # of nine edges asked for, the tied half gives one; those seen once have the ranks of ten bins
    scores = np.concatenate([np.full(50, 0.1), np.linspace(0.2, 1.0, 50)])
    partition, tally = own_quantiles(scores, 10)
    assert partition.layout.n_atoms == 1
    assert mass_limits(partition, tally, TAU).outside == pytest.approx(
        stats.beta.isf(TAU / 200, 18, 83), rel=1e-8
    )


def test_limits_for_no_rows_say_nothing() -> None:
    bins = Partition.fixed_width(3)
    assert mass_limits(bins, Tally.from_counts([0] * 3, [0] * 3), TAU).regions.tolist() == [1.0] * 3
    assert missing_mass_limit(np.zeros(4, dtype=int), TAU) == 1.0


def evidence(counts: np.ndarray, mass: float) -> float:
    """The average over all ways to set rows aside, by going through them."""
    kinds = np.repeat(np.arange(counts.size), counts)
    total = 0.0
    for share, base in product((0.5, 0.9), (0.0, 0.5, 0.9)):
        for aside in product((False, True), repeat=kinds.size):
            drawn = np.array(aside)
            new = ~np.isin(kinds[drawn], kinds[~drawn])
            chance = share ** drawn.sum() * (1 - share) ** (~drawn).sum()
            total += chance * base ** new.sum() / (1 - mass * (1 - base)) ** drawn.sum() / 6
    return total


@pytest.mark.parametrize("counts", [[1, 1, 1], [3, 2], [4, 1], [6], [2, 1, 0, 2]])
def test_limit_on_unseen_kinds_is_where_the_evidence_is_enough(counts: list[int]) -> None:
    alpha = 0.4
    limit = missing_mass_limit(np.array(counts), alpha)
    if limit < 1.0:
        assert evidence(np.array(counts), limit) == pytest.approx(1 / alpha, rel=1e-6)
    else:
        assert evidence(np.array(counts), 1 - 1e-9) < 1 / alpha


@cache
def limit_of(counts: tuple[int, ...], alpha: float) -> float:
    return missing_mass_limit(np.array(counts), alpha)


def test_limit_on_unseen_kinds_does_not_depend_on_their_order() -> None:
    for counts in permutations((0, 1, 5, 8)):
        assert missing_mass_limit(np.array(counts), 0.2) == limit_of((0, 1, 5, 8), 0.2)


@pytest.mark.parametrize("alpha", [0.5, 0.2, 0.05])
@pytest.mark.parametrize(
    "shares", [[0.5, 0.5], [0.8, 0.2], [0.9, 0.06, 0.04], [0.4, 0.3, 0.2, 0.1], [0.97, 0.01, 0.02]]
)
def test_limit_on_unseen_kinds_holds_by_enumeration(shares: list[float], alpha: float) -> None:
    for n in (3, 8, 14):
        missed = 0.0
        for head in product(range(n + 1), repeat=len(shares) - 1):
            if sum(head) > n:
                continue
            counts = np.array([*head, n - sum(head)])
            true = np.array(shares)[counts == 0].sum()
            if true > 0.0 and true > limit_of(tuple(sorted(counts.tolist())), alpha):
                missed += stats.multinomial.pmf(counts, n, shares)
        assert missed <= alpha


@pytest.mark.broad
@pytest.mark.parametrize("n_kinds", [20, 300, 10_000])
def test_limit_on_unseen_kinds_holds_with_many_kinds(n_kinds: int) -> None:
    rng = np.random.default_rng(n_kinds)
    draws = 100
    missed = 0
    shares = rng.dirichlet(np.full(n_kinds, 0.3))
    for _ in range(draws):
        counts = rng.multinomial(200, shares)
        missed += shares[counts == 0].sum() > missing_mass_limit(counts, 0.1)
    assert_rare(missed, draws, 0.1)


def test_limit_on_unseen_kinds_is_small_where_every_kind_was_seen_often() -> None:
    assert missing_mass_limit(np.full(20, 500), 0.0025) < 0.001


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_limits_hold_for_all_regions_at_once_in_every_world(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    table = Limits(monkeypatch)

    def simulate() -> Iterator[dict[str, list[bool]]]:
        while True:
            tallied = []
            for _ in range(50):
                scores, _ = world.draw(rng, 300)
                both = Partition.uniform_mass(scores, 5), Partition.fixed_width(5)
                tallied += [(partition, tally_of(partition, scores)) for partition in both]
            with table.collect():
                for partition, tally in tallied:
                    mass_limits(partition, tally, 0.1)
            missed = []
            for partition, tally in tallied:
                mass, _ = world.truth(partition)
                limits = mass_limits(partition, tally, 0.1)
                outside = 1.0 - mass.sum()
                missed.append(
                    bool((mass > limits.regions + 1e-12).any() or outside > limits.outside + 1e-12)
                )
            yield {"own edges": missed[::2], "given edges": missed[1::2]}

    assert_kept(simulate(), 0.1, caught=0.2)


def test_segments_bound_the_mass_of_segment_and_bin_together() -> None:
    rng = np.random.default_rng(2)
    scores = rng.uniform(size=2000)
    segment = rng.choice(["a", "b"], p=[0.9, 0.1], size=2000)
    fitted = BinningCalibrator(n_bins=4, segment_rule=None).fit(
        scores, scores < 0.5, segments=segment
    )
    limits = mass_limits(fitted.partition_, fitted.tally_, 0.1).regions
    true = np.repeat([0.9, 0.1], 4) / 4
    assert (limits >= true).all()
    assert (
        limits[4:].max() < 0.1
    )  # far below what a limit that ignored the segment's size would give


def test_edges_at_ranks_of_no_number_of_bins_may_lie_in_every_spacing() -> None:
    def spacings(ranks: list[int], n_rows: int) -> int:
        part = ScorePartition(
            np.arange(len(ranks)) / 10.0,
            first_rank=np.array(ranks, dtype=np.int64),
            last_rank=np.array(ranks, dtype=np.int64),
            n_rows=n_rows,
        )
        return _spacings_at_edges(part)

    assert spacings([25, 50, 75], 99) == 6
    assert spacings([50], 99) == 2
    assert spacings([1, 2, 99], 99) == 100
    assert spacings([1, 2, 9_999], 9_999) == 10_000
    assert spacings([], 99) == 0
