"""Rows on both sides of a threshold, by label."""

from typing import Generic, NamedTuple, TypeVar

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IntArray

Count = TypeVar("Count", int, IntArray)


class Confusion(NamedTuple, Generic[Count]):
    """Counted rows by decision and label.

    Or arrays, with an entry per threshold or per group.
    """

    tp: Count
    fp: Count
    fn: Count
    tn: Count

    @property
    def n(self) -> Count:
        """All counted rows."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def shares(self) -> dict[str, tuple[Count, Count]]:
        """Each share, as a pair of its numerator and denominator rows."""
        tp, fp, fn, tn = self
        return {
            "selected": (tp + fp, self.n),
            "precision": (tp, tp + fp),
            "recall": (tp, tp + fn),
            "specificity": (tn, tn + fp),
            "npv": (tn, tn + fn),
        }


def confusion_at(scores: FloatArray, codes: CodeArray, cut: float) -> Confusion[int]:
    """The confusion counts at one threshold."""
    return Confusion(*np.bincount(2 * (scores < cut) + (codes == 0), minlength=4).tolist())
