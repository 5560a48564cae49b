"""Draws in the form that the betting walk needs: sums over early blocks, then single draws.

`Bets` holds them for any draws with weights (`calibrant.limits.goal_bets` makes them from single
draws); all stakes, gains and limits are in `calibrant.limits.bet_walk`.

*Rows that are given as counts*: how many rows have each of the values that a sample can take. Given
the counts of independent draws, all orders are equally likely. So an order that is drawn after
counting has the same distribution as the order in which the rows came, and bets may follow it:
early rows are dealt out as counts per block, late ones in order (`DealtBlocks`), so that the
capital of late bets is exact. All their weights are 1 (`BlockSamples`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Self

import numpy as np

from calibrant._typing import FloatArray, IndexArray, IntArray

SINGLE_DRAWS = 128
"""The number of last draws that are blocks of their own."""
BLOCKS = 64
"""A block holds one over this of the draws left."""
GUESS_DRAWS = 20.0
"""Number of draws that the guess at the variance counts as."""
POWERS = 4
"""The powers of draws whose sums are kept: from 0 to this one."""
MOMENTS = tuple((p, k) for p in range(POWERS + 1) for k in range(p + 1))
"""Pairs (p, k) of the sums of w^p (z - low)^k, in the order in which they are stored."""

PLACE = {pair: number for number, pair in enumerate(MOMENTS)}
"""The place of each pair."""
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
class Bets:
    """Draws of several samples in the order of the bets: sums over early blocks, then single draws.

    Attributes
    ----------
    moments : float array of shape (15, n_blocks, n_samples), or (5, n_blocks, n_samples)
        Sums over the draws of each block of w^p (z - low)^k, for the pairs of `MOMENTS`; if all
        weights are 1, of (z - low)^k for k from 0 to 4. Blocks may be empty.
    smallest : float array of shape (n_blocks, n_samples)
        A lower bound on z - low in each block.
    heaviest : float array of shape (n_blocks, n_samples)
        An upper bound on the weights in each block.
    draws, weights : float arrays of shape (n_draws, n_samples)
        Later draws minus `low`, and their weights; 0 for no draw.
    sizes : int array of shape (n_late_blocks,)
        The number of later draws in each block, the same for all samples.
    low, width : float arrays of shape (n_samples,)
        The lower end of the range, and its width; fixed without looking at these draws.
    variance : float array of shape (n_samples,)
        A guess at the variance of w (z - mean), made without these draws. A good guess narrows the
        limits; a bad one never invalidates them.
    typical_weight : float array of shape (n_samples,)
        A guess at the mean weight.
    guess_draws : float array of shape (n_samples,)
        Number of draws that the guess counts as.
    """

    moments: FloatArray
    smallest: FloatArray
    heaviest: FloatArray
    draws: FloatArray
    weights: FloatArray
    sizes: IndexArray
    low: FloatArray
    width: FloatArray
    variance: FloatArray
    typical_weight: FloatArray
    guess_draws: FloatArray

    @classmethod
    def joined(cls, samples: "Sequence[Bets]") -> "Bets":
        """Concatenate samples that have the same late blocks.

        Samples with fewer early blocks get empty ones.
        """
        n_blocks = max(bets.moments.shape[1] for bets in samples)
        padded = [bets._padded(n_blocks) for bets in samples]
        names = [entry.name for entry in fields(cls) if entry.name != "sizes"]
        columns = {
            name: np.concatenate([getattr(bets, name) for bets in padded], axis=-1)
            for name in names
        }
        return cls(**columns, sizes=samples[0].sizes)

    def _padded(self, n_blocks: int) -> "Bets":
        more = (0, n_blocks - self.moments.shape[1])
        if more == (0, 0):
            return self
        return replace(
            self,
            moments=np.pad(self.moments, ((0, 0), more, (0, 0))),
            smallest=np.pad(self.smallest, (more, (0, 0)), constant_values=np.inf),
            heaviest=np.pad(self.heaviest, (more, (0, 0))),
        )


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


def powers_of(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Powers of single draws from 0 to 4, for weights of 1; a weight of 0 means no draw."""
    found = np.empty((POWERS + 1, *values.shape))
    found[0] = weights
    for k in range(POWERS):
        np.multiply(found[k], values, out=found[k + 1])
    return found


def moments_of(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Moments of single draws, in the order of `MOMENTS`; a weight of 0 means no draw."""
    found = np.empty((len(MOMENTS), *values.shape))
    found[0] = weights > 0.0
    for p in range(1, POWERS + 1):
        previous = weights if p == 1 else found[PLACE[p - 1, 0]] * weights
        for k in range(p + 1):
            found[PLACE[p, k]] = previous
            previous = previous * values
    return found


@lru_cache(maxsize=64)
def late_sizes(most: int) -> tuple[int, ...]:
    """The sizes of the blocks of the last draws, about `most` draws at most.

    They are the same for all samples: 128 single draws at the end, and before them about a 64th of
    the draws left.

    >>> late_sizes(3), late_sizes(130)[:2], sum(late_sizes(2048))
    ((1, 1, 1), (2, 1), 2053)
    """
    sizes = [1] * min(most, SINGLE_DRAWS)
    total = len(sizes)
    while total < most:
        sizes.append(max(1, total // (BLOCKS - 1)))
        total += sizes[-1]
    return tuple(reversed(sizes))


@lru_cache(maxsize=1024)  # many regions have the same size
def block_sizes(n_draws: int, n_late: int = SINGLE_DRAWS) -> tuple[int, ...]:
    """The sizes of the blocks before the last `n_late` draws: a 64th of the draws left.

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
