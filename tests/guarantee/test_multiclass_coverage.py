"""The guarantees over all classes at once, on worlds whose truth is known."""

from itertools import islice

import numpy as np
import pytest

from calibrant import ClassWiseCalibrator, TopLabelCalibrator
from worlds.guarantees import assert_kept, assert_rare
from worlds.multiclass import SIMULATED

ROWS = 120
DRAWS = 25


def rates_in(region, mass, hits, n_regions):
    total = np.bincount(region, weights=mass, minlength=n_regions)
    positive = np.bincount(region, weights=mass * hits, minlength=n_regions)
    real = total > 0
    return real, positive[real] / total[real]


def holds(guarantee, region, mass, hits):
    real, rate = rates_in(
        region[region >= 0], mass[region >= 0], hits[region >= 0], guarantee.value.size
    )
    return bool(
        np.all((rate >= guarantee.lower[real] - 1e-12) & (rate <= guarantee.upper[real] + 1e-12))
    )


def membership(partition, scores, segments=None):
    return partition.membership(partition.prepare(scores, segments))


def simulate(truth):
    """Whether the guarantees of both ways to calibrate were broken, for ever, one draw at a time."""
    rng = np.random.default_rng(40 + SIMULATED.index(truth))
    top = truth.scores.argmax(axis=1)
    confidence = truth.scores.max(axis=1)
    right = truth.rates[np.arange(top.size), top]
    while True:
        scores, y = truth.draw(rng, ROWS)
        top_label = TopLabelCalibrator(n_bins=3, method="binning").fit(scores, y, classes=(0, 1, 2))
        region = membership(top_label.calibrator_.partition_, confidence, top)
        class_wise = ClassWiseCalibrator(n_bins=3, method="binning").fit(
            scores, y, classes=(0, 1, 2)
        )
        yield {
            "top label": not holds(top_label.guarantee_, region, truth.mass, right),
            "class-wise": not all(
                holds(
                    one.guarantee_,
                    membership(one.partition_, truth.scores[:, k]),
                    truth.mass,
                    truth.rates[:, k],
                )
                for k, one in enumerate(class_wise.calibrators_)
            ),
        }


def averages_hold(guarantee, region, mass, hits, predicted):
    """Whether the average prediction of every region is as near to the rate as guaranteed."""
    inside = region >= 0
    real, error = rates_in(
        region[inside], mass[inside], (predicted - hits)[inside], guarantee.value.size
    )
    return bool((np.abs(error) <= guarantee.radius[real] + 1e-9).all())


def simulate_default(truth):
    """The same for the curves of the default, and their average predictions."""
    rng = np.random.default_rng(70 + SIMULATED.index(truth))
    top = truth.scores.argmax(axis=1)
    confidence = truth.scores.max(axis=1)
    right = truth.rates[np.arange(top.size), top]
    while True:
        scores, y = truth.draw(rng, ROWS)
        top_label = TopLabelCalibrator(n_bins=2).fit(scores, y, classes=(0, 1, 2))
        region = membership(top_label.calibrator_.partition_, confidence, top)
        sure = top_label.predict_confidence(truth.scores)
        class_wise = ClassWiseCalibrator(n_bins=2).fit(scores, y, classes=(0, 1, 2))
        predicted = class_wise.predict_proba(truth.scores)
        yield {
            "top label": not averages_hold(top_label.guarantee_, region, truth.mass, right, sure),
            "class-wise": not all(
                averages_hold(
                    one.guarantee_,
                    membership(one.partition_, truth.scores[:, k]),
                    truth.mass,
                    truth.rates[:, k],
                    predicted[:, k],
                )
                for k, one in enumerate(class_wise.calibrators_)
            ),
        }


@pytest.mark.slow
@pytest.mark.parametrize("truth", [SIMULATED[1], SIMULATED[2]], ids=lambda truth: truth.name)
def test_averages_of_the_default_hold_for_all_classes_at_once(truth):
    broken = {"top label": 0, "class-wise": 0}
    for found in islice(simulate_default(truth), DRAWS):
        broken = {way: broken[way] + found[way] for way in broken}
    for count in broken.values():
        assert_rare(count, DRAWS, 0.1, level=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("truth", SIMULATED, ids=lambda truth: truth.name)
@pytest.mark.usefixtures("no_mass_limits")
def test_guarantees_hold_for_all_classes_at_once(truth, limits):
    limits.learn_up_to(ROWS)
    assert_kept(simulate(truth), 0.1, caught=0.18)
