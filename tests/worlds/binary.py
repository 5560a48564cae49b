"""Distributions of scores and labels whose truth is known in every region of any partition of the
score.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from calibrant import Partition


@dataclass(frozen=True)
class World:
    """Scores uniform on (0, 1) with probability `continuous`, else one of `atoms`.

    Label rate `rate(score)`.
    """

    name: str
    rate: Callable[[np.ndarray], np.ndarray]
    rate_integral: Callable[[np.ndarray], np.ndarray]
    continuous: float = 1.0
    atoms: np.ndarray = field(default_factory=lambda: np.empty(0))
    atom_mass: np.ndarray = field(default_factory=lambda: np.empty(0))

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        scores = rng.uniform(size=n)
        if self.atoms.size:
            discrete = rng.uniform(size=n) >= self.continuous
            weights = self.atom_mass / self.atom_mass.sum()
            scores[discrete] = rng.choice(self.atoms, p=weights, size=int(discrete.sum()))
        return scores, (rng.uniform(size=n) < self.rate(scores)).astype(np.uint8)

    def truth(self, partition: Partition) -> tuple[np.ndarray, np.ndarray]:
        """True probability of each region, and true rate in it (NaN where the region has no mass)."""
        low, high = np.clip(partition.bounds, 0.0, 1.0).T
        mass = self.continuous * (high - low)
        hits = self.continuous * (self.rate_integral(high) - self.rate_integral(low))
        region = partition.membership(self.atoms)
        inside = region >= 0
        np.add.at(mass, region[inside], self.atom_mass[inside])
        np.add.at(hits, region[inside], (self.atom_mass * self.rate(self.atoms))[inside])
        with np.errstate(invalid="ignore"):
            return mass, np.where(mass > 0, hits / np.where(mass > 0, mass, 1.0), np.nan)


def _square(s: np.ndarray) -> np.ndarray:
    return s**2


def _cube_third(s: np.ndarray) -> np.ndarray:
    return s**3 / 3


_near_empty_mass = np.array([0.1998, 0.1998, 0.1998, 0.1998, 0.1998, 0.001])
_forest = np.arange(101) / 100
_forest_mass = stats.betabinom.pmf(np.arange(101), 100, 0.6, 1.8)

WORLDS = [
    World("smooth", _square, _cube_third),
    World("rare", lambda s: 0.002 * s, lambda s: 0.001 * s**2),
    World(
        "atoms", _square, _cube_third, 0.5, np.array([0.2, 0.5, 0.8]), np.array([0.25, 0.05, 0.2])
    ),
    World("constant", _square, _cube_third, 0.0, np.array([0.3]), np.array([1.0])),
    World("two-point", _square, _cube_third, 0.0, np.array([0.2, 0.9]), np.array([0.95, 0.05])),
    World("forest", _square, _cube_third, 0.0, _forest, _forest_mass),
    World("many-ties", _square, _cube_third, 0.0, np.arange(1000) / 1000, np.full(1000, 0.001)),
    World(
        "near-empty",
        _square,
        _cube_third,
        0.0,
        np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.99]),
        _near_empty_mass,
    ),
]
