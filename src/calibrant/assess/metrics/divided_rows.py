"""Divide rows at random, by whole units, into pilot rows that only cut regions and rows that are
counted.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import BoolArray, FloatArray
from calibrant.assess.metrics.independent_units import Units
from calibrant.calibrators.regions.weighted_rows import weights_of
from calibrant.errors import InvalidValueError
from calibrant.sample.groups import PILOT_SHARE, fewest_pilot_groups
from calibrant.sample.sources.memory import MemoryRows

CUTTING_SHARE = PILOT_SHARE
"""Share of the rows, or of whole groups, that only cut the regions."""


@dataclass(frozen=True, slots=True, eq=False)
class DividedRows:
    """Pilot rows that only cut the regions, and rows that are counted.

    Attributes
    ----------
    rows : MemoryRows
        All rows.
    cutting : bool array
        Which rows only cut.
    others : MemoryRows
        The counted rows, with the weights with which they count.
    units : Units
        The units of the counted rows.
    in_full : float array
        The weights of the counted rows without a cap on groups.
    """

    rows: MemoryRows
    cutting: BoolArray
    others: MemoryRows
    units: Units
    in_full: FloatArray

    @classmethod
    def of(cls, rows: MemoryRows, weight_bound: float | None, max_group_size: int | None) -> Self:
        """Draw the pilot rows; without a cap on the size of groups, they set it, too."""
        cutting = _cutting_rows(rows)
        if rows.groups is not None and max_group_size is None:
            max_group_size = rows.groups.take(cutting).largest
        Units.bounded_of(rows, weight_bound, max_group_size)  # checks weights of pilot rows too
        if cutting.all():
            raise InvalidValueError("y", "have more than one row or group", got="one")
        not_cutting = rows.take(~cutting)
        others, units = Units.of(not_cutting, weight_bound, max_group_size)
        return cls(rows, cutting, others, units, weights_of(not_cutting))


def _cutting_rows(rows: MemoryRows) -> BoolArray:
    """Which rows only cut the regions."""
    if len(rows) <= 1:
        return np.zeros(1, dtype=bool)
    if rows.groups is None:
        return rows.chosen(rows.draw(CUTTING_SHARE, 0))
    # as many as set the cap on sizes
    return rows.chosen(rows.draw(max(1, fewest_pilot_groups(rows.n_groups())), 0))
