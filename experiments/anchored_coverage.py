"""How often the guarantee of AnchoredCalibrator is broken, in worlds whose true rates are known.

A guarantee is broken if in any region the true rate less the average prediction lies outside its
limits, or the true rate does. At alpha = 0.1 and 0.5 that may happen in at most 10 % and 50 % of
draws. Worlds: a smooth rate, one that falls with the score, a step from 0 to 1, atoms at edges,
scores that say nothing (lottery), and a rare class.

    python experiments/anchored_coverage.py                  # 400 draws of each world; about ten
    minutes python experiments/anchored_coverage.py --draws 50
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from calibrant import AnchoredCalibrator

POPULATION = 20_000  # scores at even ranks, in place of integrals
ALPHAS = (0.1, 0.5)
TOLERANCE = 2e-4  # of averages over the population


@dataclass(frozen=True)
class World:
    """Scores as a function of uniform numbers, and the true rate at each score."""

    name: str
    scores: Callable[[np.ndarray], np.ndarray]
    rate: Callable[[np.ndarray], np.ndarray]

    def draw(self, rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the world."""
        scores = self.scores(rng.uniform(size=n_rows))
        return scores, (rng.uniform(size=n_rows) < self.rate(scores)).astype(int)


WORLDS = (
    World("smooth", lambda u: u, lambda s: s**2),
    World("reversed", lambda u: u, lambda s: 1.0 - s),
    World("step from 0 to 1", lambda u: u, lambda s: (s > 0.55) * 1.0),
    World(
        "atoms",
        lambda u: np.where(u < 0.6, np.round(u * 10 / 6, 1), (u - 0.6) / 0.4),
        lambda s: 0.2 + 0.5 * s,
    ),
    World("lottery", lambda u: u, lambda s: np.full(s.shape, 0.3)),
    World("rare", lambda u: u**3, lambda s: 0.03 * s),
)


def is_broken(world: World, model: AnchoredCalibrator) -> bool:
    """Whether any limit misses the truth."""
    points = world.scores((np.arange(POPULATION) + 0.5) / POPULATION)
    where = model.partition_.membership(points)
    inside = where >= 0
    size = model.partition_.n_regions
    mass = np.bincount(where[inside], minlength=size)
    rate = np.bincount(where[inside], world.rate(points)[inside], minlength=size)
    predicted = np.bincount(where[inside], model.predict(points)[inside], minlength=size)
    seen = mass > 0
    rate = rate[seen] / mass[seen]
    predicted = predicted[seen] / mass[seen]
    guarantee = model.guarantee_
    errors = guarantee.errors
    low = errors.lower[seen] - TOLERANCE
    high = errors.upper[seen] + TOLERANCE
    missed = (rate - predicted < low) | (rate - predicted > high)
    missed |= (rate < guarantee.lower[seen] - TOLERANCE) | (
        rate > guarantee.upper[seen] + TOLERANCE
    )
    return bool(missed.any())


def main() -> None:
    """Count how often guarantees are broken."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--rows", type=int, default=700)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table(title=f"Broken guarantees of {options.draws} draws, {options.rows} rows each")
    for heading in ("world", *(f"alpha {alpha}" for alpha in ALPHAS), "p-value"):
        table.add_column(heading)
    for number, world in enumerate(WORLDS):
        shares = []
        values = []
        for alpha in ALPHAS:
            broken = 0
            for draw in range(options.draws):
                rows = world.draw(np.random.default_rng([number, draw]), options.rows)
                model = AnchoredCalibrator(confidence_level=1.0 - alpha, random_state=draw)
                broken += is_broken(world, model.fit(*rows, classes=(0, 1)))
            shares.append(f"{broken / options.draws:.3f}")
            values.append(
                stats.binomtest(broken, options.draws, alpha, alternative="greater").pvalue
            )
        table.add_row(world.name, *shares, f"{min(values):.2g}")
        Console().print(f"{world.name}: {', '.join(shares)}")
    Console().print(table)


if __name__ == "__main__":
    main()
