"""Common parts of all monitors: evidence that is evaluated after each batch, and an alarm that
stays on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.answers.model_text import checksum_of
from calibrant.cells.partition import Partition
from calibrant.errors import InvalidValueError
from calibrant.monitor.change import Change, Moment, MonitorResult
from calibrant.monitor.martingale import ShiftMixture
from calibrant.params.declared_state import NOTHING_KNOWN, SharedResumed
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.rules import OPEN_UNIT, TEXT, Number
from calibrant.params.saved_state import check_schema
from calibrant.params.state_kinds import Lists, Maybe, Nested, OneCount
from calibrant.text.numbers import counted


class EvidenceMonitor(SharedResumed):
    """A test that may be evaluated after every batch.

    A subclass implements `_log_evidence` and the texts.

    Several threads may update it; their batches are processed one at a time. A saved state has a
    checksum, so no change of it goes unnoticed.
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
    partition: Partition
    """The regions."""
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
    def largest(self) -> float:
        """The logarithm of the largest evidence so far."""
        return self._largest

    @property
    def progress(self) -> float:
        """The largest evidence so far, as a share of the evidence that raises an alarm."""
        return round(self._largest / self.log_threshold, 6)

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

    def _result(self, **words: Any) -> MonitorResult:
        """The result, from the words that are particular to a monitor."""
        return MonitorResult(
            alarm=self.alarm,
            confidence_level=self.confidence_level,
            log_evidence=self._largest,
            log_threshold=self.log_threshold,
            n_rows=self.n_rows,
            alarmed=self._alarmed,
            since=self._since() if self.alarm else None,
            changes=self._changes() if self.alarm else (),
            **words,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what is remembered as plain JSON values; `from_dict` reads it back."""
        state = super().to_dict()
        return {**state, "checksum": checksum_of(state)}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], known: Known = NOTHING_KNOWN) -> Self:
        """Read back what `to_dict` wrote; raise an error if it was changed."""
        check_schema(state, cls._schema, ("checksum",))
        if state["checksum"] != checksum_of(state):
            advice = "load an undamaged copy, or begin a new monitor"
            raise InvalidValueError("state", "be as it was saved", got="another", advice=advice)
        return super().from_dict(state, known)

    def __repr__(self) -> str:
        state = "alarm" if self.alarm else "no alarm"
        rows = counted(self.n_rows, "row")
        return (
            f"<{type(self).__name__} of {self.partition.n_regions} regions: {state} after {rows}>"
        )

    def _moment(self, batch: int) -> Moment:
        return Moment(batch, self.n_rows, self._at)

    def _look(self, batch: int) -> None:
        """Evaluate the evidence after a batch."""
        now = self._log_evidence()
        self._largest = max(self._largest, now)
        if self._alarmed is None and now >= self.log_threshold:
            self._alarmed = self._moment(batch)


class ShiftMonitor(EvidenceMonitor):
    """A monitor that bets on shifts of normal numbers, from starts that are fixed beforehand."""

    _mixture: ShiftMixture

    @abstractmethod
    def _make(self, *arguments: Any, **settings: Any) -> None:
        """Begin, with settings that are checked or were saved."""

    @classmethod
    def _begun(cls, settings: dict[str, Any], known: Known) -> Self:
        monitor = cls.__new__(cls)
        monitor._make(**{name.removeprefix("_"): value for name, value in settings.items()})
        return monitor

    def _log_evidence(self) -> float:
        return self._mixture.log_evidence()

    def _since(self) -> Moment | None:
        return self._starts[self._mixture.likely_start()] if self._starts else None
