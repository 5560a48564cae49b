"""Limits with alpha shared by edges and counts: exact jointly, and blind to labels."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import BinningCalibrator, Partition, Tally
from calibrant.intervals import clopper_pearson, clopper_pearson_weighted
from calibrant.limits.clopper_pearson import _middles

EDGES = [0.02, 0.1, 0.4, 0.7]
COUNTS = np.array([90, 20, 60, 45, 70])
PARTITION = Partition.from_edges(EDGES)


def limits_of_region(region: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """The limits of one region for every number of its positives."""
    found = []
    for positives in range(COUNTS[region] + 1):
        tally = Tally.from_counts(COUNTS, np.where(np.arange(5) == region, positives, COUNTS // 3))
        interval = clopper_pearson_weighted(tally, alpha, PARTITION)
        found.append((interval.lower[region], interval.upper[region]))
    return tuple(np.transpose(found))


@pytest.mark.broad
@pytest.mark.parametrize("alpha", [0.1, pytest.param(0.01, marks=pytest.mark.broad)])
def test_all_regions_hold_at_once_for_the_worst_rates_by_enumeration(alpha) -> None:
    holds = 1.0
    for region, count in enumerate(COUNTS.tolist()):
        lower, upper = limits_of_region(region, alpha)
        ends = np.concatenate([lower, upper])
        rates = np.concatenate([ends - 1e-9, ends + 1e-9])  # where the probability of a miss jumps
        rates = rates[(rates > 0) & (rates < 1)][:, None]
        missed = binom.pmf(np.arange(count + 1), count, rates) * ((rates < lower) | (rates > upper))
        holds *= 1.0 - missed.sum(axis=1).max()
    assert 0.8 * alpha < 1.0 - holds <= alpha


def test_regions_that_suggest_a_larger_variance_get_more_of_the_budget() -> None:
    tally = Tally.from_counts([100] * 7, [50] * 7)
    bins = Partition.fixed_width(7)
    even = clopper_pearson(tally, 0.1)
    weighted = clopper_pearson_weighted(tally, 0.1, bins)
    assert (weighted.radius < even.radius).tolist() == [
        False,
        False,
        True,
        True,
        True,
        False,
        False,
    ]
    assert weighted.radius.max() < 1.1 * even.radius.max()  # a half of alpha is shared evenly
    few = clopper_pearson_weighted(
        Tally.from_counts([1000, 1000, 100], [500, 500, 50]), 0.1, Partition.fixed_width(3)
    )
    assert few.radius[2] < clopper_pearson(Tally.from_counts([100] * 3, [50] * 3), 0.1).radius[2]


def test_labels_and_scores_between_edges_change_no_weight() -> None:
    def widths(positives):
        return clopper_pearson_weighted(Tally.from_counts(COUNTS, positives), 0.1, PARTITION).radius

    one = COUNTS // 2
    other = np.array([0, 20, 30, 45, 35])
    np.testing.assert_allclose(widths(one)[[2, 4]], widths(other)[[2, 4]], rtol=0, atol=0)


@pytest.mark.parametrize(
    "partition",
    [
        None,
        Partition.from_edges([-1.0, 2.0]),
        Partition.from_function(lambda X: X[:, 0], regions=3),
    ],
)
def test_without_bins_of_probabilities_alpha_is_shared_evenly(partition) -> None:
    tally = Tally.from_counts([50, 100, 0], [10, 30, 0])
    even = clopper_pearson(tally, 0.1)
    found = clopper_pearson_weighted(tally, 0.1, partition)
    np.testing.assert_allclose([found.lower, found.upper], [even.lower, even.upper], rtol=1e-9)


def test_an_empty_region_takes_no_budget_by_weight() -> None:
    partition = Partition.fixed_width(3)
    with_empty = clopper_pearson_weighted(
        Tally.from_counts([100, 0, 100], [5, 0, 95]), 0.1, partition
    )
    assert (with_empty.lower[1], with_empty.upper[1]) == (0.0, 1.0)
    even = clopper_pearson(Tally.from_counts([100, 0, 100], [5, 0, 95]), 0.1)
    assert (with_empty.radius[[0, 2]] < even.radius[[0, 2]]).all()


def test_calibrators_take_the_edges_of_their_own_bins() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=5_000)
    y = rng.uniform(size=5_000) < scores
    even, weighted = (
        BinningCalibrator(10, interval=name).fit(scores, y)
        for name in ("clopper-pearson", "clopper-pearson-weighted")
    )
    assert weighted.guarantee_.epsilon < 0.97 * even.guarantee_.epsilon
    again = BinningCalibrator.from_dict(weighted.to_dict())
    assert again.guarantee_.epsilon == weighted.guarantee_.epsilon


@pytest.mark.parametrize(
    ("edges", "are_probabilities"),
    [([0.05, 0.97], True), ([-0.05, 0.5], False), ([0.5, 1.05], False)],
)
def test_middles_guess_rates_only_where_all_edges_are_probabilities(edges, are_probabilities):
    assert (_middles(Partition.from_edges(edges)) is not None) == are_probabilities
