"""The interface of confidence sequences: take labels region by region, and give limits that hold at
every moment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from calibrant._typing import CodeArray, IndexArray, IntArray
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.limits.interval import Interval
from calibrant.params.declared_state import Resumed
from calibrant.params.kind import EntryTable
from calibrant.params.rules import OPEN_UNIT
from calibrant.params.state_kinds import Counts
from calibrant.text.sentences import shown


class Sequence(Resumed, ABC):
    """Limits on the rate of each of `n_regions` regions, valid for all regions and all times
    simultaneously.

    Guarantee: with probability at least 1 - alpha, the limits hold after every label, in every
    region, whatever rule decides from past labels when to look, when to stop, and which region to
    label next. Assumptions: within a region, the labels are independent draws with one rate. A rule
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

    def _append(self, region: int, labels: CodeArray) -> None:
        """Process the labels of one region before they are added to its counts; nothing if only
        the counts are stored.
        """

    @abstractmethod
    def limits(self) -> Interval:
        """Return the current limits of every region."""

    @classmethod
    @abstractmethod
    def path(cls, labels: CodeArray, alpha: float) -> Interval:
        """Return the limits after each label of a single stream."""

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Restore the state that `to_dict` wrote."""
        return self._resume(state)

    def _check_state(self) -> None:
        if (self.positives > self.counts).any():
            rule = "be at most counts in every region"
            raise InvalidValueError("positives", rule, got=shown(self.positives.tolist()))


def by_region(regions: IndexArray, codes: CodeArray) -> Iterator[tuple[int, CodeArray]]:
    """Yield each region with its labels in order of arrival; -1 means no region."""
    order = np.argsort(regions, kind="stable")
    ordered = regions[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-2))
    for piece in np.split(order, starts[1:]):
        if piece.size and regions[piece[0]] >= 0:
            yield int(regions[piece[0]]), codes[piece]
