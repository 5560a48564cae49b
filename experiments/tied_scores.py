"""What tied scores cost: the default's epsilon against that of the same scores untied, with as many
regions.

python experiments/tied_scores.py            # n = 1,000 to 100,000, 200 seeds
python experiments/tied_scores.py 1000000    # other numbers of rows

For each kind of score: mean epsilon over that of untied scores cut at order statistics of all rows;
the share of fits above twice; how often the look found ties, and how often it found none but an
edge was tied (and absorbed).
"""

import sys
from collections.abc import Callable

import numpy as np

from calibrant import BinningCalibrator

SEEDS = 200
N_BINS = 10
Tied = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def decimals(places: int) -> Tied:
    """Scores rounded to so many decimals."""
    return lambda rng, rates: rates.round(places)


def forest(trees: int) -> Tied:
    """The share of trees that vote for the positive class."""
    return lambda rng, rates: rng.binomial(trees, rates) / trees


KINDS: dict[str, Tied] = {
    "untied": lambda rng, rates: rates,
    **{f"{places} decimals": decimals(places) for places in (2, 3, 4, 5)},
    "300 to 850": lambda rng, rates: 300 + np.floor(551 * rates),
    **{f"{trees} trees": forest(trees) for trees in (20, 100, 500)},
    "float32": lambda rng, rates: rates.astype(np.float32),
}


def untied(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray:
    """The same scores, tied ones in random order: their ranks."""
    return np.lexsort((rng.random(scores.size), scores)).argsort().astype(float)


def measure(kind: str, n: int, seeds: int) -> str:
    """One line of the table."""
    found = []
    reference = []
    cut = 0
    absorbed = 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, n])
        rates = rng.uniform(size=n)
        scores = KINDS[kind](rng, rates)
        y = rng.uniform(size=n) < rates
        fitted = BinningCalibrator(N_BINS, random_state=seed).fit(scores, y, classes=(0, 1))
        regions = fitted.partition_.n_regions
        plain = BinningCalibrator(regions, pilot=None).fit(untied(rng, scores), y, classes=(0, 1))
        found.append(fitted.guarantee_.epsilon)
        reference.append(plain.guarantee_.epsilon)
        cut += fitted.guarantee_.statement.cutting > 0
        absorbed += fitted.guarantee_.statement.n_absorbed > 0
    ratio = np.mean(found) / np.mean(reference)
    twice = np.mean(np.array(found) > 2.0 * np.mean(reference))
    return (
        f"| {kind} | {n:,} | {np.mean(found):.4f} | {ratio:.3f} | {100 * twice:.1f} % |"
        f" {100 * cut / seeds:.0f} % | {100 * absorbed / seeds:.0f} % |"
    )


def main() -> None:
    """Print the table."""
    print("| scores | rows | epsilon | over untied | above twice | look tied | edge absorbed |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for n in [int(n) for n in sys.argv[1:]] or [1_000, 10_000, 100_000]:
        for kind in KINDS:
            print(measure(kind, n, SEEDS), flush=True)


if __name__ == "__main__":
    main()
