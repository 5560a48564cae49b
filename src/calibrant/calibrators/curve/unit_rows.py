"""Rows as sums over independent units: whole groups, or rows with importance weights.

In a region a unit has some rows, and counts there with a weight w in (0, 1]. The limits are about
E[w m] / E[w] over the units with rows in the region, where m is the mean of a function over the
unit's rows: its average over the population in which rows of groups count as
`calibrant.limits.region_limits` defines, or over the weighted population. Given which units have rows
in a region, these are independent draws, in any order that does not depend on their rows; their
sizes and weights may depend on labels.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, CodeArray, FloatArray, IndexArray
from calibrant.calibrators.blend_curve import kish_scaled
from calibrant.calibrators.regions.weighted_rows import weights_of
from calibrant.cells.entries import Entries
from calibrant.cells.knots import Knots
from calibrant.cells.units import UnitCells
from calibrant.sample.sources.memory import MemoryRows


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows between knots, and their units. Rows that count nowhere are left out.

    An *entry* is a unit in a region.

    Attributes
    ----------
    cells : UnitCells
        The units in regions, and their rows.
    knot : int array of shape (n_rows,)
        The knot before each row.
    share : float array of shape (n_rows,)
        The relative distance of each row to the next knot, from 0 to 1.
    codes : int array of shape (n_rows,)
        Labels.
    weight : float array of shape (n_entries,)
        The weight of each entry, in (0, 1].
    n_regions : int
        The number of regions.
    """

    cells: UnitCells
    knot: IndexArray
    share: FloatArray
    codes: CodeArray
    weight: FloatArray
    n_regions: int

    @classmethod
    def of(cls, rows: MemoryRows, knots: Knots, cap: float | None) -> Self:
        """The rows of whole groups, or rows with weights; a unit counts as in `GroupDesign.cap`."""
        knot, share = _places(rows, knots)
        region = knots.region[knot]
        region[knot < 0] = -1
        units = rows.units.alike() if cap is None else rows.units
        n_regions = knots.regions.n_regions
        cells = units.in_cells(region, n_regions)
        weight = np.minimum(cells.total / (cap or 1.0), 1.0)
        used = cells.rows
        return cls(cells, knot[used], share[used], rows.codes[used], weight, n_regions)

    def at_rows(self, curve: FloatArray) -> FloatArray:
        """A curve, given at knots, evaluated at the rows."""
        last = np.minimum(self.knot + 1, curve.size - 1)
        return np.asarray(curve[self.knot] * (1.0 - self.share) + curve[last] * self.share)

    def means(self, values: FloatArray) -> FloatArray:
        """Means over entries of a number per row."""
        return self.cells.sums(values) / self.cells.total

    def at_knots(self, of_entry: FloatArray, n_knots: int) -> FloatArray:
        """Sums of a number per entry, split among the knots next to its rows."""
        amount = of_entry[self.cells.entry] * self.cells.parts
        last = np.minimum(self.knot + 1, n_knots - 1)
        before = np.bincount(self.knot, amount * (1.0 - self.share), minlength=n_knots)
        return np.asarray(before + np.bincount(last, amount * self.share, minlength=n_knots))

    def in_regions(self, of_entry: FloatArray, n_regions: int) -> FloatArray:
        """Sums over regions of a number per entry."""
        found = np.bincount(self.cells.cell, of_entry, minlength=n_regions)
        return np.asarray(found, dtype=np.float64)

    def draws(self, values: FloatArray) -> Entries:
        """All entries, with their means of a number per row."""
        return Entries(self.cells.cell, self.means(values), self.n_regions, self.weight)


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
