"""Conformal p-values: the rank of each row among the rows before it.

For i.i.d. rows they are uniform and independent.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import CodeArray, FloatArray, IndexArray


def rank_p_values(values: NDArray[np.generic], rng: np.random.Generator) -> FloatArray:
    """Of each value, the share of the values up to it that are smaller; ties are broken at random.

    If the values are exchangeable, the p-values are independent draws from the uniform distribution
    (Vovk, Gammerman and Shafer 2005, Theorem 8.1), given which values there are.
    """
    smaller = smaller_before(np.lexsort((rng.random(values.size), values)))
    return (smaller + rng.random(values.size)) / np.arange(1, values.size + 1)


def smaller_before(order: IndexArray) -> IndexArray:
    """For each place, how many places before it hold a smaller value.

    `order` lists the places by their values.

    The values are split by one bit of their ranks at a time, from the highest on, each half in its
    old order. Of two values that are split, the first bit in which their ranks differ tells which
    is smaller.

    >>> smaller_before(np.argsort([3, 1, 4, 2, 5]))
    array([0, 0, 2, 1, 4])
    """
    n = order.size
    kind: Any = np.int32 if n < 2**30 else np.int64  # half the memory to move
    here: NDArray[Any] = np.arange(n, dtype=kind)
    ranks = np.empty_like(here)
    place = here
    found = np.zeros_like(here)
    ranks[order] = here
    for bit in reversed(range(max(n - 1, 0).bit_length())):
        high = ((ranks >> bit) & 1).astype(bool)
        low_before = np.concatenate((np.zeros(1, dtype=kind), np.cumsum(~high, dtype=kind)))
        start = (ranks >> (bit + 1)) << (
            bit + 1
        )  # of the values with the same higher bits, which lie side by side
        lower = low_before[:-1] - low_before[start]
        found[place[high]] += lower[high]
        target = start + np.where(high, (1 << bit) + here - start - lower, lower)
        moved_ranks = np.empty_like(ranks)
        moved_place = np.empty_like(place)
        moved_ranks[target] = ranks
        moved_place[target] = place
        ranks = moved_ranks
        place = moved_place
    return found.astype(np.intp)


def label_p_values(codes: CodeArray, bins: IndexArray, rng: np.random.Generator) -> FloatArray:
    """Of each label, its rank among the labels up to it in its bin, positives first.

    Ties are broken at random.

    If the rows of each bin are exchangeable, these are independent uniform draws too, given the
    bins of all rows and how many labels of each bin are positive: Mondrian conformal p-values.
    """
    order = np.argsort(bins, kind="stable")
    first = np.searchsorted(bins[order], bins[order])
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
