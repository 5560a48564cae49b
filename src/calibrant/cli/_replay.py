"""`calibrant demo --watch`: a year of flights, replayed with labels that arrive a week late."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.cli._flights import LATE
from calibrant.cli._output import remark
from calibrant.params.random import RandomSource

if TYPE_CHECKING:
    from calibrant.monitor import MonitorSnapshot

MATURITY = 7.0
_YEAR = 2013


def split_days(flights: Any) -> tuple[Any, Any]:
    """Flights of a random half of the days, and flights of the other days.

    Flights of one day share the weather, so the independent units are days. Calibration has its own
    days.
    """
    days = flights["month"] * 100 + flights["day"]
    names = np.unique(days)
    chosen = names[RandomSource.of(0, "days of the demo").order(names.size)[: names.size // 2]]
    own = days.isin(chosen)
    return flights[own], flights[~own]


def replay(
    store: Path, calibrator: Any, months: dict[str, Any], n_reference: int
) -> "dict[str, MonitorSnapshot]":
    """Submit flights day by day, and each label a week later; take a snapshot after each month."""
    from calibrant.monitor import Monitor

    store.unlink(missing_ok=True)
    found = {}
    with Monitor(
        store,
        calibrator,
        maturity=MATURITY,
        unit="day",
        reference=n_reference,
        random_state=0,
    ) as monitor:
        for name, flights in months.items():
            _one_month(monitor, flights)
            found[name] = monitor.snapshot()
            state = "ALARM" if found[name].alarm else "no alarm"
            remark(f"{name}: {len(flights):,} flights, {state}")
    return found


def _one_month(monitor: Any, flights: Any) -> None:
    """Submit the flights of a month in time order: predictions on their day, labels a week later."""
    waiting: list[tuple[float, list[str], Any]] = []
    last = 0.0
    for (month, day), part in flights.groupby(["month", "day"]):
        date = np.datetime64(f"{_YEAR}-{month:02d}-{day:02d}")
        at = float((date - np.datetime64("1970-01-01")) / np.timedelta64(1, "D"))
        ids = [f"{date} {number}" for number in range(len(part))]
        while waiting and waiting[0][0] <= at:
            _hand_in(monitor, *waiting.pop(0))
        monitor.record_many(ids, part["score"].to_numpy(), np.full(len(ids), at))
        waiting.append((at + MATURITY, ids, part["outcome"].to_numpy()))
        last = at
    for known, ids, outcomes in waiting:
        _hand_in(monitor, known, ids, outcomes)
    monitor.advance(last + MATURITY + 1.0)


def _hand_in(monitor: Any, at: float, ids: list[str], outcomes: Any) -> None:
    monitor.resolve_many(ids, outcomes, np.full(len(ids), at))


def summary_of(found: "dict[str, MonitorSnapshot]") -> list[dict[str, Any]]:
    """One entry for each month."""
    return [
        {
            "month": name,
            "counted": snapshot.n_mature,
            "alarm": snapshot.alarm,
            "evidence": snapshot.verdicts[0].log_evidence,
            "epsilon": snapshot.epsilon,
        }
        for name, snapshot in found.items()
    ]


def calibrated_on(flights: Any) -> Any:
    """The monitored calibrator: bins, fitted to the flights of its own days."""
    from calibrant import BinningCalibrator

    return BinningCalibrator(15, pos_label=LATE).fit(flights["score"], flights["outcome"])
