"""The gate with segments: what is shown, refuted or undecided, and for which part."""

import numpy as np
import pytest
from scipy.stats import binomtest

from calibrant import rate
from calibrant.errors import InvalidValueError

LEVEL = 1e-3
SHARES = {"a": 0.5, "b": 0.85, "c": 0.9}


def items_of(shares, size, n_labels, rng):
    """Labels of items in segments with exactly these shares of positives; all have one score."""
    names = np.repeat(list(shares), size)
    truth = np.concatenate([np.arange(size) < round(size * share) for share in shares.values()])
    y = np.full(truth.size, np.nan)
    drawn = rng.choice(truth.size, n_labels, replace=False)
    y[drawn] = truth[drawn]
    return y, truth, names


def test_a_refuted_segment_is_named_and_the_whole_is_not_called_refuted():
    y, truth, names = items_of(SHARES, 400, 300, np.random.default_rng(0))
    assert truth.mean() == 0.75
    found = rate(y, np.ones(1200), segments=names)
    gate = found.gate(at_least=0.72)
    assert gate.verdict == found.check(at_least=0.72) == "refuted"
    assert [part.segment for part in gate.of("refuted")] == ["a"]
    assert (gate.whole.verdict, gate.whole_verdict) == ("undecided", "undecided")
    assert gate.simultaneous
    assert gate.sentence.startswith("A rate of at least 72% is refuted in segment 'a'; it is not")
    assert "not decided for all items" in gate.sentence
    assert [row["verdict"] for row in gate.to_dict()["verdicts"]] == [
        part.verdict for part in (gate.whole, *gate.segments)
    ]
    open_ = found.gate(at_least=0.5)
    assert (open_.verdict, open_.whole.verdict) == ("undecided", "shown")
    assert [part.segment for part in open_.of("undecided")] == ["a"]


@pytest.mark.parametrize("side", ["at_least", "at_most"])
def test_all_shown_needs_no_shared_alpha(side):
    """Each part's own limit reaches the target; limits that hold simultaneously do not."""
    y, _, names = items_of({"a": 0.9, "b": 0.9, "c": 0.9}, 400, 300, np.random.default_rng(1))
    if side == "at_most":
        y = 1 - y
    found = rate(y, np.ones(1200), segments=names)
    parts = (found, *found.segments)
    target = min(part.lower_alone for part in parts)
    if side == "at_most":
        target = max(part.upper_alone for part in parts)
    gate = found.gate(**{side: target})
    assert gate.verdict == "shown"
    assert not gate.simultaneous
    assert "on its own, with 95% confidence" in gate.sentence
    weakest = [part.lower if side == "at_least" else 1 - part.upper for part in parts]
    assert min(weakest) < (target if side == "at_least" else 1 - target)
    north = rate(y[names == "a"], np.ones(400))
    assert (north.lower, north.upper) == (
        found.segments[0].lower_alone,
        found.segments[0].upper_alone,
    )


def test_without_segments_limits_on_their_own_are_the_limits():
    y, _, _ = items_of(SHARES, 400, 300, np.random.default_rng(2))
    found = rate(y, np.ones(1200))
    assert (found.lower_alone, found.upper_alone) == (found.lower, found.upper)
    gate = found.gate(at_least=0.5)
    assert (gate.verdict, gate.segments) == ("shown", ())
    assert gate.sentence == "A rate of at least 50% is shown."


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("method", [pytest.param("exact", marks=pytest.mark.slow), "labels"])
def test_no_part_is_wrongly_shown_or_refuted(alpha, method):
    """Known truths: the goal is missed by a hair in one part, and met exactly in the others.

    The exit is 0 only if everything is shown. That is wrong in at most alpha of all draws, and so
    is any wrong statement about a part.
    """
    rng = np.random.default_rng([39, 4, int(10 * alpha)])
    draws = 400
    wrong = {"statement": 0, "exit 0": 0, "exit 1": 0}
    for seed in range(draws):
        shares = {"a": 0.695, "b": 0.7, "c": 0.7} if seed % 2 else {"a": 0.7, "b": 0.7, "c": 0.7}
        y, truth, names = items_of(shares, 200, 150, rng)
        judge = np.where(rng.random(600) < 0.85, truth, ~truth)
        found = rate(y, judge, segments=names, method=method, confidence_level=1 - alpha)
        gate = found.gate(at_least=0.7)
        meets = {None: truth.mean() >= 0.7} | {name: share >= 0.7 for name, share in shares.items()}
        wrong["statement"] += any(not meets[part.segment] for part in gate.of("shown")) or any(
            meets[part.segment] for part in gate.of("refuted")
        )
        wrong["exit 0"] += gate.verdict == "shown" and not all(meets.values())
        wrong["exit 1"] += gate.verdict == "refuted" and all(meets.values())
    for times in wrong.values():
        assert binomtest(times, draws, alpha, alternative="greater").pvalue > LEVEL


def test_the_gate_with_segments_has_power():
    rng = np.random.default_rng([39, 4])
    shown = refuted = 0
    for _ in range(60):
        y, _, names = items_of({"a": 0.9, "b": 0.92, "c": 0.95}, 300, 300, rng)
        shown += rate(y, np.ones(900), segments=names).check(at_least=0.8) == "shown"
        y, _, names = items_of({"a": 0.5, "b": 0.92, "c": 0.95}, 300, 300, rng)
        gate = rate(y, np.ones(900), segments=names).gate(at_least=0.75)
        refuted += [part.segment for part in gate.of("refuted")] == ["a"]
    assert shown > 40
    assert refuted > 55


def test_a_segment_that_cuts_groups_unequally_is_refused_for_the_population():
    """All groups have 4 items; segment "a" has one item of most groups and all of some."""
    groups = np.repeat(np.arange(50), 4)
    place = np.tile(np.arange(4), 50)
    segments = np.where((place == 0) | (groups < 5), "a", "b")
    y = (groups % 3 == 0).astype(int)
    given = {"groups": groups, "segments": segments, "target": "population"}
    with pytest.raises(InvalidValueError, match="groups must all have the same size"):
        rate(y, np.zeros(200), **given)
    whole = np.where(groups < 25, "a", "b")
    assert rate(y, np.zeros(200), **given | {"segments": whole}).segments[0].n_labels == 100


def test_limits_in_doubt_are_not_said_to_hold():
    y = np.r_[np.zeros(100), np.ones(50), np.full(450, np.nan)]
    gate = rate(y, np.full(600, 0.5), sequential=True).gate(at_most=0.9)
    assert gate.is_doubtful
    assert gate.tables()[0].about == "The limits are in doubt, so nothing is decided."
    assert gate.sentence.endswith("is not decided, because the limits are in doubt.")
