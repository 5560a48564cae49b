"""Which method is narrower at the same confidence: candidates against the default, in four worlds.

Scores are uniform in 0 to 1, and the true rate at score s is s, s^2, 0.3 s^6 or constant. A contest
compares methods that make the same claim. For each world and number of rows the script prints the
size of the default's interval (the median over the runs), and how many times as large each
candidate's is. A candidate may become the default if it is smaller in most cells and nowhere more
than 3 % larger. Coverage is not measured here; the tests do that.

To enter a method, add it to a contest of `CONTESTS`, or add a contest: a method takes the scores
and labels of a sample and returns named sizes.

    python experiments/sharper.py                      # about a minute
    python experiments/sharper.py --runs 5 --most 10000
"""

import argparse
import math
from collections.abc import Callable
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from calibrant import BinningCalibrator, Partition, Tally
from calibrant.limits.bet_limits import bet_limits
from calibrant.limits.bet_units import BetUnits, Draws
from calibrant.limits.chernoff import lower_mean
from calibrant.sequences import SEQUENCES

ALPHA = 0.1
N_BINS = 10
BINS = Partition.fixed_width(N_BINS)
SIZES = (10**3, 10**4, 10**5, 10**6)
WORLDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "s": lambda s: s,
    "s^2": np.square,
    "0.3 s^6": lambda s: 0.3 * s**6,
    "constant 0.2": lambda s: np.full_like(s, 0.2),
}
LARGEST_LOSS = 1.03

Method = Callable[[np.ndarray, np.ndarray], dict[str, float]]


def stream(name: str, scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """The sizes of the intervals of a stream, after all labels: the largest radius, and the mean
    one.
    """
    tally = Tally.from_data(BINS, scores, labels)
    sequence = SEQUENCES[name](N_BINS, ALPHA)
    sequence.add_counts(tally.counts, tally.positives)
    limits = sequence.limits()
    radius = np.maximum(limits.upper - tally.rates, tally.rates - limits.lower)
    return {"epsilon": float(radius.max()), "mean radius": float(radius.mean())}


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
    draws = Draws(np.zeros(outcomes.size, dtype=np.intp), outcomes)
    units = BetUnits.of(draws, np.zeros(1), np.ones(1), np.random.default_rng(0))
    found = bet_limits(units, np.full(1, alpha / 2.0))
    return float(found.lower[0]), float(found.upper[0])


CONTESTS: dict[str, dict[str, Method]] = {
    "bins": {name: partial(bins, name) for name in ("clopper-pearson", "clopper-pearson-weighted")},
    "streams": {name: partial(stream, name) for name in ("beta-binomial", "centred-beta-binomial")},
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
    for world, rate in WORLDS.items():
        rng = np.random.default_rng(n_rows)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in methods}
        for _ in range(runs):
            scores = rng.uniform(size=n_rows)
            labels = (rng.uniform(size=n_rows) < rate(scores)).astype(np.int64)
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="largest number of rows")
    parser.add_argument("--contest", choices=CONTESTS, action="append", help="only this contest")
    arguments = parser.parse_args()
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
