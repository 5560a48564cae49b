"""The ghost world: each point has a fixed label, but samples look as if labels were drawn at
random. So intervals around an injective map cannot be narrow for every distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from calibrant._typing import CodeArray, FloatArray, IntArray, Keys, ScoreMap, Seed
from calibrant.calibrators.regions.weakness import reported_by_caller
from calibrant.errors import InvalidTypeError
from calibrant.guarantee.tripod import minimum_expected_width
from calibrant.kernels.hash import GOLDEN
from calibrant.params.random import as_generator, mixed
from calibrant.params.rules import OPEN_UNIT, Integer
from calibrant.text.numbers import lower, percent, points, upper
from calibrant.text.picture import Drawn, Picture, ReferenceLine
from calibrant.text.result import Result
from calibrant.text.result_table import ResultTable

# 10^12 points: a million draws repeat a point with probability 0.4, and 10^5 draws with 0.005
BITS = 40
POINTS = 2**BITS
_PROBES = 20_000
_WIDTHS = np.arange(23) / 20


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WidthDemonstration(Result):
    """Why no distribution-free interval around an injective map can be narrow (Corollary 2 of
    Gupta, Podkopaev and Ramdas 2020).

    Attributes
    ----------
    widths : float array of shape (m,)
        Widths of intervals centred on the prediction, before clipping to [0, 1].
    coverage_apparent : float array of shape (m,)
        How often an interval of each width contains E[Y | score] if labels are fair coin flips.
    coverage_ghost : float array of shape (m,)
        How often it does so in the ghost world. Samples of this size look the same in both worlds.
    needed_width : float
        The smallest of the widths, at most 1, that reaches the confidence level in both worlds.
    minimum_width : float
        1/2 - alpha: no distribution-free interval, centred or not, has a smaller expected width for
        every distribution.
    confidence_level : float
        1 - alpha.
    n : int
        Number of calibration rows.
    """

    widths: FloatArray
    coverage_apparent: FloatArray
    coverage_ghost: FloatArray
    needed_width: float
    minimum_width: float
    confidence_level: float
    n: int

    @property
    def sentence(self) -> str:
        """The width required here, and the smallest width that any method requires."""
        return (
            "An interval around the prediction must be"
            f" {points(upper(self.needed_width))} wide for {percent(self.confidence_level)} coverage"
            " in both worlds; every distribution-free method needs at least"
            f" {points(lower(self.minimum_width))} on average."
        )

    def pictures(self) -> tuple[Picture, ...]:
        """How often intervals of each width cover."""
        widths = self.widths.tolist()
        drawn = (
            Drawn("coin flips", widths, self.coverage_apparent.tolist(), kind="line"),
            Drawn("ghost world", widths, self.coverage_ghost.tolist(), kind="line"),
        )
        rule = (ReferenceLine("confidence level", self.confidence_level),)
        text = "How often an interval of each width contains the true rate, in both worlds."
        return (Picture("Width and coverage", text, "width", "coverage", drawn, rule),)

    def tables(self) -> tuple[ResultTable, ...]:
        """How often intervals of each width cover, in both worlds."""
        columns = {
            "width": self.widths,
            "coverage_apparent": self.coverage_apparent,
            "coverage_ghost": self.coverage_ghost,
        }
        heads = {"coverage_apparent": "covers, coins", "coverage_ghost": "covers, ghost"}
        return (ResultTable("widths", columns, heads=heads),)


def width_demonstration(
    calibrator: ScoreMap,
    *,
    n: int = 10_000,
    confidence_level: float = 0.9,
    random_state: Seed = 0,
) -> WidthDemonstration:
    """Show that an interval that is valid for coin flips and in the ghost world must be wide
    (Corollary 2 of Gupta, Podkopaev and Ramdas 2020).

    It must contain 1/2, the truth for coin flips, and 0 or 1, the truth in the ghost world.

    Parameters
    ----------
    calibrator : object with `fit(scores, y)` and `predict(scores)`
        An injective map.
    n : int, default=10_000
        Number of calibration rows.
    confidence_level : float, default=0.9
        1 - alpha.
    random_state : int, Generator, RandomState or None, default=0
        Seed for drawing the rows.

    Returns
    -------
    WidthDemonstration

    Examples
    --------
    >>> from calibrant import PlattCalibrator
    >>> from calibrant.adversary import width_demonstration
    >>> demonstration = width_demonstration(PlattCalibrator())
    >>> demonstration.needed_width >= demonstration.minimum_width
    True
    """
    OPEN_UNIT.check("confidence_level", confidence_level)
    is_fitted(calibrator)
    rng = as_generator(random_state)
    world = GhostWorld(seed=int(rng.integers(2**31)))
    scores, y = world.draw(rng, Integer(10).check("n", n))
    new_scores, label = world.draw(rng, _PROBES)
    prediction = predict(refitted(calibrator, scores, y), new_scores)
    half = _WIDTHS[:, None] / 2.0
    coins = (np.abs(prediction - 0.5) <= half).mean(axis=1)
    ghost = (np.abs(prediction - label) <= half).mean(axis=1)
    enough = np.flatnonzero((coins >= confidence_level) & (ghost >= confidence_level))
    return WidthDemonstration(
        widths=_WIDTHS.copy(),
        coverage_apparent=coins,
        coverage_ghost=ghost,
        needed_width=min(1.0, float(_WIDTHS[enough[0]])) if enough.size else 1.0,
        minimum_width=minimum_expected_width(confidence_level),
        confidence_level=float(confidence_level),
        n=int(n),
    )
