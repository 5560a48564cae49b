"""Bins of a fitted map hold their guarantee, whatever the map was fitted to."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logit

from calibrant.calibrators import ScalingBinningCalibrator
from worlds.binary import WORLDS
from worlds.guarantees import assert_kept

ROWS = 200
SIMULATED = [world for world in WORLDS if world.name not in ("near-empty", "many-ties")]


def in_score_space(calibrator):
    """The regions of the map's output as regions of the score, which a logistic curve makes easy."""
    slope = calibrator.base_.slope_
    intercept = calibrator.base_.intercept_
    with np.errstate(divide="ignore", over="ignore"):
        bounds = (logit(np.clip(calibrator.partition_.bounds, 0.0, 1.0)) - intercept) / (
            slope or 1.0
        )
    return SimpleNamespace(
        bounds=np.sort(bounds, axis=1),
        membership=lambda scores: calibrator.partition_.membership(
            calibrator.base_.predict(scores)
        ),
    )


def simulate(world):
    """Whether the guarantee was broken, for ever, one draw at a time."""
    rng = np.random.default_rng(60 + WORLDS.index(world))
    while True:
        calibrator = ScalingBinningCalibrator(n_bins=4, random_state=rng).fit(
            *world.draw(rng, ROWS), classes=(0, 1)
        )
        guarantee = calibrator.guarantee_
        mass, rate = world.truth(in_score_space(calibrator))
        real = mass > 1e-9
        yield {
            "rates": bool(
                np.any(real & ((rate < guarantee.lower - 1e-9) | (rate > guarantee.upper + 1e-9)))
            )
        }


@pytest.mark.slow
@pytest.mark.parametrize("world", SIMULATED, ids=lambda world: world.name)
@pytest.mark.usefixtures("no_mass_limits")
def test_guarantee_holds(world, limits):
    limits.learn_up_to(ROWS)
    assert_kept(simulate(world), 0.1, caught=0.18)
