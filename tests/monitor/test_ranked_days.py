"""Days as units: no more false alarms than stated if volume and mix of scores move and no rate
does, and the rates of a change are observed ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import BinningCalibrator, DriftMonitor, Partition
from calibrant.errors import InvalidValueError
from calibrant.monitor.ranked_units import unit_scores
from worlds.guarantees import assert_kept

BINS = Partition.fixed_width(10)
MIDDLES = (np.arange(10) + 0.5) / 10
LOW = np.exp(-3.0 * MIDDLES) / np.exp(-3.0 * MIDDLES).sum()
HIGH = LOW[::-1]
EVEN = np.full(10, 0.1)
N_DAYS = 120
TIME = np.arange(N_DAYS) / N_DAYS


@dataclass
class Days:
    """The volume and the mix of scores of each day, and a rate in each bin that never changes."""

    volume: np.ndarray = field(default_factory=lambda: np.full(N_DAYS, 100.0))
    mix: np.ndarray = field(default_factory=lambda: np.tile(EVEN, (N_DAYS, 1)))
    rates: np.ndarray = field(default_factory=lambda: MIDDLES)
    n_calibration: int = 5000
    deviation: float = 0.3
    tied: bool = False

    def monitor(self, rng: np.random.Generator, **options: object) -> DriftMonitor:
        watched: BinningCalibrator | Partition = BINS
        if self.n_calibration:
            rows = rng.integers(10, size=self.n_calibration)
            scores = self.scores(rng, rows)
            labels = rng.uniform(size=rows.size) < self.rates[rows]
            watched = BinningCalibrator(partition=BINS).fit(scores, labels)
        return DriftMonitor(watched, unit="day", random_state=int(rng.integers(2**31)), **options)

    def scores(self, rng: np.random.Generator, bins: np.ndarray) -> np.ndarray:
        within = 0.5 if self.tied else rng.uniform(0.01, 0.99, size=bins.size)
        return np.asarray((bins + within) / 10)

    def rows(
        self, rng: np.random.Generator, shift: float = 0.0, start: int = N_DAYS
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Scores, labels and times of each day; from day `start` on, log-odds are higher."""
        for day in range(N_DAYS):
            n_rows = max(1, rng.poisson(self.volume[day]))
            bins = rng.choice(10, size=n_rows, p=self.mix[day])
            moved = self.deviation * rng.normal() + shift * (day >= start)
            labels = rng.uniform(size=n_rows) < expit(logit(self.rates[bins]) + moved)
            at = np.full(n_rows, np.datetime64("2026-01-01") + day)
            yield self.scores(rng, bins), labels, at

    def stream(
        self, rng: np.random.Generator, shift: float = 0.0, start: int = N_DAYS
    ) -> tuple[np.ndarray, ...]:
        """The rows of all days."""
        return tuple(map(np.concatenate, zip(*self.rows(rng, shift, start), strict=True)))


def moved(share: np.ndarray, before: np.ndarray = LOW, after: np.ndarray = HIGH) -> np.ndarray:
    return np.outer(1.0 - share, before) + np.outer(share, after)


LATER = (TIME >= 0.5).astype(float)
WEEKEND = (np.arange(N_DAYS) % 7 >= 5).astype(float)
NEW_BINS = moved(LATER, np.repeat([0.2, 0.0], 5), np.repeat([0.0, 0.2], 5))
RARE = 0.02 * MIDDLES
WORLDS = {
    "nothing moves": Days(),
    "volume grows": Days(volume=50 * 4.0**TIME),
    "volume jumps": Days(volume=40 + 360 * LATER),
    "volume falls": Days(volume=400 - 360 * LATER),
    "mix moves": Days(mix=moved(TIME), deviation=0.0),
    "mix jumps": Days(mix=moved(LATER)),
    "mix moves to new bins": Days(mix=NEW_BINS),
    "weekday pattern": Days(volume=120 - 90 * WEEKEND, mix=moved(WEEKEND)),
    "few calibration rows": Days(
        n_calibration=200, volume=100 * 4.0**TIME, mix=moved(TIME), deviation=0.0
    ),
    "bare partition": Days(
        n_calibration=0, volume=100 + 30 * LATER, rates=0.3 * MIDDLES, deviation=0.0
    ),
    "tied scores": Days(tied=True, volume=np.full(N_DAYS, 8.0)),
    "rare, volume grows": Days(rates=RARE, volume=50 * 4.0**TIME, deviation=0.0),
    "rare, volume falls": Days(rates=RARE, volume=40 - 36 * LATER),
    "rare, all moves": Days(n_calibration=0, rates=RARE, volume=50 * 4.0**TIME, mix=moved(TIME)),
}


def evidence(world: Days, rng: np.random.Generator) -> float:
    """The largest evidence of a stream in which no rate changes."""
    scores, labels, at = world.stream(rng)
    return world.monitor(rng).update(scores, labels, at=at).summary().log_evidence


@pytest.mark.parametrize("world", ["few calibration rows", "bare partition", "rare, all moves"])
def test_moving_volume_and_mix_alone_raise_no_alarm(world: str) -> None:
    rng = np.random.default_rng(0)
    found = [evidence(WORLDS[world], rng) for _ in range(8)]
    assert np.sum(np.array(found) > np.log(20)) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_false_alarms_are_no_more_than_stated_if_volume_and_mix_move(world: str) -> None:
    rng = np.random.default_rng(1)

    def alarms(alpha: float) -> Iterator[dict[str, bool]]:
        while True:
            yield {f"level {alpha}": evidence(WORLDS[world], rng) >= -np.log(alpha)}

    assert_kept(alarms(0.1), 0.1, caught=0.2)
    assert_kept(alarms(0.5), 0.5, caught=0.62)


def delay(world: Days, rng: np.random.Generator, shift: float, start: int = 60) -> int:
    """Days from a change to its alarm; N_DAYS without an alarm."""
    monitor = world.monitor(rng)
    for day, (scores, labels, at) in enumerate(world.rows(rng, shift, start)):
        if monitor.update(scores, labels, at=at).alarm:
            return day + 1 - start
    return N_DAYS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "shift", "most"),
    [
        (Days(deviation=0.0), 0.4, 20),
        (Days(volume=50 * 4.0**TIME, deviation=0.0), 0.4, 20),
        (Days(rates=RARE, deviation=0.0), 1.2, 22),
    ],
    ids=["even", "volume grows", "rare"],
)
def test_a_change_is_found_while_volume_moves(world: Days, shift: float, most: int) -> None:
    rng = np.random.default_rng(2)
    assert np.median([delay(world, rng, shift) for _ in range(25)]) <= most


def test_rates_of_a_change_were_observed() -> None:
    rng = np.random.default_rng(3)
    world = Days(n_calibration=0, rates=0.3 * MIDDLES, deviation=0.0)
    scores, labels, at = world.stream(rng, shift=1.5, start=60)
    monitor = world.monitor(rng).update(scores, labels, at=at)
    assert monitor.alarm
    (change,) = monitor.changes
    later = at > np.datetime64(monitor.summary().since.at)
    bins = np.floor(scores * 10).astype(int)
    rates = np.bincount(bins, labels & ~later) / np.bincount(bins, ~later)
    assert change.rate_before == pytest.approx(rates[bins[later]].mean())
    assert change.rate_since == pytest.approx(labels[later].mean())
    assert change.rate_before == pytest.approx(0.15, abs=0.02)
    assert change.rows == later.sum()
    assert f" in {change.rows:,} rows" in monitor.verdict
    [step] = monitor.summary().next_steps
    assert f"{change.rows:,} rows have been counted since then" in step.what


@pytest.mark.parametrize("unit", ["row", "day"])
def test_bins_without_earlier_rows_are_in_neither_rate(unit: str) -> None:
    reference = 1000 if unit == "row" else 10
    monitor = DriftMonitor(
        Partition.fixed_width(3), unit=unit, reference=reference, batch_rows=1, random_state=0
    )
    for number in range(10 + 40):
        late = number >= 10
        rows = [60, 40, 100 * late]
        monitor.update_counts(rows, [6 + 20 * late, 20, 90 * late], at=f"2026-01-{number:03}")
    found = monitor.summary()
    assert found.since.rows == 1000
    change = found.changes[0]
    assert change.rows == 40 * 100
    assert (change.rate_before, change.rate_since) == pytest.approx((0.26, 0.46))
    assert {change.region for change in found.changes[1:]} <= {0}
    assert "8,000 rows have been counted since then" in found.advice


def test_scores_are_uniform_at_every_volume() -> None:
    rng = np.random.default_rng(4)
    rows = np.tile([[5], [50], [5000]], (400, 1))
    hits = rng.binomial(rows, 0.03)
    scores = unit_scores(rows, hits, rng.uniform(size=1200))
    for size in (5, 50, 5000):
        here = scores[rows[:, 0] == size]
        assert np.abs(np.quantile(here, [0.1, 0.5, 0.9]) - [0.1, 0.5, 0.9]).max() < 0.07


def test_scores_of_days_without_information_are_random_and_finite() -> None:
    uniforms = np.array([0.2, 0.7, 0.4])
    none = np.zeros((3, 2), dtype=np.int64)
    rows = np.array([[5, 0], [9, 0], [0, 7]])
    for hits in (none, rows):
        assert unit_scores(rows, hits, uniforms).tolist() == uniforms.tolist()
    hits = np.array([[1, 0], [3, 0], [0, 2]])
    assert unit_scores(rows, hits, uniforms)[2] == 0.4  # no other day has rows in this bin


def test_a_day_without_rows_is_no_unit() -> None:
    monitor = DriftMonitor(BINS, unit="day", reference=3, random_state=0)
    one = np.eye(10, dtype=int)[3]
    for day in range(1, 6):
        monitor.update_counts(one * (day % 2), one * 0, at=f"2026-01-0{day}")
    assert monitor._test.n_units == 3
    assert not monitor.in_reference
    assert DriftMonitor.from_dict(monitor.to_dict()).to_dict() == monitor.to_dict()
    with pytest.raises(InvalidValueError):
        monitor.update_counts(one, one, at="2026-01-05")


def state_of_days() -> dict:
    monitor = DriftMonitor(Partition.fixed_width(2), unit="day", reference=3, random_state=0)
    for day in range(1, 9):
        monitor.update_counts([9, 8], [day, 2], at=f"2026-01-0{day}")
    return monitor.to_dict()


STATE = state_of_days()
FORGED = {
    "hits above rows": {"hits": [[10, 2]] * 8},
    "a day without rows": {"rows": [[0, 0]] * 8, "hits": [[0, 0]] * 8},
    "days missing": {"rows": STATE["test"]["rows"][1:]},
    "other weekdays": {"kinds": [1] * 8},
    "another reference": {"reference": 4},
    "other starts": {
        "mixture": {
            **STATE["test"]["mixture"],
            "first": [[99.0] for _ in STATE["test"]["mixture"]["first"]],
        }
    },
}


@pytest.mark.parametrize("entries", FORGED.values(), ids=FORGED)
def test_forged_states_of_days_raise(entries: dict) -> None:
    assert DriftMonitor.from_dict(STATE).to_dict() == STATE
    with pytest.raises(InvalidValueError):
        DriftMonitor.from_dict({**STATE, "test": {**STATE["test"], **entries}})


def test_counts_of_days_come_in_the_order_of_time():
    monitor = DriftMonitor(Partition.fixed_width(2), unit="day", classes=(0, 1))
    monitor.update_counts([50, 50], [5, 40], at="2024-02-01")
    for at in ("2024-02-01", "2023-01-15"):
        with pytest.raises(InvalidValueError, match="later ones later"):
            monitor.update_counts([50, 50], [5, 40], at=at)
    monitor.update_counts([50, 50], [5, 40], at="2024-02-02")
    assert monitor.n_rows == 200
