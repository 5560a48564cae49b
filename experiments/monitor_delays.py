"""How many days the monitors of drift take to find a change that begins on the first day.

200 rows a day, 10 regions, level 0.05. `DriftMonitor` and `GuaranteeMonitor` alone, all tests under
one budget as in `calibrant.monitor.Monitor`, and, where it is installed, the monitor of probcal on
the same streams: with the true rates, which nobody knows, and with the rates that calibration has
estimated. The last cases have no change: alarms there are false.

    pip install probcal                        # optional
    python experiments/monitor_delays.py --runs 100
    python experiments/monitor_delays.py --runs 10 --days 60 --first-seed 5
"""

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import expit, logit

from calibrant import (
    BinningCalibrator,
    DriftMonitor,
    GuaranteeMonitor,
    Partition,
    ScoreDriftMonitor,
)

ALPHA = 0.05
SHARES = {"rates": 0.5, "guarantee": 0.3, "scores": 0.2}
"""Of one budget, where all tests run together."""
ROWS_A_DAY = 200
N_BINS = 10
BINS = Partition.fixed_width(N_BINS)
RATES = (np.arange(N_BINS) + 0.5) / N_BINS
CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logit + .2": lambda p: expit(logit(p) + 0.2),
    "logit + .1": lambda p: expit(logit(p) + 0.1),
    "rates x 1.1": lambda p: np.minimum(1.1 * p, 1.0),
    "one region + .1": lambda p: np.where((p > 0.2) & (p < 0.3), p + 0.1, p),
    "none": lambda p: p,
}
INSIDE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "order reversed inside regions": lambda s: (2.0 * np.floor(s * N_BINS) + 1.0) / N_BINS - s,
    "top 2% x 0.6": lambda s: np.where(s > 0.98, 0.6 * s, s),
}
"""Changes of a rate that is the score itself, most of which no region shows."""
CASES = (
    ("logit + .2", 10_000),
    ("rates x 1.1", 10_000),
    ("one region + .1", 10_000),
    ("logit + .1", 10_000),
    ("logit + .1", 100_000),
    ("order reversed inside regions", 10_000),
    ("top 2% x 0.6", 10_000),
    ("none", 2_000),
    ("none", 10_000),
)


def drawn(
    rng: np.random.Generator, n_rows: int, change: str, *, before: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels. The rate before the change is one number for each region, or the score."""
    scores = rng.uniform(size=n_rows)
    rates = scores if change in INSIDE else RATES[BINS.assign(scores)]
    if not before:
        rates = {**CHANGES, **INSIDE}[change](rates)
    return scores, (rng.uniform(size=n_rows) < rates).astype(int)


def of_probcal(forecast: np.ndarray) -> Callable[[np.ndarray, np.ndarray], bool]:
    """The monitor of probcal, with one forecast for each region."""
    from probcal.monitor import CalibrationMonitor

    monitor = CalibrationMonitor(alpha=ALPHA, plug_in_window=30, grades=tuple(range(N_BINS)))

    def update(scores: np.ndarray, labels: np.ndarray) -> bool:
        regions = BINS.assign(scores)
        return bool(monitor.update(labels, forecast[regions], grade=regions).alarm)

    return update


def first_alarms(
    change: str, n_rows: int, n_days: int, seed: int, *, with_probcal: bool
) -> dict[str, int]:
    """The day of the first alarm of each test, and of all of them together; n_days + 1 for none."""
    rng = np.random.default_rng((seed, n_rows))
    scores, labels = drawn(rng, n_rows, change, before=True)
    calibrator = BinningCalibrator(partition=BINS).fit(scores, labels)
    monitors: dict[str, Any] = {
        "rates": DriftMonitor(calibrator, random_state=seed),
        "guarantee": GuaranteeMonitor(calibrator),
        "scores": ScoreDriftMonitor(scores, random_state=seed),
    }
    theirs = {}
    if with_probcal:
        theirs["probcal, true rates"] = of_probcal(RATES)
        theirs["probcal, estimated rates"] = of_probcal(np.asarray(calibrator.predict(RATES)))
    names = ("rates", "guarantee", "all under one budget", *theirs)
    found = dict.fromkeys(names, n_days + 1)
    for day in range(1, n_days + 1):
        scores, labels = drawn(rng, ROWS_A_DAY, change, before=False)
        for name, monitor in monitors.items():
            monitor.update(scores) if name == "scores" else monitor.update(scores, labels)
        evidence = {name: monitor.log_evidence for name, monitor in monitors.items()}
        alarms = {name: evidence[name] >= -np.log(ALPHA) for name in ("rates", "guarantee")}
        shared = [evidence[name] >= -np.log(share * ALPHA) for name, share in SHARES.items()]
        alarms["all under one budget"] = any(shared)
        for name, update in theirs.items():
            alarms[name] = found[name] > n_days and update(scores, labels)
        for name, alarm in alarms.items():
            if alarm and found[name] > n_days:
                found[name] = day
        if max(found.values()) <= n_days:
            break
    return found


def show(
    console: Console, change: str, n_rows: int, n_days: int, days: dict[str, list[int]]
) -> None:
    """The days of one change."""
    runs = len(next(iter(days.values())))
    table = Table(title=f"change: {change}; {n_rows:,} calibration rows, {runs} runs")
    for column in ("test", "median day", "quartiles", f"alarm within {n_days} days"):
        table.add_column(column)
    for name, found in days.items():
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
        share = np.mean(np.array(found) <= n_days)
        table.add_row(name, f"{middle:.0f}", f"{low:.0f} to {high:.0f}", f"{share:.2f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100, help="of each change")
    parser.add_argument("--days", type=int, default=150)
    parser.add_argument("--first-seed", type=int, default=70_000)
    given = parser.parse_args()
    with_probcal = find_spec("probcal") is not None
    console = Console(width=110)
    for change, n_rows in CASES:
        days: dict[str, list[int]] = {}
        for run in range(given.runs):
            seed = given.first_seed + run
            for name, day in first_alarms(
                change, n_rows, given.days, seed, with_probcal=with_probcal
            ).items():
                days.setdefault(name, []).append(day)
        show(console, change, n_rows, given.days, days)


if __name__ == "__main__":
    main()
