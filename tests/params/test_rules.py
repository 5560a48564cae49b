"""Checks of scalar parameters: what each rule takes, and that drawing needs no global state."""

import io
import math
from fractions import Fraction

import numpy as np
import pytest

from calibrant import BinningCalibrator
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.random import as_generator
from calibrant.params.rules import (
    FRACTION_OR_COUNT,
    OPEN_UNIT,
    SCORE_RANGE,
    Choice,
    Flag,
    Having,
    Instance,
    Integer,
    Number,
    Only,
    Optional,
    RandomState,
    check_bins,
    error_budget,
    thread_count,
)


@pytest.mark.parametrize(
    "value", [3, np.int8(3), np.uint64(3), np.array(3)], ids=["int", "int8", "uint64", "0-d"]
)
def test_int_of_any_kind_becomes_a_plain_int(value):
    found = Integer(1).check("n", value)
    assert found == 3
    assert type(found) is int


def test_an_error_names_parameter_rule_and_value_in_fields():
    rule = Integer(1) | Only("auto")
    for value, kind, got in (
        ("ten", InvalidValueError, "'ten'"),
        (0, InvalidValueError, "0"),
        (1.5, InvalidTypeError, "1.5"),
    ):
        with pytest.raises(kind) as caught:
            rule.check("n_bins", value)
        assert caught.value.parameter == "n_bins"
        assert caught.value.rule == 'be an int >= 1 or "auto"'
        assert caught.value.got == got
        assert str(caught.value) == f'n_bins must be an int >= 1 or "auto"; got {got}'


@pytest.mark.parametrize(
    ("rule", "words", "taken", "refused"),
    [
        (Integer(2), "an int >= 2", [2, np.int8(3)], [1, 2.0, True, "2", None]),
        (
            OPEN_UNIT,
            "a number strictly between 0 and 1",
            [0.5, Fraction(1, 3)],
            [0, 1, 1.5, math.nan, "0.5", True],
        ),
        (
            Optional(FRACTION_OR_COUNT),
            "a fraction strictly between 0 and 1 or a number of rows >= 1",
            [0.2, np.float32(0.5), 1, 70, None],
            [0, 0.0, 1.0, 1.5, -3, True, "0.2", math.inf],
        ),
        (Choice(("a", "b")), "one of 'a', 'b'", ["a"], ["c", None, 1, ["a"]]),
        (Flag(), "True or False", [True, np.False_], [0, 1, None, "yes"]),
        (Optional(Instance(dict, "a dict")), "a dict", [{}, None], [dict, [], 0]),
        (Having(("read",), "a file"), "a file", [io.StringIO()], [io.StringIO, None, 0]),
    ],
    ids=["int", "open unit", "fraction or count", "choice", "flag", "instance", "having"],
)
def test_a_rule_says_what_it_takes_and_takes_no_more(rule, words, taken, refused):
    assert rule.words == words
    for value in taken:
        rule.check("p", value)
    for value in refused:
        with pytest.raises((InvalidTypeError, InvalidValueError), match=r"^p must be "):
            rule.check("p", value)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_real_of_any_kind_becomes_a_plain_float(value):
    found = OPEN_UNIT.check("p", value)
    assert found == 0.5
    assert type(found) is float


def test_real_refuses_what_no_double_holds():
    for value in (10**400, Fraction(10**400), math.inf, -math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon must be a number"):
            Number("a number").check("epsilon", value)


def test_error_budget_is_never_rounded_up_to_one():
    assert error_budget(0.75) == 0.25
    assert 0.5 < error_budget(5e-324) < 1.0
    assert 0.0 < error_budget(math.nextafter(1.0, 0.0)) < 1e-15


def test_bins_are_capped_before_memory_is_taken():
    assert check_bins(10**7) == 10**7
    with pytest.raises(ValueError, match="n_bins must be at most 10,000,000; got 10,000,001"):
        check_bins(10**7 + 1)


@pytest.mark.parametrize(
    "pair", [(0, 2), [0.0, 2.0], np.array([0, 2])], ids=["tuple", "list", "array"]
)
def test_score_range_is_any_pair(pair):
    assert SCORE_RANGE.check("score_range", pair) == (0.0, 2.0)


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
        RandomState().check("random_state", state)
        fresh = (
            type(state)(np.random.PCG64(5))
            if isinstance(state, np.random.Generator)
            else type(state)(5)
        )
        assert state.random(3).tolist() == fresh.random(3).tolist()


def test_thread_count_is_bounded_by_the_machine():
    assert thread_count(None) == 1
    assert thread_count(1) == 1
    assert thread_count(-1) >= 1
    assert thread_count(10**9) <= 8 * thread_count(-1)


def test_a_word_that_is_nearly_right_is_told_the_right_one():
    with pytest.raises(
        ValueError, match=r"got 'clopper_pearson': did you mean 'clopper-pearson'\?$"
    ):
        BinningCalibrator(interval="clopper_pearson").fit([0.1, 0.2], [0, 1])
    with pytest.raises(ValueError, match=r"got 'other'$"):
        BinningCalibrator(interval="other").fit([0.1, 0.2], [0, 1])
