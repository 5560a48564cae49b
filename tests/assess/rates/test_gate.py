"""The gate with segments: what is shown, refuted or undecided, and for which part."""

import numpy as np
import pytest
from scipy.stats import binomtest, hypergeom

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
    assert gate.answer == found.check(at_least=0.72) == "refuted"
    assert [part.segment for part in gate.of("refuted")] == ["a"]
    assert (gate.whole.verdict, gate.whole_verdict) == ("undecided", "undecided")
    assert gate.simultaneous
    assert gate.sentence.startswith(
        "The target of at least 72% is not met in segment 'a'; it is not"
    )
    assert "not decided for all items" in gate.sentence
    assert [row["verdict"] for row in gate.to_dict()["verdicts"]] == [
        part.verdict for part in (gate.whole, *gate.segments)
    ]
    open_ = found.gate(at_least=0.5)
    assert (open_.answer, open_.whole.verdict) == ("undecided", "shown")
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
    assert gate.answer == "shown"
    assert not gate.simultaneous
    assert gate.tables()[0].about == "The limits hold on their own, with 95% confidence."
    weakest = [part.lower if side == "at_least" else 1 - part.upper for part in parts]
    assert min(weakest) < (target if side == "at_least" else 1 - target)
    # with three segments each part's own limit gets 5/8 of alpha
    north = rate(y[names == "a"], np.ones(400), confidence_level=1.0 - 2.0 * 0.05 * 5 / 8)
    assert (north.lower, north.upper) == (
        found.segments[0].lower_alone,
        found.segments[0].upper_alone,
    )


def test_without_segments_each_limit_of_the_gate_may_fail_with_alpha():
    y, _, _ = items_of(SHARES, 400, 300, np.random.default_rng(2))
    found = rate(y, np.ones(1200))
    twice = rate(y, np.ones(1200), confidence_level=0.9)
    assert (found.lower_alone, found.upper_alone) == (twice.lower, twice.upper)
    gate = found.gate(at_least=0.5)
    assert (gate.answer, gate.segments) == ("shown", ())
    assert gate.sentence == (
        "At least 72.2% of these 1,200 items are positive (one-sided, 95% confidence; estimate 76%;"
        " 300 labels on items drawn at random), so the target of at least 50% is met."
    )
    assert found.gate(at_least=0.9).sentence.startswith("At most 79.5% of these 1,200 items")
    undecided = found.gate(at_most=0.75).sentence
    assert undecided.startswith("At least 72.2%, and at most 79.5%, of these 1,200 items are")
    assert "(each with 95% confidence" in undecided
    assert undecided.endswith("so the target of at most 75% is not decided.")
    assert gate.assumptions == (*found.assumptions, "the target was fixed before labels were seen")
    assert gate.notes[0] == (
        "The verdict is wrong with probability at most 5%; limits are one-sided, so"
        ' "at least" and "at most" each hold with 95% confidence, but not both together.'
    )


def test_the_limit_that_decides_is_called_one_sided_because_it_is_chosen_after_the_labels():
    """Just below the target, the verdict is wrong in 4% of all samples, and the limit that decides it
    in 8%: the lower one if the target is met, the upper one if not.
    """
    n_items, n_labels, positives, target = 3_000, 300, 2_699, 0.9
    truth = positives / n_items
    law = hypergeom.pmf(np.arange(n_labels + 1), n_items, positives, n_labels)
    wrong = np.zeros(2)
    for seen in range(220, n_labels + 1):
        y = np.full(n_items, np.nan)
        y[:n_labels] = np.arange(n_labels) < seen
        found = rate(y, np.ones(n_items))
        gate = found.gate(at_least=target)
        decides = {"shown": found.lower_alone > truth, "refuted": found.upper_alone < truth}
        wrong += law[seen] * np.array([gate.answer == "shown", decides.get(gate.answer, False)])
        assert ("(one-sided, 95% confidence" in gate.sentence) == (gate.answer in decides)
    assert wrong[0] < 0.05 < wrong[1] < 0.1


def each_error(n_items, n_labels, alpha, target):
    """The largest probability, over all truths, that `rate` is wrongly shown or refuted, and that
    an interval at the full level misses.
    """
    worst = np.zeros(2)
    found = []
    for seen in range(n_labels + 1):
        y = np.full(n_items, np.nan)
        y[:n_labels] = np.arange(n_labels) < seen
        found.append(rate(y, np.ones(n_items), confidence_level=1.0 - alpha, method="labels"))
    verdicts = np.array([one.check(at_least=target) for one in found])
    for truth in range(n_items + 1):
        law = hypergeom.pmf(np.arange(n_labels + 1), n_items, truth, n_labels)
        wrong = "refuted" if truth >= target * n_items - 1e-9 else "shown"
        missed = [not one.lower <= truth / n_items <= one.upper for one in found]
        worst = np.maximum(worst, [law[verdicts == wrong].sum(), law[missed].sum()])
    return worst


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.8])
@pytest.mark.parametrize(("n_items", "n_labels"), [(12, 1), (30, 8), (60, 25)])
def test_all_samples_together_are_wrong_at_most_alpha(n_items, n_labels, alpha):
    """By enumeration, at each truth, for targets at and between the possible rates."""
    largest = 0.0
    for target in (0.02, 0.5, 1 / 3, 0.9, 0.98):
        error, missed = each_error(n_items, n_labels, alpha, target)
        assert error <= alpha + 1e-9
        assert missed <= alpha + 1e-9
        largest = max(largest, error)
    if n_labels > 1:
        assert largest > alpha / 2  # all of alpha is used, not half of it


def test_the_gate_needs_as_few_labels_as_a_one_sided_limit():
    """0.95^59 < 0.05 < 0.95^58."""
    for n_labels, verdict in ((59, "shown"), (58, "undecided")):
        y = np.full(1_000_000, np.nan)
        y[:n_labels] = 1
        found = rate(y, np.ones(1_000_000), method="labels")
        assert found.check(at_least=0.95) == verdict


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
        wrong["exit 0"] += gate.answer == "shown" and not all(meets.values())
        wrong["exit 1"] += gate.answer == "refuted" and all(meets.values())
    for times in wrong.values():
        assert binomtest(times, draws, alpha, alternative="greater").pvalue > LEVEL


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_a_gate_that_is_asked_at_every_look_is_wrong_at_most_alpha(alpha):
    """Known truth: 60% of 60 items, at the goal or just below it; asked after each third label."""
    rng = np.random.default_rng([45, round(10 * alpha)])
    truth = (np.arange(60) < 36).astype(float)
    draws = 60
    wrong = dict.fromkeys((0.6, 0.61), 0)
    for seed in range(draws):
        when = rng.permutation(60)
        verdicts = {target: set() for target in wrong}
        for looked in range(3, 61, 6):
            y = np.where(when < looked, truth, np.nan)
            found = rate(
                y,
                np.where(truth == 1, 0.7, 0.4),
                sequential=when,
                confidence_level=1.0 - alpha,
                random_state=seed,
            )
            for target, said in verdicts.items():
                said.add(found.check(at_least=target))
        wrong[0.6] += "refuted" in verdicts[0.6]
        wrong[0.61] += "shown" in verdicts[0.61]
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
    assert gate.rate.is_doubtful
    assert gate.tables()[0].shown == ()
    assert gate.sentence.startswith("The limits contradict each other")
    assert (gate.answer, gate.verdict, gate.next_steps) == ("undecided", "unclear", ())


@pytest.mark.parametrize(
    ("goal", "side", "other"),
    [
        ({"at_least": 0.9}, "at most", "at least"),
        ({"at_least": 0.7}, "at least", "at most"),
        ({"at_most": 0.9}, "at most", "at least"),
        ({"at_most": 0.7}, "at least", "at most"),
    ],
)
def test_no_interval_at_another_level_stands_beside_the_limit_that_decides(goal, side, other):
    y, _, _ = items_of({"a": 0.8}, 2_000, 400, np.random.default_rng(2))
    found = rate(y, np.random.default_rng(3).random(2_000))
    gate = found.gate(**goal)
    assert gate.answer in ("shown", "refuted")
    assert gate.sentence.startswith(side.capitalize())
    (remark,) = gate.remarks
    limit = {"at least": found.labels_lower_alone, "at most": found.labels_upper_alone}[side]
    assert f"the labels alone {side} {100 * limit:.3g}"[:-1] in remark
    assert other not in gate.sentence.partition(", so ")[0] + remark
    (picture,) = gate.pictures()
    assert (picture.drawn[1].low, picture.drawn[1].high) == (
        [found.labels_lower_alone],
        [found.labels_upper_alone],
    )
    undecided = found.gate(at_least=0.8)
    assert undecided.answer == "undecided"
    assert "the labels alone at least" in undecided.remarks[0]
    assert ", and at most" in undecided.remarks[0]
