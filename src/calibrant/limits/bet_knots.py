"""What bets win on many rows at once: a lower bound that needs a few knots in place of the rows.

log(1 + lam w (z - m)) is concave in z, and concave in the weight w. So it is at least what linear
interpolation between two neighbouring knots gives: first in z, and then at each of these two knots
in w. Rows that are split among knots in this way give a lower bound for every stake lam and mean m.
Capital that is not overstated keeps every limit valid.

Stakes depend on the capital so far, and so on the knots. These are chosen from the range and from
the first block alone, so that no stake depends on rows that come later.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray

_VALUE_KNOTS = 128
_WEIGHT_KNOTS = 16


@dataclass(frozen=True, slots=True, eq=False)
class KnotBlocks:
    """Blocks of rows, split among knots.

    Attributes
    ----------
    values, weights : float arrays of shape (n_knots,)
        Value and weight of each knot.
    rows : float array of shape (n_blocks, n_knots)
        How many rows of each block count at each knot; parts of rows.
    """

    values: FloatArray
    weights: FloatArray
    rows: FloatArray

    @classmethod
    def of(
        cls,
        values: FloatArray,
        weights: FloatArray | None,
        starts: IndexArray,
        ends: tuple[float, float],
    ) -> Self:
        """Split the rows of blocks, of which the first row is given, among knots between the ends
        of the range.
        """
        first = slice(0, int(starts[1]) if starts.size > 1 else None)
        value_knots = _knots(values[first], *ends, _VALUE_KNOTS)
        weight_knots = np.ones(1)
        parts = _split(values, value_knots)
        if weights is not None:
            weight_knots = _knots(weights[first], 0.0, 1.0, _WEIGHT_KNOTS)
            parts = [
                (place * weight_knots.size + other, share * part)
                for place, share in parts
                for other, part in _split(weights, weight_knots)
            ]
        n_knots = value_knots.size * weight_knots.size
        block = np.repeat(np.arange(starts.size), np.diff(starts, append=values.size))
        rows = np.zeros(starts.size * n_knots)
        for place, share in parts:
            rows += np.bincount(block * n_knots + place, share, minlength=rows.size)
        return cls(
            np.repeat(value_knots, weight_knots.size),
            np.tile(weight_knots, value_knots.size),
            rows.reshape(starts.size, n_knots),
        )

    def gains(self, block: int, stake: FloatArray, means: FloatArray) -> FloatArray:
        """At most the logarithms of what the capital of bets against each mean is multiplied by in
        a block.
        """
        rows = self.rows[block]
        used = np.flatnonzero(rows)
        won = self.values[used] - means[:, None]
        won *= self.weights[used]
        won *= stake[:, None]
        return np.asarray((np.log1p(won, out=won) * rows[used]).sum(axis=1))


def _knots(values: FloatArray, low: float, high: float, number: int) -> FloatArray:
    """Half of the knots at quantiles of the values, half at equal steps from one end to the other."""
    ranks = np.linspace(0, values.size - 1, number // 2).astype(np.intp)
    steps = np.clip(np.linspace(low, high, number // 2), low, high)
    return np.unique(np.concatenate([np.sort(values)[ranks], steps]))


def _split(values: FloatArray, knots: FloatArray) -> list[tuple[IndexArray, FloatArray]]:
    """The knots below and above each value, and which part of a row counts at each."""
    below = np.maximum(np.searchsorted(knots, values, side="right") - 1, 0)
    above = np.minimum(below + 1, knots.size - 1)
    gap = knots[above] - knots[below]
    share = np.divide(values - knots[below], gap, out=np.zeros(values.size), where=gap > 0.0)
    return [(below, 1.0 - share), (above, share)]
