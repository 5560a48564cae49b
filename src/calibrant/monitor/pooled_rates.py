"""Have the rates of regions changed? Compare each batch exactly with all rows before it."""

from typing import ClassVar

import numpy as np

from calibrant._typing import FloatArray
from calibrant.limits.sequences.centred import CentredBetaBinomial
from calibrant.monitor.change import Change, clear_changes, compared_rates
from calibrant.monitor.martingale import ShiftMixture, running_mean_limits, start_weight
from calibrant.monitor.pool import LEVEL, SINGLE, SLOPE, Pool
from calibrant.monitor.watched import Watched
from calibrant.params.kind import EntryTable
from calibrant.params.random import RandomSource
from calibrant.params.state_kinds import OneCount

INSIDE = 0.05
INSIDE_ONE = 0.02
CELL = 0.08
"""Weights of bets on a slope inside all regions, on one inside a single region, and on single cells;
they come out of the weight on single regions.
"""
_ROWS_A_CELL = 10  # average number in a batch


class PooledRates(Pool):
    """A pool of rows per cell, and bets that a new batch has different rates.

    The pool starts with the calibration rows. Without any, the first `reference` rows of the stream
    are the pool.
    """

    _entries: ClassVar[EntryTable] = {"reference": OneCount(), "batch_rows": OneCount()}

    def __init__(self, watched: Watched, seed: int, reference: int, batch_rows: int | None) -> None:
        source = RandomSource.of(seed, "drift of rates")
        mixture = ShiftMixture(*_directions(watched))
        super().__init__(watched.cells.rows, watched.cells.hits, mixture, source)
        self.watched = watched
        self.reference = 0 if watched.has_counts else reference
        usual = _ROWS_A_CELL * watched.cells.n_cells
        self.batch_rows = usual if batch_rows is None else batch_rows
        self._variances = watched.variances()

    @property
    def n_waiting(self) -> int:
        """Rows that wait until their batch is large enough."""
        return int(self.waiting_rows.sum())

    @property
    def in_reference(self) -> bool:
        """Whether rows are still filling the pool that later rows are compared with."""
        return int(self.pool_rows.sum()) < self.reference

    @property
    def missing(self) -> int:
        """How many more rows the reference needs."""
        return max(0, self.reference - int(self.pool_rows.sum()) - self.n_waiting)

    @property
    def n_reference(self) -> int:
        """Number of rows in the reference: more than requested if they arrived as counts of a large
        batch.
        """
        if self.mixture.n_starts:
            return int(self.mixture.first[0].sum())
        return max(self.reference, int(self.pool_rows.sum()))

    @property
    def is_due(self) -> bool:
        """Whether the waiting rows are enough for a batch, or complete the reference.

        This depends on numbers of rows, never on labels.
        """
        completes = self.in_reference and self.missing == 0
        return self.n_waiting >= self.batch_rows or completes

    @property
    def begins(self) -> bool:
        """Whether a start of bets begins with the next batch."""
        return not self.in_reference and self.mixture.begins()

    def close(self) -> None:
        """Compare the waiting rows with the pool; then add them to it."""
        if not self.in_reference:
            rows = self.waiting_rows
            pool = self.pool_rows.astype(np.float64)
            both = np.maximum(pool + rows, 1.0)
            self.bet(np.sqrt(self._variances * rows * pool / both), pool)
        self.join()

    def clarity(self, start: int) -> FloatArray:
        """For each region, how many standard deviations its rows since a start deviate.

        Positive means more hits.
        """
        first = self.watched.cells.first
        moved = np.add.reduceat(self.mixture.moved[start], first)
        spent = np.add.reduceat(self.mixture.spent[start], first)
        return np.asarray(
            np.divide(moved, np.sqrt(spent), out=np.zeros(moved.size), where=spent > 0.0)
        )

    def changes(self, start: int, alpha: float) -> tuple[Change, ...]:
        """What has changed since a start: over all regions, then in the regions where it is clear.

        All limits hold simultaneously with probability at least 1 - alpha, if each region had one
        rate before the start and has one rate since. The limits of a start use its share of alpha,
        so the start may be chosen afterwards.
        """
        size = self.watched.n_regions
        by_region = self.watched.cells.by_region
        before_rows = by_region(self.mixture.first[start].astype(np.int64))
        before_hits = by_region(self.first_hits[start])
        since_rows = by_region(self.pool_rows) - before_rows
        since_hits = by_region(self.pool_hits) - before_hits
        compared = compared_rates((before_rows, before_hits), (since_rows, since_hits))
        if compared is None:
            return ()
        share = alpha * float(start_weight(start)) / 2.0
        log_share = float(np.log(2.0 * size / share))
        before = CentredBetaBinomial.limits_of(before_rows, before_hits, log_share)
        since = CentredBetaBinomial.limits_of(since_rows, since_hits, log_share)
        found = clear_changes(
            self.watched.partition.describe(),
            self.clarity(start),
            (before_rows > 0) & (since_rows > 0),
            since_rows,
            (before_hits / np.maximum(before_rows, 1), before),
            (since_hits / np.maximum(since_rows, 1), since),
        )
        n_rows, expected, observed = compared
        low, high = running_mean_limits(observed * n_rows, n_rows, share)
        overall = Change(None, "all regions", *compared, low - expected, high - expected)
        return (overall, *found)


def _directions(watched: Watched) -> tuple[FloatArray, FloatArray]:
    """The changes that are bet on, over cells, and their weights."""
    region = watched.cells.region
    size = watched.n_regions
    of_region = np.eye(size)[:, region]
    level = np.ones((1, region.size))
    slope = watched.slopes()[region][None, :]
    if region.size == size:
        weights = [LEVEL, SLOPE, *np.full(size, SINGLE / size)]
        return np.concatenate([level, slope, of_region]), np.array(weights)
    inside = watched.inner_slopes()
    single = SINGLE - INSIDE - INSIDE_ONE - CELL
    weights = [
        LEVEL,
        SLOPE,
        INSIDE,
        *np.full(size, single / size),
        *np.full(size, INSIDE_ONE / size),
        *np.full(region.size, CELL / region.size),
    ]
    directions = [level, slope, inside[None, :], of_region, of_region * inside, np.eye(region.size)]
    return np.concatenate(directions), np.array(weights)
