"""Exact sums: equal to rational arithmetic, whatever the order, the split or the size of the
numbers.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.cells.exact_sums import ExactSums
from calibrant.errors import InvalidValueError

finite = st.floats(
    allow_nan=False, allow_infinity=False, width=64, min_value=-1e300, max_value=1e300
)
rows = st.lists(st.tuples(finite, st.integers(0, 2)), max_size=30)


def sums(pairs) -> ExactSums:
    values = np.array([value for value, _ in pairs], dtype=np.float64)
    groups = np.array([group for _, group in pairs], dtype=np.intp)
    return ExactSums.of(values, groups, 3)


@given(rows)
def test_equals_rational_arithmetic(pairs) -> None:
    for group, expansion in enumerate(sums(pairs).to_list()):
        truth = sum((Fraction(value) for value, g in pairs if g == group), Fraction(0))
        assert sum(map(Fraction, expansion), Fraction(0)) == truth


@given(rows, st.randoms(), st.integers(0, 30))
def test_no_split_and_no_order_changes_the_sum(pairs, random, cut) -> None:
    shuffled = pairs.copy()
    random.shuffle(shuffled)
    assert sums(shuffled[:cut]) + sums(shuffled[cut:]) == sums(pairs)


@given(rows)
def test_survives_the_round_trip_through_plain_numbers(pairs) -> None:
    assert ExactSums.from_list(sums(pairs).to_list()) == sums(pairs)


def test_rounding_is_to_the_nearest_double() -> None:
    values = np.random.default_rng(0).lognormal(sigma=5, size=1000)
    truth = float(sum(map(Fraction, values.tolist()), Fraction(0)))
    assert ExactSums.of(values, np.zeros(1000, dtype=np.intp), 1).rounded()[0] == truth


def test_no_sum_is_read_from_more_numbers_than_one_can_have() -> None:
    assert ExactSums.from_list([[1.0] * 64]).rounded()[0] == 64.0
    with pytest.raises(InvalidValueError, match="at most 64 numbers"):
        ExactSums.from_list([[1.0] * 65])


@given(rows, st.lists(st.integers(-1, 1), min_size=3, max_size=3))
def test_groups_that_become_one_are_added_up_and_others_left_out(pairs, places) -> None:
    found = sums(pairs).regrouped(np.array(places), 2)
    kept = [(value, places[group]) for value, group in pairs if places[group] >= 0]
    values = np.array([value for value, _ in kept])
    groups = np.array([place for _, place in kept], dtype=np.intp)
    assert found == ExactSums.of(values, groups, 2)
    with pytest.raises(ValueError, match="argument 2 is"):
        sums(pairs).regrouped(np.array(places[:2]), 2)


@given(rows, rows)
def test_parts_and_comparisons_are_exact(pairs, others) -> None:
    one = sums(pairs)
    other = sums(others)
    nothing = ExactSums([0] * 3)
    assert len(one) == len(nothing) == 3
    assert one + nothing == one
    assert one.part(slice(1, 3)).to_list() == one.to_list()[1:]
    totals = [
        [sum(map(Fraction, parts), Fraction(0)) for parts in each.to_list()]
        for each in (one, other)
    ]
    assert one.at_most(other) == all(a <= b for a, b in zip(*totals, strict=True))
    assert one.at_most(one)
    for use in (ExactSums.__add__, ExactSums.at_most):
        with pytest.raises(ValueError, match="argument 2 is"):
            use(nothing, ExactSums([0] * 2))
