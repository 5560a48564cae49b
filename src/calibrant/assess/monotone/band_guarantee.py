"""What a monotone band guarantees, as a result."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from calibrant.assess.monotone.runs import BandSteps
from calibrant.text.numbers import percent, rows
from calibrant.text.picture import Drawn, Picture
from calibrant.text.result import Result, Verdict, said_of_file
from calibrant.text.result_table import ResultTable


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BandGuarantee(Result):
    """What is guaranteed about the rate at every score, if it is nondecreasing in the score.

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
        """Whether the rate is shown to decrease somewhere, so that no band holds."""
        return self.steps.refutation is not None

    @property
    def n_rows(self) -> int:
        """Number of rows behind the band."""
        return self.steps.n_rows

    @property
    def verdict(self) -> Verdict:
        """Whether a band holds, or the rate is shown to decrease somewhere."""
        return "problem" if self.is_refuted else "ok"

    @property
    def sentence(self) -> str:
        """What is guaranteed, or where the rate falls."""
        sure = f"{percent(self.confidence_level)} confidence, {rows(self.n_rows)}"
        if self.is_refuted:
            return f"The rate falls somewhere as the score rises: {self.steps.refutation} ({sure})."
        of = " in the weighted population" if self.of_weights else ""
        return (
            f"The true rate at every score{of} lies in its interval ({sure}, all scores together, if"
            " the rate does not fall as the score rises)."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """How groups and weights count, and what was read from a file."""
        texts = (self.of_groups, self.of_weights, said_of_file(self.read))
        return tuple(text.strip() for text in texts if text)

    def pictures(self) -> tuple[Picture, ...]:
        """The limits at every score."""
        columns = {
            name: np.asarray(column).tolist() for name, column in self.tables()[0].columns.items()
        }
        low = columns["lower"]
        drawn = Drawn("true rate", columns["score"], low, low, columns["upper"], kind="band")
        text = "The limits on the true rate at every score."
        return (
            Picture("Rate at every score", text, "score", "true rate", (drawn,), y_unit="share"),
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """The limits from each score at which one changes."""
        knots = np.union1d(self.steps.lower_knots, self.steps.upper_knots)
        if self.is_refuted:
            knots = knots[:0]
        lower, upper = self.steps.at(knots)
        return (ResultTable("steps", {"score": knots, "lower": lower, "upper": upper}, shown=()),)
