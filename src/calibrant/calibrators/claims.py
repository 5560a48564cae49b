"""What is said of calibrators without a guarantee: why they have none, and what is known instead."""

from dataclasses import dataclass, replace
from typing import Self

from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.sample.facts import RowFacts
from calibrant.text.sentences import PlainText, Setting, Text, in_python, render, words

BINNED_INSTEAD = words(
    (
        "For a guarantee, put bins on top with ",
        Setting("method", "scaling-binning", python="ScalingBinningCalibrator(base=...)"),
        ", or use ",
        Setting("method", "binning", python="BinningCalibrator"),
    )
)

INJECTIVE = NoGuarantee(
    reason=(
        "this map gives different scores different values, and no such map can be calibrated for every distribution, "
        "however many rows it is fitted on (Gupta, Podkopaev and Ramdas 2020, Theorem 3)"
    ),
    advice=BINNED_INSTEAD,
)
"""Of strictly increasing maps (`thm:f-must-be-coarse`)."""


@dataclass(frozen=True, slots=True)
class WeakerGuarantee(NoGuarantee):
    """What is said where something is known, but no bound on the calibration error.

    Attributes
    ----------
    reason : Text
        Why there is no bound.
    advice : Text
        What to use for one.
    known : Text
        What is known, and on which assumptions.
    of_groups : str
        What is to be said where one row was drawn from each group.
    """

    known: Text
    of_groups: str = ""

    def of_rows(self, facts: RowFacts) -> Self:
        """Return the same for rows that were read in this way, such as one row of each group."""
        return replace(self, of_groups=facts.said_of_groups)

    def sentence(self, setting: PlainText = in_python) -> str:
        """Why there is no bound, what is known instead, and what to use for one."""
        reason, known, advice = (render(text, setting) for text in (self.reason, self.known, self.advice))
        return (
            f"No bound on the calibration error is proved: {reason}. What is known: {known}.{self.of_groups} {advice}."
        )
