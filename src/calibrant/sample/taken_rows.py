"""Work that counts rows by segment, takes rows into memory (a random part or all), and finds
distinct scores.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, IndexArray, Keys
from calibrant.cells.bins import OTHER
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import repeated
from calibrant.params.random import Draw, RowSums, SmallestHashes, mixed, smallest
from calibrant.sample.batch import BatchRows, Coded, Columns, Work, read_batch
from calibrant.sample.faults import Fault, Faults, Place

COLLECT_LIMIT = 100_000_000
"""The largest number of rows brought into memory: about 2 GB of scores and labels."""

_MOST_SEGMENTS = 100_000
_GLANCE = 1 << 14  # rows inspected first


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of each segment, without skipped rows; data without segments have one segment, None.

    `sums` are the sums from which the fingerprint of the rows is computed, if requested.
    """

    rows: Mapping[Hashable, int] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    skipped: int = 0
    sums: RowSums = field(default_factory=RowSums)

    @classmethod
    def of(cls, rows: BatchRows, faults: Faults, sums: RowSums | None = None) -> "Sizes":
        """Count the rows of a batch."""
        counts: Mapping[Hashable, int] = (
            {None: len(rows)} if rows.segments is None else rows.segments.rows()
        )
        return cls(counts, faults, rows.skipped, RowSums() if sums is None else sums)

    def __add__(self, other: "Sizes") -> "Sizes":
        total = Counter(self.rows)
        total.update(other.rows)
        if len(total) > _MOST_SEGMENTS:
            rule = f"have at most {_MOST_SEGMENTS:,} different entries"
            advice = "name a column of groups, not of ids"
            raise InvalidValueError("segment", rule, got="more", advice=advice)
        faults = self.faults + other.faults
        skipped = self.skipped + other.skipped
        return Sizes(total, faults, skipped, self.sums + other.sums)


@dataclass(frozen=True, slots=True)
class CountSegments(Work[Sizes]):
    """Count rows by segment, and compute their fingerprint; faults are reported immediately."""

    roles = ("label", "segment")

    def __call__(self, batch: Any, place: Place) -> Sizes:
        """Count the rows of one batch."""
        rows, faults = read_batch(batch, self.columns, place)
        return Sizes.of(rows, faults, row_sums(rows))

    def nothing(self) -> Sizes:
        """No rows."""
        return Sizes()


def row_sums(rows: BatchRows) -> RowSums:
    """The sums from which the fingerprint of rows is computed: over their scores and labels."""
    columns = [rows.scores]
    return (
        RowSums.of(columns)
        if rows.labels is None
        else RowSums.of(columns, rows.labels.names, rows.labels.number)
    )


@dataclass(frozen=True, slots=True)
class Seal:
    """The number of rows, and a sum over them that shows whether two passes drew the same rows."""

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
class Taken:
    """Rows of some batches, with their places, and the number of rows they were taken from.

    `repeated` holds keys of ids that several rows of one batch share, taken or not. Rows that are
    `fixed`, such as those of arrays, cannot move from one pass to the next.
    """

    limit: int
    batches: tuple[tuple[Place, BatchRows], ...] = ()
    sizes: Sizes = field(default_factory=Sizes)
    repeated: tuple[Keys, ...] = ()
    fixed: bool = False

    def __add__(self, other: "Taken") -> "Taken":
        sizes = self.sizes + other.sizes
        repeated = self.repeated + other.repeated
        both = Taken(self.limit, self.batches + other.batches, sizes, repeated)
        if sum(len(rows) for _, rows in both.batches) > self.limit:
            rule = f"have at most {self.limit:,} rows where all of them must be in memory"
            advice = (
                "use BinningCalibrator, which counts rows where they are; or"
                " scored(...).collect(limit=...)"
            )
            raise InvalidValueError("the data", rule, got="more", advice=advice)
        return both

    def in_order(self) -> list[BatchRows]:
        """The rows of each batch, with batches in the order of the data."""
        self.sizes.faults.check()
        return [rows for _, rows in sorted(self.batches, key=lambda piece: piece[0])]

    @property
    def has_labels(self) -> bool:
        """Whether the labels of all rows are known."""
        return all(rows.labels is not None for _, rows in self.batches)

    def keys(self) -> Keys:
        """The keys of the rows, in the order of the data."""
        return np.concatenate(
            [np.empty(0, dtype=np.uint64), *(rows.keys for rows in self.in_order())]
        )

    def scores(self) -> dict[Hashable, FloatArray]:
        """Return the scores of each segment, including segments without taken rows."""
        parts: dict[Hashable, list[FloatArray]] = {name: [] for name in self.sizes.rows}
        for rows in self.in_order():
            for name, index in rows.by_segment():
                parts.setdefault(name, []).append(rows.scores[index].astype(np.float64))
        return {name: _joined(scores) for name, scores in parts.items()}

    def first(self, key: int, most: Mapping[Hashable, int]) -> tuple["Taken", Draw]:
        """Return the `most` rows of each segment with the smallest hashes, and their draw."""
        found = {name: SmallestHashes(rows) for name, rows in most.items()}
        for _, rows in self.batches:
            hashes = Draw(key).hashes(rows.keys)
            for name, index in rows.by_segment():
                found[name] += SmallestHashes(most[name], smallest(hashes[index], most[name]))
        draw = Draw(key, limits={name: hashes.limit for name, hashes in found.items()})
        batches = tuple(
            (place, rows.take(np.flatnonzero(rows.drawn_by(draw)))) for place, rows in self.batches
        )
        return replace(self, batches=batches), draw

    @property
    def seal(self) -> Seal | None:
        """The seal of these rows; None if none is needed."""
        if self.fixed:
            return None
        return sum((Seal.of(rows.scores, rows.keys) for _, rows in self.batches), Seal())

    @property
    def ids(self) -> tuple[Keys, ...]:
        """Keys of the ids; a key that occurs twice is shared by several rows."""
        return (*(rows.keys for _, rows in self.batches), *self.repeated, *self.repeated)


def _joined(parts: list[FloatArray]) -> FloatArray:
    """The scores of all parts; a single part is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])


@dataclass(frozen=True, slots=True)
class TakeRows(Work[Taken]):
    """Keep the rows; with a draw, a random part of them."""

    roles = ("label", "segment", "weight", "id", "group")
    draw: Draw | None = None
    limit: int = COLLECT_LIMIT

    def __call__(self, batch: Any, place: Place) -> Taken:
        """Keep the rows of one batch."""
        rows, faults = read_batch(
            batch, self.columns, place, keys=self.draw is not None or self.columns.keyed
        )
        sizes = Sizes.of(rows, faults)
        shared = () if self.columns.id is None else (repeated(rows.keys)[:1],)
        if self.draw is not None:
            rows = rows.take(np.flatnonzero(rows.drawn_by(self.draw)))
        return Taken(self.limit, ((place, rows),), sizes, shared)

    def nothing(self) -> Taken:
        """No rows."""
        return Taken(self.limit)


def joined_codes(batches: Sequence[Coded], code_of: Callable[[Any], int]) -> IndexArray:
    """One array of codes, from batches that each number their own entries."""
    parts = [
        np.array([code_of(name) for name in coded.names], dtype=np.intp)[coded.number]
        for coded in batches
    ]
    return np.concatenate([np.empty(0, dtype=np.intp), *parts])


@dataclass(frozen=True, slots=True)
class FindSmallest(Work[SmallestHashes]):
    """Find the smallest hashes, for a draw of an exact number of rows, or of groups if rows have
    groups.
    """

    roles = ("id", "group")
    key: int
    most: int

    @property
    def needs_positions(self) -> bool:
        """The hash of a row depends on its position."""
        return True

    def __call__(self, batch: Any, place: Place) -> SmallestHashes:
        """The smallest hashes of one batch."""
        rows, _ = read_batch(batch, self.columns, place, keys=True)
        keys = rows.keys if self.columns.group is None else np.unique(rows.keys)
        return SmallestHashes(self.most, smallest(Draw(self.key).hashes(keys), self.most))

    def nothing(self) -> SmallestHashes:
        """No rows."""
        return SmallestHashes(self.most)


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The number of rows, and their distinct scores; None if there are too many."""

    rows: int
    distinct: FloatArray | None


@dataclass(frozen=True, slots=True, eq=False)
class SeenValues:
    """The values of each segment, and of all rows under the name None."""

    most: int
    values: Mapping[Hashable, Values] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)

    def __add__(self, other: "SeenValues") -> "SeenValues":
        values = dict(self.values)
        for name, more in other.values.items():
            mine = values.get(name, Values(0, np.empty(0)))
            many = mine.distinct is None or more.distinct is None
            both = None if many else _few(np.concatenate([mine.distinct, more.distinct]), self.most)
            values[name] = Values(mine.rows + more.rows, both)
        return SeenValues(self.most, values, self.faults + other.faults)


@dataclass(frozen=True, slots=True)
class FindValues(Work[SeenValues]):
    """Find the distinct scores, up to `most`, of probabilities in [0, 1]."""

    roles = ("segment",)
    most: int

    def __call__(self, batch: Any, place: Place) -> SeenValues:
        """Find the distinct scores of one batch."""
        rows, faults = read_batch(batch, self.columns, place)
        outside = (rows.scores < 0.0) | (rows.scores > 1.0)
        fault = Fault("score", self.columns.score, "be probabilities in [0, 1]")
        faults += Faults.of(fault, rows.in_batch(outside), place)
        parts = dict(rows.by_segment()) | {None: slice(None)}
        scores = {name: rows.scores[index].astype(np.float64) for name, index in parts.items()}
        values = {
            name: Values(len(part), _few(part, self.most))
            for name, part in scores.items()
            if len(part)
        }
        return SeenValues(self.most, values, faults)

    def nothing(self) -> SeenValues:
        """No rows."""
        return SeenValues(self.most)


def _few(scores: FloatArray, most: int) -> FloatArray | None:
    """Return the distinct scores, or None if there are more than `most`, which the first rows
    usually show.
    """
    for part in (scores[:_GLANCE], scores):
        values = np.unique(part + 0.0)
        if values.size > most:
            return None
    return values


def sorted_segments(names: Iterable[Any], columns: Columns) -> list[Any]:
    """The names of segments in order, `OTHER` last, without None, which stands for all rows."""
    known = [name for name in names if name is not None]
    try:
        return sorted(known, key=lambda name: (name is OTHER, name))
    except TypeError:
        got = ", ".join(sorted({type(name).__name__ for name in known}))
        raise InvalidTypeError(
            "segment", "contain one kind of entry", got=got, column=columns.segment
        ) from None
