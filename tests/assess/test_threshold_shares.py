"""Limits of the shares at a threshold, against independent formulas: what part of alpha each of
them gets.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import beta, ksone

from calibrant import threshold
from calibrant.assess.threshold.cut import Confusion, measured, measured_in_groups
from calibrant.assess.threshold.finder import Search
from calibrant.errors import InvalidTypeError, InvalidValueError
from worlds.guarantees import assert_rare

SEEN = Confusion(tp=40, fp=10, fn=20, tn=130)
SHARES = {
    "selected": (50, 200),
    "precision": (40, 50),
    "recall": (40, 60),
    "specificity": (130, 140),
    "npv": (130, 150),
}
ALPHA = 0.1


def exact(k, n, tail):
    return beta.ppf(tail, k, n - k + 1) if k else 0.0, (
        beta.isf(tail, k + 1, n - k) if k < n else 1.0
    )


def assert_follows(found, base, recall, specificity):
    """The other shares are the extremes over the limits of the share of positives and of both
    classes.
    """
    assert (found["recall"].lower, found["recall"].upper) == pytest.approx(recall, rel=1e-9)
    assert (found["specificity"].lower, found["specificity"].upper) == pytest.approx(
        specificity, rel=1e-9
    )
    corners = [(b, r, s) for b in base for r in recall for s in specificity]
    selected = [b * r + (1 - b) * (1 - s) for b, r, s in corners]
    precision = [b * r / (b * r + (1 - b) * (1 - s)) if b * r else 0.0 for b, r, s in corners]
    npv = [(1 - b) * s / ((1 - b) * s + b * (1 - r)) if s else 0.0 for b, r, s in corners]
    for name, values in (("selected", selected), ("precision", precision), ("npv", npv)):
        assert (found[name].lower, found[name].upper) == pytest.approx(
            (min(values), max(values)), rel=1e-9
        )
    for name, (k, n) in SHARES.items():
        assert found[name].value == pytest.approx(k / n)


def test_at_any_threshold_three_quarters_of_alpha_are_for_the_classes():
    level = 1 - math.sqrt(1 - 0.75 * ALPHA)  # of each class
    reach = [ksone.isf(level / 2, n) for n in (60, 140)]
    recall, specificity = (
        (max(k / n - far, 0), min(k / n + far, 1))
        for k, n, far in ((40, 60, reach[0]), (130, 140, reach[1]))
    )
    found = measured(SEEN, "precision", 0.0, ALPHA)
    assert_follows(found, exact(60, 200, ALPHA / 8), recall, specificity)


@pytest.mark.parametrize("target", ["recall", "specificity"])
def test_at_a_rank_the_other_class_and_the_share_of_positives_get_half_of_alpha_each(target):
    parts = {
        "recall": exact(40, 60, ALPHA / 4),
        "specificity": exact(130, 140, ALPHA / 4),
        target: (0.5, 1.0),
    }
    found = measured(SEEN, target, 0.5, ALPHA)
    assert_follows(found, exact(60, 200, ALPHA / 4), parts["recall"], parts["specificity"])


def test_at_a_fixed_threshold_every_share_has_exact_limits():
    found = measured(SEEN, "precision", 0.75, 0.3, n_tried=3)  # five shares, both sides
    for name, (k, n) in SHARES.items():
        low, high = exact(k, n, 0.01)
        assert (found[name].lower, found[name].upper) == pytest.approx(
            (max(low, 0.75) if name == "precision" else low, high)
        )


def test_without_rows_of_a_class_nothing_is_known():
    empty = Confusion(tp=0, fp=0, fn=0, tn=30)
    for found in (
        measured(empty, "npv", 0.2, 0.1),
        measured(empty, "npv", 0.2, 0.1, n_tried=1),
    ):
        assert math.isnan(found["recall"].value)
        assert (found["recall"].lower, found["recall"].upper) == (0.0, 1.0)
        assert (found["precision"].lower, found["precision"].upper) == (0.0, 1.0)
    shares = {name: k / n for name, (k, n) in SHARES.items()}
    grouped = measured_in_groups(shares, "recall", 0.6)
    assert (grouped["recall"].lower, grouped["recall"].upper) == (0.6, 1.0)
    assert (grouped["precision"].lower, grouped["precision"].upper) == (0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "target", [{"precision": 0.7}, {"recall": 0.8}, {"precision": 0.7, "method": "look"}]
)
def test_the_share_selected_among_rows_without_labels_is_covered_and_narrow(target):
    """Scores are uniform, so that the share selected is 1 - threshold.

    500 labels alone say little about it.
    """
    missed = 0
    tried = 0
    for seed in range(100):
        rng = np.random.default_rng([5, seed])
        scores = rng.uniform(size=500)
        y = rng.uniform(size=500) < scores
        more = rng.uniform(size=20_000)
        found = threshold(
            y, scores, unlabelled_scores=more, confidence_level=0.5, random_state=seed, **target
        )
        if found.threshold is None:
            continue
        tried += 1
        share = 1 - found.threshold
        missed += not found.selected.lower <= share <= found.selected.upper
        assert found.selected.upper - found.selected.lower < 0.02
        alone = threshold(y, scores, confidence_level=0.5, random_state=seed, **target)
        assert found.threshold == alone.threshold
        assert (
            found.selected.upper - found.selected.lower
            < alone.selected.upper - alone.selected.lower
        )
    assert tried > 50
    assert_rare(missed, tried, 0.05)


@pytest.mark.parametrize(
    "beside",
    [
        {"segments": [1, 1, 2, 2]},
        {"groups": [1, 2, 3, 4]},
        {"importance_weight": [1.0] * 4, "weight_bound": 1},
    ],
)
def test_rows_without_labels_go_without_segments_groups_and_weights(beside):
    with pytest.raises(InvalidTypeError) as raised:
        threshold([0, 1, 0, 1], [0.1, 0.9, 0.2, 0.8], recall=0.5, unlabelled_scores=[0.5], **beside)
    assert raised.value.parameter == "unlabelled_scores"


@pytest.mark.parametrize("scores", [[], [0.5, np.nan]])
def test_rows_without_labels_have_scores(scores):
    with pytest.raises(InvalidValueError) as raised:
        threshold([0, 1, 0, 1], [0.1, 0.9, 0.2, 0.8], recall=0.5, unlabelled_scores=scores)
    assert raised.value.parameter == "unlabelled_scores"


def test_a_target_is_broken_in_full_only_below_its_level_and_by_more_than_rounding() -> None:
    def broken(capped: float, in_full: float) -> bool:
        search = SimpleNamespace(broken=[], targets={"precision": 0.5})
        Search._compare_in_full(search, "precision", capped, in_full)
        return bool(search.broken)

    assert broken(0.6, 0.49)
    assert not broken(0.6, 0.5)
    assert broken(0.4, 0.39)
    assert not broken(0.4, 0.4)
    assert not broken(0.4, 0.4 - 1e-15)
