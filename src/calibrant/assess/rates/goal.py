"""A target for a rate: at least, or at most, this.

"At most 10% are bad" says the same as "at least 90% are not bad". Limits on a rate bound the rate of
the other class, too, so both questions are answered by the same limits, read from the other side.
"""

from dataclasses import dataclass

from calibrant.errors import InvalidTypeError
from calibrant.params.rules import OPEN_UNIT
from calibrant.text.numbers import percent
from calibrant.text.sentences import Setting


@dataclass(frozen=True, slots=True)
class Goal:
    """A rate to be shown.

    Attributes
    ----------
    rate : float
    at_most : bool
        Whether the rate must be at most this; otherwise, at least.
    """

    rate: float
    at_most: bool = False

    @classmethod
    def of(cls, at_least: float | None, at_most: float | None) -> "Goal":
        """The goal that was given; an error if both or neither were."""
        if (at_least is None) == (at_most is None):
            rule = ("be given if ", Setting("at_most"), " is not, and only then")
            raise InvalidTypeError("at_least", rule, got="neither" if at_least is None else "both")
        if at_most is not None:
            return cls(OPEN_UNIT.check("at_most", at_most), at_most=True)
        return cls(OPEN_UNIT.check("at_least", at_least))

    @property
    def mirrored(self) -> float:
        """The rate that must be reached at least: of the positive class or, with `at_most`, of the
        other one.
        """
        return 1.0 - self.rate if self.at_most else self.rate

    def is_shown(self, lower: float, upper: float) -> bool:
        """Whether every rate between the limits meets the target."""
        return upper <= self.rate if self.at_most else lower >= self.rate

    def is_refuted(self, lower: float, upper: float) -> bool:
        """Whether no rate between the limits meets the target."""
        return lower > self.rate if self.at_most else upper < self.rate

    def verdict(self, lower: float, upper: float) -> str:
        """What limits say about the goal: "shown", "refuted" or "undecided".

        >>> [Goal(0.5).verdict(*limits) for limits in ((0.5, 0.7), (0.4, 0.6), (0.3, 0.4))]
        ['shown', 'undecided', 'refuted']
        """
        if self.is_refuted(lower, upper):
            return "refuted"
        return "shown" if self.is_shown(lower, upper) else "undecided"

    @property
    def words(self) -> str:
        """The goal in words.

        >>> Goal(0.1, at_most=True).words
        'at most 10%'
        """
        return f"{'at most' if self.at_most else 'at least'} {percent(self.rate)}"
