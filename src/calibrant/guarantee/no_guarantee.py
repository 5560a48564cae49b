"""What replaces a guarantee where none holds without assumptions on the data."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from calibrant.sample.facts import RowFacts
from calibrant.text.quantity import NextStep
from calibrant.text.result import Result, Verdict
from calibrant.text.sentences import Setting, Text, joined, words

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
    """The statement about a calibrator for which nothing can be guaranteed without assumptions on the
    data.

    Attributes
    ----------
    reason : Text
        Why there is no guarantee.
    advice : Text
        What to use to get a guarantee.
    because : Text
        More about the reason, for the notes.
    epsilon, is_proved, predictions_vary, is_rare
        As in a `Guarantee`: None, False, True and False.
    """

    _also: ClassVar[tuple[str, ...]] = ("epsilon", "is_proved")

    reason: Text
    advice: Text
    because: Text = ""
    _opening: ClassVar[str] = "No distribution-free guarantee exists"
    epsilon: ClassVar[None] = None
    is_proved: ClassVar[bool] = False
    predictions_vary: ClassVar[bool] = True
    is_rare: ClassVar[bool] = False

    def of_rows(self, facts: RowFacts) -> Self:
        """Return self: without a guarantee, facts about the rows change nothing."""
        return self

    def with_caveat(self, reason: Text) -> "NoGuarantee":
        """Return self: without a guarantee, a caveat changes nothing."""
        return self

    @property
    def sentence(self) -> str:
        """Why there is no guarantee, in 35 words at most."""
        return words(joined(self._opening, ": ", self.reason, "."))

    @property
    def verdict(self) -> Verdict:
        """Nothing is guaranteed."""
        return "unclear"

    @property
    def notes(self) -> tuple[str, ...]:
        """More about the reason."""
        return (words(self.because),) if self.because else ()

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """What to use to get a guarantee."""
        return (NextStep(words(self.advice), "", "fit {rows} --method curve -o model.json"),)

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain JSON values, under the same names as in a guarantee."""
        return {**dict.fromkeys(_NUMBERS), **Result.to_dict(self), "read": [], "regions": []}


BINNED_INSTEAD = words(
    (
        "For a guarantee, put bins on top with ",
        Setting("method", "scaling-binning", python="ScalingBinningCalibrator(base=...)"),
        ", or use ",
        Setting("method", "binning", python="BinningCalibrator"),
    )
)

INJECTIVE = NoGuarantee(
    reason="this map gives different scores different values",
    because=(
        "No such map can be calibrated for every distribution, however many rows it is fitted on"
        " (Gupta, Podkopaev and Ramdas 2020, Theorem 3)"
    ),
    advice=BINNED_INSTEAD,
)
"""For strictly increasing maps (Theorem 3 of the paper)."""


@dataclass(frozen=True, slots=True, repr=False)
class WeakerGuarantee(NoGuarantee):
    """The statement if something is known, but no bound on the calibration error.

    Attributes
    ----------
    reason : Text
        Why there is no bound.
    advice : Text
        What to use to get a bound.
    because : Text
        More about the reason, for the notes.
    known : Text
        What is known, and on which assumptions.
    of_groups : str
        The text for the case that one row was drawn from each group.
    """

    _opening: ClassVar[str] = "No bound on the calibration error is guaranteed"
    known: Text = ""
    of_groups: str = ""

    def of_rows(self, facts: RowFacts) -> Self:
        """Return the statement for rows read in this way, such as one row of each group."""
        return replace(self, of_groups=facts.said_of_groups)

    def with_caveat(self, reason: Text) -> NoGuarantee:
        """Return the statement for data that break the assumptions of what is known."""
        return NoGuarantee(reason, self.advice)

    @property
    def notes(self) -> tuple[str, ...]:
        """More about the reason, and what is known instead."""
        known = words(joined("what is known: ", self.known, ".", self.of_groups))
        return (*NoGuarantee.notes.__get__(self), known)
