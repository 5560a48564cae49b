"""Metrics of weighted rows, and of grouped rows."""

import numpy as np
import pytest
import sklearn.metrics as reference
from matplotlib.figure import Figure

from calibrant import BinningCalibrator, Partition, ReliabilityDisplay, audit, scored
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.metrics import (
    brier_score,
    debiased_ece,
    ece,
    log_loss,
    reliability_table,
    smooth_ece,
)
from worlds.guarantees import assert_kept
from worlds.weighted import clusters, kept_too_seldom, survey

VALUES = {
    "brier": lambda y, p, **options: brier_score(y, p, **options).value,
    "refinement": (
        lambda y, p, **options: brier_score(y, p, strategy="uniform", **options).refinement
    ),
    "within": lambda y, p, **options: brier_score(y, p, strategy="uniform", **options).within_bins,
    "log loss": lambda y, p, **options: log_loss(y, p, **options).value,
    "ece": lambda y, p, **options: ece(y, p, strategy="uniform", **options).value,
    "quantile ece": (
        lambda y, p, **options: ece(y, p, strategy="quantile", n_bins=3, **options).value
    ),
    "swept ece": lambda y, p, **options: ece(y, p, n_bins="sweep", **options).value,
    "smooth": lambda y, p, **options: smooth_ece(y, p, **options).value,
    "rates": lambda y, p, **options: (
        reliability_table(y, p, partition="uniform", n_bins=4, **options).rate
    ),
    "mean scores": lambda y, p, **options: (
        reliability_table(y, p, partition="uniform", n_bins=4, **options).mean_score
    ),
}


def rows(rng, n):
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < scores**1.5).astype(int)


@pytest.mark.parametrize("name", VALUES)
def test_whole_weights_are_repeated_rows(name):
    rng = np.random.default_rng(0)
    scores, y = rows(rng, 400)
    times = rng.integers(0, 4, size=400)
    weighted = VALUES[name](y, scores, importance_weight=times)
    np.testing.assert_allclose(
        weighted, VALUES[name](np.repeat(y, times), np.repeat(scores, times)), rtol=1e-9
    )


@pytest.mark.parametrize("name", VALUES)
def test_a_multiple_of_the_weights_changes_nothing(name):
    rng = np.random.default_rng(1)
    scores, y = rows(rng, 400)
    weights = rng.uniform(0.1, 1.0, size=400)
    once, more = (
        VALUES[name](y, scores, importance_weight=factor * weights) for factor in (1.0, 7.0)
    )
    np.testing.assert_allclose(once, more, rtol=1e-9)


def test_weighted_scores_agree_with_scikit_learn():
    rng = np.random.default_rng(2)
    scores, y = rows(rng, 400)
    weights = rng.uniform(0.1, 1.0, size=400)
    assert brier_score(y, scores, importance_weight=weights).value == pytest.approx(
        reference.brier_score_loss(y, scores, sample_weight=weights), rel=1e-12
    )
    assert log_loss(y, scores, importance_weight=weights).value == pytest.approx(
        reference.log_loss(y, scores, sample_weight=weights), rel=1e-12
    )


def test_equal_weights_have_nearly_the_intervals_of_rows():
    rng = np.random.default_rng(3)
    scores, y = rows(rng, 500)
    plain = smooth_ece(y, scores)
    weighted = smooth_ece(y, scores, importance_weight=np.full(500, 2.0))
    assert weighted.lower <= plain.lower
    assert (
        plain.upper <= weighted.upper < 1.02 * plain.upper
    )  # variances of labels are used without weights alone
    assert debiased_ece(y, scores, importance_weight=np.ones(500)).value == pytest.approx(
        debiased_ece(y, scores).value, rel=1e-9
    )


@pytest.mark.slow
def test_weighted_intervals_cover_the_population():
    rng = np.random.default_rng(4)
    clipped = np.clip((np.arange(100_000) + 0.5) / 100_000, 0.05, 0.95)
    centre = (np.arange(100_000) + 0.5) / 100_000
    true_log = float(np.mean(-centre * np.log(clipped) - (1 - centre) * np.log1p(-clipped)))
    plain_missed = 0

    def misses():
        nonlocal plain_missed
        while True:
            scores, y, weights = survey(rng, 500)
            bounded = {"importance_weight": weights, "weight_bound": 1.0, "confidence_level": 0.9}
            plain = brier_score(y, scores, confidence_level=0.9)
            plain_missed += not plain.lower <= 1 / 6 <= plain.upper
            found = {
                "brier": (brier_score(y, scores, **bounded), 1 / 6),
                "log": (log_loss(y, scores, clip=0.05, **bounded), true_log),
            }
            # given scores and weights: rates that depend on both
            weights = rng.uniform(0.1, 1.0, size=500)
            rates = np.clip(scores + 0.3 * (weights - 0.5), 0.0, 1.0)
            cell = np.minimum((scores * 10).astype(int), 9)
            total = np.bincount(cell, weights)
            gap = np.abs(np.bincount(cell, weights * (rates - scores)))
            truth = {"l1": gap.sum() / total.sum(), "max": (gap / total).max()}
            redrawn = rng.uniform(size=500) < rates
            for norm, true in truth.items():
                options = {
                    "strategy": "uniform",
                    "importance_weight": weights,
                    "confidence_level": 0.9,
                }
                found[norm] = ece(redrawn, scores, norm=norm, **options), true
            yield {name: not one.lower <= true <= one.upper for name, (one, true) in found.items()}

    draws = assert_kept(misses(), caught=0.2)
    assert kept_too_seldom(draws - plain_missed, draws)


@pytest.mark.slow
def test_grouped_intervals_cover_the_population_and_others_do_not():
    rng = np.random.default_rng(5)
    plain_missed = 0
    widths = []

    def misses():
        nonlocal plain_missed
        while True:
            scores, y, group = clusters(rng, 200, 10)
            grouped = brier_score(y, scores, groups=group, max_group_size=10, confidence_level=0.9)
            plain = brier_score(y, scores, confidence_level=0.9)
            plain_missed += not plain.lower <= 1 / 6 <= plain.upper
            widths.append((grouped.upper - grouped.lower) / (plain.upper - plain.lower))
            yield {"grouped": not grouped.lower <= 1 / 6 <= grouped.upper}

    draws = assert_kept(misses(), caught=0.2)
    assert kept_too_seldom(draws - plain_missed, draws)
    assert np.mean(widths) < 4.0


@pytest.mark.slow
def test_whiskers_of_groups_cover_the_rates_and_those_of_rows_do_not():
    rng = np.random.default_rng(13)
    bins = Partition.from_edges([0.25, 0.5, 0.75])
    truth = np.array([0.125, 0.375, 0.625, 0.875])
    rows_missed = 0

    def misses():
        nonlocal rows_missed
        while True:
            scores, y, group = clusters(rng, 300, 10)
            tables = [
                reliability_table(y, scores, partition=bins, **options)
                for options in ({}, {"groups": group, "max_group_size": 10})
            ]
            plain, grouped = (
                bool(((table.lower > truth) | (table.upper < truth)).any()) for table in tables
            )
            rows_missed += plain
            yield {"groups": grouped}

    draws = assert_kept(misses(), caught=0.2)
    assert kept_too_seldom(draws - rows_missed, draws)


@pytest.mark.parametrize("weight", [None, 0.5])
def test_mean_scores_and_rates_count_groups_as_the_limits_do(weight):
    """A calibrated score; a few huge groups, which count as five rows, have small scores."""
    rng = np.random.default_rng(21)
    size = np.where(rng.uniform(size=2_000) < 0.02, 60, 1)
    group = np.repeat(np.arange(2_000), size)
    scores = np.where(size[group] > 1, 0.1, 1.0) * rng.uniform(size=group.size)
    y = (rng.uniform(size=group.size) < scores).astype(int)
    given = (
        {}
        if weight is None
        else {"importance_weight": np.full(group.size, weight), "weight_bound": weight}
    )
    table = reliability_table(y, scores, n_bins=1, groups=group, max_group_size=5, **given)
    assert not table.is_off.any()
    assert ((table.lower < table.rate) & (table.rate < table.upper)).all()
    assert table.mean_score[0] > 1.5 * scores.mean()  # in which every row counts the same


def test_the_display_takes_groups():
    rng = np.random.default_rng(14)
    scores, y, group = clusters(rng, 300, 5)
    options = {"groups": group, "max_group_size": 5, "n_bins": 3}
    display = ReliabilityDisplay.from_predictions(y, scores, ax=Figure().add_subplot(), **options)
    table = reliability_table(y, scores, **options)
    np.testing.assert_array_equal(display.observed.lower, table.lower)
    assert table.method == "betting"
    wide, narrow = (
        found.upper - found.lower for found in (table, reliability_table(y, scores, n_bins=3))
    )
    assert wide.mean() > narrow.mean()
    calibrator = BinningCalibrator(3).fit(scores, y, groups=group)
    held_out = {"groups": group, "max_group_size": 5}
    drawn = ReliabilityDisplay.from_calibrator(
        calibrator, y, scores, ax=Figure().add_subplot(), **held_out
    )
    assert drawn.observed.method == "betting"
    with pytest.raises(InvalidTypeError, match=r"^monotone must"):
        ReliabilityDisplay.from_predictions(
            y, scores, ax=Figure().add_subplot(), monotone=True, **options
        )


def test_without_a_bound_intervals_are_heuristic_and_say_what_they_are_for():
    rng = np.random.default_rng(6)
    scores, y, group = clusters(rng, 40, 5)
    weights = rng.uniform(size=200)
    assert brier_score(y, scores, importance_weight=weights).heuristic
    assert not brier_score(y, scores, importance_weight=weights, weight_bound=1.0).heuristic
    assert "weighted population" in brier_score(y, scores, importance_weight=weights).target
    assert brier_score(y, scores, groups=group).heuristic
    proved = brier_score(y, scores, groups=group, max_group_size=5)
    assert not proved.heuristic
    assert proved.target == "the expected Brier score of rows of new groups"
    assert "at most 2 rows" in brier_score(y, scores, groups=group, max_group_size=2).basis
    assert log_loss(y, scores, groups=group).heuristic
    alone = brier_score(y, scores, groups=np.arange(200), max_group_size=1)
    assert (alone.lower, alone.upper) == pytest.approx(
        tuple(getattr(brier_score(y, scores), name) for name in ("lower", "upper")), abs=0.01
    )


def test_scored_data_with_weights_are_weighed():
    import pyarrow as pa

    rng = np.random.default_rng(7)
    scores, y = rows(rng, 200)
    weights = rng.uniform(size=200)
    data = scored(pa.table({"p": scores, "y": y, "w": weights}), score="p", label="y", weight="w")
    assert brier_score(data).value == pytest.approx(
        brier_score(y, scores, importance_weight=weights).value
    )
    assert ece(data).value == pytest.approx(ece(y, scores, importance_weight=weights).value)


def test_the_display_draws_weighted_rates():
    rng = np.random.default_rng(8)
    scores, y, weights = survey(rng, 1000)
    options = {"importance_weight": weights, "weight_bound": 1.0, "n_bins": 4}
    display = ReliabilityDisplay.from_predictions(y, scores, ax=Figure().add_subplot(), **options)
    np.testing.assert_array_equal(
        display.observed.rate, reliability_table(y, scores, **options).rate
    )
    assert display.observed.method == "betting"
    assert np.abs(display.observed.gap).max() < 0.12  # the scores are calibrated for the population
    assert np.abs(reliability_table(y, scores, n_bins=4).gap).max() > 0.12


def test_bad_weights_and_sizes_are_refused():
    scores, y = rows(np.random.default_rng(9), 100)
    for bad in ([1.0], np.full(100, -1.0), np.full(100, np.nan), np.zeros(100)):
        for metric in (brier_score, ece, smooth_ece, log_loss):
            with pytest.raises(InvalidValueError, match=r"^importance_weight must"):
                metric(y, scores, importance_weight=bad)
    with pytest.raises(InvalidValueError, match="weight_bound"):
        brier_score(y, scores, importance_weight=np.ones(100), weight_bound=0.5)
    with pytest.raises(
        InvalidTypeError, match=r"^weight_bound must be None without importance_weight"
    ):
        brier_score(y, scores, weight_bound=1.0)
    with pytest.raises(InvalidTypeError, match=r"^max_group_size must be None without groups"):
        brier_score(y, scores, max_group_size=3)


def test_sentences_are_short_with_groups_and_weights_too() -> None:
    """35 words; what a rate is given, and how large groups count, is in the notes."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=900)
    y = rng.uniform(size=900) < scores**2
    units = {"groups": rng.integers(90, size=900), "importance_weight": rng.uniform(1, 2, 900)}
    bounds = {"max_group_size": 4, "weight_bound": 2.0}
    short = [ece(y, scores, **units), smooth_ece(y, scores, **units)]
    short += [brier_score(y, scores, **units, **bounds)]
    short += [log_loss(y, scores, clip=0.01, **units, **bounds)]
    for found in (*short, audit(y, scores, **units, **bounds)):
        assert len(found.sentence.split()) <= 35
    for found in short[:2]:
        assert "the rate of a row is that given all scores of its group" in found.notes[0]
    for found in short[2:]:
        assert "a group counts by a weight of at most 8" in found.notes[0]
