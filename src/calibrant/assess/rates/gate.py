"""The answer to "is the rate at least, or at most, this?", for all items and for each segment.

The goal is one number, fixed before labels are seen. So for each part, all items or a segment, only
one of the two errors is possible: a part that misses the goal can only be wrongly shown, one that
meets it can only be wrongly refuted.

*Without segments* each of the two limits may therefore fail with probability alpha, at every look if
they are sequential: the gate is wrong with probability at most alpha.

*All shown.* A release needs every part: all items, and each segment. If some part misses the goal,
then "all shown" is wrong only if that part is shown, too. So one limit on its own is enough for each
part, and no part of alpha is shared (the intersection-union test, Berger 1982).

*Anything else* is said about the parts that the labels pick out, such as those that are refuted. So
it needs limits that hold for all parts simultaneously, and these share alpha.

*Together.* With S segments, each simultaneous limit fails with probability at most
s = alpha / (2 (1 + S)), and each limit on its own with probability at most alpha - S s. If all parts
meet the goal, one is wrongly refuted with probability at most (1 + S) s = alpha / 2. If some part
misses it, take one of them. It is wrongly shown, alone or with all others, only if its own limit
fails, because no simultaneous limit is compared with the goal where it is narrower than the part's
own. Each of the S other parts can go wrong through one simultaneous limit. The sum is at most
alpha - S s + S s = alpha.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from calibrant.assess.rates.goal import ENDLESS, Goal
from calibrant.text.numbers import counted, percent
from calibrant.text.picture import Picture, ReferenceLine
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import sentence

if TYPE_CHECKING:
    from calibrant.assess.rates.result import Rate

_WORDS = {"refuted": "is not met", "undecided": "is not decided", "shown": "is met"}
_MOST_NAMED = 4
ALL_ITEMS = "all items"
"""The name of the first row of a table of segments, which is about all items."""


def tails(alpha: float, n_segments: int) -> tuple[float, float]:
    """The error probabilities of each simultaneous limit, and of each limit on its own.

    >>> tails(0.05, 0)
    (0.025, 0.05)
    """
    simultaneous = alpha / (2.0 * (1 + n_segments))
    return simultaneous, alpha - n_segments * simultaneous


@dataclass(frozen=True, slots=True)
class PartVerdict:
    """Whether the goal is shown for all items, or in a segment.

    Attributes
    ----------
    segment : object
        The segment; None for all items.
    verdict : {"shown", "refuted", "undecided"}
    lower, upper : float
        The limits that were compared with the goal.
    """

    segment: Hashable
    verdict: str
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, repr=False)
class Gate(Result):
    """What is shown, refuted or undecided about a target rate.

    With probability at least `confidence_level`, no part is wrongly called shown or refuted.

    Attributes
    ----------
    at_least, at_most : float or None
        The rate that is asked for; one of them is None.
    whole : PartVerdict
        The verdict on all items.
    segments : tuple of PartVerdict
        The verdict on each segment.
    simultaneous : bool
        Whether the limits hold for all parts simultaneously. If everything is shown, each holds on
        its own, which is enough.
    rate : Rate
        The rate.
    """

    _also: ClassVar[tuple[str, ...]] = ("answer", "whole_verdict")

    at_least: float | None
    at_most: float | None
    whole: PartVerdict
    segments: tuple[PartVerdict, ...]
    simultaneous: bool
    rate: "Rate" = field(repr=False)

    @property
    def goal(self) -> Goal:
        """The rate that is asked for."""
        return Goal.of(self.at_least, self.at_most)

    @property
    def parts(self) -> tuple[PartVerdict, ...]:
        """The verdicts on all items and on each segment."""
        return (self.whole, *self.segments)

    @property
    def answer(self) -> str:
        """One of "shown", if all items and every segment are; "refuted", if any of them is; and
        "undecided".
        """
        verdicts = {part.verdict for part in self.parts}
        if "refuted" in verdicts:
            return "refuted"
        return "shown" if verdicts == {"shown"} else "undecided"

    @property
    def whole_verdict(self) -> str:
        """The verdict on all items."""
        return self.whole.verdict

    def of(self, verdict: str) -> tuple[PartVerdict, ...]:
        """The parts with this verdict, all items first."""
        return tuple(part for part in self.parts if part.verdict == verdict)

    @property
    def verdict(self) -> Verdict:
        """Whether the rate meets the target; unclear if the limits are in doubt, because then
        nothing is refuted.
        """
        answers: dict[str, Verdict] = {"shown": "ok", "refuted": "problem", "undecided": "unclear"}
        return answers[self.answer]

    @property
    def sentence(self) -> str:
        """Whether the target is met, and the limits that say so."""
        if self.rate.is_doubtful:
            return self.rate.sentence
        target = f"the target of {self.goal.words} {self.said}"
        if self.segments:
            sure = f"{percent(self.rate.confidence_level)} confidence, {self.rate.drawn}"
            return f"{sentence(target).removesuffix('.')} ({sure})."
        limit = self.rate.against(self.goal, self.whole_verdict)
        return f"{limit.removesuffix('.')}, so {target}."

    @property
    def said(self) -> str:
        """What is known about the goal, as a clause: "is not met in segment 'a'"."""
        if not self.segments:
            return _WORDS[self.answer]
        if self.answer == "shown":
            return f"is met {_where(self.parts)}"
        clauses = [
            f"{words} {_where(parts)}"
            for verdict, words in _WORDS.items()
            if (parts := self.of(verdict))
        ]
        return "; it ".join(clauses)

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The estimate, the target, and the one-sided limits that are compared with it."""
        goal = Quantity(f"Target, {'at most' if self.goal.at_most else 'at least'}", self.goal.rate)
        estimate, *others = self.rate.numbers
        return (
            replace(estimate, low=None, high=None),
            Quantity("At least", self.whole.lower, low=self.whole.lower, unit="share"),
            Quantity("At most", self.whole.upper, high=self.whole.upper, unit="share"),
            *others,
            replace(goal, unit="share"),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Label more items, if that would decide it."""
        if self.rate.is_doubtful:
            return ()
        if self.more_labels is not None:
            labels = counted(self.more_labels, "more item")
            return (NextStep(f"Label about {labels}, drawn at random, to decide it"),)
        return self.rate.next_steps

    @property
    def more_labels(self) -> int | None:
        """About how many more labels would decide it; None if it is decided, or cannot be."""
        all_known = self.rate.target == "items" and self.rate.n_labels == self.rate.n_items
        if self.answer != "undecided" or all_known:
            return None
        needed = self.rate.labels_needed(self.at_least, at_most=self.at_most)
        return None if needed >= ENDLESS else max(1, needed - self.rate.n_labels)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the judge alone says, and the labels alone, by the limits that are compared."""
        if self.simultaneous:
            return self.rate.remarks
        return self.rate.remarks_against(self.goal, self.whole_verdict)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the rate, and that labels did not choose the target."""
        return (*self.rate.assumptions, "the target was fixed before labels were seen")

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the rate, and what one-sided limits say."""
        if self.segments or self.rate.is_doubtful:
            return self.rate.notes
        level = percent(self.rate.confidence_level)
        wrong = percent(1.0 - self.rate.confidence_level)
        return (
            f"The verdict is wrong with probability at most {wrong}; limits are one-sided, so"
            f' "at least" and "at most" each hold with {level} confidence, but not both together.',
            *self.rate.notes,
        )

    def pictures(self) -> tuple[Picture, ...]:
        """The rates, with the target."""
        words = f"target: {self.goal.words}"
        rule = ReferenceLine(words, self.goal.rate, is_upright=True)
        hold = "hold together" if self.simultaneous else "are one-sided, each"
        limits = [(part.lower, part.upper) for part in self.parts]
        of_labels = self.rate.of_labels(one_sided=not self.simultaneous)
        return (replace(self.rate.picture(limits, of_labels, hold), rules=(rule,)),)

    def tables(self) -> tuple[ResultTable, ...]:
        """The verdict on all items and, below it, on each segment; and the rates."""
        parts = self.parts
        columns = {
            "segment": [ALL_ITEMS, *(part.segment for part in self.segments)],
            "verdict": [part.verdict for part in parts],
            "lower": [part.lower for part in parts],
            "upper": [part.upper for part in parts],
        }
        hold = "hold for all of them together" if self.simultaneous else "hold on their own"
        about = f"The limits {hold}, with {percent(self.rate.confidence_level)} confidence."
        shown = None if self.segments and not self.rate.is_doubtful else ()
        units = {"lower": "share"}
        verdicts = ResultTable("verdicts", columns, shown, about=about, units=units)
        return (verdicts, *self.rate.tables())

    def to_dict(self) -> dict[str, Any]:
        """The rate and the answer as plain JSON values."""
        return {**self.rate.to_dict(), **Result.to_dict(self)}


def _where(parts: Sequence[PartVerdict]) -> str:
    """Parts in words, such as "for all items and in segments 'a' and 'b'"."""
    found = []
    names = [repr(part.segment) for part in parts if part.segment is not None]
    if len(names) < len(parts):
        found.append(f"for {ALL_ITEMS}")
    if len(names) == 1:
        found.append(f"in segment {names[0]}")
    elif len(names) > _MOST_NAMED:
        found.append(f"in {len(names):,} segments, such as {names[0]}")
    elif names:
        found.append(f"in segments {', '.join(names[:-1])} and {names[-1]}")
    return " and ".join(found)
