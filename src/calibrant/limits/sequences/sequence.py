"""The interface of confidence sequences: take labels region by region, and give limits that hold at
every moment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IndexArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.kernels import Implementation
from calibrant.limits.interval import Interval, around
from calibrant.params.declared_state import Resumed
from calibrant.params.kind import EntryTable
from calibrant.params.rules import OPEN_UNIT
from calibrant.params.state_kinds import Counts, Numbers
from calibrant.text.sentences import shown

NUMBA_LABELS = 300_000  # labels from which on loading compiled numba code pays off


class Sequence(Resumed, ABC):
    """Limits on the rate of each of `n_regions` regions, valid for all regions and all times
    simultaneously.

    Claimed: with probability at least 1 - alpha, the limits hold after every label, in every
    region, whatever rule decides from past labels when to look, when to stop, and which region to
    label next. Assumed: within a region, the labels are independent draws with one rate. A rule
    that chooses rows within a region, or labels that arrive later for one class, break that
    assumption.

    Parameters
    ----------
    n_regions : int
        Number of regions B, among which alpha is shared equally.
    alpha : float in (0, 1)
        The largest probability that any limit ever misses.
    """

    name: ClassVar[str]
    theorem: ClassVar[str]
    order_free: ClassVar[bool]
    """Whether the limits depend on the counts alone, so that two streams can be merged."""
    why_not_mergeable: ClassVar[str] = ""
    most_regions: ClassVar[int | None] = None
    """The largest number of regions in a saved stream, if the memory for each region is large."""

    _entries: ClassVar[EntryTable] = {
        "counts": Counts(size="n_regions"),
        "positives": Counts(size="n_regions"),
    }

    counts: IntArray
    positives: IntArray

    def __init__(self, n_regions: int, alpha: float) -> None:
        self.alpha = OPEN_UNIT.check("alpha", alpha)
        self.n_regions = n_regions
        self.counts, self.positives = np.zeros((2, n_regions), dtype=np.int64)

    @property
    def log_share(self) -> float:
        """Return log(B / alpha), the log evidence that rules out a rate in one region."""
        return float(np.log(self.n_regions) - np.log(self.alpha))

    def update(self, regions: IndexArray, codes: CodeArray) -> None:
        """Add labels (0 or 1) in the order in which they arrived.

        `regions` has the region of each label.
        """
        for region, labels in by_region(regions, codes):
            self._append(region, labels)
            self.counts[region] += labels.size
            self.positives[region] += int(np.count_nonzero(labels))

    def add_counts(self, counts: IntArray, positives: IntArray) -> None:
        """Add labels of which only the counts are known."""
        if not self.order_free:
            got = f"{self.name!r}: {self.why_not_mergeable}"
            raise InvalidTypeError("sequence", "depend on counts only to take counts", got=got)
        self.counts += counts
        self.positives += positives

    @abstractmethod
    def _append(self, region: int, labels: CodeArray) -> None:
        """Process the labels of one region before they are added to its counts."""

    @abstractmethod
    def limits(self) -> Interval:
        """Return the current limits of every region."""

    @classmethod
    @abstractmethod
    def path(
        cls, labels: CodeArray, alpha: float, *, implementation: Implementation = None
    ) -> Interval:
        """Return the limits after each label of a single stream."""

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Restore the state that `to_dict` wrote."""
        return self._resume(state)

    def _check_state(self) -> None:
        if (self.positives > self.counts).any():
            rule = "be at most counts in every region"
            raise InvalidValueError("positives", rule, got=shown(self.positives.tolist()))


class CountSequence(Sequence):
    """A sequence whose limits depend on counts alone: the order of labels does not matter, and
    streams can be merged.
    """

    order_free = True

    @staticmethod
    @abstractmethod
    def limits_of(counts: IntArray, positives: IntArray, log_share: float) -> Interval:
        """Return the limits for given counts and log(B / alpha)."""

    def _append(self, region: int, labels: CodeArray) -> None:
        """Do nothing: only the counts are stored."""

    def limits(self) -> Interval:
        """Return the current limits of every region."""
        return self.limits_of(self.counts, self.positives, self.log_share)

    @classmethod
    def path(
        cls, labels: CodeArray, alpha: float, *, implementation: Implementation = None
    ) -> Interval:
        """Return the limits after each label of a single stream."""
        hits = np.cumsum(labels, dtype=np.int64)
        return cls.limits_of(np.arange(1, labels.size + 1), hits, cls(1, alpha).log_share)


class HalfWidthSequence(Sequence):
    """A sequence whose limits are the rate plus and minus a half-width, which depends on the sum of
    squared surprises.

    It stores V = sum over i of (Y_i - mean of the labels before i)², where the mean before the
    first label is 1/2.
    """

    order_free = False
    _entries: ClassVar[EntryTable] = {"surprise": Numbers(size="n_regions", low=0.0)}

    why_not_mergeable = (
        "its width depends on how well earlier labels predict each label, so on their order"
    )

    def __init__(self, n_regions: int, alpha: float) -> None:
        super().__init__(n_regions, alpha)
        self.surprise = np.zeros(n_regions)

    @staticmethod
    @abstractmethod
    def half_width(counts: FloatArray, surprise: FloatArray, log_share: float) -> FloatArray:
        """Return the half-width for given counts, V = max(1, surprise), and log(B / alpha)."""

    def _append(self, region: int, labels: CodeArray) -> None:
        terms = squared_surprises(labels, int(self.counts[region]), int(self.positives[region]))
        # add one term at a time to the stored sum, so that batch sizes do not change a bit of it
        self.surprise[region] = np.cumsum(
            np.concatenate([self.surprise[region : region + 1], terms])
        )[-1]

    def limits(self) -> Interval:
        """Return the current limits of every region."""
        return self._around(self.counts, self.positives, self.surprise, self.log_share)

    @classmethod
    def path(
        cls, labels: CodeArray, alpha: float, *, implementation: Implementation = None
    ) -> Interval:
        """Return the limits after each label of a single stream."""
        counts = np.arange(1, labels.size + 1)
        hits = np.cumsum(labels, dtype=np.int64)
        return cls._around(
            counts, hits, np.cumsum(squared_surprises(labels, 0, 0)), cls(1, alpha).log_share
        )

    @classmethod
    def _around(
        cls, counts: IntArray, positives: IntArray, surprise: FloatArray, log_share: float
    ) -> Interval:
        n = np.maximum(counts, 1).astype(np.float64)
        rate = np.where(counts > 0, positives / n, np.nan)
        return around(rate, cls.half_width(n, np.maximum(surprise, 1.0), log_share))


def squared_surprises(labels: CodeArray, n_before: int, k_before: int) -> FloatArray:
    """Return (Y_i - mean of the labels before i)² for labels that follow `n_before` with `k_before`
    positives.
    """
    seen = n_before + np.arange(labels.size)
    hits = (
        k_before + np.concatenate([[0], np.cumsum(labels[:-1], dtype=np.int64)])
        if labels.size
        else np.empty(0)
    )
    mean = np.where(seen > 0, hits / np.maximum(seen, 1), 0.5)
    return np.asarray(np.square(labels - mean))


def by_region(regions: IndexArray, codes: CodeArray) -> Iterator[tuple[int, CodeArray]]:
    """Yield each region with its labels in order of arrival; -1 means no region."""
    order = np.argsort(regions, kind="stable")
    ordered = regions[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-2))
    for piece in np.split(order, starts[1:]):
        if piece.size and regions[piece[0]] >= 0:
            yield int(regions[piece[0]]), codes[piece]
