"""Sums of importance weights in each cell, exactly: whatever the order in which a device adds, the sums are the same.

A double is a whole number times a power of two. The two halves of that number are added as floats of at most 53 bits,
one sum for each cell and power, which never rounds; the host puts the sums together as integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._exact import ExactSums
from calibrant._typing import FloatArray
from calibrant.kernels.device._plain import codes, own_cuts, pieces

CHUNK_ROWS = 1 << 22
"""Rows at a time: about 100 bytes of temporary memory each, and sums of 27-bit halves far below 2**53."""

_MANTISSA_BITS = 53
_LOW_BITS = 26
_UNIT_EXPONENT = 1074  # every finite double is a whole multiple of 2**-1074


@dataclass(frozen=True, slots=True)
class CellSums:
    """For each cell the exact sums of w, w² (each rounded once), wy and w²y, and the smallest and largest w.

    Where a cell has no row, smallest and largest are plus and minus infinity.
    """

    w: ExactSums
    w2: ExactSums
    wy: ExactSums
    w2y: ExactSums
    smallest: FloatArray
    largest: FloatArray


def weighted(ops: Any, scores: Any, labels: Any, weights: Any, cuts: FloatArray) -> CellSums:
    size = cuts.shape[0] + 1
    edges = ops.to_device(own_cuts(ops, scores, cuts), scores)
    sums, squares = [0] * (2 * size), [0] * (2 * size)
    lowest = ops.full_of(np.inf, size, scores)
    highest = ops.full_of(np.inf, size, scores)
    for part in pieces(scores.shape[0], CHUNK_ROWS):
        cells = ops.cast(ops.search(scores[part], edges), "int64")
        values = ops.cast(weights[part], "float64")
        ops.lower_extremes(lowest, cells, values)
        ops.lower_extremes(highest, cells, -values)
        # Rows of both labels are summed apart, so that the sums over positives come with the others.
        groups = ops.add_scaled(cells, codes(ops, labels[part]), size)
        _add_exactly(ops, values, groups, sums)
        _add_exactly(ops, values * values, groups, squares)
    return CellSums(
        _over_labels(sums, size),
        _over_labels(squares, size),
        ExactSums(sums[size:]),
        ExactSums(squares[size:]),
        ops.to_host(lowest),
        -ops.to_host(highest),
    )


def _over_labels(units: list[int], size: int) -> ExactSums:
    return ExactSums(zero + one for zero, one in zip(units[:size], units[size:], strict=True))


def _add_exactly(ops: Any, values: Any, groups: Any, units: list[int]) -> None:
    """Add finite values to the sums of their groups, in units of 2**-1074."""
    mantissa, exponent = ops.frexp(values)
    whole = ops.cast(mantissa * 2.0**_MANTISSA_BITS, "int64")
    smallest = int(exponent.min())
    powers = int(exponent.max()) - smallest + 1
    buckets = groups * powers + (exponent - smallest)
    size = len(units) * powers
    low = ops.to_host(ops.weighted_histogram(buckets, ops.cast(whole & ((1 << _LOW_BITS) - 1), "float64"), size))
    high = ops.to_host(ops.weighted_histogram(buckets, ops.cast(whole >> _LOW_BITS, "float64"), size))
    for index in np.flatnonzero((low != 0) | (high != 0)).tolist():
        group, power = divmod(index, powers)
        total = (int(high[index]) << _LOW_BITS) + int(low[index])
        shift = smallest + power - _MANTISSA_BITS + _UNIT_EXPONENT
        units[group] += total << shift if shift >= 0 else total >> -shift
