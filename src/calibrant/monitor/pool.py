"""A pool of rows, batches that join it, and bets that a batch differs from the pool."""

from typing import ClassVar

import numpy as np
from scipy.special import ndtri
from scipy.stats import hypergeom

from calibrant._typing import FloatArray, IntArray
from calibrant.monitor.martingale import ShiftMixture
from calibrant.params.declared_state import Resumed, Resumes
from calibrant.params.kind import EntryTable
from calibrant.params.random import RandomSource
from calibrant.params.state_kinds import Counts, OneCount, Tabled

LEVEL = 0.4
SLOPE = 0.05
SINGLE = 0.55
"""Weights of bets on the same change everywhere, on a slope, and on single regions or bins.

Saved bets depend on them: other weights need another schema of the saved states.
"""

_OF_CHANNELS = Counts(size="mixture.n_channels")


class Pool(Resumed):
    """Rows and hits of several channels, and bets that a new batch has other shares of hits.

    Each batch gives one N(0, 1) number per channel and then joins the pool; see `exact_scores`.
    """

    _entries: ClassVar[EntryTable] = {
        "pool_rows": _OF_CHANNELS,
        "pool_hits": _OF_CHANNELS,
        "waiting_rows": _OF_CHANNELS,
        "waiting_hits": _OF_CHANNELS,
        "first_hits": Tabled(_OF_CHANNELS),
        "n_closed": OneCount(),
        "mixture": Resumes("mixture"),
    }

    def __init__(
        self, rows: IntArray, hits: IntArray, mixture: ShiftMixture, source: RandomSource
    ) -> None:
        self.pool_rows = rows
        self.pool_hits = hits
        self.mixture = mixture
        self._source = source
        self.waiting_rows = np.zeros_like(rows)
        self.waiting_hits = np.zeros_like(rows)
        self.first_hits = np.zeros((0, rows.size), dtype=np.int64)
        self.n_closed = 0

    def wait(self, rows: IntArray, hits: IntArray) -> None:
        """Add rows and hits of each channel to those waiting."""
        self.waiting_rows = self.waiting_rows + rows
        self.waiting_hits = self.waiting_hits + hits

    def bet(self, strength: FloatArray, sizes: FloatArray) -> None:
        """Compare the waiting rows with the pool, which has these sizes; see `ShiftMixture`."""
        size = self.pool_rows.size
        keys = np.uint64(self.n_closed * size) + np.arange(size, dtype=np.uint64)
        uniforms = self._source.uniforms(keys)
        counts = (self.pool_rows, self.pool_hits, self.waiting_rows, self.waiting_hits)
        if self.mixture.begins():
            self.first_hits = np.concatenate([self.first_hits, self.pool_hits[None, :]])
        self.mixture.update(exact_scores(*counts, uniforms), strength, sizes)

    def join(self) -> None:
        """Add the waiting rows to the pool."""
        self.pool_rows = self.pool_rows + self.waiting_rows
        self.pool_hits = self.pool_hits + self.waiting_hits
        self.waiting_rows = np.zeros_like(self.pool_rows)
        self.waiting_hits = np.zeros_like(self.pool_rows)
        self.n_closed += 1


_TINY = 1e-300


def exact_scores(
    pool_rows: IntArray,
    pool_hits: IntArray,
    rows: IntArray,
    hits: IntArray,
    uniforms: FloatArray,
) -> FloatArray:
    """Return one number per cell, N(0, 1) if the batch has the same distribution as the pool.

    Given the total number of hits in pool and batch, the hits of the batch are hypergeometric. With
    F its distribution function and f its probabilities, u = F(s - 1) + V f(s) is uniform if V is
    uniform, and z = Phi^-1(u).

    Notes
    -----
    Let the pool of a cell grow by each batch, and let all labels be exchangeable. Then the z of all
    batches are independent. Backwards in time: u_t is uniform given the pool after batch t and all
    later pools, because which of the pooled labels came last is a random choice. The later u are
    functions of these pools and of their own V. So u_t is independent of all later u. Cells are
    independent given their totals.

    >>> half = np.array([0.5])
    >>> z = exact_scores(np.array([4]), np.array([2]), np.array([2]), np.array([1]), half)
    >>> abs(z).round(12)
    array([0.])
    """
    # a cell without rows has z = Phi^-1(V), as if one row without a hit were not drawn
    of_batch = hypergeom(np.maximum(pool_rows + rows, 1), pool_hits + hits, rows)
    at = of_batch.pmf(hits)
    below = of_batch.cdf(hits - 1) + uniforms * at
    above = of_batch.sf(hits) + (1.0 - uniforms) * at
    low = ndtri(np.maximum(below, _TINY))
    high = -ndtri(np.maximum(above, _TINY))
    return np.asarray(np.where(below < above, low, high))
