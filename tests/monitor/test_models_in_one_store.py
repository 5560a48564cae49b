"""Many models in one store, which stay apart; what cannot be counted does not stop the rest; and
the clock of the store decides when a day ends.
"""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from calibrant import BinningCalibrator, Partition, load_model, save_model
from calibrant.errors import InvalidTypeError, InvalidValueError
from calibrant.monitor import Monitor

DAY = 86_400.0
RNG = np.random.default_rng(0)
SCORES = RNG.uniform(size=2000)
LABELS = (RNG.uniform(size=2000) < SCORES).astype(int)


def fitted(**options: object) -> BinningCalibrator:
    return BinningCalibrator(partition=Partition.fixed_width(4), **options).fit(SCORES, LABELS)


CALIBRATOR = fitted()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "watch.db"


def opened(store: object, calibrator: object = CALIBRATOR, **options: object) -> Monitor:
    return Monitor(store, calibrator, **{"maturity": 0, "random_state": 0, **options})


def send(monitor: Monitor, day: int, n_rows: int = 200, seed: int = 0, power: float = 1.0) -> None:
    """The predictions of a day, and their labels."""
    rng = np.random.default_rng(1000 * seed + day)
    scores = rng.uniform(size=n_rows)
    labels = (rng.uniform(size=n_rows) < scores**power).astype(int)
    ids = [f"{day} {number}" for number in range(n_rows)]
    monitor.record_many(ids, scores, np.full(n_rows, float(day)))
    monitor.resolve_many(ids, labels, np.full(n_rows, float(day)))


def change(store: Path, *statements: str) -> None:
    connection = sqlite3.connect(store)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


# Models


def test_the_same_bins_and_counts_with_other_labels_are_another_model(store: Path) -> None:
    """Its labels would be counted inverted."""
    opened(store).close()
    inverted = BinningCalibrator(partition=Partition.fixed_width(4), pos_label=0).fit(
        SCORES, 1 - LABELS
    )
    assert inverted.tally_.counts.tolist() == CALIBRATOR.tally_.counts.tolist()
    assert inverted.tally_.positives.tolist() == CALIBRATOR.tally_.positives.tolist()
    with pytest.raises(InvalidValueError) as caught:
        opened(store, inverted)
    assert (caught.value.parameter, caught.value.got) == ("model", "another model")
    assert "such as name='model-2'" in str(caught.value)
    with opened(store, inverted, name="inverted") as monitor:
        assert monitor.record("a", 0.2, at=100.0) == "new"


def test_a_model_is_the_same_as_an_object_and_as_a_file(store: Path, tmp_path: Path) -> None:
    save_model(CALIBRATOR, tmp_path / "model.json", provenance={"rows": "of spring"})
    opened(store).close()
    opened(store, tmp_path / "model.json").close()
    opened(store, load_model(tmp_path / "model.json")).close()


def test_models_of_one_store_have_their_own_rows_clocks_and_tests(
    store: Path, tmp_path: Path
) -> None:
    other = fitted(confidence_level=0.8)
    with (
        opened(store, name="a") as a,
        opened(a.store, other, name="b", maturity=2) as b,
        opened(tmp_path / "alone.db", name="a") as alone,
    ):
        for day in range(100, 120):
            for monitor in (a, alone):
                send(monitor, day)
            send(b, day, 150, seed=1, power=5.0)
        b.write_note("place", {"offset": 1})
        assert a.read_note("place") is None
        assert a.snapshot().to_dict() == alone.snapshot().to_dict()
        assert not a.snapshot().alarm
        assert b.snapshot().alarm
        assert (a.snapshot().n_mature, b.snapshot().n_mature) == (19 * 200, 17 * 150)
        b.close()
        assert a.record("once more", 0.3, at=119.0) == "new"  # b shared the connections of a
    with opened(store, other, name="b", maturity=2) as b:
        assert b.snapshot().alarm
        assert b.read_note("place") == {"offset": 1}


def test_a_hundred_models_share_the_connections_of_one_store(store: Path) -> None:
    with opened(store, name="0") as first:
        every = [first, *(opened(first.store, name=f"{number}") for number in range(1, 100))]
        for number, monitor in enumerate(every):
            monitor.record_many(
                [f"{one}" for one in range(number)], [0.3] * number, [100.0] * number
            )
        assert [monitor.snapshot().n_recorded for monitor in every] == list(range(100))
        assert first.store.engine.pool.checkedin() == 1


@pytest.mark.parametrize("name", ["", "x" * 201, "a\x00b", "\ud800"])
def test_a_name_that_no_database_can_store_is_refused(store: Path, name: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        opened(store, name=name)
    assert caught.value.parameter == "name"
    assert not store.exists()
    with pytest.raises(InvalidTypeError):
        opened(store, name=3)


# Rows and days that cannot be counted


@pytest.mark.parametrize("score", [[0.3], [0.3, 0.7], True, "0.3"])
def test_a_score_is_a_number(store: Path, score: object) -> None:
    with opened(store) as monitor:
        with pytest.raises(InvalidTypeError, match="score must be a number"):
            monitor.record("x", score)
        with pytest.raises(InvalidTypeError, match="label must be one of the two classes"):
            monitor.resolve("x", [1])
        assert monitor.snapshot().n_recorded == 0


@pytest.mark.parametrize("segment", [["a"], ("a",), {"a": 1}, b"a", float("nan")])
def test_a_segment_that_would_spoil_its_day_is_refused(store: Path, segment: object) -> None:
    segments = np.where(RNG.uniform(size=2000) < 0.5, "a", "b")
    calibrator = BinningCalibrator(2).fit(SCORES, LABELS, segments=segments)
    with opened(store, calibrator) as monitor:
        with pytest.raises(InvalidTypeError):
            monitor.record("spoilt", 0.3, at=100.0, segment=segment)
        assert monitor.record("sound", 0.3, at=100.0, segment=np.str_("a")) == "new"
        found = monitor.advance(102.0)
    assert (found.n_recorded, found.n_mature) == (1, 1)


@pytest.mark.parametrize(
    "given",
    [{"at": -np.inf}, {"at": -1e18}, {"id": "\ud800"}, {"id": 10**5000}, {"at": 1.79e308}],
    ids=["infinite", "far past", "surrogate", "many digits", "far future"],
)
def test_what_no_database_can_store_is_refused(store: Path, given: dict[str, object]) -> None:
    with opened(store) as monitor:
        with pytest.raises(InvalidValueError):
            monitor.record(**{"id": "a", "score": 0.3, "at": 100.0, **given})
        assert monitor.snapshot().n_recorded == 0


@pytest.mark.parametrize("unit", ["row", "day"])
def test_a_day_that_cannot_be_closed_is_put_aside_and_the_others_go_on(
    store: Path, tmp_path: Path, unit: str
) -> None:
    with opened(store, unit=unit) as monitor:
        for day in range(100, 110):
            send(monitor, day)
        send(monitor, 110)
        change(store, "update calibrant_predictions set score = 'high' where id = '110 7'")
        for day in range(111, 115):
            send(monitor, day)
        found = monitor.snapshot()
        assert found.n_mature == 13 * 200
        assert found.n_quarantined == 200
        assert [(held.day, held.n_rows) for held in found.quarantine] == [("1970-04-21", 200)]
        assert "could not convert" in found.quarantine[0].problem
        said = (
            "1 day could not be closed, and 200 predictions did not count; the first is 1970-04-21"
        )
        assert sum(note.startswith(said) for note in found.notes) == 1
        assert json.loads(json.dumps(found.to_dict()))["quarantine"][0]["n_rows"] == 200
    with opened(tmp_path / "without.db", unit=unit) as monitor:
        for day in (*range(100, 110), *range(111, 115)):
            send(monitor, day)
        without = monitor.snapshot()
    assert [one.to_dict() for one in found.verdicts] == [one.to_dict() for one in without.verdicts]
    assert found.counts.tolist() == without.counts.tolist()
    with opened(store, unit=unit) as monitor:  # the rows that were put aside are kept
        found = monitor.advance(200.0)
        assert (found.n_mature, found.n_quarantined) == (14 * 200, 200)
        assert monitor.record("110 7", 0.3, at=110.0) == "conflicting"


def test_scores_that_cannot_be_compared_do_not_keep_labels_from_counting(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calibrant.monitor.mature_days import Tests

    usual = Tests.look_at_scores

    def fails(self: Tests, scores: object, day: str, seed: int) -> None:
        if day == "1970-04-12":
            raise ZeroDivisionError("a fault of a test")
        usual(self, scores, day, seed)

    monkeypatch.setattr(Tests, "look_at_scores", fails)
    with opened(store) as monitor:
        for day in range(100, 104):
            send(monitor, day, 50)
        found = monitor.snapshot()
    assert (found.n_mature, found.n_quarantined, found.n_until_scores) == (150, 0, 1900)
    assert [(held.day, held.n_rows) for held in found.quarantine] == [("1970-04-12", 0)]
    assert "ZeroDivisionError: a fault of a test" in found.quarantine[0].problem


# Clocks


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [20_000 * DAY + 82_800.0]  # 23:00
    monkeypatch.setattr("calibrant.monitor.durable.time.time", lambda: now[0])
    return now


def test_a_client_whose_clock_is_ahead_ends_no_day(store: Path, clock: list[float]) -> None:
    with opened(store) as monitor:
        assert monitor.record("a", 0.3) == "new"
        with pytest.raises(InvalidValueError) as caught:
            monitor.record("b", 0.3, at=20_001.9)
        assert caught.value.parameter == "at"
        assert "5 minutes" in caught.value.rule
        assert "clock" in caught.value.advice
        for seconds in (301.0, 23 * 3600.0):
            with pytest.raises(InvalidValueError):
                monitor.advance((clock[0] + seconds) / DAY)
        clock[0] += 3_500.0  # 23:58:20
        assert monitor.record("c", 0.3, at=(clock[0] + 299.0) / DAY) == "new"  # tomorrow
        assert monitor.record("d", 0.3) == "new"  # still today, for everyone else
        assert monitor.resolve("d", 1) == "new"
        assert monitor.snapshot().n_mature == 0
        assert monitor.snapshot().now == "2024-10-04T23:58:20"
        clock[0] += 101.0  # 00:00:01
        found = monitor.advance()
        assert (found.n_mature, found.n_pending, found.n_late) == (2, 1, 0)


def test_a_clock_that_was_set_back_takes_what_it_took_before(
    store: Path, clock: list[float]
) -> None:
    with opened(store) as monitor:
        assert monitor.record("a", 0.3) == "new"
        clock[0] -= 40 * DAY
        assert monitor.record("b", 0.3, at=20_000.9) == "new"
        assert monitor.record("c", 0.3) == "new"
