"""The result of an audit of subgroups."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.assess.subgroups.findings import SubgroupFinding
from calibrant.guarantee.relative import RARE
from calibrant.text import numbers
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable

TARGETS = ("rows", "population")
_SAID = 3  # findings in the sentence
ALL_ROWS = "all rows"
"""What the family calls the subgroup that contains every row."""


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

    def columns(self) -> dict[str, list[Any]]:
        """The columns as plain lists."""
        return {
            one.name: list(np.asarray(getattr(self, one.name)).tolist()) for one in fields(self)
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SubgroupAudit(Result):
    """What is proved about the calibration of overlapping subgroups.

    There are two statements, each at `confidence_level` on its own. The first says what is off:
    `findings`. If every row's rate is its score, nothing is found with probability
    `confidence_level`. The second says by how much any subgroup of the family can be off at most:
    `upper_bound`.

    Attributes
    ----------
    findings : tuple of SubgroupFinding
        The subgroups proved wrong, those with a proved size first; empty if there are none. A
        finding lists those that it explains.
    upper_bound : float
        In no subgroup of the family does the mean of the true rates differ from the mean score by
        more than this.
    p_value : float or None
        The p-value of the test whether any subgroup is off; None if the test is not possible.
    refused : str or None
        Why the questions "is any off?" and "which?" cannot be answered.
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
    population_ratios : pair of float or None
        For a population with rare events: limits on the ratio of the true rate to the average score
        of any subgroup, which share the level of the upper bound.
    """

    findings: tuple[SubgroupFinding, ...]
    upper_bound: float
    p_value: float | None
    refused: str | None
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
    population_ratios: tuple[float, float] | None = None

    @property
    def is_any_off(self) -> bool:
        """Whether it is proved that some subgroup is off."""
        if self.p_value is None:
            return bool(self.findings)
        return self.p_value <= 1.0 - self.confidence_level + 1e-12

    @property
    def n_subgroups(self) -> int:
        """The number of subgroups in the family, including all rows."""
        return len(self.table.subgroup)

    @property
    def n_off(self) -> int:
        """The number of subgroups that are proved to be off, with those that a finding explains."""
        return len(_names(self.findings))

    def whole_is_off(self) -> bool:
        """Whether it is proved that the scores are off over all rows together."""
        return ALL_ROWS in _names(self.findings)

    def contrast(self) -> str:
        """What is off, in words that follow a verdict of "no evidence" from ranges of scores."""
        whole = "sample" if self.target == "rows" else "population"
        if not self.findings:
            return f"at any score, but some subgroup, or the whole {whole}, is proved to be off"
        if not self.whole_is_off():
            return "over all rows, but some subgroup is proved to be off"
        others = "" if self.n_off == 1 else " and in some subgroups"
        return f"at any score, but scores are proved to be off in the whole {whole}{others}"

    @property
    def sentence(self) -> str:
        """What is off, and by how much anything can be off at most."""
        return f"{self._off()}. {self.bound_sentence}"

    def _off(self) -> str:
        subgroups = numbers.counted(self.n_subgroups, "subgroup")
        searched = f"{subgroups} of {numbers.rows(self.n_rows)}"
        sure = f"{self._p_words()}, with {numbers.percent(self.confidence_level)} confidence"
        if not self.is_any_off:
            return f"No subgroup is proved to be off among {searched}{sure}"
        if not self.findings:
            return f"Some subgroup is off among {searched}{sure}, but it is not proved which"
        said = "; ".join(f"in {finding.clause}" for finding in self.findings[:_SAID])
        left = self.n_off - len(_names(self.findings[:_SAID]))
        more = f"; and {left:,} more" if left > 0 else ""
        subject = "One subgroup is" if self.n_off == 1 else f"{self.n_off:,} subgroups are"
        if self.n_off == 1 and self.whole_is_off():
            subject = "The scores of all rows together are"
        return f"{subject} proved to be off{sure}: {said}{more}"

    def _p_words(self) -> str:
        return "" if self.p_value is None else f" (p = {numbers.nearest(self.p_value)})"

    @property
    def bound_sentence(self) -> str:
        """The second statement alone."""
        share = numbers.percent(self.min_share)
        of_what = "rows at hand" if self.target == "rows" else "population"
        ratios = self.ratio_bounds
        relative = ""
        if ratios is not None:
            relative = f", and true rates are {numbers.limits(*ratios)} times the predicted ones"
        return (
            f"As a separate statement, with {numbers.percent(self.confidence_level)} confidence, no"
            f" subgroup defined by up to {numbers.counted(self.order, 'attribute')} and with at"
            f" least {share} of the rows is off by more than {numbers.upper(self.upper_bound)} in"
            f" the {of_what}{relative}."
        )

    @property
    def ratio_bounds(self) -> tuple[float, float] | None:
        """The smallest and the largest ratio of true to predicted rate of any subgroup, if events
        are rare.
        """
        if self.target == "population":
            return self.population_ratios
        table = self.table
        if not table.mean_score[0] < RARE or not (table.mean_score > 0.0).all():
            return None
        low = float((table.lower / table.mean_score).min())
        high = float((table.upper / table.mean_score).max())
        return low, high

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a reader should know."""
        found = []
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
                "Each proved error was tested on a random half of the subgroup's rows, and is about"
                f" {whom}."
            )
        return tuple(found)

    def tables(self) -> tuple[ResultTable, ...]:
        """The findings, then all subgroups."""
        names = [one.name for one in fields(SubgroupFinding)]
        columns: dict[str, list[Any]] = {
            name: [getattr(finding, name) for finding in self.findings]
            for name in names
            if name not in ("also", "target")
        }
        columns["also"] = ["; ".join(finding.also) for finding in self.findings]
        shown = ("subgroup", "direction", "n_rows", "mean_score", "rate", "error")
        heads = {"error": "off by at least"}
        every = self.table.columns()
        return (
            ResultTable("findings", columns, shown, heads),
            ResultTable("subgroups", every, ()),
        )


def _names(findings: tuple[SubgroupFinding, ...]) -> set[str]:
    """The subgroups of some findings, with those that they explain."""
    return {name for finding in findings for name in (finding.subgroup, *finding.also)}
