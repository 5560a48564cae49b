"""Rows as sums over independent units: whole groups, or rows with importance weights.

In a region a unit has some rows, and counts there with a weight w in (0, 1]. The limits are about
E[w m] / E[w] over the units with rows in the region, where m is the mean of a function over the
unit's rows: its average over the population in which rows of groups count as
`calibrant.limits.group_design` defines, or over the weighted population. Given which units have rows
in a region, these are independent draws, in any order that does not depend on their rows; their
sizes and weights may depend on labels.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray
from calibrant.calibrators.anchored.pilot_rows import RegionUnits
from calibrant.calibrators.blend_curve import kish_scaled
from calibrant.calibrators.regions.weighted_rows import weights_of
from calibrant.cells.knots import Knots
from calibrant.cells.units import Counting, sorted_by
from calibrant.limits.bet_units import Draws
from calibrant.sample.sources.memory import MemoryRows


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows between knots, and their units. Rows that count nowhere are left out.

    An *entry* is a unit in a region.

    Attributes
    ----------
    knot : int array of shape (n_rows,)
        The knot before each row.
    share : float array of shape (n_rows,)
        The relative distance of each row to the next knot, from 0 to 1.
    codes : int array of shape (n_rows,)
        Labels.
    entry : int array of shape (n_rows,)
        The entry of each row.
    part : float array of shape (n_rows,)
        The share of each row in its entry; the shares of an entry add up to 1.
    region, unit : int arrays of shape (n_entries,)
        The region and the unit of each entry.
    weight : float array of shape (n_entries,)
        The weight of each entry, in (0, 1].
    n_units : int
        The number of units.
    """

    knot: IndexArray
    share: FloatArray
    codes: CodeArray
    entry: IndexArray
    part: FloatArray
    region: IndexArray
    unit: IndexArray
    weight: FloatArray
    n_units: int

    @classmethod
    def of(cls, rows: MemoryRows, knots: Knots, counting: Counting) -> Self:
        """The rows of whole groups, or rows with weights."""
        knot, share = _places(rows, knots)
        region = knots.region[knot]
        region[knot < 0] = -1
        units = rows.units
        cells = units.in_cells(region, knots.regions.n_regions)
        weight = cells.uncapped(by_group=counting.by_group) / counting.bound
        return cls(
            knot[cells.rows],
            share[cells.rows],
            rows.codes[cells.rows],
            cells.entry,
            cells.parts,
            cells.cell,
            cells.unit,
            np.minimum(weight, 1.0),
            units.n_units,
        )

    def at_rows(self, curve: FloatArray) -> FloatArray:
        """A curve, given at knots, evaluated at the rows."""
        last = np.minimum(self.knot + 1, curve.size - 1)
        return np.asarray(curve[self.knot] * (1.0 - self.share) + curve[last] * self.share)

    def means(self, values: FloatArray) -> FloatArray:
        """Means over entries of a number per row."""
        found = np.bincount(self.entry, self.part * values, minlength=self.region.size)
        return np.asarray(found, dtype=np.float64)

    def at_knots(self, of_entry: FloatArray, n_knots: int) -> FloatArray:
        """Sums of a number per entry, split among the knots next to its rows."""
        amount = of_entry[self.entry] * self.part
        last = np.minimum(self.knot + 1, n_knots - 1)
        before = np.bincount(self.knot, amount * (1.0 - self.share), minlength=n_knots)
        return np.asarray(before + np.bincount(last, amount * self.share, minlength=n_knots))

    def in_regions(self, of_entry: FloatArray, n_regions: int) -> FloatArray:
        """Sums over regions of a number per entry."""
        found = np.bincount(self.region, of_entry, minlength=n_regions)
        return np.asarray(found, dtype=np.float64)

    def draws(self, values: FloatArray, chosen: BoolArray) -> Draws:
        """The chosen entries, with their means of a number per row."""
        return Draws(self.region[chosen], self.means(values)[chosen], self.weight[chosen])

    def guessed(self, first: FloatArray, n_regions: int) -> list[RegionUnits]:
        """The entries of each region, as pilot rows: labels minus the first curve, and the curve."""
        values = self.at_rows(first)
        errors = self.means(self.codes - values)
        scores = self.means(values)
        by_region = sorted_by(self.region)
        ends = np.cumsum(np.bincount(self.region, minlength=n_regions))[:-1]
        every = np.split(by_region, ends)
        return [RegionUnits(errors[of], scores[of], self.weight[of]) for of in every]


def counts_at_knots(rows: MemoryRows, knots: Knots, chosen: BoolArray | None = None) -> FloatArray:
    """Rows by knot and label, for the fit of a curve: an array of shape (n_knots, 2).

    Each row is split between its two nearest knots and counts by its weight. The total is the number
    of rows that the weights are worth (`kish_scaled`). Only `chosen` rows count.
    """
    weights = weights_of(rows)
    if chosen is not None:
        rows = rows.take(chosen)
        weights = weights[chosen]
    if not weights.any():
        return np.zeros((knots.n_knots, 2))
    knot, share = _places(rows, knots)
    inside = knot >= 0
    scaled = kish_scaled(weights)[inside]
    share = share[inside]
    cell = 2 * knot[inside] + rows.codes[inside]
    next_cell = np.minimum(cell + 2, 2 * knots.n_knots - 1)
    size = 2 * knots.n_knots
    counts = np.bincount(cell, scaled * (1.0 - share), size)
    counts += np.bincount(next_cell, scaled * share, size)
    return np.asarray(counts.reshape(knots.n_knots, 2))


def _places(rows: MemoryRows, knots: Knots) -> tuple[IndexArray, FloatArray]:
    """Where rows are between knots, for segments that have regions."""
    regions = knots.regions
    segment = None
    if regions.has_segments and rows.segment is not None:
        segment = regions.numbers(rows.segment_names)[rows.segment]
    return knots.places(regions.prepared(rows.scores, segment))
