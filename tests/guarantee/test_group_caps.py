"""Groups with a cap that is learned: values and limits are for the same rate, and a difference from
rows is told.
"""

import re
import warnings

import numpy as np
import pytest

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    Calibrator,
    ClassWiseCalibrator,
    TopLabelCalibrator,
    audit,
    compare_models,
    threshold,
)
from calibrant.errors import GroupCapWarning
from calibrant.metrics import reliability_table
from worlds.group_caps import Giants
from worlds.guarantees import assert_rare

COMMON = Giants(rare=0.02, large=300)
RARE = Giants(rare=0.002, large=3000)


def told(call, *given, **beside):
    """What a call returns, and the caps that it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", GroupCapWarning)
        return call(*given, **beside), [str(one.message) for one in caught]


def without_giants(world, n_groups, share, seed=0):
    """Rows where giants are among the counted groups and not among the first few: as many as are
    drawn on average.
    """
    rng = np.random.default_rng(seed)
    while True:
        scores, y, groups = world.draw(rng, n_groups)
        fitted, _ = told(BinningCalibrator(1).fit, scores, y, groups=groups)
        if fitted.guarantee_.statement.groups.max_size == world.small and y.mean() < share:
            return scores, y, groups


def test_a_tenth_of_the_groups_finds_giants_that_one_group_misses():
    for seed in range(5):
        scores, y, groups = COMMON.draw(np.random.default_rng(seed), 2000)
        fitted, caps = told(BinningCalibrator(1).fit, scores, y, groups=groups)
        facts = fitted.guarantee_.statement.groups
        assert (facts.aside, facts.max_size) == (200, 300)
        assert fitted.guarantee_.lower[0] <= y.mean() <= fitted.guarantee_.upper[0]
        assert not caps
        assert facts.above_cap == 0.0
        assert "above that" not in fitted.guarantee_.details


@pytest.mark.parametrize("kind", [BinningCalibrator, Calibrator])
def test_a_rate_of_rows_outside_the_limits_is_told(kind):
    scores, y, groups = without_giants(RARE, 2000, 0.4)
    fitted, caps = told(kind(n_bins=1).fit, scores, y, groups=groups)
    found = fitted.guarantee_
    facts = fitted.guarantee_.statement.groups
    assert not found.lower[0] <= y.mean() <= found.upper[0]
    assert found.lower[0] <= RARE.capped_rate(1) <= found.upper[0]
    assert len(caps) == 1
    assert "in 1 region, the rate among all rows lies outside the limits" in caps[0]
    share = float(
        re.search(
            r"In a region, a group counts as at most 1 row; ([\d.]+)% of the rows counted are above",
            found.details,
        )[1]
    )
    assert share == pytest.approx(100 * facts.above_cap, abs=0.06)
    assert facts.above_cap > 0.5
    assert facts.farthest == pytest.approx(0.9 - y.mean(), abs=0.1)
    assert any("lies outside the limits" in text for text in found.notes)
    again = type(fitted).from_dict(fitted.to_dict()) if hasattr(fitted, "from_dict") else fitted
    assert again.guarantee_.sentence == found.sentence
    assert set(found.notes) <= set(again.guarantee_.notes)


def test_a_cap_that_is_given_is_not_warned_of_and_its_share_is_said():
    scores, y, groups = without_giants(RARE, 2000, 0.4)
    fitted, caps = told(BinningCalibrator(1).fit, scores, y, groups=groups, max_group_size=1)
    assert not caps
    assert "of the rows counted are above that" in fitted.guarantee_.details
    by_group, caps = told(BinningCalibrator(1).fit, scores, y, groups=groups, group_target="groups")
    assert not caps
    assert "above that" not in by_group.guarantee_.details


def test_weighted_groups_are_capped_and_told_alike():
    scores, y, groups = without_giants(RARE, 2000, 0.4)
    weight = np.random.default_rng(1).uniform(0.5, 1.0, size=y.size)
    given = {"groups": groups, "importance_weight": weight}
    for kind in (BinningCalibrator, Calibrator):
        fitted, caps = told(kind(n_bins=1).fit, scores, y, weight_bound=1.0, **given)
        found = fitted.guarantee_
        rate = np.average(y, weights=weight)
        assert not found.lower[0] <= rate <= found.upper[0]
        assert found.lower[0] <= found.value[0] <= found.upper[0]
        assert len(caps) == 1
        assert re.search(
            r"in a region is capped at [\d.]+; [\d.]+% of the weight is above that", found.details
        )


@pytest.mark.parametrize("target", ["precision", "recall", "npv", "specificity"])
def test_thresholds_measure_what_they_prove(target):
    level = 0.8 if target in ("precision", "npv") else 0.5
    for seed in range(20):  # until no giant is among the groups that are drawn
        scores, y, groups = without_giants(RARE, 2000, 0.4, seed)
        if target in ("npv", "specificity"):
            y = 1 - y
            scores = 1.0 - scores
        found, caps = told(threshold, y, scores, groups=groups, **{target: level})
        if found.max_group_size == 1:
            break
    assert found.max_group_size == 1
    share = getattr(found.only, target)
    assert share.value >= level
    assert share.lower == level
    assert found.above_cap > 0.5
    assert re.search(r"at most 1 row; [\d.]+% of the rows counted are above that", found.details)
    assert len(caps) == (target in ("precision", "npv"))  # giants have their scores like all others
    again = type(found).from_dict(found.to_dict())
    assert again.sentence == found.sentence


def test_shares_at_a_threshold_count_groups_up_to_the_cap():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 9, size=3000)
    groups = np.repeat(np.arange(3000), sizes)
    scores = rng.uniform(size=groups.size)
    y = (rng.uniform(size=groups.size) < scores ** np.where(sizes > 4, 3.0, 0.5)[groups]).astype(
        int
    )
    found = threshold(y, scores, precision=0.7, groups=groups, max_group_size=2, pilot=60)
    largest = found.max_group_size
    cut = found.threshold

    def capped(of, right):
        own = np.bincount(groups[of], minlength=3000)
        hits = np.bincount(groups[of & right], minlength=3000)
        weight = np.minimum(own, largest)
        return (weight * hits / np.maximum(own, 1)).sum() / weight.sum()

    above = scores >= cut
    positive = y == 1
    every = np.ones(y.size, dtype=bool)
    expected = {
        "selected": capped(every, above),
        "precision": capped(above, positive),
        "recall": capped(positive, above),
        "specificity": capped(~positive, ~above),
        "npv": capped(~above, ~positive),
    }
    for name, share in expected.items():  # but for the 60 groups that only chose where to look
        assert getattr(found.only, name).value == pytest.approx(share, abs=0.008), name
    assert expected["precision"] - y[above].mean() > 0.012


@pytest.mark.broad
def test_an_audit_tells_the_share_above_a_cap_that_pilot_groups_set():
    for seed in range(8):
        scores, y, groups = RARE.draw(np.random.default_rng(seed), 2000)
        details = audit(y, scores, groups=groups).details
        above = re.search(r"as at most 1 row \([\d.]+% of the rows are above that\)", details)
        assert bool(above) == ("as at most 1 row" in details)


def test_an_audit_of_few_groups_sets_one_aside():
    rng = np.random.default_rng(0)
    for n_groups in (2, 3, 5, 11):
        groups = np.repeat(np.arange(n_groups), 30)
        scores = rng.uniform(size=groups.size)
        found = audit((rng.uniform(size=groups.size) < scores).astype(int), scores, groups=groups)
        assert found.n_set_aside == 30 * -(-n_groups // 10)
        assert "at most 30 rows" in " ".join(found.assumptions)


def test_other_answers_by_groups_tell_the_share_above_the_cap():
    scores, y, groups = without_giants(RARE, 2000, 0.4)
    table, caps = told(reliability_table, y, scores, n_bins=1, groups=groups)
    assert len(caps) == 1
    assert table.rate[0] == pytest.approx(0.9, abs=0.05)
    models = {"one": scores, "other": scores**2}
    found = compare_models(y, models, groups=groups, max_group_size=1, random_state=0)
    assert re.search(r"as at most 1 row \([\d.]+% of the rows are above that\)", found.population)


@pytest.mark.broad
def test_estimators_of_several_columns_and_classifiers_tell_it_once_for_each_guarantee():
    from sklearn.linear_model import LogisticRegression

    scores, y, groups = without_giants(RARE, 2000, 0.4)
    columns = np.column_stack([1.0 - scores, scores])
    _, caps = told(TopLabelCalibrator(n_bins=1).fit, columns, y, groups=groups)
    assert len(caps) == 1
    _, caps = told(ClassWiseCalibrator(n_bins=1).fit, columns, y, groups=groups)
    assert ["of class 0" in caps[0], "of class 1" in caps[1], len(caps)] == [True, True, 2]
    model = CalibratedClassifier(LogisticRegression(), calibrator=BinningCalibrator(1))
    fitted, caps = told(model.fit, scores[:, None], y, groups=groups)
    assert len(caps) == (fitted.guarantee_.statement.groups.n_apart > 0)


def check_kept(missed, draws, alpha):
    assert_rare(missed, draws, alpha)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("kind", [BinningCalibrator, Calibrator])
def test_limits_hold_for_the_capped_rate_and_a_warning_marks_those_that_exclude_the_rate_of_rows(
    kind, alpha
):
    missed = 0
    silent = 0
    draws = 24
    for seed in range(draws):
        world = (RARE, COMMON, Giants(0.005, 60, small=3, rate=0.6))[seed % 3]
        scores, y, groups = world.draw(np.random.default_rng(seed), 600)
        calibrator = kind(n_bins=1, confidence_level=1 - alpha, random_state=seed)
        fitted, caps = told(calibrator.fit, scores, y, groups=groups)
        found = fitted.guarantee_
        facts = fitted.guarantee_.statement.groups
        truth = world.capped_rate(facts.max_size)
        missed += not found.lower[0] <= truth <= found.upper[0]
        rate = fitted.tally_.positives[0] / fitted.tally_.counts[0]
        silent += facts.above_cap > 0 and not found.lower[0] <= rate <= found.upper[0] and not caps
    check_kept(missed, draws, alpha)
    assert silent == 0


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_thresholds_hold_for_the_capped_share(alpha):
    missed = 0
    draws = 40
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        world = Giants(rare=0.004, large=200, rate=0.8)
        scores, y, groups = world.draw(rng, 800)
        settings = {"precision": 0.8, "confidence_level": 1 - alpha}
        found, _ = told(threshold, y, scores, groups=groups, **settings)
        if found.threshold is not None:
            missed += world.capped_rate(found.max_group_size, 1.0 - found.threshold) < 0.8
    check_kept(missed, draws, alpha)
