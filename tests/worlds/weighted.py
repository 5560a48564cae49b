"""Weighted rows, and grouped rows."""

import numpy as np
from scipy import stats


def kept_too_seldom(held, draws, level=0.9):
    return stats.binomtest(held, draws, level, alternative="less").pvalue <= 1e-4


def survey(rng, n):
    """Calibrated scores, sampled by score and label, and weights at most 1.

    The expected Brier score is 1/6.
    """
    scores = rng.uniform(size=6 * n)
    y = rng.uniform(size=6 * n) < scores
    chance = np.where(y, 0.2 + 0.8 * scores, 0.3)
    taken = np.flatnonzero(rng.uniform(size=6 * n) < chance)[:n]
    return scores[taken], y[taken], 0.2 / chance[taken]


def clusters(rng, n_groups, size, icc=0.3):
    """Groups that share one score and one rate, drawn around the score: the expected Brier score is
    1/6.
    """
    spread = (1 - icc) / icc
    scores = rng.uniform(size=n_groups)
    rates = rng.beta(scores * spread + 1e-12, (1 - scores) * spread + 1e-12)
    group = np.repeat(np.arange(n_groups), size)
    return scores[group], rng.uniform(size=group.size) < rates[group], group
