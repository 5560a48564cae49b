"""ICI, E50 and E90: against their definition, and their limits against known truths."""

import numpy as np
import pytest

from calibrant import validation_table
from calibrant.assess.metrics.independent_units import Units
from calibrant.assess.validation.calibration_index import calibration_index, isotonic_rates
from calibrant.assess.validation.result import MEASURED, PROVED_IF_MONOTONE
from worlds.guarantees import assert_rare

ROWS = Units(None, 1.0, True, "")
NAMES = ("ICI", "E50", "E90")
TRUTHS = {
    "calibrated": lambda s: s,
    "squared": lambda s: s**2,
    "a step": lambda s: np.where(s < 0.5, 0.2, 0.7),
    "flat": lambda s: np.full_like(s, 0.3),
}


def truth(scores: np.ndarray, rate: np.ndarray) -> dict[str, float]:
    """The three numbers of the true rates, at these scores."""
    distance = np.abs(scores - rate)
    return {
        "ICI": distance.mean(),
        "E50": np.quantile(distance, 0.5, method="inverted_cdf"),
        "E90": np.quantile(distance, 0.9, method="inverted_cdf"),
    }


def test_values_are_those_of_the_definition() -> None:
    """With rates that isotonic regression finds exactly: 0.25 and 0.75 in large blocks."""
    scores = np.repeat([0.1, 0.6], 400)
    y = np.concatenate([np.arange(400) < 100, np.arange(400) < 300]).astype(int)
    table = validation_table(y, scores, n_draws=19)
    # less what a calibrated score would show: about sqrt(0.15^2 - 0.015^2)
    assert [table[name].value for name in NAMES] == pytest.approx([0.15, 0.15, 0.15], abs=0.003)
    for name in NAMES:
        assert table[name].ideal == 0.0
        assert table[name].basis == PROVED_IF_MONOTONE
        assert 0.0 <= table[name].lower <= 0.15 <= table[name].upper <= 1.0


@pytest.mark.parametrize("name", TRUTHS)
def test_values_are_near_the_truth_also_where_it_is_0(name) -> None:
    """The mean over 40 sets of 500 rows. Uncorrected, ICI is 0.046 for the calibrated score; where
    the score is off, the correction moves it by little.
    """
    rng = np.random.default_rng(4)
    values = []
    plain = []
    for _ in range(40):
        scores = np.sort(rng.uniform(size=500))
        rate = TRUTHS[name](scores)
        codes = (rng.uniform(size=500) < rate).astype(np.int8)
        fitted = isotonic_rates(codes, scores, ROWS)
        indices = calibration_index(codes, scores, fitted, 0.1, ROWS, rng)
        found = {one.name: one for one in indices}
        values.append(found["ICI"].value)
        plain.append(np.abs(scores - fitted).mean())
        for one in found.values():
            assert np.isnan(one.lower) or one.lower <= one.value <= one.upper
    if name == "calibrated":
        assert np.mean(values) < 0.015 < 0.04 < np.mean(plain)
    else:
        assert np.mean(plain) - 0.012 < np.mean(values) < np.mean(plain)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("name", TRUTHS)
def test_limits_cover_the_truth_at_once(name, alpha) -> None:
    """All three at once; the limits are for every rate that does not fall."""
    rng = np.random.default_rng(0)
    draws = 400
    missed = 0
    for _ in range(draws):
        scores = np.sort(rng.uniform(size=400))
        rate = TRUTHS[name](scores)
        codes = (rng.uniform(size=400) < rate).astype(np.int8)
        fitted = isotonic_rates(codes, scores, ROWS)
        found = calibration_index(codes, scores, fitted, alpha, ROWS, rng)
        true = truth(scores, rate)
        inside = [
            np.isnan(one.lower) or one.lower - 1e-12 <= true[one.name] <= one.upper + 1e-12
            for one in found
        ]
        missed += not all(inside)
    assert_rare(missed, draws, alpha)


def test_limits_say_something() -> None:
    """With many rows a miscalibrated score is proved off, and a calibrated one nearly right."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=20_000)
    off = validation_table(rng.uniform(size=20_000) < scores**2, scores, n_draws=19)
    assert off["ICI"].lower > 0.08
    assert off["ICI"].upper < 0.25
    right = validation_table(rng.uniform(size=20_000) < scores, scores, n_draws=19)
    assert right["ICI"].lower == pytest.approx(0.0, abs=1e-3)
    assert right["ICI"].upper < 0.1


def test_the_lower_limit_is_reached_by_a_rate_that_does_not_fall() -> None:
    from calibrant.intervals import MonotoneBand

    rng = np.random.default_rng(1)
    scores = rng.uniform(size=3_000)
    y = (rng.uniform(size=3_000) < scores**3).astype(int)
    # a quarter of alpha is for limits on the mean, ICI, which are narrower here
    band = MonotoneBand(confidence_level=1.0 - 0.75 * 0.05).fit(scores, y)
    lower, upper = band.predict_interval(scores).T
    clipped = np.clip(scores, lower, upper)
    order = np.argsort(scores)
    assert (np.diff(clipped[order]) >= 0.0).all()
    found = validation_table(y, scores, confidence_level=0.95, n_draws=19)
    for name, value in truth(scores, clipped).items():
        assert found[name].lower == pytest.approx(value) or name == "ICI"
    assert truth(scores, clipped)["ICI"] < found["ICI"].lower < truth(scores, scores**3)["ICI"]


@pytest.mark.parametrize("rounded", [False, True])
def test_a_mean_has_narrower_limits_than_a_band_for_every_score_gives(rounded) -> None:
    """A calibrated score of 1,000 rows: the band alone leaves an ICI of up to 0.22."""
    from calibrant.intervals import MonotoneBand

    rng = np.random.default_rng(7)
    scores = rng.uniform(size=1_000)
    if rounded:
        scores = scores.round(1)
    y = rng.uniform(size=1_000) < scores
    limits = MonotoneBand(confidence_level=0.95).fit(scores, y).predict_interval(scores)
    of_band = float(np.abs(limits - scores[:, None]).max(axis=1).mean())
    found = validation_table(y, scores, confidence_level=0.95, n_draws=19)["ICI"]
    assert found.lower == 0.0
    assert found.upper < 0.75 * of_band


def test_without_a_band_there_are_no_limits() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=4_000)
    falling = (rng.uniform(size=4_000) < 1.0 - scores).astype(int)
    grouped = {"groups": np.arange(4_000) // 2, "max_group_size": 2}
    y = (rng.uniform(size=4_000) < scores).astype(int)
    for table in (
        validation_table(falling, scores, n_draws=19),
        validation_table(y, scores, n_draws=19, **grouped),
    ):
        for name in NAMES:
            assert np.isnan(table[name].lower)
            assert table[name].basis == MEASURED
            assert table[name].value >= 0.0


def test_the_table_says_for_which_distributions_limits_hold() -> None:
    rng = np.random.default_rng(0)
    scores = np.sort(rng.uniform(size=500))
    y = rng.uniform(size=500) < scores
    words = "for those whose rate does not fall as the score rises where it is exact if monotone"
    assert words in validation_table(y, scores, n_draws=99).details
    assert words not in validation_table(~y, scores, n_draws=99).details  # refuted: no such limits
