"""Have the rates of regions changed? Compare each batch exactly with all rows before it."""

from typing import ClassVar

import numpy as np

from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.limits.sequences.centred import CentredBetaBinomial
from calibrant.monitor.change import Change, compared_rates
from calibrant.monitor.exact_scores import exact_scores
from calibrant.monitor.martingale import ShiftMixture, mean_limits, start_weight
from calibrant.monitor.watched import Watched
from calibrant.params.declared_state import Resumed, Resumes
from calibrant.params.kind import EntryTable
from calibrant.params.random import RandomSource
from calibrant.params.state_kinds import Counts, OneCount, Tabled

LEVEL = 0.4
SLOPE = 0.05
SINGLE = 0.55
"""Weights of bets on the same change in all regions, on a slope over the regions, and on single
regions.

Saved bets depend on them: other weights need another schema of the saved states.
"""
_CLEAR = 3.3  # standard deviations from which on a region is named
_ROWS_A_REGION = 10  # average number in a batch

_OF_REGIONS = Counts(size="watched.n_regions")


class PooledRates(Resumed):
    """A pool of rows per region, and bets that a new batch has different rates.

    The pool starts with the calibration rows. Each batch gives one N(0, 1) number per region and
    then joins the pool; see `exact_scores`. Without calibration rows, the first `reference` rows of
    the stream are the pool.
    """

    _entries: ClassVar[EntryTable] = {
        "reference": OneCount(),
        "batch_rows": OneCount(),
        "pool_rows": _OF_REGIONS,
        "pool_hits": _OF_REGIONS,
        "waiting_rows": _OF_REGIONS,
        "waiting_hits": _OF_REGIONS,
        "first_hits": Tabled(_OF_REGIONS),
        "n_closed": OneCount(),
        "mixture": Resumes("mixture"),
    }

    def __init__(self, watched: Watched, seed: int, reference: int, batch_rows: int | None) -> None:
        self.watched = watched
        size = watched.n_regions
        self.reference = 0 if watched.has_counts else reference
        self.batch_rows = _ROWS_A_REGION * size if batch_rows is None else batch_rows
        self.pool_rows = watched.rows.copy()
        self.pool_hits = watched.hits.copy()
        self.waiting_rows = np.zeros(size, dtype=np.int64)
        self.waiting_hits = np.zeros(size, dtype=np.int64)
        self.first_hits = np.zeros((0, size), dtype=np.int64)
        self.n_closed = 0
        directions = np.concatenate([np.ones((1, size)), watched.slopes()[None, :], np.eye(size)])
        weights = np.concatenate([[LEVEL, SLOPE], np.full(size, SINGLE / size)])
        self.mixture = ShiftMixture(directions, weights)
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
        moved = self.mixture.moved[start]
        spent = self.mixture.spent[start]
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
        before_rows = self.mixture.first[start].astype(np.int64)
        before_hits = self.first_hits[start]
        since_rows = self.pool_rows - before_rows
        since_hits = self.pool_hits - before_hits
        compared = compared_rates((before_rows, before_hits), (since_rows, since_hits))
        if compared is None:
            return ()
        share = alpha * float(start_weight(start)) / 2.0
        log_share = float(np.log(2.0 * size / share))
        before = CentredBetaBinomial.limits_of(before_rows, before_hits, log_share)
        since = CentredBetaBinomial.limits_of(since_rows, since_hits, log_share)
        rates_before = before_hits / np.maximum(before_rows, 1)
        rates_since = since_hits / np.maximum(since_rows, 1)
        names = self.watched.partition.describe()
        clarity = self.clarity(start)
        order = np.argsort(-np.abs(clarity), kind="stable")
        order = order[(before_rows[order] > 0) & (since_rows[order] > 0)].tolist()
        clear = [region for region in order if abs(clarity[region]) >= _CLEAR] or order[:1]
        found = [
            Change(
                region=region,
                name=names[region],
                rows=int(since_rows[region]),
                rate_before=float(rates_before[region]),
                rate_since=float(rates_since[region]),
                lower=float(since.lower[region] - before.upper[region]),
                upper=float(since.upper[region] - before.lower[region]),
            )
            for region in clear
        ]
        n_rows, expected, observed = compared
        low, high = mean_limits(observed * n_rows, n_rows, share)
        overall = Change(None, "all regions", *compared, low - expected, high - expected)
        return (overall, *found)

    def _check_state(self) -> None:
        if (self.pool_hits > self.pool_rows).any():
            raise InvalidValueError("pool_hits", "be at most pool_rows")
        if (self.waiting_hits > self.waiting_rows).any():
            raise InvalidValueError("waiting_hits", "be at most waiting_rows")
        if (self.pool_rows < self.watched.rows).any():
            raise InvalidValueError("pool_rows", "contain the rows of calibration")
        first = self.mixture.first
        if len(self.first_hits) != len(first):
            raise InvalidValueError("first_hits", f"have {len(first)} starts")
        if (self.first_hits > first).any() or (first > self.pool_rows).any():
            rule = "be at most the rows of the pool, and at least first_hits"
            raise InvalidValueError("first", rule)
