"""Has a rate changed? The drift monitors of calibrant and probcal, on the same streams.

They test different hypotheses. probcal's null hypothesis is that labels are drawn with exactly the forecast
probabilities. Ours is that the rate of each region does not change. So each stream is run twice: with forecasts that
are exactly right before the change, and with forecasts calibrated on 2,000 labels, which are only estimates. The
script prints the share of false alarms before the change, and the delay in days of the alarms after it.

    pip install probcal                       # optional; without it only calibrant's column is printed
    python experiments/drift.py
    python experiments/drift.py --runs 10
"""

import argparse
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from calibrant import BinningCalibrator, DriftMonitor, Partition

ALPHA = 0.05
DAYS, CHANGE_DAY, ROWS_A_DAY = 300, 150, 100
N_BINS = 10
BINS = Partition.fixed_width(N_BINS)
CHANGES = {
    "nothing": np.zeros(N_BINS),
    "every rate up by 0.05": np.full(N_BINS, 0.05),
    "one rate up by 0.2": np.where(np.arange(N_BINS) == 3, 0.2, 0.0),
    "half up, half down by 0.1": np.where(np.arange(N_BINS) < N_BINS // 2, 0.1, -0.1),
}


def stream(change: np.ndarray, rng: np.random.Generator) -> Any:
    """Yield scores and labels day by day."""
    for day in range(DAYS):
        scores = rng.uniform(size=ROWS_A_DAY)
        region = BINS.assign(scores)
        rate = 0.1 + 0.8 * (region + 0.5) / N_BINS + (change[region] if day >= CHANGE_DAY else 0.0)
        yield scores, (rng.uniform(size=ROWS_A_DAY) < rate).astype(int)


def alarm_days(change: np.ndarray, calibrated: bool, seed: int) -> dict[str, int]:
    """Day of each monitor's alarm; DAYS for none."""
    rng = np.random.default_rng(seed)
    forecast = 0.1 + 0.8 * (np.arange(N_BINS) + 0.5) / N_BINS
    if calibrated:
        scores = rng.uniform(size=2000)
        labels = rng.uniform(size=2000) < forecast[BINS.assign(scores)]
        forecast = BinningCalibrator(partition=BINS).fit(scores, labels).guarantee_.value
    ours = DriftMonitor(BINS, confidence_level=1 - ALPHA)
    monitors: dict[str, Any] = {"calibrant": lambda s, y: ours.update(s, y).alarm}
    if find_spec("probcal"):
        from probcal.monitor import CalibrationMonitor

        theirs = CalibrationMonitor(alpha=ALPHA, plug_in_window=30, grades=tuple(range(N_BINS)))
        monitors["probcal"] = lambda s, y: theirs.update(y, forecast[BINS.assign(s)], grade=BINS.assign(s)).alarm
    days = dict.fromkeys(monitors, DAYS)
    for day, (scores, labels) in enumerate(stream(change, rng)):
        for name, update in monitors.items():
            if days[name] == DAYS and update(scores, labels):
                days[name] = day
    return days


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60)
    arguments = parser.parse_args()
    console = Console()
    days = f"{DAYS} days, {ROWS_A_DAY} labels a day; a change on day {CHANGE_DAY}"
    title = f"{arguments.runs} streams of {days}; alpha {ALPHA}"
    table = Table(title=title)
    for heading in ("change", "forecast", "monitor", "false alarms", "found", "median delay, days"):
        table.add_column(heading, justify="left" if heading in {"change", "forecast", "monitor"} else "right")
    for change, shift in CHANGES.items():
        for calibrated in (False, True):
            runs = [
                alarm_days(shift, calibrated, seed)
                for seed in track(range(arguments.runs), description=change, console=console, transient=True)
            ]
            for name in runs[0]:
                days = np.array([run[name] for run in runs])
                early = days < (DAYS if change == "nothing" else CHANGE_DAY)
                late = days[(days >= CHANGE_DAY) & (days < DAYS)] - CHANGE_DAY + 1
                found = "-" if change == "nothing" else f"{late.size / max(1, (~early).sum()):.0%}"
                delay = "-" if change == "nothing" or not late.size else f"{np.median(late):.0f}"
                forecast = "calibrated on 2,000" if calibrated else "exactly right"
                table.add_row(change, forecast, name, f"{early.mean():.0%}", found, delay)
    console.print(table)


if __name__ == "__main__":
    main()
