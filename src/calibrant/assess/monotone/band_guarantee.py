"""The claim of a monotone band, as a result."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from calibrant.assess.monotone.runs import BandSteps
from calibrant.text.numbers import percent, rows
from calibrant.text.result import Result, said_of_file
from calibrant.text.result_table import ResultTable


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BandGuarantee(Result):
    """What is claimed about the rate at every score, if it is nondecreasing in the score.

    Attributes
    ----------
    confidence_level : float
        1 - alpha.
    steps : BandSteps
        The limits, or where the assumption is refuted.
    assumptions : tuple of str
        What must be true.
    of_groups, of_weights : str
        The texts about groups and about weights.
    read : tuple of str
        What was read from a file, and not recomputed from the rows.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_refuted", "n_rows")

    confidence_level: float
    steps: BandSteps
    assumptions: tuple[str, ...] = field()
    of_groups: str = ""
    of_weights: str = ""
    read: tuple[str, ...] = ()

    @property
    def is_refuted(self) -> bool:
        """Whether the rate is proved to decrease somewhere, so that no band holds."""
        return self.steps.refutation is not None

    @property
    def n_rows(self) -> int:
        """Number of rows behind the band."""
        return self.steps.n_rows

    @property
    def sentence(self) -> str:
        """What is claimed, in words."""
        basis = f"With {percent(self.confidence_level)} confidence, from {rows(self.n_rows)}"
        if self.is_refuted:
            return (
                f"{basis}, the rate falls somewhere as the score rises:"
                f" {self.steps.refutation}.{self.of_groups}{said_of_file(self.read)}"
            )
        claim = "the rate at every score lies in its interval, at all scores simultaneously"
        return (
            f"{basis}, {claim}.{self.of_groups}{self.of_weights} Assumed:"
            f" {'; '.join(self.assumptions)}.{said_of_file(self.read)}"
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The limits from each score at which one changes."""
        knots = np.union1d(self.steps.lower_knots, self.steps.upper_knots)
        if self.is_refuted:
            knots = knots[:0]
        lower, upper = self.steps.at(knots)
        return (ResultTable("steps", {"score": knots, "lower": lower, "upper": upper}, shown=()),)
