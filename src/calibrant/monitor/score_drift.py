"""Have the scores changed? A test that needs no labels."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import ArrayLike, FloatArray, IntArray, Seed
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.errors import InvalidValueError
from calibrant.limits.sequences.centred import CentredBetaBinomial
from calibrant.monitor.change import Change, MonitorResult, clear_changes
from calibrant.monitor.evidence import ShiftMonitor
from calibrant.monitor.martingale import ShiftMixture, start_weight
from calibrant.monitor.pool import LEVEL, SINGLE, SLOPE, Pool
from calibrant.monitor.times import shown_time
from calibrant.params.arrays import as_scores
from calibrant.params.declared_state import Resumes
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.random import RandomSource, seed_number
from calibrant.params.rules import Integer
from calibrant.params.state_kinds import Nested, Numbers
from calibrant.text.numbers import counted

_ROWS_A_BIN = 20  # rows that cut the bins, at most a tenth of the reference
_BATCH_ROWS = 100
_ASSUMED = (
    "scores of the reference and of the stream are independent draws from one distribution",
    "which rows form a batch does not depend on scores",
)
_SHARES = Numbers(size="partition.n_regions", low=1e-12, high=1.0)


class ScoreDriftMonitor(ShiftMonitor):
    """Watch whether scores still have the same distribution as a reference; no labels needed.

    Guarantee: while they do, the probability that an alarm is *ever* raised is at most 1 -
    confidence_level. This is exact even though the distribution is only known from a sample.
    Assumptions: the scores in the reference and the stream are independent draws. A change in the
    scores does not necessarily break a guarantee; see `expected_performance`.

    Parameters
    ----------
    reference : array-like of shape (n,)
        Scores to compare with, such as those of the calibration rows.
    n_bins : int, default=20
        Number of bins. A random tenth of the reference, at most 20 rows for each bin, is used to
        cut them and not for comparison.
    confidence_level : float, default=0.95
        Probability that no false alarm is ever raised.
    random_state : int, Generator or None, default=None
        Seed for the random draws. None draws a seed, which is stored in `seed` and saved.

    Notes
    -----
    Start at the highest bin and go down. Given how many rows of pool and batch together lie in bin
    b and in bins up to b, and how many rows of the batch lie in bins up to b, the number of batch
    rows in bin b is hypergeometric. This gives one independent N(0, 1) number for each bin except
    the lowest, which the bets of `DriftMonitor` use. Bins between quantiles of the pool itself
    would not be exact.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import ScoreDriftMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = ScoreDriftMonitor(rng.normal(size=5000), random_state=0)
    >>> monitor.update(rng.normal(size=2000)).alarm
    False
    >>> monitor.update(rng.normal(loc=0.3, size=2000)).alarm
    True
    """

    _schema: ClassVar[str] = "calibrant.score-drift/1"
    _entries: ClassVar[EntryTable] = {
        "partition": Entry(Nested(Partition), makes=True),
        "shares": Entry(_SHARES, of="_shares", makes=True),
        "seed": Entry(Integer(0), makes=True),
        "test": Entry(Resumes("_test"), of="_test"),
    }

    def __init__(
        self,
        reference: ArrayLike,
        *,
        n_bins: int = 20,
        confidence_level: float = 0.95,
        random_state: Seed = None,
    ) -> None:
        scores = np.asarray(as_scores(reference), dtype=np.float64)
        wanted = Integer(2).check("n_bins", n_bins)
        if scores.size < 10 * wanted:
            rule = f"have at least 10 scores for each of {wanted} bins"
            raise InvalidValueError("reference", rule, got=counted(scores.size, "score"))
        seed = seed_number(random_state)
        n_pilot = max(wanted, min(_ROWS_A_BIN * wanted, scores.size // 10))
        order = RandomSource.of(seed, "pilot of scores").order(scores.size)
        pilot = scores[order[:n_pilot]]
        bins = ScorePartition.from_other_scores(pilot, wanted)
        if bins.n_regions < 2:
            raise InvalidValueError(
                "reference", "have scores that differ", got="one score nearly everywhere"
            )
        shares = (_counts(bins, pilot) + 0.5) / (n_pilot + 0.5 * bins.n_regions)
        pool = _counts(bins, scores[order[n_pilot:]])
        self._make(bins, np.asarray(shares, dtype=np.float64), seed, confidence_level, pool)

    def _make(
        self,
        partition: Partition,
        shares: FloatArray,
        seed: int,
        confidence_level: float,
        pool: IntArray | None = None,
    ) -> None:
        self._begin(confidence_level)
        self.partition = partition
        self.seed = seed
        self._shares = shares
        counts = np.zeros(shares.size, dtype=np.int64) if pool is None else pool
        n_channels = shares.size - 1
        slope = np.linspace(-1.0, 1.0, n_channels) if n_channels > 1 else np.zeros(1)
        directions = np.concatenate([np.ones((1, n_channels)), slope[None, :], np.eye(n_channels)])
        weights = np.concatenate([[LEVEL, SLOPE], np.full(n_channels, SINGLE / n_channels)])
        self._mixture = ShiftMixture(directions, weights)
        source = RandomSource.of(seed, "drift of scores")
        self._test = Pool(*_channels(counts), self._mixture, source)
        # stakes depend on the sizes of batch and pool, and on the shares of the pilot, but not on
        # the count of any bin
        cumulated = np.cumsum(shares)[1:]
        share = shares[1:] / cumulated
        self._variances = share * (1.0 - share) * cumulated

    def update(self, scores: ArrayLike, *, at: ArrayLike | None = None) -> Self:
        """Add a batch of scores; `at` gives their times, which are used to describe an alarm."""
        prepared = as_scores(scores)
        counts = _counts(self.partition, np.asarray(prepared, dtype=np.float64))
        time = None if at is None else shown_time(at, len(prepared))
        with self._lock:
            self._test.wait(*_channels(counts))
            if self._n_waiting >= _BATCH_ROWS:
                self._close(time)
        return self

    @property
    def _n_waiting(self) -> int:
        return int(self._test.waiting_rows[-1])

    def _close(self, time: str | None) -> None:
        test = self._test
        if self._mixture.begins():
            self._starts.append(self._moment(test.n_closed))
        n_batch = float(self._n_waiting)
        n_pool = float(test.pool_rows[-1])
        strength = np.sqrt(self._variances * n_batch * n_pool / (n_batch + n_pool))
        test.bet(strength, np.full(strength.size, n_pool))
        test.join()
        self.n_rows += int(n_batch)
        self._at = time or self._at
        self._look(test.n_closed)

    def _changes(self) -> tuple[Change, ...]:
        start = self._mixture.likely_start()
        before = _of_bins(int(self._mixture.first[start, 0]), self._test.first_hits[start])
        since = _of_bins(int(self._test.pool_rows[-1]), self._test.pool_hits) - before
        alpha = (1.0 - self.confidence_level) * float(start_weight(start))
        log_share = float(np.log(2.0 * before.size / alpha))
        total_before = np.full(before.size, before.sum())
        total_since = np.full(before.size, since.sum())
        old = CentredBetaBinomial.limits_of(total_before, before, log_share)
        new = CentredBetaBinomial.limits_of(total_since, since, log_share)
        share_before = before / max(1, int(before.sum()))
        share_since = since / max(1, int(since.sum()))
        spread = np.sqrt(
            share_before
            * (1.0 - share_before)
            * (1.0 / total_before + 1.0 / np.maximum(total_since, 1))
        )
        clarity = np.abs(share_since - share_before) / np.maximum(spread, 1e-12)
        return clear_changes(
            [f"share of {name}" for name in self.partition.describe()],
            clarity,
            np.ones(before.size, dtype=bool),
            since,
            (share_before, old),
            (share_since, new),
        )

    def summary(self) -> MonitorResult:
        """What was found so far, as data and in words."""
        with self._lock:
            waiting = self._n_waiting
            return self._result(
                question="scores",
                calm="No sign that the scores have changed",
                finding="The scores have changed",
                advice=(
                    "The rates may still hold: see expected_performance, and check labels with"
                    " DriftMonitor."
                ),
                assumptions=_ASSUMED,
                notes=(
                    (f"{counted(waiting, 'row')} are waiting for a batch of {_BATCH_ROWS}.",)
                    if waiting
                    else ()
                ),
            )


def _counts(bins: Partition, scores: Any) -> IntArray:
    """Number of scores in each bin."""
    regions = bins.regions_of(bins.prepare(scores))
    return np.bincount(regions, minlength=bins.n_regions).astype(np.int64)


def _channels(counts: IntArray) -> tuple[IntArray, IntArray]:
    """For each bin but the lowest: the rows in bins up to it, and in it."""
    return np.cumsum(counts)[1:], counts[1:]


def _of_bins(total: int, counts: IntArray) -> IntArray:
    """The rows of all bins, given those of all but the lowest."""
    return np.concatenate([[total - int(counts.sum())], counts])
