"""The region of a score as Spark's own SQL, exactly."""

from typing import Any

import numpy as np

from calibrant.partition import ScorePartition

# Java compiles no method of more than 8,000 bytes, and what it does not compile is slower than the kernel.
_MOST_IN_TREE = 120
_GRIDS = tuple(1 << bits for bits in range(6, 13))
_MOST_COMPARISONS = 4
_LARGEST = np.finfo(np.float64).max


def quoted(name: str) -> str:
    """A column's name as Spark reads it."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Any) -> str:
    """A value as Spark reads it, exactly."""
    if isinstance(value, str):
        return f"string(X'{value.encode().hex()}')"  # no sign in it needs an escape
    if isinstance(value, float):
        return f"{float(value)!r}D" if np.isfinite(value) else f"double('{value}')"
    return str(value)


def array(table: Any) -> str:
    """An array of values."""
    return f"array({', '.join(map(literal, table if isinstance(table, tuple) else table.tolist()))})"


def bins_of(score: str, part: ScorePartition, cuts: str, first: int) -> str | None:
    """SQL for the region of a score, numbered from `first`; None where it would be slow."""
    edges = getattr(part, cuts)
    inner = part.count_regions if cuts == "count_cuts" else np.arange(edges.size + 1)
    regions = np.where(inner >= 0, inner + first, -1)
    cell = _table(score, edges) or _tree(score, edges.tolist(), 0)
    if edges.size > _MOST_IN_TREE and cell.startswith("IF"):
        return None
    low, high = literal(max(part.low, -_LARGEST)), literal(min(part.high, _LARGEST))
    # Spark takes NaN for larger than any number, so that this leaves out all that is not finite
    return f"CASE WHEN {score} >= {low} AND {score} <= {high} THEN get({array(regions)}, {cell}) END"


def _table(score: str, cuts: Any) -> str | None:
    """SQL for how many cuts are at most the score, by a grid over them: what lies before a cell, and a few comparisons.

    Which cell a number is in is found by the same operations on the same doubles here and there, and they keep order.
    So the cuts in earlier cells are below the score, those in later cells above it, and only those in its own cell are
    compared. None where too many cuts would share a cell.
    """
    if cuts.size < 2:
        return None
    low, high = float(cuts[0]), float(cuts[-1])
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
    place = f"int(greatest(least(({score} - {literal(low)}) * {literal(scale)}, {literal(size - 1.0)}), 0.0D))"
    rank = np.arange(cuts.size) - before[cell]
    terms = [f"get({array(before)}, {place})"]
    for number in range(inside.max()):
        limit = np.full(size, np.inf)
        limit[cell[rank == number]] = cuts[rank == number]
        terms.append(f"IF({score} >= get({array(limit)}, {place}), 1, 0)")
    return " + ".join(terms)


def _tree(score: str, cuts: list[float], before: int) -> str:
    """SQL for the same, by a balanced tree of comparisons, as deep as log2 of the bins."""
    if not cuts:
        return str(before)
    middle = len(cuts) // 2
    below, above = _tree(score, cuts[:middle], before), _tree(score, cuts[middle + 1 :], before + middle + 1)
    return f"IF({score} < {literal(cuts[middle])}, {below}, {above})"
