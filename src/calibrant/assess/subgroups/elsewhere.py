"""Subgroups of rows that are not in memory: in files, in DuckDB, Polars, Dask or Spark.

A random draw of a million rows cuts the attributes and tests whether any subgroup is off. Then one
pass counts all rows by attributes and a fine cell of the score; that answers which, by how much,
and by how much at most.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray, IndexArray
from calibrant.assess.metrics.bin_sums import read_forecasts
from calibrant.assess.subgroups.audit_subgroups import (
    SIZE_SHARE,
    WHICH_SHARE,
    Question,
    audit_subgroups,
    subgroup_table,
)
from calibrant.assess.subgroups.evidence import Expected
from calibrant.assess.subgroups.findings import Observed, Proofs, SubgroupFinding, folded
from calibrant.assess.subgroups.how_much import Tested, proved_sizes
from calibrant.assess.subgroups.result import SubgroupAudit
from calibrant.assess.subgroups.upper_bound import subgroup_tails
from calibrant.assess.subgroups.which import N_KINDS, ScoreSums, kinds_of, marked_subgroups
from calibrant.cells.attribute_levels import AttributeLevels
from calibrant.cells.subgroup_family import SubgroupFamily
from calibrant.limits.non_identical import non_identical
from calibrant.params.attributes import read_attributes
from calibrant.params.labels import settle_classes
from calibrant.sample.cross_counts import CountCross, CrossCounts, CrossSums, TakeDrawn, joined_sums
from calibrant.sample.kinds import in_memory, is_scored
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows

MOST_IN_MEMORY = 1_000_000
"""Of more rows, a random draw tests whether any subgroup is off."""
_ROUNDING = 1e-9


def is_elsewhere(data: object, question: Question) -> bool:
    """Whether there are more rows than are brought into memory, and the question is one for counts."""
    if not is_scored(data) or in_memory(data) or question.target != "rows":
        return False
    if data.columns.weight is not None or data.columns.group is not None:
        return False
    known = data.known_rows()
    return (sum(data.sizes().values()) if known is None else known) > MOST_IN_MEMORY


def audit_subgroups_elsewhere(
    data: Sample, names: list[str], question: Question, pos_label: Hashable, classes: Any
) -> SubgroupAudit:
    """As `audit_subgroups`, for the rows of an engine or of files."""
    sample, columns = _drawn(data, names, pos_label, classes)
    levels = tuple(AttributeLevels.of(column) for column in columns)
    tested = audit_subgroups(sample, columns, question)
    work = CountCross(data.columns, levels, N_KINDS, kinds_of)
    counted = data.fold(work)
    counted.faults.check()
    cells = CrossCells.of(counted, work.sizes, levels, question, pos_label, classes)
    return cells.audited(tested, question)


def _drawn(
    data: Sample, names: list[str], pos_label: Hashable, classes: Any
) -> tuple[MemoryRows, list[Any]]:
    """About a million rows drawn at random, in memory, and their attributes."""
    import pyarrow as pa

    from calibrant.sample.sources.arrow import from_arrow

    n_rows = sum(data.sizes().values())
    draw = data.draw(MOST_IN_MEMORY / n_rows, 0) if n_rows > MOST_IN_MEMORY else None
    pieces = data.fold(TakeDrawn(data.columns, draw, tuple(names)))
    table = pa.Table.from_batches(
        [batch for _, batch in sorted(pieces, key=lambda piece: piece[0])]
    )
    if data.columns.pending is not None:
        table = table.filter(pa.compute.is_valid(table.column(data.columns.pending)))
    rows = from_arrow(table, data.columns.only("label"), threads=1, progress=False)
    columns = read_attributes({name: table.column(name) for name in names}, table.num_rows)
    return read_forecasts(rows, None, pos_label, classes), columns


@dataclass(frozen=True, slots=True, eq=False)
class CrossCells:
    """All rows as entries with equal attributes, cells of the score and halves.

    Attributes
    ----------
    family : SubgroupFamily
        Subgroups of the entries, which stand for several rows each.
    rows, positives, totals, variances : float arrays
        Rows of each entry, positive ones, and the sums of s and of s (1 - s) over the scores s of
        its rows.
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
    def of(
        cls,
        counted: CrossCounts,
        sizes: tuple[int, ...],
        levels: tuple[AttributeLevels, ...],
        question: Question,
        pos_label: Hashable,
        classes: Any,
    ) -> Self:
        """Put the counts of both labels together."""
        sums = {label: joined_sums(parts) for label, parts in counted.parts.items()}
        seen = {label: int(part.values[:, 0].sum()) for label, part in sums.items()}
        known = settle_classes(seen, classes=classes, pos_label=pos_label)
        keys = [part.key for part in sums.values()]
        values = [
            np.column_stack([part.values, _hits(part, label == known.positive)])
            for label, part in sums.items()
        ]
        whole = CrossSums.of(np.concatenate(keys), np.concatenate(values))
        *codes, cell, half = np.unravel_index(whole.key, sizes)
        own = [
            np.where(code == level.n_levels, -1, code)
            for code, level in zip(codes, levels, strict=True)
        ]
        rows, totals, variances, positives = whole.values.T
        family = SubgroupFamily.of(levels, own, question.order, question.min_share, rows)
        return cls(family, rows, positives, totals, variances, cell, half)

    def audited(self, tested: SubgroupAudit, question: Question) -> SubgroupAudit:
        """The audit of all rows, behind the gate of the rows that were `tested`."""
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


def _hits(part: CrossSums, is_positive: bool) -> FloatArray:
    """How many rows of each entry are positive: all, or none."""
    return part.values[:, 0] if is_positive else np.zeros(part.key.size)
