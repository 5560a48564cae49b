"""What a stream remembers: its regions, or the scores that will cut them, and its confidence sequence."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from calibrant._params import Number, check_state
from calibrant._state import read_count, read_flag, read_limits, read_numbers
from calibrant._text import shown
from calibrant._typing import FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.intervals import Interval
from calibrant.partition import Partition, ScorePartition
from calibrant.sequences import Sequence, get_sequence
from calibrant.tally import Tally

_MOST_GAMBLERS = 5000  # regions of a saved stream of bets: a pair of gamblers takes 16 kB


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
        """Raise where the guarantee would not be the one that the stream began with."""
        began = (self.confidence_level, self._kind.name, self._running)
        now = (float(settings.confidence_level), settings.sequence, bool(settings.running))
        if began != now or (settings.partition is not None and settings.partition != self.partition):
            raise InvalidValueError(
                "partition, confidence_level, sequence and running",
                "stay as in the first batch",
                got="others",
                advice="call fit to start again",
            )

    def set_partition(self, partition: Partition) -> None:
        """Begin to count in the regions of `partition`."""
        self.partition = partition
        self.sequence = self._kind(partition.n_regions, 1.0 - self.confidence_level)
        if self._running:
            self.lower, self.upper = np.zeros(partition.n_regions), np.ones(partition.n_regions)

    def warm_up(self, scores: FloatArray, n_bins: int, warmup: int) -> int:
        """Put scores into the start-up window; return how many."""
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
            self.add(*self.partition.count(prepared, codes, threads=threads))
            return
        regions = self.partition.membership(prepared, threads=threads)
        self.sequence.update(regions, codes)
        self.uncounted += int(np.count_nonzero(regions < 0))
        self._look()

    def add(self, counts: IntArray, positives: IntArray, uncounted: int) -> None:
        """Take rows that are only known by their counts."""
        self.sequence.add_counts(counts, positives)
        self.uncounted += uncounted
        self._look()

    def _look(self) -> None:
        """Where limits never widen, intersect them with those of now."""
        if self.lower is None or self.upper is None:
            return
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
        """Read back what `to_dict` wrote."""
        check_state(state, ("partition", "window", "sequence", "uncounted", "running", "contradicts"))
        stream = cls(settings)
        partition = None if state["partition"] is None else Partition.from_dict(state["partition"])
        n_regions = 1 if partition is None else partition.n_regions
        saved = state["sequence"]
        _check_sequence(saved, stream.sequence.state(), n_regions)
        if partition is not None:
            stream.set_partition(partition)
        stream.window = read_numbers(state["window"], "window", size=None if partition is None else 0)
        try:
            stream.sequence.restore(saved)
        except (TypeError, ValueError, OverflowError, KeyError) as error:
            rule = f"be what {settings.sequence!r} remembers"
            raise InvalidValueError("sequence", rule, got=f"something else ({error})") from None
        stream.uncounted = read_count(state, "uncounted")
        running = state["running"]
        if stream.lower is None:
            if running is not None:
                raise InvalidValueError("running", "be null for a stream without running limits", got=shown(running))
        elif not isinstance(running, list | tuple) or len(running) != 2:
            raise InvalidValueError("running", "be the lower and the upper limits", got=shown(running))
        else:
            stream.lower, stream.upper = read_limits(running[0], running[1], n_regions)
        stream.contradicts = read_flag(state, "contradicts")
        stream.tally()  # raises for counts that are not valid
        return stream


def _check_sequence(saved: Any, example: Mapping[str, Any], n_regions: int) -> None:
    """Check a saved sequence before memory is taken for all of its regions."""
    check_state(saved, tuple(example))
    Tally(saved["counts"], saved["positives"])
    if "surprise" in example:
        read_numbers(saved["surprise"], "surprise")
    if "gamblers" not in example:
        return
    gamblers = saved["gamblers"]
    if not isinstance(gamblers, list | tuple) or len(gamblers) != n_regions or n_regions > _MOST_GAMBLERS:
        rule = f"be one pair per region, for at most {_MOST_GAMBLERS:,} regions"
        raise InvalidValueError("gamblers", rule, got=shown(gamblers))
    for one in gamblers:
        check_state(one, ("squares", "low", "high", "too_low", "too_high"))
        Number("a number >= 0", 0.0).check("squares", one["squares"])
        alive = read_count(one, "high") - read_count(one, "low")
        for name in ("too_low", "too_high"):
            read_numbers(one[name], name, size=alive, low=0.0)
