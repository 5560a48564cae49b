"""The cost of looking at any time: half-widths for a stream, compared with those for one look at a
fixed sample.

The paper says that "only a small price is paid for not knowing beforehand how many examples will be
used". The script prints the half-width of one of ten regions with equal counts: for the paper's
bounds in both settings, and for calibrant's defaults.

    python experiments/online_against_batch.py
"""

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

from calibrant import Tally
from calibrant.intervals import get_method
from calibrant.sequences import get_sequence

N_REGIONS = 10
ALPHA = 0.1
RATES = (0.5, 0.05)
COUNTS = (100, 1_000, 10_000, 100_000, 1_000_000)


def half_widths(count: int, rate: float, seed: int) -> dict[str, float]:
    """Half-width of the first of ten regions, for labels of which exactly the given share is
    positive.
    """
    labels = np.zeros(count, dtype=np.uint8)
    labels[: round(rate * count)] = 1
    np.random.default_rng(seed).shuffle(labels)
    tally = Tally.from_counts([count] * N_REGIONS, [int(labels.sum())] * N_REGIONS)
    widths = {}
    for name in ("empirical-bernstein", "clopper-pearson"):
        widths[name] = float(get_method(name)(tally, ALPHA).radius[0])
    for name in ("paper", "centred-beta-binomial"):
        sequence = get_sequence(name)(N_REGIONS, ALPHA)
        sequence.update(np.zeros(count, dtype=np.intp), labels)
        widths[name] = float(sequence.limits().radius[0])
    return widths


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    console = Console()
    for rate in RATES:
        table = Table(title=f"Half-width of one of {N_REGIONS} regions, rate {rate}, alpha {ALPHA}")
        headings = (
            "labels",
            "paper, one look",
            "paper, stream",
            "price",
            "ours, one look",
            "ours, stream",
            "price",
        )
        for heading in headings:
            table.add_column(heading, justify="right")
        for count in COUNTS:
            width = half_widths(count, rate, seed)
            batch = width["empirical-bernstein"]
            stream = width["paper"]
            exact = width["clopper-pearson"]
            mixture = width["centred-beta-binomial"]
            row = (f"{batch:.4f}", f"{stream:.4f}", f"{stream / batch:.2f}x")
            ours = (f"{exact:.4f}", f"{mixture:.4f}", f"{mixture / exact:.2f}x")
            table.add_row(f"{count:,}", *row, *ours)
        console.print(table)


if __name__ == "__main__":
    main()
