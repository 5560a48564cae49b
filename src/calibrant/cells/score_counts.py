"""Fine counts: rows and positives at each score, or in cells of neighbouring scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import CodeArray, FloatArray, IndexArray, IntArray
from calibrant.cells.exact_sums import ExactSums
from calibrant.cells.tally import Tally, extremes


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSums:
    """The exact sum, the smallest and the largest score of the rows in each region; infinities for
    a region without rows. Those of two parts of the data can be added.
    """

    total: ExactSums
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, scores: NDArray[Any], regions: IndexArray, n_regions: int) -> Self:
        """Sum the scores of rows in `regions`."""
        doubles = scores.astype(np.float64, copy=False)
        total = ExactSums.of(doubles, regions, n_regions)
        return cls(total, *extremes(doubles, doubles, regions, n_regions))

    def __add__(self, other: ScoreSums) -> ScoreSums:
        low = np.minimum(self.low, other.low)
        return ScoreSums(self.total + other.total, low, np.maximum(self.high, other.high))

    def part(self, regions: slice) -> ScoreSums:
        """The sums of some of the regions."""
        return ScoreSums(self.total.part(regions), self.low[regions], self.high[regions])


@dataclass(frozen=True, slots=True, eq=False)
class ScoreCounts:
    """Rows and positive rows at distinct scores, or in cells of neighbouring scores, in increasing
    order. No cell is empty.

    This makes every fit independent of the order of rows, makes a weight equivalent to repeated
    rows, and merges ties before any pooling.

    Attributes
    ----------
    scores : float array of shape (n_cells,)
        The score of each cell; the lowest one, if a cell has several.
    counts, positives : int or float arrays of shape (n_cells,)
        Rows and positive rows. For rows with importance weights, sums of weights.
    highest : float array of shape (n_cells,) or None
        The highest score of each cell; None if every cell is one score.
    sums : float array of shape (n_cells,) or None
        The sum of the scores of each cell; None if every cell is one score.
    """

    scores: FloatArray
    counts: IntArray | FloatArray
    positives: IntArray | FloatArray
    highest: FloatArray | None = None
    sums: FloatArray | None = None

    @property
    def high(self) -> FloatArray:
        """The highest score of each cell."""
        return self.scores if self.highest is None else self.highest

    @property
    def total(self) -> FloatArray:
        """The sum of the scores of each cell."""
        return self.scores * self.counts if self.sums is None else self.sums

    @property
    def n_values(self) -> int | None:
        """The number of distinct scores; None if a cell may have several."""
        return self.scores.size if self.highest is None else None

    @property
    def n_rows(self) -> float:
        """The number of rows."""
        return float(self.counts.sum())

    @property
    def n_positive(self) -> float:
        """The number of positive rows."""
        return float(self.positives.sum())

    @property
    def whole(self) -> tuple[IntArray, IntArray]:
        """Rows and positive rows at each score, for rows without weights."""
        return self.counts.astype(np.int64), self.positives.astype(np.int64)

    @classmethod
    def of(
        cls, scores: NDArray[Any], codes: CodeArray, repeats: IntArray | FloatArray | None = None
    ) -> Self:
        """Group checked scores and labels coded as 0 and 1."""
        if repeats is not None:
            return cls._of_repeated(scores, codes, repeats)
        values = scores.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        if not values.size:
            nothing = np.zeros(0, dtype=np.int64)
            return cls(values, nothing, nothing)
        if values.min() < 0.0:
            return cls._of_any_sign(values, codes)
        # the bits of doubles >= 0 sort like the doubles, and the first bit is 0: shifting it out
        # makes room for the label, so that sorting numbers replaces sorting positions
        keys = values.view(np.uint64)
        keys <<= np.uint64(1)
        keys |= codes.astype(np.uint8, copy=False)
        keys.sort()
        is_positive = (keys & np.uint64(1)).view(np.int64)
        keys >>= np.uint64(1)
        ordered = keys.view(np.float64)
        starts = _starts(ordered)
        counts = np.append(starts[1:], ordered.size) - starts
        return cls(ordered[starts], counts, np.add.reduceat(is_positive, starts))

    @classmethod
    def of_tally(cls, tally: Tally, sums: ScoreSums, *, are_values: bool) -> Self:
        """The regions of a tally that have rows, with the sums of their scores.

        `are_values` says that each of these regions has one score.
        """
        # every fit divides by the rows of a cell
        used = tally.counts > 0
        rows = tally.counts[used]
        positives = tally.positives[used]
        if are_values:
            return cls(sums.low[used], rows, positives)
        return cls(sums.low[used], rows, positives, sums.high[used], sums.total.rounded()[used])

    def from_above(self) -> tuple[FloatArray, IntArray, IntArray]:
        """The scores in decreasing order, and the rows and positives at or above each, for rows
        without weights.
        """
        rows, positives = (np.cumsum(kind[::-1]) for kind in self.whole)
        return self.scores[::-1], rows, positives

    def thinned(self, most: int) -> ScoreCounts:
        """The same rows at about `most` scores, if there are more.

        Neighbouring scores with about a `most`-th of the rows are merged into the score in the
        middle of their rows, so that a score with many rows stays where it is. The smallest and the
        largest score are kept, too.

        >>> rows = ScoreCounts(np.arange(9.0), np.array([1, 1, 1, 1, 90, 1, 1, 1, 1]), np.arange(9))
        >>> rows.thinned(4).scores, rows.thinned(4).counts
        (array([0., 2., 4., 6., 8.]), array([ 1,  3, 90,  3,  1]))
        """
        size = self.scores.size
        if size <= most:
            return self
        # by the middle rank of each score: one with many rows keeps a place of its own
        reached = np.cumsum(self.counts)
        before = reached - self.counts
        place = np.floor((before + self.counts / 2.0) * (most / self.n_rows))
        starts = np.union1d(_starts(place), [1, size - 1])
        counts = np.add.reduceat(self.counts, starts)
        positives = np.add.reduceat(self.positives, starts)
        middle = np.searchsorted(reached, before[starts] + counts / 2.0)
        return ScoreCounts(self.scores[middle], counts, positives)

    @classmethod
    def _of_any_sign(cls, values: FloatArray, codes: CodeArray) -> Self:
        ordered = np.sort(values)
        starts = _starts(ordered)
        distinct = ordered[starts]
        below = np.searchsorted(np.sort(values[codes == 1]), distinct, side="right")
        return cls(distinct, np.diff(starts, append=ordered.size), np.diff(below, prepend=0))

    @classmethod
    def _of_repeated(
        cls, scores: NDArray[Any], codes: CodeArray, repeats: IntArray | FloatArray
    ) -> Self:
        scores = (
            scores.astype(np.float64) + 0.0
        )  # rows with sample_weight 0 were removed when they were read
        order = np.argsort(scores, kind="stable")
        starts = _starts(scores[order])
        counts = np.add.reduceat(repeats[order], starts)
        positives = np.add.reduceat((repeats * codes)[order], starts)
        return cls(scores[order][starts], counts, positives)


def _starts(ordered: FloatArray) -> IntArray:
    """Where each distinct value of a sorted array begins."""
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
