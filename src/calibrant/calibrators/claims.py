"""Statements about calibrators without a guarantee: why they have none, and what is known instead."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from calibrant.guarantee.no_guarantee import NoGuarantee
from calibrant.sample.facts import RowFacts
from calibrant.text.sentences import Setting, Text, joined, words

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
        More about the reason, for the details.
    known : Text
        What is known, and on which assumptions.
    of_groups : str
        The text for the case that one row was drawn from each group.
    """

    _opening: ClassVar[str] = "No bound on the calibration error is proved"
    known: Text = ""
    of_groups: str = ""

    def of_rows(self, facts: RowFacts) -> Self:
        """Return the statement for rows read in this way, such as one row of each group."""
        return replace(self, of_groups=facts.said_of_groups)

    def with_caveat(self, reason: Text) -> NoGuarantee:
        """Return the statement for data that break the assumptions of what is known."""
        return NoGuarantee(reason, self.advice)

    @property
    def explanation(self) -> str:
        """More about the reason, what is known instead, and what to use to get a bound."""
        more = joined(self.because, ". ") if self.because else ""
        return words(
            joined(more, "What is known: ", self.known, ".", self.of_groups, " ", self.advice, ".")
        )
