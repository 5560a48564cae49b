"""Sums of units in regions: what every limit for grouped or weighted rows is computed from.

They are made from whole numbers (`calibrant.cells.group_counts`), which engines compute and files
store, or from rows in memory (`calibrant.cells.units`).
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IndexArray, IntArray
from calibrant.cells.tally import Tally
from calibrant.cells.units import Counting, UnitCells
from calibrant.errors import InvalidTypeError


@dataclass(frozen=True, slots=True, eq=False)
class UnitSums:
    """Weights and rates of units in regions; equal units are one entry.

    Attributes
    ----------
    region : int array
        Region of each entry.
    weight : float array
        Weight of each group in the entry, at most `bound`.
    rate : float array
        Share of positives of each group in the entry.
    number : int array
        Groups.
    row_weight : float array
        Weight of each row of the entry's groups.
    n_regions : int
        The number of regions.
    bound : float
        An upper bound on the weights.
    uncapped : float array
        Weight of each group in the entry without the cap.
    """

    region: IndexArray
    weight: FloatArray
    rate: FloatArray
    number: IntArray
    row_weight: FloatArray
    n_regions: int
    bound: float
    uncapped: FloatArray

    @classmethod
    def of(cls, tally: Tally, counting: Counting) -> Self:
        """The sums of the groups that a tally counts."""
        table = tally.groups
        if table is None:
            raise InvalidTypeError("tally", "count groups", got="rows only")
        rows = table.rows.astype(np.float64)
        if counting.by_group and not table.size.all():
            raise InvalidTypeError(
                "tally", "know the sizes of groups", got="rows and positives only"
            )
        uncapped = rows / table.size if counting.by_group else rows
        bound = counting.bound
        weight = np.minimum(uncapped, bound)
        rate = table.positives / rows
        counted = (table.number, weight / rows, tally.n_regions)
        return cls(table.region, weight, rate, *counted, bound, uncapped)

    @classmethod
    def of_cells(
        cls, cells: UnitCells, codes: CodeArray, n_regions: int, counting: Counting
    ) -> Self:
        """The sums of units in cells, which are the regions; `codes` are the labels of all rows."""
        uncapped = cells.uncapped(by_group=counting.by_group)
        weight = np.minimum(uncapped, counting.bound)
        rate = np.minimum(cells.sums(codes[cells.rows]) / cells.total, 1.0)
        number = np.ones(weight.size, dtype=np.int64)
        counted = (number, weight / cells.n_rows, n_regions)
        return cls(cells.cell, weight, rate, *counted, counting.bound, uncapped)

    def with_cap(self, bound: float) -> Self:
        """The same units, counted with another cap."""
        weight = np.minimum(self.uncapped, bound)
        row_weight = self.row_weight * (weight / self.weight)
        return replace(self, weight=weight, row_weight=row_weight, bound=bound)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over the groups of each region."""
        return np.bincount(self.region, self.number * values, minlength=self.n_regions).astype(
            np.float64
        )

    @property
    def above_cap(self) -> float:
        """The share of rows, or of their importance weight, beyond the cap of their groups."""
        whole = float((self.number * self.uncapped).sum())
        return 1.0 - float((self.number * self.weight).sum()) / whole if whole > 0.0 else 0.0

    @property
    def uncapped_rates(self) -> FloatArray:
        """The rate of each region if every group counted in full; NaN for a region without rows."""
        total = self.sums(self.uncapped)
        rates = np.full(self.n_regions, np.nan)
        np.divide(self.sums(self.uncapped * self.rate), total, out=rates, where=total > 0.0)
        return rates

    @property
    def n_groups(self) -> IntArray:
        """Number of groups with rows in each region."""
        return np.bincount(self.region, self.number, minlength=self.n_regions).astype(np.int64)

    @property
    def rates(self) -> FloatArray:
        """The weighted rate of each region; NaN for a region without rows."""
        total = self.sums(self.weight)
        rates = np.full(self.n_regions, np.nan)
        np.divide(self.sums(self.weight * self.rate), total, out=rates, where=total > 0.0)
        return rates

    @property
    def _variances(self) -> FloatArray:
        """Sums of w² (y - rate)² over groups, which estimate the variance of a region's weighted
        sum.
        """
        return self.sums(np.square(self.weight * (self.rate - self.rates[self.region])))

    @property
    def _rows(self) -> FloatArray:
        """The number of rows that would count as much as those of each region."""
        return self.sums(self.weight * self.row_weight)

    @property
    def design_effect(self) -> float:
        """The ratio of the variances to those of the same number of independent rows.

        NaN without rows.

        Over all regions: the sum of the squared deviations of groups over the sum of N p (1 - p),
        where N is the number of rows that would count as much.
        """
        rates = np.nan_to_num(self.rates)
        alone = float((self._rows * rates * (1.0 - rates)).sum())
        return float(self._variances.sum()) / alone if alone > 0.0 else float("nan")

    @property
    def telling(self) -> tuple[FloatArray, FloatArray]:
        """The number of independent rows that would give each rate the same precision, and the
        number of positives among them.
        """
        total = self.sums(self.weight)
        rates = np.nan_to_num(self.rates)
        rows = self._rows
        variances = self._variances
        alike = np.divide(total**2, rows, out=np.zeros(self.n_regions), where=rows > 0.0)
        told = np.divide(
            total**2 * rates * (1.0 - rates), variances, out=alike.copy(), where=variances > 0.0
        )
        effective = np.minimum(told, alike)  # at most the number of rows
        return effective, effective * rates
