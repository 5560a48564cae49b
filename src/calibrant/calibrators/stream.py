"""What a stream remembers: its regions, or the scores that will cut them, and its confidence sequence."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from calibrant._typing import FloatArray
from calibrant.errors import InvalidValueError
from calibrant.intervals import Interval
from calibrant.partition import Partition, ScorePartition
from calibrant.sequences import Sequence, get_sequence
from calibrant.tally import Tally


class Settings(Protocol):
    """The parameters of a calibrator that a stream begins with and keeps."""

    partition: Partition | None
    confidence_level: float
    sequence: str
    running: bool


class Stream:
    """Everything a stream remembers: its regions, or the scores that will cut them, and its confidence sequence."""

    def __init__(self, settings: Settings) -> None:
        self.confidence_level, self._running = float(settings.confidence_level), bool(settings.running)
        self._kind = get_sequence(settings.sequence)
        self.partition: Partition | None = None
        self.window = np.empty(0)
        self.sequence: Sequence = self._kind(1, 1.0 - self.confidence_level)
        self.uncounted = 0
        self.lower: FloatArray | None = None
        self.upper: FloatArray | None = None
        self.contradicts = False

    @classmethod
    def start(cls, settings: Settings) -> "Stream":
        """Begin a stream, over the given partition or with a start-up window."""
        stream = cls(settings)
        if settings.partition is not None:
            stream.set_partition(settings.partition)
        return stream

    def check_unchanged(self, settings: Settings) -> None:
        """Refuse to go on under another promise than the one the stream began with."""
        began = (self.confidence_level, self._kind.name, self._running)
        now = (float(settings.confidence_level), settings.sequence, bool(settings.running))
        if began != now or (settings.partition is not None and settings.partition != self.partition):
            raise InvalidValueError(
                "partition, confidence_level, sequence and running must stay as they were in the first batch; got "
                "other ones: call fit to begin anew"
            )

    def set_partition(self, partition: Partition) -> None:
        """Begin to count in the regions of `partition`."""
        self.partition = partition
        self.sequence = self._kind(partition.n_regions, 1.0 - self.confidence_level)
        if self._running:
            self.lower, self.upper = np.zeros(partition.n_regions), np.ones(partition.n_regions)

    def warm_up(self, scores: FloatArray, n_bins: int, warmup: int) -> int:
        """Take scores into the start-up window; return how many it took."""
        used = min(scores.size, warmup - self.window.size)
        self.window = np.concatenate([self.window, scores[:used]])
        if self.window.size == warmup:
            self.set_partition(ScorePartition.from_other_scores(self.window, n_bins))
            self.window = np.empty(0)
        return used

    def count(self, prepared: Any, codes: Any, threads: int) -> None:
        """Count a batch that the partition has prepared."""
        if self.partition is None or len(codes) == 0:
            return
        if self.sequence.order_free:
            counts, positives, uncounted = self.partition._count(prepared, codes, threads=threads)
            self.sequence.add_counts(counts, positives)
        else:
            regions = self.partition._membership(prepared, threads=threads)
            self.sequence.update(regions, codes)
            uncounted = int(np.count_nonzero(regions < 0))
        self.uncounted += uncounted
        if self.lower is not None and self.upper is not None:
            now = self.sequence.limits()
            lower, upper = np.maximum(self.lower, now.lower), np.minimum(self.upper, now.upper)
            self.contradicts |= bool((lower > upper).any())
            # where no rate agrees with all moments, keep what lies between the limits that contradict each other
            self.lower, self.upper = np.minimum(lower, upper), np.maximum(lower, upper)

    def limits(self) -> Interval:
        """Return the limits of every region now."""
        if self.lower is not None and self.upper is not None:
            return Interval(self.lower.copy(), self.upper.copy())
        return self.sequence.limits()

    def tally(self) -> Tally:
        """Return what was counted so far."""
        fingerprint = None if self.partition is None else self.partition.fingerprint
        return Tally(self.sequence.counts, self.sequence.positives, self.uncounted, fingerprint)

    def to_dict(self) -> dict[str, Any]:
        """Return everything that is remembered, as plain JSON values."""
        return {
            "partition": None if self.partition is None else self.partition.to_dict(),
            "window": self.window.tolist(),
            "sequence": self.sequence.state(),
            "uncounted": self.uncounted,
            "running": None if self.lower is None or self.upper is None else [self.lower.tolist(), self.upper.tolist()],
            "contradicts": self.contradicts,
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], settings: Settings) -> "Stream":
        """Take over what `to_dict` gave."""
        stream = cls(settings)
        if state["partition"] is not None:
            stream.set_partition(Partition.from_dict(state["partition"]))
        stream.window = np.array(state["window"], dtype=np.float64)
        stream.sequence.restore(state["sequence"])
        stream.uncounted = int(state["uncounted"])
        if state["running"] is not None:
            stream.lower, stream.upper = (np.array(limits, dtype=np.float64) for limits in state["running"])
        stream.contradicts = bool(state["contradicts"])
        return stream
