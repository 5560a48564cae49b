"""The audit of subgroups: a test, two questions that depend on it, and an upper bound with its own
error budget.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.assess.metrics.independent_units import DividedRows
from calibrant.assess.subgroups.entries import SubgroupEntries, largest_surprise_p_value, proved_off
from calibrant.assess.subgroups.findings import (
    SubgroupFinding,
    Tested,
    all_limits,
    bet_tests,
    folded,
    proved_sizes,
    rate_tests,
)
from calibrant.assess.subgroups.result import SubgroupAudit, SubgroupTable
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.subgroup_family import SubgroupFamily, most_subgroups
from calibrant.limits.interval import Interval
from calibrant.params.attributes import AttributeColumn
from calibrant.params.random import RandomSource
from calibrant.sample.row_keys import position_keys
from calibrant.sample.sources.memory import MemoryRows

WHICH_SHARE = 0.4
SIZE_SHARE = 0.6
_MANY_DRAWS = 999
_FEW_DRAWS = 99
_LARGE = 200_000  # rows from which on fewer draws are made
_ROUNDING = 1e-12

_INDEPENDENT = "labels are independent given scores and attributes"


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

    def rejects(self, p_value: float) -> bool:
        """Whether it is shown that some subgroup is off."""
        return p_value <= self.alpha + _ROUNDING

    def family(
        self, levels: list[AttributeLevels], columns: list[AttributeColumn]
    ) -> SubgroupFamily:
        """The subgroups of rows with these attributes."""
        codes = [level.codes(column) for level, column in zip(levels, columns, strict=True)]
        return SubgroupFamily.of(levels, codes, self.order, self.min_share)

    def draws_for(self, n_rows: int) -> int:
        """The number of label sets to draw: enough for a p-value to reach alpha."""
        if self.n_draws is not None:
            return self.n_draws
        usual = _FEW_DRAWS if n_rows > _LARGE else _MANY_DRAWS
        return max(usual, math.ceil(1.0 / self.alpha) - 1)


def audit_subgroups(
    rows: MemoryRows, columns: list[AttributeColumn], question: Question
) -> SubgroupAudit:
    """Test whether any subgroup is miscalibrated, name those that are, and bound their errors from
    below and above.

    Guarantee, each with probability at least 1 - alpha: what is found is right, and the upper bound
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
    exact test. The sizes are then shown at the full alpha, by bets on whole groups, which need no
    gate.
    """
    if rows.groups is not None or rows.weights is not None or question.target == "population":
        return _of_population(DividedRows.of(rows), columns, question)
    levels = [AttributeLevels.of(column) for column in columns]
    family = question.family(levels, columns)
    entries = SubgroupEntries.of_rows(family, rows.scores, rows.codes)
    p_value = gate(entries, question, rows)
    return audit_entries(entries, _first_half(rows), question, p_value, len(rows))


def audit_entries(
    entries: SubgroupEntries, first: BoolArray, question: Question, p_value: float, n_tested: int
) -> SubgroupAudit:
    """Audit the rows at hand: attributes and scores are given, and cut as they are.

    The p-value is that of the gate, for `n_tested` of these rows; `first` says which entries are in
    the first half.
    """
    limits = entries.rate_limits(question.alpha)
    mean_score, _ = entries.averages()
    return _audited(
        entries,
        question,
        p_value,
        Interval(
            limits.lower - mean_score - entries.rounding,
            limits.upper - mean_score + entries.rounding,
        ),
        first,
        entries.variances,
        rate_tests(entries),
        n_draws=question.draws_for(n_tested),
        n_tested=n_tested,
        n_rows=int(entries.rows.sum()),
        assumptions=(_INDEPENDENT,),
    )


def _of_population(
    divided: DividedRows, columns: list[AttributeColumn], question: Question
) -> SubgroupAudit:
    """Audit the population: a tenth of the rows, or of whole groups, only determines the cut points
    of the attributes.
    """
    rows = divided.others
    units = divided.units
    levels = [AttributeLevels.of(column.take(divided.cutting)) for column in columns]
    counted = [column.take(~divided.cutting) for column in columns]
    weights = units.weights(len(rows))
    family = question.family(levels, counted)
    entries = SubgroupEntries.of_rows(family, rows.scores, rows.codes, weights)
    share = 0.0 if units.grouped else question.min_share
    each = question.alpha / most_subgroups(levels, question.order, share)
    errors = all_limits(family, rows.codes - rows.scores, units, each)
    p_value = None
    facts: dict[str, Any] = {}
    if units.row_weights is None:
        p_value = gate(entries, question, rows)
        facts = {"n_draws": question.draws_for(len(rows)), "n_tested": len(rows)}
    assumed = [units.assumption]
    if units.stated_population:
        assumed.append(f"the statements are about the error{units.stated_population}")
    return _audited(
        entries,
        replace(question, target="population"),
        p_value,
        errors,
        _first_half(rows, None if units.of_rows is None else units.of_rows.unit),
        np.square(entries.surplus),
        bet_tests(rows, units),
        lambda half: question.family(levels, [column.take(half) for column in counted]),
        n_rows=len(rows),
        assumptions=tuple(assumed),
        n_set_aside=int(np.count_nonzero(divided.cutting)),
        **facts,
    )


def gate(entries: SubgroupEntries, question: Question, rows: MemoryRows) -> float:
    """The p-value of the test whether any subgroup of these single rows is off."""
    source = RandomSource.of(0, "labels from scores", rows=rows.fingerprint())
    return largest_surprise_p_value(entries, question.draws_for(len(rows)), source)


def _first_half(rows: MemoryRows, unit: IndexArray | None = None) -> BoolArray:
    """A random half of the rows, or of whole groups, by position."""
    source = RandomSource.of(0, "halves of subgroups", rows=rows.fingerprint())
    unit = np.arange(len(rows)) if unit is None else unit
    bits = source.hashes(position_keys(0, int(unit.max()) + 1)) >> np.uint64(63)
    return np.asarray(bits[unit] == 1)


def _audited(
    entries: SubgroupEntries,
    question: Question,
    p_value: float | None,
    errors: Interval,
    first: BoolArray,
    variance: FloatArray,
    tests: Tested,
    searched_in: Callable[[BoolArray], SubgroupFamily] | None = None,
    **facts: Any,
) -> SubgroupAudit:
    """The result: which subgroups are off and by how much, if the gate opens, and limits on
    the mean rate minus score of all subgroups simultaneously.

    Without a `p_value` there is no gate, and only the sizes are shown, at the full alpha.
    `variance` is the expected variance of each entry's label minus score; it guides the search.
    """
    family = entries.family
    findings: tuple[SubgroupFinding, ...] = ()
    if p_value is None or question.rejects(p_value):
        alpha = question.alpha * (1.0 if p_value is None else SIZE_SHARE)
        sizes = proved_sizes(family, entries.surplus, variance, first, alpha, tests, searched_in)
        if p_value is None:
            which = np.zeros(family.n_subgroups, dtype=bool)
            spread = np.maximum(family.sums(variance), 1e-300)
            strength = np.square(family.sums(entries.surplus)) / spread
        else:
            which = proved_off(entries, WHICH_SHARE * question.alpha)
            strength = entries.expected().surprise(entries.n_positive)
        findings = folded(entries, which, sizes, strength, variance, question.target)
    mean_score, rate = entries.averages()
    largest = np.minimum(np.maximum(errors.upper, -errors.lower), 1.0)
    table = SubgroupTable(
        tuple(family.words(number) for number in range(family.n_subgroups)),
        family.order,
        family.counts,
        mean_score,
        rate,
        np.clip(mean_score + errors.lower, 0.0, 1.0),
        np.clip(mean_score + errors.upper, 0.0, 1.0),
        largest,
    )
    return SubgroupAudit(
        findings=findings,
        upper_bound=min(1.0, float(largest.max()) + _ROUNDING),
        p_value=p_value,
        table=table,
        confidence_level=question.confidence_level,
        order=question.order,
        min_share=question.min_share,
        target=question.target,
        **facts,
    )
