"""Groups counted whole under covariate shift, against populations whose rates are known."""

import json
import warnings

import numpy as np
import pyarrow as pa
import pytest

from calibrant import BinningCalibrator, Partition, ShiftCalibrator, scored
from calibrant.errors import GroupCapWarning, InvalidTypeError, InvalidValueError, NotTakenError
from calibrant.sample.groups import Groups
from worlds.guarantees import assert_kept
from worlds.shifted_groups import ShiftedGroups

BINS = Partition.fixed_width(3)
EDGES = np.linspace(0.0, 1.0, 4)
WORLDS = {
    "independent": ShiftedGroups(),
    "coupled": ShiftedGroups(size=(2, 3), rows="coupled"),
    "identical": ShiftedGroups(size=(1, 3), rows="identical"),
    "rare and large": ShiftedGroups(size=(1, 10), rows="coupled", share=0.1),
    # a rare kind, nearly all positive, has nearly all the weight
    "weights follow labels": ShiftedGroups(
        size=(4, 1), rows="coupled", share=0.05, target_share=0.6, target_size=(1, 6)
    ),
}


def told(world, target):
    """What `fit` is told about groups that are at most as large as said."""
    most = {"max_group_size": world.largest} if target == "rows" else {}
    return {"group_target": target, "weight_bound": world.bound(target), **most}


def fitted(world, rows, target="rows", **parameters):
    scores, y, groups, kind = rows
    weights = world.weight(scores, kind, target)
    calibrator = ShiftCalibrator(partition=BINS, **parameters)
    return calibrator.fit(
        scores, y, groups=groups, importance_weight=weights, **told(world, target)
    )


def outside(guarantee, rates, error=0.0):
    return bool(np.any((guarantee.lower > rates + error) | (guarantee.upper < rates - error)))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("n_groups", [12, 200])
@pytest.mark.parametrize("name", WORLDS)
def test_limits_hold_in_the_target_population(name, n_groups, alpha):
    world = WORLDS[name]
    rng = np.random.default_rng([n_groups, len(name)])

    def simulate():
        while True:
            rows = world.draw(rng, n_groups)
            yield {
                target: outside(
                    fitted(world, rows, target, confidence_level=1.0 - alpha).guarantee_,
                    world.truth(EDGES, target),
                )
                for target in ("rows", "groups")
            }

    assert_kept(simulate(), alpha, caught=0.2 if alpha == 0.1 else 0.65)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("n_groups", [20, 150])
@pytest.mark.parametrize("name", WORLDS)
def test_limits_hold_for_the_capped_rate_if_pilot_groups_set_the_cap(name, n_groups, alpha):
    world = WORLDS[name]
    rng = np.random.default_rng([n_groups, len(name), 1])
    capped = CappedRates.of(world)

    def simulate():
        while True:
            scores, y, groups, kind = world.draw(rng, n_groups)
            weights = world.weight(scores, kind, "rows")
            calibrator = ShiftCalibrator(partition=BINS, confidence_level=1.0 - alpha)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GroupCapWarning)
                calibrator.fit(scores, y, groups=groups, importance_weight=weights)
            found = calibrator.guarantee_
            rates = capped.rates(found.statement.groups.max_weight)
            yield {"capped": outside(found, rates, CappedRates.ERROR)}

    assert_kept(simulate(), alpha, caught=0.2 if alpha == 0.1 else 0.65)


class ParetoWeights:
    """Groups of 1 to 4 rows with weights that have no bound; rows of large weight are negative."""

    def draw(self, rng, n_groups):
        groups = np.repeat(np.arange(n_groups), rng.integers(1, 5, n_groups))
        weights = (1.0 - rng.uniform(size=groups.size)) ** (-1.0 / 1.2)
        y = rng.uniform(size=groups.size) < 0.9 / weights
        return rng.uniform(size=groups.size), y.astype(int), groups, weights

    def weight(self, scores, weights, target):
        return weights


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_the_capped_rate_needs_no_bound_on_the_weights(alpha):
    world = ParetoWeights()
    rng = np.random.default_rng(int(10 * alpha))
    capped = CappedRates.of(world)
    everything = capped.rates(np.inf)

    def simulate():
        while True:
            scores, y, groups, weights = world.draw(rng, 200)
            calibrator = ShiftCalibrator(partition=BINS, confidence_level=1.0 - alpha)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of caps, and of wide limits
                calibrator.fit(scores, y, groups=groups, importance_weight=weights)
            found = calibrator.guarantee_
            assert found.is_proved
            rates = capped.rates(found.statement.groups.max_weight)
            assert (rates > everything).all()  # the two rates differ: only the first is claimed
            yield {"capped": outside(found, rates, CappedRates.ERROR)}

    assert_kept(simulate(), alpha, caught=0.2 if alpha == 0.1 else 0.65)


class CappedRates:
    """Rates of many groups whose weight in a bin counts up to a cap."""

    ERROR = 5e-3  # 200,000 groups; standard errors are at most half of it

    def __init__(self, weight, positive):
        self.weight = weight
        self.positive = positive

    @classmethod
    def of(cls, world, n_groups=200_000):
        scores, y, groups, kind = world.draw(np.random.default_rng(99), n_groups)
        weights = world.weight(scores, kind, "rows")
        place = groups * 3 + np.minimum((3 * scores).astype(int), 2)
        sums = [
            np.bincount(place, values, minlength=3 * n_groups).reshape(-1, 3)
            for values in (weights, weights * y)
        ]
        return cls(*sums)

    def rates(self, cap):
        counted = np.minimum(1.0, cap / np.maximum(self.weight, 1e-300))
        return (counted * self.positive).sum(axis=0) / (counted * self.weight).sum(axis=0)


@pytest.mark.parametrize("target", ["rows", "groups"])
def test_the_predicted_rates_are_those_of_the_target_population(target):
    world = ShiftedGroups(size=(2, 4), rows="coupled")
    rows = world.draw(np.random.default_rng(0), 20_000)
    found = fitted(world, rows, target).guarantee_
    rates = world.truth(EDGES, target)
    np.testing.assert_allclose(found.value, rates, atol=0.02)
    assert found.radius.max() < 0.06
    other = world.truth(EDGES, "groups" if target == "rows" else "rows")
    assert outside(found, other)  # the two targets differ, and the limits tell them apart


def test_shares_of_the_weight_of_a_group_would_cancel_the_shift():
    """`BinningCalibrator` counts a group by the share of its weight in a bin, as in a survey."""
    world = ShiftedGroups(size=(2, 4))
    scores, y, groups, kind = rows = world.draw(np.random.default_rng(1), 20_000)
    rates = world.truth(EDGES, "groups")
    weights = world.weight(np.ones(len(y)), kind, "groups")  # the same for all rows of a group
    beside = {"groups": groups, "group_target": "groups"}
    surveyed = BinningCalibrator(partition=BINS)
    weighted = surveyed.fit(scores, y, importance_weight=weights, **beside).guarantee_
    plain = BinningCalibrator(partition=BINS).fit(scores, y, **beside).guarantee_
    np.testing.assert_allclose(weighted.value, plain.value, atol=1e-9)
    assert outside(weighted, rates)
    assert not outside(fitted(world, rows, "groups").guarantee_, rates)


def test_a_wrong_weight_within_the_stated_error_keeps_the_guarantee():
    world = ShiftedGroups(size=(2, 3), rows="coupled")
    rates = world.truth(EDGES, "rows")
    naive = 0
    for seed in range(10):
        scores, y, groups, kind = world.draw(np.random.default_rng(seed), 4_000)
        bent = world.weight(scores, kind, "rows") / np.where(kind == 1, 0.75, 1.25)
        given = {"weight_bound": world.bound("rows") / 0.75, "max_group_size": world.largest}
        found = ShiftCalibrator(partition=BINS).fit(
            scores, y, groups=groups, importance_weight=bent, weight_error=0.25, **given
        )
        naive += outside(found.guarantee_for(0.0), rates)
        assert not outside(found.guarantee_, rates)
    assert naive >= 8


@pytest.mark.parametrize("target", ["rows", "groups"])
def test_weights_of_one_are_the_population_itself(target):
    rng = np.random.default_rng(2)
    scores, y, groups, _ = ShiftedGroups(size=(2, 3)).draw(rng, 400)
    sizes = {"max_group_size": 9} if target == "rows" else {}
    beside = {"groups": groups, "group_target": target, **sizes}
    plain = BinningCalibrator(3, value="mean").fit(scores, y, **beside).guarantee_
    ones = ShiftCalibrator(n_bins=3).fit(
        scores, y, importance_weight=np.ones(len(y)), weight_bound=1.0, **beside
    )
    np.testing.assert_allclose(ones.guarantee_.lower, plain.lower, atol=1e-12)
    np.testing.assert_allclose(ones.guarantee_.upper, plain.upper, atol=1e-12)
    np.testing.assert_allclose(ones.guarantee_.value, plain.value, atol=1e-12)


@pytest.mark.parametrize("target", ["rows", "groups"])
def test_a_multiple_of_the_weights_changes_nothing(target):
    world = ShiftedGroups(size=(2, 3))
    scores, y, groups, kind = rows = world.draw(np.random.default_rng(3), 300)
    found = fitted(world, rows, target).guarantee_
    tripled = ShiftCalibrator(partition=BINS).fit(
        scores,
        y,
        groups=groups,
        importance_weight=3.0 * world.weight(scores, kind, target),
        **{**told(world, target), "weight_bound": 3.0 * world.bound(target)},
    )
    np.testing.assert_allclose(tripled.guarantee_.lower, found.lower, atol=1e-9)
    np.testing.assert_allclose(tripled.guarantee_.upper, found.upper, atol=1e-9)


def test_groups_of_one_row():
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=2_000)
    y = (rng.uniform(size=2_000) < scores).astype(int)
    given = {"importance_weight": 2.0 * scores, "weight_bound": 2.0}
    alone = ShiftCalibrator(n_bins=4).fit(scores, y, **given).guarantee_
    each = {"groups": np.arange(2_000)}
    same = ShiftCalibrator(n_bins=4).fit(scores, y, **given, **each, max_group_size=1).guarantee_
    assert same.lower.tolist() == alone.lower.tolist()
    assert "no group has more than one row, among these rows and in the future" in same.assumptions
    for target in ("rows", "groups"):
        close = ShiftCalibrator(n_bins=4).fit(scores, y, **given, **each, group_target=target)
        # a tenth of the groups cut the bins, and the bets differ: see the study of widths
        assert 0.6 < close.guarantee_.radius.mean() / alone.radius.mean() < 1.15


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 5, 10])
@pytest.mark.parametrize("correlated", [False, True])
def test_whole_groups_are_narrower_than_one_row_of_each(size, correlated):
    ratios = {"rows": [], "groups": []}
    radii = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(600), size)
        scores = rng.uniform(size=groups.size)
        chance = rng.uniform(size=groups.size)
        if correlated:  # half of the labels follow one number of their group
            common = rng.uniform(size=600)[groups]
            chance = np.where(rng.uniform(size=groups.size) < 0.5, common, chance)
        y = (chance < scores).astype(int)
        given = {"importance_weight": 2.0 * scores, "weight_bound": 2.0}
        drawn = Groups.of(groups, len(y)).one_row_each(_source(seed))
        one = ShiftCalibrator(n_bins=4).fit(
            scores[drawn], y[drawn], importance_weight=2.0 * scores[drawn], weight_bound=2.0
        )
        for target, found in ratios.items():
            whole = ShiftCalibrator(n_bins=4).fit(
                scores, y, groups=groups, group_target=target, **given
            )
            found.append(whole.guarantee_.radius.mean() / one.guarantee_.radius.mean())
            if target == "rows":
                radii.append(whole.guarantee_.radius.mean())
    assert np.mean(radii) < {2: 0.095, 5: 0.076, 10: 0.062}[size]
    assert np.mean(ratios["rows"]) < {2: 0.8, 5: 0.6, 10: 0.55}[size]
    assert np.mean(ratios["groups"]) < {2: 0.85, 5: 0.75, 10: 0.75}[size]


def _source(seed):
    from calibrant.params.random import RandomSource

    return RandomSource.of(seed, "test")


def rows_of(n_groups=200, seed=5):
    world = ShiftedGroups(size=(2, 3), rows="coupled")
    return world, world.draw(np.random.default_rng(seed), n_groups)


def test_empirical_bernstein_uses_one_row_of_each_group():
    world, (scores, y, groups, kind) = rows_of()
    given = {"importance_weight": world.weight(scores, kind, "groups"), "groups": groups}
    calibrator = ShiftCalibrator(partition=BINS, interval="empirical-bernstein")
    found = calibrator.fit(scores, y, **given, weight_bound=world.bound("groups")).guarantee_
    assert found.counts.sum() == 200
    assert "One row was drawn at random from each of 200 groups" in found.details
    same = calibrator.fit(
        scores, y, **given, weight_bound=world.bound("groups"), group_target="groups"
    )
    assert same.guarantee_.lower.tolist() == found.lower.tolist()
    with pytest.raises(InvalidValueError) as refused:
        calibrator.fit(scores, y, **given, group_target="rows")
    assert (refused.value.parameter, refused.value.got) == ("group_target", "'rows'")
    with pytest.raises(InvalidValueError) as refused:
        calibrator.fit(scores, y, **given, max_group_size=9)
    assert (refused.value.parameter, refused.value.got) == ("max_group_size", "9")


def test_data_that_ask_for_the_rate_of_rows_are_refused_by_intervals_of_single_rows():
    world, (scores, y, groups, kind) = rows_of()
    table = pa.table({"p": scores, "y": y, "g": groups, "w": world.weight(scores, kind, "rows")})
    data = scored(table, score="p", label="y", weight="w", group="g", group_target="rows")
    with pytest.raises(NotTakenError) as refused:
        ShiftCalibrator(n_bins=2, interval="empirical-bernstein").fit(data)
    assert refused.value.parameter == "group_target"


@pytest.mark.parametrize("target", ["rows", "groups"])
def test_tables_and_model_files_say_the_same(target):
    world, (scores, y, groups, kind) = rows_of()
    weights = world.weight(scores, kind, target)
    bound = world.bound(target)
    calibrator = ShiftCalibrator(n_bins=2).fit(
        scores,
        y,
        groups=groups,
        importance_weight=weights,
        weight_bound=bound,
        group_target=target,
        weight_error=0.1,
    )
    table = pa.table({"p": scores, "y": y, "g": groups, "w": weights})
    named = {"score": "p", "label": "y", "weight": "w", "group": "g"}
    data = scored(table, **named, weight_bound=bound, group_target=target)
    again = ShiftCalibrator(n_bins=2).fit(data, weight_error=0.1)
    assert str(again.guarantee_) == str(calibrator.guarantee_)
    read = ShiftCalibrator.from_dict(json.loads(json.dumps(calibrator.to_dict())))
    assert read.guarantee_.lower.tolist() == calibrator.guarantee_.lower.tolist()
    assert read.guarantee_.assumptions == calibrator.guarantee_.assumptions
    assert read.guarantee_.statement.groups == calibrator.guarantee_.statement.groups
    assert read.guarantee_for(0.2).epsilon == calibrator.guarantee_for(0.2).epsilon
    state = calibrator.to_dict()
    for damaged in (5, {}, {**state["state"]["weighted"]["groups"], "target": "people"}):
        state["state"]["weighted"]["groups"] = damaged
        with pytest.raises((InvalidTypeError, InvalidValueError)):
            ShiftCalibrator.from_dict(json.loads(json.dumps(state)))


def test_what_is_said_of_groups():
    world, (scores, y, groups, kind) = rows_of()
    given = {"groups": groups, "importance_weight": world.weight(scores, kind, "rows")}
    rows = ShiftCalibrator(n_bins=2).fit(scores, y, **given).guarantee_
    assert rows.is_proved  # the cap takes the place of a bound on weights
    assert "A group's total weight in a region is capped at" in rows.details
    assert "if groups are i.i.d., P(label | inputs) unchanged, weights exact" in rows.sentence
    assert not any("exceeds" in text for text in rows.assumptions)
    assert any(
        "nothing is guaranteed about the rate without the cap" in note for note in rows.notes
    )
    equal = ShiftCalibrator(n_bins=2).fit(scores, y, **given, group_target="groups").guarantee_
    assert not equal.is_proved  # without a bound on weights
    bounded = ShiftCalibrator(n_bins=2).fit(
        scores, y, **given, group_target="groups", weight_bound=world.bound("rows")
    )
    assert bounded.guarantee_.is_proved
    assert not any("cap" in note for note in bounded.guarantee_.notes)
    assert (
        "a row drawn by importance weight at random from a random group"
        in bounded.guarantee_.details
    )
    assert any("no importance weight exceeds" in text for text in bounded.guarantee_.assumptions)
    for found in (rows, bounded.guarantee_):
        assert "P(label | inputs) unchanged, weights exact" in found.sentence
        assert len(found.sentence.split()) <= 35
        assert "calibration groups are independent draws of whole groups" in found.assumptions[0]


def test_a_cap_needs_a_bound_on_the_weights():
    world, (scores, y, groups, kind) = rows_of()
    given = {"groups": groups, "importance_weight": world.weight(scores, kind, "rows")}
    with pytest.raises(InvalidValueError) as refused:
        ShiftCalibrator(n_bins=2).fit(scores, y, **given, max_group_size=9)
    assert refused.value.parameter == "weight_bound"


def test_giant_groups_of_another_rate_are_told():
    """A cap that pilot groups set leaves out a rare giant group, and a warning says so."""
    rng = np.random.default_rng(6)
    groups = np.concatenate([np.arange(300), np.full(3_000, 300)])
    scores = rng.uniform(size=groups.size)
    y = np.concatenate([rng.uniform(size=300) < 0.9, np.zeros(3_000)]).astype(int)
    told = set()
    for seed in range(20):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            fitted = ShiftCalibrator(n_bins=1, random_state=seed).fit(
                scores, y, groups=groups, importance_weight=1.0 + scores, weight_bound=2.0
            )
        warned = any(
            warning.category is GroupCapWarning and "choose the cap" in str(warning.message)
            for warning in found
        )
        is_pilot = fitted.guarantee_.statement.groups.max_weight > 100
        told.add((warned, is_pilot))
    assert told == {(True, False), (False, True)}  # which is drawn depends on the seed


def test_too_few_groups():
    with pytest.raises(InvalidValueError) as refused:
        ShiftCalibrator(n_bins=1).fit(
            [0.1, 0.9], [0, 1], groups=[7, 7], importance_weight=[1.0, 1.0], weight_bound=1.0
        )
    assert (refused.value.parameter, refused.value.got) == ("groups", "1 group")
    alone = ShiftCalibrator(partition=Partition.fixed_width(1)).fit(
        [0.1, 0.9],
        [0, 1],
        groups=[7, 7],
        importance_weight=[1.0, 1.0],
        weight_bound=1.0,
        max_group_size=2,
    )
    # Markov's limit for one group, half of whose rows are positive
    assert 0.0 <= alone.guarantee_.lower[0] <= 0.5 * 0.05
    assert alone.guarantee_.upper[0] == pytest.approx(1.0 - alone.guarantee_.lower[0])


class Recorded:
    """A density ratio that records the rows it is fitted on."""

    seen: list[np.ndarray] = []  # noqa: RUF012 - shared with clones

    def get_params(self, deep=True):
        return {}

    def fit(self, X_source, X_target):
        self.seen.append(np.asarray(X_source))
        return self

    def predict(self, X):
        return 1.0 + np.asarray(X)[:, 0]


@pytest.mark.parametrize(
    ("given", "one_each"),
    [
        ({}, False),
        ({"group_target": "groups"}, True),
    ],
)
@pytest.mark.parametrize("interval", ["betting", "empirical-bernstein"])
def test_a_ratio_is_fitted_to_the_rows_that_count(given, one_each, interval):
    _, (scores, y, groups, _) = rows_of()
    X = np.column_stack([scores, groups])
    Recorded.seen.clear()
    found = ShiftCalibrator(n_bins=2, interval=interval).fit(
        scores, y, groups=groups, X=X, X_target=X[:50], ratio=Recorded(), weight_bound=2.0, **given
    )
    (rows,) = Recorded.seen
    if one_each or interval == "empirical-bernstein":
        assert rows[:, 1].tolist() == list(range(200))
    else:
        assert len(rows) == len(y)
    assert not found.guarantee_.is_proved
    many = "many groups" if interval == "betting" else "many rows"
    assert f"in the limit of {many} of both populations" in found.guarantee_.details
    Recorded.seen.clear()
    ShiftCalibrator(n_bins=2, interval=interval).fit(
        scores,
        y,
        groups=groups,
        X=X,
        X_source=X[:70],
        X_target=X[:50],
        ratio=Recorded(),
        weight_bound=2.0,
        **given,
    )
    assert len(Recorded.seen[0]) == 70


def test_segments_without_pilot_groups_prove_nothing():
    world, (scores, y, groups, kind) = rows_of(400)
    segments = np.where(groups == 399, "rare", "usual")
    found = ShiftCalibrator(n_bins=2).fit(
        scores,
        y,
        groups=groups,
        segments=segments,
        importance_weight=world.weight(scores, kind, "rows"),
    )
    limits = found.predict_interval([0.5, 0.5], segments=["rare", "usual"])
    assert limits[0].tolist() == [0.0, 1.0]
    assert limits[1, 1] - limits[1, 0] < 0.5
