"""Rows in memory: the kernels work on them directly, without unnecessary copies."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant import kernels
from calibrant._typing import (
    ArrayLike,
    BoolArray,
    CodeArray,
    FloatArray,
    IndexArray,
    IntArray,
    Keys,
    Seed,
)
from calibrant.cells.bins import SegmentedScores, scores_of
from calibrant.cells.group_counts import GroupCounts
from calibrant.cells.knots import Knots
from calibrant.cells.partition import Partition
from calibrant.cells.tally import Tally
from calibrant.cells.units import RowUnits
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import check_in_range, entries_at
from calibrant.params.labels import Classes, settle_classes
from calibrant.params.random import (
    Draw,
    RandomSource,
    RowSums,
    draw_key,
    enough,
    equal_step,
    fingerprint_of,
    small_hashes,
    smallest,
    text_keys,
)
from calibrant.sample.added_columns import AddColumns
from calibrant.sample.batch import BatchRows, Coded, Columns, Result, Work, grouped
from calibrant.sample.bounds import NO_BOUNDS, DataBounds
from calibrant.sample.facts import Reach
from calibrant.sample.faults import Place
from calibrant.sample.groups import Groups
from calibrant.sample.row_keys import position_keys
from calibrant.sample.rows import Rows, Split
from calibrant.sample.taken_rows import COLLECT_LIMIT, distinct_scores
from calibrant.text.sentences import Setting


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MemoryRows(Rows):
    """Checked rows in memory.

    Attributes
    ----------
    scores : array of shape (n,)
        Finite scores; with a `partition`, the result of its `prepare`.
    codes : array of shape (n,)
        Labels: 1 is the positive class, 0 the other.
    known : Classes
        The two classes.
    repeats : int array of shape (n,), optional
        How many identical rows each row stands for.
    weights : float array of shape (n,), optional
        Importance weights.
    segment, segment_names : int array of shape (n,), tuple
        The index of each row's segment, and the names of the segments.
    partition : Partition, optional
        A partition fixed beforehand, the only one with which these rows can be counted.
    threads : int
        Threads for very large data.
    skipped : int
        Rows left out because their label is missing.
    groups : Groups, optional
        The group of each row; whole groups are drawn.
    reach : Reach, optional
        The range of the scores, if already known.
    one_of_each : (int, int)
        If these rows are one of each group: the number of groups, and the number of rows left out.
    drawn : int array, optional
        If other rows were drawn from the same data: their positions among all rows, in order.
    places : array of shape (n,), optional
        If these are some of the rows that remained: the position of each among all rows.
    bounds : DataBounds
        What is known about the data beforehand.
    """

    in_memory: ClassVar[bool] = True
    scores: Any
    codes: CodeArray
    known: Classes
    repeats: IntArray | None = None
    weights: FloatArray | None = None
    segment: IndexArray | None = None
    segment_names: tuple[Any, ...] = ()
    partition: Partition | None = None
    threads: int = 1
    skipped: int = 0
    groups: Groups | None = None
    reach: Reach | None = None
    one_of_each: tuple[int, int] = (0, 0)
    drawn: IndexArray | None = None
    places: Keys | None = None
    bounds: DataBounds = NO_BOUNDS
    # none for rows that differ from these
    _sums: dict[tuple[str | None, ...], RowSums] = field(init=False, default_factory=dict)

    @property
    def units(self) -> RowUnits:
        """What is drawn independently: whole groups, or rows; and the weights of rows."""
        weights = np.ones(len(self)) if self.weights is None else self.weights
        if self.groups is None:
            return RowUnits(np.arange(len(self)), len(self), weights)
        return RowUnits(self.groups.codes, len(self.groups.keys), weights)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def columns(self) -> Columns:  # type: ignore[override]
        """The names of the columns, as seen by `fold` and `apply`."""
        segment = None if self.segment is None else "segments"
        weight = None if self.weights is None else "importance_weight"
        return Columns(
            "scores", "y", segment, weight, group=None if self.groups is None else "groups"
        )

    def with_classes(
        self, classes: ArrayLike | None = None, pos_label: Hashable = None
    ) -> "MemoryRows":
        """The same rows, with the classes in the given roles."""
        positive = self.known.positive if pos_label is None else pos_label
        known = settle_classes(
            dict.fromkeys(self.known.labels.tolist(), 1), classes=classes, pos_label=positive
        )
        return replace(
            self,
            known=known,
            codes=self.codes if known.positive == self.known.positive else 1 - self.codes,
        )

    @property
    def labels(self) -> NDArray[Any]:
        """The labels as given."""
        return self.known.labels[self.codes if self.known.positive_index == 1 else 1 - self.codes]

    @property
    def segments(self) -> NDArray[Any] | None:
        """The segment of each row as given."""
        if self.segment is None:
            return None
        texts = any(isinstance(name, str) for name in self.segment_names)
        # fixed-width text would lose trailing NULs
        return np.array(self.segment_names, dtype=object if texts else None)[self.segment]

    @property
    def keys(self) -> Keys | None:
        """The position of each row among all rows; None if no others were drawn."""
        if self.places is not None or self.drawn is None:
            return self.places
        every = np.arange(len(self) + self.drawn.size, dtype=np.uint64)
        return np.delete(every, self.drawn)

    def take(self, index: IndexArray | BoolArray) -> Self:
        """The rows at `index`."""
        return replace(
            self,
            scores=self.scores[index],
            codes=self.codes[index],
            repeats=entries_at(self.repeats, index),
            weights=entries_at(self.weights, index),
            segment=entries_at(self.segment, index),
            groups=None if self.groups is None else self.groups.take(index),
            places=entries_at(self.keys, index),
            reach=None,
        )

    def without_groups(self) -> Self:
        """The same rows, without their groups."""
        return self if self.groups is None else replace(self, groups=None)

    def with_columns(self, columns: Columns) -> Self:
        """The same rows with some of their columns, and with the segments that these keep."""
        found = None
        if columns.segment is not None and self.segment is not None:
            found = Coded(self.segment_names, self.segment).pooled(columns.kept)
        return replace(
            self,
            segment=None if found is None else found.number.astype(np.intp, copy=False),
            segment_names=() if found is None else found.names,
            weights=None if columns.weight is None else self.weights,
            groups=None if columns.group is None else self.groups,
        )

    def in_segments(self, names: Sequence[Any], segment: IndexArray) -> Self:
        """The rows with their segments."""
        if segment.shape != self.codes.shape:
            got = f"{segment.shape[0]} entries"
            raise InvalidValueError("segments", f"have one entry per score, {len(self)}", got=got)
        return replace(self, segment=segment, segment_names=tuple(names))

    def without_empty(self) -> Self:
        """Leave out rows with zero repeats, and segments with only such rows."""
        if self.repeats is None or self.repeats.all():
            return self
        rows = self.take(self.repeats > 0)
        if rows.segment is None:
            return rows
        present, segment = np.unique(rows.segment, return_inverse=True)
        return replace(
            rows,
            segment=segment,
            segment_names=tuple(self.segment_names[number] for number in present),
        )

    def sizes(self) -> dict[Hashable, int]:
        """Rows of each segment."""
        if self.segment is None:
            return {None: len(self) if self.repeats is None else int(self.repeats.sum())}
        rows = np.bincount(self.segment, weights=self.repeats, minlength=len(self.segment_names))
        return dict(zip(self.segment_names, rows.astype(np.int64).tolist(), strict=True))

    def values(self, most: int) -> dict[Hashable, FloatArray | None]:
        """The distinct scores of all rows (None) and of each segment; None if more than `most`."""
        found = self._with_whole(self.scores).items()
        return {name: distinct_scores(scores, most) for name, scores in found if scores.size}

    def order_statistics(self, ranks: Mapping[Hashable, IntArray]) -> dict[Hashable, FloatArray]:
        """The scores at the given ranks of each segment."""
        repeats = {} if self.repeats is None else self._with_whole(self.repeats)
        return {
            name: self._ranked(scores, ranks[name], repeats.get(name))
            for name, scores in self._with_whole(self.scores).items()
            if name in ranks
        }

    def _ranked(
        self, scores: NDArray[Any], ranks: IntArray, repeats: IntArray | None
    ) -> FloatArray:
        if repeats is None:
            return kernels.order_statistics(scores, ranks, threads=self.threads)
        order = np.argsort(scores, kind="stable")
        rows = np.searchsorted(np.cumsum(repeats[order]), ranks)
        return np.asarray(scores[order[rows]], dtype=np.float64) + 0.0

    def row_sums(self) -> RowSums:
        """Return the sums from which the fingerprint of the rows is computed, once."""
        if not self._sums:
            scores = np.asarray(scores_of(self.scores))
            # the inputs of a function can be text
            values = scores if scores.dtype.kind in "biuf" else text_keys(scores.tolist())
            self.note_sums(RowSums.of([values], (0, 1), self.codes))
        return self._sums[self._values()]

    def ordered_source(self, random_state: Seed, purpose: str) -> RandomSource:
        """Return a random source for these rows in this order, for numbers that belong to no
        position.

        If rows have few possible values, there are many more orders than sets of rows.
        """
        values = np.asarray(self.scores, dtype=np.float64)
        rows = fingerprint_of(values, position_keys(0, len(self)), labels=self.codes)
        return RandomSource.of(random_state, purpose, rows=rows)

    def chosen(self, draw: Draw) -> BoolArray:
        """Which rows are drawn; with groups, whole groups."""
        if self.groups is not None:
            return np.asarray(draw.chosen(self.groups.keys)[self.groups.codes])
        keys = position_keys(0, len(self))
        if not draw.limits or self.segment is None:
            return draw.chosen(keys)
        return draw.chosen(keys, self._by_segment(np.arange(len(self)), self.segment).items())

    def split_by(self, draw: Draw) -> Split:
        """The drawn rows and the others."""
        return self._parted(np.flatnonzero(self.chosen(draw)))

    def first_rows(
        self,
        random_state: Seed,
        most: Mapping[Hashable, int],
        ranks: Mapping[Hashable, IntArray] | None = None,
    ) -> Split:
        """Draw exactly `most` rows of each segment, those with the smallest hashes."""
        key = draw_key(random_state, self.fingerprint())
        limit = enough(most[None], len(self)) if self.segment is None else 2**64
        among = np.arange(len(self)) if limit == 2**64 else small_hashes(len(self), key, limit)
        parts = [
            _smallest_among(rows, key, most[name])
            for name, rows in self._by_segment(among, self.segment).items()
        ]
        return self._parted(np.sort(np.concatenate(parts)))

    def _parted(self, index: IndexArray) -> Split:
        """The scores of the rows at `index`, by segment, and the other rows."""
        if self.repeats is not None:
            rule = ("be None if ", Setting("pilot"), " is used")
            raise InvalidValueError(
                "sample_weight", rule, got="weights", advice="repeat the rows instead"
            )
        left = np.ones(len(self), dtype=bool)
        left[index] = False
        others = replace(self.take(left), drawn=index, places=None)
        scores = scores_of(self.scores)[index].astype(np.float64)
        drawn = self._by_segment(scores, entries_at(self.segment, index))
        return Split(drawn, self.sizes(), others)

    def drawn_rows(self, whole: Rows, classes: Classes, most: int | None = None) -> "MemoryRows":
        """The rows of `whole` that were drawn before these remained; at most `most` of them."""
        every = whole.collect()
        return every.take(np.arange(len(every)) if self.drawn is None else self.drawn).thinned(most)

    def thinned(self, most: int | None) -> Self:
        """These rows or, if they are more than `most`, at most that many, at equal steps."""
        step = equal_step(len(self), most)
        return self if step == 1 else self.take(np.arange(0, len(self), step))

    def count_knots(
        self, knots: Knots, classes: Classes, source: RandomSource
    ) -> tuple[IntArray, Reach]:
        """Count the rows by place, half and label; see `Knots.count`."""
        rows = self.prepared, self.codes
        counts = knots.count(*rows, source, self.keys, threads=self.threads)
        return counts, self.reach or Reach.of(self.scores)

    def n_groups(self) -> int:
        """How many groups have rows."""
        return 0 if self.groups is None else len(self.groups.present_keys)

    def group_counts(
        self,
        partition: Partition,
        positive: Any,
        *,
        draw: Draw | None = None,
        aside: bool = False,
    ) -> GroupCounts:
        """Groups by their rows and positives in each region: groups not drawn or, with `aside`,
        drawn groups.
        """
        rows = self if draw is None else self.take(self.chosen(draw) == aside)
        groups = np.arange(len(rows)) if rows.groups is None else rows.groups.codes
        regions = partition.membership(rows.prepared, threads=self.threads)
        return GroupCounts.of(regions, rows.codes, groups)

    def _with_whole(self, values: NDArray[Any]) -> dict[Hashable, NDArray[Any]]:
        """Values of all rows (None), and by the segments of their rows."""
        return {None: values} | self._by_segment(values, self.segment)

    def _by_segment(
        self, values: NDArray[Any], segment: IndexArray | None
    ) -> dict[Hashable, NDArray[Any]]:
        """Values by the segments of their rows."""
        if segment is None:
            return {None: values}
        rows_of = grouped(segment, len(self.segment_names))
        return {name: values[rows] for name, rows in zip(self.segment_names, rows_of, strict=True)}

    @property
    def prepared(self) -> Any:
        """The scores as a partition takes them, with segments if there are any."""
        return self.scores if self.segment is None else SegmentedScores(self.scores, self.segment)

    def tally_and_reach(
        self, partition: Partition, *, weighted: bool = False
    ) -> tuple[Tally, Classes, Reach]:
        """Return the tally over a partition, the classes and the range of the scores."""
        reach = (self.reach or Reach.of(self.scores)) if partition.bins_by_segment else Reach()
        if self.partition is None:
            for low, high in {(part.low, part.high) for part in partition.bins_by_segment.values()}:
                if reach.low < low or reach.high > high:
                    check_in_range(self.scores, low, high)
        tally = Tally.of_codes(
            partition,
            self.prepared,
            self.codes,
            weights=self.weights if weighted else None,
            repeats=self.repeats,
            groups=None if self.groups is None else self.groups.codes,
            threads=self.threads,
        )
        return tally, self.known, reach

    def collect(self, *, draw: Draw | None = None, limit: int = COLLECT_LIMIT) -> "MemoryRows":
        """These rows; with a draw, a random part of them."""
        return self if draw is None else self.take(self.chosen(draw))

    def fold(self, work: Work[Result]) -> Result:
        """Apply `work` to these rows as one batch, through Arrow only if it takes other columns."""
        if not work.on_rows:
            return self._as_arrow().fold(work)
        rows = self._batch(work.columns, work.needs_keys)
        return work.of_rows(rows, Place(0))

    def _batch(self, columns: Columns, with_keys: bool) -> BatchRows:
        """These rows as a batch, with the wanted columns."""
        segments = None if self.segment is None else Coded(self.segment_names, self.segment)
        keys = np.empty(0, dtype=np.uint64)
        if with_keys:
            keys = position_keys(0, len(self)) if self.groups is None else self.groups.row_keys
        return BatchRows(
            np.asarray(scores_of(self.scores)),
            (
                Coded((self.known.negative, self.known.positive), self.codes)
                if columns.label is not None
                else None
            ),
            None if columns.segment is None else segments,
            None if columns.weight is None else self.weights,
            keys,
            threads=self.threads,
        )

    def apply(self, added: AddColumns) -> Any:
        """A `pyarrow.RecordBatchReader` over the rows, with the columns added."""
        return self._as_arrow().apply(added)

    def _as_arrow(self) -> Rows:
        from calibrant._optional import needed
        from calibrant.sample.sources.arrow import as_table, from_arrow

        needed("pyarrow", "arrow", "rows are read in batches")
        columns = {
            "scores": self.scores,
            "y": self.labels,
            "segments": self.segments,
            "importance_weight": self.weights,
            "groups": None if self.groups is None else self.groups.row_keys,
        }
        table = as_table((name, columns[name]) for name in self.names())
        return from_arrow(table, self.columns, threads=self.threads, progress=False).with_classes(
            self.known.labels, self.known.positive
        )


def _smallest_among(index: IndexArray, key: int, most: int) -> IndexArray:
    """The `most` of these positions with the smallest hashes, in order."""
    if index.size <= most:
        return index
    hashes = Draw(key).hashes(index.astype(np.uint64))
    return index[hashes <= smallest(hashes, most).max()] if most else index[:0]
