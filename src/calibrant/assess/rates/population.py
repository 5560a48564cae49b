"""The rate of the population from which the items were drawn.

Three ways, of which one is chosen by the scores and the numbers of labels and items, never by labels:

- "pairs": bets on labels, each paired with unlabelled items of its own. The narrowest from some 200
  labels on, and for groups.
- "labels": Clopper-Pearson limits from labels alone, if a score says too little about so few of them.
- limits on the number of positives among the items, and a step from there: for few labels, which the
  exact limits of `exact` use best, and if labels arrive one by one or most items have one.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from calibrant.assess.rates.bets import fewest_and_most
from calibrant.assess.rates.cells import cells_of
from calibrant.assess.rates.guesses import POPULATION, paired_steps
from calibrant.assess.rates.items import Items
from calibrant.assess.rates.methods import (
    START_SHARE,
    Limits,
    drawn_units,
    rows_in_random_order,
)
from calibrant.limits.binomial import lower_limit, upper_limit

_LEAST_SHARE = 0.1
_PILOT_SHARE = 0.1  # of the unlabelled units
# labels in the smaller stratum of scores on average: with fewer, bets near a rate of 0 or 1 are wider
# than exact limits, and exact limits in strata wider than those from labels alone
_ENOUGH_FOR_PAIRS = 25
_ENOUGH_FOR_STRATA = 5
_FEW_OF_ITEMS = 0.025  # with more, the step from items to population costs what strata gain


def population_share(items: Items) -> float:
    """The share of alpha for the step from items to population: a tenth, and more if many items are
    labelled.

    It depends only on the numbers of labels and items. If labels arrive one by one it is a tenth at
    every look, because shares that grow from look to look would add up to more than alpha.
    """
    return _LEAST_SHARE if items.sequential else max(_LEAST_SHARE, items.n_labels / len(items))


def direct_limits(
    items: Items, tails: Sequence[float], method: str, seed: int
) -> list[Limits] | None:
    """Limits on the population's rate, each of which fails with probability at most a tail, for each
    of several tails; None if they come from limits for the items.
    """
    if items.sequential or items.n_labels in (0, len(items)):
        return None
    n_paired = _numbers_of_units(items)[1]
    if method == "auto":
        method = _method_for(items, n_paired)
    if method == "bets" and n_paired:
        return _paired_limits(items, tails, seed)
    if method == "labels":
        return [_from_labels(items, tail, "labels") for tail in tails]
    return None


def _method_for(items: Items, n_paired: int) -> str:
    """The narrowest method, as the scores and the numbers of labels and items suggest."""
    if items.groups is not None:
        return "bets"
    if items.rare_labels >= _ENOUGH_FOR_PAIRS:
        return "bets"
    is_small = items.n_labels <= _FEW_OF_ITEMS * len(items)
    use_strata = items.rare_labels >= _ENOUGH_FOR_STRATA and (is_small or not n_paired)
    return "exact" if use_strata else "labels"


def _from_labels(items: Items, tail: float, method: str, crossed: bool = False) -> Limits:
    """The share of positives among the labels, and limits from labels alone."""
    only = items.take(items.labelled)
    seen = items.positives
    limits = population_limits(only, seen, seen, tail)
    return Limits(seen / len(only), *limits, method, crossed)


def _paired_limits(items: Items, tails: Sequence[float], seed: int) -> list[Limits]:
    """Limits by paired bets.

    Units, items or groups of one size, are i.i.d. draws, and which of them are labelled was drawn at
    random, so labelled and unlabelled ones are draws from one population. Each labelled unit, in
    random order, has a block of unlabelled ones of its own. With G a guess at its positives T, from
    its scores, earlier labels and the pilot alone,

        Z_i = T_i - lam (G_i(unit i) - mean of G_i over block i)

    has the population's mean of T given the past, because unit and block have one distribution and
    neither was seen before. So bets on it are those of `bets`, with a mean that stays the same: one
    martingale for labels and scores together, and no share of alpha for a step from the items to
    their population. The pilot, a tenth of the unlabelled units, fixes the cells of scores. Cells
    from all scores would depend on units that are still to be bet on.
    """
    n_pilot, n_paired = _numbers_of_units(items)
    size = int(items.unit_sizes[0])
    rows = rows_in_random_order(items, ~items.labelled, seed)
    pilot = np.zeros(len(items), dtype=bool)
    pilot[rows[: n_pilot * size]] = True
    cells = cells_of(items.scores, items.n_labels, pilot)
    units = drawn_units(items, cells.of_item, seed)
    n_blocked = len(units) * n_paired * size
    blocked = cells.of_item[rows[n_pilot * size :][:n_blocked]]
    place = np.repeat(np.arange(len(units)), n_paired * size) * cells.counts.size + blocked
    blocks = np.bincount(place, minlength=len(units) * cells.counts.size)
    steps = paired_steps(units, blocks.reshape(len(units), -1) / n_paired, cells, size, n_paired)
    estimate = float(np.mean(steps.positives - steps.surplus)) / size
    found = []
    for tail in tails:
        start = None
        left = tail
        if size == 1:
            known = _from_labels(items, START_SHARE * tail, "labels")
            start = math.floor(known.lower * POPULATION), math.ceil(known.upper * POPULATION)
            left *= 1.0 - START_SHARE
        fewest, most = fewest_and_most(steps, POPULATION, left, start=start)
        # the truth lies between two of the numbers that are tried, so the last one that is ruled
        # out is the limit, not the next one
        lower = max(fewest - 1, 0) / POPULATION
        upper = min(most + 1, POPULATION) / POPULATION
        crossed = lower > upper
        found.append(
            _from_labels(items, tail, "pairs", crossed=True)
            if crossed
            else Limits(estimate, lower, upper, "pairs")
        )
    return found


def _numbers_of_units(items: Items) -> tuple[int, int]:
    """The numbers of units in the pilot, and in the block of each labelled unit."""
    size = int(items.unit_sizes[0])
    n_labelled = items.n_labels // size
    n_unlabelled = len(items) // size - n_labelled
    n_pilot = max(1, math.ceil(_PILOT_SHARE * n_unlabelled))
    return n_pilot, max(0, n_unlabelled - n_pilot) // max(n_labelled, 1)


def population_limits(items: Items, fewest: float, most: float, tail: float) -> tuple[float, float]:
    """Limits for the population, from limits on the number of positives among the items.

    If the items are i.i.d. draws, their number of positives K is Bin(n_items, rate). The exact
    lower limit on the rate (Clopper and Pearson) increases with K. So the limit for `fewest` is
    below the limit for K whenever fewest <= K, and fails with an additional probability of at most
    `tail`. The upper limit follows by symmetry.

    If items come in groups of equal size, which are i.i.d. draws, the mean of the groups' rates,
    each in [0, 1], exceeds x > rate with probability at most exp(-n_groups kl(x, rate)) (Chernoff
    and Hoeffding), whatever the dependence within a group.
    """
    n_items = len(items)
    if items.groups is None:
        return float(lower_limit(fewest, n_items, tail)), float(upper_limit(most, n_items, tail))
    n_groups = items.unit_sizes.size
    lower = _chernoff(fewest / n_items, n_groups, tail)
    return lower, 1.0 - _chernoff(1.0 - most / n_items, n_groups, tail)


def _chernoff(seen: float, n: int, tail: float) -> float:
    """The smallest rate with n kl(seen, rate) <= ln(1 / tail), rounded down."""
    goal = math.log(1.0 / tail) / n
    if seen <= 0.0:
        return 0.0
    if seen >= 1.0:
        return math.exp(-goal) * (1.0 - 1e-12)

    def excess(rate: float) -> float:
        return (
            seen * math.log(seen / rate)
            + (1.0 - seen) * math.log((1.0 - seen) / (1.0 - rate))
            - goal
        )

    tiny = seen * math.exp(-(goal + 2.0) / seen)
    if tiny <= 1e-300:
        return 0.0
    return float(brentq(excess, tiny, seen, xtol=1e-14)) * (1.0 - 1e-9)
