"""What independent units have in regions: the one container that bets are placed on.

A unit is a row or a group of rows (`calibrant.cells.units`). Entries are made from whole numbers
(`calibrant.cells.group_counts`), which engines compute and files store, or from rows in memory.
Plain rows are units of weight 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray, IntArray
from calibrant.cells.tally import Tally
from calibrant.cells.units import RowUnits
from calibrant.errors import InvalidTypeError
from calibrant.params.arrays import entries_at


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Units in regions; equal units may be one entry.

    A unit with rows in several regions has an entry in each.

    Attributes
    ----------
    region : int array of shape (n_entries,)
        The region of each entry.
    value : float array of shape (n_entries,)
        The value of each unit there: the mean over its rows in the region of a number per row.
    n_regions : int
        The number of regions.
    weight : float array of shape (n_entries,), optional
        How much each unit counts there, at most `bound`; by default 1.
    number : int array of shape (n_entries,), optional
        The number of equal units; by default 1.
    bound : float
        An upper bound on the weights, fixed before the units were seen.
    uncapped : float array of shape (n_entries,), optional
        How much each unit would count without the bound; by default as much as with it.
    rows : int array of shape (n_entries,), optional
        The number of rows of each unit there; by default 1.

    Examples
    --------
    >>> units = RowUnits(np.array([0, 0, 0, 1]), 2, np.ones(4))
    >>> entries = Entries.of_rows(np.array([1, 1, 0, 1]), np.array([0, 0, 1, 1]), 2, units, 1.0)
    >>> entries.region, entries.value, entries.weight
    (array([0, 1, 1]), array([1., 0., 1.]), array([1., 1., 1.]))
    """

    region: IndexArray
    value: FloatArray
    n_regions: int
    weight: FloatArray | None = None
    number: IntArray | None = None
    bound: float = 1.0
    uncapped: FloatArray | None = None
    rows: IntArray | None = None

    @classmethod
    def of_tally(cls, tally: Tally, cap: float | None) -> Self:
        """The shares of positives of the groups that a tally counts.

        A group counts as at most `cap` rows in a region. With None every group counts equally: in a
        region by the share of its rows that is there.
        """
        table = tally.groups
        if table is None:
            raise InvalidTypeError("tally", "count groups", got="rows only")
        if cap is None and not table.size.all():
            raise InvalidTypeError(
                "tally", "know the sizes of groups", got="rows and positives only"
            )
        # equal groups are one entry: their number is known, and bets need no more
        rows = table.rows.astype(np.float64)
        shares = cls(table.region, table.positives / rows, tally.n_regions, number=table.number)
        # if all groups count equally, one with rows in several regions is shared among these
        uncapped = rows / table.size if cap is None else rows
        return replace(shares, uncapped=uncapped, rows=table.rows).with_cap(cap or 1.0)

    @classmethod
    def of_rows(
        cls,
        values: FloatArray | CodeArray,
        region: IndexArray,
        n_regions: int,
        units: RowUnits | None = None,
        bound: float = 1.0,
    ) -> Self:
        """The means of a number per row over the units in each region (-1 for rows in none).

        Without `units`, every row is one, and is in a region.
        """
        if units is None:
            return cls(region, np.asarray(values, dtype=np.float64), n_regions)
        # a unit counts by its weight; what it counts for is the weighted mean of its rows
        cells = units.in_cells(region, n_regions)
        mean = cells.sums(values[cells.rows]) / cells.total
        entries = cls(cells.cell, mean, n_regions, uncapped=cells.total, rows=cells.n_rows)
        return entries.with_cap(bound)

    @classmethod
    def joined(cls, questions: Sequence["Entries"]) -> "Entries":
        """Several questions, each with its own regions; weights are divided by their bounds."""
        first = np.cumsum([0, *(part.n_regions for part in questions)])
        region = [part.region + start for part, start in zip(questions, first, strict=False)]
        weights = [part.weight / part.bound for part in questions if part.weight is not None]
        return cls(
            np.concatenate(region),
            np.concatenate([part.value for part in questions]),
            int(first[-1]),
            np.concatenate(weights) if len(weights) == len(questions) else None,
        )

    def with_cap(self, bound: float) -> Self:
        """The same units, counted with another bound."""
        if self.uncapped is None:
            raise InvalidTypeError("entries", "know how much units count without a cap", got="None")
        return replace(self, weight=np.minimum(self.uncapped, bound), bound=bound)

    def take(self, entries: IndexArray | BoolArray) -> Self:
        """Some of the entries."""
        return replace(
            self,
            region=self.region[entries],
            value=self.value[entries],
            weight=entries_at(self.weight, entries),
            number=entries_at(self.number, entries),
            uncapped=entries_at(self.uncapped, entries),
            rows=entries_at(self.rows, entries),
        )

    @property
    def weights(self) -> FloatArray:
        """How much each unit counts."""
        return np.ones(self.value.size) if self.weight is None else self.weight

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over the units of each region of a number per entry."""
        times = values if self.number is None else self.number * values
        return np.bincount(self.region, times, minlength=self.n_regions).astype(np.float64)

    @property
    def n_units(self) -> IntArray:
        """The number of units with rows in each region."""
        return np.bincount(self.region, self.number, minlength=self.n_regions).astype(np.int64)

    @property
    def rates(self) -> FloatArray:
        """The weighted mean of each region; NaN for a region without rows."""
        return self._means(self.weights)

    @property
    def uncapped_rates(self) -> FloatArray:
        """The mean of each region if every unit counted in full; NaN for a region without rows."""
        return self._means(self.weights if self.uncapped is None else self.uncapped)

    @property
    def above_cap(self) -> float:
        """The share of rows, or of their importance weight, beyond the cap of their units."""
        if self.uncapped is None:
            return 0.0
        whole = float(self.sums(self.uncapped).sum())
        return 1.0 - float(self.sums(self.weights).sum()) / whole if whole > 0.0 else 0.0

    @property
    def design_effect(self) -> float:
        """The ratio of the variances to those of the same number of independent rows.

        NaN without rows.

        Over all regions: the sum of the squared deviations of units over the sum of N p (1 - p),
        where N is the number of rows that would count as much.
        """
        rates = np.nan_to_num(self.rates)
        # what the variances would be if rows of a unit were no more alike than others
        alone = float((self._rows * rates * (1.0 - rates)).sum())
        return float(self._variances.sum()) / alone if alone > 0.0 else float("nan")

    @property
    def effective_rows(self) -> tuple[FloatArray, FloatArray]:
        """The number of independent rows that would give each rate the same precision, and the
        number of positives among them.
        """
        total = self.sums(self.weights)
        rates = np.nan_to_num(self.rates)
        rows = self._rows
        variances = self._variances
        # as many as there are, if each row were independent and of the weight that it has
        most = np.divide(total**2, rows, out=np.zeros(self.n_regions), where=rows > 0.0)
        # as many as would have the observed variance of units, for a binomial rate
        by_variance = np.divide(
            total**2 * rates * (1.0 - rates), variances, out=most.copy(), where=variances > 0.0
        )
        effective = np.minimum(by_variance, most)
        return effective, effective * rates

    def _means(self, weights: FloatArray) -> FloatArray:
        total = self.sums(weights)
        means = np.full(self.n_regions, np.nan)
        np.divide(self.sums(weights * self.value), total, out=means, where=total > 0.0)
        return means

    @property
    def _variances(self) -> FloatArray:
        """Sums of w² (y - rate)² over units, which estimate the variance of a region's weighted
        sum.
        """
        return self.sums(np.square(self.weights * (self.value - self.rates[self.region])))

    @property
    def _rows(self) -> FloatArray:
        """The number of rows of weight 1 with the same sum of squared weights, in each region."""
        rows = 1.0 if self.rows is None else self.rows
        return self.sums(np.square(self.weights) / rows)
