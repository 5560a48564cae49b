"""Limits as text: never narrower than the number, never wider than its digits ask for, and the same
everywhere.
"""

import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import BinningCalibrator, Partition, Tally
from calibrant.guarantee.statement import ImportanceWeights, Population, Statement
from calibrant.guarantee.words import assumptions
from calibrant.intervals import get_method
from calibrant.text.numbers import limits, lower, nearest, percent, upper
from calibrant.text.sentences import words

shares = st.floats(0.0, 1.0)


@given(value=shares)
def test_a_limit_is_rounded_outwards(value) -> None:
    assert float(lower(value)) <= value <= float(upper(value))
    assert float(lower(value)) <= float(nearest(value)) <= float(upper(value))


@given(low=shares, width=shares)
def test_both_ends_of_an_interval_are(low, width) -> None:
    high = min(low + width, 1.0)
    shown = [float(text) for text in limits(low, high).split(" to ")]
    assert shown[0] <= low <= high <= shown[1]


@given(low=st.floats(0.0, 1.0, exclude_min=True, exclude_max=True), width=shares)
def test_limits_inside_the_unit_interval_never_look_like_one_end(low, width) -> None:
    high = min(low + width, np.nextafter(1.0, 0.0))
    assert limits(low, high) not in ("0 to 0", "1 to 1")
    assert lower(high) != "1"
    assert upper(low) != "0"


@given(share=st.floats(0.0, 1.0, exclude_max=True))
def test_a_confidence_level_below_1_is_never_printed_as_certain(share) -> None:
    assert percent(share) != "100%"


@given(rows=st.integers(1, 10**12), share=shares, alpha=st.floats(1e-12, 0.5))
def test_the_sentence_guarantees_no_less_than_epsilon(rows, share, alpha) -> None:
    bins = Partition.fixed_width(1)
    tally = Tally.from_counts([rows], [round(share * rows)], partition=bins)
    guarantee = BinningCalibrator.from_tally(bins, tally, confidence_level=1 - alpha).guarantee_
    said = re.search(r"(?:within|bound is) ([0-9.]+) point", guarantee.details)
    assert said is not None
    stated = Decimal(said[1]) / 100
    assert Decimal(repr(guarantee.epsilon)) <= stated < Decimal(guarantee.epsilon + 0.001)
    factors = re.search(r"between ([0-9.]+) and ([0-9.]+) times the prediction", guarantee.sentence)
    if factors is not None:
        assert guarantee.relative.lower[0] - 0.01 < float(factors[1]) <= guarantee.relative.lower[0]
        assert guarantee.relative.upper[0] <= float(factors[2]) < guarantee.relative.upper[0] + 0.01


def test_rare_events_have_an_interval_that_says_something() -> None:
    bins = Partition.fixed_width(1)
    tally = Tally.from_counts([10**6], [20], partition=bins)
    guarantee = BinningCalibrator.from_tally(bins, tally).guarantee_
    assert "the true rate is between 0.64 and 1.43 times the prediction" in guarantee.sentence
    assert "the bound is 0.00088 points." in guarantee.details
    assert limits(guarantee.lower[0], guarantee.upper[0]) == "0.000013 to 0.00003"


@pytest.mark.parametrize("bound", [7.9999999, 8.0, 1.23456789, 123456.789])
def test_an_assumption_is_never_stated_weaker_than_it_is(bound) -> None:
    weights = ImportanceWeights(known=True, bound=bound, error=0.01234567)
    said = " ".join(
        map(words, assumptions(Statement(population=Population.COVARIATE_SHIFT, weights=weights)))
    )
    assert float(re.search(r"no importance weight exceeds ([0-9.]*[0-9])", said)[1]) <= bound
    assert float(re.search(r"relative error of ([0-9.]*[0-9])", said)[1]) <= 0.01234567


@pytest.mark.parametrize("digits", range(1, 100))
def test_what_has_two_digits_is_shown_as_it_is(digits) -> None:
    # floor(100 * 0.29) is 28: a limit that is computed in binary goes one too far
    assert (
        lower(digits / 100) == upper(digits / 100) == nearest(digits / 100) == f"{digits / 100:g}"
    )


def test_a_tiny_interval_is_not_printed_as_zero() -> None:
    bins = Partition.fixed_width(1)
    interval = get_method("clopper-pearson").function(
        Tally.from_counts([10**6], [20], partition=bins), 0.1
    )
    assert limits(interval.lower[0], interval.upper[0]) == "0.000013 to 0.00003"


def test_a_confidence_level_that_was_computed_is_printed_short() -> None:
    assert percent(1 - 0.1 - 0.2) == "70%"
    assert percent(0.1 + 0.2) == "30%"


@pytest.mark.parametrize("value", [1e15, -3e20, 1.7976931348623157e308])
def test_huge_scores_are_written_with_an_exponent(value) -> None:
    assert float(nearest(value)) == float(lower(value)) == float(upper(value)) == value
    assert len(nearest(value)) < 30
