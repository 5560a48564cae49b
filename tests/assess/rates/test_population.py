"""The rate of a population: paired bets are fair, cover by enumeration, and are narrow where they are
used.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from calibrant import rate
from calibrant.assess.rates.bets import POPULATION, Unit, Walk, fewest_and_most, paired_steps
from calibrant.assess.rates.cells import ScoreCells, cells_of, read_scores
from calibrant.assess.rates.items import read_items
from calibrant.assess.rates.methods import direct_limits

LEVEL = 1e-3


def two_cells(prior=None):
    return ScoreCells(np.zeros(0, dtype=np.int64), np.array([3, 2]), prior)


def every_world(share, rates, n_units):
    """All outcomes of `n_units` pairs of an item and a block of one, with their probabilities."""
    law = np.array([1.0 - share, share])
    for one in product(product((0, 1), (0, 1), (0, 1)), repeat=n_units):
        chance = 1.0
        for cell, code, other in one:
            chance *= law[cell] * law[other] * (rates[cell] if code else 1.0 - rates[cell])
        if chance > 0.0:
            units = [Unit(np.array([cell]), np.array([code])) for cell, code, _ in one]
            yield units, np.eye(2)[[other for *_, other in one]], chance


@pytest.mark.parametrize("upwards", [True, False])
@pytest.mark.parametrize("prior", [None, np.array([0.02, 0.98])])
def test_each_bet_is_fair_at_the_populations_rate(upwards, prior):
    """The capital at the truth keeps its mean, over all labels, scores and blocks."""
    share, rates, tail = 0.3, (0.25, 0.75), 0.2
    truth = round(POPULATION * (0.7 * 0.25 + 0.3 * 0.75))
    mean = total = spread = 0.0
    for units, blocks, chance in every_world(share, rates, 3):
        steps = paired_steps(units, blocks, two_cells(prior), 1, 1)
        walk = Walk(steps, tail, upwards=upwards, sequential=False)
        capital = np.array([tail])
        for place in range(3):
            at = np.array([truth]) / steps.n_units[place]
            capital = capital * walk._factors(at, capital, place)
        assert capital[0] >= 0.0
        total += chance
        mean += chance * capital[0]
        spread += chance * abs(capital[0] - tail)
    assert total == pytest.approx(1.0)
    assert mean == pytest.approx(tail, rel=1e-9)
    assert spread > 0.01  # something is staked


@pytest.mark.parametrize("tail", [0.05, 0.25])
@pytest.mark.parametrize("rates", [(0.0, 1.0), (0.01, 0.02), (0.3, 0.8), (0.98, 1.0)])
def test_small_populations_are_covered_by_enumeration(rates, tail):
    share = 0.4
    truth = 0.6 * rates[0] + 0.4 * rates[1]
    missed = np.zeros(2)
    for units, blocks, chance in every_world(share, rates, 3):
        fewest, most = fewest_and_most(
            paired_steps(units, blocks, two_cells(), 1, 1), POPULATION, tail
        )
        wrong = [(fewest - 1) / POPULATION > truth, (most + 1) / POPULATION < truth]
        missed += chance * np.array(wrong)
    assert missed.max() <= tail + 1e-12


def world(rng, n_items, n_labels, share, sensitivity, specificity):
    good = (rng.random(n_items) < share).astype(int)
    judge = np.where(
        good == 1, rng.random(n_items) < sensitivity, rng.random(n_items) > specificity
    )
    y = np.full(n_items, np.nan)
    y[:n_labels] = good[:n_labels]
    return y, judge.astype(int)


@pytest.mark.slow
@pytest.mark.parametrize("tail", [0.05, 0.25])
@pytest.mark.parametrize(
    ("share", "sensitivity", "specificity", "n_labels", "method"),
    [
        (0.8, 0.97, 0.95, 170, "pairs"),
        (0.5, 1.0, 1.0, 60, "pairs"),
        (0.97, 0.98, 0.5, 50, "labels"),
        (0.9, 0.95, 0.9, 60, None),
    ],
)
def test_the_population_is_covered(share, sensitivity, specificity, n_labels, method, tail):
    rng = np.random.default_rng([45, n_labels, round(100 * tail)])
    draws = 400
    missed = np.zeros(2)
    for seed in range(draws):
        y, judge = world(rng, 700, n_labels, share, sensitivity, specificity)
        items, _ = read_items(y, judge, None, None)
        direct = direct_limits(replace(items, seed=seed), (tail,), "auto")
        if direct is None:
            assert method is None
            full = rate(y, judge, target="population", confidence_level=1.0 - 2.0 * tail)
            limits = full.lower, full.upper
        else:
            (found,) = direct
            assert method in (None, found.method)
            limits = found.lower, found.upper
        missed += [limits[0] > share, limits[1] < share]
    for times in missed:
        assert binomtest(int(times), draws, tail, alternative="greater").pvalue > LEVEL


def test_groups_are_covered_where_rows_alone_break():
    """Ten answers to each of 300 questions, all alike: 60 questions are labelled."""
    rng = np.random.default_rng(45)
    groups = np.repeat(np.arange(300), 10)
    draws = 60
    missed = {"groups": 0, "rows": 0}
    widths = []
    for seed in range(draws):
        good = np.repeat((rng.random(300) < 0.8).astype(int), 10)
        judge = np.where(rng.random(3000) < 0.9, good, 1 - good)
        y = np.where(groups < 60, good, np.nan)
        given = {"target": "population", "confidence_level": 0.8, "random_state": seed}
        whole = rate(y, judge, groups=groups, **given)
        assert whole.method == "pairs"
        rows = rate(y, judge, **given)
        missed["groups"] += not whole.lower <= 0.8 <= whole.upper
        missed["rows"] += not rows.lower <= 0.8 <= rows.upper
        widths.append(whole.upper - whole.lower)
    assert binomtest(missed["groups"], draws, 0.2, alternative="greater").pvalue > LEVEL
    assert binomtest(missed["rows"], draws, 0.2, alternative="greater").pvalue < LEVEL
    assert np.mean(widths) < 0.25


def test_pairs_are_narrower_than_labels_alone_and_the_choice_is_made_without_labels():
    rng = np.random.default_rng(1)
    y, judge = world(rng, 4000, 500, 0.8, 0.97, 0.95)
    given = {"target": "population", "random_state": 3}
    pairs = rate(y, judge, **given)
    alone = rate(y, judge, method="labels", **given)
    assert (pairs.method, alone.method) == ("pairs", "labels")
    assert pairs.upper - pairs.lower < 0.7 * (alone.upper - alone.lower)
    for labels in (np.zeros(500), np.ones(500), rng.random(500) < 0.5):
        y[:500] = labels
        assert rate(y, judge, **given).method == "pairs"
    assert rate(y, np.ones(4000), **given).method == "labels"


@pytest.mark.parametrize("share", [0.95, 0.98])
@pytest.mark.parametrize("n_labels", [100, 200, 400])
def test_near_a_rate_of_1_a_judge_does_not_make_limits_wider_than_labels_alone(share, n_labels):
    """With a twentieth of the items labelled, the step from items to population costs more than
    two strata gain.
    """
    widths = {"auto": 0.0, "labels": 0.0}
    for seed in range(5):
        y, judge = world(np.random.default_rng(seed), 4000, n_labels, share, 0.98, 0.6)
        for method in widths:
            found = rate(y, judge, target="population", method=method)
            widths[method] += found.upper - found.lower
    assert widths["auto"] < 1.05 * widths["labels"]


def test_a_file_in_any_order_of_labels_is_covered():
    """Labelled items come first and are sorted by label: the order of the bets is drawn."""
    rng = np.random.default_rng(2)
    missed = 0
    for seed in range(60):
        y, judge = world(rng, 700, 120, 0.6, 0.9, 0.8)
        order = np.argsort(y[:120])
        y[:120], judge[:120] = y[:120][order], judge[:120][order]
        found = rate(y, judge, target="population", confidence_level=0.8, random_state=seed)
        missed += not found.lower <= 0.6 <= found.upper
    assert binomtest(missed, 60, 0.2, alternative="greater").pvalue > LEVEL


def test_cells_are_cut_by_the_pilot_alone_and_unseen_words_share_one():
    scores = read_scores(np.array(["a", "b", "a", "c", "d", "b"]))
    pilot = np.array([True, True, False, False, False, False])
    assert cells_of(scores, 100, pilot).of_item.tolist() == [0, 1, 0, 2, 2, 1]
    rng = np.random.default_rng(0)
    values = rng.random(400)
    pilot = np.arange(400) < 100
    one = cells_of(read_scores(values), 100, pilot)
    values[pilot.sum() :] = rng.random(300)
    other = cells_of(read_scores(values), 100, pilot)
    np.testing.assert_array_equal(one.counts, other.counts)
    np.testing.assert_array_equal(one.prior, other.prior)
