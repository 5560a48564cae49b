"""The average of the predictions in every region is as near to its rate as guaranteed, whatever the
curve.
"""

import numpy as np
import pytest

from calibrant import Calibrator
from calibrant.cells.bins import OTHER
from worlds.binary import WORLDS, World
from worlds.guarantees import assert_kept, assert_rare

ROWS = 200
ALPHA = 0.1
LEVEL = 1e-4
QUADRATURE = (np.arange(200) + 0.5) / 200


def _jump(s):
    return np.where(s < 0.5, 0.05, 0.9)


def _jump_integral(s):
    return np.where(s < 0.5, 0.05 * s, 0.025 + 0.9 * (s - 0.5))


SIMULATED = [
    *(world for world in WORLDS if world.name in ("smooth", "atoms", "forest", "two-point")),
    World("jump at an edge", _jump, _jump_integral, 0.8, np.array([0.5]), np.array([0.2])),
]


def average_prediction(world, model):
    """The true average of the predictions in each region."""
    low, high = np.clip(model.partition_.bounds, 0.0, 1.0).T
    points = low[:, None] + (high - low)[:, None] * QUADRATURE
    sums = (
        world.continuous
        * (high - low)
        * model.predict(points.ravel()).reshape(points.shape).mean(axis=1)
    )
    where = model.partition_.membership(world.atoms)
    inside = where >= 0
    np.add.at(sums, where[inside], (world.atom_mass * model.predict(world.atoms))[inside])
    mass, rate = world.truth(model.partition_)
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums / mass, rate, mass > 1e-9


def simulate(curve, pilot="auto"):
    """In which worlds the guarantee was broken, and whether in one drawn at random, for ever."""
    rng = np.random.default_rng(70)
    while True:
        broken = {}
        for world in SIMULATED:
            drawn = world.draw(rng, ROWS)
            model = Calibrator(curve, n_bins=4, pilot=pilot).fit(*drawn, classes=(0, 1))
            found, rate, real = average_prediction(world, model)
            broken[world.name] = bool(
                np.any(np.abs(found - rate)[real] > model.guarantee_.radius[real] + 1e-4)
            )
        yield broken | {"all": list(broken.values())}


@pytest.mark.slow
@pytest.mark.parametrize(("curve", "caught"), [("isotonic", 0.21), ("auto", 0.25)])
@pytest.mark.usefixtures("no_mass_limits")
def test_guarantee_holds(curve, caught):
    assert_kept(simulate(curve), ALPHA, caught=caught)


@pytest.mark.slow
@pytest.mark.usefixtures("no_mass_limits")
def test_guarantee_holds_without_pilot_rows():
    assert_kept(simulate("auto", pilot=None), ALPHA, caught=0.25)


@pytest.mark.broad
@pytest.mark.usefixtures("no_mass_limits")
def test_without_pilot_rows_half_of_the_guarantees_at_one_half_hold_at_the_least():
    """A level at which a wrong proof shows in few draws, with a first curve that is no good."""
    world = SIMULATED[0]
    rng = np.random.default_rng(71)
    broken = 0
    for _ in range(60):
        scores, y = world.draw(rng, ROWS)
        model = Calibrator(n_bins=4, pilot=None, confidence_level=0.5).fit(scores, 1 - y)
        found, rate, real = average_prediction(world, model)
        errors = model.guarantee_.errors
        off = (1.0 - rate) - found
        broken += bool(((off < errors.lower - 1e-4) | (off > errors.upper + 1e-4))[real].any())
    assert_rare(broken, 60, 0.5, level=LEVEL)


def cells(n_scores=60, n_small=20):
    """Pairs of segment and score with their mass and rate: two large segments, and small ones with
    unlike rates.
    """
    score = np.tile((np.arange(n_scores) + 0.5) / n_scores, 2 + n_small)
    segment = np.repeat(np.arange(2 + n_small), n_scores)
    mass = np.repeat([0.5, 0.3, *[0.2 / n_small] * n_small], n_scores) / n_scores
    bend = np.repeat([0.5, 2.0, *np.linspace(0.2, 4.0, n_small)], n_scores)
    return segment, score, mass, score**bend


@pytest.mark.slow
def test_guarantee_holds_within_segments_and_for_the_pooled_ones():
    segment, score, mass, rate = cells()
    broken = 0
    draws = 40
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        rows = rng.choice(mass.size, size=1_500, p=mass)
        y = (rng.uniform(size=rows.size) < rate[rows]).astype(int)
        model = Calibrator(n_bins=2, segment_rule=250).fit(score[rows], y, segments=segment[rows])
        assert model.partition_.segments[-1] is OTHER
        where = model.partition_.membership(model.partition_.prepare(score, segment))
        predicted = model.predict(score, segments=segment)
        inside = where >= 0
        size = model.partition_.n_regions
        found = np.bincount(where[inside], (mass * (predicted - rate))[inside], minlength=size)
        total = np.bincount(where[inside], mass[inside], minlength=size)
        broken += bool((np.abs(found) > total * (model.guarantee_.radius + 1e-9)).any())
    assert_rare(broken, draws, ALPHA, level=0.01)
