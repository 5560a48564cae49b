"""The result of an audit of subgroups."""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.subgroups.findings import SubgroupFinding
from calibrant.text import numbers
from calibrant.text.picture import Drawn, Picture, ReferenceLine
from calibrant.text.quantity import NextStep, Quantity
from calibrant.text.result import Result, Verdict
from calibrant.text.result_table import ResultTable, columns_by_name

_MOST_DRAWN = 30
_IN_NOTES = 3  # findings in the notes
TARGETS = ("rows", "population")
_REFUSED = (
    "With groups or weights, there is no test of whether any subgroup is off, and which one: labels"
    " in a group depend on each other, and weights are about another population. The sizes of errors"
    " and the upper bound hold."
)
REPAIR_SUBGROUPS = NextStep(
    "Repair the subgroups in Python, with rows other than those audited here",
    "SubgroupCalibrator().fit(other_scores, other_y, attributes=other_attributes)",
)


@dataclass(frozen=True, slots=True, eq=False)
class SubgroupTable:
    """Every subgroup of the family, with limits that hold for all of them simultaneously.

    Attributes
    ----------
    subgroup : tuple of str
        The subgroup in words; all rows come first.
    order : int array of shape (m,)
        The number of attributes that define it.
    n_rows : int array of shape (m,)
        Rows.
    mean_score, rate : float arrays of shape (m,)
        Mean score and observed rate.
    lower, upper : float arrays of shape (m,)
        Limits on the true mean rate; for a population, `mean_score` plus the limits on rate minus
        score.
    largest_error : float array of shape (m,)
        An upper bound on the absolute mean of rate minus score.
    """

    subgroup: tuple[str, ...]
    order: IntArray
    n_rows: IntArray
    mean_score: FloatArray
    rate: FloatArray
    lower: FloatArray
    upper: FloatArray
    largest_error: FloatArray

    def columns(self) -> dict[str, Any]:
        """The columns by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SubgroupAudit(Result):
    """What is known about the calibration of overlapping subgroups.

    There are two statements, each at `confidence_level` on its own. The first says what is off:
    `findings`. If every row's rate is its score, nothing is found with probability
    `confidence_level`. The second says by how much any subgroup of the family can be off at most:
    `upper_bound`.

    Attributes
    ----------
    findings : tuple of SubgroupFinding
        The subgroups shown to be off, those with a known size first; empty if there are none. A
        finding lists those that it explains.
    upper_bound : float
        In no subgroup of the family does the mean of the true rates differ from the mean score by
        more than this.
    p_value : float or None
        The p-value of the test whether any subgroup is off; None if the test is not possible.
    table : SubgroupTable
        All subgroups of the family, with simultaneous limits: the second statement.
    confidence_level : float
        1 - alpha.
    order : int
        The largest number of attributes that define a subgroup.
    min_share : float
        The smallest share of rows in a subgroup.
    target : {"rows", "population"}
        Whether sizes and the upper bound are about the rows at hand or the population.
    n_rows : int
        Number of audited rows.
    n_draws : int
        Number of label sets drawn for the test; 0 if the test is not possible.
    n_set_aside : int
        Number of further rows that only cut numeric attributes.
    n_tested : int
        Number of rows used by the test "is any off?".
    assumptions : tuple of str
        What must be true.
    """

    _also: ClassVar[tuple[str, ...]] = ("refused",)

    findings: tuple[SubgroupFinding, ...]
    upper_bound: float
    p_value: float | None
    table: SubgroupTable
    confidence_level: float
    order: int
    min_share: float
    target: str
    n_rows: int
    n_draws: int = 0
    n_set_aside: int = 0
    n_tested: int = 0
    assumptions: tuple[str, ...] = field(default=())

    @property
    def refused(self) -> str | None:
        """Why the questions "is any off?" and "which?" cannot be answered."""
        return _REFUSED if self.p_value is None else None

    @property
    def is_any_off(self) -> bool:
        """Whether some subgroup is shown to be off."""
        if self.p_value is None:
            return bool(self.findings)
        return self.p_value <= 1.0 - self.confidence_level + 1e-12

    @property
    def n_subgroups(self) -> int:
        """The number of subgroups in the family, including all rows."""
        return len(self.table.subgroup)

    @property
    def n_off(self) -> int:
        """The number of subgroups that are shown to be off, with those that a finding explains."""
        return len(_names(self.findings))

    @property
    def verdict(self) -> Verdict:
        """Whether some subgroup is shown to be off."""
        return "problem" if self.is_any_off else "ok"

    @property
    def sentence(self) -> str:
        """Which subgroups are off, and what is assumed."""
        p_value = "" if self.p_value is None else f"{numbers.p_value(self.p_value)}, "
        level = numbers.percent(1.0 - self.confidence_level)
        basis = f"{p_value}{numbers.rows(self.n_rows)}, assumed independent"
        sure = f"({numbers.percent(self.confidence_level)} confidence, {basis})"
        if not self.is_any_off:
            searched = numbers.counted(self.n_subgroups, "subgroup")
            return f"No sign that any of {searched} is off (tested at the {level} level, {basis})."
        if not self.findings:
            some = f"At least one of {self.n_subgroups:,} subgroups is off"
            return f"{some} {sure}, but the data do not show which."
        first = self.findings[0]
        others = f"; {self.n_off:,} of {self.n_subgroups:,} subgroups are off"
        return f"Scores are {first.short}{others if self.n_off > 1 else ''} {sure}."

    @property
    def numbers(self) -> tuple[Quantity, ...]:
        """How many subgroups are off, and by how much any can be off at most."""
        most = self.upper_bound
        found = [
            Quantity("Audited", self.n_rows, unit="row"),
            Quantity("Off", self.n_off, unit=f"of {self.n_subgroups:,} subgroups"),
            Quantity("Any subgroup off by at most", most, high=most, unit="points"),
        ]
        if self.findings and self.findings[0].tested_rows:
            least = self.findings[0].error
            name = f"Off by at least, on average in {self.findings[0].subgroup}"
            found.append(Quantity(name, least, low=least, unit="points"))
        return tuple(found)

    @property
    def next_steps(self) -> tuple[NextStep, ...]:
        """Repair the subgroups that are off."""
        return (REPAIR_SUBGROUPS,) if self.is_any_off else ()

    @property
    def listing(self) -> tuple[str, ...]:
        """Every subgroup that is off, with the difference that was observed, largest evidence first;
        empty if none is.
        """
        if not self.findings:
            return ()
        level = numbers.percent(self.confidence_level)
        known = dict(zip(self.table.subgroup, self.table.rate - self.table.mean_score, strict=True))
        found = [
            f"{self.n_off:,} of {self.n_subgroups:,} subgroups are off ({level} confidence for all of"
            " these together, apart from the statement above). In brackets: the observed difference."
        ]
        for direction in dict.fromkeys(one.direction for one in self.findings):
            off = [one for one in self.findings if one.direction == direction]
            names = [name for one in off for name in (one.subgroup, *one.also)]
            listed = (
                f"{name} ({numbers.points(numbers.nearest(abs(float(known[name]))))})"
                for name in dict.fromkeys(names)
            )
            found.append(f"{direction.capitalize()}: {'; '.join(listed)}.")
        return tuple(found)

    @property
    def notes(self) -> tuple[str, ...]:
        """The largest possible error, and what was seen in the first subgroups that are off."""
        share = numbers.percent(self.min_share)
        of_what = "in these rows" if self.target == "rows" else "in the population"
        most = numbers.points(numbers.upper(self.upper_bound))
        bound = (
            f"Separately, with {numbers.percent(self.confidence_level)} confidence, no subgroup of"
            f" up to {numbers.counted(self.order, 'attribute')} and at least {share} of the rows is"
            f" off by more than {most} on average {of_what}."
        )
        found = [bound, *(one.text for one in self.findings[:_IN_NOTES])]
        if self.refused is not None:
            found.append(self.refused)
        if self.n_draws and self.n_tested < self.n_rows:
            found.append(
                f"Whether any subgroup is off was tested on {self.n_tested:,} rows drawn at random;"
                " all rows were counted for the rest."
            )
        if any(finding.tested_rows for finding in self.findings):
            whom = "these rows" if self.target == "rows" else "the population of the subgroup"
            found.append(
                "Each error was tested on a random half of the subgroup's rows, and is about"
                f" {whom}."
            )
        return tuple(found)

    def pictures(self) -> tuple[Picture, ...]:
        """The true rate minus the mean score in the subgroups that are off, or in the largest."""
        table = self.table
        off = _names(self.findings)
        rows = [row for row, name in enumerate(table.subgroup) if name in off]
        rows = (rows or np.argsort(-table.n_rows, kind="stable").tolist())[:_MOST_DRAWN]
        mean = table.mean_score
        drawn = Drawn(
            "rate minus mean score",
            (table.rate - mean)[rows].tolist(),
            [-float(place) for place in range(len(rows))],
            (table.lower - mean)[rows].tolist(),
            (table.upper - mean)[rows].tolist(),
        )
        names = tuple(table.subgroup[row] for row in rows)
        rule = ReferenceLine("calibrated", 0.0, is_upright=True)
        text = "The observed rate minus the mean score, with limits for all subgroups together."
        labels = "rate minus mean score, points", ""
        return (Picture("Subgroups", text, *labels, (drawn,), (rule,), names, x_unit="points"),)

    def tables(self) -> tuple[ResultTable, ...]:
        """The findings, every subgroup that is off after the one that explains it, and all
        subgroups.
        """
        names = [one.name for one in fields(SubgroupFinding) if one.name not in ("also", "target")]
        findings = columns_by_name(self.findings, names)
        findings["also"] = ["; ".join(finding.also) for finding in self.findings]
        off = [(name, one) for one in self.findings for name in (one.subgroup, *one.also)]
        place = {name: row for row, name in enumerate(self.table.subgroup)}
        rows = [place[name] for name, _ in off]
        errors = [one.error if name == one.subgroup and one.error else None for name, one in off]
        columns = {
            "subgroup": [name for name, _ in off],
            "n_rows": self.table.n_rows[rows].tolist(),
            "mean_score": self.table.mean_score[rows].tolist(),
            "rate": self.table.rate[rows].tolist(),
            "direction": [one.direction.removeprefix("scores ") for _, one in off],
            "error": errors,
        }
        heads = {
            "mean_score": "model says",
            "rate": "happened",
            "direction": "scores",
            "error": "by at least",
        }
        units = {"mean_score": "share", "rate": "share", "error": "points"}
        return (
            ResultTable("findings", findings, ()),
            ResultTable("off", columns, heads=heads, units=units),
            ResultTable("subgroups", self.table.columns(), ()),
        )


def _names(findings: tuple[SubgroupFinding, ...]) -> set[str]:
    """The subgroups of some findings, with those that they explain."""
    return {name for finding in findings for name in (finding.subgroup, *finding.also)}
