"""Logistic regression with a normal prior and coefficients that are not negative, and its
leave-one-out loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from calibrant._typing import BoolArray, FloatArray
from calibrant.cells.score_counts import ScoreCounts

_STEPS = 50
_HALVINGS = 30
_DECREASE = 1e-9  # of the loss over all rows: Newton's steps end when none larger is in sight
_MOST_LEVERAGE = 0.9  # of one row, so that leaving it out stays a finite step


@dataclass(frozen=True, slots=True, eq=False)
class RisingFit:
    """The coefficients of the features, and the loss that rows left out of the fit would have.

    Attributes
    ----------
    coefficients : float array of shape (k,)
        The first is the intercept; the others are not negative.
    loss : float
        The log loss over all rows, each approximately left out of the fit.
    """

    coefficients: FloatArray
    loss: float


def fit_rising(
    features: FloatArray, rows: ScoreCounts, mean: FloatArray, precision: FloatArray
) -> RisingFit:
    """Fit logit p = features @ theta, with theta >= 0 in all but the first entry.

    Minimises the log loss over all rows plus (theta - mean)' precision (theta - mean) / 2. If
    coefficients turn negative they become 0 for good, and the others are fitted again.

    Parameters
    ----------
    features : float array of shape (n_cells, k)
        The first column is 1.
    rows : ScoreCounts
        Rows and positives in each cell; they need not be whole numbers.
    mean, precision : float arrays of shapes (k,) and (k, k)
        The prior of theta. It decides where the rows say nothing, so separable rows, one class and
        one score all have a finite fit.
    """
    counts = rows.counts.astype(np.float64)
    positives = rows.positives.astype(np.float64)
    model = _Model(features, counts, positives, mean, precision)
    free = np.ones(mean.size, dtype=bool)
    theta = mean
    while True:
        theta = _newton(model, np.where(free, theta, 0.0), free)
        negative = free & (theta < 0.0)
        negative[0] = False
        if not negative.any():
            return RisingFit(theta, _left_out_loss(model, theta, free))
        free &= ~negative


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    features: FloatArray
    counts: FloatArray
    positives: FloatArray
    mean: FloatArray
    precision: FloatArray

    def objective(self, theta: FloatArray) -> float:
        z = self.features @ theta
        away = theta - self.mean
        loss = self.counts * np.logaddexp(0.0, z) - self.positives * z
        return float(loss.sum() + away @ self.precision @ away / 2)

    def hessian(self, curvature: FloatArray, free: BoolArray) -> FloatArray:
        """Of the free coefficients; `curvature` is p (1 - p), times the rows, in each cell."""
        used = self.features[:, free]
        found: FloatArray = (used * curvature[:, None]).T @ used
        return found + self.precision[np.ix_(free, free)]


def _newton(model: _Model, theta: FloatArray, free: BoolArray) -> FloatArray:
    """The best free coefficients; the others stay 0."""
    reached = model.objective(theta)
    for _ in range(_STEPS):
        p = expit(model.features @ theta)
        slope = model.features.T @ (model.counts * p - model.positives)
        slope += model.precision @ (theta - model.mean)
        step = np.zeros_like(theta)
        hessian = model.hessian(model.counts * p * (1.0 - p), free)
        step[free] = np.linalg.solve(hessian, slope[free])
        decrease = float(step @ slope)
        if decrease < _DECREASE:
            return theta - step
        for _ in range(_HALVINGS):
            found = model.objective(theta - step)
            if found <= reached - 1e-4 * decrease:
                break
            step /= 2.0
            decrease /= 2.0
        else:
            return theta  # rounding hides any further decrease
        theta = theta - step
        reached = found
    return theta


def _left_out_loss(model: _Model, theta: FloatArray, free: BoolArray) -> float:
    """The log loss of rows, each predicted as if it had not been fitted.

    Without a row, one Newton step from theta moves its logit by v (y - p) / (1 - v p (1 - p)),
    where v is its feature vector in the norm of the inverse Hessian.
    """
    z = model.features @ theta
    p = expit(z)
    spread = p * (1.0 - p)
    used = model.features[:, free]
    inverse = np.linalg.inv(model.hessian(model.counts * spread, free))
    v = ((used @ inverse) * used).sum(axis=1)
    v = np.minimum(v, _MOST_LEVERAGE / np.maximum(spread, 1e-12))
    push = v / (1.0 - v * spread)
    as_positive = np.logaddexp(0.0, push * (1.0 - p) - z)
    as_negative = np.logaddexp(0.0, push * p + z)
    negatives = model.counts - model.positives
    return float((model.positives * as_positive + negatives * as_negative).sum())
