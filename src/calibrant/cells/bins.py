"""Common parts of score bins, in one segment or in many."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import BoolArray, IndexArray, IntArray
from calibrant.cells.layout import Layout
from calibrant.cells.partition import Partition

if TYPE_CHECKING:
    from calibrant.cells.score_partition import ScorePartition


class Rest(Enum):
    """The name of all segments without their own bins, including segments that no row had in `fit`."""

    OTHER = "other"

    def __str__(self) -> str:
        return self.value


OTHER = Rest.OTHER


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedScores:
    """Checked scores, and the index of each row's segment."""

    scores: NDArray[Any]
    segment: IndexArray

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, index: IndexArray) -> SegmentedScores:
        return SegmentedScores(self.scores[index], self.segment[index])


class Bins(Partition):
    """Bins of the score: the bins of each segment, or of a single segment, which is named None."""

    segments: tuple[Hashable, ...] = (None,)

    @property
    @abstractmethod
    def parts(self) -> tuple[ScorePartition, ...]:
        """Bins of each segment."""

    @abstractmethod
    def with_parts(self, parts: Sequence[ScorePartition]) -> Self:
        """The same segments with other bins."""

    @property
    def bins_by_segment(self) -> Mapping[Hashable, ScorePartition]:
        """Bins of the score in each segment; None is the segment of bins without segments."""
        return dict(zip(self.segments, self.parts, strict=True))

    def as_bins(self) -> Self:
        """Return these bins."""
        return self

    def numbers(self, segments: Iterable[Hashable]) -> IndexArray:
        """The index of each segment.

        For an unknown segment, the index of `OTHER`, or -1 without bins for other segments.
        """
        known = {segment: number for number, segment in enumerate(self.segments)}
        other = known.get(OTHER, -1)
        return np.array([known.get(segment, other) for segment in segments], dtype=np.intp)

    def prepared(
        self, scores: NDArray[Any], segment: IndexArray | None
    ) -> NDArray[Any] | SegmentedScores:
        """What `prepare` returns, for checked scores and the indices of their segments."""
        return scores if segment is None else SegmentedScores(scores, segment)

    def inside(self, scores: NDArray[Any], segment: IndexArray | None) -> BoolArray:
        """Whether each row is in a known segment and within its score range.

        `segment` has the indices that `numbers` returns.
        """
        low = self.layout.low
        high = self.layout.high
        number = np.zeros(1, dtype=np.intp) if segment is None else segment
        if np.isneginf(low).all():  # a range has two ends, or none
            return np.broadcast_to(number >= 0, len(scores))
        doubles = scores.astype(np.float64, copy=False)
        return np.asarray((number >= 0) & (doubles >= low[number]) & (doubles <= high[number]))

    @cached_property
    def layout(self) -> Layout:
        """The regions of all segments, end to end."""
        return Layout(self.parts)

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return int(self.layout.cells.first[-1])

    @property
    def count_regions(self) -> IntArray:
        """Region of each cell between the count cuts; -1 for an edge value that counts in none."""
        return self.layout.count_regions

    @property
    def has_absorbed(self) -> bool:
        """Whether a bin absorbs an edge value that was seen more than once in the sample the edges
        come from.
        """
        return self.layout.absorbed_cells.size > 0

    @property
    def absorbed_cells(self) -> IndexArray:
        """Cells between the count cuts that are edge values which the bin to their right absorbs."""
        return self.layout.absorbed_cells

    def gather(self, rows: IntArray, positives: IntArray) -> tuple[IntArray, IntArray, int]:
        """Turn counts per cell between the count cuts into counts per region, and the number of
        rows that count in none.
        """
        if not self.layout.n_uncounted and not self.has_absorbed:  # each cell is a region
            return rows, positives, 0
        gather = self.layout.gather
        return gather(rows), gather(positives), int(rows[self.count_regions < 0].sum())

    def cut_by_cells(self, rows: IntArray, absorbing: Mapping[Hashable, int] | None = None) -> Self:
        """Return the bins whose edges are these atoms, order statistics of a sample with `rows`
        rows in each region.

        If tied edges are absorbed, `absorbing` is the number of ranks at which the edges of each
        segment were taken. A segment without atoms keeps its bins.
        """
        first, last, n_rows = self.layout.ranks(rows)
        ends = np.cumsum([part.edges.size for part in self.parts])[:-1]
        taken = [None if absorbing is None else absorbing[name] for name in self.segments]
        ranks = zip(
            self.parts,
            np.split(first, ends),
            np.split(last, ends),
            n_rows.tolist(),
            taken,
            strict=True,
        )
        return self.with_parts(
            [
                (
                    type(part)(
                        part.edges,
                        first_rank=low,
                        last_rank=high,
                        n_rows=size,
                        absorbing=edges,
                        aside=part.aside,
                    )
                    if part.atoms_only
                    else part
                )
                for part, low, high, size, edges in ranks
            ]
        )

    def if_untied(self) -> Self:
        """Return the bins whose edges are these atoms, if each atom was seen once."""
        _, _, is_single, _ = self.layout.bounds()
        return self.cut_by_cells(is_single.astype(np.int64))

    @cached_property
    def cells(self) -> Self:
        """The cells in which rows are counted, as bins: an edge value that counts in no region is a
        cell.
        """
        parts = self.parts
        return self.with_parts(
            [type(part)(part.edges, atoms=True) if part.cuts_own_sample else part for part in parts]
        )

    def cut_counts(self) -> IntArray:
        """The number of rows in each region, in the sample whose order statistics are the edges.

        It is 0 in segments with other edges.
        """
        return self.layout.cut_counts()
