"""Epsilon of Calibrator over that of bins with the same regions and counts, on the real
sets of the study.

For each set and model: the mean over seeds of epsilon over that of exact binomial limits with equal
shares, and of the log loss on test rows over that of the same curve without pilot rows, which is
fitted to all rows.

    export CALIBRANT_DATA=...
    python experiments/curve_widths.py --cache FOLDER --first 100 --seeds 10
    python experiments/curve_widths.py --cache FOLDER --models logistic --seeds 2

Constants of the curve were chosen with seeds 0 to 4, so figures of other seeds are fairer.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import xlogy

from calibrant import Calibrator
from calibrant.guarantee.guarantee import Guarantee

ROOT = Path(__file__).resolve().parent.parent
MANY_ROWS = 1_000


def log_loss(values: np.ndarray, y: np.ndarray) -> float:
    """The mean log loss."""
    return -float((xlogy(y, values) + xlogy(1 - y, 1.0 - values)).mean())


def measured(scores: np.ndarray, y: np.ndarray, n_rows: int, seed: int) -> tuple[float, float]:
    """Epsilon over that of bins, and log loss over that without pilot rows."""
    order = np.random.default_rng(seed).permutation(scores.size)
    rows = order[:n_rows]
    test = order[n_rows:]
    model = Calibrator(random_state=seed).fit(scores[rows], y[rows], classes=(0, 1))
    other = Calibrator(pilot=None).fit(scores[rows], y[rows], classes=(0, 1))
    bins = Guarantee.from_tally(model.partition_, model.tally_)
    losses = [log_loss(one.predict(scores[test]), y[test]) for one in (model, other)]
    return model.guarantee_.epsilon / bins.epsilon, losses[0] / losses[1]


def main() -> None:
    """Measure, and print a table."""
    sys.path[:0] = [str(ROOT / "study"), str(ROOT / "tools")]
    from sets import SETS, scored

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--cache", type=Path, required=True, help="folder for the scores of the models"
    )
    parser.add_argument("--models", nargs="+", default=["logistic", "lightgbm"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    warnings.simplefilter("ignore")
    table = Table(
        title="epsilon over that of bins, log loss over that of a curve fitted to all rows"
    )
    for heading in ("set", "model", "rows", "epsilon", "log loss"):
        table.add_column(heading, justify="left" if heading in ("set", "model") else "right")
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for real in SETS:
        for name in options.models:
            data = scored(real, name, 0, options.cache)
            runs = [measured(data.scores, data.y, data.n, seed) for seed in seeds]
            epsilon, loss = np.mean(runs, axis=0).tolist()
            found[data.n >= MANY_ROWS].append((epsilon, loss))
            table.add_row(real.name, name, f"{data.n:,}", f"{epsilon:.3f}", f"{loss:.4f}")
    table.add_section()
    for many, title in ((True, "1,000 rows or more"), (False, "fewer")):
        if found[many]:
            middle = np.median(found[many], axis=0)
            worst = np.max(found[many], axis=0)
            table.add_row(f"{title}: median", "", "", *(f"{value:.4f}" for value in middle))
            table.add_row(f"{title}: largest", "", "", *(f"{value:.4f}" for value in worst))
    Console().print(table)


if __name__ == "__main__":
    main()
