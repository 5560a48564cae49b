"""How many values before each value are smaller, counted in blocks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import IndexArray


def smaller_before(order: IndexArray) -> IndexArray:
    """For each position, how many positions before it hold a smaller value; `order` lists the
    positions by value.

    Positions are cut into blocks, and so are ranks. For two values in different blocks of both
    kinds, a table of how many values each pair of blocks holds is enough. The others share a block
    of positions, or of ranks; each block is counted on its own.

    >>> smaller_before(np.argsort([3, 1, 4, 2, 5]))
    array([0, 0, 2, 1, 4])
    """
    bits = _bits_of_blocks(order.size)
    n_blocks = max(-(-order.size // (1 << bits)), 1)
    n = n_blocks << bits  # whole blocks: the added positions and ranks come last
    kind: Any = np.int32 if n < 2**30 else np.int64
    here: NDArray[Any] = np.arange(n, dtype=kind)
    place = here.copy()
    place[: order.size] = order
    rank = np.empty_like(here)
    rank[place] = here
    found = _in_other_blocks(rank[None], bits)[0]

    by_block = np.argsort((place >> bits).astype(np.uint16), kind="stable")  # ranks
    found += _in_each_block(place[by_block], bits)
    # within the same block of ranks, those in an earlier block of positions, so later ranks come
    # first
    by_block = by_block.reshape(n_blocks, -1)[:, ::-1].ravel()
    by_both = by_block[np.argsort((by_block >> bits).astype(np.uint16), kind="stable")]
    found[place] += _in_each_block(by_both, bits)
    return np.asarray(found[: order.size].astype(np.intp))


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
