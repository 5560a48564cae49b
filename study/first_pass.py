"""The rule that takes the first threshold that passes, from the loose end: how often its guarantee
is false. The part `loose_end` of the study.

A guardrail acts on rows with score >= threshold. A common rule tests thresholds of a grid one by
one, each at the full level, beginning with the loosest, which acts most, and takes the first that
passes. Each test is exact. But the rule goes on after a failure, so that it has many tries, and the
first lucky one wins. A proof needs the other direction: begin where the target surely holds, and
stop at the first failure (`calibrant.threshold`).

The truth is known in each world: the guarantee is false if the true precision at the threshold is
below the target. With 90% confidence a tenth of the draws may be false; the column "p" is the
probability of at least so many if a tenth is the truth.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import binom

from calibrant import threshold

TARGET = 0.9
ALPHA = 0.1
DRAWS = 1_000
ROWS = (500, 2_000)
FINE = (np.arange(100_000) + 0.5) / 100_000
WORLDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "the score says nothing": lambda s: np.full(s.size, 0.895),
    "just below, then high": lambda s: np.where(s > 0.95, 0.97, 0.892),
    "falls at the top": lambda s: np.where(s > 0.8, 0.88, 0.897),
    "rate = score": lambda s: np.minimum(1.05 * s, 1.0),
}
Rule = Callable[[np.ndarray, np.ndarray, int], float | None]


def true_precision(rate: Callable[[np.ndarray], np.ndarray], cut: float) -> float:
    """The share of positives among rows at or above a threshold; scores are uniform."""
    above = cut <= FINE
    return float(rate(FINE[above]).mean()) if above.any() else 1.0


def loose_end(n_grid: int) -> Rule:
    """The first threshold of a grid that passes, from the lowest on."""
    grid = np.linspace(0.0, 1.0, n_grid, endpoint=False)

    def find(y: np.ndarray, scores: np.ndarray, seed: int) -> float | None:
        for cut in grid.tolist():
            above = scores >= cut
            rows = int(above.sum())
            positives = int(y[above].sum())
            if rows and binom.sf(positives - 1, rows, TARGET) <= ALPHA:
                return cut
        return None

    return find


def proved(y: np.ndarray, scores: np.ndarray, seed: int) -> float | None:
    return threshold(
        y, scores, precision=TARGET, confidence_level=1 - ALPHA, random_state=seed
    ).threshold


RULES: dict[str, Rule] = {
    "first pass, 20 thresholds": loose_end(20),
    "first pass, 100 thresholds": loose_end(100),
    "calibrant.threshold": proved,
}


def loose_end_part(name: str, n_rows: str, draws: int = DRAWS) -> Iterator[dict[str, Any]]:
    """One line for each rule: how often its guarantee was false, and how much was acted on."""
    rate = WORLDS[name]
    rows = int(n_rows)
    for rule, find in RULES.items():
        false = 0
        selected = 0.0
        for seed in range(draws):
            rng = np.random.default_rng([rows, seed])
            scores = rng.uniform(size=rows)
            y = (rng.uniform(size=rows) < rate(scores)).astype(int)
            cut = find(y, scores, seed)
            false += cut is not None and true_precision(rate, cut) < TARGET
            selected += 0.0 if cut is None else 1.0 - cut
        yield {
            "world": name,
            "rows": rows,
            "rule": rule,
            "draws": draws,
            "false": false / draws,
            "p": float(binom.sf(false - 1, draws, ALPHA)),
            "selected": selected / draws,
        }
