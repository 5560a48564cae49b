"""What counted rows prove about the rate of each region.

Three kinds of rows follow one protocol, `RateEvidence`: plain rows, here, and grouped and weighted
rows, in `calibrant.calibrators.regions.unit_rates`.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from calibrant._typing import FloatArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.parameters import NOTHING_STATED, CutParameters, Stated
from calibrant.calibrators.regions.unit_rates import GroupRates, WeightedLimits, WeightedRates
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally, check_tally
from calibrant.errors import InvalidValueError
from calibrant.guarantee.absorbed import region_limits
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.statement import (
    Claim,
    Statement,
)
from calibrant.limits.error_budget import absorbed_budget, budgets
from calibrant.limits.group_design import GroupDesign
from calibrant.limits.interval import Interval
from calibrant.limits.mass import mass_limits
from calibrant.limits.methods import get_method
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import error_budget
from calibrant.params.state_kinds import Maybe, Nested


class RateEvidence(Protocol):
    """What rows of one kind prove about the rate of each region."""

    def rates(self, alpha: float, shares: FloatArray | None) -> Interval:
        """Limits that hold simultaneously with probability at least 1 - alpha.

        `shares` of alpha are those of the regions of plain rows, or even.
        """

    @property
    def observed(self) -> FloatArray:
        """The rate of each region, with rows counted as in its limits; NaN for a region without
        rows.
        """

    @property
    def telling(self) -> tuple[FloatArray, FloatArray] | None:
        """The number of independent rows, and of positives among them, that grouped rows are worth.

        None without groups.
        """

    def said(self, statement: Statement, settings: CutParameters, limits: Interval) -> Statement:
        """The statement, with what has to be said about this kind of rows."""


@dataclass(frozen=True, slots=True, eq=False)
class PlainRates:
    """Plain rows, whose limits follow from counts.

    Attributes
    ----------
    partition, tally
        The regions, and their counts.
    interval : str
        Interval of the rates.
    """

    partition: Partition
    tally: Tally
    interval: str

    def rates(self, alpha: float, shares: FloatArray | None) -> Interval:
        """Limits by the interval method, or exact limits with shares."""
        method = get_method(self.interval)
        return region_limits(self.partition, self.tally, method, alpha, shares)

    @property
    def observed(self) -> FloatArray:
        """The share of positive rows."""
        return self.tally.rates

    @property
    def telling(self) -> None:
        """None: plain rows count as themselves."""
        return None

    def said(self, statement: Statement, settings: CutParameters, limits: Interval) -> Statement:
        """The statement unchanged."""
        return statement


@dataclass(frozen=True, slots=True, eq=False)
class CurveClaim:
    """What is proved about a curve, besides the limits on rates.

    Attributes
    ----------
    margin : float array of shape (n_regions,)
        The largest distance between its averages over the population and over the rows.
    errors : Interval
        The rate minus its average, in each region.
    falls : bool
        Whether it decreases in the score.
    theorem : str or None
        The basis of bets on its errors; None if everything follows from the limits on rates.
    """

    margin: FloatArray
    errors: Interval
    falls: bool
    theorem: str | None


@dataclass(frozen=True, eq=False)
class Proof(Saved):
    """What the counted rows prove about the rate of each region.

    Attributes
    ----------
    partition, tally
        The regions, and their counts.
    interval : str
        Interval of the rates, for rows without weights and groups.
    confidence_level : float
        Confidence that everything holds simultaneously.
    design : GroupDesign or None
        How groups count, if rows have them and no weights.
    weighted : WeightedLimits or None
        Limits on weighted rates, if rows have weights.
    stated : Stated
        What `fit` was told about the data.
    """

    _entries: ClassVar[EntryTable] = {
        "partition": Nested(Partition),
        "tally": Nested(Tally),
        "weighted": Entry(Maybe(Nested(WeightedLimits)), absent=None),
        "groups": Entry(Maybe(Nested(GroupDesign)), of="design", absent=None),
    }

    partition: Partition
    tally: Tally
    interval: str
    confidence_level: float
    design: GroupDesign | None = None
    weighted: WeightedLimits | None = None
    stated: Stated = NOTHING_STATED

    @classmethod
    def of(
        cls, binned: Binned, settings: CutParameters, confidence_level: float | None = None
    ) -> Self:
        """What rows prove, given their regions and counts.

        At the confidence level of the settings, or at another.
        """
        level = settings.confidence_level if confidence_level is None else confidence_level
        proof = cls(
            binned.partition,
            binned.tally,
            settings._exact_interval,
            level,
            binned.design,
            stated=binned.stated,
        )
        if binned.tally.weights is None:
            return proof
        return replace(
            proof, design=None, weighted=WeightedLimits.of(binned, settings, proof.for_rates)
        )

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        settings: CutParameters = known["self"]
        return cls(
            interval=settings._exact_interval,
            confidence_level=settings.confidence_level,
            stated=known["self"].stated_,
            **values,
        )

    def _check_state(self, known: Known) -> None:
        check_tally(self.partition, self.tally)
        if (self.tally.weights is None) != (self.weighted is None):
            raise InvalidValueError("weighted", "be given if, and only if, rows have weights")
        if (self.tally.groups is None) != (self.design is None):
            raise InvalidValueError("groups", "be given if, and only if, rows have groups")
        if self.design is not None and max(self.design.unproved, default=0) >= self.tally.n_regions:
            got = repr(list(self.design.unproved))
            raise InvalidValueError("unproved", f"be regions below {self.tally.n_regions}", got=got)

    @property
    def is_plain(self) -> bool:
        """Whether rows have neither weights nor groups."""
        return self.design is None and self.tally.weights is None

    @property
    def for_limits(self) -> float:
        """The error budget of all limits on rates, and on the errors and averages of a curve."""
        alpha = error_budget(self.confidence_level)
        return budgets(alpha)[0] if self.is_plain else alpha

    @property
    def for_rates(self) -> float:
        """The error budget of the limits on rates: all of it, unless a curve needs a part."""
        return self.for_limits

    @property
    def for_bets(self) -> float:
        """The error budget of all limits except those on the shares of absorbed edges."""
        return self.for_limits - absorbed_budget(self.partition, self.for_limits)

    @property
    def evidence(self) -> RateEvidence:
        """The evidence behind the limits: plain, grouped or weighted rows."""
        if self.weighted is not None:
            return WeightedRates(self.tally, self.weighted)
        if self.design is not None:
            return GroupRates(self.tally, self.design)
        return PlainRates(self.partition, self.tally, self.interval)

    def rates(self, shares: FloatArray | None = None) -> Interval:
        """Limits on the rate of each region.

        `shares` of the budget are those of plain rows, or even.
        """
        return self.evidence.rates(self.for_rates, shares)

    def guarantee(
        self,
        settings: CutParameters,
        limits: Interval,
        value: FloatArray,
        positive_label: Hashable,
        claim: CurveClaim | None = None,
    ) -> Guarantee:
        """The guarantee that follows from limits on the rates; limits on mass are derived only for
        plain rows.

        `claim` is what is proved about a curve.
        """
        of_curve = None if claim is None else claim.theorem
        theorem = get_method(self.interval).theorem if of_curve is None else of_curve
        asked = Statement(theorem, **settings._asked())
        said = self.evidence.said(asked, settings, limits)
        if claim is not None:
            theorem = said.theorem if of_curve is None else of_curve
            said = replace(said, claim=Claim.AVERAGE, falls=claim.falls, theorem=theorem)
        by_bets = of_curve is not None or not self.is_plain
        of_mass = None
        if self.is_plain:
            of_mass = budgets(error_budget(self.confidence_level))[1]
        return Guarantee.from_limits(
            self.partition,
            self.tally,
            limits,
            self.confidence_level,
            "betting" if by_bets else self.interval,
            said,
            value,
            positive_label,
            mass_limits=None
            if of_mass is None
            else mass_limits(self.partition, self.tally, of_mass),
            margin=None if claim is None else claim.margin,
            errors=None if claim is None else claim.errors,
        )
