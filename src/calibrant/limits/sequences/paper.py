"""The paper's own bound for streams, as printed."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from calibrant._typing import CodeArray, FloatArray, IntArray
from calibrant.errors import InvalidValueError
from calibrant.limits.interval import Interval, around
from calibrant.limits.sequences.sequence import Sequence
from calibrant.params.kind import EntryTable
from calibrant.params.state_kinds import Numbers
from calibrant.text.sentences import Setting

_LARGEST_LOG_SHARE = float(np.log(2.5e25))


class Paper(Sequence):
    """The confidence sequence of Theorem 6 of the paper, exactly as stated there.

    Guarantee: with probability at least 1 - alpha, the limits hold after every label and in every
    region, for B / alpha < 2.5e25; for smaller alpha, the statement as printed fails, so an error
    is raised. Assumptions: within a region, labels are independent draws with one rate.

    Notes
    -----
    The half-width is (7 sqrt(V ln(1 + ln V)) + 5.3 ln(6.3 B / alpha)) / N with V = max(1, sum (Y_i
    - mean before i)²) and a mean of 1/2 before the first label. The middle line of the printed
    proof drops a pair of parentheses; the interval it shows misses 3% of the time at a nominal 1%.
    The theorem itself is correct, and it is computed here.

    References
    ----------
    Gupta, Podkopaev and Ramdas (2020), Theorem 6.

    Examples
    --------
    >>> import numpy as np
    >>> sequence = Paper(n_regions=1, alpha=0.1)
    >>> sequence.update(np.zeros(1000, dtype=np.intp), (np.arange(1000) % 2).astype(np.uint8))
    >>> sequence.limits().radius.round(3)
    array([0.174])
    """

    _entries: ClassVar[EntryTable] = {"surprise": Numbers(size="n_regions", low=0.0)}
    """The sum of (Y_i - mean before i)² in each region."""

    name = "paper"
    theorem = "Theorem 6 of Gupta, Podkopaev and Ramdas (2020)"
    order_free = False
    why_not_mergeable = (
        "its width depends on how well earlier labels predict each label, so on their order"
    )

    def __init__(self, n_regions: int, alpha: float) -> None:
        super().__init__(n_regions, alpha)
        self.surprise = np.zeros(n_regions)
        if self.log_share >= _LARGEST_LOG_SHARE:
            rule = (
                "leave (number of regions) / alpha below 2.5e25 for ",
                Setting("sequence", "paper"),
            )
            advice = ("use ", Setting("sequence", "centred-beta-binomial"))
            raise InvalidValueError(
                "confidence_level", rule, got=f"{n_regions} / {alpha:g}", advice=advice
            )

    def _append(self, region: int, labels: CodeArray) -> None:
        terms = squared_surprises(labels, int(self.counts[region]), int(self.positives[region]))
        # add one term at a time to the stored sum, so that batch sizes do not change a bit of it
        self.surprise[region] = np.cumsum(
            np.concatenate([self.surprise[region : region + 1], terms])
        )[-1]

    def limits(self) -> Interval:
        """Return the current limits of every region."""
        return self._around(self.counts, self.positives, self.surprise)

    @classmethod
    def path(cls, labels: CodeArray, alpha: float) -> Interval:
        """Return the limits after each label of a single stream."""
        counts = np.arange(1, labels.size + 1)
        hits = np.cumsum(labels, dtype=np.int64)
        return cls(1, alpha)._around(counts, hits, np.cumsum(squared_surprises(labels, 0, 0)))

    def _around(self, counts: IntArray, positives: IntArray, surprise: FloatArray) -> Interval:
        n = np.maximum(counts, 1).astype(np.float64)
        rate = np.where(counts > 0, positives / n, np.nan)
        v = np.maximum(surprise, 1.0)
        spread = 7.0 * np.sqrt(v * np.log1p(np.log(v)))
        return around(rate, (spread + 5.3 * (np.log(6.3) + self.log_share)) / n)


def squared_surprises(labels: CodeArray, n_before: int, k_before: int) -> FloatArray:
    """Return (Y_i - mean of the labels before i)² for labels that follow `n_before` with `k_before`
    positives.
    """
    seen = n_before + np.arange(labels.size)
    hits = (
        k_before + np.concatenate([[0], np.cumsum(labels[:-1], dtype=np.int64)])
        if labels.size
        else np.empty(0)
    )
    mean = np.where(seen > 0, hits / np.maximum(seen, 1), 0.5)
    return np.asarray(np.square(labels - mean))
