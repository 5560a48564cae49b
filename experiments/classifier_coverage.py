"""How often the guarantee of CalibratedClassifier is broken, where the truth is known.

Eight worlds, models from stable ones to one that stores its labels, rows sorted by label, one fixed
seed. A guarantee is broken if, in some bin of the probability, the average prediction misses the
rate of the population by more than the limits allow, or the rate lies outside its own limits. Each
count is compared with what is allowed by a one-sided binomial test.

    python experiments/classifier_coverage.py
    python experiments/classifier_coverage.py --draws 40 --worlds rare tied
    python experiments/classifier_coverage.py --csv draws.csv   # stopped and started again at will
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from calibrant import CalibratedClassifier
from calibrant.calibrators.hold_out import HoldOutCalibrator
from calibrant.classifier.bag import mean_probabilities

LEVELS = (0.9, 0.5)
HELD_OUT = 0.25  # share of rows; by default, all of so few would train
POPULATION = 20_000
FEWEST = 6  # positive rows in a draw
ROUNDING = 0.002  # of averages over the population, which is a large sample

PROVE = HoldOutCalibrator.fit

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
    calibrator: HoldOutCalibrator, p: np.ndarray, region: np.ndarray, rate: np.ndarray
) -> bool:
    """Whether a limit misses the average error of its bin, or the rate there.

    `p` are the probabilities of the population before they were moved.
    """
    size = calibrator.partition_.n_regions
    rows = np.bincount(region, minlength=size)
    rates = np.bincount(region, rate, size) / np.maximum(rows, 1)
    errors = rates - np.bincount(region, calibrator.predict(p), size) / np.maximum(rows, 1)
    guarantee = calibrator.guarantee_
    limits = guarantee.errors
    missed = (errors < limits.lower - ROUNDING) | (errors > limits.upper + ROUNDING)
    missed |= (rates < guarantee.lower - ROUNDING) | (rates > guarantee.upper + ROUNDING)
    return bool(missed[rows > POPULATION / 200].any())


def population(world: str) -> Rows:
    """Many rows, with their true rates."""
    make, _, _ = WORLDS[world]
    rng = np.random.default_rng(2026)
    features, rate = make(rng, POPULATION)
    if world.startswith("groups"):
        features = features + rng.normal(scale=0.1, size=features.shape)
        rate = expit(-1.5 * features[:, 0] + 0.5)
    return features, rate


def tried(world: str, number: int, truth: Rows) -> dict[str, object] | None:
    """One draw: whether each level's guarantee is broken, and its epsilon; None if it is refused."""
    features, y, groups = draw(
        world, np.random.default_rng([2026, list(WORLDS).index(world), number])
    )
    if y.sum() < FEWEST:  # which is refused, if too few of them train
        return None
    with patch.object(HoldOutCalibrator, "fit", autospec=True, side_effect=PROVE) as proof:
        model = CalibratedClassifier(WORLDS[world][2], calibration_size=HELD_OUT)
        model.fit(features, y, groups=groups)
    _, *arrays = proof.call_args.args
    curves = (model.curve_,)
    (p,) = mean_probabilities(model.estimators_, curves, truth[0], model.classes_, "auto").T
    region = model.calibrator_.partition_.regions_of(p)
    line: dict[str, object] = {"world": world, "draw": number}
    for level in LEVELS:  # the models and their bins are the same at every level
        proved = model.calibrator_
        if level != proved.confidence_level:
            proved = clone(proved).set_params(confidence_level=level)
            proved.fit(*arrays, **proof.call_args.kwargs)
        line[f"broken at {1 - level:.1f}"] = is_broken(proved, p, region, truth[1])
        line[f"epsilon at {1 - level:.1f}"] = proved.guarantee_.epsilon
    return line


def printed(world: str, lines: pd.DataFrame) -> float:
    """Print what was counted in a world; the smallest p-value."""
    smallest = 1.0
    for level in LEVELS:
        broken = int(lines[f"broken at {1 - level:.1f}"].sum())
        p_value = binomtest(broken, len(lines), 1.0 - level, alternative="greater").pvalue
        smallest = min(smallest, p_value)
        epsilon = lines[f"epsilon at {1 - level:.1f}"].mean()
        share = broken / len(lines)
        print(
            f"{world:24} {1 - level:.1f}: broken {broken} of {len(lines)} ({share:.3f}),"
            f" p = {p_value:.3f}; mean epsilon {epsilon:.3f}",
            flush=True,
        )
    return smallest


def main() -> None:
    """Print a line for each world and level."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--csv", metavar="FILE", help="keep draws there, and go on from them")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    path = Path(options.csv) if options.csv else None
    kept = pd.read_csv(path) if path and path.exists() else pd.DataFrame({"world": [], "draw": []})
    worst = 1.0
    for world in options.worlds:
        lines = kept[kept["world"] == world].to_dict("records")
        done = {int(line["draw"]) for line in lines}
        truth = population(world)
        for number in range(options.draws):
            if number not in done and (line := tried(world, number, truth)):
                lines.append(line)
                if path:
                    here = not path.exists()
                    pd.DataFrame([line]).to_csv(path, mode="a", header=here, index=False)
        worst = min(worst, printed(world, pd.DataFrame(lines)))
    print(f"smallest p-value: {worst:.4f}")


if __name__ == "__main__":
    main()
