"""Bets on rows that are known as counts: how many of them are where a sample can have its values.

The bets, their stakes and their goal are those of `calibrant.limits.bet_walk`; all weights are 1.
"""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._typing import FloatArray
from calibrant.kernels import Implementation
from calibrant.limits.bet_walk import GUESS_DRAWS, MOMENTS, POWERS, STEPS, Bets, lower_limits


@dataclass(frozen=True, eq=False)
class BlockSamples:
    """Samples of independent draws, in blocks, in an order that does not depend on their values.

    Attributes
    ----------
    values : float array of shape (n_samples, n_values)
        The values that draws of each sample can have.
    blocks : float array of shape (n_samples, n_blocks, n_values)
        How many of the draws in each block have them. Blocks may be empty.
    singles : float array of shape (n_samples, n_singles)
        The draws after the last block, one by one; NaN for none.
    low, high : float arrays of shape (n_samples,)
        What no value can lie beyond; fixed without these draws.
    variance : float array of shape (n_samples,)
        A guess of the variance, made without these draws.
    """

    values: FloatArray
    blocks: FloatArray
    singles: FloatArray
    low: FloatArray
    high: FloatArray
    variance: FloatArray

    @property
    def mirrored(self) -> "BlockSamples":
        """The same with the opposite sign, which turns upper limits into lower ones."""
        return replace(
            self, values=-self.values, singles=-self.singles, low=-self.high, high=-self.low
        )

    @property
    def bets(self) -> Bets:
        """The draws as the walk needs them."""
        values = np.maximum(self.values - self.low[:, None], 0.0)
        sums = np.empty((POWERS + 1, self.blocks.shape[1], self.blocks.shape[0]))
        power = np.ones_like(values)
        for of_power in sums:
            np.einsum("sbv,sv->bs", self.blocks, power, out=of_power)
            power = power * values
        is_row = np.isfinite(self.singles)
        singles = np.where(is_row, np.maximum(self.singles - self.low[:, None], 0.0), 0.0)
        one = np.ones(self.low.size)
        return Bets(
            sums[[k for _, k in MOMENTS]],
            np.zeros(sums.shape[1:]),
            np.ones(sums.shape[1:]),
            singles.T,
            is_row.T.astype(np.float64),
            np.ones(singles.shape[1], dtype=np.intp),
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
    """Limits for the mean of each sample; each of the two misses with at most `tail` of the sample.

    Without draws they are the ends of the range. `steps` is how many candidates lie within one
    standard error. `implementation` forces "numpy" or "numba", for tests and benchmarks.
    """
    both = Bets.joined([samples.bets, samples.mirrored.bets])
    found = lower_limits(both, np.tile(tail, 2), steps, implementation=implementation)
    return found[: tail.size], -found[tail.size :]
