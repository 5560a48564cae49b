"""What is said where nothing can be proved without assumptions on the data."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from calibrant.sample.facts import RowFacts
from calibrant.text.sentences import PlainText, Text, in_python, render


@dataclass(frozen=True, slots=True)
class NoGuarantee:
    """What is said of a calibrator for which nothing can be proved without assumptions on the data.

    Attributes
    ----------
    reason : Text
        Why there is no guarantee.
    advice : Text
        What to use for one.
    epsilon, is_proved, predictions_vary, remarks, assumptions
        As in a `Guarantee`: None, False, True, and two empty tuples.
    """

    reason: Text
    advice: Text
    epsilon: ClassVar[None] = None
    is_proved: ClassVar[bool] = False
    predictions_vary: ClassVar[bool] = True
    remarks: ClassVar[tuple[str, ...]] = ()
    assumptions: ClassVar[tuple[str, ...]] = ()

    def of_rows(self, facts: RowFacts) -> Self:
        """Return the same: nothing is claimed of any rows."""
        return self

    def sentence(self, setting: PlainText = in_python) -> str:
        """Why there is no guarantee, and what to use for one."""
        reason, advice = render(self.reason, setting), render(self.advice, setting)
        return f"No distribution-free guarantee exists: {reason}. {advice}."

    def __str__(self) -> str:
        return self.sentence()

    def to_dict(self, setting: PlainText = in_python) -> dict[str, Any]:
        """Return what is said as plain JSON values, under the names that a guarantee has."""
        said = {"sentence": self.sentence(setting), "remarks": [], "proved": False, "read": []}
        names = ("epsilon", "average_epsilon", "stated_epsilon", "stated_mass", "positive_label", "rows")
        absent = dict.fromkeys((*names, "confidence_level", "interval", "theorem"))
        return {**said, **absent, "assumptions": [], "regions": []}
