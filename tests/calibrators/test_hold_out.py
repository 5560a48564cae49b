"""Probabilities fixed beforehand: kept nearly as they are, in order, with limits on their average
error.
"""

import json
import pickle
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from calibrant.calibrators._held_out import HeldOutLimits
from calibrant.calibrators._recentre import Moved, _Losses, recentred
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.errors import GroupCapWarning, InvalidValueError
from calibrant.limits.interval import Interval
from calibrant.params.random import RandomSource
from read_marks import unmarked
from worlds.guarantees import assert_rare


def _world(rng, n, off=0.0, centre=0.0):
    """Probabilities, labels whose rates are off on the logit scale, and the rates."""
    p = 1.0 / (1.0 + np.exp(-rng.normal(centre, 1.5, n)))
    rate = 1.0 / (1.0 + (1.0 - p) / p * np.exp(-off))
    return p, rng.uniform(size=n) < rate, rate


def _fitted(rng, n, level=0.9, **world):
    pilot, pilot_y, _ = _world(rng, 5 * n, **world)
    p, y, _ = _world(rng, n, **world)
    found = HoldOutCalibrator(confidence_level=level)
    return found.fit(p, y, pilot_scores=pilot, pilot_y=pilot_y, classes=(False, True))


def test_calibrated_probabilities_move_little_and_keep_their_order():
    found = _fitted(np.random.default_rng(0), 2_000)
    p = np.linspace(0.001, 0.999, 500)
    moved = found.predict(p)
    assert (np.diff(moved) > 0.0).all()
    assert np.abs(moved - p).max() < 0.06


def test_probabilities_that_are_off_move_towards_the_rates():
    found = _fitted(np.random.default_rng(0), 4_000, off=1.0)
    _, _, rate = _world(np.random.default_rng(1), 10, off=1.0)
    p = np.linspace(0.1, 0.9, 9)
    rate = 1.0 / (1.0 + (1.0 - p) / p * np.exp(-1.0))
    assert np.abs(found.predict(p) - rate).mean() < 0.6 * np.abs(p - rate).mean()


def test_epsilon_is_little_more_than_half_of_the_widest_limits():
    guarantee = _fitted(np.random.default_rng(3), 3_000, off=0.3).guarantee_
    half = ((guarantee.errors.upper - guarantee.errors.lower) / 2).max()
    assert guarantee.epsilon < 1.4 * half  # 1.35 is allowed, so that probabilities move little


def _recentred(lower, upper, n_rows):
    """One region from 0.1 to 0.9, with limits on its error; epsilon, and what moving costs."""
    pilot = np.linspace(0.1, 0.9, 1_001)
    errors = Interval(np.array([lower]), np.array([upper]))
    averages = Interval(np.array([0.49]), np.array([0.51]))
    moved = recentred(np.array([0.1, 0.9]), errors, averages, np.array([n_rows]), pilot)
    found = moved.errors(errors, averages)
    losses = _Losses(moved.knots, pilot)
    before = losses.of(moved.nowhere(moved.knots))
    return max(found.upper[0], -found.lower[0]), losses.of(moved) / before - 1.0


def test_a_move_that_costs_little_makes_epsilon_about_the_smallest():
    epsilon, cost = _recentred(-0.02, 0.03, 200)
    assert epsilon < 1.03 * 0.025
    assert 0.0 < cost < 0.0005


def test_a_move_that_costs_more_stops_early():
    epsilon, cost = _recentred(-0.15, 0.25, 200)
    assert 1.05 * 0.2 < epsilon < 0.25
    assert cost == pytest.approx(0.0005, rel=0.01)


def test_epsilon_is_at_most_twice_the_smallest_whatever_that_costs():
    epsilon, cost = _recentred(0.02, 0.08, 100)
    assert 1.95 * 0.03 < epsilon < 2.01 * 0.03
    assert cost > 0.001


def test_many_rows_move_probabilities_further():
    epsilon, _ = _recentred(0.02, 0.08, 20_000)
    assert 1.3 * 0.03 < epsilon < 1.36 * 0.03


@pytest.mark.broad
def test_a_known_range_of_probabilities_makes_limits_sharper():
    widths = []
    fixed = HoldOutCalibrator(moves=False)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.01, 0.1, 3_000)
        y = rng.uniform(size=p.size) < p
        beside = {"pilot_scores": p[400:], "pilot_y": y[400:], "classes": (False, True)}
        for ends in ((0.0, 1.0), (0.01, 0.1)):
            errors = fixed.fit(p[:400], y[:400], **beside, score_range=ends).guarantee_.errors
            widths.append(float((errors.upper - errors.lower).max()))
    wide, narrow = np.reshape(widths, (10, 2)).mean(axis=0)
    assert narrow < 0.98 * wide
    with pytest.raises(InvalidValueError) as raised:
        fixed.predict([0.2])
    assert raised.value.parameter == "scores"


def test_bets_take_the_place_of_counts_where_the_average_is_hard_to_know():
    """A rare class, and probabilities that may be large: limits on their average are wide."""
    rng = np.random.default_rng(2)
    p = rng.beta(0.8, 12.0, 5_000)
    y = rng.uniform(size=p.size) < p
    found = HoldOutCalibrator(2).fit(
        p[:480], y[:480], pilot_scores=p[480:], pilot_y=y[480:], classes=(False, True)
    )
    errors = found.guarantee_.errors
    top = found.partition_.regions_of(p[480:]) == 1
    deviation = np.sqrt(np.mean((y[480:] - p[480:])[top] ** 2) / found.tally_.counts[1])
    assert (errors.upper[1] - errors.lower[1]) / 2.0 < 2.6 * deviation


def test_a_region_that_no_row_falls_into_has_no_limits():
    pilot = np.linspace(0.05, 0.95, 1000)
    p = np.full(200, 0.9)
    y = np.arange(200) % 10 < 9
    found = HoldOutCalibrator(2).fit(
        p, y, pilot_scores=pilot, pilot_y=pilot > 0.5, classes=(False, True)
    )
    assert found.guarantee_.counts.tolist() == [0, 200]
    assert found.guarantee_.epsilon > 0.4
    assert (found.guarantee_.lower[0], found.guarantee_.upper[0]) == (0.0, 1.0)


def test_one_probability_for_all_rows_is_one_region():
    y = np.arange(400) % 4 == 0
    pilot = np.full(100, 0.25)
    found = HoldOutCalibrator().fit(
        np.full(400, 0.25), y, pilot_scores=pilot, pilot_y=y[:100], classes=(False, True)
    )
    assert len(found.guarantee_.counts) == 1
    assert found.guarantee_.epsilon < 0.06


def test_limits_of_rates_contain_the_rates_of_the_rows():
    found = _fitted(np.random.default_rng(4), 1_000)
    rates = found.tally_.positives / found.tally_.counts
    assert ((found.guarantee_.lower < rates) & (rates < found.guarantee_.upper)).all()


def test_predict_interval_is_the_prediction_and_the_limits_on_its_error():
    found = _fitted(np.random.default_rng(4), 1_000)
    p = np.linspace(0.01, 0.99, 50)
    region = found.partition_.regions_of(p)
    errors = found.guarantee_.errors
    expected = (
        np.column_stack([errors.lower[region], errors.upper[region]]) + found.predict(p)[:, None]
    )
    np.testing.assert_allclose(found.predict_interval(p), np.clip(expected, 0.0, 1.0), atol=1e-12)


def test_saving_keeps_predictions_and_guarantee():
    found = _fitted(np.random.default_rng(5), 500)
    again = HoldOutCalibrator.from_dict(found.to_dict())
    p = np.linspace(0.0, 1.0, 33)
    np.testing.assert_array_equal(again.predict_interval(p), found.predict_interval(p))
    assert unmarked(again.guarantee_) == str(found.guarantee_)
    assert again.guarantee_.epsilon == found.guarantee_.epsilon
    assert again.guarantee_.read


def test_scores_that_are_no_probabilities_are_refused():
    with pytest.raises(InvalidValueError, match="scores"):
        HoldOutCalibrator().fit([0.5, 1.5], [0, 1], pilot_scores=[0.5, 0.6], pilot_y=[0, 1])


def _is_broken(found, truth_p, truth_rate):
    """Whether a limit on an average error misses, for the population of the given rows."""
    region = found.partition_.regions_of(truth_p)
    size = found.partition_.n_regions
    rows = np.maximum(np.bincount(region, minlength=size), 1)
    error = np.bincount(region, truth_rate - found.predict(truth_p), size) / rows
    limits = found.guarantee_.errors
    return bool(((error < limits.lower - 1e-3) | (error > limits.upper + 1e-3)).any())


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.9, 0.5])
@pytest.mark.parametrize(
    ("n", "off", "centre"), [(60, 0.0, 0.0), (150, 0.8, -1.0), (150, 0.0, -4.0), (400, -0.5, 3.0)]
)
def test_the_guarantee_is_broken_at_most_as_often_as_stated(n, off, centre, level):
    rng = np.random.default_rng(n)
    truth_p, _, truth_rate = _world(rng, 50_000, off=off, centre=centre)
    draws = 60
    broken = sum(
        _is_broken(_fitted(rng, n, level, off=off, centre=centre), truth_p, truth_rate)
        for _ in range(draws)
    )
    assert_rare(broken, draws, 1.0 - level)


@pytest.mark.slow
def test_whole_groups_keep_the_guarantee_where_rows_depend_on_each_other():
    """Rows of a group share their label: as independent rows they would break it."""
    rng = np.random.default_rng(8)

    def draw(n_groups):
        groups = np.repeat(np.arange(n_groups), 10)
        p = np.clip(
            np.repeat(rng.uniform(0.1, 0.9, n_groups), 10) + rng.uniform(-0.1, 0.1, 10 * n_groups),
            0.0,
            1.0,
        )
        shared = np.repeat(rng.uniform(size=n_groups), 10)
        return groups, p, shared < p

    broken = {"groups": 0, "rows": 0}
    draws = 50
    for _ in range(draws):
        pilot_groups, pilot, pilot_y = draw(300)
        groups, p, y = draw(80)
        beside = {"pilot_scores": pilot, "pilot_y": pilot_y}
        plain = HoldOutCalibrator().fit(p, y, **beside, classes=(False, True))
        whole = HoldOutCalibrator().fit(
            p, y, groups=groups, pilot_groups=pilot_groups, **beside, classes=(False, True)
        )
        truth_p = np.clip(rng.uniform(0.1, 0.9, 40_000) + rng.uniform(-0.1, 0.1, 40_000), 0.0, 1.0)
        broken["groups"] += _is_broken(whole, truth_p, truth_p)
        broken["rows"] += _is_broken(plain, truth_p, truth_p)
    assert_rare(broken["groups"], draws, 0.1)
    assert binomtest(broken["rows"], draws, 0.1, alternative="greater").pvalue < 1e-6


def _giants(rng, n_groups, giant):
    """Groups of two rows, and one group of `giant` negative rows."""
    sizes = np.full(n_groups, 2)
    sizes[0] = giant
    groups = np.repeat(np.arange(n_groups), sizes)
    p = rng.uniform(0.2, 0.8, groups.size)
    return groups, p, (rng.uniform(size=groups.size) < p) & (groups > 0)


def test_groups_above_the_cap_are_told_and_kept_in_a_saved_file():
    rng = np.random.default_rng(0)
    pilot_groups, pilot, pilot_y = _giants(rng, 400, 2)
    groups, p, y = _giants(rng, 200, 1_000)
    found = HoldOutCalibrator()
    given = {
        "pilot_scores": pilot,
        "pilot_y": pilot_y,
        "pilot_groups": pilot_groups,
        "classes": (False, True),
    }
    with pytest.warns(GroupCapWarning):
        found.fit(p, y, groups=groups, **given)
    facts = found.guarantee_.statement.groups
    assert facts.max_size == 2
    assert facts.above_cap > 0.5
    assert facts.n_apart > 0
    again = HoldOutCalibrator.from_dict(json.loads(json.dumps(found.to_dict())))
    assert unmarked(again.guarantee_) == str(found.guarantee_)


def test_the_number_of_regions_depends_on_no_label_that_proves() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=600)
    pilot = rng.uniform(size=2_000)
    for rate, expected in ((0.5, 4), (0.05, 3), (0.01, 2)):
        beside = {"pilot_scores": pilot, "pilot_y": np.arange(2_000) < rate * 2_000}
        fits = [
            HoldOutCalibrator().fit(p, y, **beside, classes=(False, True))
            for y in (p > 2.0, p > 0.5)
        ]
        assert [fitted.partition_.n_regions for fitted in fits] == [expected, expected]
        np.testing.assert_array_equal(fits[0].partition_.edges, fits[1].partition_.edges)
    few = HoldOutCalibrator().fit(p[:280], p[:280] > 0.5, **beside, classes=(False, True))
    assert few.partition_.n_regions == 2


def test_which_limits_are_taken_depends_on_no_label_that_proves(monkeypatch) -> None:
    """Counts or bets, and how regions share the error budget: for any labels of these rows."""
    taken = []
    counted = HeldOutLimits.counted

    def recorded(self, positives, n_rows, tails, is_counted):
        taken.append((tails.tolist(), is_counted.tolist()))
        return counted(self, positives, n_rows, tails, is_counted)

    monkeypatch.setattr(HeldOutLimits, "counted", recorded)
    rng = np.random.default_rng(0)
    pilot = np.concatenate([rng.uniform(0.001, 0.01, 1_000), rng.uniform(0.011, 0.8, 1_000)])
    beside = {"pilot_scores": pilot, "pilot_y": rng.uniform(size=2_000) < pilot}
    p = np.concatenate([rng.uniform(0.001, 0.01, 200), rng.uniform(0.011, 0.8, 200)])
    for y in (p > 2.0, p > -1.0, p > 0.5, rng.uniform(size=400) < 0.5):
        HoldOutCalibrator(2).fit(p, y, **beside, classes=(False, True))
    of_rows = taken[1::2]  # each time after the pilot rows were counted, to decide
    assert of_rows[0][1] == [True, False]
    assert all(one == of_rows[0] for one in of_rows)


def test_limits_hold_for_every_curve_however_it_is_chosen() -> None:
    """The rate less the average of a moved curve, where those of p are as far off as is allowed."""
    rng = np.random.default_rng(0)
    knots = np.array([0.05, 0.3, 0.6, 0.9])
    for _ in range(200):
        truth = rng.uniform(knots[:-1], knots[1:])  # the average of p in each region
        errors = rng.uniform(-0.2, 0.2, 3)  # the rate less that
        averages = Interval(rng.uniform(knots[:-1], truth), rng.uniform(truth, knots[1:]))
        low = errors - rng.choice([0.0, 0.1], 3)
        high = errors + rng.choice([0.0, 0.1], 3)
        ends = np.sort(rng.uniform(size=6))
        moved = Moved(knots, ends[::2], ends[1::2])
        limits = moved.errors(Interval(low, high), averages)
        now = truth + errors - moved.at(truth)
        assert (limits.lower <= now + 1e-12).all()
        assert (limits.upper >= now - 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.9, 0.5])
@pytest.mark.parametrize("pilot_rates", [(0.2, 0.7), (0.7, 0.2), (0.01, 0.99)])
def test_over_all_labels_of_few_rows_the_guarantee_is_exact(level, pilot_rates) -> None:
    """Bets, counts, the choice between them and the movement by these very labels: the probability
    that a limit misses is added up over all labels, for pilot rows that are right and wrong.
    """
    rng = np.random.default_rng(0)
    n = 3  # rows at each of two probabilities
    pilot = np.repeat([0.2, 0.7], 500)
    beside = {
        "pilot_scores": pilot,
        "pilot_y": rng.uniform(size=1_000) < np.repeat(pilot_rates, 500),
        "source": RandomSource(0),  # one order, whatever the labels
        "classes": (False, True),
    }
    p = np.repeat([0.2, 0.7], n)
    found = HoldOutCalibrator(2, confidence_level=level)
    rates = np.linspace(0.0, 1.0, 51)
    labels = np.array(list(product([False, True], repeat=n)))
    chance = np.array([(rates**k) * (1.0 - rates) ** (n - k) for k in labels.sum(axis=1)])
    kept = np.zeros((rates.size, rates.size))  # the probability that both limits hold
    with reported_by_caller():
        for i, low in enumerate(labels):
            for j, high in enumerate(labels):
                found.fit(p, np.concatenate([low, high]), **beside)
                errors = found.guarantee_.errors
                off = rates[:, None] - found.predict([0.2, 0.7])
                holds = (off >= errors.lower - 1e-9) & (off <= errors.upper + 1e-9)
                kept += np.outer(chance[i] * holds[:, 0], chance[j] * holds[:, 1])
    assert kept.min() >= level
    assert kept.max() < 1.0 + 1e-9


def _kinds(rng):
    """Calibrators of several kinds."""
    yield _fitted(rng, 300)
    yield _fitted(rng, 300, off=0.5).falling()
    pilot_groups, pilot, pilot_y = _giants(rng, 100, 2)
    groups, p, y = _giants(rng, 50, 2)
    beside = {"pilot_scores": pilot, "pilot_y": pilot_y, "pilot_groups": pilot_groups}
    yield HoldOutCalibrator().fit(p, y, groups=groups, **beside, classes=(False, True))
    yield HoldOutCalibrator.from_dict(_fitted(rng, 300).to_dict())
    yield _fitted(rng, 300).set_output(transform="pandas")
    words = np.array(["no", "yes"])
    beside = {"pilot_scores": pilot, "pilot_y": words[pilot_y.astype(int)]}
    yield HoldOutCalibrator(pos_label="no").fit(p, words[y.astype(int)], **beside)
    yield _fitted(rng, 300).set_params(confidence_level=0.5)  # after fit


@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
def test_a_pickle_has_what_a_model_file_has_and_gives_the_same() -> None:
    p = np.linspace(0.2, 0.8, 7)
    for found in _kinds(np.random.default_rng(0)):
        again = pickle.loads(pickle.dumps(found))
        assert str(again.guarantee_) == str(found.guarantee_)
        assert again.guarantee_.to_dict() == found.guarantee_.to_dict()
        assert again.guarantee_.read == found.guarantee_.read
        assert set(vars(again)) == set(vars(found))
        assert again.classes_.dtype == found.classes_.dtype
        for method in ("predict", "predict_interval", "predict_rate_interval", "predict_set"):
            one = getattr(found, method)(p)
            other = getattr(again, method)(p)
            assert type(one) is type(other)
            np.testing.assert_array_equal(one, other)


def test_a_pickle_keeps_what_makes_a_guarantee_weaker() -> None:
    found = _fitted(np.random.default_rng(0), 200)
    found.guarantee_ = found.guarantee_.with_caveat("folds were used")
    again = pickle.loads(pickle.dumps(found))
    assert not again.guarantee_.is_proved
    assert str(again.guarantee_) == str(found.guarantee_)


def test_pickles_are_small() -> None:
    assert len(pickle.dumps(_fitted(np.random.default_rng(0), 200))) < 1_200
    unfitted = pickle.loads(pickle.dumps(HoldOutCalibrator(3)))
    assert unfitted.n_bins == 3
    assert not hasattr(unfitted, "guarantee_")
