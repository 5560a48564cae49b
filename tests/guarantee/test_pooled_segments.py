"""Segments chosen by rows that are not counted: the guarantee holds where a choice by all rows breaks
it.
"""

import warnings

import numpy as np
import pytest
from scipy.stats import binomtest

from calibrant import BinningCalibrator, Calibrator
from calibrant.cells.bins import OTHER
from calibrant.errors import PooledSegmentsWarning

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


def two_segments(seed):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=600)
    return scores, rng.uniform(size=600) < scores, np.repeat(["a", "b"], 300)


@pytest.mark.parametrize("kind", [BinningCalibrator, Calibrator])
def test_segments_are_not_pooled_in_silence(kind):
    """Two segments of 300 rows: which rows choose is random, and nearly always both are pooled."""
    pooled = 0
    for seed in range(6):
        scores, y, segments = two_segments(seed)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            fitted = kind().fit(scores, y, segments=segments)
        told = [one.message for one in found if one.category is PooledSegmentsWarning]
        names = tuple(name for name in ("a", "b") if name not in fitted.partition_.segments)
        assert [one.segments for one in told] == ([names] if names else [])
        said = f"({len(names)} segment{'s' * (len(names) > 1)} pooled)"
        for again in (fitted, kind.from_dict(fitted.to_dict())):
            assert (said in again.guarantee_.sentence) == bool(names)
            assert len(again.guarantee_.sentence.split()) <= 35
        if told:
            assert "segment_rule=None" in str(told[0])
        pooled += bool(names)
    assert pooled >= 3


def test_pooling_that_was_asked_for_is_said_without_a_warning():
    scores, y, segments = two_segments(0)
    own = BinningCalibrator(segment_rule=["a"]).fit(scores, y, segments=segments)
    assert "(1 segment pooled)" in own.guarantee_.sentence
    many = BinningCalibrator(segment_rule=5_000).fit(scores, y, segments=segments)
    assert "(2 segments pooled)" in many.guarantee_.sentence
    each = BinningCalibrator(segment_rule=None).fit(scores, y, segments=segments)
    assert "pooled" not in each.guarantee_.sentence
