"""What counted rows show about the rate of each region: plain rows, groups, and rows with weights."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.inner_cells import InnerCells
from calibrant.calibrators.regions.parameters import NO_ASSUMPTIONS, CutParameters, DataAssumptions
from calibrant.calibrators.regions.weighted_rows import WeightedLimits, about_groups, group_facts
from calibrant.cells.entries import Entries
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally, check_tally
from calibrant.errors import InvalidValueError
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.statement import Claim, Statement
from calibrant.limits.error_budget import absorbed_budget, budgets
from calibrant.limits.interval import Interval
from calibrant.limits.methods import get_method
from calibrant.limits.region_limits import GroupDesign, mean_limits, region_limits
from calibrant.limits.shift.evidence import weighted_rates
from calibrant.params.declared_state import Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import error_budget
from calibrant.params.state_kinds import Maybe, Nested


@dataclass(frozen=True, eq=False)
class Proof(Saved):
    """What the counted rows show about the rate of each region.

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
    assumptions : DataAssumptions
        What `fit` was given about the data.
    inner : InnerCells or None
        Counts of finer cells, which a monitor compares.
    """

    _entries: ClassVar[EntryTable] = {
        "partition": Nested(Partition),
        "tally": Nested(Tally),
        "weighted": Entry(Maybe(Nested(WeightedLimits)), absent=None),
        "groups": Entry(Maybe(Nested(GroupDesign)), of="design", absent=None),
        "inner": Entry(Maybe(Nested(InnerCells)), absent=None),
    }

    partition: Partition
    tally: Tally
    interval: str
    confidence_level: float
    design: GroupDesign | None = None
    weighted: WeightedLimits | None = None
    assumptions: DataAssumptions = NO_ASSUMPTIONS
    inner: InnerCells | None = None

    @classmethod
    def of(
        cls, binned: Binned, settings: CutParameters, confidence_level: float | None = None
    ) -> Self:
        """What rows show, given their regions and counts.

        At the confidence level of the settings, or at another.
        """
        level = settings.confidence_level if confidence_level is None else confidence_level
        proof = cls(
            binned.partition,
            binned.tally,
            settings._exact_interval,
            level,
            binned.design,
            assumptions=binned.assumptions,
            inner=InnerCells.of(binned),
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
            assumptions=known["self"].assumptions_,
            **values,
        )

    def _check_state(self, known: Known) -> None:
        check_tally(self.partition, self.tally)
        if self.inner is not None:
            self.inner.check(self.partition, self.tally)
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
        # only independent rows of one population have limits on mass, which cost a part
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

    def rates(self) -> Interval:
        """Limits on the rate of each region.

        The labels of plain rows are binomial draws, given the counts, so their limits are exact,
        and also hold for bins that absorb a tied edge. Groups are bet on as whole units. Limits on
        weighted rates were found once, because they do not follow from a tally.
        """
        # bets on weighted rows depend on their order, which no tally keeps
        if self.weighted is not None:
            return self.weighted.limits
        if self.design is None:
            method = get_method(self.interval)
            return region_limits(self.partition, self.tally, method, self.for_rates)
        design = self.design
        return mean_limits(
            self._group_entries, self.for_rates, order=design.order, unproved=design.unproved
        )

    @property
    def _group_entries(self) -> Entries:
        """The shares of positives of the counted groups."""
        return Entries.of_tally(self.tally, None if self.design is None else self.design.cap)

    @property
    def observed(self) -> FloatArray:
        """The rate of each region, with rows counted as in its limits; NaN for a region without
        rows.
        """
        if self.weighted is not None and self.weighted.rows is not None:
            rows, positives = self.weighted.rows
            rates = np.full(rows.size, np.nan)
            np.divide(positives, rows, out=rates, where=rows > 0.0)
            return rates
        if self.weighted is not None:
            return weighted_rates(self.tally)
        if self.design is not None:
            return self._group_entries.rates
        return self.tally.rates

    @property
    def effective_rows(self) -> tuple[FloatArray, FloatArray] | None:
        """The effective number of rows, and of positives among them, in grouped rows.

        None without groups.
        """
        if self.weighted is not None:
            return self.weighted.rows
        return None if self.design is None else self._group_entries.effective_rows

    def _statement(self, settings: CutParameters, theorem: str, limits: Interval) -> Statement:
        """The facts about the rows that a guarantee states."""
        statement = Statement(theorem, **settings._asked())
        groups = None
        if self.weighted is not None:
            statement = self.weighted.statement(statement)
            groups = self.weighted.groups
        elif self.design is not None and self.tally.groups is not None:
            n_groups = self.tally.groups.n_groups
            groups = group_facts(self.design, n_groups, self._group_entries, limits)
        return statement if groups is None else about_groups(statement, settings, groups)

    def guarantee(
        self,
        settings: CutParameters,
        limits: Interval,
        value: FloatArray,
        positive_label: Hashable,
        *,
        margin: FloatArray | None = None,
        errors: Interval | None = None,
        falls: bool = False,
        theorem: str | None = None,
    ) -> Guarantee:
        """The guarantee that follows from limits on the rates; limits on mass are derived only for
        plain rows.

        About a curve, `margin` is the largest distance between its averages over the population and
        over the rows, and `errors` are limits on the rate minus its average. `falls` says whether it
        decreases in the score, and `theorem` is the basis of bets on its errors; None if everything
        follows from the limits on rates.
        """
        of_rates = theorem or get_method(self.interval).theorem
        statement = self._statement(settings, of_rates, limits)
        if errors is not None:
            basis = theorem or statement.theorem
            statement = replace(statement, claim=Claim.AVERAGE, falls=falls, theorem=basis)
        # the name of the method is that of the limits which decide epsilon
        by_bets = theorem is not None or not self.is_plain
        for_mass = None
        if self.is_plain:
            for_mass = budgets(error_budget(self.confidence_level))[1]
        return Guarantee.from_limits(
            self.partition,
            self.tally,
            limits,
            self.confidence_level,
            "betting" if by_bets else self.interval,
            statement,
            value,
            positive_label,
            for_mass=for_mass,
            margin=margin,
            errors=errors,
        )
