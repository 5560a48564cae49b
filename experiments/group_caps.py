"""Groups whose cap is learned: limits must hold for the capped rate, and tell where the rate of
rows differs.

A few groups are giants whose rows are all negative; scores say nothing. If no cap is given, groups
that are set aside fix as how many rows a group counts. What is proved is about rows counted so, and
the truth for each cap is known. The script counts, for each world and method, how often a limit
misses that truth, tests it by a one-sided binomial test, and counts how often the rate of rows lies
outside the limits, with a warning and without one. In every other draw the file is sorted by label.

    python experiments/group_caps.py
    python experiments/group_caps.py --draws 20 --jobs 2
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from calibrant import BinningCalibrator, Calibrator, audit, threshold
from calibrant.errors import GroupCapWarning

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from worlds.group_caps import Giants

N_GROUPS = 400
ALPHAS = (0.1, 0.5)
WORLDS = {
    "2 % of groups have 300 rows": Giants(0.02, 300),
    "0.5 % have 300": Giants(0.005, 300),
    "0.2 % have 1,000": Giants(0.002, 1000),
    "1 % have 60, others 3": Giants(0.01, 60, small=3, rate=0.6),
    "no giants, 5 rows each": Giants(0.0, 5, small=5, rate=0.8),
}
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


class Outcome(NamedTuple):
    """Whether a limit misses the capped truth; whether limits exclude the rate of rows.

    Whether that was told.
    """

    missed: bool
    excluded: bool
    told: bool


def binning(world: Giants, rows: Rows, alpha: float, n_bins: int = 1) -> Outcome:
    """Limits of the rates of bins."""
    return _of_bins(world, BinningCalibrator(n_bins, confidence_level=1 - alpha), rows)


def three_bins(world: Giants, rows: Rows, alpha: float) -> Outcome:
    """Limits of three bins at once; the cap is on the rows of a group in a bin."""
    return binning(world, rows, alpha, 3)


def curve(world: Giants, rows: Rows, alpha: float) -> Outcome:
    """Limits of the average error of a curve."""
    return _of_bins(world, Calibrator(n_bins=1, confidence_level=1 - alpha), rows)


def precision(world: Giants, rows: Rows, alpha: float) -> Outcome:
    """A threshold with the precision of small groups less 0.02, which is missed if giants count as
    much as they do.
    """
    level = world.rate - 0.02
    scores, y, groups = rows
    found, told = _told(
        threshold, y, scores, precision=level, groups=groups, confidence_level=1 - alpha
    )
    if found.threshold is None:
        return Outcome(False, False, told)
    share = 1.0 - min(max(found.threshold, 0.0), 1.0)
    truth = world.capped_rate(found.max_group_size, share)
    return Outcome(truth < level, y[scores >= found.threshold].mean() < level, told)


def average_error(world: Giants, rows: Rows, alpha: float) -> Outcome:
    """The lower bound of the average distance between score and rate.

    The cap is on all rows of a group.
    """
    scores, y, groups = rows
    found, told = _told(audit, y, scores, groups=groups, confidence_level=1 - alpha)
    caps = [world.small, world.large]
    truths = [_average(world.capped_rate(cap)) for cap in caps]
    return Outcome(found.average_lower_bound > max(truths), False, told)


METHODS: dict[str, Callable[[Giants, Rows, float], Outcome]] = {
    "one bin": binning,
    "three bins": three_bins,
    "curve": curve,
    "precision": precision,
    "audit": average_error,
}


def _average(rate: float) -> float:
    """The mean of |rate - score| over uniform scores."""
    return (rate**2 + (1.0 - rate) ** 2) / 2.0


def _of_bins(world: Giants, calibrator: Any, rows: Rows) -> Outcome:
    scores, y, groups = rows
    fitted, told = _told(calibrator.fit, scores, y, groups=groups)
    guarantee = fitted.guarantee_
    cap = guarantee.statement.groups.max_size
    bounds = np.clip(fitted.partition_.bounds, 0.0, 1.0)
    truth = np.array([world.capped_rate(cap, high - low) for low, high in bounds])
    lower = guarantee.lower
    upper = guarantee.upper
    if (
        guarantee.errors is not None
    ):  # of the curve: the rate less the average prediction over all scores
        grid = (np.arange(20_000) + 0.5) / 20_000
        truth = truth - fitted.predict(grid).mean()
        lower = guarantee.errors.lower
        upper = guarantee.errors.upper
    rate = fitted.tally_.rates
    excluded = (rate < guarantee.lower) | (rate > guarantee.upper)
    above = guarantee.statement.groups.above_cap > 0.0
    return Outcome(
        bool(((truth < lower) | (truth > upper)).any()), bool(excluded.any() and above), told
    )


def _told(call: Callable[..., Any], *given: Any, **beside: Any) -> tuple[Any, bool]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", GroupCapWarning)
        return call(*given, **beside), bool(caught)


def drawn(world: Giants, seed: int) -> Rows:
    """The rows of a draw; every other file is sorted by label."""
    scores, y, groups = world.draw(np.random.default_rng(seed), N_GROUPS)
    if seed % 2:
        order = np.argsort(y, kind="stable")
        scores = scores[order]
        y = y[order]
        groups = groups[order]
    return scores, y, groups


class Cell(NamedTuple):
    """One place of the grid, which is fixed beforehand."""

    world: str
    method: str
    alpha: float


GRID = [Cell(world, method, alpha) for world in WORLDS for method in METHODS for alpha in ALPHAS]


def tried(place: int, draws: int) -> list[Outcome]:
    """What all draws of one place of the grid show."""
    cell = GRID[place]
    world = WORLDS[cell.world]
    seeds = range(10_000 * place, 10_000 * place + draws)
    return [METHODS[cell.method](world, drawn(world, seed), cell.alpha) for seed in seeds]


def main(draws: int, jobs: int) -> int:
    """Print the table; 1 if a guarantee is broken or a difference was not told."""
    print("world | method | alpha | missed | p-value | rows outside | told | told for nothing")
    failed = 0
    with ProcessPoolExecutor(jobs) as pool:
        for cell, found in zip(
            GRID, pool.map(tried, range(len(GRID)), [draws] * len(GRID)), strict=True
        ):
            missed = sum(one.missed for one in found)
            p_value = binomtest(missed, draws, cell.alpha, alternative="greater").pvalue
            excluded = [one for one in found if one.excluded]
            told = sum(one.told for one in excluded)
            spare = sum(one.told for one in found if not one.excluded)
            failed += p_value < 0.001 or (told < len(excluded) and cell.method != "precision")
            counts = (f"{missed / draws:.3f}", f"{p_value:.3f}", len(excluded), told, spare)
            print(*cell, *counts, sep=" | ", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    sys.exit(main(arguments.draws, arguments.jobs))
