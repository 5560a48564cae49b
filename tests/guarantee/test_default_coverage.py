"""The curve without jumps keeps its limits in ten worlds with known truth."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from calibrant import Calibrator
from worlds.guarantees import assert_rare

DRAWS = 400
ROWS = 400
POINTS = (np.arange(40_000) + 0.5) / 40_000
ATOMS = np.array([0.3, 0.6, 1.0])


class Known(NamedTuple):
    """A rate of uniform scores, and how rows are drawn."""

    rate: Any
    kind: str = "rows"


WORLDS = {
    "plain": Known(lambda s: s),
    "steps at edges": Known(lambda s: (np.floor(4 * s) % 2).astype(float)),
    "zigzag": Known(lambda s: 0.5 + 0.4 * np.sin(25.0 * s)),
    "atoms": Known(lambda s: 0.2 + 0.5 * s, "atoms"),
    "reversed": Known(lambda s: 1.0 - s),
    "rare": Known(lambda s: 0.01 + 0.06 * s**4),
    "flat": Known(lambda s: np.full(s.shape, 0.4)),
    "unlabelled": Known(np.square, "unlabelled"),
    "groups": Known(lambda s: 0.1 + 0.7 * s, "groups"),
    "weights": Known(np.sqrt, "weights"),
}


def drawn(world, rng):
    """Scores, labels, and what else `fit` is told."""
    scores = rng.uniform(size=ROWS)
    beside: dict[str, Any] = {}
    if world.kind == "atoms":
        scores = np.where(rng.uniform(size=ROWS) < 0.5, rng.choice(ATOMS, size=ROWS), scores)
    if world.kind == "groups":
        beside["groups"] = np.arange(ROWS) // 2
        beside["max_group_size"] = 2
    rate = world.rate(scores)
    uniform = rng.uniform(size=ROWS)
    if world.kind == "groups":
        uniform = np.repeat(uniform[::2], 2)  # labels of a group go together
    if world.kind == "weights":
        beside["importance_weight"] = 0.5 + 1.5 * scores
        beside["weight_bound"] = 2.0
    if world.kind == "unlabelled":
        beside["unlabelled_scores"] = rng.uniform(size=2_000)
    return scores, (uniform < rate).astype(int), beside


def is_broken(world, model):
    """Whether the rate minus the average prediction of any region is outside of its limits."""
    points = POINTS
    mass = np.ones(POINTS.size)
    if world.kind == "atoms":
        points = np.concatenate([points, ATOMS])
        mass = np.concatenate([mass, np.full(3, POINTS.size / 3)])
    if world.kind == "weights":
        mass = 0.5 + 1.5 * points
    region = model.partition_.membership(points)
    inside = region >= 0
    error = world.rate(points) - model.predict(points)
    size = model.partition_.n_regions
    total = np.bincount(region[inside], mass[inside], size)
    found = np.bincount(region[inside], (mass * error)[inside], size)
    limits = model.guarantee_.errors
    there = total > 0.0
    found = found[there] / total[there]
    near = 2e-3 / np.maximum(total[there] / 1_000, 1.0)  # of the points
    outside = (found < limits.lower[there] - near) | (found > limits.upper[there] + near)
    return bool(outside.any())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.errors.CalibrantWarning")
@pytest.mark.usefixtures("no_mass_limits")
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("name", WORLDS)
def test_the_default_keeps_its_limits(name, alpha):
    world = WORLDS[name]
    rng = np.random.default_rng(29)
    missed = 0
    for seed in range(DRAWS):
        scores, y, beside = drawn(world, rng)
        model = Calibrator(n_bins=4, confidence_level=1.0 - alpha, random_state=seed)
        missed += is_broken(world, model.fit(scores, y, classes=(0, 1), **beside))
    assert_rare(missed, DRAWS, alpha)
