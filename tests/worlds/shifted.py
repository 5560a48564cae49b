"""The paper's covariate shift with a score whose truth is known: uniform rows, a Beta(2, 1) target,
wavy rates.
"""

from functools import cache

import numpy as np

from calibrant.partition import ScorePartition

BOUND = 8.0


def weight(x: np.ndarray) -> np.ndarray:
    return BOUND * x.prod(axis=1)


def rate(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.sin(20.0 * np.square(x).sum(axis=1)))


def score(x: np.ndarray) -> np.ndarray:
    """A poor model of the rate that mixes rows of different rates, so that weights matter within a
    bin.
    """
    return (
        0.35 * np.sin(20.0 * np.square(x).sum(axis=1)) + 0.3 * np.sin(7.0 * x[:, 0]) + 0.1 * x[:, 1]
    )


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, scores and labels of the calibration population."""
    x = rng.uniform(size=(n, 3))
    return x, score(x), (rng.uniform(size=n) < rate(x)).astype(np.int64)


@cache
def _grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    middles = (np.arange(120) + 0.5) / 120
    x = np.stack(np.meshgrid(middles, middles, middles, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[np.argsort(score(x))]
    return score(x), np.cumsum(weight(x)), np.cumsum(weight(x) * rate(x))


def truth(bins: ScorePartition) -> tuple[np.ndarray, np.ndarray]:
    """Target rate and relative mass of each bin, by the midpoint rule on 1.7 million cells."""
    scores, weights, hits = _grid()
    last = np.append(np.searchsorted(scores, bins.edges), len(scores))
    mass, total, positive = (
        np.diff(sums[last - 1], prepend=0.0)
        for sums in (np.arange(1, len(scores) + 1), weights, hits)
    )
    return positive / total, mass / total


GRID_ERROR = 2e-3
"""How far `truth` may be from the integral: bins are cut along curves, through cells of a grid of
120 a side.
"""


def data(seed=0, n=4000):
    """Rows, scores and labels of the calibration population, and their weights."""
    x, scores, y = draw(np.random.default_rng(seed), n)
    return x, scores, y, weight(x)


def target(seed=1, n=1000):
    """Rows of the target population."""
    return np.random.default_rng(seed).beta(2, 1, size=(n, 3))
