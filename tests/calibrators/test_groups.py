"""`groups=` in `fit`: bad input, giants, model files, merged tallies, segments and classes."""

import json

import numpy as np
import pytest

import calibrant
from calibrant import (
    BinningCalibrator,
    Calibrator,
    ClassWiseCalibrator,
    Partition,
    TopLabelCalibrator,
    scored,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.calibrators.regions.grouped_rows import _pilot_size, groups_that_cut, n_pilot_groups
from calibrant.calibrators.regions.parameters import DataAssumptions
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.intervals import MonotoneBand
from calibrant.limits.bet_limits import bet_limits
from calibrant.sample.reader import read_rows
from read_marks import unmarked
from worlds.errors import about

SPREAD_OF_ORDERS = 0.15
"""Four standard deviations of a limit over 60 orders of bets, as a share of the width."""
CALIBRATORS = [
    BinningCalibrator(3),
    Calibrator(n_bins=3),
    ScalingBinningCalibrator(n_bins=3),
]


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=lambda found: type(found).__name__)
def test_a_model_file_keeps_the_guarantee(rows, calibrator):
    scores, y, groups = rows
    fitted = calibrator.fit(scores, y, groups=groups)
    read = type(fitted).from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert unmarked(read.guarantee_) == str(fitted.guarantee_)
    assert "if new groups are like these" in fitted.guarantee_.sentence
    assert "future groups are independent draws" in fitted.guarantee_.details
    assert read.guarantee_.design_effect == fitted.guarantee_.design_effect
    assert (
        read.predict_interval(scores[:50]).tolist() == fitted.predict_interval(scores[:50]).tolist()
    )


@pytest.mark.parametrize("calibrator", CALIBRATORS[:2], ids=lambda found: type(found).__name__)
def test_neither_the_order_of_rows_nor_the_kind_of_labels_matters(rows, calibrator):
    scores, y, groups = rows
    first = calibrator.fit(scores, y, groups=groups).guarantee_
    order = np.random.default_rng(1).permutation(len(y))
    again = calibrator.fit(scores[order], y[order], groups=groups[order].astype(object)).guarantee_
    assert str(again) == str(first)
    assert again.lower.tolist() == first.lower.tolist()


def test_every_row_its_own_group_is_the_fit_without_groups(rows):
    scores, y, _ = rows
    for kind in (BinningCalibrator, Calibrator):
        plain = kind().fit(scores, y)
        alone = kind().fit(scores, y, groups=np.arange(len(y)), max_group_size=1)
        assert plain.guarantee_.sentence == alone.guarantee_.sentence
        assert plain.guarantee_.lower.tolist() == alone.guarantee_.lower.tolist()
        # the choice of the interval by a look at the sizes is sound only under this assumption
        assumed = "no group has more than one row, among these rows and in the future"
        assert alone.guarantee_.assumptions == (*plain.guarantee_.assumptions, assumed)
        assert (
            kind.from_dict(alone.to_dict()).guarantee_.assumptions == alone.guarantee_.assumptions
        )
        twice = kind().fit(scores, y, groups=np.arange(len(y)) // 2, max_group_size=1).guarantee_
        assert twice.statement.groups is not None
        assert assumed not in twice.assumptions
        not_said = kind().fit(scores, y, groups=np.arange(len(y)))
        assert not_said.guarantee_.statement.groups.max_size == 1


def assert_close(one, other):
    """The same rates, and limits as far apart as those of two random orders of bets.

    A fit draws the order for its rows, which a tally does not have.
    """
    np.testing.assert_allclose(one.value, other.value, rtol=1e-12)
    width = other.upper - other.lower
    assert (np.abs(one.lower - other.lower) < SPREAD_OF_ORDERS * width).all()
    assert (np.abs(one.upper - other.upper) < SPREAD_OF_ORDERS * width).all()


def test_merged_tallies_give_the_same_limits(rows):
    scores, y, groups = rows
    bins = Partition.fixed_width(3)
    whole = BinningCalibrator(partition=bins).fit(scores, y, groups=groups, max_group_size=5)
    parts = [groups % 2 == k for k in (0, 1)]
    tallies = [
        read_rows(scores[part], y[part], groups=groups[part]).tally(bins)[0] for part in parts
    ]
    merged = BinningCalibrator.from_tally(bins, tallies[1] + tallies[0], max_group_size=5)
    at_once = BinningCalibrator.from_tally(bins, whole.tally_, max_group_size=5)
    assert merged.guarantee_.to_dict() == at_once.guarantee_.to_dict()
    assert_close(merged.guarantee_, whole.guarantee_)
    with pytest.raises(InvalidValueError, check=about("max_group_size", "None")):
        BinningCalibrator.from_tally(bins, tallies[0])
    alike = BinningCalibrator.from_tally(bins, tallies[1] + tallies[0], group_target="groups")
    assert (
        alike.guarantee_.statement.groups.max_size == 1
    )  # a group counts by the share of its rows in a region
    fitted = BinningCalibrator(partition=bins).fit(
        scores, y, groups=groups, max_group_size=1, group_target="groups"
    )
    assert_close(alike.guarantee_, fitted.guarantee_)


@pytest.mark.parametrize("name", ["segments", "sample_weight"])
def test_what_fit_cannot_use_is_not_among_its_arguments(name):
    scores = np.linspace(0, 1, 50)
    y = np.arange(50) % 2
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        MonotoneBand().fit(scores, y, **{name: np.ones(50)})


def test_counts_and_groups_together_are_refused_with_advice_that_can_be_followed():
    scores = np.linspace(0, 1, 50)
    y = np.arange(50) % 2
    groups = np.arange(50) // 2
    with pytest.raises(InvalidTypeError, match="repeat the rows instead"):
        BinningCalibrator().fit(scores, y, groups=groups, sample_weight=np.full(50, 3))


@pytest.mark.filterwarnings(
    "error::RuntimeWarning", "ignore::calibrant.errors.WeakGuaranteeWarning"
)
def test_many_segments_with_groups_are_told_to_be_fewer():
    scores = np.linspace(0, 1, 400)
    y = np.arange(400) % 2
    found = BinningCalibrator(1).fit(
        scores, y, groups=np.arange(400) // 2, segments=np.arange(400) % 20, max_group_size=2
    )
    assert "Use fewer segments or more groups." in found.guarantee_.details


def test_one_group_is_refused_or_says_nothing():
    scores = np.linspace(0, 1, 50)
    y = np.arange(50) % 2
    with pytest.raises(InvalidValueError, check=about("groups", "1 group")):
        BinningCalibrator().fit(scores, y, groups=np.zeros(50, int))
    with pytest.warns(calibrant.errors.WeakGuaranteeWarning, match="Use more groups"):
        found = BinningCalibrator(1, partition="uniform").fit(
            scores, y, groups=np.zeros(50, int), max_group_size=50
        )
    assert found.guarantee_.epsilon > 0.45
    assert found.guarantee_.lower[0] < 0.1


@pytest.mark.broad
def test_a_group_of_a_million_rows_does_no_harm():
    rng = np.random.default_rng(2)
    groups = np.concatenate([np.zeros(10**6, int), np.repeat(np.arange(1, 201), 5)])
    scores = rng.uniform(size=groups.size)
    y = np.concatenate([np.ones(10**6, int), rng.integers(0, 2, size=1000)])
    found = BinningCalibrator(2).fit(scores, y, groups=groups, max_group_size=5).guarantee_
    assert (found.lower < 0.5).all()
    assert (found.upper > 0.5).all()
    assert found.value == pytest.approx(0.5, abs=0.1)  # a million rows count as five


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([1, 2], "one entry per score"),
        ([None] * 2000, "missing values"),
        (["a", 1] * 1000, "of one kind"),
    ],
)
def test_bad_groups(rows, groups, said):
    for calibrator in CALIBRATORS:
        with pytest.raises(CalibrantError, match=said):
            calibrator.fit(rows[0], rows[1], groups=groups)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"pilot": None}, "pilot must be"),
        ({"interval": "kl"}, 'interval must be "auto" with groups'),
        ({"segment_rule": 10}, "segment_rule must not be a number with groups"),
        ({"max_group_size": 0}, "max_group_size must be"),
        ({"group_target": "people"}, "group_target must be"),
    ],
)
def test_parameters_that_do_not_go_with_groups(rows, parameters, said):
    scores, y, groups = rows
    stated = {
        name: parameters[name] for name in ("max_group_size", "group_target") if name in parameters
    }
    calibrator = BinningCalibrator(
        **{name: value for name, value in parameters.items() if name not in stated}
    )
    with pytest.raises(CalibrantError, match=said):
        calibrator.fit(scores, y, groups=groups, **stated)


@pytest.mark.broad
def test_a_restored_model_of_given_bins_assumes_what_it_assumed(rows):
    scores, y, groups = rows
    bins = Partition.fixed_width(2)
    for kind in (BinningCalibrator, Calibrator):
        for beside in ({}, {"importance_weight": np.ones(len(y))}):
            bound = 1.0 if beside else None
            found = kind(partition=bins).fit(scores, y, groups=groups, weight_bound=bound, **beside)
            assert not any("cut from pilot" in text for text in found.guarantee_.assumptions)
            read = kind.from_dict(json.loads(json.dumps(found.to_dict())))
            assert read.guarantee_.assumptions == found.guarantee_.assumptions


def test_segments_and_groups(rows):
    scores, y, groups = rows
    segments = np.where(np.arange(len(y)) % 3 == 0, "a", "b")
    found = BinningCalibrator(2).fit(scores, y, segments=segments, groups=groups)
    assert found.partition_.n_regions == 4
    one = BinningCalibrator(2, segment_rule=["a"]).fit(scores, y, segments=segments, groups=groups)
    assert one.partition_.n_regions == 4


def test_nothing_is_proved_of_segments_that_no_group_set_aside_has(rows):
    scores, y, groups = rows
    found = BinningCalibrator(2).fit(scores, y, segments=np.full(len(y), "a"), groups=groups)
    read = read_rows(scores, y, groups=groups).collect()
    aside = read.chosen(read.draw(100, 0))
    segments = np.full(len(y), "a", dtype=object)
    segments[groups == groups[~aside][0]] = "new"
    one = BinningCalibrator(2, pilot=100).fit(scores, y, segments=segments, groups=groups)
    assert one.proof_.design.unproved == (2,)
    assert (one.guarantee_.lower[2], one.guarantee_.upper[2]) == (0, 1)
    again = BinningCalibrator.from_dict(one.to_dict())
    assert again.guarantee_.lower.tolist() == one.guarantee_.lower.tolist()
    state = one.to_dict()
    state["state"]["groups"]["unproved"] = [3]
    with pytest.raises(InvalidValueError, check=about("unproved", "[3]")):
        BinningCalibrator.from_dict(state)
    assert found.proof_.design.unproved == ()


@pytest.mark.broad
def test_classes_of_new_groups(rows):
    scores, _, groups = (column[:1000] for column in rows)
    label = np.random.default_rng(3).integers(0, 3, size=len(groups))
    columns = np.column_stack([scores, 1 - scores, scores / 2])
    weight = np.random.default_rng(4).uniform(0.5, 1.0, size=len(groups))
    for kind in (ClassWiseCalibrator, TopLabelCalibrator):
        for method in ("curve", "binning"):
            given = {"groups": groups, "max_group_size": 5, "group_target": "groups"}
            found = kind(2, method=method).fit(columns, label, **given)
            assert "groups" in str(found.guarantee_)
            weighted = kind(2, method=method).fit(
                columns, label, importance_weight=weight, weight_bound=1.0
            )
            for one in (found, weighted):
                again = kind.from_dict(json.loads(json.dumps(one.to_dict())))
                assert unmarked(again.guarantee_) == str(one.guarantee_)
                assert (
                    again.predict_interval(columns[:9]).tolist()
                    == one.predict_interval(columns[:9]).tolist()
                )
            assert weighted.guarantee_.is_proved
            assert (
                not kind(2, method=method)
                .fit(columns, label, importance_weight=weight)
                .guarantee_.is_proved
            )
            with pytest.raises(InvalidValueError, match="importance_weight must be at most"):
                kind(2, method=method).fit(
                    columns, label, importance_weight=weight, weight_bound=0.6
                )


def test_the_size_of_groups_reaches_scaling_binning(rows):
    scores, y, groups = rows
    found = ScalingBinningCalibrator(n_bins=2).fit(
        scores, y, groups=groups, max_group_size=3, group_target="groups"
    )
    assert found.guarantee_.statement.groups.target == "groups"
    rate = ScalingBinningCalibrator(n_bins=2).fit(scores, y, groups=groups, max_group_size=3)
    assert rate.guarantee_.statement.groups.max_size == 3


@pytest.mark.broad
def test_scored_data_with_a_column_of_groups_gives_the_same(rows):
    pytest.importorskip("pyarrow")
    scores, y, groups = rows
    data = scored({"p": scores, "y": y, "customer": groups}, score="p", label="y", group="customer")
    for kind in (BinningCalibrator, Calibrator):
        assert str(kind().fit(data).guarantee_) == str(
            kind().fit(scores, y, groups=groups).guarantee_
        )


def test_how_many_groups_are_set_aside():
    def aside(n_groups, fixed=False, **settings):
        stated = DataAssumptions(
            **{
                name: settings.pop(name)
                for name in ("max_group_size", "group_target")
                if name in settings
            }
        )
        return _pilot_size(BinningCalibrator(10, **settings), stated, n_groups, fixed)

    assert [aside(n, pilot=7) for n in (70, 8, 7, 2)] == [
        7,
        7,
        6,
        1,
    ]  # one group is left to be counted
    assert aside(100, pilot=0.3) == 0.3
    assert [aside(n, fixed=True) for n in (1000, 25, 4, 2)] == [
        100,
        3,
        1,
        1,
    ]  # a tenth, to fix the cap on sizes
    assert aside(1, fixed=True, max_group_size=5) == 0
    assert aside(1000, max_group_size=5) == aside(1000) == groups_that_cut(1000, 10)
    assert groups_that_cut(2, 10) == 1
    for fixed in (True, False):
        with pytest.raises(InvalidValueError, check=about("groups", "1 group")):
            aside(1, fixed=fixed)


def test_a_tenth_of_the_groups_fixes_the_cap_whatever_is_asked_for():
    def aside(n_groups, n_bins=10, **settings):
        stated = DataAssumptions(
            **{
                name: settings.pop(name)
                for name in ("max_group_size", "group_target")
                if name in settings
            }
        )
        return _pilot_size(BinningCalibrator(n_bins, **settings), stated, n_groups, fixed=False)

    assert [aside(n, n_bins=1) for n in (2000, 15, 2)] == [200, 2, 1]
    assert [aside(n) for n in (100_000, 1_000_000)] == [10_000, 100_000]
    assert aside(100, pilot=7) == 10
    assert aside(100, pilot=0.03) == 0.1
    for no_cap_is_learned in ({"max_group_size": 5}, {"group_target": "groups"}):
        assert aside(2000, n_bins=1, **no_cap_is_learned) == 1
        assert aside(100, pilot=7, **no_cap_is_learned) == 7
        assert aside(100, pilot=0.03, **no_cap_is_learned) == 0.03


def test_bins_within_segments_that_are_given_need_no_size_of_groups(monkeypatch):
    tails = []

    def noted(units, tail):
        tails.append(tail[:2].tolist())
        return bet_limits(units, tail)

    monkeypatch.setattr("calibrant.limits.region_limits.bet_limits", noted)
    rng = np.random.default_rng(12)
    scores = rng.uniform(size=400)
    groups = np.repeat(np.arange(100), 4)
    segments = np.tile(["a", "b"], 200)
    y = (rng.uniform(size=400) < scores).astype(int)
    weight = rng.uniform(size=400)
    bins = Partition.by_segment({"a": Partition.fixed_width(2), "b": Partition.fixed_width(3)})
    given = BinningCalibrator(
        partition=bins, confidence_level=0.875
    )  # five regions share what four share below
    cut = BinningCalibrator(partition="uniform", n_bins=2, segment_rule=["a"], confidence_level=0.9)
    for beside in ({}, {"importance_weight": weight}):
        one, other = (
            kind.fit(scores, y, segments=segments, groups=groups, **beside) for kind in (given, cut)
        )
        assert one.tally_.counts[:2].tolist() == other.tally_.counts[:2].tolist()
        assert (
            one.guarantee_.statement.groups.max_size
            == other.guarantee_.statement.groups.max_size
            == 2
        )
        np.testing.assert_allclose(one.guarantee_.value[:2], other.guarantee_.value[:2], rtol=1e-12)
        np.testing.assert_allclose(tails, 0.0125, rtol=1e-12)
    assert len(tails) == 4


def test_at_least_one_group_is_left_to_be_counted() -> None:
    assert [n_pilot_groups(n, 10) for n in (1, 2, 3, 8, 20)] == [0, 1, 1, 4, 10]
