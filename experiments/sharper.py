"""Which method is narrower at the same confidence: candidates against the default, in four worlds.

Scores are uniform in 0 to 1, and the true rate at score s is s, s^2, 0.3 s^6 or constant. A contest
compares methods that make the same claim. For each world and number of rows the script prints the
size of the default's interval (the median over the runs), and how many times as large each
candidate's is. A candidate may become the default if it is smaller in most cells and nowhere more
than 3 % larger. Coverage is not measured here; the tests do that.

To enter a method, add it to a contest of `CONTESTS`, or add a contest: a method takes the scores
and labels of a sample and returns named sizes.

With --figures it prints what users pay for answers today, in rows and in width, with calibrant's
public functions alone and the same draws each time, so that two versions can be compared: labels for a
release gate, the width of a population's rate, the thresholds at which a model is shown to be useful,
the width under label shift, and ICI.

    python experiments/sharper.py                      # about a minute
    python experiments/sharper.py --runs 5 --most 10000
    python experiments/sharper.py --figures
"""

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from calibrant import (
    BinningCalibrator,
    LabelShiftCalibrator,
    Tally,
    net_benefit,
    plan_rate,
    rate,
    validation_table,
)
from calibrant.cells.entries import Entries
from calibrant.errors import WeakGuaranteeWarning
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits
from calibrant.limits.clopper_pearson import clopper_pearson
from calibrant.limits.kl import lower_mean

ALPHA = 0.1
N_BINS = 10
SIZES = (10**3, 10**4, 10**5, 10**6)
WORLDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "s": lambda s: s,
    "s^2": np.square,
    "0.3 s^6": lambda s: 0.3 * s**6,
    "constant 0.2": lambda s: np.full_like(s, 0.2),
}
LARGEST_LOSS = 1.03

Method = Callable[[np.ndarray, np.ndarray], dict[str, float]]


def bins(interval: str, scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """The sizes of the intervals of bins of equal mass: the largest radius, and the mean one."""
    fitted = BinningCalibrator(N_BINS, interval=interval).fit(scores, labels, classes=(0, 1))
    return {
        "epsilon": fitted.guarantee_.epsilon,
        "mean radius": float(fitted.guarantee_.radius.mean()),
    }


def brier(
    limits: Callable[[np.ndarray, float], tuple[float, float]],
    scores: np.ndarray,
    labels: np.ndarray,
) -> dict[str, float]:
    """The width of an interval for the expected Brier score."""
    lower, upper = limits((labels - scores) ** 2, ALPHA)
    return {"width": upper - lower}


def chernoff_bernstein(outcomes: np.ndarray, alpha: float) -> tuple[float, float]:
    """Limits for a mean: half of alpha for Chernoff's bound, half for that of Maurer and Pontil
    (2009, Theorem 4).
    """
    n = outcomes.size
    mean = float(outcomes.mean())
    log_term = math.log(8.0 / alpha)
    radius = math.sqrt(2.0 * float(outcomes.var(ddof=1)) * log_term / n) + 7.0 * log_term / (
        3.0 * (n - 1)
    )
    lower = lower_mean(mean, n, alpha / 4.0)
    upper = 1.0 - lower_mean(1.0 - mean, n, alpha / 4.0)
    return max(lower, mean - radius), min(upper, mean + radius)


def betting(outcomes: np.ndarray, alpha: float) -> tuple[float, float]:
    """Limits for a mean by bets on the outcomes, which come in a random order."""
    draws = Entries(np.zeros(outcomes.size, dtype=np.intp), outcomes, 1)
    units = BetUnits.of(draws, np.zeros(1), np.ones(1), np.random.default_rng(0))
    found = bet_limits(units, np.full(1, alpha / 2.0))
    return float(found.lower[0]), float(found.upper[0])


CONTESTS: dict[str, dict[str, Method]] = {
    "Brier score": {
        "Chernoff and Bernstein": partial(brier, chernoff_bernstein),
        "betting": partial(brier, betting),
    },
}
"""Methods by contest; the first of each contest is the one that the others are compared with."""


def sizes(
    methods: dict[str, Method], n_rows: int, runs: int
) -> dict[tuple[str, str], dict[str, float]]:
    """The median size of each method's interval, by world and measure."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for world, rate_at in WORLDS.items():
        rng = np.random.default_rng(n_rows)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in methods}
        for _ in range(runs):
            scores = rng.uniform(size=n_rows)
            labels = (rng.uniform(size=n_rows) < rate_at(scores)).astype(np.int64)
            for name, method in methods.items():
                found[name].append(method(scores, labels))
        for measure in found[next(iter(methods))][0]:
            cells[world, measure] = {
                name: float(np.median([one[measure] for one in results]))
                for name, results in found.items()
            }
    return cells


def verdict(ratios: list[float]) -> str:
    """Whether a candidate may become the default."""
    smaller = sum(ratio < 1.0 for ratio in ratios)
    adopted = 2 * smaller > len(ratios) and max(ratios) <= LARGEST_LOSS
    return f"{smaller} of {len(ratios)}, at most {max(ratios):.3f}: {'yes' if adopted else 'no'}"


def figures() -> None:
    """Rows and widths that users pay, one table for each question."""
    titles = {
        "Labels to show a rate of at least 95% (expected 98%, 10,000 items)": gate_labels,
        "Width of the population's rate, over Clopper-Pearson on the labels alone": population_widths,
        "Thresholds of 99 at which a calibrated model is shown to be useful": useful_thresholds,
        "Width after label shift, over that with known shares of positives": label_shift_widths,
        "ICI of a calibrated score: mean value, and mean limits": calibration_indices,
    }
    for title, found in titles.items():
        table = Table(title=title, show_header=False)
        for setting, figure in found():
            table.add_row(setting, figure)
        Console().print(table)


Figures = Iterator[tuple[str, str]]


def gate_labels() -> Figures:
    """Labels that a release gate needs, without and with a judge."""
    yield "no label negative", str(plan_rate(at_least=0.95).fewest_labels)
    asked = {"at_least": 0.95, "expected_rate": 0.98, "n_items": 10_000}
    for setting, judge in (
        ("without a judge", {}),
        ("with a judge", {"sensitivity": 0.98, "specificity": 0.9}),
        ("with a stricter judge", {"sensitivity": 0.97, "specificity": 0.95}),
    ):
        yield setting, str(plan_rate(**asked, **judge).n_labels)


def population_widths(draws: int = 7) -> Figures:
    """Nine settings: three judges, and three numbers of labels on 4,000 items."""
    for share, sensitivity, specificity in (
        (0.98, 0.98, 0.5),
        (0.95, 0.98, 0.9),
        (0.8, 0.97, 0.95),
    ):
        for n_labels in (100, 200, 500):
            ratios = []
            for seed in range(draws):
                rng = np.random.default_rng([45, seed])
                good = rng.random(4_000) < share
                right = rng.random(4_000) < np.where(good, sensitivity, specificity)
                y = np.full(4_000, np.nan)
                drawn = rng.choice(4_000, n_labels, replace=False)
                y[drawn] = good[drawn]
                found = rate(y, np.where(right, good, ~good), target="population")
                limits = clopper_pearson(Tally.from_counts([n_labels], [good[drawn].sum()]), 0.05)
                ratios.append(
                    (found.upper - found.lower) / float(limits.upper[0] - limits.lower[0])
                )
            setting = f"rate {share}, sensitivity {sensitivity}, specificity {specificity}"
            yield f"{setting}, {n_labels} labels", f"{np.median(ratios):.3f}"


def useful_thresholds(draws: int = 9) -> Figures:
    """Uniform scores that are the rates."""
    for n_rows in (500, 2_000, 10_000):
        counts = []
        for seed in range(draws):
            rng = np.random.default_rng([46, seed])
            scores = rng.random(n_rows)
            counts.append(net_benefit(rng.random(n_rows) < scores, scores).useful("model").sum())
        yield f"{n_rows:,} rows", f"{np.median(counts):.0f}"


def label_shift_widths(draws: int = 5) -> Figures:
    """Normal scores in ten bins: both shares unknown, over both known to be what is estimated."""
    for n, m, here, there, distance in (
        (2_000, 2_000, 0.3, 0.6, 1.5),
        (20_000, 20_000, 0.2, 0.5, 2.0),
        (20_000, 20_000, 0.2, 0.5, 1.0),
        (5_000, 5_000, 0.3, 0.1, 1.5),
        (20_000, 5_000, 0.2, 0.5, 1.5),
        (5_000, 50_000, 0.1, 0.3, 1.5),
    ):
        ratios = []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            y = rng.random(n) < here
            scores = rng.normal(distance * y)
            moved = rng.normal(distance * (rng.random(m) < there))
            found = LabelShiftCalibrator(n_bins=10).fit(scores, y, target_scores=moved)
            known = LabelShiftCalibrator(n_bins=10).fit(
                scores,
                y,
                target_prior=found.target_prior_.value,
                source_prior=float(y.mean()),
            )
            widths = [
                float(np.mean(one.guarantee_.upper - one.guarantee_.lower))
                for one in (found, known)
            ]
            ratios.append(widths[0] / widths[1])
        setting = f"{n:,} rows, {m:,} of the target, positives {here} to {there}"
        yield f"{setting}, means {distance} apart", f"{np.mean(ratios):.2f}"


def calibration_indices(draws: int = 20) -> Figures:
    """Uniform scores that are the rates: the truth is 0."""
    for n_rows in (500, 1_000):
        found = []
        for seed in range(draws):
            rng = np.random.default_rng([47, seed])
            scores = rng.random(n_rows)
            table = validation_table(rng.random(n_rows) < scores, scores, n_draws=19)
            found.append([getattr(table["ICI"], name) for name in ("value", "lower", "upper")])
        value, lower, upper = np.nanmean(found, axis=0)
        yield f"{n_rows:,} rows", f"{value:.4f} ({lower:.3f} to {upper:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest number of rows")
    parser.add_argument("--contest", choices=CONTESTS, action="append", help="only this contest")
    parser.add_argument("--figures", action="store_true", help="what users pay today")
    arguments = parser.parse_args()
    if arguments.figures:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakGuaranteeWarning)
            figures()
        return
    for title in arguments.contest or CONTESTS:
        default, *candidates = methods = CONTESTS[title]
        table = Table(
            title=f"{title}: {N_BINS} bins, alpha {ALPHA:g}, median of {arguments.runs} runs"
        )
        for heading in ("rate", "rows", "measure", default, *candidates):
            table.add_column(heading, justify="left" if heading in {"rate", "measure"} else "right")
        ratios: dict[str, list[float]] = {name: [] for name in candidates}
        for n_rows in (size for size in SIZES if size <= arguments.most):
            for (world, measure), found in sizes(methods, n_rows, arguments.runs).items():
                for name in candidates:
                    ratios[name].append(found[name] / found[default])
                row = [f"{ratios[name][-1]:.3f}" for name in candidates]
                table.add_row(world, f"{n_rows:,}", measure, f"{found[default]:.5f}", *row)
        table.add_section()
        table.add_row(
            "smaller",
            "",
            "largest ratio: adopt?",
            "",
            *(verdict(ratios[name]) for name in candidates),
        )
        Console().print(table)


if __name__ == "__main__":
    main()
