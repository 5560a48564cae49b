"""Conformal p-values: the rank of each row among the rows before it.

For i.i.d. rows they are uniform and independent.
"""

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import CodeArray, FloatArray, IndexArray
from calibrant.assess.check.smaller_before import smaller_before


def rank_p_values(
    values: NDArray[np.generic], rng: np.random.Generator, order: IndexArray | None = None
) -> FloatArray:
    """The share of values up to each value that are smaller; ties are broken at random.

    If the values are exchangeable, the p-values are independent draws from the uniform distribution
    (Vovk, Gammerman and Shafer 2005, Theorem 8.1), given the set of values. `order` lists the
    positions by value, if known.
    """
    order = np.argsort(values) if order is None else order
    smaller = smaller_before(_with_ties(values, order, rng.random(values.size)))
    return (smaller + rng.random(values.size)) / np.arange(1, values.size + 1)


def _with_ties(values: NDArray[np.generic], order: IndexArray, ties: FloatArray) -> IndexArray:
    """Positions sorted by value, with ties sorted by `ties`."""
    ordered = values[order]
    same = np.concatenate(([False], ordered[1:] == ordered[:-1]))
    tied = same.copy()
    tied[:-1] |= same[1:]
    where = np.flatnonzero(tied)
    if not where.size:
        return order
    run = np.cumsum(~same[where])
    places = order[where]
    found = order.copy()
    found[where] = places[np.lexsort((places, ties[places], run))]
    return found


def label_p_values(codes: CodeArray, bins: IndexArray, rng: np.random.Generator) -> FloatArray:
    """The rank of each label among the labels up to it in its bin, positives first.

    Ties are broken at random.

    If the rows of each bin are exchangeable, these are also independent uniform draws, given the
    bins of all rows and the number of positive labels in each bin: Mondrian conformal p-values.
    """
    rows = np.bincount(bins)
    # 16-bit numbers sort faster
    order = np.argsort(bins.astype(np.uint16) if rows.size <= 1 << 16 else bins, kind="stable")
    first = (np.cumsum(rows) - rows)[bins[order]]
    labels = codes[order].astype(np.int64)
    so_far = np.concatenate(([0], np.cumsum(labels)))
    position = np.arange(1, codes.size + 1) - first
    positives = so_far[1:] - so_far[first]
    tie = rng.random(codes.size)
    p_values = np.empty(codes.size)
    p_values[order] = (
        np.where(labels == 1, tie * positives, positives + tie * (position - positives)) / position
    )
    return p_values
