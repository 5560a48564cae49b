"""Bets without replacement: fair at the truth, and covering every small world, by enumeration."""

from itertools import permutations, product

import numpy as np
import pytest

from calibrant.assess.rates.bets import Unit, Walk, fewest_and_most, steps_of
from calibrant.assess.rates.cells import ScoreCells

CELL = np.array([0, 0, 0, 1, 1, 2, 2])


def cells_with_prior(prior):
    return ScoreCells(CELL, np.bincount(CELL), prior)


def single_units(codes, order):
    return [Unit(CELL[[row]], codes[[row]]) for row in order]


@pytest.mark.parametrize("prior", [None, np.array([0.2, 0.5, 0.9])])
def test_each_bet_is_fair_at_the_truth_given_the_past(prior):
    """The mean of Z over the items that remain is 0 to rounding, after every past of up to three
    labels.
    """
    cells = cells_with_prior(prior)
    n_items = CELL.size
    for bits in range(0, 2**n_items, 5):
        codes = np.array([(bits >> row) & 1 for row in range(n_items)])
        for past in [(), (0,), (4, 1), (6, 2, 0)]:
            remaining = [row for row in range(n_items) if row not in past]
            changes = []
            for row in remaining:
                steps = steps_of(single_units(codes, [*past, row]), cells, n_items, 1)
                mean = (codes.sum() - codes[list(past)].sum()) / len(remaining)
                changes.append(steps.positives[-1] - mean - steps.surplus[-1])
                assert (
                    steps.lowest[-1] - mean - 1e-12
                    <= changes[-1]
                    <= steps.highest[-1] - mean + 1e-12
                )
            assert abs(np.mean(changes)) < 1e-12


@pytest.mark.parametrize("upwards", [False, True])
@pytest.mark.parametrize("sequential", [False, True])
def test_capital_at_the_truth_is_a_martingale(upwards, sequential):
    """Over all orders in which 4 of 6 items can be drawn, mean capital at the true number stays
    what it was.
    """
    cell = np.array([0, 0, 0, 1, 1, 1])
    cells = ScoreCells(cell, np.bincount(cell), None)
    codes = np.array([1, 1, 0, 1, 0, 0])
    tail = 0.05
    ends = []
    for order in permutations(range(6), 4):
        steps = steps_of([Unit(cell[[row]], codes[[row]]) for row in order], cells, 6, 1)
        walk = Walk(steps, tail, upwards=upwards, sequential=sequential)
        share = np.array([tail])
        for place in range(4):
            mean = np.array(
                [(codes.sum() - codes[list(order[:place])].sum()) / steps.n_units[place]]
            )
            share = share * walk._factors(mean, share, place)
        ends.append(share[0])
    assert np.mean(ends) == pytest.approx(tail, rel=1e-12)
    assert np.std(ends) > 0.01  # something is staked


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.slow
def test_every_small_world_is_covered_by_enumeration(sequential):
    """Over all orders in which 3 of 7 items can be drawn, the limits miss at most alpha, for every
    set of labels.
    """
    alpha = 0.3
    cells = cells_with_prior(None)
    orders = list(permutations(range(CELL.size), 3))
    worst = 0.0
    for positives in product(
        range(4), range(3), range(3)
    ):  # in each cell: items of a cell are alike
        codes = np.concatenate(
            [np.arange(3) < positives[0], np.arange(2) < positives[1], np.arange(2) < positives[2]]
        )
        codes = codes.astype(np.int64)
        missed = 0
        for order in orders:
            steps = steps_of(single_units(codes, order), cells, CELL.size, 1)
            low, high = fewest_and_most(steps, CELL.size, alpha / 2, sequential=sequential)
            missed += not low <= codes.sum() <= high
        worst = max(worst, missed / len(orders))
    assert worst <= alpha


@pytest.mark.slow
def test_groups_of_unlike_sizes_are_covered_by_enumeration():
    alpha = 0.3
    groups = [np.array([0]), np.array([1, 2]), np.array([3, 4, 5]), np.array([6])]
    cells = cells_with_prior(None)
    orders = list(permutations(range(4), 3))
    for bits in range(0, 128, 3):
        codes = np.array([(bits >> row) & 1 for row in range(7)])
        missed = 0
        for order in orders:
            units = [Unit(CELL[groups[group]], codes[groups[group]]) for group in order]
            steps = steps_of(units, cells, len(groups), 3)
            low, high = fewest_and_most(steps, 7, alpha / 2)
            missed += not low <= codes.sum() <= high
        assert missed / len(orders) <= alpha


def test_guesses_do_not_see_the_label_that_they_are_for():
    codes = np.array([0, 1, 1, 0, 1, 1, 0])
    flipped = codes.copy()
    flipped[4] = 0
    cells = cells_with_prior(None)
    one = steps_of(single_units(codes, [0, 1, 4]), cells, 7, 1)
    two = steps_of(single_units(flipped, [0, 1, 4]), cells, 7, 1)
    np.testing.assert_array_equal(one.surplus, two.surplus)
    np.testing.assert_array_equal(one.spread, two.spread)
