"""What an alarm tells whoever is called at night: where, since when, how large, and what to do."""

from pathlib import Path

import numpy as np
import pytest

from calibrant import BinningCalibrator, DriftMonitor, Partition, PlattCalibrator
from calibrant.errors import InvalidValueError
from calibrant.monitor import Monitor, MonitorSnapshot

BINS = Partition.fixed_width(4)
RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=4000)
CALIBRATOR = BinningCalibrator(partition=BINS).fit(SCORES, RNG.uniform(size=4000) < SCORES)


def watched(store: Path, *, falls: bool = False, stops: bool = False) -> MonitorSnapshot:
    """30 days; from day 15 on the rate of the highest scores falls, or labels stop coming in."""
    rng = np.random.default_rng(1)
    with Monitor(store, CALIBRATOR, maturity=1, random_state=0) as monitor:
        for day in range(20_000, 20_030):
            later = day >= 20_015
            scores = rng.uniform(size=300)
            rates = np.where(scores > 0.75, 0.6, scores) if falls and later else scores
            ids = [f"{day} {number}" for number in range(300)]
            monitor.record_many(ids, scores, np.full(300, float(day)))
            known = 30 if stops and later else 300
            labels = (rng.uniform(size=300) < rates)[:known]
            monitor.resolve_many(ids[:known], labels, np.full(known, day + 0.5))
        return monitor.advance(20_040.0)


@pytest.mark.slow
def test_an_alarm_of_a_store_names_regions_time_size_and_what_to_do(tmp_path: Path) -> None:
    found = watched(tmp_path / "falls.db", falls=True)
    assert found.alarm
    (changes,) = [table for table in found.tables() if table.name == "changes"]
    top = BINS.describe()[3]
    rows = dict(zip(changes.columns["region"], changes.columns["rate_since"], strict=True))
    assert rows[top] == pytest.approx(0.6, abs=0.06)
    assert found.sentence.startswith("The rates have changed since about 2024-10-1")
    assert found.verdict == "problem"
    assert "Recalibrate on about 4,000 rows" in found.details
    since = changes.columns["n_rows"][0]
    assert f"{since:,} rows have been counted since then" in found.details
    assert "No sign that the scores have changed" in found.details
    assert "missing" not in found.sentence
    (tests,) = [table for table in found.tables() if table.name == "tests"]
    assert tests.columns["alarmed"][0].startswith("2024-10-")
    assert found.to_dict()["changes"][0]["test"] == "rates"


@pytest.mark.slow
def test_an_alarm_says_that_labels_have_stopped_coming_in(tmp_path: Path) -> None:
    found = watched(tmp_path / "stops.db", stops=True)
    assert found.alarm
    assert "Labels are missing for 9" in found.sentence
    assert "Check that labels still come in" in found.next_steps[0].what


@pytest.mark.slow
def test_without_an_alarm_there_is_no_table_of_changes_to_read(tmp_path: Path) -> None:
    found = watched(tmp_path / "calm.db")
    assert not found.alarm
    assert found.to_dict()["changes"] == []
    assert "rows have been counted since then" not in str(found)


def test_advice_after_an_alarm_of_a_calibrator_that_counted_no_rows() -> None:
    rng = np.random.default_rng(2)
    platt = PlattCalibrator().fit(SCORES, RNG.uniform(size=4000) < SCORES)
    monitor = DriftMonitor(platt, reference=1000, random_state=0)
    for step in range(12):
        scores = rng.uniform(size=500)
        monitor.update(scores, rng.uniform(size=500) < scores ** (1 + 2 * (step > 4)))
    advice = monitor.summary().advice
    assert advice.startswith("Recalibrate on rows from after the change; calibrant.plan")
    assert "rows have been counted since then" in advice


def test_states_of_other_releases_say_what_to_do() -> None:
    state = DriftMonitor(CALIBRATOR).to_dict()
    with pytest.raises(InvalidValueError) as caught:
        DriftMonitor.from_dict({**state, "schema": "calibrant.drift/99"})
    assert caught.value.parameter == "schema of the state"
    assert caught.value.got == repr("calibrant.drift/99")
    assert "start again" in caught.value.advice
    with pytest.raises(InvalidValueError) as caught:
        DriftMonitor.from_dict({**state, "schema": "calibrant.score-drift/1"})
    assert caught.value.advice is None


def test_days_that_were_counted_elsewhere_are_ranked_by_weekday_too() -> None:
    by_rows = DriftMonitor(CALIBRATOR, unit="day", weekdays=True, reference=14, random_state=0)
    by_counts = DriftMonitor(CALIBRATOR, unit="day", weekdays=True, reference=14, random_state=0)
    rng = np.random.default_rng(3)
    for day in range(28):
        date = np.datetime64("2026-02-02") + day
        scores = rng.uniform(0.01, 0.99, size=100)
        labels = (rng.uniform(size=100) < scores).astype(int)
        by_rows.update(scores, labels, at=np.full(100, date))
        regions = BINS.assign(scores)
        rows = np.bincount(regions, minlength=4)
        hits = np.bincount(regions[labels == 1], minlength=4)
        by_counts.update_counts(rows, hits, at=str(date))
    assert by_counts.to_dict() == by_rows.to_dict()
    with pytest.raises(InvalidValueError) as caught:
        by_counts.update_counts(rows, hits, at="the last day")
    assert caught.value.parameter == "at"
