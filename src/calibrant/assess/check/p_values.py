"""Conformal p-values: the rank of each row among the rows before it.

For i.i.d. rows they are uniform and independent.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import CodeArray, FloatArray, IndexArray

_PAIRED_BITS = 7  # low bits of ranks: values that differ only in these are compared in pairs


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


def smaller_before(order: IndexArray) -> IndexArray:
    """For each position, how many positions before it hold a smaller value; `order` lists the
    positions by value.

    The values are split by one bit of their ranks at a time, from the highest on, keeping their
    order within each half. The first bit in which the ranks of two values differ tells which is
    smaller. The few values that differ only in the last bits are compared in pairs.

    >>> smaller_before(np.argsort([3, 1, 4, 2, 5]))
    array([0, 0, 2, 1, 4])
    """
    n = order.size
    kind: Any = np.int32 if n < 2**30 else np.int64  # half the memory traffic
    here: NDArray[Any] = np.arange(n, dtype=kind)
    ranks = np.empty_like(here)
    ranks[order] = here
    found = np.zeros_like(here)
    low_before = np.zeros(n + 1, dtype=kind)
    for bit in reversed(range(_PAIRED_BITS, max(n - 1, 0).bit_length())):
        high = (ranks >> bit) & 1
        np.cumsum(1 - high, dtype=kind, out=low_before[1:])
        # the start of each run of values with equal higher bits
        start = (ranks >> (bit + 1)) << (bit + 1)
        lower = low_before[:-1] - low_before[start]
        target = np.where(high == 1, here - lower, start + lower)
        target += high << bit
        lower *= high
        lower += found
        found = np.empty_like(found)
        found[target] = lower
        moved = np.empty_like(ranks)
        moved[target] = ranks
        ranks = moved
    found += _smaller_in_blocks(ranks)
    counted = np.empty(n, dtype=np.intp)
    counted[order[ranks]] = found
    return counted


def _smaller_in_blocks(ranks: NDArray[Any]) -> NDArray[Any]:
    """For each position, how many positions before it in its block of ranks hold a smaller rank."""
    width = 1 << _PAIRED_BITS
    n_blocks = -(-ranks.size // width)
    last_bits = np.full(n_blocks * width, width - 1, dtype=np.uint8)
    last_bits[: ranks.size] = ranks & (width - 1)
    by_place = np.ascontiguousarray(last_bits.reshape(n_blocks, width).T)
    smaller = np.zeros_like(by_place)
    for place in range(width - 1):
        smaller[place + 1 :] += by_place[place + 1 :] > by_place[place]
    return smaller.T.ravel()[: ranks.size]


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
