"""Bins of a score: every score has one region, edges are where they were said to be, and ties are
exact.
"""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import BinningCalibrator, Partition
from calibrant.cells.score_partition import ScorePartition, edge_ranks
from worlds.errors import about

some_scores = st.lists(
    st.one_of(
        st.floats(-1e3, 1e3),
        st.sampled_from(
            [
                0.0,
                -0.0,
                0.5,
                np.nextafter(0.5, 1),
                np.nextafter(0.5, 0),
                1.0,
                5e-324,
                -5e-324,
                1.7e308,
            ]
        ),
    ),
    min_size=4,
    max_size=60,
)


@given(some_scores, st.integers(1, 4))
def test_own_quantile_bins_follow_the_definition(values, n_bins) -> None:
    scores = np.array(values)
    ordered = np.sort(scores)
    edges = {ordered[-(-b * (scores.size + 1) // n_bins) - 1] + 0.0 for b in range(1, n_bins)}
    partition = Partition.uniform_mass(scores, n_bins)
    assert set(partition.edges.tolist()) == edges
    assert set(partition.edges[partition.is_atom].tolist()) == {
        e for e in edges if np.count_nonzero(scores == e) > 1
    }
    region = partition.membership(scores)
    for score, number in zip(scores, region, strict=True):
        seen_once = score in edges and np.count_nonzero(scores == score) == 1
        assert (number == -1) == seen_once
    # two scores share a region exactly when no edge lies between them or at either of them, or when
    # they are equal
    for a, region_a in zip(scores, region, strict=True):
        for b, region_b in zip(scores, region, strict=True):
            if region_a >= 0 and region_b >= 0:
                apart = any(min(a, b) <= edge <= max(a, b) for edge in edges) and a != b
                assert (region_a != region_b) == apart


@given(some_scores, st.integers(1, 4))
def test_counts_of_the_cutting_sample_follow_from_the_ranks(values, n_bins) -> None:
    scores = np.array(values)
    codes = (np.arange(scores.size) % 2).astype(np.uint8)
    partition = Partition.uniform_mass(scores, n_bins)
    counts, positives, uncounted = partition.count(scores, codes)
    region = partition.membership(scores)
    np.testing.assert_array_equal(
        counts, np.bincount(region[region >= 0], minlength=partition.n_regions)
    )
    np.testing.assert_array_equal(
        positives, np.bincount(region[(region >= 0) & (codes == 1)], minlength=partition.n_regions)
    )
    np.testing.assert_array_equal(partition.cut_counts(), counts)
    assert uncounted == np.count_nonzero(region < 0)


@given(some_scores, st.integers(1, 4))
def test_every_score_counted_in_a_region_is_predicted_from_it(values, n_bins) -> None:
    scores = np.array(values)
    partition = Partition.uniform_mass(scores, n_bins)
    member = partition.membership(scores)
    assigned = partition.assign(scores)
    np.testing.assert_array_equal(assigned[member >= 0], member[member >= 0])
    assert ((assigned >= 0) & (assigned < partition.n_regions)).all()


@given(some_scores, st.integers(1, 4))
def test_json_round_trip(values, n_bins) -> None:
    partition = Partition.uniform_mass(np.array(values), n_bins)
    again = Partition.from_dict(json.loads(json.dumps(partition.to_dict())))
    assert again == partition
    assert hash(again) == hash(partition)
    assert again.fingerprint == partition.fingerprint


def test_bins_of_continuous_scores_hold_equal_numbers() -> None:
    scores = np.random.default_rng(0).uniform(size=10_000)
    counts = Partition.uniform_mass(scores, 10).cut_counts()
    assert counts.min() >= 10_000 // 10 - 1
    assert counts.max() <= 10_000 // 10 + 1
    assert counts.sum() == 10_000 - 9


def test_split_edges_merge_and_leave_no_bin_that_is_empty_by_construction() -> None:
    assert ScorePartition.from_other_scores(np.full(100, 0.3), 10).n_regions == 1
    two_point = np.repeat([0.2, 0.9], [70, 30])
    assert ScorePartition.from_other_scores(two_point, 10).describe() == (
        "(-inf, 0.9)",
        "[0.9, inf)",
    )


def test_fixed_width_edges_belong_to_the_bin_on_their_right_and_the_last_bin_is_closed() -> None:
    bins = Partition.fixed_width(10)
    np.testing.assert_array_equal(bins.assign(np.arange(10) / 10), np.arange(10))
    assert bins.assign([1.0]).tolist() == [9]
    np.testing.assert_array_equal(bins.assign(np.nextafter(bins.edges, 0)), np.arange(9))


def test_scores_outside_the_range_are_refused_and_open_ends_take_any() -> None:
    with pytest.raises(
        ValueError, check=about("scores", "1.5 at row index 1, and in no other row")
    ):
        Partition.fixed_width(10).assign([0.2, 1.5])
    assert Partition.from_edges([0.0]).assign([-1e300, 1e300]).tolist() == [0, 1]


def test_partition_is_a_value() -> None:
    assert Partition.fixed_width(10) == Partition.fixed_width(10)
    assert Partition.fixed_width(10) != Partition.fixed_width(11)
    assert Partition.fixed_width(10) != Partition.fixed_width(10, (0.0, 2.0))
    assert (
        len({Partition.fixed_width(3), Partition.fixed_width(3), Partition.from_edges([0.5])}) == 2
    )


def test_names_tell_atoms_and_open_ends() -> None:
    scores = [0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.7, 0.8, 0.9]
    assert Partition.uniform_mass(scores, 2).describe() == ("(-inf, 0.5)", "{0.5}", "(0.5, inf)")


LOW = 1.0
HIGH = float(np.nextafter(LOW, 2))
HIGHER = float(np.nextafter(HIGH, 2))


@pytest.mark.parametrize(
    ("edges", "n_regions"),
    [((LOW, HIGH, 2.0), 3), ((0.5, LOW, HIGH), 3), ((LOW, HIGH, HIGHER), 2), ((0.5, LOW, 2.0), 4)],
)
def test_adjacent_doubles_as_edges_leave_no_empty_region(edges, n_regions) -> None:
    # edges of rank 2, 3 and 4: a gap between neighbouring doubles holds no score
    scores = np.array([0.0, *edges])
    partition = Partition.uniform_mass(scores, 4)
    assert partition.edges.tolist() == list(edges)
    assert partition.n_regions == n_regions
    assert partition.assign([0.0, 3.0]).tolist() == [0, n_regions - 1]


@pytest.mark.parametrize(("n", "b"), [(10_000, 10), (7, 7), (100, 3), (1, 1)])
def test_edge_ranks_are_those_of_the_theory(n: int, b: int) -> None:
    expected = [int(np.ceil(j * (n + 1) / b - 1e-12)) for j in range(1, b)]
    assert edge_ranks(n, b).tolist() == expected
    assert all(1 <= rank <= n for rank in expected)


@pytest.mark.parametrize(
    "change",
    [
        {"first_rank": None},
        {"last_rank": None},
        {"n_rows": None},
        {"atoms": True},
        {"first_rank": None, "n_rows": None},
    ],
)
def test_saved_ranks_are_whole_or_absent_and_never_beside_atoms(change) -> None:
    saved = (
        BinningCalibrator(4, pilot=None)
        .fit(np.arange(20.0), np.arange(20) % 2)
        .partition_.to_dict()
    )
    with pytest.raises(
        ValueError,
        check=about("first_rank, last_rank and n_rows"),
    ):
        Partition.from_dict({**saved, **change})


def test_saved_ranks_that_no_rows_have_are_refused() -> None:
    saved = (
        BinningCalibrator(4, pilot=None)
        .fit(np.arange(20.0), np.arange(20) % 2)
        .partition_.to_dict()
    )
    last = saved["last_rank"]
    for wrong in ([last[0] + 1, *saved["first_rank"][1:]], [0, *saved["first_rank"][1:]]):
        with pytest.raises(
            ValueError,
            check=about("first_rank"),
        ):
            Partition.from_dict({**saved, "first_rank": wrong})
    with pytest.raises(ValueError, match="both lie between 1 and n_rows"):
        Partition.from_dict({**saved, "last_rank": [*last[:-1], 21]})


def test_minus_zero_is_zero() -> None:
    minus = Partition.atoms([-0.0, 1.0])
    plain = Partition.atoms([0.0, 1.0])
    assert minus.to_dict() == plain.to_dict()
    assert str(minus.to_dict()) == str(plain.to_dict())  # where -0.0 == 0.0 does not count
    assert minus.describe() == plain.describe()


def test_repeated_values_become_one_atom() -> None:
    values = np.array([0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0])
    assert ScorePartition.at(values).edges.tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("edges", [[0.5, 0.4], [0.5, 0.5], [0.1, 0.5, 0.4], [0.1, 0.2, 0.3, 0.25]])
def test_edges_increase(edges) -> None:
    with pytest.raises(ValueError, match="edges must be strictly increasing"):
        Partition.from_edges(edges)
    assert Partition.from_edges(sorted({*edges, 0.9})).n_regions == len({*edges}) + 2


def test_segments_with_and_without_a_range_hold_the_scores_within() -> None:
    ranged = Partition.fixed_width(2)
    free = Partition.from_edges([0.5])
    scores = np.array([-1.0, 0.0, 1.0, 2.0])
    assert ranged.inside(scores, None).tolist() == [False, True, True, False]
    assert free.inside(scores, None).tolist() == [True] * 4
    both = Partition.by_segment({"a": ranged, "b": free})
    assert both.inside(scores, np.array([0, 0, 0, 0])).tolist() == [False, True, True, False]
    assert both.inside(scores, np.array([1, 1, -1, 1])).tolist() == [True, True, False, True]


@pytest.mark.parametrize("edges", [[0.2, 0.5, 1.5], [0.0, 0.5], [-1.0]])
def test_edges_outside_the_range_raise(edges: list[float]) -> None:
    with pytest.raises(ValueError, match="edges must lie inside score_range"):
        Partition.from_edges(edges, score_range=(0.0, 1.0))
    assert Partition.from_edges([0.5, 1.0], score_range=(0.0, 1.0)).n_regions == 3


def test_a_bin_of_tied_scores_that_is_too_small_joins_its_smaller_neighbour():
    scores = np.repeat([0.0, 0.1, 0.2], [3, 1, 2])
    np.testing.assert_array_equal(ScorePartition.from_tied_scores(scores, 3).edges, [0.1])


def test_tied_scores_are_cut_at_the_value_nearest_to_the_quantile():
    scores = np.repeat([0.0, 0.1, 0.2, 0.3], [2, 1, 1, 1])
    np.testing.assert_array_equal(ScorePartition.from_tied_scores(scores, 3).edges, [0.2])
