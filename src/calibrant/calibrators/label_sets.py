"""Sets of labels from probabilities of several classes that were fixed beforehand."""

import numpy as np
from scipy.special import bdtr

from calibrant._typing import BoolArray, FloatArray
from calibrant.params.rules import OPEN_UNIT


class LabelSets:
    """The labels whose probability is not too small, with a proof of how often the true label is
    missed.

    Claimed, for every distribution and for one coverage: with probability at least 1 - alpha over
    the proof rows, a new row's label is in its set with probability at least the coverage. Assumed:
    these rows and the new row are i.i.d., and the probabilities do not depend on these rows.

    Let U be the probability that was predicted for a row's own label. With a threshold t, a label
    is missed if U < t. Let t be the k-th smallest U of the n proof rows. It misses a share of more
    than m of the population only if t exceeds the m-quantile of U, so that at most k - 1 of the
    rows are at or below it: with probability at most P(Bin(n, m) <= k - 1), with ties and without.
    So k is the largest number for which that is at most alpha, m = 1 - coverage. If there is none,
    every label is in the set. The most probable label always is.

    Attributes
    ----------
    own : float array of shape (n,)
        The probabilities of the rows' own labels, sorted.
    alpha : float
        The error level.

    Examples
    --------
    >>> sets = LabelSets(np.arange(1, 101) / 100, alpha=0.1)
    >>> sets.threshold(0.9), sets.threshold(0.99)
    (0.06, 0.0)
    >>> sets.of(np.array([[0.9, 0.05, 0.05]]), coverage=0.9)
    array([[ True, False, False]])
    """

    def __init__(self, own: FloatArray, alpha: float) -> None:
        self.own = np.sort(own)
        self.alpha = alpha

    def threshold(self, coverage: float) -> float:
        """The probability from which on a label is in the set; 0 if none can be left out."""
        missed = 1.0 - float(OPEN_UNIT.check("coverage", coverage))
        below = np.arange(self.own.size)
        enough = int(np.count_nonzero(bdtr(below, self.own.size, missed) <= self.alpha))
        return float(self.own[enough - 1]) if enough else 0.0

    def of(self, probabilities: FloatArray, coverage: float) -> BoolArray:
        """The labels of each row, shape (n, L)."""
        found = probabilities >= self.threshold(coverage)
        found |= probabilities == probabilities.max(axis=1, keepdims=True, initial=0.0)
        return np.asarray(found)
