"""AUC, and the covariance of several of them on the same rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from calibrant._typing import ArrayLike, CodeArray, FloatArray
from calibrant.assess.metrics.estimate import Estimate
from calibrant.assess.metrics.independent_units import ROWS, Units
from calibrant.errors import InvalidValueError
from calibrant.params.arrays import entries_at
from calibrant.params.rules import error_budget
from calibrant.sample.bounds import NO_BOUNDS
from calibrant.sample.reader import read_judged
from calibrant.sample.sample import Sample

DELONG = "DeLong's normal approximation (1988)"
OBUCHOWSKI = "a normal approximation by sums over independent rows or groups (Obuchowski 1997)"


def auc(
    y: ArrayLike | Sample,
    scores: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    importance_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    pos_label: Hashable = None,
    classes: ArrayLike | None = None,
) -> Estimate:
    """Return the area under the ROC curve: how often a positive row has a higher score than a
    negative one.

    Ties count one half. The limits are DeLong's; with weights or groups they come from sums of the
    influence function over the rows of a group (Obuchowski 1997). They are asymptotic, so the
    estimate is labelled heuristic: with few rows of one class, or an AUC close to 1, they may hold
    less often than stated. If no variance can be estimated, they are NaN.

    Parameters
    ----------
    y : array-like of shape (n,), or Sample
        Labels of two classes, with rows of both; or labels and scores together, see
        `calibrant.scored`.
    scores : array-like of shape (n,), (n, 1), or (n, 2) from `predict_proba`
        Scores on any scale.
    confidence_level : float, default=0.95
        Confidence in the interval.
    importance_weight : array-like of shape (n,), optional
        How much each row counts, such as a survey weight.
    groups : array-like of shape (n,), optional
        The group of each row, such as its customer.
    pos_label, classes
        As in `BinningCalibrator`.

    Returns
    -------
    Estimate

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), "Comparing the areas under two or more correlated
    receiver operating characteristic curves: a nonparametric approach", Biometrics 44. Sun and Xu
    (2014), "Fast implementation of DeLong's algorithm", IEEE Signal Processing Letters 21.
    Obuchowski (1997), "Nonparametric analysis of clustered ROC curve data", Biometrics 53.

    Examples
    --------
    >>> from calibrant.metrics import auc
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).value
    0.75
    """
    alpha = error_budget(confidence_level)
    read = read_judged(
        y,
        scores,
        pos_label=pos_label,
        classes=classes,
        importance_weight=importance_weight,
        groups=groups,
    )
    rows, units = Units.of(replace(read.collect(), bounds=NO_BOUNDS))
    scores = np.asarray(rows.scores, dtype=np.float64)
    n_positive = int(np.count_nonzero(rows.codes))
    if not 0 < n_positive < len(rows):
        rule = "contain rows of both classes, because AUC compares them"
        got = f"{n_positive:,} positive and {len(rows) - n_positive:,} negative rows"
        raise InvalidValueError("y", rule, got)
    value, lower, upper = auc_limits(rows.codes, scores, alpha, units)
    return Estimate(
        name="AUC",
        value=value,
        lower=lower,
        upper=upper,
        confidence_level=float(confidence_level),
        heuristic=True,
        target=(
            "the probability that a positive row has a higher score than a negative"
            f" one{units.stated_population}"
        ),
        basis=DELONG if units.row_weights is None else OBUCHOWSKI,
    )


def delong(
    codes: CodeArray, scores: Sequence[FloatArray], units: Units = ROWS
) -> tuple[FloatArray, FloatArray]:
    """The AUC of each of several scores of the same rows, and the estimated covariance of these
    AUCs; NaN without rows of both classes.

    O(n log n).

    With V the share of negatives below a positive row, and W the share of positives above a
    negative row, ties counting one half, AUC is the mean of V and of W, and the covariance is
    cov(V) / n_positive + cov(W) / n_negative. With weights or groups all shares and means are
    weighted; the covariance is that of the sums over units of w (V - AUC) over the weight of the
    positives, and w (W - AUC) over that of the negatives.
    """
    positive = codes == 1
    n_positive = int(np.count_nonzero(positive))
    n_negative = int(np.count_nonzero(~positive))
    unknown = np.full((len(scores), len(scores)), math.nan)
    if not n_positive or not n_negative:
        return unknown[0], unknown
    weights = units.row_weights
    of_positive = entries_at(weights, positive)
    of_negative = entries_at(weights, ~positive)
    shares = np.empty((len(scores), codes.size))
    for share, score in zip(shares, scores, strict=True):
        share[positive] = _share_below(score[~positive], score[positive], of_negative)
        share[~positive] = 1.0 - _share_below(score[positive], score[~positive], of_positive)
    values = np.average(shares[:, positive], axis=1, weights=of_positive)
    if weights is None:
        if min(n_positive, n_negative) == 1:
            return values, unknown
        by_class = [np.cov(shares[:, own]) / own.sum() for own in (positive, ~positive)]
        return values, np.atleast_2d(sum(by_class))
    total = np.where(positive, weights[positive].sum(), weights[~positive].sum())
    sums = np.stack([units.sums(influence) for influence in (shares - values[:, None]) / total])
    n = sums.shape[1]
    return values, sums @ sums.T * (n / (n - 1)) if n > 1 else unknown


def auc_limits(
    codes: CodeArray, scores: FloatArray, alpha: float, units: Units
) -> tuple[float, float, float]:
    """The AUC of one score, and its limits."""
    values, covariance = delong(codes, [scores], units)
    value = float(values[0])
    lower, upper = normal_limits(value, float(covariance[0, 0]), alpha)
    return value, max(lower, 0.0), min(upper, 1.0)


def normal_limits(value: float, variance: float, alpha: float) -> tuple[float, float]:
    """Normal limits; NaN if the variance is not above 0, because then it was not estimated well."""
    if not variance > 1e-18:
        return math.nan, math.nan
    radius = float(-ndtri(alpha / 2.0)) * math.sqrt(variance)
    return value - radius, value + radius


def _share_below(
    others: FloatArray, values: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """For each value, the share of the others below it, ties counting one half."""
    place = np.argsort(others)
    ordered = others[place]
    order = np.argsort(values)  # neighbouring lookups are close in memory
    low, high = (np.searchsorted(ordered, values[order], side=side) for side in ("left", "right"))
    shares = np.empty(values.size)
    if weights is None:
        shares[order] = (low + high) / (2.0 * others.size)
    else:
        before = np.concatenate([[0.0], np.cumsum(weights[place])])
        shares[order] = (before[low] + before[high]) / (2.0 * before[-1])
    return shares
