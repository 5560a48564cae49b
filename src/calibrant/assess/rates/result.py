"""The result of `rate`."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.assess.rates.drawn import DrawCheck
from calibrant.assess.rates.gate import ALL_ITEMS, Gate, PartVerdict, tails
from calibrant.assess.rates.goal import ENDLESS, Goal, labels_that_reach
from calibrant.text.numbers import counted, nearest, per_cent, per_cent_limits, percent
from calibrant.text.numbers import lower as rounded_down
from calibrant.text.numbers import upper as rounded_up
from calibrant.text.picture import Drawn, Picture
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable, columns_by_name
from calibrant.text.sentences import is_true, sentence

_HOW = {
    "exact": "exact hypergeometric tails in two strata of scores",
    "labels": "exact tails of labels alone",
    "bets": "bets without replacement, with the score as control variate",
    "pairs": "bets on labels, each paired with unlabelled items of its own",
    "all labelled": "a count of all labels",
    "no labels": "nothing, as there is no label",
}
_MOST_DRAWN = 40  # segments
_ROUNDING = 1e-12  # of a difference of two rates, so that swapped classes give the same number


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRate:
    """The rate of all items, or of those of a segment.

    Attributes
    ----------
    estimate, lower, upper : float
        The rate, NaN without labels; and limits that hold simultaneously with all others.
    n_labels, n_items : int
    method : str
    lower_alone, upper_alone : float
        One-sided limits for `gate`; see `Rate`.
    crossed : bool
        Whether the lower limit was above the upper one; see `Rate`.
    """

    estimate: float
    lower: float
    upper: float
    n_labels: int
    n_items: int
    method: str
    lower_alone: float
    upper_alone: float
    crossed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRate(PartRate):
    """The rate in one segment.

    Attributes
    ----------
    estimate, lower, upper, n_labels, n_items, method, lower_alone, upper_alone, crossed
        As in `Rate`.
    segment : object
        The segment.
    """

    segment: Hashable


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Rate(Result, PartRate):
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
    method : {"exact", "labels", "bets", "pairs", "all labelled", "no labels"}
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
    order : DrawCheck or None
        Whether labelled items look exchangeable in the given order, with `sequential`.
    lower_alone, upper_alone : float
        One-sided limits, which decide whether the rate is as asked for: each of them holds on its
        own with probability `confidence_level`. Both together are no interval at that level.
    crossed : bool
        Whether the lower limit was above the upper one. Then at least one of them is wrong:
        an assumption does not hold, or one of the cases has occurred that `confidence_level`
        allows. `lower` and `upper` are then what the labels count, without the scores: the
        positives seen, and all items but the negatives seen.
    judge_alone : float or None
        The mean score, which is what a judge without labels says; None if scores are not all
        between 0 and 1.
    labels_lower, labels_upper : float or None
        Limits from the labels without scores, as `lower` and `upper`; None for groups, a sequence
        or a population.
    labels_lower_alone, labels_upper_alone : float or None
        The same, as `lower_alone` and `upper_alone`.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_doubtful",)

    confidence_level: float
    target: str
    positive_label: Any
    sequential: bool = False
    n_groups: int = 0
    n_labelled_groups: int = 0
    segments: tuple[SegmentRate, ...] = ()
    draw: DrawCheck | None = None
    order: DrawCheck | None = None
    judge_alone: float | None = None
    labels_lower: float | None = None
    labels_upper: float | None = None
    labels_lower_alone: float | None = None
    labels_upper_alone: float | None = None

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
        if any(part.crossed for part in self._parts):
            wrong = "not drawn at random"
            if self.sequential:
                wrong = "not given in the order in which they were drawn"
            rare = percent(1.0 - self.confidence_level)
            found.append(
                f"The limits contradict each other: either the labelled items were {wrong}, or this"
                f" is one of the cases, at most {rare}, in which limits fail."
            )
        return found

    @property
    def verdict(self) -> Verdict | None:
        """Whether the limits are in doubt; without a target, nothing else is judged."""
        return "problem" if self.is_doubtful else None

    @property
    def sentence(self) -> str:
        """The limits, the rate they are about, and what they assume.

        If an assumption is refuted, or limits contradict each other, the sentence says so instead.
        """
        if self._doubts:
            return " ".join(self._doubts)
        return self._said(per_cent_limits(self.lower, self.upper), "")

    def against(self, goal: Goal, verdict: str) -> str:
        """The same with the one-sided limit that decides on a goal; with both if neither does."""
        share = one_sided(goal, verdict, self.lower_alone, self.upper_alone)
        if verdict == "undecided":
            return self._said(f"{share},", "each with ")
        return self._said(share, "one-sided, ")

    def _said(self, share: str, how: str) -> str:
        """The sentence about a share of the items."""
        are = "are positive"
        if not is_true(self.positive_label):
            are = f"have the label {self.positive_label!r}"
        start = f"{share[:1].upper()}{share[1:]}"
        whose = f"these {self.n_items:,} items"
        if self.target == "population":
            whose = f"the population behind these {self.n_items:,} items"
        elif self.n_labels == self.n_items:
            all_known = f"all {self.n_items:,} labels are known"
            return f"{per_cent(nearest(self.estimate))} of {whose} {are}: {all_known}."
        looks = " at every look" if self.sequential else ""
        estimate = per_cent(nearest(self.estimate))
        sure = f"{how}{percent(self.confidence_level)} confidence{looks}; estimate {estimate}"
        return f"{start} of {whose} {are} ({sure}; {self.drawn})."

    @property
    def drawn(self) -> str:
        """The labels, and how their items were drawn."""
        labels = counted(self.n_labels, "label")
        if self.n_groups:
            groups = counted(self.n_labelled_groups, "group")
            return f"{labels} in {groups} drawn at random"
        return f"{labels} on items drawn at random"

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The rate with its limits, and the labels."""
        return (
            Quantity("Rate", self.estimate, self.lower, self.upper, "share"),
            Quantity("Confidence", self.confidence_level, unit="share"),
            Quantity("Labelled", self.n_labels, unit=f"of {self.n_items:,} items"),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """How many labels make the limits narrower."""
        known: dict[str, Any] = {"items": self.n_items} if self.target == "items" else {}
        rate = nearest(self.estimate)
        if 0.0 < float(rate) < 1.0:  # otherwise the worst case
            known["expected-rate"] = rate
        names = {"items": "n_items", "expected-rate": "expected_rate"}
        call = "".join(f", {names[name]}={value}" for name, value in known.items())
        command = "".join(f" --{name} {value}" for name, value in known.items())
        return (
            NextStep(
                "Label more items, drawn at random from all, if the limits are too wide",
                f"plan_rate(width=0.05{call})",
                f"plan-rate --width 0.05{command}",
            ),
        )

    def of_labels(self, *, one_sided: bool) -> tuple[float, float] | None:
        """The limits from the labels without scores; None if there are none."""
        limits = self.labels_lower, self.labels_upper
        if one_sided:
            limits = self.labels_lower_alone, self.labels_upper_alone
        lower, upper = limits
        return None if lower is None or upper is None else (lower, upper)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the judge alone says, and the labels alone."""
        labels = self.of_labels(one_sided=False)
        return self._remarks("" if labels is None else per_cent_limits(*labels))

    def remarks_against(self, goal: Goal, verdict: str) -> tuple[str, ...]:
        """The same, with the one-sided limit from labels alone on the side that decides."""
        labels = self.of_labels(one_sided=True)
        return self._remarks("" if labels is None else one_sided(goal, verdict, *labels))

    def _remarks(self, labels: str) -> tuple[str, ...]:
        if self.is_doubtful or self.n_labels == self.n_items:
            return ()
        said = []
        if self.judge_alone is not None:
            said.append(f"the scores alone say {per_cent(nearest(self.judge_alone))}")
        if labels:
            said.append(f"the labels alone {labels}")
        return (sentence("; ".join(said)),) if said else ()

    def pictures(self) -> tuple[Picture, ...]:
        """The rate of all items, and of each segment, with limits."""
        limits = [(part.lower, part.upper) for part in self._parts]
        return (self.picture(limits, self.of_labels(one_sided=False), "hold together"),)

    def picture(
        self,
        limits: Sequence[tuple[float, float]],
        of_labels: tuple[float, float] | None,
        hold: str,
    ) -> Picture:
        """The rates with some limits, those from labels alone, and how they hold, in words."""
        parts = self._parts[:_MOST_DRAWN]
        limits = limits[:_MOST_DRAWN]
        names = [ALL_ITEMS, *(str(one.segment) for one in self.segments)][:_MOST_DRAWN]
        drawn = [
            Drawn(
                "scores and labels",
                [one.estimate for one in parts],
                [-float(place) for place in range(len(parts))],
                [low for low, _ in limits],
                [high for _, high in limits],
            )
        ]
        if of_labels is not None:
            lower, upper = of_labels
            place = [-float(len(names))]
            drawn.append(Drawn("labels alone", [(lower + upper) / 2.0], place, [lower], [upper]))
            names.append("labels alone")
        if self.judge_alone is not None:
            drawn.append(
                Drawn("scores alone", [self.judge_alone], [-float(len(names))], quiet=True)
            )
            names.append("scores alone")
        sure = percent(self.confidence_level)
        text = f"Each estimate with its limits, which {hold} with {sure} confidence."
        return Picture(
            "Rates and limits", text, "rate", "", tuple(drawn), rows=tuple(names), x_unit="share"
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

        Give either `at_least` or `at_most`, fixed before labels are seen. "At least" is shown if the
        one-sided lower limit is at least the target, and refuted if the upper one is below it; "at
        most" is shown if the upper one is at most the target, and refuted if the lower one is above
        it. As only one of these errors is possible, each limit may use the whole error budget. With
        segments, it is shown if it is shown for all items and in every segment, and refuted if it is
        refuted for any of them; `gate` says for which. If an assumption is refuted, the answer is
        "undecided".

        Examples
        --------
        >>> from calibrant import rate
        >>> rate([1] * 100 + [None] * 900, [0] * 1000).check(at_least=0.95)
        'shown'
        >>> rate([0] * 100 + [None] * 900, [0] * 1000).check(at_most=0.05)
        'shown'
        """
        return self.gate(at_least, at_most=at_most).answer

    def gate(self, at_least: float | None = None, *, at_most: float | None = None) -> Gate:
        """What is shown, refuted or undecided about this rate, for all items and in each segment.

        Give either `at_least` or `at_most`, fixed before labels are seen. "Shown for all items and
        in every segment" needs no shared alpha: then the limits that hold on their own are compared
        with the target. Anything else about segments, such as those that are refuted, comes from
        limits that hold simultaneously. The answer is wrong, for any part, with probability at most
        1 - `confidence_level`.

        Examples
        --------
        >>> from calibrant import rate
        >>> labels = [1] * 40 + [None] * 160 + [0] * 40 + [None] * 160
        >>> gate = rate(labels, [0] * 400, segments=["a"] * 200 + ["b"] * 200).gate(at_least=0.8)
        >>> gate.verdict, [part.segment for part in gate.of("refuted")]
        ('problem', [None, 'b'])
        >>> gate.said
        "is not met for all items and in segment 'b'; it is met in segment 'a'"
        """
        goal = Goal.of(at_least, at_most)
        compared = _compared(self._parts, simultaneous=False)
        alone = all(goal.is_shown(*limits) for limits in compared)
        refuted = any(goal.is_refuted(part.lower, part.upper) for part in self._parts)
        simultaneous = bool(self.segments) and (refuted or not alone)
        compared = _compared(self._parts, simultaneous=simultaneous)
        names = (None, *(part.segment for part in self.segments))
        judged = tuple(
            PartVerdict(name, "undecided" if self.is_doubtful else goal.verdict(*limits), *limits)
            for name, limits in zip(names, compared, strict=True)
        )
        return Gate(at_least, at_most, judged[0], judged[1:], simultaneous, self)

    def labels_needed(self, at_least: float | None = None, *, at_most: float | None = None) -> int:
        """About how many labels in total would decide whether the rate is at least, or at most,
        this, if the estimate is right.

        Give either `at_least` or `at_most`. The limits are assumed to shrink like those from labels
        alone. With segments, it is the largest number that any undecided segment needs, scaled to
        all items. The rate of a population may need more labels than there are items.

        Examples
        --------
        >>> from calibrant import rate
        >>> rate([1] * 30 + [None] * 2_970, [0] * 3_000).labels_needed(at_least=0.95)
        58
        >>> rate([0] * 30 + [None] * 2_970, [0] * 3_000).labels_needed(at_most=0.05)
        58
        """
        goal = Goal.of(at_least, at_most)
        simultaneous, alone = tails(1.0 - self.confidence_level, len(self.segments))
        tail = simultaneous if self.segments else alone
        needed = [self.n_labels]
        compared = _compared(self._parts, simultaneous=bool(self.segments))
        for part, limits in zip(self._parts, compared, strict=True):
            if goal.verdict(*limits) == "undecided":
                most = part.n_items if self.target == "items" else ENDLESS
                labels = _needed(part, *limits, goal.rate, tail, most)
                needed.append(math.ceil(labels * self.n_items / part.n_items))
        return max(needed)

    @property
    def _parts(self) -> tuple[PartRate, ...]:
        """The rate of all items, and of each segment."""
        return (self, *self.segments)

    def tables(self) -> tuple[ResultTable, ...]:
        """The rate of all items and, below it, the rate of each segment."""
        shown = ("segment", "estimate", "lower", "upper", "n_labels", "n_items", "method")
        columns = columns_by_name(
            self._parts, (*shown[1:], "lower_alone", "upper_alone", "crossed")
        )
        if self.segments:
            segments = [ALL_ITEMS, *(part.segment for part in self.segments)]
            columns = {"segment": segments, **columns}
        units = {"estimate": "share", "lower": "share"}
        return (ResultTable("rates", columns, shown if self.segments else (), units=units),)


def one_sided(goal: Goal, verdict: str, lower: float, upper: float) -> str:
    """The one-sided limit that decides on a goal, in words; both if neither does."""
    least = f"at least {per_cent(rounded_down(lower))}"
    most = f"at most {per_cent(rounded_up(upper))}"
    if verdict == "undecided":
        return f"{least}, and {most}"
    return most if goal.at_most == (verdict == "shown") else least


def _compared(parts: tuple[PartRate, ...], *, simultaneous: bool) -> list[tuple[float, float]]:
    """The limits that are compared with a target: simultaneous ones are never narrower than those
    that hold on their own.
    """
    if simultaneous:
        return [
            (min(part.lower, part.lower_alone), max(part.upper, part.upper_alone)) for part in parts
        ]
    return [(part.lower_alone, part.upper_alone) for part in parts]


def _needed(
    part: PartRate, lower: float, upper: float, target: float, tail: float, most: int
) -> int:
    """The number of labels in an undecided part at which the limit on the target's side would
    just reach the target; `most` if none would.
    """
    if part.estimate == target or part.n_labels == 0:
        return most
    distance = abs(part.estimate - target) + _ROUNDING
    if part.estimate >= target:
        estimate = part.estimate
        reach = part.estimate - lower
    else:  # the other class, whose lower limit mirrors this upper limit
        estimate = 1.0 - part.estimate
        reach = upper - part.estimate
    needed = labels_that_reach(estimate, reach, distance, part.n_labels, most, tail)
    return min(most, max(part.n_labels + 1, needed))
