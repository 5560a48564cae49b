"""What counted rows prove of the rate of each region: plain rows, rows of groups, and rows with
weights.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.parameters import CutParameters
from calibrant.calibrators.regions.stated import NOTHING_STATED, Stated
from calibrant.calibrators.regions.weighted_rows import (
    checked_bound,
    shuffled,
    weighted_sums,
    weights_of,
)
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally, check_tally
from calibrant.errors import InvalidValueError
from calibrant.guarantee.absorbed import region_limits
from calibrant.guarantee.guarantee import Guarantee
from calibrant.guarantee.statement import (
    Caveat,
    Claim,
    Edges,
    GroupFacts,
    ImportanceWeights,
    Population,
    Statement,
)
from calibrant.limits.group_limits import group_limits, shared_limits
from calibrant.limits.group_sums import GroupDesign, GroupSums
from calibrant.limits.interval import Interval
from calibrant.limits.mass import budgets, mass_limits
from calibrant.limits.methods import get_method
from calibrant.limits.shift.evidence import WEIGHT_BOUND_OF_TALLY, Evidence, weighted_rates
from calibrant.limits.shift.shift_methods import get_shift_method
from calibrant.params.bounds import GROUP_TARGET
from calibrant.params.declared_state import Inline, Record, Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import Flag, Integer, Number, error_budget
from calibrant.params.state_kinds import Counts, Lists, Maybe, Nested, Numbers
from calibrant.text.sentences import Setting, shown

_SHARE = Number("a number from 0 to 1", 0.0, 1.0)
OF_GROUPS = "Ville's inequality for bets on the sums of whole groups, by Bonferroni over regions"
UNBOUNDED = Caveat(
    (
        Setting("weight_bound"),
        " was not given, and there may be larger weights than the largest seen",
    ),
    "no weight is larger than those seen",
)


_WEIGHTED_GROUPS = Record(
    GroupFacts,
    {
        "counted": Integer(0),
        "aside": Integer(0),
        "max_size": Integer(0),
        "target": GROUP_TARGET,
        "design_effect": Number(low=0.0),
        "max_weight": Number(low=0.0),
        "fixed": Entry(Flag(), absent=False, always=True),
        "above_cap": Entry(_SHARE, absent=0.0, always=True),
        "n_apart": Entry(Integer(0), absent=0, always=True),
        "farthest": Entry(_SHARE, absent=0.0, always=True),
    },
)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedLimits(Saved):
    """Limits of the weighted rate of each region, which do not follow from a tally, and the bound
    of the weights.

    `kept` is the number of rows of each region in `kept_rows`, for a curve whose average is taken
    over them. If rows have groups, `groups` describes them, `rows` is the number of independent
    rows, and of positives among them, that would give the rate of each region with the same
    precision, and `distance` bounds how far the rows, as the average of a curve counts them, are
    from the population.
    """

    _entries: ClassVar[EntryTable] = {
        "limits": Inline(Interval, {"n_regions": "tally.n_regions"}),
        "bound": WEIGHT_BOUND_OF_TALLY,
        "groups": Entry(Maybe(_WEIGHTED_GROUPS), absent=None),
        "rows": Entry(Maybe(Lists(Numbers("tally.n_regions", 0.0), size=2)), absent=None),
        "kept": Entry(Maybe(Counts("tally.n_regions")), absent=None),
        "distance": Entry(Maybe(Numbers("tally.n_regions", 0.0, 1.0)), absent=None),
    }

    limits: Interval
    bound: float
    bounded: bool
    kept: IntArray | None = None
    groups: GroupFacts | None = None
    rows: tuple[FloatArray, FloatArray] | None = None
    distance: FloatArray | None = None

    @classmethod
    def of(cls, binned: Binned, settings: CutParameters, alpha: float) -> Self:
        """Bet on the counted rows, or on sums of the weights of whole groups."""
        bound = binned.stated.weight_bound
        design = binned.design
        if design is None:  # the bound is that of rows that were drawn to cut the bins, too
            largest = checked_bound(weights_of(binned.whole.collect()), bound)
            evidence = Evidence(binned.tally, largest, rows=shuffled(binned, settings.random_state))
            return cls(get_shift_method("betting")(evidence, alpha), largest, bound is not None)
        rows = binned.rows.collect()
        blocks = binned.whole.block_source(settings.random_state)
        sums, _ = weighted_sums(rows, binned.partition, design, blocks)
        largest = checked_bound(weights_of(rows), bound)
        limits = shared_limits(sums, design, alpha)
        groups = _facts(design, rows.n_groups(), sums, limits)
        groups = replace(groups, design_effect=float(np.nan_to_num(groups.design_effect, nan=1.0)))
        return cls(limits, largest, bounded=True, groups=groups, rows=sums.telling)

    def said(self, statement: Statement) -> Statement:
        """The statement about the weighted population."""
        return replace(
            statement,
            theorem=get_shift_method("betting").theorem,
            population=Population.WEIGHTED,
            weights=ImportanceWeights(known=True, bound=self.bound, in_order=True),
            caveats=statement.caveats if self.bounded else (*statement.caveats, UNBOUNDED),
        )

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        stated: Stated = known["self"].stated_
        bounded = stated.weight_bound is not None or values["groups"] is not None
        return cls(bounded=bounded, **values)

    def _check_state(self, known: Known) -> None:
        tally: Tally = known["tally"]
        if self.kept is not None and (self.kept > tally.counts).any():
            rule = "be at most the rows of each region"
            raise InvalidValueError("kept", rule, got=shown(self.kept.tolist()))
        told = known["self"].stated_.weight_bound
        if told is not None and told != self.bound:
            rule = f"be that of the state, {self.bound:g}"
            raise InvalidValueError("weight_bound", rule, got=f"{told:g}")
        if self.groups is not None and self.rows is None:
            rule = "be the rows and the positives of each region"
            raise InvalidValueError("rows", rule, got="none")


def _facts(design: GroupDesign, n_groups: int, sums: GroupSums, limits: Interval) -> GroupFacts:
    """What is to be said of groups, and how far the rate that counts all rows in full is from the
    limits.
    """
    in_full = sums.uncapped_rates
    apart = (in_full < limits.lower) | (in_full > limits.upper)
    distance = np.abs(in_full - sums.rates)[apart]
    return GroupFacts(
        n_groups,
        design.aside,
        design.max_size,
        design.target,
        sums.design_effect,
        design.max_weight,
        design.fixed,
        sums.above_cap,
        int(apart.sum()) if sums.above_cap > 0.0 else 0,
        float(distance.max(initial=0.0)) if sums.above_cap > 0.0 else 0.0,
    )


@dataclass(frozen=True, slots=True, eq=False)
class CurveClaim:
    """What is proved of a curve, beside the limits of rates.

    Attributes
    ----------
    margin : float array of shape (n_regions,)
        How far its average over the population can be from that over the rows.
    errors : Interval
        The rate less its average, in each region.
    falls : bool
        Whether it falls as the score rises.
    theorem : str or None
        What bets on its errors rest on; None if all follows from the limits of rates.
    """

    margin: FloatArray
    errors: Interval
    falls: bool
    theorem: str | None


@dataclass(frozen=True, eq=False)
class Proof(Saved):
    """What the counted rows prove of the rate of each region.

    Attributes
    ----------
    partition, tally
        The regions, and what was counted in them.
    interval : str
        Interval of the rates, of rows without weights and groups.
    confidence_level : float
        Confidence that everything holds at once.
    design : GroupDesign or None
        How groups count, if rows have them and no weights.
    weighted : WeightedLimits or None
        Limits of weighted rates, if rows have weights.
    stated : Stated
        What `fit` was told of the data.
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
        """What rows prove whose regions are cut and counted.

        At the level of the settings, or at another.
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
    def for_rates(self) -> float:
        """What the limits of rates may miss."""
        alpha = error_budget(self.confidence_level)
        return budgets(alpha)[0] if self.is_plain else alpha

    def rates(self, shares: FloatArray | None = None) -> Interval:
        """Limits of the rate of each region.

        `shares` of the budget are those of plain rows, or even.
        """
        if self.weighted is not None:
            return self.weighted.limits
        if self.design is not None:
            return group_limits(self.tally, self.design, self.for_rates)
        return region_limits(
            self.partition, self.tally, get_method(self.interval), self.for_rates, shares
        )

    @property
    def observed(self) -> FloatArray:
        """The rate of each region as its limits count rows; NaN where no row was seen."""
        if self.design is not None:
            return GroupSums.of(self.tally, self.design).rates
        if self.weighted is not None and self.weighted.rows is not None:
            rows, positives = self.weighted.rows
            rates = np.full(rows.size, np.nan)
            np.divide(positives, rows, out=rates, where=rows > 0.0)
            return rates
        return self.tally.rates if self.tally.weights is None else weighted_rates(self.tally)

    @property
    def telling(self) -> tuple[FloatArray, FloatArray] | None:
        """How many independent rows, and positives among them, rows of groups are worth.

        None without groups.
        """
        if self.design is not None:
            return GroupSums.of(self.tally, self.design).telling
        return None if self.weighted is None else self.weighted.rows

    def guarantee(
        self,
        settings: CutParameters,
        limits: Interval,
        value: FloatArray,
        positive_label: Hashable,
        claim: CurveClaim | None = None,
    ) -> Guarantee:
        """What follows from limits of the rates; limits on mass are found of plain rows only.

        `claim` is what is proved of a curve.
        """
        method = get_method(self.interval)
        asked = Statement.about(self.partition, theorem=method.theorem, **settings._asked())
        said = self._said(asked, settings, limits)
        by_bets = not self.is_plain
        if claim is not None:
            theorem = said.theorem if claim.theorem is None else claim.theorem
            said = replace(said, claim=Claim.AVERAGE, falls=claim.falls, theorem=theorem)
            by_bets |= claim.theorem is not None
        of_mass = None
        if self.is_plain:
            of_mass = budgets(error_budget(self.confidence_level))[1]
        return Guarantee.from_limits(
            self.partition,
            self.tally,
            limits,
            self.confidence_level,
            "betting" if by_bets else method.name,
            said,
            value,
            positive_label,
            mass_limits=None
            if of_mass is None
            else mass_limits(self.partition, self.tally, of_mass),
            margin=None if claim is None else claim.margin,
            errors=None if claim is None else claim.errors,
        )

    def _said(self, statement: Statement, settings: CutParameters, limits: Interval) -> Statement:
        """The statement about the weighted population, and about rows of new groups."""
        groups = None
        if self.weighted is not None:
            statement = self.weighted.said(statement)
            groups = self.weighted.groups
        elif self.design is not None:
            n_groups = 0 if self.tally.groups is None else self.tally.groups.n_groups
            groups = _facts(self.design, n_groups, GroupSums.of(self.tally, self.design), limits)
        if groups is None:
            return statement
        cut = not settings._is_uniform and not groups.fixed and groups.aside > 0
        return replace(
            statement,
            theorem=OF_GROUPS,
            edges=Edges.OTHER_ROWS if cut else statement.edges,
            groups=groups,
        )
