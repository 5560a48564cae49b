"""Work that counts rows by segment, takes rows into memory (a random part or all), and finds
distinct scores.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant._typing import FloatArray, Keys
from calibrant.cells.bins import OTHER
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.params.arrays import repeated
from calibrant.params.random import Draw, RowSums, SmallestHashes, mixed, smallest
from calibrant.sample.batch import BatchRows, Columns, Work
from calibrant.sample.faults import Fault, Faults, Place
from calibrant.sample.order_statistics import BitCounts, Level, first_level

COLLECT_LIMIT = 100_000_000
"""The largest number of rows brought into memory: about 2 GB of scores and labels."""

_MOST_SEGMENTS = 100_000
_GLANCE = 1 << 14  # rows inspected first


@dataclass(frozen=True, slots=True)
class Survey:
    """What one pass finds: the rows of each segment, without skipped rows; data without segments
    have one segment, None.

    Attributes
    ----------
    rows : mapping from segment to int
        The number of rows.
    faults : Faults
        Unusable rows.
    skipped : int
        Rows that were skipped because their label is missing.
    sums : RowSums
        The sums from which the fingerprint of the rows is computed, if requested.
    cells : BitCounts
        The rows in each cell of `first_level`, by segment, if requested.
    most_values : int
        The largest number of distinct scores that are listed.
    values : mapping from segment to float array or None
        The distinct scores of each segment, and of all rows under the name None; None in place of
        an array if there are more.
    """

    rows: Mapping[Hashable, int] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    skipped: int = 0
    sums: RowSums = field(default_factory=RowSums)
    cells: BitCounts = field(default_factory=BitCounts)
    most_values: int = 0
    values: Mapping[Hashable, FloatArray | None] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: BatchRows, faults: Faults, **more: Any) -> "Survey":
        """Count the rows of a batch."""
        counts: Mapping[Hashable, int] = {None: len(rows)}
        if rows.segments is not None:
            counts = rows.segments.rows()
        return cls(counts, faults, rows.skipped, **more)

    def __add__(self, other: "Survey") -> "Survey":
        total = Counter(self.rows)
        total.update(other.rows)
        if len(total) > _MOST_SEGMENTS:
            rule = f"have at most {_MOST_SEGMENTS:,} different entries"
            advice = "name a column of groups, not of ids"
            raise InvalidValueError("segment", rule, got="more", advice=advice)
        most = max(self.most_values, other.most_values)
        values = dict(self.values)
        for name, found in other.values.items():
            known = values.get(name, np.empty(0))
            if known is None or found is None:
                values[name] = None
            else:
                values[name] = distinct_scores(np.append(known, found), most)
        return Survey(
            total,
            self.faults + other.faults,
            self.skipped + other.skipped,
            self.sums + other.sums,
            self.cells + other.cells,
            most,
            values,
        )


@dataclass(frozen=True, slots=True)
class TakeSurvey(Work[Survey]):
    """Count rows by segment, and compute their fingerprint.

    Attributes
    ----------
    is_ranked : bool
        Whether scores are counted in fine cells, for order statistics.
    most_values : int
        The largest number of distinct scores to list; if positive, scores must be probabilities in
        [0, 1].
    """

    roles = ("label", "segment")
    nothing = Survey()
    is_ranked: bool = False
    most_values: int = 0

    @property
    def is_large(self) -> bool:
        """There may be many cells."""
        return self.is_ranked

    def of_rows(self, rows: BatchRows, place: Place) -> Survey:
        """Survey one batch."""
        faults = rows.faults
        cells = BitCounts()
        values: dict[Hashable, FloatArray | None] = {}
        if self.is_ranked:
            scores = rows.scores_by_segment()
            cells = BitCounts.of(scores, dict.fromkeys(scores, first_level()))
        if self.most_values:
            outside = (rows.scores < 0.0) | (rows.scores > 1.0)
            fault = Fault("score", self.columns.score, "be probabilities in [0, 1]")
            faults += Faults.of(fault, rows.in_batch(outside), place)
            values = {
                name: distinct_scores(part.astype(np.float64, copy=False), self.most_values)
                for name, part in rows.scores_by_segment().items()
                if part.size
            }
        found = {"sums": row_sums(rows), "most_values": self.most_values}
        return Survey.of(rows, faults, cells=cells, values=values, **found)


def distinct_scores(scores: FloatArray, most: int) -> FloatArray | None:
    """The distinct scores, or None if there are more than `most`, which the first rows usually
    show.
    """
    for part in (scores[:_GLANCE], scores):
        values = np.unique(part + 0.0)
        if values.size > most:
            return None
    return values


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

    `survey` is that of all these rows; its cells are those of rows near wanted ranks, if they were
    requested. `repeated` holds keys of ids that several rows of one batch share, taken or not. Rows
    that are `fixed`, such as those of arrays, cannot move from one pass to the next.
    """

    limit: int = 2**62
    batches: tuple[tuple[Place, BatchRows], ...] = ()
    survey: Survey = field(default_factory=Survey)
    repeated: tuple[Keys, ...] = ()
    fixed: bool = False

    def __add__(self, other: "Taken") -> "Taken":
        survey = self.survey + other.survey
        repeated = self.repeated + other.repeated
        limit = min(self.limit, other.limit)
        both = Taken(limit, self.batches + other.batches, survey, repeated)
        if sum(len(rows) for _, rows in both.batches) > limit:
            rule = f"have at most {limit:,} rows where all of them must be in memory"
            advice = (
                "use BinningCalibrator, which counts rows where they are; or"
                " scored(...).collect(limit=...)"
            )
            raise InvalidValueError("the data", rule, got="more", advice=advice)
        return both

    def rows(self) -> BatchRows:
        """The rows, in the order of the data."""
        self.survey.faults.check()
        parts = sorted(self.batches, key=lambda piece: piece[0])
        return BatchRows.joined([rows for _, rows in parts])

    def scores(self) -> dict[Hashable, FloatArray]:
        """Return the scores of each segment, including segments without taken rows."""
        rows = self.rows()
        found = {name: rows.scores[index] for name, index in rows.by_segment()}
        names = dict.fromkeys([*self.survey.rows, *found])
        return {name: found.get(name, np.empty(0)).astype(np.float64) for name in names}

    def first(self, key: int, most: Mapping[Hashable, int]) -> tuple["Taken", Draw]:
        """Return the `most` rows of each segment with the smallest hashes, and their draw."""
        rows = self.rows()
        hashes = Draw(key).hashes(rows.keys)
        limits = dict.fromkeys(most, 0)
        for name, index in rows.by_segment():
            none = SmallestHashes(most[name])
            limits[name] = (none + SmallestHashes(most[name], hashes[index])).limit
        draw = Draw(key, limits=limits)
        drawn = rows.take(np.flatnonzero(rows.drawn_by(draw)))
        return replace(self, batches=((Place(0), drawn),)), draw

    @property
    def seal(self) -> Seal | None:
        """The seal of these rows; None if none is needed."""
        if self.fixed:
            return None
        rows = self.rows()
        return Seal.of(rows.scores, rows.keys)

    @property
    def ids(self) -> tuple[Keys, ...]:
        """Keys of the ids; a key that occurs twice is shared by several rows."""
        return (self.rows().keys, *self.repeated, *self.repeated)


@dataclass(frozen=True, slots=True)
class TakeRows(Work[Taken]):
    """Keep the rows; with a draw, a random part of them."""

    roles = ("label", "segment", "weight", "id", "group")
    nothing = Taken()
    draw: Draw | None = None
    limit: int = COLLECT_LIMIT
    levels: Mapping[Hashable, Level] | None = None
    """Where the scores of all rows are counted, too."""

    @property
    def is_large(self) -> bool:
        """There may be many rows near wanted ranks."""
        return self.levels is not None

    @property
    def needs_keys(self) -> bool:
        """Whether rows are drawn, or have ids or groups to keep."""
        return self.draw is not None or self.columns.keyed

    def of_rows(self, rows: BatchRows, place: Place) -> Taken:
        """Keep the rows of one batch."""
        levels = self.levels or {}
        cells = BitCounts.of(rows.scores_by_segment() if levels else {}, levels)
        survey = Survey.of(rows, rows.faults, cells=cells)
        shared = () if self.columns.id is None else (repeated(rows.keys)[:1],)
        if self.draw is not None:
            rows = rows.take(np.flatnonzero(rows.drawn_by(self.draw)))
        return Taken(self.limit, ((place, rows),), survey, shared)


@dataclass(frozen=True, slots=True)
class FindSmallest(Work[SmallestHashes]):
    """Find the smallest hashes, for a draw of an exact number of rows, or of groups if rows have
    groups.
    """

    roles = ("id", "group")
    nothing = SmallestHashes(0)
    needs_keys = True
    key: int
    most: int

    def of_rows(self, rows: BatchRows, place: Place) -> SmallestHashes:
        """The smallest hashes of one batch."""
        hashes = Draw(self.key).hashes(rows.keys)
        if self.columns.group is None:
            return SmallestHashes(self.most, smallest(hashes, self.most))
        found = hashes[:0]
        among = self.most
        while found.size < min(self.most, hashes.size) and among < 4 * hashes.size:
            among *= 4  # as many rows as hold the wanted number of groups
            found = np.unique(smallest(hashes, among))
        return SmallestHashes(self.most, found[: self.most])


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
