"""Conformal p-values: the rank of each row among the rows before it.

For i.i.d. rows they are uniform and independent. Labels are ranked within bins of equal mass.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import CodeArray, FloatArray, IndexArray, IntArray
from calibrant.cells.score_partition import equal_mass


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
    p_values = rng.random(values.size)
    p_values += smaller
    p_values /= np.arange(1, values.size + 1)
    return p_values


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
    is_positive = codes[order] == 1
    first = np.cumsum(rows) - rows
    positives = np.cumsum(is_positive, dtype=small_int(codes.size))
    position = np.arange(1, codes.size + 1, dtype=positives.dtype)
    positives -= np.repeat((positives - is_positive)[first], rows)
    position -= np.repeat(first.astype(positives.dtype), rows)
    ranks = rng.random(codes.size)
    ranks *= np.where(is_positive, positives, position - positives)
    ranks += np.where(is_positive, 0, positives)
    ranks /= position
    p_values = np.empty(codes.size)
    p_values[order] = ranks
    return p_values


def smaller_before(order: IndexArray) -> IndexArray:
    """For each position, how many positions before it hold a smaller value; `order` lists the
    positions by value.

    Positions are cut into blocks, and so are ranks. For two values in different blocks of both
    kinds, a table of how many values each pair of blocks holds is enough. The others share a block
    of positions, or of ranks; each block is counted on its own.

    >>> smaller_before(np.argsort([3, 1, 4, 2, 5]))
    array([0, 0, 2, 1, 4], dtype=int32)
    """
    bits = _bits_of_blocks(order.size)
    n_blocks = max(-(-order.size // (1 << bits)), 1)
    n = n_blocks << bits  # whole blocks: the added positions and ranks come last
    kind = small_int(n)
    place: NDArray[Any] = np.arange(n, dtype=kind)
    place[: order.size] = order
    rank = np.empty_like(place)
    rank[place] = np.arange(n, dtype=kind)
    found = _in_other_blocks(rank[None], bits)[0]
    del rank

    by_block = np.argsort((place >> bits).astype(np.uint16), kind="stable").astype(kind)  # ranks
    found += _in_each_block(place[by_block], bits)
    # within the same block of ranks, those in an earlier block of positions, so later ranks come
    # first
    by_block = by_block.reshape(n_blocks, -1)[:, ::-1].ravel()
    by_block = by_block[np.argsort((by_block >> bits).astype(np.uint16), kind="stable")]
    found[place] += _in_each_block(by_block, bits)
    return np.asarray(found[: order.size])


def _bits_of_blocks(n: int) -> int:
    """The block size, as a power of 2: about as many values per block as there are blocks."""
    return max((max(n - 1, 0).bit_length() + 1) // 2, 1)


def _in_each_block(place: NDArray[Any], bits: int) -> NDArray[Any]:
    """For each position, how many positions before it in its block hold a smaller value; `place`
    lists the positions of each block by value.
    """
    width = 1 << bits
    within = (place & (width - 1)).astype(np.uint16).reshape(-1, width)
    rank = np.empty(place.size, dtype=np.uint16)
    rank[place] = np.tile(np.arange(width, dtype=np.uint16), len(within))
    rank = rank.reshape(within.shape)
    bits = _bits_of_blocks(width)
    found = _in_other_blocks(rank, bits).ravel()
    found += _in_pairs(rank, bits)
    found[place] += _in_pairs(within >> bits, bits)  # in an earlier block of positions
    return found


def _in_other_blocks(rank: NDArray[Any], bits: int) -> NDArray[Any]:
    """For each position of each line, how many ranks of the line are smaller and come before it,
    both in another block.
    """
    n_blocks = rank.shape[1] >> bits
    cells = (len(rank), n_blocks, n_blocks)
    kind: Any = np.int32 if len(rank) * n_blocks**2 < 2**31 else np.int64
    first = np.arange(len(rank) * n_blocks, dtype=kind)[:, None] * kind(n_blocks)
    cell = first + (rank.reshape(first.size, -1) >> bits)
    counts = np.bincount(cell.ravel(), minlength=first.size * n_blocks).reshape(cells)
    before = np.zeros(cells, dtype=rank.dtype)
    np.cumsum(counts[:, :-1], axis=1, out=before[:, 1:])
    del counts  # as long as the rows, and twice as wide as the others
    smaller = np.zeros_like(before)
    np.cumsum(before[:, :, :-1], axis=2, out=smaller[:, :, 1:])
    return np.asarray(smaller.ravel()[cell].reshape(rank.shape))


def _in_pairs(values: NDArray[Any], bits: int) -> NDArray[Any]:
    """For each position, how many positions before it in its block hold a smaller value."""
    by_place = np.ascontiguousarray(values.reshape(-1, 1 << bits).T)
    smaller = np.zeros(by_place.shape, dtype=np.uint8)
    for place in range((1 << bits) - 1):
        smaller[place + 1 :] += by_place[place + 1 :] > by_place[place]
    return smaller.T.ravel()


def small_int(most: int) -> Any:
    """A type for whole numbers up to about `most`: with many rows, half the memory matters."""
    return np.int32 if most < 2**30 else np.int64


_BINS_PER_ROOT = 2.0  # number of bins over the cube root of the number of rows


def equal_mass_bins(values: FloatArray) -> IndexArray:
    """Bins of about equal mass, cut between values; with few distinct values, each is a bin.

    The order of the rows does not matter.
    """
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    return bins_of_values(number, counts)


def bins_of_values(number: IndexArray, counts: IntArray) -> IndexArray:
    """Bins of about equal mass, given the index of each row's value among the distinct values, and
    their counts.
    """
    n_bins = max(1, int(_BINS_PER_ROOT * np.cbrt(number.size)))
    if counts.size <= n_bins:
        return np.asarray(number)
    of_values = equal_mass(counts, n_bins)
    is_new = np.diff(of_values, prepend=of_values[0]) != 0  # no value is in an earlier bin
    return np.asarray(np.cumsum(is_new, dtype=np.int32)[number])


def rates_of(codes: CodeArray, bins: IndexArray) -> FloatArray:
    """The rate of positives in each bin."""
    return np.bincount(bins, weights=codes) / np.bincount(bins)
