"""What an audit of subgroups found."""

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


@dataclass(frozen=True, slots=True, eq=False)
class SubgroupTable:
    """Every subgroup of the family, with limits that hold for all of them at once.

    Attributes
    ----------
    subgroup : tuple of str
        In words; all rows first.
    order : int array of shape (m,)
        Of how many attributes it is made.
    n_rows : int array of shape (m,)
        Rows.
    mean_score, rate : float arrays of shape (m,)
        Mean score and observed rate.
    lower, upper : float arrays of shape (m,)
        Limits of the true mean rate; in a population, `mean_score` plus the limits of rate minus
        score.
    largest_error : float array of shape (m,)
        The mean of rate minus score is at most this, in absolute value.
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
    """What is proved of the calibration of subgroups that overlap.

    Two statements, each at `confidence_level` on its own. The first is what is off: `findings`. If
    every row's rate is its score, nothing is found with probability `confidence_level`. The second
    is by how much any subgroup of the family can be off at most: `upper_bound`.

    Attributes
    ----------
    findings : tuple of SubgroupFinding
        What is proved wrong, those with a proved size first; empty if nothing is. A finding tells
        those that it explains.
    upper_bound : float
        In no subgroup of the family, the mean of the true rates differs from the mean score by more
        than this.
    p_value : float or None
        Of the test whether any subgroup is off; None where it was refused.
    refused : str or None
        Why the questions "is any off?" and "which?" have no answer.
    table : SubgroupTable
        All subgroups of the family, with limits for all at once: the second statement.
    confidence_level : float
        1 - alpha.
    order : int
        Subgroups are made of up to so many attributes.
    min_share : float
        Subgroups have at least this share of the rows.
    target : {"rows", "population"}
        Whether sizes and the upper bound are about the rows at hand or the population.
    n_rows : int
        Rows that were audited.
    n_draws : int
        Sets of labels that were drawn for the test; 0 where it was refused.
    n_set_aside : int
        Further rows that only cut numeric attributes.
    n_tested : int
        Rows that the test "is any off?" used.
    assumptions : tuple of str
        What must be true.
    population_ratios : pair of float or None
        In a population where events are rare: limits on the true rate over the average score of any
        subgroup, which share the level of the upper bound with it.
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
        """How many subgroups the family has, all rows among them."""
        return len(self.table.subgroup)

    @property
    def sentence(self) -> str:
        """What is off, and by how much anything can be off at most."""
        confidence = f"{numbers.percent(self.confidence_level)} confidence"
        return f"{self._off()}, with {confidence}. {self.bound_sentence}"

    def _off(self) -> str:
        subgroups = numbers.counted(self.n_subgroups, "subgroup")
        searched = f"{subgroups} of {numbers.rows(self.n_rows)}"
        if not self.is_any_off:
            return f"No subgroup is proved off among {searched}{self._p_words()}"
        if not self.findings:
            return (
                f"Some subgroup is off among {searched}{self._p_words()}, though it is not proved"
                " which"
            )
        said = "; ".join(finding.text.rstrip(".") for finding in self.findings[:_SAID])
        left = len(self.findings) - _SAID
        more = f"; and {left} more" if left > 0 else ""
        subject = (
            "One subgroup is" if len(self.findings) == 1 else f"{len(self.findings)} subgroups are"
        )
        return f"{subject} proved off{self._p_words()}: {said}{more}"

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
            f"With {numbers.percent(self.confidence_level)} confidence on its own, no subgroup of"
            f" up to {numbers.counted(self.order, 'attribute')} and at least {share} of rows is off"
            f" by more than {numbers.upper(self.upper_bound)} in the {of_what}{relative}."
        )

    @property
    def ratio_bounds(self) -> tuple[float, float] | None:
        """The smallest and the largest ratio of true to predicted rate of any subgroup, where
        events are rare.
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
                "A proved size was tested on a random half of a subgroup's rows, and is about"
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
