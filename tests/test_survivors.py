"""Cases that a change of one operator or constant once survived.

Each names the rule that it is about.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from calibrant import BinningCalibrator, OnlineCalibrator, Partition, Tally, plan
from calibrant.cells.group_counts import GroupCounts
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.tally import WeightSums
from calibrant.errors import InvalidValueError
from calibrant.guarantee.absorbed import absorbed_budget, region_limits
from calibrant.intervals import clopper_pearson, get_method
from calibrant.limits.binomial import lower_limit


def online(counts: list[int], lower: list[float], upper: list[float]) -> OnlineCalibrator:
    """A stream whose guarantee has these counts and limits."""
    n = len(counts)
    stream = OnlineCalibrator(Partition.fixed_width(n)).fit(np.full(1, 0.5), [0], classes=(0, 1))
    limits = {"lower": np.array(lower), "upper": np.array(upper), "value": np.full(n, 0.5)}
    stream._guarantee = replace(stream.guarantee_, counts=np.array(counts), **limits)
    return stream


def test_the_next_region_is_the_widest_and_of_equally_wide_ones_that_with_fewest_rows() -> None:
    assert online([9, 5, 1], [0.2, 0.1, 0.3], [0.8, 0.9, 0.7]).next_region() == 1
    assert online([9, 5, 1], [0.1, 0.1, 0.3], [0.9, 0.9, 0.7]).next_region() == 1
    assert online([5, 9, 1], [0.1, 0.1, 0.3], [0.9, 0.9, 0.7]).next_region() == 0
    assert online([5, 5, 5], [0.3, 0.1, 0.1], [0.7, 0.9, 0.9]).next_region() == 1


def test_a_stream_says_so_if_one_row_of_each_group_counts() -> None:
    scores = np.linspace(0.1, 0.9, 8)
    y = [0, 1, 0, 1, 0, 1, 0, 1]
    stream = OnlineCalibrator(Partition.fixed_width(2)).fit(
        scores, y, groups=[1, 1, 2, 2, 3, 3, 4, 4]
    )
    assert stream.tally_.n_rows == 4
    assert "one row counts" in stream.guarantee_.details
    stream.partial_fit(scores, y)
    assert stream.tally_.n_rows == 12
    assert "one row counts" in stream.guarantee_.details
    assert (
        "one row counts"
        not in OnlineCalibrator(Partition.fixed_width(2)).fit(scores, y).guarantee_.details
    )


def test_sizes_in_a_state_of_group_counts_are_kept_and_at_least_the_rows() -> None:
    counts = GroupCounts.of([0, 0, 1, 0], [1, 0, 1, 1], [7, 7, 7, 8])
    state = counts.to_dict()
    assert sorted(state["size"]) == [1, 3, 3]
    again = GroupCounts.from_dict(state)
    assert again == counts
    assert again.size.tolist() == counts.size.tolist()
    without = counts.without_sizes().to_dict()
    assert without["size"] is None
    assert not GroupCounts.from_dict(without).size.any()
    exact = {**state, "size": list(state["rows"])}
    assert GroupCounts.from_dict(exact).size.tolist() == list(state["rows"])
    for place in range(3):
        short = [rows - (number == place) for number, rows in enumerate(state["rows"])]
        with pytest.raises(InvalidValueError) as caught:
            GroupCounts.from_dict({**state, "size": short})
        assert caught.value.parameter == "size of a group"


def test_plans_have_ten_bins_unless_told_otherwise() -> None:
    assert plan(n=10_000) == plan(n=10_000, n_bins=10)


def test_a_split_is_enough_from_the_number_of_rows_that_the_theorem_names() -> None:
    needed = int(np.ceil(10 * np.log(2 * 10 / 0.1) / (np.log(2) - 0.5)))
    assert plan(n=10**6, pilot=needed - 1).rows_per_bin == 0
    assert plan(n=10**6, pilot=needed).rows_per_bin > 0


def test_a_base_rate_that_leaves_no_positives_plans_for_none() -> None:
    planned = plan(n=199, n_bins=2, base_rate=1e-6, pilot=None)
    level = (1.0 - (1.0 - 0.095) ** (1 / 2)) / 2
    top = stats.beta.isf(level, 1, 99)
    assert planned.epsilon == pytest.approx(max(top, 0.5 / 100), rel=1e-6)


def test_parts_of_weights_lie_between_nothing_and_the_whole() -> None:
    sums = Tally.from_data(
        Partition.fixed_width(1), [0.2, 0.7], [0, 1], importance_weight=[1.0, 2.0]
    ).weights
    state = sums.to_dict()
    assert WeightSums.from_dict(state).to_dict() == state
    for part in ("wy", "w2y"):
        for wrong in ([[-1.0]], [[100.0]]):
            with pytest.raises(InvalidValueError) as caught:
                WeightSums.from_dict({**state, part: wrong})
            assert caught.value.parameter == "sums of weights"


def test_every_tail_of_a_binomial_limit_is_checked() -> None:
    for tails in ([0.1, 1.5], [0.0, 0.1]):
        with pytest.raises(InvalidValueError) as caught:
            lower_limit([1, 1], [5, 5], tails)
        assert caught.value.parameter == "tail"


def test_one_unknown_segment_among_known_ones_is_refused() -> None:
    bins = Partition.by_segment({"a": Partition.fixed_width(2), "b": Partition.fixed_width(2)})
    with pytest.raises(InvalidValueError) as caught:
        bins.prepare([0.2, 0.7], ["a", "c"])
    assert (caught.value.parameter, caught.value.got) == ("segments", "'c'")


def test_even_shares_of_the_budget_are_no_shares_where_edges_are_absorbed() -> None:
    scores = np.concatenate([np.arange(400) / 1000, [0.5] * 6, 0.6 + np.arange(400) / 1000])
    absorbing = 0
    for seed in range(6):
        fitted = BinningCalibrator(2, random_state=seed).fit(scores, np.arange(806) % 2)
        bins = fitted.partition_
        tally = fitted.tally_
        absorbing += bins.has_absorbed
        shares = np.full(bins.n_regions, 1 / bins.n_regions)
        method = get_method("clopper-pearson")
        even, plain = (region_limits(bins, tally, method, 0.1, given) for given in (shares, None))
        np.testing.assert_allclose(even.lower, plain.lower, rtol=1e-9)
        np.testing.assert_allclose(even.upper, plain.upper, rtol=1e-9)
    assert absorbing


@pytest.mark.parametrize(("tied", "n_cells"), [(19, 2), (20, 3), (21, 3)])
def test_an_absorbed_edge_has_limits_of_its_own_from_20_rows_on(tied: int, n_cells: int) -> None:
    scores = np.concatenate([np.arange(400) / 1000, [0.5] * tied, 0.6 + np.arange(400) / 1000])
    bins = ScorePartition(
        np.array([0.5]),
        first_rank=np.array([401]),
        last_rank=np.array([400 + tied]),
        n_rows=scores.size,
        absorbing=1,
    )
    tally = Tally.from_data(bins, scores, np.arange(scores.size) % 2)
    found = region_limits(bins, tally, get_method("clopper-pearson"), 0.1)
    alpha = 0.1 - absorbed_budget(bins, 0.1)
    alike = clopper_pearson(Tally.from_counts([400] * n_cells, [200] * n_cells), alpha)
    assert found.lower[0] == pytest.approx(float(alike.lower[0]), rel=1e-9)


def test_the_seed_of_a_stream_stays_the_same_and_differs_between_streams() -> None:
    scores = np.linspace(0.1, 0.9, 8)
    first, second = (
        OnlineCalibrator(Partition.fixed_width(2)).fit(scores, [0, 1] * 4) for _ in range(2)
    )
    assert first._stream.seed == first._stream.seed
    assert OnlineCalibrator.from_dict(first.to_dict())._stream.seed == first._stream.seed
    assert first._stream.seed != second._stream.seed
