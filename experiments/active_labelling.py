"""How many labels active labelling saves.

Rows come without labels, and each label has a cost. Passive sampling labels rows in the order in
which they come. Active labelling always asks for a row in the region with the widest interval. Both
stop as soon as every interval is within epsilon. Both guarantees hold, because the rule uses only
the past. The script prints the number of labels that each needed, on three distributions of scores,
and how often a guarantee was broken.

    python experiments/active_labelling.py                 # about two minutes
    python experiments/active_labelling.py --runs 20
"""

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import stats

from calibrant import OnlineCalibrator, Partition

ALPHA = 0.1
N_BINS = 10
BATCH = 10  # labels between two looks at the intervals
MIDDLES = (np.arange(N_BINS) + 0.5) / N_BINS
WORLDS = {
    "uniform scores": (np.full(N_BINS, 1 / N_BINS), MIDDLES),
    "skewed scores": (np.diff(stats.beta.cdf(np.arange(N_BINS + 1) / N_BINS, 1, 2)), MIDDLES),
    "rare events": (
        np.array([0.55, 0.2, 0.1, 0.05, 0.03, 0.02, 0.02, 0.01, 0.01, 0.01]),
        0.4 * MIDDLES**2,
    ),
}


def labels_needed(
    mass: np.ndarray, rates: np.ndarray, epsilon: float, active: bool, rng: np.random.Generator
) -> tuple[int, bool]:
    """Labels until every interval is within epsilon, and whether any interval missed the true rate
    at any time.
    """
    online = OnlineCalibrator(Partition.fixed_width(N_BINS), confidence_level=1 - ALPHA)
    online.partial_fit(MIDDLES, rng.uniform(size=N_BINS) < rates)
    broken = False
    while not online.enough(epsilon):
        asked = np.full(BATCH, online.next_region())
        region = asked if active else rng.choice(N_BINS, p=mass / mass.sum(), size=BATCH)
        online.partial_fit(MIDDLES[region], rng.uniform(size=BATCH) < rates[region])
        guarantee = online.guarantee_
        broken |= bool(((guarantee.lower > rates) | (guarantee.upper < rates)).any())
    return online.tally_.n_rows, broken


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    console = Console()
    title = (
        f"Labels until epsilon <= {arguments.epsilon:g} in all {N_BINS} bins, mean of"
        f" {arguments.runs} runs"
    )
    table = Table(title=title)
    for heading in (
        "distribution",
        "passive",
        "active",
        "saved",
        "passive broken",
        "active broken",
    ):
        table.add_column(heading, justify="left" if heading == "distribution" else "right")
    for name, (mass, rates) in WORLDS.items():
        rng = np.random.default_rng(arguments.seed)
        results = {
            active: [
                labels_needed(mass, rates, arguments.epsilon, active, rng)
                for _ in track(
                    range(arguments.runs), description=name, console=console, transient=True
                )
            ]
            for active in (False, True)
        }
        passive, active = (
            np.mean([labels for labels, _ in results[kind]]) for kind in (False, True)
        )
        broken = [
            f"{sum(flag for _, flag in results[kind])} of {arguments.runs}"
            for kind in (False, True)
        ]
        table.add_row(
            name, f"{passive:,.0f}", f"{active:,.0f}", f"{1 - active / passive:.0%}", *broken
        )
    console.print(table)


if __name__ == "__main__":
    main()
