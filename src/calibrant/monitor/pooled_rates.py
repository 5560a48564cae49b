"""Have the rates of regions changed? Compare each batch exactly with all rows before it."""

from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from calibrant._typing import BoolArray, FloatArray, IntArray
from calibrant.limits.sequences.centred import CentredBetaBinomial
from calibrant.monitor.change import Change, clear_changes, compared_rates
from calibrant.monitor.martingale import ShiftMixture, running_mean_limits, start_weight
from calibrant.monitor.watched import Watched
from calibrant.params.declared_state import Resumed, Resumes
from calibrant.params.kind import EntryTable
from calibrant.params.random import RandomSource
from calibrant.params.state_kinds import Counts, OneCount, Tabled

LEVEL = 0.4
SLOPE = 0.05
SINGLE = 0.55
"""Weights of bets on the same change everywhere, on a slope over the regions, and on single regions.

Saved bets depend on them: other weights need another schema of the saved states.
"""
INSIDE = 0.05
INSIDE_ONE = 0.02
CELL = 0.08
"""Weights of bets on a slope inside all regions, on one inside a single region, and on single cells;
they come out of the weight on single regions.
"""
_ROWS_A_REGION = 10  # average number in a batch

_OF_CELLS = Counts(size="watched.cells.n_cells")


class PooledRates(Resumed):
    """A pool of rows per cell, and bets that a new batch has different rates.

    The pool starts with the calibration rows. Each batch gives one N(0, 1) number per cell and then
    joins the pool; see `exact_scores`. Without calibration rows, the first `reference` rows of
    the stream are the pool.
    """

    _entries: ClassVar[EntryTable] = {
        "reference": OneCount(),
        "batch_rows": OneCount(),
        "pool_rows": _OF_CELLS,
        "pool_hits": _OF_CELLS,
        "waiting_rows": _OF_CELLS,
        "waiting_hits": _OF_CELLS,
        "first_hits": Tabled(_OF_CELLS),
        "n_closed": OneCount(),
        "mixture": Resumes("mixture"),
    }

    def __init__(self, watched: Watched, seed: int, reference: int, batch_rows: int | None) -> None:
        self.watched = watched
        size = watched.cells.n_cells
        self.reference = 0 if watched.has_counts else reference
        usual = _ROWS_A_REGION * watched.n_regions
        self.batch_rows = usual if batch_rows is None else batch_rows
        self.pool_rows = watched.cells.rows.copy()
        self.pool_hits = watched.cells.hits.copy()
        self.waiting_rows = np.zeros(size, dtype=np.int64)
        self.waiting_hits = np.zeros(size, dtype=np.int64)
        self.first_hits = np.zeros((0, size), dtype=np.int64)
        self.n_closed = 0
        self.mixture = ShiftMixture(*_directions(watched))
        self._variances = watched.variances()
        self._source = RandomSource.of(seed, "drift of rates")

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

    def wait(self, rows: IntArray, hits: IntArray) -> None:
        """Add rows and positive rows of each region to those waiting."""
        self.waiting_rows += rows
        self.waiting_hits += hits

    def close(self) -> None:
        """Compare the waiting rows with the pool; then add them to it."""
        rows = self.waiting_rows
        hits = self.waiting_hits
        if not self.in_reference:
            self._bet(rows, hits)
        self.pool_rows = self.pool_rows + rows
        self.pool_hits = self.pool_hits + hits
        self.waiting_rows = np.zeros_like(rows)
        self.waiting_hits = np.zeros_like(hits)
        self.n_closed += 1

    def _bet(self, rows: IntArray, hits: IntArray) -> None:
        keys = np.uint64(self.n_closed * rows.size) + np.arange(rows.size, dtype=np.uint64)
        z = exact_scores(self.pool_rows, self.pool_hits, rows, hits, self._source.uniforms(keys))
        if self.mixture.begins():
            self.first_hits = np.concatenate([self.first_hits, self.pool_hits[None, :]])
        pool = self.pool_rows.astype(np.float64)
        both = np.maximum(pool + rows, 1.0)
        self.mixture.update(z, np.sqrt(self._variances * rows * pool / both), pool)

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


# standard deviations, and counts, beyond which a hypergeometric distribution has no mass that a
# double shows
_REACH = 40.0
_MOST_TERMS = 4_000_000  # over all cells
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

    Probabilities are products of the ratios of neighbours, divided by their sum: nothing large
    cancels.

    >>> half = np.array([0.5])
    >>> exact_scores(np.array([4]), np.array([2]), np.array([2]), np.array([1]), half).round(12)
    array([0.])
    """
    totals = pool_rows + rows
    successes = pool_hits + hits
    first, last = _support(totals, successes, rows, hits)
    columns: tuple[Any, ...] = (totals, successes, rows, hits, first, last, uniforms)
    below = np.zeros(rows.size)
    above = np.zeros(rows.size)
    widest = int((last - first).max(initial=0)) + 1
    step = max(1, _MOST_TERMS // widest)
    for start in range(0, rows.size, step):
        part = slice(start, start + step)
        below[part], above[part] = _tails(*(column[part] for column in columns))
    low = ndtri(np.maximum(below, _TINY))
    high = -ndtri(np.maximum(above, _TINY))
    return np.asarray(np.where(below < above, low, high))


def _support(
    totals: IntArray, successes: IntArray, rows: IntArray, hits: IntArray
) -> tuple[IntArray, IntArray]:
    """The smallest and the largest count that the batch may have, without virtually impossible
    ones.
    """
    n = totals.astype(np.float64)
    share = successes / np.maximum(n, 1.0)
    mean = rows * share
    variance = mean * (1.0 - share) * (n - rows) / np.maximum(n - 1.0, 1.0)
    reach = _REACH * (np.sqrt(np.maximum(variance, 0.0)) + 1.0)
    least = np.maximum(0, rows - (totals - successes))
    most = np.minimum(rows, successes)
    first = np.maximum(least, np.floor(mean - reach).astype(np.int64))
    last = np.minimum(most, np.ceil(mean + reach).astype(np.int64))
    return np.minimum(first, hits), np.maximum(last, hits)


def _tails(
    totals: IntArray,
    successes: IntArray,
    rows: IntArray,
    hits: IntArray,
    first: IntArray,
    last: IntArray,
    uniforms: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The randomised probabilities of fewer hits and of more hits; they add up to 1."""
    counts = first[:, None] + np.arange(int((last - first).max(initial=0)) + 1)
    inside: BoolArray = counts <= last[:, None]
    before = counts[:, :-1].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        gained = (successes[:, None] - before) * (rows[:, None] - before)
        lost = (before + 1.0) * (
            totals[:, None] - successes[:, None] - rows[:, None] + before + 1.0
        )
        ratios = np.where(inside[:, 1:], np.log(gained) - np.log(lost), -np.inf)
    logs = np.concatenate([np.zeros((rows.size, 1)), np.cumsum(ratios, axis=1)], axis=1)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    mass = weights.sum(axis=1)
    at = weights[np.arange(rows.size), hits - first]
    fewer = np.where(counts < hits[:, None], weights, 0.0).sum(axis=1)
    more = np.where(counts > hits[:, None], weights, 0.0).sum(axis=1)
    return (fewer + uniforms * at) / mass, (more + (1.0 - uniforms) * at) / mass
