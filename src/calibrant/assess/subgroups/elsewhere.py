"""Subgroups of rows that are not in memory: in files, in DuckDB, Polars, Dask or Spark.

A random sample of a million rows cuts the attributes and tests whether any subgroup is off. Then
one pass counts all rows by attributes and a fine cell of the score; that answers which, by how
much, and by how much at most.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray, IntArray
from calibrant.assess.metrics.bin_sums import read_forecasts
from calibrant.assess.subgroups.audit_subgroups import (
    SIZE_SHARE,
    WHICH_SHARE,
    Question,
    any_off,
    subgroup_table,
)
from calibrant.assess.subgroups.evidence import Expected
from calibrant.assess.subgroups.findings import Observed, Proofs, SubgroupFinding, folded
from calibrant.assess.subgroups.how_much import Tested, proved_sizes
from calibrant.assess.subgroups.result import SubgroupAudit
from calibrant.assess.subgroups.upper_bound import subgroup_tails
from calibrant.assess.subgroups.which import ScoreSums, marked_subgroups
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.keyed_sums import KeyedSums
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.non_identical import non_identical
from calibrant.params.attributes import AttributeColumn, read_attributes
from calibrant.params.labels import settle_classes
from calibrant.params.random import RandomSource
from calibrant.sample.columns import table_of
from calibrant.sample.cross_counts import (
    VARIANCE_STEPS,
    CountCross,
    CrossCounts,
    CrossKey,
    PlaceDraw,
    joined_sums,
    score_sums,
)
from calibrant.sample.reader import in_memory, rows_in
from calibrant.sample.rows import Rows

MOST_IN_MEMORY = 1_000_000
"""With more rows, a random sample tests whether any subgroup is off."""
_ROUNDING = 1e-9


def rows_elsewhere(data: object, question: Question) -> tuple[Rows, int] | None:
    """The rows and their number, if there are too many for memory and counts can answer the
    question.

    None otherwise.
    """
    rows = rows_in(data)
    if rows is None or in_memory(rows) or question.target != "rows":
        return None
    if rows.columns.weight is not None or rows.columns.group is not None:
        return None
    known = rows.known_rows()
    n_rows = sum(rows.sizes().values()) if known is None else known
    return (rows, n_rows) if n_rows > MOST_IN_MEMORY else None


def audit_subgroups_elsewhere(
    data: Rows, n_rows: int, names: list[str], question: Question, **labels: Any
) -> SubgroupAudit:
    """Audit subgroups as in `audit_subgroups`, for rows in an engine or in files; `labels` are the
    classes and the positive one, if known.
    """
    rows, columns = _drawn(data, n_rows, names)
    sample = read_forecasts(rows, None, **labels)
    tested = any_off(sample, columns, question)
    levels = [AttributeLevels.of(column) for column in columns]
    pairs = zip(levels, columns, strict=True)
    kept = tuple(_without_rare(level, column, question.min_share) for level, column in pairs)
    key = CrossKey(kept)
    counted = data.fold(CountCross(data.columns, key))
    counted.faults.check()
    cells = CrossCells.of(counted, key, question, **labels)
    return cells.audited(tested, question)


def _without_rare(
    level: AttributeLevels, column: AttributeColumn, min_share: float
) -> AttributeLevels:
    """An attribute without its very rare values, which cannot form a subgroup.

    A value that at least `min_share` of all rows have is left out with probability below 1e-8: the
    rows at hand are a random sample, and the value's count would have to be six standard deviations
    below its expectation.
    """
    if level.is_numeric or column.place is None:
        return level
    counts = np.bincount(column.place[column.place >= 0], minlength=len(column.values))
    enough = counts + 6.0 * np.sqrt(counts) + 20.0 >= min_share * len(column)
    pairs = zip(column.values, enough.tolist(), strict=True)
    frequent = {value for value, is_frequent in pairs if is_frequent}
    return replace(level, values=tuple(value for value in level.values if value in frequent))


def _drawn(data: Rows, n_rows: int, names: list[str]) -> tuple[Rows, list[AttributeColumn]]:
    """About a million random rows, in memory, and their attributes."""
    from calibrant.sample.sources.arrow import from_arrow

    share = MOST_IN_MEMORY / n_rows
    source = RandomSource.of(0, "rows that test subgroups", rows=n_rows)
    draw = PlaceDraw.of_share(share, source.key) if share < 1.0 else None
    columns = data.columns.only("label")
    wanted = {name: role for role, name in columns.named.items()}
    table = table_of(data, wanted | dict.fromkeys(names, "attribute"), draw)
    rows = from_arrow(table, columns, threads=1, progress=False)
    attributes = read_attributes({name: table.column(name) for name in names}, table.num_rows)
    return rows, attributes


@dataclass(frozen=True, slots=True, eq=False)
class CrossCells:
    """All rows, aggregated into entries with equal attributes, score cell and half.

    Attributes
    ----------
    family : SubgroupFamily
        Subgroups of the entries, each of which stands for several rows.
    rows, positives, totals, variances : float arrays
        Rows and positive rows of each entry, and the sums of s and of s (1 - s) over the scores s
        of its rows.
    cell, half : int arrays
        The cell of the score, and the half.
    """

    family: SubgroupFamily
    rows: FloatArray
    positives: FloatArray
    totals: FloatArray
    variances: FloatArray
    cell: IndexArray
    half: IndexArray

    @classmethod
    def of(cls, counted: CrossCounts, key: CrossKey, question: Question, **labels: Any) -> Self:
        """Combine the counts of both labels."""
        sums = {label: joined_sums(parts) for label, parts in counted.parts.items()}
        seen = {label: int(part.sums[:, 0].sum()) for label, part in sums.items()}
        known = settle_classes(seen, **labels)
        keys = [part.key for part in sums.values()]
        values = [
            np.column_stack([part.sums, _hits(part, label == known.positive)])
            for label, part in sums.items()
        ]
        whole = KeyedSums.of(np.concatenate(keys), np.concatenate(values))
        n, high, low, variance, hits = whole.sums.T
        rows = n.astype(np.float64)
        codes, cell, half = key.parts(whole.key)
        family = SubgroupFamily.of(key.levels, codes, question.order, question.min_share, rows)
        return cls(
            family,
            rows,
            hits.astype(np.float64),
            score_sums(high, low),
            variance / VARIANCE_STEPS,
            cell,
            half,
        )

    def audited(self, tested: SubgroupAudit, question: Question) -> SubgroupAudit:
        """The audit of all rows, behind the gate of the `tested` rows."""
        family = self.family
        expected = self._expected()
        positives = family.sums(self.positives)
        observed = Observed.of(
            family, self.totals / self.rows, self.positives / self.rows, self.rows
        )
        limits = non_identical(
            family.counts, positives, subgroup_tails(family, expected, question.alpha)
        )
        largest = (
            np.maximum(limits.upper - observed.mean_score, observed.mean_score - limits.lower)
            + _ROUNDING
        )
        findings: tuple[SubgroupFinding, ...] = ()
        if tested.is_any_off:
            sums = ScoreSums.of(family, self.cell, self.rows, self.totals)
            which = marked_subgroups(
                family, expected, positives, sums, WHICH_SHARE * question.alpha
            )
            surplus = self.positives - self.totals
            first = np.asarray(self.half == 0)
            alpha = SIZE_SHARE * question.alpha
            sizes = proved_sizes(family, surplus, self.variances, first, alpha, self._tests())
            strength = expected.surprise(positives)
            findings = folded(
                family, observed, Proofs(which, sizes, strength, surplus, self.variances)
            )
        return replace(
            tested,
            findings=findings,
            upper_bound=min(1.0, float(largest.max())),
            table=subgroup_table(family, observed, limits.lower, limits.upper, largest),
            n_rows=int(self.rows.sum()),
        )

    def _expected(self) -> Expected:
        family = self.family
        mean = self.totals / self.rows
        variance = family.sums(self.variances)
        third = family.sums(self.variances * (1.0 - 2.0 * mean))
        skew = np.divide(third, variance, out=np.zeros(variance.size), where=variance > 0.0)
        return Expected(family.sums(self.totals), variance, np.clip(skew, -1.0, 1.0))

    def _tests(self) -> Tested:
        """Tests of the mean rate of rows, from their counts."""

        def tested(entries: BoolArray, tail: float, too_low: bool) -> tuple[float, float]:
            count = float(self.rows[entries].sum())
            limits = non_identical(count, float(self.positives[entries].sum()), tail)
            mean = float(self.totals[entries].sum()) / count
            rounded = mean + _ROUNDING if too_low else mean - _ROUNDING
            return rounded, float(limits.lower if too_low else limits.upper)

        return tested


def _hits(part: KeyedSums, is_positive: bool) -> IntArray:
    """The number of positive rows in each entry: all, or none."""
    return part.sums[:, 0] if is_positive else np.zeros(part.key.size, dtype=np.int64)
