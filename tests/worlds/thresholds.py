"""Worlds whose precision is known at every threshold, and draws of rows from them."""

import numpy as np
from scipy.stats import binomtest

GRID = np.linspace(0.0, 1.0, 20_001)
MIDS = (GRID[:-1] + GRID[1:]) / 2


def falls_at_the_top(s):
    return np.where(s > 0.9, 0.3, np.minimum(0.2 + 0.85 * s, 0.97))


def target_on_a_stretch(s):
    return np.where(s > 0.3, 0.8, 0.1)


def just_below_the_target(s):
    return np.where(s > 0.9, 0.8, np.where(s > 0.2, 0.79, 0.0))


WORLDS = {
    "rate = score": lambda s: s,
    "falls at the top": falls_at_the_top,
    "target on a stretch": target_on_a_stretch,
    "just below": just_below_the_target,
}


def true_precision(rate, cut):
    above = cut <= MIDS
    return float(rate(MIDS[above]).mean()) if above.any() else 1.0


def draws(rate, n, seeds, levels=None):
    for seed in range(seeds):
        rng = np.random.default_rng([77, seed])
        scores = rng.uniform(size=n)
        y = rng.uniform(size=n) < rate(scores)
        yield seed, scores if levels is None else np.ceil(scores * levels) / levels, y


def is_kept(broken, tried, alpha=0.1):
    return binomtest(broken, tried, alpha, alternative="greater").pvalue > 0.01


def in_groups(n_groups, size, seed):
    """Rate = score, and all rows of a group share one uniform number: labels of a group depend on
    each other.
    """
    rng = np.random.default_rng([13, seed])
    groups = np.repeat(np.arange(n_groups), size)
    scores = rng.uniform(size=groups.size)
    return groups, scores, rng.uniform(size=n_groups)[groups] < scores
