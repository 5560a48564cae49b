"""Rows with attributes, scores and known rates: nulls that are hard to keep, and subgroups that are
off.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Attributes, scores, the true rate of each row, and labels drawn from the rates."""

    attributes: dict[str, Any]
    scores: np.ndarray
    rates: np.ndarray
    y: np.ndarray


def attributes(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Text, a truth value, ages with ties, a number with an atom at 0, a constant, and many missing
    values.
    """
    sex = rng.choice(np.array(["f", "m"], dtype=object), n)
    sex[rng.random(n) < 0.4] = None
    gain = np.where(rng.random(n) < 0.6, 0.0, rng.exponential(size=n))
    return {
        "sex": sex.tolist(),
        "smoker": rng.random(n) < 0.3,
        "age": np.round(rng.normal(50.0, 15.0, n)),
        "gain": np.where(rng.random(n) < 0.1, np.nan, gain),
        "country": ["here"] * n,
    }


SCORES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "skewed": lambda rng, n: rng.beta(0.5, 5.0, n),
    "tied": lambda rng, n: rng.choice([0.1, 0.5, 0.9], n),
    "rare": lambda rng, n: rng.beta(1.0, 300.0, n),
    "certain": lambda rng, n: rng.choice([0.0, 0.02, 0.5, 1.0], n, p=[0.45, 0.1, 0.05, 0.4]),
    "near one": lambda rng, n: 1.0 - rng.beta(1.0, 100.0, n),
}


def calibrated(rng: np.random.Generator, n: int, kind: str) -> Rows:
    """Every row's rate is its score."""
    scores = SCORES[kind](rng, n)
    return Rows(attributes(rng, n), scores, scores, (rng.random(n) < scores).astype(np.uint8))


def planted(rng: np.random.Generator, n: int, error: float) -> Rows:
    """Smokers with a gain of 0, about 16 % of the rows, have rates that are `error` above their
    scores.
    """
    found = attributes(rng, n)
    scores = rng.beta(2.0, 5.0, n) * (1.0 - error)
    off = found["smoker"] & (found["gain"] == 0.0)
    rates = scores + error * off
    return Rows(found, scores, rates, (rng.random(n) < rates).astype(np.uint8))


def waves(rng: np.random.Generator, n: int) -> Rows:
    """Rates that differ from scores up and down, row by row and by subgroup: nearly every statement
    can be wrong.
    """
    found = attributes(rng, n)
    scores = rng.uniform(0.1, 0.9, n)
    sign = np.where(found["smoker"], 1.0, -1.0) * np.where(found["age"] > 50, 1.0, -0.5)
    rates = np.clip(scores + 0.05 * sign + rng.choice([-0.3, 0.3], n), 0.0, 1.0)
    return Rows(found, scores, rates, (rng.random(n) < rates).astype(np.uint8))
