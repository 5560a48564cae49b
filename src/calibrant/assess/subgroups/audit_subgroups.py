"""The audit of subgroups: three questions behind one gate, and an upper bound at its own level."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.assess.metrics.divided_rows import DividedRows
from calibrant.assess.subgroups.bets import all_error_limits, all_score_limits, bet_tests
from calibrant.assess.subgroups.evidence import Expected, positives_of
from calibrant.assess.subgroups.findings import Observed, Proofs, SubgroupFinding, folded
from calibrant.assess.subgroups.how_much import ProvedSize, Tested, proved_sizes, unlike_rates
from calibrant.assess.subgroups.monte_carlo import largest_surprise_p_value
from calibrant.assess.subgroups.result import SubgroupAudit, SubgroupTable
from calibrant.assess.subgroups.upper_bound import all_limits
from calibrant.assess.subgroups.which import proved_off
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.subgroup_family import SubgroupFamily, most_subgroups
from calibrant.guarantee.relative import RARE, relative_limits
from calibrant.limits.interval import Interval
from calibrant.params.attributes import AttributeColumn
from calibrant.params.random import RandomSource
from calibrant.sample.row_keys import position_keys
from calibrant.sample.sources.memory import MemoryRows

WHICH_SHARE = 0.4
SIZE_SHARE = 0.6
RATIO_SHARE = 0.1
"""Share of the upper bound's level that is used for limits on average scores, in a population with
rare events.
"""
_MANY_DRAWS = 999
_FEW_DRAWS = 99
_LARGE = 200_000  # rows from which on fewer draws are made
_ROUNDING = 1e-12

_INDEPENDENT = "labels are independent given scores and attributes"
_IID = "the rows are independent draws from one distribution"
_REFUSED = (
    "With groups or weights, there is no test of whether any subgroup is off, and which one: labels"
    " in a group depend on each other, and weights are about another population. The sizes of errors"
    " and the upper bound are proved."
)


@dataclass(frozen=True, slots=True)
class Question:
    """The settings of a subgroup audit.

    Attributes
    ----------
    order : int
        The largest number of attributes that define a subgroup.
    min_share : float
        The smallest share of rows in a subgroup.
    target : {"rows", "population"}
        Whether sizes are about the rows at hand or the population.
    confidence_level : float
        1 - alpha.
    n_draws : int or None
        Number of label sets to draw; None to choose it by the number of rows.
    """

    order: int = 2
    min_share: float = 0.05
    target: str = "rows"
    confidence_level: float = 0.95
    n_draws: int | None = None

    @property
    def alpha(self) -> float:
        """The probability with which each of the two statements may be wrong."""
        return 1.0 - self.confidence_level

    def draws_for(self, n_rows: int) -> int:
        """The number of label sets to draw: enough for a p-value to reach alpha."""
        if self.n_draws is not None:
            return self.n_draws
        usual = _FEW_DRAWS if n_rows > _LARGE else _MANY_DRAWS
        return max(usual, math.ceil(1.0 / self.alpha) - 1)


def audit_subgroups(
    rows: MemoryRows,
    columns: list[AttributeColumn],
    question: Question,
    *,
    weight_bound: float | None = None,
    max_group_size: int | None = None,
) -> SubgroupAudit:
    """Determine whether any subgroup is off, which, by how much, and by how much at most.

    Claimed, each with probability at least 1 - alpha: what is found is right, and the upper bound
    holds.

    Notes
    -----
    *The gate.* First, a Monte Carlo test at the full alpha of whether any subgroup is off. Only if
    it rejects, the tests of which subgroups are off and the tests of by how much share alpha: 0.4
    and 0.6 of it. If every row's rate is its score, the gate stays shut with probability 1 - alpha.
    Otherwise the gate cannot err by opening, and the tests behind it err with probability at most
    alpha together.

    *Population.* Rows that are not counted cut the attributes, so they fix how many subgroups can
    have enough rows: subgroups of the same attributes are disjoint (`most_subgroups`). Each gets an
    equal part of alpha. Given the number of rows in a subgroup, these rows are independent draws
    from it, so the probability that it has enough rows and its limit is false is at most that part
    times the probability of enough rows. These probabilities add up to at most that number. With
    groups, whose sizes are not given, all combinations of levels share alpha. The candidates tested
    in one half of the rows are searched for among the subgroups with enough rows in the other half.

    *Groups and weights.* Labels within a group are dependent, so the first two questions have no
    exact test. The sizes are then proved at the full alpha, by bets on whole groups, which need no
    gate.
    """
    has_units = rows.groups is not None or rows.weights is not None
    if has_units:
        return _of_population(rows, columns, question, weight_bound, max_group_size, gate=False)
    if question.target == "population":
        return _of_population(rows, columns, question, None, None, gate=True)
    return _of_rows(rows, columns, question)


def _of_rows(rows: MemoryRows, columns: list[AttributeColumn], question: Question) -> SubgroupAudit:
    """Audit the rows at hand: attributes and scores are given, and cut as they are."""
    levels = [AttributeLevels.of(column) for column in columns]
    family = _family(levels, columns, question)
    observed = Observed.of(family, rows.scores, rows.codes.astype(np.float64), np.ones(len(rows)))
    limits = all_limits(family, rows.scores, rows.codes, question.alpha)
    largest = np.maximum(limits.upper - observed.mean_score, observed.mean_score - limits.lower)
    table = subgroup_table(family, observed, limits.lower, limits.upper, largest)
    spread = rows.scores * (1.0 - rows.scores)
    search = _Search(
        family, rows, rows.codes - rows.scores, spread, unlike_rates(rows.scores, rows.codes)
    )
    found = _gated(search, observed, question)
    return replace(found, table=table, upper_bound=_bound(largest), assumptions=(_INDEPENDENT,))


def _of_population(
    rows: MemoryRows,
    columns: list[AttributeColumn],
    question: Question,
    weight_bound: float | None,
    max_group_size: int | None,
    *,
    gate: bool,
) -> SubgroupAudit:
    """Audit the population: a tenth of the rows, or of whole groups, only cuts the attributes."""
    divided = DividedRows.of(rows, weight_bound, max_group_size)
    levels = [AttributeLevels.of(column.take(divided.cutting)) for column in columns]
    counted = [column.take(~divided.cutting) for column in columns]
    family = _family(levels, counted, question)
    others = divided.others
    weights = divided.units.weights(len(others))
    observed = Observed.of(family, others.scores, others.codes.astype(np.float64), weights)
    is_rare = float(divided.rows.scores[divided.cutting].mean()) < RARE
    share = question.min_share if divided.units.unit is None else 0.0
    each = question.alpha / most_subgroups(levels, question.order, share)
    limits, ratios = _population_limits(family, divided, each, is_rare=is_rare)
    largest = np.maximum(limits.upper, -limits.lower)
    lower = np.clip(observed.mean_score + limits.lower, 0.0, 1.0)
    upper = np.clip(observed.mean_score + limits.upper, 0.0, 1.0)
    table = subgroup_table(family, observed, lower, upper, largest)
    surplus = weights * (others.codes - others.scores)
    search = _Search(
        family,
        others,
        surplus,
        np.square(surplus),
        bet_tests(others, divided.units),
        divided.units.unit,
        lambda half: _family(levels, [column.take(half) for column in counted], question),
    )
    found = _gated(search, observed, question) if gate else _ungated(search, observed, question)
    assumed: tuple[str, ...] = (_IID,) if gate else (divided.units.assumption,)
    if divided.units.population:
        assumed += (f"the statements are about the error{divided.units.population}",)
    aside = int(np.count_nonzero(divided.cutting))
    target = "population"
    return replace(
        found,
        table=table,
        upper_bound=_bound(largest),
        assumptions=assumed,
        n_set_aside=aside,
        population_ratios=ratios,
        findings=tuple(
            replace(one, target="population", rate_limit=None) for one in found.findings
        ),
        target=target,
    )


def _family(
    levels: list[AttributeLevels], columns: list[AttributeColumn], question: Question
) -> SubgroupFamily:
    codes = [level.codes(column) for level, column in zip(levels, columns, strict=True)]
    return SubgroupFamily.of(levels, codes, question.order, question.min_share)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """The inputs of the questions: the subgroups, the rows, and how sizes are tested.

    Attributes
    ----------
    surplus, variance : float arrays
        Label minus score, times its weight, and its expected variance; they guide the search.
    tested : Tested
        How a size is tested.
    unit : int array or None
        The group of each row; halves keep groups whole.
    searched_in : function or None
        The family to search in one half of the rows; None for `family`.
    """

    family: SubgroupFamily
    rows: MemoryRows
    surplus: FloatArray
    variance: FloatArray
    tested: Tested
    unit: IndexArray | None = None
    searched_in: Callable[[BoolArray], SubgroupFamily] | None = None

    def first_half(self) -> BoolArray:
        """A random half of the rows, or of whole groups, by position."""
        source = RandomSource.of(0, "halves of subgroups", rows=self.rows.fingerprint())
        unit = np.arange(len(self.rows)) if self.unit is None else self.unit
        bits = source.hashes(position_keys(0, int(unit.max()) + 1)) >> np.uint64(63)
        return np.asarray(bits[unit] == 1)

    def sizes(self, alpha: float) -> list[ProvedSize]:
        """The proved sizes."""
        return proved_sizes(
            self.family,
            self.surplus,
            self.variance,
            self.first_half(),
            alpha,
            self.tested,
            self.searched_in,
        )


def _gated(search: _Search, observed: Observed, question: Question) -> SubgroupAudit:
    """Answer the three questions for independent labels."""
    family = search.family
    rows = search.rows
    tested = _tested(family, rows, question)
    if not tested.is_any_off:
        return tested
    proved = proved_off(family, rows.scores, rows.codes, WHICH_SHARE * question.alpha)
    sizes = search.sizes(SIZE_SHARE * question.alpha)
    strength = Expected.of(family, rows.scores).surprise(positives_of(family, rows.codes))
    proofs = Proofs(proved, sizes, strength, search.surplus, search.variance)
    return replace(tested, findings=folded(family, observed, proofs))


def any_off(rows: MemoryRows, columns: list[AttributeColumn], question: Question) -> SubgroupAudit:
    """Test whether any subgroup is off, and nothing else."""
    levels = [AttributeLevels.of(column) for column in columns]
    tested = _tested(_family(levels, columns, question), rows, question)
    return replace(tested, assumptions=(_INDEPENDENT,))


def _tested(family: SubgroupFamily, rows: MemoryRows, question: Question) -> SubgroupAudit:
    n_draws = question.draws_for(len(rows))
    source = RandomSource.of(0, "labels from scores", rows=rows.fingerprint())
    p_value = largest_surprise_p_value(family, rows.scores, rows.codes, n_draws, source)
    return _result(len(rows), question, (), p_value=p_value, n_draws=n_draws)


def _ungated(search: _Search, observed: Observed, question: Question) -> SubgroupAudit:
    """Prove sizes only, for rows with groups or weights."""
    family = search.family
    sizes = search.sizes(question.alpha)
    spread = np.maximum(family.sums(search.variance), 1e-300)
    strength = np.square(family.sums(search.surplus)) / spread
    nothing = np.zeros(family.n_subgroups, dtype=bool)
    findings = folded(
        family, observed, Proofs(nothing, sizes, strength, search.surplus, search.variance)
    )
    return replace(_result(len(search.rows), question, findings), refused=_REFUSED)


def _result(
    n_rows: int,
    question: Question,
    findings: tuple[SubgroupFinding, ...],
    p_value: float | None = None,
    n_draws: int = 0,
) -> SubgroupAudit:
    nothing = np.zeros(0)
    empty = SubgroupTable(
        (), nothing.astype(int), nothing.astype(int), nothing, nothing, nothing, nothing, nothing
    )
    return SubgroupAudit(
        findings=findings,
        upper_bound=1.0,
        p_value=p_value,
        refused=None,
        table=empty,
        confidence_level=question.confidence_level,
        order=question.order,
        min_share=question.min_share,
        target=question.target,
        n_rows=n_rows,
        n_draws=n_draws,
        n_tested=n_rows if n_draws else 0,
    )


def subgroup_table(
    family: SubgroupFamily,
    observed: Observed,
    lower: FloatArray,
    upper: FloatArray,
    largest: FloatArray,
) -> SubgroupTable:
    """All subgroups, with limits that hold for all of them simultaneously."""
    words = tuple(family.words(number) for number in range(family.n_subgroups))
    means = (observed.mean_score, observed.rate)
    return SubgroupTable(
        words, family.order, family.counts, *means, lower, upper, np.minimum(largest, 1.0)
    )


def _population_limits(
    family: SubgroupFamily, divided: DividedRows, each: float, *, is_rare: bool
) -> tuple[Interval, tuple[float, float] | None]:
    """Limits on the error in every subgroup and, for rare events, on the ratio of rate to score.

    The limits of a subgroup miss with probability at most `each`. Ratios need limits on average
    scores, which use a tenth of it. Rows that are not counted determine whether events are rare.
    """
    if not is_rare:
        return all_error_limits(family, divided.others, divided.units, each), None
    averages = all_score_limits(family, divided.others, divided.units, RATIO_SHARE * each)
    left = (1.0 - RATIO_SHARE) * each
    errors = all_error_limits(family, divided.others, divided.units, left)
    lower = np.clip(averages.lower + errors.lower, 0.0, 1.0)
    upper = np.clip(averages.upper + errors.upper, 0.0, 1.0)
    ratios = relative_limits(Interval(lower, upper), averages, errors)
    return errors, (float(ratios.lower.min()), float(ratios.upper.max()))


def _bound(largest: FloatArray) -> float:
    return min(1.0, float(largest.max()) + _ROUNDING)
