"""Audits of weighted rows, and of grouped rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from calibrant import audit
from calibrant.assess.audit.unit_evidence import average_by_signs
from calibrant.cells.entries import Entries
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.params.random import RandomSource
from calibrant.sample.reader import read_rows
from worlds.guarantees import assert_kept
from worlds.weighted import clusters, kept_too_seldom, survey


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
            weighted = audit(
                y, scores, importance_weight=weights, weight_bound=1.0, confidence_level=0.9
            )
            yield {"groups": grouped.is_miscalibrated, "weights": weighted.is_miscalibrated}

    draws = assert_kept(alarms(), caught=0.2)
    assert all(kept_too_seldom(draws - count, draws) for count in false.values()), false


@pytest.mark.broad
def test_an_audit_of_groups_or_weights_finds_errors_and_says_what_it_is_about():
    rng = np.random.default_rng(11)
    scores, y, group = clusters(rng, 1000, 5)
    off = np.sqrt(scores)
    found = audit(y, off, groups=group, max_group_size=5)
    assert found.is_miscalibrated
    assert 0.1 < found.lower_bound <= 0.25
    assert "rows of new groups" in found.assumptions[1]
    assert not any("say" in assumed and "nothing about" in assumed for assumed in found.assumptions)
    assert found.upper_bound is None
    assert 0.1 < found.average_lower_bound < 1 / 6, "the mean of sqrt(s) - s is 1/6"
    assert any(text.startswith("no upper bound") for text in found.notes)
    assert found.table.counts[0] == found.n_rows < 5000
    assert (found.table.lower <= found.table.upper).all()
    weights = rng.uniform(size=5000)
    weighted = audit(y, off, importance_weight=weights, weight_bound=1.0, tolerance=0.01)
    assert weighted.is_miscalibrated
    assert "their weights are right and bounded" in weighted.assumptions[0]
    assert weighted.assumptions[1].endswith("in the weighted population")
    assert not any("order" in assumed for assumed in weighted.assumptions)
    exchanged = audit(1 - y, 1.0 - off, groups=group, max_group_size=5)
    assert exchanged.lower_bound == pytest.approx(found.lower_bound, abs=0.03)


@pytest.mark.broad
def test_an_audit_of_groups_or_weights_by_segment():
    for size in (1, 5):  # without groups, rows must be independent
        scores, y, group = clusters(np.random.default_rng(20), 10_000 // size, size)
        segments = np.where(group % 2, "right", "wrong")
        off = np.where(segments == "wrong", np.sqrt(scores), scores)
        given = {"groups": group, "max_group_size": 5}
        if size == 1:
            given = {"importance_weight": np.ones(y.size), "weight_bound": 1.0}
        found = audit(y, off, segments=segments, **given)
        assert found.by_segment
        assert {finding.segment for finding in found.findings} == {None, "wrong"}
        assert 0.15 < found.within_segments.lower_bound <= 0.25
        assert 0.04 < found.within_segments.average_lower_bound < 1 / 12
    read = read_rows(off, y, groups=group).collect()
    rare = np.where(group == group[~read.chosen(read.draw(0.1, 0))][0], "rare", segments)
    found = audit(y, off, segments=rare, groups=group, max_group_size=5)
    assert "segments without pilot rows, such as 'rare', were not audited" in found.assumptions


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
    one[np.flatnonzero(~read.chosen(read.draw(0.1, 0)))[0]] = (
        0.3  # a value that no row set aside has
    )
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
            yield {
                "upper": near,
                "average": found.average_lower_bound > 0.05,
                "largest": found.lower_bound > 0.1,
            }

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


def test_an_audit_takes_the_size_of_groups_from_those_set_aside():
    rng = np.random.default_rng(15)
    scores, y, group = clusters(rng, 500, 4)
    assert (
        audit(y, np.sqrt(scores), groups=group).assumptions
        == audit(y, np.sqrt(scores), groups=group, max_group_size=4).assumptions
    )


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
    limits = [
        (table.lower[table.segment == None], table.upper[table.segment == None])  # noqa: E711
        for table in tables
    ]
    np.testing.assert_array_equal(
        *limits
    )  # whether counted rows have the segment c changes no limit of all rows
    counted = np.where(
        segments == "c", "a", segments
    )  # every segment of rows set aside has counted rows too
    silent = np.where(~aside & (rng.uniform(size=4000) < 0.4), "rare", counted)
    within = audit(y, scores, segments=silent, **weighted).within_segments
    assert within.upper_bound < 0.5
    assert (
        0.35 < within.unseen_mass < 0.5
    )  # no row set aside is rare, and nothing bounds the error of rare rows


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
    """Rows of a large group count less, in each of its segments too: the rate at score 1/2 in
    segment a is 5/6.
    """
    rng = np.random.default_rng(24)
    small = (
        rng.uniform(size=1_500) < 0.5
    )  # two positives in a; other groups have two negatives in a, and 8 rows in b
    group = np.repeat(np.arange(1_500), np.where(small, 2, 10))
    first = np.arange(group.size) - np.searchsorted(group, group) < 2
    y = np.where(first, small[group], rng.uniform(size=group.size) < 0.5).astype(int)
    segments = np.where(first, "a", "b")
    within = audit(
        y, np.full(y.size, 0.5), segments=segments, groups=group, max_group_size=2
    ).within_segments
    assert 0.3 < within.lower_bound <= 1 / 3 <= within.upper_bound < 0.4


def test_an_average_within_segments_whose_scores_no_row_set_aside_has() -> None:
    """Rows set aside have one score, in one segment.

    Counted rows have another score, in other segments.
    """
    read = read_rows(np.zeros(600), np.arange(600) % 2).collect()
    other = ~read.chosen(read.draw(0.1, 0)) & (np.arange(600) % 2 == 0)
    scores = np.where(other, 0.25, 0.5)
    segments = np.where(other, np.where(np.arange(600) % 4, "b", "c"), "a")
    report = audit(
        np.ones(600),
        scores,
        segments=segments,
        classes=[0, 1],
        importance_weight=np.ones(600),
        weight_bound=1,
    )
    assert 0.4 < report.within_segments.average_lower_bound <= (1.0 - scores).mean()


@pytest.mark.parametrize("n_bins", [5, "auto"])
def test_every_region_and_limit_of_a_weighted_audit_is_the_documented_one(n_bins) -> None:
    """By another computation: quantiles of the rows set aside, pairs of neighbours, and bets on
    label minus score.
    """
    # of 512 counted rows the automatic number of bins would be 8
    rng = np.random.default_rng(25)
    n = 545
    alpha = 0.1
    scores = rng.uniform(size=n)
    weights = rng.uniform(size=n)
    y = (rng.uniform(size=n) < scores).astype(int)
    segments = np.where(rng.uniform(size=n) < 0.2, "few", "many")
    options = {
        "importance_weight": weights,
        "weight_bound": 1.0,
        "confidence_level": 1 - alpha,
        "n_bins": n_bins,
    }
    table = audit(y, scores, segments=segments, **options).table
    read = read_rows(scores, y).collect()
    aside = read.chosen(read.draw(0.1, 0))
    order = RandomSource.of(0, "order of bets", rows=read.take(~aside).fingerprint())
    columns = [
        getattr(table, name)
        for name in ("segment", "resolution", "low", "high", "counts", "lower", "upper")
    ]
    found = zip(*columns, strict=True)
    for name in (None, "few", "many"):
        inside = np.ones(n, dtype=bool) if name is None else segments == name
        share = 1.0 if name is None else (inside & aside).sum() / aside.sum()
        finest = (
            n_bins if n_bins != "auto" else 2 ** int(np.log2(round((~aside).sum() * share)) / 3)
        )
        edges = np.quantile(scores[aside & inside], np.arange(1, finest) / finest)
        levels = [np.r_[0.0, edges, 1.0]]
        while levels[0].size > 2:
            levels.insert(0, np.unique(np.r_[levels[0][::2], 1.0]))
        for level, ends in enumerate(levels):
            delta = 0.85 * alpha / 3 / len(levels) / (ends.size - 1)
            here = np.flatnonzero(inside & ~aside)
            place = np.searchsorted(ends[1:-1], scores[here], side="right")
            low, high = ends[:-1], ends[1:]
            draws = Entries(place, (y - scores)[here], low.size, weights[here])
            units = BetUnits.of(draws, -high, 1.0 - low, order.generator())
            limits = bet_limits(units, np.full(low.size, delta / 2))
            for region, pair in enumerate(zip(limits.lower, limits.upper, strict=True)):
                rows = here[place == region]
                s = scores[rows]
                expected = np.average(s, weights=weights[rows]) + np.array(pair)
                one = next(found)
                assert one[:5] == (name, level, s.min(), s.max(), s.size)
                assert one[5:] == pytest.approx(np.clip(expected, 0.0, 1.0).tolist(), abs=1e-9)
    assert next(found, None) is None


def test_signs_come_from_rows_set_aside_and_regions_without_such_rows_have_sign_one() -> None:
    seen = []

    def limits(outcomes, alpha, *, ends):
        assert ends == (-1.0, 1.0)
        seen.append((outcomes.tolist(), alpha))
        return 0.4, 1.0

    cut = SimpleNamespace(codes=np.array([1, 0, 0]), scores=np.array([0.25, 0.5, 0.5]))
    others = SimpleNamespace(codes=np.array([1, 1, 1, 1]), scores=np.array([0.5, 0.5, 0.5, 0.5]))
    before = np.array([[0, 1, 1], [-1, 0, 0]])
    now = np.array([[0, 1, 2, -1], [3, -1, 0, 1]])
    levels = list(zip(before, now, strict=True))
    units = SimpleNamespace(limits=limits)
    assert average_by_signs(cut, others, units, levels, 0.1) == pytest.approx(0.4)
    assert seen == [([0.5, -0.5, 0.5, 0.0], 0.1), ([0.5, 0.0, -0.5, 0.5], 0.1)]


def test_the_average_error_within_segments_is_at_least_that_of_all_rows() -> None:
    rng = np.random.default_rng(2)
    scores = rng.uniform(0.1, 0.6, 3_000)
    y = rng.uniform(size=3_000) < scores + 0.3
    found = audit(
        y, scores, segments=rng.integers(40, size=3_000), groups=np.arange(3_000), max_group_size=1
    )
    assert found.average_lower_bound > 0.2
    assert found.within_segments.average_lower_bound >= found.average_lower_bound
