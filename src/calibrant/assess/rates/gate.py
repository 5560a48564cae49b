"""The answer to "is the rate at least, or at most, this?", for all items and for each segment.

*All shown.* A release needs every part: all items, and each segment. If some part misses the goal,
then "all shown" is wrong only if that part is shown, too. So limits that hold on their own are
enough, and no part of alpha is shared (the intersection-union test, Berger 1982).

*Anything else* is said about the parts that the labels pick out, such as those that are refuted. So
it needs limits that hold for all parts simultaneously, and these share alpha.

*Together.* With S segments, each limit fails with probability at most alpha / 2 on its own, and
alpha / (2 (1 + S)) among all. A part that misses the goal is wrongly shown through its shared limit,
or, one given such part for all of them, through its own. A part that meets it is wrongly refuted
through its shared limit. The sum is at most alpha / 2 + alpha / 2.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from calibrant.assess.rates.goal import Goal
from calibrant.text.numbers import lower as rounded_down
from calibrant.text.numbers import percent
from calibrant.text.numbers import upper as rounded_up
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import sentence

_WORDS = {"refuted": "is refuted", "undecided": "is not decided", "shown": "is shown"}
_MOST_NAMED = 4
ALL_ITEMS = "all items"
"""The name of the first row of a table of segments, which is about all items."""


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
    """What is shown, refuted or undecided about a rate that is asked for.

    With probability at least `confidence_level`, no part is wrongly called shown or refuted.

    Attributes
    ----------
    at_least, at_most : float or None
        The rate that is asked for; one of them is None.
    verdict : {"shown", "refuted", "undecided"}
        "shown" if all items and every segment are shown, "refuted" if any of them is refuted.
    whole : PartVerdict
        The verdict on all items.
    segments : tuple of PartVerdict
        The verdict on each segment.
    confidence_level : float
    simultaneous : bool
        Whether the limits hold for all parts simultaneously. If everything is shown, each holds on
        its own, which is enough.
    is_doubtful : bool
        Whether nothing is decided because the limits are in doubt: the draw or the order of the
        items is refuted, or sequential limits cross.
    """

    _also: ClassVar[tuple[str, ...]] = ("whole_verdict",)

    at_least: float | None
    at_most: float | None
    verdict: str
    whole: PartVerdict
    segments: tuple[PartVerdict, ...]
    confidence_level: float
    simultaneous: bool
    is_doubtful: bool

    @property
    def goal(self) -> Goal:
        """The rate that is asked for."""
        return Goal.of(self.at_least, self.at_most)

    @property
    def whole_verdict(self) -> str:
        """The verdict on all items."""
        return self.whole.verdict

    def of(self, verdict: str) -> tuple[PartVerdict, ...]:
        """The parts with this verdict, all items first."""
        return tuple(part for part in (self.whole, *self.segments) if part.verdict == verdict)

    @property
    def sentence(self) -> str:
        """What is refuted, undecided and shown, and where."""
        return sentence(f"a rate of {self.goal.words} {self.said}")

    @property
    def said(self) -> str:
        """What is known about the goal, as a clause: "is refuted in segment 'a'"."""
        if self.is_doubtful:
            return "is not decided, because the limits are in doubt"
        if not self.segments:
            return _WORDS[self.verdict]
        if self.verdict == "shown":
            return f"is shown {_where((self.whole, *self.segments))}: {self._limit_of_each}"
        clauses = [
            f"{words} {_where(parts)}"
            for verdict, words in _WORDS.items()
            if (parts := self.of(verdict))
        ]
        return "; it ".join(clauses)

    @property
    def _limit_of_each(self) -> str:
        """The limit that shows the goal for every part."""
        parts = (self.whole, *self.segments)
        confidence = f"on its own, with {percent(self.confidence_level)} confidence"
        if self.goal.at_most:
            most = rounded_up(max(part.upper for part in parts))
            return f"each upper limit, {confidence}, is at most {most}"
        least = rounded_down(min(part.lower for part in parts))
        return f"each lower limit, {confidence}, is at least {least}"

    def tables(self) -> tuple[ResultTable, ...]:
        """The verdict on all items and, below it, on each segment."""
        parts = (self.whole, *self.segments)
        columns = {
            "segment": [ALL_ITEMS, *(part.segment for part in self.segments)],
            "verdict": [part.verdict for part in parts],
            "lower": [part.lower for part in parts],
            "upper": [part.upper for part in parts],
        }
        hold = "hold for all of them simultaneously" if self.simultaneous else "hold on their own"
        about = f"The limits {hold}, with {percent(self.confidence_level)} confidence."
        if self.is_doubtful:
            about = "The limits are in doubt, so nothing is decided."
        return (ResultTable("verdicts", columns, None if self.segments else (), about=about),)


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
