"""Tallies add: any split of the data, merged in any order, gives the identical tally."""

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Partition, Tally
from worlds.errors import about

BINS = Partition.fixed_width(4)
row = st.tuples(
    st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]), st.integers(0, 1), st.floats(0.0, 1e6)
)
rows = st.lists(row, min_size=1, max_size=20)


def tally(data, weighted: bool = True) -> Tally:
    scores, labels, weights = (np.array(column) for column in zip(*data, strict=True))
    return Tally.from_data(BINS, scores, labels, importance_weight=weights if weighted else None)


@given(rows, st.randoms(), st.integers(1, 5))
def test_any_split_in_any_order_gives_the_identical_tally(data, random, n_parts) -> None:
    shuffled = data.copy()
    random.shuffle(shuffled)
    parts = [shuffled[start::n_parts] for start in range(n_parts)]
    merged = sum(tally(part) for part in parts if part)
    assert merged == tally(data)
    assert json.dumps(merged.to_dict()) == json.dumps(tally(data).to_dict())


@given(rows)
def test_json_round_trip(data) -> None:
    one = tally(data)
    assert Tally.from_dict(json.loads(json.dumps(one.to_dict()))) == one


@given(rows)
def test_counts_agree_with_the_definition(data) -> None:
    one = tally(data, weighted=False)
    for region, (low, high) in enumerate(BINS.bounds):
        inside = [(y, w) for s, y, w in data if low <= s < high or (region == 3 and s == 1.0)]
        assert one.counts[region] == len(inside)
        assert one.positives[region] == sum(y for y, _ in inside)


def test_weighted_sums_agree_with_numpy() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=500)
    labels = rng.integers(0, 2, 500)
    weights = rng.gamma(2.0, size=500)
    sums = Tally.from_data(BINS, scores, labels, importance_weight=weights).weights
    region = BINS.assign(scores)
    for name, values in {
        "w": weights,
        "w2": weights**2,
        "wy": weights * labels,
        "w2y": weights**2 * labels,
    }.items():
        np.testing.assert_allclose(
            getattr(sums, name).rounded(), np.bincount(region, values, 4), rtol=1e-13
        )
    np.testing.assert_array_equal(sums.smallest, [weights[region == b].min() for b in range(4)])
    np.testing.assert_array_equal(sums.largest, [weights[region == b].max() for b in range(4)])


def test_tallies_of_different_partitions_are_not_added() -> None:
    other = Tally.from_data(Partition.from_edges([0.1, 0.2, 0.3], (0.0, 1.0)), [0.5], [1])
    with pytest.raises(ValueError, check=about("tallies", "different ones, of 4 and 4 regions")):
        tally([(0.5, 1, 1.0)], weighted=False) + other


def test_a_weighted_and_an_unweighted_tally_are_not_added() -> None:
    data = [(0.5, 1, 1.0)]
    with pytest.raises(ValueError, check=about("tallies", "one with weights")):
        tally(data, weighted=True) + tally(data, weighted=False)


def test_a_tally_can_not_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        tally([(0.5, 1, 1.0)]).counts[0] = 7


def test_to_frame_has_one_row_per_region() -> None:
    frame = tally([(0.1, 1, 1.0), (0.9, 0, 1.0)]).to_frame()
    assert frame["count"].tolist() == [1, 0, 0, 1]
    assert frame["rate"].isna().tolist() == [False, True, True, False]


@pytest.mark.parametrize("zero", [-1, -1.0, Decimal(-1), Decimal(0), False])
def test_labels_are_read_as_calibrators_read_them(zero) -> None:
    labels = np.array([zero, type(zero)(1), type(zero)(1)])
    assert Tally.from_data(BINS, [0.1, 0.2, 0.9], labels).positives.sum() == 2
    assert Tally.from_data(BINS, [0.1, 0.2, 0.9], np.array([zero] * 3)).positives.sum() == 0


def test_saved_tallies_without_an_entry_and_impossible_numbers_of_uncounted_rows_are_refused() -> (
    None
):
    saved = Tally.from_counts([3, 4], [1, 2]).to_dict()
    for name in saved:
        with pytest.raises(ValueError, match=f"'?{name}'?"):
            Tally.from_dict({key: value for key, value in saved.items() if key != name})
    for wrong in (-1, 0.5, True, "2"):
        with pytest.raises((ValueError, TypeError), match="uncounted must be an int >= 0"):
            Tally.from_dict({**saved, "uncounted": wrong})


@pytest.mark.parametrize("rows", [1, 2])
def test_a_saved_region_with_rows_has_a_smallest_weight(rows) -> None:
    tally = Tally.from_data(
        Partition.fixed_width(1), [0.5] * rows, [1] * rows, importance_weight=[0.7] * rows
    )
    saved = tally.to_dict()
    assert Tally.from_dict(saved) == tally
    nothing = {**saved["weights"], "smallest": [None], "largest": [None]}
    with pytest.raises(ValueError, check=about("weights")):
        Tally.from_dict({**saved, "weights": nothing})


def test_the_first_region_with_more_positives_than_rows_is_named() -> None:
    for positives, said in (([1, 6, 7], "6 of 5 in region 1"), ([1, 1, 6], "6 of 5 in region 2")):
        with pytest.raises(
            ValueError, match=f"positives must lie between 0 and counts; got {said}"
        ):
            Tally.from_counts([5, 5, 5], positives)
