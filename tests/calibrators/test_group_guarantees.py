"""Guarantees with groups hold for rows of new groups, weighted or not, for every calibrator."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare
from sklearn.base import clone

from calibrant import (
    BinningCalibrator,
    Calibrator,
    LabelShiftCalibrator,
    OnlineCalibrator,
    Partition,
    ShiftCalibrator,
    VennAbersCalibrator,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.intervals import MonotoneBand
from calibrant.params.random import RandomSource
from calibrant.sample.groups import Groups
from calibrant.sample.reader import read_rows
from calibrant.tripod import ConformalSets
from read_marks import unmarked
from worlds.guarantees import assert_rare
from worlds.one_draw import one_of_each

ONE_OF_EACH = [
    VennAbersCalibrator(),
    ConformalSets(),
    OnlineCalibrator(n_bins=2, warmup=50),
    LabelShiftCalibrator(n_bins=2),
]
OF_A_RANDOM_ROW = [
    MonotoneBand(),  # of whole groups
    OnlineCalibrator(n_bins=2, warmup=50),
    LabelShiftCalibrator(n_bins=2),
]


def mixed_groups(rng, n_groups):
    """Groups of two kinds, one of them ten times as large: the rate of a random row of a random
    group is its score.
    """
    mood = rng.choice([-1.0, 1.0], size=n_groups)
    groups = np.repeat(np.arange(n_groups), np.where(mood > 0, 10, 1))
    scores = rng.uniform(size=groups.size)
    rates = scores + 0.8 * mood[groups] * np.minimum(scores, 1 - scores)
    return scores, (rng.uniform(size=groups.size) < rates).astype(int), groups


@pytest.mark.parametrize("calibrator", ONE_OF_EACH, ids=lambda found: type(found).__name__)
def test_guarantees_about_independent_rows_draw_one_row_of_each_group(rows, calibrator):
    scores, y, groups = rows
    told = {"target_prior": 0.4} if isinstance(calibrator, LabelShiftCalibrator) else {}
    fitted = clone(calibrator).fit(scores, y, groups=groups, **told)
    said = str(fitted.guarantee_)
    drawn_one = "a row drawn at random from a new group, and every group counts the same"
    assert drawn_one in fitted.guarantee_.details
    streams = isinstance(fitted, OnlineCalibrator)  # each of which has a seed of its own
    drawn = one_of_each(read_rows(scores, y, groups=groups), fitted._stream.seed if streams else 0)
    assert groups[drawn].tolist() == list(range(400))
    alone = clone(calibrator).fit(scores[drawn], y[drawn], **told)
    scored_too = alone
    if not streams:
        scored_too = clone(calibrator).fit(read_rows(scores, y, groups=groups), **told)
    read = type(fitted).from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert unmarked(read.guarantee_) == said
    for other in (alone, scored_too, read):
        for method in (
            "predict",
            "predict_interval",
            "predict_multiprobability",
            "predict_p_value",
        ):
            if hasattr(fitted, method):
                found, wanted = (
                    getattr(one, method)(scores[:50]).tolist() for one in (other, fitted)
                )
                assert found == wanted


@pytest.mark.parametrize("calibrator", OF_A_RANDOM_ROW, ids=lambda found: type(found).__name__)
@pytest.mark.broad
def test_guarantees_hold_for_a_random_row_of_a_new_group(calibrator):
    told = {"target_prior": 0.4} if isinstance(calibrator, LabelShiftCalibrator) else {}
    missed = 0
    missed_without = 0
    n_draws = 25
    for seed in range(n_draws):
        scores, y, groups = mixed_groups(np.random.default_rng(seed), 300)
        missed += _is_broken(clone(calibrator).fit(scores, y, groups=groups, **told))
        if seed < 5:
            missed_without += _is_broken(clone(calibrator).fit(scores, y, **told))
    assert_rare(missed, n_draws, 0.1)
    assert missed_without >= 3  # where groups are not given, large groups decide


def _is_broken(fitted):
    if isinstance(fitted, MonotoneBand):
        rates = np.linspace(0.05, 0.95, 19)
        limits = fitted.predict_interval(rates)
    else:
        edges = np.concatenate([[0.0], fitted.partition_.edges, [1.0]])
        rates = (edges[1:] + edges[:-1]) / 2
        limits = fitted.guarantee_.interval
        limits = np.column_stack([limits.lower, limits.upper])
    if isinstance(fitted, LabelShiftCalibrator):
        odds = rates / (1 - rates) * (0.4 / 0.6)
        rates = odds / (1 + odds)
    return bool(((limits[:, 0] > rates) | (limits[:, 1] < rates)).any())


@pytest.mark.broad
def test_sets_cover_a_random_row_of_a_new_group():
    covered = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        scores, y, groups = mixed_groups(rng, 60)
        sets = ConformalSets().fit(scores, y, groups=groups)
        new, label, _ = mixed_groups(rng, 1)
        covered += bool(sets.predict_set(new[:1], coverage=0.9)[0, label[0]])
    assert binomtest(covered, 150, 0.9, alternative="less").pvalue > 0.001


def test_a_stream_says_that_groups_must_come_whole(rows):
    scores, y, groups = rows
    halves = [
        OnlineCalibrator(Partition.fixed_width(2)).fit(scores[k], y[k], groups=groups[k])
        for k in (groups < 200, groups >= 200)
    ]
    assert halves[0].tally_.n_rows == 200
    plain = OnlineCalibrator(Partition.fixed_width(2)).fit(scores[:10], y[:10])
    assert (
        "no group has rows in two batches, or in two streams that are merged"
        not in plain.guarantee_.assumptions
    )
    merged = plain.merge(halves[0]).merge(halves[1])
    assert (
        "no group has rows in two batches, or in two streams that are merged"
        in merged.guarantee_.assumptions
    )


def test_one_row_of_each_group_is_drawn_uniformly_and_alone():
    groups = Groups.of(np.repeat(np.arange(3000), 4), 12_000)
    places = np.stack([groups.one_row_each(RandomSource.of(seed, "test")) % 4 for seed in range(2)])
    assert chisquare(np.bincount(places[0] * 4 + places[1], minlength=16)).pvalue > 0.001
    assert chisquare(np.bincount(places[0, ::2] * 4 + places[0, 1::2], minlength=16)).pvalue > 0.001


def test_rows_that_were_sampled_by_label_are_not_drawn_from_groups(rows):
    scores, y, groups = rows
    with pytest.raises(InvalidTypeError, match="sampling_rates must be None with groups"):
        LabelShiftCalibrator().fit(scores, y, groups=groups, sampling_rates=(0.1, 1.0))


def test_shifted_rows_have_one_row_of_each_group(rows):
    scores, y, groups = rows
    drawn = one_of_each(read_rows(scores, y, groups=groups))
    weights = 0.5 + scores
    with_groups = ShiftCalibrator(n_bins=2, interval="empirical-bernstein").fit(
        scores, y, importance_weight=weights, groups=groups, weight_bound=1.5
    )
    alone = ShiftCalibrator(n_bins=2, interval="empirical-bernstein").fit(
        scores[drawn], y[drawn], importance_weight=weights[drawn], weight_bound=1.5
    )
    assert with_groups.guarantee_.lower.tolist() == alone.guarantee_.lower.tolist()
    target = np.random.default_rng(3).uniform(size=500)
    moved = LabelShiftCalibrator(n_bins=2).fit(scores, y, groups=groups, target_scores=target)
    by_hand = LabelShiftCalibrator(n_bins=2).fit(scores[drawn], y[drawn], target_scores=target)
    assert moved.target_prior_ == by_hand.target_prior_


def surveyed(rng, n_groups):
    """Groups of two kinds and sizes, whose rows have weights that depend on the label, the score
    and the kind.
    """
    scores, y, groups = mixed_groups(rng, n_groups)
    large = np.bincount(groups)[groups] > 1
    return (
        scores,
        y,
        groups,
        np.where(y, 0.25, 1.0) * np.where(large, 0.5, 1.0) * (0.5 + scores / 2),
    )


@pytest.mark.broad
@pytest.mark.parametrize("target", ["rows", "groups"])
def test_guarantees_of_weighted_groups_hold(target):
    n_draws = 20
    missed = 0
    scores, y, groups, weights = surveyed(np.random.default_rng(1), 60_000)
    if target == "groups":
        weights = weights / np.bincount(groups, weights)[groups]
    everyone = (scores, y, weights)
    halves = (scores < 0.5, scores >= 0.5)
    truth = [np.average(y[here], weights=weights[here]) for here in halves]
    bins = Partition.fixed_width(2)
    off_limits = 0
    for seed in range(n_draws):
        scores, y, groups, weights = surveyed(np.random.default_rng(seed), 200)
        beside = {"importance_weight": weights, "groups": groups}
        found = (
            BinningCalibrator(partition=bins)
            .fit(scores, y, **beside, group_target=target)
            .guarantee_
        )
        missed += bool(((found.lower > truth) | (found.upper < truth)).any())
        assert found.epsilon < 0.25
        curve = Calibrator(partition=bins).fit(scores, y, **beside, group_target=target)
        off = everyone[1] - curve.predict(everyone[0])
        errors = [np.average(off[here], weights=everyone[2][here]) for here in halves]
        limits = curve.guarantee_.errors
        off_limits += bool(((limits.lower > errors) | (limits.upper < errors)).any())
        assert curve.guarantee_.epsilon < 0.4
    for number in (missed, off_limits):
        assert_rare(number, n_draws, 0.1)


def test_weights_of_one_are_no_weights(rows):
    scores, y, groups = rows
    for parameters in ({"max_group_size": 5, "weight_bound": 1.0}, {"group_target": "groups"}):
        plain = BinningCalibrator(3).fit(scores, y, groups=groups, **parameters).guarantee_
        weighted = {"groups": groups, "importance_weight": np.ones(len(y)), **parameters}
        ones = BinningCalibrator(3).fit(scores, y, **weighted)
        np.testing.assert_allclose(ones.guarantee_.lower, plain.lower, atol=1e-12)
        np.testing.assert_allclose(ones.guarantee_.value, plain.value, atol=1e-12)
        read = BinningCalibrator.from_dict(json.loads(json.dumps(ones.to_dict())))
        assert unmarked(read.guarantee_) == str(ones.guarantee_)
        assert read.guarantee_.value.tolist() == ones.guarantee_.value.tolist()


def test_weighted_groups_in_other_calibrators(rows):
    scores, y, groups = rows
    beside = {"importance_weight": 0.5 + scores / 2, "groups": groups}
    scaled = ScalingBinningCalibrator(n_bins=2).fit(scores, y, **beside, weight_bound=1.0)
    assert "future rows count in proportion to their weight" in scaled.guarantee_.details
    assert "A group's total weight in a region is capped at" in scaled.guarantee_.details
    curve = Calibrator(n_bins=2).fit(scores, y, **beside, weight_bound=1.0)
    assert "future rows count in proportion to their weight" in curve.guarantee_.details
    assert "A group's total weight in a region is capped at" in curve.guarantee_.details
    read = Calibrator.from_dict(json.loads(json.dumps(curve.to_dict())))
    assert unmarked(read.guarantee_) == str(curve.guarantee_)
    assert read.predict_interval(scores).tolist() == curve.predict_interval(scores).tolist()
    alone = Calibrator(n_bins=2).fit(scores, y, groups=groups, max_group_size=5).guarantee_
    weighted = {
        "groups": groups,
        "importance_weight": np.ones(len(y)),
        "max_group_size": 5,
        "weight_bound": 1.0,
    }
    same = Calibrator(n_bins=2).fit(scores, y, **weighted).guarantee_
    np.testing.assert_allclose([same.lower, same.margin], [alone.lower, alone.margin], atol=1e-6)
    with pytest.raises(
        InvalidValueError, match="weight_bound must be given with importance weights and max_group"
    ):
        BinningCalibrator().fit(scores, y, **beside, max_group_size=5)
    with pytest.raises(InvalidValueError, match="importance_weight must be at most weight_bound"):
        BinningCalibrator().fit(scores, y, **beside, weight_bound=0.6)
    state = BinningCalibrator(2).fit(scores, y, **beside, weight_bound=1.0).to_dict()
    for damaged in (None, 5, [[1.0, 1.0]], [[1.0, 1.0]] * 3):
        state["state"]["weighted"]["rows"] = damaged
        with pytest.raises(CalibrantError) as caught:
            BinningCalibrator.from_dict(state)
        assert caught.value.parameter == "weighted.rows"
