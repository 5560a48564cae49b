"""Thresholds: what is said where nothing can be proved, and what is refused."""

import re

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import scored, threshold
from calibrant.errors import CalibrantError, InvalidTypeError
from worlds.thresholds import draws


def test_weights_need_a_bound():
    rng = np.random.default_rng(0)
    table = {"p": rng.uniform(size=200), "y": rng.integers(0, 2, size=200), "w": np.ones(200)}
    data = scored(table, score="p", label="y", weight="w")
    with pytest.raises(InvalidTypeError, match="weight_bound must be given"):
        threshold(data, recall=0.9)
    with pytest.raises(InvalidTypeError, match="weight_bound must be None without"):
        threshold(table["y"], table["p"], recall=0.9, weight_bound=2.0)
    found = threshold(
        data, recall=0.9, weight_bound=1.0
    )  # a weight as large as the bound keeps every row
    assert (
        found.cuts[0].threshold == threshold(table["y"], table["p"], recall=0.9).cuts[0].threshold
    )
    assert "weighted population" in found.assumptions[1]
    halved = threshold(data, recall=0.9, weight_bound=2.0)
    assert not any("order" in assumed for assumed in halved.assumptions)
    assert 60 < halved.n_rows < 140
    given = {
        "importance_weight": table["w"],
        "weight_bound": 2.0,
        "groups": np.arange(200) // 4,
        "max_group_size": 3,
    }
    together = threshold(table["y"], table["p"], recall=0.5, **given)
    assert "a group counts as at most 3 rows that were kept" in together.assumptions


def test_which_rows_of_groups_are_kept_by_weight_does_not_depend_on_their_order():
    rng = np.random.default_rng(3)
    rows = [
        rng.integers(0, 2, size=300),
        rng.uniform(size=300),
        rng.permutation(300),
        rng.uniform(size=300),
    ]
    found = []
    for order in (np.arange(300), np.lexsort((rows[1], rows[0])), np.argsort(rows[1])):
        y, scores, groups, weight = (column[order] for column in rows)
        given = {
            "importance_weight": weight,
            "weight_bound": 1.0,
            "groups": groups,
            "max_group_size": 1,
        }
        found.append(threshold(y, scores, recall=0.6, **given))
    assert found[0].threshold is not None
    assert {(one.threshold, one.n_rows) for one in found} == {(found[0].threshold, found[0].n_rows)}
    assert 120 < found[0].n_rows < 180


def test_an_impossible_target_is_said_to_be_one():
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=3_000)
    y = rng.uniform(size=3_000) < 0.3
    found = threshold(y, scores, precision=0.9)
    assert found.threshold is None
    assert found.labels_needed is None
    assert found.reason.endswith(
        "no threshold looks good enough, so more labels like these are unlikely to help"
    )
    assert "A precision of 90% cannot be guaranteed: " in found.details
    assert not found.predict(scores).any()


def test_a_few_rows_do_not_show_that_more_would_not_help():
    scores = np.linspace(0.1, 0.9, 5)
    found = threshold([0, 0, 1, 0, 0], scores, precision=0.5)
    assert found.labels_needed is None
    assert found.reason.endswith("too few rows to tell whether more labels would help")


def test_too_few_labels_are_told_how_many_would_do():
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=60)
    y = rng.uniform(size=60) < scores
    found = threshold(y, scores, precision=0.9)
    assert found.threshold is None
    assert found.labels_needed is None or found.labels_needed > 60
    few = threshold(y, scores, recall=0.999)
    assert few.threshold is None
    assert "needs at least 2,302 positive rows" in few.reason
    assert few.labels_needed > 2_302


@pytest.mark.parametrize("n", [1_000, 8_000])
def test_labels_needed_are_more_than_the_rows_or_not_told(n):
    told = 0
    untold = 0
    for seed in range(8):  # rates are above the target only below a part where they are too low
        rng = np.random.default_rng(seed)
        scores = rng.integers(0, 100, n) / 100
        y = rng.uniform(size=n) < np.where(scores >= 0.85, 0.85, np.where(scores > 0.6, 0.96, 0.3))
        for found in (threshold(y, scores, precision=0.9), threshold(~y, 1.0 - scores, npv=0.9)):
            if found.threshold is not None:
                continue
            told += found.labels_needed is not None
            assert found.labels_needed is None or found.labels_needed > n
            if "more labels may be enough" in found.reason:
                untold += 1
                assert found.labels_needed is None
                assert "labels would probably be enough" not in found.sentence
    assert told if n == 1_000 else untold


def test_labels_needed_for_recall_count_the_drawn_rows_too():
    pa = pytest.importorskip("pyarrow")
    _, scores, y = next(draws(lambda s: s, 6_000, 1))
    for n, level in ((6_000, 0.999), (4_800, 0.999)):
        data = scored(pa.table({"p": scores[:n], "y": y[:n]}), score="p", label="y")
        found = threshold(data, recall=level, method="look")
        assert found.threshold is None
        if n == 6_000:  # enough positives, but no drawn score is low enough
            assert found.labels_needed is None
            assert "more labels may be enough" in found.reason
        else:
            assert "needs at least 2,302 positive rows" in found.reason
            assert found.labels_needed > n


def test_the_reason_names_the_threshold_and_its_counts():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 100, 3_000) / 100
    y = rng.uniform(size=3_000) < scores
    for target, kind in (("precision", "positive"), ("npv", "negative")):
        reason = threshold(y, scores, **{target: 0.995}).reason
        said = (
            r"the strongest evidence found: of ([\d,]+) rows with score (\S+) (\S+), ([\d,]+) are"
            rf" {kind}, which is"
        )
        size, sign, cut, right = re.match(said, reason).groups()
        inside = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[sign](
            scores, float(cut)
        )
        of_kind = inside & (y if target == "precision" else ~y)
        assert (f"{inside.sum():,}", f"{of_kind.sum():,}") == (size, right)


@pytest.mark.parametrize("target", ["precision", "npv", "recall", "specificity"])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_tiny_data_prove_nothing_and_raise_nothing(target, n):
    found = threshold(np.arange(n) % 2, np.linspace(0, 1, n), **{target: 0.9})
    assert found.threshold is None


@pytest.mark.parametrize("target", ["precision", "npv", "recall", "specificity"])
def test_equal_scores_select_all_or_nothing(target):
    y = np.arange(1_000) < 900
    found = threshold(y, np.full(1_000, 0.5), **{target: 0.6})
    chosen = found.predict([0.5])
    if target in ("precision", "recall"):
        assert chosen.tolist() == [True]
    assert found.threshold is None or found.only.selected.value in (0.0, 1.0)


def test_one_class_needs_the_name_of_the_other():
    with pytest.raises(CalibrantError, match="two classes"):
        threshold(np.ones(50), np.linspace(0, 1, 50), precision=0.9)
    found = threshold(np.ones(200), np.linspace(0, 1, 200), precision=0.9, classes=(0, 1))
    assert found.threshold is not None
    assert found.only.specificity.lower == 0.0
    assert (
        threshold(np.zeros(50), np.linspace(0, 1, 50), recall=0.9, classes=(0, 1)).threshold is None
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "the target must be one of"),
        ({"precision": 0.9, "recall": 0.9}, "the target must be one of"),
        ({"precision": 1.0}, "precision must be a number strictly between 0 and 1"),
        ({"recall": "high"}, "recall must be"),
        ({"precision": 0.9, "confidence_level": 90}, "confidence_level must be"),
        ({"precision": 0.9, "method": "luck"}, "method must be"),
        ({"precision": 0.9, "pilot": 1.5}, "pilot must be"),
        ({"recall": 0.9, "start": 0.5}, "start must be used with one target"),
        ({"precision": 0.9, "pilot": 100, "method": "look"}, "pilot must leave some rows"),
        ({"precision": 0.9, "start": "high"}, "start must be a finite number"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(CalibrantError, match=message):
        threshold(np.arange(100) % 2, np.linspace(0, 1, 100), **arguments)


def test_a_reason_does_not_call_counts_too_few_that_would_do_as_the_only_test():
    """The start of 125 rows has less than half of alpha: 107 positives have a tail of 0.06, above
    its part.
    """
    scores = np.arange(500.0)
    y = np.zeros(500, dtype=int)
    y[375:482] = 1  # of the 125 highest scores, all but the 18 highest
    assert 0.05 < binom.sf(106, 125, 0.8) < 0.1
    reason = threshold(y, scores, precision=0.8).reason
    assert (
        "of 125 rows with score > 374.0, 107 are positive, which would be enough as the only test"
        in reason
    )
    assert threshold(y, scores, precision=0.8, start=375.0).threshold is not None


@pytest.mark.parametrize(
    "how", [{}, {"method": "look"}, {"start": 0.5}, {"groups": [1, 2]}, {"segments": ["a", "a"]}]
)
def test_nothing_is_proved_where_no_row_was_kept_by_its_weight(how) -> None:
    found = threshold(
        [0, 1], [0.2, 0.8], precision=0.7, importance_weight=[1.0, 1.0], weight_bound=1e12, **how
    )
    assert found.threshold is None
    assert found.reason == "no row was kept by its weight"


@pytest.mark.parametrize("target", ["precision", "recall"])
def test_a_cap_that_hinders_is_named_and_only_then(target):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(1_500), rng.integers(1, 6, size=1_500))
    scores = rng.uniform(size=groups.size)
    y = scores > 0.1  # the precision is 1 above 0.1, and the recall is 1 below it
    given = {target: 0.9, "groups": groups}
    hindered = threshold(y, scores, **given, max_group_size=1_000)
    assert hindered.threshold is None
    assert re.search(r"[\d,]+ (positive )?rows in [\d,]+ groups", hindered.reason)
    assert "because a new group may count as 1,000 rows; a smaller max_group" in hindered.reason
    assert threshold(y, scores, **given, max_group_size=5).threshold is not None
    few = groups < 20  # a bet gains at most a factor 1 / 0.9 from a group, so 22 are needed
    less = {target: 0.9, "groups": groups[few], "max_group_size": 1_000}
    too_few = threshold(y[few], scores[few], **less)
    assert too_few.threshold is None
    assert too_few.reason.endswith("which is not enough")
    chance = threshold(rng.integers(0, 2, size=groups.size), scores, **given, max_group_size=5)
    assert chance.threshold is None or target == "recall"
    assert "max_group_size" not in (chance.reason or "")


def test_groups_of_one_size_are_not_hindered_by_a_cap_of_that_size():
    groups = np.repeat(np.arange(30), 10)
    scores = np.tile(np.linspace(0.0, 1.0, 10), 30)
    found = threshold(np.tile([0, 1], 150), scores, npv=0.9, groups=groups, max_group_size=10)
    assert "max_group_size" not in found.reason
    assert re.search(r"rows in \d+ groups? with score", found.reason)


def test_a_table_with_groups_says_why_limits_are_missing():
    groups = np.repeat(np.arange(500), 3)
    scores = np.random.default_rng(1).uniform(size=1_500)
    found = threshold(scores > 0.3, scores, precision=0.8, groups=groups)
    assert "(no limit derived)" in found.details
    assert "With groups, the only limits are those that follow from a target." in found.details
    alone = threshold(scores > 0.3, scores, precision=0.8)
    assert "With groups" not in alone.details
