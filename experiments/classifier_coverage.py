"""How often the guarantee of CalibratedClassifier is broken, where the truth is known.

Eight worlds, models from stable ones to one that stores its labels, rows sorted by label, one fixed
seed. A guarantee is broken if, in some bin of the probability, the average prediction misses the
rate of the population by more than the limits allow. Each count is compared with what is allowed by
a one-sided binomial test.

    python experiments/classifier_coverage.py
    python experiments/classifier_coverage.py --draws 40 --worlds rare tied
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from calibrant import CalibratedClassifier
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.classifier.bag import mean_probability

LEVELS = (0.9, 0.5)
POPULATION = 40_000
FEWEST = 6  # positive rows in a draw
ROUNDING = 0.002  # of averages over the population, which is a large sample

Rows = tuple[np.ndarray, np.ndarray]


def reversed_rates(rng: np.random.Generator, n: int) -> Rows:
    features = rng.normal(size=(n, 3))
    return features, expit(-1.5 * features[:, 0] + 0.5)


def step(rng: np.random.Generator, n: int) -> Rows:
    features = rng.normal(size=(n, 3))
    return features, (features[:, 0] > 0.2).astype(float)


def atoms(rng: np.random.Generator, n: int) -> Rows:
    features = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 2, n), np.zeros(n)]).astype(
        float
    )
    return features, np.array([0.1, 0.5, 0.8])[features[:, 0].astype(int)] - 0.05 * features[:, 1]


def lottery(rng: np.random.Generator, n: int) -> Rows:
    return rng.normal(size=(n, 3)), np.full(n, 0.3)


def rare(rng: np.random.Generator, n: int) -> Rows:
    features = rng.normal(size=(n, 3))
    return features, expit(features[:, 0] - 4.5)


def tied(rng: np.random.Generator, n: int) -> Rows:
    features = rng.normal(size=(n, 3)).round(1)
    return features, expit(2.0 * features[:, 0] * features[:, 1])


WORLDS: dict[str, tuple[Callable[..., Rows], int, object]] = {
    "reversed": (reversed_rates, 300, LogisticRegression()),
    "0/1 step": (step, 300, DecisionTreeClassifier(max_depth=3, random_state=0)),
    "atoms": (atoms, 300, GaussianNB()),
    "lottery, stored labels": (lottery, 300, KNeighborsClassifier(1)),
    "rare": (rare, 600, LogisticRegression()),
    "tied": (tied, 400, DecisionTreeClassifier(min_samples_leaf=5, random_state=0)),
    "60 rows": (reversed_rates, 60, LogisticRegression()),
    "groups of 8": (reversed_rates, 480, LogisticRegression()),
}


def draw(world: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Features, labels sorted so that positives come first, and groups whose rows share their luck."""
    make, n, _ = WORLDS[world]
    features, rate = make(rng, n)
    luck = rng.uniform(size=n)
    groups = None
    if world.startswith("groups"):
        groups = np.repeat(np.arange(n // 8), 8)
        features = features[8 * groups] + rng.normal(scale=0.1, size=features.shape)
        rate = expit(-1.5 * features[:, 0] + 0.5)
        luck = luck[8 * groups]
    y = luck < rate
    order = np.argsort(~y, kind="stable")
    return features[order], y[order], None if groups is None else groups[order]


def is_broken(
    model: CalibratedClassifier,
    calibrator: HoldOutCalibrator,
    features: np.ndarray,
    rate: np.ndarray,
) -> bool:
    """Whether a limit misses the average error of its bin."""
    p = mean_probability(model.estimators_, model.curve_, features, model.classes_, "auto")
    region = calibrator.partition_.regions_of(p)
    size = calibrator.partition_.n_regions
    rows = np.bincount(region, minlength=size)
    errors = np.bincount(region, rate - calibrator.predict(p), size) / np.maximum(rows, 1)
    limits = calibrator.guarantee_.errors
    missed = (errors < limits.lower - ROUNDING) | (errors > limits.upper + ROUNDING)
    return bool(missed[rows > 200].any())


def main() -> None:
    """Print a line for each world and level."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    worst = 1.0
    for world in options.worlds:
        make, _, estimator = WORLDS[world]
        rng = np.random.default_rng(2026)
        truth, rate = make(rng, POPULATION)
        if world.startswith("groups"):
            truth = truth + rng.normal(scale=0.1, size=truth.shape)
            rate = expit(-1.5 * truth[:, 0] + 0.5)
        broken = dict.fromkeys(LEVELS, 0)
        epsilons = []
        fitted = 0
        for _ in range(options.draws):
            features, y, groups = draw(world, rng)
            if y.sum() < FEWEST:  # which is refused, if too few of them train
                continue
            for level in LEVELS:
                model = CalibratedClassifier(estimator, confidence_level=level).fit(
                    features, y, groups=groups
                )
                broken[level] += is_broken(model, model.calibrator_, truth, rate)
            fitted += 1
            epsilons.append(model.guarantee_.epsilon)
        for level in LEVELS:
            p_value = binomtest(broken[level], fitted, 1.0 - level, alternative="greater").pvalue
            worst = min(worst, p_value)
            print(
                f"{world:24} {1 - level:.1f}: broken {broken[level]} of {fitted}"
                f" ({broken[level] / fitted:.3f}), p = {p_value:.3f}; mean epsilon at .5"
                f" {np.mean(epsilons):.3f}",
                flush=True,
            )
    print(f"smallest p-value: {worst:.4f}")


if __name__ == "__main__":
    main()
