"""How often the guarantee of Calibrator is broken, in worlds whose true rates are known.

A guarantee is broken if in any region the true rate less the average prediction lies outside its
limits, or the true rate does. At alpha = 0.1 and 0.5 that may happen in at most 10 % and 50 % of
draws. Plain rows: a smooth rate, one that falls with the score, a step from 0 to 1, atoms at edges,
scores with eleven values, scores that say nothing (lottery), a rare class, rows sorted by label,
unlabelled scores. Groups whose sizes depend on their labels, and weights that follow labels.

    python experiments/curve_coverage.py                  # 400 draws of each world
    python experiments/curve_coverage.py --draws 50 --worlds groups weights
    python experiments/curve_coverage.py --first 400      # other draws than those of a first run
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from calibrant import Calibrator

POPULATION = 20_000  # scores at even ranks, in place of integrals
ALPHAS = (0.1, 0.5)
TOLERANCE = 2e-4  # of averages over the population
LARGE = 6  # rows of a large group
BOUND = 4.0  # of weights

Scores = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class World:
    """Scores as a function of uniform numbers, and the true rate at each score."""

    name: str
    scores: Scores
    rate: Scores
    is_sorted: bool = False
    n_unlabelled: int = 0

    def draw(self, rng: np.random.Generator, n_rows: int) -> dict[str, Any]:
        """Rows of the world, as arguments of `fit`."""
        scores = self.scores(rng.uniform(size=n_rows))
        y = (rng.uniform(size=n_rows) < self.rate(scores)).astype(int)
        if self.is_sorted:
            order = np.lexsort((scores, y))
            scores, y = scores[order], y[order]
        found = {"scores": scores, "y": y}
        if self.n_unlabelled:
            found["unlabelled_scores"] = self.scores(rng.uniform(size=self.n_unlabelled))
        return found

    def truth(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scores of the population, their rates, and how much each counts."""
        points = self.scores((np.arange(POPULATION) + 0.5) / POPULATION)
        return points, self.rate(points), np.ones(POPULATION)


@dataclass(frozen=True)
class Groups(World):
    """Groups of one row or six; those with positives are large more often."""

    by_group: bool = False

    def _latent(self, uniform: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether a group is bad, and the probability that it is large."""
        bad = uniform < 0.4
        return bad, np.where(bad, 0.5, 0.1)

    def draw(self, rng: np.random.Generator, n_rows: int) -> dict[str, Any]:
        """As many groups as half of the rows."""
        n_groups = n_rows // 2
        bad, large = self._latent(rng.uniform(size=n_groups))
        sizes = np.where(rng.uniform(size=n_groups) < large, LARGE, 1)
        group = np.repeat(np.arange(n_groups), sizes)
        scores = self.scores(rng.uniform(size=group.size))
        rate = np.where(bad[group], 0.3 + 0.7 * self.rate(scores), 0.5 * self.rate(scores))
        y = (rng.uniform(size=group.size) < rate).astype(int)
        target = "groups" if self.by_group else "rows"
        return {
            "scores": scores,
            "y": y,
            "groups": group,
            "max_group_size": LARGE,
            "group_target": target,
        }

    def truth(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rates among rows, or among rows of groups that count the same."""
        points, rate, weight = super().truth()
        of_bad = 0.4 * (0.5 * LARGE + 0.5)
        of_good = 0.6 * (0.1 * LARGE + 0.9)
        bad = 0.4 if self.by_group else of_bad / (of_bad + of_good)
        return points, bad * (0.3 + 0.7 * rate) + (1.0 - bad) * 0.5 * rate, weight


@dataclass(frozen=True)
class Weights(World):
    """Weights that follow labels and scores, up to a bound that is reached."""

    def _weights(self, scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(y == 1, BOUND, 0.3 + scores)

    def draw(self, rng: np.random.Generator, n_rows: int) -> dict[str, Any]:
        """Rows with weights."""
        found = super().draw(rng, n_rows)
        weights = self._weights(found["scores"], found["y"])
        return {**found, "importance_weight": weights, "weight_bound": BOUND}

    def truth(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rates of the weighted population."""
        points, rate, _ = super().truth()
        positive = rate * self._weights(points, np.ones(points.size))
        negative = (1.0 - rate) * self._weights(points, np.zeros(points.size))
        return points, positive / (positive + negative), positive + negative


def _uniform(u: np.ndarray) -> np.ndarray:
    return u


def _atoms(u: np.ndarray) -> np.ndarray:
    return np.where(u < 0.6, np.round(u * 10 / 6, 1), (u - 0.6) / 0.4)


def _tied(u: np.ndarray) -> np.ndarray:
    return np.round(u, 1)


def _square(s: np.ndarray) -> np.ndarray:
    return s**2


WORLDS = (
    World("smooth", _uniform, _square),
    World("reversed", _uniform, lambda s: 1.0 - s),
    World("step from 0 to 1", _uniform, lambda s: (s > 0.55) * 1.0),
    World("atoms", _atoms, lambda s: 0.2 + 0.5 * s),
    World("tied", _tied, _square),
    World("lottery", _uniform, lambda s: np.full(s.shape, 0.3)),
    World("rare", lambda u: u**3, lambda s: 0.03 * s),
    World("sorted", _uniform, _square, is_sorted=True),
    World("unlabelled", _uniform, _square, n_unlabelled=2_000),
    Groups("groups", _uniform, _square),
    Groups("groups, each the same", _atoms, _square, by_group=True),
    Weights("weights", _uniform, _square),
    Weights("weights, step", _uniform, lambda s: (s > 0.55) * 1.0),
)


def is_broken(world: World, model: Calibrator) -> bool:
    """Whether any limit misses the truth."""
    points, true_rate, weight = world.truth()
    where = model.partition_.membership(points)
    inside = where >= 0
    size = model.partition_.n_regions
    predictions = model.predict(points)

    def average(values: np.ndarray) -> np.ndarray:
        return np.bincount(where[inside], (weight * values)[inside], minlength=size)

    mass = average(np.ones(points.size))
    seen = mass > 0
    rate = average(true_rate)[seen] / mass[seen]
    predicted = average(predictions)[seen] / mass[seen]
    guarantee = model.guarantee_
    errors = guarantee.errors
    missed = rate - predicted < errors.lower[seen] - TOLERANCE
    missed |= rate - predicted > errors.upper[seen] + TOLERANCE
    missed |= rate < guarantee.lower[seen] - TOLERANCE
    missed |= rate > guarantee.upper[seen] + TOLERANCE
    return bool(missed.any())


def n_broken(world: World, alpha: float, draws: range, n_rows: int) -> int:
    """In how many draws of a world the guarantee is broken."""
    broken = 0
    for draw in draws:
        seed = [*world.name.encode(), draw]
        rows = world.draw(np.random.default_rng(seed), n_rows)
        model = Calibrator(confidence_level=1.0 - alpha, random_state=draw)
        broken += is_broken(world, model.fit(**rows, classes=(0, 1)))
    return broken


def main() -> None:
    """Count how often guarantees are broken."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--rows", type=int, default=700)
    parser.add_argument("--worlds", nargs="+", help="names that worlds begin with; all by default")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table(title=f"Broken guarantees of {options.draws} draws, {options.rows} rows each")
    for heading in ("world", *(f"alpha {alpha}" for alpha in ALPHAS), "smallest p-value"):
        table.add_column(heading)
    chosen = tuple(options.worlds or [""])
    draws = range(options.first, options.first + options.draws)
    for world in WORLDS:
        if not world.name.startswith(chosen):
            continue
        counts = [n_broken(world, alpha, draws, options.rows) for alpha in ALPHAS]
        values = [
            stats.binomtest(count, options.draws, alpha, alternative="greater").pvalue
            for count, alpha in zip(counts, ALPHAS, strict=True)
        ]
        table.add_row(world.name, *map(str, counts), f"{min(values):.2g}")
        Console().print(f"{world.name}: {counts}, p {min(values):.2g}")
    Console().print(table)


if __name__ == "__main__":
    main()
