"""How many bins? The monotone sweep: as many as keep the rates rising."""

from collections.abc import Hashable

import numpy as np

from calibrant._typing import ArrayLike, FloatArray, IntArray
from calibrant.metrics.bins import Bins, equal_mass, middle_ranks, read_forecasts
from calibrant.rows import ScoredData
from calibrant.rows.memory import MemoryRows


def sweep_bins(
    y: ArrayLike | ScoredData,
    scores: ArrayLike | None = None,
    *,
    pos_label: Hashable | None = None,
    classes: ArrayLike | None = None,
) -> int:
    """Return the largest number of equal-mass bins for which the rate of positives never falls from bin to bin.

    Nothing is guaranteed. This is a rule of thumb, for plots and for `ece(n_bins="sweep")`. It assumes that the true
    calibration curve rises, so a rate that falls shows that the bins are too small. The rule looks at the labels, so
    intervals in such bins are labelled heuristic.

    Parameters
    ----------
    y : array-like of shape (n,), or ScoredData
        Labels of two classes; or labels and scores together, see `calibrant.scored`.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of the positive class.
    pos_label, classes
        As in `BinningCalibrator`.

    Returns
    -------
    int

    Notes
    -----
    The search starts at one bin and adds one bin at a time. It stops when a rate falls below the rate of the bin
    before it, and returns the last number for which none did. Equal scores share a bin.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), "Mitigating bias in calibration error estimation", Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.metrics import sweep_bins
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> sweep_bins(rng.uniform(size=10_000) < scores**2, scores)
    14
    """
    return _sweep(read_forecasts(y, scores, pos_label, classes))


def sweep_binned(rows: MemoryRows) -> Bins:
    """Group rows into the bins of the sweep."""
    inverse, counts = np.unique(rows.scores, return_inverse=True, return_counts=True)[1:]
    return Bins.of(rows, equal_mass(counts, _sweep(rows))[inverse])


def _sweep(rows: MemoryRows) -> int:
    values, inverse, counts = np.unique(rows.scores, return_inverse=True, return_counts=True)
    hits = np.concatenate([[0.0], np.cumsum(np.bincount(inverse, rows.codes))])
    ends = np.concatenate([[0], np.cumsum(counts)])
    middle = middle_ranks(counts)
    n_bins = 1
    while n_bins < values.size and _rises(hits, ends, middle, n_bins + 1):
        n_bins += 1
    return n_bins


def _rises(hits: FloatArray, ends: IntArray, middle: FloatArray, n_bins: int) -> bool:
    """Whether no rate falls from one of `n_bins` bins of equal mass to the next; in O(n_bins log n)."""
    # the first value whose middle rank lies in each bin
    starts = np.searchsorted(middle, np.arange(1, n_bins) * (ends[-1] / n_bins), side="left")
    cuts = np.unique(np.concatenate([[0], starts, [middle.size]]))
    rates = np.diff(hits[cuts]) / np.diff(ends[cuts])
    return bool((np.diff(rates) >= 0.0).all())
