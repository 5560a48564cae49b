"""Were labelled items drawn at random, and in the given order? Tests on scores alone, which cost the
limits nothing.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.rates.cells import MOST_VERDICTS, Scores, exponent_of
from calibrant.assess.rates.exact import probabilities, upper_tails
from calibrant.assess.rates.items import Items
from calibrant.cells.units import RowUnits
from calibrant.text.numbers import nearest, p_value, percent
from calibrant.text.result import Result, Verdict

LEVEL = 0.01
"""The largest probability that a truly random draw is rejected."""

_CUTS = 8
_EXACT_LABELS = (
    20_000  # beyond, the tail is bounded by Hoeffding's inequality for draws without replacement
)


@dataclass(frozen=True, slots=True, repr=False)
class DrawCheck(Result):
    """Whether the scores of labelled items look like a random draw from those of all items; or those
    of the first half like one from all labelled items, as they do if labels are given in the order
    in which their items were drawn.

    Attributes
    ----------
    p_value : float
        An upper bound on the probability that a random draw differs as much as this one.
    part : str
        The set of scores where it differs most, such as "score of at least 0.7", or the segment.
    share_drawn, share_all : float
        The share of that set among labelled items, and among all items; for the order, among the
        first half, and among all labelled items. If several labels have one time, the first half
        ends where a time ends.
    of_order : bool
        Whether the order is tested.
    is_segment : bool
        Whether that set is a segment, as when labels were drawn in each segment separately.
    """

    _also: ClassVar[tuple[str, ...]] = ("refuted",)

    p_value: float
    part: str
    share_drawn: float
    share_all: float
    of_order: bool = False
    is_segment: bool = False

    @property
    def refuted(self) -> bool:
        """Whether the assumption is refuted."""
        return self.p_value <= LEVEL

    @property
    def verdict(self) -> Verdict:
        """Whether it is refuted."""
        return "problem" if self.refuted else "ok"

    @property
    def sentence(self) -> str:
        """What was found."""
        how = p_value(self.p_value)
        if not self.refuted:
            like = "as if they were drawn in this order" if self.of_order else "like a random draw"
            return f"The labelled items look {like} ({how})."
        words = ("not a random draw", "them", "all items")
        if self.of_order:
            words = ("not in the order in which they were drawn", "the first", "all")
        wrong, some, whole = words
        have, do = ("are in", "are") if self.is_segment else ("have a", "do")
        return (
            f"The labelled items are {wrong} ({how}): {percent(round(self.share_drawn, 3))} of"
            f" {some} {have} {self.part}, but {percent(round(self.share_all, 3))} of {whole} {do}."
            " The limits may not hold."
        )


def check_draw(
    items: Items, names: Sequence[Hashable] = (), number: IntArray | None = None
) -> DrawCheck | None:
    """Test whether the labelled units are a random sample of all units.

    With groups, a unit is a group, and its score is the mean score of its items; for verdicts, the
    share of its items with that verdict. How a verdict is spelled makes no difference. Segments,
    their names and the number of each item's segment, are tested like verdicts: labels drawn in each
    segment separately are no random draw from all items. None if there is nothing to compare.
    """
    labelled, mean = _units(items)
    segments = []
    for place, name in enumerate(names if len(names) > 1 else ()):
        inside = np.asarray(number == place, dtype=np.float64)
        segments += _shares(mean(inside), f"segment {name!r}")
    found = _largest_difference([*_parts(items, mean), *segments], labelled)
    if found is None:
        return None
    return DrawCheck(*found, is_segment=found[1] in [part for part, _ in segments])


def check_order(items: Items) -> DrawCheck | None:
    """Test whether the first half of the labelled units is a random sample of all labelled units.

    If labels are given in the order in which their items were drawn, it is, whatever the scores.
    Labels of one time are not split. None without an order, if all units are labelled, or if there
    is nothing to compare.
    """
    if items.order is None or items.n_labels == len(items):
        return None
    labelled, mean = _units(items)
    order = np.zeros(labelled.size, dtype=np.int64)
    order[items.units] = items.order  # all items of a group have its time
    inside = labelled == 1
    times = order[inside]
    # the end of the time that is nearest to the middle
    ends = np.flatnonzero(np.diff(np.sort(times))) + 1
    if ends.size == 0:
        return None
    size = int(ends[np.abs(2 * ends - times.size).argmin()])
    first = times <= np.sort(times)[size - 1]
    parts = _parts(items, lambda values: mean(values)[inside])
    found = _largest_difference(parts, first.astype(np.int64))
    return None if found is None else DrawCheck(*found, of_order=True)


def _largest_difference(
    parts: list[tuple[str, IntArray]], chosen: IntArray
) -> tuple[float, str, float, float] | None:
    """Where the chosen units differ most from all units: the p-value, the set of scores, and its
    share among the chosen and among all.

    The sets are determined by the scores of all units. In a random choice, the number of chosen
    units in each set is hypergeometric. The smallest p-value, times the number of sets and of
    sides, is a p-value (Bonferroni).
    """
    n_units = chosen.size
    n_chosen = int(chosen.sum())
    if n_chosen == n_units or not parts:
        return None
    best = None
    for part, inside in parts:
        in_all = int(inside.sum())
        seen = int((inside & chosen).sum())
        tail = _two_sided(n_units, in_all, n_chosen, seen)
        p_value = min(1.0, len(parts) * tail)
        if best is None or p_value < best[0]:
            best = (p_value, part, seen / n_chosen, in_all / n_units)
    return best


def _units(items: Items) -> tuple[IntArray, Callable[[FloatArray], FloatArray]]:
    """Which units are labelled, and the mean of each unit."""
    if items.groups is None:
        return items.labelled.astype(np.int64), lambda values: values
    units = RowUnits(
        items.groups, int(items.groups.max(initial=-1)) + 1, np.ones(items.groups.size)
    )

    def mean(values: FloatArray) -> FloatArray:
        exponent = exponent_of(values)  # sums of scores near 1e300 would overflow
        means = units.sums(np.ldexp(values, -exponent)) / units.totals
        return np.ldexp(means, exponent)

    return (units.sums(items.labelled) > 0.0).astype(np.int64), mean


def _parts(items: Items, mean: Callable[[FloatArray], FloatArray]) -> list[tuple[str, IntArray]]:
    """Sets of units, with their names."""
    scores = items.scores
    if not scores.words and (items.groups is None or scores.distinct.size != 2):
        return [
            (f"score of at least {nearest(cut)}", inside)
            for cut, inside in _cuts(mean(scores.values))
        ]
    parts = []
    for value in _verdicts(scores):
        has = (scores.values == value).astype(np.float64)
        what = f"verdict {scores.words[int(value)]!r}" if scores.words else f"score {value:g}"
        parts += _shares(mean(has), what)
    return parts


def _shares(shares: FloatArray, what: str) -> list[tuple[str, IntArray]]:
    """Sets of units by the share of their items with a verdict, or in a segment."""
    return [
        (f"share of at least {nearest(cut)} with {what}" if cut < 1.0 else what, inside)
        for cut, inside in _cuts(shares)
    ]


def _verdicts(scores: Scores) -> list[float]:
    """The verdicts to test: of two, the more common one, because the other has the same test."""
    distinct, counts = scores.counted
    if distinct.size != 2:
        return distinct.tolist() if distinct.size > 2 else []
    if counts[0] == counts[1]:
        return [float(scores.values[0])]
    return [float(distinct[counts.argmax()])]


def _cuts(values: FloatArray) -> list[tuple[float, IntArray]]:
    """The units with at least a value, for each value or for some of many."""
    distinct = np.unique(values)
    cuts = distinct[1:]
    if distinct.size > MOST_VERDICTS:
        ranks = np.arange(1, _CUTS + 1) / (_CUTS + 1)
        cuts = np.unique(np.quantile(values, ranks, method="higher"))
        cuts = cuts[cuts > distinct[0]]
    return [(cut, (values >= cut).astype(np.int64)) for cut in cuts.tolist()]


def _two_sided(n_units: int, in_all: int, n_labelled: int, seen: int) -> float:
    """Twice the smaller tail of the hypergeometric distribution."""
    if n_labelled > _EXACT_LABELS:
        distance = abs(seen / n_labelled - in_all / n_units)
        return min(1.0, 2.0 * float(np.exp(-2.0 * n_labelled * distance**2)))
    law = probabilities(n_units, np.array([in_all]), n_labelled)
    above = float(upper_tails(law)[0, seen])
    below = float(law[0, : seen + 1].sum())
    return min(1.0, 2.0 * min(above, below))
