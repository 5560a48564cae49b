"""The average of the predictions in every region is as near to its rate as guaranteed, whatever the
curve.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from calibrant import Calibrator, Partition, Tally
from calibrant.calibrators.curve.fitted_curve import CurveProof
from calibrant.calibrators.curve.pieces import Pieces
from calibrant.cells.bins import OTHER
from calibrant.intervals import get_method
from calibrant.limits.kolmogorov import kolmogorov_distance
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


def simulate(curve):
    """In which worlds the guarantee was broken, and whether in one drawn at random, for ever."""
    rng = np.random.default_rng(70)
    while True:
        broken = {}
        for world in SIMULATED:
            model = Calibrator(curve, n_bins=4).fit(*world.draw(rng, ROWS), classes=(0, 1))
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


def misses_of_adversary(draws, *, spikes, over_rows=False):
    """How often the bound fails for a curve that is made with knowledge of the rows and of the
    truth.

    Scores are uniform and the rate is the score. Without spikes the curve has a step in each
    region, where the rows are farthest from uniform, on the side that adds to the error of the
    rate. With spikes it is 1/2 at every row and nearly 1 between rows. `over_rows` takes the
    variation between rows only, which is wrong.
    """
    rng = np.random.default_rng(8)
    samples = []
    for _ in range(draws):
        scores = np.sort(rng.uniform(size=ROWS))
        y = (rng.uniform(size=ROWS) < scores).astype(np.uint8)
        regions = Partition.uniform_mass(scores, 4)
        samples.append((scores, regions, Tally.from_data(regions, scores, y)))
    proof = CurveProof(*samples[0][1:], "clopper-pearson", Calibrator().confidence_level)
    every = {
        name: np.concatenate([getattr(one[2], name) for one in samples])
        for name in ("counts", "positives", "rates")
    }
    limits = get_method("clopper-pearson").function(
        SimpleNamespace(**every, n_regions=4), proof.for_rates
    )
    misses = 0
    for draw, (scores, regions, tally) in enumerate(samples):
        distances = kolmogorov_distance(tally.counts, proof.for_curve)
        rows = regions.membership(scores)
        bounds = np.clip(regions.bounds, 0.0, 1.0)
        truth = bounds.mean(axis=1)
        failed = False
        for region, (low, high) in enumerate(bounds):
            inside = scores[rows == region]
            if spikes:
                mean = 0.5
                expected = 0.999
                variation = 0.0 if over_rows else 2 * 0.499 * (inside.size + 1)
            else:
                share = (inside - low) / (high - low)
                excess = np.arange(1, inside.size + 1) / inside.size - share
                sign = 1.0 if tally.rates[region] < truth[region] else -1.0
                at = np.argmax(sign * excess)  # the curve is 1 up to there and 0 beyond
                mean = (at + 1) / inside.size
                expected = share[at]
                variation = 1.0
            distance = distances[region]
            error = expected - truth[region]
            above = mean - limits.lower[4 * draw + region] + variation * distance
            below = mean - limits.upper[4 * draw + region] - variation * distance
            failed |= not below <= error <= above
        misses += failed
    return misses


@pytest.mark.broad
def test_guarantee_holds_for_a_curve_that_knows_the_truth():
    misses = misses_of_adversary(400, spikes=False)
    assert_rare(misses, 400, ALPHA, level=LEVEL)


@pytest.mark.broad
def test_variation_is_that_of_the_whole_region_and_not_over_the_rows():
    assert misses_of_adversary(100, spikes=True) == 0
    assert misses_of_adversary(100, spikes=True, over_rows=True) > 90


def test_variation_of_a_curve_with_spikes_between_rows_is_seen():
    scores = np.sort(np.random.default_rng(2).uniform(size=60))
    regions = Partition.uniform_mass(scores, 2)
    middles = (scores[1:] + scores[:-1]) / 2
    knots = np.sort(np.concatenate([scores, middles]))
    values = np.where(np.isin(knots, scores), 0.5, 0.9)
    variation = Pieces.through(regions, [knots], [values]).variation(regions)
    assert (variation > 0.4 * 2 * 25).all()


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
