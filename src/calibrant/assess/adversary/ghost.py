"""The ghost world: each point has a fixed label, but samples look as if labels were drawn at
random.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from calibrant._typing import CodeArray, FloatArray, IntArray, Keys, ScoreMap
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.errors import InvalidTypeError
from calibrant.kernels.hash import GOLDEN
from calibrant.params.random import mixed
from calibrant.params.rules import Integer

# 10^12 points: a million draws repeat a point with probability 0.4, and 10^5 draws with 0.005
BITS = 40
POINTS = 2**BITS


@dataclass(frozen=True, slots=True)
class GhostWorld:
    """A distribution on finitely many points, each with a fixed label: Q in the proof of Theorem 2
    of Gupta, Podkopaev and Ramdas (2020).

    Scores are uniform over 2^40 points of (0, 1). The label of each point was drawn once, with the
    given rate, and does not change. So the score determines the label, and E[Y | score] is 0 or 1.
    But a sample looks exactly as if each label were drawn at random with the given rate, until some
    point is drawn twice.

    Parameters
    ----------
    rate : callable, default=None
        Maps scores to the rate that samples show. None means 1/2 everywhere, as in the proof of
        Corollary 2 of that paper.
    seed : int, default=0
        Determines the labels of the points.

    Examples
    --------
    >>> import numpy as np
    >>> world = GhostWorld()
    >>> scores, y = world.draw(np.random.default_rng(0), 100_000)
    >>> bool(np.array_equal(world.true_rate(scores), y))
    True
    >>> bool(abs(y[scores < 0.1].mean() - 0.5) < 0.01)
    True
    """

    rate: Callable[[FloatArray], FloatArray] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        Integer(0).check("seed", self.seed)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, CodeArray]:
        """Return `n` scores and labels, independent draws."""
        points = rng.integers(POINTS, size=n)
        return self.scores_at(points), self.labels_at(points)

    def scores_at(self, points: IntArray) -> FloatArray:
        """Scores of the points with these indices, from 0 to 2^40 - 1."""
        return np.asarray((points + 0.5) / POINTS)

    def labels_at(self, points: IntArray) -> CodeArray:
        """The fixed labels of these points."""
        keys: Keys = points.astype(np.uint64) + np.uint64(
            (self.seed * GOLDEN + 0xC4F46BE25A6A6404) % 2**64
        )
        uniform = (mixed(keys) >> np.uint64(11)) * 2.0**-53
        return (uniform < self.apparent_rate(self.scores_at(points))).astype(np.uint8)

    def true_rate(self, scores: FloatArray) -> FloatArray:
        """E[Y | score], which is the label of the point."""
        points = np.floor(np.asarray(scores) * POINTS).astype(np.int64)
        return self.labels_at(points).astype(np.float64)

    def apparent_rate(self, scores: FloatArray) -> FloatArray:
        """The rate that samples show."""
        return (
            np.full(np.shape(scores), 0.5)
            if self.rate is None
            else np.asarray(self.rate(scores), dtype=np.float64)
        )

    def rate_between(self, first: IntArray, last: IntArray) -> FloatArray:
        """True rate over all points from `first` to `last`.

        The labels of up to 64 points are averaged. For more points, 64 evenly spaced apparent rates
        are averaged; the fixed labels change that average by less than 1 / sqrt(number of points).
        """
        first = np.asarray(first)
        last = np.asarray(last)
        steps = np.linspace(0.0, 1.0, 64)
        points = first[:, None] + np.floor(
            (last - first + 1)[:, None] * (steps * (1 - 2**-50))
        ).astype(np.int64)
        points = np.minimum(points, last[:, None])
        few = (last - first) < 64
        result = (
            self.apparent_rate(self.scores_at(points).ravel()).reshape(points.shape).mean(axis=1)
        )
        for row in np.flatnonzero(few).tolist():
            result[row] = self.labels_at(np.arange(first[row], last[row] + 1)).mean()
        return np.asarray(result)


def is_fitted(calibrator: ScoreMap) -> bool:
    """Whether it is fitted. Raises an error for an object without `fit` and `predict`."""
    if not all(callable(getattr(calibrator, method, None)) for method in ("fit", "predict")):
        raise InvalidTypeError("calibrator", "have fit and predict", got=type(calibrator).__name__)
    return any(name.endswith("_") and not name.startswith("_") for name in vars(calibrator))


def refitted(calibrator: ScoreMap, scores: FloatArray, y: CodeArray) -> ScoreMap:
    """A copy fitted on these rows."""
    copy = clone(calibrator) if hasattr(calibrator, "get_params") else deepcopy(calibrator)
    with reported_by_caller():
        fitted: ScoreMap = copy.fit(scores, y)
    return fitted


def predict(fitted: ScoreMap, scores: FloatArray) -> FloatArray:
    """Its predictions, as doubles."""
    return np.asarray(fitted.predict(scores), dtype=np.float64)
