"""The curve that a calibrator predicts, as points to draw."""

from typing import Protocol

import numpy as np

from calibrant._typing import FloatArray, IntArray

_POINTS = 400  # more could not be told apart on a screen


class Predicts(Protocol):
    """A fitted calibrator of one score."""

    def predict(self, scores: FloatArray) -> FloatArray:
        """The calibrated probability of each score."""


def predicted_curve(
    calibrator: Predicts, bounds: FloatArray, left: float, right: float
) -> FloatArray | None:
    """Scores and predictions from left to right, as columns; None for a calibrator that predicts
    one value per region, which is drawn as steps.

    The curve is limited to the scores that the calibrator was fitted on, and to the outer bounds,
    beyond which it accepts no scores. Both sides of each edge are included, so that a jump is drawn
    at the right place.
    """
    left, right = _seen(calibrator, left, right)
    left = max(left, float(bounds.min()))
    right = min(right, float(bounds.max()))
    edges = bounds[np.isfinite(bounds) & (bounds > left) & (bounds < right)]
    sides = (edges, np.nextafter(edges, left), np.nextafter(edges, right))
    scores = np.unique(np.concatenate([np.linspace(left, right, _POINTS), *sides]))
    values = np.asarray(calibrator.predict(scores), dtype=float)
    inside = _regions_of(scores, bounds)
    varies = np.diff(values) != 0.0
    within = (inside[1:] == inside[:-1]) & (inside[1:] >= 0)
    if not (varies & within).any():
        return None
    return np.column_stack([scores, values])


def predicted_ends(calibrator: Predicts, bounds: FloatArray) -> FloatArray | None:
    """The predictions at both ends of each region, the smaller first; None if every region has one
    value.

    The outer regions end at the extreme scores that the calibrator was fitted on.
    """
    finite = bounds[np.isfinite(bounds)]
    left, right = _seen(calibrator, -np.inf, np.inf)
    if np.isinf(left):
        left = finite.min(initial=right)
        right = finite.max(initial=left)
    if not left < right:
        return None
    inner = np.clip(bounds, left, right)
    first = np.nextafter(inner[:, 0], inner[:, 1])
    last = np.nextafter(inner[:, 1], inner[:, 0])
    values = np.asarray(calibrator.predict(np.concatenate([first, last])), dtype=float)
    ends = np.sort(values.reshape(2, -1).T, axis=1)
    return ends if (ends[:, 0] < ends[:, 1]).any() else None


def _seen(calibrator: Predicts, left: float, right: float) -> tuple[float, float]:
    """The range of scores that the calibrator saw, within left and right; a prediction beyond it
    would warn.
    """
    seen = getattr(calibrator, "score_range_seen_", None)
    if seen is None:
        return left, right
    return max(left, seen[0]), min(right, seen[1])


def _regions_of(scores: FloatArray, bounds: FloatArray) -> IntArray:
    """The region whose interior contains each score; -1 for a score on an edge."""
    place = np.searchsorted(bounds[:, 0], scores, side="left") - 1
    held = (place >= 0) & (scores < bounds[np.maximum(place, 0), 1])
    return np.where(held, place, -1)
