"""The promises over all classes at once, on worlds whose truth is known."""

import numpy as np
import pytest
from scipy import stats

from calibrant import ClassWiseCalibrator, TopLabelCalibrator
from multiclass_worlds import SIMULATED

ROWS = 120


def rates_in(region, mass, hits, n_regions):
    total = np.bincount(region, weights=mass, minlength=n_regions)
    positive = np.bincount(region, weights=mass * hits, minlength=n_regions)
    real = total > 0
    return real, positive[real] / total[real]


def holds(promise, region, mass, hits):
    real, rate = rates_in(region[region >= 0], mass[region >= 0], hits[region >= 0], promise.value.size)
    return bool(np.all((rate >= promise.lower[real] - 1e-12) & (rate <= promise.upper[real] + 1e-12)))


def membership(partition, scores, segments=None):
    return partition.membership(partition.prepare(scores, segments))


@pytest.mark.slow
@pytest.mark.parametrize("truth", SIMULATED, ids=lambda truth: truth.name)
@pytest.mark.usefixtures("no_mass_limits")
def test_promises_hold_for_all_classes_at_once(truth, limits):
    limits.learn_up_to(ROWS)
    rng = np.random.default_rng(40 + SIMULATED.index(truth))
    draws, alpha = 600, 0.1  # a promise broken in 18% of draws, in place of 10%, is caught with probability 0.98
    top = truth.scores.argmax(axis=1)
    confidence, right = truth.scores.max(axis=1), truth.rates[np.arange(top.size), top]
    misses = np.zeros(2, int)
    for _ in range(draws):
        scores, y = truth.draw(rng, ROWS)
        top_label = TopLabelCalibrator(n_bins=3, method="binning", classes=(0, 1, 2)).fit(scores, y)
        region = membership(top_label.calibrator_.partition_, confidence, top)
        misses[0] += not holds(top_label.guarantee_, region, truth.mass, right)
        class_wise = ClassWiseCalibrator(n_bins=3, method="binning", classes=(0, 1, 2)).fit(scores, y)
        misses[1] += not all(
            holds(one.guarantee_, membership(one.partition_, truth.scores[:, k]), truth.mass, truth.rates[:, k])
            for k, one in enumerate(class_wise.calibrators_)
        )
    for count in misses:
        assert stats.binomtest(int(count), draws, alpha, alternative="greater").pvalue > 1e-4
