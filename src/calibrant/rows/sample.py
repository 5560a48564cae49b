"""How many rows there are, and a random part of them that only cuts bins."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._typing import FloatArray
from calibrant.errors import InvalidValueError
from calibrant.rows.batch import BatchRows, read_batch
from calibrant.rows.draw import Draw, Keys, SmallestHashes, mixed, repeated, smallest
from calibrant.rows.faults import Faults, Place
from calibrant.rows.work import Work

_MOST_SEGMENTS = 100_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of each segment; the only segment's name is None where there are none. Skipped rows are in no segment."""

    rows: Mapping[Any, int] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    skipped: int = 0

    @classmethod
    def of(cls, rows: BatchRows, faults: Faults) -> "Sizes":
        """Count the rows of a batch."""
        if rows.segments is None:
            return cls({None: len(rows)}, faults, rows.skipped)
        counts = np.bincount(rows.segments.number, minlength=len(rows.segments.names)).tolist()
        return cls({name: n for name, n in zip(rows.segments.names, counts, strict=True) if n}, faults, rows.skipped)

    def __add__(self, other: "Sizes") -> "Sizes":
        total = Counter(self.rows)
        total.update(other.rows)
        if len(total) > _MOST_SEGMENTS:
            raise InvalidValueError(
                "segment",
                f"have at most {_MOST_SEGMENTS:,} different entries",
                got="more",
                advice="name a column of groups, not of ids",
            )
        return Sizes(total, self.faults + other.faults, self.skipped + other.skipped)


@dataclass(frozen=True, slots=True)
class CountSegments(Work[Sizes]):
    """Count rows by segment. The score is read too, so that faults are reported at once."""

    roles = ("segment",)

    def __call__(self, batch: Any, place: Place) -> Sizes:
        """Count the rows of one batch."""
        return Sizes.of(*read_batch(batch, self.columns, place))

    def nothing(self) -> Sizes:
        """No rows."""
        return Sizes()


@dataclass(frozen=True, slots=True)
class Seal:
    """How many rows, and a sum over them that tells whether two passes have drawn the same ones."""

    rows: int = 0
    total: int = 0

    @classmethod
    def of(cls, scores: FloatArray, keys: Keys) -> "Seal":
        """The seal of rows with these scores and keys."""
        bits = scores.astype(np.float64).view(np.uint64)
        return cls(len(scores), int(mixed(keys ^ mixed(bits)).sum(dtype=np.uint64)))

    def __add__(self, other: "Seal") -> "Seal":
        return Seal(self.rows + other.rows, (self.total + other.total) % 2**64)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Scores of the drawn rows by segment, in no particular order; and how many rows there are in all.

    `ids` are keys of ids: of all drawn rows, and twice of an id that several rows of one batch share.
    """

    scores: Mapping[Any, tuple[FloatArray, ...]] = field(default_factory=dict)
    seal: Seal = field(default_factory=Seal)
    sizes: Sizes = field(default_factory=Sizes)
    ids: tuple[Keys, ...] = ()

    def __add__(self, other: "Sample") -> "Sample":
        scores = dict(self.scores)
        for segment, more in other.scores.items():
            scores[segment] = (*scores.get(segment, ()), *more)
        return Sample(scores, self.seal + other.seal, self.sizes + other.sizes, self.ids + other.ids)

    def of_segment(self, segment: Any) -> FloatArray:
        """The scores of one segment."""
        return np.concatenate([np.empty(0), *self.scores.get(segment, ())])


@dataclass(frozen=True, slots=True)
class TakeSample(Work[Sample]):
    """Take the scores of the drawn rows. No label is read, so that the cut cannot depend on one."""

    roles = ("segment", "id")
    draw: Draw

    def __call__(self, batch: Any, place: Place) -> Sample:
        """Take them from one batch."""
        rows, faults = read_batch(batch, self.columns, place, keys=True)
        drawn = rows.take(np.flatnonzero(self.draw.chosen(rows.keys)))
        scores = {name: (drawn.scores[index].astype(np.float64),) for name, index in drawn.by_segment()}
        kept = {name: part for name, part in scores.items() if part[0].size}
        ids = () if self.columns.id is None else (drawn.keys, np.repeat(repeated(rows.keys)[:1], 2))
        return Sample(kept, Seal.of(drawn.scores, drawn.keys), Sizes.of(rows, faults), ids)

    def nothing(self) -> Sample:
        """No rows."""
        return Sample()


@dataclass(frozen=True, slots=True)
class FindSmallest(Work[SmallestHashes]):
    """Find the smallest hashes, for a draw of an exact number of rows."""

    roles = ("id",)
    seed: int
    most: int

    @property
    def drawn(self) -> Draw:
        """No row yet: the limit is what is looked for."""
        return Draw(self.seed, 0)

    def __call__(self, batch: Any, place: Place) -> SmallestHashes:
        """The smallest hashes of one batch."""
        rows, _ = read_batch(batch, self.columns, place, keys=True)
        return SmallestHashes(self.most, smallest(self.drawn.hashes(rows.keys), self.most))

    def nothing(self) -> SmallestHashes:
        """No rows."""
        return SmallestHashes(self.most)
