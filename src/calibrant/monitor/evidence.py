"""Common parts of all monitors: evidence that is evaluated after each batch, and an alarm that
stays on.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from calibrant.errors import InvalidValueError
from calibrant.monitor.change import Change, Moment, MonitorResult
from calibrant.params.declared_state import SharedResumed
from calibrant.params.kind import Entry, EntryTable
from calibrant.params.rules import OPEN_UNIT, TEXT, Number
from calibrant.params.state_kinds import Lists, Maybe, Nested, OneCount

_ROUNDING = 1e-9  # tolerance for saved evidence


class EvidenceMonitor(SharedResumed):
    """A test that may be evaluated after every batch.

    A subclass implements `_log_evidence` and the texts.

    Several threads may update it; their batches are processed one at a time.
    """

    _entries: ClassVar[EntryTable] = {
        "confidence_level": Entry(OPEN_UNIT, makes=True),
        "n_rows": OneCount(),
        "largest": Entry(Number("a number >= 0", 0.0), of="_largest"),
        "alarmed": Entry(Maybe(Nested(Moment)), of="_alarmed"),
        "starts": Entry(Lists(Nested(Moment), into=list), of="_starts"),
        "at": Entry(Maybe(TEXT), of="_at"),
    }

    confidence_level: float
    n_rows: int
    """The number of counted rows."""

    def _begin(self, confidence_level: float) -> None:
        self.confidence_level = OPEN_UNIT.check("confidence_level", confidence_level)
        self.n_rows = 0
        self._largest = 0.0
        self._alarmed: Moment | None = None
        self._starts: list[Moment] = []
        self._at: str | None = None

    @property
    def log_threshold(self) -> float:
        """Evidence at which an alarm is raised: log(1 / alpha)."""
        return -float(np.log1p(-self.confidence_level))

    @property
    def log_evidence(self) -> float:
        """Logarithm of the martingale now; the alarm depends on its largest value so far."""
        with self._lock:
            return self._log_evidence()

    @property
    def alarm(self) -> bool:
        """Whether an alarm was ever raised."""
        return self._alarmed is not None

    @property
    def verdict(self) -> str:
        """The conclusion, in words."""
        return self.summary().sentence

    @property
    def changes(self) -> tuple[Change, ...]:
        """What has changed, after an alarm: over all regions first, then the regions with a clear
        change.
        """
        with self._lock:
            return self._changes() if self.alarm else ()

    @abstractmethod
    def summary(self) -> MonitorResult:
        """What was found so far, as data and in words."""

    @abstractmethod
    def _log_evidence(self) -> float:
        """The logarithm of the martingale."""

    @abstractmethod
    def _changes(self) -> tuple[Change, ...]:
        """What has changed since the most likely start."""

    @abstractmethod
    def _since(self) -> Moment | None:
        """The most likely start."""

    def _moment(self, batch: int) -> Moment:
        return Moment(batch, self.n_rows, self._at)

    def _look(self, batch: int) -> None:
        """Evaluate the evidence after a batch."""
        now = self._log_evidence()
        self._largest = max(self._largest, now)
        if self._alarmed is None and now >= self.log_threshold:
            self._alarmed = self._moment(batch)

    def _check_state(self) -> None:
        """Check the saved evidence against the bets, which are already restored."""
        if self._largest < self._log_evidence() - _ROUNDING:
            rule = "be at least the evidence of the saved bets"
            raise InvalidValueError("largest", rule, got=str(self._largest))
        if self.alarm != (self._largest >= self.log_threshold):
            rule = "be a moment if, and only if, the evidence was large enough"
            raise InvalidValueError("alarmed", rule)
