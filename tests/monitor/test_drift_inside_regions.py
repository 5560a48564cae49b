"""Drift inside regions: a calibrator counts finer cells, which the monitor of rates compares."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from calibrant import BinningCalibrator, Calibrator, DriftMonitor, scored
from calibrant._typing import FloatArray
from calibrant.calibrators.regions.inner_cells import InnerCells
from calibrant.errors import InvalidValueError
from calibrant.limits.region_limits import rows_between
from calibrant.monitor import Monitor
from calibrant.monitor.watched import Watched

Rate = Callable[[FloatArray], FloatArray]


def reversed_inside(scores: FloatArray) -> FloatArray:
    """Within each tenth of the scores, the highest rates are where the lowest were."""
    begin = np.floor(scores * 10) / 10
    return begin + (0.1 - (scores - begin))


def lower_at_the_top(scores: FloatArray) -> FloatArray:
    """The top 2% have 0.6 times their rate."""
    return np.where(scores > 0.98, 0.6 * scores, scores)


def unchanged(scores: FloatArray) -> FloatArray:
    return scores


def day_of_alarm(kind: type, rate: Rate, seed: int, days: int = 60) -> int:
    """The day of the alarm; 0 without one. The rates change on the first day."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=10_000)
    calibrator = kind(n_bins=10).fit(scores, rng.uniform(size=10_000) < scores)
    monitor = DriftMonitor(calibrator, random_state=seed)
    for day in range(1, days + 1):
        scores = rng.uniform(size=200)
        if monitor.update(scores, rng.uniform(size=200) < rate(scores)).alarm:
            return day
    return 0


@pytest.mark.parametrize("kind", [BinningCalibrator, Calibrator])
@pytest.mark.parametrize("rate", [reversed_inside, lower_at_the_top])
def test_drift_inside_regions_is_found(kind: type, rate: Rate) -> None:
    days = [day_of_alarm(kind, rate, seed) for seed in range(4)]
    assert all(days)
    assert np.median(days) <= 30


@pytest.mark.parametrize("kind", [BinningCalibrator, Calibrator])
def test_there_is_no_alarm_without_a_change(kind: type) -> None:
    assert not any(day_of_alarm(kind, unchanged, seed) for seed in range(4))


def fitted(
    kind: type = BinningCalibrator, n_rows: int = 3000, digits: int = 15
) -> BinningCalibrator:
    rng = np.random.default_rng(1)
    scores = np.round(rng.beta(2, 3, size=n_rows), digits)
    found: BinningCalibrator = kind(n_bins=6).fit(scores, rng.uniform(size=n_rows) < scores)
    return found


@pytest.mark.parametrize("kind", [BinningCalibrator, Calibrator])
@pytest.mark.parametrize("digits", [2, 3, 15])
def test_cells_add_up_to_their_regions_and_are_found_again(kind: type, digits: int) -> None:
    calibrator = fitted(kind, digits=digits)
    cells = calibrator.proof_.inner
    between = rows_between(calibrator.partition_, calibrator.tally_)
    assert cells.n_cells > calibrator.partition_.n_regions
    assert cells.by_region(cells.rows).tolist() == between.counts.tolist()
    assert cells.by_region(cells.hits).tolist() == between.positives.tolist()
    watched = Watched.by(calibrator)
    scores = np.random.default_rng(2).uniform(size=1000)
    found = watched.cells_of(watched.prepared(scores))
    regions = watched.partition.membership(watched.prepared(scores))
    counted = found >= 0
    assert (cells.region[found[counted]] == regions[counted]).all()
    assert (scores[counted] >= cells.begin[found[counted]]).all()


def test_cells_are_saved_and_must_add_up() -> None:
    calibrator = fitted()
    state = calibrator.to_dict()
    again = BinningCalibrator.from_dict(state)
    assert again.proof_.inner.to_dict() == calibrator.proof_.inner.to_dict()
    state["state"]["inner"]["rows"][0] += 1
    with pytest.raises(InvalidValueError, match="rows and hits of cells must add up"):
        BinningCalibrator.from_dict(state)


def test_cells_of_rows_in_a_file_are_those_of_rows_in_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    scores = rng.uniform(size=2000)
    labels = (rng.uniform(size=2000) < scores).astype(int)
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"score": scores, "label": labels}), path)
    of_file = BinningCalibrator(5).fit(scored(path, score="score", label="label"))
    of_arrays = BinningCalibrator(5).fit(scores, labels)
    assert of_file.proof_.inner.to_dict() == of_arrays.proof_.inner.to_dict()


def test_days_that_may_differ_and_many_regions_are_not_divided() -> None:
    assert fitted().proof_.inner is not None
    by_day = DriftMonitor(fitted(), unit="day")
    assert by_day.watched.cells.n_cells == by_day.watched.n_regions
    rng = np.random.default_rng(4)
    scores = rng.uniform(size=3000)
    many = BinningCalibrator(n_bins=30).fit(scores, rng.uniform(size=3000) < scores)
    assert many.proof_.inner is None


def test_a_store_counts_cells_and_shows_regions(tmp_path: Path) -> None:
    calibrator = fitted()
    scores = np.random.default_rng(5).uniform(size=300)
    names = [f"row {number}" for number in range(300)]
    with Monitor(tmp_path / "watch.db", calibrator, maturity=0, random_state=0) as monitor:
        monitor.record_many(names, scores, np.zeros(300))
        monitor.resolve_many(names, (scores > 0.5).astype(int), np.zeros(300))
        found = monitor.advance("1970-01-03")
    regions = calibrator.partition_.membership(scores)
    counts = np.bincount(regions[regions >= 0], minlength=6)
    assert found.counts.tolist() == counts.tolist()
    assert len(found.lower) == len(found.regions) == 6


def test_a_region_may_have_one_cell() -> None:
    cells = InnerCells(
        np.array([0, 1, 1]), np.array([-np.inf, -np.inf, 0.7]), np.full(3, 5), np.full(3, 1)
    )
    regions = np.array([0, 1, 1, -1])
    assert cells.cells_of(regions, np.array([0.1, 0.6, 0.7, 0.5])).tolist() == [0, 1, 2, -1]
