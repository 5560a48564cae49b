"""A look after every label: how often the limits miss at any time, over streams of 100,000 labels.

For a confidence sequence the probability of any miss is at most alpha over all looks together. For
the exact interval of a fixed sample it is at most alpha for one look. The script shows that this
interval fails under repeated looks. It prints a table, and draws the share of misses against the
number of looks.

    python experiments/online_coverage.py                  # 2,000 runs for each rate: several
    minutes on one core python experiments/online_coverage.py --runs 50 --labels 5000
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import special, stats

from calibrant.limits.sequences.centred import log_evidence
from calibrant.sequences import SEQUENCES, CentredBetaBinomial

RATES = (0.5, 0.2, 0.05, 0.01)
NAIVE_RUNS = (
    200  # enough to show that the fixed-sample interval fails; its tails are slow to compute
)
ALPHA = 0.1


def first_misses(
    rate: float, runs: int, n_labels: int, seed: int, console: Console
) -> dict[str, np.ndarray]:
    """For each method and run, after how many labels the limits first miss the rate.

    N_labels + 1 for never.
    """
    rng = np.random.default_rng(seed)
    counts = np.arange(1, n_labels + 1)
    found = {name: np.full(runs, n_labels + 1) for name in SEQUENCES}
    found["fixed-sample"] = np.full(min(runs, NAIVE_RUNS), n_labels + 1)
    for run in track(range(runs), description=f"rate {rate}", console=console, transient=True):
        labels = (rng.uniform(size=n_labels) < rate).astype(np.uint8)
        misses = (
            {"fixed-sample": naive_misses(np.cumsum(labels), counts, rate)}
            if run < NAIVE_RUNS
            else {}
        )
        for name, kind in SEQUENCES.items():
            if (
                kind is CentredBetaBinomial
            ):  # the limits rule a rate out where the evidence does, which is quick
                hits = np.cumsum(labels).astype(float)
                rates = np.full(n_labels, rate)
                misses[name] = log_evidence(
                    hits, counts.astype(float), rates, 1.0 - rates
                ) >= -np.log(ALPHA)
                continue
            path = kind.path(labels, ALPHA)
            misses[name] = (path.lower > rate) | (path.upper < rate)
        for name, missed in misses.items():
            if missed.any():
                found[name][run] = int(missed.argmax()) + 1
    return found


def naive_misses(hits: np.ndarray, counts: np.ndarray, rate: float) -> np.ndarray:
    """Where the exact interval misses the rate: one of the two binomial tails is below alpha / 2."""
    at_most = special.bdtr(hits, counts, rate)
    at_least = np.where(hits > 0, special.bdtrc(np.maximum(hits - 1, 0), counts, rate), 1.0)
    return np.minimum(at_most, at_least) < ALPHA / 2


def draw(found: dict[str, np.ndarray], n_labels: int, target: Path) -> None:
    """Share of runs that have missed by now, against the number of labels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    looks = np.unique(np.geomspace(1, n_labels, 400).astype(int))
    styles = {
        "fixed-sample": ("#D55E00", "exact interval for one look, looked at every time"),
        "centred-beta-binomial": ("#0072B2", "the confidence sequence"),
    }
    for name, (colour, label) in styles.items():
        share = [(found[name] <= look).mean() for look in looks]
        axes.plot(looks, share, color=colour, label=label)
    axes.axhline(ALPHA, color="black", linewidth=0.8, linestyle=":", label=f"guaranteed: {ALPHA:g}")
    axes.set(xscale="log", ylim=(0, 1))
    axes.set(
        xlabel="labels so far, with a look after each", ylabel="share of streams that ever missed"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=Path("out/repeated-looks.png"))
    arguments = parser.parse_args()
    console = Console()
    title = (
        f"Share of {arguments.runs:,} streams whose limits ever missed in {arguments.labels:,}"
        f" looks, nominal {ALPHA}"
    )
    table = Table(title=title)
    for heading in ("method", *(f"rate {rate}" for rate in RATES), "not above alpha?"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    results = {
        rate: first_misses(rate, arguments.runs, arguments.labels, arguments.seed + number, console)
        for number, rate in enumerate(RATES)
    }
    for name in (*SEQUENCES, "fixed-sample"):
        runs = results[RATES[0]][name].size
        missed = [int((results[rate][name] <= arguments.labels).sum()) for rate in RATES]
        p_values = [
            stats.binomtest(count, runs, ALPHA, alternative="greater").pvalue for count in missed
        ]
        verdict = "yes" if min(p_values) > 0.01 / len(RATES) else f"no (p = {min(p_values):.1g})"
        table.add_row(name, *(f"{count / runs:.4f}" for count in missed), verdict)
    console.print(table)
    draw(results[RATES[0]], arguments.labels, arguments.picture)
    console.print(f"picture: {arguments.picture}")


if __name__ == "__main__":
    main()
