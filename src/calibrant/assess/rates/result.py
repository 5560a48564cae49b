"""The result of `rate`."""

import math
from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from calibrant.assess.rates.drawn import DrawCheck, OrderCheck
from calibrant.assess.rates.gate import ALL_ITEMS, Gate, PartVerdict
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
        The rate, and limits that hold simultaneously with all others.
    n_labels, n_items : int
    method : str
    lower_alone, upper_alone : float
        Limits that hold on their own.
    crossed : bool
        Whether the lower limit was above the upper one; see `Rate.crossed`.
    """

    segment: Hashable
    estimate: float
    lower: float
    upper: float
    n_labels: int
    n_items: int
    method: str
    lower_alone: float
    upper_alone: float
    crossed: bool = False


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
    order : OrderCheck or None
        Whether labelled items look exchangeable in the given order, with `sequential`.
    lower_alone, upper_alone : float
        Limits that hold on their own; `lower` and `upper` if there are no segments.
    crossed : bool
        Whether the lower limit was above the upper one. Then at least one of them is wrong:
        an assumption does not hold, or one of the cases has occurred that `confidence_level`
        allows. `lower` and `upper` are then what the labels count, without the scores: the
        positives seen, and all items but the negatives seen.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_doubtful",)

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
    order: OrderCheck | None = None
    lower_alone: float = field(kw_only=True)
    upper_alone: float = field(kw_only=True)
    crossed: bool = False

    @property
    def is_doubtful(self) -> bool:
        """Whether the limits may not hold: the draw or the order of the labels is refuted, or
        limits contradict each other.
        """
        return bool(self._doubts)

    @property
    def _doubts(self) -> list[str]:
        """Why the limits may not hold."""
        found = [
            check.sentence
            for check in (self.draw, self.order)
            if check is not None and check.refuted
        ]
        crossed = [part.segment for part in (self._whole, *self.segments) if part.crossed]
        if crossed:
            whose = "" if crossed[0] is None else f" in segment {crossed[0]!r}"
            wrong = "the labelled items were not drawn at random"
            if self.sequential:
                wrong = "the labels are not in the order in which their items were drawn"
            rare = percent(round(1.0 - self.confidence_level, 12))
            found.append(
                f"The limits{whose} contradict each other: the lower one was above the upper one."
                f" Either {wrong}, or this is one of the cases, at most {rare}, in which limits"
                " fail."
            )
        return found

    @property
    def sentence(self) -> str:
        """The limits, the rate they are about, and what they assume.

        If an assumption is refuted, or limits contradict each other, the sentence says so first.
        """
        return " ".join([*self._doubts, self._claim()])

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
        if self.crossed:
            count = f"the count of {drawn} alone"
            if self.target == "population":
                count = f"{count}, with {percent(self.confidence_level)} confidence"
            return (
                f"From {count}, {limits(self.lower, self.upper)} of {whose} {labelled} (estimate"
                f" {nearest(self.estimate)})."
            )
        drawn += self._how_drawn()
        looks = ", at every look" if self.sequential else ""
        together = ""
        if self.segments:
            together = f", together with the limits of {counted(len(self.segments), 'segment')}"
        return (
            f"With {percent(self.confidence_level)} confidence{looks}{together},"
            f" {limits(self.lower, self.upper)} of {whose} {labelled} (estimate"
            f" {nearest(self.estimate)}), from {drawn}."
        )

    def _how_drawn(self) -> str:
        """The assumption in words: as a fact, or as a condition if it is refuted."""
        if self.draw is not None and self.draw.refuted:
            return ", if they had been drawn at random"
        if self.order is not None and self.order.refuted:
            return " drawn at random, if they had been drawn in this order"
        return " drawn at random"

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
        """How the limits were found, and the results of the tests of the draw and the order."""
        how = "the count of labels alone" if self.crossed else _HOW[self.method]
        checks = [check for check in (self.draw, self.order) if check is not None]
        return (
            f"The limits come from {how}.",
            *(check.sentence for check in checks if not check.refuted),
        )

    def check(self, at_least: float | None = None, *, at_most: float | None = None) -> str:
        """Whether the rate is shown to be at least, or at most, this: "shown", "refuted" or
        "undecided".

        Give either `at_least` or `at_most`. "At least" is shown if the lower limit is at least the
        target, and refuted if the upper limit is below it; "at most" is shown if the upper limit is
        at most the target, and refuted if the lower limit is above it. With segments, it is shown
        if it is shown for all items and in every segment, and refuted if it is refuted for any of
        them; `gate` says for which. If an assumption is refuted, the answer is "undecided".

        Examples
        --------
        >>> from calibrant import rate
        >>> rate([1] * 100 + [None] * 900, [0] * 1000).check(at_least=0.95)
        'shown'
        >>> rate([0] * 100 + [None] * 900, [0] * 1000).check(at_most=0.05)
        'shown'
        """
        return self.gate(at_least, at_most=at_most).verdict

    def gate(self, at_least: float | None = None, *, at_most: float | None = None) -> Gate:
        """What is shown, refuted or undecided about this rate, for all items and in each segment.

        Give either `at_least` or `at_most`. "Shown for all items and in every segment" needs no
        shared alpha: then the limits that hold on their own are compared with the target. Anything
        else, such as the segments that are refuted, comes from limits that hold simultaneously.

        Examples
        --------
        >>> from calibrant import rate
        >>> labels = [1] * 40 + [None] * 160 + [0] * 40 + [None] * 160
        >>> gate = rate(labels, [0] * 400, segments=["a"] * 200 + ["b"] * 200).gate(at_least=0.8)
        >>> gate.verdict, [part.segment for part in gate.of("refuted")]
        ('refuted', [None, 'b'])
        >>> print(gate.sentence)
        A rate of at least 80% is refuted for all items and in segment 'b'; it is shown in segment 'a'.
        """
        goal = Goal.of(at_least, at_most)
        parts = (self._whole, *self.segments)
        alone = all(goal.is_shown(part.lower_alone, part.upper_alone) for part in parts)
        refuted = any(goal.is_refuted(part.lower, part.upper) for part in parts)
        simultaneous = refuted or not alone or not self.segments
        judged = tuple(
            PartVerdict(
                part.segment,
                "undecided" if self.is_doubtful else goal.verdict(*limits_of_part),
                *limits_of_part,
            )
            for part, limits_of_part in zip(parts, _compared(parts, simultaneous), strict=True)
        )
        verdicts = {part.verdict for part in judged}
        undecided = "shown" if verdicts == {"shown"} else "undecided"
        return Gate(
            at_least=at_least,
            at_most=at_most,
            verdict="refuted" if "refuted" in verdicts else undecided,
            whole=judged[0],
            segments=judged[1:],
            confidence_level=self.confidence_level,
            simultaneous=simultaneous,
            is_doubtful=self.is_doubtful,
        )

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
            if goal.verdict(part.lower, part.upper) == "undecided":
                labels = _needed(part, goal.rate, tail)
                needed.append(math.ceil(labels * self.n_items / part.n_items))
        return max(needed)

    @property
    def _whole(self) -> SegmentRate:
        """The rate of all items, in the form of a segment's rate."""
        return SegmentRate(
            segment=None,
            **{each.name: getattr(self, each.name) for each in fields(SegmentRate)[1:]},
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The rate of all items and, below it, the rate of each segment."""
        rows = [self._whole, *self.segments]
        columns: dict[str, list[Any]] = {}
        if self.segments:
            columns["segment"] = [ALL_ITEMS, *(part.segment for part in self.segments)]
        shown = ("segment", "estimate", "lower", "upper", "n_labels", "n_items", "method")
        for name in (*shown[1:], "lower_alone", "upper_alone", "crossed"):
            columns[name] = [getattr(row, name) for row in rows]
        return (ResultTable("rates", columns, shown=shown if self.segments else ()),)


def _compared(parts: tuple[SegmentRate, ...], simultaneous: bool) -> list[tuple[float, float]]:
    """The limits that are compared with a target."""
    if simultaneous:
        return [(part.lower, part.upper) for part in parts]
    return [(part.lower_alone, part.upper_alone) for part in parts]


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
