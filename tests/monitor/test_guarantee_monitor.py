"""Is the guarantee still kept? No more false alarms than stated where every rate is at its limit."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

from calibrant import BinningCalibrator, Calibrator, GuaranteeMonitor, PlattCalibrator
from calibrant.errors import CalibrantError, InvalidValueError
from worlds.guarantees import assert_kept


def fitted(kind: type = BinningCalibrator, n_rows: int = 4000, seed: int = 0) -> object:
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n_rows)
    return kind(n_bins=4).fit(scores, rng.uniform(size=n_rows) < scores)


BINS = fitted()
CURVE = fitted(Calibrator)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_false_alarms_with_every_rate_at_its_limit_are_no_more_than_stated(side: str) -> None:
    rng = np.random.default_rng(1)
    alpha = 0.2
    rate = getattr(BINS.guarantee_, side)

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            monitor = GuaranteeMonitor(BINS, confidence_level=1 - alpha)
            for _ in range(60):
                scores = rng.uniform(size=60)
                labels = rng.uniform(size=60) < rate[BINS.partition_.assign(scores)]
                monitor.update(scores, labels)
            yield {"alarm": monitor.alarm}

    assert_kept(simulate(), alpha, caught=0.32)


@pytest.mark.slow
def test_false_alarms_of_a_curve_at_its_limit_are_no_more_than_stated() -> None:
    rng = np.random.default_rng(2)
    alpha = 0.2
    offset = CURVE.guarantee_.errors.upper

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            monitor = GuaranteeMonitor(CURVE, confidence_level=1 - alpha)
            for _ in range(40):
                scores = rng.uniform(0.01, 0.99, size=60)
                rate = CURVE.predict(scores) + offset[CURVE.partition_.assign(scores)]
                monitor.update(scores, rng.uniform(size=60) < np.clip(rate, 0, 1))
            yield {"alarm": monitor.alarm}

    assert_kept(simulate(), alpha, caught=0.32)


@pytest.mark.parametrize("calibrator", [BINS, CURVE], ids=["bins", "curve"])
def test_each_factor_has_mean_one_at_the_limit(calibrator: object) -> None:
    monitor = GuaranteeMonitor(calibrator)
    limits = monitor._errors
    for region in range(monitor.watched.n_regions):
        inside = np.linspace(0.01, 0.99, 500)
        score = float(inside[calibrator.partition_.assign(inside) == region][20])
        predicted = calibrator.predict([score])
        for direction, limit in ((0, limits.upper), (1, limits.lower)):
            rate = float(np.clip(predicted[0] + limit[region], 0, 1))
            regions = np.array([region])
            factors = [
                np.exp(
                    monitor._log_factors(regions, np.array([y]), np.array([y]), predicted)[
                        region, direction
                    ]
                )
                for y in (0, 1)
            ]
            mean = (1 - rate) * factors[0] + rate * factors[1]
            exact = predicted[0] + limit[region]
            if 0 <= exact <= 1:
                assert mean == pytest.approx(np.ones(6), abs=1e-9)
            assert (np.array(factors) > 0).all()


def test_a_change_beyond_the_limits_is_found_and_named() -> None:
    rng = np.random.default_rng(3)
    monitor = GuaranteeMonitor(BINS)
    for day in range(120):
        scores = rng.uniform(size=200)
        rate = np.where((scores < 0.25) & (day >= 20), scores + 0.2, scores)
        monitor.update(
            scores, rng.uniform(size=200) < rate, at=np.full(200, np.datetime64("2026-01-01") + day)
        )
        if monitor.alarm:
            break
    assert 20 < day < 50
    found = monitor.summary()
    assert found.changes[1].region == 0
    assert found.changes[1].difference > 0.1
    assert found.changes[1].lower > 0
    assert "2026-01-14" < found.since.at < "2026-01-27"
    assert "The guarantee does not hold" in found.sentence
    n_rows = BINS.guarantee_.n_rows
    assert f"Recalibrate on about {n_rows:,} rows" in found.next_steps[0].what
    assert "15%" in found.notes[0]


def test_changes_within_the_limits_raise_no_alarm_and_scores_may_move() -> None:
    rng = np.random.default_rng(4)
    monitor = GuaranteeMonitor(BINS)
    for day in range(100):
        scores = rng.beta(1 + day / 25, 2, size=100)
        middle = (BINS.guarantee_.lower + BINS.guarantee_.upper) / 2
        monitor.update(scores, rng.uniform(size=100) < middle[BINS.partition_.assign(scores)])
    assert not monitor.alarm


def test_unknown_labels_count_against_no_one() -> None:
    monitor = GuaranteeMonitor(BINS, maturity=30)
    rng = np.random.default_rng(5)
    for _ in range(50):
        scores = rng.uniform(size=200)
        labels = (rng.uniform(size=200) < scores).astype(float)
        labels[rng.uniform(size=200) < 0.3] = np.nan
        monitor.update(scores, labels)
    assert not monitor.alarm
    hasty = GuaranteeMonitor(BINS)
    for _ in range(50):
        scores = rng.uniform(size=200)
        labels = (rng.uniform(size=200) < scores).astype(float)
        labels[rng.uniform(size=200) < 0.3] = 0.0
        hasty.update(scores, labels)
    assert hasty.alarm


@pytest.mark.parametrize("calibrator", [BINS, CURVE], ids=["bins", "curve"])
def test_state_goes_on_elsewhere_bit_for_bit(calibrator: object) -> None:
    rng = np.random.default_rng(6)
    here = GuaranteeMonitor(calibrator, maturity=3)
    for _ in range(15):
        scores = rng.uniform(size=100)
        here.update(scores, rng.uniform(size=100) < scores**2)
    there = GuaranteeMonitor.from_dict(json.loads(json.dumps(here.to_dict())))
    scores = rng.uniform(size=100)
    labels = rng.uniform(size=100) < scores
    for monitor in (here, there):
        monitor.update(scores, labels)
    assert json.dumps(here.to_dict()) == json.dumps(there.to_dict())
    assert here.verdict == there.verdict
    state = here.to_dict()
    for forged in (
        {**state, "sums": []},
        {**state, "bets": {**state["bets"], "logs": [1e9]}},
        {**state, "largest": 0.0},
    ):
        with pytest.raises(CalibrantError):
            GuaranteeMonitor.from_dict(forged)


def test_a_calibrator_without_a_guarantee_is_refused() -> None:
    rng = np.random.default_rng(7)
    scores = rng.uniform(size=300)
    with pytest.raises(InvalidValueError) as caught:
        GuaranteeMonitor(PlattCalibrator().fit(scores, rng.uniform(size=300) < scores))
    assert (caught.value.parameter, caught.value.got) == ("calibrator", "PlattCalibrator")


@pytest.mark.parametrize("calibrator", [BINS, CURVE])
def test_sums_are_those_of_the_batches_since_the_start_of_each_bet(calibrator: object) -> None:
    rng = np.random.default_rng(5)
    monitor = GuaranteeMonitor(calibrator)
    batches = []
    for number in range(9):
        scores = rng.uniform(size=50)
        y = rng.uniform(size=50) < (scores if number % 3 else scores**3)
        monitor.update(scores, y)
        where = calibrator.partition_.assign(scores)
        said = calibrator.predict(scores)
        sums = [np.bincount(where, values, minlength=4) for values in (np.ones(50), y, said)]
        batches.append(np.column_stack([sums, np.sum(sums, axis=1)]))
    starts = monitor._bets.since.reshape(5, -1)
    assert len(np.unique(starts)) > 3
    expected = [
        [np.sum(batches[start:], axis=0)[:, region] for start in row]
        for region, row in enumerate(starts)
    ]
    found = monitor._sums.reshape(3, 5, -1)
    np.testing.assert_allclose(found, np.moveaxis(expected, 2, 0), rtol=1e-12)
