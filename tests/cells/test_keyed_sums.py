"""Sums by key are what a loop adds up, for any split of the data."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from calibrant.cells.keyed_sums import KeyedSums

entries = st.lists(st.tuples(st.integers(-3, 9), st.integers(-5, 5)), max_size=40)


@given(entries, st.integers(1, 4))
def test_any_split_adds_up_to_what_a_loop_adds(data, n_parts) -> None:
    expected: Counter[int] = Counter()
    for key, value in data:
        expected[key] += value
    keys = np.array([key for key, _ in data], dtype=np.int64)
    values = np.array([value for _, value in data], dtype=np.int64)
    parts = [KeyedSums.of(keys[own::n_parts], values[own::n_parts]) for own in range(n_parts)]
    found = KeyedSums.joined(parts)
    assert dict(zip(found.key.tolist(), found.sums.tolist(), strict=True)) == expected
    assert found.key.tolist() == sorted(expected)


def test_columns_are_added_apart() -> None:
    keys = np.array([2**63 + 5, 1, 2**63 + 5], dtype=np.uint64)
    found = KeyedSums.of(keys, np.array([[1, 10], [2, 20], [3, 30]]))
    assert found.key.tolist() == [1, 2**63 + 5]
    assert found.sums.tolist() == [[2, 20], [4, 40]]
    nothing = KeyedSums.of(keys[:0], np.empty((0, 2), dtype=np.int64))
    assert KeyedSums.joined([nothing, found]).sums.tolist() == found.sums.tolist()
    assert KeyedSums.joined([nothing, nothing]).key.size == 0


@given(st.lists(st.lists(st.integers(0, 200), min_size=1, max_size=40), min_size=1, max_size=60))
def test_parts_that_arrive_one_by_one_stay_few(lists) -> None:
    """Their sums are those of all, and each has more keys than all after it."""
    arrived: list[KeyedSums] = []
    kept: tuple[KeyedSums, ...] = ()
    for keys in lists:
        part = KeyedSums.of(np.array(keys), np.ones(len(keys), dtype=np.int64))
        arrived.append(part)
        kept = KeyedSums.compacted((*kept, part))
        sizes = [one.key.size for one in kept]
        assert all(sizes[place] > sum(sizes[place + 1 :]) for place in range(len(sizes)))
    whole = KeyedSums.joined(arrived)
    found = KeyedSums.joined(kept)
    assert found.key.tolist() == whole.key.tolist()
    assert found.sums.tolist() == whole.sums.tolist()
