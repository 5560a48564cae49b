"""Segments chosen by rows that are not counted: the guarantee holds where a choice by all rows breaks
it.
"""

import numpy as np
import pytest
from scipy.stats import binomtest

from calibrant import BinningCalibrator
from calibrant.cells.bins import OTHER

LIMIT = 60
ROUNDS = 60
MASS = np.repeat([1.1, 0.9], [200, 199]) / (1.1 * 200 + 0.9 * 199)
RATE = np.repeat([0.0, 1.0], [200, 199])


def is_broken(fitted):
    """Whether the interval of any segment, or of the rest, misses its rate in the population."""
    kept = [name for name in fitted.partition_.segments if name is not OTHER]
    rest = np.setdiff1d(np.arange(MASS.size), kept)
    rates = np.append(RATE[kept], MASS[rest] @ RATE[rest] / MASS[rest].sum())[
        : fitted.partition_.n_regions
    ]
    return bool(((fitted.guarantee_.lower > rates) | (fitted.guarantee_.upper < rates)).any())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
def test_segments_around_the_limit_with_unlike_rates():
    broken = {"drawn rows": 0, "all rows": 0}
    for seed in range(ROUNDS):
        rng = np.random.default_rng(seed)
        segments = rng.choice(MASS.size, size=LIMIT * MASS.size, p=MASS)
        scores = rng.uniform(size=segments.size)
        y = rng.uniform(size=segments.size) < RATE[segments]
        enough = np.flatnonzero(np.bincount(segments, minlength=MASS.size) >= LIMIT).tolist()
        for way, options in (
            ("drawn rows", {"segment_rule": LIMIT}),
            ("all rows", {"segment_rule": enough}),
        ):
            fitted = BinningCalibrator(1, **options).fit(scores, y, segments=segments)
            assert OTHER in fitted.partition_.segments
            assert fitted.partition_.n_regions > 100
            broken[way] += is_broken(fitted)
    assert binomtest(broken["drawn rows"], ROUNDS, 0.1, alternative="greater").pvalue > 0.01
    assert broken["all rows"] > ROUNDS // 2  # so this population does attack the choice


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.errors.WeakGuaranteeWarning")
def test_certified_masses_hold_where_segments_are_chosen():
    broken = 0
    for seed in range(ROUNDS):
        rng = np.random.default_rng(seed)
        segments = rng.choice(MASS.size, size=LIMIT * MASS.size, p=MASS)
        scores = rng.uniform(size=segments.size)
        y = rng.integers(2, size=segments.size)
        fitted = BinningCalibrator(1, segment_rule=LIMIT).fit(scores, y, segments=segments)
        kept = [name for name in fitted.partition_.segments if name is not OTHER]
        mass = np.append(MASS[kept], 1.0 - MASS[kept].sum())
        broken += bool((fitted.guarantee_.mass_limits.regions < mass).any())
    assert (
        binomtest(broken, ROUNDS, 0.005, alternative="greater").pvalue > 0.01
    )  # 5 % of the error budget
