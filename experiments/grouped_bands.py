"""Bands of a rate that does not fall, from grouped rows: how often they miss, and how wide they are.

    python experiments/grouped_bands.py --draws 200

The first table counts bands that miss anywhere, with known truths: group sizes that depend on the
labels, rows of a group that share a score and a label, tied scores, files sorted by label. The
second gives the mean half-width of bands from whole groups over that of bands from one row of each.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import expit
from scipy.stats import binomtest, norm

from calibrant.errors import CalibrantWarning
from calibrant.intervals import MonotoneBand
from calibrant.sample.reader import one_row_each, read_rows

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
GRID = np.linspace(0.03, 0.97, 95)


def sized(rng: np.random.Generator) -> Rows:
    """Large groups have a higher rate; the rate of a random row of a random group is its score."""
    mood = rng.choice([-1.0, 1.0], size=200)
    groups = np.repeat(np.arange(200), np.where(mood > 0, 10, 1))
    scores = rng.uniform(size=groups.size)
    rates = scores + 0.8 * mood[groups] * np.minimum(scores, 1 - scores)
    return scores, rng.uniform(size=groups.size) < rates, groups


def crowded(rng: np.random.Generator) -> Rows:
    """Six rows share a score and a label, or there is one row, with a higher rate; scores are tied."""
    many = rng.uniform(size=200) < 0.5
    groups = np.repeat(np.arange(200), np.where(many, 6, 1))
    score = np.round(rng.uniform(size=200), 2)
    middle = (score**2 + score) / 2.0
    shift = np.minimum(middle, 1.0 - middle) * np.where(many, -1.0, 1.0)
    label = rng.uniform(size=200) < middle + shift
    return score[groups], label[groups], groups


def until_positive(rng: np.random.Generator) -> Rows:
    """A group ends with its first positive row: its size is a function of its labels."""
    sizes = rng.geometric(0.3, size=200)
    groups = np.repeat(np.arange(200), sizes)
    y = np.zeros(groups.size, dtype=bool)
    y[np.cumsum(sizes) - 1] = True
    return rng.uniform(size=groups.size), y, groups


def stepped(rng: np.random.Generator) -> Rows:
    """The rate jumps from 0 to 1/2; half of the groups have one label above the jump."""
    groups = np.repeat(np.arange(200), 5)
    scores = rng.uniform(size=groups.size)
    shared = rng.uniform(size=200) < 0.5
    label = np.where(
        shared[groups], (rng.uniform(size=200) < 0.5)[groups], rng.uniform(size=1000) < 0.5
    )
    return scores, label & (scores > 0.5), groups


TRUE_RATES: dict[Callable[[np.random.Generator], Rows], Callable[[np.ndarray], np.ndarray]] = {
    sized: lambda s: s,
    crowded: lambda s: (s**2 + s) / 2.0,
    until_positive: lambda s: np.full(s.shape, -0.3 * np.log(0.3) / 0.7),
    stepped: lambda s: np.where(s > 0.5, 0.5, 0.0),
}


def is_missed(world: Callable[[np.random.Generator], Rows], seed: int, alpha: float) -> bool:
    """Whether a band misses anywhere, or refutes a rate that does not fall."""
    scores, y, groups = world(np.random.default_rng(seed))
    order = np.argsort(y, kind="stable")
    band = MonotoneBand(confidence_level=1.0 - alpha, random_state=seed)
    band.fit(scores[order], y[order], groups=groups[order], classes=(0, 1))
    places = np.unique(np.concatenate([GRID, scores]))
    lower, upper = band.steps_.at(places)
    rate = TRUE_RATES[world](places)
    outside = (lower > rate + 1e-12) | (upper < rate - 1e-12)
    return bool(band.is_refuted_ or outside.any())


def clustered(
    rng: np.random.Generator,
    sizes: np.ndarray,
    rate: Callable[[np.ndarray], np.ndarray],
    within: float = 0.5,
    icc: float = 0.3,
) -> Rows:
    """Groups whose scores and labels correlate.

    `within` is the share of the scores' variance within groups, `icc` the correlation of what
    decides the labels.
    """
    groups = np.repeat(np.arange(sizes.size), sizes)
    of_group, of_labels = rng.normal(size=(2, sizes.size))
    noise, of_rows = rng.normal(size=(2, groups.size))
    scores = norm.cdf(np.sqrt(1.0 - within) * of_group[groups] + np.sqrt(within) * noise)
    level = norm.cdf(np.sqrt(icc) * of_labels[groups] + np.sqrt(1.0 - icc) * of_rows)
    return scores, level < rate(scores), groups


def square(s: np.ndarray) -> np.ndarray:
    return s**2


def rare(s: np.ndarray) -> np.ndarray:
    return 0.02 * s


def steep(s: np.ndarray) -> np.ndarray:
    return expit(30.0 * (s - 0.5))


WIDTHS: dict[str, Callable[[np.random.Generator], Rows]] = {
    "1,000 groups of 2": lambda rng: clustered(rng, np.full(1000, 2), square),
    "1,000 groups of 4 on average": lambda rng: clustered(rng, rng.geometric(0.25, 1000), square),
    "the same, steep rate": lambda rng: clustered(rng, rng.geometric(0.25, 1000), steep),
    "the same, rate of 2 % at most": lambda rng: clustered(rng, rng.geometric(0.25, 1000), rare),
    "1,000 groups of 10": lambda rng: clustered(rng, np.full(1000, 10), square),
    "the same, scores and labels alike": lambda rng: clustered(
        rng, np.full(1000, 10), square, 0.1, 0.5
    ),
    "5,000 groups of 6 on average": lambda rng: clustered(rng, rng.geometric(1 / 6, 5000), square),
    "60 groups of 5 on average": lambda rng: clustered(rng, rng.geometric(0.2, 60), square),
    "2,000 groups of 1": lambda rng: clustered(rng, np.full(2000, 1), square),
    "1,000 groups of 3 equal rows": lambda rng: tuple(
        np.repeat(column, 3) for column in clustered(rng, np.full(1000, 1), square)
    ),
}


def half_widths(rows: Rows) -> tuple[float, float]:
    """Of whole groups, and of one row of each."""
    scores, y, groups = rows
    one = one_row_each(read_rows(scores, y, groups=groups)).collect()
    bands = [
        MonotoneBand().fit(scores, y, groups=groups),
        MonotoneBand().fit(one.scores, one.codes),
    ]
    whole, single = (float(np.diff(band.predict_interval(GRID)).mean()) / 2.0 for band in bands)
    return whole, single


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--width-draws", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", CalibrantWarning)
    print(f"bands that miss, of {options.draws}")
    for world in TRUE_RATES:
        for alpha in (0.1, 0.5):
            missed = sum(is_missed(world, seed, alpha) for seed in range(options.draws))
            p_value = binomtest(missed, options.draws, alpha, alternative="greater").pvalue
            print(f"{world.__name__:16} alpha {alpha}: {missed:4} (p {p_value:.3f})", flush=True)
    print("mean half-width: one row of each group, whole groups, ratio")
    for name, world_of in WIDTHS.items():
        found = [
            half_widths(world_of(np.random.default_rng(k))) for k in range(options.width_draws)
        ]
        whole, single = np.mean(found, axis=0)
        print(f"{name:36} {single:.3f} {whole:.3f} {whole / single:.2f}", flush=True)


if __name__ == "__main__":
    main()
