"""How many rows the smallest uniform-mass bin holds, compared with Theorem 5 of the paper.

The theorem: if the edges come from enough other rows, every bin holds at least n/2B - sqrt(n
ln(2B/alpha) / 2) of n rows. The script prints the bound and the observed counts, the number of rows
from which the bound is positive, the number of rows that must cut the bins so that every bin has
half its share of the population, and what happens for a constant score.

    python experiments/bin_counts.py                       # a few seconds
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

ALPHA = 0.1
SIZES = (1_000, 2_000, 10_000, 100_000)
CUTTING = (100, 174, 400, 1_940)


def smallest_counts(
    rng: np.random.Generator, n: int, n_cutting: int, n_bins: int, runs: int
) -> np.ndarray:
    """Rows in the smallest bin, for edges that are quantiles of other rows.

    Scores are uniform without loss.
    """
    return np.array(
        [rng.multinomial(n, mass).min() for mass in masses(rng, n_cutting, n_bins, runs)]
    )


def masses(rng: np.random.Generator, n_cutting: int, n_bins: int, runs: int) -> np.ndarray:
    """Probability of each bin between order statistics of uniform scores, shape (runs, n_bins)."""
    ranks = -(-np.arange(1, n_bins) * (n_cutting + 1) // n_bins)
    edges = np.sort(rng.uniform(size=(runs, n_cutting)), axis=1)[:, ranks - 1]
    return np.diff(edges, axis=1, prepend=0.0, append=1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5_000)
    parser.add_argument("--bins", type=int, default=10)
    arguments = parser.parse_args()
    console = Console()
    rng = np.random.default_rng(0)
    n_bins = arguments.bins
    log_term = np.log(2 * n_bins / ALPHA)
    table = Table(
        title=(
            f"Rows in the smallest of {n_bins} bins, edges from 1,940 other rows,"
            f" {arguments.runs:,} runs"
        )
    )
    for heading in (
        "n",
        "the theorem's bound",
        "5 % quantile",
        "mean",
        "without a split: floor(n/B) - 1",
    ):
        table.add_column(heading, justify="right")
    for n in SIZES:
        counts = smallest_counts(rng, n, 1_940, n_bins, arguments.runs)
        bound = n / (2 * n_bins) - np.sqrt(n * log_term / 2)
        shown = f"{bound:,.0f}" if bound > 0 else f"{bound:,.0f} (vacuous)"
        table.add_row(
            f"{n:,}",
            shown,
            f"{np.quantile(counts, 0.05):,.0f}",
            f"{counts.mean():,.0f}",
            f"{n // n_bins - 1:,}",
        )
    console.print(table)
    console.print(
        f"The bound is positive only for n > 2 B^2 ln(2B/alpha) = {2 * n_bins**2 * log_term:,.0f}."
    )
    table = Table(title="Some bin has less than half its share of the population")
    for heading in ("cutting rows", "happens in", f"allowed: alpha/2 = {ALPHA / 2:g}"):
        table.add_column(heading, justify="right")
    for n_cutting in CUTTING:
        failed = float(
            np.mean(
                masses(rng, n_cutting, n_bins, 4 * arguments.runs).min(axis=1) < 1 / (2 * n_bins)
            )
        )
        table.add_row(
            f"{n_cutting:,}", f"{failed:.4f}", "kept" if failed <= ALPHA / 2 else "broken"
        )
    console.print(table)
    needed = n_bins * log_term / (np.log(2) - 0.5)
    console.print(
        f"c B ln(2B/alpha) with c = 1/(ln 2 - 1/2) asks for {needed:,.0f}; 174 are enough for B"
        " = 10."
    )
    console.print(
        "A constant score puts all rows into one bin. The smallest bin then holds 0 rows, for"
        " every n."
    )


if __name__ == "__main__":
    main()
