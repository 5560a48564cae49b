"""What bins of the score have in common, in one segment or in many."""

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import BoolArray, IndexArray, IntArray
from calibrant.partition.base import Partition
from calibrant.partition.layout import Layout

if TYPE_CHECKING:
    from calibrant.partition.scores import ScorePartition


class Bins(Partition):
    """Bins of the score: the bins of each segment, or of the only one there is."""

    @property
    @abstractmethod
    def parts(self) -> "tuple[ScorePartition, ...]":
        """Bins of each segment."""

    @abstractmethod
    def prepared(self, scores: NDArray[Any], segment: IndexArray | None) -> Any:
        """Checked scores, and the number of the segment of each row, in the form the other methods take."""

    @abstractmethod
    def _joined(self, parts: "Sequence[ScorePartition]") -> Self:
        """The same segments with other bins."""

    def as_bins(self) -> Self:
        """Return these bins."""
        return self

    def numbers(self, segments: Iterable[Hashable]) -> IndexArray:
        """Number of each segment, -1 for one that is not known."""
        known = {segment: number for number, segment in enumerate(self.bins_by_segment)}
        return np.array([known.get(segment, -1) for segment in segments], dtype=np.intp)

    def inside(self, scores: NDArray[Any], segment: IndexArray | None) -> BoolArray:
        """Whether each row is of a known segment and within its score range; `segment` has the numbers of `numbers`."""
        low, high = self.layout.low, self.layout.high
        number = np.zeros(1, dtype=np.intp) if segment is None else segment
        if np.isneginf(low).all() and np.isposinf(high).all():
            return np.broadcast_to(number >= 0, len(scores))
        doubles = scores.astype(np.float64, copy=False)
        return np.asarray((number >= 0) & (doubles >= low[number]) & (doubles <= high[number]))

    @cached_property
    def layout(self) -> Layout:
        """The regions of all segments, end to end."""
        return Layout(self.parts)

    @property
    def n_regions(self) -> int:
        """How many regions there are."""
        return int(self.layout.cells.first[-1])

    @property
    def n_atoms(self) -> int:
        """How many single score values are regions of their own."""
        return self.layout.n_atoms

    @property
    def n_uncounted(self) -> int:
        """How many edge values count in no region."""
        return int(np.count_nonzero(self.count_regions < 0))

    @property
    def count_regions(self) -> IntArray:
        """Region of each cell between the count cuts; -1 for an edge value that counts in none."""
        return self.layout.count_regions

    def gather(self, rows: IntArray, positives: IntArray) -> tuple[IntArray, IntArray, int]:
        """From counts per cell between the count cuts to counts per region, and how many rows count in none."""
        gather = self.layout.gather
        return gather(rows), gather(positives), int(rows[self.count_regions < 0].sum())

    def cut_by_cells(self, rows: IntArray) -> Self:
        """The bins whose edges are these atoms, order statistics of a sample that has so many rows in each region."""
        first, last, n_rows = self.layout.ranks(rows)
        ends = np.cumsum([part.edges.size for part in self.parts])[:-1]
        ranks = zip(self.parts, np.split(first, ends), np.split(last, ends), n_rows.tolist(), strict=True)
        return self._joined(
            [type(part)(part.edges, first_rank=low, last_rank=high, n_rows=size) for part, low, high, size in ranks]
        )

    @property
    def segment_of_region(self) -> IndexArray:
        """Number of the segment of each region."""
        return self.layout.cells.segment

    def cut_counts(self) -> IntArray:
        """Rows of each region in the sample whose order statistics are the edges; 0 in segments with other edges."""
        return self.layout.cut_counts()
