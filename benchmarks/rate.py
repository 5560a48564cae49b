"""A rate from few labels and many verdicts: how often limits miss, and how wide they are.

calibrant is run beside ppi_py (PPI++) and truescore on the same items. Both rest on the central
limit theorem. They are no dependencies of the project. Install them beside calibrant and run this
in that environment:

    python -m venv peers
    peers/bin/pip install -e . ppi-python truescore
    peers/bin/python benchmarks/rate.py --draws 1000 --output docs/study/rate.csv

Peers that are not installed are left out. Of 4,000 items a known share is positive. A judge passes
positives with its sensitivity and fails negatives with its specificity. Items and verdicts are
fixed; in each draw n items are drawn at random and labelled. Limits at 95% miss if the share is
outside. The column "p" is the probability of at least so many misses if 5% is the truth.
"""

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom

from calibrant import rate

N_ITEMS = 4_000
ALPHA = 0.05
JUDGES = {
    "perfect": (1.0, 1.0),
    "very good": (0.98, 0.95),
    "good": (0.95, 0.90),
    "lenient": (0.98, 0.50),
    "fair": (0.90, 0.70),
    "poor": (0.70, 0.60),
    "useless": (0.50, 0.50),
}
RATES = (0.98, 0.90, 0.70)
LABELS = (50, 100, 200, 500)

Limits = tuple[float, float]


class Draw(NamedTuple):
    """Verdicts of all items, and the labels of those that were drawn."""

    verdicts: np.ndarray
    drawn: np.ndarray
    labels: np.ndarray

    @property
    def missing(self) -> np.ndarray:
        """Labels of all items, NaN where there is none."""
        y = np.full(self.verdicts.size, np.nan)
        y[self.drawn] = self.labels
        return y

    @property
    def unlabelled(self) -> np.ndarray:
        """Verdicts of items without a label."""
        return np.delete(self.verdicts, self.drawn)


def automatic(draw: Draw) -> Limits:
    found = rate(draw.missing, draw.verdicts, confidence_level=1 - ALPHA)
    return found.lower, found.upper


def labels_alone(draw: Draw) -> Limits:
    found = rate(draw.missing, draw.verdicts, confidence_level=1 - ALPHA, method="labels")
    return found.lower, found.upper


def bets(draw: Draw) -> Limits:
    found = rate(draw.missing, draw.verdicts, confidence_level=1 - ALPHA, method="bets")
    return found.lower, found.upper


def ppi(draw: Draw) -> Limits:
    from ppi_py import ppi_mean_ci

    verdicts = draw.verdicts.astype(float)
    low, high = ppi_mean_ci(
        draw.labels.astype(float), verdicts[draw.drawn], draw.unlabelled.astype(float), alpha=ALPHA
    )
    return float(np.squeeze(low)), float(np.squeeze(high))


def truescore(draw: Draw) -> Limits:
    from truescore import ppi_estimate

    found = ppi_estimate(draw.verdicts, draw.labels, draw.drawn, alpha=ALPHA)
    return float(found.low), float(found.high)


def methods(names: list[str]) -> dict[str, Callable[[Draw], Limits]]:
    found: dict[str, Callable[[Draw], Limits]] = {
        "auto": automatic,
        "labels": labels_alone,
        "bets": bets,
    }
    for name, function in {"ppi_py": ppi, "truescore": truescore}.items():
        if find_spec(name):
            found[name] = function
        else:
            print(f"{name} is not installed, and left out", file=sys.stderr)
    return {name: function for name, function in found.items() if not names or name in names}


def draws(
    share: float, judge: tuple[float, float], n_labels: int, count: int
) -> Iterator[tuple[Draw, float]]:
    rng = np.random.default_rng(
        [round(1000 * share), n_labels, *(round(1000 * part) for part in judge)]
    )
    n_positive = round(share * N_ITEMS)
    positive = (np.arange(N_ITEMS) < n_positive).astype(int)
    sensitivity, specificity = judge
    passed = round(sensitivity * n_positive)
    failed = round(specificity * (N_ITEMS - n_positive))
    verdicts = np.concatenate(
        [np.arange(n_positive) < passed, np.arange(N_ITEMS - n_positive) >= failed]
    ).astype(int)
    for _ in range(count):
        drawn = rng.choice(N_ITEMS, n_labels, replace=False)
        yield Draw(verdicts, drawn, positive[drawn]), positive.mean()


def cell(
    share: float, name: str, n_labels: int, count: int, wanted: dict[str, Callable[[Draw], Limits]]
) -> list[Any]:
    """One row for each method: how often it missed, on which side, and its mean width."""
    missed = {method: np.zeros(2, dtype=int) for method in wanted}
    widths: dict[str, list[float]] = {method: [] for method in wanted}
    for draw, truth in draws(share, JUDGES[name], n_labels, count):
        for method, limits_of in wanted.items():
            low, high = limits_of(draw)
            missed[method] += [low > truth + 1e-12, high < truth - 1e-12]
            widths[method].append(high - low)
    rows = []
    for method in wanted:
        total = int(missed[method].sum())
        chance = float(binom.sf(total - 1, count, ALPHA))
        width = float(np.mean(widths[method]))
        sides = (int(side) for side in missed[method])
        rows.append([share, name, n_labels, method, count, *sides, total / count, chance, width])
    return rows


def group_cells(count: int) -> Iterator[list[Any]]:
    """Ten answers to each of 400 questions, which are alike: whole questions are drawn and
    labelled.
    """
    questions = np.repeat(np.arange(N_ITEMS // 10), 10)
    rng = np.random.default_rng(7)
    easy = rng.permutation(N_ITEMS // 10) < 0.8 * (N_ITEMS // 10)
    positive = np.where(
        easy[questions], rng.random(N_ITEMS) < 0.95, rng.random(N_ITEMS) < 0.2
    ).astype(int)
    truth = positive.mean()
    for name, (sensitivity, specificity) in JUDGES.items():
        random = rng.random(N_ITEMS)
        verdicts = np.where(positive == 1, random < sensitivity, random >= specificity).astype(int)
        for n_groups in (20, 50, 100):
            missed = {"groups": 0, "rows": 0}
            widths: dict[str, list[float]] = {"groups": [], "rows": []}
            for seed in range(count):
                drawn = np.isin(questions, rng.choice(N_ITEMS // 10, n_groups, replace=False))
                y = np.where(drawn, positive, np.nan)
                for method, groups in (("groups", questions), ("rows", None)):
                    found = rate(
                        y, verdicts, groups=groups, confidence_level=1 - ALPHA, random_state=seed
                    )
                    missed[method] += not found.lower - 1e-12 <= truth <= found.upper + 1e-12
                    widths[method].append(found.upper - found.lower)
            for method in missed:
                share = missed[method] / count
                chance = float(binom.sf(missed[method] - 1, count, ALPHA))
                yield [
                    name,
                    10 * n_groups,
                    method,
                    count,
                    share,
                    chance,
                    float(np.mean(widths[method])),
                ]


def times() -> None:
    """Seconds for many items, by the clock of the process."""
    rng = np.random.default_rng(0)
    for n_items, n_labels, method in (
        (10**6, 1_000, "bets"),
        (10**5, 500, "exact"),
        (10**6, 1_000, "exact"),
    ):
        scores = rng.random(n_items)
        y = np.full(n_items, np.nan)
        drawn = rng.choice(n_items, n_labels, replace=False)
        y[drawn] = rng.random(n_labels) < scores[drawn]
        started = time.process_time()
        rate(y, scores, method=method)
        print(
            f"{method}: {n_items:,} items, {n_labels:,} labels:"
            f" {time.process_time() - started:.2f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--methods", nargs="*", default=[])
    parser.add_argument("--output", type=Path)
    parser.add_argument(
        "--groups", action="store_true", help="whole questions with ten answers each"
    )
    parser.add_argument("--time", action="store_true", help="running times only")
    options = parser.parse_args()
    if options.time:
        times()
        return
    if options.groups:
        heads = ["judge", "labels", "method", "draws", "missed", "p", "width"]
        found = list(group_cells(options.draws))
        for row in found:
            print(*row)
        write(options.output, heads, found)
        return
    heads = [
        "rate",
        "judge",
        "labels",
        "method",
        "draws",
        "too high",
        "too low",
        "missed",
        "p",
        "width",
    ]
    wanted = methods(options.methods)
    rows = []
    for share in RATES:
        for name in JUDGES:
            for n_labels in LABELS:
                started = time.perf_counter()
                found = cell(share, name, n_labels, options.draws, wanted)
                rows += found
                shown = ", ".join(f"{row[3]} {row[7]:.3f} / {row[9]:.4f}" for row in found)
                spent = time.perf_counter() - started
                print(f"{share} {name}, {n_labels} labels: {shown} ({spent:.0f} s)", flush=True)
    write(options.output, heads, rows)


def write(path: Path | None, heads: list[str], rows: list[Any]) -> None:
    """Rows as CSV, if a path is given."""
    if path is None:
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows(
            [f"{value:.5g}" if isinstance(value, float) else value for value in row] for row in rows
        )


if __name__ == "__main__":
    main()
