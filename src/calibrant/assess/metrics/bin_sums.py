"""Group the rows of a metric into bins: by score alone, or as many bins as keep the rates
increasing.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant import kernels
from calibrant._typing import ArrayLike, BoolArray, CodeArray, FloatArray, IndexArray, IntArray
from calibrant.calibrators.regions.weighted_rows import checked_bound
from calibrant.cells.score_partition import equal_mass, middle_ranks
from calibrant.params.arrays import check_rows
from calibrant.params.rules import Choice, check_bins
from calibrant.sample.facts import Reach
from calibrant.sample.reader import read_judged, refuse
from calibrant.sample.rows import Rows
from calibrant.sample.sample import Sample
from calibrant.sample.sources.memory import MemoryRows
from calibrant.sample.taken_rows import distinct_scores

BINS = ("auto", "uniform", "quantile", "values")
_ROWS_PER_VALUE = 20
MOST_VALUES = 1000


CALIBRATE_FIRST = "turn scores into probabilities first, for example with BinningCalibrator"
"""Advice for scores that are not probabilities."""


def read_forecasts(
    y: ArrayLike | Sample | Rows,
    scores: ArrayLike | None,
    pos_label: Hashable | None,
    classes: ArrayLike | None,
    **columns: Any,
) -> MemoryRows:
    """Read labels and predicted probabilities, with further columns and bounds, into memory."""
    return forecasts_of(read_judged(y, scores, pos_label=pos_label, classes=classes, **columns))


def forecasts_of(data: Rows) -> MemoryRows:
    """The rows in memory; their scores are checked to be probabilities, doubles in [0, 1].

    Rows without weight are left out after the bound is checked, so that errors name rows of the
    data.
    """
    rows = data.collect()
    probabilities = np.asarray(rows.scores, dtype=np.float64)
    outside = (probabilities < 0.0) | (probabilities > 1.0)
    if outside.any():
        advice = Reach.of(probabilities).advice(CALIBRATE_FIRST)
        check_rows(outside, probabilities, "scores", "be probabilities in [0, 1]", advice)
    rows = replace(rows, scores=probabilities)
    if rows.weights is None:
        return rows
    checked_bound(rows.weights, rows.bounds.weight_bound)
    return rows.take(rows.weights > 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class BinSums:
    """The sums of each nonempty bin.

    Attributes
    ----------
    index : int array of shape (n,)
        Bin of each row.
    counts, positives : int or float arrays of shape (m,)
        Numbers of rows and positive rows; sums of their weights, if they have importance weights.
    mean_score : float array of shape (m,)
        Mean score.
    is_value : bool array of shape (m,)
        Whether all scores of the bin are equal, so that binning hides no error.
    moves : float array of shape (m,)
        Sum over units of their weight in the bin times their weight in all bins: how much labels
        can move weighted sums.
    squares : float array of shape (m,) or None
        Sums of squared weights of independent units (rows or groups), if rows have weights or
        groups.
    noise : float array of shape (m,) or None
        Variance of each rate, estimated from the spread of groups; NaN in bins with one group.
    """

    index: IndexArray
    counts: IntArray | FloatArray
    positives: IntArray | FloatArray
    mean_score: FloatArray
    is_value: BoolArray
    moves: FloatArray
    squares: FloatArray | None = None
    noise: FloatArray | None = None

    @classmethod
    def of(cls, rows: MemoryRows, cell: IntArray | IndexArray) -> BinSums:
        """Group rows by the index of their bin."""
        used = np.bincount(cell) > 0
        index = cell if used.all() else (np.cumsum(used) - 1)[cell]
        lowest = np.full(np.count_nonzero(used), np.inf)
        highest = -lowest
        np.minimum.at(lowest, index, rows.scores)
        np.maximum.at(highest, index, rows.scores)
        weights = rows.weights

        def sums(values: FloatArray | CodeArray) -> FloatArray:
            counted = values if weights is None else weights * values
            return np.bincount(index, counted).astype(np.float64)

        counts = np.bincount(index, weights)
        hits = sums(rows.codes)
        mean = np.clip(sums(rows.scores) / counts, lowest, highest)
        is_value = lowest == highest
        if weights is None and rows.groups is None:
            return cls(index, counts, hits, mean, is_value, counts.astype(np.float64))
        units = rows.units
        # the weight of a row times that of its unit: its squared weight, if each row is a unit
        moves = sums(units.totals[units.unit])
        squares = moves
        noise = None
        if rows.groups is not None:
            cells = units.in_cells(index, counts.size)
            squares = np.bincount(cells.cell, cells.total**2, minlength=counts.size).astype(
                np.float64
            )
            # the variance of a rate, from the spread of groups
            off = cells.sums((rows.codes - (hits / counts)[index])[cells.rows])
            n_groups = np.bincount(cells.cell, minlength=counts.size)
            spread = np.bincount(cells.cell, off**2, minlength=counts.size) / counts**2
            spread *= n_groups / np.maximum(n_groups - 1.0, 1.0)
            noise = np.where(n_groups > 1, spread, np.nan)
        return cls(index, counts, hits, mean, is_value, moves, squares, noise)

    @property
    def rate(self) -> FloatArray:
        """Share of positive labels."""
        return np.asarray(self.positives / self.counts)

    @property
    def gap(self) -> FloatArray:
        """Observed rate minus mean score."""
        return self.rate - self.mean_score

    @property
    def effective_rows(self) -> FloatArray:
        """Number of rows, or with weights the number with the same precision, (sum of w)^2 / (sum
        of w^2) (Kish 1965).
        """
        return np.asarray(self.counts if self.squares is None else self.counts**2 / self.squares)

    @property
    def mass(self) -> FloatArray:
        """Share of rows."""
        return np.asarray(self.counts / self.counts.sum())


def few_values(n_values: int | None, n_rows: int) -> bool:
    """Whether there are so few distinct scores, each seen so often, that each can be a bin; None is
    for more than were counted.
    """
    return n_values is not None and n_values <= max(1, min(MOST_VALUES, n_rows // _ROWS_PER_VALUE))


def binned(rows: MemoryRows, n_bins: int, strategy: str) -> BinSums:
    """Group rows into the requested bins.

    Empty bins are left out, because they have no weight.
    """
    Choice(BINS).check("strategy", strategy)
    n_bins = check_bins(n_bins)
    if strategy == "quantile":
        inverse = np.unique(rows.scores, return_inverse=True)[1]
        return BinSums.of(rows, equal_mass(np.bincount(inverse, rows.weights), n_bins)[inverse])
    if strategy in ("auto", "values"):
        most = MOST_VALUES if strategy == "auto" else len(rows)
        values = distinct_scores(rows.scores, most)
        few = values is not None and few_values(values.size, len(rows))
        if values is not None and (few or strategy == "values"):
            return BinSums.of(rows, kernels.assign(rows.scores, values[1:]))
    # the paper's intervals [(b - 1) / B, b / B), with the last one closed; the edges are doubles
    # and are not rounded
    return BinSums.of(rows, kernels.assign(rows.scores, np.arange(1, n_bins) / n_bins))


def sweep_bins(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    *,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
) -> int:
    """Return the largest number of equal-mass bins for which the rate of positives never falls from
    bin to bin.

    Nothing is guaranteed. This is a rule of thumb, for plots and for `ece(n_bins="sweep")`. It
    assumes that the true calibration curve increases, so a decreasing rate shows that the bins are
    too small. The rule uses the labels, so intervals in these bins are labelled heuristic.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
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
    The search starts at one bin and adds one bin at a time. It stops when a rate falls below the
    rate of the bin before it, and returns the last number for which none did. Equal scores share a
    bin.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), "Mitigating bias in calibration error estimation",
    Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.metrics import sweep_bins
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=10_000)
    >>> sweep_bins(rng.uniform(size=10_000) < scores**2, scores)
    14
    """
    reason = "the rule is based on unweighted row counts"
    refuse(y, reason, "weight", advice="give ece the number of bins")
    return swept(read_forecasts(y, scores, pos_label, classes))


def swept(rows: MemoryRows) -> int:
    """The number of bins of the sweep."""
    values, inverse = np.unique(rows.scores, return_inverse=True)
    counts: IntArray | FloatArray = np.bincount(inverse, rows.weights)
    positive = rows.codes if rows.weights is None else rows.weights * rows.codes
    hits = np.concatenate([[0.0], np.cumsum(np.bincount(inverse, positive))])
    ends = np.concatenate([[0], np.cumsum(counts)])
    middle = middle_ranks(counts)
    n_bins = 1
    while n_bins < values.size and _rises(hits, ends, middle, n_bins + 1):
        n_bins += 1
    return n_bins


def _rises(hits: FloatArray, ends: IntArray | FloatArray, middle: FloatArray, n_bins: int) -> bool:
    """Whether the rates are nondecreasing over `n_bins` bins of equal mass.

    Takes O(n_bins log n).
    """
    # the first value whose middle rank lies in each bin
    starts = np.searchsorted(middle, np.arange(1, n_bins) * (ends[-1] / n_bins), side="left")
    cuts = np.unique(np.concatenate([[0], starts, [middle.size]]))
    rates = np.diff(hits[cuts]) / np.diff(ends[cuts])
    return bool((np.diff(rates) >= 0.0).all())
