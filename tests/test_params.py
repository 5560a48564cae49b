"""Checks of scalar parameters: what each rule takes, and that drawing needs no global state."""

import math
from fractions import Fraction

import numpy as np
import pytest

from calibrant._params import (
    as_generator,
    check_bins,
    check_int,
    check_open_unit,
    check_random_state,
    check_real,
    check_score_range,
    error_budget,
    thread_count,
)


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3)], ids=["int", "int8", "uint64", "0-d"])
def test_int_of_any_kind_becomes_a_plain_int(value):
    found = check_int("n", value, minimum=1)
    assert found == 3
    assert type(found) is int


def test_int_message_names_parameter_rule_and_value():
    with pytest.raises(ValueError, match=r'^n_bins must be an int >= 1, or "auto"; got 0$'):
        check_int("n_bins", 0, minimum=1, alternative=', or "auto"')
    with pytest.raises(TypeError, match=r"^n_bins must be an int >= 1; got '3' \(str\)$"):
        check_int("n_bins", "3", minimum=1)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_real_of_any_kind_becomes_a_plain_float(value):
    found = check_open_unit("p", value)
    assert found == 0.5
    assert type(found) is float


def test_real_refuses_what_no_double_holds():
    for value in (10**400, Fraction(10**400), math.inf, -math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon must be a number"):
            check_real("epsilon", value, rule="a number")


def test_error_budget_is_never_rounded_up_to_one():
    assert error_budget(0.75) == 0.25
    assert 0.5 < error_budget(5e-324) < 1.0
    assert 0.0 < error_budget(math.nextafter(1.0, 0.0)) < 1e-15


def test_bins_are_capped_before_memory_is_taken():
    assert check_bins(10**7) == 10**7
    with pytest.raises(ValueError, match="n_bins must be at most 10000000; got 10000001"):
        check_bins(10**7 + 1)


@pytest.mark.parametrize("pair", [(0, 2), [0.0, 2.0], np.array([0, 2])], ids=["tuple", "list", "array"])
def test_score_range_is_any_pair(pair):
    assert check_score_range(pair) == (0.0, 2.0)


def test_random_states_that_are_equal_draw_the_same():
    makers = (
        lambda: 5,
        lambda: np.int64(5),
        lambda: 2**200,
        lambda: np.random.SeedSequence(5),
        lambda: np.random.default_rng(5),
        lambda: np.random.RandomState(5),
    )
    for make in makers:
        assert as_generator(make()).random(4).tolist() == as_generator(make()).random(4).tolist()
    assert as_generator(None).random(4).tolist() != as_generator(None).random(4).tolist()


def test_checking_a_random_state_draws_nothing_from_it():
    for state in (np.random.default_rng(5), np.random.RandomState(5)):
        check_random_state(state)
        fresh = type(state)(np.random.PCG64(5)) if isinstance(state, np.random.Generator) else type(state)(5)
        assert state.random(3).tolist() == fresh.random(3).tolist()


def test_thread_count_is_bounded_by_the_machine():
    assert thread_count(None) == 1
    assert thread_count(1) == 1
    assert thread_count(-1) >= 1
    assert thread_count(10**9) <= 8 * thread_count(-1)
