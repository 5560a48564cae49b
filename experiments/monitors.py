"""False alarms of the monitors of drift, and how long they take to find a change.

False alarms are counted over simulated deployments in which nothing changes: calibration on 2,000
and 10,000 rows, a mix of regions that moves, bursts, tiny regions, tied scores, and labels that
come late by class. The monitors are looked at after every day. Delays are days until the alarm, for
changes that begin on the first day.

    pip install probcal                        # optional; it is run on the same streams
    python experiments/monitors.py --deployments 500 --days 300
    python experiments/monitors.py --deployments 20 --days 60
"""

import argparse
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
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
LATE = 30
CHANGES = {
    "logit + .2": lambda p: expit(logit(p) + 0.2),
    "logit + .1": lambda p: expit(logit(p) + 0.1),
    "rates x 1.1": lambda p: np.minimum(1.1 * p, 1.0),
    "one region + .1": lambda p: np.where((p > 0.2) & (p < 0.3), p + 0.1, p),
}
WORLDS = ("plain", "moving mix", "bursts", "tiny regions", "tied scores", "late labels")


class World:
    """Scores and labels of one deployment; the rate of a region is that of its middle."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        self.name = name
        self.rng = rng
        self.rates = (np.arange(N_BINS) + 0.5) / N_BINS

    def scores(self, n_rows: int, day: int = -1) -> np.ndarray:
        """Scores of a day; of calibration, for day -1."""
        scores = self.rng.uniform(size=n_rows)
        if self.name == "tiny regions":
            scores = scores**4
        if self.name == "moving mix" and day >= 0:
            scores = scores ** np.exp(np.sin(day / 20.0))
        if self.name == "tied scores":
            scores = np.round(scores, 2)
        return np.asarray(scores)

    def labels(self, scores: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Labels as known at the age of maturity: NaN where they are not, more often for positives."""
        labels = (self.rng.uniform(size=scores.size) < rates[BINS.assign(scores)]).astype(float)
        if self.name == "late labels":
            never = np.where(labels == 1, 0.15, 0.05)
            labels[self.rng.uniform(size=labels.size) < never] = np.nan
        return labels

    def rows(self, day: int) -> int:
        """How many rows a day has."""
        return (
            int(self.rng.integers(1, 10 * ROWS_A_DAY))
            if self.name == "bursts" and day % 9 == 0
            else ROWS_A_DAY
        )

    def calibration(self, n_rows: int) -> tuple[BinningCalibrator, np.ndarray]:
        """A calibrator, and the scores that it was fitted to.

        Labels that are not known count as negative.
        """
        scores = self.scores(n_rows)
        own = (
            BinningCalibrator(n_bins=N_BINS)
            if self.name == "tied scores"
            else BinningCalibrator(partition=BINS)
        )
        return own.fit(scores, np.nan_to_num(self.labels(scores, self.rates)).astype(int)), scores


def monitors_of(
    calibrator: BinningCalibrator, scores: np.ndarray, alpha: float, together: bool
) -> dict[str, Any]:
    """Each test alone at alpha, or all of them under one budget."""
    level = {name: 1 - alpha * (share if together else 1.0) for name, share in SHARES.items()}
    return {
        "rates": DriftMonitor(calibrator, confidence_level=level["rates"], maturity=LATE),
        "guarantee": GuaranteeMonitor(
            calibrator, confidence_level=level["guarantee"], maturity=LATE
        ),
        "scores": ScoreDriftMonitor(scores, confidence_level=level["scores"]),
    }


def days_of(
    world: World, rates: np.ndarray, n_days: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for day in range(n_days):
        scores = world.scores(world.rows(day), day)
        yield scores, world.labels(scores, rates)


def first_alarms(
    world: World, rates: np.ndarray, n_rows: int, n_days: int, together: bool
) -> dict[str, int]:
    """The day of each test's first alarm; n_days + 1 for none."""
    calibrator, reference = world.calibration(n_rows)
    monitors = monitors_of(calibrator, reference, ALPHA, together)
    found = dict.fromkeys(monitors, n_days + 1)
    theirs = probcal_monitors(calibrator, world.rates)
    found |= dict.fromkeys(theirs, n_days + 1)
    for day, (scores, labels) in enumerate(days_of(world, rates, n_days), 1):
        for name, monitor in monitors.items():
            if found[name] > n_days:
                alarm = (
                    monitor.update(scores).alarm
                    if name == "scores"
                    else monitor.update(scores, labels).alarm
                )
                found[name] = day if alarm else found[name]
        for name, update in theirs.items():
            if found[name] > n_days and update(scores, labels):
                found[name] = day
    if world.name == "moving mix":
        del found["scores"]  # its scores do change
    return found


def probcal_monitors(calibrator: BinningCalibrator, rates: np.ndarray) -> dict[str, Any]:
    """The monitor of probcal, with the true rates and with those that calibration has estimated."""
    if not find_spec("probcal"):
        return {}
    from probcal.monitor import CalibrationMonitor

    def with_rates(forecast: np.ndarray) -> Any:
        theirs = CalibrationMonitor(alpha=ALPHA, plug_in_window=30, grades=tuple(range(N_BINS)))
        return lambda s, y: theirs.update(y, forecast[BINS.assign(s)], grade=BINS.assign(s)).alarm

    estimated = np.array(
        [calibrator.predict([middle])[0] for middle in (np.arange(N_BINS) + 0.5) / N_BINS]
    )
    return {
        "probcal, true rates": with_rates(rates),
        "probcal, estimated rates": with_rates(estimated),
    }


def show(
    console: Console, title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]
) -> None:
    table = Table(title=title)
    for name in columns:
        table.add_column(name)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def false_alarms(console: Console, n_runs: int, n_days: int) -> None:
    rows = []
    each = max(1, n_runs // len(WORLDS))
    for n_rows in (2000, 10_000):
        total: dict[str, list[bool]] = {}
        for name in WORLDS:
            for run in track(
                range(each), description=f"{name}, {n_rows:,}", console=console, transient=True
            ):
                world = World(name, np.random.default_rng((run, n_rows, WORLDS.index(name))))
                for together in (False, True):
                    days = first_alarms(world, world.rates, n_rows, n_days, together)
                    ours = {key: day <= n_days for key, day in days.items()}
                    found = (
                        {"all under one budget": any(ours[k] for k in ours if k in SHARES)}
                        if together
                        else ours
                    )
                    for key, alarm in found.items():
                        total.setdefault(key, []).append(alarm)
        for key, alarms in total.items():
            rows.append(
                (f"{n_rows:,}", key, f"{sum(alarms)} of {len(alarms)}", f"{np.mean(alarms):.3f}")
            )
    title = (
        f"false alarms at {ALPHA} in {n_days} days, {each} deployments in each of {len(WORLDS)}"
        " worlds"
    )
    show(console, title, ("calibration rows", "test", "false alarms", "share"), rows)


def delays(console: Console, n_runs: int, n_days: int) -> None:
    rows = []
    cases = [(name, 10_000) for name in CHANGES] + [("logit + .1", 100_000)]
    for name, n_rows in cases:
        alone: dict[str, list[int]] = {}
        for run in track(
            range(n_runs), description=f"{name}, {n_rows:,}", console=console, transient=True
        ):
            for together in (False, True):
                world = World("plain", np.random.default_rng((run, n_rows)))
                days = first_alarms(world, CHANGES[name](world.rates), n_rows, n_days, together)
                if together:
                    days = {"all under one budget": min(days[key] for key in SHARES)}
                for key, day in days.items():
                    alone.setdefault(key, []).append(day)
        for key, found in alone.items():
            if key == "scores":
                continue
            share = np.mean(np.array(found) <= n_days)
            rows.append((name, f"{n_rows:,}", key, f"{np.median(found):.0f}", f"{share:.2f}"))
    title = (
        f"days until the alarm, {ROWS_A_DAY} rows a day, {N_BINS} regions, level {ALPHA}, {n_runs}"
        " runs"
    )
    show(
        console,
        title,
        ("change", "calibration rows", "test", "median day", f"found in {n_days} days"),
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deployments", type=int, default=500)
    parser.add_argument("--days", type=int, default=300)
    parser.add_argument("--runs", type=int, default=60, help="of each change")
    arguments = parser.parse_args()
    console = Console()
    delays(console, arguments.runs, 150)
    false_alarms(console, arguments.deployments, arguments.days)


if __name__ == "__main__":
    main()
