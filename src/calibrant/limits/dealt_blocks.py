"""Rows that are known as counts, dealt out in a random order: blocks of rows, then single rows.

Given the counts of independent draws, their order is uniform. So an order that is drawn after
counting has the same law as the order in which the rows came, and bets may follow it.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from calibrant._typing import IndexArray, IntArray

SINGLE_DRAWS = 128
"""Of the last rows, each is a block."""
BLOCKS = 64
"""A block is this part of the draws that are left."""
# rows of a sample that are put in order one by one; of more, early blocks are drawn as counts
_MOST_SHUFFLED = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class DealtBlocks:
    """Rows of several samples, in blocks, and then one by one.

    Attributes
    ----------
    blocks : int array of shape (n_samples, n_blocks, n_kinds)
        How many rows of each kind are in each block; samples with fewer blocks have empty ones.
    singles : int array of shape (n_samples, n_singles)
        The kind of each single row; -1 for none.
    """

    blocks: IntArray
    singles: IndexArray

    @classmethod
    def of(cls, counts: IntArray, generator: np.random.Generator) -> Self:
        """Deal out rows, given how many there are of each sample and kind, an array of shape
        (n_samples, n_kinds).
        """
        sizes = [block_sizes(int(n_rows)) for n_rows in counts.sum(axis=1)]
        n_blocks = max(map(len, sizes), default=0)
        blocks = np.zeros((counts.shape[0], n_blocks, counts.shape[1]), dtype=np.int64)
        singles = np.full((counts.shape[0], SINGLE_DRAWS), -1)
        for sample, of_sample in enumerate(sizes):
            _deal(counts[sample], of_sample, blocks[sample], singles[sample], generator)
        return cls(blocks, singles)


def _deal(
    counts: IntArray,
    sizes: tuple[int, ...],
    blocks: IntArray,
    singles: IndexArray,
    generator: np.random.Generator,
) -> None:
    """Deal out the rows of one sample."""
    left = counts.copy()
    n_left = int(left.sum())
    block = 0
    while n_left > _MOST_SHUFFLED:
        drawn = generator.multivariate_hypergeometric(left, sizes[block], method="marginals")
        blocks[block] = drawn
        left -= drawn
        n_left -= sizes[block]
        block += 1
    rows = np.repeat(np.arange(counts.size, dtype=np.uint16), left)
    generator.shuffle(rows)
    later = sizes[block:]
    if later:
        n_rows = sum(later)
        place = np.repeat(np.arange(len(later)) * counts.size, later)
        place += rows[:n_rows]
        found = np.bincount(place, minlength=len(later) * counts.size)
        blocks[block : block + len(later)] = found.reshape(len(later), counts.size)
        rows = rows[n_rows:]
    singles[: rows.size] = rows


@lru_cache(maxsize=1024)  # many regions are of one size
def block_sizes(n_draws: int, n_late: int = SINGLE_DRAWS) -> tuple[int, ...]:
    """The sizes of blocks before the last `n_late` draws: a 64th of the draws that are left.

    >>> block_sizes(135), sum(block_sizes(10_000))
    ((2, 2, 2, 1), 9872)
    """
    sizes = []
    left = n_draws
    while left > n_late:
        size = min(max(1, left // BLOCKS), left - n_late)
        sizes.append(size)
        left -= size
    return tuple(sizes)
