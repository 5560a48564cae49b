"""Calibration rows by distinct score: the number of rows, and of positive rows, at each value."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._typing import CodeArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class DistinctScores:
    """Distinct scores, increasing, with the rows and the positive rows at each.

    This makes every fit independent of the order of rows, makes a weight equivalent to repeated
    rows, and merges ties before any pooling. For rows with importance weights, counts are sums of
    weights.
    """

    scores: FloatArray
    counts: IntArray | FloatArray
    positives: IntArray | FloatArray

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
        if values.min() < 0.0:
            return cls._of_any_sign(values, codes)
        # the bits of doubles >= 0 sort like the doubles, and the first bit is 0: shifting it out
        # makes room for the label, so that sorting numbers replaces sorting positions
        keys = (values.view(np.uint64) << np.uint64(1)) | codes.astype(np.uint64)
        keys.sort()
        ordered = (keys >> np.uint64(1)).view(np.float64)
        starts = _starts(ordered)
        reached = np.concatenate([[0], np.cumsum(keys & np.uint64(1), dtype=np.int64)])
        ends = np.append(starts[1:], ordered.size)
        return cls(ordered[starts], ends - starts, reached[ends] - reached[starts])

    def thinned(self, most: int) -> "DistinctScores":
        """The same rows at about `most` scores, if there are more.

        Neighbouring scores with about a `most`-th of the rows are merged into the score in the
        middle of their rows, so that a score with many rows stays where it is. The smallest and the
        largest score are kept, too.

        >>> rows = DistinctScores(np.arange(9.0), np.array([1, 1, 1, 1, 90, 1, 1, 1, 1]), np.arange(9))
        >>> rows.thinned(4).scores, rows.thinned(4).counts
        (array([0., 2., 4., 6., 8.]), array([ 1,  3, 90,  3,  1]))
        """
        size = self.scores.size
        if size <= most:
            return self
        reached = np.cumsum(self.counts)
        before = reached - self.counts
        place = np.floor((before + self.counts / 2.0) * (most / self.n_rows))
        starts = np.union1d(_starts(place), [1, size - 1])
        counts = np.add.reduceat(self.counts, starts)
        positives = np.add.reduceat(self.positives, starts)
        middle = np.searchsorted(reached, before[starts] + counts / 2.0)
        return DistinctScores(self.scores[middle], counts, positives)

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
