"""Rows that count differently: limits by bets on weighted rows, and rows of the population that weights describe."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

import numpy as np

from calibrant._input import check_rows
from calibrant._params import Choice, Flag, Integer, Number, as_generator, check_state
from calibrant._state import read_counts, read_limits, read_numbers
from calibrant._text import Setting, Text, shown
from calibrant._typing import FloatArray, IndexArray, IntArray, Seed
from calibrant.calibrators._bins import Binned
from calibrant.errors import InvalidValueError
from calibrant.guarantee import Caveat, ImportanceWeights, Population, Statement
from calibrant.guarantee.statement import GroupFacts
from calibrant.intervals import Interval
from calibrant.intervals.group_sums import TARGETS
from calibrant.intervals.shift import Evidence, WeightedRows, get_shift_method
from calibrant.rows import ScoredData
from calibrant.rows.draw import seed_of
from calibrant.rows.memory import MemoryRows
from calibrant.tally import Tally

NOTHING = 1e-100  # squares of smaller weights vanish, and with them their variance
UNBOUNDED = Caveat(
    (Setting("weight_bound"), " was not given, and there may be larger weights than the largest seen"),
    "no weight is larger than those seen",
)


def has_weights(data: ScoredData) -> bool:
    """Whether rows have importance weights; raise if they have a `sample_weight` too."""
    weighted = data.columns.weight is not None
    if weighted and isinstance(data, MemoryRows) and data.repeats is not None:
        advice = "repeat the rows, or multiply the weights"
        raise InvalidValueError("sample_weight", "be None with importance_weight", got="both", advice=advice)
    return weighted


def checked_bound(weights: FloatArray, bound: float | None, name: str = "importance_weight") -> float:
    """The bound of the weights, or the largest weight without a bound; raise for weights that break it."""
    if not weights.size or weights.max() < NOTHING:
        got, advice = f"none above {NOTHING:g}", "use rows like those of the target"
        raise InvalidValueError(name, "not be zero in every row", got=got, advice=advice)
    if bound is None:
        return float(weights.max())
    check_rows(weights > bound, weights, name, at_most(bound))
    return float(bound)


def at_most(bound: float) -> Text:
    """The rule for weights that have a bound."""
    return ("be at most ", Setting("weight_bound", f"{bound:g}", python=f"weight_bound={bound:g}"))


@dataclass(frozen=True, slots=True, eq=False)
class WeightedLimits:
    """Limits of the weighted rate of each region, which do not follow from a tally, and the bound of the weights.

    `kept` is the number of rows of each region in `kept_rows`, for a curve whose average is taken over them. If rows
    have groups, `groups` describes them, `rows` is the number of independent rows, and of positives among them,
    that would give the rate of each region with the same precision, and `distance` bounds how far the rows, as the
    average of a curve counts them, are from the population.
    """

    limits: Interval
    bound: float
    bounded: bool
    kept: IntArray | None = None
    groups: GroupFacts | None = None
    rows: tuple[FloatArray, FloatArray] | None = None
    distance: FloatArray | None = None

    @classmethod
    def of(cls, data: MemoryRows, binned: Binned, bound: float | None, random_state: Seed, alpha: float) -> Self:
        """Bet on the counted rows; `data` has those too that were drawn to cut the bins."""
        largest = checked_bound(weights_of(data), bound)
        evidence = Evidence(binned.tally, largest, rows=shuffled(binned, random_state))
        return cls(get_shift_method("betting")(evidence, alpha), largest, bound is not None)

    def said(self, statement: Statement) -> Statement:
        """The statement about the weighted population."""
        return replace(
            statement,
            theorem=get_shift_method("betting").theorem,
            population=Population.WEIGHTED,
            weights=ImportanceWeights(known=True, bound=self.bound, in_order=True),
            caveats=statement.caveats if self.bounded else (*statement.caveats, UNBOUNDED),
        )

    def to_dict(self) -> dict[str, Any]:
        """The limits as plain JSON values."""
        limits = {"lower": self.limits.lower.tolist(), "upper": self.limits.upper.tolist(), "bound": self.bound}
        groups = {} if self.groups is None else {"groups": asdict(self.groups)}
        rows = {} if self.rows is None else {"rows": [column.tolist() for column in self.rows]}
        of_curve = {"kept": self.kept, "distance": self.distance}
        return {**limits, **groups, **rows} | {name: of.tolist() for name, of in of_curve.items() if of is not None}

    @classmethod
    def from_dict(cls, state: Any, tally: Tally, bound: float | None) -> Self:
        """Read back what `to_dict` wrote; `bound` is the parameter."""
        check_state(state, ("lower", "upper", "bound"))
        kept = None if state.get("kept") is None else read_counts(state["kept"], "kept", size=tally.n_regions)
        if kept is not None and (kept > tally.counts).any():
            raise InvalidValueError("kept", "be at most the rows of each region", got=shown(state["kept"]))
        largest = Evidence(tally, state["bound"]).weight_bound  # which checks it
        if bound is not None and bound != largest:
            raise InvalidValueError("weight_bound", f"be that of the state, {largest:g}", got=f"{bound:g}")
        limits = Interval(*read_limits(state["lower"], state["upper"], tally.n_regions))
        if state.get("groups") is None:
            return cls(limits, largest, bound is not None, kept)
        check_state(state, ("rows",))
        if not isinstance(state["rows"], list | tuple) or len(state["rows"]) != 2:
            raise InvalidValueError("rows", "be the rows and the positives of each region", got=shown(state["rows"]))
        rows, positives = (read_numbers(column, "rows", size=tally.n_regions, low=0.0) for column in state["rows"])
        found, size = state.get("distance"), tally.n_regions
        distance = None if found is None else read_numbers(found, "distance", size=size, low=0.0, high=1.0)
        return cls(limits, largest, True, kept, read_group_facts(state["groups"]), (rows, positives), distance)


def read_group_facts(state: Any) -> GroupFacts:
    """What a state says of weighted groups."""
    check_state(state, [entry.name for entry in fields(GroupFacts) if entry.name != "fixed"])
    n_groups, aside, size = (Integer(0).check(name, state[name]) for name in ("counted", "aside", "max_size"))
    effect, most = (Number(low=0.0).check(name, state[name]) for name in ("design_effect", "max_weight"))
    fixed = Flag().check("fixed", state.get("fixed", False))
    return GroupFacts(n_groups, aside, size, Choice(TARGETS).check("target", state["target"]), effect, most, fixed)


def saved_limits(state: Mapping[str, Any], tally: Tally, bound: float | None) -> WeightedLimits | None:
    """The limits of weighted rows in a state; None for rows without weights."""
    if tally.weights is None:
        return None
    check_state(state, ("weighted",))
    return WeightedLimits.from_dict(state["weighted"], tally, bound)


def weights_of(rows: MemoryRows) -> FloatArray:
    """The weights of rows that have them."""
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def shuffled(binned: Binned, random_state: Seed) -> WeightedRows:
    """The rows that count, in random order, because bets must not depend on their order."""
    rows = binned.rows.collect()
    regions = binned.partition.membership(rows.prepared)
    order: IndexArray = as_generator(random_state).permutation(len(rows))
    order = order[regions[order] >= 0]
    return WeightedRows(regions[order], weights_of(rows)[order], rows.codes[order], binned.partition.n_regions)


def kept_rows(rows: MemoryRows, bound: float, random_state: Seed) -> MemoryRows:
    """Each row with probability w / bound: independent draws from the weighted population, if rows are.

    Rows of groups are drawn by the names of groups, so that the order of the rows does not matter.
    """
    if rows.groups is None:
        uniform = as_generator(random_state).random(len(rows))
    else:
        uniform = (rows.groups.row_hashes(seed_of(random_state)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return replace(rows.take(uniform * bound < weights_of(rows)), weights=None)


def rounded_rows(rows: MemoryRows, random_state: Seed) -> MemoryRows:
    """Each row as often as its weight says, up to one row more or less at random.

    There are as many as independent rows with the same precision: the sum of the weights is scaled to
    (sum of w)^2 / (sum of w^2) rows (Kish 1965), and equal weights to one row each.
    """
    weights = weights_of(rows)
    scaled = weights * (weights.sum() / np.square(weights).sum())
    times = np.floor(scaled * (1.0 + 1e-12) + as_generator(random_state).random(len(rows))).astype(np.int64)
    return replace(rows, weights=None, repeats=times).without_empty()
