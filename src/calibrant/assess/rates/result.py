"""The result of `rate`."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from calibrant.assess.rates.drawn import DrawCheck
from calibrant.assess.rates.goal import Goal
from calibrant.assess.rates.more_labels import labels_that_reach
from calibrant.text.numbers import counted, limits, nearest, percent
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable

_HOW = {
    "exact": "exact hypergeometric tails in two strata of scores",
    "labels": "exact hypergeometric tails of labels alone",
    "bets": "bets without replacement, with the score as control variate",
    "all labelled": "a count of all labels",
    "no labels": "nothing, as there is no label",
}
_ROUNDING = 1e-12  # of a difference of two rates, so that swapped classes give the same number


@dataclass(frozen=True, slots=True)
class SegmentRate:
    """The rate in one segment.

    Attributes
    ----------
    segment : object
    estimate, lower, upper : float
    n_labels, n_items : int
    method : str
    """

    segment: Hashable
    estimate: float
    lower: float
    upper: float
    n_labels: int
    n_items: int
    method: str


@dataclass(frozen=True, slots=True, repr=False)
class Rate(Result):
    """A rate with limits, from labels on some items and scores on all of them.

    Attributes
    ----------
    estimate, lower, upper : float
        The rate of the positive class, and limits on it.
    confidence_level : float
        All limits hold simultaneously with this probability, over the draw of the labelled items.
    n_labels, n_items : int
        The number of items with a label, and of all items.
    target : {"items", "population"}
        Whether the rate is that of the items or of the population.
    method : {"exact", "labels", "bets", "all labelled", "no labels"}
        How the limits were found.
    positive_label : object
        The label whose rate it is.
    sequential : bool
        Whether the limits hold at every look while labels come in.
    n_groups, n_labelled_groups : int
        The number of groups, and of those labelled, if whole groups were drawn; 0 for individual
        items.
    segments : tuple of SegmentRate
        The rate in each segment.
    draw : DrawCheck or None
        Whether labelled items look like a random draw.
    """

    estimate: float
    lower: float
    upper: float
    confidence_level: float
    n_labels: int
    n_items: int
    target: str
    method: str
    positive_label: Any
    sequential: bool = False
    n_groups: int = 0
    n_labelled_groups: int = 0
    segments: tuple[SegmentRate, ...] = ()
    draw: DrawCheck | None = None

    @property
    def sentence(self) -> str:
        """The limits, the rate they are about, and what they assume.

        If the assumption is refuted, the sentence says so first.
        """
        first = ""
        if self.draw is not None and self.draw.refuted:
            first = f"{self.draw.sentence} "
        return first + self._claim()

    def _claim(self) -> str:
        labelled = f"have the label {self.positive_label!r}"
        if self.target == "items" and self.n_labels == self.n_items:
            return self._count()
        whose = f"these {self.n_items:,} items"
        if self.target == "population":
            whose = f"the population that these {self.n_items:,} items were drawn from"
        drawn = f"{counted(self.n_labels, 'label')} on items"
        if self.n_groups:
            groups = counted(self.n_labelled_groups, "group")
            drawn = f"{counted(self.n_labels, 'label')} in {groups}"
        refuted = self.draw is not None and self.draw.refuted
        drawn += ", if they had been drawn at random" if refuted else " drawn at random"
        looks = ", at every look" if self.sequential else ""
        together = ""
        if self.segments:
            together = f", together with the limits of {counted(len(self.segments), 'segment')}"
        return (
            f"With {percent(self.confidence_level)} confidence{looks}{together},"
            f" {limits(self.lower, self.upper)} of {whose} {labelled} (estimate"
            f" {nearest(self.estimate)}), from {drawn}."
        )

    def _count(self) -> str:
        """The sentence if every item has a label."""
        label = f"the label {self.positive_label!r}"
        if self.n_items == 1:
            return f"The only item {'has' if self.estimate else 'does not have'} {label}."
        return (
            f"Exactly {nearest(self.estimate)} of these {self.n_items:,} items have {label}:"
            f" all {self.n_items:,} labels are known."
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the limits assume."""
        unit = "groups of items" if self.n_groups else "items"
        found = []
        if self.n_labels < self.n_items:
            found.append(
                f"the {unit} to be labelled were drawn at random from all of them, each as likely"
                " as any other"
            )
        if self.sequential:
            found.append("labels are given in the order in which their items were drawn")
        if self.target == "population":
            same = ", all groups of one size" if self.n_groups else ""
            found.append(f"the {unit} are independent draws from one population{same}")
        return tuple(found)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the limits were found, and the result of the test of the draw."""
        found = [f"The limits come from {_HOW[self.method]}."]
        if self.draw is not None and not self.draw.refuted:
            found.append(self.draw.sentence)
        return tuple(found)

    def check(self, at_least: float | None = None, *, at_most: float | None = None) -> str:
        """Whether the rate is shown to be at least, or at most, this: "shown", "refuted" or
        "undecided".

        Give either `at_least` or `at_most`. "At least" is shown if the lower limit is at least the
        target, and refuted if the upper limit is below it; "at most" is shown if the upper limit is
        at most the target, and refuted if the lower limit is above it. With segments, it is shown
        if it is shown in every segment, and refuted if it is refuted in any. If the test refutes
        that the labelled items were drawn at random, the answer is "undecided".

        Examples
        --------
        >>> from calibrant import rate
        >>> rate([1] * 100 + [None] * 900, [0] * 1000).check(at_least=0.95)
        'shown'
        >>> rate([0] * 100 + [None] * 900, [0] * 1000).check(at_most=0.05)
        'shown'
        """
        goal = Goal.of(at_least, at_most)
        if self.draw is not None and self.draw.refuted:
            return "undecided"
        parts = (self._whole, *self.segments)
        if any(goal.is_refuted(part.lower, part.upper) for part in parts):
            return "refuted"
        shown = all(goal.is_shown(part.lower, part.upper) for part in parts)
        return "shown" if shown else "undecided"

    def labels_needed(self, at_least: float | None = None, *, at_most: float | None = None) -> int:
        """About how many labels in total would decide whether the rate is at least, or at most,
        this, if the estimate is right.

        Give either `at_least` or `at_most`. The limits are assumed to shrink like those from labels
        alone. With segments, it is the largest number that any undecided segment needs, scaled to
        all items.

        Examples
        --------
        >>> from calibrant import rate
        >>> rate([1] * 30 + [None] * 2_970, [0] * 3_000).labels_needed(at_least=0.95)
        71
        >>> rate([0] * 30 + [None] * 2_970, [0] * 3_000).labels_needed(at_most=0.05)
        71
        """
        goal = Goal.of(at_least, at_most)
        tail = (1.0 - self.confidence_level) / (2.0 * (1 + len(self.segments)))
        needed = [self.n_labels]
        for part in (self._whole, *self.segments):
            limits_of_part = (part.lower, part.upper)
            if not goal.is_shown(*limits_of_part) and not goal.is_refuted(*limits_of_part):
                labels = _needed(part, goal.rate, tail)
                needed.append(math.ceil(labels * self.n_items / part.n_items))
        return max(needed)

    @property
    def _whole(self) -> SegmentRate:
        """The rate of all items, in the form of a segment's rate."""
        return SegmentRate(
            None, self.estimate, self.lower, self.upper, self.n_labels, self.n_items, self.method
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The rate of all items and, below it, the rate of each segment."""
        rows = [self._whole, *self.segments]
        columns: dict[str, list[Any]] = {}
        if self.segments:
            columns["segment"] = ["all items", *(part.segment for part in self.segments)]
        for name in ("estimate", "lower", "upper", "n_labels", "n_items", "method"):
            columns[name] = [getattr(row, name) for row in rows]
        return (ResultTable("rates", columns, shown=None if self.segments else ()),)


def _needed(part: SegmentRate, target: float, tail: float) -> int:
    """The number of labels in an undecided segment at which the limit on the target's side would
    just reach the target.
    """
    if part.estimate == target or part.n_labels == 0:
        return part.n_items
    distance = abs(part.estimate - target) + _ROUNDING
    if part.estimate >= target:
        estimate = part.estimate
        reach = part.estimate - part.lower
    else:  # the other class, whose lower limit mirrors this upper limit
        estimate = 1.0 - part.estimate
        reach = part.upper - part.estimate
    needed = labels_that_reach(estimate, reach, distance, part.n_labels, part.n_items, tail)
    return min(part.n_items, max(part.n_labels + 1, needed))
