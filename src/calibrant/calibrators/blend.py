"""Blend calibration: a mean of seven curves, weighted by how well each predicts rows left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from calibrant._typing import FloatArray
from calibrant.calibrators.blend_curve import (
    BlendCurve,
    fit_blend,
    is_falling,
    kish_scaled,
    mirrored,
)
from calibrant.calibrators.curve.pieces import simplified
from calibrant.calibrators.curve_calibrator import inner
from calibrant.calibrators.isotonic import CornerCalibrator
from calibrant.cells.score_counts import ScoreCounts

_POINTS = 256  # at which the curve is computed, both evenly spaced and by rank
_STEEP = 0.05  # the rise of logits between points from which on there are points between them
_HALVINGS = 2.0 ** -np.array([1, 2, 4, 8, 16, 32, 64])  # of the distance from the rows to 0 or 1
_DOUBLINGS = 2.0 ** np.arange(-2, 11)  # of the range of the rows, if scores have no ends


@dataclass(eq=False, repr=False, kw_only=True)
class BlendCalibrator(CornerCalibrator):
    """Turn scores into probabilities by a mean of seven curves; the best curve without a guarantee.

    Guarantee: none; `guarantee_` says why (Theorem 3 of Gupta, Podkopaev and Ramdas 2020). The
    curve follows the shape that the rows show, and stays near the score, or a line, if there are
    few rows. Use it if you want the smallest log loss, and `Calibrator` for a guarantee.

    Parameters
    ----------
    pos_label : object, default=None
        The positive class. Required unless the labels are 0 and 1, -1 and 1, or bools.

    Attributes
    ----------
    thresholds_, values_ : arrays of shape (m,)
        The curve's corners; it is linear between them, and flat outside.
    pieces_ : Pieces
        The same curve in pieces, which `predict` and exports use.
    guarantee_ : NoGuarantee
        Why nothing is guaranteed.
    classes_ : array of shape (2,)
        The labels, sorted.
    n_features_in_ : int
        Always 1.

    Notes
    -----
    On the logit scale, the curve is the mean of the score itself, Platt scaling of its logit with a
    strong and with a weak prior, beta calibration, and splines in the logit and in the rank. All of
    them increase. Their weights are proportional to exp(-L / 2), where L is the log loss over all
    rows, each left out of the fit, which one Newton step approximates. There are no folds, and
    nothing is random.

    If all scores in `fit` are between 0 and 1, they are taken as probabilities. Other scores, such
    as logits, per cent, or points, are standardised, and the members that need probabilities are
    left out. Rows at exactly 0 or 1 count as half-way to the nearest other score. If the rate
    clearly falls as the score rises, the curve falls. The logit is at most about ln(2n) + 1 for n
    rows, so labels that a threshold separates, or of one class only, do not give 0 or 1.

    `sample_weight` counts rows. Of `importance_weight` only the ratios matter: the weights are
    scaled to add up to the number of rows that they are worth, (sum of w)^2 / (sum of w^2).

    The curve is continuous. It is saved as straight pieces that are within 0.002 of it on the logit
    scale; beyond 2,048 different scores, it is fitted to cells of neighbouring scores.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import BlendCalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(size=2_000)
    >>> y = rng.uniform(size=2_000) < truth
    >>> overconfident = truth**2 / (truth**2 + (1 - truth) ** 2)
    >>> BlendCalibrator().fit(overconfident, y).predict([0.1, 0.5, 0.9]).round(2)
    array([0.25, 0.5 , 0.76])
    """

    reaches_ends: ClassVar[bool] = False
    may_fall: ClassVar[bool] = True

    def _row_counts(self, weights: FloatArray) -> FloatArray:
        return kish_scaled(weights)

    def _learn(self, rows: ScoreCounts) -> dict[str, Any]:
        are_probabilities = bool(rows.scores[0] >= 0.0 and rows.scores[-1] <= 1.0)
        falls = is_falling(rows)
        if falls:
            rows = mirrored(rows)
        curve = fit_blend(rows, are_probabilities=are_probabilities)
        points = _refined(_points(rows, are_probabilities), curve)
        # rounding may make a flat stretch fall by a few units in the last place
        values = np.maximum.accumulate(curve(points))
        thresholds, values = simplified(points, values)
        if falls:
            values = 1.0 - values
        return {"thresholds": thresholds.tolist(), "values": values.tolist()}


def _points(rows: ScoreCounts, are_probabilities: bool) -> FloatArray:
    """Scores at which the curve is computed: among the rows, and increasingly sparse beyond them."""
    first, last = rows.scores[[0, -1]].tolist()
    even = np.linspace(0.0, 1.0, _POINTS)
    if are_probabilities:
        low, high = logit(inner(rows.scores[[0, -1]]))
        between = expit(low + (high - low) * even)
        beyond = [first * _HALVINGS, 1.0 - (1.0 - last) * _HALVINGS, np.array([0.0, 1.0])]
    else:
        between = first * (1.0 - even) + last * even
        width = (last - first) or 1.0
        beyond = [first - width * _DOUBLINGS, last + width * _DOUBLINGS]
    points = np.unique(np.concatenate([rows.thinned(_POINTS).scores, between, *beyond]))
    return np.asarray(points[np.isfinite(points)])


def _refined(points: FloatArray, curve: BlendCurve) -> FloatArray:
    """More points where the curve is steep."""
    steep = np.flatnonzero(np.diff(curve.logits(points)) > _STEEP)
    share = np.linspace(0.0, 1.0, 10)[:, None]
    return np.unique(np.append(points, points[steep] * (1.0 - share) + points[steep + 1] * share))
