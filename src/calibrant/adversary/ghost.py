"""The ghost world: finitely many points, each with a label of its own, that no sample can tell from fresh coins."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibrant._params import check_int
from calibrant._typing import FloatArray, IntArray

BITS = 40  # 10^12 points: two of a million draws are the same with probability 0.4, two of 10^5 with 0.005
POINTS = 2**BITS


@dataclass(frozen=True, slots=True)
class GhostWorld:
    """The distribution Q in the proof of `thm:PS-CI-equivalence`: finitely many points, each with its label fixed.

    Scores are uniform over 2^40 points of (0, 1). Each point got its label once, by a coin with the stated rate, and
    keeps it. So a score determines its label, E[Y | score] is 0 or 1, and any sample looks exactly as if labels were
    drawn anew with the stated rate, until the same point is drawn twice.

    Parameters
    ----------
    rate : callable, default=None
        Maps scores to the rate that samples will suggest; None is 1/2 everywhere, the proof of `cor:CI-PS-diameter`.
    seed : int, default=0
        Which labels the points got.

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
    _salt: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        seed = check_int("seed", self.seed, minimum=0)
        object.__setattr__(self, "_salt", (seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Return `n` scores and labels, independent draws."""
        points = rng.integers(POINTS, size=n)
        return self.scores_at(points), self.labels_at(points)

    def scores_at(self, points: IntArray) -> FloatArray:
        """Scores of the points with these numbers, from 0 to 2^40 - 1."""
        return np.asarray((points + 0.5) / POINTS)

    def labels_at(self, points: IntArray) -> NDArray[np.uint8]:
        """The labels that these points got once and for all."""
        coin = _hashed(points.astype(np.uint64), self._salt)
        return (coin < self.apparent_rate(self.scores_at(points))).astype(np.uint8)

    def true_rate(self, scores: FloatArray) -> FloatArray:
        """E[Y | score], which is the score's own label."""
        points = np.floor(np.asarray(scores) * POINTS).astype(np.int64)
        return self.labels_at(points).astype(np.float64)

    def apparent_rate(self, scores: FloatArray) -> FloatArray:
        """The rate that every sample suggests."""
        return np.full(np.shape(scores), 0.5) if self.rate is None else np.asarray(self.rate(scores), dtype=np.float64)

    def rate_between(self, first: IntArray, last: IntArray) -> FloatArray:
        """True rate over all points from `first` to `last`.

        Up to 64 points are looked at one by one. Of more, 64 evenly spaced apparent rates are averaged: what the coins
        of so many points add is under 1 / sqrt(number of points).
        """
        first, last = np.asarray(first), np.asarray(last)
        steps = np.linspace(0.0, 1.0, 64)
        points = first[:, None] + np.floor((last - first + 1)[:, None] * (steps * (1 - 2**-50))).astype(np.int64)
        points = np.minimum(points, last[:, None])
        few = (last - first) < 64
        result = self.apparent_rate(self.scores_at(points).ravel()).reshape(points.shape).mean(axis=1)
        for row in np.flatnonzero(few).tolist():
            result[row] = self.labels_at(np.arange(first[row], last[row] + 1)).mean()
        return np.asarray(result)


def _hashed(points: NDArray[np.uint64], salt: int) -> FloatArray:
    """One fixed uniform number per point: the finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        bits = points + np.uint64(salt)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits = bits ^ (bits >> np.uint64(31))
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53)
