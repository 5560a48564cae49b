"""A target for a rate: at least, or at most, this; and about how many labels would decide on it.

"At most 10% are bad" says the same as "at least 90% are not bad". Limits on a rate bound the rate of
the other class, too, so both questions are answered by the same limits, read from the other side.
"""

import math
from dataclasses import dataclass

from calibrant.assess._fewest_labels import smallest_enough
from calibrant.assess.rates.exact import fewest_positives
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


ENDLESS = 10**7
"""Items that stand for a population: more make no difference."""
_MOST_EXACT = 20_000  # labels; beyond, limits shrink with the root of 1 / labels - 1 / items


def labels_that_reach(
    estimate: float,
    reach: float,
    distance: float,
    n_labels: int,
    n_items: int,
    tail: float,
) -> int:
    """The number of labels at which a lower limit is at most `distance` below the estimate, if the
    estimate does not change.

    It is now `reach` below the estimate. Exact limits from labels alone show how it shrinks with
    more labels: near a rate of 1 with the number of labels, elsewhere with its root.

    >>> labels_that_reach(1.0, 0.116, 0.05, 30, 10_000, 0.025)
    72
    """
    scale = reach / max(_alone(estimate, n_labels, n_items, tail), 1.0 / n_items)

    def enough(count: int) -> bool:
        return scale * _alone(estimate, count, n_items, tail) <= distance

    if enough(n_labels):
        return n_labels
    return smallest_enough(enough, n_labels, 2 * n_labels, n_items) or n_items


def _alone(rate: float, n_labels: int, n_items: int, tail: float) -> float:
    """How far exact limits from labels alone reach below their rate."""
    if n_labels >= n_items:
        return 0.0
    if n_labels > _MOST_EXACT:
        left = (1.0 / n_labels - 1.0 / n_items) / (1.0 / _MOST_EXACT - 1.0 / n_items)
        return math.sqrt(left) * _alone(rate, _MOST_EXACT, n_items, tail)
    positives = math.floor(n_labels * rate + 1e-9)
    return rate - fewest_positives(n_items, n_labels, positives, tail) / n_items
