"""`threshold`: proved precision, recall, npv and specificity, in worlds whose truth is known."""

import contextlib
import json
import math
import re
import sqlite3

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm

from calibrant import Threshold, scored, threshold
from calibrant._threshold.ranks import chained, ranked, starts, tails_of
from calibrant._threshold.result import compared
from calibrant._threshold.search import (
    Ladder,
    _filled,
    candidates,
    labels_that_would_do,
    misses_allowed,
    rows_needed,
)
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.export import to_python, to_sql
from calibrant.rows import read_rows
from calibrant.saving import load_model, save_model
from promises import assert_kept

GRID = np.linspace(0.0, 1.0, 20_001)
MIDS = (GRID[:-1] + GRID[1:]) / 2


def falls_at_the_top(s):
    return np.where(s > 0.9, 0.3, np.minimum(0.2 + 0.85 * s, 0.97))


def target_on_a_stretch(s):
    return np.where(s > 0.3, 0.8, 0.1)


def just_below_the_target(s):
    return np.where(s > 0.9, 0.8, np.where(s > 0.2, 0.79, 0.0))


WORLDS = {
    "rate = score": lambda s: s,
    "falls at the top": falls_at_the_top,
    "target on a stretch": target_on_a_stretch,
    "just below": just_below_the_target,
}


def true_precision(rate, cut):
    above = cut <= MIDS
    return float(rate(MIDS[above]).mean()) if above.any() else 1.0


def draws(rate, n, seeds, levels=None):
    for seed in range(seeds):
        rng = np.random.default_rng([77, seed])
        scores = rng.uniform(size=n)
        y = rng.uniform(size=n) < rate(scores)
        yield seed, scores if levels is None else np.ceil(scores * levels) / levels, y


def is_kept(broken, tried, alpha=0.1):
    return binomtest(broken, tried, alpha, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize("how", [{}, {"method": "look"}, {"start": 0.9}], ids=["ranks", "look", "start"])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.slow
def test_precision_is_kept_whatever_the_curve(world, how):
    rate, broken, seeds = WORLDS[world], 0, 100
    for seed, scores, y in draws(rate, 600, seeds):
        cut = threshold(y, scores, precision=0.8, random_state=seed, **how).threshold
        broken += cut is not None and true_precision(rate, cut) < 0.8 - 1e-3
    assert is_kept(broken, seeds)


@pytest.mark.slow
def test_ties_at_the_threshold_keep_precision_and_npv_and_their_limits():
    levels, seeds = 8, 100
    rates = np.arange(1, levels + 1) / levels * 0.95
    values = np.arange(1, levels + 1) / levels
    broken = missed = 0
    for seed, scores, y in draws(lambda s: np.ceil(s * levels) / levels * 0.95, 800, seeds, levels):
        found = threshold(y, scores, precision=0.75, npv=0.75, random_state=seed)
        act, leave = found.cuts
        wrong = act.threshold is not None and rates[values >= act.threshold].mean() < 0.75 - 1e-12
        wrong |= leave.threshold is not None and 1 - rates[values < leave.threshold].mean() < 0.75 - 1e-12
        broken += wrong
        if act.threshold is not None:
            above = values >= act.threshold
            truth = {
                "selected": above.mean(),
                "precision": rates[above].mean(),
                "recall": rates[above].sum() / rates.sum(),
                "specificity": (1 - rates)[~above].sum() / (1 - rates).sum(),
            }
            missed += any(
                not getattr(act, name).lower <= value <= getattr(act, name).upper for name, value in truth.items()
            )
    assert is_kept(broken, seeds)
    assert is_kept(missed, seeds, 0.2)


@pytest.mark.broad
@pytest.mark.parametrize("levels", [None, 10])
@pytest.mark.parametrize("target", ["recall", "specificity"])
def test_recall_and_specificity_are_kept_and_nearly_exact(target, levels):
    broken, seeds, n = 0, 80, 400
    for _, scores, y in draws(lambda s: s, n, seeds, levels):
        cut = threshold(y, scores, **{target: 0.9}).threshold
        below = cut > MIDS if levels is None else np.ceil(MIDS * levels) / levels < cut
        rate = MIDS if target == "recall" else 1 - MIDS
        kept = rate[~below].sum() if target == "recall" else rate[below].sum()
        broken += kept / rate.sum() < 0.9
    assert is_kept(broken, seeds)
    if levels is None:
        assert binomtest(broken, seeds, 0.03, alternative="less").pvalue > 0.01  # not far below 0.1 either


@pytest.mark.slow
def test_recall_limits_hold_together():
    broken, seeds = 0, 100
    for _, scores, y in draws(lambda s: s, 300, seeds):
        cut = threshold(y, scores, recall=0.8).only
        t = cut.threshold
        truth = {"selected": 1 - t, "precision": (1 + t) / 2, "recall": 1 - t * t, "npv": 1 - t / 2}
        broken += any(
            not getattr(cut, name).lower <= value <= getattr(cut, name).upper for name, value in truth.items()
        )
    assert is_kept(broken, seeds, 0.2)


@pytest.mark.parametrize(("n", "least"), [(500, 0.232), pytest.param(2_000, 0.321, marks=pytest.mark.slow)])
def test_selects_nearly_as_much_as_ranks_can(n, least):
    shares = []
    for seed, scores, y in draws(lambda s: s, n, 60, None):
        cut = threshold(y, scores, precision=0.8, random_state=seed).threshold
        shares.append(0.0 if cut is None else 1.0 - cut)
    assert np.mean(shares) >= least - 2 * np.std(shares) / math.sqrt(len(shares))


def test_the_order_of_tests_is_fixed_and_the_first_failure_ends_them():
    tested = Ladder(np.array([0.9, 0.8, 0.7]), np.array([50, 60, 500]), np.array([48, 48, 480]), np.arange(3))
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
    n, k = np.array([100, 400]), np.array([95, 360])
    rate = (k + 0.5) / (n + 1)
    noise = norm.ppf(0.99) * math.sqrt(0.85 * 0.15) + norm.ppf(0.9) * np.sqrt(rate * (1 - rate))
    rows = np.maximum((noise / (rate - 0.85)) ** 2, math.log(0.01) / math.log(0.85))
    needed = (rows * 1000 / n).min()
    found = labels_that_would_do(n, k, 1000, 0.85, 0.01)
    assert 100 < needed <= found < needed + 10 ** math.floor(math.log10(needed) - 1)
    assert found % 10 == 0  # two digits
    assert labels_that_would_do(n, k, 1000, 0.98, 0.01) is None


def test_candidates_are_even_places_or_numbers_between():
    many, few = np.arange(1000.0)[::-1], np.array([4.0, 2.0, 1.0])
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
    n, k = np.arange(1, 401), np.cumsum(codes[np.argsort(-scores)])
    evidence = np.where(n * 6.0 >= 1.5 * rows_needed(0.75, 0.1), (k - 0.75 * n) / np.sqrt(n), -np.inf)
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
    recall, specificity = threshold(y, scores, recall=0.9).only, threshold(~y, -scores, specificity=0.9).only
    assert recall.threshold == pytest.approx(-specificity.threshold, abs=1e-12)
    assert recall.precision.value == specificity.npv.value


def test_a_stricter_target_never_selects_more():
    _, scores, y = next(draws(lambda s: s, 4_000, 1))
    cuts = [threshold(y, scores, recall=level).threshold for level in (0.8, 0.9, 0.95, 0.99)]
    assert cuts == sorted(cuts, reverse=True)
    sure = [threshold(y, scores, recall=0.9, confidence_level=level).threshold for level in (0.5, 0.9, 0.99)]
    assert sure == sorted(sure, reverse=True)


def test_segments_share_the_budget_and_keep_their_own_thresholds():
    rng = np.random.default_rng(3)
    scores, group = rng.uniform(size=6_000), rng.integers(2, size=6_000)
    y = rng.uniform(size=6_000) < np.where(group == 0, scores, scores**3)
    names = np.array(["a", "b"])[group]
    found = threshold(y, scores, precision=0.7, segments=names)
    first, second = found.cuts
    assert (first.segment, second.segment) == ("a", "b")
    assert first.threshold < second.threshold
    assert found.predict([0.6, 0.6, 0.6], ["a", "b", "c"]).tolist() == [True, False, False]
    assert "in segment 'a'" in found.sentence()
    with pytest.raises(InvalidTypeError, match=r"use \.cuts"):
        _ = found.threshold
    with pytest.raises(InvalidTypeError, match="segments must be given"):
        found.predict([0.5])


@pytest.mark.slow
def test_all_segments_hold_at_once():
    broken, seeds = 0, 80
    for seed, scores, y in draws(lambda s: s, 1_500, seeds):
        found = threshold(y, scores, precision=0.75, segments=np.arange(1_500) % 3, random_state=seed)
        broken += any(cut.threshold is not None and (1 + cut.threshold) / 2 < 0.75 for cut in found.cuts)
    assert is_kept(broken, seeds)


def test_two_sides_leave_a_middle_to_a_person():
    _, scores, y = next(draws(lambda s: s, 5_000, 1))
    found = threshold(y, scores, precision=0.9, npv=0.9)
    act, leave = found.cuts
    assert leave.threshold < 0.5 < act.threshold
    assert found.predict([0.1, 0.5, 0.95]).tolist() == [False, False, True]
    assert found.refer([0.1, 0.5, 0.95]).tolist() == [False, True, False]
    easy = threshold(y, scores, precision=0.55, npv=0.55)
    assert easy.cuts[0].threshold == easy.cuts[1].threshold
    assert not easy.refer(scores).any()


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("target", ["precision", "npv", "recall", "specificity"])
def test_scored_data_agree_with_arrays(target, segments):
    pa = pytest.importorskip("pyarrow")
    _, scores, y = next(draws(lambda s: s, 4_000, 1))
    group = np.arange(4_000) % 2 if segments else None
    columns = {"p": scores, "y": y, **({"g": group} if segments else {})}
    data = scored(pa.table(columns), score="p", label="y", **({"segment": "g"} if segments else {}))
    kept = threshold(scores=data, **{target: 0.8})
    exact = threshold(y, scores, segments=group, **{target: 0.8})
    for one, other in zip(kept.cuts, exact.cuts, strict=True):
        assert one == other


@pytest.mark.parametrize("target", ["precision", "npv", "recall", "specificity"])
def test_more_rows_than_are_sorted_are_counted_at_drawn_thresholds(target, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    _, scores, y = next(draws(lambda s: s, 4_000, 1))
    data = scored(pa.table({"p": scores, "y": y}), score="p", label="y")
    exact = threshold(y, scores, **{target: 0.8})
    monkeypatch.setattr("calibrant._threshold._MOST_RANKED", 3_999)
    drawn = threshold(scores=data, **{target: 0.8})
    assert (exact.n_drawn, exact.method, drawn.method) == (0, "ranks", "look")
    assert 500 < drawn.n_drawn < 700
    assert drawn.threshold == pytest.approx(exact.threshold, abs=0.05)


def test_saved_and_read_back(tmp_path):
    _, scores, y = next(draws(lambda s: s, 2_000, 1))
    for found in (threshold(y, scores, precision=0.8), threshold(y, scores, precision=0.999, npv=0.8)):
        state = json.loads(json.dumps(found.to_dict()))
        assert Threshold.from_dict(state) == found
        save_model(found, tmp_path / "t.json", columns={"score": "p"}, overwrite=True)
        model = load_model(tmp_path / "t.json")
        assert model.calibrator == found
        assert model.columns == {"score": "p"}
        assert model.predict(scores).tolist() == found.predict(scores).tolist()
    with pytest.raises(InvalidValueError, match="schema"):
        Threshold.from_dict({"schema": "other"})
    with pytest.raises(InvalidValueError, match="target must be one of"):
        Threshold.from_dict({**state, "cuts": [{**state["cuts"][0], "target": "luck"}]})


@pytest.mark.parametrize("arguments", [{"precision": 0.8}, {"precision": 0.9, "npv": 0.9}, {"precision": 0.9999}])
@pytest.mark.parametrize("segments", [False, True])
def test_exports_agree_with_predict_and_refer(arguments, segments):
    _, scores, y = next(draws(lambda s: s, 4_000, 1))
    group = np.array(["a", "b"])[np.arange(4_000) % 2] if segments else None
    found = threshold(y, scores, segments=group, **arguments)
    edges = [cut.threshold for cut in found.cuts if cut.threshold is not None]
    tried = np.array([0.0, 0.5, 1.0, *edges, *np.nextafter(edges, -1)])
    where = None if group is None else np.array(["a"] * tried.size)
    selected, referred = found.predict(tried, where), found.refer(tried, where)
    expected = [None if refer else float(select) for select, refer in zip(selected, referred, strict=True)]
    namespace = {}
    exec(to_python(found, name="choose"), namespace)
    given = [(score,) if group is None else (score, "a") for score in tried.tolist()]
    assert [namespace["choose"](*row)["selected"] for row in given] == expected
    text = to_sql(found, dialect="sqlite", table="t", segment=None if group is None else "g")
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE t (score REAL, g TEXT)")
        database.executemany("INSERT INTO t VALUES (?, 'a')", [(score,) for score in tried.tolist()])
        assert [row[-1] for row in database.execute(text)] == expected


def in_groups(n_groups, size, seed):
    """Rate = score, and all rows of a group share one uniform number: labels of a group depend on each other."""
    rng = np.random.default_rng([13, seed])
    groups = np.repeat(np.arange(n_groups), size)
    scores = rng.uniform(size=groups.size)
    return groups, scores, rng.uniform(size=n_groups)[groups] < scores


@pytest.mark.slow
def test_groups_keep_the_precision_where_rows_alone_break_it():
    broken, alone, found, seeds = 0, 0, 0, 60
    for seed in range(seeds):
        groups, scores, y = in_groups(300, 10, seed)
        cut = threshold(y, scores, precision=0.7, groups=groups, random_state=seed).threshold
        found += cut is not None
        broken += cut is not None and (1 + cut) / 2 < 0.7
        alone += (1 + threshold(y, scores, precision=0.7, random_state=seed).threshold) / 2 < 0.7
    assert is_kept(broken, seeds)
    assert not is_kept(alone, seeds)
    assert found > seeds / 2


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
        threshold(y, scores, precision=0.7, groups=groups, segments=names, split=80) for names in (segments, renamed)
    )
    assert few.cuts[0].segment == many.cuts[0].segment == "a"
    assert few.cuts[0].threshold == many.cuts[0].threshold is not None


@pytest.mark.broad
def test_groups_are_counted_whole_in_segments_and_in_scored_data():
    pa = pytest.importorskip("pyarrow")
    groups, scores, y = in_groups(2_000, 3, 0)
    segments = np.arange(6_000) % 2
    found = threshold(y, scores, precision=0.7, npv=0.7, groups=groups, segments=segments)
    assert found.limits_confidence_level == found.confidence_level == 0.9  # only the targets have limits
    assert found.max_group_size == 3
    assert any("names of groups" in assumed for assumed in found.assumptions)
    assert "A group counts as at most 3 rows." in found.sentence()
    assert all(cut.threshold is not None for cut in found.cuts)
    assert Threshold.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    table = pa.table({"p": scores, "y": y, "g": groups, "s": segments})
    data = scored(table, score="p", label="y", group="g", segment="s")
    assert threshold(scores=data, precision=0.7, npv=0.7) == found
    for wrong in ({"precision": 0.9, "method": "ranks"}, {"precision": 0.9, "start": 0.9}):
        with pytest.raises(InvalidTypeError, match="groups must go with method='look', without start"):
            threshold(y, scores, groups=groups, **wrong)


def test_weights_need_a_bound():
    rng = np.random.default_rng(0)
    table = {"p": rng.uniform(size=200), "y": rng.integers(0, 2, size=200), "w": np.ones(200)}
    data = scored(table, score="p", label="y", weight="w")
    with pytest.raises(InvalidTypeError, match="weight_bound must be given"):
        threshold(scores=data, recall=0.9)
    with pytest.raises(InvalidTypeError, match="weight_bound must be None without"):
        threshold(table["y"], table["p"], recall=0.9, weight_bound=2.0)
    found = threshold(scores=data, recall=0.9, weight_bound=1.0)  # a weight as large as the bound keeps every row
    assert found.cuts[0].threshold == threshold(table["y"], table["p"], recall=0.9).cuts[0].threshold
    assert "weighted population" in found.assumptions[1]
    halved = threshold(scores=data, recall=0.9, weight_bound=2.0)
    assert "the order of the rows means nothing" in halved.assumptions
    assert 60 < halved.n_rows < 140


@pytest.mark.slow
def test_weighted_rows_keep_precision_and_recall_in_the_population_and_rows_alone_do_not():
    # positives are sampled four times as often as negatives; the rate is the score, and precision at t is (1 + t) / 2
    rng = np.random.default_rng(5)
    plain_broken = 0

    def draws():
        nonlocal plain_broken
        while True:
            scores = rng.uniform(size=2_000)
            y = rng.uniform(size=2_000) < scores
            kept = rng.uniform(size=2_000) < np.where(y, 0.8, 0.2)
            scores, y = scores[kept], y[kept]
            given = {"importance_weight": np.where(y, 0.25, 1.0), "weight_bound": 1.0, "random_state": rng}
            found = threshold(y, scores, precision=0.75, **given).cuts[0].threshold
            low = threshold(y, scores, recall=0.9, **given).cuts[0].threshold
            plain = threshold(y, scores, precision=0.75, random_state=rng).cuts[0].threshold
            plain_broken += plain is not None and (1 + plain) / 2 < 0.75
            yield {
                "precision": found is not None and (1 + found) / 2 < 0.75,
                "recall": low is not None and 1 - low**2 < 0.9,
            }

    n_draws = assert_kept(draws(), caught=0.25)
    assert plain_broken > 0.9 * n_draws


def test_labels_have_no_part_in_the_order_among_ties():
    _, scores, y = next(draws(lambda s: s, 2_000, 1))
    assert threshold(y, scores, precision=0.8).assumptions == ("rows are independent draws from one population",)
    tied = np.round(scores, 1)
    found = threshold(y, tied, precision=0.8)
    assert "the order of the rows means nothing" in found.assumptions
    assert found.threshold == np.nextafter(0.7, 1)  # between two scores
    rng = np.random.default_rng(0)
    labels = (np.arange(40) < 28).astype(np.uint8)  # which of the tied rows are positive matters, not how many alone
    passed = [
        ranked(np.full(40, 0.5), rng.permutation(labels), "precision", 0.6, 0.4, None, 0)[1][0] for _ in range(60)
    ]
    assert 0 < sum(passed) < 60


@pytest.mark.slow
def test_a_fixed_seed_keeps_tied_worlds_with_few_rows():
    """Three tied scores, a rate that falls at the top and crosses the target within ties; seed 0 in every draw."""
    rng = np.random.default_rng(6)
    shares, rates, target, alpha, tried, wrong = [0.15, 0.45, 0.4], [0.1, 0.95, 0.2], 0.7, 0.3, 2_000, 0
    precision = np.cumsum(np.multiply(shares, rates)) / np.cumsum(shares)
    values = np.array([0.9, 0.5, 0.1])
    for _ in range(tried):
        kind = rng.choice(3, p=shares, size=14)
        labels = (rng.uniform(size=14) < np.take(rates, kind)).astype(np.uint8)
        ladder, proved = ranked(values[kind], labels, "precision", target, alpha, None, 0)
        chosen = [int(np.count_nonzero(values >= cut)) for cut in ladder.cuts[proved]]
        wrong += any(count and precision[count - 1] < target for count in chosen)
    assert is_kept(wrong, tried, alpha)


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
    assert chained(tails, [(2, 0.035), (4, 0.02), (7, 0.04)]).tolist() == [False, True] + [False] * 6


@pytest.mark.parametrize("rates", [(0.0, 1.0, 0.0, 1.0), (0.3, 0.95, 0.9, 0.1), (1.0, 0.0, 1.0, 0.6), (0.2, 1.0, 0.5)])
@pytest.mark.parametrize("weights", ["even", "steep"])
def test_ranks_are_kept_for_step_curves_and_few_rows(rates, weights):
    """Every proved set of every draw is checked, not only the last: the truth is known at each rank."""
    n, alpha, target = 10, 0.3, 0.6
    begins = [(4, 0.15), (6, 0.15)] if weights == "even" else [(3, 0.25), (7, 0.05)]
    shares = np.full(len(rates), 1 / len(rates))
    rng = np.random.default_rng(5)
    tried, wrong = 4_000, 0
    places = -np.sort(-rng.uniform(size=(tried, n)), axis=1)  # ranks from the top
    steps = np.minimum((places * len(rates)).astype(int), len(rates) - 1)
    labels = rng.uniform(size=places.shape) < np.asarray(rates)[steps]
    sizes, hits = np.arange(1, n + 1), np.cumsum(labels, axis=1)
    tails = binom.sf(hits - 1, sizes, target)
    mass = np.concatenate([[0.0], np.cumsum(shares * rates)])
    inner = mass[steps] + (places * len(rates) - steps) * shares[steps] * np.asarray(rates)[steps]
    precision = (mass[-1] - inner) / (1.0 - places)  # above the score of each row
    for row, one in enumerate(tails):
        proved = np.flatnonzero(chained(one, begins))
        wrong += bool((precision[row, np.minimum(proved + 1, n - 1)][proved < n - 1] < target).any())
    assert is_kept(wrong, tried, alpha)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["recall", "specificity"])
def test_groups_keep_recall_and_specificity(target):
    broken, found, seeds = 0, 0, 60
    for seed in range(seeds):
        groups, scores, y = in_groups(300, 10, seed)
        cut = threshold(y, scores, **{target: 0.8}, groups=groups, random_state=seed).threshold
        found += cut is not None
        kept = 0.0 if cut is None else 1 - cut**2 if target == "recall" else 1 - (1 - cut) ** 2
        broken += cut is not None and kept < 0.8
    assert is_kept(broken, seeds)
    assert found > seeds / 2


@pytest.mark.slow
@pytest.mark.parametrize(("target", "levels"), [("precision", 8), ("npv", None)])
def test_a_start_that_was_fixed_needs_no_draw_and_keeps_its_limits(target, levels):
    broken, missed, seeds = 0, 0, 80
    start = 0.9 if target == "precision" else 0.1
    for _, scores, y in draws(lambda s: s, 600, seeds, levels):
        found = threshold(y, scores, **{target: 0.75}, start=start)
        assert found.n_drawn == 0
        cut = found.only
        if cut.threshold is None:
            continue
        fine = MIDS if levels is None else np.ceil(MIDS * levels) / levels
        above = cut.threshold <= fine
        truth = {
            "selected": above.mean(),
            "precision": MIDS[above].mean(),
            "recall": MIDS[above].sum() / MIDS.sum(),
            "npv": 1 - MIDS[~above].mean(),
        }
        broken += truth[target] < 0.75 - 1e-4
        missed += any(
            not getattr(cut, name).lower - 1e-4 <= value <= getattr(cut, name).upper + 1e-4
            for name, value in truth.items()
        )
    assert is_kept(broken, seeds)
    assert is_kept(missed, seeds, 0.2)


def test_an_impossible_target_is_said_to_be_one():
    rng = np.random.default_rng(0)
    scores, y = rng.uniform(size=3_000), rng.uniform(size=3_000) < 0.3
    found = threshold(y, scores, precision=0.9)
    assert found.threshold is None
    assert found.labels_needed is None
    assert "cannot be proved" in found.sentence()
    assert not found.predict(scores).any()


def test_too_few_labels_are_told_how_many_would_do():
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=60)
    y = rng.uniform(size=60) < scores
    found = threshold(y, scores, precision=0.9)
    assert found.threshold is None
    assert found.labels_needed is None or found.labels_needed > 60
    few = threshold(y, scores, recall=0.999)
    assert few.threshold is None
    assert "needs at least 2,302 positive rows" in few.reason
    assert few.labels_needed > 2_302


@pytest.mark.parametrize("n", [1_000, 8_000])
def test_labels_needed_are_more_than_the_rows_or_not_told(n):
    told, untold = 0, 0
    for seed in range(8):  # rates are above the target only below a part where they are too low
        rng = np.random.default_rng(seed)
        scores = rng.integers(0, 100, n) / 100
        y = rng.uniform(size=n) < np.where(scores >= 0.85, 0.85, np.where(scores > 0.6, 0.96, 0.3))
        for found in (threshold(y, scores, precision=0.9), threshold(~y, 1.0 - scores, npv=0.9)):
            if found.threshold is not None:
                continue
            told += found.labels_needed is not None
            assert found.labels_needed is None or found.labels_needed > n
            if "more labels may do" in found.reason:
                untold += 1
                assert found.labels_needed is None
                assert "labels would probably do" not in found.sentence()
    assert told if n == 1_000 else untold


def test_labels_needed_for_recall_count_the_drawn_rows_too():
    pa = pytest.importorskip("pyarrow")
    _, scores, y = next(draws(lambda s: s, 6_000, 1))
    for n, level in ((6_000, 0.999), (4_800, 0.999)):
        data = scored(pa.table({"p": scores[:n], "y": y[:n]}), score="p", label="y")
        found = threshold(scores=data, recall=level, method="look")
        assert found.threshold is None
        if n == 6_000:  # enough positives, but no drawn score is low enough
            assert found.labels_needed is None
            assert "more labels may do" in found.reason
        else:
            assert "needs at least 2,302 positive rows" in found.reason
            assert found.labels_needed > n


def test_the_reason_names_the_threshold_and_its_counts():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 100, 3_000) / 100
    y = rng.uniform(size=3_000) < scores
    for target, kind in (("precision", "positive"), ("npv", "negative")):
        reason = threshold(y, scores, **{target: 0.995}).reason
        said = rf"the strongest evidence found: of ([\d,]+) rows with score (\S+) (\S+), ([\d,]+) are {kind}, which is"
        size, sign, cut, right = re.match(said, reason).groups()
        inside = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}[sign](scores, float(cut))
        of_kind = inside & (y if target == "precision" else ~y)
        assert (f"{inside.sum():,}", f"{of_kind.sum():,}") == (size, right)


def test_the_next_number_above_a_short_score_is_told_by_that_score():
    for short in (0.85, -0.3, 85.0, 0.0, 1e-05):
        cut = math.nextafter(short, math.inf)
        assert compared(cut) == {"above": f"> {short!r}", "below": f"<= {short!r}"}
        assert compared(short) == {"above": f">= {short!r}", "below": f"< {short!r}"}
    long = np.random.default_rng(0).uniform(size=1_000)
    assert all(compared(cut)["above"] == f">= {cut!r}" for cut in long.tolist())
    scores = np.random.default_rng(1).integers(0, 100, 5_000) / 100
    y = np.random.default_rng(2).uniform(size=5_000) < scores
    for target, sign in (("precision", ">"), ("specificity", "<=")):
        found = threshold(y, scores, **{target: 0.8})
        under = math.nextafter(found.threshold, 0.0)
        assert under in scores
        assert f"score {sign} {under!r}" in found.sentence()
        assert f"threshold > {under!r}, from" in str(found)
        assert found.to_dict()["cuts"][0]["threshold"] == found.threshold > under


@pytest.mark.parametrize("target", ["precision", "npv", "recall", "specificity"])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_tiny_data_prove_nothing_and_raise_nothing(target, n):
    found = threshold(np.arange(n) % 2, np.linspace(0, 1, n), **{target: 0.9})
    assert found.threshold is None


@pytest.mark.parametrize("target", ["precision", "npv", "recall", "specificity"])
def test_equal_scores_select_all_or_nothing(target):
    y = np.arange(1_000) < 700
    found = threshold(y, np.full(1_000, 0.5), **{target: 0.6})
    chosen = found.predict([0.5])
    if target in ("precision", "recall"):
        assert chosen.tolist() == [True]
    assert found.threshold is None or found.only.selected.value in (0.0, 1.0)


def test_one_class_needs_the_name_of_the_other():
    with pytest.raises(CalibrantError, match="two classes"):
        threshold(np.ones(50), np.linspace(0, 1, 50), precision=0.9)
    found = threshold(np.ones(200), np.linspace(0, 1, 200), precision=0.9, classes=(0, 1))
    assert found.threshold is not None
    assert found.only.specificity.lower == 0.0
    assert threshold(np.zeros(50), np.linspace(0, 1, 50), recall=0.9, classes=(0, 1)).threshold is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "the target must be one of"),
        ({"precision": 0.9, "recall": 0.9}, "the target must be one of"),
        ({"precision": 1.0}, "precision must be a number strictly between 0 and 1"),
        ({"recall": "high"}, "recall must be"),
        ({"precision": 0.9, "confidence_level": 90}, "confidence_level must be"),
        ({"precision": 0.9, "method": "luck"}, "method must be"),
        ({"precision": 0.9, "split": 1.5}, "split must be"),
        ({"recall": 0.9, "start": 0.5}, "start must go with one target"),
        ({"precision": 0.9, "split": 100, "method": "look"}, "split must leave rows"),
        ({"precision": 0.9, "start": "high"}, "start must be a finite number"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(CalibrantError, match=message):
        threshold(np.arange(100) % 2, np.linspace(0, 1, 100), **arguments)


def test_a_reason_does_not_call_counts_too_few_that_would_do_as_the_only_test():
    """The start of 125 rows has less than half of alpha: 107 positives have a tail of 0.06, above its part."""
    scores, y = np.arange(500.0), np.zeros(500, dtype=int)
    y[375:482] = 1  # of the 125 highest scores, all but the 18 highest
    assert 0.05 < binom.sf(106, 125, 0.8) < 0.1
    reason = threshold(y, scores, precision=0.8).reason
    assert "of 125 rows with score > 374.0, 107 are positive, which would do as the only test" in reason
    assert threshold(y, scores, precision=0.8, start=375.0).threshold is not None
