"""False alarms of the monitors of drift, over simulated deployments in which no rate changes.

The monitors are looked at after every day, with 200 rows on an ordinary day. A test alone raises a
false alarm if its evidence ever reaches 1 / alpha. All tests together share alpha as in
`calibrant.monitor.Monitor`. Both are read off the largest evidence of one run.

    python experiments/monitor_alarms.py --deployments 500 --days 300 --into alarms.jsonl
    python experiments/monitor_alarms.py --deployments 20 --days 60 --worlds plain bursts

With --into, each deployment is a line of the file, and a run that was stopped goes on where it was.
Several processes may share the work: --worlds.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import expit, logit
from scipy.stats import binomtest

from calibrant import (
    BinningCalibrator,
    Calibrator,
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
MATURITY = 30
CALIBRATION_ROWS = (2_000, 10_000)
FIRST_SEED = 90_000


@dataclass(frozen=True)
class World:
    """What a deployment is like. The rate of a region never changes, unless days differ at random.

    Attributes
    ----------
    moving : bool
        Whether the mix of scores moves, so that regions become rare and frequent again.
    bursts : bool
        Whether a random day in nine has up to ten times the rows.
    tiny : bool
        Whether most regions have few rows.
    tied : bool
        Whether scores have two digits.
    late : bool
        Whether labels come late: positives after 6 days on average, negatives after 20 to 40.
    own_bins : bool
        Whether calibration cuts the bins itself, at its quantiles.
    curve : bool
        Whether the calibrator is a curve.
    day_effect, weekday_effect : float
        Standard deviation of the log-odds between days, and between weekdays.
    """

    moving: bool = False
    bursts: bool = False
    tiny: bool = False
    tied: bool = False
    late: bool = False
    own_bins: bool = False
    curve: bool = False
    day_effect: float = 0.0
    weekday_effect: float = 0.0

    @property
    def rows_are_independent(self) -> bool:
        """Whether rows of one day have nothing in common."""
        return self.day_effect == 0.0 and self.weekday_effect == 0.0


WORLDS = {
    "plain": World(),
    "moving mix": World(moving=True),
    "bursts": World(bursts=True),
    "tiny regions": World(tiny=True),
    "tied scores": World(tied=True, own_bins=True),
    "late labels": World(late=True),
    "all of these": World(moving=True, bursts=True, tiny=True, tied=True, late=True),
    "curve": World(curve=True),
    "days differ": World(day_effect=0.2),
    "weekdays differ": World(day_effect=0.2, weekday_effect=0.3),
}


@dataclass
class Day:
    """The rows of a day, with the day on which each label is known."""

    scores: np.ndarray
    labels: np.ndarray
    known: np.ndarray


class Deployment:
    """Calibration and a stream of one world."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.world = world
        self.rng = rng
        self.weekdays = rng.normal(size=7) * world.weekday_effect

    def day(self, number: int, n_rows: int | None = None) -> Day:
        """The rows of a day; of calibration, for day -1."""
        world = self.world
        rng = self.rng
        if n_rows is None:
            bursts = world.bursts and rng.uniform() < 1.0 / 9.0
            n_rows = int(rng.integers(1, 10 * ROWS_A_DAY)) if bursts else ROWS_A_DAY
        power = (4.0 if world.tiny else 1.0) * (
            np.exp(np.sin(number / 20.0)) if world.moving else 1.0
        )
        scores = rng.uniform(size=n_rows) ** power
        if world.tied:
            scores = np.round(scores, 2)
        rates = scores if world.curve else RATES[BINS.assign(scores)]
        if not world.rows_are_independent and number >= 0:
            effect = world.day_effect * rng.normal() + self.weekdays[number % 7]
            rates = expit(logit(np.clip(rates, 1e-9, 1.0 - 1e-9)) + effect)
        labels = (rng.uniform(size=n_rows) < rates).astype(np.float64)
        waits = np.zeros(n_rows)
        if world.late:
            waits = np.where(
                labels == 1.0, rng.exponential(6.0, n_rows), rng.uniform(20.0, 40.0, n_rows)
            )
        return Day(scores, labels, number + waits)

    def calibrated(self, n_rows: int) -> tuple[Any, np.ndarray]:
        """A calibrator, and the scores that it was fitted to.

        Labels count as known at maturity, and others as negative.
        """
        rows = self.day(-1, n_rows)
        labels = np.where(rows.known + 1 > MATURITY, 0.0, rows.labels).astype(int)
        if self.world.curve:
            calibrator: Any = Calibrator(random_state=0)
        elif self.world.own_bins:
            calibrator = BinningCalibrator(n_bins=N_BINS, random_state=0)
        else:
            calibrator = BinningCalibrator(partition=BINS)
        return calibrator.fit(rows.scores, labels), rows.scores


def monitors_of(world: World, calibrator: Any, reference: np.ndarray, seed: int) -> dict[str, Any]:
    """The tests whose assumptions hold in a world; days, which see no regions, in three of them."""
    if world.weekday_effect:
        by_weekday = DriftMonitor(
            calibrator, unit="day", weekdays=True, maturity=MATURITY, random_state=seed
        )
        return {"days by weekday": by_weekday}
    found: dict[str, Any] = {}
    if not (world.moving or world.tiny or world.tied or world.late or world.curve):
        found["days"] = DriftMonitor(calibrator, unit="day", maturity=MATURITY, random_state=seed)
    if world.rows_are_independent:
        found["rates"] = DriftMonitor(calibrator, maturity=MATURITY, random_state=seed)
        found["guarantee"] = GuaranteeMonitor(calibrator, maturity=MATURITY)
        if not world.moving:
            found["scores"] = ScoreDriftMonitor(reference, random_state=seed)
    return found


def largest_evidence(world: World, n_rows: int, n_days: int, seed: int) -> dict[str, float]:
    """The largest logarithm of the evidence that each test ever has."""
    rng = np.random.default_rng((FIRST_SEED, seed, n_rows, list(WORLDS.values()).index(world)))
    deployment = Deployment(world, rng)
    calibrator, reference = deployment.calibrated(n_rows)
    monitors = monitors_of(world, calibrator, reference, seed)
    for number in range(n_days):
        rows = deployment.day(number)
        for name, monitor in monitors.items():
            if name == "scores":
                monitor.update(rows.scores)
            elif world.late:
                at = np.full(rows.scores.size, float(number))
                known = np.where(rows.known - number > MATURITY, np.nan, rows.labels)
                monitor.update(rows.scores, known, at=at)
            elif name.startswith("days"):
                monitor.update(
                    rows.scores, rows.labels, at=np.full(rows.scores.size, float(number))
                )
            else:
                monitor.update(rows.scores, rows.labels)
    return {name: monitor.summary().log_evidence for name, monitor in monitors.items()}


def runs(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All deployments: those of earlier runs, and new ones."""
    known = {}
    if given.into is not None and given.into.exists():
        lines = [json.loads(line) for line in given.into.read_text().splitlines()]
        known = {
            (line["world"], line["n_rows"], line["seed"], line["n_days"]): line for line in lines
        }
    for seed in range(given.deployments):
        for name in given.worlds:
            for n_rows in CALIBRATION_ROWS:
                key = (name, n_rows, seed, given.days)
                if key not in known:
                    largest = largest_evidence(WORLDS[name], n_rows, given.days, seed)
                    line = {
                        "world": name,
                        "n_rows": n_rows,
                        "seed": seed,
                        "n_days": given.days,
                        "largest": largest,
                    }
                    known[key] = line
                    if given.into is not None:
                        with given.into.open("a") as file:
                            file.write(json.dumps(line) + "\n")
                yield known[key]


def alarms_of(largest: dict[str, float]) -> dict[str, bool]:
    """Whether each test alone, and all of them under one budget, raise an alarm."""
    found = {name: value >= -np.log(ALPHA) for name, value in largest.items()}
    shared = [
        largest[name] >= -np.log(share * ALPHA) for name, share in SHARES.items() if name in largest
    ]
    if shared:
        found["all under one budget"] = any(shared)
    return found


def show(lines: list[dict[str, Any]], n_days: int) -> None:
    """False alarms of each test, in each world and in all of them."""
    total: dict[tuple[str, str, int], list[bool]] = {}
    for line in lines:
        for name, alarm in alarms_of(line["largest"]).items():
            for world in (line["world"], "every world"):
                total.setdefault((name, world, line["n_rows"]), []).append(alarm)
    table = Table(title=f"false alarms at {ALPHA} in {n_days} days")
    for column in (
        "test",
        "world",
        "calibration rows",
        "false alarms",
        "share",
        "p-value of more than alpha",
    ):
        table.add_column(column)
    for (name, world, n_rows), alarms in sorted(total.items()):
        p_value = binomtest(sum(alarms), len(alarms), ALPHA, alternative="greater").pvalue
        shown = (f"{sum(alarms)} of {len(alarms):,}", f"{np.mean(alarms):.3f}", f"{p_value:.2g}")
        table.add_row(name, world, f"{n_rows:,}", *shown)
    Console(width=120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--deployments", type=int, default=500, help="in each world, for each size of calibration"
    )
    parser.add_argument("--days", type=int, default=300)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--into", type=Path, help="file of JSON lines to keep results in")
    given = parser.parse_args()
    show(list(runs(given)), given.days)


if __name__ == "__main__":
    main()
