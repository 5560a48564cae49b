"""The bin of a score as SQL that Spark compiles to a fast loop: a grid over the cuts, and few
comparisons.
"""

import numpy as np

from calibrant._typing import FloatArray
from calibrant.sample.sql.dialects import DIALECTS
from calibrant.sample.sql.search import as_double, in_range, nested, one_line

SPARK = DIALECTS["spark"]

# Java does not compile methods of more than 8,000 bytes, and uncompiled code is slower than the
# kernel.
_MOST_NESTED = 120
_GRIDS = tuple(1 << bits for bits in range(6, 13))
_MOST_COMPARISONS = 4


def fast_bin_of(
    column: str, low: float, high: float, cuts: FloatArray, leaves: list[int]
) -> str | None:
    """Return SQL for the leaf of a score, in Spark; None if it would be slower than the kernel."""
    score = as_double(SPARK, column)
    place = places_before(score, cuts)
    if place is not None:
        body = [f"get({array(leaves)}, {place})"]
    elif cuts.size <= _MOST_NESTED:
        body = nested(SPARK, score, cuts.tolist(), [str(leaf) for leaf in leaves])
    else:
        return None
    return one_line(in_range(SPARK, column, low, high, body))


def array(values: tuple[str, ...] | list[int] | FloatArray) -> str:
    """An array of texts or numbers."""
    return f"array({', '.join(map(SPARK.literal, values.tolist() if isinstance(values, np.ndarray) else values))})"  # noqa: E501


def places_before(score: str, cuts: FloatArray) -> str | None:
    """SQL for the number of cuts that are at most the score: the number before its grid cell, and a
    few comparisons.

    The cell of a number is computed by the same order-preserving operations on the same doubles
    here and there. So the cuts in earlier cells are below the score, those in later cells above it,
    and only those in its own cell are compared. None if too many cuts would share a cell.
    """
    if cuts.size < 2:
        return None
    low = float(cuts[0])
    high = float(cuts[-1])
    for size in _GRIDS:
        with np.errstate(all="ignore"):
            scale = float((size - 1) / np.subtract(high, low))
            where = np.maximum(np.minimum((cuts - low) * scale, size - 1.0), 0.0)
        if not 0.0 < scale < np.inf:
            return None
        cell = where.astype(np.intp)
        inside = np.bincount(cell, minlength=size)
        if inside.max() <= _MOST_COMPARISONS:
            break
    else:
        return None
    before = np.cumsum(inside) - inside
    shifted = f"({score} - {SPARK.number(low)}) * {SPARK.number(scale)}"
    place = f"int(greatest(least({shifted}, {SPARK.number(size - 1.0)}), 0.0D))"
    rank = np.arange(cuts.size) - before[cell]
    terms = [f"get({array(before.tolist())}, {place})"]
    for number in range(inside.max()):
        limit = np.full(size, np.inf)
        limit[cell[rank == number]] = cuts[rank == number]
        terms.append(f"IF({score} >= get({array(limit)}, {place}), 1, 0)")
    return " + ".join(terms)
