"""Covariate shift with grouped rows: how wide limits from whole groups are.

    python experiments/grouped_shift.py --draws 10

For each setting: the mean half-width of `ShiftCalibrator` with one row from each group, and the
half-widths with whole groups divided by it. The weights are known and bounded, and there are five
bins. "groups" has the same target as one row from each group: a random row from a random group.
"rows" is the default. "no pilot" is the same with a partition and `max_group_size` given.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from calibrant import Partition, ShiftCalibrator
from calibrant.errors import CalibrantWarning
from calibrant.sample.reader import one_row_each, read_rows

N_BINS = 5


class Setting(NamedTuple):
    """Rows of groups, with weights."""

    scores: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    weights: np.ndarray
    bound: float


def clustered(
    rng: np.random.Generator, sizes: np.ndarray, icc: float = 0.3, *, copies: bool = False
) -> Setting:
    """Rows whose target has density 2s; `icc` is the correlation of what decides the labels."""
    groups = np.repeat(np.arange(sizes.size), sizes)
    scores = rng.uniform(size=groups.size)
    level = norm.cdf(
        np.sqrt(icc) * rng.normal(size=sizes.size)[groups]
        + np.sqrt(1.0 - icc) * rng.normal(size=groups.size)
    )
    if copies:
        first = np.searchsorted(groups, groups)
        scores = scores[first]
        level = level[first]
    return Setting(scores, level < scores, groups, 2.0 * scores, 2.0)


def by_kind(rng: np.random.Generator, n_groups: int, size: int) -> Setting:
    """A tenth of the groups has half of the target: all their rows weigh nine times as much."""
    rows = clustered(rng, np.full(n_groups, size))
    rare = (rng.uniform(size=n_groups) < 0.1)[rows.groups]
    return rows._replace(weights=np.where(rare, 5.0, 5.0 / 9.0), bound=5.0)


def spread(rng: np.random.Generator, n_groups: int, size: int) -> Setting:
    """Weights of rows between 0 and 20, most of them small."""
    rows = clustered(rng, np.full(n_groups, size))
    return rows._replace(weights=20.0 * rng.beta(0.5, 9.5, size=rows.y.size), bound=20.0)


SETTINGS: dict[str, Callable[[np.random.Generator], Setting]] = {
    **{
        f"1,000 groups of {size}": lambda rng, size=size: clustered(rng, np.full(1000, size))
        for size in (1, 2, 3, 5, 10)
    },
    "1,000 groups of 4 on average": lambda rng: clustered(rng, rng.geometric(0.25, 1000)),
    "100 groups of 5": lambda rng: clustered(rng, np.full(100, 5)),
    "10,000 groups of 5": lambda rng: clustered(rng, np.full(10_000, 5)),
    "1,000 groups of 5, labels independent": lambda rng: clustered(rng, np.full(1000, 5), 0.0),
    "1,000 groups of 5, weights by group": lambda rng: by_kind(rng, 1000, 5),
    "1,000 groups of 5, weights spread": lambda rng: spread(rng, 1000, 5),
    "1,000 groups of 5 equal rows": lambda rng: clustered(rng, np.full(1000, 5), copies=True),
}


def half_widths(rows: Setting) -> list[float]:
    """With one row of each group; whole groups, by group and by rows; and without pilot groups."""
    told = {"importance_weight": rows.weights, "weight_bound": rows.bound}
    grouped = {**told, "groups": rows.groups}
    read = read_rows(rows.scores, rows.y, importance_weight=rows.weights, groups=rows.groups)
    one = one_row_each(read).collect()
    bins = Partition.from_edges(np.arange(1, N_BINS) / N_BINS)
    largest = int(np.bincount(rows.groups).max())
    quantile = ShiftCalibrator(n_bins=N_BINS)
    fits = [
        quantile.fit(
            one.scores, one.codes, importance_weight=one.weights, weight_bound=rows.bound
        ).guarantee_,
        quantile.fit(rows.scores, rows.y, **grouped, group_target="groups").guarantee_,
        quantile.fit(rows.scores, rows.y, **grouped).guarantee_,
        ShiftCalibrator(partition=bins)
        .fit(rows.scores, rows.y, **grouped, max_group_size=largest)
        .guarantee_,
    ]
    return [float(found.interval.radius.mean()) for found in fits]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore", CalibrantWarning)
    print(f"{'':40} one row  groups  rows  no pilot")
    for name, setting in SETTINGS.items():
        found = [half_widths(setting(np.random.default_rng(k))) for k in range(options.draws)]
        one, *whole = np.mean(found, axis=0)
        ratios = "  ".join(f"{width / one:.2f}" for width in whole)
        print(f"{name:40} {one:.3f}    {ratios}", flush=True)


if __name__ == "__main__":
    main()
