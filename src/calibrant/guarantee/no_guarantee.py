"""What is said where nothing can be proved without assumptions on the data."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from calibrant.sample.facts import RowFacts
from calibrant.text.sentences import PlainText, Text, in_python, joined, render, words


@dataclass(frozen=True, slots=True)
class NoGuarantee:
    """What is said of a calibrator for which nothing can be proved without assumptions on the data.

    Attributes
    ----------
    reason : Text
        Why there is no guarantee.
    advice : Text
        What to use for one.
    because : Text
        More on the reason, for the details.
    epsilon, is_proved, predictions_vary, is_rare, remarks, assumptions
        As in a `Guarantee`: None, False, True, False, and two empty tuples.
    """

    reason: Text
    advice: Text
    because: Text = ""
    _opening: ClassVar[str] = "No distribution-free guarantee exists"
    epsilon: ClassVar[None] = None
    is_proved: ClassVar[bool] = False
    predictions_vary: ClassVar[bool] = True
    is_rare: ClassVar[bool] = False
    remarks: ClassVar[tuple[str, ...]] = ()
    assumptions: ClassVar[tuple[str, ...]] = ()

    def of_rows(self, facts: RowFacts) -> Self:
        """Return the same: nothing is claimed of any rows."""
        return self

    def sentence(self, setting: PlainText = in_python) -> str:
        """Why there is no guarantee, in 35 words at most."""
        return render(joined(self._opening, ": ", self.reason, "."), setting)

    @property
    def explanation(self) -> str:
        """More on the reason, and what to use for a guarantee."""
        more = joined(self.because, ". ") if self.because else ""
        return words(joined(more, self.advice, "."))

    @property
    def details(self) -> str:
        """The sentence and the explanation."""
        return words(joined(self._opening, ": ", self.reason, ". ", self.explanation))

    def __str__(self) -> str:
        return self.details

    def to_dict(self, setting: PlainText = in_python) -> dict[str, Any]:
        """Return what is said as plain JSON values, under the names that a guarantee has."""
        said = {
            "sentence": self.sentence(setting),
            "details": render(self.details, setting),
            "remarks": [],
            "proved": False,
            "read": [],
        }
        names = ("epsilon", "average_epsilon", "stated_epsilon", "stated_mass", "positive_label", "rows")
        absent = dict.fromkeys((*names, "confidence_level", "interval", "theorem"))
        return {**said, **absent, "assumptions": [], "regions": []}
