"""A p-value does not depend on how a verdict is spelled, nor on the class's usual name."""

import numpy as np
import pytest

from calibrant import rate
from calibrant.errors import CalibrantWarning


def items(group_size=1, n_verdicts=2, seed=0):
    """Verdicts as codes, and labels on a draw that prefers the first verdict."""
    rng = np.random.default_rng(seed)
    n_groups = 600
    codes = rng.integers(0, n_verdicts, n_groups * group_size)
    groups = np.repeat(np.arange(n_groups), group_size)
    first = np.bincount(groups, weights=codes == 0)
    chances = 1.0 + first
    drawn = rng.choice(n_groups, 120, replace=False, p=chances / chances.sum())
    y = np.where(np.isin(groups, drawn), (codes == 0).astype(float), np.nan)
    return y, codes, groups if group_size > 1 else None


TWO = [("fail", "pass"), ("pass", "fail"), ("a", "b"), ("b", "a"), ("No", "yes"), ("{x}", "}{")]
NUMBERS = [(0, 1), (1, 0), (3.0, 7.0), (False, True)]
THREE = [("bad", "fair", "good"), ("good", "fair", "bad"), ("b", "c", "a"), ("x", "z", "y")]


@pytest.mark.parametrize("group_size", [1, 4, 15])
def test_two_verdicts_have_one_p_value(group_size):
    y, codes, groups = items(group_size)
    found = [
        rate(y, np.array(names)[codes], groups=groups).draw.p_value for names in [*TWO, *NUMBERS]
    ]
    assert 0.0 < found[0] < 0.5
    np.testing.assert_allclose(found, found[0], rtol=1e-9)


@pytest.mark.parametrize("group_size", [1, 4])
def test_several_verdicts_have_one_p_value(group_size):
    y, codes, groups = items(group_size, n_verdicts=3)
    found = [rate(y, np.array(names)[codes], groups=groups).draw.p_value for names in THREE]
    assert 0.0 < found[0] < 0.5
    assert found == [found[0]] * len(found)


def test_a_verdict_in_capitals_is_the_same_verdict():
    y, codes, _ = items()
    plain = np.array(["fail", "pass"])[codes]
    rng = np.random.default_rng(1)
    other = [word if rng.random() < 0.5 else f" {word.upper()}" for word in plain]
    here = rate(y, other)
    there = rate(y, plain)
    assert here.draw.p_value == there.draw.p_value
    assert (here.lower, here.upper) == (there.lower, there.upper)


@pytest.mark.parametrize("label", ["yes", "PASS", "good", "Y", "true"])
def test_labels_of_one_usual_word_are_enough(label):
    y = [label] * 50 + [None] * 150
    with pytest.warns(CalibrantWarning, match=f"'{label}' is taken as the positive class"):
        found = rate(y, [1] * 200)
    assert found.positive_label == label
    assert found.upper == 1.0
    assert found == rate(y, [1] * 200, pos_label=label)


def test_labels_of_one_usual_negative_word():
    with pytest.warns(CalibrantWarning, match="'good' is taken as the positive class"):
        found = rate(["bad"] * 50 + [None] * 150, [1] * 200)
    assert found.lower == 0.0
    assert found.upper < 0.1
