"""How the width of intervals decreases with the number of rows, for ten bins at 90 % confidence.

Prints, for several rates, the half-width of each method for each n, its ratio to the half-width of
the exact interval, and the slope of the last step on a log-log scale. The paper's rate is -1/2.

    python experiments/interval_widths.py
"""

import numpy as np
from rich.console import Console
from rich.table import Table

from calibrant import Tally
from calibrant.intervals import METHODS

ALPHA = 0.1
N_BINS = 10
SIZES = (1_000, 10_000, 100_000, 1_000_000)
RATES = (0.5, 0.1, 0.01)


def half_widths(name: str, rate: float) -> list[float]:
    """Mean half-width when every bin holds its share of rows and of positives."""
    widths = []
    for n in SIZES:
        count = n // N_BINS
        tally = Tally.from_counts([count] * N_BINS, [round(rate * count)] * N_BINS)
        widths.append(float(METHODS[name](tally, ALPHA).radius.mean()))
    return widths


def main() -> None:
    console = Console()
    for rate in RATES:
        exact = half_widths("clopper-pearson", rate)
        table = Table(title=f"Half-width, rate {rate}, {N_BINS} bins")
        table.add_column("interval")
        for heading in (*(f"{n:,} rows" for n in SIZES), "slope"):
            table.add_column(heading, justify="right")
        for name in METHODS:
            widths = half_widths(name, rate)
            slope = np.log10(widths[-1] / widths[-2])
            cells = [
                f"{width:.4f} ({width / best:.2f}x)"
                for width, best in zip(widths, exact, strict=True)
            ]
            table.add_row(name, *cells, f"{slope:.2f}")
        console.print(table)


if __name__ == "__main__":
    main()
