"""How limits are computed: exact tails in two strata, labels alone, or bets.

The choice does not depend on labels.
"""

from dataclasses import dataclass

import numpy as np

from calibrant._typing import IntArray, Seed
from calibrant.assess.rates.bets import fewest_and_most
from calibrant.assess.rates.cells import cells_of, two_strata
from calibrant.assess.rates.exact import Stratum, stratified_limits
from calibrant.assess.rates.guesses import Guesser, Unit, steps_of
from calibrant.assess.rates.hypergeometric import positives_within
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
_START_SHARE = 0.01  # share of the tail for the limits from labels alone at which the walk begins


@dataclass(frozen=True, slots=True)
class CountLimits:
    """Limits on the number of positives among items.

    Attributes
    ----------
    fewest, most : int
    estimate : float
        The most likely rate.
    method : {"exact", "labels", "bets", "all labelled", "no labels"}
    crossed : bool
        Whether the lower limit was above the upper one. Then only what the labels count is known:
        all positives seen are there, and no negative seen is positive.
    """

    fewest: int
    most: int
    estimate: float
    method: str
    crossed: bool = False


def choose_method(items: Items, *, sequential: bool) -> str:
    """The method for these items, chosen by the numbers of items and labels and by the scores.

    Exact limits in two strata are the narrowest for up to a few thousand labels. If the rarer
    stratum would have fewer than two labels on average, strata gain nothing, and labels alone are
    used.
    """
    if items.groups is not None or sequential or items.n_labels > _MOST_EXACT:
        return "bets"
    strata = two_strata(items.scores)
    if strata is None:
        return "labels"
    share = float(strata.mean())
    rare = min(share, 1.0 - share) * items.n_labels
    return "exact" if rare >= _LEAST_RARE else "labels"


def check_method(items: Items, method: str, *, sequential: bool) -> None:
    """Raise an error for a method that cannot be used with these items."""
    if method in ("exact", "labels") and (items.groups is not None or sequential):
        what = "groups" if items.groups is not None else "sequential"
        raise InvalidTypeError(
            "method", ('be "auto" or "bets" with ', Setting(what)), got=repr(method)
        )
    if method == "exact" and items.n_labels > _MOST_POSSIBLE:
        rule = f'be "auto" or "bets" with more than {_MOST_POSSIBLE:,} labels'
        raise InvalidValueError("method", rule, got=repr(method))


def count_limits(
    items: Items, alpha: float, method: str, *, sequential: bool, random_state: Seed
) -> CountLimits:
    """Limits on the number of positives among the items.

    Both hold with probability at least 1 - alpha.
    """
    n_items = len(items)
    n_labels = items.n_labels
    positives = items.positives
    if n_labels == n_items:
        return CountLimits(positives, positives, positives / n_items, "all labelled")
    if n_labels == 0:
        return CountLimits(0, n_items, 0.5, "no labels")
    if method == "auto":
        method = choose_method(items, sequential=sequential)
    if method == "exact":
        found = _by_strata(items, alpha)
        if found is not None:
            return found
        method = "labels"
    if method == "labels":
        fewest, most = positives_within(n_items, n_labels, positives, alpha / 2.0)
        return CountLimits(fewest, most, positives / n_labels, "labels")
    return _by_bets(items, alpha, sequential=sequential, random_state=random_state)


def _by_strata(items: Items, alpha: float) -> CountLimits | None:
    strata = two_strata(items.scores)
    if strata is None:
        return None
    both = []
    overall = items.positives / items.n_labels
    estimate = 0.0
    for inside in (strata, ~strata):
        codes = items.codes[inside]
        labels = int((codes >= 0).sum())
        positives = int((codes == 1).sum())
        both.append(Stratum(codes.size, labels, positives))
        estimate += codes.size * (positives / labels if labels else overall)
    fewest, most = stratified_limits(both[0], both[1], alpha)
    return CountLimits(fewest, most, estimate / len(items), "exact")


def _by_bets(items: Items, alpha: float, *, sequential: bool, random_state: Seed) -> CountLimits:
    cells = cells_of(items.scores, _LABELS_AT_EVERY_LOOK if sequential else items.n_labels)
    units, n_units, largest = _drawn_units(
        items, cells.of_item, sequential=sequential, random_state=random_state
    )
    steps = steps_of(units, cells, n_units, largest)
    n_items = len(items)
    positives = items.positives
    negatives = items.n_labels - positives
    tail = alpha / 2.0
    start = None
    if largest == 1 and not sequential:
        start = positives_within(n_items, items.n_labels, positives, _START_SHARE * tail)
        tail *= 1.0 - _START_SHARE
    fewest, most = fewest_and_most(steps, n_items, tail, sequential=sequential, start=start)
    fewest = max(fewest, positives)
    most = min(most, n_items - negatives)
    # each limit is found on its own, so both can be wrong at once, and wrong limits can cross
    crossed = fewest > most
    if crossed:
        fewest = positives
        most = n_items - negatives
    guesser = Guesser(cells)
    for unit in units:
        guesser.learn(unit)
    labelled = items.labelled
    expected = positives + float(guesser.guesses()[cells.of_item[~labelled]].sum())
    return CountLimits(fewest, most, expected / n_items, "bets", crossed)


def _drawn_units(
    items: Items, cell: IntArray, *, sequential: bool, random_state: Seed
) -> tuple[list[Unit], int, int]:
    """The labelled units in the order of the bets, the number of units, and the size of the
    largest.

    The order is a random order of positions, so a file sorted by label does no harm. If labels
    arrive one by one, it is the order of arrival, and a random order among labels that arrived
    together; it does not change when more labels arrive.
    """
    rows = np.flatnonzero(items.labelled)
    if items.groups is None:
        number = np.arange(len(items))
        n_units = len(items)
        largest = 1
    else:
        number = items.groups
        sizes = np.bincount(number)
        n_units = sizes.size
        largest = int(sizes.max())
    columns = [items.scores.values] if sequential else [items.scores.values, items.codes]
    source = RandomSource.of(random_state, "rate: order of labels", rows=fingerprint_of(*columns))
    ranks = source.hashes(number[rows].astype(np.uint64))
    keys = [number[rows], ranks]
    if items.order is not None:
        keys.append(items.order[rows])
    rows = rows[np.lexsort(keys)]
    if items.groups is None:
        codes = items.codes
        units = [Unit(cell[row : row + 1], codes[row : row + 1]) for row in rows.tolist()]
        return units, n_units, largest
    ends = np.flatnonzero(np.diff(number[rows])) + 1
    units = [Unit(cell[part], items.codes[part]) for part in np.split(rows, ends)]
    return units, n_units, largest
