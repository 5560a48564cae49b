"""Monitors: evidence, what has changed, and their states."""

from typing import Any

import numpy as np

from calibrant import (
    BinningCalibrator,
    Calibrator,
    DriftMonitor,
    GuaranteeMonitor,
    Partition,
    PlattCalibrator,
    ScoreDriftMonitor,
)
from calibrant.monitor.martingale import (
    ShiftMixture,
    later_start,
    log_sum,
    running_mean_limits,
    start_weight,
)
from calibrant.monitor.pool import exact_scores
from worlds.questions.base import QUESTIONS, SMOOTH, TIED, World, of_state, question, refused

LATER = World("smooth", 1200, seed=1)
FITTED = {
    "bins": BinningCalibrator(4).fit(SMOOTH.scores, SMOOTH.y),
    "curve": Calibrator(n_bins=3).fit(SMOOTH.scores, SMOOTH.y),
    "segments": BinningCalibrator(2).fit(SMOOTH.scores, SMOOTH.y, segments=SMOOTH.segments),
    "no regions": PlattCalibrator().fit(SMOOTH.scores, SMOOTH.y),
    "bare bins": Partition.fixed_width(3),
}
DAYS = np.repeat(np.arange(20_000, 20_040), 30)


def labels(moved: float, after: int = 400) -> Any:
    """Labels whose rate moves after some rows."""
    draws = np.random.default_rng(5).integers(0, 2**20, LATER.scores.size) / 2**20
    rate = np.clip(0.1 + 0.8 * LATER.scores**2 - 0.15 * (LATER.scores > 0.6), 0.0, 1.0)
    rate = rate + np.where(np.arange(rate.size) < after, 0.0, moved)
    return (draws < rate).astype(int)


def watched(monitor: Any, moved: float, parts: int, **beside: Any) -> Any:
    """What a monitor finds batch by batch, and its state at the end."""
    y = labels(moved)
    found = []
    for part in np.array_split(np.arange(y.size), parts):
        monitor.update(
            LATER.scores[part], y[part], **{name: values[part] for name, values in beside.items()}
        )
        found.append(monitor.summary().log_evidence)
    state = monitor.to_dict()
    return [
        found,
        monitor.summary(),
        monitor.alarm,
        state,
        type(monitor).from_dict(state).to_dict(),
    ]


for _name in FITTED:
    for _moved in (0.0, 0.2, -0.25):

        def drifted(name: str = _name, moved: float = _moved) -> Any:
            named = {"segments": LATER.segments} if name == "segments" else {}
            reference = 300 if name in ("no regions", "bare bins") else None
            monitor = DriftMonitor(FITTED[name], random_state=3, reference=reference, batch_rows=25)
            return watched(monitor, moved, 12, **named)

        def kept(name: str = _name, moved: float = _moved) -> Any:
            named = {"segments": LATER.segments} if name == "segments" else {}
            return watched(GuaranteeMonitor(FITTED[name]), moved, 5, **named)

        QUESTIONS[f"drift {_name} {_moved}"] = drifted
        QUESTIONS[f"guarantee kept {_name} {_moved}"] = kept

for _unit in ("day", "week"):
    for _moved in (0.0, 0.4):

        def of_units(unit: str = _unit, moved: float = _moved) -> Any:
            monitor = DriftMonitor(
                FITTED["bins"], unit=unit, reference=3 if unit == "week" else 12, random_state=1
            )
            if unit == "week":
                monitor.update(LATER.scores, labels(moved), at=DAYS)
                return [monitor.summary(), monitor.to_dict()]
            return watched(monitor, moved, 8, at=DAYS)

        QUESTIONS[f"drift of each {_unit} {_moved}"] = of_units


@question
def drift_of_weekdays() -> Any:
    days = np.repeat(np.arange(20_000, 20_120), 10)
    monitor = DriftMonitor(FITTED["bins"], unit="day", weekdays=True, reference=5, random_state=1)
    monitor.update(LATER.scores, labels(0.4), at=days)
    return [monitor.summary(), monitor.to_dict()]


@question
def drift_with_late_labels() -> Any:
    known = np.where(np.arange(DAYS.size) % 7 == 0, np.nan, labels(0.3))
    known[np.arange(DAYS.size) % 9 > 5] = np.nan  # labels that came after the age of maturity
    found = []
    for monitor in (
        DriftMonitor(FITTED["bins"], maturity=5, random_state=2),
        GuaranteeMonitor(FITTED["bins"], maturity=5),
        GuaranteeMonitor(FITTED["curve"], maturity=5),
    ):
        for part in np.array_split(np.arange(DAYS.size), 4):
            monitor.update(LATER.scores[part], known[part], at=DAYS[part])
        found += [monitor.summary(), monitor.to_dict()]
    return found


@question
def drift_of_counts() -> Any:
    by_row = DriftMonitor(FITTED["bins"], random_state=2)
    by_day = DriftMonitor(FITTED["bins"], unit="day", reference=3, random_state=2)
    for number in range(8):
        rows = np.array([30, 20, 10, 40]) + number
        positives = np.array([3, 5, 1, 20 + 2 * number])
        by_row.update_counts(rows, positives)
        by_day.update_counts(rows, positives, at=f"2024-01-{number + 1:02}")
    return [by_row.summary(), by_row.to_dict(), by_day.summary(), by_day.to_dict()]


@question
def drift_since_a_change_in_one_bin() -> Any:
    monitor = DriftMonitor(FITTED["bins"], random_state=2, confidence_level=0.99)
    for number in range(40):
        monitor.update_counts(
            np.array([25, 25, 25, 25]), np.array([3, 6, 9 + 7 * (number > 20), 18])
        )
    return monitor.summary()


for _shift in (0.0, 0.15, -0.3):
    for _world in ("smooth", "tied"):

        def scores_moved(shift: float = _shift, world: str = _world) -> Any:
            reference = (SMOOTH if world == "smooth" else TIED).scores
            monitor = ScoreDriftMonitor(
                reference, n_bins=6 if world == "tied" else 20, random_state=4
            )
            found = []
            for number, part in enumerate(np.array_split(np.arange(LATER.new.size), 17)):
                moved = np.clip(LATER.new[part] + shift * (number > 5), 0.0, 1.0)
                monitor.update(np.round(moved, 1) if world == "tied" else moved, at=part)
                found.append(monitor.summary().log_evidence)
            state = monitor.to_dict()
            return [found, monitor.summary(), state, ScoreDriftMonitor.from_dict(state).to_dict()]

        QUESTIONS[f"scores moved {_world} {_shift}"] = scores_moved


SMALL = BinningCalibrator(2).fit(SMOOTH.scores[:300], SMOOTH.y[:300])
STATES: dict[str, Any] = {
    "drift": lambda: DriftMonitor(SMALL, random_state=3).update(LATER.scores, labels(0.2)),
    "drift of days": lambda: DriftMonitor(SMALL, unit="day", reference=4, random_state=3).update(
        LATER.scores[:300], labels(0.2)[:300], at=DAYS[:300]
    ),
    "guarantee kept": lambda: GuaranteeMonitor(SMALL).update(LATER.scores, labels(0.4)),
    "scores moved": lambda: ScoreDriftMonitor(SMOOTH.scores[:60], n_bins=2, random_state=4).update(
        LATER.new[:140]
    ),
}
for _name, _make in STATES.items():

    def damaged_monitor(make: Any = _make) -> Any:
        monitor = make()
        kind = type(monitor)
        return of_state(kind.from_dict, monitor, kind.to_dict, most=90)

    QUESTIONS[f"state of {_name}"] = damaged_monitor


@question
def sizes_of_a_reference() -> Any:
    found = []
    for size in (40, 60, 100, 401, 1200):
        monitor = ScoreDriftMonitor(SMOOTH.scores[:size], n_bins=4, random_state=0)
        state = monitor.update(LATER.new[:99]).update(LATER.new[:1]).to_dict()
        pool, waiting = (
            [test[f"{name}_rows"][0] - test[f"{name}_hits"][0], *test[f"{name}_hits"]]
            for test in (state["test"],)
            for name in ("pool", "waiting")
        )
        found.append([state["shares"], pool, state["partition"], waiting, monitor.summary()])
    return found


@question
def refusals_of_monitors() -> Any:
    scores = SMOOTH.scores
    grouped = BinningCalibrator(3).fit(scores, SMOOTH.y, groups=SMOOTH.groups)
    rows = DriftMonitor(FITTED["bins"], random_state=0)
    days = DriftMonitor(FITTED["bins"], unit="day", random_state=0)
    days.update([0.5], [1], at=[20_000])
    four = [1, 1, 1, 1]
    return [
        repr(DriftMonitor(FITTED["bins"], random_state=0).update([0.5, 0.6], [0, 1]).summary()),
        DriftMonitor(FITTED["bare bins"], random_state=0).update([0.5, 0.6], [0, 1]).summary(),
        refused(lambda: ScoreDriftMonitor(scores[:39], n_bins=4)),
        refused(lambda: ScoreDriftMonitor(scores[:40], n_bins=4, random_state=0)),
        refused(lambda: ScoreDriftMonitor(scores, n_bins=1)),
        refused(lambda: ScoreDriftMonitor(np.full(100, 0.5), n_bins=2)),
        refused(lambda: GuaranteeMonitor(FITTED["no regions"])),
        refused(lambda: GuaranteeMonitor(grouped)),
        refused(lambda: DriftMonitor(grouped)),
        refused(lambda: DriftMonitor(FITTED["bins"], classes=(0, 1))),
        refused(lambda: DriftMonitor(FITTED["bins"], pos_label=1)),
        refused(lambda: DriftMonitor(FITTED["bare bins"], classes=("no", "yes"))),
        refused(lambda: DriftMonitor(FITTED["bare bins"], classes=("no", "yes"), pos_label="yes")),
        refused(lambda: DriftMonitor(FITTED["bins"], unit="month")),
        refused(lambda: DriftMonitor(FITTED["bins"], weekdays=True)),
        refused(lambda: DriftMonitor(FITTED["bins"], unit="week", weekdays=True)),
        refused(lambda: DriftMonitor(FITTED["bins"], reference=0)),
        refused(lambda: DriftMonitor(FITTED["bins"], batch_rows=0)),
        refused(lambda: rows.update([0.5, 0.6], [1])),
        refused(lambda: rows.update_counts(four, [1, 1, 1, 2])),
        refused(lambda: rows.update_counts(four, [0, 0, 0, -1])),
        refused(lambda: rows.update_counts(four, [0, 0, 0])),
        refused(lambda: rows.update_counts([1, 1, 1], [0, 0, 0, 0])),
        refused(lambda: rows.update_counts(four, [1, 0, 1, 0])),
        refused(lambda: days.update([0.5], [1])),
        refused(lambda: days.update([0.5], [1], at=[20_000])),
        refused(lambda: days.update([0.5], [1], at=[19_999])),
        refused(lambda: days.update([0.5], [1], at=[20_001])),
        refused(lambda: days.update_counts(four, [1, 0, 1, 0])),
        refused(lambda: days.update_counts(four, [1, 0, 1, 0], at="2024-10-05")),
        refused(lambda: days.update_counts(four, [1, 0, 1, 0], at="2024-10-05")),
    ]


@question
def exact_scores_of_many_tables() -> Any:
    pool_rows = np.array([4, 0, 10, 1000, 1000, 5, 40_000, 7, 3])
    pool_hits = np.array([2, 0, 10, 3, 500, 0, 39_000, 7, 1])
    rows = np.array([2, 3, 4, 500, 30, 6, 3000, 0, 1])
    hits = np.array([1, 1, 4, 2, 25, 1, 2100, 0, 1])
    found = [
        exact_scores(pool_rows, pool_hits, rows, hits, np.full(9, share))
        for share in (0.05, 0.5, 0.9)
    ]
    alone = [
        exact_scores(
            *(column[:k] for column in (pool_rows, pool_hits, rows, hits)), np.full(k, 0.3)
        )
        for k in (1, 6)
    ]
    return [found, alone]


@question
def bets_with_several_starts() -> Any:
    mixture = ShiftMixture(np.array([[1.0, 1.0], [-1.0, 1.0]]), np.array([0.6, 0.4]))
    found = []
    for number in range(12):
        z = np.array([0.3, -0.2]) + 0.25 * (number > 4)
        mixture.update(z, np.array([2.0, 3.0]), np.array([50.0 + number, 70.0]))
        found.append(
            [mixture.n_starts, mixture.begins(), mixture.log_evidence(), mixture.likely_start()]
        )
    return [found, mixture.log_parts(), mixture.to_dict()]


@question
def parts_of_martingales() -> Any:
    logs = np.array([-3.0, 0.5, -np.inf, 2.0])
    limits = [
        running_mean_limits(*given)
        for given in ((500, 1000, 0.05), (3, 4, 0.2), (0, 0, 0.1), (99, 100, 0.01))
    ]
    starts = [[later_start(number), float(start_weight(number))] for number in range(12)]
    return [log_sum(logs), log_sum(np.array([-np.inf])), limits, starts]
