"""A store of predictions and labels: each counts once, whatever comes twice, late, early or never."""

import gc
import itertools
import json
import multiprocessing
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from calibrant import BinningCalibrator, Partition, PlattCalibrator, save_model
from calibrant.errors import InvalidTypeError, InvalidValueError, StoreError
from calibrant.monitor import DriftMonitor, Monitor
from calibrant.text import numbers

DAY = 86_400.0
BINS = Partition.fixed_width(4)


def fitted(n_rows: int = 2000, seed: int = 0) -> BinningCalibrator:
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n_rows)
    return BinningCalibrator(partition=BINS).fit(scores, rng.uniform(size=n_rows) < scores)


CALIBRATOR = fitted()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "watch.db"


def opened(store: Path, **options: object) -> Monitor:
    return Monitor(store, CALIBRATOR, **{"maturity": 7, "random_state": 0, **options})


def test_scores_far_outside_those_of_calibration_are_counted_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=2_000)
    calibrator = BinningCalibrator(4).fit(scores, rng.uniform(size=2_000) < scores)
    with Monitor(tmp_path / "watch.db", calibrator, maturity=7) as monitor:
        monitor.record_many(["a", "b"], [-0.4, 1.4], [100.0, 100.0])
        found = monitor.snapshot()
        assert found.n_unfamiliar == 0
        assert not any("scale" in note for note in found.notes)
        for _ in range(2):
            monitor.record_many(["c", "d"], [45.0, 0.5], [100.0, 100.0])
    with Monitor(tmp_path / "watch.db", calibrator, maturity=7) as monitor:
        found = monitor.snapshot()
    assert found.n_unfamiliar == 1
    [said] = [note for note in found.notes if "scale" in note]
    assert said.startswith("1 prediction has a score far outside the range in calibration")
    assert "and counts in the outermost regions" in said


def test_a_calm_snapshot_says_what_its_bound_rests_on(store: Path) -> None:
    with opened(store, maturity=0) as monitor:
        assert "From these rows alone" not in monitor.snapshot().details
        monitor.record("a", 0.2, at=100.0)
        monitor.resolve("a", 0, at=100.0)
        found = monitor.advance(102.0)
    bound = numbers.points(numbers.upper(found.epsilon))
    assert f"From these rows alone, calibrated values are now within {bound}" in found.details
    assert (
        "With 95% confidence, this holds at every moment with that moment's bound" in found.details
    )
    assert "if rates do not change" in found.details
    assert found.epsilon > CALIBRATOR.guarantee_.epsilon


def test_without_maturity_labels_of_the_same_day_are_in_time(store: Path) -> None:
    with opened(store, maturity=0) as monitor:
        for name in ("same moment", "same day", "next day", "before"):
            if name == "before":
                assert monitor.resolve(name, 1, at=100.3) == "waiting"
            monitor.record(name, 0.2, at=100.5)
        assert monitor.resolve("same moment", 1, at=100.5) == "new"
        assert monitor.resolve("same day", 1, at=100.9) == "new"
        assert monitor.resolve("next day", 1, at=101.1) == "expired"
        found = monitor.advance(102.0)
    assert (found.n_mature, found.n_labels, found.n_expired) == (4, 3, 1)


def test_a_snapshot_without_counted_rows_does_not_say_that_all_is_well(store: Path) -> None:
    with opened(store, maturity=1) as monitor:
        monitor.record("a", 0.2, at=100.0)
        found = monitor.snapshot()
        assert found.sentence.startswith("Nothing is known about drift yet: 0 predictions counted")
        assert "when its day (in UTC) is over and it is 1 day old" in found.details
        assert found.sentence.startswith("Nothing is known about drift yet")
        assert monitor.advance(103.0).sentence.startswith("No sign of drift: 1 prediction counted")


@pytest.mark.parametrize(("maturity", "told"), [(0, True), (2, True), (3, False), (30, False)])
def test_an_alarm_by_labels_that_come_too_late_says_so(
    store: Path, maturity: float, told: bool
) -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=(20, 50))
    labels = (rng.uniform(size=(20, 50)) < scores).astype(int)
    names = [[f"{day} {number}" for number in range(50)] for day in range(20)]
    with opened(store, maturity=maturity) as monitor:
        for day in range(23):
            now = np.full(50, 100.0 + day)
            if day < 20:
                monitor.record_many(names[day], scores[day], now)
            if day >= 3:
                monitor.resolve_many(names[day - 3], labels[day - 3], now)
        found = monitor.advance(160.0)
    assert found.n_mature == 1000
    assert found.alarm is found.has_late_labels is told
    said = "100% of the labels came too late to count, which alone can cause an alarm"
    assert found.sentence.startswith(said) is told
    known = "expired: labels that came after the age of maturity"
    assert any(known in note for note in found.notes) is (found.n_expired > 0)
    assert found.n_expired > 0 or not told
    assert any("larger maturity" in note for note in found.notes) is told


def test_each_kind_of_event_is_told_apart(store: Path) -> None:
    with opened(store) as monitor:
        assert monitor.record("a", 0.2, at=100.0) == "new"
        assert monitor.record("a", 0.2, at=100.0) == "duplicate"
        assert monitor.record("a", 0.3, at=100.0) == "conflicting"
        assert monitor.resolve("early", 1, at=100.5) == "waiting"
        assert monitor.resolve("early", 1, at=100.5) == "duplicate"
        assert monitor.resolve("early", 0, at=100.5) == "conflicting"
        assert monitor.record("early", 0.9, at=101.0) == "new"
        assert monitor.resolve("early", 1, at=101.0) == "duplicate"
        assert monitor.resolve("a", 1, at=102.0) == "new"
        assert monitor.resolve("a", 1, at=103.0) == "duplicate"
        assert monitor.resolve("a", 0, at=103.0) == "conflicting"
        assert monitor.record("b", 0.6, at=102.0) == "new"
        assert monitor.resolve("b", 1, at=109.1) == "expired"
        assert monitor.resolve("b", 1, at=109.2) == "duplicate"
        found = monitor.advance(111.0)
        assert monitor.record("c", 0.5, at=101.5) == "late"
        assert (found.n_mature, found.n_labels, found.n_pending) == (3, 2, 0)
        assert found.counts.tolist() == [1, 0, 1, 1]
        assert found.positives.tolist() == [1, 0, 0, 1]
        assert (found.n_duplicate, found.n_conflicting, found.n_expired) == (5, 3, 1)
        assert monitor.snapshot().n_late == 1


def test_a_label_counts_only_if_it_was_known_at_the_age_of_maturity(store: Path) -> None:
    with opened(store) as monitor:
        monitor.record_many(
            ["in time", "too late", "never"], [0.1, 0.1, 0.1], [100.0, 100.0, 100.0]
        )
        monitor.resolve_many(["in time", "too late"], [1, 1], [107.0, 107.001])
        found = monitor.advance(108.0)
        assert (found.n_mature, found.n_labels, found.positives.sum()) == (3, 1, 1)
        assert monitor.resolve("never", 1, at=108.0) == "expired"
        assert monitor.advance(120.0).positives.sum() == 1


def test_nothing_counts_before_its_day_is_over_and_mature_whatever_came_in(store: Path) -> None:
    with opened(store) as monitor:
        monitor.record("a", 0.2, at=100.0)
        monitor.resolve("a", 1, at=100.0)
        assert monitor.advance(107.9).n_mature == 0
        assert monitor.advance(108.0).n_mature == 1


def test_a_batch_handed_in_again_changes_nothing(store: Path) -> None:
    rng = np.random.default_rng(1)
    ids = [f"row {number}" for number in range(500)]
    scores = rng.uniform(size=500)
    labels = rng.integers(0, 2, 500)
    at = 100.0 + np.arange(500) / 500
    with opened(store) as monitor:
        for _ in range(3):
            monitor.record_many(ids, scores, at)
            monitor.resolve_many(ids, labels, at + 1.0)
        found = monitor.advance(110.0)
    assert found.n_mature == 500
    assert found.positives.sum() == labels.sum()
    assert found.n_duplicate == 2000
    with opened(store) as monitor:
        assert monitor.record_many(ids, scores, at).duplicate == 500
        assert monitor.resolve_many(ids, labels, at + 1.0).duplicate == 500
        assert monitor.snapshot().counts.tolist() == found.counts.tolist()


def test_within_one_batch_the_first_of_an_id_stays(store: Path) -> None:
    with opened(store) as monitor:
        taken = monitor.record_many(["a", "a", "a"], [0.1, 0.1, 0.2], [100.0] * 3)
        assert (taken.new, taken.duplicate, taken.conflicting) == (1, 1, 1)
        taken = monitor.resolve_many(["a", "a", "a", "b", "b"], [1, 1, 0, 1, 0], [101.0] * 5)
        assert (taken.new, taken.duplicate, taken.conflicting, taken.waiting) == (1, 1, 2, 1)


@pytest.mark.slow
def test_any_order_and_split_of_events_gives_the_same_tally(tmp_path: Path) -> None:
    events = [("record", "a", 0.1), ("record", "b", 0.9), ("resolve", "a", 1), ("resolve", "b", 0)]
    tallies = set()
    for number, order in enumerate(list(itertools.permutations(events))[::4]):
        with opened(tmp_path / f"{number}.db") as monitor:
            for kind, name, value in order:
                getattr(monitor, kind)(name, value, at=100.5)
            found = monitor.advance(110.0)
            tallies.add(
                (tuple(found.counts.tolist()), tuple(found.positives.tolist()), found.n_labels)
            )
    assert tallies == {((1, 0, 0, 1), (1, 0, 0, 0), 2)}


def test_ids_are_forgotten_after_a_while_and_older_replays_are_unknown(store: Path) -> None:
    with opened(store, remember=10) as monitor:
        monitor.record("old", 0.2, at=100.0)
        monitor.resolve("old", 1, at=101.0)
        monitor.advance(125.0)
        assert monitor.resolve("old", 1, at=125.0) == "waiting"
        assert monitor.record("old", 0.2, at=100.0) == "late"
        found = monitor.advance(140.0)
        assert (found.n_unknown, found.n_waiting, found.n_mature) == (1, 0, 1)
    connection = sqlite3.connect(store)
    assert connection.execute("select count(*) from calibrant_predictions").fetchone() == (0,)
    connection.close()


@pytest.mark.slow
def test_the_store_stays_small_for_an_endless_stream(store: Path) -> None:
    rng = np.random.default_rng(2)
    sizes = []
    with opened(store, maturity=1, remember=2) as monitor:
        for day in range(100, 124):
            ids = [f"{day} {number}" for number in range(300)]
            scores = rng.uniform(size=300)
            monitor.record_many(ids, scores, np.full(300, float(day)))
            monitor.resolve_many(ids, rng.uniform(size=300) < scores, np.full(300, day + 0.5))
            reader = sqlite3.connect(store)
            sizes.append(reader.execute("PRAGMA page_count").fetchone()[0])
            reader.close()
        found = monitor.advance(130.0)
    assert found.n_mature == 24 * 300
    assert sizes[-1] <= sizes[8] + 4
    assert sizes[8] > sizes[0]


@pytest.mark.slow
def test_the_tests_see_what_they_would_see_in_memory(store: Path) -> None:
    rng = np.random.default_rng(3)
    alone = DriftMonitor(CALIBRATOR, confidence_level=1 - 0.05 * 0.5, maturity=7, random_state=0)
    with opened(store) as monitor:
        for day in range(100, 130):
            scores = rng.uniform(size=100)
            labels = (rng.uniform(size=100) < scores).astype(float)
            ids = [f"{day} {number}" for number in range(100)]
            monitor.record_many(ids, scores, np.full(100, day + 0.1))
            known = rng.uniform(size=100) < 0.8
            names = [one for one, yes in zip(ids, known, strict=True) if yes]
            monitor.resolve_many(names, labels[known], np.full(len(names), day + 0.2))
            labels[~known] = np.nan
            alone.update(scores, labels)
        found = monitor.advance(140.0)
    assert found.verdicts[0].log_evidence == pytest.approx(alone.summary().log_evidence)
    assert found.n_mature == 3000


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["row", "day"])
def test_drift_raises_an_alarm_that_tells_its_story(store: Path, unit: str) -> None:
    rng = np.random.default_rng(4)
    with opened(store, maturity=2, unit=unit) as monitor:
        for day in range(100, 155):
            scores = rng.uniform(size=200)
            rate = scores if day < 135 else scores**2
            ids = [f"{day} {number}" for number in range(200)]
            monitor.record_many(ids, scores, np.full(200, float(day)))
            monitor.resolve_many(ids, rng.uniform(size=200) < rate, np.full(200, day + 1.0))
        found = monitor.snapshot()
    assert found.alarm
    assert found.verdicts[0].question == "rates"
    assert found.verdicts[0].alarm
    assert "1970-05" in found.verdicts[0].since.at
    assert "Recalibrate" in found.next_steps[0].what
    json.dumps(found.to_dict())
    assert found.to_dict()["days"][0]["day"] == "1970-04-11"


def test_a_guarantee_that_failed_in_calibration_is_found_although_nothing_changes(
    store: Path,
) -> None:
    """130 of 200 labels were positive by bad luck: the rate is 0.5, then as before. That is no false
    alarm, and what is said of false alarms leaves it out.
    """
    y = np.arange(200) < 130
    calibrator = BinningCalibrator(partition=Partition.fixed_width(1)).fit(np.full(200, 0.3), y)
    assert calibrator.guarantee_.lower[0] > 0.5
    rng = np.random.default_rng(0)
    with Monitor(store, calibrator, maturity=0, random_state=0) as monitor:
        for day in range(100, 106):
            ids = [f"{day} {number}" for number in range(500)]
            monitor.record_many(ids, np.full(500, 0.3), np.full(500, float(day)))
            monitor.resolve_many(ids, rng.uniform(size=500) < 0.5, np.full(500, day + 0.1))
        found = monitor.advance(107.0)
    [alarm] = [verdict for verdict in found.verdicts if verdict.question == "guarantee"]
    assert alarm.alarm
    assert alarm.finding_in_short.startswith("The guarantee does not hold")
    evidence = found.pictures()[1]
    assert (
        "If nothing changes, and the guarantee held in calibration, all tests"
        in evidence.description
    )


@pytest.mark.slow
def test_scores_that_move_are_found_before_any_label(store: Path) -> None:
    rng = np.random.default_rng(5)
    with opened(store, maturity=90) as monitor:
        for day in range(100, 132):
            scores = rng.uniform(size=200) ** (1.0 if day < 120 else 2.0)
            monitor.record_many(
                [f"{day} {number}" for number in range(200)], scores, np.full(200, float(day))
            )
        found = monitor.snapshot()
    assert [verdict.question for verdict in found.verdicts if verdict.alarm] == ["scores"]
    assert found.n_mature == 0


def test_a_model_file_a_curve_and_segments_are_watched(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    scores = rng.uniform(size=3000)
    segments = np.where(rng.uniform(size=3000) < 0.5, "north", "south")
    calibrator = BinningCalibrator(n_bins=3).fit(
        scores, rng.uniform(size=3000) < scores, segments=segments
    )
    save_model(calibrator, tmp_path / "model.json")
    with Monitor(tmp_path / "a.db", tmp_path / "model.json", maturity=0) as monitor:
        monitor.record("x", 0.2, at=100.0, segment="north")
        monitor.resolve("x", 1, at=100.0)
        assert monitor.advance(101.0).counts.sum() == 1
        with pytest.raises(InvalidValueError):
            monitor.record("y", 0.2, at=101.0, segment="nowhere")
    platt = PlattCalibrator().fit(scores, rng.uniform(size=3000) < scores)
    with Monitor(tmp_path / "b.db", platt, maturity=0) as monitor:
        assert [verdict.question for verdict in monitor.snapshot().verdicts] == ["rates"]
        assert "reference" in monitor.snapshot().verdicts[0].notes[0]


def test_a_store_belongs_to_its_model_and_settings(store: Path) -> None:
    opened(store).close()
    for options in ({"maturity": 8}, {"remember": 30}, {"confidence_level": 0.9}, {"unit": "day"}):
        with pytest.raises(InvalidValueError) as caught:
            opened(store, **options)
        assert caught.value.parameter in options or caught.value.parameter == "remember"
    with pytest.raises(InvalidValueError) as caught:
        Monitor(store, fitted(seed=9), maturity=7)
    assert caught.value.got == "another model"
    assert opened(store, random_state=5).seed == 0


def test_input_that_cannot_be_taken_leaves_the_store_as_it_was(store: Path) -> None:
    with opened(store) as monitor:
        monitor.record("a", 0.2, at=100.0)
        before = monitor.snapshot().to_dict()
        for call in (
            lambda: monitor.record_many(["b", "c"], [0.1, np.nan], [101.0, 101.0]),
            lambda: monitor.record_many(["b", "c"], [0.1, 1.5], [101.0, 101.0]),
            lambda: monitor.record_many(["b"], [0.1, 0.2]),
            lambda: monitor.resolve_many(["a", "b"], [1, 2], [101.0, 101.0]),
            lambda: monitor.record("", 0.1),
            lambda: monitor.record("x" * 201, 0.1),
            lambda: monitor.record("b", 0.1, at="2999-01-01"),
        ):
            with pytest.raises(InvalidValueError):
                call()
        for call in (
            lambda: monitor.record(1.5, 0.1),
            lambda: monitor.record_many("abc", [0.1, 0.2, 0.3]),
        ):
            with pytest.raises(InvalidTypeError):
                call()
        assert monitor.snapshot().to_dict() == before
    with pytest.raises(InvalidValueError):
        opened(store, maturity=-1)


def test_the_clock_never_goes_back(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000_000.0]
    monkeypatch.setattr("calibrant.monitor.durable.time.time", lambda: now[0])
    with opened(store, maturity=0) as monitor:
        assert monitor.record("a", 0.2) == "new"
        now[0] += 2 * DAY
        assert monitor.advance().n_mature == 1
        now[0] -= 10 * DAY
        assert monitor.record("b", 0.2) == "new"
        assert monitor.resolve("b", 1) == "new"
        now[0] += 11 * DAY
        found = monitor.advance()
        assert (found.n_mature, found.n_labels, found.n_late) == (2, 1, 0)


def _work(store: str, worker: int, n_rows: int) -> None:
    with Monitor(store, CALIBRATOR, maturity=7, timeout=120) as monitor:
        rng = np.random.default_rng(worker)
        for start in range(0, n_rows, 100):
            ids = [f"{worker} {number}" for number in range(start, start + 100)]
            monitor.record_many(ids, rng.uniform(size=100), np.full(100, 100.0))
            monitor.resolve_many(ids, np.arange(100) % 4 == 0, np.full(100, 101.0))


@pytest.mark.slow
@pytest.mark.service
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_processes_that_write_together_lose_nothing(store: Path) -> None:
    opened(store).close()
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_work, args=(str(store), number, 300)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    with opened(store) as monitor:
        found = monitor.advance(110.0)
    assert (found.n_mature, found.n_labels, int(found.positives.sum())) == (600, 600, 150)


@pytest.mark.broad
def test_threads_that_write_together_lose_nothing_and_snapshots_are_whole(store: Path) -> None:
    with opened(store) as monitor:

        def work(thread: int) -> None:
            for start in range(0, 200, 20):
                ids = [f"{thread} {number}" for number in range(start, start + 20)]
                monitor.record_many(ids, np.linspace(0.1, 0.9, 20), np.full(20, 100.0))
                monitor.resolve_many(ids, [1] * 20, np.full(20, 101.0))
                found = monitor.snapshot()
                assert found.n_recorded == found.n_pending

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        found = monitor.advance(110.0)
    assert (found.n_mature, int(found.positives.sum())) == (1600, 1600)


def test_a_monitor_that_is_dropped_closes_its_connections(store: Path) -> None:
    monitor = opened(store)
    monitor.record("a", 0.2, at=100.0)
    engine = monitor.store.engine
    assert engine.pool.checkedin() == 1
    del monitor
    gc.collect()
    assert engine.pool.checkedin() == 0


def test_a_locked_store_says_so_and_recovers(store: Path) -> None:
    with opened(store, timeout=0.05) as monitor:
        other = sqlite3.connect(store, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as caught:
            monitor.record("a", 0.2, at=100.0)
        assert "locked" in caught.value.got
        assert "timeout" in caught.value.advice
        assert monitor.snapshot().n_recorded == 0  # readers do not wait
        other.execute("ROLLBACK")
        other.close()
        assert monitor.record("a", 0.2, at=100.0) == "new"


def test_a_full_disk_says_so_writes_nothing_and_recovers(store: Path) -> None:
    with opened(store) as monitor:
        monitor.record("a", 0.2, at=100.0)
        full = sqlite3.connect(store)
        pages = full.execute("PRAGMA page_count").fetchone()[0]
        full.close()
        engine = monitor.store.engine
        engine.dispose()

        def limit(connection: object, _: object) -> None:
            connection.execute(f"PRAGMA max_page_count={pages + 1}")

        import sqlalchemy as sa

        sa.event.listen(engine, "connect", limit)
        with pytest.raises(StoreError) as caught:
            monitor.record_many(
                [f"row {n}" for n in range(5000)], np.full(5000, 0.3), np.full(5000, 100.0)
            )
        assert "full" in caught.value.got
        sa.event.remove(engine, "connect", limit)
        engine.dispose()
        assert monitor.snapshot().n_recorded == 1
        assert monitor.record_many(["b", "c"], [0.3, 0.4], [100.0, 100.0]).new == 2


def test_a_read_only_store_says_so_and_can_be_read(store: Path) -> None:
    with opened(store) as monitor:
        monitor.record("a", 0.2, at=100.0)
        other = Monitor.__new__(Monitor)
        other.__dict__.update(monitor.__dict__)
        from calibrant.monitor.store import Store

        other.store = Store(f"sqlite:///file:{store}?mode=ro&uri=true", 1.0)
        with pytest.raises(StoreError) as caught:
            other.record("b", 0.2, at=100.0)
        assert "readonly" in caught.value.got
        assert "writable" in caught.value.advice
        assert other.snapshot().n_recorded == 1
        other.close()
        assert monitor.record("b", 0.2, at=100.0) == "new"


def test_a_truncated_wal_leaves_a_sound_store(store: Path, tmp_path: Path) -> None:
    monitor = opened(store)
    for number in range(50):
        monitor.record(f"row {number}", 0.2, at=100.0)
    wal = Path(f"{store}-wal")
    copy = tmp_path / "copy.db"
    copy.write_bytes(store.read_bytes())
    whole = wal.read_bytes()
    Path(f"{copy}-wal").write_bytes(whole[: len(whole) * 2 // 3])
    monitor.close()
    with opened(copy) as again:
        found = again.snapshot()
        connection = sqlite3.connect(copy)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
        assert 0 <= found.n_recorded < 50
        assert found.n_recorded == found.n_pending
        outcomes = [again.record(f"row {number}", 0.2, at=100.0) for number in range(50)]
        assert outcomes.count("duplicate") == found.n_recorded
        assert again.snapshot().n_recorded == 50


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a database, and long enough to be looked at" * 50)
    with pytest.raises(StoreError) as caught:
        opened(other)
    assert "not a database" in caught.value.got
    with pytest.raises(StoreError):
        opened(tmp_path / "no" / "such" / "folder.db")
