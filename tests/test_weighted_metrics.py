"""Metrics of rows that count differently, and of rows that belong together."""

from itertools import pairwise

import numpy as np
import pytest
import sklearn.metrics as reference
from matplotlib.figure import Figure
from scipy import stats

from calibrant import BinningCalibrator, Partition, ReliabilityDisplay, audit, scored
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.intervals.bounded_mean import weighted_means
from calibrant.metrics import brier_score, debiased_ece, ece, log_loss, reliability_table, smooth_ece
from calibrant.rows import read_rows
from calibrant.rows.draw import Draw, position_keys
from promises import assert_kept

VALUES = {
    "brier": lambda y, p, **options: brier_score(y, p, **options).value,
    "refinement": lambda y, p, **options: brier_score(y, p, strategy="uniform", **options).refinement,
    "within": lambda y, p, **options: brier_score(y, p, strategy="uniform", **options).within_bins,
    "log loss": lambda y, p, **options: log_loss(y, p, **options).value,
    "ece": lambda y, p, **options: ece(y, p, strategy="uniform", **options).value,
    "quantile ece": lambda y, p, **options: ece(y, p, strategy="quantile", n_bins=3, **options).value,
    "swept ece": lambda y, p, **options: ece(y, p, n_bins="sweep", **options).value,
    "smooth": lambda y, p, **options: smooth_ece(y, p, **options).value,
    "rates": lambda y, p, **options: reliability_table(y, p, strategy="uniform", n_bins=4, **options).rate,
    "mean scores": lambda y, p, **options: reliability_table(y, p, strategy="uniform", n_bins=4, **options).mean_score,
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
    np.testing.assert_allclose(weighted, VALUES[name](np.repeat(y, times), np.repeat(scores, times)), rtol=1e-9)


@pytest.mark.parametrize("name", VALUES)
def test_a_multiple_of_the_weights_changes_nothing(name):
    rng = np.random.default_rng(1)
    scores, y = rows(rng, 400)
    weights = rng.uniform(0.1, 1.0, size=400)
    once, more = (VALUES[name](y, scores, importance_weight=factor * weights) for factor in (1.0, 7.0))
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


def test_equal_weights_have_the_intervals_of_rows_where_these_follow_from_sums():
    rng = np.random.default_rng(3)
    scores, y = rows(rng, 500)
    plain, weighted = smooth_ece(y, scores), smooth_ece(y, scores, importance_weight=np.full(500, 2.0))
    assert (weighted.lower, weighted.upper) == pytest.approx((plain.lower, plain.upper), rel=1e-9)
    assert debiased_ece(y, scores, importance_weight=np.ones(500)).value == pytest.approx(
        debiased_ece(y, scores).value, rel=1e-9
    )


def kept_too_seldom(held, draws, level=0.9):
    return stats.binomtest(held, draws, level, alternative="less").pvalue <= 1e-4


def survey(rng, n):
    """Calibrated scores, sampled by score and label, and weights at most 1; the expected Brier score is 1/6."""
    scores = rng.uniform(size=6 * n)
    y = rng.uniform(size=6 * n) < scores
    chance = np.where(y, 0.2 + 0.8 * scores, 0.3)
    taken = np.flatnonzero(rng.uniform(size=6 * n) < chance)[:n]
    return scores[taken], y[taken], 0.2 / chance[taken]


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
            total, gap = np.bincount(cell, weights), np.abs(np.bincount(cell, weights * (rates - scores)))
            truth = {"l1": gap.sum() / total.sum(), "max": (gap / total).max()}
            redrawn = rng.uniform(size=500) < rates
            for norm, true in truth.items():
                options = {"strategy": "uniform", "importance_weight": weights, "confidence_level": 0.9}
                found[norm] = ece(redrawn, scores, norm=norm, **options), true
            yield {name: not one.lower <= true <= one.upper for name, (one, true) in found.items()}

    draws = assert_kept(misses(), caught=0.2)
    assert kept_too_seldom(draws - plain_missed, draws)


def clusters(rng, n_groups, size, icc=0.3):
    """Groups that share one score and one rate, drawn around the score: the expected Brier score is 1/6."""
    spread = (1 - icc) / icc
    scores = rng.uniform(size=n_groups)
    rates = rng.beta(scores * spread + 1e-12, (1 - scores) * spread + 1e-12)
    group = np.repeat(np.arange(n_groups), size)
    return scores[group], rng.uniform(size=group.size) < rates[group], group


@pytest.mark.slow
def test_grouped_intervals_cover_the_population_and_others_do_not():
    rng = np.random.default_rng(5)
    plain_missed, widths = 0, []

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
def test_an_audit_of_groups_or_weights_raises_no_more_false_alarms_than_stated_and_a_plain_one_does():
    rng = np.random.default_rng(10)
    false = {"groups": 0, "weights": 0}

    def alarms():
        while True:
            scores, y, group = clusters(rng, 150, 8)
            false["groups"] += audit(y, scores, confidence_level=0.9).is_miscalibrated
            grouped = audit(y, scores, groups=group, max_group_size=8, confidence_level=0.9)
            scores, y, weights = survey(rng, 1000)
            false["weights"] += audit(y, scores, confidence_level=0.9).is_miscalibrated
            weighted = audit(y, scores, importance_weight=weights, weight_bound=1.0, confidence_level=0.9)
            yield {"groups": grouped.is_miscalibrated, "weights": weighted.is_miscalibrated}

    draws = assert_kept(alarms(), caught=0.2)
    assert all(kept_too_seldom(draws - count, draws) for count in false.values()), false


def test_an_audit_of_groups_or_weights_finds_errors_and_says_what_it_is_about():
    rng = np.random.default_rng(11)
    scores, y, group = clusters(rng, 1000, 5)
    off = np.sqrt(scores)
    found = audit(y, off, groups=group, max_group_size=5)
    assert found.is_miscalibrated
    assert 0.1 < found.lower_bound <= 0.25
    assert "rows of new groups" in found.assumptions[0]
    assert "the names of the groups say nothing about scores and labels" in found.assumptions
    assert found.upper_bound is None
    assert 0.1 < found.average_lower_bound < 1 / 6, "the mean of sqrt(s) - s is 1/6"
    assert "no upper bound" in str(found)
    assert found.table.counts[0] == found.n_rows < 5000
    assert (found.table.lower <= found.table.upper).all()
    weights = rng.uniform(size=5000)
    weighted = audit(y, off, importance_weight=weights, weight_bound=1.0, tolerance=0.01)
    assert weighted.is_miscalibrated
    assert "counts by its weight" in weighted.assumptions[0]
    assert "the order of the rows says nothing about scores and labels" in weighted.assumptions
    exchanged = audit(1 - y, 1.0 - off, groups=group, max_group_size=5)
    assert exchanged.lower_bound == pytest.approx(found.lower_bound, abs=0.03)


@pytest.mark.broad
def test_an_audit_of_groups_or_weights_by_segment():
    rng = np.random.default_rng(20)
    scores, y, group = clusters(rng, 2000, 5)
    segments = np.where(group % 2, "right", "wrong")
    off = np.where(segments == "wrong", np.sqrt(scores), scores)
    for given in ({"groups": group, "max_group_size": 5}, {"importance_weight": np.ones(y.size), "weight_bound": 1.0}):
        found = audit(y, off, segments=segments, **given)
        assert found.by_segment
        assert {finding.segment for finding in found.findings} == {None, "wrong"}
        assert 0.15 < found.within_segments.lower_bound <= 0.25
        assert 0.04 < found.within_segments.average_lower_bound < 1 / 12
    read = read_rows(scores, y, groups=group).collect()
    rare = np.where(group == group[~read.chosen(read.draw(0.1, 0))][0], "rare", segments)
    found = audit(y, off, segments=rare, groups=group, max_group_size=5)
    assert "nothing is said of segments that no row set aside has, such as 'rare'" in found.assumptions


def test_an_audit_of_groups_has_an_upper_bound_for_few_scores():
    rng = np.random.default_rng(21)
    scores, y, group = clusters(rng, 3000, 5, icc=0.1)
    values = np.round(scores * 4) / 4
    found = audit(y, values, groups=group, max_group_size=5)
    assert found.upper_bound_reason is None
    assert 0.0 < found.upper_bound < 0.2
    assert 0.0 < found.unseen_mass < 0.02
    assert found.table.counts[found.table.is_finest].size == 5
    one = values.copy()
    read = read_rows(values, y, groups=group).collect()
    one[np.flatnonzero(~read.chosen(read.draw(0.1, 0)))[0]] = 0.3  # a value that no row set aside has
    assert audit(y, one, groups=group, max_group_size=5).upper_bound is None


@pytest.mark.slow
def test_upper_and_average_bounds_of_groups_hold():
    rng = np.random.default_rng(22)

    def draws():
        while True:
            scores, y, group = clusters(rng, 300, 6)
            values = np.where(scores < 0.5, 0.35, 0.75)  # the rates are 1/4 and 3/4
            found = audit(y, values, groups=group, max_group_size=6, confidence_level=0.5)
            near = found.upper_bound is not None and found.upper_bound < 0.1
            yield {"upper": near, "average": found.average_lower_bound > 0.05, "largest": found.lower_bound > 0.1}

    assert_kept(draws(), 0.5, caught=0.75)


def test_an_audit_refuses_weights_and_groups_without_a_bound():
    rng = np.random.default_rng(12)
    scores, y, _ = clusters(rng, 20, 5)
    for options, name in (
        ({"importance_weight": np.ones(100)}, "weight_bound"),
        ({"max_group_size": 5}, "max_group_size"),
    ):
        with pytest.raises(InvalidTypeError, match=rf"^{name} must"):
            audit(y, scores, **options)
    with pytest.raises(InvalidValueError, match="weight_bound"):
        audit(y, scores, importance_weight=np.ones(100), weight_bound=0.5)
    alone = audit([1], [0.5], groups=["a"], max_group_size=1, classes=(0, 1))
    assert not alone.is_miscalibrated


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
            plain, grouped = (bool(((table.lower > truth) | (table.upper < truth)).any()) for table in tables)
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
    given = {} if weight is None else {"importance_weight": np.full(group.size, weight), "weight_bound": weight}
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
    wide, narrow = (found.upper - found.lower for found in (table, reliability_table(y, scores, n_bins=3)))
    assert wide.mean() > narrow.mean()
    calibrator = BinningCalibrator(3).fit(scores, y, groups=group)
    held_out = {"groups": group, "max_group_size": 5}
    drawn = ReliabilityDisplay.from_calibrator(calibrator, y, scores, ax=Figure().add_subplot(), **held_out)
    assert drawn.observed.method == "betting"
    with pytest.raises(InvalidTypeError, match=r"^monotone must"):
        ReliabilityDisplay.from_predictions(y, scores, ax=Figure().add_subplot(), monotone=True, **options)


def test_an_audit_takes_the_size_of_groups_from_those_set_aside():
    rng = np.random.default_rng(15)
    scores, y, group = clusters(rng, 500, 4)
    assert (
        audit(y, np.sqrt(scores), groups=group).assumptions
        == audit(y, np.sqrt(scores), groups=group, max_group_size=4).assumptions
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
    assert "at most 2 rows" in brier_score(y, scores, groups=group, max_group_size=2).target
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
    assert brier_score(data).value == pytest.approx(brier_score(y, scores, importance_weight=weights).value)
    assert ece(data).value == pytest.approx(ece(y, scores, importance_weight=weights).value)


def test_the_display_draws_weighted_rates():
    rng = np.random.default_rng(8)
    scores, y, weights = survey(rng, 1000)
    options = {"importance_weight": weights, "weight_bound": 1.0, "n_bins": 4}
    display = ReliabilityDisplay.from_predictions(y, scores, ax=Figure().add_subplot(), **options)
    np.testing.assert_array_equal(display.observed.rate, reliability_table(y, scores, **options).rate)
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
    with pytest.raises(InvalidTypeError, match=r"^weight_bound must be None without importance_weight"):
        brier_score(y, scores, weight_bound=1.0)
    with pytest.raises(InvalidTypeError, match=r"^max_group_size must be None without groups"):
        brier_score(y, scores, max_group_size=3)


@pytest.mark.broad
def test_alpha_is_shared_by_rows_set_aside_and_unseen_mass_within_segments_counts_pairs():
    rng = np.random.default_rng(23)
    scores = np.where(rng.uniform(size=4000) < 0.5, 0.25, 0.75)
    y = rng.uniform(size=4000) < scores
    weighted = {"importance_weight": np.ones(4000), "weight_bound": 1.0}
    read = read_rows(scores, y).collect()
    aside = read.chosen(read.draw(0.1, 0))
    segments = rng.choice(["a", "b"], size=4000)
    segments[np.flatnonzero(aside)[:9]] = "c"
    other = segments.copy()
    other[np.flatnonzero(~aside)[:9]] = "c"
    tables = [audit(y, scores, segments=names, **weighted).table for names in (segments, other)]
    limits = [(table.lower[table.segment == None], table.upper[table.segment == None]) for table in tables]  # noqa: E711
    np.testing.assert_array_equal(*limits)  # whether counted rows have the segment c changes no limit of all rows
    counted = np.where(segments == "c", "a", segments)  # every segment of rows set aside has counted rows too
    silent = np.where(~aside & (rng.uniform(size=4000) < 0.4), "rare", counted)
    within = audit(y, scores, segments=silent, **weighted).within_segments
    assert within.upper_bound < 0.5
    assert 0.35 < within.unseen_mass < 0.5  # no row set aside is rare, and nothing bounds the error of rare rows


def test_upper_bound_within_segments_that_only_rows_set_aside_have() -> None:
    """Their score value was seen, and nothing bounds how far it is off: here by 1/2."""
    rng = np.random.default_rng(1)
    rare = np.arange(1_500) < 60
    segments = rng.permutation(np.where(rare, 1 + np.arange(1_500), 0))
    y = np.where(segments > 0, 1, rng.uniform(size=1_500) < 0.5).astype(int)
    units = {"importance_weight": np.ones(1_500), "weight_bound": 1.0}
    report = audit(y, np.full(1_500, 0.5), segments=segments, **units)
    assert report.upper_bound < 0.1
    assert report.within_segments.upper_bound == 1.0
    common = segments == 0
    units["importance_weight"] = np.ones(int(common.sum()))
    alone = audit(y[common], np.full(int(common.sum()), 0.5), segments=segments[common], **units)
    assert alone.within_segments.upper_bound < 0.1


def test_an_audit_of_groups_within_segments_is_about_the_population_of_all_rows() -> None:
    """Rows of a large group count less, in each of its segments too: the rate at score 1/2 in segment a is 5/6."""
    rng = np.random.default_rng(24)
    small = rng.uniform(size=1_500) < 0.5  # two positives in a; other groups have two negatives in a, and 8 rows in b
    group = np.repeat(np.arange(1_500), np.where(small, 2, 10))
    first = np.arange(group.size) - np.searchsorted(group, group) < 2
    y = np.where(first, small[group], rng.uniform(size=group.size) < 0.5).astype(int)
    segments = np.where(first, "a", "b")
    within = audit(y, np.full(y.size, 0.5), segments=segments, groups=group, max_group_size=2).within_segments
    assert 0.3 < within.lower_bound <= 1 / 3 <= within.upper_bound < 0.4


@pytest.mark.parametrize("n_bins", [5, "auto"])
def test_every_region_and_limit_of_a_weighted_audit_is_the_documented_one(n_bins) -> None:
    """By another computation: quantiles of the rows set aside, pairs of neighbours, and bets on label minus score."""
    rng, n, alpha = np.random.default_rng(25), 545, 0.1  # of 512 counted rows the automatic number of bins would be 8
    scores, weights = rng.uniform(size=n), rng.uniform(size=n)
    y = (rng.uniform(size=n) < scores).astype(int)
    segments = np.where(rng.uniform(size=n) < 0.2, "few", "many")
    options = {"importance_weight": weights, "weight_bound": 1.0, "confidence_level": 1 - alpha, "n_bins": n_bins}
    table = audit(y, scores, segments=segments, **options).table
    read = read_rows(scores, y).collect()
    aside = read.chosen(read.draw(0.1, 0))
    order = np.argsort(Draw(0, 0).hashes(position_keys(0, n)))
    order = order[~aside[order]]  # of the bets
    columns = [getattr(table, name) for name in ("segment", "resolution", "low", "high", "counts", "lower", "upper")]
    found = zip(*columns, strict=True)
    for name in (None, "few", "many"):
        inside = np.ones(n, dtype=bool) if name is None else segments == name
        share = 1.0 if name is None else (inside & aside).sum() / aside.sum()
        finest = n_bins if n_bins != "auto" else 2 ** int(np.log2(round((~aside).sum() * share)) / 3)
        edges = np.quantile(scores[aside & inside], np.arange(1, finest) / finest)
        levels = [np.r_[0.0, edges, 1.0]]
        while levels[0].size > 2:
            levels.insert(0, np.unique(np.r_[levels[0][::2], 1.0]))
        for level, ends in enumerate(levels):
            delta = 0.9 * alpha / 3 / len(levels) / (ends.size - 1)
            for low, high in pairwise(ends):
                here = order[(scores[order] >= low) & ((scores[order] < high) | (high == 1.0)) & inside[order]]
                s, w = scores[here], weights[here]
                span = 1 + high - low
                limits = weighted_means(np.zeros(s.size, dtype=int), w, (y[here] - s + high) / span, 1, delta)
                mean = np.average(s, weights=w)
                expected = mean - high + span * np.array([limits.lower[0], limits.upper[0]])
                one = next(found)
                assert one[:5] == (name, level, s.min(), s.max(), s.size)
                assert one[5:] == pytest.approx(np.clip(expected, 0.0, 1.0).tolist(), abs=1e-9)
    assert next(found, None) is None
