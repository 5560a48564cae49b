"""Sets of labels from probabilities of several classes: how often they miss the label."""

import numpy as np
import pytest

from calibrant.calibrators.class_wise_hold_out import LabelSets
from calibrant.errors import InvalidValueError
from worlds.guarantees import assert_rare


@pytest.mark.parametrize("ties", [False, True], ids=["all different", "ties"])
@pytest.mark.parametrize(("n", "alpha", "coverage"), [(60, 0.1, 0.9), (200, 0.5, 0.95)])
def test_the_share_missed_exceeds_its_bound_at_most_as_often_as_stated(ties, n, alpha, coverage):
    """The truth is known: own probabilities are uniform, so that a threshold t misses t."""
    rng = np.random.default_rng(5)
    draws = 2_000
    too_many = 0
    for _ in range(draws):
        own = rng.uniform(size=n)
        cut = LabelSets(np.floor(own * 20) / 20 if ties else own, alpha).threshold(coverage)
        too_many += cut > 1.0 - coverage + 1e-12
    assert_rare(too_many, draws, alpha)
    if not ties:
        assert too_many > 0.3 * alpha * draws  # it is not vacuous


def test_too_few_rows_rule_out_no_label():
    few = LabelSets(np.full(10, 0.9), alpha=0.1)
    assert few.threshold(0.9) == 0.0
    assert few.of(np.array([[0.98, 0.01, 0.01]]), coverage=0.9).all()


def test_the_most_probable_labels_are_always_in_the_set():
    sure = LabelSets(np.full(500, 0.9), alpha=0.1)
    found = sure.of(np.array([[0.4, 0.4, 0.2], [0.95, 0.05, 0.0]]), coverage=0.9)
    assert found.tolist() == [[True, True, False], [True, False, False]]


def test_the_coverage_is_checked():
    with pytest.raises(InvalidValueError) as refused:
        LabelSets(np.ones(5), alpha=0.1).threshold(95)
    assert refused.value.parameter == "coverage"
