"""The validation table, as numbers and as text."""

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.audit.result import CHECK_ROWS, Audit
from calibrant.text import numbers
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import ColumnTable, Result, Verdict
from calibrant.text.result_table import ResultTable, columns_by_name

PROVED = "exact"
PROVED_IF_MONOTONE = "exact if monotone"
ASYMPTOTIC = "asymptotic"
MEASURED = "measured"
EXACT_TEST = "exact test"
TOO_LOW = "assigned too low"
TOO_HIGH = "assigned too high"
NOT_REFUTED = "not refuted"
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table.

    Attributes
    ----------
    name : str
        The name of the measure.
    value : float
        Its value on these rows; NaN if undefined.
    lower, upper : float
        Limits; NaN if there are none.
    ideal : float
        The value for a calibrated score; NaN if undefined.
    basis : str
        "exact": the limits hold for every distribution and number of rows. "exact if monotone":
        they hold if the rate is nondecreasing in the score. "asymptotic": they are approximate.
        "measured": there are no limits. "exact test": the value is a p-value that is exact for
        every number of rows.
    """

    name: str
    value: float
    lower: float = math.nan
    upper: float = math.nan
    ideal: float = math.nan
    basis: str = MEASURED

    @property
    def limits(self) -> str:
        """The limits as text."""
        if math.isnan(self.lower):
            return "none"
        if math.isinf(self.upper):
            return f"{numbers.lower(self.lower)} or more"
        return numbers.limits(self.lower, self.upper)

    def __str__(self) -> str:
        value = "none" if math.isnan(self.value) else numbers.nearest(self.value)
        return f"{self.name}: {value}" + (
            "" if math.isnan(self.lower) else f" ({self.basis}: {self.limits})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class GradeTable(ColumnTable):
    """Rating grades: assigned probabilities and observations. Every array has one entry per grade.

    Attributes
    ----------
    grade : object array
        Names, in the order of the assigned probabilities.
    counts, positives : int arrays
        Rows and positive rows.
    rate : float array
        Share of positive rows.
    assigned : float array
        Assigned probability: as given, or the mean score of the grade's rows.
    lower, upper : float arrays
        Limits on the grade's true rate; they hold for all grades simultaneously.
    """

    grade: NDArray[np.object_]
    counts: IntArray
    positives: IntArray
    rate: FloatArray
    assigned: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def verdict(self) -> tuple[str, ...]:
        """The verdict on each grade: "assigned too low", "assigned too high" or "not refuted"."""
        low = self.assigned < self.lower - _ROUNDING
        high = self.assigned > self.upper + _ROUNDING
        return tuple(np.where(low, TOO_LOW, np.where(high, TOO_HIGH, NOT_REFUTED)).tolist())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Validation(Result):
    """The validation table.

    Whether the scores are calibrated is one question with one answer: that of the audit of these
    rows. The p-value of Kuiper's test is a figure of the table, not a second answer.

    Attributes
    ----------
    measures : tuple of Measure
        The lines of the table. Each interval holds at `confidence_level`, but not all
        simultaneously.
    p_value : float
        The p-value of Kuiper's test of calibration.
    audit : Audit
        The audit whose verdict is quoted.
    n_draws : int
        Number of simulated sets of labels behind the p-value.
    grades : GradeTable or None
        The rating grades, if there are any.
    confidence_level : float
        Confidence in each interval, and in those of all grades simultaneously.
    n_rows : int
        Number of rows.
    n_clipped : int
        Number of rows with a score so close to 0 or 1 that it was clipped for the slope and the
        intercepts.
    population : str
        The population that the limits are about, if it differs from that of the rows.
    """

    _also: ClassVar[tuple[str, ...]] = ("is_miscalibrated",)

    measures: tuple[Measure, ...]
    p_value: float
    audit: Audit
    n_draws: int
    grades: GradeTable | None
    confidence_level: float
    n_rows: int
    n_clipped: int
    population: str = ""

    def __getitem__(self, name: str) -> Measure:
        for measure in self.measures:
            if measure.name == name:
                return measure
        raise KeyError(name)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the audit."""
        return self.audit.verdict

    @property
    def is_miscalibrated(self) -> bool:
        """Whether the audit shows an error."""
        return self.audit.is_miscalibrated

    @property
    def sentence(self) -> str:
        """What the audit shows."""
        return self.audit.sentence

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """The measures that are used most, and the p-value of Kuiper's test."""
        used = (self["expected / observed"], self["slope"])
        return (
            Quantity("Validated", self.n_rows, unit="row"),
            *(
                Quantity(f"{one.name[:1].upper()}{one.name[1:]}", one.value, one.lower, one.upper)
                for one in used
            ),
            Quantity("p-value (Kuiper)", self.p_value, high=self.p_value),
        )

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Audit, and test whether rows are i.i.d."""
        audit = NextStep("Audit the scores", "audit(y, scores)", "audit {rows} -o audit.html")
        return (audit, CHECK_ROWS)

    @property
    def notes(self) -> tuple[str, ...]:
        """Kuiper's test, the population, and which rows were clipped."""
        test = "asymptotic" if self.population else "exact"
        found = [f"Kuiper's {test} test of calibration: {numbers.p_value(self.p_value)}"]
        if self.population:
            found.append(f"this is about the measures{self.population}")
        if self.n_clipped:
            found.append(
                f"the scores of {numbers.rows(self.n_clipped)} are so close to 0 or 1 that they are"
                " clipped for the slope and the intercepts"
            )
        return tuple(found)

    def tables(self) -> tuple[ResultTable, ...]:
        """The measures; and the rating grades, if there are any."""
        names = [field.name for field in fields(Measure)]
        columns = columns_by_name(self.measures, names)
        level = numbers.percent(self.confidence_level)
        heads = {"name": "measure", "ideal": "of a calibrated score"}
        about = (
            f"Each interval holds at {level} confidence on its own: for every distribution where it"
            f" is exact, {self._monotone()}approximately where it is asymptotic. ICI, E50 and E90:"
            " the distance between a score and the rate at that score, its mean, median and 0.9"
            " quantile."
        )
        found = [ResultTable("measures", columns, heads=heads, about=about)]
        if self.grades is not None:
            shown = ("grade", "counts", "assigned", "rate", "lower", "upper", "verdict")
            about = f"Limits hold for all grades simultaneously, at {level} confidence."
            found.append(
                ResultTable("grades", self.grades.columns, shown, {"counts": "rows"}, about)
            )
        return tuple(found)

    def _monotone(self) -> str:
        """The distributions for which an interval that is "exact if monotone" holds, if there is
        such an interval.
        """
        if all(measure.basis != PROVED_IF_MONOTONE for measure in self.measures):
            return ""
        rising = "for those whose rate does not fall as the score rises"
        return f"{rising} where it is {PROVED_IF_MONOTONE}, "

    def to_dict(self) -> dict[str, Any]:
        """The table as plain JSON values, without the audit; an undefined number is None."""
        found = {"grades": None, **Result.to_dict(self)}
        del found["audit"]
        return found
