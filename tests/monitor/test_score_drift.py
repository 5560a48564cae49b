"""Have the scores changed, and what to expect while labels are missing?"""

import itertools
import json
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from calibrant import (
    BinningCalibrator,
    Calibrator,
    Partition,
    PlattCalibrator,
    ScoreDriftMonitor,
    expected_performance,
)
from calibrant.errors import CalibrantError, InvalidValueError
from worlds.guarantees import assert_kept, assert_rare


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "tied", "small"])
def test_false_alarms_are_no_more_than_stated(kind: str) -> None:
    rng = np.random.default_rng(0)
    alpha = 0.2

    def draw(size: int) -> np.ndarray:
        scores = rng.normal(size=size)
        return np.round(scores, 1) if kind == "tied" else scores

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            monitor = ScoreDriftMonitor(
                draw(200 if kind == "small" else 1000), confidence_level=1 - alpha
            )
            for _ in range(40):
                monitor.update(draw(120))
            yield {"alarm": monitor.alarm}

    assert_kept(simulate(), alpha, caught=0.32)


def test_counts_of_bins_are_fair_by_enumeration() -> None:
    """The chain of hypergeometric laws: over all arrangements the product of two channels' factors
    has mean 1.
    """
    bins = np.array([0, 0, 1, 1, 2, 2, 2])
    stakes = (0.8, -0.6)
    total = 0.0
    arrangements = list(itertools.combinations(range(7), 3))
    for batch in arrangements:
        counts = np.bincount(bins[list(batch)], minlength=3)
        whole = np.bincount(bins, minlength=3)
        factor = 1.0
        for place, stake in zip((1, 2), stakes, strict=True):
            law = stats.hypergeom(whole[: place + 1].sum(), whole[place], counts[: place + 1].sum())
            low, high = stats.norm.ppf([law.cdf(counts[place] - 1), law.cdf(counts[place])])
            factor *= (stats.norm.cdf(high - stake) - stats.norm.cdf(low - stake)) / law.pmf(
                counts[place]
            )
        total += factor
    assert total / len(arrangements) == pytest.approx(1.0, abs=1e-12)


def test_a_small_shift_is_found_soon_and_its_bins_are_named() -> None:
    rng = np.random.default_rng(1)
    days = []
    for _ in range(9):
        monitor = ScoreDriftMonitor(rng.normal(size=10_000))
        day = 0
        while not monitor.alarm and day < 60:
            monitor.update(rng.normal(loc=0.2, size=200))
            day += 1
        days.append(day)
    assert np.median(days) <= 7
    change = monitor.changes[0]
    assert change.name.startswith("share of ")
    assert change.lower <= change.difference <= change.upper
    assert "The scores have changed" in monitor.verdict
    assert "expected_performance" in monitor.summary().next_steps[0].what


def test_state_goes_on_elsewhere_bit_for_bit() -> None:
    rng = np.random.default_rng(2)
    here = ScoreDriftMonitor(rng.normal(size=2000))
    for _ in range(12):
        here.update(rng.normal(size=130, loc=0.5))
    there = ScoreDriftMonitor.from_dict(json.loads(json.dumps(here.to_dict())))
    more = rng.normal(size=150)
    for monitor in (here, there):
        monitor.update(more)
    assert json.dumps(here.to_dict()) == json.dumps(there.to_dict())
    state = here.to_dict()
    for forged in (
        {**state, "test": {**state["test"], "pool_rows": state["test"]["pool_rows"][:-1]}},
        {**state, "test": {**state["test"], "first_hits": []}},
        {**state, "alarmed": None},
        {**state, "shares": [0.0] * len(state["shares"])},
    ):
        with pytest.raises(CalibrantError):
            ScoreDriftMonitor.from_dict(forged)


def test_a_reference_that_is_too_small_or_constant_is_refused() -> None:
    for reference in (np.arange(50.0), np.ones(1000)):
        with pytest.raises(InvalidValueError) as caught:
            ScoreDriftMonitor(reference)
        assert caught.value.parameter == "reference"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BinningCalibrator, Calibrator])
def test_what_is_expected_holds_under_another_mix(kind: type) -> None:
    rng = np.random.default_rng(3)
    missed = 0
    runs = 20
    for _ in range(runs):
        scores = np.concatenate([rng.uniform(0.05, 0.35, 2000), rng.uniform(0.65, 0.95, 2000)])
        # the mix moves between regions, and not within them
        edges = [0.2, 0.5, 0.8]
        calibrator = kind(partition=Partition.from_edges(edges)).fit(
            scores, rng.uniform(size=4000) < scores
        )
        new = np.concatenate([rng.uniform(0.05, 0.35, 500), rng.uniform(0.65, 0.95, 2500)])
        found = expected_performance(calibrator, new)
        values = calibrator.predict(new)
        rate = new.mean()
        brier = (values**2 + new * (1 - 2 * values)).mean()
        precision = [new[new >= edge].mean() for edge in edges]
        slack = 0.01  # the new scores are a sample of their own
        held = found.rate_lower - slack <= rate <= found.rate_upper + slack
        held &= found.brier_lower - slack <= brier <= found.brier_upper + slack
        lower = found.precision_lower - slack
        upper = found.precision_upper + slack
        held &= bool(((lower <= precision) & (precision <= upper)).all())
        missed += not held
        assert found.rate_upper - found.rate_lower < 0.2
    assert_rare(missed, runs, 0.1)


def test_the_largest_brier_score_is_found_inside_the_limits_of_a_region_around_one_half() -> None:
    """By brute force over all rates of the rows: neither end of the limits gives the largest value."""
    from calibrant.limits.interval import Interval
    from calibrant.monitor.expected import _brier

    values = np.array([0.2, 0.4, 0.6, 0.9])
    regions = np.zeros(4, dtype=int)
    low, high = _brier(values, regions, Interval(np.array([0.0]), np.array([4.0])))
    every = [
        np.mean(values**2 + np.array(labels) * (1 - 2 * values))
        for labels in itertools.product((0, 1), repeat=4)
    ]
    assert (low, high) == pytest.approx((min(every), max(every)))
    at_ends = [np.mean(values**2), np.mean((1 - values) ** 2)]
    assert max(at_ends) < high


def test_a_threshold_inside_a_region_has_wider_limits() -> None:
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=4000)
    calibrator = BinningCalibrator(n_bins=5).fit(scores, rng.uniform(size=4000) < scores)
    edge = float(calibrator.partition_.edges[2])
    found = expected_performance(calibrator, scores, thresholds=[edge, edge + 0.1])
    width = found.precision_upper - found.precision_lower
    assert width[0] < width[1]
    assert found.to_frame().shape == (2, 4)
    with pytest.raises(InvalidValueError):
        expected_performance(PlattCalibrator().fit(scores, rng.uniform(size=4000) < scores), scores)
