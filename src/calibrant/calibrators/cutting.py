"""From rows to a partition and its tally: which rows cut the edges, and which are counted."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._input import check_in_range
from calibrant._typing import ArrayLike, BoolArray, CodeArray, IndexArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.partition import Partition, ScorePartition, SegmentedPartition
from calibrant.partition.scores import check_enough_rows
from calibrant.partition.segments import SegmentedScores, segment_kinds
from calibrant.tally import Tally

BinRule: TypeAlias = Callable[[int, int], int]
"""Number of bins, from how many rows there are and how many of them cut the edges."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Checked calibration rows: scores, labels as 0 and 1, how often each counts, and which segment it is in."""

    scores: NDArray[Any]
    codes: CodeArray
    repeats: IntArray | None = None
    segment: IndexArray | None = None
    segment_names: tuple[Any, ...] = ()

    @classmethod
    def of(cls, scores: NDArray[Any], codes: CodeArray, repeats: IntArray | None, segments: ArrayLike | None) -> Self:
        """Number the segments, refuse those that do not match the scores, and leave out rows that stand for none."""
        if segments is None:
            return cls(scores, codes, repeats)._counted()
        names, segment = segment_kinds(segments)
        if segment.shape != scores.shape:
            raise InvalidValueError(
                f"segments must have one entry per score, {scores.shape[0]}; got {segment.shape[0]}"
            )
        return cls(scores, codes, repeats, segment, tuple(names))._counted()

    def _counted(self) -> Self:
        """Leave out rows that stand for none, and segments of such rows only: a weight of 0 is no row."""
        if self.repeats is None or self.repeats.all():
            return self
        rows = self.take(self.repeats > 0)
        if rows.segment is None:
            return rows
        present, segment = np.unique(rows.segment, return_inverse=True)
        return replace(rows, segment=segment, segment_names=tuple(self.segment_names[number] for number in present))

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def total(self) -> int:
        """How many rows these stand for."""
        return len(self.scores) if self.repeats is None else int(self.repeats.sum())

    def take(self, index: Any) -> Self:
        """The rows at `index`."""
        return type(self)(
            self.scores[index],
            self.codes[index],
            None if self.repeats is None else self.repeats[index],
            None if self.segment is None else self.segment[index],
            self.segment_names,
        )

    def partition_with(self, cut: Callable[["Rows"], ScorePartition]) -> Partition:
        """Cut the scores, or those of each segment."""
        if self.segment is None:
            return cut(self)
        parts = {}
        for number, name in enumerate(self.segment_names):
            rows = self.take(self.segment == number)
            try:
                parts[name] = cut(Rows(rows.scores, rows.codes, rows.repeats))
            except InvalidValueError as error:
                raise InvalidValueError(f"in segment {name!r}: {error}") from None
        return SegmentedPartition(parts)

    def tally_over(self, partition: Partition, threads: int) -> Tally:
        """Tally these rows over a partition that `partition_with` made, of these or of other rows."""
        prepared = self.scores if self.segment is None else SegmentedScores(self.scores, self.segment)
        return Tally._of(partition, prepared, self.codes, repeats=self.repeats, threads=threads)


def fixed_width(rows: Rows, n_bins: BinRule, score_range: tuple[float, float], threads: int) -> tuple[Partition, Tally]:
    """Bins of equal width, for which no row is needed."""
    check_in_range(rows.scores, *score_range)

    def cut(part: Rows) -> ScorePartition:
        bins = check_enough_rows(part.total, n_bins(part.total, part.total))
        return ScorePartition.fixed_width(bins, score_range)

    partition = rows.partition_with(cut)
    return partition, rows.tally_over(partition, threads)


def own_quantiles(rows: Rows, n_bins: BinRule, threads: int) -> tuple[Partition, Tally]:
    """Bins between order statistics of all rows, each of which is counted too."""

    def cut_and_count(part: Rows) -> tuple[ScorePartition, IntArray, IntArray, int]:
        bins = n_bins(part.total, part.total)
        if part.repeats is None:
            return ScorePartition.cut_and_count(part.scores, part.codes, bins, threads=threads)
        return ScorePartition.cut_and_count_repeated(part.scores, part.codes, part.repeats, bins)

    if rows.segment is None:
        single, counts, positives, uncounted = cut_and_count(rows)
        return single, Tally(counts, positives, uncounted, single.fingerprint)
    partition = rows.partition_with(lambda part: cut_and_count(part)[0])
    return partition, rows.tally_over(partition, threads)


def split_quantiles(
    rows: Rows, n_bins: BinRule, split: float, generator: np.random.Generator, threads: int
) -> tuple[Partition, Tally]:
    """Bins between quantiles of a random part of the rows, which only cuts; the others count (the paper's way)."""
    partition, counted = split_partition(rows, n_bins, split, generator, threads)
    return partition, rows.take(counted).tally_over(partition, threads)


def split_partition(
    rows: Rows, n_bins: BinRule, split: float, generator: np.random.Generator, threads: int
) -> tuple[Partition, BoolArray]:
    """Cut bins from a random part of the rows, and say which rows are the others."""
    if rows.repeats is not None:
        raise InvalidValueError("sample_weight must be None when split is used; got weights: repeat the rows instead")
    n_cutting = round(split * len(rows)) if isinstance(split, float | np.floating) else int(split)
    if not 1 <= n_cutting < len(rows):
        raise InvalidValueError(
            f"split must leave rows both to cut and to count; got split={split!r} of {len(rows)} rows"
        )
    cuts = np.zeros(len(rows), dtype=bool)
    cuts[generator.choice(len(rows), n_cutting, replace=False, shuffle=False)] = True
    share = n_cutting / len(rows)

    def cut(part: Rows) -> ScorePartition:
        if not len(part):  # a segment with no row to cut it is one bin
            return ScorePartition(np.empty(0))
        return ScorePartition.from_other_scores(
            part.scores, n_bins(round(len(part) / share), len(part)), threads=threads
        )

    return rows.take(cuts).partition_with(cut), ~cuts
