"""The rule that takes the first threshold that passes, from the loose end: how often its guarantee
is false.

A guardrail acts on rows with score >= threshold. A common rule tests thresholds of a grid one by
one, each at the full level, beginning with the loosest, which acts most, and takes the first that
passes. Each test is exact. But the rule goes on after a failure, so that it has many tries, and the
first lucky one wins. A proof needs the other direction: begin where the target surely holds, and
stop at the first failure (`calibrant.threshold`).

    python benchmarks/loose_end.py --draws 1000

The truth is known in each world: the guarantee is false if the true precision at the threshold is
below the target. With 90% confidence a tenth of the draws may be false; the column "p" is the
probability of at least so many if a tenth is the truth.
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import binom

from calibrant import threshold

TARGET = 0.9
ALPHA = 0.1
FINE = (np.arange(100_000) + 0.5) / 100_000
WORLDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "the score says nothing": lambda s: np.full(s.size, 0.895),
    "just below, then high": lambda s: np.where(s > 0.95, 0.97, 0.892),
    "falls at the top": lambda s: np.where(s > 0.8, 0.88, 0.897),
    "rate = score": lambda s: np.minimum(1.05 * s, 1.0),
}
Rule = Callable[[np.ndarray, np.ndarray, int], float | None]


def true_precision(rate: Callable[[np.ndarray], np.ndarray], cut: float) -> float:
    """The share of positives among rows at or above a threshold; scores are uniform."""
    above = cut <= FINE
    return float(rate(FINE[above]).mean()) if above.any() else 1.0


def loose_end(n_grid: int) -> Rule:
    """The first threshold of a grid that passes, from the lowest on."""
    grid = np.linspace(0.0, 1.0, n_grid, endpoint=False)

    def find(y: np.ndarray, scores: np.ndarray, seed: int) -> float | None:
        for cut in grid.tolist():
            above = scores >= cut
            rows = int(above.sum())
            positives = int(y[above].sum())
            if rows and binom.sf(positives - 1, rows, TARGET) <= ALPHA:
                return cut
        return None

    return find


def proved(y: np.ndarray, scores: np.ndarray, seed: int) -> float | None:
    return threshold(
        y, scores, precision=TARGET, confidence_level=1 - ALPHA, random_state=seed
    ).threshold


RULES: dict[str, Rule] = {
    "first pass, 20 thresholds": loose_end(20),
    "first pass, 100 thresholds": loose_end(100),
    "calibrant.threshold": proved,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="*", default=[500, 2_000])
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = []
    print(f"{'world':24s}{'rows':>7s}  {'rule':28s}{'false':>8s}{'p':>10s}{'selected':>10s}")
    for name, rate in WORLDS.items():
        for rows in options.rows:
            for rule, find in RULES.items():
                false = 0
                selected = 0.0
                for seed in range(options.draws):
                    rng = np.random.default_rng([rows, seed])
                    scores = rng.uniform(size=rows)
                    y = (rng.uniform(size=rows) < rate(scores)).astype(int)
                    cut = find(y, scores, seed)
                    false += cut is not None and true_precision(rate, cut) < TARGET
                    selected += 0.0 if cut is None else 1.0 - cut
                chance = binom.sf(false - 1, options.draws, ALPHA)
                share = false / options.draws
                mean = selected / options.draws
                found.append(
                    [name, rows, rule, options.draws, share, f"{chance:.3g}", f"{mean:.4f}"]
                )
                print(
                    f"{name:24s}{rows:7d}  {rule:28s}{share:8.3f}{chance:10.2g}{mean:10.3f}",
                    flush=True,
                )
    if options.output is not None:
        with options.output.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["world", "rows", "rule", "draws", "false", "p", "selected"])
            writer.writerows(found)


if __name__ == "__main__":
    main()
