"""The population of the paper's "Preliminary simulations": uniform rows, a Beta(2, 1) target, and a
wavy label rate.
"""

from functools import cache

import numpy as np
from sklearn.ensemble import RandomForestClassifier

DIMENSIONS = 3
OMEGA = 20.0
WEIGHT_BOUND = 2.0**DIMENSIONS
ROWS = {
    "train": 14_700,
    "cut": 1_940,
    "calibrate": 7_840,
    "evaluate": 28_000,
    "ratio source": 2_000,
    "ratio target": 2_000,
    "mass source": 8_500,
    "mass target": 8_000,
}
N_BINS = 10
TREES = 100
BANDWIDTHS = np.geomspace(1e-2, 1e2, 25)
PENALTIES = np.geomspace(1e-3, 1e3, 100)


def source_rows(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(size=(n, DIMENSIONS))


def target_rows(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.beta(2.0, 1.0, size=(n, DIMENSIONS))


def true_weight(x: np.ndarray) -> np.ndarray:
    return WEIGHT_BOUND * x.prod(axis=1)


def label_rate(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.sin(OMEGA * np.square(x).sum(axis=1)))


def labels(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return (rng.uniform(size=len(x)) < label_rate(x)).astype(np.int64)


def trained_forest(rng: np.random.Generator) -> RandomForestClassifier:
    x = source_rows(rng, ROWS["train"])
    seed = int(rng.integers(2**31))
    return RandomForestClassifier(TREES, random_state=seed, n_jobs=2).fit(x, labels(rng, x))


@cache
def scored_pool(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores, weights and label rates of a finite population, and scores that cut bins: a world
    whose truth is exact.

    Calibration rows are drawn from the pool with replacement, so that the pool *is* the population,
    and the target rate of a bin is a weighted mean over the pool, with no error of simulation.
    """
    rng = np.random.default_rng(seed)
    forest = trained_forest(rng)
    cutting = forest.predict_proba(source_rows(rng, ROWS["cut"]))[:, 1]
    x = source_rows(rng, n)
    return forest.predict_proba(x)[:, 1], true_weight(x), label_rate(x), cutting
