"""How many bins? As many as leave the rates rising: the monotone sweep."""

from collections.abc import Hashable

import numpy as np

from calibrant._typing import ArrayLike, FloatArray
from calibrant.metrics._rows import Bins, Rows, equal_mass, sums


def sweep_bins(
    y: ArrayLike, scores: ArrayLike, *, pos_label: Hashable | None = None, classes: ArrayLike | None = None
) -> int:
    """Return the number of equal-mass bins up to which the rates of positives rise from bin to bin.

    Promised: nothing about an error. It is a rule of thumb for drawing and for `ece(n_bins="sweep")`: a calibration
    curve is taken to be rising, so a rate that falls shows that bins have become too small. It looks at the labels,
    which is why intervals in such bins are labelled heuristic.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, of two kinds.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Predicted probabilities of the positive label.
    pos_label, classes
        As in `BinningCalibrator`.

    Returns
    -------
    int

    Notes
    -----
    Bins are added one at a time, from 1, until a rate falls below the one before it; the last number that did not is
    returned. Tied scores stay in one bin.

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
    return _sweep(Rows.of(y, scores, pos_label, classes))


def sweep_cells(rows: Rows) -> Bins:
    """The rows gathered in the bins of the sweep."""
    return sums(rows, equal_mass(rows.scores, _sweep(rows)))


def _sweep(rows: Rows) -> int:
    values, inverse, counts = np.unique(rows.scores, return_inverse=True, return_counts=True)
    hits = np.concatenate([[0.0], np.cumsum(np.bincount(inverse, rows.labels, minlength=values.size))])
    ends = np.concatenate([[0], np.cumsum(counts)])
    middle = ends[1:] - counts / 2.0
    n_bins = 1
    while n_bins < values.size and _rises(hits, ends, middle, n_bins + 1):
        n_bins += 1
    return n_bins


def _rises(hits: FloatArray, ends: FloatArray, middle: FloatArray, n_bins: int) -> bool:
    """Whether the rates of `n_bins` bins of equal mass do not fall; from sums over values, in O(n_bins log n)."""
    # the first value whose middle rank lies in each bin
    starts = np.searchsorted(middle, np.arange(1, n_bins) * (ends[-1] / n_bins), side="left")
    cuts = np.unique(np.concatenate([[0], starts, [middle.size]]))
    rates = np.diff(hits[cuts]) / np.diff(ends[cuts])
    return bool((np.diff(rates) >= 0.0).all())
