"""Intervals under covariate shift on the paper's example: coverage, width, and how width decreases
with n.

First, 7,840 calibration rows, as in the paper, are drawn many times with known weights. The script
prints, for each method, the share of draws in which the intervals of all bins hold at once, and the
mean half-width. Then it prints half-widths for growing numbers of rows. The population is a finite
pool scored by the paper's forest, so the truth is known exactly.

    python experiments/shift_intervals.py                  # 1,000 draws, about a minute
    python experiments/shift_intervals.py --draws 100
"""

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import stats
from shift_world import N_BINS, ROWS, WEIGHT_BOUND, scored_pool

from calibrant import Tally
from calibrant.cells.tally import WeightSums
from calibrant.limits.shift.paper import why_vacuous
from calibrant.partition import ScorePartition
from calibrant.shift import SHIFT_METHODS, Entries, Evidence, oracle, paper

ALPHA = 0.1
POOL = 300_000
SIZES = (1_000, 7_840, 50_000, 200_000)
METHODS = {**SHIFT_METHODS, "oracle": oracle, "paper": paper}
ROUNDING = 1e-12  # of the truth itself, a ratio of sums over the pool


class World:
    """A pool, its bins, the true target rate of each and its relative mass."""

    def __init__(self, seed: int = 0, n: int = POOL) -> None:
        scores, self.weight, self.rate, cutting = scored_pool(seed, n)
        self.bins = ScorePartition.from_other_scores(cutting, N_BINS)
        self.region = self.bins.assign(scores)
        mass, weight, hits = (
            np.bincount(self.region, values, self.bins.n_regions)
            for values in (np.ones(n), self.weight, self.weight * self.rate)
        )
        self.truth = hits / weight
        self.relative_mass = mass / weight

    def draw(self, rng: np.random.Generator, n: int) -> Evidence:
        """Rows drawn with replacement, their weights known."""
        at = rng.integers(len(self.rate), size=n)
        codes = (rng.uniform(size=n) < self.rate[at]).astype(np.uint8)
        region = self.region[at]
        weight = self.weight[at]
        plain = np.bincount(region, minlength=self.bins.n_regions)
        hits = np.bincount(region, codes, self.bins.n_regions).astype(np.int64)
        sums = WeightSums.of(weight, region, codes, self.bins.n_regions)
        tally = Tally(plain, hits, 0, None, sums)
        rows = Entries(region, codes, self.bins.n_regions, weight)
        return Evidence(tally, WEIGHT_BOUND, 0.0, self.relative_mass, rows)


def coverage(world: World, draws: int, console: Console) -> dict[str, tuple[int, float]]:
    """How many draws all intervals held in, and the mean half-width, of each method."""
    rng = np.random.default_rng(1)
    held = dict.fromkeys(METHODS, 0)
    widths = {name: [] for name in METHODS}
    for _ in track(range(draws), "Drawing", console=console):
        evidence = world.draw(rng, ROWS["calibrate"])
        for name, method in METHODS.items():
            interval = method(evidence, ALPHA)
            inside = (interval.lower <= world.truth + ROUNDING) & (
                world.truth - ROUNDING <= interval.upper
            )
            held[name] += bool(inside.all())
            widths[name].append(interval.radius.mean())
    return {name: (held[name], float(np.mean(widths[name]))) for name in METHODS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1_000)
    arguments = parser.parse_args()
    console = Console()
    world = World()
    found = coverage(world, arguments.draws, console)
    table = Table(
        title=(
            f"n = {ROWS['calibrate']:,}, U = 8, B = {world.bins.n_regions}, {arguments.draws:,}"
            " draws"
        )
    )
    for heading in (
        "interval",
        "all bins hold",
        "at least 0.9?",
        "mean half-width",
        "oracle is wider by",
    ):
        table.add_column(heading, justify="left" if heading == "interval" else "right")
    for name, (held, width) in found.items():
        p_value = stats.binomtest(held, arguments.draws, 1 - ALPHA, alternative="less").pvalue
        verdict = "yes" if held >= (1 - ALPHA) * arguments.draws else f"p = {p_value:.2g}"
        table.add_row(
            name,
            f"{held / arguments.draws:.3f}",
            verdict,
            f"{width:.4f}",
            f"{found['oracle'][1] / width:.2f} times",
        )
    console.print(table)
    console.print(f"'paper' is {why_vacuous(world.draw(np.random.default_rng(2), 7_840), ALPHA)}")
    table = Table(title="Mean half-width against the number of rows")
    for heading in ("interval", *(f"{size:,}" for size in SIZES), "slope at the end"):
        table.add_column(heading, justify="left" if heading == "interval" else "right")
    rng = np.random.default_rng(3)
    evidence = [world.draw(rng, size) for size in SIZES]
    for name, method in METHODS.items():
        widths = [float(method(one, ALPHA).radius.mean()) for one in evidence]
        slope = np.log(widths[-1] / widths[-2]) / np.log(SIZES[-1] / SIZES[-2])
        table.add_row(name, *(f"{width:.4f}" for width in widths), f"{slope:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
