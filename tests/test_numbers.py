"""Limits as text: never narrower than the number, never wider than its digits ask for, and the same everywhere."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant import BinningCalibrator, audit
from calibrant._numbers import limits, lower, nearest, upper
from calibrant.views.report import render_report

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


@pytest.mark.parametrize("digits", range(1, 100))
def test_what_has_two_digits_is_shown_as_it_is(digits) -> None:
    # floor(100 * 0.29) is 28: a limit that is computed in binary goes one too far
    assert lower(digits / 100) == upper(digits / 100) == nearest(digits / 100) == f"{digits / 100:g}"


def test_the_same_epsilon_in_the_sentence_and_in_the_report() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=2000)
    y = (rng.uniform(size=2000) < scores).astype(int)
    calibrator = BinningCalibrator(4).fit(scores, y)
    shown = re.escape(upper(calibrator.guarantee_.epsilon))
    assert re.search(rf"within {shown}\b", str(calibrator.guarantee_))
    assert re.search(rf"\b{shown}\b", render_report(audit(y, scores), calibrator))
