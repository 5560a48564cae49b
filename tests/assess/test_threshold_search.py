"""Thresholds: which tests are made, in which order, and how they share alpha."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from calibrant import threshold
from calibrant.assess.threshold.candidates import (
    Ladder,
    _filled,
    candidates,
    chained,
    labels_that_would_do,
    misses_allowed,
    ranked,
    rows_needed,
    starts,
    tails_of,
)
from calibrant.assess.threshold.counted_rows import GroupedRows
from calibrant.cells.units import RowUnits
from calibrant.params.random import RandomSource
from calibrant.sample.reader import read_rows
from worlds.thresholds import draws, falls_at_the_top


def test_the_order_of_tests_is_fixed_and_the_first_failure_ends_them():
    tested = Ladder(
        np.array([0.9, 0.8, 0.7]), np.array([50, 60, 500]), np.array([48, 48, 480]), np.arange(3)
    )
    assert tested.passed(0.8, 0.1).tolist() == [True, False, True]
    assert tested.proved(0.8, 0.1).tolist() == [True, False, False]


@pytest.mark.parametrize("n", [1, 5, 22, 60])
def test_binomial_tests_are_exact(n):
    k = np.arange(n + 1)
    passed = Ladder(k.astype(float), np.full(n + 1, n), k, k).passed(0.8, 0.1)
    exact = binom.sf(k - 1, n, 0.8)
    assert passed.tolist() == (exact <= 0.1).tolist()
    for least in (0.1, 0.004):
        tails = tails_of(np.full(n + 1, n), k, 0.8, least)
        np.testing.assert_allclose(tails[tails > 0], exact[tails > 0], rtol=1e-12)
        assert (exact[tails == 0] <= least).all()


@pytest.mark.parametrize(
    ("n", "target", "alpha"), [(10, 0.9, 0.1), (22, 0.9, 0.1), (200, 0.95, 0.05), (999, 0.5, 0.01)]
)
def test_misses_allowed_is_the_largest(n, target, alpha):
    ranks = [r for r in range(1, n + 1) if binom.cdf(r - 1, n, 1 - target) <= alpha]
    assert misses_allowed(n, target, alpha) == max(ranks, default=0)


def test_one_row_can_pass_and_no_row_cannot():
    tested = Ladder(np.array([0.9, 0.8]), np.array([0, 1]), np.array([0, 1]), np.arange(2))
    assert tested.passed(0.09, 0.1).tolist() == [False, True]  # one right row proves 0.1


def test_rows_needed_is_the_smallest():
    assert [rows_needed(0.5, 0.25), rows_needed(0.1, 0.001), rows_needed(0.9, 0.1)] == [2, 3, 22]


def test_labels_that_would_do_follow_the_normal_law():
    n = np.array([100, 400])
    k = np.array([95, 360])
    rate = (k + 0.5) / (n + 1)
    noise = norm.ppf(0.99) * math.sqrt(0.85 * 0.15) + norm.ppf(0.9) * np.sqrt(rate * (1 - rate))
    rows = np.maximum((noise / (rate - 0.85)) ** 2, math.log(0.01) / math.log(0.85))
    needed = (rows * 1000 / n).min()
    found = labels_that_would_do(n, k, 1000, 0.85, 0.01)
    assert 100 < needed <= found < needed + 10 ** math.floor(math.log10(needed) - 1)
    assert found % 10 == 0  # two digits
    assert labels_that_would_do(n, k, 1000, 0.98, 0.01) is None


def test_candidates_are_even_places_or_numbers_between():
    many = np.arange(1000.0)[::-1]
    few = np.array([4.0, 2.0, 1.0])
    assert _filled(many).tolist() == many[np.round(np.linspace(0, 999, 100)).astype(int)].tolist()
    between = np.interp(np.linspace(0, 2, 100), [0, 1, 2], few)
    np.testing.assert_allclose(_filled(few), [*few, *between], rtol=1e-12)


def test_candidates_skip_a_bad_top_and_fall():
    rng = np.random.default_rng(1)
    scores = rng.uniform(size=400)
    codes = (rng.uniform(size=400) < falls_at_the_top(scores)).astype(np.uint8)
    found = candidates(scores, codes, 0.6, 0.1, 6.0)
    assert (np.diff(found) < 0).all()
    assert found[0] < 0.9
    falling = np.sort(scores)[::-1]
    n = np.arange(1, 401)
    k = np.cumsum(codes[np.argsort(-scores)])
    evidence = np.where(
        n * 6.0 >= 1.5 * rows_needed(0.75, 0.1), (k - 0.75 * n) / np.sqrt(n), -np.inf
    )
    last = np.flatnonzero(k / n + 3.0 * np.sqrt(0.1875 / n) >= 0.75)[-1]
    near = np.flatnonzero(k / n - 3.0 * np.sqrt(0.1875 / n) < 0.75)
    near = near[near >= evidence.argmax()][0]
    found = candidates(scores, codes, 0.75, 0.1, 6.0)
    assert (found[0], found[-1]) == (falling[evidence.argmax()], falling[last])
    both = [_filled(falling[first : last + 1]) for first in (evidence.argmax(), near)]
    assert last < 399
    assert found.tolist() == np.unique(np.concatenate(both))[::-1].tolist()


def test_parts_of_alpha_that_no_start_takes_go_to_the_last_that_does():
    for n, target in ((2_000, 0.8), (2_000, 0.99), (300, 0.9), (115, 0.9), (54, 0.8)):
        found = starts(n, target, 0.1)
        assert sum(part for _, part in found) == pytest.approx(0.1)
        assert [size for size, _ in found] == sorted({size for size, _ in found})
    sizes, parts = zip(*starts(2_000, 0.99, 0.1), strict=True)
    assert sizes == (500, 1000)
    total = 0.45 + 0.46 + 0.04 + sum(0.1 / 2.0**step for step in range(2, 10))
    assert parts == pytest.approx((0.1 * (1 - 0.04 / total), 0.1 * 0.04 / total))


def test_a_fixed_start_of_npv_is_tested_from_there_on_upwards():
    _, scores, y = next(draws(lambda s: s, 1_000, 1))
    cut = threshold(y, scores, npv=0.8, start=0.1).only
    turned = threshold(~y, -scores, precision=0.8, start=-0.1).only
    assert cut.threshold == pytest.approx(-turned.threshold, abs=1e-12)
    assert cut.threshold > 0.1


def test_turning_scores_and_labels_over_turns_the_target_over():
    _, scores, y = next(draws(lambda s: s, 1_000, 1))
    npv = threshold(y, scores, npv=0.8).only
    turned = threshold(~y, -scores, precision=0.8).only
    assert npv.threshold == pytest.approx(-turned.threshold, abs=1e-12)
    assert npv.npv.value == turned.precision.value
    recall = threshold(y, scores, recall=0.9).only
    specificity = threshold(~y, -scores, specificity=0.9).only
    assert recall.threshold == pytest.approx(-specificity.threshold, abs=1e-12)
    assert recall.precision.value == specificity.npv.value


def test_a_stricter_target_never_selects_more():
    _, scores, y = next(draws(lambda s: s, 4_000, 1))
    cuts = [threshold(y, scores, recall=level).threshold for level in (0.8, 0.9, 0.95, 0.99)]
    assert cuts == sorted(cuts, reverse=True)
    sure = [
        threshold(y, scores, recall=0.9, confidence_level=level).threshold
        for level in (0.5, 0.9, 0.99)
    ]
    assert sure == sorted(sure, reverse=True)


def test_how_groups_share_alpha_among_segments_does_not_depend_on_counted_rows():
    rng = np.random.default_rng(40)
    groups = np.repeat(np.arange(800), 3)
    scores = rng.uniform(size=groups.size)
    y = rng.uniform(size=groups.size) < scores
    segments = np.where(groups % 2, "a", "b")
    read = read_rows(scores, y, groups=groups).collect()
    counted = ~read.chosen(read.draw(80, 0))
    renamed = np.where(
        counted & (segments == "b"), np.char.add("z", groups.astype(str)), segments
    )  # segments that no drawn row has
    few, many = (
        threshold(y, scores, precision=0.7, groups=groups, segments=names, pilot=80)
        for names in (segments, renamed)
    )
    assert few.cuts[0].segment == many.cuts[0].segment == "a"
    assert few.cuts[0].threshold == many.cuts[0].threshold is not None


def test_labels_have_no_part_in_the_order_among_ties():
    _, scores, y = next(draws(lambda s: s, 2_000, 1))
    assert threshold(y, scores, precision=0.8).assumptions == (
        "rows are independent draws from one population",
    )
    tied = np.round(scores, 1)
    found = threshold(y, tied, precision=0.8)
    assert found.assumptions == ("rows are independent draws from one population",)
    assert found.threshold == np.nextafter(0.7, 1)  # between two scores
    rng = np.random.default_rng(0)
    labels = (np.arange(40) < 28).astype(
        np.uint8
    )  # which of the tied rows are positive matters, not how many alone
    passed = [
        ranked(
            np.full(40, 0.5), rng.permutation(labels), "precision", 0.6, 0.4, None, RandomSource(0)
        )[1][0]
        for _ in range(60)
    ]
    assert 0 < sum(passed) < 60


def test_starts_share_alpha_and_leave_what_they_cannot_use_to_the_next():
    for n in (30, 200, 500, 10_000, 10**6):
        for target in (0.5, 0.8, 0.95):
            found = starts(n, target, 0.1)
            assert math.isclose(sum(part for _, part in found), 0.1) or not found
            assert all(target**size <= part for size, part in found)
            assert [size for size, _ in found] == sorted({size for size, _ in found})
            assert all(size < n for size, _ in found)
    assert starts(22, 0.9, 0.1) == []
    assert starts(23, 0.9, 0.1) == [(22, 0.1)]


def test_a_chain_hands_its_part_on_and_a_failure_ends_it():
    tails = np.array([0.9, 0.03, 0.04, 0.06, 0.2, 0.09, 0.05, 0.04])
    begins = [(2, 0.04), (4, 0.02), (7, 0.05)]
    assert chained(tails, begins).tolist() == [False, True, True, True, False, False, True, True]
    assert (
        chained(tails, [(2, 0.035), (4, 0.02), (7, 0.04)]).tolist() == [False, True] + [False] * 6
    )


@pytest.mark.parametrize("falling", [True, False])
def test_groups_are_counted_at_each_threshold_as_one_by_one(falling):
    rng = np.random.default_rng(6)
    scores = rng.integers(0, 20, size=300) / 20
    codes = (rng.uniform(size=300) < scores).astype(np.uint8)
    groups = rng.integers(0, 80, size=300)
    units = RowUnits(groups, 80, np.ones(300))
    rows = GroupedRows(scores, codes, units, 2.0, order=0)
    cuts = np.sort(np.append(rng.permutation(scores)[:5], [-1.0, 3.0]))  # everything, and nothing
    cuts = np.unique(cuts)[::-1] if falling else np.unique(cuts)
    above = scores >= cuts[:, None]
    positive = codes == 1
    sets = {
        "selected": (np.ones_like(above), above),
        "precision": (above, positive),
        "recall": (positive, above),
        "specificity": (~positive, ~above),
        "npv": (~above, ~positive),
    }
    for target, (chosen, right) in sets.items():
        every, correct = np.broadcast_arrays(chosen, chosen & right)
        ladder = rows.ladder(target, cuts, np.arange(cuts.size))
        assert ladder.n.tolist() == every.sum(axis=1).tolist()
        assert ladder.k.tolist() == correct.sum(axis=1).tolist()
        for place, cut in enumerate(cuts.tolist()):
            size = np.bincount(groups[every[place]], minlength=80)
            hits = np.bincount(groups[correct[place]], minlength=80)
            seen = size > 0
            weight = np.minimum(size, 2)[seen]
            rate = (hits[seen] / size[seen] * weight).sum() / weight.sum() if seen.any() else np.nan
            in_full = hits.sum() / size.sum() if seen.any() else np.nan
            capped, whole = rows.shares(cut)[target]
            assert capped == pytest.approx(rate, abs=1e-12, nan_ok=True)
            assert whole == pytest.approx(in_full, abs=1e-12, nan_ok=True)
            assert ladder.groups.rates[place] == pytest.approx(rate, abs=1e-12, nan_ok=True)
            assert ladder.groups.n_units[place] == seen.sum()
