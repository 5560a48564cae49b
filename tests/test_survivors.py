"""Cases that a change of one operator or constant once survived.

Each names the rule that it is about.
"""

import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

from calibrant import (
    DriftMonitor,
    OnlineCalibrator,
    Partition,
    Tally,
    audit,
    plan,
    scored,
)
from calibrant.assess.check.group_signs import group_signs
from calibrant.assess.compare_models.model_comparison import PairedDifference, _better_in
from calibrant.assess.monotone.runs import BandSteps, refutation
from calibrant.assess.threshold.candidates import rows_needed, starts
from calibrant.cells.exact_sums import ExactSums
from calibrant.cells.group_counts import GroupCounts, _added_up
from calibrant.cells.score_counts import ScoreCounts
from calibrant.cells.score_partition import ScorePartition, _check_ranks
from calibrant.cells.tally import WeightSums
from calibrant.errors import InvalidValueError
from calibrant.intervals import clopper_pearson, get_method
from calibrant.limits.binomial import lower_limit
from calibrant.limits.error_budget import absorbed_budget
from calibrant.limits.interval import PairOfLimits
from calibrant.limits.poisson_binomial import upper_tail
from calibrant.limits.region_limits import region_limits
from calibrant.limits.shift.evidence import Evidence
from calibrant.params.declared_state import NOTHING_KNOWN
from calibrant.sample.reader import rows_of
from calibrant.sequences import SEQUENCES, get_sequence
from calibrant.shift.ratios.density_ratio import share_outside
from calibrant.shift.ratios.ulsif import PositiveNumbers


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
    assert "one row of each was drawn" in stream.guarantee_.details
    stream.partial_fit(scores, y)
    assert stream.tally_.n_rows == 12
    assert "one row of each was drawn" in stream.guarantee_.details
    assert (
        "one row of each was drawn"
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


@pytest.mark.parametrize("largest", [5, 1 << 40])
def test_groups_of_equal_columns_are_added_up_whatever_the_numbers(largest: int) -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3, 200) * largest, rng.integers(0, 4, 200), rng.integers(0, 2, 200)]
    columns[2] = columns[2] * largest
    number = rng.integers(1, 4, 200)
    expected: dict[tuple[int, ...], int] = {}
    for key, count in zip(zip(*columns, strict=True), number, strict=True):
        expected[key] = expected.get(key, 0) + int(count)
    found, sums = _added_up(columns, number)
    assert list(zip(*found, strict=True)) == sorted(expected)
    assert sums.tolist() == [expected[key] for key in sorted(expected)]


@pytest.mark.parametrize("n", [3, 65, 129, 200, 321])
def test_tails_of_unlike_labels_are_those_of_the_convolution(n: int) -> None:
    rates = (np.arange(n) % 17 + 0.5) / 18.0
    mass = np.ones(1)
    for rate in rates:
        mass = np.convolve(mass, [1.0 - rate, rate])
    for count in (1, n // 3, n // 2, n):
        assert upper_tail(rates, count) == pytest.approx(mass[count:].sum(), abs=3e-12)


def test_nothing_counted_bounds_nothing() -> None:
    none = np.empty(0)
    steps = BandSteps.of(ScoreCounts(none, none.astype(int), none.astype(int)), "auto", 0.1)
    assert (steps.n_rows, steps.n_runs, steps.refutation) == (0, 0, None)
    assert [part.size for part in (steps.lower, steps.upper)] == [0, 0]
    assert [part.size for part in (steps.lower_knots, steps.upper_knots)] == [0, 0]


@pytest.mark.parametrize("name", SEQUENCES)
def test_one_region_with_more_positives_than_rows_is_refused_in_a_sequence(name: str) -> None:
    sequence = get_sequence(name)(2, 0.1)
    sequence.update(np.array([0, 1, 1, 0]), np.array([1, 1, 0, 1]))
    state = sequence.to_dict()
    assert get_sequence(name)(2, 0.1).restore(state).to_dict() == state
    with pytest.raises(InvalidValueError) as caught:
        get_sequence(name)(2, 0.1).restore({**state, "positives": [3, 1]})
    assert caught.value.parameter == "positives"


def test_the_refutation_is_the_pair_of_runs_whose_limits_cross_by_most() -> None:
    rng = np.random.default_rng(0)
    refuted = 0
    for size in (2, 3, 5, 8):
        for _ in range(20):
            low = rng.integers(0, 8, size) / 10.0
            high = low + rng.integers(1, 3, size) / 10.0
            lower = rng.integers(0, 6, size) / 10.0
            upper = lower + rng.integers(1, 4, size) / 10.0
            gaps = [
                lower[one] - upper[other]
                for one in range(size)
                for other in range(size)
                if high[one] <= low[other]
            ]
            found = refutation(low, high, lower, upper)
            if max(gaps, default=0.0) > 0.0:
                refuted += 1
                assert found is not None
                assert found.at_least - found.at_most == max(gaps)
            else:
                assert found is None
    assert 10 < refuted < 70


def test_sums_up_to_the_largest_double_are_read_and_no_larger_one() -> None:
    largest = float(np.finfo(float).max)
    sums = ExactSums.from_list([[1.0], [largest], [-largest]])
    assert sums.rounded().tolist() == [1.0, largest, -largest]
    for too_large in ([largest, largest], [-largest, -1.0]):
        with pytest.raises(InvalidValueError):
            ExactSums.from_list([[1.0], too_large])


def _difference(measure: str, better: str | None) -> PairedDifference:
    ends = {"a": (-0.3, -0.1), "b": (0.1, 0.3), None: (-0.1, 0.1)}[better]
    return PairedDifference("a", "b", measure, sum(ends) / 2.0, *ends, True)


@pytest.mark.parametrize(
    ("brier", "log_loss", "said"),
    [
        (None, None, None),
        ("a", "a", "'a' is better than 'b'"),
        ("b", "b", "'b' is better than 'a'"),
        ("a", "b", "'a' has a lower Brier score but a higher log loss than 'b'"),
        ("a", None, "'a' has a lower Brier score than 'b'"),
        (None, "b", "'b' has a lower log loss than 'a'"),
    ],
)
def test_what_is_said_of_two_models(brier: str, log_loss: str, said: str) -> None:
    pair = _difference("Brier score", brier), _difference("log loss", log_loss)
    found = _better_in(*pair)
    assert (found and f"{found[0]} than {found[1]!r}") == said


def test_rows_of_a_constant_feature_are_where_the_others_are() -> None:
    same = np.full((50, 2), 1e3)
    assert share_outside(same, same) == 0.0
    assert share_outside(same, same + 1.0) == 1.0


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_one_region_with_a_weight_beyond_the_bounds_is_refused(wrong: int) -> None:
    scores = np.array([0.1, 0.2, 0.5, 0.6, 0.8, 0.9])
    region = np.repeat([0, 1, 2], 2)
    bins = Partition.fixed_width(3)
    for beyond, parameter in ((3.0, "weight_bound"), (0.25, "weight_floor")):
        weights = np.where(region == wrong, beyond, 1.0)
        tally = Tally.from_data(bins, scores, [0, 1] * 3, importance_weight=weights)
        assert Evidence(tally, weight_bound=3.0, weight_floor=0.25).tally is tally
        with pytest.raises(InvalidValueError) as caught:
            Evidence(tally, weight_bound=2.0, weight_floor=0.5)
        assert caught.value.parameter == parameter


def _group_counts(**changed: list[int]) -> GroupCounts:
    state = GroupCounts.of([0, 0, 1, 0], [1, 0, 1, 1], [7, 7, 7, 8]).to_dict()
    return GroupCounts.from_dict({**state, **changed})


ONE_IS_WRONG: dict[str, tuple[Callable[[Any], Any], Any, list[Any]]] = {
    "edges": (Partition.from_edges, [0.1, 0.4, 0.9], [[0.1, 0.4, 0.4], [0.4, 0.1, 0.9]]),
    "parts of a sum": (ExactSums.from_list, [[1.0], [0.0] * 64], [[[1.0], [0.0] * 65]]),
    "limits": (
        lambda value: PairOfLimits(2).read(value, "limits", NOTHING_KNOWN),
        [[0.1, 0.5], [0.2, 0.5]],
        [[[0.1, 0.6], [0.2, 0.5]], [[0.3, 0.5], [0.2, 0.5]]],
    ),
    "ranks": (
        lambda value: _check_ranks(*np.array(value), 9),
        ([1, 4], [3, 9]),
        [([1, 4], [3, 10]), ([0, 4], [3, 9]), ([1, 5], [3, 4]), ([2, 4], [1, 9]), ([1, 3], [3, 9])],
    ),
    "bandwidths": (PositiveNumbers().parse, [0.5, 1.0], [[0.5, 0.0], [-1.0, 0.5], []]),
    "rows of groups": (
        lambda value: _group_counts(rows=value),
        [1, 2, 1],
        [[1, 0, 1], [0, 2, 1], [1, 2, 0]],
    ),
}


@pytest.mark.parametrize("what", ONE_IS_WRONG)
def test_one_wrong_entry_among_right_ones_is_refused(what: str) -> None:
    read, right, wrong = ONE_IS_WRONG[what]
    read(right)
    for value in wrong:
        with pytest.raises(ValueError):
            read(value)


def test_the_first_region_with_too_many_positives_is_named() -> None:
    with pytest.raises(InvalidValueError) as caught:
        Tally.from_counts([3, 5, 2, 4], [3, 5, 3, 9])
    assert caught.value.got == "3 of 2 in region 2"


def test_the_first_rows_are_read_with_pyarrow_or_an_error_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = {"s": [0.2, 0.7, 0.4], "y": [0, 1, 0]}
    data = rows_of(scored(pa.table(columns), score="s", label="y"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"the first rows are read with pyarrow"):
        group_signs(data)


@pytest.mark.parametrize(("unit", "n"), [("row", 2000), ("day", 30), ("week", 12)])
def test_how_many_units_a_monitor_takes_as_reference(unit: str, n: int) -> None:
    bins = Partition.fixed_width(1)
    usual = DriftMonitor(bins, unit=unit, random_state=0)
    assert usual.to_dict() == DriftMonitor(bins, unit=unit, reference=n, random_state=0).to_dict()
    assert (
        usual.to_dict() != DriftMonitor(bins, unit=unit, reference=n + 1, random_state=0).to_dict()
    )


def test_no_error_can_exceed_1() -> None:
    scores = np.tile([0.0, 1.0], 100)
    weights = np.where(scores == 0.0, 1e-15, 1.0)  # hardly anything is known of score 0
    found = audit(np.arange(200) % 3 == 0, scores, importance_weight=weights, weight_bound=1.0)
    assert found.upper_bound == 1.0


def test_one_bin_without_a_number_is_refused() -> None:
    narrow = (1.0, 1.0 + 2.0**-51)  # three numbers
    assert Partition.fixed_width(2, narrow).n_regions == 2
    for n_bins in (3, 4):
        with pytest.raises(InvalidValueError):
            Partition.fixed_width(n_bins, narrow)


def test_the_fingerprint_of_a_tree_is_that_of_its_splits_and_of_a_function_that_of_its_constants() -> (
    None
):
    rows = np.arange(40.0).reshape(20, 2)
    y = np.arange(20) >= 10
    trees = [
        DecisionTreeClassifier(max_leaf_nodes=n).fit(rows, y ^ (rows[:, 0] > 30)) for n in (2, 3)
    ]
    first, other = (Partition.from_tree(tree) for tree in trees)
    assert first.fingerprint == Partition.from_tree(deepcopy(trees[0])).fingerprint
    assert first.fingerprint != other.fingerprint
    cut = [Partition.from_function(one, (False, True)) for one in (_above_2, _above_3)]
    assert cut[0].fingerprint != cut[1].fingerprint


def _above_2(rows: Any) -> Any:
    return np.asarray(rows)[:, 0] > 2.0


def _above_3(rows: Any) -> Any:
    return np.asarray(rows)[:, 0] > 3.0


_above_3.__qualname__ = _above_2.__qualname__  # they differ by the constant alone


def test_starts_of_a_search_spend_all_of_alpha_and_grow() -> None:
    usual = {0.1, 0.25, 0.5, *(0.25 / 2.5**step for step in range(2, 10))}
    passed_back = 0
    for n in range(5, 400, 7):
        for target in (0.5, 0.8, 0.95):
            for alpha in (0.1, 0.5):
                found = starts(n, target, alpha)
                sizes = [size for size, _ in found]
                shares = {int(share * n) for share in usual}
                assert sizes == sorted(set(sizes))
                assert shares.issuperset(sizes) or sizes == [rows_needed(target, alpha)]
                assert not found or sum(part for _, part in found) == pytest.approx(alpha)
                passed_back += sizes[-1:] == [int(0.25 * n)]
    assert passed_back > 10  # a last start with too few rows passes its part back
