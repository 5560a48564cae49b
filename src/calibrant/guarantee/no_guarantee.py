"""The result that replaces a guarantee where nothing can be proved without assumptions on the data."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from calibrant.sample.facts import RowFacts
from calibrant.text.result import Result
from calibrant.text.sentences import Text, joined, words

_NUMBERS = (
    "confidence_level",
    "method",
    "positive_label",
    "average_epsilon",
    "n_rows",
    "theorem",
    "caveat",
    "stated_epsilon",
    "stated_mass",
)


@dataclass(frozen=True, slots=True, repr=False)
class NoGuarantee(Result):
    """The statement about a calibrator for which nothing can be proved without assumptions on the
    data.

    Attributes
    ----------
    reason : Text
        Why there is no guarantee.
    advice : Text
        What to use to get a guarantee.
    because : Text
        More about the reason, for the details.
    epsilon, is_proved, predictions_vary, is_rare
        As in a `Guarantee`: None, False, True and False.
    """

    _also: ClassVar[tuple[str, ...]] = ("epsilon", "is_proved", "details")

    reason: Text
    advice: Text
    because: Text = ""
    _opening: ClassVar[str] = "No distribution-free guarantee exists"
    epsilon: ClassVar[None] = None
    is_proved: ClassVar[bool] = False
    predictions_vary: ClassVar[bool] = True
    is_rare: ClassVar[bool] = False

    def of_rows(self, facts: RowFacts) -> Self:
        """Return self: nothing is claimed about any rows."""
        return self

    def with_caveat(self, reason: Text) -> "NoGuarantee":
        """Return self: there is nothing that a caveat could take away."""
        return self

    @property
    def sentence(self) -> str:
        """Why there is no guarantee, in 35 words at most."""
        return words(joined(self._opening, ": ", self.reason, "."))

    @property
    def explanation(self) -> str:
        """More about the reason, and what to use to get a guarantee."""
        more = joined(self.because, ". ") if self.because else ""
        return words(joined(more, self.advice, "."))

    @property
    def details(self) -> str:
        """The sentence and the explanation."""
        return words(joined(self._opening, ": ", self.reason, ". ", self.explanation))

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain JSON values, under the same names as in a guarantee."""
        return {**dict.fromkeys(_NUMBERS), **Result.to_dict(self), "read": [], "regions": []}
