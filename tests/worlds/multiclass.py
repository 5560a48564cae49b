"""Distributions of score vectors and labels whose truth is known in every region of any partition."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Atoms:
    """Finitely many score vectors, so that the truth in any region is a sum.

    Many of them are as good as continuous.
    """

    name: str
    scores: np.ndarray
    mass: np.ndarray
    rates: np.ndarray

    def draw(self, rng, n):
        at = rng.choice(self.mass.size, p=self.mass, size=n)
        return self.scores[at], (rng.uniform(size=(n, 1)) > self.rates.cumsum(axis=1)[at]).sum(
            axis=1
        ).clip(0, 2)


def world(name, n_atoms, seed, *, digits=9, bend=1.0, rare=None, mass=None):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.dirichlet([1.0] * 3, size=n_atoms), digits)
    rates = (scores + 1e-9) ** bend
    rates /= rates.sum(axis=1, keepdims=True)
    if rare is not None:
        rates[:, 2] *= rare / rates[:, 2].mean()
        rates[:, :2] *= ((1 - rates[:, 2]) / rates[:, :2].sum(axis=1))[:, None]
    return Atoms(name, scores, np.full(n_atoms, 1 / n_atoms) if mass is None else mass, rates)


SIMULATED = [
    world("smooth", 1000, 1),
    world("bold", 1000, 2, bend=0.3),
    world("ties", 400, 4, digits=1),
    world("rare", 1000, 5, rare=0.001),
    world("two-point", 2, 6, mass=np.array([0.97, 0.03])),
    world("constant", 1, 7),
]
