"""Thresholds: precision, recall, npv and specificity are kept in worlds where the truth is known."""

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from calibrant import threshold
from calibrant.assess.threshold.candidates import chained, ranked
from calibrant.params.random import RandomSource, fingerprint_of
from worlds.guarantees import assert_kept
from worlds.thresholds import MIDS, WORLDS, draws, in_groups, is_kept, true_precision


@pytest.mark.parametrize(
    "how", [{}, {"method": "look"}, {"start": 0.9}], ids=["ranks", "look", "start"]
)
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.slow
def test_precision_is_kept_whatever_the_curve(world, how):
    rate = WORLDS[world]
    broken = 0
    seeds = 100
    for seed, scores, y in draws(rate, 600, seeds):
        cut = threshold(y, scores, precision=0.8, random_state=seed, **how).threshold
        broken += cut is not None and true_precision(rate, cut) < 0.8 - 1e-3
    assert is_kept(broken, seeds)


@pytest.mark.slow
def test_ties_at_the_threshold_keep_precision_and_npv_and_their_limits():
    levels = 8
    seeds = 100
    rates = np.arange(1, levels + 1) / levels * 0.95
    values = np.arange(1, levels + 1) / levels
    broken = missed = 0
    for seed, scores, y in draws(lambda s: np.ceil(s * levels) / levels * 0.95, 800, seeds, levels):
        found = threshold(y, scores, precision=0.75, npv=0.75, random_state=seed)
        act, leave = found.cuts
        wrong = act.threshold is not None and rates[values >= act.threshold].mean() < 0.75 - 1e-12
        wrong |= (
            leave.threshold is not None
            and 1 - rates[values < leave.threshold].mean() < 0.75 - 1e-12
        )
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
                not getattr(act, name).lower <= value <= getattr(act, name).upper
                for name, value in truth.items()
            )
    assert is_kept(broken, seeds)
    assert is_kept(missed, seeds, 0.2)


@pytest.mark.broad
@pytest.mark.parametrize("levels", [None, 10])
@pytest.mark.parametrize("target", ["recall", "specificity"])
def test_recall_and_specificity_are_kept_and_nearly_exact(target, levels):
    broken = 0
    seeds = 80
    n = 400
    for _, scores, y in draws(lambda s: s, n, seeds, levels):
        cut = threshold(y, scores, **{target: 0.9}).threshold
        below = cut > MIDS if levels is None else np.ceil(MIDS * levels) / levels < cut
        rate = MIDS if target == "recall" else 1 - MIDS
        kept = rate[~below].sum() if target == "recall" else rate[below].sum()
        broken += kept / rate.sum() < 0.9
    assert is_kept(broken, seeds)
    if levels is None:
        assert (
            binomtest(broken, seeds, 0.03, alternative="less").pvalue > 0.01
        )  # not far below 0.1 either


@pytest.mark.slow
def test_recall_limits_hold_together():
    broken = 0
    seeds = 100
    for _, scores, y in draws(lambda s: s, 300, seeds):
        cut = threshold(y, scores, recall=0.8).only
        t = cut.threshold
        truth = {"selected": 1 - t, "precision": (1 + t) / 2, "recall": 1 - t * t, "npv": 1 - t / 2}
        broken += any(
            not getattr(cut, name).lower <= value <= getattr(cut, name).upper
            for name, value in truth.items()
        )
    assert is_kept(broken, seeds, 0.2)


@pytest.mark.broad
@pytest.mark.parametrize(
    ("n", "least"), [(500, 0.232), pytest.param(2_000, 0.321, marks=pytest.mark.slow)]
)
def test_selects_nearly_as_much_as_ranks_can(n, least):
    shares = []
    for seed, scores, y in draws(lambda s: s, n, 60, None):
        cut = threshold(y, scores, precision=0.8, random_state=seed).threshold
        shares.append(0.0 if cut is None else 1.0 - cut)
    assert np.mean(shares) >= least - 2 * np.std(shares) / math.sqrt(len(shares))


@pytest.mark.slow
def test_all_segments_hold_at_once():
    broken = 0
    seeds = 80
    for seed, scores, y in draws(lambda s: s, 1_500, seeds):
        found = threshold(
            y, scores, precision=0.75, segments=np.arange(1_500) % 3, random_state=seed
        )
        broken += any(
            cut.threshold is not None and (1 + cut.threshold) / 2 < 0.75 for cut in found.cuts
        )
    assert is_kept(broken, seeds)


@pytest.mark.slow
def test_groups_keep_the_precision_where_rows_alone_break_it():
    broken = 0
    alone = 0
    found = 0
    seeds = 60
    for seed in range(seeds):
        groups, scores, y = in_groups(300, 10, seed)
        cut = threshold(y, scores, precision=0.7, groups=groups, random_state=seed).threshold
        found += cut is not None
        broken += cut is not None and (1 + cut) / 2 < 0.7
        alone += (1 + threshold(y, scores, precision=0.7, random_state=seed).threshold) / 2 < 0.7
    assert is_kept(broken, seeds)
    assert not is_kept(alone, seeds)
    assert found > seeds / 2


@pytest.mark.slow
def test_weighted_rows_keep_precision_and_recall_in_the_population_and_rows_alone_do_not():
    # positives are sampled four times as often as negatives; the rate is the score, and precision
    # at t is (1 + t) / 2
    rng = np.random.default_rng(5)
    plain_broken = 0

    def draws():
        nonlocal plain_broken
        while True:
            scores = rng.uniform(size=2_000)
            y = rng.uniform(size=2_000) < scores
            kept = rng.uniform(size=2_000) < np.where(y, 0.8, 0.2)
            scores = scores[kept]
            y = y[kept]
            given = {
                "importance_weight": np.where(y, 0.25, 1.0),
                "weight_bound": 1.0,
                "random_state": rng,
            }
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


@pytest.mark.slow
def test_a_fixed_seed_keeps_tied_worlds_with_few_rows():
    """Three tied scores, a rate that falls at the top and crosses the target within ties.

    Seed 0 in every draw.
    """
    rng = np.random.default_rng(6)
    shares = [0.15, 0.45, 0.4]
    rates = [0.1, 0.95, 0.2]
    target = 0.7
    alpha = 0.3
    tried = 2_000
    wrong = 0
    precision = np.cumsum(np.multiply(shares, rates)) / np.cumsum(shares)
    values = np.array([0.9, 0.5, 0.1])
    for _ in range(tried):
        kind = rng.choice(3, p=shares, size=14)
        labels = (rng.uniform(size=14) < np.take(rates, kind)).astype(np.uint8)
        source = RandomSource.of(0, "ties", rows=fingerprint_of(values[kind], labels=labels))
        ladder, proved = ranked(values[kind], labels, "precision", target, alpha, None, source)
        chosen = [int(np.count_nonzero(values >= cut)) for cut in ladder.cuts[proved]]
        wrong += any(count and precision[count - 1] < target for count in chosen)
    assert is_kept(wrong, tried, alpha)


@pytest.mark.parametrize(
    "rates", [(0.0, 1.0, 0.0, 1.0), (0.3, 0.95, 0.9, 0.1), (1.0, 0.0, 1.0, 0.6), (0.2, 1.0, 0.5)]
)
@pytest.mark.parametrize("weights", ["even", "steep"])
@pytest.mark.broad
def test_ranks_are_kept_for_step_curves_and_few_rows(rates, weights):
    """Every proved set of every draw is checked, not only the last: the truth is known at each
    rank.
    """
    n = 10
    alpha = 0.3
    target = 0.6
    begins = [(4, 0.15), (6, 0.15)] if weights == "even" else [(3, 0.25), (7, 0.05)]
    shares = np.full(len(rates), 1 / len(rates))
    rng = np.random.default_rng(5)
    tried = 4_000
    wrong = 0
    places = -np.sort(-rng.uniform(size=(tried, n)), axis=1)  # ranks from the top
    steps = np.minimum((places * len(rates)).astype(int), len(rates) - 1)
    labels = rng.uniform(size=places.shape) < np.asarray(rates)[steps]
    sizes = np.arange(1, n + 1)
    hits = np.cumsum(labels, axis=1)
    tails = binom.sf(hits - 1, sizes, target)
    mass = np.concatenate([[0.0], np.cumsum(shares * rates)])
    inner = mass[steps] + (places * len(rates) - steps) * shares[steps] * np.asarray(rates)[steps]
    precision = (mass[-1] - inner) / (1.0 - places)  # above the score of each row
    for row, one in enumerate(tails):
        proved = np.flatnonzero(chained(one, begins))
        wrong += bool(
            (precision[row, np.minimum(proved + 1, n - 1)][proved < n - 1] < target).any()
        )
    assert is_kept(wrong, tried, alpha)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["recall", "specificity"])
def test_groups_keep_recall_and_specificity(target):
    broken = 0
    found = 0
    seeds = 60
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
    broken = 0
    missed = 0
    seeds = 80
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
