"""How the pages of the study quote numbers: tables, shares with their limits, rounded outwards."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import beta

RESULTS = Path(__file__).parents[1] / "docs" / "study"
OURS = ["calibrant", "calibrant binning"]
NOMINAL = 0.1


def at_least(value: float) -> str:
    """A lower limit, rounded down."""
    return f"{np.floor(100 * value) / 100:.2f}"


def markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *lines))


def share(hits: int, trials: int) -> tuple[float, float, float]:
    """A share and its exact 95% limits."""
    low = beta.ppf(0.025, hits, trials - hits + 1) if hits else 0.0
    high = beta.isf(0.025, hits + 1, trials - hits) if hits < trials else 1.0
    return hits / trials, low, high


def shown(hits: float, trials: float) -> list[str]:
    """How often something was seen, its share, and the limits of the share."""
    rate, low, high = share(int(hits), int(trials))
    limits = (  # rounded outwards
        f"{np.floor(1000 * low) / 10:.1f}% to {np.ceil(1000 * high) / 10:.1f}%"
    )
    return [f"{int(hits):,} of {int(trials):,}", f"{rate:.1%}", limits]


def read(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / f"{name}.csv")
