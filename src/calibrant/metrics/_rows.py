"""Scores and labels of a metric: checked once, and gathered in bins that are chosen by the scores alone."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._input import as_scores, check_same_length, column_count, in_all
from calibrant._labels import encode_labels
from calibrant._params import check_bins, check_choice
from calibrant._typing import ArrayLike, BoolArray, FloatArray, IntArray
from calibrant.errors import InvalidValueError

BINS = ("auto", "uniform", "quantile", "values")
_ROWS_PER_VALUE = 20
MOST_VALUES = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Predicted probabilities and labels 0 and 1."""

    scores: FloatArray
    labels: FloatArray

    @classmethod
    def of(cls, y: ArrayLike, scores: ArrayLike, pos_label: Hashable | None, classes: ArrayLike | None) -> "Rows":
        """Check and code what a caller brought."""
        codes, known = encode_labels(y, classes=classes, pos_label=pos_label, score_columns=column_count(scores))
        checked = as_scores(scores, positive_column=known.positive_index).astype(np.float64)
        check_same_length(checked, codes)
        bad = np.flatnonzero((checked < 0.0) | (checked > 1.0))
        if bad.size:
            raise InvalidValueError(
                f"scores must be probabilities in [0, 1]; got {float(checked[bad[0]])!r} in row {int(bad[0])}, and "
                f"{in_all(bad.size)}: turn scores into probabilities first, say with BinningCalibrator"
            )
        return cls(checked, codes.astype(np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Sums over the bins that hold a row.

    Attributes
    ----------
    counts, positives : int arrays of shape (m,)
        Rows and positive rows.
    mean_score : float array of shape (m,)
        Mean score.
    is_value : bool array of shape (m,)
        Whether the bin holds one score value only, so that nothing is averaged away in it.
    score_spread : float array of shape (m,)
        Sum over rows of (score - mean score)^2.
    cross_spread : float array of shape (m,)
        Sum over rows of (score - mean score) (label - rate).
    """

    counts: IntArray
    positives: IntArray
    mean_score: FloatArray
    is_value: BoolArray
    score_spread: FloatArray
    cross_spread: FloatArray

    @property
    def rate(self) -> FloatArray:
        """Share of positive labels."""
        return np.asarray(self.positives / self.counts)

    @property
    def gap(self) -> FloatArray:
        """Observed rate minus mean score."""
        return self.rate - self.mean_score

    @property
    def mass(self) -> FloatArray:
        """Share of rows."""
        return np.asarray(self.counts / self.counts.sum())


def few_values(n_values: int, n_rows: int) -> bool:
    """Whether scores take so few values, each seen so often, that every value can be a region of its own."""
    return n_values <= max(1, min(MOST_VALUES, n_rows // _ROWS_PER_VALUE))


def gather(rows: Rows, n_bins: Any, strategy: str) -> Bins:
    """Gather rows in the bins asked for; bins without rows are left out, since they weigh nothing."""
    check_choice("strategy", strategy, BINS)
    n_bins = check_bins(n_bins)
    values = np.unique(rows.scores) if strategy in ("auto", "values") else np.empty(0)
    if strategy == "auto":
        strategy = "values" if few_values(values.size, rows.scores.size) else "uniform"
    if strategy == "values":
        cell = np.searchsorted(values, rows.scores)
    elif strategy == "uniform":
        # the paper's intervals [(b - 1) / B, b / B), the last closed; searching the edges as doubles, not rounding b
        cell = np.searchsorted(np.arange(1, n_bins) / n_bins, rows.scores, side="right")
    else:
        cell = equal_mass(rows.scores, n_bins)
    return sums(rows, cell)


def equal_mass(scores: FloatArray, n_bins: int) -> IntArray:
    """Bins of about equal mass: a row's bin follows from the middle rank of its score, so no tie is torn apart."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2.0
    cell = np.minimum((middle * (n_bins / scores.size)).astype(np.int64), n_bins - 1)
    return np.asarray(cell[inverse])


def sums(rows: Rows, cell: IntArray) -> Bins:
    """Gather rows by the number of their bin."""
    used, cell = np.unique(cell, return_inverse=True)
    m = used.size
    counts = np.bincount(cell, minlength=m)
    positives = np.bincount(cell, rows.labels, minlength=m)
    lowest, highest = np.full(m, np.inf), np.full(m, -np.inf)
    np.minimum.at(lowest, cell, rows.scores)
    np.maximum.at(highest, cell, rows.scores)
    mean = np.clip(np.bincount(cell, rows.scores, minlength=m) / counts, lowest, highest)
    off = rows.scores - mean[cell]
    return Bins(
        counts=counts.astype(np.int64),
        positives=positives.astype(np.int64),
        mean_score=mean,
        is_value=lowest == highest,
        score_spread=np.bincount(cell, off * off, minlength=m).astype(np.float64),
        cross_spread=np.bincount(cell, off * (rows.labels - (positives / counts)[cell]), minlength=m).astype(
            np.float64
        ),
    )


def normal_quantile(alpha: float) -> float:
    """Two-sided normal quantile, for intervals that are labelled as heuristic."""
    from scipy.special import ndtri

    return float(-ndtri(alpha / 2.0))


def mean_radius(values: FloatArray, alpha: float) -> float:
    """Half-width of the textbook normal interval for a mean."""
    if values.size < 2:
        return math.inf
    return normal_quantile(alpha) * float(values.std(ddof=1)) / math.sqrt(values.size)
