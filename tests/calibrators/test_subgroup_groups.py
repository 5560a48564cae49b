"""Subgroups with whole groups, and ratios where events are rare."""

from itertools import count

import numpy as np
import pytest
from scipy import stats

from calibrant import SubgroupCalibrator
from calibrant.calibrators.subgroups.corrected import group_cap, three_parts
from calibrant.calibrators.subgroups.proof import SubgroupRows, error_limits, standard_errors
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.export import to_python
from calibrant.guarantee.relative import RARE
from calibrant.params.attributes import read_attributes
from calibrant.sample.reader import read_rows
from worlds.guarantees import assert_kept

SIZES = np.array([1, 3, 9])
"""Of groups; the rows of a group share their label, and larger groups have higher rates."""
RATES = np.array([0.2, 0.4, 0.6])
CAP = 4


def groups_of(rng: np.random.Generator, n_groups: int):
    """Scores, labels, attributes and groups."""
    kind = rng.integers(0, 3, n_groups)
    group = np.repeat(np.arange(n_groups), SIZES[kind])
    shared = rng.random(n_groups) < RATES[kind]
    old = rng.random(group.size) < 0.5
    return np.full(group.size, 0.4), shared[group].astype(int), {"old": old}, group


def true_rate() -> float:
    """Over rows of new groups, of which each counts as at most four rows."""
    weights = np.minimum(SIZES, CAP)
    return float((weights * RATES).sum() / weights.sum())


@pytest.mark.slow
def test_bets_on_whole_groups_hold_for_rows_of_new_groups():
    """`old` is a coin for each row, so that the mean error is the same in every subgroup."""
    truth = true_rate() - 0.4

    def broken(whole: bool):
        for seed in count():
            rng = np.random.default_rng(seed)
            scores, y, attributes, group = groups_of(rng, 250)
            (column,) = read_attributes(attributes)
            level = AttributeLevels.of(column)
            family = SubgroupFamily.of([level], [level.codes(column)], 1, 0.05)
            rows = read_rows(scores, y, groups=group).collect()
            unit = rows.groups.codes if whole else None
            weights = rows.units.capped(CAP) / CAP if whole else None
            seen = SubgroupRows(family, scores, rows.codes, unit, weights)
            limits = error_limits([seen], [standard_errors(seen)], 0.2)
            yield {"any": not (limits.lower <= truth).all() or not (truth <= limits.upper).all()}

    assert_kept(broken(whole=True), caught=0.25)
    with pytest.raises(AssertionError):
        assert_kept(broken(whole=False), caught=0.25)


@pytest.mark.broad
def test_groups_are_kept_whole_and_told():
    rng = np.random.default_rng(0)
    scores, y, attributes, group = groups_of(rng, 1_500)
    rows = read_rows(scores, y, groups=group).collect()
    parts = three_parts(rows, 0.1, 0)
    assert sum(np.unique(group[part]).size for part in parts) == np.unique(group).size
    assert sorted(np.concatenate(parts)) == list(range(len(y)))
    assert np.unique(group[parts[0]]).size == round(np.unique(group).size / 10)
    calibrator = SubgroupCalibrator().fit(scores, y, attributes=attributes, groups=group)
    guarantee = calibrator.guarantee_
    assert guarantee.max_group_size == 9
    assert guarantee.n_groups == np.unique(group[np.concatenate(parts[1:])]).size
    assert "groups" in guarantee.sentence
    assert "at most 9 rows" in guarantee.details
    alone = SubgroupCalibrator().fit(scores, y, attributes=attributes).guarantee_
    assert guarantee.epsilon > 1.4 * alone.epsilon
    again = SubgroupCalibrator.from_dict(calibrator.to_dict())
    for name in ("n_pilot", "n_proving", "n_groups", "max_group_size", "attributes"):
        assert getattr(again.guarantee_, name) == getattr(guarantee, name)
    assert again.guarantee_.epsilon == guarantee.epsilon


def test_a_large_group_fits_as_often_as_it_proves():
    """Up to a number of rows, the group at the cut, which a large one often is, would always fit."""
    group = np.concatenate([np.zeros(60, dtype=int), np.arange(1, 61)])
    fits = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        rows = read_rows(rng.random(120), np.arange(120) % 2, groups=group).collect()
        first, *_ = three_parts(rows, 0.5, 0)
        assert np.unique(group[first]).size == 30  # of 61
        fits += 0 in group[first]
    # 30 of 61 groups; both sides of a test of that share
    assert 0.01 < stats.binom.cdf(fits, 400, 30 / 61) < 0.99
    for pilot, n_groups in ((0.9, 55), (12, 6), (1, 1)):
        first, *_ = three_parts(rows, pilot, 0)
        assert np.unique(group[first]).size == n_groups


def test_the_cap_on_groups_is_given_or_the_largest_of_the_rows_to_fit():
    rng = np.random.default_rng(0)
    scores, y, attributes, group = groups_of(rng, 400)
    rows = read_rows(scores, y, groups=group).collect()
    assert group_cap(rows, None) == 9
    assert group_cap(rows, 2) == 2
    assert np.bincount(group, rows.units.capped(2)).max() == pytest.approx(2.0)
    with pytest.raises(InvalidTypeError) as error:
        SubgroupCalibrator().fit(scores, y, attributes=attributes, max_group_size=2)
    assert error.value.parameter == "max_group_size"
    with pytest.raises(InvalidValueError) as error:
        SubgroupCalibrator(pilot=0.5).fit(scores, y, attributes=attributes, groups=group * 0)
    assert error.value.parameter == "pilot"


def rare_rows(rng: np.random.Generator, n: int):
    """Scores of about 1 %, with rates that are half as large again for the old."""
    scores = rng.choice([0.005, 0.01, 0.02], n)
    old = rng.random(n) < 0.5
    rates = scores * np.where(old, 1.5, 1.0)
    return scores, rates, old


@pytest.mark.broad
def test_rare_events_have_ratios_in_every_subgroup():
    rng = np.random.default_rng(0)
    scores, rates, old = rare_rows(rng, 60_000)
    y = rng.random(60_000) < rates
    calibrator = SubgroupCalibrator().fit(scores, y, attributes={"old": old})
    guarantee = calibrator.guarantee_
    assert guarantee.is_rare
    assert float(guarantee.value[0]) < RARE
    relative = guarantee.relative
    assert (relative.lower > 0.3).all()
    assert (relative.upper < 3.0).all()
    table = guarantee.subgroups
    assert np.array_equal(table.columns["relative_lower"], relative.lower)
    assert "times the average prediction" in guarantee.details
    again = SubgroupCalibrator.from_dict(calibrator.to_dict()).guarantee_
    assert np.array_equal(again.relative.upper, relative.upper)
    assert "def " in to_python(calibrator)


def test_usual_events_have_none():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.2, 0.6, 4_000)
    old = rng.random(4_000) < 0.5
    y = rng.random(4_000) < scores
    guarantee = SubgroupCalibrator().fit(scores, y, attributes={"old": old}).guarantee_
    assert not guarantee.is_rare
    assert "relative_lower" not in guarantee.subgroups.columns
    assert "times the average prediction" not in guarantee.details


@pytest.mark.slow
def test_ratios_hold_for_new_rows_in_all_subgroups_at_once():
    scores, rates, old = rare_rows(np.random.default_rng(1), 200_000)
    everyone = {"old": old}

    def broken():
        for seed in count():
            rng = np.random.default_rng(seed)
            own, own_rates, own_old = rare_rows(rng, 4_000)
            y = rng.random(4_000) < own_rates
            fit = SubgroupCalibrator(confidence_level=0.8)
            calibrator = fit.fit(own, y, attributes={"old": own_old}, classes=(False, True))
            predicted = calibrator.predict(scores, attributes=everyone)
            said = calibrator.guarantee_
            inside = {"all rows": old | True, "old = True": old, "old = False": ~old}
            ratios = [
                rates[inside[name]].mean() / predicted[inside[name]].mean() for name in said.regions
            ]
            lower = said.relative.lower - 1e-3
            upper = said.relative.upper + 1e-3
            yield {"any": not ((lower <= ratios) & (ratios <= upper)).all()}

    assert_kept(broken(), 0.2, caught=0.4)
