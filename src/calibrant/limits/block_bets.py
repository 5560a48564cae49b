"""Bets on rows that are given as counts: how many rows have each of the values that a sample can
take.

Given the counts of independent draws, all orders are equally likely. So an order that is drawn
after counting has the same distribution as the order in which the rows came, and bets may follow
it: early rows are dealt out as counts per block, late ones in order (`DealtBlocks`), so that the
capital of late bets is exact. The bets, stakes and goal are those of `calibrant.limits.bet_walk`;
all weights are 1.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray, IntArray
from calibrant.kernels import Implementation
from calibrant.limits.bet_walk import (
    GUESS_DRAWS,
    STEPS,
    Bets,
    block_sizes,
    late_sizes,
    lower_limits,
    powers_of,
)

LATE_ROWS = 512
"""Approximate number of last rows of a sample that are dealt out in order. More would not narrow
the limits.
"""
_MOST_SHUFFLED = 1 << 16
"""Up to this many rows of a sample are put in order one by one, all of them."""
_MOST_LEFT = 1 << 14
"""Of larger samples, only so many of the last rows; those before are dealt out as counts."""
_EARLY_BLOCKS = 16
"""These blocks hold one over this of the rows left. They are larger than elsewhere, which takes a
fraction of the time and widens limits for 2 million rows by 0.35%.
"""


@dataclass(frozen=True, slots=True, eq=False)
class DealtBlocks:
    """Rows of several samples: early ones in blocks, late ones in order.

    Attributes
    ----------
    blocks : float array of shape (n_samples, n_blocks, n_kinds)
        The number of rows of each kind in each early block; samples with fewer blocks have empty
        ones.
    late : int array of shape (n_samples, n_late)
        The kind of each late row; leading entries are -1 if there are fewer rows.
    sizes : tuple of int
        The number of late rows that share each stake, the same for all samples.
    """

    blocks: FloatArray
    late: IndexArray
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, counts: IntArray, generator: np.random.Generator) -> Self:
        """Deal out rows, given the number of rows of each sample and kind, an array of shape
        (n_samples, n_kinds).
        """
        n_rows = counts.sum(axis=1)
        sizes = late_sizes(min(int(n_rows.max(initial=1)), LATE_ROWS))
        n_late = sum(sizes)
        thinned, left = _thinned(counts, generator)
        later = [block_sizes(rows, n_late) for rows in left.sum(axis=1).tolist()]
        n_blocks = len(thinned) + max(map(len, later), default=0)
        blocks = np.zeros((counts.shape[0], n_blocks, counts.shape[1]))
        for number, block in enumerate(thinned):
            blocks[:, number] = block
        late = np.full((counts.shape[0], n_late), -1)
        for sample, of_sample in enumerate(later):
            shuffled = blocks[sample, len(thinned) :]
            _deal(left[sample], of_sample, shuffled, late[sample], generator)
        return cls(blocks, late, sizes)


def _thinned(counts: IntArray, generator: np.random.Generator) -> tuple[list[IntArray], IntArray]:
    """Early blocks of samples with very many rows, and the rows that are left.

    Think of a uniform random time for each row: a block holds the rows whose times are in the next
    sixteenth of the time left. So the order of rows is uniform, and the sizes of blocks are random
    but independent of the kinds of rows: stakes may depend on them.
    """
    left = counts
    blocks = []
    is_large = counts.sum(axis=1) > _MOST_SHUFFLED
    while (more := np.flatnonzero(is_large & (left.sum(axis=1) > _MOST_LEFT))).size:
        block = np.zeros_like(left)
        block[more] = generator.binomial(left[more], 1.0 / _EARLY_BLOCKS)
        blocks.append(block)
        left = left - block
    return blocks, left


def _deal(
    counts: IntArray,
    sizes: tuple[int, ...],
    blocks: FloatArray,
    late: IndexArray,
    generator: np.random.Generator,
) -> None:
    """Deal out the rows of one sample, in a uniform order: blocks of these sizes, and late rows."""
    rows = np.repeat(np.arange(counts.size), counts)  # numpy shuffles these fastest
    generator.shuffle(rows)
    n_early = sum(sizes)
    if sizes:
        place = np.repeat(np.arange(len(sizes)) * counts.size, sizes)
        place += rows[:n_early]
        found = np.bincount(place, minlength=len(sizes) * counts.size)
        blocks[: len(sizes)] = found.reshape(len(sizes), counts.size)
    late[late.size - (rows.size - n_early) :] = rows[n_early:]


@dataclass(frozen=True, eq=False)
class BlockSamples:
    """Samples of independent draws, in blocks, in an order that does not depend on their values.

    Attributes
    ----------
    values : float array of shape (n_samples, n_values)
        The values that draws of each sample can take.
    blocks : float array of shape (n_samples, n_blocks, n_values)
        The number of draws in each block with each value. Blocks may be empty.
    late : float array of shape (n_samples, n_late)
        The draws after the last block, in order; NaN for none.
    sizes : tuple of int
        The number of late draws that share each stake, block by block.
    low, high : float arrays of shape (n_samples,)
        The range of the values; fixed without looking at these draws.
    variance : float array of shape (n_samples,)
        A guess at the variance, made without these draws.
    """

    values: FloatArray
    blocks: FloatArray
    late: FloatArray
    sizes: tuple[int, ...]
    low: FloatArray
    high: FloatArray
    variance: FloatArray

    @property
    def mirrored(self) -> "BlockSamples":
        """The samples with opposite sign, which turns upper limits into lower ones."""
        return replace(self, values=-self.values, late=-self.late, low=-self.high, high=-self.low)

    @property
    def bets(self) -> Bets:
        """The draws in the form the walk needs."""
        values = np.maximum(self.values - self.low[:, None], 0.0)
        powers = np.moveaxis(powers_of(np.ones_like(values), values), 0, -1)
        sums = np.matmul(self.blocks, powers).transpose(2, 1, 0)
        is_row = np.isfinite(self.late)
        late = np.where(is_row, np.maximum(self.late - self.low[:, None], 0.0), 0.0)
        one = np.ones(self.low.size)
        return Bets(
            np.ascontiguousarray(sums),
            np.zeros(sums.shape[1:]),
            np.ones(sums.shape[1:]),
            late.T,
            is_row.T.astype(np.float64),
            np.array(self.sizes, dtype=np.intp),
            self.low,
            self.high - self.low,
            self.variance,
            one,
            GUESS_DRAWS * one,
        )


def block_limits(
    samples: BlockSamples,
    tail: FloatArray,
    steps: int = STEPS,
    *,
    implementation: Implementation = None,
) -> tuple[FloatArray, FloatArray]:
    """Limits for the mean of each sample; each limit misses with probability at most the sample's
    `tail`.

    Without draws they are the ends of the range. `steps` is the number of candidates per standard
    error. `implementation` forces "numpy" or "numba", for tests and benchmarks.
    """
    both = Bets.joined([samples.bets, samples.mirrored.bets])
    found = lower_limits(both, np.tile(tail, 2), steps, implementation=implementation)
    return found[: tail.size], -found[tail.size :]
