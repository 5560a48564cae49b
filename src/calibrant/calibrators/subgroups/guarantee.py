"""What is guaranteed about predictions in every subgroup simultaneously."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.relative import RARE
from calibrant.text.numbers import counted, limits, percent, points, upper
from calibrant.text.result import said_of_file
from calibrant.text.result_table import ResultTable
from calibrant.text.sentences import is_true

WITHOUT_ATTRIBUTES = (
    "no attributes were given, so there are no subgroups: the guarantee is about the average over"
    " all rows only"
)


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
        The smallest share of the pilot rows in a subgroup.
    n_pilot, n_proving : int
        Numbers of rows that determined the subgroups, and of the others, in two halves: each tests
        the correction that was fitted without it.
    n_groups : int
        Number of groups counted; 0 if each row is an independent draw.
    max_group_size : int or None
        The largest number of rows that a group counts as.
    attributes : tuple of str
        The attributes.
    """

    order: int = 1
    min_share: float = 0.0
    n_pilot: int = 0
    n_proving: int = 0
    n_groups: int = 0
    max_group_size: int | None = None
    attributes: tuple[str, ...] = ()

    @property
    def has_groups(self) -> bool:
        """Whether groups, rather than rows, are independent draws."""
        return self.n_groups > 0

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
        """Number of rows behind the limits; subgroups overlap, so their counts add up to more."""
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
    def sentence(self) -> str:
        """What is guaranteed and on which assumption, in 35 words at most."""
        each = "Over all rows"
        together = ""
        if len(self.regions) > 1:
            each = f"In each of {counted(len(self.regions), 'subgroup')}"
            together = ", all subgroups together"
        drawn = "groups" if self.has_groups else "rows"
        number = self.n_groups or self.n_proving
        label = "" if is_true(self.positive_label) else f" of {self.positive_label!r}"
        return (
            f"{each}, the true rate{label} is within {points(upper(self.epsilon))} of the average"
            f" prediction ({percent(self.confidence_level)} confidence{together}, if new {drawn} are"
            f" like these {number:,})."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the subgroups are, and which rows the guarantee is from."""
        found = [] if self.attributes else [WITHOUT_ATTRIBUTES]
        if len(self.regions) > 1:
            named = ", ".join(self.attributes)
            found.append(
                f"the subgroups overlap: values of {named}, up to {self.order} of them together,"
                f" with at least {percent(self.min_share)} of the rows"
            )
        found += [
            f"{counted(self.n_pilot, 'pilot row')} chose the subgroups",
            "the prediction is the mean of two corrections, each fitted to one half of the other"
            f" {counted(self.n_proving, 'row')} and tested on the other half",
            "nothing is guaranteed for one row, or for part of a subgroup",
        ]
        if self.has_groups:
            found.append(
                f"averages are over rows of new groups, like {self.n_groups:,} groups here, of"
                f" which each counts as at most {counted(self.max_group_size or 0, 'row')}"
            )
        if self.is_rare:
            factors = limits(float(self.relative.lower.min()), float(self.relative.upper.max()))
            found.append(
                f"in every subgroup, the true rate is {factors} times the average prediction"
            )
        if self.read:
            found.append(said_of_file(self.read).strip())
        return tuple(found)

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
