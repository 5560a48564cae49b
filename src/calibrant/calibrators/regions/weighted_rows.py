"""Weighted rows and grouped rows: their weights, limits on the rates of regions, and what a
guarantee has to say about them.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray, Seed
from calibrant.calibrators.regions.binned_rows import Binned
from calibrant.calibrators.regions.parameters import CutParameters
from calibrant.cells.entries import Entries
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.guarantee.statement import (
    Caveat,
    Edges,
    GroupFacts,
    ImportanceWeights,
    Population,
    Statement,
)
from calibrant.limits.interval import Interval
from calibrant.limits.region_limits import GroupDesign, mean_limits
from calibrant.limits.shift.betting import THEOREM, betting
from calibrant.limits.shift.evidence import WEIGHT_BOUND_OF_TALLY, Evidence
from calibrant.params.arrays import check_rows
from calibrant.params.declared_state import Inline, Record, Saved
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.random import RandomSource
from calibrant.params.rules import GROUP_TARGET, Flag, Integer, Number
from calibrant.params.state_kinds import Lists, Maybe, NumberOrNull, Numbers
from calibrant.sample.reader import in_memory
from calibrant.sample.row_keys import position_keys
from calibrant.sample.rows import Rows
from calibrant.sample.sources.memory import MemoryRows
from calibrant.text.sentences import Setting, Text

LEAST_WEIGHT = 1e-100  # squares of smaller weights vanish, and with them their variance


def has_weights(data: Rows) -> bool:
    """Whether rows have importance weights; raise an error if they have a `sample_weight` too."""
    weighted = data.columns.weight is not None
    if weighted and in_memory(data) and data.repeats is not None:
        advice = "repeat the rows, or multiply the weights"
        raise InvalidValueError(
            "sample_weight", "be None with importance_weight", got="both", advice=advice
        )
    return weighted


def checked_bound(
    weights: FloatArray, bound: float | None, name: str = "importance_weight"
) -> float:
    """The bound on the weights, or the largest weight if there is none.

    Raise an error for weights that exceed it.
    """
    if not weights.size or weights.max() < LEAST_WEIGHT:
        got = f"none above {LEAST_WEIGHT:g}"
        advice = "use rows that are similar to the target rows"
        raise InvalidValueError(name, "not be zero in every row", got=got, advice=advice)
    if bound is None:
        return float(weights.max())
    check_rows(weights > bound, weights, name, at_most(bound))
    return float(bound)


def at_most(bound: float) -> Text:
    """The rule for weights that have a bound."""
    return ("be at most ", Setting("weight_bound", f"{bound:g}", python=f"weight_bound={bound:g}"))


def weights_of(rows: MemoryRows) -> FloatArray:
    """The weights of the rows; ones if they have none."""
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def shuffled(binned: Binned, random_state: Seed) -> Entries:
    """The counted rows in random order, because bets must not depend on how rows are sorted."""
    rows = binned.rows.collect()
    regions = binned.partition.membership(rows.prepared)
    source = RandomSource.of(random_state, "order of bets", rows=rows.fingerprint())
    order: IndexArray = source.order(len(rows))
    order = order[regions[order] >= 0]
    weights = weights_of(rows)[order]
    codes = rows.codes[order].astype(np.float64)
    return Entries(regions[order], codes, binned.partition.n_regions, weights)


def kept_rows(rows: MemoryRows, bound: float, random_state: Seed) -> MemoryRows:
    """Each row with probability w / bound: independent draws from the weighted population, if rows
    are independent.

    Rows of groups are drawn by the name of the group and their position in it, others by position.
    The random numbers are those of these rows (see `calibrant.params.random`): with one fixed
    stream of numbers, rows would not be kept at random.
    """
    keys = position_keys(0, len(rows)) if rows.groups is None else rows.groups.member_keys
    source = RandomSource.of(random_state, "kept by weight", rows=rows.fingerprint())
    # a row is kept with a probability proportional to its weight: what is left has the weighted
    # distribution
    uniform = source.uniforms(keys)
    return replace(rows.take(uniform * bound < weights_of(rows)), weights=None)


_SHARE = Number("a number from 0 to 1", 0.0, 1.0)
OF_GROUPS = "Ville's inequality for bets on the sums of whole groups, by Bonferroni over regions"
UNBOUNDED = Caveat(
    (
        Setting("weight_bound"),
        " was not given, and there may be larger weights than the largest seen",
    ),
    "no weight is larger than those seen",
)


_OF_GROUPS: EntryTable = {
    "counted": Integer(0),
    "aside": Integer(0),
    "max_size": Integer(0),
    "target": GROUP_TARGET,
    "design_effect": NumberOrNull(np.nan, Number(low=0.0)),
    "max_weight": Entry(Maybe(Number(low=0.0)), absent=None),
    "fixed": Entry(Flag(), absent=False),
    "above_cap": _SHARE,
    "n_apart": Integer(0),
    "farthest": _SHARE,
}
GROUP_FACTS = Maybe(Record(GroupFacts, _OF_GROUPS))
"""How the facts about groups are saved, if there are any."""


def bets_on_groups(binned: Binned, alpha: float) -> tuple[Entries, Interval, GroupFacts]:
    """What the counted groups of weighted rows have in regions, limits on the rates, and what a
    guarantee has to say about the groups.
    """
    design = binned.design
    if design is None:
        raise InvalidTypeError("groups", "be given", got="None")
    rows = binned.rows.collect()
    regions = binned.partition.membership(rows.prepared)
    units = rows.units.alike() if design.cap is None else rows.units
    n_regions = binned.partition.n_regions
    entries = Entries.of_rows(rows.codes, regions, n_regions, units, design.cap or 1.0)
    limits = mean_limits(entries, alpha, order=design.order, unproved=design.unproved)
    return entries, limits, group_facts(design, rows.n_groups(), entries, limits)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedLimits(Saved):
    """Limits on the weighted rate of each region, which do not follow from a tally, and the bound
    on the weights.

    `bounded` says whether the bound was stated; otherwise it is the largest weight seen. If rows have
    groups, `groups` describes them, and `rows` is the number of independent rows, and of positives
    among them, that would give the rate of each region the same precision.
    """

    _entries: ClassVar[EntryTable] = {
        "limits": Inline(Interval, {"n_regions": "tally.n_regions"}),
        "bound": WEIGHT_BOUND_OF_TALLY,
        "groups": Entry(GROUP_FACTS, absent=None),
        "rows": Entry(Maybe(Lists(Numbers("tally.n_regions", 0.0), size=2)), absent=None),
    }

    limits: Interval
    bound: float
    bounded: bool
    groups: GroupFacts | None = None
    rows: tuple[FloatArray, FloatArray] | None = None

    @classmethod
    def of(cls, binned: Binned, settings: CutParameters, alpha: float) -> Self:
        """Bet on the counted rows, or on the weight sums of whole groups."""
        bound = binned.assumptions.weight_bound
        if binned.design is None:  # the bound also applies to rows that were drawn to cut the bins
            largest = checked_bound(weights_of(binned.whole.collect()), bound)
            evidence = Evidence(binned.tally, largest, rows=shuffled(binned, settings.random_state))
            return cls(betting(evidence, alpha), largest, bound is not None)
        largest = checked_bound(weights_of(binned.rows.collect()), bound)
        entries, limits, facts = bets_on_groups(binned, alpha)
        return cls(limits, largest, bound is not None, facts, entries.effective_rows)

    def statement(self, statement: Statement) -> Statement:
        """The statement about the weighted population."""
        bounded = self.bounded or self.groups is not None  # the weight of a group is capped
        return replace(
            statement,
            theorem=THEOREM,
            population=Population.WEIGHTED,
            weights=ImportanceWeights(known=True, bound=self.bound),
            caveats=statement.caveats if bounded else (*statement.caveats, UNBOUNDED),
        )

    @classmethod
    def _made(cls, values: dict[str, Any], known: Known) -> Self:
        return cls(bounded=known["self"].assumptions_.weight_bound is not None, **values)

    def _check_state(self, known: Known) -> None:
        bound = known["self"].assumptions_.weight_bound
        if bound is not None and bound != self.bound:
            rule = f"be that of the state, {self.bound:g}"
            raise InvalidValueError("weight_bound", rule, got=f"{bound:g}")
        if self.groups is not None and self.rows is None:
            rule = "be the rows and the positives of each region"
            raise InvalidValueError("rows", rule, got="none")


def about_groups(statement: Statement, settings: CutParameters, facts: GroupFacts) -> Statement:
    """The statement about rows of new groups."""
    cut = not settings._is_uniform and not facts.fixed and facts.aside > 0
    return replace(
        statement,
        theorem=OF_GROUPS,
        edges=Edges.OTHER_ROWS if cut else statement.edges,
        groups=facts,
    )


def group_facts(
    design: GroupDesign, n_groups: int, entries: Entries, limits: Interval
) -> GroupFacts:
    """The facts about groups, and how far the rate that counts all rows in full is from the limits."""
    in_full = entries.uncapped_rates
    # the cap matters where the rate without it is ruled out
    apart = (in_full < limits.lower) | (in_full > limits.upper)
    distance = np.abs(in_full - entries.rates)[apart]
    return GroupFacts(
        n_groups,
        design.aside,
        design.max_size,
        design.target,
        entries.design_effect,
        design.max_weight,
        design.fixed,
        entries.above_cap,
        int(apart.sum()) if entries.above_cap > 0.0 else 0,
        float(distance.max(initial=0.0)) if entries.above_cap > 0.0 else 0.0,
    )
