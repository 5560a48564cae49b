"""What grouped rows and weighted rows prove about the rate of each region."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.parameters import CutParameters, Stated
from calibrant.calibrators.regions.weighted_rows import (
    checked_bound,
    shuffled,
    weighted_sums,
    weights_of,
)
from calibrant.cells.tally import Tally
from calibrant.cells.unit_sums import UnitSums
from calibrant.errors import InvalidValueError
from calibrant.guarantee.statement import (
    Caveat,
    Edges,
    GroupFacts,
    ImportanceWeights,
    Population,
    Statement,
)
from calibrant.limits.group_design import GroupDesign
from calibrant.limits.group_limits import group_limits, shared_limits
from calibrant.limits.interval import Interval
from calibrant.limits.shift.evidence import WEIGHT_BOUND_OF_TALLY, Evidence, weighted_rates
from calibrant.limits.shift.shift_methods import get_shift_method
from calibrant.params.bounds import GROUP_TARGET
from calibrant.params.declared_state import Inline, Record, Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import Flag, Integer, Number
from calibrant.params.state_kinds import Counts, Lists, Maybe, Numbers
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


WEIGHTED_GROUPS = Record(
    GroupFacts,
    {
        "counted": Integer(0),
        "aside": Integer(0),
        "max_size": Integer(0),
        "target": GROUP_TARGET,
        "design_effect": Number(low=0.0),
        "max_weight": Number(low=0.0),
        "fixed": Flag(),
        "above_cap": _SHARE,
        "n_apart": Integer(0),
        "farthest": _SHARE,
    },
)
"""How the facts about groups of weighted rows are saved."""


@dataclass(frozen=True, slots=True, eq=False)
class CountedGroups:
    """What whole groups of weighted rows prove about the rate of each region.

    Attributes
    ----------
    sums : UnitSums
        The weights and rates of groups in regions.
    limits : Interval
        Limits on the rates.
    facts : GroupFacts
        What a guarantee has to say about the groups.
    """

    sums: UnitSums
    limits: Interval
    facts: GroupFacts

    @classmethod
    def of(cls, binned: Binned, design: GroupDesign, alpha: float) -> Self:
        """Bet on the weight sums of the counted groups."""
        rows = binned.rows.collect()
        sums = weighted_sums(rows, binned.partition, design)
        limits = shared_limits(sums, design, alpha)
        facts = _facts(design, rows.n_groups(), sums, limits)
        effect = float(np.nan_to_num(facts.design_effect, nan=1.0))
        return cls(sums, limits, replace(facts, design_effect=effect))


@dataclass(frozen=True, slots=True, eq=False)
class WeightedLimits(Saved):
    """Limits on the weighted rate of each region, which do not follow from a tally, and the bound
    on the weights.

    `kept` is the number of rows of each region in `kept_rows`, for a curve whose average is taken
    over them. If rows have groups, `groups` describes them, `rows` is the number of independent
    rows, and of positives among them, that would give the rate of each region the same precision,
    and `distance` bounds the distance between the rows, as counted in the average of a curve, and
    the population.
    """

    _entries: ClassVar[EntryTable] = {
        "limits": Inline(Interval, {"n_regions": "tally.n_regions"}),
        "bound": WEIGHT_BOUND_OF_TALLY,
        "groups": Entry(Maybe(WEIGHTED_GROUPS), absent=None),
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
        """Bet on the counted rows, or on the weight sums of whole groups."""
        bound = binned.stated.weight_bound
        design = binned.design
        if design is None:  # the bound also applies to rows that were drawn to cut the bins
            largest = checked_bound(weights_of(binned.whole.collect()), bound)
            evidence = Evidence(binned.tally, largest, rows=shuffled(binned, settings.random_state))
            return cls(get_shift_method("betting")(evidence, alpha), largest, bound is not None)
        largest = checked_bound(weights_of(binned.rows.collect()), bound)
        found = CountedGroups.of(binned, design, alpha)
        return cls(found.limits, largest, bounded=True, groups=found.facts, rows=found.sums.telling)

    def said(self, statement: Statement) -> Statement:
        """The statement about the weighted population."""
        return replace(
            statement,
            theorem=get_shift_method("betting").theorem,
            population=Population.WEIGHTED,
            weights=ImportanceWeights(known=True, bound=self.bound),
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


@dataclass(frozen=True, slots=True, eq=False)
class GroupRates:
    """Rows of groups without weights; see `RateEvidence`.

    Attributes
    ----------
    tally : Tally
        Counts of whole groups.
    design : GroupDesign
        How groups count.
    """

    tally: Tally
    design: GroupDesign

    def rates(self, alpha: float, shares: FloatArray | None) -> Interval:
        """Limits by bets on whole groups."""
        return group_limits(self.tally, self.design, alpha)

    @property
    def observed(self) -> FloatArray:
        """The rate of each region, where a group counts up to its cap."""
        return self._sums.rates

    @property
    def telling(self) -> tuple[FloatArray, FloatArray]:
        """The number of independent rows, and of positives among them, that the groups are worth."""
        return self._sums.telling

    def said(self, statement: Statement, settings: CutParameters, limits: Interval) -> Statement:
        """The statement about rows of new groups."""
        n_groups = 0 if self.tally.groups is None else self.tally.groups.n_groups
        return about_groups(statement, settings, _facts(self.design, n_groups, self._sums, limits))

    @property
    def _sums(self) -> UnitSums:
        return UnitSums.of(self.tally, self.design.counting)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRates:
    """Rows with weights, possibly in groups; see `RateEvidence`.

    Attributes
    ----------
    tally : Tally
        Sums of weights.
    weighted : WeightedLimits
        What was proved about them.
    """

    tally: Tally
    weighted: WeightedLimits

    def rates(self, alpha: float, shares: FloatArray | None) -> Interval:
        """Limits that were found once, because they do not follow from a tally."""
        return self.weighted.limits

    @property
    def observed(self) -> FloatArray:
        """The weighted rate of each region."""
        if self.weighted.rows is None:
            return weighted_rates(self.tally)
        rows, positives = self.weighted.rows
        rates = np.full(rows.size, np.nan)
        np.divide(positives, rows, out=rates, where=rows > 0.0)
        return rates

    @property
    def telling(self) -> tuple[FloatArray, FloatArray] | None:
        """The number of independent rows, and of positives among them, that groups are worth;
        otherwise None.
        """
        return self.weighted.rows

    def said(self, statement: Statement, settings: CutParameters, limits: Interval) -> Statement:
        """The statement about the weighted population, and about rows of new groups."""
        statement = self.weighted.said(statement)
        groups = self.weighted.groups
        return statement if groups is None else about_groups(statement, settings, groups)


def about_groups(statement: Statement, settings: CutParameters, groups: GroupFacts) -> Statement:
    """The statement about rows of new groups."""
    cut = not settings._is_uniform and not groups.fixed and groups.aside > 0
    return replace(
        statement,
        theorem=OF_GROUPS,
        edges=Edges.OTHER_ROWS if cut else statement.edges,
        groups=groups,
    )


def _facts(design: GroupDesign, n_groups: int, sums: UnitSums, limits: Interval) -> GroupFacts:
    """The facts about groups, and how far the rate that counts all rows in full is from the limits."""
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
