"""How limits are computed: exact tails in two strata, labels alone, or bets.

The choice does not depend on labels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._typing import BoolArray, IntArray
from calibrant.assess.rates.bets import fewest_and_most
from calibrant.assess.rates.cells import cells_of
from calibrant.assess.rates.exact import Stratum, positives_within, stratified_limits
from calibrant.assess.rates.guesses import Guesser, Unit, steps_of
from calibrant.assess.rates.items import Items
from calibrant.errors import InvalidTypeError, InvalidValueError
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


def choose_method(items: Items) -> str:
    """The method for these items, chosen by the numbers of items and labels and by the scores.

    Exact limits in two strata are the narrowest for up to a few thousand labels. If the rarer
    stratum would have fewer than two labels on average, strata gain nothing, and labels alone are
    used.
    """
    if items.groups is not None or items.sequential or items.n_labels > _MOST_EXACT:
        return "bets"
    return "exact" if items.rare_labels >= _LEAST_RARE else "labels"


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


def count_limits(items: Items, tails: Sequence[float], method: str, seed: int) -> list[Limits]:
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
        method = choose_method(items)
    if method == "bets":
        return _by_bets(items, tails, seed)
    strata = items.scores.upper
    if method == "exact" and strata is not None:
        return _by_strata(items, strata, tails)
    limits = [positives_within(n_items, n_labels, positives, tail) for tail in tails]
    return [Limits(positives / n_labels, *ends, "labels") for ends in limits]


def _by_strata(items: Items, strata: BoolArray, tails: Sequence[float]) -> list[Limits]:
    both = []
    overall = items.positives / items.n_labels
    estimate = 0.0
    for inside in (strata, ~strata):
        codes = items.codes[inside]
        labels = int((codes >= 0).sum())
        positives = int((codes == 1).sum())
        both.append(Stratum(codes.size, labels, positives))
        estimate += codes.size * (positives / labels if labels else overall)
    estimate /= len(items)
    return [Limits(estimate, *stratified_limits(*both, tail), "exact") for tail in tails]


def _by_bets(items: Items, tails: Sequence[float], seed: int) -> list[Limits]:
    sequential = items.sequential
    cells = cells_of(items.scores, _LABELS_AT_EVERY_LOOK if sequential else items.n_labels)
    units = drawn_units(items, cells.of_item, seed)
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


def drawn_units(items: Items, cell: IntArray, seed: int) -> list[Unit]:
    """The labelled units in the order of the bets.

    The order is a random order of positions, so a file sorted by label does no harm. If labels
    arrive one by one, it is the order of arrival, and a random order among labels that arrived
    together; it does not change when more labels arrive.
    """
    rows = rows_in_random_order(items, items.labelled, seed)
    parts = np.split(rows, np.flatnonzero(np.diff(items.units[rows])) + 1)
    return [Unit(cell[part], items.codes[part]) for part in parts]


def rows_in_random_order(items: Items, some: BoolArray, seed: int) -> IntArray:
    """Some of the items, in a random order of units; if labels arrive one by one, in their order."""
    rows = np.flatnonzero(some)
    units = items.units[rows]
    columns = [items.scores.ranked] if items.sequential else [items.scores.ranked, items.codes]
    source = RandomSource.of(seed, "rate: order of labels", rows=fingerprint_of(*columns))
    keys: list[Any] = [source.hashes(units.astype(np.uint64))]
    if items.groups is not None:
        keys.insert(0, units)
    if items.order is not None:
        keys.append(items.order[rows])
    return rows[np.lexsort(keys)]
