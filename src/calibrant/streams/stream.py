"""The state of a stream: its regions, or the scores that will cut them, and its confidence
sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self
from uuid import uuid4

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.cells.partition import Partition
from calibrant.cells.score_partition import ScorePartition
from calibrant.cells.tally import Tally
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval, PairOfLimits
from calibrant.limits.sequences.sequence import Sequence
from calibrant.limits.sequences.sequence_methods import SEQUENCES, get_sequence
from calibrant.params.declared_state import Resumed, Resumes
from calibrant.params.kind import Entry, EntryTable, Known
from calibrant.params.random import RandomSource
from calibrant.params.rules import TEXT, Choice, Flag, Instance, Optional, RuleTable
from calibrant.params.state_kinds import Mapped, Maybe, Nested, Numbers, OneCount
from calibrant.text.sentences import shown

_LONGEST_IDENTITY = 64


@dataclass(eq=False, repr=False)
class StreamParameters:
    """The calibrator parameters that a stream starts with and keeps."""

    _rules: ClassVar[RuleTable] = {
        "partition": Optional(Instance(Partition, "a Partition")),
        "sequence": Choice(SEQUENCES),
        "running": Flag(),
    }

    partition: Partition | None = None
    _: KW_ONLY
    confidence_level: float = 0.9
    sequence: str = "centred-beta-binomial"
    running: bool = False


class Stream(Resumed):
    """The state of a stream: its regions, or the scores that will cut them, and its confidence
    sequence.

    Each stream has a random identity, which is saved with it. For every other stream that was
    merged into it, it stores the identity and the counts, so that a later state of that stream
    replaces the earlier one.
    """

    _entries: ClassVar[EntryTable] = {
        "partition": Entry(Maybe(Nested(Partition)), makes=True),
        "window": Numbers(),
        "sequence": Resumes("sequence"),
        "uncounted": OneCount(),
        "running": Maybe(PairOfLimits()),
        "contradicts": Flag(),
        "identity": TEXT,
        "merged": Mapped(Nested(Tally), _LONGEST_IDENTITY),
        "one_of_each": Entry(Flag(), absent=False),
    }

    def __init__(self, settings: StreamParameters, partition: Partition | None) -> None:
        self.confidence_level = float(settings.confidence_level)
        self._runs = bool(settings.running)
        self._kind = get_sequence(settings.sequence)
        self.partition: Partition | None = None
        self.window = np.empty(0)
        self.sequence: Sequence = self._kind(1, 1.0 - self.confidence_level)
        self.uncounted = 0
        self.running: Interval | None = (
            None  # the limits of all moments so far, if they never widen
        )
        self.contradicts = False
        self.identity = uuid4().hex
        self.merged: dict[str, Tally] = {}
        self.read: tuple[str, ...] = ()  # what came from a saved state, which no rows here confirm
        self.one_of_each = False  # whether batches counted one row of each group
        if partition is not None:
            self.set_partition(partition)

    @property
    def seed(self) -> int:
        """The seed of draws within batches: fresh for each stream, and saved with it like its
        identity.
        """
        return RandomSource.of(0, "stream", self.identity).key

    def check_unchanged(self, settings: StreamParameters) -> None:
        """Raise an error if the guarantee would differ from the one that the stream started with."""
        began = (self.confidence_level, self._kind.name, self._runs)
        now = (float(settings.confidence_level), settings.sequence, bool(settings.running))
        if began != now or (
            settings.partition is not None and settings.partition != self.partition
        ):
            names = "partition, confidence_level, sequence and running"
            raise InvalidValueError(
                names,
                "stay the same as in the first batch",
                "other values",
                "call fit to start again",
            )

    def set_partition(self, partition: Partition) -> None:
        """Start counting in the regions of `partition`."""
        self.partition = partition
        self.sequence = self._kind(partition.n_regions, 1.0 - self.confidence_level)
        if self._runs:
            self.running = Interval(np.zeros(partition.n_regions), np.ones(partition.n_regions))

    def warm_up(self, scores: FloatArray, n_bins: int, warmup: int) -> int:
        """Add scores to the start-up window; return how many were added."""
        used = min(scores.size, warmup - self.window.size)
        self.window = np.concatenate([self.window, scores[:used]])
        if self.window.size == warmup:
            self.set_partition(ScorePartition.from_other_scores(self.window, n_bins))
            self.window = np.empty(0)
        return used

    def count(self, prepared: Any, codes: CodeArray, threads: int) -> None:
        """Count a batch prepared by the partition."""
        if self.partition is None or len(codes) == 0:
            return
        if self.sequence.order_free:
            self.add(*self.partition.count(prepared, codes, threads=threads))
            return
        regions = self.partition.membership(prepared, threads=threads)
        self.sequence.update(regions, codes)
        self.uncounted += int(np.count_nonzero(regions < 0))
        self._look()

    def add(self, counts: IntArray, positives: IntArray, uncounted: int) -> None:
        """Add rows given only as counts."""
        self.sequence.add_counts(counts, positives)
        self.uncounted += uncounted
        self._look()

    def _look(self) -> None:
        """If limits never widen, intersect them with the current ones."""
        if self.running is None:
            return
        now = self.sequence.limits()
        lower = np.maximum(self.running.lower, now.lower)
        upper = np.minimum(self.running.upper, now.upper)
        self.contradicts |= bool((lower > upper).any())
        # if no rate agrees with all moments, keep the range between the contradicting limits
        self.running = Interval(np.minimum(lower, upper), np.maximum(lower, upper))

    def limits(self) -> Interval:
        """Return the current limits of every region."""
        if self.running is None:
            return self.sequence.limits()
        return Interval(self.running.lower.copy(), self.running.upper.copy())

    def tally(self) -> Tally:
        """Return the counts so far."""
        counts = self.sequence.counts
        return Tally(counts, self.sequence.positives, self.uncounted, self.partition)

    def parts(self) -> dict[str, Tally]:
        """Return the counts so far, by the identity of the stream that made them, this one first."""
        own = self.tally()
        for other in self.merged.values():
            own = _minus(own, other)
        return {self.identity: own, **self.merged}

    def merge(self, others: Mapping[str, Tally]) -> None:
        """Merge the parts of another stream. Of two states of the same stream, keep the longer."""
        mine = self.parts()
        nothing = _minus(self.tally(), self.tally())
        known = {identity: mine.get(identity, nothing) for identity in others}
        for identity, part in others.items():
            if not (_continues(part, known[identity]) or _continues(known[identity], part)):
                got = "two different continuations of one stream"
                raise InvalidValueError(
                    "other", "contain only streams that were continued in one place", got=got
                )
        for identity, part in others.items():
            if part.n_rows > known[identity].n_rows:
                new = _minus(part, known[identity])
                self.add(new.counts, new.positives, new.uncounted)
                if identity != self.identity:
                    self.merged[identity] = part

    @property
    def n_regions(self) -> int:
        """Number of regions; one while the start-up window is being filled."""
        return self.sequence.n_regions

    @classmethod
    def _begun(cls, settings: dict[str, Any], known: Known) -> Self:
        return cls(known["self"], settings["partition"])

    def _check_state(self) -> None:
        if self.partition is not None and self.window.size:
            got = f"{self.window.size:,} scores"
            raise InvalidValueError("window", "be empty once there are regions", got=got)
        never_widens = self._runs and self.partition is not None
        if (self.running is not None) != never_widens:
            rule = "be limits where limits never widen, else null"
            raise InvalidValueError("running", rule, got=shown(self.running))
        if not 0 < len(self.identity) <= _LONGEST_IDENTITY:
            rule = f"have 1 to {_LONGEST_IDENTITY} characters"
            raise InvalidValueError("identity", rule, got=shown(self.identity))
        self._check_parts()
        from_counts = self.running is None and self.sequence.order_free
        self.read = ("counts",) if from_counts else ("counts", "limits")

    def _check_parts(self) -> None:
        """Raise an error for counts of other streams that cannot be part of these."""
        whole = self.tally()  # raises an error for invalid counts
        parts = list(self.merged.values())
        if self.identity in self.merged or any(
            part.weights or (part.partition, part.n_regions) != (whole.partition, whole.n_regions)
            for part in parts
        ):
            raise InvalidValueError(
                "merged",
                "be counts of other streams over the same partition",
                got=shown(list(self.merged)),
            )
        if parts and not _continues(whole, sum(parts[1:], start=parts[0])):
            raise InvalidValueError("merged", "be part of the counts", got=shown(list(self.merged)))


def _minus(whole: Tally, part: Tally) -> Tally:
    counts = whole.counts - part.counts
    positives = whole.positives - part.positives
    return Tally(counts, positives, whole.uncounted - part.uncounted, whole.over)


def _continues(long: Tally, short: Tally) -> bool:
    """Whether one tally can be a later state of the stream that had the other."""
    return (
        bool((long.positives >= short.positives).all())
        and bool((long.counts - long.positives >= short.counts - short.positives).all())
        and long.uncounted >= short.uncounted
    )
