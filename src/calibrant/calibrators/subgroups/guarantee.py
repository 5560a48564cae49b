"""What is proved about predictions in every subgroup simultaneously."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.relative import RARE
from calibrant.text.numbers import counted, limits, percent, upper
from calibrant.text.result import said_of_file
from calibrant.text.result_table import ResultTable

WITHOUT_ATTRIBUTES = (
    "No attributes were given, so there are no subgroups: the guarantee is about the average over"
    " all rows only."
)


@dataclass(frozen=True, slots=True)
class SubgroupFacts:
    """The rows behind a guarantee of subgroups.

    Attributes
    ----------
    n_fitted, n_proving : int
        Numbers of rows that the correction was fitted to, and of proof rows.
    n_groups : int
        Number of groups in the proof; 0 if each row is an independent draw.
    max_group_size : int or None
        The largest number of rows that a group counts as.
    attributes : tuple of str
        The attributes.
    """

    n_fitted: int = 0
    n_proving: int = 0
    n_groups: int = 0
    max_group_size: int | None = None
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SubgroupGuarantee(Guarantee):
    """A guarantee whose regions are overlapping subgroups.

    With probability at least `confidence_level` over the rows, in every subgroup simultaneously,
    the true rate differs from the average prediction by at most the subgroup's epsilon, and lies in
    [lower, upper], among new rows.

    Attributes
    ----------
    order : int
        The largest number of attributes that define a subgroup.
    min_share : float
        The smallest share of the fitting rows in a subgroup.
    facts : SubgroupFacts
        The rows behind it.
    """

    order: int = 1
    min_share: float = 0.0
    facts: SubgroupFacts = field(default_factory=SubgroupFacts)

    @property
    def n_fitted(self) -> int:
        """Rows that the correction was fitted to."""
        return self.facts.n_fitted

    @property
    def n_proving(self) -> int:
        """Number of proof rows."""
        return self.facts.n_proving

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes."""
        return self.facts.attributes

    @property
    def has_groups(self) -> bool:
        """Whether groups, rather than rows, are independent draws."""
        return self.facts.n_groups > 0

    @property
    def subgroups(self) -> ResultTable:
        """Every subgroup: rows, average prediction, limits on the rate, and epsilon."""
        columns: dict[str, Any] = {
            "subgroup": list(self.regions),
            "n_rows": self.counts,
            "average_prediction": self.value,
            "rate": self.positives / np.maximum(self.counts, 1),
            "lower": self.lower,
            "upper": self.upper,
            "epsilon": self.radius,
        }
        if self.is_rare:
            columns["relative_lower"] = self.relative.lower
            columns["relative_upper"] = self.relative.upper
        return ResultTable("subgroups", columns)

    @property
    def n_rows(self) -> int:
        """Number of proof rows; subgroups overlap, so their counts add up to more."""
        return self.n_proving

    @property
    def is_rare(self) -> bool:
        """Whether predictions are below 5% on average, so that ratios say more than distances."""
        return float(self.value[0]) < RARE

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true for the guarantee to hold."""
        drawn = "groups" if self.has_groups else "rows"
        return (
            f"the {drawn} and new {drawn} are independent draws from one distribution",
            "the model that made the scores was not trained on these rows",
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a reader should know."""
        return () if self.attributes else (WITHOUT_ATTRIBUTES,)

    @property
    def sentence(self) -> str:
        """What is proved and on which assumption, in 35 words at most."""
        confidence = percent(self.confidence_level)
        each = "over all rows"
        if len(self.regions) > 1:
            each = f"in each of {counted(len(self.regions), 'subgroup')}"
        drawn = "groups" if self.has_groups else "rows"
        return (
            f"With {confidence} confidence, if new {drawn} are i.i.d. with these, then {each} the"
            f" rate of class {self.positive_label!r} is within {upper(self.epsilon)} of the average"
            " prediction."
        )

    @property
    def explanation(self) -> str:
        """What the sentence leaves out, without the assumptions."""
        said = []
        if len(self.regions) > 1:
            named = ", ".join(self.attributes)
            said.append(
                f"The subgroups overlap: values of {named}, up to {self.order} of them together,"
                f" with at least {percent(self.min_share)} of the rows."
            )
        said.append(
            f"Predictions were fitted to {counted(self.n_fitted, 'row')}, and"
            f" {counted(self.n_proving, 'other row')} prove. Nothing is guaranteed for one row, or"
            " for part of a subgroup."
        )
        if self.has_groups:
            said.append(
                f"{counted(self.facts.n_groups, 'group')} prove. Averages are over rows of new"
                " groups, of which each counts as at most"
                f" {counted(self.facts.max_group_size or 0, 'row')}."
            )
        if self.is_rare:
            factors = limits(float(self.relative.lower.min()), float(self.relative.upper.max()))
            said.append(f"In every subgroup the rate is {factors} times the average prediction.")
        return " ".join(said) + said_of_file(self.read)

    @property
    def details(self) -> str:
        """The sentence, what it leaves out, and all assumptions."""
        return f"{self.sentence} {self.explanation}\nAssumptions: {'; '.join(self.assumptions)}."

    @property
    def advice(self) -> str:
        """What to do about a subgroup with too few rows."""
        if len(self.regions) == 1:  # all rows
            return "Use more rows"
        return "Use more rows, fewer attributes or a larger min_share"

    @property
    def weakness(self) -> str | None:
        """How weak the guarantee is, why, and what to do about it; None if it is not weak."""
        if not self.is_weak:
            return None
        worst = int(self.radius.argmax())
        held = counted(int(self.counts[worst]), "row")
        return f"little so far: subgroup {self.regions[worst]} contains {held}. {self.advice}"
