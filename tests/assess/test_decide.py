"""`decide` and `net_benefit`: costs, proved decisions, and decision curves whose truth is known."""

from itertools import product

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from calibrant import (
    BinningCalibrator,
    CalibratedClassifier,
    Calibrator,
    NetBenefitDisplay,
    Partition,
    PlattCalibrator,
    Tally,
    decide,
    net_benefit,
    scored,
)
from calibrant.assess.decide import decided_by_region
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.limits.kolmogorov import kolmogorov_distance
from calibrant.params.labels import UnexpectedLabelsError
from worlds.guarantees import assert_rare

BINS = Partition.fixed_width(3)
TALLY = Tally.from_counts([1000, 1000, 1000], [50, 250, 700], partition=BINS)
CALIBRATOR = BinningCalibrator.from_tally(BINS, TALLY)
MIDDLES = [1 / 6, 1 / 2, 5 / 6]


def test_a_region_is_acted_on_only_if_its_whole_interval_is_above_the_break_even_rate():
    found = decide(CALIBRATOR, MIDDLES, cost_false_alarm=1, cost_miss=3)
    assert found.break_even == 0.25
    assert found.action.tolist() == ["do not act", "too close to call", "act"]
    np.testing.assert_array_equal(
        np.column_stack([found.lower, found.upper]), CALIBRATOR.predict_rate_interval(MIDDLES)
    )
    assert found.counts == {"act": 1, "do not act": 1, "too close to call": 1}
    assert found.sentence.startswith(
        "Act on 1 of 3 rows, do not act on 1; 1 are too close to call (90% confidence"
    )


def test_costs_follow_from_rates():
    low, high = CALIBRATOR.predict_rate_interval([5 / 6])[0]
    act = decide(CALIBRATOR, [5 / 6], cost_false_alarm=2, cost_miss=6)
    assert act.cost == pytest.approx(2 * (1 - CALIBRATOR.predict([5 / 6])[0]))
    assert (act.cost_lower, act.cost_upper) == pytest.approx((2 * (1 - high), 2 * (1 - low)))
    low, high = CALIBRATOR.predict_rate_interval([1 / 6])[0]
    leave = decide(CALIBRATOR, [1 / 6], cost_false_alarm=2, cost_miss=6)
    assert (leave.cost_lower, leave.cost_upper) == pytest.approx((6 * low, 6 * high))


def test_only_the_ratio_of_costs_matters_for_the_decision():
    one = decide(CALIBRATOR, MIDDLES, cost_false_alarm=1, cost_miss=3)
    other = decide(CALIBRATOR, MIDDLES, cost_false_alarm=10, cost_miss=30)
    assert one.action.tolist() == other.action.tolist()
    assert other.cost == pytest.approx(10 * one.cost)


def as_scored(s):
    return s


def falls_at_the_top(s):
    return np.where(s > 0.8, 0.1, s)


def just_below_the_break_even_rate(s):
    return np.where(s > 0.8, 0.9, np.where(s > 0.2, 0.39, 0.0))


@pytest.mark.broad
@pytest.mark.parametrize(
    ("kind", "rate", "levels"),
    [
        (BinningCalibrator, as_scored, None),
        (Calibrator, as_scored, None),
        (BinningCalibrator, as_scored, 20),
        (BinningCalibrator, falls_at_the_top, None),
        (BinningCalibrator, just_below_the_break_even_rate, None),
    ],
)
def test_decisions_are_the_cheaper_ones_and_costs_lie_in_their_limits(kind, rate, levels):
    """The rate at every score is known, so the rate of a region and the average over new rows are
    known.
    """
    broken = 0
    seeds = 40

    def drawn(values):
        return values if levels is None else np.ceil(values * levels) / levels

    new = drawn((np.arange(2_000) + 0.5) / 2_000)
    truth = rate(new)
    for seed in range(seeds):
        rng = np.random.default_rng([5, seed])
        scores = drawn(rng.uniform(size=1_500))
        calibrator = kind(n_bins=6).fit(scores, rng.uniform(size=1_500) < rate(scores))
        found = decide(calibrator, new, cost_false_alarm=2, cost_miss=3)
        regions = np.unique(found.lower + 2 * found.upper, return_inverse=True)[1]
        of_region = (np.bincount(regions, truth) / np.bincount(regions))[regions]
        wrong = (found.action == "act") & (of_region < found.break_even)
        wrong |= (found.action == "do not act") & (of_region > found.break_even)
        acts = found.lower + found.upper >= 2 * found.break_even
        cost = np.where(acts, 2 * (1 - truth), 3 * truth).mean()
        # regions are told from their limits, and averages over new rows are nearly those of regions
        near = 1e-3
        broken += wrong.any() or not found.cost_lower - near <= cost <= found.cost_upper + near
    assert_rare(broken, seeds, 0.1, level=0.01)


@pytest.mark.parametrize(
    ("false_alarm", "miss"), [(0, 1), (1, 0), (-1, 1), (1, -2), (np.inf, 1), ("1", 1), (True, 1)]
)
def test_costs_must_be_positive_numbers(false_alarm, miss):
    with pytest.raises(CalibrantError, match=r"cost_(false_alarm|miss) must be a number > 0"):
        decide(CALIBRATOR, MIDDLES, cost_false_alarm=false_alarm, cost_miss=miss)


def test_a_calibrator_without_intervals_cannot_decide():
    platt = PlattCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    with pytest.raises(
        InvalidTypeError, match="calibrator must be fitted and have intervals for the rate"
    ):
        decide(platt, [0.5], cost_false_alarm=1, cost_miss=1)
    with pytest.raises(InvalidTypeError, match="calibrator must be fitted"):
        decide(BinningCalibrator(), [0.5], cost_false_alarm=1, cost_miss=1)


def test_decisions_by_a_guarantee_with_a_caveat_say_that_nothing_is_proved():
    scores = np.tile(MIDDLES, 20)
    calibrator = BinningCalibrator(2, partition="uniform")
    unbounded = calibrator.fit(
        scores, scores > 0.5, importance_weight=np.linspace(0.5, 1.0, scores.size)
    )
    found = decide(unbounded, MIDDLES, cost_false_alarm=1, cost_miss=3)
    assert found.sentence.startswith(
        "Nothing is guaranteed about these decisions: weight_bound was not given"
    )
    assert found.verdict == "unclear"
    sure = decide(CALIBRATOR, MIDDLES, cost_false_alarm=1, cost_miss=3)
    assert "(90% confidence, if they come from the population of the guarantee)" in sure.sentence
    assert set(unbounded.guarantee_.assumptions) < set(found.assumptions)
    assert "no importance weight exceeds 1" in found.details


FAMILY_HISTORY = np.repeat([1.0, 0.0, 1.0, 0.0], [24, 81, 91, 554])
CANCER = np.repeat([1, 0], [105, 645])


@pytest.mark.parametrize(
    ("threshold", "family_history", "everyone"),
    [
        (0.05, 0.025614035087719297, 0.09473684210526317),
        (0.10, 0.018518518518518517, 0.04444444444444445),
        (0.20, 0.0016666666666666635, -0.07499999999999998),
        (0.50, -0.08933333333333335, -0.72),
    ],
)
def test_net_benefit_agrees_with_dcurves_of_r(threshold, family_history, everyone):
    """The cancer data of dcurves: 750 patients, 105 with cancer, 24 of them and 91 others with a
    family history.
    """
    found = net_benefit(CANCER, FAMILY_HISTORY, thresholds=[threshold])
    assert found.value[0, 0] == pytest.approx(family_history, abs=1e-14)
    assert found.act_on_all[0] == pytest.approx(everyone, abs=1e-14)


@pytest.mark.broad
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize(
    ("levels", "power", "top"), [(None, 1, 1.0), (5, 1, 1.0), (None, 12, 1.0), (None, 1, 0.8)]
)
def test_bands_hold_for_all_models_and_thresholds_at_once(levels, power, top, alpha):
    """Rate = score^power for uniform scores, which may be rounded up to a few levels, or fall to
    0.1 at the top.
    """
    broken = 0
    seeds = 400
    n = 300
    fine = (np.arange(40_000) + 0.5) / 40_000
    at = np.arange(1, 50) / 50
    odds = at / (1 - at)

    def model(values, shrink):
        values = values if levels is None else np.ceil(values * levels) / levels
        return values if shrink else values**power

    rate = np.where(fine > top, 0.1, fine**power)
    everyone = rate.mean() - (1 - rate.mean()) * odds
    truth = []
    for shrink in (False, True):
        above = model(fine, shrink)[:, None] >= at
        truth.append((above * (rate[:, None] - (1 - rate[:, None]) * odds)).mean(axis=0))
    for seed in range(seeds):
        rng = np.random.default_rng([9, seed])
        scores = rng.uniform(size=n)
        y = rng.uniform(size=n) < np.where(scores > top, 0.1, scores**power)
        if y.all() or not y.any():
            continue
        models = {"a": model(scores, False), "b": model(scores, True)}
        found = net_benefit(y, models, thresholds=at, confidence_level=1.0 - alpha)
        inside = (found.lower <= truth) & (truth <= found.upper)
        inside &= found.over_all_lower <= truth - everyone
        broken += not inside.all()
    assert_rare(broken, seeds, alpha, level=0.01)


def test_the_gain_over_acting_on_all_is_least_at_a_corner_of_the_limits():
    """The corners of the box of p, R and F, in which the band lies; no sharper limit is valid for
    all of them.
    """
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=300)
    at = np.array([0.05, 0.4, 0.9])
    odds = at / (1 - at)
    y = rng.uniform(size=300) < scores
    found = net_benefit(y, scores, thresholds=at)
    p = np.array([[(found.act_on_all_lower[0] + odds[0]) / (1 + odds[0])]])
    p = np.append(p, (found.act_on_all_upper[0] + odds[0]) / (1 + odds[0]))
    reach = kolmogorov_distance(np.array([y.sum(), (~y).sum()]), 0.075)
    gains = []
    for share, sign1, sign0 in product(p, (-1, 1), (-1, 1)):
        hits = np.clip([(scores[y] >= t).mean() + sign1 * reach[0] for t in at], 0, 1)
        alarms = np.clip([(scores[~y] >= t).mean() + sign0 * reach[1] for t in at], 0, 1)
        worth = share * hits - (1 - share) * alarms * odds
        gains.append(worth - (share - (1 - share) * odds))
    np.testing.assert_allclose(found.over_all_lower[0], np.min(gains, axis=0), atol=1e-12)
    assert (found.over_all_lower[0] >= found.lower[0] - found.act_on_all_upper - 1e-12).all()


def test_bands_are_useful_and_say_where_a_model_is():
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=20_000)
    found = net_benefit(rng.uniform(size=20_000) < scores, scores)
    assert (found.upper - found.lower)[0, :50].max() < 0.06
    useful = found.useful("model")
    assert useful[39:60].all()
    assert not useful[0]
    assert not useful[-1]


def test_net_benefit_of_constant_scores_is_that_of_all_or_none():
    y = np.repeat([1, 0], [30, 70])
    found = net_benefit(y, np.full(100, 0.3))
    low = found.thresholds <= 0.3
    np.testing.assert_allclose(found.value[0, low], found.act_on_all[low])
    assert (found.value[0, ~low] == 0).all()


@pytest.mark.parametrize("units", [{}, {"groups": np.arange(40) // 2, "max_group_size": 2}])
def test_net_benefit_of_one_class_needs_both_named_and_allows_for_the_other(units):
    y = np.ones(40, dtype=int)
    scores = np.full(40, 0.6)
    with pytest.raises(UnexpectedLabelsError):
        net_benefit(y, scores, **units)
    found = net_benefit(y, scores, thresholds=[0.5], classes=(0, 1), **units)
    assert found.value[0, 0] == 1.0
    assert found.lower[0, 0] < 1.0  # a rate below 1 is possible, and so are false alarms


@pytest.mark.parametrize(
    ("scores", "arguments", "message"),
    [
        ([0.1, 1.2, 0.5], {}, r"scores must be probabilities in \[0, 1\]; got 1.2 at row index 1"),
        ([0.1, -3.0, 5.0], {}, "turn scores into probabilities first"),
        ({"a": [0.1, 1.2, 0.5]}, {}, "scores of model 'a' must be probabilities"),
        ({}, {}, "scores must have at least one model"),
        ({"a": [0.1, 0.2]}, {}, "2"),
        (
            [0.1, 0.2, 0.5],
            {"thresholds": [0.0, 0.5]},
            "thresholds must lie strictly between 0 and 1",
        ),
        ([0.1, 0.2, 0.5], {"confidence_level": 1.5}, "confidence_level must be"),
    ],
)
def test_bad_arguments_are_named(scores, arguments, message):
    with pytest.raises(InvalidValueError, match=message):
        net_benefit([0, 1, 1], scores, **arguments)


def test_the_display_draws_the_curves_of_all_models():
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=500)
    y = rng.uniform(size=500) < scores
    models = {"A": scores, "B": 0.5 * scores}
    display = NetBenefitDisplay.from_predictions(y, models, ax=Figure().add_subplot())
    curves = net_benefit(y, models)
    drawn = [line.get_ydata() for line in display.ax_.lines]
    for curve in (*curves.value, curves.act_on_all):
        assert any(len(line) == len(curve) and np.array_equal(line, curve) for line in drawn)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert sorted(labels) == ["A", "B", "act on all rows", "act on none"]
    assert "all thresholds and models simultaneously" in display.ax_.get_title(loc="left")


def test_curves_become_a_frame():
    frame = net_benefit(CANCER, {"history": FAMILY_HISTORY}, thresholds=[0.1, 0.2]).to_frame()
    assert frame["model"].tolist() == ["history", "history"]
    assert frame["value"].round(4).tolist() == [0.0185, 0.0017]


def test_data_of_any_size_are_counted_by_region():
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=2_000)
    y = rng.uniform(size=2_000) < scores
    calibrator = BinningCalibrator(8).fit(scores, y)
    costs = {"cost_false_alarm": 1, "cost_miss": 3}
    data = scored(pa.table({"p": scores}), score="p")
    found = decide(calibrator, data, **costs)
    rows = decide(calibrator, scores, **costs)
    assert found.counts == rows.counts
    assert found.rows.sum() == 2_000
    for name in ("cost", "cost_lower", "cost_upper"):
        assert getattr(found, name) == pytest.approx(getattr(rows, name))
    assert found.sentence == rows.sentence
    with pytest.raises(InvalidTypeError, match="segments must be None"):
        decide(calibrator, data, **costs, segments=np.ones(2_000))


@pytest.mark.parametrize("fault", ["segment", "score"])
def test_rows_that_have_no_region_are_refused_as_in_arrays(fault):
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=1_000)
    segments = rng.choice(["a", "b"], size=1_000)
    calibrator = BinningCalibrator(3).fit(
        scores, rng.uniform(size=1_000) < scores, segments=segments
    )
    scores = scores.copy()
    segments = segments.astype("U5")
    if fault == "segment":
        segments[300:] = "other"
    else:
        scores[5] = np.nan
    costs = {"cost_false_alarm": 1, "cost_miss": 3}
    data = scored(pa.table({"p": scores, "g": segments}), score="p", segment="g")
    with pytest.raises(InvalidValueError) as of_arrays:
        decide(calibrator, scores, segments=segments, **costs)
    with pytest.raises(InvalidValueError) as of_rows:
        decide(calibrator, data, **costs)
    assert of_arrays.value.parameter == f"{fault}s"
    assert of_rows.value.parameter == fault
    assert of_rows.value.column == {"segment": "g", "score": "p"}[fault]


def test_a_classifier_decides_on_features_as_its_calibrator_does_on_scores():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(3_000, 2))
    y = np.where(rng.uniform(size=3_000) < 1 / (1 + np.exp(-2 * features[:, 0])), "yes", "no")
    classifier = CalibratedClassifier(LogisticRegression(), BinningCalibrator(5)).fit(features, y)
    costs = {"cost_false_alarm": 1, "cost_miss": 3}
    found = decide(classifier, features[:200], **costs)
    scores = classifier.estimator_.predict_proba(features[:200])[:, 1]
    same = decide(classifier.calibrator_, scores, **costs)
    assert found.action.tolist() == same.action.tolist()
    assert found.cost == pytest.approx(same.cost)
    with pytest.raises(InvalidTypeError) as refused:
        decide(CalibratedClassifier(LogisticRegression()), features, **costs)
    assert refused.value.parameter == "calibrator"
    assert "CalibratedClassifier" in refused.value.got


def test_the_expected_cost_is_that_of_the_regions_of_these_rows():
    """A fixed rate in each region: for one row the limits hold its region's cost, and not the
    population's.
    """
    generator = np.random.default_rng(6)
    middles = np.array([0.125, 0.375, 0.625, 0.875])
    rates = np.array([0.02, 0.1, 0.5, 0.9])
    place = generator.integers(0, 4, size=20_000)
    calibrator = BinningCalibrator(partition=Partition.fixed_width(4)).fit(
        middles[place], generator.uniform(size=20_000) < rates[place]
    )
    cost_of_region = np.where(rates >= 0.25, 1 - rates, 3 * rates)
    for region in range(4):
        found = decide(calibrator, middles[[region]], cost_false_alarm=1, cost_miss=3)
        assert found.cost_lower <= cost_of_region[region] <= found.cost_upper
        assert not found.cost_lower <= cost_of_region.mean() <= found.cost_upper
        assert "Given the regions of these rows, the expected cost per row is" in found.details


def test_no_rows_have_no_cost():
    found = decide(CALIBRATOR, [], cost_false_alarm=1, cost_miss=3)
    assert found.sentence == "There are no rows to decide on."


def test_bands_have_a_confidence_of_90_percent_if_none_is_given():
    assert net_benefit([0, 1, 1], [0.1, 0.8, 0.4]).confidence_level == 0.9


def test_decisions_and_limits_of_cost_hold_by_enumeration():
    """Two bins of eight rows, at a confidence of 60 %: every sample, and 20 rates for each bin."""
    bins = Partition.fixed_width(2)
    n = 8
    level = 0.6
    rates = np.linspace(0.03, 0.97, 20)
    acting = 1.0 - rates
    waiting = 3.0 * rates
    chance = binom.pmf(np.arange(n + 1)[:, None], n, rates)
    missed = np.zeros((20, 20))
    for low in range(n + 1):
        for high in range(n + 1):
            tally = Tally.from_counts([n, n], [low, high], partition=bins)
            model = BinningCalibrator.from_tally(bins, tally, confidence_level=level)
            found = decide(model, [0.2, 0.2, 0.7], cost_false_alarm=1, cost_miss=3)
            wrong = np.zeros((20, 20), dtype=bool)
            cost = 0.0
            for row, along in ((0, 0), (0, 0), (2, 1)):
                acts = found.lower[row] + found.upper[row] >= 2 * found.break_even
                worse = {"act": acting > waiting, "do not act": waiting > acting}.get(
                    found.action[row], rates < 0
                )
                wrong |= np.expand_dims(worse, 1 - along)
                cost = cost + np.expand_dims(acting if acts else waiting, 1 - along) / 3
            wrong |= (cost < found.cost_lower - 1e-12) | (cost > found.cost_upper + 1e-12)
            missed += wrong * chance[low][:, None] * chance[high]
    assert missed.max() <= 1 - level


def test_regions_without_rows_count_in_no_expected_cost() -> None:
    scores = np.linspace(0.01, 0.99, 400)
    y = np.arange(400) % 4 < scores * 4
    guarantee = BinningCalibrator(partition=Partition.fixed_width(4)).fit(scores, y).guarantee_
    some = decided_by_region(guarantee, np.array([3, 0, 1, 0]), 1.0, 5.0)
    each = [
        decided_by_region(guarantee, np.eye(4, dtype=np.int64)[region], 1.0, 5.0)
        for region in range(4)
    ]
    for name in ("cost", "cost_lower", "cost_upper"):
        known = (3 * getattr(each[0], name) + getattr(each[2], name)) / 4
        assert getattr(some, name) == pytest.approx(known)
    none = decided_by_region(guarantee, np.zeros(4, dtype=np.int64), 1.0, 5.0)
    assert np.isnan(none.cost)
