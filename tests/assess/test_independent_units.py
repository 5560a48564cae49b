"""Groups and importance weights in comparisons, validation, AUC and ECE: what holds, and what
equals what.
"""

from functools import partial

import numpy as np
import pytest

from calibrant import (
    BinningCalibrator,
    PlattCalibrator,
    audit,
    compare_calibrators,
    compare_models,
    threshold,
    validation_table,
)
from calibrant.assess.validation import calibration_index
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.metrics import auc, brier_score, debiased_ece, ece, log_loss, smooth_ece
from worlds.errors import about
from worlds.guarantees import assert_kept

SIZE = 8


def world(rng, n_groups=150, icc=0.5):
    """Groups that share one score and one rate, drawn around the score.

    Half of them are small, with higher rates.

    The score is calibrated among the large groups. Over rows of all groups the mean rate is 0.5 +
    0.1 / 9.
    """
    large = rng.uniform(size=n_groups) < 0.5
    sizes = np.where(large, SIZE, 1)
    scores = rng.uniform(size=n_groups)
    spread = (1 - icc) / icc
    rates = rng.beta(scores * spread + 1e-12, (1 - scores) * spread + 1e-12)
    rates = np.where(large, rates, np.minimum(rates + 0.2 * (1 - rates), 1))
    group = np.repeat(np.arange(n_groups), sizes)
    return (rng.uniform(size=group.size) < rates[group]).astype(int), scores[group], group


def survey(rng, n=400):
    """Rows of which positives are sampled twice as often, and the weights that undo it."""
    scores = rng.uniform(size=3 * n)
    y = rng.uniform(size=3 * n) < scores
    kept = rng.uniform(size=3 * n) < np.where(y, 0.6, 0.3)
    return y[kept].astype(int), scores[kept], np.where(y[kept], 0.5, 1.0)


EXPECTED_OVER_OBSERVED = 0.5 / (0.5 + 0.1 / 9)


@pytest.mark.slow
def test_limits_hold_for_rows_of_new_groups_and_for_the_weighted_population():
    rng = np.random.default_rng(0)
    sample = world(rng, 200_000)
    dull = 0.25 + 0.5 * sample[1]
    brier = float(np.mean((sample[0] - sample[1]) ** 2 - (sample[0] - dull) ** 2))
    far = 1 / 6 - (1 / 6 + 1 / 48)  # of the survey: rate = score, and its half in place of it

    def draws():
        while True:
            y, scores, group = world(rng)
            models = {"sharp": scores, "dull": 0.25 + 0.5 * scores}
            options = {
                "groups": group,
                "max_group_size": SIZE,
                "random_state": rng,
                "confidence_level": 0.8,
            }
            found = compare_models(y, models, **options).differences[0]
            ratio = validation_table(y, scores, n_draws=19, **options)["expected / observed"]
            weighted_y, p, weight = survey(rng)
            options = {
                "importance_weight": weight,
                "weight_bound": 1.0,
                "random_state": rng,
                "confidence_level": 0.8,
            }
            models = {"sharp": p, "dull": 0.25 + 0.5 * p}
            weighted = compare_models(weighted_y, models, **options).differences[0]
            other = validation_table(weighted_y, p, n_draws=19, **options)["expected / observed"]
            yield {
                "difference, groups": not found.lower <= brier <= found.upper,
                "ratio, groups": not ratio.lower <= EXPECTED_OVER_OBSERVED <= ratio.upper,
                "difference, weights": not weighted.lower <= far <= weighted.upper,
                "ratio, weights": not other.lower <= 1.0 <= other.upper,
            }

    assert_kept(draws(), 0.2, caught=0.35)


@pytest.mark.slow
def test_the_calibration_error_of_groups_lies_in_its_interval_and_rows_alone_miss_it():
    # labels of a group are all alike: the worst case for its limits; the true error is 0
    rng = np.random.default_rng(1)
    missed = 0

    def draws():
        nonlocal missed
        while True:
            scores = np.repeat(rng.uniform(size=60), SIZE)
            group = np.repeat(np.arange(60), SIZE)
            y = np.repeat(rng.uniform(size=60), SIZE) < scores
            options = {"strategy": "uniform", "confidence_level": 0.8, "n_bins": 5}
            grouped = [ece(y, scores, norm=norm, groups=group, **options) for norm in ("l1", "max")]
            smooth = smooth_ece(y, scores, groups=group, confidence_level=0.8, n_cells=256)
            missed += ece(y, scores, **options).lower > 0.0
            yield {found.name: found.lower > 0.0 for found in (*grouped, smooth)}

    n_draws = assert_kept(draws(), 0.2, caught=0.35)
    assert missed > 0.35 * n_draws


@pytest.mark.broad
def test_every_row_its_own_group_is_as_without_groups():
    y, scores, _ = world(np.random.default_rng(2))
    alone = np.arange(y.size)
    assert auc(y, scores, groups=alone).value == pytest.approx(auc(y, scores).value, abs=1e-12)
    limits = [
        (found.lower, found.upper) for found in (auc(y, scores, groups=alone), auc(y, scores))
    ]
    assert limits[0] == pytest.approx(limits[1], abs=2e-3)
    for one in (debiased_ece, smooth_ece):
        assert one(y, scores, groups=alone).value == pytest.approx(one(y, scores).value, abs=1e-12)
    plain = smooth_ece(y, scores)
    assert plain.upper <= smooth_ece(y, scores, groups=alone).upper < 1.02 * plain.upper
    table = validation_table(y, scores, groups=alone, max_group_size=1)
    plain = validation_table(y, scores)
    for name in ("slope", "intercept", "miscalibration", "AUC", "Kuiper statistic"):
        assert table[name].value == pytest.approx(plain[name].value, abs=1e-9)
    assert table["slope"].upper == pytest.approx(plain["slope"].upper, abs=0.2)
    options = {"random_state": 0}
    models = {"a": scores, "b": scores**2}
    one = compare_models(y, models, groups=alone, max_group_size=1, **options)
    assert one.brier.tolist() == pytest.approx(
        compare_models(y, models, **options).brier.tolist(), abs=1e-12
    )


@pytest.mark.broad
def test_whole_weights_are_repeated_rows_in_what_is_measured(monkeypatch):
    rng = np.random.default_rng(3)
    y, scores, _ = world(rng)
    times = rng.integers(1, 4, size=y.size)
    rows = np.repeat(y, times), np.repeat(scores, times)
    weights = {"importance_weight": times}
    assert auc(y, scores, **weights).value == pytest.approx(auc(*rows).value, abs=1e-12)
    one = compare_models(y, {"a": scores, "b": scores**2}, weight_bound=3, **weights)
    other = compare_models(rows[0], {"a": rows[1], "b": rows[1] ** 2})
    for name in ("brier", "log_loss", "ece", "auc"):
        assert getattr(one, name).tolist() == pytest.approx(
            getattr(other, name).tolist(), abs=1e-12
        )
    table = validation_table(y, scores, weight_bound=3, **weights)
    repeated = validation_table(*rows)
    indices = ("ICI", "E50", "E90")
    for measure in table.measures:
        if measure.name not in (*indices, "p-value of calibration"):
            assert measure.value == pytest.approx(repeated[measure.name].value, abs=1e-6)
    # less the noise of the labels, which is larger than that of independent repetitions
    assert all(0.0 < table[name].value < repeated[name].value for name in indices)
    monkeypatch.setattr(
        calibration_index, "_of_noise", lambda *_: dict.fromkeys(indices, 0.0)
    )  # nothing is subtracted
    table = validation_table(y, scores, weight_bound=3, **weights)
    repeated = validation_table(*rows)
    for name in indices:
        assert table[name].value == pytest.approx(repeated[name].value, abs=1e-6)
    assert table["p-value of calibration"].basis == "asymptotic"


@pytest.mark.broad
def test_the_spread_of_groups_widens_limits_of_auc_and_slope():
    y, scores, group = world(np.random.default_rng(4), 400, icc=0.9)
    clustered = auc(y, scores, groups=group)
    plain = auc(y, scores)
    assert clustered.upper - clustered.lower > 1.3 * (plain.upper - plain.lower)
    clustered = validation_table(y, scores, groups=group, max_group_size=SIZE)["slope"]
    plain = validation_table(y, scores)["slope"]
    assert clustered.upper - clustered.lower > 1.3 * (plain.upper - plain.lower)


@pytest.mark.broad
def test_the_asymptotic_test_finds_what_is_wrong_and_little_else():
    rng = np.random.default_rng(5)
    wrong = 0
    fine = 0
    for _ in range(20):
        scores = np.repeat(rng.uniform(size=150), SIZE)
        group = np.repeat(np.arange(150), SIZE)
        y = np.repeat(rng.uniform(size=150), SIZE) < scores
        options = {"groups": group, "max_group_size": SIZE, "n_draws": 99}
        fine += validation_table(y, scores, **options).p_value <= 0.05
        wrong += validation_table(y, scores**2, **options).p_value <= 0.05
    assert fine <= 5
    assert wrong == 20


def test_grades_of_groups_have_limits_that_hold_however_rows_depend():
    y, scores, group = world(np.random.default_rng(6), 2000)
    grades = np.where(scores < 0.5, "low", "high")
    options = {"grades": grades, "groups": group, "max_group_size": SIZE, "n_draws": 19}
    found = validation_table(y, scores, **options).grades
    assert found.verdict == ("not refuted", "not refuted")
    assert validation_table(y, scores / 2, **options).grades.verdict == (
        "assigned too low",
        "assigned too low",
    )
    given = validation_table(y, scores, assigned={"low": 0.9, "high": 0.76}, **options).grades
    assert given.verdict == ("not refuted", "assigned too high")


@pytest.mark.broad
def test_compare_weighs_rows_and_has_differences_of_groups():
    rng = np.random.default_rng(7)
    y, scores, group = world(rng, 800)

    class Seen(PlattCalibrator):
        scores = None

        def fit(self, scores, y, **named):
            Seen.scores = scores
            return super().fit(scores, y, **named)

    calibrators = [Seen(), BinningCalibrator(3)]
    grouped = compare_calibrators(y, scores, calibrators, groups=group, max_group_size=SIZE)
    assert len(grouped.differences) == 4
    y, scores, weight = survey(rng)
    weighted = compare_calibrators(
        y, scores, calibrators, importance_weight=weight, weight_bound=1.0
    )
    assert len(weighted.differences) == 4
    assert weighted.guarantee[-1].is_proved
    judged = ~np.isin(scores, Seen.scores)
    squares = (y[judged] - scores[judged]) ** 2
    assert weighted.brier[0] == pytest.approx(np.average(squares, weights=weight[judged]))


def weighted_groups(rng, n_groups):
    """The groups of `world` with weights that depend on label and size; those of some groups are 0."""
    y, scores, group = world(rng, n_groups)
    large = np.bincount(group)[group] > 1
    silent = (rng.uniform(size=n_groups) < 0.1)[group]
    return (
        y,
        scores,
        group,
        np.where(silent, 0.0, np.where(y == 1, 0.25, 1.0) * np.where(large, 0.5, 1.0)),
    )


@pytest.mark.slow
def test_limits_hold_for_rows_of_new_groups_in_the_weighted_population():
    rng = np.random.default_rng(12)
    y, scores, _, weight = weighted_groups(rng, 200_000)
    brier = np.average((y - scores) ** 2, weights=weight)
    ratio = np.average(scores, weights=weight) / np.average(y, weights=weight)

    def draws():
        while True:
            y, scores, group, weight = weighted_groups(rng, 120)
            beside = {
                "groups": group,
                "importance_weight": weight,
                "weight_bound": 1.0,
                "max_group_size": SIZE,
            }
            found = brier_score(y, scores, confidence_level=0.8, **beside)
            table = validation_table(
                y, scores, n_draws=19, confidence_level=0.8, random_state=rng, **beside
            )
            other = table["expected / observed"]
            assert not found.heuristic
            yield {
                "Brier score": not found.lower <= brier <= found.upper,
                "ratio": not other.lower <= ratio <= other.upper,
            }

    assert_kept(draws(), 0.2, caught=0.35)


def test_groups_with_weights_of_one_are_groups():
    y, scores, group = world(np.random.default_rng(8))
    ones = {"groups": group, "importance_weight": np.ones(y.size)}
    bounds = {"max_group_size": SIZE, "weight_bound": 1.0}
    for metric in (ece, debiased_ece, smooth_ece, auc):
        both = metric(y, scores, **ones)
        alone = metric(y, scores, groups=group)
        assert (both.value, both.lower, both.upper) == pytest.approx(
            (alone.value, alone.lower, alone.upper)
        )
    for metric in (brier_score, partial(log_loss, clip=0.01)):
        both = metric(y, scores, **ones, **bounds)
        alone = metric(y, scores, groups=group, max_group_size=SIZE)
        assert (both.lower, both.upper) == pytest.approx((alone.lower, alone.upper))
    both = audit(y, scores**3, **ones, weight_bound=1.0)
    alone = audit(y, scores**3, groups=group)
    np.testing.assert_allclose(both.table.lower, alone.table.lower)
    models = {"a": scores, "b": scores / 2}
    order = partial(
        np.random.default_rng, 0
    )  # a seed alone would be mixed with the rows and their weights
    both = compare_models(y, models, **ones, **bounds, random_state=order()).differences[0]
    alone = compare_models(
        y, models, groups=group, max_group_size=SIZE, random_state=order()
    ).differences[0]
    assert (both.lower, both.upper) == pytest.approx((alone.lower, alone.upper))
    both = threshold(y, scores, precision=0.6, **ones, weight_bound=1.0)
    assert both.cuts == threshold(y, scores, precision=0.6, groups=group).cuts


def test_an_audit_of_groups_with_weights_says_what_it_is_about():
    y, scores, group, weight = weighted_groups(np.random.default_rng(9), 400)
    found = audit(y, scores**3, groups=group, importance_weight=weight, weight_bound=1.0)
    assert found.worst is not None
    assert "rows of new groups in the weighted population" in found.details
    assert "no importance weight exceeds 1" in found.assumptions
    assert any("a group counts by a weight of at most 8" in text for text in found.assumptions)


def test_groups_or_weights_without_a_bound_are_refused():
    y, scores, group = world(np.random.default_rng(8))
    models = {"a": scores, "b": scores}
    both = {"groups": group, "importance_weight": np.ones(y.size)}
    for use in (
        lambda **k: compare_models(y, models, **k),
        lambda **k: validation_table(y, scores, **k),
    ):
        with pytest.raises(InvalidTypeError, check=about("max_group_size")):
            use(weight_bound=1.0, **both)
        with pytest.raises(InvalidTypeError, check=about("weight_bound")):
            use(max_group_size=8, **both)
        with pytest.raises(InvalidTypeError, check=about("max_group_size")):
            use(groups=group)
        with pytest.raises(InvalidTypeError, check=about("weight_bound")):
            use(importance_weight=np.ones(y.size))


def test_assumptions_name_groups_and_weights_where_there_are_any():
    rng = np.random.default_rng(5)
    scores = rng.uniform(size=60)
    y = (rng.uniform(size=60) < scores).astype(int)
    groups = {"groups": np.arange(60) // 2, "max_group_size": 2}
    weights = {"importance_weight": np.ones(60), "weight_bound": 1.0}
    for given in ({}, groups, weights, groups | weights):
        found = compare_models(y, {"a": scores, "b": 1.0 - scores}, **given)
        about_draws = found.assumptions[0]
        assert about_draws.startswith("the groups" if "groups" in given else "the rows")
        assert ("weights are right" in about_draws) == ("importance_weight" in given)


def test_limits_of_grades_of_groups_pay_for_grades_that_no_row_has():
    y, scores, group = world(np.random.default_rng(10))
    grades = np.where(scores < 0.5, "low", "high")
    options = {"grades": grades, "groups": group, "max_group_size": SIZE, "n_draws": 19}
    assigned = {"low": 0.2, "high": 0.8}
    more = validation_table(
        y, scores, assigned={**assigned, "none": 0.5}, confidence_level=0.85, **options
    ).grades
    as_many = validation_table(y, scores, assigned=assigned, confidence_level=0.9, **options).grades
    np.testing.assert_allclose(more.lower, as_many.lower, rtol=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_weight_above_its_bound_is_named_by_its_row_also_after_rows_without_weight(grouped):
    scores = np.full(20, 0.5)
    y = np.arange(20) % 2
    weight = np.tile([0.0, 1.0], 10)
    weight[7] = 3.0
    given = {"importance_weight": weight, "weight_bound": 2.0}
    given |= {"groups": np.arange(20) // 2, "max_group_size": 2} if grouped else {}
    for measure in (brier_score, log_loss, audit, validation_table):
        with pytest.raises(
            InvalidValueError,
            check=about("importance_weight", "3.0 at row index 7, and in no other row"),
        ):
            measure(y, scores, **given)
    with pytest.raises(
        InvalidValueError,
        check=about("importance_weight", "3.0 at row index 7, and in no other row"),
    ):
        compare_models(y, {"a": scores, "b": scores / 2}, **given)
