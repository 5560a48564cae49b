"""Labels that come one by one: limits that cross, and items in an order that is not that of the
draw.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

from calibrant import rate

LEVEL = 1e-3


def items_of(rng, n_items=600, n_labels=150, share=0.3, right=0.9, labels_first=False):
    """Labels of the first items, or of all those drawn, in the order of the file."""
    truth = (rng.permutation(n_items) < n_items * share).astype(float)
    judge = np.where(rng.random(n_items) < right, truth, 1 - truth)
    y = np.full(n_items, np.nan)
    y[:n_labels] = truth[:n_labels]
    if labels_first:  # the same labels on the same items, sorted by label
        order = np.concatenate(
            [np.argsort(y[:n_labels], kind="stable"), np.arange(n_labels, n_items)]
        )
        y, judge, truth = y[order], judge[order], truth[order]
    return y, judge, truth


@pytest.mark.parametrize("target", ["items", "population"])
def test_crossed_limits_are_what_the_labels_count_and_decide_nothing(target):
    y, judge, truth = items_of(np.random.default_rng(0), right=0.5, labels_first=True)
    found = rate(y, judge, sequential=True, target=target)
    assert found.crossed
    assert found.is_doubtful
    positives = int(np.nansum(y))
    if target == "items":
        assert found.lower == positives / 600
        assert found.upper == 1 - (150 - positives) / 600
    assert found.lower <= truth.mean() <= found.upper
    assert found.lower <= found.estimate <= found.upper
    assert found.sentence.startswith("The limits contradict each other")
    assert "not given in the order in which they were drawn, or this is one of" in found.sentence
    assert "at most 5%, in which limits fail" in found.sentence
    for goal in (0.001, 0.3, 0.999):
        assert found.check(at_least=goal) == "undecided"
        assert found.gate(at_most=goal).whole.verdict == "undecided"
    assert found.to_dict()["is_doubtful"] is True


def test_a_segment_whose_limits_cross_is_named():
    y, judge, _ = items_of(np.random.default_rng(0), right=0.5, labels_first=True)
    segments = np.where(np.arange(600) % 300 < 75, "a", "b")
    found = rate(y, judge, sequential=True, segments=segments)
    assert found.is_doubtful
    crossed = [part.segment for part in found.segments if part.crossed]
    assert found.crossed or f"in segment {crossed[0]!r}" in found.sentence
    for part in (found, *found.segments):
        assert part.lower <= part.upper
        assert part.lower_alone <= part.upper_alone
    assert {part.verdict for part in found.gate(at_least=0.5).segments} == {"undecided"}


def test_an_order_that_scores_refute_is_said_first_and_decides_nothing():
    y, judge, _ = items_of(np.random.default_rng(1), labels_first=True)
    found = rate(y, judge, sequential=True)
    assert found.order is not None
    assert found.order.refuted
    assert found.sentence.startswith("The labelled items are not in the order in which they were")
    assert found.check(at_least=0.01) == "undecided"
    y, judge, _ = items_of(np.random.default_rng(1))
    fine = rate(y, judge, sequential=True)
    assert fine.order is not None
    assert not fine.order.refuted
    assert not fine.is_doubtful
    assert any("look as if they were drawn in this order" in note for note in fine.notes)


def test_the_order_is_tested_only_where_it_matters():
    y, judge, truth = items_of(np.random.default_rng(2), labels_first=True)
    assert rate(y, judge).order is None
    assert rate(truth, judge, sequential=True).order is None
    one_day = np.where(np.isnan(y), 0, 1)
    assert rate(y, judge, sequential=one_day).order is None
    assert rate(y, np.ones(600), sequential=True).order is None


def test_days_and_groups_are_tested_whole():
    y, judge, _ = items_of(np.random.default_rng(3), labels_first=True)
    days = np.minimum(np.arange(600) // 40, 3)
    by_day = rate(y, judge, sequential=days)
    assert by_day.order is not None
    assert by_day.order.refuted
    # the first 80 of 150 labels: two days
    assert by_day.order.share_drawn == pytest.approx(judge[:80].mean())
    groups = np.arange(600) // 5
    by_group = rate(y, judge, sequential=True, groups=groups)
    assert by_group.order is not None
    assert by_group.order.refuted


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.slow
def test_in_the_right_order_limits_hold_at_every_look(alpha):
    rng = np.random.default_rng([39, 5, int(10 * alpha)])
    draws = 400
    missed = refuted = 0
    for seed in range(draws):
        y, judge, truth = items_of(rng, 200, 60, share=(0.1, 0.3, 0.5)[seed % 3])
        failed = False
        for look in (20, 40, 60):
            seen = np.where(np.arange(200) < look, y, np.nan)
            found = rate(seen, judge, sequential=True, confidence_level=1 - alpha)
            failed |= not found.lower <= truth.mean() <= found.upper
            refuted += look == 60 and found.order is not None and found.order.refuted
        missed += failed
    assert binomtest(missed, draws, alpha, alternative="greater").pvalue > LEVEL
    assert binomtest(refuted, draws, 0.01, alternative="greater").pvalue > LEVEL


@pytest.mark.parametrize("right", [0.5, 0.9])
def test_a_file_sorted_by_label_is_noticed(right):
    """Known truth: in the wrong order the limits do not hold, but most such files are noticed, and
    no limits are the wrong way round.
    """
    rng = np.random.default_rng([39, 5, int(10 * right)])
    noticed = 0
    for _ in range(200):
        y, judge, _ = items_of(rng, 200, 60, share=0.4, right=right, labels_first=True)
        found = rate(y, judge, sequential=True)
        assert found.lower <= found.estimate <= found.upper
        noticed += found.is_doubtful
    assert noticed > 190
