"""The validator's table, as numbers and as text."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import pandas
from calibrant._typing import FloatArray, Frame, IntArray
from calibrant.text import numbers
from calibrant.text.sentences import TextTable

PROVED, ASYMPTOTIC, MEASURED, EXACT_TEST = "proved", "asymptotic", "measured", "exact test"
TOO_LOW, TOO_HIGH, NOT_REFUTED = "assigned too low", "assigned too high", "not refuted"
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table.

    Attributes
    ----------
    name : str
        What is measured.
    value : float
        Its value on these rows; NaN if it is not defined.
    lower, upper : float
        Limits; NaN if no limits are known.
    ideal : float
        The value of a calibrated score; NaN if it is not defined.
    basis : str
        "proved": the limits hold for every distribution and number of rows. "asymptotic": they are approximate.
        "measured": there are no limits. "exact test": the value is a p-value that is exact for every number of rows.
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
        return f"{self.name}: {value}" + ("" if math.isnan(self.lower) else f" ({self.basis}: {self.limits})")


@dataclass(frozen=True, slots=True, eq=False)
class GradeTable:
    """Rating grades: what was assigned, and what was observed. Every array has one entry per grade.

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
        Limits of the grade's true rate; they hold for all grades at once.
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
        """For each grade "assigned too low", "assigned too high" or "not refuted"."""
        low, high = self.assigned < self.lower - _ROUNDING, self.assigned > self.upper + _ROUNDING
        return tuple(np.where(low, TOO_LOW, np.where(high, TOO_HIGH, NOT_REFUTED)).tolist())

    def to_frame(self) -> Frame:
        """Return the grades as a pandas frame, one row per grade."""
        return pandas().DataFrame({**self._columns(), "verdict": self.verdict})

    def table(self, name_of: Callable[[object], str] = str) -> TextTable:
        """The grades, as text."""
        columns = (
            map(name_of, self.grade),
            (f"{count:,}" for count in self.counts),
            map(numbers.nearest, self.assigned),
            map(numbers.nearest, self.rate),
            map(numbers.limits, self.lower, self.upper),
            self.verdict,
        )
        return TextTable(("grade", "rows", "assigned", "rate", "limits", "verdict"), [*zip(*columns, strict=True)])

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the grades as plain JSON values, one object per grade."""
        columns = {**{name: column.tolist() for name, column in self._columns().items()}, "verdict": self.verdict}
        return [dict(zip(columns, entries, strict=True)) for entries in zip(*columns.values(), strict=True)]

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Validation:
    """The validator's table.

    Attributes
    ----------
    measures : tuple of Measure
        The lines of the table. Each interval holds at `confidence_level`, but not all at once.
    p_value : float
        Of the test of calibration: small values are evidence against a calibrated score.
    n_draws : int
        Draws of labels behind the p-value.
    grades : GradeTable or None
        The rating grades, where there are any.
    confidence_level : float
        Confidence in each interval, and in those of all grades at once.
    n_rows : int
        Rows.
    n_clipped : int
        Rows with a score so close to 0 or 1 that it was clipped for the slope and the intercepts.
    population : str
        Which population the limits are about, where it is not that of the rows.
    """

    measures: tuple[Measure, ...]
    p_value: float
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
    def table(self) -> TextTable:
        """The measures, as text."""
        rows = [
            (
                one.name,
                "none" if math.isnan(one.value) else numbers.nearest(one.value),
                one.limits,
                "" if math.isnan(one.ideal) else f"{one.ideal:g}",
                one.basis,
            )
            for one in self.measures
        ]
        return TextTable(("measure", "value", "limits", "of a calibrated score", "basis"), rows)

    @property
    def is_rejected(self) -> bool:
        """Whether the test rejects calibration at the level 1 - confidence_level."""
        return self.p_value <= 1.0 - self.confidence_level + _ROUNDING

    def sentence(self) -> str:
        """The result of the test, and the two most read measures, in words."""
        verdict = "rejects" if self.is_rejected else "does not reject"
        p_value, rows = numbers.nearest(self.p_value), numbers.rows(self.n_rows)
        each = f"{self['expected / observed']}; {self['slope']}"
        test, about = "exact", ""
        if self.population:
            test, about = "asymptotic", f" This is about the measures{self.population}."
        return (
            f"The {test} test {verdict} calibration: p = {p_value}, from {rows}.{about} "
            f"With {numbers.percent(self.confidence_level)} confidence each: {each}."
        )

    def to_frame(self) -> Frame:
        """Return the table as a pandas frame, one row per measure."""
        return pandas().DataFrame([asdict(measure) for measure in self.measures])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; an undefined number is None."""
        return {
            "measures": [numbers.plain(asdict(measure)) for measure in self.measures],
            "p_value": self.p_value,
            "draws": self.n_draws,
            "grades": None if self.grades is None else self.grades.to_dicts(),
            "confidence_level": self.confidence_level,
            "rows": self.n_rows,
            "clipped_rows": self.n_clipped,
            "population": self.population.strip() or None,
        }

    def __str__(self) -> str:
        return "\n".join([self.sentence(), *(f"  {measure}" for measure in self.measures)])

    def __repr__(self) -> str:
        return f"<Validation: p = {numbers.nearest(self.p_value)}, {numbers.rows(self.n_rows)}>"
