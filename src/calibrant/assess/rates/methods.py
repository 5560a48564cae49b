"""How limits are computed: exact tails in two strata, labels alone, or bets.

The choice does not depend on labels.

*The rate of the population* from which the items were drawn: one of three ways is chosen by the
scores and the numbers of labels and items, never by labels:

- "pairs": bets on labels, each paired with unlabelled items of its own. The narrowest from some 200
  labels on, and for groups.
- "labels": Clopper-Pearson limits from labels alone, if a score says too little about so few of them.
- limits on the number of positives among the items, and a step from there: for few labels, which the
  exact limits of `exact` use best, and if labels arrive one by one or most items have one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._typing import BoolArray, IntArray
from calibrant.assess.rates.bets import (
    POPULATION,
    Guesser,
    Unit,
    fewest_and_most,
    paired_steps,
    steps_of,
)
from calibrant.assess.rates.cells import cells_of
from calibrant.assess.rates.exact import Stratum, positives_within, stratified_limits
from calibrant.assess.rates.items import Items
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.binomial import lower_limit, upper_limit
from calibrant.limits.kl import lower_mean
from calibrant.params.random import RandomSource, fingerprint_of
from calibrant.text.sentences import Setting

METHODS = ("auto", "exact", "labels", "bets")

_MOST_EXACT = 2_000  # labels; beyond, bets use the score better, and exact limits take seconds
_MOST_POSSIBLE = 5_000
# average number of labels under the rarer verdict; below, a judge that fails items at random costs
# 7%
_LEAST_RARE = 2.0
_LABELS_AT_EVERY_LOOK = (
    250  # number for which cells are cut if more labels may come: the cells must not change
)
START_SHARE = 0.01  # share of the tail for the limits from labels alone at which the walk begins


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on a number of positives among items, or on a rate.

    Attributes
    ----------
    estimate : float
        The most likely rate; NaN without labels.
    lower, upper : float
    method : {"exact", "labels", "bets", "pairs", "all labelled", "no labels"}
    crossed : bool
        Whether the lower limit was above the upper one. Then only what the labels count is known:
        all positives seen are there, and no negative seen is positive.
    """

    estimate: float
    lower: float
    upper: float
    method: str
    crossed: bool = False


def check_method(items: Items, method: str) -> None:
    """Raise an error for a method that cannot be used with these items."""
    if method in ("exact", "labels") and (items.groups is not None or items.sequential):
        what = "groups" if items.groups is not None else "sequential"
        raise InvalidTypeError(
            "method", ('be "auto" or "bets" with ', Setting(what)), got=repr(method)
        )
    if method == "exact" and items.n_labels > _MOST_POSSIBLE:
        rule = f'be "auto" or "bets" with more than {_MOST_POSSIBLE:,} labels'
        raise InvalidValueError("method", rule, got=repr(method))


def count_limits(items: Items, tails: Sequence[float], method: str) -> list[Limits]:
    """Limits on the number of positives among the items, each of which fails with probability at
    most a tail; for each of several tails.
    """
    n_items = len(items)
    n_labels = items.n_labels
    positives = items.positives
    if n_labels == n_items:
        return [Limits(positives / n_items, positives, positives, "all labelled")] * len(tails)
    if n_labels == 0:
        return [Limits(math.nan, 0, n_items, "no labels")] * len(tails)
    if method == "auto":
        # exact limits in two strata are the narrowest for up to a few thousand labels; if the rarer
        # stratum has fewer than two labels on average, strata gain nothing
        method = "exact" if items.rare_labels >= _LEAST_RARE else "labels"
        if items.groups is not None or items.sequential or n_labels > _MOST_EXACT:
            method = "bets"
    if method == "bets":
        return _by_bets(items, tails)
    strata = items.scores.upper
    if method == "exact" and strata is not None:
        both = []
        estimate = 0.0
        for inside in (strata, ~strata):
            codes = items.codes[inside]
            one = Stratum(codes.size, int((codes >= 0).sum()), int((codes == 1).sum()))
            both.append(one)
            own = one.positives / one.n_labels if one.n_labels else positives / n_labels
            estimate += one.n_items * own
        estimate /= n_items
        return [Limits(estimate, *stratified_limits(*both, tail), "exact") for tail in tails]
    limits = [positives_within(n_items, n_labels, positives, tail) for tail in tails]
    return [Limits(positives / n_labels, *ends, "labels") for ends in limits]


def _by_bets(items: Items, tails: Sequence[float]) -> list[Limits]:
    sequential = items.sequential
    cells = cells_of(items.scores, _LABELS_AT_EVERY_LOOK if sequential else items.n_labels)
    units = drawn_units(items, cells.of_item)
    sizes = items.unit_sizes
    largest = int(sizes.max())
    steps = steps_of(units, cells, sizes.size, largest)
    guesser = Guesser(cells)
    for unit in units:
        guesser.learn(unit)
    expected = items.positives + float(guesser.guesses()[cells.of_item[~items.labelled]].sum())
    known = items.positives, len(items) - (items.n_labels - items.positives)
    found = []
    for tail in tails:
        start = None
        if largest == 1 and not sequential:
            start = positives_within(
                len(items), items.n_labels, items.positives, START_SHARE * tail
            )
            tail *= 1.0 - START_SHARE
        fewest, most = fewest_and_most(steps, len(items), tail, sequential=sequential, start=start)
        fewest = max(fewest, known[0])
        most = min(most, known[1])
        # each limit is found on its own, so both can be wrong at once, and wrong limits can cross
        crossed = fewest > most
        ends = known if crossed else (fewest, most)
        found.append(Limits(expected / len(items), *ends, "bets", crossed))
    return found


def drawn_units(items: Items, cell: IntArray) -> list[Unit]:
    """The labelled units in the order of the bets.

    The order is a random order of positions, so a file sorted by label does no harm. If labels
    arrive one by one, it is the order of arrival, and a random order among labels that arrived
    together; it does not change when more labels arrive.
    """
    rows = rows_in_random_order(items, items.labelled)
    parts = np.split(rows, np.flatnonzero(np.diff(items.units[rows])) + 1)
    return [Unit(cell[part], items.codes[part]) for part in parts]


def rows_in_random_order(items: Items, some: BoolArray) -> IntArray:
    """Some of the items, in a random order of units; if labels arrive one by one, in their order."""
    rows = np.flatnonzero(some)
    units = items.units[rows]
    columns = [items.scores.ranked] if items.sequential else [items.scores.ranked, items.codes]
    source = RandomSource.of(items.seed, "rate: order of labels", rows=fingerprint_of(*columns))
    keys: list[Any] = [source.hashes(units.astype(np.uint64))]
    if items.groups is not None:
        keys.insert(0, units)
    if items.order is not None:
        keys.append(items.order[rows])
    return rows[np.lexsort(keys)]


LEAST_SHARE = 0.1
"""Share of alpha for the step from items to population, unless many items are labelled."""
_PILOT_SHARE = 0.1  # of the unlabelled units
# labels in the smaller stratum of scores on average: with fewer, bets near a rate of 0 or 1 are wider
# than exact limits, and exact limits in strata wider than those from labels alone
_ENOUGH_FOR_PAIRS = 25
_ENOUGH_FOR_STRATA = 5
_FEW_OF_ITEMS = 0.025  # with more, the step from items to population costs what strata gain


def direct_limits(items: Items, tails: Sequence[float], method: str) -> list[Limits] | None:
    """Limits on the population's rate, each of which fails with probability at most a tail, for each
    of several tails; None if they come from limits for the items.
    """
    if items.sequential or items.n_labels in (0, len(items)):
        return None
    n_paired = _numbers_of_units(items)[1]
    if method == "auto":  # the narrowest, as the scores and the numbers of labels and items suggest
        is_small = items.n_labels <= _FEW_OF_ITEMS * len(items)
        method = "labels"
        if items.rare_labels >= _ENOUGH_FOR_STRATA and (is_small or not n_paired):
            method = "exact"
        if items.groups is not None or items.rare_labels >= _ENOUGH_FOR_PAIRS:
            method = "bets"
    if method == "bets" and n_paired:
        return _paired_limits(items, tails)
    if method == "labels":
        return [_from_labels(items, tail, "labels") for tail in tails]
    return None


def _from_labels(items: Items, tail: float, method: str, crossed: bool = False) -> Limits:
    """The share of positives among the labels, and limits from labels alone."""
    only = items.take(items.labelled)
    seen = items.positives
    limits = population_limits(only, seen, seen, tail)
    return Limits(seen / len(only), *limits, method, crossed)


def _paired_limits(items: Items, tails: Sequence[float]) -> list[Limits]:
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
    rows = rows_in_random_order(items, ~items.labelled)
    pilot = np.zeros(len(items), dtype=bool)
    pilot[rows[: n_pilot * size]] = True
    cells = cells_of(items.scores, items.n_labels, pilot)
    units = drawn_units(items, cells.of_item)
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
    lower = lower_mean(fewest / n_items, n_groups, tail)
    return lower, 1.0 - lower_mean(1.0 - most / n_items, n_groups, tail)
