"""Have the rates changed? No more false alarms than stated, and changes that are found, named and
dated.
"""

import copy
import itertools
import json
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

from calibrant import (
    BinningCalibrator,
    Calibrator,
    DriftMonitor,
    OnlineCalibrator,
    Partition,
    PlattCalibrator,
)
from calibrant.calibrators import ScalingBinningCalibrator
from calibrant.errors import CalibrantError, InvalidTypeError, InvalidValueError
from calibrant.monitor.ranked_units import unit_scores
from calibrant.monitor.watched import Watched
from worlds.guarantees import assert_kept

ONE = Partition.fixed_width(1)


def calibrated(rng: np.random.Generator, n_rows: int = 2000, n_bins: int = 5) -> BinningCalibrator:
    scores = rng.uniform(size=n_rows)
    return BinningCalibrator(n_bins=n_bins).fit(scores, rng.uniform(size=n_rows) < scores)


def watch(
    monitor: DriftMonitor, rng: np.random.Generator, days: int, shift: float = 0.0, rows: int = 200
) -> int:
    """The day of the alarm; 0 without one."""
    for day in range(1, days + 1):
        scores = rng.uniform(size=rows)
        rate = expit(logit(scores) + shift)
        if monitor.update(scores, rng.uniform(size=rows) < rate).alarm:
            return day
    return 0


@pytest.mark.parametrize(
    "kind", [BinningCalibrator, Calibrator, OnlineCalibrator, ScalingBinningCalibrator]
)
def test_a_shift_is_found_with_every_calibrator_that_counts(kind: type) -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=8000)
    labels = rng.uniform(size=8000) < scores
    calibrator = kind().fit(scores, labels)
    assert Watched.by(calibrator).has_counts
    assert not watch(DriftMonitor(calibrator, random_state=1), rng, 20)
    assert 0 < watch(DriftMonitor(calibrator, random_state=1), rng, 60, shift=0.4) < 20


def test_the_pool_is_what_calibration_counted_between_edges() -> None:
    rng = np.random.default_rng(1)
    scores = np.where(rng.uniform(size=3000) < 0.02, 0.5, rng.uniform(size=3000))
    calibrator = BinningCalibrator(n_bins=7, random_state=3).fit(
        scores, rng.uniform(size=3000) < scores
    )
    watched = Watched.by(calibrator)
    cells = watched.cells_of(watched.prepared(scores))
    counts = np.bincount(cells[cells >= 0], minlength=watched.cells.n_cells)
    rows = watched.cells.rows
    assert (rows <= counts).all()
    if calibrator.tally_.absorbed is not None:
        assert (
            rows.sum() == calibrator.tally_.counts.sum() - calibrator.tally_.absorbed.counts.sum()
        )
        assert (cells == -1).sum() > 10


def test_rows_at_a_tied_edge_are_left_out_of_pool_and_stream() -> None:
    from calibrant.cells.score_partition import ScorePartition
    from calibrant.cells.tally import Tally

    bins = ScorePartition(
        np.array([0.5]),
        first_rank=np.array([41]),
        last_rank=np.array([45]),
        n_rows=100,
        absorbing=1,
    )
    assert bins.has_absorbed
    scores = np.concatenate([np.linspace(0.1, 0.4, 40), np.full(5, 0.5), np.linspace(0.6, 0.9, 55)])
    tally = Tally.of_codes(bins, scores, np.ones(100, dtype=np.uint8))
    calibrator = BinningCalibrator.from_tally(bins, tally)
    watched = Watched.by(calibrator)
    assert watched.cells.rows.tolist() == [40, 55]
    assert watched.cells_of(watched.prepared([0.2, 0.5, 0.7])).tolist() == [0, -1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("world", ["plain", "few calibration rows", "rare", "moving mix"])
def test_false_alarms_are_no_more_than_stated(world: str) -> None:
    rng = np.random.default_rng(2)
    alpha = 0.2
    n_bins = 5
    rates = (
        np.linspace(0.1, 0.9, n_bins)
        if world != "rare"
        else np.array([0.001, 0.002, 0.01, 0.5, 0.999])
    )
    bins = Partition.fixed_width(n_bins)
    n_rows = 100 if world == "few calibration rows" else 1000

    def simulate() -> Iterator[dict[str, bool]]:
        while True:
            shares = np.full(n_bins, 1 / n_bins)
            rows = rng.multinomial(n_rows, shares)
            hits = rng.binomial(rows, rates)
            monitor = DriftMonitor(
                _counted(bins, rows, hits), confidence_level=1 - alpha, batch_rows=1
            )
            for day in range(60):
                if world == "moving mix":
                    shares = np.roll(np.array([0.6, 0.2, 0.1, 0.06, 0.04]), day // 12)
                batch = rng.multinomial(rng.integers(1, 60), shares)
                monitor.update_counts(batch, rng.binomial(batch, rates))
            yield {"alarm": monitor.alarm}

    assert_kept(simulate(), alpha, caught=0.32)


def _counted(bins: Partition, rows: np.ndarray, hits: np.ndarray) -> BinningCalibrator:
    from calibrant import Tally

    return BinningCalibrator.from_tally(bins, Tally.from_counts(rows, hits, partition=bins))


@pytest.mark.slow
def test_the_delay_of_a_shift_is_as_stated() -> None:
    rng = np.random.default_rng(3)
    days = []
    for _ in range(15):
        calibrator = calibrated(rng, 10_000, 10)
        days.append(watch(DriftMonitor(calibrator, random_state=rng), rng, 60, shift=0.2) or 99)
    assert np.median(days) <= 16


def test_the_story_of_an_alarm_names_regions_the_time_and_the_size() -> None:
    rng = np.random.default_rng(4)
    bins = Partition.fixed_width(5)
    scores = rng.uniform(size=10_000)
    calibrator = BinningCalibrator(partition=bins).fit(scores, rng.uniform(size=10_000) < scores)
    monitor = DriftMonitor(calibrator, random_state=0)
    for day in range(80):
        scores = rng.uniform(size=200)
        rate = np.where((scores > 0.8) & (day >= 32), 0.6, scores)
        monitor.update(
            scores, rng.uniform(size=200) < rate, at=np.full(200, np.datetime64("2026-01-01") + day)
        )
    assert monitor.alarm
    overall, region = monitor.changes[:2]
    assert overall.region is None
    assert region.region == 4
    assert region.rate_before == pytest.approx(0.9, abs=0.02)
    assert region.rate_since == pytest.approx(0.6, abs=0.05)
    assert region.lower < -0.3 < region.upper < 0
    found = monitor.summary()
    assert found.since.at == "2026-02-01"
    assert "since about 2026-02-01" in found.sentence
    assert "Recalibrate on about 10,000 rows" in found.next_steps[0].what
    assert "Recalibrate on about 10,000 rows" in str(found)
    assert found.to_dict()["changes"][1]["region"] == "[0.8, 1]"
    assert found.to_dict()["alarmed"]["at"] > "2026-02-01"


@pytest.mark.slow
def test_limits_of_a_change_hold_at_once_at_any_start() -> None:
    rng = np.random.default_rng(5)
    bins = Partition.fixed_width(3)
    before = np.array([0.2, 0.5, 0.8])
    after = np.array([0.2, 0.7, 0.6])
    missed = 0
    for _ in range(60):
        rows = rng.multinomial(3000, np.full(3, 1 / 3))
        monitor = DriftMonitor(
            _counted(bins, rows, rng.binomial(rows, before)), batch_rows=1, confidence_level=0.9
        )
        for _ in range(30):
            batch = rng.multinomial(100, np.full(3, 1 / 3))
            monitor.update_counts(batch, rng.binomial(batch, after))
        changes = monitor._test.changes(0, 0.1)
        truth = after - before
        missed += any(
            not c.lower <= truth[c.region] <= c.upper for c in changes if c.region is not None
        )
    assert stats.binomtest(missed, 60, 0.1, alternative="greater").pvalue > 1e-3


def test_small_updates_wait_for_a_batch_and_sizes_alone_close_it() -> None:
    rng = np.random.default_rng(6)
    calibrator = calibrated(rng)
    monitor = DriftMonitor(calibrator)
    for _ in range(199):
        monitor.update([0.3], [rng.integers(2)])
    assert monitor.n_rows == 0
    assert "199 rows are waiting for a batch of 200" in monitor.summary().notes[-1]
    monitor.update([0.3], [1])
    assert monitor.n_rows == 200


def test_without_counts_the_first_rows_are_the_reference_and_it_says_so() -> None:
    rng = np.random.default_rng(7)
    scores = rng.uniform(size=500)
    platt = PlattCalibrator().fit(scores, rng.uniform(size=500) < scores)
    for watched in (platt, Partition.fixed_width(4)):
        monitor = DriftMonitor(watched, reference=1000, random_state=0)
        assert monitor.in_reference
        assert "will be the reference" in monitor.summary().notes[0]
        assert not watch(monitor, rng, 10)
        assert not monitor.in_reference
        assert monitor._test.mixture.n_batches == 5
        assert watch(monitor, rng, 60, shift=0.8) > 0
        assert "were the reference" in monitor.summary().notes[0]


def test_a_batch_is_cut_where_it_completes_the_reference() -> None:
    rng = np.random.default_rng(8)
    scores = rng.uniform(size=9_000)
    y = rng.uniform(size=9_000) < np.where(np.arange(9_000) < 3_000, scores, scores**2)
    whole = DriftMonitor(Partition.fixed_width(4), reference=2_000, random_state=0)
    at = np.arange(9_000)
    shuffled = rng.permutation(9_000)
    whole.update(scores[shuffled], y[shuffled], at=at[shuffled])
    parts = DriftMonitor(Partition.fixed_width(4), reference=2_000, random_state=0)
    parts.update(scores[:2_000], y[:2_000], at=at[:2_000])
    assert not parts.in_reference
    parts.update(scores[2_000:], y[2_000:], at=at[2_000:])
    assert whole.alarm
    assert whole.to_dict() == parts.to_dict()
    assert whole.summary().notes[0].startswith("The first 2,000 rows of the stream were")


@pytest.mark.parametrize("at", [None, "one day"])
def test_a_batch_that_completes_the_reference_may_be_sorted_by_label(at: str | None) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = rng.uniform(size=4_000)
        y = rng.uniform(size=4_000) < scores
        order = np.argsort(y, kind="stable")
        monitor = DriftMonitor(Partition.fixed_width(4), reference=2_000, random_state=seed)
        times = None if at is None else np.full(4_000, "2024-05-01")
        monitor.update(scores[order], y[order], at=times)
        assert not monitor.in_reference
        assert not monitor.alarm  # cut by position: 20 of 20


def test_counts_of_a_large_batch_are_all_the_reference_and_it_says_so() -> None:
    monitor = DriftMonitor(Partition.fixed_width(2), reference=100, random_state=0)
    monitor.update_counts([400, 500], [40, 400])
    assert not monitor.in_reference
    monitor.update_counts([40, 50], [4, 40])
    assert monitor.summary().notes[0].startswith("The first 900 rows of the stream were")


def test_few_rows_that_complete_the_reference_do_not_wait() -> None:
    monitor = DriftMonitor(Partition.fixed_width(2), reference=100, batch_rows=80, random_state=0)
    monitor.update(np.linspace(0.1, 0.9, 90), np.arange(90) % 2)
    monitor.update(np.linspace(0.1, 0.9, 40), np.arange(40) % 2)
    assert (monitor.in_reference, monitor.n_rows) == (False, 100)


def test_groups_and_weights_are_refused() -> None:
    rng = np.random.default_rng(8)
    scores = rng.uniform(size=600)
    labels = rng.uniform(size=600) < scores
    grouped = BinningCalibrator(n_bins=3).fit(scores, labels, groups=np.arange(600) // 3)
    with pytest.raises(InvalidValueError) as caught:
        DriftMonitor(grouped)
    assert (caught.value.parameter, caught.value.got) == ("calibrator", "groups")
    weighted = BinningCalibrator(n_bins=3).fit(
        scores, labels, importance_weight=np.ones(600), weight_bound=2.0
    )
    with pytest.raises(InvalidValueError) as caught:
        DriftMonitor(weighted)
    assert caught.value.got == "importance weights"
    DriftMonitor(grouped.partition_, unit="day")


def day_rows(
    rng: np.random.Generator, day: int, effect: float, shift: float = 0.0
) -> tuple[np.ndarray, ...]:
    scores = rng.uniform(0.05, 0.95, size=100)
    rate = expit(logit(scores) + shift + effect * rng.normal())
    return scores, rng.uniform(size=100) < rate, np.full(100, np.datetime64("2026-01-01") + day)


@pytest.mark.slow
def test_days_that_share_something_break_rows_and_not_days() -> None:
    rng = np.random.default_rng(9)
    alpha = 0.2
    calibrator = calibrated(rng, 5000)
    false = {"row": 0, "day": 0}
    runs = 24
    for _ in range(runs):
        monitors = {
            unit: DriftMonitor(calibrator, unit=unit, confidence_level=1 - alpha) for unit in false
        }
        for day in range(60):
            scores, labels, at = day_rows(rng, day, effect=0.5)
            for monitor in monitors.values():
                monitor.update(scores, labels, at=at)
        for unit, monitor in monitors.items():
            false[unit] += monitor.alarm
    assert false["row"] > 2 * alpha * runs
    assert stats.binomtest(false["day"], runs, alpha, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize("unit", ["day", "week"])
def test_a_shift_of_units_is_found(unit: str) -> None:
    rng = np.random.default_rng(10)
    calibrator = calibrated(rng, 5000)
    monitor = DriftMonitor(calibrator, unit=unit, reference=20, random_state=0)
    factor = 7 if unit == "week" else 1
    for day in range(100):
        scores, labels, at = day_rows(
            rng, day * factor, effect=0.1, shift=0.8 if day >= 40 else 0.0
        )
        monitor.update(scores, labels, at=at)
    assert monitor.alarm
    assert monitor.changes[0].difference > 0.05
    assert monitor.changes[0].lower is None
    assert f"{unit}s are exchangeable" in monitor.verdict


def test_weekdays_that_differ_are_ranked_among_themselves() -> None:
    rng = np.random.default_rng(11)
    calibrator = calibrated(rng, 5000)
    monitor = DriftMonitor(calibrator, unit="day", weekdays=True, reference=28, random_state=0)
    for day in range(140):
        scores, labels, at = day_rows(rng, day, effect=0.05, shift=1.0 if day % 7 == 3 else 0.0)
        monitor.update(scores, labels, at=at)
    assert not monitor.alarm
    assert np.bincount(monitor._test.kinds).tolist() == [20] * 7
    assert monitor.summary().assumptions[0].startswith("days of one weekday are exchangeable")


def test_ranks_are_uniform_and_independent_by_enumeration() -> None:
    """Over all orders of four days of unlike volume, the ranks of the third and the fourth take
    each pair of values equally often.
    """
    days = [([30, 10], [3, 9]), ([500, 100], [100, 60]), ([10, 80], [9, 4]), ([20, 20], [4, 10])]
    seen: dict[tuple[int, ...], int] = {}
    for order in itertools.permutations(days):
        rows, hits = map(np.array, zip(*order, strict=True))
        ranks = []
        for n_days in (3, 4):
            scores = unit_scores(rows[:n_days], hits[:n_days], np.full(n_days, 0.5))
            ranks.append(int(np.sum(scores < scores[-1])))
        seen[tuple(ranks)] = seen.get(tuple(ranks), 0) + 1
    assert set(seen.values()) == {2}
    assert len(seen) == 12


def test_a_day_that_comes_twice_or_late_is_refused_and_nothing_changes() -> None:
    rng = np.random.default_rng(12)
    monitor = DriftMonitor(calibrated(rng), unit="day")
    monitor.update([0.2, 0.4], [0, 1], at=["2026-01-02", "2026-01-03"])
    before = monitor.to_dict()
    for at in (["2026-01-03", "2026-01-04"], ["2026-01-01", "2026-01-05"]):
        with pytest.raises(InvalidValueError) as caught:
            monitor.update([0.2, 0.4], [0, 1], at=at)
        assert caught.value.parameter == "at"
    with pytest.raises(InvalidTypeError):
        monitor.update([0.2], [1])
    assert monitor.to_dict() == before


@pytest.mark.parametrize("unit", ["row", "day"])
def test_state_goes_on_elsewhere_bit_for_bit(unit: str) -> None:
    rng = np.random.default_rng(13)
    here = DriftMonitor(calibrated(rng), unit=unit, batch_rows=20, reference=5)
    for day in range(25):
        scores, labels, at = day_rows(rng, day, 0.1, shift=1.5 if day > 10 else 0.0)
        here.update(scores, labels, at=at)
    there = DriftMonitor.from_dict(json.loads(json.dumps(here.to_dict())))
    for day in range(25, 40):
        scores, labels, at = day_rows(rng, day, 0.1)
        here.update(scores, labels, at=at)
        there.update(scores, labels, at=at)
    assert json.dumps(here.to_dict()) == json.dumps(there.to_dict())
    assert here.verdict == there.verdict
    assert here.seed == there.seed


def test_seeds_are_drawn_afresh_and_kept() -> None:
    rng = np.random.default_rng(14)
    calibrator = calibrated(rng)
    assert DriftMonitor(calibrator).seed != DriftMonitor(calibrator).seed
    assert DriftMonitor(calibrator, random_state=7).seed == 7


def test_labels_of_any_two_kinds_are_watched() -> None:
    rng = np.random.default_rng(15)
    labels = rng.integers(0, 2, 400)
    words = DriftMonitor(
        ONE, classes=("paid", "default"), pos_label="default", reference=100, random_state=0
    )
    words.update(np.full(400, 0.5), np.where(labels == 1, "default", "paid"))
    numbers = DriftMonitor(ONE, reference=100, random_state=0).update(np.full(400, 0.5), labels)
    assert words.to_dict()["test"] == numbers.to_dict()["test"]
    signs = DriftMonitor(ONE, reference=100, random_state=0).update(
        np.full(400, 0.5), 2 * labels - 1
    )
    assert signs.to_dict()["test"] == numbers.to_dict()["test"]


def test_late_labels_counted_as_they_come_alarm_falsely_and_at_maturity_do_not() -> None:
    rng = np.random.default_rng(16)
    calibrator = calibrated(rng, 5000)
    hasty = DriftMonitor(calibrator, random_state=0)
    patient = DriftMonitor(calibrator, maturity=30, random_state=0)
    rows = []
    for day in range(120):
        scores = rng.uniform(size=100)
        labels = (rng.uniform(size=100) < scores).astype(float)
        known_on = day + np.where(labels == 1, 0, 25)
        rows.append((scores, labels, known_on))
        for old_scores, old_labels, old_known in rows:
            new = old_known == day
            if new.any():
                hasty.update(old_scores[new], old_labels[new])
        if day >= 30:
            old_scores, old_labels, old_known = rows[day - 30]
            in_time = np.where(old_known <= day, old_labels, np.nan)
            patient.update(old_scores, in_time, at=np.full(100, day - 30.0))
    assert hasty.alarm
    assert not patient.alarm
    assert "labels count as known at the age of maturity" in patient.summary().assumptions
    assert "known at the age of maturity" in patient.summary().details


def test_labels_that_are_not_known_at_maturity_count_as_negative() -> None:
    calibrator = calibrated(np.random.default_rng(17))
    monitor = DriftMonitor(calibrator, maturity=10, batch_rows=1)
    monitor.update([0.1, 0.1, 0.1], [1, np.nan, None], at=[0.0, 0.0, 0.0])
    added = np.array(monitor._test.pool_hits) - Watched.by(calibrator).cells.hits
    assert added.sum() == 1
    assert monitor.n_rows == 3
    with pytest.raises(InvalidValueError):
        DriftMonitor(calibrator).update([0.1], [np.nan])


def test_eight_threads_lose_no_row() -> None:
    monitor = DriftMonitor(calibrated(np.random.default_rng(18)), batch_rows=1)

    def work(thread: int) -> None:
        rng = np.random.default_rng(thread)
        for _ in range(20):
            scores = rng.uniform(size=30)
            monitor.update(scores, rng.uniform(size=30) < scores)
            assert monitor.verdict

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert monitor.n_rows == 8 * 20 * 30
    for again in (pickle.loads(pickle.dumps(monitor)), copy.deepcopy(monitor)):
        assert again.to_dict() == monitor.to_dict()


def test_an_alarm_stays_raised() -> None:
    monitor = DriftMonitor(_counted(ONE, np.array([1000]), np.array([500])), batch_rows=1)
    for _ in range(10):
        monitor.update_counts([100], [90])
    assert monitor.alarm
    when = monitor.summary().alarmed
    for _ in range(200):
        monitor.update_counts([100], [50])
    assert monitor.alarm
    assert monitor.summary().alarmed == when


def state_of(**options: object) -> dict:
    rng = np.random.default_rng(19)
    monitor = DriftMonitor(calibrated(rng), batch_rows=50, random_state=0, **options)
    for day in range(12):
        scores, labels, at = day_rows(rng, day, 0.0, shift=1.0)
        monitor.update(scores, labels, at=at)
    return monitor.to_dict()


STATE = state_of()
TEST = STATE["test"]
MIXTURE = TEST["mixture"]


def forged(**changes: object) -> dict:
    return {**STATE, "test": {**TEST, **changes}}


FORGED = {
    "schema": {**STATE, "schema": "calibrant.drift/99"},
    "not a dict": [STATE],
    "no seed": {key: value for key, value in STATE.items() if key != "seed"},
    "negative seed": {**STATE, "seed": -1},
    "level": {**STATE, "confidence_level": 1.0},
    "unit": {**STATE, "unit": "month"},
    "alarm without evidence": {**STATE, "largest": 0.0},
    "no alarm with evidence": {**STATE, "alarmed": None},
    "evidence NaN": {**STATE, "largest": float("nan")},
    "starts missing": {**STATE, "starts": []},
    "hits above rows": forged(pool_hits=[10**6] * 5),
    "rows of calibration gone": forged(pool_rows=[0] * 5, pool_hits=[0] * 5),
    "negative rows": forged(waiting_rows=[-1] * 5),
    "fractions of rows": forged(waiting_rows=[0.5] * 5),
    "other regions": forged(pool_rows=TEST["pool_rows"][:-1]),
    "starts of bets missing": forged(mixture={**MIXTURE, "first": MIXTURE["first"][:-1]}),
    "bets NaN": forged(mixture={**MIXTURE, "moved": [[float("nan")] * 5] * len(MIXTURE["moved"])}),
    "negative spending": forged(mixture={**MIXTURE, "spent": [[-1.0] * 5] * len(MIXTURE["spent"])}),
    "first hits of other starts": forged(first_hits=[]),
    "old schema": {"schema": "calibrant.drift/1"},
}


@pytest.mark.parametrize("state", FORGED.values(), ids=FORGED)
def test_forged_states_raise(state: object) -> None:
    assert DriftMonitor.from_dict(STATE).to_dict() == STATE
    with pytest.raises(CalibrantError):
        DriftMonitor.from_dict(state)


def test_bad_settings_are_refused() -> None:
    for options in (
        {"confidence_level": 1.0},
        {"unit": "month"},
        {"maturity": -1},
        {"reference": 0},
        {"weekdays": True},
    ):
        with pytest.raises(InvalidValueError) as caught:
            DriftMonitor(ONE, **options)
        assert caught.value.parameter == next(iter(options))
    with pytest.raises(InvalidTypeError):
        DriftMonitor("bins")
